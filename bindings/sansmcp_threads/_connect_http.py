"""How a client comes to be whose server speaks HTTP."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from sansmcp.session.era import TransportKind
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.http_target import http_connector
from sansmcp_shared.network import default_tls
from sansmcp_shared.options import EngineOptions
from sansmcp_shared.pump import OnEvent, OnWire
from sansmcp_shared.targets import client_engine

from ._client import Client
from ._loop import Loop
from ._net import NetPump
from ._questions import ThreadCallbacks

if TYPE_CHECKING:
    from sansmcp.http.connector import HttpConnector
    from sansmcp_shared.login import Login


def open_http(
    url: str,
    info: Implementation | None,
    common: EngineOptions,
    own: Mapping[str, Any],
    *,
    on_event: OnEvent | None,
    on_wire: OnWire | None,
) -> Client:
    """Connect to the server at `url`. `own` are the options of `HttpClientOptions`."""
    with Loop() as loop:
        now, engine, callbacks = client_engine(
            loop.as_asyncio, info, common, ThreadCallbacks, TransportKind.HTTP
        )
        core = http_connector(engine, url, now, **own)
        context: ssl.SSLContext | None = own.get("ssl")
        client = Client(
            engine,
            lambda deliver: NetPump(
                core, loop, deliver, on_wire=on_wire, tls=default_tls if context is None else lambda: context
            ),
            on_event=on_event,
            callbacks=callbacks,
            login=_login(core, own) if "auth" in own else None,
        )
        return client.open(core.start)


def _login(core: HttpConnector, own: Mapping[str, Any]) -> Login:
    from ._login import ThreadLogin

    return ThreadLogin.of(core, own)
