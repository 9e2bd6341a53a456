"""Many servers at once, and the tools of all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, Unpack

from sansmcp.errors import SansmcpError
from sansmcp.toolset import ToolFeedback, Toolset, tool_feedback
from sansmcp.wire.jsoncodec import JsonValue
from sansmcp_shared.options import Options

from ._client import Client


class Connections:
    """Several servers, for as long as the context lasts::

        servers = {
            "files": lambda: connect("python files.py"),
            "hub": lambda: connect("https://example.com/mcp"),
        }
        with connect_many(servers) as many:
            feedback = many.call("hub_search", {"query": "mcp"})

    A server that cannot be connected to, or whose tools cannot be listed or would have the name of
    others, is in `failures` and does not disturb the rest. Nothing is raised for it.
    """

    clients: dict[str, Client]
    """The servers that are connected, by the names they were given."""
    failures: dict[str, SansmcpError]
    """Why the others are not."""
    toolset: Toolset[Client]
    """The tools of all of them."""

    def __init__(self, servers: Mapping[str, Callable[[], Client]], prefix: Callable[[str], str]) -> None:
        self._servers = dict(servers)
        self._prefix = prefix
        self.clients = {}
        self.failures = {}
        self.toolset = Toolset()

    def call(
        self, name: str, arguments: Mapping[str, JsonValue] | None = None, **options: Unpack[Options]
    ) -> ToolFeedback:
        """Run the tool that is shown as `name`, and tell what a model is to read of it.

        A tool that fails has answered: see `ToolFeedback.is_error`. Raises KeyError if there is no such
        tool, and as `Client.call_tool` when no answer comes.
        """
        entry = self.toolset[name]
        return tool_feedback(entry.server.call_tool(entry.server_name, arguments, **options))

    def refresh(self, server: str) -> list[str]:
        """Read the tools of a server anew, after its list changed; return their names.

        Raises as `Client.list_tools`, and ToolNameCollisionError; the old ones stay then.
        """
        client = self.clients[server]
        listed = client.list_tools(cache_mode="refresh")
        return self.toolset.replace(client, listed.tools, prefix=self._prefix(server))

    def _connect(self, name: str, unexpected: list[Exception]) -> None:
        try:
            self.clients[name] = self._servers[name]()
        except SansmcpError as error:
            self.failures[name] = error
        except Exception as error:
            unexpected.append(error)

    def _list(self, name: str, client: Client) -> None:
        try:
            listed = client.list_tools()
            self.toolset.register(client, listed.tools, prefix=self._prefix(name))
        except SansmcpError as error:
            self.failures[name] = error
            del self.clients[name]
            client.close()

    def __enter__(self) -> Self:
        unexpected: list[Exception] = []
        try:
            _at_once(self._connect, [(name, unexpected) for name in self._servers])
            if unexpected:
                raise unexpected[0]
            # One after the other, so that names are given in the order of the servers.
            for name in [n for n in self._servers if n in self.clients]:
                client = self.clients[name]
                if client.server_capabilities is None or client.server_capabilities.tools is not None:
                    self._list(name, client)
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        _at_once(Client.close, [(client,) for client in self.clients.values()])


def connect_many(
    servers: Mapping[str, Callable[[], Client]], *, prefix: Callable[[str], str] = "{}_".format
) -> Connections:
    """Connect to several servers at once, and put their tools together: see `Connections`.

    `servers` are functions that connect, each under a name; `prefix` makes of a name what is put before
    the names of that server's tools, by default the name and an underscore.
    """
    return Connections(servers, prefix)


def _at_once(call: Callable[..., object], arguments: list[tuple[object, ...]]) -> None:
    """Call it with all of them, each in a thread."""
    threads = [
        threading.Thread(target=call, args=each, name="sansmcp connect", daemon=True) for each in arguments
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
