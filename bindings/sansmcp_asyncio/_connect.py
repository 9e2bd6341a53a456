"""How a client comes to be: of a child process here, of a server over HTTP in `_connect_http`."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Unpack, cast

from sansmcp.session.era import TransportKind
from sansmcp.stdio import Command, StdioClient
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.options import ConnectOptions
from sansmcp_shared.pump import OnEvent, OnWire, Pump
from sansmcp_shared.targets import (
    OF_SOCKET,
    OF_WEBSOCKET,
    SOCKET,
    WEBSOCKET,
    client_engine,
    command_of,
    sort_out,
    sort_out_by,
)

from ._client import Client, Opening
from ._process import Child
from ._together import AsyncioCallbacks


def connect(
    target: Command | Sequence[str] | str,
    *,
    info: Implementation | None = None,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
    **options: Unpack[ConnectOptions],
) -> Opening:
    """Connect to a server: ``async with connect("https://example.com/mcp") as client``.

    `target` is a URL (of ``http:``, ``https:``, ``ws:``, ``wss:``; for a socket with a line per message
    ``tcp://host:port``, ``tls://host:port``, ``unix:///path``), or how the server is started: a command
    line (split as a shell would, never given to one), its words, or a `Command`, which is taken as it is.
    A child runs in a process group of its own.

    `on_event` sees every event and `on_wire` every byte, as they come, of all connections. What they
    raise goes to the loop's exception handler. `info` is who this client says it is. The options are
    in `EngineOptions`; for a child process there are those of `StdioOptions` too, over HTTP those of
    `HttpClientOptions`, over a WebSocket those of `WebSocketOptions`. Raises LocalProtocolError for those
    of another kind, and a target that is none.

    Entering raises why there is no connection: `ConnectTimeout`, `NoCommonVersion`, `NetworkFailure`,
    `ConnectionEnded` with exit code and last words, or another `SansmcpError`. Nothing is left behind
    by then.
    """
    if isinstance(target, str) and target.lower().startswith((*WEBSOCKET, *SOCKET)):
        return _to_stream(target, info, on_event, on_wire, options)
    url = target if isinstance(target, str) and target.lower().startswith(("http://", "https://")) else None
    common, own = sort_out(options, "a child process" if url is None else "a URL", url is None)

    async def start(loop: asyncio.AbstractEventLoop) -> Client:
        now, engine, callbacks = client_engine(loop, info, common, AsyncioCallbacks)
        core = StdioClient(engine, command, now=now, restart=own.get("restart"), ladder=own.get("ladder"))
        client = Client(
            engine,
            lambda deliver: Pump(
                core,
                loop,
                deliver,
                on_wire=on_wire,
                spawn=lambda pump, op: Child(pump, core, op, own.get("stderr")),
            ),
            on_event=on_event,
            callbacks=callbacks,
        )
        await client.open(core.start)
        return client

    async def reach(loop: asyncio.AbstractEventLoop) -> Client:
        from ._connect_http import open_http

        now, engine, callbacks = client_engine(loop, info, common, AsyncioCallbacks, TransportKind.HTTP)
        return await open_http(
            loop, engine, now, cast(str, url), own, on_event=on_event, on_wire=on_wire, callbacks=callbacks
        )

    if url is not None:
        from sansmcp.http.url import parse_url

        parse_url(url)
        return Opening(reach)
    command = command_of(target, own)
    return Opening(start)


def _to_stream(
    url: str,
    info: Implementation | None,
    on_event: OnEvent | None,
    on_wire: OnWire | None,
    options: ConnectOptions,
) -> Opening:
    from sansmcp_shared.stream_target import check_stream

    from ._connect_streams import open_stream

    websocket = url.lower().startswith(WEBSOCKET)
    kind = "a WebSocket" if websocket else "a socket"
    common, own = sort_out_by(options, kind, OF_WEBSOCKET if websocket else OF_SOCKET)
    check_stream(url, own)

    async def reach(loop: asyncio.AbstractEventLoop) -> Client:
        now, engine, callbacks = client_engine(loop, info, common, AsyncioCallbacks)
        return await open_stream(
            loop, engine, now, url, own, on_event=on_event, on_wire=on_wire, callbacks=callbacks
        )

    return Opening(reach)
