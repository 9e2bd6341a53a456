"""A child process as a channel: pipes, a bounded tail of standard error, a process group."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress

from sansmcp.ops import Spawn
from sansmcp.stdio import StdioClient
from sansmcp_shared.pump import Channel

from ._pipes import POSIX, Reader, Writer, reader, writer
from ._poller import READ
from ._pump import ThreadPump

_LAST_READS = 16


class Child(Channel):
    """The process that a `Spawn` asks for, from the attempt to start it until nothing of it is left."""

    def __init__(
        self, pump: ThreadPump, core: StdioClient, op: Spawn, on_stderr: Callable[[bytes], object] | None
    ) -> None:
        self._pump = pump
        self._loop = pump.threads
        self._core = core
        self._conn = op.conn
        self._on_stderr = on_stderr
        self._tail = bytearray()
        self._tail_size = core.engine.limits.max_stderr_tail
        self._pipes: list[Reader | Writer] = []
        self._process: subprocess.Popen[bytes] | None = None
        self._exited = self._closed = self._lost = False
        self._pidfd = -1
        pipe = subprocess.PIPE
        try:
            process = subprocess.Popen(
                op.argv,
                bufsize=0,
                stdin=pipe,
                stdout=pipe,
                stderr=pipe,
                env=dict(op.env),
                cwd=op.cwd,
                # A group of its own: signals reach what a wrapper starts, and Ctrl-C does not reach it.
                start_new_session=POSIX,
            )
        except (OSError, ValueError, TypeError) as error:
            self._loop.call_soon(self._failed, str(error) or type(error).__name__)
            return
        self._process = process
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        fds = [os.dup(pipe.fileno()) for pipe in (process.stdin, process.stdout, process.stderr)]
        for end in (process.stdin, process.stdout, process.stderr):
            end.close()
        self._stdin = writer(self._loop, fds[0], self._stdin_broke, self._stdin_paused)
        self._stdout = reader(self._loop, fds[1], self._take_stdout)
        self._stderr_fd = fds[2]
        self._stderr = reader(self._loop, fds[2], self._take_stderr)
        self._pipes = [self._stdin, self._stdout, self._stderr]
        self._watch(process)
        pump.input(core.opened, self._conn)

    def _failed(self, reason: str) -> None:
        self._lose()
        self._pump.input(self._core.failed, self._conn, reason)

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """Learn when it ends."""
        try:
            self._pidfd = os.pidfd_open(process.pid)
        except (AttributeError, OSError):  # not Linux, or an old one: a thread waits for it
            threading.Thread(target=self._wait, args=(process,), name="sansmcp child", daemon=True).start()
            return
        self._loop.watch(self._pidfd, READ, self._process_exited)

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()
        with suppress(RuntimeError):  # the loop was closed: nobody waits
            self._loop.call_soon_threadsafe(self._process_exited, 0)

    # what happens --------------------------------------------------------------------------------

    def _take_stdout(self, data: bytes) -> None:
        if data:
            self._pump.receive(self._conn, data)
        else:
            self._pump.input(self._core.receive_eof, self._conn)

    def _take_stderr(self, data: bytes) -> None:
        if self._on_stderr is not None and data:
            self._pump.tell(self._on_stderr, data)
        tail = self._tail
        tail += data
        if len(tail) > 2 * self._tail_size:
            del tail[: len(tail) - self._tail_size]

    def _stdin_broke(self, reason: str) -> None:
        self._pump.input(self._core.failed, self._conn, reason)

    def _stdin_paused(self, paused: bool) -> None:
        (self._core.pause_writing if paused else self._core.resume_writing)(self._conn)

    def _process_exited(self, events: int) -> None:
        assert self._process is not None
        self._exited = True
        if self._pidfd >= 0:
            self._loop.watch(self._pidfd, 0, self._process_exited)
            os.close(self._pidfd)
        code = self._process.wait()
        if self._closed:
            self._lose()
            return
        self._read_last_words()
        tail = self._tail[max(0, len(self._tail) - self._tail_size) :].decode("utf-8", "replace")
        if self._pump.failure is None:
            self._pump.input(self._core.exited, self._conn, code, tail)
        if self._pump.failure is not None:
            self.close()

    def _read_last_words(self) -> None:
        """What a dead child wrote is in the pipe already. Its end may never come: others may hold it."""
        if not POSIX:
            return
        with suppress(OSError):
            for _ in range(_LAST_READS):
                data = os.read(self._stderr_fd, 65536)
                if not data:
                    return
                self._take_stderr(data)

    def _lose(self) -> None:
        if not self._lost:
            self._lost = True
            self._pump.lost(self._conn)

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._process is not None:
            self._stdin.write(data)

    def close_write(self) -> None:
        if self._process is not None:
            self._stdin.finish()

    def close(self) -> None:
        if self._process is None or self._closed:
            return
        self._closed = True
        for pipe in self._pipes:
            pipe.close()
        if self._exited:
            self._lose()
        else:
            self.kill()

    def abort(self) -> None:
        self.kill()
        if self._process is not None:
            self._stdin.close()

    def want_data(self, wanted: bool) -> None:
        if self._process is not None:
            self._stdout.want(wanted)

    def terminate(self) -> None:
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        self._signal(signal.SIGKILL if POSIX else signal.SIGTERM)
        if self._exited:
            # Whoever left the group may hold the pipes for ever; nobody reads them any more.
            self.close()

    def _signal(self, number: int) -> None:
        if self._process is None:
            return
        if POSIX:
            # EPERM: on some systems a group of which only a zombie is left
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
        elif not self._exited:
            self._process.send_signal(number)
