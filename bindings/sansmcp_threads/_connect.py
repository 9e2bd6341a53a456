"""How a client comes to be."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack, cast

from sansmcp.stdio import Command, StdioClient
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.options import ConnectOptions
from sansmcp_shared.pump import OnEvent, OnWire
from sansmcp_shared.targets import SOCKET, WEBSOCKET, client_engine, command_of, sort_out

from ._client import Client
from ._loop import Loop
from ._process import Child
from ._pump import ThreadPump
from ._questions import ThreadCallbacks


def connect(
    target: Command | Sequence[str] | str,
    *,
    info: Implementation | None = None,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
    **options: Unpack[ConnectOptions],
) -> Client:
    """Connect to a server: ``with connect("https://example.com/mcp") as client``.

    Everything is as for `sansmcp_asyncio.connect`, but that it blocks until there is a connection and
    that callbacks are functions. They are called by the threads that wait, one at a time, and should
    not take long; those that answer questions have a thread of their own. What they raise is logged.
    Without a context, call `Client.close`.
    """
    if isinstance(target, str) and target.lower().startswith((*WEBSOCKET, *SOCKET)):
        from ._connect_streams import open_stream

        return open_stream(target, info, options, on_event=on_event, on_wire=on_wire)
    url = target if isinstance(target, str) and target.lower().startswith(("http://", "https://")) else None
    common, own = sort_out(options, "a child process" if url is None else "a URL", url is None)
    if url is not None:
        from sansmcp.http.url import parse_url

        from ._connect_http import open_http

        parse_url(url)
        return open_http(url, info, common, own, on_event=on_event, on_wire=on_wire)
    command = command_of(target, own)
    with Loop() as loop:
        now, engine, callbacks = client_engine(loop.as_asyncio, info, common, ThreadCallbacks)
        core = StdioClient(engine, command, now=now, restart=own.get("restart"), ladder=own.get("ladder"))
        client = Client(
            engine,
            lambda deliver: ThreadPump(
                core,
                loop.as_asyncio,
                deliver,
                on_wire=on_wire,
                spawn=lambda pump, op: Child(cast(ThreadPump, pump), core, op, own.get("stderr")),
            ),
            on_event=on_event,
            callbacks=callbacks,
        )
        return client.open(core.start)
