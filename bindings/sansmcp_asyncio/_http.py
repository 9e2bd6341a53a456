"""Serves an `App` over HTTP: sockets of the loop under an `HttpListener`, which decides everything."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypedDict, Unpack, cast

from sansmcp.app import App
from sansmcp.auth.resource_server import ResourceServer
from sansmcp.events import Event, VerifyToken
from sansmcp.http.guard import GuardPolicy
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.listener import DEFAULT_CONNECTIONS, ConnectionPolicy, HttpListener, policy_for
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.http.server import HttpServer
from sansmcp.limits import SERVER_LIMITS, Limits
from sansmcp.ops import ConnectionId
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.wire.jsoncodec import JsonCodec

from ._pump import Channel, ManyPump, OnEvent, OnWire, Transport
from ._server import Handlers
from ._tokens import TokenChecks

if TYPE_CHECKING:  # who serves HTTP need not load what a WebSocket is made of
    from sansmcp.stream_listener import StreamListener

Ready = Callable[[str, int], object]
"""Called with the host and the port, once clients can connect."""


class HttpOptions(TypedDict, total=False):
    """What a server over HTTP can be told."""

    path: str | None
    """Where the endpoint is; None for everywhere. **/mcp** unless given."""
    ssl: SSLContext | None
    """Speak TLS with this context."""
    threads: int
    """Threads for handlers that are plain functions, **16** unless given; 0: they run in the loop."""
    limits: Limits
    policy: GuardPolicy | None
    """Which hosts and pages are served; None: loopback names, and where it listens (`policy_for`)."""
    sessions: SessionPolicy | None
    """Bounds of the sessions of older clients."""
    connections: ConnectionPolicy
    """Bounds of the connections."""
    revisions: Sequence[Revision]
    codec: JsonCodec | None
    keep_alive: float | None
    """Seconds of silence after which a client is sent a comment, **15** unless given; None: never."""
    response_timeout: float | None
    """Seconds after which a request of 2026-07-28 is answered 504; None, the default: never."""
    max_exchanges: int
    """Responses that may be open at once, **16 384** unless given; past it requests are answered 503."""
    legacy: bool
    """Whether clients of the revisions before 2026-07-28 are served. **True** unless given."""
    stateless: bool
    """Whether these are served without sessions, so that any process can. **False** unless given."""
    old_sse: OldSsePaths | None
    """Where HTTP+SSE, the transport of 2024-11-05, is spoken as well; None, the default: nowhere."""
    auth: ResourceServer | None
    """Whom it lets in, by their access tokens; None, the default: everybody."""
    strict: bool
    """Turn tolerances into faults."""
    on_event: OnEvent | None
    on_wire: OnWire | None
    """Sees the bytes of all connections."""


async def serve_http(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Ready | None = None,
    **options: Unpack[HttpOptions],
) -> None:
    """Serve `app` over HTTP until cancelled. With `port` 0 the system chooses one; `ready` is told it.

    Handlers are called as by `serve_stdio`. Raises OSError if it cannot listen there, and
    LocalProtocolError for options that cannot be.
    """
    async with HttpServing(app, host, port, **options) as serving:
        if ready is not None:
            ready(serving.host, serving.port)
        await serving.closed()


class HttpServing:
    """A server over HTTP for as long as the context lasts::

        async with HttpServing(app) as serving:
            print(serving.url)
            await serving.closed()

    The parameters and errors are those of `serve_http`. At its end what is open is answered, as far as
    that takes no time, handlers are cancelled and connections closed.
    """

    def __init__(
        self, app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[HttpOptions]
    ) -> None:
        self.host = host
        """Where it listens."""
        self.port = port
        """Where it listens: the real port once the context was entered."""
        self._app = app
        self._options = options
        self._path = options.get("path", "/mcp")
        self._handlers: HttpHandlers | None = None
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        """Of the endpoint."""
        scheme = "http" if self._options.get("ssl") is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{self._path or '/'}"

    @property
    def listener(self) -> HttpListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        if self._handlers is None:
            raise RuntimeError("the server was not started")
        return self._handlers.listener

    async def closed(self) -> None:
        """Return when the server has ended; raise what ended it, if that was a fault of this library.

        Raises RuntimeError outside of the context.
        """
        if self._handlers is None:
            raise RuntimeError("the server was not started")
        pump = self._handlers.pump
        await pump.gone.wait()
        if pump.failure is not None:
            raise pump.failure

    async def __aenter__(self) -> Self:
        if self._handlers is not None:
            raise RuntimeError("a server is started once")
        options: dict[str, Any] = dict(self._options)
        tls = options.pop("ssl", None)
        if options.get("policy") is None:
            options["policy"] = policy_for(self.host)
        loop = asyncio.get_running_loop()
        handlers = HttpHandlers(self._app, loop, **options)
        self._arrivals = Arrivals(handlers.pump, handlers.listener, tls)
        self._server = await loop.create_server(self._arrivals.make, self.host or None, self.port)
        self._handlers = handlers
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        assert self._handlers is not None
        await self._arrivals.end(self._server)
        await self._handlers.stop()
        await self._server.wait_closed()


class ListenerPump(ManyPump):
    """Drives a listener."""

    def __init__(
        self,
        listener: HttpListener | StreamListener,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Event], None],
        *,
        on_wire: OnWire | None,
    ) -> None:
        super().__init__(
            cast(Transport, listener),
            loop,
            deliver,
            reads=listener.wants_data,
            takes=lambda: listener.takes_requests,
            on_wire=on_wire,
        )
        self._last_conn = 0

    def enter(self, channel: Channel) -> ConnectionId:
        """A client connected."""
        conn = self._last_conn = self._last_conn + 1
        self.channels[conn] = channel
        return conn


class HttpHandlers(Handlers):
    """All connections of `app`."""

    pump: ListenerPump
    pump_kind: type[ListenerPump] = ListenerPump

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        *,
        policy: GuardPolicy,
        threads: int = 16,
        limits: Limits = SERVER_LIMITS,
        connections: ConnectionPolicy = DEFAULT_CONNECTIONS,
        revisions: Sequence[Revision] = ALL_REVISIONS,
        on_event: OnEvent | None = None,
        on_wire: OnWire | None = None,
        **server_options: Any,
    ) -> None:
        now = loop.time()
        server = HttpServer(
            app.engine,
            now=now,
            entropy=secrets.token_bytes,
            policy=policy,
            limits=limits,
            revisions=revisions,
            input_schema=app.input_schema,
            **server_options,
        )
        super().__init__(app, loop, server, threads=threads, on_event=on_event)
        self._tokens = TokenChecks(server, loop, self.post, threads=threads > 0)
        self.listener = HttpListener(server, now=now, policy=connections)
        self.pump = self.pump_kind(self.listener, loop, self._deliver, on_wire=on_wire)

    def end(self) -> None:
        self._tokens.cancel()
        super().end()

    def _deliver(self, event: Event) -> None:
        if isinstance(event, VerifyToken):
            self._tokens.begin(event, self.pump)
        else:
            super()._deliver(event)


class Arrivals:
    """Those who connect to a server, until they are connections of its."""

    def __init__(
        self, pump: ListenerPump, listener: HttpListener | StreamListener, tls: SSLContext | None
    ) -> None:
        self.pump = pump
        self.listener = listener
        self.tls = tls
        self.arriving: set[Accepted] = set()
        """Whose socket the loop has, and we do not yet."""

    def make(self) -> Accepted:
        """For a socket that the loop has accepted."""
        accepted = Accepted(self)
        self.arriving.add(accepted)
        return accepted

    async def end(self, server: asyncio.Server) -> None:
        """Let `server` listen no more; whoever was accepted already can be closed afterwards."""
        # What is accepted when a server of asyncio is closed is lost. So nobody is accepted first.
        with suppress(NotImplementedError):  # not every loop knows of readers, nor do they all lose it
            for sock in server.sockets:
                self.pump.loop.remove_reader(sock.fileno())
        await asyncio.sleep(0)  # until what was accepted in this turn has become something
        await asyncio.sleep(0)
        while self.arriving:  # noqa: ASYNC110  (a turn or two, of which nobody tells)
            await asyncio.sleep(0)
        server.close()


class Accepted(asyncio.Protocol, Channel):
    """One socket."""

    _transport: asyncio.Transport
    _conn: ConnectionId

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._pump = arrivals.pump
        self._listener = arrivals.listener
        # Where it does, what is still to be written can be; under TLS one end is the end of both.
        self._half_closes = arrivals.tls is None
        self._reading = True
        self._paused = self._begun = False
        self._starting: asyncio.Task[asyncio.Transport | None] | None = None
        """With TLS."""
        self._early: list[Callable[[], object]] = []
        """What came before it was seen that TLS has begun."""

    # the loop calls these ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._arrivals.arriving.discard(self)
        self._transport = cast(asyncio.Transport, transport)
        self._conn = self._pump.enter(self)
        if self._pump.failure is not None:
            self._transport.abort()
        elif self._arrivals.tls is None:
            self._begin()
        else:
            # Not the server's own TLS: it could not be ended before it has begun.
            self._transport.pause_reading()
            loop = self._pump.loop
            starting = loop.start_tls(self._transport, self, self._arrivals.tls, server_side=True)
            self._starting = loop.create_task(starting)
            self._starting.add_done_callback(self._secured)

    def _secured(self, starting: asyncio.Task[asyncio.Transport | None]) -> None:
        self._starting = None
        failed = starting.cancelled() or starting.exception() is not None
        secured = None if failed else starting.result()
        if secured is None:
            self._transport.abort()
            self._gone()
        else:
            self._transport = secured
            self._begin()

    def _begin(self) -> None:
        self._begun = True
        name = self._transport.get_extra_info("peername")
        peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""
        if self._pump.failure is None:
            self._pump.input(self._listener.accepted, self._conn, peer)
        for told in self._early:
            told()
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self._begun:
            self._pump.receive(self._conn, data)
        else:
            self._early.append(lambda: self.data_received(data))

    def eof_received(self) -> bool:
        if self._begun:
            self._pump.input(self._listener.receive_eof, self._conn)
        else:
            self._early.append(self.eof_received)
        return self._half_closes

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._begun and self._arrivals.tls is not None:
            self._early.append(lambda: self.connection_lost(exc))
            return
        if self._begun and self._pump.failure is None:
            self._pump.channels.pop(self._conn, None)
            self._pump.input(self._listener.failed, self._conn, str(exc or "closed"))
        self._gone()

    def _gone(self) -> None:
        self._pump.channels.pop(self._conn, None)
        self._pump.lost(self._conn)

    def pause_writing(self) -> None:
        self._paused = True
        self._listener.pause_writing(self._conn)
        self._pump.used(self._conn)
        self._pump.soon()

    def resume_writing(self) -> None:
        self._paused = False
        self._listener.resume_writing(self._conn)
        self._pump.used(self._conn)
        self._pump.soon()

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def close_write(self) -> None:
        if self._half_closes:
            self._transport.write_eof()

    def close(self) -> None:
        if self._paused or self._starting is not None:  # what was written is not read
            self.abort()
        else:
            self._transport.close()

    def abort(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        else:
            self._transport.abort()

    def want_data(self, wanted: bool) -> None:
        if wanted is self._reading or self._starting is not None or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
