"""A child process as a channel: pipes, a bounded tail of standard error, a process group."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from sansmcp.ops import Spawn
from sansmcp.stdio import StdioClient
from sansmcp_shared.pump import Channel, Pump

POSIX = os.name == "posix"
_LAST_READS = 16


class Child(asyncio.SubprocessProtocol, Channel):
    """The process that a `Spawn` asks for, from the attempt to start it until nothing of it is left."""

    def __init__(
        self, pump: Pump, core: StdioClient, op: Spawn, on_stderr: Callable[[bytes], object] | None
    ) -> None:
        self._pump = pump
        self._core = core
        self._conn = op.conn
        self._on_stderr = on_stderr
        self._tail = bytearray()
        self._tail_size = core.engine.limits.max_stderr_tail
        self._process: asyncio.SubprocessTransport | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._write_closed = self._exited = False
        self._owed: int | None = None
        """A signal asked for before there was a process."""
        self._starting = pump.loop.create_task(self._start(op))

    async def _start(self, op: Spawn) -> None:
        pipe = asyncio.subprocess.PIPE
        try:
            await self._pump.loop.subprocess_exec(
                lambda: self,
                *op.argv,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=dict(op.env),
                cwd=op.cwd,
                # A group of its own: signals reach what a wrapper starts, and Ctrl-C does not reach it.
                start_new_session=POSIX,
            )
        except (OSError, ValueError, TypeError, asyncio.CancelledError) as error:
            if self._process is None:
                self._pump.lost(self._conn)
                self._pump.input(self._core.failed, self._conn, str(error) or type(error).__name__)
            if isinstance(error, asyncio.CancelledError):
                raise

    # the loop calls these ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._process = process = cast(asyncio.SubprocessTransport, transport)
        self._stdin = cast(asyncio.WriteTransport, process.get_pipe_transport(0))
        if self._write_closed:
            self._stdin.close()
        if self._owed is not None:
            self._signal(self._owed)
        self._pump.input(self._core.opened, self._conn)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            self._pump.receive(self._conn, data)
        else:
            self._take_stderr(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 1:
            self._pump.input(self._core.receive_eof, self._conn)
        elif fd == 0:
            self._stdin = None
            if not self._write_closed:
                self._write_closed = True
                reason = str(exc or "it closed its standard input")
                self._pump.input(self._core.failed, self._conn, reason)

    def process_exited(self) -> None:
        assert self._process is not None
        self._exited = True
        self._read_last_words(self._process)
        tail = self._tail[max(0, len(self._tail) - self._tail_size) :].decode("utf-8", "replace")
        self._pump.input(self._core.exited, self._conn, self._process.get_returncode(), tail)

    def connection_lost(self, exc: Exception | None) -> None:
        self._pump.lost(self._conn)

    def pause_writing(self) -> None:
        self._core.pause_writing(self._conn)

    def resume_writing(self) -> None:
        self._core.resume_writing(self._conn)

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._stdin is not None and not self._write_closed:
            self._stdin.write(data)

    def close_write(self) -> None:
        self._write_closed = True
        if self._stdin is not None:
            self._stdin.close()

    def close(self) -> None:
        if self._process is not None:
            self._process.close()

    def abort(self) -> None:
        # The loop reaps it; to close its transport before that would leave two in a race for its status.
        self._write_closed = True
        self.kill()
        if self._stdin is not None and self._stdin.get_write_buffer_size():
            self._stdin.abort()

    def want_data(self, wanted: bool) -> None:
        stdout = self._process and self._process.get_pipe_transport(1)
        if isinstance(stdout, asyncio.ReadTransport):
            (stdout.resume_reading if wanted else stdout.pause_reading)()

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL if POSIX else signal.SIGTERM)
        if self._exited:
            # Whoever left the group may hold the pipes for ever; nobody reads them any more.
            self.close()

    # inside --------------------------------------------------------------------------------------

    def _signal(self, number: int) -> None:
        if self._process is None:
            self._owed = number
        elif POSIX:
            # EPERM: on some systems a group of which only a zombie is left
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.get_pid(), number)
        elif not self._exited:
            self._process.send_signal(number)

    def _take_stderr(self, data: bytes) -> None:
        if self._on_stderr is not None:
            self._pump.tell(self._on_stderr, data)
        tail = self._tail
        tail += data
        if len(tail) > 2 * self._tail_size:
            del tail[: len(tail) - self._tail_size]

    def _read_last_words(self, process: asyncio.SubprocessTransport) -> None:
        """What a dead child wrote is in the pipe already. Its end may never come: others may hold it."""
        pipe = process.get_pipe_transport(2)
        if not POSIX or pipe is None or pipe.is_closing():
            return
        with suppress(OSError, AttributeError):
            fd = pipe.get_extra_info("pipe").fileno()
            for _ in range(_LAST_READS):
                data = os.read(fd, 65536)
                if not data:
                    return
                self._take_stderr(data)
