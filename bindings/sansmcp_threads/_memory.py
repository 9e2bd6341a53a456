"""Both ends in this process: a client of an `App`, linked by bytes."""

from __future__ import annotations

from typing import Unpack

from sansmcp.app import App
from sansmcp.limits import SERVER_LIMITS, Limits
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.memory import CONN, Link, Linked, memory_client
from sansmcp_shared.options import EngineOptions
from sansmcp_shared.pump import OnEvent, OnWire

from ._client import Client
from ._loop import Loop
from ._questions import ThreadCallbacks
from ._server import ThreadServing, check_threads


def connect_memory(
    app: App,
    *,
    info: Implementation | None = None,
    threads: int = 16,
    server_limits: Limits = SERVER_LIMITS,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
    **options: Unpack[EngineOptions],
) -> Client:
    """Connect to `app` in this process; bytes go both ways, as they would through pipes.

    Handlers run in up to `threads` threads, as for `serve_stdio`. The rest is as for `connect`.
    """
    check_threads(threads)
    linked = Linked(app, info, threads, server_limits, on_event, on_wire, options)
    with Loop() as loop:
        client, core = memory_client(Client, ThreadCallbacks, ThreadServing, _Link, loop.as_asyncio, linked)
        return client.open(core.opened, CONN)


class _Link(Link):
    def _end(self) -> None:
        self._serving.end()
        self._pump.loop.call_soon(self._pump.lost, CONN)
