"""Streams of trio as channels: what is read is told, and what is written waits its turn."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Final

import trio

from ._loop import TrioLoop, TrioTask

CHUNK: Final = 65536
"""Bytes that are read at once, and that may wait to be written before that is told."""
BROKEN: Final = (OSError, trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError)


class Outbox:
    """Writes what it is given, in a task of its own."""

    def __init__(
        self,
        loop: TrioLoop,
        send: Callable[[bytes], Awaitable[object]],
        on_broken: Callable[[BaseException], object],
        on_paused: Callable[[bool], object],
    ) -> None:
        self._loop = loop
        self._send = send
        self._on_broken = on_broken
        self._on_paused = on_paused
        self._parts: deque[bytes] = deque()
        self._paused = self._ended = self._finishing = False
        self._last: deque[Callable[[], Awaitable[object]]] = deque()
        self._task: TrioTask | None = None
        self.size = 0
        """Bytes that wait to be written."""
        self.broken = False

    def write(self, data: bytes) -> None:
        """Write it after what was written before."""
        if self._ended or self._finishing:
            return
        self._parts.append(data)
        self.size += len(data)
        if self.size > CHUNK and not self._paused:
            self._paused = True
            self._on_paused(True)
        self._go_on()

    def finish(self, last: Callable[[], Awaitable[object]]) -> None:
        """Do this after what was written and finished. Nothing is written any more."""
        if not self._ended:
            self._finishing = True
            self._last.append(last)
            self._go_on()

    def close(self) -> None:
        """Write nothing any more, at once. Harmless twice."""
        self._ended = True
        if self._task is not None:
            self._task.cancel()

    def _go_on(self) -> None:
        if self._task is None:
            self._task = self._loop.create_task(self._work())

    async def _work(self) -> None:
        try:
            while self._parts and not self._ended:
                data = b"".join(self._parts)
                self._parts.clear()
                await self._send(data)
                self.size -= len(data)
            if self._paused and not self._ended:
                self._paused = False
                self._on_paused(False)
            while self._last and not self._ended:
                await self._last.popleft()()
        except BROKEN as error:
            if not self._ended:
                self._ended = self.broken = True
                self._on_broken(error)
        finally:
            self._task = None
            if (self._parts or self._last) and not self._ended:
                self._go_on()


class Gate:
    """Whether there is a way through."""

    def __init__(self) -> None:
        self._open = trio.Event()
        self._open.set()

    def set(self, is_open: bool) -> None:
        """Open or close it."""
        if is_open:
            self._open.set()
        elif self._open.is_set():
            self._open = trio.Event()

    async def passed(self) -> None:
        """Return once it is open."""
        if not self._open.is_set():
            await self._open.wait()


async def read_all(
    receive: Callable[[int], Awaitable[bytes | bytearray]], gate: Gate, take: Callable[[bytes], Any]
) -> None:
    """Hand on what is read, until its end."""
    while True:
        await gate.passed()
        data = await receive(CHUNK)
        if not data:
            return
        take(bytes(data))
