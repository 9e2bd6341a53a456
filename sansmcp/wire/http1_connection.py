"""What an HTTP/1.1 connection is on both sides: the reading of messages, and two states.

Specification: RFC 9112, sections 6.3 (message body length) and 9 (connection management).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from enum import Enum, auto
from typing import Final

from ..errors import LocalProtocolError, PeerFault
from ..limits import Limits
from .http1_body import BodyReader, SizedBody
from .http1_events import BodyData, BodyEnd, ConnectionClosed, HttpEvent, HttpFault
from .http1_head import HeadBuffer

BODYLESS: Final = frozenset({204, 304})
"""The statuses of responses that have no body."""
CRLF: Final = b"\r\n"
CLOSE: Final = b"connection: close\r\n"


class Reading(Enum):
    """What is read from the peer next."""

    HEAD = auto()
    BODY = auto()
    PAUSED = auto()
    """Nothing, until this side has done its part of the exchange."""
    DISCARDING = auto()
    """Nothing any more: what comes is dropped."""
    TUNNEL = auto()
    """Nothing: what comes is no HTTP, and is kept for `Http1Client.take_tunnel_data`."""


class Writing(Enum):
    """What is written to the peer next."""

    NOTHING = auto()
    """There is no message to write, or it is complete."""
    HEAD = auto()
    BODY = auto()


class Http1Connection(ABC):
    """What both roles have in common."""

    def __init__(self, limits: Limits, *, of_client: bool, reading: Reading) -> None:
        self._limits: Final = limits
        self._reading = reading
        self._writing = Writing.NOTHING
        self._close = False
        """Whether this exchange is the last one."""
        self._eof = False
        self._end_told = False
        self._chunks: Final[deque[bytes]] = deque()
        self._offset = 0  # into the first chunk
        self._queued = 0  # length of all chunks, without regard to `_offset`
        self._head: Final = HeadBuffer(limits.max_head, of_client=of_client)
        self._body: BodyReader = SizedBody(0)
        self._body_room: int | None = None
        """How much more of the body is read; None for as much as comes."""
        self._ahead: Final[deque[HttpEvent]] = deque()  # events that were read and not pulled yet
        self._out: Final[list[bytes]] = []

    # inputs --------------------------------------------------------------------------------------

    def receive_data(self, data: bytes | bytearray | memoryview) -> None:
        """Take the next bytes from the peer. Raises LocalProtocolError after `receive_eof`."""
        if self._eof:
            raise LocalProtocolError("data after the end of the connection")
        if data and self._reading is not Reading.DISCARDING:
            chunk = data if type(data) is bytes else bytes(data)
            self._chunks.append(chunk)
            self._queued += len(chunk)

    def receive_eof(self) -> None:
        """The peer sends nothing more. A second time does nothing."""
        self._eof = True

    # pulls ---------------------------------------------------------------------------------------

    def next_event(self) -> HttpEvent | None:
        """Return the next event, or None when more data or a verb is needed."""
        if self._ahead:
            return self._ahead.popleft()
        return self._read()

    def data_to_send(self) -> bytes:
        """Return what is to be written now, and forget it; empty if there is nothing."""
        out = self._out
        data = out[0] if len(out) == 1 else b"".join(out)
        out.clear()
        return data

    # getters -------------------------------------------------------------------------------------

    @property
    @abstractmethod
    def should_close(self) -> bool:
        """Whether nothing is left to do here but write what is queued and close the connection."""

    @property
    def drained(self) -> bool:
        """Whether there is no event before more is received: there is nothing left to be read."""
        return not (self._chunks or self._ahead or self._eof)

    def set_max_body(self, max_body: int | None) -> None:
        """Read at most `max_body` more bytes of the body that comes now; None for no bound.

        For the body whose head was the last event: an event stream, for example, has no bound as a
        whole. The next body has the bound of `Limits.max_body` again. Raises LocalProtocolError if
        no body is being read.
        """
        if self._reading is not Reading.BODY:
            raise LocalProtocolError("no body is being read")
        self._body_room = max_body

    def stats(self) -> dict[str, int]:
        """Return sizes in bytes: ``buffered`` held and not told yet, ``outgoing`` not written yet."""
        ahead = sum(len(event.data) for event in self._ahead if isinstance(event, BodyData))
        return {"buffered": self._waiting + len(self._head) + ahead, "outgoing": sum(map(len, self._out))}

    # inside --------------------------------------------------------------------------------------

    @property
    def _waiting(self) -> int:
        """Bytes that were received and not looked at yet."""
        return self._queued - self._offset

    def _read(self) -> HttpEvent | None:
        """Read on, up to the next event."""
        while self._reading is Reading.HEAD and self._chunks:
            event = self._read_head()
            if event is not None:
                return event
        if self._reading is Reading.BODY:
            self._read_body()
            return self._ahead.popleft() if self._ahead else None
        if self._reading is Reading.PAUSED and self._chunks:
            return self._on_early_data()
        if not self._eof:
            return None
        if self._reading is Reading.HEAD and len(self._head):
            return self._fail(PeerFault.TRUNCATED_HTTP, "the connection ended within a head", 400)
        return self._tell_end()

    def _tell_end(self) -> ConnectionClosed | None:
        if not self._eof or self._end_told:
            return None
        self._end_told = True
        return ConnectionClosed()

    def _read_head(self) -> HttpEvent | None:
        chunk = self._chunks[0]
        head, offset = self._head.feed(chunk, self._offset)
        self._advance(chunk, offset)
        if head is not None:
            self._head.clear()
            return self._on_head(head)
        match self._head.problem:
            case None:
                return None
            case PeerFault.HEAD_TOO_LARGE as fault:
                return self._fail(fault, "the head is too large", 431)
            case fault:
                return self._fail(fault, "this does not begin as a message of HTTP/1 does", 400)

    @abstractmethod
    def _on_head(self, head: bytes) -> HttpEvent:
        """A head is whole."""

    @abstractmethod
    def _on_early_data(self) -> HttpEvent | None:
        """There are bytes while nothing is expected."""

    def _begin_body(self, body: BodyReader) -> None:
        self._reading = Reading.BODY
        self._body = body
        self._body_room = self._limits.max_body

    def _read_body(self) -> None:
        """Read what is there of the body, all of it as one event."""
        body, room, chunks = self._body, self._body_room, self._chunks
        too_large = room is not None and body.left > room
        found: list[bytes] = []
        while chunks and not too_large:
            chunk = chunks[0]
            self._advance(chunk, body.read(chunk, self._offset, found))
            if body.done or body.problem is not None:
                break
        data = found[0] if len(found) == 1 else b"".join(found)
        if room is not None:
            too_large = too_large or len(data) > room
            data = data[:room]
            self._body_room = room - len(data)
        told = self._ahead
        if data:
            told.append(BodyData(data))
        if too_large:
            told.append(self._fail(PeerFault.BODY_TOO_LARGE, "the body is too large", 413))
        elif body.problem is not None:
            told.append(self._fail(PeerFault.INVALID_CHUNK, body.problem, 400))
        elif body.done or (self._eof and body.ends_with_connection):
            told.append(BodyEnd())
            self._on_body_end()
        elif self._eof:
            told.append(self._fail(PeerFault.TRUNCATED_HTTP, "the connection ended within a body", 400))

    @abstractmethod
    def _on_body_end(self) -> None:
        """The message of the peer is complete."""

    @abstractmethod
    def _fail(self, fault: PeerFault, detail: str, status: int) -> HttpFault:
        """Read nothing more; `status` is what a server refuses this with."""

    def _discard(self) -> None:
        self._reading = Reading.DISCARDING
        self._head.clear()
        self._drop_chunks()

    def _drop_chunks(self) -> None:
        self._chunks.clear()
        self._offset = self._queued = 0

    def _advance(self, chunk: bytes, offset: int) -> None:
        if offset == len(chunk):
            self._chunks.popleft()
            self._queued -= offset
            self._offset = 0
        else:
            self._offset = offset
