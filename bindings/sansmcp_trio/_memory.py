"""Both ends in this process: a client of an `App`, linked by bytes."""

from __future__ import annotations

from typing import Unpack

from sansmcp.app import App
from sansmcp.limits import SERVER_LIMITS, Limits
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.memory import Linked, open_memory
from sansmcp_shared.options import EngineOptions
from sansmcp_shared.pump import OnEvent, OnWire

from ._client import Client, Opening
from ._loop import TrioLoop
from ._questions import TrioCallbacks


def connect_memory(
    app: App,
    *,
    info: Implementation | None = None,
    threads: int = 0,
    server_limits: Limits = SERVER_LIMITS,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
    **options: Unpack[EngineOptions],
) -> Opening:
    """Connect to `app` in this process; bytes go both ways, as they would through pipes.

    Plain handlers run in trio's thread unless `threads` allows some. Nothing else than trio's clock
    is used, so that under a `trio.testing.MockClock` time is virtual. The rest is as for `connect`.
    """
    linked = Linked(app, info, threads, server_limits, on_event, on_wire, options)

    async def open_on(loop: TrioLoop) -> Client:
        return await open_memory(Client, TrioCallbacks, loop.as_asyncio, linked)

    return Opening(open_on)
