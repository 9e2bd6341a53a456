"""A terminal that a user answers at, while a loop goes on with everything else."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from contextlib import suppress


def is_there() -> bool:
    """Whether somebody can be asked: at standard input, and reads standard error."""
    return all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stderr))


class Terminal:
    """Asks on standard error, and takes what is typed a line at a time."""

    def __init__(self) -> None:
        self._typed = b""

    def say(self, text: str = "") -> None:
        """Show a line."""
        print(text, file=sys.stderr, flush=True)

    def forget(self) -> None:
        """Drop what was typed before anything was asked: it is no answer to what comes now."""
        self._typed = b""
        with suppress(ImportError, OSError):
            import termios

            termios.tcflush(sys.stdin.fileno(), termios.TCIFLUSH)

    async def ask(self, prompt: str) -> str:
        """The line that is typed. Raises EOFError when there is none: Ctrl-D."""
        print(prompt, end="", file=sys.stderr, flush=True)
        while b"\n" not in self._typed:
            data = await self._read()
            if not data:
                if self._typed:
                    break
                raise EOFError
            self._typed += data
        line, _, self._typed = self._typed.partition(b"\n")
        return line.decode(sys.stdin.encoding or "utf-8", "replace").rstrip("\r")

    async def _read(self) -> bytes:
        loop = asyncio.get_running_loop()
        arrived: asyncio.Future[bytes] = loop.create_future()
        fd = sys.stdin.fileno()

        def done(data: bytes) -> None:
            if not arrived.done():
                arrived.set_result(data)

        def read() -> bytes:
            try:
                return os.read(fd, 4096)
            except OSError:  # the terminal is gone
                return b""

        def wait() -> None:
            data = read()
            with suppress(RuntimeError):  # nobody waits any more
                loop.call_soon_threadsafe(done, data)

        try:
            loop.add_reader(fd, lambda: done(read()))
        except NotImplementedError:  # on Windows a console is read only by waiting for it
            threading.Thread(target=wait, daemon=True).start()
            return await arrived
        try:
            return await arrived
        finally:
            loop.remove_reader(fd)
