"""Serves an `App` at WebSockets, at a port, or at a unix socket: each connection is a conversation."""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from ssl import SSLContext
from types import TracebackType
from typing import Any, Self, TypedDict, Unpack

from sansmcp.app import App
from sansmcp.http.guard import GuardPolicy
from sansmcp.http.listener import policy_for
from sansmcp.limits import SERVER_LIMITS, Limits, Timeouts
from sansmcp.revisions import Revision
from sansmcp.stream_listener import MAX_CONNECTIONS, StreamListener, StreamServer, lines, websockets
from sansmcp.websocket import PingPolicy
from sansmcp.wire.jsoncodec import JsonCodec

from ._http import Accepted, ListenerPump, Ready
from ._pump import OnEvent, OnWire
from ._server import Handlers


class StreamOptions(TypedDict, total=False):
    """What a server of connections can be told."""

    threads: int
    """Threads for handlers that are plain functions, **16** unless given; 0: they run in the loop."""
    limits: Limits
    timeouts: Timeouts | None
    revisions: Sequence[Revision]
    codec: JsonCodec | None
    max_connections: int
    """Connections at once, **1000** unless given; past it others are ended at once."""
    strict: bool
    """Turn tolerances into faults."""
    on_event: OnEvent | None
    on_wire: OnWire | None
    """Sees the bytes of all connections."""


class SocketOptions(StreamOptions, total=False):
    """What a server of sockets with a line per message can be told."""

    ssl: SSLContext | None
    """Speak TLS with this context."""
    grace: float
    """Seconds in which answers that are owed may still be given after the client ended its side."""


class WebSocketServerOptions(StreamOptions, total=False):
    """What a server of WebSockets can be told."""

    path: str | None
    """Where it is; None for everywhere. **/mcp** unless given."""
    ssl: SSLContext | None
    """Speak TLS with this context."""
    policy: GuardPolicy | None
    """Which hosts and pages are served; None: loopback names, and where it listens (`policy_for`)."""
    pings: PingPolicy
    """When a silent client is asked whether it is there."""


class SocketServing:
    """A server of connections for as long as the context lasts. Made by the functions `serve_…` below."""

    def __init__(
        self,
        app: App,
        serve: Callable[[float], StreamServer],
        listen: Callable[[asyncio.AbstractEventLoop, Callable[[], Accepted]], Any],
        options: dict[str, Any],
        path: str | None = None,
    ) -> None:
        self._path = path
        self._app = app
        self._serve = serve
        self._listen = listen
        self._options = options
        self._handlers: StreamHandlers | None = None
        self._server: asyncio.Server | None = None

    @property
    def listener(self) -> StreamListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        if self._handlers is None:
            raise RuntimeError("the server was not started")
        return self._handlers.listener

    @property
    def port(self) -> int:
        """Where it listens; 0 for a unix socket."""
        assert self._server is not None
        name = self._server.sockets[0].getsockname()
        return name[1] if isinstance(name, tuple) else 0

    async def closed(self) -> None:
        """Return when the server has ended; raise what ended it, if that was a fault of this library."""
        assert self._handlers is not None
        pump = self._handlers.pump
        await pump.gone.wait()
        if pump.failure is not None:
            raise pump.failure

    async def __aenter__(self) -> Self:
        if self._handlers is not None:
            raise RuntimeError("a server is started once")
        loop = asyncio.get_running_loop()
        handlers = StreamHandlers(self._app, loop, self._serve, **self._options)
        self._server = await self._listen(loop, lambda: Accepted(handlers.pump, handlers.listener))
        self._handlers = handlers
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._server is not None
        assert self._handlers is not None
        self._server.close()
        await self._handlers.stop()
        await self._server.wait_closed()
        if self._path is not None:
            _remove(self._path)


class StreamHandlers(Handlers):
    """All connections of `app`."""

    pump: ListenerPump
    pump_kind: type[ListenerPump] = ListenerPump

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        serve: Callable[[float], StreamServer],
        *,
        threads: int = 16,
        limits: Limits = SERVER_LIMITS,
        max_connections: int = MAX_CONNECTIONS,
        on_event: OnEvent | None = None,
        on_wire: OnWire | None = None,
    ) -> None:
        listener = StreamListener(serve, now=loop.time(), limits=limits, max_connections=max_connections)
        super().__init__(app, loop, listener, threads=threads, on_event=on_event)
        self.listener = listener
        self.pump = self.pump_kind(listener, loop, self._deliver, on_wire=on_wire)


