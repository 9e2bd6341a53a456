"""How a client comes to be."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from sansmcp.events import Event
from sansmcp.stdio import Command, StdioClient
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.options import ConnectOptions
from sansmcp_shared.pump import OnEvent, OnWire, Pump
from sansmcp_shared.targets import Core, Target, client_engine, target_of

from ._client import Client, Opening
from ._together import AsyncioCallbacks

if TYPE_CHECKING:
    from sansmcp.http.connector import HttpConnector
    from sansmcp_shared.login import Login


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
    to = target_of(target, options)

    async def start(loop: asyncio.AbstractEventLoop) -> Client:
        now, engine, callbacks = client_engine(loop, info, to.common, AsyncioCallbacks, to.kind)
        core = to.core(engine, now)
        client = Client(
            engine,
            lambda deliver: _pump(core, to, loop, deliver, on_wire),
            on_event=on_event,
            callbacks=callbacks,
            login=_login(core, to.own) if "auth" in to.own else None,
        )
        await client.open(core.start)
        return client

    return Opening(start)


def _pump(
    core: Core,
    to: Target,
    loop: asyncio.AbstractEventLoop,
    deliver: Callable[[Event], None],
    on_wire: OnWire | None,
) -> Pump:
    if isinstance(core, StdioClient):
        from ._process import Child

        stderr = to.own.get("stderr")
        return Pump(
            core, loop, deliver, on_wire=on_wire, spawn=lambda pump, op: Child(pump, core, op, stderr)
        )
    from ._net import net_pump

    return net_pump(core, loop, deliver, on_wire, to.tls)


def _login(core: Core, own: Mapping[str, Any]) -> Login:
    from ._login import AsyncioLogin

    return AsyncioLogin.of(cast("HttpConnector", core), own)
