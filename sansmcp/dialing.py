"""A client that makes its own connection: to a port, or to a unix socket, with a line per message.

Adds to a stream what a connection needs that somebody has to make: the attempt and its deadline, one
more where the peer ends on the era probe, and a policy for connections that are lost.

Specification: 2026-07-28, basic/transports (custom transports).
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from typing import Final, TypeAlias

import attrs

from .client import ClientEngine
from .errors import ConnectionEnded, LocalProtocolError, NetworkFailure, NetworkProblem, SansmcpError
from .events import Reconnect
from .ops import Close, Connect, ConnectionId, ConnectUnix
from .revisions import Era
from .states import DIAL, DialInput, DialState, Machine
from .stdio import NO_RESTART, RestartPolicy
from .stream import StreamTransport
from .wire.lines import LineDecoder, LineFault, encode_line

TIMER_CONNECT: Final = "connect"
TIMER_RETRY: Final = "retry"

_CLOSABLE: Final = (DialState.CONNECTING, DialState.UPGRADING, DialState.OPEN, DialState.CLOSING)
_RETRYABLE: Final = (NetworkProblem.REFUSED, NetworkProblem.UNREACHABLE, NetworkProblem.TIMEOUT)


@attrs.frozen
class TcpAddress:
    """A port of a host; with `tls` the connection is secured, for the host of that name.

    Raises LocalProtocolError for a port that is none, and without a host.
    """

    host: str
    port: int
    tls: str | None = None

    def __attrs_post_init__(self) -> None:
        if not self.host or not 0 < self.port < 65536:
            raise LocalProtocolError("an address needs a host and a port from 1 to 65535")

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@attrs.frozen
class UnixAddress:
    """The path of a unix socket. Raises LocalProtocolError for one that is none."""

    path: str

    def __attrs_post_init__(self) -> None:
        if not self.path or "\0" in self.path:
            raise LocalProtocolError("a unix socket has a path")

    def __str__(self) -> str:
        return self.path


Address: TypeAlias = TcpAddress | UnixAddress


class DialingClient(StreamTransport[ClientEngine]):
    """A client and the connection it makes. See `StreamTransport` for how to drive it.

    `restart` says whether a connection that is lost is made again; without it none is. After as many
    attempts without success as its limit says there is no other, however long they took: calls wait
    for them. A session is never resumed: calls that were open have failed, and a legacy server is
    greeted anew.
    """

    def __init__(
        self,
        engine: ClientEngine,
        address: Address,
        *,
        now: float,
        restart: RestartPolicy = NO_RESTART,
    ) -> None:
        super().__init__(engine, now=now)
        self.address: Final = address
        self._restart = restart
        self._restarts: deque[float] = deque()
        self._in_vain = 0
        """Attempts since there was a connection last."""
        self._machine = Machine(DIAL)
        self._connected = False
        """Whether the engine was told to connect: later connections restore it."""

    @property
    def state(self) -> DialState:
        """Where the connection stands: see the table `states.DIAL`."""
        return self._machine.state

    @property
    def finished(self) -> bool:
        return self.state is DialState.GONE and not self._ops

    # verbs ---------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Make the connection. The engine connects when it is there."""
        self._tick(now)
        self._dial()

    def close(self, now: float) -> None:
        """End the conversation and the connection. Harmless twice."""
        self._tick(now)
        self.engine.close(now=self._now)
        self._pump()

    # inputs --------------------------------------------------------------------------------------

    def opened(self, conn: ConnectionId, now: float) -> None:
        """The connection was made."""
        self._tick(now)
        if conn == self._conn and self.state is DialState.CONNECTING:
            self._on_connected()

    def failed(
        self,
        conn: ConnectionId,
        error: str,
        now: float,
        problem: NetworkProblem = NetworkProblem.LOST,
    ) -> None:
        """The connection could not be made, or broke; what was not written never left."""
        self._tick(now)
        if conn != self._conn:
            return
        if self.state is DialState.CONNECTING:
            self._not_made(error, problem)
        else:
            self._lost(f"the connection failed: {error}")

    def receive_eof(self, conn: ConnectionId, now: float) -> None:
        """The server will send nothing more."""
        self._tick(now)
        if conn == self._conn:
            self._on_eof()

    # inside --------------------------------------------------------------------------------------

    @property
    def _may_write(self) -> bool:
        return self.state is DialState.OPEN

    def _dial(self) -> None:
        self._machine.fire(DialInput.DIAL)
        self._conn += 1
        self._input_ended = self._writes_paused = False
        self._renew()
        match self.address:
            case TcpAddress(host=host, port=port, tls=tls):
                self._ops.append(Connect(self._conn, host, port, tls))
            case UnixAddress(path=path):
                self._ops.append(ConnectUnix(self._conn, path))
        if self.engine.timeouts.connect is not None:
            self._timers.set(TIMER_CONNECT, self._now + self.engine.timeouts.connect, TIMER_CONNECT)

    @abstractmethod
    def _renew(self) -> None:
        """Forget what was received on the last connection."""

    def _on_connected(self) -> None:
        """There is a connection."""
        self._speak()

    def _on_eof(self) -> None:
        self._lost("the server closed the connection")

    def _speak(self) -> None:
        """Let the engine speak."""
        self._machine.fire(DialInput.OPEN)
        self._in_vain = 0
        self._timers.clear(TIMER_CONNECT)
        if self._connected:
            self.engine.connection_restored(now=self._now)
        else:
            self._connected = True
            self.engine.connect(now=self._now)

    def _not_made(self, why: str, problem: NetworkProblem) -> None:
        text = f"cannot connect to {self.address}: {why}"
        self._give_up(NetworkFailure(text, problem, retryable=problem in _RETRYABLE))

    def _give_up(self, error: SansmcpError) -> None:
        """There is no connection, or it is not usable: try again if that is wanted, or end."""
        self._timers.clear_all()
        self._input_ended = True
        if self._connected and self.engine.verdict is not None and self._may_restart():
            self._ops.append(Close(self._conn))
            self._wait()
        else:
            self.engine.connection_failed(error, now=self._now)
            self._pump()

    def _lost(self, detail: str, error: ConnectionEnded | None = None) -> None:
        """The connection is gone, and everything it brought was read."""
        if self.state not in _CLOSABLE:
            return
        if self.state in (DialState.CONNECTING, DialState.UPGRADING):
            self._give_up(error or NetworkFailure(f"{self.address}: {detail}", NetworkProblem.LOST))
            return
        self._feed(rest=True)
        self._timers.clear_all()
        self._input_ended = True
        if self.state is DialState.CLOSING:
            self._end()
            return
        may_restart = self._may_restart()
        self.engine.connection_lost(now=self._now, detail=detail, error=error, may_restart=may_restart)
        self._pump()

    def _may_restart(self) -> bool:
        policy, verdict = self._restart, self.engine.verdict
        if verdict is None or (verdict.era is Era.LEGACY and not policy.legacy):
            return False
        while self._restarts and self._restarts[0] <= self._now - policy.window:
            self._restarts.popleft()
        return max(len(self._restarts), self._in_vain) < policy.limit

    def _end(self) -> None:
        """Nothing more is done with the connection."""
        self._timers.clear_all()
        closed = self.state is DialState.WAITING or not self._conn
        self._machine.fire(DialInput.END)
        if not closed:
            self._ops.append(Close(self._conn))

    def _on_close(self) -> None:
        match self.state:
            case DialState.GONE | DialState.CLOSING:
                pass
            case DialState.OPEN if not self._input_ended:
                self._farewell()
            case _:
                self._end()

    def _farewell(self) -> None:
        """End a connection that is open."""
        self._end()

    def _on_reconnect(self, event: Reconnect) -> None:
        self._ops.append(Close(self._conn))
        self._wait()

    def _wait(self) -> None:
        self._machine.fire(DialInput.RETRY)
        delay = 0.0
        if self.engine.verdict is not None:
            self._restarts.append(self._now)
            self._in_vain += 1
            delay = self._restart.delay
        self._timers.set(TIMER_RETRY, self._now + delay, TIMER_RETRY)

    def _on_timer(self, key: str) -> None:
        if key == TIMER_RETRY and self.state is DialState.WAITING:
            self._dial()
        elif key == TIMER_CONNECT and self.state in (DialState.CONNECTING, DialState.UPGRADING):
            self._not_made(f"not within {self.engine.timeouts.connect:g} s", NetworkProblem.TIMEOUT)


class SocketClient(DialingClient):
    """A client on a connection that it makes to `address`, with a line per message: TCP, TLS, a unix socket.

    `restart` is as for every `DialingClient`: without it a connection that is lost is not made again.
    """

    _decoder: LineDecoder

    def _renew(self) -> None:
        self._decoder = LineDecoder(self.engine.limits.max_message)

    def _receive(self, data: bytes | bytearray) -> None:
        self._decoder.receive_data(data)

    def _next_message(self) -> bytes | LineFault | None:
        return self._decoder.next_line()

    def _encode(self, data: bytes) -> bytes:
        return encode_line(data)

    def _on_eof(self) -> None:
        if self.state is DialState.OPEN:
            self._decoder.receive_eof()
        super()._on_eof()
