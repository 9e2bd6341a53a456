"""Many servers at once, and the tools of all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Self, Unpack

from sansmcp.errors import SansmcpError
from sansmcp.toolset import ToolFeedback, Toolset, tool_feedback
from sansmcp.wire.jsoncodec import JsonValue

from ._client import Client, Opening
from ._options import Options
from ._waiting import together

if TYPE_CHECKING:
    import asyncio


class Connections:
    """Several servers, for as long as the context lasts::

        servers = {"files": connect("python files.py"), "hub": connect("https://example.com/mcp")}
        async with connect_many(servers) as many:
            feedback = await many.call("hub_search", {"query": "mcp"})

    A server that cannot be connected to, or whose tools cannot be listed or would have the name of
    others, is in `failures` and does not disturb the rest. Nothing is raised for it.
    """

    clients: dict[str, Client]
    """The servers that are connected, by the names they were given."""
    failures: dict[str, SansmcpError]
    """Why the others are not."""
    toolset: Toolset[Client]
    """The tools of all of them."""

    def __init__(self, servers: Mapping[str, Opening], prefix: Callable[[str], str]) -> None:
        self._servers = dict(servers)
        self._prefix = prefix
        self.clients = {}
        self.failures = {}
        self.toolset = Toolset()

    async def call(
        self, name: str, arguments: Mapping[str, JsonValue] | None = None, **options: Unpack[Options]
    ) -> ToolFeedback:
        """Run the tool that is shown as `name`, and tell what a model is to read of it.

        A tool that fails has answered: see `ToolFeedback.is_error`. Raises KeyError if there is no such
        tool, and as `Client.call_tool` when no answer comes.
        """
        entry = self.toolset[name]
        return tool_feedback(await entry.server.call_tool(entry.server_name, arguments, **options))

    async def refresh(self, server: str) -> list[str]:
        """Read the tools of a server anew, after its list changed; return their names.

        Raises as `Client.list_tools`, and ToolNameCollisionError; the old ones stay then.
        """
        client = self.clients[server]
        listed = await client.list_tools(cache_mode="refresh")
        return self.toolset.replace(client, listed.tools, prefix=self._prefix(server))

    async def _connect(self, name: str, opening: Opening) -> None:
        try:
            client = await opening.connected(self._loop)
        except SansmcpError as error:
            self.failures[name] = error
            return
        self.clients[name] = client

    async def _list(self, name: str, client: Client) -> None:
        try:
            listed = await client.list_tools()
            self.toolset.register(client, listed.tools, prefix=self._prefix(name))
        except SansmcpError as error:
            self.failures[name] = error
            del self.clients[name]
            await client.aclose()

    async def __aenter__(self) -> Self:
        import asyncio

        return await self._enter(asyncio.get_running_loop())

    async def _enter(self, loop: asyncio.AbstractEventLoop) -> Self:
        self._loop = loop
        try:
            await together(self._loop, *(self._connect(*server) for server in self._servers.items()))
            # One after the other, so that names are given in the order of the servers.
            for name in [n for n in self._servers if n in self.clients]:
                client = self.clients[name]
                if client.server_capabilities is None or client.server_capabilities.tools is not None:
                    await self._list(name, client)
        except BaseException:
            await self._close()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._close()

    async def _close(self) -> None:
        await together(self._loop, *(client.aclose() for client in self.clients.values()))


def connect_many(
    servers: Mapping[str, Opening], *, prefix: Callable[[str], str] = "{}_".format
) -> Connections:
    """Connect to several servers at once, and put their tools together: see `Connections`.

    `servers` are what `connect` returns, each under a name; `prefix` makes of a name what is put before
    the names of that server's tools, by default the name and an underscore.
    """
    return Connections(servers, prefix)
