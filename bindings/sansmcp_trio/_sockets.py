"""Serves an `App` at WebSockets, at a port, or at a unix socket: each connection is a conversation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType
from typing import Self, Unpack

import trio

from sansmcp.app import App
from sansmcp.stream_listener import StreamListener
from sansmcp_asyncio._http import Ready
from sansmcp_asyncio._streams import (
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

from ._accept import Listening

_BACKLOG = 100


class SocketServing(Listening[StreamHandlers]):
    """A server of connections for as long as the context lasts, which is a nursery.

    Made by the functions `serve_…` below.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        self._plan = plan

    @property
    def listener(self) -> StreamListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        return self._started.listener

    @property
    def port(self) -> int:
        """Where it listens; 0 for a unix socket."""
        name = self._listeners[0].socket.getsockname()
        return name[1] if isinstance(name, tuple) else 0

    async def __aenter__(self) -> Self:
        plan = self._plan
        await self._start(
            self._listen,
            lambda loop: StreamHandlers(plan.app, loop.as_asyncio, plan.serve, **plan.options),
            plan.tls,
        )
        return self

    async def _listen(self) -> Sequence[trio.SocketListener]:
        plan = self._plan
        if plan.path is None:
            return await trio.open_tcp_listeners(plan.port, host=plan.host or None)
        sock = bind_unix(plan.path)
        sock.listen(_BACKLOG)
        return [trio.SocketListener(trio.socket.from_stdlib_socket(sock))]

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(kind, error, traceback)
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
