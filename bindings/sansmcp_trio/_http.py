"""Serves an `App` over HTTP."""

from __future__ import annotations

import errno
import ssl
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

import trio

from sansmcp.app import App
from sansmcp.http.listener import HttpListener, policy_for
from sansmcp_asyncio._http import HttpHandlers, HttpOptions, ListenerPump, Ready
from sansmcp_asyncio._pump import Channel

from ._channels import BROKEN, Gate, Outbox, read_all
from ._client import Home
from ._loop import TrioLoop

if TYPE_CHECKING:
    from sansmcp.stream_listener import StreamListener

_EXHAUSTED: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_RELIEF: Final = 0.1
"""Seconds until it is looked again whether there are descriptors for those who connect."""


async def serve_http(
    app: App,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    ready: Ready | None = None,
    **options: Unpack[HttpOptions],
) -> None:
    """Serve `app` over HTTP until cancelled. With `port` 0 the system chooses one; `ready` is told it.

    Handlers are called as by `serve_stdio`. Raises OSError if it cannot listen there, and
    LocalProtocolError for options that cannot be.
    """
    async with HttpServing(app, host, port, **options) as serving:
        if ready is not None:
            ready(serving.host, serving.port)
        await serving.closed()


class HttpServing:
    """A server over HTTP for as long as the context lasts, which is a nursery::

        async with HttpServing(app) as serving:
            print(serving.url)
            await serving.closed()

    The parameters and errors are those of `serve_http`. At its end what is open is answered, as far as
    that takes no time, handlers are cancelled and connections closed.
    """

    def __init__(
        self, app: App, host: str = "127.0.0.1", port: int = 0, **options: Unpack[HttpOptions]
    ) -> None:
        self.host = host
        """Where it listens."""
        self.port = port
        """Where it listens: the real port once the context was entered."""
        self._app = app
        self._options = options
        self._path = options.get("path", "/mcp")
        self._home = Home()
        self._handlers: HttpHandlers | None = None

    @property
    def url(self) -> str:
        """Of the endpoint."""
        scheme = "http" if self._options.get("ssl") is None else "https"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{self.port}{self._path or '/'}"

    @property
    def listener(self) -> HttpListener:
        """The machine behind it, for its `stats`. Raises RuntimeError outside of the context."""
        if self._handlers is None:
            raise RuntimeError("the server was not started")
        return self._handlers.listener

    async def closed(self) -> None:
        """Return when the server has ended; raise what ended it, if that was a fault of this library.

        Raises RuntimeError outside of the context.
        """
        if self._handlers is None:
            raise RuntimeError("the server was not started")
        pump = self._handlers.pump
        await pump.gone.wait()
        if pump.failure is not None:
            raise pump.failure

    async def __aenter__(self) -> Self:
        if self._handlers is not None:
            raise RuntimeError("a server is started once")
        options: dict[str, Any] = dict(self._options)
        tls: ssl.SSLContext | None = options.pop("ssl", None)
        if options.get("policy") is None:
            options["policy"] = policy_for(self.host)
        loop = await self._home.open()
        try:
            listeners = await trio.open_tcp_listeners(self.port, host=self.host or None)
            handlers = HttpHandlers(self._app, loop.as_asyncio, **options)
        except BaseException:
            await self._home.close()
            raise
        self._handlers = handlers
        self.port = listeners[0].socket.getsockname()[1]
        self._accepting = [loop.create_task(self._accept(loop, each, tls)) for each in listeners]
        return self

    async def _accept(
        self, loop: TrioLoop, listener: trio.SocketListener, tls: ssl.SSLContext | None
    ) -> None:
        handlers = self._handlers
        assert handlers is not None
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
        assert self._handlers is not None
        for task in self._accepting:
            task.cancel()
        try:
            with trio.CancelScope(shield=True):
                await self._handlers.stop()
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
