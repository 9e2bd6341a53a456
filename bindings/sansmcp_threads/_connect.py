"""How a client comes to be."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack, cast

from sansmcp.events import Event
from sansmcp.stdio import Command, StdioClient
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.options import ConnectOptions
from sansmcp_shared.pump import OnEvent, OnWire
from sansmcp_shared.targets import Core, Target, client_engine, target_of

from ._client import Client
from ._loop import Loop
from ._pump import ThreadPump
from ._questions import ThreadCallbacks

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
) -> Client:
    """Connect to a server: ``with connect("https://example.com/mcp") as client``.

    Everything is as for `sansmcp_asyncio.connect`, but that it blocks until there is a connection and
    that callbacks are functions. They are called by the threads that wait, one at a time, and should
    not take long; those that answer questions have a thread of their own. What they raise is logged.
    Without a context, call `Client.close`.
    """
    to = target_of(target, options)
    with Loop() as loop:
        now, engine, callbacks = client_engine(loop.as_asyncio, info, to.common, ThreadCallbacks, to.kind)
        core = to.core(engine, now)
        client = Client(
            engine,
            lambda deliver: _pump(core, to, loop, deliver, on_wire),
            on_event=on_event,
            callbacks=callbacks,
            login=_login(core, to.own) if "auth" in to.own else None,
        )
        return client.open(core.start)


def _pump(
    core: Core, to: Target, loop: Loop, deliver: Callable[[Event], None], on_wire: OnWire | None
) -> ThreadPump:
    if isinstance(core, StdioClient):
        from ._process import Child

        return ThreadPump(
            core,
            loop.as_asyncio,
            deliver,
            on_wire=on_wire,
            spawn=lambda pump, op: Child(cast(ThreadPump, pump), core, op, to.own.get("stderr")),
        )
    from ._net import net_pump

    return net_pump(core, loop, deliver, on_wire, to.tls)


def _login(core: Core, own: Mapping[str, Any]) -> Login:
    from ._login import ThreadLogin

    return ThreadLogin.of(cast("HttpConnector", core), own)
