"""A client on a byte stream that somebody else connects: see `LineTransport` for how to drive it.

Specification: 2026-07-28, basic/transports/stdio (framing), basic/transports (custom transports).
"""

from __future__ import annotations

from .client import ClientEngine
from .events import Reconnect
from .ops import Close, ConnectionId
from .stream import LineTransport


class LineClient(LineTransport[ClientEngine]):
    """A client on a stream that somebody else connects: a socket, or memory."""

    def __init__(self, engine: ClientEngine, *, now: float) -> None:
        super().__init__(engine, now=now)
        self._ended = False

    @property
    def finished(self) -> bool:
        return self._ended and not self._ops

    def opened(self, conn: ConnectionId, now: float) -> None:
        """The stream is there: the engine may speak."""
        self._tick(now)
        self._conn = conn
        self.engine.connect(now=self._now)

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The server will send nothing more."""
        self._lost(conn, now, "the server closed the connection")

    def failed(self, conn: ConnectionId, error: str, now: float) -> None:
        """The stream broke; what was not written never left."""
        self._lost(conn, now, f"the connection failed: {error}")

    def _lost(self, conn: ConnectionId, now: float, detail: str) -> None:
        self._tick(now)
        if conn == self._conn and not self._ended:
            self._decoder.receive_eof()
            self._feed(rest=True)
            self._input_ended = True
            self.engine.connection_lost(now=self._now, detail=detail)
            self._pump()

    def close(self, now: float) -> None:
        """End the conversation and the stream."""
        self._tick(now)
        self.engine.close(now=self._now)

    def _on_close(self) -> None:
        if not self._ended:
            self._ended = True
            self._ops.append(Close(self._conn))

    def _on_reconnect(self, event: Reconnect) -> None:
        # There is nobody here who could bring the stream back.
        self.engine.close(now=self._now)
