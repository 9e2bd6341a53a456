"""sansmcp without an event loop: connect to a server, or be one, in plain threads.

    with sansmcp_threads.connect("python server.py") as client:
        print(client.call_tool("echo", {"text": "hi"}))

Needs nothing but the standard library beside sansmcp itself. Each name is loaded when it is first
used: a client does not wait for what a server is made of.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from sansmcp_asyncio import (
        ConnectOptions,
        EngineOptions,
        FileTokenStore,
        HttpClientOptions,
        HttpOptions,
        ListenOptions,
        ListOptions,
        Options,
        QuestionOptions,
        SocketOptions,
        StdioOptions,
        WebSocketOptions,
        WebSocketServerOptions,
    )

    from ._authorize import log_in
    from ._client import Client
    from ._connect import connect
    from ._http import HttpServing, serve_http
    from ._many import Connections, connect_many
    from ._memory import connect_memory
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
    from ._verbs import Verbs
    from ._waits import Changes, Events

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
    "._authorize": ("log_in",),
    "._client": ("Client",),
    "._connect": ("connect",),
    "._http": ("HttpServing", "serve_http"),
    "._many": ("Connections", "connect_many"),
    "._memory": ("connect_memory",),
    "._serve": (
        *("serve_tcp", "serve_unix", "serve_websocket", "tcp_serving", "unix_serving", "websocket_serving"),
    ),
    "._serving": ("SocketServing",),
    "._stdio": ("serve_stdio",),
    "._verbs": ("Verbs",),
    "._waits": ("Changes", "Events"),
    "sansmcp_asyncio": (
        *("ConnectOptions", "EngineOptions", "HttpClientOptions", "HttpOptions", "ListOptions"),
        *("ListenOptions", "Options", "QuestionOptions", "SocketOptions", "StdioOptions", "WebSocketOptions"),
        *("FileTokenStore", "WebSocketServerOptions"),
    ),
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names}

if not TYPE_CHECKING:  # a type checker would believe every name

    def __getattr__(name: str) -> Any:
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(module, __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
