"""A connected client, which the end of its loop closes, and a connection to be."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from typing import Any

from sansmcp_shared.awaiting_client import AwaitingClient


class Client(AwaitingClient):
    """A connection to one server. Made by `connect` and `connect_memory`; not to be shared by threads.

    Cancelling the task that waits in a verb cancels the call on the wire. Calls that are open when
    the connection ends raise `ConnectionEnded`.
    """

    _guard: AsyncGenerator[None, None] | None = None

    async def _set_guard(self) -> None:
        self._guard = self._close_with_loop()
        await anext(self._guard)

    async def _drop_guard(self) -> None:
        guard, self._guard = self._guard, None
        if guard is not None:
            await guard.aclose()

    async def _close_with_loop(self) -> AsyncGenerator[None, None]:
        """A loop that ends lets its generators end first: so a client that nobody closed is closed."""
        try:
            yield
        finally:
            self._guard = None
            if not self._pump.gone.is_set():
                await self.aclose()


class Opening:
    """A connection to be: ``async with opening as client``, or ``client = await opening``.

    The first closes the client at its end; after the second, call `Client.aclose`. Once each.
    """

    def __init__(self, connected: Callable[[asyncio.AbstractEventLoop], Coroutine[Any, Any, Client]]) -> None:
        self.connected = connected
        """Connects on a loop."""
        self._client: Client | None = None

    async def _enter(self) -> Client:
        self._client = client = await self.connected(asyncio.get_running_loop())
        return client

    def __await__(self) -> Generator[Any, None, Client]:
        return self._enter().__await__()

    async def __aenter__(self) -> Client:
        return await self._enter()

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._client is not None
        await self._client.aclose()
