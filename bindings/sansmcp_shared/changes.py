"""A subscription as an asynchronous iterator, open for as long as its context lasts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Self, TypedDict, cast

from sansmcp.errors import CloseReason, SansmcpError, SubscriptionLost
from sansmcp.events import (
    ChangesMissed,
    Event,
    ListChanged,
    RequestFailed,
    ResourceUpdated,
    SubscriptionClosed,
    SubscriptionInterrupted,
    SubscriptionOpened,
)
from sansmcp.session.calls import Call
from sansmcp.session.subscriptions import ChangeBuffer, Relisten

if TYPE_CHECKING:
    import asyncio

    from sansmcp.types.subscriptions import SubscriptionFilter

    from .client import BaseClient

Change = ListChanged | ResourceUpdated | SubscriptionInterrupted | ChangesMissed
"""What a subscription brings: what changed, and, with `relisten`, that it was interrupted."""

EVENTS_OF_CHANGES: Final = (
    ListChanged,
    ResourceUpdated,
    SubscriptionOpened,
    SubscriptionInterrupted,
    ChangesMissed,
    SubscriptionClosed,
    RequestFailed,
)
"""What a client passes on, if it is of the call of a subscription."""


class ListenOptions(TypedDict, total=False):
    """What a client can listen to, and how."""

    tools: bool
    """Changes of the list of tools."""
    prompts: bool
    """Changes of the list of prompts."""
    resource_list: bool
    """Changes of the list of resources."""
    resources: Iterable[str]
    """Changes of the resources at these URIs."""
    ack_timeout: float
    """Seconds until the server must have said what it grants; 2026-07-28 only."""
    relisten: Relisten | None
    """Ask again when the subscription is lost. None, the default: that ends it."""
    max_buffered: int
    """Changes that may wait to be read, **64** unless given; past it the subscription lags and ends."""


class BaseChanges:
    """A subscription; how to wait for what it brings is left to whoever derives."""

    def __init__(self, client: BaseClient, options: ListenOptions) -> None:
        self._client = client
        self._options: dict[str, Any] = {**options}
        self._buffer = ChangeBuffer(self._options.pop("max_buffered", 64))
        self._arrived = client._pump.make_flag()
        self._opened: asyncio.Future[None] = client._loop.create_future()
        self._call: Call | None = None
        self.honored: SubscriptionFilter | None = None
        """What the server tells of. None before it was entered."""
        self.refused: SubscriptionFilter | None = None
        """What was asked for and is not told."""
        self.closed: SubscriptionClosed | None = None
        """How it ended. None while it is open."""

    def _begin(self) -> None:
        if self._call is not None:
            raise RuntimeError("a subscription is opened once")
        client = self._client
        client._check_open()
        self._call = client._engine.listen(now=client._loop.time(), **self._options)
        client._listening[self._call] = self
        client._pump.drain()

    def close(self) -> None:
        """End it. What was told before can still be read. Harmless twice."""
        self._verb(self._client._engine.cancel)

    def _verb(self, verb: Callable[..., object]) -> None:
        if self._call is not None and self._client._pump.failure is None:
            self._client._pump.input(verb, self._call)

    def _take(self) -> tuple[Change | None, SubscriptionClosed | None]:
        """The next change if there is one, and how it ended if none will come."""
        event = cast("Change | None", self._buffer.take())  # nothing else is put in
        if event is None and self.closed is None:
            self._arrived.clear()
        return event, None if event is not None else self.closed

    @staticmethod
    def _lost(closed: SubscriptionClosed) -> Exception | None:
        """What is to be raised for that end. None: it ended in an orderly way."""
        if closed.reason in (CloseReason.LOCAL, CloseReason.GRACEFUL):
            return None
        text = f"{closed.call.subject}: its changes were not read as fast as they came"
        lost = SubscriptionLost(text if closed.error is None else str(closed.error), reason=closed.reason)
        lost.__cause__ = closed.error
        return lost

    def take(self, event: Event) -> bool:
        """For the client: one of `EVENTS_OF_CHANGES`. False when it was the last one."""
        match event:
            case SubscriptionOpened():
                self.honored, self.refused = event.honored, event.refused
                if not self._opened.done():
                    self._opened.set_result(None)
            case SubscriptionClosed():
                self.closed = event
            case RequestFailed():
                self.fail(event.error)
            case _ if not self._buffer.put(event):
                self._verb(self._client._engine.end_lagging)
            case _:
                pass
        self._arrived.set()
        return not isinstance(event, (SubscriptionClosed, RequestFailed))

    def fail(self, error: SansmcpError) -> None:
        """For the client: nothing more will come."""
        if not self._opened.done():
            self._opened.set_exception(error)
        elif self.closed is None and self._call is not None:
            self.closed = SubscriptionClosed(self._call, CloseReason.LOST, error)
        self._arrived.set()


class Changes(BaseChanges):
    """A subscription: made by `Client.listen`, opened by its context::

        async with client.listen(tools=True, resources=["file:///a"]) as changes:
            async for change in changes: ...

    Entering waits for the server and raises its refusal. What is not read waits, the same news once.
    The iteration ends when the server ends the subscription in an orderly way, or `close` is called;
    it raises `SubscriptionLost`, after what was told before, when changes may have been missed.
    """

    async def __aenter__(self) -> Self:
        self._begin()
        try:
            await self._opened
        except BaseException:  # a refusal, or whatever the loop cancels with
            self.close()
            raise
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Change:
        while True:
            change, closed = self._take()
            if change is not None:
                return change
            if closed is not None:
                raise self._lost(closed) or StopAsyncIteration()
            await self._arrived.wait()


__all__ = ["EVENTS_OF_CHANGES", "BaseChanges", "Change", "Changes", "ListenOptions"]
