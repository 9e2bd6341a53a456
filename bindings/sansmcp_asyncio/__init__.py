"""sansmcp on asyncio: connect to a server, or be one.

    async with sansmcp_asyncio.connect("python server.py") as client:
        print(await client.call_tool("echo", {"text": "hi"}))

Needs nothing but the standard library beside sansmcp itself. Each name is loaded when it is first
used: a client does not wait for what a server is made of.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ._authorize import log_in
    from ._client import Client, Opening
    from ._connect import connect
    from ._events import Events
    from ._http import HttpOptions, HttpServing, serve_http
    from ._jwt import jwt_verifier
    from ._listen import Changes, ListenOptions
    from ._many import Connections, connect_many
    from ._memory import connect_memory
    from ._options import (
        ConnectOptions,
        EngineOptions,
        HttpClientOptions,
        ListOptions,
        Options,
        StdioOptions,
        WebSocketOptions,
    )
    from ._questions import QuestionOptions
    from ._serve import (
        serve_tcp,
        serve_unix,
        serve_websocket,
        tcp_serving,
        unix_serving,
        websocket_serving,
    )
    from ._serving import SocketServing
    from ._stdio import serve_stdio
    from ._streams import SocketOptions, WebSocketServerOptions
    from ._token_file import FileTokenStore
    from ._verbs import Verbs

__all__ = [
    "Changes",
    "Client",
    "ConnectOptions",
    "Connections",
    "EngineOptions",
    "Events",
    "FileTokenStore",
    "HttpClientOptions",
    "HttpOptions",
    "HttpServing",
    "ListOptions",
    "ListenOptions",
    "Opening",
    "Options",
    "QuestionOptions",
    "SocketOptions",
    "SocketServing",
    "StdioOptions",
    "Verbs",
    "WebSocketOptions",
    "WebSocketServerOptions",
    "connect",
    "connect_many",
    "connect_memory",
    "jwt_verifier",
    "log_in",
    "serve_http",
    "serve_stdio",
    "serve_tcp",
    "serve_unix",
    "serve_websocket",
    "tcp_serving",
    "unix_serving",
    "websocket_serving",
]

_HOMES: Final = {
    "_authorize": ("log_in",),
    "_token_file": ("FileTokenStore",),
    "_client": ("Client", "Opening"),
    "_connect": ("connect",),
    "_events": ("Events",),
    "_http": ("HttpOptions", "HttpServing", "serve_http"),
    "_jwt": ("jwt_verifier",),
    "_listen": ("Changes", "ListenOptions"),
    "_many": ("Connections", "connect_many"),
    "_memory": ("connect_memory",),
    "_options": (
        *("ConnectOptions", "EngineOptions", "HttpClientOptions", "ListOptions", "Options", "StdioOptions"),
        "WebSocketOptions",
    ),
    "_questions": ("QuestionOptions",),
    "_serve": (
        *("serve_tcp", "serve_unix", "serve_websocket", "tcp_serving", "unix_serving", "websocket_serving"),
    ),
    "_serving": ("SocketServing",),
    "_stdio": ("serve_stdio",),
    "_streams": ("SocketOptions", "WebSocketServerOptions"),
    "_verbs": ("Verbs",),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would believe every name

    def __getattr__(name: str) -> Any:
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
