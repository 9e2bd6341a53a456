"""Drives a connector: the connections of a client over HTTP."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from sansmcp.events import Event
from sansmcp.http.connector import HttpConnector
from sansmcp.ops import Connect, ConnectUnix

from .pump import ManyPump, OnWire, Pump, SocketChannel

if TYPE_CHECKING:
    import asyncio


class ConnectorPump(ManyPump):
    """Drives `connector`; `connect` opens its connections."""

    def __init__(
        self,
        connector: HttpConnector,
        loop: asyncio.AbstractEventLoop,
        deliver: Callable[[Event], None],
        *,
        on_wire: OnWire | None,
        connect: Callable[[Pump, Connect | ConnectUnix], SocketChannel],
    ) -> None:
        super().__init__(
            connector,
            loop,
            deliver,
            reads=connector.wants_data,
            takes=lambda: connector.takes_data,
            on_wire=on_wire,
            connect=connect,
        )
        self._connector = connector

    def abort(self) -> None:
        if self.failure is None:
            self.input(self._connector.abort)
        super().abort()
