"""HTTP as a trace shows it: a line for each head, a line for each message.

The bytes come from all connections of one direction, in pieces as they were read and written. What
is shown is a help to understand, so they are not taken apart by the letter: a piece that begins with
a head begins a request or a response, and whatever follows is looked at line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from .narrate import MAX_PARSED
from .redact import HIDDEN, tells_of_secret

_START: Final = re.compile(rb"(?:[A-Z]{3,10} \S+ HTTP/1\.[01]|HTTP/1\.[01] [0-9]{3}\b[^\r\n]*)\r?(?:\n|\Z)")
_CHUNK: Final = re.compile(rb"[0-9a-fA-F]{1,8}(?:;[^\r\n]*)?")
_DULL: Final = frozenset(
    {
        "accept", "accept-encoding", "cache-control", "connection", "content-encoding", "content-length",
        "date", "host", "keep-alive", "server", "transfer-encoding", "user-agent", "vary",
        "x-accel-buffering",
    }
)  # fmt: skip
"""Fields that say nothing about MCP."""
_CHALLENGES: Final = frozenset({"www-authenticate", "proxy-authenticate"})
_QUERY: Final = re.compile(r"\?\S+")
_STREAM_FIELDS: Final = (b":", b"id:", b"event:", b"retry:")


class HttpSplitter:
    """Cuts what arrives into heads and messages.

    `head` is told each head on one line, without what is secret in it; `message` each message: its
    bytes, at most `MAX_PARSED` and one more, and its whole size.
    """

    def __init__(self, head: Callable[[str], None], message: Callable[[bytes, int], None]) -> None:
        self._tell_head = head
        self._tell_message = message
        self._head: list[str] | None = None
        """The start line and the fields, while a head is being read."""
        self._left: int | None = None
        """Bytes of the body that are to come; None where that is not known."""
        self._kept = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Tell of what is complete now."""
        if self._head is None and _START.match(data):
            self.flush()  # of another connection, or without an end of its own
            self._left = None
        at = 0
        while at < len(data):
            if self._head is None and self._left is not None:
                at = self._counted(data, at, self._left)
            else:
                at = self._line(data, at)

    def flush(self) -> None:
        """Tell of what is there, complete or not."""
        line, whole = self._take()
        if self._head is not None:
            told, self._head = "; ".join(self._head), None
            self._tell_head(told)
        elif line.startswith(b"data:"):
            if line[5:].strip():
                self._tell_message(line[5:], whole - 5)
        elif line.strip() and not line.startswith(_STREAM_FIELDS) and not _CHUNK.fullmatch(line.strip()):
            self._tell_message(line, whole)

    def _counted(self, data: bytes, at: int, left: int) -> int:
        piece = data[at : at + left]
        self._keep(piece)
        self._left = left - len(piece) or None
        if self._left is None:
            self._tell_message(*self._take())
        return at + len(piece)

    def _line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        self._keep(data[at : len(data) if end < 0 else end])
        if end < 0:
            return len(data)
        if self._head is not None:
            self._field(self._head, self._take()[0].decode("latin-1").strip())
        elif _START.match(self._kept):
            start = self._take()[0].decode("ascii", "backslashreplace").strip()
            self._head = [_QUERY.sub("?…", start)]
        else:
            self.flush()
        return end + 1

    def _field(self, head: list[str], text: str) -> None:
        if not text:
            self.flush()
            return
        name, _, value = text.partition(":")
        name, value = name.lower(), value.strip()
        if name == "content-length" and value.isascii() and value.isdigit():
            self._left = int(value[:18]) or None
        if name not in _DULL:
            secret = name not in _CHALLENGES and tells_of_secret(name)
            head.append(f"{name}: {HIDDEN if secret else _QUERY.sub('?…', value)}")

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        self._kept += piece[: MAX_PARSED + 1 - len(self._kept)]

    def _take(self) -> tuple[bytes, int]:
        taken = bytes(self._kept), self._size
        self._kept.clear()
        self._size = 0
        return taken
