"""Both ends in this process: a client of an `App`, linked by bytes."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, TypeVar

import attrs

from sansmcp.app import App
from sansmcp.limits import Limits
from sansmcp.line_client import LineClient
from sansmcp.types.lifecycle import Implementation

from .client import BaseClient
from .handlers import Serving
from .options import EngineOptions
from .pump import Channel, OnEvent, OnWire, Pump
from .questions import Callbacks
from .targets import client_engine

if TYPE_CHECKING:
    import asyncio

    from .awaiting_client import AwaitingClient
    from .awaiting_questions import AwaitingCallbacks

CONN = 1
B = TypeVar("B", bound=BaseClient)
C = TypeVar("C", bound="AwaitingClient")


@attrs.frozen(eq=False)
class Linked:
    """What `connect_memory` of every binding is given."""

    app: App
    info: Implementation | None
    threads: int
    server_limits: Limits
    on_event: OnEvent | None
    on_wire: OnWire | None
    options: EngineOptions


def memory_client(
    kind: type[B],
    callbacks_kind: type[Callbacks],
    serving_kind: type[Serving],
    link: type[Link],
    loop: asyncio.AbstractEventLoop,
    linked: Linked,
) -> tuple[B, LineClient]:
    """A client of these kinds that is linked to the app, and its transport, which is still to be opened."""
    now, engine, callbacks = client_engine(loop, linked.info, linked.options, callbacks_kind)
    core = LineClient(engine, now=now)
    client = kind(
        engine,
        lambda deliver: serving_kind.pump_kind(core, loop, deliver, on_wire=linked.on_wire),
        on_event=linked.on_event,
        callbacks=callbacks,
    )
    serving = serving_kind(
        linked.app,
        loop,
        threads=linked.threads,
        limits=linked.server_limits,
        codec=linked.options.get("codec"),
        strict=linked.options.get("strict", False),
    )
    link(client._pump, serving)
    return client, core


async def open_memory(
    kind: type[C],
    callbacks_kind: type[AwaitingCallbacks],
    loop: asyncio.AbstractEventLoop,
    linked: Linked,
) -> C:
    """A client of these kinds, connected to the app."""
    client, core = memory_client(kind, callbacks_kind, Serving, _AwaitingLink, loop, linked)
    await client.open(core.opened, CONN)
    return client


class Link(Channel):
    """The client's end of a connection without a pipe. The server's end is `_Answers`."""

    def __init__(self, pump: Pump, serving: Serving) -> None:
        self._pump = pump
        self._serving = serving
        self._closed = False
        pump.channels[CONN] = self
        serving.pump.channels[CONN] = _Answers(serving.pump, pump)
        serving.pump.input(serving.transport.accepted, CONN)

    def write(self, data: bytes) -> None:
        # In a later turn of the loop: a task that calls again and again leaves others their turn, and an
        # end that is being driven is not driven once more.
        self._pump.loop.call_soon(self._serving.pump.receive, CONN, data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._end()

    @abstractmethod
    def _end(self) -> None:
        """End the server, then the connection."""


class _AwaitingLink(Link):
    def _end(self) -> None:
        self._ending = self._pump.loop.create_task(self._stop())

    async def _stop(self) -> None:
        await self._serving.stop()
        self._pump.lost(CONN)


class _Answers(Channel):
    def __init__(self, pump: Pump, client: Pump) -> None:
        self._pump = pump
        self._client = client

    def write(self, data: bytes) -> None:
        self._client.receive(CONN, data)

    def close(self) -> None:
        self._pump.lost(CONN)
        if self._client.failure is None:
            self._client.input(self._client.transport.receive_eof, CONN)
