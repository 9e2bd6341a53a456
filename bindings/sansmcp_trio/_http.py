"""Serves an `App` over HTTP."""

from __future__ import annotations

from functools import partial
from typing import Self, Unpack

import trio

from sansmcp.app import App
from sansmcp.http.listener import HttpListener
from sansmcp_shared.http_server import HttpHandlers, HttpOptions, HttpPlace
from sansmcp_shared.listening import Ready

from ._accept import Listening


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


class HttpServing(HttpPlace, Listening[HttpHandlers]):
    """A server over HTTP for as long as the context lasts, which is a nursery::

        async with HttpServing(app) as serving:
            print(serving.url)
            await serving.closed()

    The parameters and errors are those of `serve_http`. At its end what is open is answered, as far as
    that takes no time, handlers are cancelled and connections closed.
    """

    @property
    def listener(self) -> HttpListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        return self._started.listener

    async def __aenter__(self) -> Self:
        options, tls = self._given()
        await self._start(
            partial(trio.open_tcp_listeners, self.port, host=self.host or None),
            lambda loop: HttpHandlers(self._app, loop.as_asyncio, **options),
            tls,
        )
        self.port = self._listeners[0].socket.getsockname()[1]
        return self
