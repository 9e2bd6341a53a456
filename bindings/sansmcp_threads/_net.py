"""Sockets as channels, for transports that ask to connect."""

from __future__ import annotations

import os
import selectors
import socket
import ssl
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from sansmcp.events import Event
from sansmcp.http.connector import HttpConnector
from sansmcp.ops import Connect, ConnectUnix
from sansmcp_shared.connector_pump import ConnectorPump
from sansmcp_shared.network import HAPPY_EYEBALLS, in_turn, network_problem, peer_of
from sansmcp_shared.pump import OnWire, Pump, SocketChannel

from ._loop import Loop
from ._pump import ThreadPump
from ._sockets import Stream

if TYPE_CHECKING:
    from sansmcp.dialing import DialingClient


class _ConnectorPump(ThreadPump, ConnectorPump):
    """The same for HTTP."""


def net_pump(
    core: HttpConnector | DialingClient,
    loop: Loop,
    deliver: Callable[[Event], None],
    on_wire: OnWire | None,
    tls: Callable[[], ssl.SSLContext],
) -> ThreadPump:
    """What drives `core`, whose connections are sockets; `tls` is asked when it speaks TLS."""

    def connect(pump: Pump, op: Connect | ConnectUnix) -> Socket:
        return Socket(cast(ThreadPump, pump), core, op, tls)

    if isinstance(core, HttpConnector):
        return _ConnectorPump(core, loop.as_asyncio, deliver, on_wire=on_wire, connect=connect)
    return ThreadPump(core, loop.as_asyncio, deliver, on_wire=on_wire, connect=connect)


class Socket(Stream, SocketChannel):
    """The connection that a `Connect` or `ConnectUnix` asks for, from the attempt until it is closed."""

    def __init__(
        self,
        pump: ThreadPump,
        core: HttpConnector | DialingClient,
        op: Connect | ConnectUnix,
        tls: Callable[[], ssl.SSLContext],
    ) -> None:
        super().__init__(pump.threads)
        self._pump = pump
        self._core = core
        self._conn = op.conn
        self._tls = tls
        self._unwanted = threading.Event()
        self._ended = False
        dial = threading.Thread(target=self._dial, args=(op,), name="sansmcp connect", daemon=True)
        dial.start()

    def _dial(self, op: Connect | ConnectUnix) -> None:
        """In a thread: names are looked up by a function that blocks."""
        sock: socket.socket | None = None
        error: Exception | None = None
        try:
            sock = _connected(_addresses(op), self._unwanted)
            if isinstance(op, Connect) and op.tls is not None:
                sock.setblocking(False)
                sock = self._tls().wrap_socket(sock, server_hostname=op.tls, do_handshake_on_connect=False)
        except Exception as problem:
            error = problem
            if sock is not None:
                sock.close()
        try:
            self._loop.call_soon_threadsafe(self._dialled, sock, error)
        except RuntimeError:  # the loop was closed: nobody waits
            if sock is not None:
                sock.close()

    def _dialled(self, sock: socket.socket | None, error: Exception | None) -> None:
        if sock is None or self._ended:
            if sock is not None:
                sock.close()
            self.on_lost(error)
        else:
            self._use(sock)

    # the stream tells ----------------------------------------------------------------------------

    def on_open(self) -> None:
        if self._pump.failure is None:
            opened = self._core.opened
            if isinstance(self._core, HttpConnector):
                opened = partial(self._core.opened, peer=self._peer())
            self._pump.input(opened, self._conn)

    def _peer(self) -> str | None:
        """The address of who is at the other end."""
        assert self._sock is not None
        try:
            return peer_of(self._sock.getpeername())
        except OSError:  # it is gone already
            return None

    def on_data(self, data: bytes) -> None:
        self._pump.receive(self._conn, data)

    def on_eof(self) -> None:
        self._pump.input(self._core.receive_eof, self._conn)

    def on_lost(self, error: BaseException | None) -> None:
        if self._ended:
            return
        self._ended = True
        self._pump.lost(self._conn)
        if self._pump.failure is None:
            why = error or ConnectionResetError("it was ended")
            text = str(why) or type(why).__name__
            self._pump.input(lambda now: self._core.failed(self._conn, text, now, network_problem(why)))

    def on_paused(self, paused: bool) -> None:
        pass

    # the pump calls these ------------------------------------------------------------------------

    def start_tls(self, host: str) -> None:
        assert self._sock is not None
        self._watched = 0
        self._loop.watch(self._sock.fileno(), 0, self._ready)
        try:
            sock = self._tls().wrap_socket(self._sock, server_hostname=host, do_handshake_on_connect=False)
        except (OSError, ValueError) as error:
            self._lose(error)
            return
        # In a later turn: it may be open at once, which the pump is not to hear while it asks for it.
        self._sock, self._shaking = sock, True
        self._loop.call_soon(self._ready, 0)

    def close(self) -> None:
        # What was not written by now is part of a request that nobody wants any more.
        if self._parts or self._sock is None or self._shaking:
            self.abort()
        else:
            super().close()

    def abort(self) -> None:
        self._unwanted.set()
        if self._sock is None:
            self._loop.call_soon(self.on_lost, ConnectionAbortedError("it was given up"))
        super().abort()


def _addresses(op: Connect | ConnectUnix) -> list[tuple[Any, ...]]:
    """As `socket.getaddrinfo` tells them."""
    if isinstance(op, ConnectUnix):
        return [(socket.AF_UNIX, socket.SOCK_STREAM, 0, "", op.path)]
    return in_turn(socket.getaddrinfo(op.host, op.port, type=socket.SOCK_STREAM))


def _connected(addresses: list[tuple[Any, ...]], unwanted: threading.Event) -> socket.socket:
    """A socket that is connected to the first of the addresses to answer."""
    waiting = deque(addresses)
    errors: list[OSError] = []
    with selectors.DefaultSelector() as selector:
        try:
            while waiting or selector.get_map():
                if unwanted.is_set():
                    raise ConnectionAbortedError("it was given up")
                if waiting:
                    try:
                        won = _attempt(waiting.popleft(), selector)
                    except OSError as error:
                        errors.append(error)
                        continue
                    if won is not None:
                        return won
                for key, _ in selector.select(HAPPY_EYEBALLS):
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    selector.unregister(sock)
                    number = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                    if not number:
                        return sock
                    sock.close()
                    errors.append(OSError(number, os.strerror(number)))
        finally:
            for key in list(selector.get_map().values()):
                assert isinstance(key.fileobj, socket.socket)
                key.fileobj.close()
    raise errors[0]


def _attempt(address: tuple[Any, ...], selector: selectors.BaseSelector) -> socket.socket | None:
    """Begin to connect. None: the selector knows when it is decided."""
    family, kind, protocol, _, where = address
    sock = socket.socket(family, kind, protocol)
    try:
        sock.setblocking(False)
        sock.connect(where)
    except BlockingIOError:
        selector.register(sock, selectors.EVENT_WRITE)
        return None
    except BaseException:
        sock.close()
        raise
    return sock
