"""The pump: executes a transport's ops, hands out its events, keeps its one timer.

After every input or verb: the ops, then the events, then the timer. Nothing is decided here.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, assert_never

from sansmcp.events import Event
from sansmcp.ops import (
    Close,
    CloseWrite,
    Connect,
    ConnectionId,
    ConnectUnix,
    Kill,
    Op,
    Spawn,
    StartTls,
    Terminate,
    Write,
)

from .flag import Flag

if TYPE_CHECKING:  # a client need not load what a server is made of, nor the other way round
    import asyncio

    from sansmcp.dialing import DialingClient
    from sansmcp.http.connector import HttpConnector
    from sansmcp.line_client import LineClient
    from sansmcp.line_server import LineServer
    from sansmcp.stdio import StdioClient

Transport: TypeAlias = "StdioClient | HttpConnector | LineClient | LineServer | DialingClient"
OnEvent: TypeAlias = Callable[[Event], object]
"""Called with every event for the application, before anybody else sees it."""
OnWire: TypeAlias = Callable[[Literal["sent", "received"], bytes], object]
"""Called with the bytes as they are written and read, in whatever pieces."""

_ENOUGH = 16
"""Messages that are worth a write of their own."""


class Channel(ABC):
    """One connection as the pump sees it. Whoever derives from it tells the pump what happens."""

    @abstractmethod
    def write(self, data: bytes) -> None:
        """Queue bytes; never blocks and never raises."""

    def close_write(self) -> None:  # noqa: B027  (not every channel has it)
        """Close the writing half after what was written."""

    @abstractmethod
    def close(self) -> None:
        """Close after what was written, then call ``Pump.lost``. Harmless twice."""

    def abort(self) -> None:
        """Close at once, whatever is lost by that."""
        self.close()

    def want_data(self, wanted: bool) -> None:  # noqa: B027  (not every channel has it)
        """Read on, or leave the bytes where they are."""

    def terminate(self) -> None:  # noqa: B027  (not every channel has it)
        """Ask the process behind it to end, if there is one."""

    def kill(self) -> None:  # noqa: B027  (not every channel has it)
        """End the processes behind it, if there are any."""


class SocketChannel(Channel):
    """A socket that was asked to connect."""

    @abstractmethod
    def start_tls(self, host: str) -> None:
        """Speak TLS from now on."""


class Pump:
    """Drives `transport` on `loop`; `deliver` gets its events."""

    def __init__(
        self,
        transport: Transport,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Event], None],
        *,
        on_wire: OnWire | None = None,
        spawn: Callable[[Pump, Spawn], Channel] | None = None,
        connect: Callable[[Pump, Connect | ConnectUnix], SocketChannel] | None = None,
    ) -> None:
        self.transport = transport
        self.loop = loop
        self.channels: dict[ConnectionId, Channel] = {}
        self.gone = self.make_flag()
        """Set when the transport is finished and every channel is closed."""
        self.failure: Exception | None = None
        """What ended the pump although the transport was not finished."""
        self.on_failure: Callable[[Exception], None] | None = None
        self._deliver = deliver
        self._on_wire = on_wire
        self._spawn = spawn
        self._connect = connect
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        """When it fires."""
        self._draining = self._scheduled = self._finished = False
        self._asked = 0
        """Drains asked for since the last one."""
        self._reading = True

    def make_flag(self) -> Flag:
        """A flag to wait for as this loop does."""
        return Flag(self.loop)

    # in ------------------------------------------------------------------------------------------

    def input(self, method: Callable[..., object], *arguments: Any) -> None:
        """Call an input or verb with the present time, then carry out what follows from it."""
        try:
            method(*arguments, now=self.loop.time())
            self.drain()
        except Exception as error:
            self._break(error)
            raise

    def receive(self, conn: ConnectionId, data: bytes) -> None:
        """Bytes came."""
        if self._on_wire is not None:
            self.tell(self._on_wire, "received", data)
        try:
            self.transport.receive_data(conn, data, self.loop.time())
            self.drain()
        except Exception as error:
            self._break(error)
            raise

    def lost(self, conn: ConnectionId) -> None:
        """A channel is closed for good."""
        self.channels.pop(conn, None)
        if self._finished and not self.channels:
            self.gone.set()

    def soon(self) -> None:
        """Drain once this turn of the loop is over, so that what many tasks ask leaves as one write.

        Past `_ENOUGH` of them it leaves at once: then the peer works while this side goes on asking.
        """
        if self._draining:
            return
        self._asked += 1
        if self._asked >= _ENOUGH:
            self._drain_scheduled()
        elif not self._scheduled:
            self._scheduled = True
            self.loop.call_soon(self._drain_scheduled)

    def tell(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call what the application gave us. What it raises is the loop's to report, and harms nothing."""
        try:
            callback(*arguments)
        except Exception as error:
            self.loop.call_exception_handler({"message": f"{callback!r} raised", "exception": error})

    def abort(self) -> None:
        """Close every channel at once."""
        for channel in list(self.channels.values()):
            channel.abort()

    # out -----------------------------------------------------------------------------------------

    def _drain_scheduled(self) -> None:
        self._scheduled = False
        self._asked = 0
        try:
            self.drain()
        except Exception as error:
            self._break(error)
            raise

    def drain(self) -> None:
        """Ops, then events, until there are none; then the timer."""
        if self._draining:
            return  # an op or an event led back here; the loop below sees what came of it
        self._draining = True
        transport = self.transport
        try:
            while True:
                while (op := transport.next_op()) is not None:
                    self._execute(op)
                if (event := transport.next_event()) is None:
                    break
                while event is not None:
                    self._deliver(event)
                    event = transport.next_event()
        finally:
            self._draining = False
        self._settle()

    def _execute(self, op: Op) -> None:
        channel = self.channels.get(op.conn)
        match op:
            case Write():
                if self._on_wire is not None:
                    self.tell(self._on_wire, "sent", op.data)
                if channel is not None:
                    channel.write(op.data)
            case Spawn():
                assert self._spawn is not None, "only a pump for child processes is asked for one"
                self.channels[op.conn] = self._spawn(self, op)
            case Connect() | ConnectUnix():
                assert self._connect is not None, "only a pump for sockets is asked for one"
                self.channels[op.conn] = self._connect(self, op)
            case StartTls():
                if channel is not None:
                    assert isinstance(channel, SocketChannel), "only what was asked to connect is told so"
                    channel.start_tls(op.host)
            case CloseWrite():
                if channel is not None:
                    channel.close_write()
            case Close():
                if channel is not None:
                    channel.close()
            case Terminate():
                if channel is not None:
                    channel.terminate()
            case Kill():
                if channel is not None:
                    channel.kill()
            case _:
                assert_never(op)

    def _settle(self) -> None:
        transport = self.transport
        if transport.finished:
            self._finish()
            return
        self._arm()
        self._read_on()

    def _arm(self) -> None:
        """Have the timer fire at the next deadline, or before it.

        Too early is harmless: it is left alone then, which spares most calls a timer.
        """
        when = self.transport.next_timeout()
        if when is not None and (self._timer is None or when < self._due):
            self._stop_timer()
            # The handle is not asked: of what is due at once some loops give one without a time.
            self._due = when
            self._timer = self.loop.call_at(when, self._on_timer)

    def _read_on(self) -> None:
        """Read, or leave the bytes where they are."""
        wanted = bool(self.transport.wants_data)
        if wanted is not self._reading:
            self._reading = wanted
            for channel in self.channels.values():
                channel.want_data(wanted)

    def _on_timer(self) -> None:
        self._timer = None
        self.input(self.transport.handle_timeout)

    def _finish(self) -> None:
        if self._finished:
            return
        self._finished = True
        self._stop_timer()
        for channel in list(self.channels.values()):
            channel.close()
        if not self.channels:
            self.gone.set()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _break(self, error: Exception) -> None:
        """A fault of this library or a misuse of it: end everything, so that nobody waits for ever."""
        if self.failure is not None:
            return
        self.failure = error
        self._finished = True
        self._stop_timer()
        if self.on_failure is not None:
            self.on_failure(error)
        self.abort()
        if not self.channels:
            self.gone.set()


