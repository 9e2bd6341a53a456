"""A child process as a channel: pipes, a bounded tail of standard error, a process group."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable
from contextlib import suppress

import trio
import trio.lowlevel

from sansmcp.ops import Spawn
from sansmcp.stdio import StdioClient
from sansmcp_shared.pump import Channel, Pump

from ._channels import BROKEN, CHUNK, Gate, Outbox, read_all
from ._loop import TrioLoop, TrioTask

POSIX = os.name == "posix"
_LAST_READS = 16


class Child(Channel):
    """The process that a `Spawn` asks for, from the attempt to start it until nothing of it is left."""

    def __init__(
        self,
        loop: TrioLoop,
        pump: Pump,
        core: StdioClient,
        op: Spawn,
        on_stderr: Callable[[bytes], object] | None,
    ) -> None:
        self._loop = loop
        self._pump = pump
        self._core = core
        self._conn = op.conn
        self._on_stderr = on_stderr
        self._tail = bytearray()
        self._tail_size = core.engine.limits.max_stderr_tail
        self._process: trio.Process | None = None
        self._outbox: Outbox | None = None
        self._gate = Gate()
        self._readers: list[TrioTask] = []
        self._write_closed = self._exited = self._closed = self._lost = False
        self._owed: int | None = None
        """A signal asked for before there was a process."""
        loop.create_task(self._run(op))

    async def _run(self, op: Spawn) -> None:
        pipe = subprocess.PIPE
        try:
            self._process = process = await trio.lowlevel.open_process(
                list(op.argv),
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=dict(op.env),
                cwd=op.cwd,
                # A group of its own: signals reach what a wrapper starts, and Ctrl-C does not reach it.
                start_new_session=POSIX,
            )
        except (OSError, ValueError, TypeError) as error:
            self._lose()
            self._pump.input(self._core.failed, self._conn, str(error) or type(error).__name__)
            return
        assert process.stdin is not None
        self._outbox = Outbox(self._loop, process.stdin.send_all, self._broke, self._paused)
        self._readers = [
            self._loop.create_task(step) for step in (self._read_out(), self._read_err(), self._watch_stdin())
        ]
        if self._owed is not None:
            self._signal(self._owed)
        if self._write_closed:
            self._outbox.finish(process.stdin.aclose)
        if self._pump.failure is None:
            self._pump.input(self._core.opened, self._conn)
        code = await process.wait()
        self._read_last_words()
        self._exited = True
        tail = self._tail[max(0, len(self._tail) - self._tail_size) :].decode("utf-8", "replace")
        if self._pump.failure is None:
            self._pump.input(self._core.exited, self._conn, code, tail)
        if self._closed or self._pump.failure is not None:
            self._let_go()

    # what happens --------------------------------------------------------------------------------

    async def _read_out(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        with suppress(*BROKEN):
            await read_all(self._process.stdout.receive_some, self._gate, self._take_stdout)
        if self._pump.failure is None:
            self._pump.input(self._core.receive_eof, self._conn)

    def _take_stdout(self, data: bytes) -> None:
        self._pump.receive(self._conn, data)

    async def _read_err(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        with suppress(*BROKEN):
            await read_all(self._process.stderr.receive_some, Gate(), self._take_stderr)

    def _take_stderr(self, data: bytes) -> None:
        if self._on_stderr is not None:
            self._pump.tell(self._on_stderr, data)
        tail = self._tail
        tail += data
        if len(tail) > 2 * self._tail_size:
            del tail[: len(tail) - self._tail_size]

    def _read_last_words(self) -> None:
        """What a dead child wrote is in the pipe already. Its end may never come: others may hold it."""
        pipe = self._process and self._process.stderr
        if not POSIX or pipe is None:
            return
        with suppress(*BROKEN):
            for _ in range(_LAST_READS):
                data = os.read(pipe.fileno(), CHUNK)  # type: ignore[attr-defined]  # pipes have it
                if not data:
                    return
                self._take_stderr(data)

    async def _watch_stdin(self) -> None:
        """The writing end of a pipe is never readable, but it is told so when nobody reads any more."""
        assert self._process is not None
        if not POSIX:
            return
        with suppress(*BROKEN):
            await trio.lowlevel.wait_readable(self._process.stdin.fileno())  # type: ignore[union-attr]  # pipes have it
            self._broke(BrokenPipeError())

    def _broke(self, error: BaseException) -> None:
        if self._pump.failure is None:
            self._pump.input(self._core.failed, self._conn, str(error) or "it closed its standard input")

    def _paused(self, paused: bool) -> None:
        (self._core.pause_writing if paused else self._core.resume_writing)(self._conn)

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            self._pump.lost(self._conn)

    def _let_go(self) -> None:
        """Close what is open; whoever left the group may hold the other ends for ever."""
        for reader in self._readers:
            reader.cancel()
        if self._outbox is not None:
            self._outbox.close()
        self._loop.create_task(self._close_pipes())

    async def _close_pipes(self) -> None:
        process = self._process
        assert process is not None
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                await trio.aclose_forcefully(pipe)
        self._lose()

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._outbox is not None:
            self._outbox.write(data)

    def close_write(self) -> None:
        self._write_closed = True
        if self._outbox is not None:
            assert self._process is not None
            assert self._process.stdin is not None
            self._outbox.finish(self._process.stdin.aclose)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if self._exited:
            self._let_go()
        else:
            self._kill()

    def abort(self) -> None:
        self._write_closed = True
        self.kill()
        if self._outbox is not None:
            self._outbox.close()

    def want_data(self, wanted: bool) -> None:
        self._gate.set(wanted)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._kill()
        if self._exited:
            self.close()

    def _kill(self) -> None:
        self._signal(signal.SIGKILL if POSIX else signal.SIGTERM)

    def _signal(self, number: int) -> None:
        if self._process is None:
            self._owed = number
        elif POSIX:
            # EPERM: on some systems a group of which only a zombie is left
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
        elif not self._exited:
            self._process.send_signal(number)
