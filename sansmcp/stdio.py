"""The client's stdio transport: a server as a child process.

Adds to `LineClient` what a process needs: spawn, one restart when the peer dies on the era probe,
a restart policy for crashes, the shutdown ladder as timed ops, an environment, and the child's last
words in the error. The server's side of stdio is `LineServer`.

Specification: 2026-07-28, basic/transports/stdio (shutdown, unexpected termination).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

import attrs

from .client import ClientEngine
from .errors import LocalProtocolError, SpawnFailed
from .events import Reconnect
from .ops import CloseWrite, ConnectionId, Kill, Spawn, Terminate
from .records import frozen
from .revisions import Era
from .states import PROCESS, Machine, ProcessInput, ProcessState
from .stream import LineTransport
from .wire.lines import LineDecoder

_ALLOWED: Final = frozenset(
    {
        # POSIX: what programs need to start at all, and nothing that holds secrets
        *("HOME", "LANG", "LANGUAGE", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
        # Windows
        *("APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA"),
        *("PROCESSOR_ARCHITECTURE", "PROGRAMFILES", "SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP"),
        *("USERNAME", "USERPROFILE", "WINDIR"),
    }
)


def child_environment(
    environ: Mapping[str, str], extra: Mapping[str, str] | None = None, *, inherit: bool = False
) -> dict[str, str]:
    """The environment of a child: an allow-list of `environ` (all of it with `inherit`) and `extra`.

    Exported shell functions are left out: some shells would run them.
    """
    chosen = {
        name: value
        for name, value in environ.items()
        if (inherit or name.upper() in _ALLOWED or name.startswith("LC_")) and not value.startswith("()")
    }
    chosen.update(extra or {})
    return chosen


@frozen
class Command:
    """How to start a server: the program and its arguments, without a shell, in the folder `cwd`.

    `env` is the child's whole environment: see `child_environment`. Without `cwd` it runs in this process's
    folder. Raises LocalProtocolError without a program.
    """

    argv: Sequence[str]
    env: Mapping[str, str] = attrs.field(factory=dict, repr=False)
    cwd: str | None = None

    def __attrs_post_init__(self) -> None:
        if not self.argv or not all(self.argv[:1]):
            raise LocalProtocolError("a command needs at least the program's name")

    def __str__(self) -> str:
        return self.argv[0]


@frozen(kw_only=True)
class ShutdownLadder:
    """How long a child may take to leave, in seconds, before the next rung."""

    after_close: float = 2.0
    """After its standard input was closed; then it is asked to terminate."""
    after_terminate: float = 2.0
    """After that; then it is killed."""


@frozen(kw_only=True)
class RestartPolicy:
    """Whether a server that ends unasked is started again.

    Calls that were open fail all the same; calls made meanwhile wait. At most `limit` restarts
    within `window` seconds, each after `delay` seconds. A legacy server loses its session with its
    process, so it is only restarted when `legacy` says so.
    """

    limit: int = 3
    """Restarts within `window`; 0 for none."""
    window: float = 60.0
    delay: float = 0.5
    legacy: bool = False
    """Whether a legacy server is started again too."""


NO_RESTART: Final = RestartPolicy(limit=0)

_DRAIN: Final = 0.5
"""Seconds to wait for the rest of a dead child's output: a grandchild may hold the pipe open."""

_CLOSE_INPUT, _TERMINATE, _DRAINED, _RESPAWN = "close_input", "terminate", "drained", "respawn"


