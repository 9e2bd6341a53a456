"""Serves an `App` on the standard streams of this process.

While it serves, the protocol has the real streams for itself: descriptor 0 is empty and descriptor
1 is standard error, so that neither a ``print`` nor a child of a handler gets between.
"""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import cast

from sansmcp.app import App
from sansmcp.limits import SERVER_LIMITS, Limits, Timeouts
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.wire.jsoncodec import JsonCodec
from sansmcp_shared.handlers import Serving
from sansmcp_shared.pump import Channel, OnEvent, OnWire
from sansmcp_shared.standard_streams import POSIX, standard_streams

_CONN = 1
_CHUNK = 65536


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

    Coroutine functions run as tasks of the loop, plain functions in up to `threads` threads (0: in
    the loop itself, which then does nothing else). Once the input has ended, answers that are owed
    may take another `grace` seconds. `on_event` and `on_wire` see every event and every byte.

    Meanwhile ``print`` writes to standard error, and standard input is empty for everybody else.
    Call it once at a time. Cancelling it ends it at once.
    """
    serving = Serving(
        app,
        asyncio.get_running_loop(),
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
        streams = _Streams(serving)
        try:
            await streams.open(source, sink)
            await serving.pump.gone.wait()
        finally:
            await serving.stop()


class _Streams(asyncio.Protocol, Channel):
    """Two descriptors as one channel; each is a transport of the loop where the loop can wait for it."""

    def __init__(self, serving: Serving) -> None:
        self._pump = serving.pump
        self._core = serving.transport
        self._reader: asyncio.ReadTransport | _BlockingReader | None = None
        self._writer: asyncio.WriteTransport | _BlockingWriter | None = None
        self._parts = 0
        """How many transports are open."""
        self._opened = self._closing = False

    async def open(self, source: int, sink: int) -> None:
        """Begin to serve. The descriptors stay the caller's."""
        self._pump.channels[_CONN] = self
        self._pump.input(self._core.accepted, _CONN)
        try:
            await self._open(self._pump.loop, source, sink)
        finally:
            self._opened = True
            if self._closing:
                self.close()

    async def _open(self, loop: asyncio.AbstractEventLoop, source: int, sink: int) -> None:
        mode = os.fstat(sink).st_mode
        both_ways = stat.S_ISSOCK(mode) and os.fstat(sink).st_ino == os.fstat(source).st_ino
        if stat.S_ISSOCK(mode):
            # Also reads, so a socket that is both input and output is opened once.
            end = self if both_ways else _Sink(self)
            sock = socket.socket(fileno=os.dup(sink))
            self._writer = (await loop.create_connection(lambda: end, sock=sock))[0]
        elif stat.S_ISFIFO(mode) and POSIX:
            pipe = os.fdopen(os.dup(sink), "wb", 0)
            self._writer = (await loop.connect_write_pipe(lambda: _Sink(self), pipe))[0]
        else:
            self._writer = _BlockingWriter(self, os.dup(sink))
        if isinstance(self._writer, asyncio.WriteTransport):
            self._writer.set_write_buffer_limits(high=self._core.engine.limits.max_outgoing)
        mode = os.fstat(source).st_mode
        if both_ways:
            self._reader = cast(asyncio.Transport, self._writer)
        elif (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)) and POSIX:
            pipe = os.fdopen(os.dup(source), "rb", 0)
            self._reader = (await loop.connect_read_pipe(lambda: self, pipe))[0]
        else:
            self._reader = _BlockingReader(self, os.dup(source), loop)

    # the ends call these -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._parts += 1

    def data_received(self, data: bytes) -> None:
        self._pump.receive(_CONN, data)

    def eof_received(self) -> bool:
        self._pump.input(self._core.receive_eof, _CONN)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self.fail(str(exc))
        self.part_lost()

    def pause_writing(self) -> None:
        self._core.pause_writing(_CONN)
        self._pump.soon()

    def resume_writing(self) -> None:
        self._core.resume_writing(_CONN)
        self._pump.soon()

    def fail(self, reason: str) -> None:
        """An end broke."""
        if not self._closing:
            self._pump.input(self._core.failed, _CONN, reason)

    def part_lost(self) -> None:
        """An end is closed for good."""
        self._parts -= 1
        if not self._parts and self._opened:
            self._pump.lost(_CONN)

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._writer is not None and not self._closing:
            self._writer.write(data)

    def close(self) -> None:
        self._closing = True
        for end in (self._reader, self._writer):
            if end is not None:
                end.close()
        if not self._parts and self._opened:
            self._pump.lost(_CONN)

    def abort(self) -> None:
        self.close()
        # A pipe that has nothing left to write is closing already, and would be lost twice.
        if isinstance(self._writer, asyncio.WriteTransport) and self._writer.get_write_buffer_size():
            self._writer.abort()

    def want_data(self, wanted: bool) -> None:
        if self._reader is not None:
            (self._reader.resume_reading if wanted else self._reader.pause_reading)()


class _Sink(asyncio.Protocol):
    """The writing end, where it is not the reading one too. Whatever it receives is not for us."""

    def __init__(self, streams: _Streams) -> None:
        self._streams = streams

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._streams.connection_made(transport)

    def pause_writing(self) -> None:
        self._streams.pause_writing()

    def resume_writing(self) -> None:
        self._streams.resume_writing()

    def eof_received(self) -> bool:
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._streams.fail(str(exc or "the client closed its end"))
        self._streams.part_lost()


class _BlockingReader:
    """Reads in a thread what no loop can wait for, a file or a terminal: a piece each time it may."""

    def __init__(self, streams: _Streams, fd: int, loop: asyncio.AbstractEventLoop) -> None:
        self._streams = streams
        self._fd = fd
        self._loop = loop
        self._permits = threading.Semaphore()
        self._paused = self._closed = self._due = False
        streams.connection_made(asyncio.BaseTransport())
        threading.Thread(target=self._work, name="sansmcp stdin", daemon=True).start()

    def _work(self) -> None:
        data = b"first"
        while data:
            self._permits.acquire()
            if self._closed:
                break
            try:
                data = os.read(self._fd, _CHUNK)
            except OSError:
                data = b""
            with suppress(RuntimeError):  # the loop is closed: nobody waits
                self._loop.call_soon_threadsafe(self._take, data)
        os.close(self._fd)

    def _take(self, data: bytes) -> None:
        if self._closed:
            return
        if not data:
            self._streams.eof_received()
            return
        self._streams.data_received(data)
        self._due = True
        self.resume_reading(self._paused)

    def pause_reading(self) -> None:
        self._paused = True

    def resume_reading(self, paused: bool = False) -> None:
        self._paused = paused
        if self._due and not paused:
            self._due = False
            self._permits.release()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._permits.release()
            self._loop.call_soon(self._streams.part_lost)


class _BlockingWriter:
    """Writes in place what takes everything at once: a file or a terminal."""

    def __init__(self, streams: _Streams, fd: int) -> None:
        self._streams = streams
        self._fd = fd
        streams.connection_made(asyncio.BaseTransport())

    def write(self, data: bytes) -> None:
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError as error:
            asyncio.get_running_loop().call_soon(self._streams.fail, str(error))

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
            asyncio.get_running_loop().call_soon(self._streams.part_lost)
