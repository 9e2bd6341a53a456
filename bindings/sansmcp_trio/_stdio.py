"""Serves an `App` on the standard streams of this process, which it has for itself meanwhile."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from contextlib import suppress

import trio

from sansmcp.app import App
from sansmcp.limits import SERVER_LIMITS, Limits, Timeouts
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.wire.jsoncodec import JsonCodec
from sansmcp_shared.handlers import Serving
from sansmcp_shared.pump import Channel, OnEvent, OnWire
from sansmcp_shared.standard_streams import POSIX, standard_streams

from ._channels import BROKEN, CHUNK, Gate, Outbox, read_all
from ._client import Home
from ._loop import TrioLoop

_CONN = 1


async def serve_stdio(
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

    Coroutine functions run as tasks of trio. Everything else is as for `sansmcp_asyncio.serve_stdio`.
    """
    home = Home()
    loop = await home.open()
    try:
        serving = Serving(
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
                _Streams(loop, serving, source, sink)
                await serving.pump.gone.wait()
            finally:
                with trio.CancelScope(shield=True):
                    await serving.stop()
    finally:
        await home.close()
    if serving.pump.failure is not None:
        raise serving.pump.failure


class _Streams(Channel):
    """Two descriptors as one channel. They stay the caller's."""

    def __init__(self, loop: TrioLoop, serving: Serving, source: int, sink: int) -> None:
        self._loop = loop
        self._pump = serving.pump
        self._core = serving.transport
        self._gate = Gate()
        self._closing = False
        self._source, self._sink = _File(source), _File(sink)
        self._pump.channels[_CONN] = self
        self._pump.input(self._core.accepted, _CONN)
        self._outbox = Outbox(loop, self._sink.send_all, self._broke, self._paused)
        self._reader = loop.create_task(self._read())

    async def _read(self) -> None:
        with suppress(*BROKEN):
            await read_all(self._source.receive_some, self._gate, self._take)
        if not self._closing and self._pump.failure is None:
            self._pump.input(self._core.receive_eof, _CONN)

    def _take(self, data: bytes) -> None:
        self._pump.receive(_CONN, data)

    def _broke(self, error: BaseException) -> None:
        if not self._closing and self._pump.failure is None:
            self._pump.input(self._core.failed, _CONN, str(error) or "the client closed its end")
        elif self._closing:
            self._loop.create_task(self._end())

    def _paused(self, paused: bool) -> None:
        (self._core.pause_writing if paused else self._core.resume_writing)(_CONN)
        self._pump.soon()

    async def _end(self) -> None:
        await self._source.aclose()
        await self._sink.aclose()
        self._pump.lost(_CONN)

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._outbox.write(data)

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._reader.cancel()
            if self._outbox.broken:
                self._loop.create_task(self._end())
            else:
                self._outbox.finish(self._end)

    def abort(self) -> None:
        if self._closing and not self._outbox.size:
            return  # it is closing already
        self._closing = True
        self._reader.cancel()
        self._outbox.close()
        self._loop.create_task(self._end())

    def want_data(self, wanted: bool) -> None:
        self._gate.set(wanted)


class _File:
    """A descriptor: trio waits for it, or a thread does where trio cannot."""

    def __init__(self, fd: int) -> None:
        mode = os.fstat(fd).st_mode
        self._stream: trio.lowlevel.FdStream | None = None
        self._fd = os.dup(fd)
        if POSIX and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
            self._stream = trio.lowlevel.FdStream(self._fd)

    async def receive_some(self, size: int = CHUNK) -> bytes | bytearray:
        if self._stream is not None:
            return await self._stream.receive_some(size)
        return await trio.to_thread.run_sync(os.read, self._fd, size, abandon_on_cancel=True)

    async def send_all(self, data: bytes) -> None:
        if self._stream is not None:
            await self._stream.send_all(data)
            return
        view = memoryview(data)
        while view:
            view = view[await trio.to_thread.run_sync(os.write, self._fd, view) :]

    async def aclose(self) -> None:
        if self._stream is not None:
            await trio.aclose_forcefully(self._stream)
        elif self._fd >= 0:
            # A thread that reads it goes on with it, until something is typed.
            os.close(self._fd)
            self._fd = -1
