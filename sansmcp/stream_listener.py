"""A server of many connections, each a conversation of its own: TCP, unix sockets, WebSockets.

To its driver it is the same machine as `HttpListener`: after every input or verb, in this order:
`next_op` until None, `next_event` until None, then re-arm the timer for `next_timeout`. Requests are
answered through the listener itself, which finds the engine that a request came to.

Past `max_connections`, a connection is ended at once, and that is told. One whose client does not read
for `STALL_TIMEOUT` is ended too.

Specification: 2026-07-28, basic/transports (custom transports).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from .app import App
from .clock import Deadlines
from .errors import LocalProtocolError, McpError, PeerFault
from .events import Event, Harmless, LimitHit, ListKind, SessionEnded, SessionStarted
from .http.guard import DEFAULT_POLICY, GuardPolicy
from .limits import SERVER_LIMITS, Limits
from .line_server import LineServer, SocketServer
from .ops import Close, ConnectionId, Op
from .server import ServerEngine
from .session.calls import Call, IncomingRequest
from .websocket import DEFAULT_PINGS, PingPolicy
from .wire.jsoncodec import JsonValue
from .ws_server import WebSocketServer

StreamServer: TypeAlias = LineServer | WebSocketServer

MAX_CONNECTIONS: Final = 1000
"""Connections at once; a process commonly may have 1024 files open."""

STALL_TIMEOUT: Final = 300.0
"""Seconds for a client that does not read to take what was written."""

_STALL: Final = "stall_timeout"
_TICK: Final = "timeout"


class StreamListener:
    """Any number of connections, each with what `serve` makes for it. Starts with none.

    `serve` is called with the time, for a new connection. Whoever drives it chooses the ids of
    connections. A `Close` that comes while the writing on its connection is paused must not wait for
    what was written: the client does not read.
    """

    def __init__(
        self,
        serve: Callable[[float], StreamServer],
        *,
        now: float,
        limits: Limits = SERVER_LIMITS,
        max_connections: int = MAX_CONNECTIONS,
    ) -> None:
        if max_connections < 1:
            raise LocalProtocolError(f"max_connections must be positive, not {max_connections}")
        self.limits: Final = limits
        self._serve = serve
        self._now = now
        self._max_connections = max_connections
        self._conns: dict[ConnectionId, StreamServer] = {}
        self._touched: dict[ConnectionId, None] = {}
        """Of which something may be pulled."""
        self._paused: set[ConnectionId] = set()
        self._timers: Deadlines[tuple[ConnectionId, str]] = Deadlines()
        self._ops: deque[Op] = deque()
        self._events: deque[Event] = deque()
        self._closing = False

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> Op | None:
        """The next thing to do, or None."""
        self._pump()
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else None

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return self._timers.next()

    def wants_data(self, conn: ConnectionId) -> bool:
        """False while reading more from `conn` would exceed a limit: then stop reading from it."""
        server = self._conns.get(conn)
        return server is None or (server.wants_data and self.takes_requests)

    @property
    def takes_requests(self) -> bool:
        """False while events pile up: then `wants_data` may change for every connection."""
        return len(self._events) < self.limits.max_buffered_events

    @property
    def finished(self) -> bool:
        """Whether it was closed, and nothing is left to do."""
        return self._closing and not (self._conns or self._ops)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        return {
            "connections": len(self._conns),
            "paused": len(self._paused),
            "touched": len(self._touched),
            "timers": len(self._timers),
            "ops": len(self._ops),
            "events": len(self._events),
            "open_requests": sum(s.engine.stats()["open_requests"] for s in self._conns.values()),
        }

    # inputs --------------------------------------------------------------------------------------

    def accepted(self, conn: ConnectionId, peer: str, now: float) -> None:
        """A client connected. Raises LocalProtocolError if `conn` names a connection that is open."""
        if conn in self._conns:
            raise LocalProtocolError(f"connection {conn} is open already")
        self._tick(now)
        if self._closing or len(self._conns) >= self._max_connections:
            if not self._closing:
                detail = f"a connection was ended at once: {len(self._conns)} are open"
                self._events.append(LimitHit("max_connections", detail))
            self._ops.append(Close(conn))
            return
        server = self._conns[conn] = self._serve(self._now)
        server.accepted(conn, self._now)
        self._touched[conn] = None

    def receive_data(self, conn: ConnectionId, data: bytes | bytearray, now: float) -> None:
        """Bytes came, in whatever pieces. Harmless for a connection that has ended."""
        server = self._input(conn, now)
        if server is not None:
            server.receive_data(conn, data, self._now)

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The client sends nothing more. Harmless for a connection that has ended."""
        server = self._input(conn, now)
        if server is not None:
            server.receive_eof(conn, self._now)

    def failed(self, conn: ConnectionId, error: str, now: float) -> None:
        """The connection broke or is closed. Harmless for one that has ended."""
        server = self._input(conn, now)
        if server is not None:
            server.failed(conn, error, self._now)

    def pause_writing(self, conn: ConnectionId) -> None:
        """What was written piles up: the client does not read."""
        server = self._conns.get(conn)
        if server is not None and conn not in self._paused:
            self._paused.add(conn)
            self._timers.set((conn, _STALL), self._now + STALL_TIMEOUT, _STALL)
            server.pause_writing(conn)

    def resume_writing(self, conn: ConnectionId) -> None:
        """The client reads again."""
        server = self._conns.get(conn)
        if server is not None and conn in self._paused:
            self._paused.discard(conn)
            self._timers.clear((conn, _STALL))
            server.resume_writing(conn)
            self._touched[conn] = None

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._tick(now)
        for (conn, reason), _ in list(self._timers.expired(self._now)):
            server = self._conns.get(conn)
            if server is None:
                continue
            self._touched[conn] = None
            if reason == _STALL:
                detail = f"connection {conn} was ended: it did not read for {STALL_TIMEOUT:g} s"
                self._events.append(LimitHit(_STALL, detail))
                server.failed(conn, "the client does not read", self._now)
            else:
                server.handle_timeout(self._now)

    # verbs ---------------------------------------------------------------------------------------

    def close(self, now: float) -> None:
        """End every connection, after what was said before. Harmless a second time."""
        self._tick(now)
        self._closing = True
        for conn, server in self._conns.items():
            server.close(self._now)
            self._touched[conn] = None

    # verbs: as those of an engine ----------------------------------------------------------------

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        """Answer a request with a result. As `ServerEngine.respond`."""
        engine = self._engine_of(request, now)
        return engine is not None and engine.respond(request, result, now=self._now)

    def respond_error(self, request: IncomingRequest, error: McpError, *, now: float) -> bool:
        """Refuse a request. As `ServerEngine.respond_error`."""
        engine = self._engine_of(request, now)
        return engine is not None and engine.respond_error(request, error, now=self._now)

    def report_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        *,
        now: float,
    ) -> bool:
        """Tell how far a request is. As `ServerEngine.report_progress`."""
        engine = self._engine_of(request, now)
        return engine is not None and engine.report_progress(request, progress, total, message, now=self._now)

    def report_ignored(
        self, request: IncomingRequest, reason: PeerFault | Harmless, detail: str, *, now: float
    ) -> None:
        """As `ServerEngine.report_ignored`."""
        engine = self._engine_of(request, now)
        if engine is not None:
            engine.report_ignored(request, reason, detail, now=self._now)

    def log(
        self,
        level: str,
        data: JsonValue,
        *,
        now: float,
        request: IncomingRequest | None = None,
        logger: str | None = None,
    ) -> bool:
        """Log to the client of `request`; without one, to every client. As `ServerEngine.log`."""
        if request is not None:
            engine = self._engine_of(request, now)
            return engine is not None and engine.log(
                level, data, now=self._now, request=request, logger=logger
            )
        return self._all(now, lambda e: e.log(level, data, now=self._now, logger=logger))

    def hang_up(self, request: IncomingRequest, *, now: float) -> bool:
        """As `ServerEngine.hang_up`: no connection is one request's."""
        self._tick(now)
        return False

    def notify_changed(self, kind: ListKind, *, now: float) -> bool:
        """Tell every client. As `ServerEngine.notify_changed`."""
        return self._all(now, lambda e: e.notify_changed(kind, now=self._now))

    def notify_updated(self, uri: str, *, now: float) -> bool:
        """Tell every client. As `ServerEngine.notify_updated`."""
        return self._all(now, lambda e: e.notify_updated(uri, now=self._now))

    def notify_topic(
        self, topic: str, name: str, method: str, params: Mapping[str, Any], *, now: float
    ) -> bool:
        """Tell every client. As `ServerEngine.notify_topic`."""
        return self._all(now, lambda e: e.notify_topic(topic, name, method, params, now=self._now))

    def request(
        self,
        method: str,
        params: Mapping[str, JsonValue] | None = None,
        *,
        now: float,
        timeout: float | None = None,
        related: IncomingRequest | None = None,
    ) -> Call:
        """Ask the client that made the request `related`. As `ServerEngine.request`.

        Also raises LocalProtocolError without `related`, and when that client is gone.
        """
        engine = None if related is None else self._engine_of(related, now)
        if engine is None:
            raise LocalProtocolError(f"{method}: only the client of an open request can be asked")
        return engine.request(method, params, now=self._now, timeout=timeout, related=related)

    def cancel(self, call: Call, *, now: float) -> None:
        """End a call that `request` made, and tell the client. As `ServerEngine.cancel`."""
        engine = None if call.related is None else self._engine_of(call.related, now)
        if engine is not None:
            engine.cancel(call, now=self._now)

    def elicitation_complete(self, elicitation_id: str, *, now: float, related: IncomingRequest) -> bool:
        """As `ServerEngine.elicitation_complete`, for the client that made the request `related`."""
        engine = self._engine_of(related, now)
        return engine is not None and engine.elicitation_complete(
            elicitation_id, now=self._now, related=related
        )

    # inside --------------------------------------------------------------------------------------

    def _tick(self, now: float) -> None:
        self._now = max(self._now, now)

    def _input(self, conn: ConnectionId, now: float) -> StreamServer | None:
        self._tick(now)
        server = self._conns.get(conn)
        if server is not None:
            self._touched[conn] = None
        return server

    def _engine_of(self, request: IncomingRequest, now: float) -> ServerEngine | None:
        """The engine that `request` came to; None when its connection is gone."""
        conn = request.origin
        server = self._input(conn, now) if isinstance(conn, int) else None
        return None if server is None else server.engine

    def _all(self, now: float, tell: Callable[[ServerEngine], bool]) -> bool:
        self._tick(now)
        told = [tell(server.engine) for server in self._conns.values()]
        self._touched.update(dict.fromkeys(self._conns))
        return any(told)

    def _pump(self) -> None:
        """Take what the connections want done and say."""
        while self._touched:
            conn = next(iter(self._touched))
            server = self._conns.get(conn)
            if server is not None:
                while (op := server.next_op()) is not None:
                    self._ops.append(op)
                while (event := server.next_event()) is not None:
                    if isinstance(event, (SessionStarted, SessionEnded)):
                        event.session = conn
                    self._events.append(event)
            del self._touched[conn]
            if server is not None:
                self._settle(conn, server)

    def _settle(self, conn: ConnectionId, server: StreamServer) -> None:
        when = None if server.finished else server.next_timeout()
        if when is None:
            self._timers.clear((conn, _TICK))
        else:
            self._timers.set((conn, _TICK), when, _TICK)
        if server.finished:
            del self._conns[conn]
            self._paused.discard(conn)
            self._timers.clear((conn, _STALL))


def lines(app: App, *, grace: float = 10.0, **engine_options: Any) -> Callable[[float], SocketServer]:
    """For `StreamListener`: serves `app` with a line per message. The options are those of `App.engine`."""
    return lambda now: SocketServer(app.engine(now=now, **engine_options), now=now, grace=grace)


def websockets(
    app: App,
    *,
    path: str | None = "/mcp",
    policy: GuardPolicy = DEFAULT_POLICY,
    pings: PingPolicy = DEFAULT_PINGS,
    **engine_options: Any,
) -> Callable[[float], WebSocketServer]:
    """For `StreamListener`: serves `app` over WebSockets.

    `path`, `policy` and `pings` are those of `WebSocketServer`, the other options those of `App.engine`.
    """
    return lambda now: WebSocketServer(
        app.engine(now=now, **engine_options), now=now, path=path, policy=policy, pings=pings
    )
