"""How a client comes to be whose server is at a WebSocket or a socket."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any

from sansmcp.client import ClientEngine
from sansmcp_shared.network import default_tls
from sansmcp_shared.pump import OnEvent, OnWire, Pump
from sansmcp_shared.questions import Callbacks
from sansmcp_shared.stream_target import stream_client

from ._client import Client
from ._net import Socket


async def open_stream(
    loop: asyncio.AbstractEventLoop,
    engine: ClientEngine,
    now: float,
    url: str,
    options: Mapping[str, Any],
    *,
    on_event: OnEvent | None,
    on_wire: OnWire | None,
    callbacks: Callbacks,
) -> Client:
    """Connect to the server at `url`. `options` are those of its kind."""
    core = stream_client(engine, url, now, **options)
    context: ssl.SSLContext | None = options.get("ssl")
    tls = default_tls if context is None else lambda: context
    client = Client(
        engine,
        lambda deliver: Pump(
            core, loop, deliver, on_wire=on_wire, connect=lambda pump, op: Socket(pump, core, op, tls)
        ),
        on_event=on_event,
        callbacks=callbacks,
    )
    await client.open(core.start)
    return client
