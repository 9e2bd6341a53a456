"""Those who listen, and the sockets that clients connect with."""

from __future__ import annotations

import errno
import ssl
from collections.abc import Awaitable, Callable, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Final

import trio

from sansmcp_shared.listening import H, ListenerPump, Served
from sansmcp_shared.pump import Channel

from ._channels import BROKEN, Gate, Outbox, read_all
from ._client import Home
from ._loop import TrioLoop

if TYPE_CHECKING:
    from sansmcp.http.listener import HttpListener
    from sansmcp.stream_listener import StreamListener

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RELIEF: Final = 0.1
"""Seconds until it is looked again whether there are descriptors for those who connect."""


class Listening(Served[H]):
    """A server of sockets, and the nursery that it lives in."""

    def __init__(self) -> None:
        self._home = Home()
        self._listeners: Sequence[trio.SocketListener] = ()

    async def _start(
        self,
        listeners: Callable[[], Awaitable[Sequence[trio.SocketListener]]],
        handlers: Callable[[TrioLoop], H],
        tls: ssl.SSLContext | None,
    ) -> None:
        """Begin to listen. Raises RuntimeError a second time."""
        if self._handlers is not None:
            raise RuntimeError("a server is started once")
        loop = await self._home.open()
        try:
            self._listeners = await listeners()
            self._handlers = handlers(loop)
        except BaseException:
            for listener in self._listeners:
                listener.socket.close()
            await self._home.close()
            raise
        self._accepting = [loop.create_task(self._accept(loop, each, tls)) for each in self._listeners]

    async def _accept(
        self, loop: TrioLoop, listener: trio.SocketListener, tls: ssl.SSLContext | None
    ) -> None:
        handlers = self._started
        async with listener:
            while True:
                try:
                    stream = await listener.accept()
                except OSError as error:
                    if error.errno not in _EXHAUSTED:
                        raise
                    await trio.sleep(_RELIEF)
                    continue
                try:
                    accepted = Accepted(loop, handlers.pump, handlers.listener, stream, tls)
                except OSError:  # it is gone already
                    await trio.aclose_forcefully(stream)
                    continue
                loop.create_task(accepted.run())

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        for task in self._accepting:
            task.cancel()
        try:
            with trio.CancelScope(shield=True):
                await self._started.stop()
        finally:
            await self._home.close()


class Accepted(Channel):
    """One client's socket."""

    def __init__(
        self,
        loop: TrioLoop,
        pump: ListenerPump,
        listener: HttpListener | StreamListener,
        stream: trio.SocketStream,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._pump = pump
        self._listener = listener
        self._stream: trio.SocketStream | trio.SSLStream[trio.SocketStream] = stream
        if tls is not None:
            self._stream = trio.SSLStream(stream, tls, server_side=True, https_compatible=True)
        name = stream.socket.getpeername()
        self._peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""
        self._gate = Gate()
        self._scope = trio.CancelScope()
        self._outbox = Outbox(loop, self._stream.send_all, self._broke, self._on_paused)
        self._paused = False
        self._conn = pump.enter(self)

    async def run(self) -> None:
        """Serve it until it is closed."""
        pump, listener, error = self._pump, self._listener, ""
        try:
            with self._scope:
                pump.input(listener.accepted, self._conn, self._peer)
                await read_all(self._stream.receive_some, self._gate, self._take)
                pump.input(listener.receive_eof, self._conn)
                if isinstance(self._stream, trio.SocketStream):
                    await trio.sleep_forever()  # until it is closed
        except BROKEN as problem:
            error = str(problem)
        finally:
            self._outbox.close()
            with trio.CancelScope(shield=True):
                await trio.aclose_forcefully(self._stream)
            pump.channels.pop(self._conn, None)
            if pump.failure is None:
                pump.input(listener.failed, self._conn, error or "closed")
            pump.lost(self._conn)

    def _take(self, data: bytes) -> None:
        self._pump.receive(self._conn, data)

    def _broke(self, error: BaseException) -> None:
        self._scope.cancel()

    def _on_paused(self, paused: bool) -> None:
        self._paused = paused
        (self._listener.pause_writing if paused else self._listener.resume_writing)(self._conn)
        self._pump.used(self._conn)
        self._pump.soon()

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._outbox.write(data)

    def close_write(self) -> None:
        if isinstance(self._stream, trio.SocketStream):
            self._outbox.finish(self._stream.send_eof)

    def close(self) -> None:
        if self._paused:  # what was written is not read
            self.abort()
        else:
            self._outbox.finish(self._end)

    async def _end(self) -> None:
        self._scope.cancel()

    def abort(self) -> None:
        self._scope.cancel()

    def want_data(self, wanted: bool) -> None:
        self._gate.set(wanted)
