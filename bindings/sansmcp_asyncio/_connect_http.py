"""How a client comes to be whose server speaks HTTP."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sansmcp.client import ClientEngine
from sansmcp.http.connector import HttpConnector
from sansmcp_shared.http_target import http_connector
from sansmcp_shared.network import default_tls
from sansmcp_shared.pump import OnEvent, OnWire
from sansmcp_shared.questions import Callbacks

from ._client import Client
from ._net import NetPump

if TYPE_CHECKING:
    from sansmcp_shared.login import Login


async def open_http(
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
    """Connect to the server at `url`. `options` are those of `HttpClientOptions`."""
    core = http_connector(engine, url, now, **options)
    context: ssl.SSLContext | None = options.get("ssl")
    tls = default_tls if context is None else lambda: context
    client = Client(
        engine,
        lambda deliver: NetPump(core, loop, deliver, on_wire=on_wire, tls=tls),
        on_event=on_event,
        callbacks=callbacks,
        login=None if options.get("auth") is None else _login(core, options),
    )
    await client.open(core.start)
    return client


def _login(core: HttpConnector, options: Mapping[str, Any]) -> Login:
    from ._catcher import AsyncioLogin

    return AsyncioLogin.of(core, options)
