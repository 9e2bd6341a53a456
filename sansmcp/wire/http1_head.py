"""Heads of HTTP/1.1 messages: found among the bytes, read with h11, and written.

h11 knows the grammar of a head and refuses most of what is dangerous in it. What it lets through and
is refused here, because two readers of the same bytes might see two different messages:

* Transfer-Encoding together with Content-Length, or in HTTP/1.0; more than one Content-Length;
* bytes that are no ASCII in a header field, and control characters other than tab;
* from a client, lines that end with a bare LF, and folded lines;
* a major version other than 1.

A head is read when it is whole, so its limits do not depend on how the stream was cut. One that says the
same as one of the last of its connection is not read again.

Specification: RFC 9112, sections 2 to 6 (message format, request and status line, fields, length);
RFC 9110, section 5.5 (field values).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final, Generic, TypeAlias, TypeVar

import attrs
import h11

from ..errors import LocalProtocolError, PeerFault
from .http1_events import InformationalHead, RequestHead, ResponseHead

Fields: TypeAlias = "Mapping[str, str] | Iterable[tuple[str, str]]"
"""Header fields to send: a mapping from name to value, or pairs of them."""

_CR: Final = 0x0D
_LF: Final = 0x0A
_TOKEN: Final = "[!#$%&'*+\\-.^_`|~0-9A-Za-z]+"
_TOKEN_BYTES: Final = frozenset(
    b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)
_TEXT: Final = b"\t" + bytes(range(0x20, 0x7F))
_LATIN: Final = _TEXT + bytes(range(0x80, 0x100))


# finding a head ----------------------------------------------------------------------------------


class HeadBuffer:
    """Collects the bytes of a head, of `max_head` at most, up to and with its blank line."""

    __slots__ = ("_at_start", "_client", "_held", "_lead", "_max_head", "problem")

    def __init__(self, max_head: int, *, of_client: bool) -> None:
        self._max_head: Final = max_head
        self._client: Final = of_client
        self._held = bytearray()
        self._lead: int | None = 0  # bytes of an empty line before the request; None when decided
        self.problem: PeerFault | None = None
        """What is wrong, before the head is whole; None if nothing is."""

    def __len__(self) -> int:
        return len(self._held)

    def clear(self) -> None:
        """Begin anew, for the next head."""
        self._held.clear()
        self._lead = 0

    def feed(self, chunk: bytes, offset: int) -> tuple[bytes | None, int]:
        """Take ``chunk[offset:]`` as far as it belongs to the head.

        Returns the head if it is complete, and where in `chunk` it ends.
        """
        if self._lead is not None and self._client:
            offset = self._skip_line(chunk, offset)
        if offset == len(chunk) or self.problem is not None:
            return None, offset
        held = self._held
        if not held:
            if not self._begins_well(chunk[offset : offset + 5]):
                return None, offset
            end = _find_end(chunk, offset, offset + self._max_head)
            if end >= 0:
                return chunk[offset:end], end
        begin = len(held)
        held += chunk[offset : offset + self._max_head + 1 - begin]
        if begin < 5 and not self._begins_well(bytes(held[:5])):
            return None, offset
        end = _find_end(held, max(0, begin - 2), self._max_head)
        if end >= 0:
            return bytes(held[:end]), offset + end - begin
        if len(held) > self._max_head:
            self.problem = PeerFault.HEAD_TOO_LARGE
        return None, len(chunk)

    def _skip_line(self, chunk: bytes, offset: int) -> int:
        """Read over one empty line, as some clients send one after a body."""
        if not self._lead and chunk[offset] == _CR:
            self._lead = 1
            offset += 1
        if self._lead and offset < len(chunk):
            if chunk[offset] != _LF:
                self.problem = PeerFault.INVALID_HTTP_HEAD
            self._lead = None
            return offset + 1
        if not self._lead:
            self._lead = None
        return offset

    def _begins_well(self, begin: bytes) -> bool:
        # So that a peer that speaks something else, TLS for example, is told at once.
        good = begin[0] in _TOKEN_BYTES if self._client else b"HTTP/".startswith(begin)
        if not good:
            self.problem = PeerFault.INVALID_HTTP_HEAD
        return good


def _find_end(data: bytes | bytearray, start: int, stop: int) -> int:
    """Return where the first blank line ends, at `stop` at most, or -1."""
    end = data.find(b"\n\r\n", start, stop)
    bare = data.find(b"\n\n", start, stop if end < 0 else end + 1)
    if bare >= 0:
        return bare + 2
    return end + 3 if end >= 0 else -1


# reading a head ----------------------------------------------------------------------------------


@attrs.frozen
class HeadProblem:
    """A head that is refused."""

    fault: PeerFault
    detail: str
    status: int = 400
    """The status to refuse it with."""


def read_request(head: bytes, max_headers: int) -> RequestHead | HeadProblem:
    """Read a whole head of a request. Any bytes may be given."""
    lines = head.count(b"\r\n")
    if lines - 2 > max_headers:
        return HeadProblem(PeerFault.HEAD_TOO_LARGE, "too many header fields", 431)
    if len(head.translate(None, _TEXT)) != 2 * lines:
        return _why_refused(head)
    if b"\n " in head or b"\n\t" in head:
        return HeadProblem(PeerFault.FOLDED_HEADER, "a header field is folded over lines")
    connection = h11.Connection(h11.SERVER)
    event = _parse(connection, head)
    if isinstance(event, HeadProblem):
        return event
    if not isinstance(event, h11.Request):
        return _MALFORMED
    version = event.http_version.decode("ascii")
    if version[0] != "1":
        return HeadProblem(PeerFault.UNSUPPORTED_HTTP_VERSION, "not a version 1 of HTTP", 505)
    fields = event.headers.raw_items()
    headers = _to_dict(fields)
    problem = _check_length(head, headers, version, merged=lines - 2 - len(event.headers))
    if problem is not None:
        return problem
    length = None if "transfer-encoding" in headers else int(headers.get("content-length", 0))
    return RequestHead(
        method=event.method.decode("ascii"),
        target=event.target.decode("ascii"),
        headers=headers,
        http_version=version,
        content_length=length,
        expects_continue=length != 0
        and version >= "1.1"
        and headers.get("expect", "").lower() == "100-continue",
        close=wants_close(headers, version),
        lines=() if len(headers) == len(fields) else _to_lines(fields),
    )


def read_response(head: bytes, max_headers: int) -> ResponseHead | InformationalHead | HeadProblem:
    """Read a whole head of a response. Any bytes may be given."""
    deviations: tuple[PeerFault, ...] = ()
    lines = head.count(b"\n")
    folded = head.count(b"\n ") + head.count(b"\n\t")
    if lines - 2 > max_headers:
        return HeadProblem(PeerFault.HEAD_TOO_LARGE, "too many header fields")
    crlfs = head.count(b"\r\n")
    if len(head.translate(None, _TEXT)) != 2 * crlfs:
        # The reason phrase may be in any language, and is of no importance.
        status_line, _, fields = head.partition(b"\n")
        if status_line.removesuffix(b"\r").translate(None, _LATIN):
            return _MALFORMED
        if fields.replace(b"\r\n", b"").replace(b"\n", b"").translate(None, _TEXT):
            return _why_refused(fields)
    if crlfs != lines:
        deviations += (PeerFault.BARE_LINE_FEED,)
    if folded:
        deviations += (PeerFault.FOLDED_HEADER,)
    connection = h11.Connection(h11.CLIENT)
    if head[9:10] == b"1":
        connection.send(_ANY_REQUEST)  # else h11 does not expect a status 1xx
    event = _parse(connection, head)
    if isinstance(event, HeadProblem):
        return event
    if not isinstance(event, h11.Response | h11.InformationalResponse):
        return _MALFORMED
    version = event.http_version.decode("ascii")
    if version[0] != "1":
        return HeadProblem(PeerFault.UNSUPPORTED_HTTP_VERSION, "not a version 1 of HTTP")
    headers = _to_dict(event.headers.raw_items())
    if isinstance(event, h11.InformationalResponse):
        return InformationalHead(event.status_code, headers)
    problem = _check_length(head, headers, version, merged=lines - 2 - folded - len(event.headers))
    if problem is not None:
        return problem
    return ResponseHead(event.status_code, headers, event.reason.decode("latin-1"), version, deviations)


def wants_close(headers: Mapping[str, str], version: str) -> bool:
    """Whether the sender of a head wants the connection to end with the message, or has to."""
    if version < "1.1":
        return True  # keep-alive was never specified for it
    connection = headers.get("connection")
    return connection is not None and "close" in [part.strip().lower() for part in connection.split(",")]


_MALFORMED: Final = HeadProblem(PeerFault.INVALID_HTTP_HEAD, "malformed head")
_ANY_REQUEST: Final = h11.Request(method="GET", target="/", headers=[("host", "x")])
_TOLD: Final = {
    "illegal request line": "malformed request line",
    "illegal status line": "malformed status line",
    "illegal header line": "malformed header field",
    "Missing mandatory Host": "no Host field",
    "Found multiple Host": "more than one Host field",
    "Received server _SWITCH_UPGRADE": "a change of protocol that nobody asked for",
}


def _parse(connection: h11.Connection, head: bytes) -> object:
    try:
        connection.receive_data(head)
        return connection.next_event()
    except h11.RemoteProtocolError as error:
        # Its text may quote the head, and there are secrets in there.
        text = str(error)
        if error.error_status_hint == 501:
            return HeadProblem(
                PeerFault.UNSUPPORTED_TRANSFER_CODING, "a transfer coding other than chunked", 501
            )
        if text.startswith(("bad Content-Length", "conflicting Content-Length")):
            return HeadProblem(PeerFault.AMBIGUOUS_LENGTH, "malformed or conflicting Content-Length")
        for begin, detail in _TOLD.items():
            if text.startswith(begin):
                return HeadProblem(PeerFault.INVALID_HTTP_HEAD, detail)
        return _MALFORMED


def _why_refused(head: bytes) -> HeadProblem:
    if not head.isascii():
        return HeadProblem(PeerFault.NON_ASCII_HEADER, "bytes that are not ASCII in the head")
    if head.replace(b"\r\n", b"").replace(b"\n", b"").translate(None, _TEXT):
        return HeadProblem(PeerFault.INVALID_HTTP_HEAD, "control characters in the head")
    return HeadProblem(PeerFault.BARE_LINE_FEED, "a line that ends with a bare LF")


def _to_dict(fields: list[tuple[bytes, bytes]]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for raw_name, raw_value in fields:
        name = raw_name.decode("ascii").lower()
        value = raw_value.decode("ascii")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    return headers


def _to_lines(fields: list[tuple[bytes, bytes]]) -> tuple[tuple[str, str], ...]:
    return tuple((name.decode("ascii").lower(), value.decode("ascii")) for name, value in fields)


def _check_length(head: bytes, headers: dict[str, str], version: str, *, merged: int) -> HeadProblem | None:
    """Refuse a head from which two readers may see two lengths; `merged` fields are gone by now."""
    if "transfer-encoding" in headers:
        if "content-length" in headers:
            detail = "Transfer-Encoding together with Content-Length"
        elif version < "1.1":
            detail = "Transfer-Encoding in HTTP/1.0"
        else:
            return None
    elif "content-length" in headers:
        at = head.lower().find(b"\ncontent-length:")
        if not merged and b"," not in head[at : head.find(b"\n", at + 1)]:
            return None
        detail = "more than one Content-Length"
    else:
        return None
    return HeadProblem(PeerFault.AMBIGUOUS_LENGTH, detail)


H = TypeVar("H", RequestHead, ResponseHead)


class KnownHeads(Generic[H]):
    """The last heads of a connection: most are one of a few, but for the digits of ``content-length``.

    In a head that was found good, nothing else hangs on these digits, unless there is an ``expect``.
    """

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: Final[list[tuple[bytes, bytes, H]]] = []
        """What stands before the digits and after them, if there are any, and what was read in it."""

    def keep(self, data: bytes, head: H) -> None:
        """`head` was read in `data`."""
        if len(data) > _MAX_KNOWN_BYTES or "expect" in head.headers:
            return
        before, after = data, b""
        if "content-length" in head.headers:
            digits = _LENGTH.search(data)
            if digits is None:
                return  # they are on a line of their own
            before, after = data[: digits.start(1)], data[digits.end(1) :]
        # What was read is somebody else's by now.
        self._known.insert(0, (before, after, head.again(None)))
        del self._known[_MAX_KNOWN:]

    def read(self, data: bytes) -> H | None:
        """What is read in the head `data`, which is a new object each time; None if it has to be read."""
        for before, after, head in self._known:
            if data.startswith(before) and data.endswith(after):
                digits = data[len(before) : len(data) - len(after)]
                if not after and not digits:
                    return head.again(None)
                if after and digits.isdigit() and len(digits) <= _MAX_DIGITS:
                    return head.again(digits.decode("ascii"))
        return None


_LENGTH: Final = re.compile(rb"\ncontent-length:[ \t]*([0-9]+)", re.IGNORECASE)
_MAX_DIGITS: Final = 18
_MAX_KNOWN: Final = 4
"""Heads that are kept, with what was read in them, as long as their connection is there: those of as many
tools, or of their answers as JSON and as a stream."""
_MAX_KNOWN_BYTES: Final = 2048
"""Of each of them: enough for a token."""


# writing a head ----------------------------------------------------------------------------------

_BLOCK: Final = re.compile(rf"(?:{_TOKEN}: (?:[\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?)?\r\n)*+")
_METHOD: Final = re.compile(_TOKEN)
_TARGET: Final = re.compile(r"[\x21-\x7e]+")
_OURS: Final = re.compile(r"^(content-length|transfer-encoding|connection):", re.IGNORECASE | re.MULTILINE)
_HOST: Final = re.compile(rb"^host:", re.IGNORECASE | re.MULTILINE)

_REASONS: Final = {
    200: b"OK",
    202: b"Accepted",
    204: b"No Content",
    304: b"Not Modified",
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    404: b"Not Found",
    405: b"Method Not Allowed",
    406: b"Not Acceptable",
    408: b"Request Timeout",
    409: b"Conflict",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    421: b"Misdirected Request",
    429: b"Too Many Requests",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    501: b"Not Implemented",
    502: b"Bad Gateway",
    503: b"Service Unavailable",
    504: b"Gateway Timeout",
    505: b"HTTP Version Not Supported",
}


class FieldBlock:
    """Header fields that are the same in many heads: checked and encoded once.

    Raises LocalProtocolError for a field that HTTP does not allow, or one about the length of the
    body or the end of the connection: those are written by the connection itself.
    """

    __slots__ = ("data", "hosts")

    def __init__(self, fields: Fields = ()) -> None:
        self.data: Final = _encode(fields)
        self.hosts: Final = len(_HOST.findall(self.data))

    def __repr__(self) -> str:
        return f"FieldBlock({len(self.data)} bytes)"


def encode_request(method: str, target: str, fixed: FieldBlock, headers: Fields) -> bytes:
    """Return the begin of the head of a request, without its length and its blank line."""
    more = FieldBlock(headers) if headers else NO_FIELDS
    if not _METHOD.fullmatch(method):
        raise LocalProtocolError(f"{method!r} is no method")
    if not _TARGET.fullmatch(target):
        raise LocalProtocolError("the target of a request is visible ASCII, and not empty")
    if fixed.hosts + more.hosts != 1:
        raise LocalProtocolError("a request has one Host field")
    first, second = (more, fixed) if more.hosts else (fixed, more)
    return b"%b %b HTTP/1.1\r\n%b%b" % (
        method.encode("ascii"),
        target.encode("ascii"),
        first.data,
        second.data,
    )


def encode_response(status: int, fixed: FieldBlock, headers: Fields = ()) -> bytes:
    """Return the begin of the head of a response, without its length and its blank line."""
    if not 200 <= status <= 599:
        raise LocalProtocolError(f"{status} is no status of a response")
    more = _encode(headers) if headers else b""
    return b"HTTP/1.1 %d %b\r\n%b%b" % (status, _REASONS.get(status, b""), fixed.data, more)


def _encode(fields: Fields) -> bytes:
    pairs = fields.items() if isinstance(fields, Mapping) else fields
    lines = [name + ": " + value + "\r\n" for name, value in pairs]
    block = "".join(lines)
    if not _BLOCK.fullmatch(block) or block.count("\n") != len(lines):
        bad = next(line for line in lines if not _BLOCK.fullmatch(line) or line.count("\n") != 1)
        name = bad.partition(":")[0]
        raise LocalProtocolError(f"the header field {name[:64]!r} is not visible ASCII on one line")
    if (ours := _OURS.search(block)) is not None:
        raise LocalProtocolError(f"{ours[1]} is written by the connection itself")
    return block.encode("ascii")


NO_FIELDS: Final = FieldBlock()
