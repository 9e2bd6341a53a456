"""Serves an `App` at WebSockets, at a port, or at a unix socket: each connection is a conversation."""

from __future__ import annotations

import asyncio
import os
from types import TracebackType
from typing import Self, Unpack

from sansmcp.app import App
from sansmcp.stream_listener import StreamListener

from ._http import Accepted, Ready
from ._streams import (
    Plan,
    SocketOptions,
    StreamHandlers,
    WebSocketServerOptions,
    bind_unix,
    plan_tcp,
    plan_unix,
    plan_websocket,
    remove_unix,
)


class SocketServing:
    """A server of connections for as long as the context lasts. Made by the functions `serve_…` below."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
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
        handlers = StreamHandlers(self._plan.app, loop, self._plan.serve, **self._plan.options)
        self._server = await self._listen(loop, handlers)
        self._handlers = handlers
        return self

    async def _listen(self, loop: asyncio.AbstractEventLoop, handlers: StreamHandlers) -> asyncio.Server:
        plan = self._plan

        def make() -> Accepted:
            return Accepted(handlers.pump, handlers.listener)

        if plan.path is not None:
            return await loop.create_unix_server(make, sock=bind_unix(plan.path), ssl=plan.tls)
        return await loop.create_server(make, plan.host or None, plan.port, ssl=plan.tls)

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
        if self._plan.path is not None:
            remove_unix(self._plan.path)


def websocket_serving(
    app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[WebSocketServerOptions]
) -> SocketServing:
    """As `serve_websocket`, for as long as a context lasts."""
    return SocketServing(plan_websocket(app, host, port, options))


def tcp_serving(
    app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[SocketOptions]
) -> SocketServing:
    """As `serve_tcp`, for as long as a context lasts."""
    return SocketServing(plan_tcp(app, host, port, options))


def unix_serving(app: App, path: str | os.PathLike[str], **options: Unpack[SocketOptions]) -> SocketServing:
    """As `serve_unix`, for as long as a context lasts."""
    return SocketServing(plan_unix(app, path, options))


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
    await _serve(websocket_serving(app, host, port, **options), ready)


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
    await _serve(tcp_serving(app, host, port, **options), ready)


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
    await _serve(unix_serving(app, path, **options), ready)


async def _serve(serving: SocketServing, ready: Ready | None) -> None:
    async with serving:
        if ready is not None:
            ready(serving._plan.where, serving.port)
        await serving.closed()
