"""Sockets as channels, for transports that ask to connect."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import trio

from sansmcp.events import Event
from sansmcp.http.connector import HttpConnector
from sansmcp.ops import Connect, ConnectUnix
from sansmcp_shared.connector_pump import ConnectorPump
from sansmcp_shared.network import network_problem, peer_of
from sansmcp_shared.pump import OnWire, Pump, SocketChannel

from ._channels import BROKEN, Gate, Outbox
from ._channels import CHUNK as _CHUNK
from ._loop import TrioLoop

if TYPE_CHECKING:
    from sansmcp.dialing import DialingClient


_TURNS = 10
"""Turns of trio in which a socket has taken what it takes at once."""


def net_pump(
    core: HttpConnector | DialingClient,
    loop: TrioLoop,
    deliver: Callable[[Event], None],
    on_wire: OnWire | None,
    tls: Callable[[], ssl.SSLContext],
) -> Pump:
    """What drives `core`, whose connections are sockets; `tls` is asked when it speaks TLS."""

    def connect(pump: Pump, op: Connect | ConnectUnix) -> Socket:
        return Socket(loop, pump, core, op, tls)

    if isinstance(core, HttpConnector):
        return ConnectorPump(core, loop.as_asyncio, deliver, on_wire=on_wire, connect=connect)
    return Pump(core, loop.as_asyncio, deliver, on_wire=on_wire, connect=connect)


class Socket(SocketChannel):
    """The connection that a `Connect` or `ConnectUnix` asks for, from the attempt until it is closed."""

    def __init__(
        self,
        loop: TrioLoop,
        pump: Pump,
        core: HttpConnector | DialingClient,
        op: Connect | ConnectUnix,
        tls: Callable[[], ssl.SSLContext],
    ) -> None:
        self._loop = loop
        self._pump = pump
        self._core = core
        self._conn = op.conn
        self._tls = tls
        self._secure_as = op.tls if isinstance(op, Connect) else None
        """With whom TLS is to begin, before anything else is read."""
        self._stream: trio.abc.Stream | None = None
        self._peer: str | None = None
        """The address of who is at the other end."""
        self._outbox: Outbox | None = None
        self._gate = Gate()
        self._task = loop.create_task(self._run(op))

    async def _run(self, op: Connect | ConnectUnix) -> None:
        error: BaseException = ConnectionResetError("it was ended")
        try:
            if isinstance(op, ConnectUnix):
                self._stream = await trio.open_unix_socket(op.path)
            else:
                self._stream = stream = await trio.open_tcp_stream(op.host, op.port)
                self._peer = peer_of(stream.socket.getpeername())
            while True:
                await self._converse(self._stream)
        except (*BROKEN, ValueError) as problem:
            error = _cause(problem)
        finally:
            if self._outbox is not None:
                self._outbox.close()
            if self._stream is not None:
                with trio.CancelScope(shield=True):
                    await trio.aclose_forcefully(self._stream)
            self._pump.lost(self._conn)
            if self._pump.failure is None:
                text = str(error) or type(error).__name__
                self._pump.input(lambda now: self._core.failed(self._conn, text, now, network_problem(error)))

    async def _converse(self, stream: trio.abc.Stream) -> None:
        """Read until TLS has to begin."""
        if self._secure_as is not None:
            secured = trio.SSLStream(
                stream, self._tls(), server_hostname=self._secure_as, https_compatible=True
            )
            self._secure_as = None
            self._stream = stream = secured
            await secured.do_handshake()
        self._outbox = Outbox(self._loop, stream.send_all, self._broke, lambda paused: None)
        if self._pump.failure is None:
            opened = self._core.opened
            if isinstance(self._core, HttpConnector):
                opened = partial(self._core.opened, peer=self._peer)
            self._pump.input(opened, self._conn)
        while not self._turns_to_tls():
            await self._gate.passed()
            data = await stream.receive_some(_CHUNK)
            if not data:
                self._pump.input(self._core.receive_eof, self._conn)
                await trio.sleep_forever()  # until it is closed
            self._pump.receive(self._conn, bytes(data))

    def _turns_to_tls(self) -> bool:
        return self._secure_as is not None

    def _broke(self, error: BaseException) -> None:
        self._task.cancel()

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._outbox is not None:
            self._outbox.write(data)

    def start_tls(self, host: str) -> None:
        self._secure_as = host

    def close_write(self) -> None:
        stream = self._stream
        if self._outbox is not None and isinstance(stream, trio.SocketStream):
            self._outbox.finish(stream.send_eof)

    def close(self) -> None:
        if self._outbox is not None and self._outbox.size:
            self._loop.create_task(self._end())
        else:
            self.abort()

    async def _end(self) -> None:
        # What a socket does not take at once is part of a request that nobody wants any more.
        assert self._outbox is not None
        for _ in range(_TURNS):
            if not self._outbox.size:
                break
            await trio.lowlevel.checkpoint()
        self.abort()

    def abort(self) -> None:
        self._task.cancel()

    def want_data(self, wanted: bool) -> None:
        self._gate.set(wanted)


def _cause(error: BaseException) -> BaseException:
    """What trio wraps."""
    cause = error.__cause__
    if isinstance(cause, BaseExceptionGroup):
        cause = cause.exceptions[0]
    return cause if isinstance(cause, (OSError, ssl.SSLError)) else error
