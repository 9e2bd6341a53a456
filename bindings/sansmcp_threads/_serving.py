"""A server of sockets: each connection is a conversation."""

from __future__ import annotations

import socket

from sansmcp.stream_listener import StreamListener
from sansmcp_shared.listening import Ready
from sansmcp_shared.stream_server import Plan, StreamHandlers, bind_unix, remove_unix

from ._accept import BACKLOG, Listening, ThreadListenerPump, listen_at
from ._server import ThreadHandlers, check_threads


class SocketServing(Listening[StreamHandlers]):
    """A server of connections for as long as the context lasts, driven by a thread of its own.

    Made by the functions `…_serving`.
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

    def serve(self, ready: Ready | None) -> None:
        """Serve until Ctrl-C, driven by this thread; `ready` is told where."""
        self._start(keep=False)
        try:
            if ready is not None:
                ready(self._plan.where, self.port)
            self.closed()
        finally:
            self.close()

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
