"""Both ends in this process: a client of an `App`, linked by bytes."""

from __future__ import annotations

import asyncio
from typing import TypeVar, Unpack

from sansmcp.app import App
from sansmcp.limits import SERVER_LIMITS, Limits
from sansmcp.line_client import LineClient
from sansmcp.types.lifecycle import Implementation

from ._client import Client, Opening
from ._options import EngineOptions
from ._pump import Channel, OnEvent, OnWire, Pump
from ._server import Serving
from ._target import client_engine

_CONN = 1
C = TypeVar("C", bound=Client)


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

    Plain handlers run in the loop itself unless `threads` allows some. The rest is as for `connect`.
    """

    async def open_on(loop: asyncio.AbstractEventLoop) -> Client:
        return await open_memory(Client, loop, app, info, threads, server_limits, on_event, on_wire, options)

    return Opening(open_on)


async def open_memory(
    kind: type[C],
    loop: asyncio.AbstractEventLoop,
    app: App,
    info: Implementation | None,
    threads: int,
    server_limits: Limits,
    on_event: OnEvent | None,
    on_wire: OnWire | None,
    options: EngineOptions,
) -> C:
    """A client of that kind, connected to `app`."""
    now, engine, callbacks = client_engine(loop, info, options)
    core = LineClient(engine, now=now)
    client = kind(
        engine,
        lambda deliver: Pump(core, loop, deliver, on_wire=on_wire),
        on_event=on_event,
        callbacks=callbacks,
    )
    serving = Serving(
        app,
        loop,
        threads=threads,
        limits=server_limits,
        codec=options.get("codec"),
        strict=options.get("strict", False),
    )
    _Memory(client._pump, serving)
    await client.open(core.opened, _CONN)
    return client


class _Memory(Channel):
    """The client's end of a connection without a pipe. The server's end is `_Answers`."""

    def __init__(self, pump: Pump, serving: Serving) -> None:
        self._pump = pump
        self._serving = serving
        self._ending: asyncio.Task[None] | None = None
        pump.channels[_CONN] = self
        serving.pump.channels[_CONN] = _Answers(serving.pump, pump)
        serving.pump.input(serving.transport.accepted, _CONN)

    def write(self, data: bytes) -> None:
        # In a later turn of the loop: a task that calls again and again leaves others their turn.
        self._pump.loop.call_soon(self._serving.pump.receive, _CONN, data)

    def close(self) -> None:
        if self._ending is None:
            self._ending = self._pump.loop.create_task(self._end())

    async def _end(self) -> None:
        await self._serving.stop()
        self._pump.lost(_CONN)


class _Answers(Channel):
    def __init__(self, pump: Pump, client: Pump) -> None:
        self._pump = pump
        self._client = client

    def write(self, data: bytes) -> None:
        self._client.receive(_CONN, data)

    def close(self) -> None:
        self._pump.lost(_CONN)
        self._client.input(self._client.transport.receive_eof, _CONN)
