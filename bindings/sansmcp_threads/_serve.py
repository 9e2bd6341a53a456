"""Serves an `App` at WebSockets, at a port, or at a unix socket: each connection is a conversation."""

from __future__ import annotations

import os
import socket
from typing import Unpack

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

from ._accept import BACKLOG, Listening, ThreadListenerPump, listen_at
from ._server import ThreadHandlers, check_threads


class SocketServing(Listening[StreamHandlers]):
    """A server of connections for as long as the context lasts, driven by a thread of its own.

    Made by the functions `serve_…` below.
    """

    def __init__(self, plan: Plan) -> None:
        super().__init__()
        check_threads(plan.options.get("threads", 16))
        self._plan = plan

    @property
    def listener(self) -> StreamListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        return self._started[1].listener

    @property
    def port(self) -> int:
        """Where it listens; 0 for a unix socket."""
        return self._address[1] if isinstance(self._address, tuple) else 0

    def close(self) -> None:
        """End it. Harmless twice, and in any thread."""
        first = not self._started[0].closed
        super().close()
        if first and self._plan.path is not None:
            remove_unix(self._plan.path)

    def _start(self, keep: bool) -> None:
        plan = self._plan
        self._listen(
            self._bind,
            lambda loop: _ThreadStreamHandlers(plan.app, loop.as_asyncio, plan.serve, **plan.options),
            plan.tls,
            keep,
        )

    def _bind(self) -> list[socket.socket]:
        plan = self._plan
        if plan.path is None:
            return listen_at(plan.host, plan.port)
        sock = bind_unix(plan.path)
        sock.listen(BACKLOG)
        return [sock]


class _ThreadStreamHandlers(ThreadHandlers, StreamHandlers):
    pump_kind = ThreadListenerPump


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


def serve_websocket(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Ready | None = None,
    **options: Unpack[WebSocketServerOptions],
) -> None:
    """Serve `app` over WebSockets until Ctrl-C. With `port` 0 the system chooses one; `ready` is told it.

    Handlers are called as by `serve_stdio`. Raises OSError if it cannot listen there, and
    LocalProtocolError for options that cannot be.
    """
    _serve(websocket_serving(app, host, port, **options), ready)


def serve_tcp(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Ready | None = None,
    **options: Unpack[SocketOptions],
) -> None:
    """Serve `app` at a port, with a line per message, until Ctrl-C.

    Whoever can connect is served: listen where only those can who may. The rest is as for
    `serve_websocket`.
    """
    _serve(tcp_serving(app, host, port, **options), ready)


def serve_unix(
    app: App,
    path: str | os.PathLike[str],
    *,
    ready: Ready | None = None,
    **options: Unpack[SocketOptions],
) -> None:
    """Serve `app` at the unix socket `path`, with a line per message, until Ctrl-C.

    Only this user may connect to it: the mode of the file is 600. One that is there is replaced, and it
    is removed at the end. `ready` is told the path, and 0.
    """
    _serve(unix_serving(app, path, **options), ready)


def _serve(serving: SocketServing, ready: Ready | None) -> None:
    serving._start(keep=False)
    try:
        if ready is not None:
            ready(serving._plan.where, serving.port)
        serving.closed()
    finally:
        serving.close()