_OF_LISTENER = ("threads", "max_connections", "on_event", "on_wire")


def _split(options: dict[str, Any]) -> dict[str, Any]:
    """Take out of `options` those of the listener; the limits are for both."""
    mine = {name: options.pop(name) for name in _OF_LISTENER if name in options}
    if "limits" in options:
        mine["limits"] = options["limits"]
    return mine


def websocket_serving(
    app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[WebSocketServerOptions]
) -> SocketServing:
    """As `serve_websocket`, for as long as a context lasts."""
    given: dict[str, Any] = dict(options)
    tls = given.pop("ssl", None)
    if given.get("policy") is None:
        given["policy"] = policy_for(host)
    mine = _split(given)
    return SocketServing(app, websockets(app, **given), _at_port(host, port, tls), mine)


def tcp_serving(
    app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[SocketOptions]
) -> SocketServing:
    """As `serve_tcp`, for as long as a context lasts."""
    given: dict[str, Any] = dict(options)
    tls = given.pop("ssl", None)
    mine = _split(given)
    return SocketServing(app, lines(app, **given), _at_port(host, port, tls), mine)


def unix_serving(app: App, path: str | os.PathLike[str], **options: Unpack[SocketOptions]) -> SocketServing:
    """As `serve_unix`, for as long as a context lasts."""
    given: dict[str, Any] = dict(options)
    tls = given.pop("ssl", None)
    mine = _split(given)
    where = os.fspath(path)
    return SocketServing(app, lines(app, **given), _at_path(where, tls), mine, where)


async def serve_websocket(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Ready | None = None,
    **options: Unpack[WebSocketServerOptions],
) -> None:
    """Serve `app` over WebSockets until cancelled. With `port` 0 the system chooses one; `ready` is told it.

    Handlers are called as by `serve_stdio`. Raises OSError if it cannot listen there, and
    LocalProtocolError for options that cannot be.
    """
    await _serve(websocket_serving(app, host, port, **options), host, ready)


async def serve_tcp(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Ready | None = None,
    **options: Unpack[SocketOptions],
) -> None:
    """Serve `app` at a port, with a line per message, until cancelled.

    Whoever can connect is served: listen where only those can who may. The rest is as for
    `serve_websocket`.
    """
    await _serve(tcp_serving(app, host, port, **options), host, ready)


async def serve_unix(
    app: App,
    path: str | os.PathLike[str],
    *,
    ready: Ready | None = None,
    **options: Unpack[SocketOptions],
) -> None:
    """Serve `app` at the unix socket `path`, with a line per message, until cancelled.

    Only this user may connect to it: the mode of the file is 600. One that is there is replaced, and it
    is removed at the end. `ready` is told the path, and 0.
    """
    await _serve(unix_serving(app, path, **options), os.fspath(path), ready)


async def _serve(serving: SocketServing, where: str, ready: Ready | None) -> None:
    async with serving:
        if ready is not None:
            ready(where, serving.port)
        await serving.closed()


def _at_port(host: str, port: int, tls: SSLContext | None) -> Callable[..., Any]:
    return lambda loop, make: loop.create_server(make, host or None, port, ssl=tls)


def _at_path(path: str, tls: SSLContext | None) -> Callable[..., Any]:
    async def listen(loop: asyncio.AbstractEventLoop, make: Callable[[], Accepted]) -> asyncio.Server:
        # Before it listens nobody can connect, so that there is no time in which others could.
        server = await loop.create_unix_server(make, path, ssl=tls, start_serving=False)
        os.chmod(path, stat.S_IRUSR | stat.S_IWUSR)
        await server.start_serving()
        return server

    return listen


def _remove(path: str) -> None:
    with suppress(OSError):
        if stat.S_ISSOCK(os.stat(path).st_mode):
            os.remove(path)
