"""How a client comes to be whose server is at a WebSocket or a socket."""

from __future__ import annotations

import ssl
from typing import cast

from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.network import default_tls
from sansmcp_shared.options import ConnectOptions
from sansmcp_shared.pump import OnEvent, OnWire
from sansmcp_shared.stream_target import check_stream, stream_client
from sansmcp_shared.targets import OF_SOCKET, OF_WEBSOCKET, WEBSOCKET, client_engine, sort_out_by

from ._client import Client
from ._loop import Loop
from ._net import Socket
from ._pump import ThreadPump
from ._questions import ThreadCallbacks


def open_stream(
    url: str,
    info: Implementation | None,
    options: ConnectOptions,
    *,
    on_event: OnEvent | None,
    on_wire: OnWire | None,
) -> Client:
    """Connect to the server at `url`."""
    websocket = url.lower().startswith(WEBSOCKET)
    kind = "a WebSocket" if websocket else "a socket"
    common, own = sort_out_by(options, kind, OF_WEBSOCKET if websocket else OF_SOCKET)
    check_stream(url, own)
    with Loop() as loop:
        now, engine, callbacks = client_engine(loop.as_asyncio, info, common, ThreadCallbacks)
        core = stream_client(engine, url, now, **own)
        context: ssl.SSLContext | None = own.get("ssl")
        tls = default_tls if context is None else lambda: context
        client = Client(
            engine,
            lambda deliver: ThreadPump(
                core,
                loop.as_asyncio,
                deliver,
                on_wire=on_wire,
                connect=lambda pump, op: Socket(cast(ThreadPump, pump), core, op, tls),
            ),
            on_event=on_event,
            callbacks=callbacks,
        )
        return client.open(core.start)
