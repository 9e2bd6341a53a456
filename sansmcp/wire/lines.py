"""Newline framing: one message a line, over pipes, TCP or any other stream of bytes.

The decoder knows bytes only: a line comes out as bytes whether or not it is JSON. What is wrong with
the framing itself comes out as a `LineFault`, in its place in the stream. Nothing of one line can
spoil another: only 0x0A separates them, and no character is decoded before its line is whole.

What a peer does, and what comes of it:

===================================  ===========================================================
a line end of CRLF                   accepted, the CR is taken off
a line of white space                skipped
a byte order mark at the start       taken off, and told: BYTE_ORDER_MARK
a line longer than allowed           dropped up to its LF, and told once: MESSAGE_TOO_LARGE
a ``Content-Length:`` header line    told the first time: HEADER_FRAMING; later ones are lines
bytes without LF at the end          no message, but told: TRUNCATED_MESSAGE
===================================  ===========================================================

The last row is a choice. The specification says that messages *are delimited by newlines*, so a
message without one has not arrived, even when its JSON is complete: the sender may have been about
to go on, and a peer that never writes a newline is not understood by others either.

Specification: 2026-07-28, basic/transports/stdio.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

import attrs

from ..errors import LocalProtocolError, PeerFault
from ..records import record
from .buffer import LineTooLongError, ReceiveBuffer
from .jsonrpc import RequestId
from .peek import HEAD_SIZE, TAIL_SIZE, Sighting, sight

_BOM: Final = b"\xef\xbb\xbf"
_BRACE: Final = 0x7B
_HEADER: Final = re.compile(rb"content-length[ \t]*:[ \t]*[0-9]+[ \t]*\Z", re.IGNORECASE)


@record
class LineFault:
    """Something is wrong with the framing of the stream. The lines after it are not affected."""

    fault: PeerFault
    """BYTE_ORDER_MARK and HEADER_FRAMING are habits of the peer; with MESSAGE_TOO_LARGE and
    TRUNCATED_MESSAGE a message was lost."""

    head: bytes = attrs.field(repr=False)
    """The first bytes of the line, `HEAD_SIZE` at most."""

    id: RequestId | None = None
    """The id of the lost message, if it could be read."""

    like_response: bool = False
    """Whether the lost message was meant as a response: then the call `id` gets no other answer."""


class LineDecoder:
    """Bytes in, lines out. Any division of the stream into chunks gives the same lines.

    After each input, call `next_line` until it returns None. No line has more than `max_message`
    bytes, its LF not counted, and the decoder holds no more than that and what it was given last.
    """

    __slots__ = (
        "_buffer",
        "_dropped",
        "_eof",
        "_found",
        "_head",
        "_header_seen",
        "_lead",
        "_max_message",
        "_skipping",
        "_tail",
    )

    def __init__(self, max_message: int) -> None:
        if max_message < 1:
            raise LocalProtocolError(f"max_message must be positive, not {max_message}")
        self._max_message: Final = max_message
        self._buffer: Final = ReceiveBuffer()
        self._found: Final[deque[LineFault]] = deque()
        self._lead: bytes | None = b""  # a byte order mark that is not complete; None when decided
        self._eof = False
        self._header_seen = False
        # A line that is too long, of which only these are kept:
        self._skipping = False
        self._head: bytes | None = None  # None once it was told of
        self._tail = b""
        self._dropped = 0

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes of the stream. Raises LocalProtocolError after `receive_eof`."""
        if self._eof:
            raise LocalProtocolError("data after the end of the stream")
        if self._lead is not None:
            data = self._without_bom(bytes(data))
        self._buffer.append(data)

    def receive_eof(self) -> None:
        """Take the end of the stream. A second time does nothing."""
        if not self._eof:
            self._eof = True
            if self._lead:
                self._buffer.append(self._lead)
            self._lead = None

    def next_line(self) -> bytes | LineFault | None:
        """Return the next line, or fault, or None when more data is needed or the stream is over.

        A line has something in it that is no white space, and neither LF nor CRLF at its end.
        """
        if self._found:
            return self._found.popleft()
        buffer = self._buffer
        while True:
            if self._skipping:
                fault = self._skip()
                if fault is not None:
                    return fault
                if self._skipping:
                    return None
            try:
                line = buffer.take_line(self._max_message)
            except LineTooLongError:
                fault = self._begin_skipping()
                if fault is not None:
                    return fault
                continue
            if line is None:
                return self._remainder() if self._eof else None
            if line and line[0] == _BRACE:
                return line
            if not line or line.isspace():
                continue
            if not self._header_seen and _HEADER.match(line):
                self._header_seen = True
                return LineFault(PeerFault.HEADER_FRAMING, line[:HEAD_SIZE])
            return line

    def stats(self) -> dict[str, int]:
        """Return sizes: ``buffered`` bytes held now, ``scanned`` bytes searched so far."""
        held = len(self._buffer) + len(self._tail) + len(self._head or b"") + len(self._lead or b"")
        return {"buffered": held, "scanned": self._buffer.scanned}

    def _without_bom(self, data: bytes) -> bytes:
        assert self._lead is not None
        lead = self._lead + data
        if len(lead) < len(_BOM) and _BOM.startswith(lead):
            self._lead = lead
            return b""
        self._lead = None
        if not lead.startswith(_BOM):
            return lead
        self._found.append(LineFault(PeerFault.BYTE_ORDER_MARK, _BOM))
        return lead[len(_BOM) :]

    def _begin_skipping(self) -> LineFault | None:
        """Start to drop a line that is too long; tell of it at once unless its id may still come.

        The id is at the start or, with some writers, at the very end. Only a line that begins as an
        object and did not show its id is worth waiting for.
        """
        self._skipping = True
        # The buffer may hold more lines after this one, but this one has more than max_message bytes.
        head = self._buffer.peek(min(HEAD_SIZE, self._max_message))
        seen = sight(head)
        if seen.id is None and head.lstrip(b" \t\r\n").startswith(b"{"):
            self._head = head
            return None
        return _too_large(head, seen)

    def _skip(self) -> LineFault | None:
        """Drop what is there of the line; tell of it, if that is still to do, when it is over.

        At twice the allowed size it is told anyway, so that a line without end is not hushed up.
        """
        dropped, tail, ended = self._buffer.drop_line(TAIL_SIZE)
        self._dropped += dropped
        self._tail = (self._tail + tail)[-TAIL_SIZE:]
        head = self._head
        fault = None
        endless = self._dropped > 2 * self._max_message
        if head is not None and (ended or self._eof or endless):
            seen = sight(head, self._tail if ended and not endless else b"")
            fault = _too_large(head, seen)
            self._head = None
        if ended:
            self._skipping = False
            self._dropped = 0
            self._tail = b""
        return fault

    def _remainder(self) -> LineFault | None:
        rest = self._buffer.peek(len(self._buffer))
        self._buffer.drop_line(0)
        if not rest or rest.isspace():
            return None
        head = rest[:HEAD_SIZE]
        seen = sight(head)
        return LineFault(PeerFault.TRUNCATED_MESSAGE, head, seen.id, seen.like_response)


def _too_large(head: bytes, seen: Sighting) -> LineFault:
    return LineFault(PeerFault.MESSAGE_TOO_LARGE, head, seen.id, seen.like_response)


def encode_line(payload: bytes) -> bytes:
    """Return `payload` as a line. Raises LocalProtocolError if it is empty or has a line end in it."""
    if b"\n" in payload or b"\r" in payload:
        raise LocalProtocolError("a message on a line has no line end inside")
    if not payload or payload.isspace():
        raise LocalProtocolError("a message on a line is not empty")
    return payload + b"\n"
