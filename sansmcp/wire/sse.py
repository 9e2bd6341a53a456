"""Event streams: bytes to server-sent events and back.

Theory of operation. As with lines, a field is either inside one chunk, which is the usual case and
costs one slice, or it is spread over many, whose pieces are kept in a list and joined once. Nearly every
event is one line of data, perhaps after the line that says it is a message: of these, all that a chunk
holds are read in one step. Each byte is searched once for a CR and once for an LF, whatever the chunking
and whatever line ends the peer uses: where the next CR is, is remembered, and LF is searched for only up
to there.

The data of an event comes out as bytes. Whoever reads it, reads JSON, and decodes it while doing so;
invalid UTF-8 in it is found there. The decoder looks at UTF-8 only in ``event`` and ``id``.

What a peer does, and what comes of it:

===================================  ===========================================================
line ends LF, CRLF or CR             accepted, also mixed; after a CR nothing is waited for
a byte order mark at the start       taken off
a comment                            nothing, but `SseDecoder.comments` counts it
an event with empty data             nothing, but its id and retry are remembered
unknown fields, ``retry: 12x``       ignored
an id with NUL                       ignored
an id that is no UTF-8               ignored, and told: INVALID_UTF8
an event type that is no UTF-8       told: INVALID_UTF8; the type has U+FFFD in it
an event larger than allowed         dropped up to its blank line, and told once: EVENT_TOO_LARGE
an event without its blank line      discarded at the end, and told: TRUNCATED_EVENT
===================================  ===========================================================

The fourth row is stricter than the HTML standard, which dispatches an event whose data is an empty
string; the protocol uses such events only to hand out an id.

Specification: WHATWG HTML, server-sent events (parsing an event stream); 2026-07-28,
basic/transports/streamable-http; 2025-11-25, basic/transports (resumability).
"""

from __future__ import annotations

from collections import deque
from typing import Final

import attrs

from ..errors import LocalProtocolError, PeerFault
from .peek import HEAD_SIZE

MESSAGE: Final = "message"
"""The type of an event that names none: the only one that carries a message of the protocol."""

_BOM: Final = b"\xef\xbb\xbf"
_LF: Final = b"\n"
_CR: Final = b"\r"
_LF_BYTE: Final = 0x0A
_CR_BYTE: Final = 0x0D
_SPACE: Final = 0x20
_COLON: Final = 0x3A
_NONE: Final = -1
_UNKNOWN: Final = -2
_DATA: Final = b"data: "
_TYPED_DATA: Final = b"event: message\ndata: "
_SMALL: Final = 1024
"""Pieces below this many bytes are merged: an object of their own would outweigh them."""
_MAX_RETRY_DIGITS: Final = 15


@attrs.define(eq=False)
class ServerSentEvent:
    """An event of the stream, whole."""

    event: str
    """Its type; `MESSAGE` if it names none."""

    data: bytes = attrs.field(repr=False)
    """The values of its data fields, joined by LF; never empty. Not checked to be UTF-8."""

    id: str | None = None
    """The last event id as of this event: its own or an earlier one; None if there is none."""

    retry: int | None = None
    """The reconnection time in this event, in milliseconds; None if it has none."""


@attrs.define(eq=False)
class SseFault:
    """Something is wrong with the stream. The events after it are not affected."""

    fault: PeerFault
    """With EVENT_TOO_LARGE and TRUNCATED_EVENT an event was lost; with INVALID_UTF8 a field."""

    head: bytes = attrs.field(repr=False)
    """The first bytes of the data, or of the field that is wrong: `HEAD_SIZE` at most."""


