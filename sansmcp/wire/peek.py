"""What can be told of a message that cannot be parsed: too long, cut off, or broken.

A line that is no message may still have to be answered, or may have been the answer that somebody
waits for. The functions here look at a bounded part of its bytes.

Specification: 2026-07-28, basic (messages, error responses).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Final

from ..records import frozen
from .jsonrpc import RequestId, is_request_id

HEAD_SIZE: Final = 4096
"""Bytes from the start of a line that are looked at: every common writer has the id there, or at
the end."""

TAIL_SIZE: Final = 1024
"""Bytes from the end of a line that are looked at."""

_MAX_ID: Final = 256
"""A longer id is not looked for."""

_STRING: Final = rb'"(?:[^"\\\x00-\x1f]|\\.)*+"'
_SCALAR: Final = _STRING + rb"|-?[0-9][0-9.eE+-]*|true|false|null"
_SPACE: Final = rb"[ \t\r\n]*"

_compiled = cache(re.compile)
"""The expression, compiled when it is first needed: few connections see anything to look at."""

_OPENING: Final = _SPACE + rb"\{"
_KEY: Final = _SPACE + b"(" + _STRING + b")" + _SPACE + b":" + _SPACE
_SCALAR_VALUE: Final = b"(" + _SCALAR + b")" + _SPACE + b"([,}])"
_SEPARATOR: Final = _SPACE + b"([,}])"
_BRACKET: Final = _STRING + rb"|([\[{])|([\]}])"

_LAST_MEMBER: Final = (
    rb",[ \t\r\n]{0,8}"
    rb'"([A-Za-z_]{1,32})"[ \t\r\n]{0,8}:[ \t\r\n]{0,8}'
    rb'("[^"\\\x00-\x1f]{0,%d}"|-?[0-9]{1,%d}|true|false|null)[ \t\r\n]{0,8}\Z' % (_MAX_ID, _MAX_ID)
)


@frozen
class Sighting:
    """What was seen of a message in its bytes."""

    id: RequestId | None
    """The id of the message; None if none was seen for certain."""

    like_response: bool
    """Whether it was meant as a response, and must not be answered."""


def sight(head: bytes, tail: bytes = b"") -> Sighting:
    """Look for the envelope of a JSON-RPC message in the first and the last bytes of its line.

    Only members of the outermost object count, and only those that come before anything that `head`
    does not show in full. `tail` is the end of a line whose middle is unknown: there the members
    count that follow the last nested value, which is where some writers put the id. A message with
    two ids has none. At most the first `HEAD_SIZE` and the last `TAIL_SIZE` bytes are looked at.
    """
    ids: list[RequestId | None] = []
    like_response: bool | None = None
    for key, value in _first_members(head[:HEAD_SIZE]):
        if key == b'"id"':
            ids.append(_read_id(value))
        elif like_response is None:
            if key == b'"method"':
                like_response = False
            elif key in {b'"result"', b'"error"'}:
                like_response = True
    if not ids:
        ids = [_read_id(value) for key, value in _last_members(tail[-TAIL_SIZE:]) if key == b"id"]
    # Of two ids nobody can say which one another reader takes.
    return Sighting(ids[0] if len(ids) == 1 else None, bool(like_response))


def find_id(head: bytes, tail: bytes = b"") -> RequestId | None:
    """Return the id of the message that begins with `head`, or None: see `sight`."""
    return sight(head, tail).id


def like_json(line: bytes) -> bool:
    """Whether `line` begins as an object or an array does."""
    return line[:HEAD_SIZE].lstrip(b" \t\r\n").startswith((b"{", b"["))


def like_response(line: bytes) -> bool:
    """Whether a broken `line` was meant as a response, going by the words at its start.

    True if ``"result"`` or ``"error"`` is in its first `HEAD_SIZE` bytes, and before any
    ``"method"``.
    """
    head = line[:HEAD_SIZE]
    answers = [at for at in (head.find(b'"result"'), head.find(b'"error"')) if at >= 0]
    return bool(answers) and not 0 <= head.find(b'"method"') < min(answers)


def wants_parse_error(line: bytes) -> bool:
    """Whether a server may answer an unreadable `line` with a parse error.

    It may if the line was meant as a message, and not as a response: else two peers could go on
    answering each other's errors. The rest is chatter, and is not answered.
    """
    return like_json(line) and not like_response(line)


def excerpt(data: bytes, limit: int) -> str:
    """Return the start of `data` as text of at most `limit` characters, for people.

    What is cut is marked by an ellipsis; bytes that are no UTF-8 are written as ``\\xff``, and so
    are control characters, lest a terminal obeys them.
    """
    text = data[: 4 * limit].decode("utf-8", "backslashreplace")
    if not text.isprintable():
        text = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text[: limit + 1])
    if len(text) <= limit and len(data) <= 4 * limit:
        return text
    return text[: limit - 1] + "…"


def _first_members(head: bytes) -> Iterator[tuple[bytes, bytes | None]]:
    """Yield the members at the start of an object: raw key, and raw value if that is a scalar."""
    match = _compiled(_OPENING).match(head)
    while match is not None:
        match = _compiled(_KEY).match(head, match.end())
        if match is None:
            return
        key, at = match[1], match.end()
        match = _compiled(_SCALAR_VALUE).match(head, at)
        if match is not None:
            yield key, match[1]
        else:
            yield key, None
            at = _skip_nested(head, at)
            match = _compiled(_SEPARATOR).match(head, at) if at else None
        if match is not None and match[match.lastindex or 0] == b"}":
            return


def _skip_nested(head: bytes, at: int) -> int:
    """Return where the array or object that starts at `at` ends, or 0 if it is not all there."""
    if head[at : at + 1] not in {b"{", b"["}:
        return 0
    depth = 0
    for match in _compiled(_BRACKET).finditer(head, at):
        if match[1]:
            depth += 1
        elif match[2]:
            depth -= 1
            if not depth:
                return match.end()
    return 0


def _last_members(tail: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the scalar members at the end of an object, the last one first.

    Read backwards there is no doubt here: the last byte closes the object, so a quote before it
    ends a string, which begins at the nearest quote, as escapes are not let through.
    """
    rest = tail.rstrip(b" \t\r\n")
    if not rest.endswith(b"}"):
        return
    rest = rest[:-1]
    for _ in range(8):
        match = _compiled(_LAST_MEMBER).search(rest)
        if match is None:
            return
        yield match[1], match[2]
        rest = rest[: match.start()]


def _read_id(raw: bytes | None) -> RequestId | None:
    if raw is None or len(raw) > _MAX_ID:
        return None
    try:
        value = json.loads(raw)
    except ValueError:
        return None
    return value if is_request_id(value) else None
