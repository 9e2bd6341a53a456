"""Serves an `App` at WebSockets, at a port, or at a unix socket: each connection is a conversation."""

from __future__ import annotations

import os
from typing import Unpack

from sansmcp.app import App
from sansmcp_shared.listening import Ready
from sansmcp_shared.stream_server import (
    SocketOptions,
    WebSocketServerOptions,
    plan_tcp,
    plan_unix,
    plan_websocket,
)

from ._serving import SocketServing


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
    await websocket_serving(app, host, port, **options).serve(ready)


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
    await tcp_serving(app, host, port, **options).serve(ready)


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
    await unix_serving(app, path, **options).serve(ready)
