"""MCP over one byte stream: a line per message (sockets, pipes, memory), or another framing.

Bytes in, events and ops out. After every input or verb, in this order: `next_op` until None,
`next_event` until None, then re-arm the timer for `next_timeout`. What to do is in the ops; the
transport itself does no I/O.

Specification: 2026-07-28, basic/transports/stdio (framing), basic/transports (custom transports).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from typing import ClassVar, Final, Generic, TypeVar

from .clock import Deadlines
from .errors import PeerFault
from .events import (
    CloseConnection,
    DeviationTolerated,
    Event,
    LimitHit,
    MessageIgnored,
    Reconnect,
    SendNotification,
    SendRequest,
    SendResponse,
)
from .ops import ConnectionId, Op, Write
from .session.endpoint import Endpoint
from .wire.lines import LineDecoder, LineFault, encode_line
from .wire.peek import excerpt

E = TypeVar("E", bound=Endpoint)


class StreamTransport(ABC, Generic[E]):
    """An engine on a byte stream. The same machine to its driver whatever the role and the framing."""

    _waits_for_reader: ClassVar[bool] = False
    """Whether nothing is taken from a peer that does not read: one read can hold thousands of requests, and
    each answer can be large."""

    def __init__(self, engine: E, *, now: float) -> None:
        self.engine: Final = engine
        self._now = now
        self._conn: ConnectionId = 0
        self._ops: deque[Op] = deque()
        self._events: deque[Event] = deque()
        self._out: list[bytes] = []
        self._timers: Deadlines[str] = Deadlines()
        self._writes_paused = False
        self._unread = 0
        """Bytes of notifications since then."""
        self._input_ended = False
        self._lines_left = False
        """Whether messages were received that the engine did not take yet (back-pressure)."""

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> Op | None:
        """The next thing to do, or None. Writes that came together are one op."""
        self._pump()
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else None

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        a, b = self.engine.next_timeout(), self._timers.next()
        return b if a is None else a if b is None else min(a, b)

    @property
    def wants_data(self) -> bool:
        """False while reading more would exceed a limit: then stop reading."""
        if self._writes_paused and self._waits_for_reader:
            return False
        engine = self.engine
        return engine.wants_data and len(self._events) < engine.limits.max_buffered_events

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether nothing is left to do: every op was handed out and the peer is gone."""

    # inputs --------------------------------------------------------------------------------------

    def receive_data(self, conn: ConnectionId, data: bytes | bytearray, now: float) -> None:
        """Bytes came from the peer, in whatever pieces."""
        self._tick(now)
        if conn == self._conn and not self._input_ended:
            self._receive(data)
            self._feed()

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._tick(now)
        self.engine.handle_timeout(now)
        for key, _ in self._timers.expired(self._now):
            self._on_timer(key)

    def pause_writing(self, conn: ConnectionId) -> None:
        """What was written piles up: the peer does not read.

        A client reads on all the same, which may be what the server waits for. A server does not, and
        ends the connection when its handlers go on to tell more than `max_outgoing` bytes.
        """
        if conn == self._conn:
            self._writes_paused = True

    def resume_writing(self, conn: ConnectionId) -> None:
        """The peer reads again."""
        if conn == self._conn:
            self._writes_paused = False
            self._unread = 0

    # the framing ---------------------------------------------------------------------------------

    @abstractmethod
    def _receive(self, data: bytes | bytearray) -> None:
        """Take bytes apart."""

    @abstractmethod
    def _next_message(self) -> bytes | LineFault | None:
        """The next message that came, or what is wrong in its place; None if there is none yet."""

    @abstractmethod
    def _encode(self, data: bytes) -> bytes:
        """A message as it goes over the wire."""

    # inside --------------------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        self._now = max(self._now, now)

    def _feed(self, *, rest: bool = False) -> None:
        """Give the engine the messages that are there, as far as it takes any.

        With `rest` it takes them all, since the peer is gone: what was read before that counts, and is no
        more than the last reads brought.
        """
        engine = self.engine
        while rest or (engine.wants_data and not (self._writes_paused and self._waits_for_reader)):
            line = self._next_message()
            if line is None:
                self._lines_left = False
                return
            if isinstance(line, LineFault):
                self._on_fault(line)
            else:
                engine.receive_message(line, now=self._now, origin=self._conn)
        self._lines_left = True

    def _on_fault(self, fault: LineFault) -> None:
        match fault.fault:
            case PeerFault.MESSAGE_TOO_LARGE:
                self.engine.receive_oversize(fault.id, like_response=fault.like_response, now=self._now)
            case PeerFault.BYTE_ORDER_MARK:
                self._tell(DeviationTolerated(fault.fault, "a byte order mark was taken off"))
            case PeerFault.HEADER_FRAMING:
                detail = (
                    "a Content-Length header: the peer seems to frame messages as the Language "
                    "Server Protocol does; here each message is one line"
                )
                self._tell(MessageIgnored(fault.fault, detail))
            case _:
                shown = excerpt(fault.head, self.engine.limits.max_excerpt)
                self._tell(MessageIgnored(fault.fault, f"cut off at the end of the stream: {shown}"))

    def _tell(self, event: Event) -> None:
        self._pump()
        self._events.append(event)

    def _pump(self) -> None:
        """Carry out what the engine wants sent; pass the rest on, in order."""
        if self._lines_left:
            self._feed()
        while (event := self.engine.next_event()) is not None:
            match event:
                case SendRequest() | SendResponse() | SendNotification():
                    self._out.append(self._encode(event.data))
                    if self._writes_paused and self._waits_for_reader:
                        self._count_unread(event)
                case CloseConnection():
                    self._flush()
                    self._on_close()
                case Reconnect():
                    self._flush()
                    self._on_reconnect(event)
                case _:
                    self._events.append(event)
        self._flush()

    def _count_unread(self, event: SendRequest | SendResponse | SendNotification) -> None:
        # Answers and questions are as many as there may be; what a handler tells meanwhile is not.
        if isinstance(event, SendNotification):
            bound, before = self.engine.limits.max_outgoing, self._unread
            self._unread += len(event.data)
            if before <= bound < self._unread:
                detail = f"the peer does not read: more than {bound} bytes wait"
                self._events.append(LimitHit("max_outgoing", f"the connection was ended: {detail}"))
                self.engine.connection_lost(now=self._now, detail=detail)

    def _flush(self) -> None:
        if self._out:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            if data and self._may_write:
                self._ops.append(Write(self._conn, data))

    @property
    def _may_write(self) -> bool:
        """Whether there is somebody to write to."""
        return True

    @abstractmethod
    def _on_close(self) -> None:
        """The engine has nothing more to say."""

    @abstractmethod
    def _on_reconnect(self, event: Reconnect) -> None:
        """The engine wants the peer again."""

    def _on_timer(self, key: str) -> None:
        """A deadline of the transport's own has passed."""


class LineTransport(StreamTransport[E]):
    """A stream of lines."""

    def __init__(self, engine: E, *, now: float) -> None:
        super().__init__(engine, now=now)
        self._decoder = LineDecoder(engine.limits.max_message)

    def _receive(self, data: bytes | bytearray) -> None:
        self._decoder.receive_data(data)

    def _next_message(self) -> bytes | LineFault | None:
        return self._decoder.next_line()

    def _encode(self, data: bytes) -> bytes:
        return encode_line(data)
