"""sansmcp on asyncio: connect to a server, or be one.

    async with sansmcp_asyncio.connect("python server.py") as client:
        print(await client.call_tool("echo", {"text": "hi"}))

Needs nothing but the standard library beside sansmcp itself.
"""

from ._client import Client, Events, Opening
from ._connect import EngineOptions, connect, connect_memory
from ._http import HttpOptions, HttpServing, serve_http
from ._stdio import serve_stdio
from ._verbs import ListOptions, Options, Verbs

__all__ = [
    "Client",
    "EngineOptions",
    "Events",
    "HttpOptions",
    "HttpServing",
    "ListOptions",
    "Opening",
    "Options",
    "Verbs",
    "connect",
    "connect_memory",
    "serve_http",
    "serve_stdio",
]
