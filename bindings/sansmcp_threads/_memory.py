"""Both ends in this process: a client of an `App`, linked by bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Unpack

from sansmcp.app import App
from sansmcp.events import Event
from sansmcp.limits import SERVER_LIMITS, Limits
from sansmcp.line_client import LineClient
from sansmcp.types.lifecycle import Implementation
from sansmcp_shared.options import EngineOptions
from sansmcp_shared.pump import Channel, OnEvent, OnWire
from sansmcp_shared.targets import client_engine

from ._client import Client
from ._loop import Loop
from ._pump import ThreadPump
from ._questions import ThreadCallbacks
from ._server import ThreadServing, check_threads

_CONN = 1


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
    with Loop() as loop:
        now, engine, callbacks = client_engine(loop.as_asyncio, info, options, ThreadCallbacks)
        core = LineClient(engine, now=now)
        pumps: list[ThreadPump] = []

        def pump(deliver: Callable[[Event], None]) -> ThreadPump:
            made = ThreadPump(core, loop.as_asyncio, deliver, on_wire=on_wire)
            pumps.append(made)
            return made

        client = Client(engine, pump, on_event=on_event, callbacks=callbacks)
        serving = ThreadServing(
            app,
            loop.as_asyncio,
            threads=threads,
            limits=server_limits,
            codec=options.get("codec"),
            strict=options.get("strict", False),
        )
        _Link(pumps[0], serving)
        return client.open(core.opened, _CONN)


class _Link(Channel):
    """The client's end of a connection without a pipe. The server's end is `_Answers`."""

    def __init__(self, pump: ThreadPump, serving: ThreadServing) -> None:
        self._pump = pump
        self._serving = serving
        self._closed = False
        pump.channels[_CONN] = self
        serving.pump.channels[_CONN] = _Answers(serving, pump)
        serving.pump.input(serving.transport.accepted, _CONN)

    def write(self, data: bytes) -> None:
        # In a later turn: an end that is being driven is not driven once more.
        self._pump.threads.call_soon(self._serving.pump.receive, _CONN, data)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._serving.end()
            self._pump.threads.call_soon(self._pump.lost, _CONN)


class _Answers(Channel):
    def __init__(self, serving: ThreadServing, client: ThreadPump) -> None:
        self._pump = serving.pump
        self._client = client

    def write(self, data: bytes) -> None:
        self._client.receive(_CONN, data)

    def close(self) -> None:
        self._pump.lost(_CONN)
        if self._client.failure is None:
            self._client.input(self._client.transport.receive_eof, _CONN)
