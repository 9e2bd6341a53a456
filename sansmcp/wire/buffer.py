"""Received bytes, handed out again line by line.

Theory of operation. A transport reads chunks that have nothing to do with lines, so a line is
either inside one chunk, which is the usual case and costs one slice, or it is spread over many. In
the second case the pieces are kept in a list and joined once, at the newline: each byte is searched
once and copied once, whatever the chunking. A growing ``bytearray`` would be searched as cheaply,
but would copy a large message a second time on the way out.

Small pieces are merged as they come, so that a peer who sends a few bytes at a time cannot make the
list itself heavy.
"""

from __future__ import annotations

from collections import deque
from typing import Final

_LF: Final = b"\n"
_CR: Final = 0x0D
_SMALL: Final = 1024
"""Pieces below this many bytes are merged: an object of their own would outweigh them."""


class LineTooLongError(Exception):
    """The line at the front of the buffer is longer than allowed. Nothing was consumed."""


class ReceiveBuffer:
    """Bytes in, lines out; in linear time for any chunking.

    Only 0x0A ends a line. The buffer has no bound of its own: `take_line` takes one, and a caller
    who takes every line after each `append` never holds more than that and one chunk.
    """

    __slots__ = ("_chunks", "_held", "_offset", "_parts", "_scanned")

    def __init__(self) -> None:
        self._chunks: deque[bytes] = deque()  # not searched yet, but for `_offset` bytes of the first
        self._offset = 0
        self._parts: list[bytes | bytearray] = []  # begin of a line, known to hold no newline
        self._held = 0  # length of all parts
        self._scanned = 0  # in chunks that are gone

    def __len__(self) -> int:
        """Bytes that were appended and not taken or dropped yet."""
        return self._held + sum(map(len, self._chunks)) - self._offset

    @property
    def scanned(self) -> int:
        """Bytes that were searched for a newline since the beginning, each search counted."""
        return self._scanned + self._offset

    def append(self, data: bytes | bytearray | memoryview) -> None:
        """Add `data` at the end. Bytes are kept without a copy, other types are copied."""
        if data:
            self._chunks.append(data if type(data) is bytes else bytes(data))

    def take_line(self, max_line: int) -> bytes | None:
        """Remove and return the next line, without its LF or CRLF; None if there is no whole one.

        Raises LineTooLongError, and consumes nothing, as soon as the line is known to have more than
        `max_line` bytes before its LF.
        """
        chunks = self._chunks
        while chunks:
            chunk = chunks[0]
            start = self._offset
            end = chunk.find(_LF, start)
            if end < 0:
                size = len(chunk) - start
                held = self._held + size
                if held > max_line:
                    self._scanned += size
                    raise LineTooLongError
                chunks.popleft()
                self._scanned += len(chunk)
                self._offset = 0
                self._held = held
                if size >= _SMALL:
                    self._parts.append(chunk[start:] if start else chunk)
                else:
                    self._keep_small(chunk[start:])
                continue
            if self._held + end - start > max_line:
                self._scanned += end + 1 - start
                raise LineTooLongError
            self._advance(chunk, end + 1)
            if self._parts:
                return self._join(chunk[start:end])
            if end > start and chunk[end - 1] == _CR:
                end -= 1
            return chunk[start:end]
        if self._held > max_line:
            raise LineTooLongError
        return None

    def peek(self, count: int) -> bytes:
        """Return the first `count` bytes, or all when there are fewer, and leave them in place."""
        found = bytearray()
        for part in self._parts:
            if len(found) >= count:
                break
            found += part[: count - len(found)]
        offset = self._offset
        for chunk in self._chunks:
            if len(found) >= count:
                break
            found += chunk[offset : offset + count - len(found)]
            offset = 0
        return bytes(found)

    def drop_line(self, keep: int) -> tuple[int, bytes, bool]:
        """Drop bytes up to and including the next LF, as far as there are any.

        Returns how many bytes before the LF were dropped, the last `keep` of them, and whether the
        LF was among them. No copy of the line is made.
        """
        dropped = self._held
        tail = bytearray()
        for part in self._parts:
            tail = _last(tail, part, 0, len(part), keep)
        self._clear_parts()
        chunks = self._chunks
        while chunks:
            chunk = chunks[0]
            start = self._offset
            end = chunk.find(_LF, start)
            ended = end >= 0
            if not ended:
                end = len(chunk)
            dropped += end - start
            tail = _last(tail, chunk, start, end, keep)
            self._advance(chunk, end + ended)
            if ended:
                return dropped, bytes(tail), True
        return dropped, bytes(tail), False

    def _advance(self, chunk: bytes, offset: int) -> None:
        if offset == len(chunk):
            self._chunks.popleft()
            self._scanned += offset
            self._offset = 0
        else:
            self._offset = offset

    def _keep_small(self, piece: bytes) -> None:
        parts = self._parts
        if parts and isinstance(last := parts[-1], bytearray):
            last += piece
        else:
            parts.append(bytearray(piece))

    def _join(self, end: bytes) -> bytes:
        parts = self._parts
        parts.append(end)
        if not end:
            parts.pop()
            if parts[-1][-1] == _CR:  # the LF of a CRLF came alone
                parts[-1] = parts[-1][:-1]
        elif end[-1] == _CR:
            parts[-1] = end[:-1]
        line = b"".join(parts)
        self._clear_parts()
        return line

    def _clear_parts(self) -> None:
        self._parts = []
        self._held = 0


def _last(tail: bytearray, data: bytes | bytearray, start: int, end: int, keep: int) -> bytearray:
    """Append ``data[start:end]`` to `tail`, of which only the last `keep` bytes are wanted."""
    if end - start >= keep:
        return bytearray(data[end - keep : end])
    tail += data[start:end]
    if len(tail) > keep:
        del tail[:-keep]
    return tail
