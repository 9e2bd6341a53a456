"""A server of sockets: each connection is a conversation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from sansmcp.stream_listener import StreamListener
from sansmcp_shared.listening import Ready
from sansmcp_shared.stream_server import Plan, StreamHandlers, bind_unix, remove_unix

from ._accept import Accepted, Listening


class SocketServing(Listening[StreamHandlers]):
    """A server of connections for as long as the context lasts. Made by the functions `…_serving`."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan

    @property
    def listener(self) -> StreamListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        return self._started.listener

    @property
    def port(self) -> int:
        """Where it listens; 0 for a unix socket."""
        name = self._server.sockets[0].getsockname()
        return name[1] if isinstance(name, tuple) else 0

    async def __aenter__(self) -> Self:
        plan = self._plan
        await self._start(
            lambda loop: StreamHandlers(plan.app, loop, plan.serve, **plan.options), plan.tls, self._listen
        )
        return self

    async def _listen(self, loop: asyncio.AbstractEventLoop, made: Callable[[], Accepted]) -> asyncio.Server:
        plan = self._plan
        if plan.path is None:
            return await loop.create_server(made, plan.host or None, plan.port)
        return await loop.create_unix_server(made, sock=bind_unix(plan.path))

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await super().__aexit__(kind, error, traceback)
        if self._plan.path is not None:
            remove_unix(self._plan.path)

    async def serve(self, ready: Ready | None) -> None:
        """Serve until cancelled; `ready` is told where."""
        async with self:
            if ready is not None:
                ready(self._plan.where, self.port)
            await self.closed()
