"""A client over a WebSocket: see `DialingClient` for how to drive it, and `websocket` for what it is.

What a server does, and what comes of it, beyond what `wire.websocket` says:

=========================================  ======================================================
it answers the handshake with a status     `HttpFailure`; `AuthorizationRequired` for 401 and 403,
other than 101                             `RedirectRefused` where it points elsewhere
it selects no subprotocol                  tolerated, and told: MISSING_SUBPROTOCOL
it selects another than was offered        `HttpFailure`: UNKNOWN_SUBPROTOCOL
it closes, for whatever reason             the connection ends with `WebSocketClosed`
it does not answer a ping                  the connection ends
=========================================  ======================================================

Specification: 2026-07-28, basic/transports (custom transports); RFC 6455, section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from .client import ClientEngine
from .dialing import DialingClient, TcpAddress
from .errors import (
    AuthorizationRequired,
    HttpFailure,
    LocalProtocolError,
    PeerFault,
    RedirectRefused,
)
from .events import DeviationTolerated
from .http.url import parse_url
from .ops import ConnectionId, Write
from .states import DialInput, DialState
from .stdio import NO_RESTART, RestartPolicy
from .websocket import (
    CLOSE_TIMEOUT,
    DEFAULT_PINGS,
    TIMER_CLOSE,
    PingPolicy,
    WebSocketClosed,
    WebSocketTransport,
)
from .wire.websocket import CloseCode, Closed
from .wire.ws_handshake import Agreed, ClientHandshake, Refused

_SCHEMES: Final = {"ws": "http", "wss": "https"}
_RETRYABLE: Final = (408, 425, 429, 500, 502, 503, 504)


class WebSocketClient(WebSocketTransport[ClientEngine], DialingClient):
    """A client and its WebSocket at `url`, of ``ws:`` or ``wss:``.

    `headers` go along on the handshake, an ``authorization`` among them. `pings` says when a silent
    server is asked whether it is there. Raises LocalProtocolError for a URL or header that cannot be.
    """

    def __init__(
        self,
        engine: ClientEngine,
        url: str,
        *,
        now: float,
        headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
        pings: PingPolicy = DEFAULT_PINGS,
        restart: RestartPolicy = NO_RESTART,
    ) -> None:
        scheme, _, rest = url.partition("://")
        http = _SCHEMES.get(scheme.lower())
        if http is None:
            raise LocalProtocolError("the URL is not usable: the scheme must be ws or wss")
        where = parse_url(f"{http}://{rest}")
        tls = where.host if http == "https" else None
        super().__init__(engine, TcpAddress(where.host, where.port, tls), now=now, restart=restart)
        self.url: Final = f"ws{str(where).removeprefix('http')}"
        """Where it is, without the query, which may hold secrets."""
        self._where = where
        self._headers = tuple(headers.items() if isinstance(headers, Mapping) else headers)
        self._pings = pings
        self._handshake = self._new_handshake()
        self._begin()

    def _new_handshake(self) -> ClientHandshake:
        where = self._where
        return ClientHandshake(where.authority, where.target, self._headers, self.engine.limits)

    # the connection ------------------------------------------------------------------------------

    def _renew(self) -> None:
        self._frames = None
        self._handshake = self._new_handshake()
        self._begin()

    def _on_connected(self) -> None:
        self._machine.fire(DialInput.UPGRADE)
        self._ops.append(Write(self._conn, self._handshake.request))

    def _receive_head(self, data: bytes) -> None:
        match self._handshake.receive_data(data):
            case Agreed(subprotocol=subprotocol, rest=rest):
                self._agreed(subprotocol, rest)
            case Refused() as refused:
                self._give_up(self._failure(refused))
            case None:
                pass

    def _agreed(self, subprotocol: str | None, rest: bytes) -> None:
        if subprotocol is None:
            detail = "the server did not select the subprotocol mcp"
            if self.engine.strict:
                self._give_up(self._failure(Refused(101, {}, PeerFault.MISSING_SUBPROTOCOL, detail)))
                return
            self._events.append(DeviationTolerated(PeerFault.MISSING_SUBPROTOCOL, detail))
        self._upgrade(of_client=True, rest=b"")
        self._speak()
        if rest:
            self._receive(rest)

    def _failure(self, refused: Refused) -> HttpFailure:
        status, headers = refused.status, refused.headers
        if refused.fault is not None:
            text = f"{self.url}: the answer to the handshake of the WebSocket is not usable: {refused.detail}"
            return HttpFailure(text, status=status, fault=refused.fault)
        text = f"{self.url}: the server answered the handshake of the WebSocket with HTTP {status}"
        if status in (401, 403):
            challenge = headers.get("www-authenticate")
            challenges = () if challenge is None else (challenge,)
            return AuthorizationRequired(
                f"{text}: give an authorization header", status=status, challenges=challenges
            )
        if status is not None and 300 <= status < 400 and "location" in headers:
            location = headers["location"].partition("?")[0]
            return RedirectRefused(f"{text}: connect to where it points", status=status, location=location)
        if status == 404:
            text = f"{text}: is the path right?"
        elif status is not None and 200 <= status < 300:
            text = f"{text}: it is no WebSocket"
        return HttpFailure(text, status=status, retryable=status in _RETRYABLE)

    # the end -------------------------------------------------------------------------------------

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The server will send nothing more."""
        self._tick(now)
        if conn != self._conn:
            return
        if self._frames is not None and not self._frames.over:
            self._frames.receive_eof()
            self._take(self._frames)
        else:
            self._on_eof()

    def _on_closed(self, event: Closed) -> None:
        if self.state is DialState.CLOSING and event.code != CloseCode.ABNORMAL:
            return  # the server ends the connection, as the older of the two protocols has it
        text = event.told("server")
        error = WebSocketClosed(text, code=event.code, reason=event.reason, fault=event.fault)
        self._lost(text, error)

    def _on_silent(self, detail: str) -> None:
        assert self._frames is not None
        self._ops.append(Write(self._conn, self._frames.close(CloseCode.GOING_AWAY, "no answer to a ping")))
        self._lost(f"the server is gone: {detail}")

    def _farewell(self) -> None:
        assert self._frames is not None
        farewell = self._frames.close()
        if not farewell:
            self._end()
            return
        self._machine.fire(DialInput.CLOSE)
        self._timers.clear_all()
        self._ops.append(Write(self._conn, farewell))
        self._timers.set(TIMER_CLOSE, self._now + CLOSE_TIMEOUT, TIMER_CLOSE)

    def _on_timer(self, key: str) -> None:
        if key == TIMER_CLOSE:
            if self.state is DialState.CLOSING:
                self._end()
        elif self.state is DialState.OPEN:
            super()._on_timer(key)
        else:
            DialingClient._on_timer(self, key)
