"""Descriptors to read from and to write to: by the selector, or by threads where it cannot wait for them.

Threads read files, terminals and, on Windows, every pipe. All methods and callbacks are called with
the loop's lock held.
"""

from __future__ import annotations

import os
import queue
import stat
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from ._loop import Loop
from ._poller import READ, WRITE

POSIX: Final = os.name == "posix"
CHUNK: Final = 65536
"""Bytes that are read at once, and that may wait to be written before that is told."""

OnData = Callable[[bytes], object]
"""Called with what was read; with nothing at its end."""


class Reader(ABC):
    """Reads a descriptor, which is its own from now on."""

    @abstractmethod
    def want(self, wanted: bool) -> None:
        """Read on, or leave the bytes where they are."""

    @abstractmethod
    def close(self) -> None:
        """Harmless twice."""


class Writer(ABC):
    """Writes to a descriptor, which is its own from now on."""

    pending = 0
    """Bytes that wait to be written."""
    closed = False
    """Whether the descriptor is closed."""
    on_closed: Callable[[], object] = staticmethod(lambda: None)
    """Called once the descriptor is closed."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Write it after what was written before. Never waits."""

    @abstractmethod
    def finish(self) -> None:
        """Close after what was written. Harmless twice."""

    @abstractmethod
    def close(self) -> None:
        """Close at once. Harmless twice."""


def reader(loop: Loop, fd: int, on_data: OnData) -> Reader:
    """What reads `fd`."""
    return (_Reader if _selectable(fd) else _ThreadReader)(loop, fd, on_data)


def writer(
    loop: Loop, fd: int, on_end: Callable[[str], object], on_paused: Callable[[bool], object]
) -> Writer:
    """What writes to `fd`. `on_end`: it broke, that is why; `on_paused`: much, or nothing any more, waits."""
    return (_Writer if _selectable(fd) else _ThreadWriter)(loop, fd, on_end, on_paused)


def _selectable(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return POSIX and (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode))


class _Reader(Reader):
    def __init__(self, loop: Loop, fd: int, on_data: OnData) -> None:
        os.set_blocking(fd, False)
        self._loop = loop
        self._fd = fd
        self._on_data = on_data
        self.want(True)

    def want(self, wanted: bool) -> None:
        if self._fd >= 0:
            self._loop.watch(self._fd, READ if wanted else 0, self._read)

    def _read(self, events: int) -> None:
        try:
            data = os.read(self._fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.want(False)
        self._on_data(data)

    def close(self) -> None:
        if self._fd >= 0:
            self.want(False)
            os.close(self._fd)
            self._fd = -1


class _Writer(Writer):
    def __init__(
        self, loop: Loop, fd: int, on_end: Callable[[str], object], on_paused: Callable[[bool], object]
    ) -> None:
        os.set_blocking(fd, False)
        self._loop = loop
        self._fd = fd
        self._on_end = on_end
        self._on_paused = on_paused
        self._parts: deque[memoryview] = deque()
        self._finishing = self._paused = False
        # The writing end of a pipe is never readable, but it is told so when nobody reads any more.
        self._always = READ if stat.S_ISFIFO(os.fstat(fd).st_mode) else 0
        loop.watch(fd, self._always, self._flush)

    def write(self, data: bytes) -> None:
        if self._fd < 0 or self._finishing:
            return
        sent = 0
        if not self._parts:
            try:
                sent = os.write(self._fd, data)
            except BlockingIOError:
                pass
            except OSError as error:
                self._break(str(error))
                return
            if sent == len(data):
                return
            self._loop.watch(self._fd, self._always | WRITE, self._flush)
        self._parts.append(memoryview(data)[sent:])
        self.pending += len(data) - sent
        if self.pending > CHUNK and not self._paused:
            self._paused = True
            self._on_paused(True)

    def _break(self, reason: str) -> None:
        self.close()
        self._on_end(reason)

    def _flush(self, events: int) -> None:
        parts = self._parts
        if not parts:
            self._break("nobody reads it any more")
            return
        try:
            while parts:
                sent = os.write(self._fd, parts[0])
                self.pending -= sent
                if sent == len(parts[0]):
                    parts.popleft()
                else:
                    parts[0] = parts[0][sent:]
        except BlockingIOError:
            pass
        except OSError as error:
            self._break(str(error))
            return
        if parts:
            return
        self._loop.watch(self._fd, self._always, self._flush)
        if self._paused:
            self._paused = False
            self._on_paused(False)
        if self._finishing:
            self.close()

    def finish(self) -> None:
        self._finishing = True
        if not self._parts:
            self.close()

    def close(self) -> None:
        if self._fd >= 0:
            self._loop.watch(self._fd, 0, self._flush)
            os.close(self._fd)
            self._fd = -1
            self._parts.clear()
            self.pending = 0
            self.closed = True
            self.on_closed()


class _ThreadReader(Reader):
    """A piece each time it may. The thread ends with the piece that it reads while this is closed."""

    def __init__(self, loop: Loop, fd: int, on_data: OnData) -> None:
        self._loop = loop
        self._fd = fd
        self._on_data = on_data
        self._permits = threading.Semaphore()
        self._wanted = True
        self._due = self._closed = False
        threading.Thread(target=self._work, name="sansmcp reader", daemon=True).start()

    def _work(self) -> None:
        data = b"first"
        while data:
            self._permits.acquire()
            if self._closed:
                break
            try:
                data = os.read(self._fd, CHUNK)
            except OSError:
                data = b""
            with suppress(RuntimeError):  # the loop was closed: nobody waits
                self._loop.call_soon_threadsafe(self._take, data)
        os.close(self._fd)

    def _take(self, data: bytes) -> None:
        if not self._closed:
            self._due = bool(data)
            self._on_data(data)
            self.want(self._wanted)

    def want(self, wanted: bool) -> None:
        self._wanted = wanted
        if wanted and self._due:
            self._due = False
            self._permits.release()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._permits.release()


class _ThreadWriter(Writer):
    def __init__(
        self, loop: Loop, fd: int, on_end: Callable[[str], object], on_paused: Callable[[bool], object]
    ) -> None:
        self._loop = loop
        self._fd = fd
        self._on_end = on_end
        self._on_paused = on_paused
        self._jobs: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended = self._paused = False
        threading.Thread(target=self._work, name="sansmcp writer", daemon=True).start()

    def _work(self) -> None:
        error = ""
        while (data := self._jobs.get()) is not None and not error:
            view = memoryview(data)
            try:
                while view:
                    view = view[os.write(self._fd, view) :]
            except OSError as problem:
                error = str(problem)
            with suppress(RuntimeError):  # the loop was closed: nobody waits
                self._loop.call_soon_threadsafe(self._wrote, len(data), error)
        os.close(self._fd)
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._gone)

    def _gone(self) -> None:
        self.closed = True
        self.on_closed()

    def _wrote(self, size: int, error: str) -> None:
        self.pending -= size
        if error and not self._ended:
            self.finish()
            self._on_end(error)
        elif not self.pending and self._paused:
            self._paused = False
            self._on_paused(False)

    def write(self, data: bytes) -> None:
        if self._ended:
            return
        self.pending += len(data)
        self._jobs.put(data)
        if self.pending > CHUNK and not self._paused:
            self._paused = True
            self._on_paused(True)

    def finish(self) -> None:
        if not self._ended:
            self._ended = True
            self._jobs.put(None)

    close = finish
