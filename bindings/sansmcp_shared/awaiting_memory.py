"""Both ends in this process: a client of an `App`, linked by bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from sansmcp.app import App
from sansmcp.limits import Limits
from sansmcp.line_client import LineClient
from sansmcp.types.lifecycle import Implementation

from .awaiting_client import AwaitingClient
from .awaiting_questions import AwaitingCallbacks
from .handlers import Serving
from .options import EngineOptions
from .pump import Channel, OnEvent, OnWire, Pump
from .targets import client_engine

if TYPE_CHECKING:
    import asyncio

_CONN = 1
C = TypeVar("C", bound=AwaitingClient)


async def open_memory(
    kind: type[C],
    callbacks_kind: type[AwaitingCallbacks],
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
    now, engine, callbacks = client_engine(loop, info, options, callbacks_kind)
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