class ManyPump(Pump):
    """Drives a transport whose connections are read, or not, one by one.

    `reads` says whether a connection is read now; when `takes` changes, that may change for all.
    """

    def __init__(
        self,
        transport: Transport,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Event], None],
        *,
        reads: Callable[[ConnectionId], bool],
        takes: Callable[[], bool],
        on_wire: OnWire | None,
        connect: Callable[[Pump, Connect | ConnectUnix], SocketChannel] | None = None,
    ) -> None:
        super().__init__(transport, loop, deliver, on_wire=on_wire, connect=connect)
        self._reads = reads
        self._takes = takes
        self._took = True
        self._used: set[ConnectionId] = set()
        """Connections on which something happened since it was asked whether they are read."""

    def used(self, conn: ConnectionId) -> None:
        """Whether `conn` is read may have changed."""
        self._used.add(conn)

    def receive(self, conn: ConnectionId, data: bytes) -> None:
        self._used.add(conn)
        super().receive(conn, data)

    def _execute(self, op: Op) -> None:
        self._used.add(op.conn)
        super()._execute(op)

    def _read_on(self) -> None:
        if self._takes() is not self._took:
            self._took = not self._took
            self._used.update(self.channels)
        for conn in self._used:
            channel = self.channels.get(conn)
            if channel is not None:
                channel.want_data(self._reads(conn))
        self._used.clear()
