"""MCP over a WebSocket: what both roles have in common.

The specification has no such transport; what peers do is this: the subprotocol is `mcp`, and each
message is one text message of the WebSocket. There are no sessions beyond the connection: with it the
conversation ends.

A peer is asked whether it is there (a ping) when nothing was heard of it for a while. Control frames are
also read while messages have to wait, so that a busy side is not taken for a dead one.

Specification: 2026-07-28, basic/transports (custom transports); RFC 6455.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Final

import attrs

from .clock import Deadlines
from .errors import ConnectionEnded, LocalProtocolError, PeerFault
from .ops import ConnectionId, Write
from .stream import E, StreamTransport
from .wire.lines import LineFault
from .wire.websocket import CloseCode, Closed, Frames, Message, Pinged, Ponged

TIMER_PING: Final = "ping"
TIMER_PONG: Final = "pong"
TIMER_CLOSE: Final = "close"

_AHEAD: Final = 64 * 1024
"""Bytes of messages that may wait here before reading stops, so that control frames are still seen."""


@attrs.frozen(kw_only=True)
class PingPolicy:
    """When a silent peer is asked whether it is there, in seconds.

    Raises LocalProtocolError for a time that is not positive.
    """

    interval: float | None = 30.0
    """Silence after which it is asked; proxies commonly end connections that are idle for 60 s. None: it
    never is."""

    timeout: float = 20.0
    """For anything to come after that. Past it: the connection is given up."""

    def __attrs_post_init__(self) -> None:
        for value in (self.interval, self.timeout):
            if value is not None and not value > 0:
                raise LocalProtocolError(f"the times of a ping policy must be positive, not {value}")


DEFAULT_PINGS: Final = PingPolicy()
CLOSE_TIMEOUT: Final = 2.0
"""Seconds for the peer to say that it saw the end."""


def _held(event: Message | LineFault) -> int:
    """Bytes that it takes while it waits; the smallest ones take more than they have."""
    return 128 + len(event.head if isinstance(event, LineFault) else event.data)


class WebSocketClosed(ConnectionEnded):
    """The WebSocket was closed before the answer came. `code` and `reason` are those of the closing frame.

    See `CloseCode` for the codes; 1006 when there was no such frame. `fault` is set when it was closed
    here, for what the peer did. The reason is the peer's text, of at most 123 bytes.
    """

    def __init__(
        self,
        message: str,
        *,
        code: int = CloseCode.ABNORMAL,
        reason: str = "",
        fault: PeerFault | None = None,
        returncode: int | None = None,
        stderr_tail: str = "",
    ) -> None:
        super().__init__(message, returncode=returncode, stderr_tail=stderr_tail)
        self.code: Final = code
        self.reason: Final = reason
        self.fault: Final = fault

    def about(self, subject: str) -> WebSocketClosed:
        """The same end, as told to the call `subject` that was open."""
        return WebSocketClosed(f"{subject}: {self}", code=self.code, reason=self.reason, fault=self.fault)


class WebSocketTransport(StreamTransport[E]):
    """An engine on the frames of a WebSocket."""

    _frames: Frames | None = None
    """Set while the handshake is done."""
    _pings: PingPolicy = DEFAULT_PINGS
    _timers: Deadlines[str]

    def _begin(self) -> None:
        """Nothing was received yet."""
        self._inbox: deque[Message | LineFault] = deque()
        self._waiting = 0
        """Bytes that the inbox holds."""
        self._pinged: bytes | None = None
        """What the last ping said that is not answered."""
        self._heard = self._asked = self._now
        self._deaf = False
        """Whether reading was stopped at some time since the last ping."""

    # the frames ----------------------------------------------------------------------------------

    def _upgrade(self, *, of_client: bool, rest: bytes) -> None:
        """The handshake is done; `rest` came after it."""
        self._frames = Frames(self.engine.limits.max_message, of_client=of_client)
        self._set_ping()
        if rest:
            self._receive(rest)

    @property
    def wants_data(self) -> bool:
        """False while reading more would exceed a limit: then stop reading."""
        if self._writes_paused and self._waits_for_reader:
            return False
        room = len(self._events) < self.engine.limits.max_buffered_events
        return room and (self.engine.wants_data or self._waiting < _AHEAD)

    def _receive(self, data: bytes | bytearray) -> None:
        frames = self._frames
        if frames is None:
            self._receive_head(bytes(data))
            return
        self._heard = self._now
        answer = frames.receive_data(data)
        if answer:
            self._flush()
            self._ops.append(Write(self._conn, answer))
        self._take(frames)

    def _take(self, frames: Frames) -> None:
        while (event := frames.next_event()) is not None:
            match event:
                case Message() | LineFault():
                    self._waiting += _held(event)
                    self._inbox.append(event)
                case Pinged():
                    self._pinged = event.payload
                case Ponged():
                    pass
                case Closed():
                    self._feed()
                    self._on_closed(event)
        self._pong()

    def _next_message(self) -> bytes | LineFault | None:
        if not self._inbox:
            return None
        event = self._inbox.popleft()
        self._waiting -= _held(event)
        return event if isinstance(event, LineFault) else event.data

    def _encode(self, data: bytes) -> bytes:
        return self._frames.message(data) if self._frames is not None and self._frames.open else b""

    def resume_writing(self, conn: ConnectionId) -> None:
        """The peer reads again."""
        super().resume_writing(conn)
        self._pong()

    def _pong(self) -> None:
        # Not while writes pile up: who pings without reading would fill the memory.
        if self._pinged is None or self._writes_paused or self._frames is None:
            return
        if self._frames.open:
            self._flush()
            self._ops.append(Write(self._conn, self._frames.pong(self._pinged)))
        self._pinged = None

    @abstractmethod
    def _receive_head(self, data: bytes) -> None:
        """Take bytes of the handshake."""

    @abstractmethod
    def _on_closed(self, event: Closed) -> None:
        """No message will come any more."""

    # silence -------------------------------------------------------------------------------------

    def _set_ping(self) -> None:
        if self._pings.interval is not None:
            self._timers.set(TIMER_PING, self._heard + self._pings.interval, TIMER_PING)

    def _on_timer(self, key: str) -> None:
        frames = self._frames
        if frames is None or not frames.open:
            return
        interval = self._pings.interval
        if key == TIMER_PING and interval is not None:
            if self._heard + interval > self._now:
                self._set_ping()
                return
            self._flush()
            self._ops.append(Write(self._conn, frames.ping()))
            self._asked = self._now
            self._timers.set(TIMER_PONG, self._now + self._pings.timeout, TIMER_PONG)
            self._deaf = not self.wants_data
        elif key == TIMER_PONG:
            if self._heard >= self._asked:
                self._set_ping()
            elif self._deaf or not self.wants_data:
                # What it answered may be there, unread.
                self._heard = self._now
                self._set_ping()
            else:
                self._on_silent(f"it said nothing for {self._pings.timeout:g} s after it was asked (a ping)")

    @abstractmethod
    def _on_silent(self, detail: str) -> None:
        """The peer is not there any more."""