class SseDecoder:
    """Bytes in, events out. Any division of the stream into chunks gives the same events.

    After each input, call `next_event` until it returns None. No event has more than `max_event`
    bytes, counted over its lines without the comments; the decoder holds no more than that and what
    it was given last. Raises LocalProtocolError if `max_event` is not positive.
    """

    __slots__ = (
        "_between",
        "_chunks",
        "_comments",
        "_data",
        "_dropping",
        "_eof",
        "_held",
        "_id",
        "_last_id",
        "_lead",
        "_line_dropped",
        "_max_event",
        "_next_cr",
        "_offset",
        "_parts",
        "_queued",
        "_retry",
        "_retry_here",
        "_scanned",
        "_size",
        "_skip_lf",
        "_type",
        "_usual",
    )

    def __init__(self, max_event: int) -> None:
        if max_event < 1:
            raise LocalProtocolError(f"max_event must be positive, not {max_event}")
        self._max_event: Final = max_event
        self._lead: bytes | None = b""  # a byte order mark that is not complete; None when decided
        self._eof = False
        self._comments = 0
        self._last_id: str | None = None
        self._retry: int | None = None
        # What was not looked at yet:
        self._chunks: Final[deque[bytes]] = deque()
        self._offset = 0
        self._queued = 0  # length of all chunks, without regard to `_offset`
        self._next_cr = _UNKNOWN  # of the first chunk: index of a CR from `_offset` on, or _NONE
        self._skip_lf = False  # the last line ended with the last byte, a CR
        self._scanned = 0  # in chunks that are gone, and for a CR
        self._usual: Final[deque[bytes]] = deque()  # data that `next_event` has still to tell of
        # The line that is not complete:
        self._parts: list[bytes | bytearray] = []
        self._held = 0
        self._line_dropped = False  # it is a comment, or too long: its end is all that matters
        # The event that is not complete:
        self._between = True  # there is none, nor an unfinished line
        self._size = 0  # of its lines
        self._data: bytes | bytearray | None = None
        self._type = MESSAGE
        self._id: str | None = None
        self._retry_here: int | None = None
        self._dropping = False  # it is too large

    # getters -------------------------------------------------------------------------------------

    @property
    def last_event_id(self) -> str | None:
        """The id to resume after; None if there is none, or it was taken back by an empty one.

        An id counts from the blank line of its event on, whether or not that event had data.
        """
        return self._last_id

    @property
    def retry(self) -> int | None:
        """The reconnection time last asked for, in milliseconds; None if there was none."""
        return self._retry

    @property
    def comments(self) -> int:
        """Comments so far: a sign of life on a stream without events."""
        return self._comments

    def stats(self) -> dict[str, int]:
        """Return sizes: ``buffered`` bytes held now, ``scanned`` bytes searched so far."""
        held = self._held + len(self._data or b"") + len(self._lead or b"")
        held += sum(map(len, self._usual))
        return {"buffered": held + self._queued - self._offset, "scanned": self._scanned + self._offset}

    # inputs --------------------------------------------------------------------------------------

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes of the stream. Raises LocalProtocolError after `receive_eof`."""
        if self._eof:
            raise LocalProtocolError("data after the end of the stream")
        chunk = data if type(data) is bytes else bytes(data)
        if self._lead is not None:
            chunk = self._without_bom(chunk)
        self._append(chunk)

    def receive_eof(self) -> None:
        """Take the end of the stream. A second time does nothing."""
        if not self._eof:
            self._eof = True
            self._append(self._lead or b"")
            self._lead = None

    # pull ----------------------------------------------------------------------------------------

    def next_event(self) -> ServerSentEvent | SseFault | None:
        """Return the next event, or fault, or None when more data is needed or the stream is over."""
        if not self._usual:
            found = self.next_data()
            if not isinstance(found, list):
                return found
            self._usual.extend(found)
        return ServerSentEvent(MESSAGE, self._usual.popleft(), self._last_id, None)

    def next_data(self) -> list[bytes] | ServerSentEvent | SseFault | None:
        """As `next_event`, but of messages that follow each other and say nothing else, the data together.

        Not to be mixed with `next_event`.
        """
        found: ServerSentEvent | SseFault | None
        chunks = self._chunks
        while chunks:
            chunk = chunks[0]
            start = self._offset
            if self._skip_lf:
                self._skip_lf = False
                if chunk[start] == _LF_BYTE:
                    self._advance(chunk, start + 1)
                    continue
            cr = self._next_cr
            if cr < start and cr != _NONE:
                cr = self._next_cr = chunk.find(_CR, start)
                self._scanned += (cr if cr >= 0 else len(chunk)) - start
            if self._between:
                usual = self._take_usual(chunk, start, cr)
                if usual:
                    return usual
                if self._parts:
                    continue
            end = chunk.find(_LF, start) if cr < 0 else chunk.find(_LF, start, cr)
            if end < 0:
                end = cr
                if end < 0:
                    if self._keep_rest():
                        return self._begin_too_large()
                    continue
            after = end + 1
            if end == cr:
                if after == len(chunk):
                    self._skip_lf = True
                elif chunk[after] == _LF_BYTE:
                    after += 1
            if after == len(chunk):
                self._drop_chunk()
            else:
                self._offset = after
            if self._line_dropped:
                self._line_dropped = False
                continue
            if self._parts:
                found = self._end_of_parts(chunk[start:end])
                if found is None and chunk.startswith(_LF, after):
                    self._advance(chunk, after + 1)
                    found = self._dispatch()
            elif end == start:
                found = self._dispatch()
            elif chunk.startswith(b"data:", start):
                if self._dropping:
                    continue
                self._size += end - start
                if self._size > self._max_event:
                    return self._too_large(chunk[start:end])
                start += 5
                if start < end and chunk[start] == _SPACE:
                    start += 1
                self._add_data(chunk[start:end])
                continue
            else:
                found = self._other_line(chunk[start:end])
            if found is not None:
                return found
        return self._remainder() if self._eof else None

    # inside --------------------------------------------------------------------------------------

    def _without_bom(self, data: bytes) -> bytes:
        lead = (self._lead or b"") + data
        if len(lead) < len(_BOM) and _BOM.startswith(lead):
            self._lead = lead
            return b""
        self._lead = None
        return lead.removeprefix(_BOM)

    def _take_usual(self, chunk: bytes, start: int, cr: int) -> list[bytes]:
        """The data of the usual events that begin at `start`, where one may begin; `cr` is the next CR.

        What there is of the next one, if its line of data is cut by the end of `chunk`, is kept.
        """
        found: list[bytes] = []
        stop = len(chunk) if cr < 0 else cr
        while True:
            if chunk.startswith(_TYPED_DATA, start):
                begin = start + len(_TYPED_DATA)
            elif chunk.startswith(_DATA, start):
                begin = start + len(_DATA)
            else:
                break
            end = chunk.find(_LF, begin, stop)
            if end <= begin or not chunk.startswith(_LF, end + 1) or end - start > self._max_event:
                if end < 0 and cr < 0 and stop - start <= self._max_event:
                    line = begin - len(_DATA)
                    self._size = line - start - 1 if line > start else 0
                    self._parts.append(chunk[line:])
                    self._held = stop - line
                    self._between = False
                    self._drop_chunk()
                    return found
                break
            found.append(chunk[begin:end])
            start = end + 2
        self._between = bool(found)
        if found:
            self._advance(chunk, start)
        return found

    def _append(self, chunk: bytes) -> None:
        if chunk:
            self._chunks.append(chunk)
            self._queued += len(chunk)

    def _drop_chunk(self) -> None:
        size = len(self._chunks.popleft())
        self._queued -= size
        self._scanned += size
        self._offset = 0
        self._next_cr = _UNKNOWN

    def _advance(self, chunk: bytes, offset: int) -> None:
        if offset == len(chunk):
            self._drop_chunk()
        else:
            self._offset = offset

    def _keep_rest(self) -> bool:
        """Move what is left of the first chunk to the unfinished line; whether that is too much."""
        chunk = self._chunks[0]
        rest = chunk[self._offset :] if self._offset else chunk
        self._drop_chunk()
        parts = self._parts
        if not self._line_dropped and not parts and rest[0] == _COLON:
            self._comments += 1
            self._line_dropped = True
        if self._line_dropped:
            return False
        if self._dropping:
            self._line_dropped = True
            return False
        self._held += len(rest)
        if len(rest) >= _SMALL or not parts:
            parts.append(rest)
        elif isinstance(last := parts[-1], bytearray):
            last += rest
        else:
            parts.append(bytearray(rest))
        return self._size + self._held > self._max_event

    def _end_of_parts(self, end: bytes) -> SseFault | None:
        """Take a line whose begin was kept. It is not empty, no comment, and not to be dropped."""
        parts = self._parts
        if end:
            parts.append(end)
        first = parts[0]
        size = self._size + self._held + len(end)
        if len(first) < 6 or not first.startswith(b"data:") or size > self._max_event:
            line = b"".join(parts)
            self._clear_parts()
            return self._other_line(line)
        self._size = size
        parts[0] = first[6 if first[5] == _SPACE else 5 :]
        self._add_data(b"".join(parts))
        self._clear_parts()
        return None

    def _clear_parts(self) -> None:
        self._parts = []
        self._held = 0

    def _add_data(self, value: bytes) -> None:
        if self._data is None:
            self._data = value
            return
        if not isinstance(self._data, bytearray):
            # Grows in place: a list would let many short lines weigh many times their size.
            self._data = bytearray(self._data)
        self._data += _LF
        self._data += value

    def _other_line(self, line: bytes) -> SseFault | None:
        """Take a line that is not empty, of whatever kind."""
        if line[0] == _COLON:
            self._comments += 1
            return None
        if self._dropping:
            return None
        self._size += len(line)
        if self._size > self._max_event:
            return self._too_large(line)
        if line == b"event: message":
            self._type = MESSAGE
            return None
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        match name:
            case b"data":
                self._add_data(value)
            case b"event":
                self._type = value.decode("utf-8", "replace") or MESSAGE
                if "\ufffd" in self._type and not _is_utf8(value):
                    return SseFault(PeerFault.INVALID_UTF8, value[:HEAD_SIZE])
            case b"id" if b"\0" not in value:
                try:
                    self._id = value.decode("utf-8")
                except UnicodeDecodeError:
                    return SseFault(PeerFault.INVALID_UTF8, value[:HEAD_SIZE])
            case b"retry" if value.isdigit() and len(value) <= _MAX_RETRY_DIGITS:
                self._retry = self._retry_here = int(value)
            case _:
                pass
        return None

    def _dispatch(self) -> ServerSentEvent | None:
        """The event is complete: return it unless there is nothing in it."""
        data = self._data
        if self._dropping:
            self._clear_event()
            return None
        if self._id is not None:
            self._last_id = self._id or None
        if not data:
            self._clear_event()
            return None
        whole = data if type(data) is bytes else bytes(data)
        event = ServerSentEvent(self._type, whole, self._last_id, self._retry_here)
        self._clear_event()
        return event

    def _clear_event(self) -> None:
        self._size = 0
        self._data = None
        self._type = MESSAGE
        self._id = None
        self._retry_here = None
        self._dropping = False
        self._between = True

    def _begin_too_large(self) -> SseFault:
        """Drop the event for what there is of its unfinished line."""
        line = b"".join(self._parts)
        self._size += len(line)
        self._clear_parts()
        self._line_dropped = True
        return self._too_large(line)

    def _too_large(self, line: bytes) -> SseFault:
        """Drop the event, `line` being the one that is too much; its id does not count."""
        # Only what every way to split the stream has shown by now, lest the fault depends on it.
        shown = line[: self._max_event + 1 - (self._size - len(line))]
        head = self._head(shown)
        self._clear_event()
        self._dropping = True
        self._between = False
        return SseFault(PeerFault.EVENT_TOO_LARGE, head)

    def _head(self, line: bytes) -> bytes:
        """The first bytes of the data of the unfinished event, which goes on with `line`."""
        if self._data is not None:
            return bytes(self._data[:HEAD_SIZE])
        if not line.startswith(b"data:"):
            return b""
        return line[5 : HEAD_SIZE + 6].removeprefix(b" ")[:HEAD_SIZE]

    def _remainder(self) -> SseFault | None:
        unfinished = self._size > 0 or self._held > 0
        head = self._head(b"".join(self._parts))
        self._clear_parts()
        self._clear_event()
        return SseFault(PeerFault.TRUNCATED_EVENT, head) if unfinished else None


def _is_utf8(value: bytes) -> bool:
    try:
        value.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def encode_event(
    data: bytes, *, event: str | None = None, id: str | None = None, retry: int | None = None
) -> bytes:
    """Return an event with its blank line. Whatever `data` is, it is one event with these fields.

    Line ends in `data` make several data fields, and arrive as LF each. `event` is its type, None
    for a message; `id` the id to resume after; `retry` the reconnection time in milliseconds.

    Raises LocalProtocolError if `event` or `id` has a CR, LF or NUL or cannot be encoded, or if
    `retry` is negative.
    """
    fields = b""
    if event is not None:
        fields += b"event: " + _one_line("event", event) + _LF
    if id is not None:
        fields += b"id: " + _one_line("id", id) + _LF
    if retry is not None:
        if retry < 0:
            raise LocalProtocolError(f"retry is a number of milliseconds, not {retry}")
        fields += b"retry: %d\n" % retry
    if _LF in data or _CR in data:
        data = data.replace(b"\r\n", _LF).replace(_CR, _LF).replace(_LF, b"\ndata: ")
    return b"%bdata: %b\n\n" % (fields, data)


def encode_comment(text: str = "") -> bytes:
    """Return a comment, which readers ignore: it keeps a quiet stream from being cut.

    To be written between events. Raises LocalProtocolError if `text` has a CR, LF or NUL.
    """
    return b": %b\n\n" % _one_line("comment", text) if text else b":\n\n"


def _one_line(name: str, value: str) -> bytes:
    if "\n" in value or "\r" in value or "\0" in value:
        raise LocalProtocolError(f"the {name} of an event has no CR, LF or NUL inside")
    try:
        return value.encode("utf-8")
    except UnicodeEncodeError:
        raise LocalProtocolError(f"the {name} of an event must be encodable as UTF-8") from None
