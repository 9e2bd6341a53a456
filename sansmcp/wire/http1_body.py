"""Where a message body ends: by its length, by chunks, or with the connection.

h11 can tell that as well. But its readers copy each byte several times, take a multiple of the time
for a chunk, and test how long a line is only when they run out of bytes, so that what is refused
depends on how the stream was cut. These hand on slices of what was received, and are exact.

Specification: RFC 9112, sections 6.3 (message body length) and 7.1 (chunked transfer coding).
"""

from __future__ import annotations

import re
from typing import Final, TypeAlias

_CR: Final = b"\r"
_LF: Final = b"\n"
_CRLF: Final = b"\r\n"
_HEX: Final = b"0123456789abcdefABCDEF"
_MAX_DIGITS: Final = 16
_SIZE_LINE: Final = re.compile(rb"([0-9a-fA-F]{1,16})([ \t]*(?:;[\t\x20-\x7e]*)?)")
_TRAILER_LINE: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[\t\x20-\x7e]*")

# What the next line of a chunked body has to be, and what is wrong if it is not.
_SIZE: Final = "the size of a chunk is malformed, or its extensions are too long"
_AFTER_DATA: Final = "a chunk is longer than its size says"
_TRAILER: Final = "a trailer field is malformed, or the trailers are too long"


class SizedBody:
    """A body of `length` bytes."""

    __slots__ = ("left",)

    problem: str | None = None
    ends_with_connection = False

    def __init__(self, length: int) -> None:
        self.left = length
        """Bytes known to be still to come."""

    @property
    def done(self) -> bool:
        return not self.left

    def read(self, chunk: bytes, offset: int, found: list[bytes]) -> int:
        """Append what ``chunk[offset:]`` holds of the body to `found`; return where that ends."""
        end = min(len(chunk), offset + self.left)
        self.left -= end - offset
        if end > offset:
            found.append(chunk[offset:end])
        return end


class EndlessBody:
    """A body that ends with the connection."""

    __slots__ = ()

    left = 0
    problem: str | None = None
    done = False
    ends_with_connection = True

    def read(self, chunk: bytes, offset: int, found: list[bytes]) -> int:
        """Append what ``chunk[offset:]`` holds of the body to `found`; return where that ends."""
        found.append(chunk[offset:])
        return len(chunk)


class ChunkedBody:
    """A body in chunks. Extensions and trailers are read over, `room` bytes more of them than of the body.

    Without that bound a peer could make us read as much as it likes for a body of a few bytes; and an
    event stream, which may last for weeks, must not end by what stands beside each of its chunks.
    """

    __slots__ = ("_line", "_next", "_of_chunk", "_room", "_whole_room", "done", "problem")

    left = 0
    ends_with_connection = False

    def __init__(self, room: int) -> None:
        self._whole_room = room
        self._room = room  # what is left of it
        self._of_chunk = 0  # bytes of the chunk that is being read
        self._line = bytearray()  # begin of an unfinished line
        self._next = _SIZE
        self.done = False
        self.problem: str | None = None
        """What is wrong, in words; None if nothing is. There is nothing to read after it."""

    def read(self, chunk: bytes, offset: int, found: list[bytes]) -> int:
        """Append what ``chunk[offset:]`` holds of the body to `found`; return where that ends."""
        size = len(chunk)
        while offset < size and not self.done and self.problem is None:
            if self._of_chunk:
                end = min(size, offset + self._of_chunk)
                found.append(chunk[offset:end])
                self._of_chunk -= end - offset
                offset = end
                if not self._of_chunk:
                    if chunk.startswith(_CRLF, end):
                        offset += 2
                    else:
                        self._next = _AFTER_DATA
                continue
            if self._next is _SIZE and self._room >= 0 and not self._line:
                offset = self._read_whole(chunk, offset, found)
                if offset == size:
                    break
            end = chunk.find(_LF, offset)
            if end < 0:
                self._line += chunk[offset:]
                self._check_length(self._line)
                return size
            line: bytes | bytearray = chunk[offset:end]
            offset = end + 1
            if self._line:
                self._line += line
                line, self._line = self._line, bytearray()
            self._end_line(line)
        return offset

    @staticmethod
    def _read_whole(chunk: bytes, offset: int, found: list[bytes]) -> int:
        """Read chunks that are all there, and of which nothing is said but the size, as long as there are."""
        while True:
            end = chunk.find(_CRLF, offset, offset + _MAX_DIGITS + 2)
            digits = chunk[offset : max(offset, end)]
            if not digits or digits.translate(None, _HEX):
                return offset
            begin = end + 2
            after = begin + int(digits, 16)
            if after == begin or not chunk.startswith(_CRLF, after):
                return offset
            found.append(chunk[begin:after])
            offset = after + 2

    def _check_length(self, line: bytes | bytearray) -> None:
        """Refuse a line that is too long, whether or not it goes on."""
        longest = 0
        if self._next is not _AFTER_DATA:
            longest = self._room + (_MAX_DIGITS if self._next is _SIZE else 0)
        if len(line) - line.endswith(_CR) > longest:
            self.problem = self._next

    def _end_line(self, line: bytes | bytearray) -> None:
        self._check_length(line)
        if not line.endswith(_CR):
            self.problem = self._next
        if self.problem is not None:
            return
        line = line[:-1]
        if self._next is _AFTER_DATA:
            self._next = _SIZE
        elif self._next is _TRAILER:
            self.done = not line
            self._room -= len(line)
            if line and not _TRAILER_LINE.fullmatch(line):
                self.problem = _TRAILER
        else:
            digits: bytes | bytearray = line
            if not line or len(line) > _MAX_DIGITS or line.translate(None, _HEX):
                match = _SIZE_LINE.fullmatch(line)
                if match is None:
                    self.problem = _SIZE
                    return
                digits = match[1]
                self._room = min(self._room - len(match[2]) + int(digits, 16), self._whole_room)
            self._of_chunk = int(digits, 16)
            if not self._of_chunk:
                self._next = _TRAILER


BodyReader: TypeAlias = SizedBody | ChunkedBody | EndlessBody
