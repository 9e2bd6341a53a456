"""Serves an `App` over HTTP: sockets of the loop under an `HttpListener`, which decides everything."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Self, Unpack

from sansmcp.app import App
from sansmcp.http.listener import HttpListener, policy_for
from sansmcp_shared.http_server import HttpHandlers, HttpOptions
from sansmcp_shared.listening import Ready

from ._accept import Arrivals


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
