"""What an application waits for besides answers: events, and the changes of a subscription."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, cast

from sansmcp.events import Event
from sansmcp_shared.changes import BaseChanges, Change
from sansmcp_shared.events import BaseEvents
from sansmcp_shared.flag import Flag

from ._loop import Future, Loop, Signal

if TYPE_CHECKING:
    from ._client import Client


class Events(BaseEvents):
    """What happens on a connection and belongs to no call, in order; ends with the connection.

    At most `Limits.max_buffered_events` wait to be taken. Past that, one `LimitHit` says so, and
    what comes is dropped until the rest was taken. Each event goes to one taker.
    """

    def __init__(self, loop: Loop, arrived: Flag, bound: int) -> None:
        super().__init__(arrived, bound)
        self._loop = loop

    def take(self, timeout: float | None = None) -> Event | None:
        """The next event. None when none came within `timeout` seconds, or none will come."""
        until = None if timeout is None else self._loop.time() + timeout
        while True:
            with self._loop.lock:
                event, over = self._take()
            if event is not None or over:
                return event
            if not self._loop.wait(cast(Signal, self._arrived), until):
                return None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Event:
        event = self.take()
        if event is None:
            raise StopIteration
        return event


class Changes(BaseChanges):
    """A subscription: made by `Client.listen`, opened by its context::

        with client.listen(tools=True, resources=["file:///a"]) as changes:
            for change in changes: ...

    Entering waits for the server and raises its refusal. What is not read waits, the same news once.
    The iteration ends when the server ends the subscription in an orderly way, or `close` is called,
    by any thread; it raises `SubscriptionLost`, after what was told before, when changes may have been
    missed.
    """

    def __init__(self, client: Client, options: Any) -> None:
        super().__init__(client, options)
        self._loop = client._threads

    def __enter__(self) -> Self:
        opened = cast("Future[None]", self._opened)
        with self._loop.lock:
            self._begin()
        try:
            self._loop.wait(opened)
            opened.result()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End it. What was told before can still be read. Harmless twice, and in any thread."""
        with self._loop.lock:
            super().close()

    def next(self, timeout: float | None = None) -> Change | None:
        """The next change. None when none came within `timeout` seconds, or none will come.

        Raises as the iteration does.
        """
        until = None if timeout is None else self._loop.time() + timeout
        while True:
            with self._loop.lock:
                change, closed = self._take()
            if change is not None:
                return change
            if closed is not None:
                lost = self._lost(closed)
                if lost is not None:
                    raise lost
                return None
            if not self._loop.wait(cast(Signal, self._arrived), until):
                return None

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Change:
        change = self.next()
        if change is None:
            raise StopIteration
        return change
