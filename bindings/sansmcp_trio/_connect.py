"""How a client comes to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from sansmcp.events import Event
from sansmcp.stdio import Command, StdioClient
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.options import ConnectOptions
from sansmcp_shared.pump import OnEvent, OnWire, Pump
from sansmcp_shared.targets import Core, Target, client_engine, target_of

from ._client import Client, Opening
from ._loop import TrioLoop
from ._questions import TrioCallbacks

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

    Everything is as for `sansmcp_asyncio.connect`; the context is a nursery, so it cannot be awaited
    instead. What ends the context is raised as it is, in no group. When a scope around it is cancelled,
    a child process is killed at once. What callbacks raise is logged.
    """
    to = target_of(target, options)

    async def open_on(loop: TrioLoop) -> Client:
        now, engine, callbacks = client_engine(loop.as_asyncio, info, to.common, TrioCallbacks, to.kind)
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

    return Opening(open_on)


def _pump(
    core: Core, to: Target, loop: TrioLoop, deliver: Callable[[Event], None], on_wire: OnWire | None
) -> Pump:
    if isinstance(core, StdioClient):
        from ._process import Child

        return Pump(
            core,
            loop.as_asyncio,
            deliver,
            on_wire=on_wire,
            spawn=lambda pump, op: Child(loop, pump, core, op, to.own.get("stderr")),
        )
    from ._net import net_pump

    return net_pump(core, loop, deliver, on_wire, to.tls)


def _login(core: Core, own: Mapping[str, Any]) -> Login:
    from ._login import TrioLogin

    return TrioLogin.of(cast("HttpConnector", core), own)
