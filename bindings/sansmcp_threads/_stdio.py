"""Serves an `App` on the standard streams of this process, which it has for itself meanwhile."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import cast

from sansmcp.app import App
from sansmcp.limits import SERVER_LIMITS, Limits, Timeouts
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.wire.jsoncodec import JsonCodec
from sansmcp_shared.pump import Channel, OnEvent, OnWire
from sansmcp_shared.standard_streams import standard_streams

from ._loop import Loop, Signal
from ._pipes import reader, writer
from ._server import ThreadServing, check_threads

_CONN = 1


def serve_stdio(
    app: App,
    *,
    threads: int = 16,
    limits: Limits = SERVER_LIMITS,
    timeouts: Timeouts | None = None,
    revisions: Sequence[Revision] = ALL_REVISIONS,
    codec: JsonCodec | None = None,
    strict: bool = False,
    grace: float = 10.0,
    on_event: OnEvent | None = None,
    on_wire: OnWire | None = None,
) -> None:
    """Serve `app` on standard input and output; return when the client is done and was answered.

    Handlers run in up to `threads` threads; requests past that wait for one to be free. Those that
    are coroutine functions can await answers of the client and nothing else. Everything else is as
    for `sansmcp_asyncio.serve_stdio`. Ctrl-C ends it at once.
    """
    check_threads(threads)
    loop = Loop()
    try:
        serving = ThreadServing(
            app,
            loop.as_asyncio,
            threads=threads,
            grace=grace,
            limits=limits,
            timeouts=timeouts,
            revisions=revisions,
            codec=codec,
            strict=strict,
            on_event=on_event,
            on_wire=on_wire,
        )
        with standard_streams() as (source, sink):
            try:
                with loop.lock:
                    _Streams(loop, serving, source, sink)
                loop.wait(cast(Signal, serving.pump.gone))
            finally:
                serving.stop_now()
        if serving.pump.failure is not None:
            raise serving.pump.failure
    finally:
        loop.close()


class _Streams(Channel):
    """Two descriptors as one channel. They stay the caller's."""

    def __init__(self, loop: Loop, serving: ThreadServing, source: int, sink: int) -> None:
        self._pump = serving.pump
        self._core = serving.transport
        self._closing = False
        self._pump.channels[_CONN] = self
        self._pump.input(self._core.accepted, _CONN)
        self._writer = writer(loop, os.dup(sink), self._broke, self._paused)
        self._writer.on_closed = self._lost
        self._reader = reader(loop, os.dup(source), self._read)

    def _read(self, data: bytes) -> None:
        if data:
            self._pump.receive(_CONN, data)
        else:
            self._pump.input(self._core.receive_eof, _CONN)

    def _broke(self, reason: str) -> None:
        if not self._closing:
            self._pump.input(self._core.failed, _CONN, reason)

    def _paused(self, paused: bool) -> None:
        (self._core.pause_writing if paused else self._core.resume_writing)(_CONN)
        self._pump.soon()

    def _lost(self) -> None:
        if self._closing:
            self._pump.lost(_CONN)

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._writer.write(data)

    def close(self) -> None:
        self._end(at_once=False)

    def abort(self) -> None:
        self._end(at_once=True)

    def _end(self, at_once: bool) -> None:
        self._closing = True
        self._reader.close()
        if self._writer.closed:
            self._pump.lost(_CONN)
        elif at_once:
            self._writer.close()
        else:
            self._writer.finish()

    def want_data(self, wanted: bool) -> None:
        self._reader.want(wanted)
