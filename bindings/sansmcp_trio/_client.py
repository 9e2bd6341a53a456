"""A connected client, and the nursery that it lives in."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from types import TracebackType
from typing import Any

import trio

from sansmcp_shared.awaiting_client import AwaitingClient

from ._loop import TrioLoop


class Client(AwaitingClient):
    """A connection to one server. Made by `connect` and `connect_memory`; not to be shared by threads.

    Cancelling a scope around a verb cancels the call on the wire. Calls that are open when the
    connection ends raise `ConnectionEnded`.
    """

    async def _wait_gone(self) -> None:
        with trio.CancelScope(shield=True):
            await self._pump.gone.wait()


class Home:
    """A nursery for the tasks of connections. What is raised inside is not wrapped by it.

    Nothing but `close` ends the tasks, and they raise nothing.
    """

    loop: TrioLoop

    async def open(self) -> TrioLoop:
        """Open it."""
        self._manager = trio.open_nursery()
        nursery = await self._manager.__aenter__()
        self._nursery = nursery
        self.loop = TrioLoop(nursery.start_soon, shield=True)
        return self.loop

    async def close(self) -> None:
        """End what is left, and wait for it."""
        self.loop.close()
        await self._manager.__aexit__(None, None, None)


class Opening:
    """A connection to be: ``async with opening as client``. Once."""

    def __init__(self, connected: Callable[[Any], Coroutine[Any, Any, Client]]) -> None:
        self.connected = connected
        """Connects on a loop."""
        self._home = Home()
        self._client: Client | None = None

    async def __aenter__(self) -> Client:
        loop = await self._home.open()
        try:
            self._client = client = await self.connected(loop)
        except BaseException:
            await self._home.close()
            raise
        return client

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._client is not None
        try:
            await self._client.aclose()
        finally:
            await self._home.close()
