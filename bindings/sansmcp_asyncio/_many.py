"""Many servers at once, and the tools of all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from types import TracebackType
from typing import Any, Self

from sansmcp_shared.awaiting_many import AwaitingConnections

from ._client import Client, Opening
from ._together import together


class Connections(AwaitingConnections[Client]):
    """Several servers, for as long as the context lasts::

        servers = {"files": connect("python files.py"), "hub": connect("https://example.com/mcp")}
        async with connect_many(servers) as many:
            feedback = await many.call("hub_search", {"query": "mcp"})

    A server that cannot be connected to, or whose tools cannot be listed or would have the name of
    others, is in `failures` and does not disturb the rest. Nothing is raised for it.
    """

    def __init__(self, servers: Mapping[str, Opening], prefix: Callable[[str], str]) -> None:
        super().__init__({name: opening.connected for name, opening in servers.items()}, prefix)

    async def _together(self, *coroutines: Coroutine[Any, Any, object]) -> None:
        await together(*coroutines)

    async def __aenter__(self) -> Self:
        return await self._enter(asyncio.get_running_loop())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close()


def connect_many(
    servers: Mapping[str, Opening], *, prefix: Callable[[str], str] = "{}_".format
) -> Connections:
    """Connect to several servers at once, and put their tools together: see `Connections`.

    `servers` are what `connect` returns, each under a name; `prefix` makes of a name what is put before
    the names of that server's tools, by default the name and an underscore.
    """
    return Connections(servers, prefix)
