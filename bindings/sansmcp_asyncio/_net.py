"""Sockets as channels, for transports that ask to connect."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from sansmcp.events import Event
from sansmcp.http.connector import HttpConnector
from sansmcp.ops import Connect, ConnectUnix
from sansmcp_shared.connector_pump import ConnectorPump
from sansmcp_shared.network import HAPPY_EYEBALLS, in_turn, network_problem, peer_of
from sansmcp_shared.pump import OnWire, Pump, SocketChannel

if TYPE_CHECKING:
    from sansmcp.dialing import DialingClient

_TLS_GOODBYE = 1.0
"""Seconds for a server to say that it saw the end of TLS."""


def net_pump(
    core: HttpConnector | DialingClient,
    loop: asyncio.AbstractEventLoop,
    deliver: Callable[[Event], None],
    on_wire: OnWire | None,
    tls: Callable[[], ssl.SSLContext],
) -> Pump:
    """What drives `core`, whose connections are sockets; `tls` is asked when it speaks TLS."""

    def connect(pump: Pump, op: Connect | ConnectUnix) -> Socket:
        return Socket(pump, core, op, tls)

    if isinstance(core, HttpConnector):
        return ConnectorPump(core, loop, deliver, on_wire=on_wire, connect=connect)
    return Pump(core, loop, deliver, on_wire=on_wire, connect=connect)


class Socket(asyncio.Protocol, SocketChannel):
    """The connection that a `Connect` or `ConnectUnix` asks for, from the attempt until it is closed."""

    def __init__(
        self,
        pump: Pump,
        core: HttpConnector | DialingClient,
        op: Connect | ConnectUnix,
        tls: Callable[[], ssl.SSLContext],
    ) -> None:
        self._pump = pump
        self._core = core
        self._conn = op.conn
        self._tls = tls
        self._transport: asyncio.Transport | None = None
        self._reading = True
        self._unwanted = self._closed = False
        self._end: Exception | None = None
        """Why it ended before that step was seen to be done."""
        self._task: asyncio.Task[None] | None = None
        """The step under way: it connects, or begins with TLS."""
        self._do(self._open(op))

    async def _open(self, op: Connect | ConnectUnix) -> None:
        loop, options = self._pump.loop, dict[str, Any]()
        if isinstance(op, ConnectUnix):
            await loop.create_unix_connection(lambda: self, op.path)
            return
        if op.tls is not None:
            options = {"ssl": self._tls(), "server_hostname": op.tls, "ssl_shutdown_timeout": _TLS_GOODBYE}
        # Not the race of the loop: who is cancelled just when it was won would leave a socket behind.
        sock = await _connected(loop, op.host, op.port)
        try:
            await loop.create_connection(lambda: self, sock=sock, **options)
        except ValueError:  # for a name that cannot be of a certificate
            sock.close()
            raise

    async def _secure(self, transport: asyncio.Transport, host: str) -> None:
        secured = await self._pump.loop.start_tls(
            transport, self, self._tls(), server_hostname=host, ssl_shutdown_timeout=_TLS_GOODBYE
        )
        if secured is None:
            raise ConnectionResetError("it was ended")
        self._transport = secured

    def _do(self, step: Coroutine[Any, Any, None]) -> None:
        """Take a step after which the connection is open, or is not."""
        self._task = self._pump.loop.create_task(step)
        # Also a task that is cancelled before it began has an end.
        self._task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._task = None
        error = asyncio.CancelledError() if task.cancelled() else task.exception() or self._end
        if error is not None:
            self._fail(error)
        elif self._unwanted:
            self.abort()
        elif self._pump.failure is None:
            opened = self._core.opened
            if isinstance(self._core, HttpConnector):
                opened = partial(self._core.opened, peer=self._peer())
            self._pump.input(opened, self._conn)

    def _peer(self) -> str | None:
        """The address of who is at the other end; None where that has none."""
        return None if self._transport is None else peer_of(self._transport.get_extra_info("peername"))

    def _fail(self, error: BaseException) -> None:
        """There is no connection, and will be none."""
        if self._transport is not None:
            self._transport.abort()
        if self._closed:
            return
        self._closed = True
        self._pump.lost(self._conn)
        if self._pump.failure is None:
            text = str(error) or type(error).__name__
            self._pump.input(lambda now: self._core.failed(self._conn, text, now, network_problem(error)))

    # the loop calls these ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._pump.receive(self._conn, data)

    def eof_received(self) -> None:
        if self._task is None:
            self._pump.input(self._core.receive_eof, self._conn)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end = exc or ConnectionResetError("it was ended")
        if self._task is None:
            self._fail(self._end)

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)

    def start_tls(self, host: str) -> None:
        assert self._transport is not None
        self._do(self._secure(self._transport, host))

    def close(self) -> None:
        transport = self._transport
        # What was not written by now is part of a request that nobody wants any more.
        if self._task is None and transport is not None and not transport.get_write_buffer_size():
            transport.close()
        else:
            self.abort()

    def abort(self) -> None:
        self._unwanted = True
        if self._task is not None:
            self._task.cancel()
        elif self._transport is not None:
            self._transport.abort()

    def want_data(self, wanted: bool) -> None:
        transport = self._transport
        if wanted is self._reading or transport is None or transport.is_closing() or self._task is not None:
            return
        self._reading = wanted
        if wanted:
            transport.resume_reading()
        else:
            transport.pause_reading()


async def _connected(loop: asyncio.AbstractEventLoop, host: str, port: int) -> socket.socket:
    """A socket that is connected to the first of the addresses of `host` to answer. Raises OSError."""
    waiting = deque(in_turn(await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
    errors: list[BaseException] = []
    race: set[asyncio.Task[socket.socket]] = set()
    try:
        while waiting or race:
            if waiting:
                race.add(loop.create_task(_attempt(loop, *waiting.popleft())))
            done, _ = await asyncio.wait(
                race, timeout=HAPPY_EYEBALLS if waiting else None, return_when=asyncio.FIRST_COMPLETED
            )
            for attempt in done:
                race.remove(attempt)
                error = attempt.exception()
                if error is None:
                    return attempt.result()
                errors.append(error)
    finally:
        for attempt in race:
            attempt.cancel()
            attempt.add_done_callback(_unwanted)
    raise errors[0]


async def _attempt(
    loop: asyncio.AbstractEventLoop, family: int, kind: int, protocol: int, name: str, where: Any
) -> socket.socket:
    """Connect to one address, as `socket.getaddrinfo` tells them."""
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        await loop.sock_connect(sock, where)
    except BaseException:
        sock.close()
        raise
    return sock


def _unwanted(attempt: asyncio.Task[socket.socket]) -> None:
    """It has lost, perhaps after it had connected."""
    if not attempt.cancelled() and attempt.exception() is None:
        attempt.result().close()
