"""Clients and servers of WebSockets and sockets on a network in memory."""

from __future__ import annotations

from typing import Any

from sansmcp import (
    App,
    ClientEngine,
    Context,
    SocketClient,
    StreamListener,
    TcpAddress,
    WebSocketClient,
)
from sansmcp.stream_listener import lines, websockets
from sansmcp.testing import Network

from .support import ME

URL = "ws://localhost:8000/mcp"


def app() -> App:
    made = App("server", "1.0", list_changed=True)

    @made.tool()
    def echo(text: str) -> str:
        return text

    @made.tool()
    def steps(ctx: Context) -> str:
        for n in range(3):
            ctx.progress(n + 1, 3)
        return "done"

    return made


def network(kind: str = "ws", *, serving: dict[str, Any] | None = None, **options: Any) -> Network:
    """A server of this kind, at a network."""
    served = app()
    make = (websockets if kind == "ws" else lines)(served, **(serving or {}))
    return Network(StreamListener(make, now=0.0), served, **options)


def client(
    kind: str = "ws", *, engine: dict[str, Any] | None = None, url: str = URL, **options: Any
) -> WebSocketClient | SocketClient:
    made = ClientEngine(ME, now=0.0, **(engine or {}))
    if kind == "ws":
        return WebSocketClient(made, url, now=0.0, **options)
    return SocketClient(made, TcpAddress("localhost", 8000), now=0.0, **options)


def stats(net: Network) -> dict[str, int]:
    """Of the server; all zero once nothing is left."""
    listener: Any = net.server
    return listener.stats()  # type: ignore[no-any-return]
