"""A server on a byte stream: see `LineTransport` for how to drive it.

Specification: 2026-07-28, basic/transports/stdio (framing), basic/transports (custom transports).
"""

from __future__ import annotations

from typing import Final

from .errors import PeerFault
from .events import LimitHit, MessageIgnored, Reconnect
from .ops import Close, ConnectionId
from .server import ServerEngine
from .stream import LineTransport
from .wire.lines import LineFault
from .wire.peek import like_json

TIMER_GRACE: Final = "grace"


class LineServer(LineTransport[ServerEngine]):
    """A server on a stream: standard input and output, a socket, or memory.

    `grace` is how long (seconds) answers that are owed may still be given after the client closed
    its side.
    """

    _waits_for_reader = True

    def __init__(self, engine: ServerEngine, *, now: float, grace: float = 10.0) -> None:
        super().__init__(engine, now=now)
        self._grace = grace
        self._ended = False
        self._draining = False
        """Whether the engine knows of the end: it is told after the last line."""

    @property
    def finished(self) -> bool:
        return self._ended and not self._ops

    def accepted(self, conn: ConnectionId, now: float) -> None:
        """The stream is there."""
        self._tick(now)
        self._conn = conn

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The client sends nothing more; answers already owed are still given."""
        self._tick(now)
        if conn == self._conn and not self._ended:
            self._decoder.receive_eof()
            self._input_ended = True
            self._feed()
            self._pump()

    def _pump(self) -> None:
        super()._pump()
        # not before every line that came earlier was taken
        if self._input_ended and not self._draining and not self._lines_left:
            self._draining = True
            self._timers.set(TIMER_GRACE, self._now + self._grace, TIMER_GRACE)
            self.engine.receive_eof(now=self._now)
            super()._pump()

    def failed(self, conn: ConnectionId, error: str, now: float) -> None:
        """The client does not read any more, or the stream broke."""
        self._tick(now)
        if conn == self._conn and not self._ended:
            self._tell(MessageIgnored(PeerFault.WRITE_CLOSED, f"the stream failed: {error}"))
            self.engine.connection_lost(now=self._now, detail=f"the stream failed: {error}")
            self._pump()

    def close(self, now: float) -> None:
        """End the conversation and the stream, after what was said before."""
        self._tick(now)
        self.engine.close(now=self._now)

    def _on_timer(self, key: str) -> None:
        self._tell(LimitHit(key, f"answers were still owed {self._grace:g} s after the end of input"))
        self.engine.close(now=self._now)

    def _on_close(self) -> None:
        if not self._ended:
            self._ended = True
            self._timers.clear_all()
            self._ops.append(Close(self._conn))

    def _on_reconnect(self, event: Reconnect) -> None:
        """A server never asks for that."""


class SocketServer(LineServer):
    """A server on a socket that anybody may connect to.

    A connection whose first line is no JSON is ended, and that is told: a page in a browser can have a
    form sent to any port, and lines of its body would be taken for messages.
    """

    _greeted = False

    def _next_message(self) -> bytes | LineFault | None:
        line = super()._next_message()
        if self._greeted or line is None:
            return line
        if isinstance(line, LineFault):
            self._greeted = line.fault is not PeerFault.BYTE_ORDER_MARK
            return line
        self._greeted = True
        if like_json(line):
            return line
        detail = "the first line is no message: perhaps another protocol is spoken; the connection was ended"
        self._events.append(MessageIgnored(PeerFault.NOT_A_MESSAGE, detail))
        self._input_ended = self._draining = True
        self.engine.connection_lost(now=self._now, detail=detail)
        return None
