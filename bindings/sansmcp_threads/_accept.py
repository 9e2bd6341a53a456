"""Sockets that listen, and those that clients connect with."""

from __future__ import annotations

import errno
import os
import socket
import ssl
from abc import ABC, abstractmethod
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Generic, Self, TypeVar, cast

from sansmcp_shared.listening import ListenerPump

from ._loop import Loop, Signal
from ._poller import READ
from ._pump import ThreadPump
from ._server import ThreadHandlers
from ._sockets import Stream

if TYPE_CHECKING:
    from sansmcp.http.listener import HttpListener
    from sansmcp.stream_listener import StreamListener
    from sansmcp_shared.http_server import HttpHandlers
    from sansmcp_shared.stream_server import StreamHandlers

H = TypeVar("H", "HttpHandlers", "StreamHandlers")

BACKLOG: Final = 100
_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RELIEF: Final = 1.0
"""Seconds until it is looked again whether there are descriptors for those who connect."""


class ThreadListenerPump(ThreadPump, ListenerPump):
    """Drives a listener."""


def listen_at(host: str, port: int) -> list[socket.socket]:
    """Sockets at every address of `host`, or of this machine. Raises OSError."""
    socks: list[socket.socket] = []
    try:
        for family, kind, protocol, _, address in dict.fromkeys(
            socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        ):
            sock = socket.socket(family, kind, protocol)
            socks.append(sock)
            if os.name == "posix":
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind((address[0], port or socks[0].getsockname()[1], *address[2:]))
            sock.listen(BACKLOG)
    except BaseException:
        for sock in socks:
            sock.close()
        raise
    return socks


class Acceptor:
    """Takes whoever connects to `sock`, until it is closed. With the loop's lock held."""

    def __init__(self, loop: Loop, sock: socket.socket, take: Callable[[socket.socket], object]) -> None:
        sock.setblocking(False)
        self._loop = loop
        self._sock = sock
        self._take = take
        self._watch()

    def _watch(self) -> None:
        if self._sock.fileno() >= 0:
            self._loop.watch(self._sock.fileno(), READ, self._accept)

    def _accept(self, events: int) -> None:
        for _ in range(BACKLOG):
            try:
                sock, _ = self._sock.accept()
            except OSError as error:
                if error.errno in _EXHAUSTED:
                    self._loop.watch(self._sock.fileno(), 0, self._accept)
                    self._loop.call_at(self._loop.time() + _RELIEF, self._watch)
                return
            self._take(sock)

    def close(self) -> None:
        """Harmless twice."""
        if self._sock.fileno() >= 0:
            self._loop.watch(self._sock.fileno(), 0, self._accept)
            self._sock.close()


class Accepted(Stream):
    """One client's socket."""

    def __init__(
        self,
        pump: ListenerPump,
        listener: HttpListener | StreamListener,
        sock: socket.socket,
        tls: ssl.SSLContext | None,
    ) -> None:
        super().__init__(cast(Loop, pump.loop))
        self._pump = pump
        self._listener = listener
        name = sock.getpeername() if sock.family != getattr(socket, "AF_UNIX", None) else ""
        peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""
        self._half_closes = tls is None
        sock.setblocking(False)
        if tls is not None:
            sock = tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        self._sock, self._shaking = sock, tls is not None
        self._conn = pump.enter(self)
        # Also before TLS has begun: whoever does not begin with it is ended as one who says nothing.
        pump.input(listener.accepted, self._conn, peer)
        if self._sock is not None:  # it may have been one too many
            self._use(sock)

    # the stream tells ----------------------------------------------------------------------------

    def on_open(self) -> None:
        pass

    def on_data(self, data: bytes) -> None:
        self._pump.receive(self._conn, data)

    def on_eof(self) -> None:
        self._pump.input(self._listener.receive_eof, self._conn)
        if not self._half_closes:
            self.close()

    def on_lost(self, error: BaseException | None) -> None:
        self._pump.channels.pop(self._conn, None)
        if self._pump.failure is None:
            self._pump.input(self._listener.failed, self._conn, str(error or "closed"))
        self._pump.lost(self._conn)

    def on_paused(self, paused: bool) -> None:
        (self._listener.pause_writing if paused else self._listener.resume_writing)(self._conn)
        self._pump.used(self._conn)
        self._pump.soon()

    # the pump calls these ------------------------------------------------------------------------

    def close_write(self) -> None:
        if self._half_closes:
            super().close_write()

    def close(self) -> None:
        if self._paused:  # what was written is not read
            self.abort()
        else:
            super().close()


class Listening(ABC, Generic[H]):
    """A server of sockets, driven by a thread of its own or by the one that waits for its end."""

    def __init__(self) -> None:
        self._loop: Loop | None = None
        self._handlers: H | None = None
        self._acceptors: list[Acceptor] = []
        self._address: Any = None
        """Where the first of its sockets listens."""

    def closed(self) -> None:
        """Return when the server has ended; raise what ended it, if that was a fault of this library.

        Raises RuntimeError outside of the context.
        """
        loop, handlers = self._started
        loop.wait(cast(Signal, handlers.pump.gone))
        if handlers.pump.failure is not None:
            raise handlers.pump.failure

    def close(self) -> None:
        """End it. Harmless twice, and in any thread."""
        loop, handlers = self._started
        if not loop.closed:
            with loop.lock:
                for acceptor in self._acceptors:
                    acceptor.close()
            cast(ThreadHandlers, handlers).stop_now()
            loop.close()

    def __enter__(self) -> Self:
        self._start(keep=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    @abstractmethod
    def _start(self, keep: bool) -> None:
        """Call `_listen` with what is served."""

    @property
    def _started(self) -> tuple[Loop, H]:
        if self._loop is None or self._handlers is None:
            raise RuntimeError("the server was not started")
        return self._loop, self._handlers

    def _listen(
        self,
        sockets: Callable[[], list[socket.socket]],
        make: Callable[[Loop], H],
        tls: ssl.SSLContext | None,
        keep: bool,
    ) -> None:
        """Begin, with a thread of its own if it is to `keep` running. Raises RuntimeError a second time."""
        if self._loop is not None:
            raise RuntimeError("a server is started once")
        with Loop() as loop:
            socks = sockets()
            try:
                handlers = make(loop)
            except BaseException:
                for sock in socks:
                    sock.close()
                raise
            self._address = socks[0].getsockname()

            def take(sock: socket.socket) -> None:
                try:
                    Accepted(handlers.pump, handlers.listener, sock, tls)
                except OSError:  # it is gone already
                    sock.close()

            self._loop, self._handlers = loop, handlers
            with loop.lock:
                self._acceptors = [Acceptor(loop, sock, take) for sock in socks]
            if keep:
                loop.keep(at_once=True)
