"""The user's part of authorization: tasks of the client, of which one listens for the browser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, cast

import trio

from sansmcp_shared.awaiting_login import AwaitingLogin, Catches
from sansmcp_shared.login import MAX_HEAD, MAX_VISITS, VISIT_WAIT, Visit, address

from ._channels import BROKEN
from ._loop import TrioLoop, TrioTask


class TrioLogin(AwaitingLogin):
    """In tasks of trio."""

    def _catches(self, path: str, arrived: Callable[[str], bool]) -> Catches:
        return Catcher(cast(Any, self.pump.loop), path, arrived)


class Catcher:
    """See `Catches`."""

    def __init__(self, loop: TrioLoop, path: str, arrived: Callable[[str], bool]) -> None:
        self._loop = loop
        self._path = path
        self._arrived = arrived
        self._visits = 0
        self._tasks: set[TrioTask] = set()
        """Those that listen, and those that are visited."""
        self.uri = ""

    async def listen(self, host: str, port: int) -> None:
        listeners: Sequence[trio.SocketListener] = await trio.open_tcp_listeners(port, host=host)
        self.uri = address(host, listeners[0].socket.getsockname()[1], self._path)
        for listener in listeners:
            self._do(self._accept(listener))

    def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()

    def _do(self, step: Any) -> None:
        task = self._loop.create_task(step)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listener: trio.SocketListener) -> None:
        async with listener:
            while self._visits < MAX_VISITS:
                self._visits += 1  # also who is gone already
                with suppress(OSError):
                    self._do(self._visited(await listener.accept()))

    async def _visited(self, stream: trio.SocketStream) -> None:
        with trio.CancelScope(deadline=trio.current_time() + VISIT_WAIT) as scope:
            async with stream:
                with suppress(*BROKEN):
                    answer = await self._answer(stream)
                    # An answer leaves, also when nobody listens any more.
                    with trio.CancelScope(deadline=scope.deadline, shield=True):
                        await stream.send_all(answer)

    async def _answer(self, stream: trio.SocketStream) -> bytes:
        visit = Visit(self.uri, self._arrived)
        while data := await stream.receive_some(MAX_HEAD):
            answer = visit.receive(bytes(data))
            if answer is not None:
                return answer
        return b""
