"""What happens on a connection and belongs to no call, as an asynchronous iterator."""

from __future__ import annotations

from collections import deque
from typing import Self

from sansmcp.events import Event, LimitHit, SessionEnded

from .flag import Flag


class BaseEvents:
    """What waits to be taken; how to wait for more is left to whoever derives."""

    def __init__(self, arrived: Flag, bound: int) -> None:
        self._bound = bound
        self._waiting: deque[Event] = deque()
        self._arrived = arrived
        self._full = self._over = False

    def put(self, event: Event) -> None:
        """For the client: add an event, or drop it past the bound."""
        if len(self._waiting) < self._bound and not self._full:
            self._waiting.append(event)
        elif not self._full:
            self._full = True
            what = f"{self._bound} events wait to be taken from events(); those to come are dropped"
            self._waiting.append(LimitHit("max_buffered_events", what))
        self._over = self._over or isinstance(event, SessionEnded)
        self._arrived.set()

    def _take(self) -> tuple[Event | None, bool]:
        """The next event if there is one, and whether none will come."""
        if not self._waiting:
            if not self._over:
                self._arrived.clear()
            return None, self._over
        event = self._waiting.popleft()
        self._full = self._full and bool(self._waiting)
        return event, False


class Events(BaseEvents):
    """What happens on a connection and belongs to no call, in order; ends with the connection.

    At most `Limits.max_buffered_events` wait to be taken. Past that, one `LimitHit` says so, and
    what comes is dropped until the rest was taken. Each event goes to one taker.
    """

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while True:
            event, over = self._take()
            if event is not None:
                return event
            if over:
                raise StopAsyncIteration
            await self._arrived.wait()
