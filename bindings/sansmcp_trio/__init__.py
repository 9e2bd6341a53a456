"""sansmcp on trio: connect to a server, or be one.

    async with sansmcp_trio.connect("python server.py") as client:
        print(await client.call_tool("echo", {"text": "hi"}))

Needs trio beside sansmcp itself: ``pip install sansmcp[trio]``. Each name is loaded when it is first
used: a client does not wait for what a server is made of.
"""

from typing import TYPE_CHECKING

from sansmcp_shared.lazy import lazily

if TYPE_CHECKING:
    from sansmcp_shared.awaiting_login import log_in
    from sansmcp_shared.changes import Changes, ListenOptions
    from sansmcp_shared.events import Events
    from sansmcp_shared.http_server import HttpOptions
    from sansmcp_shared.options import (
        ConnectOptions,
        EngineOptions,
        HttpClientOptions,
        ListOptions,
        Options,
        StdioOptions,
        WebSocketOptions,
    )
    from sansmcp_shared.questions import QuestionOptions
    from sansmcp_shared.stream_server import SocketOptions, WebSocketServerOptions
    from sansmcp_shared.token_file import FileTokenStore
    from sansmcp_shared.verbs import Verbs

    from ._client import Client, Opening
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

if not TYPE_CHECKING:  # a type checker would believe every name
    __getattr__, __dir__ = lazily(
        globals(),
        {
            "._client": "Client Opening",
            "._connect": "connect",
            "._http": "HttpServing serve_http",
            "._many": "Connections connect_many",
            "._memory": "connect_memory",
            "._serve": "serve_tcp serve_unix serve_websocket tcp_serving unix_serving websocket_serving",
            "._serving": "SocketServing",
            "._stdio": "serve_stdio",
            "sansmcp_shared.awaiting_login": "log_in",
            "sansmcp_shared.changes": "Changes ListenOptions",
            "sansmcp_shared.events": "Events",
            "sansmcp_shared.http_server": "HttpOptions",
            "sansmcp_shared.options": (
                "ConnectOptions EngineOptions HttpClientOptions ListOptions Options StdioOptions "
                "WebSocketOptions"
            ),
            "sansmcp_shared.questions": "QuestionOptions",
            "sansmcp_shared.stream_server": "SocketOptions WebSocketServerOptions",
            "sansmcp_shared.token_file": "FileTokenStore",
            "sansmcp_shared.verbs": "Verbs",
        },
    )
