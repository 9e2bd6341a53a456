"""A server of sockets: each connection is a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

import trio

from sansmcp.stream_listener import StreamListener
from sansmcp_shared.listening import Ready
from sansmcp_shared.stream_server import Plan, StreamHandlers, bind_unix, remove_unix

from ._accept import Listening

_BACKLOG = 100


class SocketServing(Listening[StreamHandlers]):
    """A server of connections for as long as the context lasts, which is a nursery.

    Made by the functions `…_serving`.
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

    async def serve(self, ready: Ready | None) -> None:
        """Serve until cancelled; `ready` is told where."""
        async with self:
            if ready is not None:
                ready(self._plan.where, self.port)
            await self.closed()
