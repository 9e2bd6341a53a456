"""A server of sockets: each connection is a conversation."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

from sansmcp.stream_listener import StreamListener
from sansmcp_shared.listening import Ready
from sansmcp_shared.stream_server import Plan, StreamHandlers, bind_unix, remove_unix

from ._accept import Arrivals


class SocketServing:
    """A server of connections for as long as the context lasts. Made by the functions `…_serving`."""

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
        plan, loop = self._plan, asyncio.get_running_loop()
        handlers = StreamHandlers(plan.app, loop, plan.serve, **plan.options)
        self._arrivals = arrivals = Arrivals(handlers.pump, handlers.listener, plan.tls)
        if plan.path is not None:
            self._server = await loop.create_unix_server(arrivals.make, sock=bind_unix(plan.path))
        else:
            self._server = await loop.create_server(arrivals.make, plan.host or None, plan.port)
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
        await self._arrivals.end(self._server)
        await self._handlers.stop()
        await self._server.wait_closed()
        if self._plan.path is not None:
            remove_unix(self._plan.path)

    async def serve(self, ready: Ready | None) -> None:
        """Serve until cancelled; `ready` is told where."""
        async with self:
            if ready is not None:
                ready(self._plan.where, self.port)
            await self.closed()
