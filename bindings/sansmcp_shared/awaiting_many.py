"""Many servers at once, and the tools of all of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Generic, Self, TypeVar, Unpack

from sansmcp.errors import SansmcpError
from sansmcp.toolset import ToolFeedback, Toolset, tool_feedback
from sansmcp.wire.jsoncodec import JsonValue

from .awaiting_client import AwaitingClient
from .options import Options

ClientT = TypeVar("ClientT", bound=AwaitingClient)


class AwaitingConnections(ABC, Generic[ClientT]):
    """Several servers, for as long as a context lasts."""

    clients: dict[str, ClientT]
    """The servers that are connected, by the names they were given."""
    failures: dict[str, SansmcpError]
    """Why the others are not."""
    toolset: Toolset[ClientT]
    """The tools of all of them."""

    def __init__(
        self,
        servers: Mapping[str, Callable[[Any], Coroutine[Any, Any, ClientT]]],
        prefix: Callable[[str], str],
    ) -> None:
        self._servers = servers
        """What connects on a loop."""
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

    @abstractmethod
    async def _together(self, *coroutines: Coroutine[Any, Any, object]) -> None:
        """Await all of them at once. The first that raises ends the others, and that is raised."""

    async def _connect(self, name: str, loop: object) -> None:
        try:
            self.clients[name] = await self._servers[name](loop)
        except SansmcpError as error:
            self.failures[name] = error

    async def _list(self, name: str, client: ClientT) -> None:
        try:
            listed = await client.list_tools()
            self.toolset.register(client, listed.tools, prefix=self._prefix(name))
        except SansmcpError as error:
            self.failures[name] = error
            del self.clients[name]
            await client.aclose()

    async def _enter(self, loop: object) -> Self:
        try:
            await self._together(*(self._connect(name, loop) for name in self._servers))
            # One after the other, so that names are given in the order of the servers.
            for name in [n for n in self._servers if n in self.clients]:
                client = self.clients[name]
                if client.server_capabilities is None or client.server_capabilities.tools is not None:
                    await self._list(name, client)
        except BaseException:
            await self._close()
            raise
        return self

    async def _close(self) -> None:
        await self._together(*(client.aclose() for client in self.clients.values()))
