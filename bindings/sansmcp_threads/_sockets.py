"""A socket as a channel, with TLS if need be. All methods are called with the loop's lock held."""

from __future__ import annotations

import socket
import ssl
from abc import abstractmethod
from collections import deque
from contextlib import suppress
from typing import Final

from sansmcp_shared.pump import Channel

from ._loop import Loop
from ._poller import READ, WRITE

_CHUNK: Final = 65536
_HIGH: Final = 65536
"""Bytes that may wait to be written before that is told."""


class Stream(Channel):
    """Reads and writes one socket, once it has one. Whoever derives from it tells the pump."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._sock: socket.socket | None = None
        self._shaking = False
        """Whether TLS has to begin before anything else."""
        self._parts: deque[memoryview] = deque()
        self._size = 0
        self._reading = True
        self._eof = self._paused = self._closing = self._ending_write = False
        self._awaits = 0
        """What TLS waits for, whatever it is that we want."""
        self._watched = 0
        """What the loop watches it for."""

    # told to whoever derives ---------------------------------------------------------------------

    @abstractmethod
    def on_open(self) -> None:
        """It is open, or speaks TLS now."""

    @abstractmethod
    def on_data(self, data: bytes) -> None:
        """Bytes came."""

    @abstractmethod
    def on_eof(self) -> None:
        """No more will come."""

    @abstractmethod
    def on_lost(self, error: BaseException | None) -> None:
        """It is closed for good: by us, or for that error. Comes once."""

    @abstractmethod
    def on_paused(self, paused: bool) -> None:
        """Much waits to be written, or no longer does."""

    # a socket ------------------------------------------------------------------------------------

    def _use(self, sock: socket.socket) -> None:
        """From now on this is the socket. One that speaks TLS begins with it."""
        sock.setblocking(False)
        self._sock = sock
        self._shaking = isinstance(sock, ssl.SSLSocket)
        with suppress(OSError):  # no such thing on a unix socket
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._shaking:
            self._ready(0)
        else:
            self._watch()
            self.on_open()

    def _watch(self) -> None:
        if self._sock is not None:
            wanted = self._awaits
            if not self._shaking and not wanted:
                wanted = (READ if self._reading and not self._eof else 0) | (WRITE if self._parts else 0)
            if wanted != self._watched:
                self._watched = wanted
                self._loop.watch(self._sock.fileno(), wanted, self._ready)

    def _ready(self, events: int) -> None:
        awaited, self._awaits = self._awaits, 0
        try:
            if self._shaking:
                self._shake()
            else:
                if self._parts and (events & WRITE or awaited):
                    self._send()
                if self._sock is not None and self._reading and (events & READ or awaited):
                    self._receive()
        except ssl.SSLWantReadError:
            self._awaits = READ
        except ssl.SSLWantWriteError:
            self._awaits = WRITE
        except (BlockingIOError, InterruptedError):
            pass
        except OSError as error:
            self._lose(error)
        self._watch()

    def _shake(self) -> None:
        assert isinstance(self._sock, ssl.SSLSocket)
        self._sock.do_handshake()
        self._shaking = False
        self.on_open()

    def _receive(self) -> None:
        while self._sock is not None and self._reading:
            try:
                data = self._sock.recv(_CHUNK)
            except ssl.SSLWantReadError:
                return  # that is what is waited for anyway
            if not data:
                self._eof = True
                self._watch()
                self.on_eof()
                return
            self.on_data(data)
            # what TLS has decoded already is seen by no selector
            if not (isinstance(self._sock, ssl.SSLSocket) and self._sock.pending()):
                return

    def _send(self) -> None:
        parts = self._parts
        while parts and self._sock is not None:
            sent = self._sock.send(parts[0])
            self._size -= sent
            if sent == len(parts[0]):
                parts.popleft()
            else:
                parts[0] = parts[0][sent:]
        if parts or self._sock is None:
            return
        if self._paused:
            self._paused = False
            self.on_paused(False)
        if self._closing:
            self._lose(None)
        elif self._ending_write:
            self._sock.shutdown(socket.SHUT_WR)

    def _lose(self, error: BaseException | None) -> None:
        sock, self._sock = self._sock, None
        if sock is None:
            return
        self._loop.watch(sock.fileno(), 0, self._ready)
        if error is None and isinstance(sock, ssl.SSLSocket) and not self._shaking:
            with suppress(OSError, ValueError):
                sock.unwrap()  # says that this is the end, and does not wait for an answer
        sock.close()
        self._parts.clear()
        self._size = 0
        self.on_lost(error)

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        if self._sock is None or self._closing or self._ending_write:
            return
        self._parts.append(memoryview(data))
        self._size += len(data)
        if len(self._parts) == 1 and not self._shaking:
            self._ready(WRITE)
        if self._size > _HIGH and not self._paused:
            self._paused = True
            self.on_paused(True)

    def close_write(self) -> None:
        self._ending_write = True
        if not self._parts and self._sock is not None:
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        self._closing = True
        if not self._parts:
            self._lose(None)

    def abort(self) -> None:
        self._closing = True
        if self._sock is not None:
            self._lose(ConnectionAbortedError("it was given up"))

    def want_data(self, wanted: bool) -> None:
        if wanted is not self._reading:
            self._reading = wanted
            self._watch()
            if wanted and isinstance(self._sock, ssl.SSLSocket) and self._sock.pending():
                self._loop.call_soon(self._ready, READ)
