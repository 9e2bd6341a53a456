"""How a client comes to be."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from sansmcp.client import ClientEngine
from sansmcp.events import Event
from sansmcp.session.era import TransportKind
from sansmcp.stdio import Command, StdioClient
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.options import ConnectOptions
from sansmcp_shared.pump import OnEvent, OnWire, Pump, Transport
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
from ._loop import TrioLoop
from ._process import Child
from ._questions import TrioCallbacks

if TYPE_CHECKING:
    from sansmcp.http.connector import HttpConnector
    from sansmcp_shared.login import Login

Deliver = Callable[[Event], None]
Made = tuple[Transport, Callable[[Deliver], Pump]]
"""A transport, and what makes a pump for it."""


def connect(
    target: Command | Sequence[str] | str,
    *,
    info: Implementation | None = None,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
    **options: Unpack[ConnectOptions],
) -> Opening:
    """Connect to a server: ``async with connect("https://example.com/mcp") as client``.

    Everything is as for `sansmcp_asyncio.connect`; the context is a nursery, so it cannot be awaited
    instead. What ends the context is raised as it is, in no group. When a scope around it is cancelled,
    a child process is killed at once. What callbacks raise is logged.
    """
    kind = TransportKind.STREAM
    make: Callable[[TrioLoop, ClientEngine, float], Made]
    if isinstance(target, str) and target.lower().startswith((*WEBSOCKET, *SOCKET)):
        from sansmcp_shared.stream_target import check_stream

        websocket = target.lower().startswith(WEBSOCKET)
        common, own = sort_out_by(
            options,
            "a WebSocket" if websocket else "a socket",
            OF_WEBSOCKET if websocket else OF_SOCKET,
        )
        check_stream(target, own)
        make = _to_stream(target, own, on_wire)
    elif isinstance(target, str) and target.lower().startswith(("http://", "https://")):
        from sansmcp.http.url import parse_url

        kind = TransportKind.HTTP
        common, own = sort_out(options, "a URL", False)
        parse_url(target)
        make = _to_url(target, own, on_wire)
    else:
        common, own = sort_out(options, "a child process", True)
        make = _to_child(command_of(target, own), own, on_wire)

    async def open_on(loop: TrioLoop) -> Client:
        now, engine, callbacks = client_engine(loop.as_asyncio, info, common, TrioCallbacks, kind)
        core, pump = make(loop, engine, now)
        client = Client(
            engine,
            pump,
            on_event=on_event,
            callbacks=callbacks,
            login=_login(core, own) if "auth" in own else None,
        )
        await client.open(core.start)  # type: ignore[union-attr]  # clients have it
        return client

    return Opening(open_on)


def _login(core: Transport, own: Mapping[str, Any]) -> Login:
    from ._login import TrioLogin

    return TrioLogin.of(cast("HttpConnector", core), own)


def _to_child(
    command: Command, own: Mapping[str, Any], on_wire: OnWire | None
) -> Callable[[TrioLoop, ClientEngine, float], Made]:
    def make(loop: TrioLoop, engine: ClientEngine, now: float) -> Made:
        core = StdioClient(engine, command, now=now, restart=own.get("restart"), ladder=own.get("ladder"))
        return core, lambda deliver: Pump(
            core,
            loop.as_asyncio,
            deliver,
            on_wire=on_wire,
            spawn=lambda pump, op: Child(loop, pump, core, op, own.get("stderr")),
        )

    return make


def _to_url(
    url: str, own: Mapping[str, Any], on_wire: OnWire | None
) -> Callable[[TrioLoop, ClientEngine, float], Made]:
    def make(loop: TrioLoop, engine: ClientEngine, now: float) -> Made:
        from sansmcp_shared.http_target import http_connector

        from ._net import NetPump

        core = http_connector(engine, url, now, **own)
        return core, lambda deliver: NetPump(core, loop, deliver, on_wire=on_wire, tls=_tls(own))

    return make


def _to_stream(
    url: str, own: Mapping[str, Any], on_wire: OnWire | None
) -> Callable[[TrioLoop, ClientEngine, float], Made]:
    def make(loop: TrioLoop, engine: ClientEngine, now: float) -> Made:
        from sansmcp_shared.stream_target import stream_client

        from ._net import Socket

        core = stream_client(engine, url, now, **own)
        return core, lambda deliver: Pump(
            core,
            loop.as_asyncio,
            deliver,
            on_wire=on_wire,
            connect=lambda pump, op: Socket(loop, pump, core, op, _tls(own)),
        )

    return make


def _tls(own: Mapping[str, Any]) -> Callable[[], ssl.SSLContext]:
    from sansmcp_shared.network import default_tls

    context: ssl.SSLContext | None = own.get("ssl")
    return default_tls if context is None else lambda: context