class StdioClient(LineTransport[ClientEngine]):
    """A client and the process of its server, which `command` starts: see `StreamTransport`.

    `restart` says whether a server that ends unasked is started again, `ladder` how long it may take to
    leave; ``RestartPolicy()`` and ``ShutdownLadder()`` unless given.
    """

    def __init__(
        self,
        engine: ClientEngine,
        command: Command,
        *,
        now: float,
        restart: RestartPolicy | None = None,
        ladder: ShutdownLadder | None = None,
    ) -> None:
        super().__init__(engine, now=now)
        self.command: Final = command
        self._restart = restart or RestartPolicy()
        self._ladder = ladder or ShutdownLadder()
        self._machine = Machine(PROCESS)
        self._restarts: deque[float] = deque()
        self._connected = False
        """Whether the engine was told to connect: later processes restore the connection."""
        self._opened = True
        """Whether the process named by `_conn` was started; there is none to fail before the first."""
        self._exit: tuple[int | None, str] | None = None

    @property
    def state(self) -> ProcessState:
        """Where the process stands: see the table `states.PROCESS`."""
        return self._machine.state

    @property
    def returncode(self) -> int | None:
        """The exit status of the process that ended last, negative for a signal; None before."""
        return None if self._exit is None else self._exit[0]

    @property
    def finished(self) -> bool:
        return self.state is ProcessState.GONE and not self._ops

    # verbs ---------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Start the server. The engine connects when the process is there."""
        self._tick(now)
        self._spawn()

    def close(self, now: float) -> None:
        """End the conversation and the process, by the shutdown ladder. Harmless twice."""
        self._tick(now)
        self.engine.close(now=self._now)
        self._pump()

    # inputs --------------------------------------------------------------------------------------

    def opened(self, conn: ConnectionId, now: float) -> None:
        """The process was started."""
        self._tick(now)
        if conn != self._conn:
            return
        self._opened = True
        if self.state is not ProcessState.SPAWNING:
            return
        self._machine.fire(ProcessInput.OPENED)
        if self._connected:
            self.engine.connection_restored(now=self._now)
        else:
            self._connected = True
            self.engine.connect(now=self._now)

    def failed(self, conn: ConnectionId, error: str, now: float) -> None:
        """The process could not be started, or what was written to it never left."""
        self._tick(now)
        if conn != self._conn:
            return
        if not self._opened and self._machine.allows(ProcessInput.EXITED):
            # perhaps long since on the ladder, which leads nowhere without a process
            self._timers.clear_all()
            self._machine.fire(ProcessInput.EXITED)
            cause = SpawnFailed(f"cannot start {self.command}: {error}")
            self.engine.connection_lost(now=self._now, error=cause)
            self._pump()
        elif self.state is ProcessState.RUNNING:
            # A broken pipe: the child stopped reading. Its exit tells more, so wait for that.
            self._close_input()

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The server closed its standard output."""
        self._tick(now)
        if conn != self._conn or self._input_ended:
            return
        self._input_ended = True
        self._decoder.receive_eof()
        self._feed()
        if self._exit is not None:
            self._gone()
        elif self.state is ProcessState.RUNNING:
            self._close_input()

    def exited(self, conn: ConnectionId, code: int | None, stderr_tail: str, now: float) -> None:
        """The process ended: its exit status (negative for a signal) and its last words."""
        self._tick(now)
        if conn != self._conn or self._exit is not None or self.state is ProcessState.GONE:
            return
        self._exit = (code, stderr_tail)
        if self._input_ended:
            self._gone()
        else:
            self._timers.set(_DRAINED, self._now + _DRAIN, _DRAINED)

    # inside --------------------------------------------------------------------------------------

    @property
    def _may_write(self) -> bool:
        return self.state is ProcessState.RUNNING

    def _spawn(self) -> None:
        self._machine.fire(ProcessInput.SPAWN)
        self._conn += 1
        self._decoder = LineDecoder(self.engine.limits.max_message)
        self._opened = False
        self._input_ended = False
        self._exit = None
        command = self.command
        self._ops.append(Spawn(self._conn, list(command.argv), command.env, command.cwd))

    def _close_input(self) -> None:
        """First rung of the ladder."""
        self._machine.fire(ProcessInput.CLOSE_INPUT)
        self._ops.append(CloseWrite(self._conn))
        self._timers.set(_CLOSE_INPUT, self._now + self._ladder.after_close, _CLOSE_INPUT)

    def _on_timer(self, key: str) -> None:
        match key:
            case "close_input" if self._machine.allows(ProcessInput.TERMINATE):
                self._machine.fire(ProcessInput.TERMINATE)
                self._ops.append(Terminate(self._conn))
                when = self._now + self._ladder.after_terminate
                self._timers.set(_TERMINATE, when, _TERMINATE)
            case "terminate" if self._machine.allows(ProcessInput.KILL):
                self._machine.fire(ProcessInput.KILL)
                self._ops.append(Kill(self._conn))
            case "drained":
                self._gone()
            case "respawn" if self.state is ProcessState.WAITING:
                self._spawn()
            case _:
                pass

    def _gone(self) -> None:
        """The child ended and everything it wrote was read."""
        self._feed(rest=True)
        code, tail = self._exit or (None, "")
        self._input_ended = True  # also for those who do not see the end of what others hold open
        self._timers.clear_all()
        # What the child started and left behind would keep running: a wrapper's real server.
        self._ops.append(Kill(self._conn))
        may_restart = self._may_restart()
        self.engine.connection_lost(now=self._now, returncode=code, stderr_tail=tail, may_restart=may_restart)
        self._pump()
        if self.state not in (ProcessState.WAITING, ProcessState.SPAWNING):
            self._machine.fire(ProcessInput.EXITED)

    def _may_restart(self) -> bool:
        policy, verdict = self._restart, self.engine.verdict
        if verdict is None or (verdict.era is Era.LEGACY and not policy.legacy):
            return False
        while self._restarts and self._restarts[0] <= self._now - policy.window:
            self._restarts.popleft()
        return len(self._restarts) < policy.limit

    def _on_close(self) -> None:
        match self.state:
            case ProcessState.IDLE | ProcessState.WAITING:
                self._timers.clear_all()
                self._machine.fire(ProcessInput.EXITED)
            case ProcessState.RUNNING | ProcessState.SPAWNING if self._exit is None:
                self._close_input()
            case _:
                pass

    def _on_reconnect(self, event: Reconnect) -> None:
        self._machine.fire(ProcessInput.RETRY)
        delay = 0.0
        if self.engine.verdict is not None:
            self._restarts.append(self._now)
            delay = self._restart.delay
        self._timers.set(_RESPAWN, self._now + delay, _RESPAWN)
