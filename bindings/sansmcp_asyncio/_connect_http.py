"""How a client comes to be whose server speaks HTTP."""

from __future__ import annotations

import asyncio
import os
import ssl
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, Literal

from sansmcp.client import ClientEngine
from sansmcp.http.client import HttpClient
from sansmcp.http.connector import HttpConnector
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.pool import DEFAULT_POOL, PoolPolicy
from sansmcp.http.proxy import Proxy, parse_proxy, proxy_for
from sansmcp.http.recovery import Recovery
from sansmcp.http.resume import ReconnectPolicy
from sansmcp.http.url import parse_url

from ._client import Client
from ._net import NetPump
from ._pump import OnEvent, OnWire
from ._questions import Callbacks


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
    core = _connector(engine, url, now, **options)
    context: ssl.SSLContext | None = options.get("ssl")
    client = Client(
        engine,
        lambda deliver: NetPump(
            core, loop, deliver, on_wire=on_wire, tls=_default_tls if context is None else lambda: context
        ),
        on_event=on_event,
        callbacks=callbacks,
    )
    await client.open(core.start)
    return client


def _connector(
    engine: ClientEngine,
    url: str,
    now: float,
    *,
    headers: Mapping[str, str] | Iterable[tuple[str, str]] = (),
    ssl: object = None,
    proxy: str | Literal[False] | None = None,
    pool: PoolPolicy | None = None,
    reconnect: ReconnectPolicy | None = None,
    recovery: Recovery | None = None,
    old_sse: OldSseUse = OldSseUse.AUTO,
    listen: bool = True,
) -> HttpConnector:
    client = HttpClient(
        engine,
        url,
        now=now,
        headers=headers.items() if isinstance(headers, Mapping) else headers,
        reconnect=reconnect,
        recovery=recovery,
        old_sse=old_sse,
        listen=listen,
    )
    return HttpConnector(client, now=now, pool=pool or DEFAULT_POOL, proxy=_proxy(proxy, url))


def _proxy(given: str | Literal[False] | None, url: str) -> Proxy | None:
    if given is None:
        return proxy_for(parse_url(url), os.environ)
    return parse_proxy(given) if given else None


@cache
def _default_tls() -> ssl.SSLContext:
    """Made once: to read the system's certificates takes long."""
    return ssl.create_default_context()
