"""A server over one WebSocket: see `StreamTransport` for how to drive it, and `websocket` for what it is.

What a client does, and what comes of it, beyond what `wire.websocket` says:

=========================================  ======================================================
it comes from another page, or to          403, 421 (`GuardPolicy`)
another host
it asks for another path                   404
it sends something that is no handshake    400, 426 or 431
it offers no subprotocol `mcp`             tolerated, and told: MISSING_SUBPROTOCOL; 400 in strict mode
it takes too long for the handshake        the connection ends
it closes, or does not answer a ping       what it asked for is cancelled, and the connection ends
=========================================  ======================================================

Specification: 2026-07-28, basic/transports (custom transports); RFC 6455, section 4.2.
"""

from __future__ import annotations

from typing import Final

from .errors import PeerFault
from .events import DeviationTolerated, LimitHit, MessageIgnored, Reconnect
from .http.guard import DEFAULT_POLICY, GuardPolicy, check_host_origin
from .ops import Close, ConnectionId, Write
from .server import ServerEngine
from .websocket import CLOSE_TIMEOUT, DEFAULT_PINGS, TIMER_CLOSE, PingPolicy, WebSocketTransport
from .wire.websocket import CloseCode, Closed
from .wire.ws_handshake import SUBPROTOCOL, Asked, ServerHandshake, Unfit, refusal

TIMER_HANDSHAKE: Final = "handshake_timeout"
HANDSHAKE_TIMEOUT: Final = 30.0
"""Seconds for a client to ask for the upgrade, from when it connected."""

_FAULTS: Final = {403: PeerFault.FOREIGN_ORIGIN, 421: PeerFault.FOREIGN_HOST}


class WebSocketServer(WebSocketTransport[ServerEngine]):
    """A server and the WebSocket of one client.

    `path` is where it is served, None for everywhere. `policy` says which hosts and pages are served.
    `pings` says when a silent client is asked whether it is there.
    """

    _waits_for_reader = True

    def __init__(
        self,
        engine: ServerEngine,
        *,
        now: float,
        path: str | None = "/mcp",
        policy: GuardPolicy = DEFAULT_POLICY,
        pings: PingPolicy = DEFAULT_PINGS,
    ) -> None:
        super().__init__(engine, now=now)
        self._path = path
        self._policy = policy
        self._pings = pings
        self._handshake = ServerHandshake(engine.limits)
        self._closing = self._ended = False
        self._begin()

    @property
    def finished(self) -> bool:
        return self._ended and not self._ops

    @property
    def _may_write(self) -> bool:
        return self._frames is not None and not self._closing

    # inputs --------------------------------------------------------------------------------------

    def accepted(self, conn: ConnectionId, now: float) -> None:
        """The connection is there."""
        self._tick(now)
        self._conn = conn
        self._timers.set(TIMER_HANDSHAKE, self._now + HANDSHAKE_TIMEOUT, TIMER_HANDSHAKE)

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The client sends nothing more: it is gone."""
        self._tick(now)
        if conn != self._conn or self._ended:
            return
        if self._frames is not None and not self._frames.over:
            self._frames.receive_eof()
            self._take(self._frames)
        else:
            self._gone("the client closed the connection")

    def failed(self, conn: ConnectionId, error: str, now: float) -> None:
        """The client does not read any more, or the connection broke."""
        self._tick(now)
        if conn == self._conn and not self._ended:
            self._gone(f"the connection failed: {error}")

    def close(self, now: float) -> None:
        """End the conversation and the connection, after what was said before."""
        self._tick(now)
        self.engine.close(now=self._now)
        self._pump()

    # the handshake -------------------------------------------------------------------------------

    def _receive_head(self, data: bytes) -> None:
        if self._ended:
            return
        match self._handshake.receive_data(data):
            case Asked() as asked:
                self._on_asked(asked)
            case Unfit(fault=fault, detail=detail, answer=answer):
                self._turn_away(fault, detail, answer)
            case None:
                pass

    def _on_asked(self, asked: Asked) -> None:
        refused = check_host_origin(asked.head.headers.items(), self._policy)
        if refused is not None:
            fault = _FAULTS.get(refused.status, PeerFault.INVALID_UPGRADE)
            answer = refusal(refused.status, refused.reason, refused.headers)
            self._turn_away(fault, refused.reason, answer)
            return
        if self._path is not None and asked.head.target.partition("?")[0] != self._path:
            detail = "nothing is served at this path"
            self._turn_away(PeerFault.WRONG_ENDPOINT, detail, refusal(404, detail))
            return
        offered = SUBPROTOCOL in asked.subprotocols
        if not offered:
            detail = "the client did not offer the subprotocol mcp"
            if self.engine.strict:
                self._turn_away(PeerFault.MISSING_SUBPROTOCOL, detail, refusal(400, detail))
                return
            self._events.append(DeviationTolerated(PeerFault.MISSING_SUBPROTOCOL, detail))
        self._timers.clear(TIMER_HANDSHAKE)
        self._ops.append(Write(self._conn, self._handshake.accept(SUBPROTOCOL if offered else None)))
        self._upgrade(of_client=False, rest=self._handshake.rest)

    def _turn_away(self, fault: PeerFault, detail: str, answer: bytes) -> None:
        self._events.append(MessageIgnored(fault, f"a handshake was refused: {detail}"))
        self._ops.append(Write(self._conn, answer))
        self._gone(f"the handshake was refused: {detail}")

    # the end -------------------------------------------------------------------------------------

    def _on_closed(self, event: Closed) -> None:
        if event.fault is not None:
            self._tell(MessageIgnored(event.fault, f"the WebSocket was closed: {event.why}"))
        self._gone(event.told("client"))

    def _on_silent(self, detail: str) -> None:
        assert self._frames is not None
        self._ops.append(Write(self._conn, self._frames.close(CloseCode.GOING_AWAY, "no answer to a ping")))
        self._tell(LimitHit("ping_timeout", f"the client is gone: {detail}"))
        self._gone(f"the client is gone: {detail}")

    def _gone(self, detail: str) -> None:
        """Nothing more comes of the client, and nothing more reaches it."""
        self._closing = True
        self.engine.connection_lost(now=self._now, detail=detail)
        self._pump()
        self._end()

    def _end(self) -> None:
        if not self._ended:
            self._ended = True
            self._timers.clear_all()
            self._ops.append(Close(self._conn))

    def _on_close(self) -> None:
        if self._closing or self._ended:
            return
        self._closing = True
        farewell = b"" if self._frames is None else self._frames.close(CloseCode.GOING_AWAY)
        if farewell:
            self._ops.append(Write(self._conn, farewell))
            self._timers.clear_all()
            self._timers.set(TIMER_CLOSE, self._now + CLOSE_TIMEOUT, TIMER_CLOSE)
        else:
            self._end()

    def _on_timer(self, key: str) -> None:
        if key == TIMER_CLOSE:
            self._end()
        elif key == TIMER_HANDSHAKE:
            detail = f"a client took more than {HANDSHAKE_TIMEOUT:g} s for the handshake"
            self._tell(LimitHit(key, detail))
            self._gone(detail)
        else:
            super()._on_timer(key)

    def _on_reconnect(self, event: Reconnect) -> None:
        """A server never asks for that."""
