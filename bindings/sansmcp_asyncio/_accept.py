"""Those who connect to a server: sockets of the loop as channels."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from ssl import SSLContext
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

from sansmcp.ops import ConnectionId
from sansmcp_shared.listening import H, ListenerPump, Served
from sansmcp_shared.pump import Channel

if TYPE_CHECKING:
    from sansmcp.http.listener import HttpListener
    from sansmcp.stream_listener import StreamListener


class Listening(Served[H]):
    """A server of sockets for as long as its context lasts."""

    _server: asyncio.Server

    async def _start(
        self,
        handlers: Callable[[asyncio.AbstractEventLoop], H],
        tls: SSLContext | None,
        listen: Callable[
            [asyncio.AbstractEventLoop, Callable[[], Accepted]], Coroutine[Any, Any, asyncio.Server]
        ],
    ) -> None:
        """Begin to listen. Raises RuntimeError a second time."""
        if self._handlers is not None:
            raise RuntimeError("a server is started once")
        loop = asyncio.get_running_loop()
        made = handlers(loop)
        self._arrivals = Arrivals(made.pump, made.listener, tls)
        self._server = await listen(loop, self._arrivals.make)
        self._handlers = made

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._arrivals.end(self._server)
        await self._started.stop()
        await self._server.wait_closed()


class Arrivals:
    """Those who connect to a server, until they are connections of its."""

    def __init__(
        self, pump: ListenerPump, listener: HttpListener | StreamListener, tls: SSLContext | None
    ) -> None:
        self.pump = pump
        self.listener = listener
        self.tls = tls
        self.arriving: set[Accepted] = set()
        """Whose socket the loop has, and we do not yet."""

    def make(self) -> Accepted:
        """For a socket that the loop has accepted."""
        accepted = Accepted(self)
        self.arriving.add(accepted)
        return accepted

    async def end(self, server: asyncio.Server) -> None:
        """Let `server` listen no more; whoever was accepted already can be closed afterwards."""
        # What is accepted when a server of asyncio is closed is lost. So nobody is accepted first.
        with suppress(NotImplementedError):  # not every loop knows of readers, nor do they all lose it
            for sock in server.sockets:
                self.pump.loop.remove_reader(sock.fileno())
        await asyncio.sleep(0)  # until what was accepted in this turn has become something
        await asyncio.sleep(0)
        while self.arriving:  # noqa: ASYNC110  (a turn or two, of which nobody tells)
            await asyncio.sleep(0)
        server.close()


class Accepted(asyncio.Protocol, Channel):
    """One socket."""

    _transport: asyncio.Transport
    _conn: ConnectionId

    def __init__(self, arrivals: Arrivals) -> None:
        self._arrivals = arrivals
        self._pump = arrivals.pump
        self._listener = arrivals.listener
        # Where it does, what is still to be written can be; under TLS one end is the end of both.
        self._half_closes = arrivals.tls is None
        self._reading = True
        self._paused = self._begun = False
        self._starting: asyncio.Task[asyncio.Transport | None] | None = None
        """With TLS."""
        self._early: list[Callable[[], object]] = []
        """What came before it was seen that TLS has begun."""

    # the loop calls these ------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._arrivals.arriving.discard(self)
        self._transport = cast(asyncio.Transport, transport)
        self._conn = self._pump.enter(self)
        if self._pump.failure is not None:
            self._transport.abort()
        elif self._arrivals.tls is None:
            self._begin()
        else:
            # Not the server's own TLS: it could not be ended before it has begun.
            self._transport.pause_reading()
            loop = self._pump.loop
            starting = loop.start_tls(self._transport, self, self._arrivals.tls, server_side=True)
            self._starting = loop.create_task(starting)
            self._starting.add_done_callback(self._secured)

    def _secured(self, starting: asyncio.Task[asyncio.Transport | None]) -> None:
        self._starting = None
        failed = starting.cancelled() or starting.exception() is not None
        secured = None if failed else starting.result()
        if secured is None:
            self._transport.abort()
            self._gone()
        else:
            self._transport = secured
            self._begin()

    def _begin(self) -> None:
        self._begun = True
        name = self._transport.get_extra_info("peername")
        peer = f"{name[0]}:{name[1]}" if isinstance(name, tuple) else ""
        if self._pump.failure is None:
            self._pump.input(self._listener.accepted, self._conn, peer)
        for told in self._early:
            told()
        self._early.clear()

    def data_received(self, data: bytes) -> None:
        if self._begun:
            self._pump.receive(self._conn, data)
        else:
            self._early.append(lambda: self.data_received(data))

    def eof_received(self) -> bool:
        if self._begun:
            self._pump.input(self._listener.receive_eof, self._conn)
        else:
            self._early.append(self.eof_received)
        return self._half_closes

    def connection_lost(self, exc: Exception | None) -> None:
        if not self._begun and self._arrivals.tls is not None:
            self._early.append(lambda: self.connection_lost(exc))
            return
        if self._begun and self._pump.failure is None:
            self._pump.channels.pop(self._conn, None)
            self._pump.input(self._listener.failed, self._conn, str(exc or "closed"))
        self._gone()

    def _gone(self) -> None:
        self._pump.channels.pop(self._conn, None)
        self._pump.lost(self._conn)

    def pause_writing(self) -> None:
        self._paused = True
        self._listener.pause_writing(self._conn)
        self._pump.used(self._conn)
        self._pump.soon()

    def resume_writing(self) -> None:
        self._paused = False
        self._listener.resume_writing(self._conn)
        self._pump.used(self._conn)
        self._pump.soon()

    # the pump calls these ------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        self._transport.write(data)

    def close_write(self) -> None:
        if self._half_closes:
            self._transport.write_eof()

    def close(self) -> None:
        if self._paused or self._starting is not None:  # what was written is not read
            self.abort()
        else:
            self._transport.close()

    def abort(self) -> None:
        if self._starting is not None:
            self._starting.cancel()
        else:
            self._transport.abort()

    def want_data(self, wanted: bool) -> None:
        if wanted is self._reading or self._starting is not None or self._transport.is_closing():
            return
        self._reading = wanted
        if wanted:
            self._transport.resume_reading()
        else:
            self._transport.pause_reading()
