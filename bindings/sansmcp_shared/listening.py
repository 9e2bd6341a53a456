"""What drives a server of sockets, whatever accepts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Generic, TypeVar, cast

from sansmcp.events import Event
from sansmcp.ops import ConnectionId

from .pump import Channel, ManyPump, OnWire, Transport

if TYPE_CHECKING:  # who serves the one need not load what the other is made of
    import asyncio

    from sansmcp.http.listener import HttpListener
    from sansmcp.stream_listener import StreamListener

    from .http_server import HttpHandlers
    from .stream_server import StreamHandlers

H = TypeVar("H", "HttpHandlers", "StreamHandlers")

Ready = Callable[[str, int], object]
"""Called with the host and the port, once clients can connect."""


class ListenerPump(ManyPump):
    """Drives a listener."""

    def __init__(
        self,
        listener: HttpListener | StreamListener,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Event], None],
        *,
        on_wire: OnWire | None,
    ) -> None:
        super().__init__(
            cast(Transport, listener),
            loop,
            deliver,
            reads=listener.wants_data,
            takes=lambda: listener.takes_requests,
            on_wire=on_wire,
        )
        self._last_conn = 0

    def enter(self, channel: Channel) -> ConnectionId:
        """A client connected."""
        conn = self._last_conn = self._last_conn + 1
        self.channels[conn] = channel
        return conn


class Served(Generic[H]):
    """A server of sockets, whose end can be awaited."""

    _handlers: H | None = None

    async def closed(self) -> None:
        """Return when the server has ended; raise what ended it, if that was a fault of this library.

        Raises RuntimeError outside of the context.
        """
        pump = self._started.pump
        await pump.gone.wait()
        if pump.failure is not None:
            raise pump.failure

    @property
    def _started(self) -> H:
        if self._handlers is None:
            raise RuntimeError("the server was not started")
        return self._handlers
