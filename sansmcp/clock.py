"""Time as data: deadlines that name their reason, and one pair of clocks.

The core reads no clock. Every input carries ``now`` (monotonic seconds); what is waited for leaves
as an absolute time through ``next_timeout()``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush, heapreplace
from typing import Any, Generic, TypeVar

from .records import frozen

K = TypeVar("K", bound=Hashable)

_COMPACT_AT = 64
"""Stale heap entries tolerated before a sweep; keeps memory within twice the live entries."""


@frozen
class ClockPair:
    """One moment on both clocks: `now` monotonic seconds, `unix` seconds since 1970.

    The only way wall-clock time enters the core.
    """

    now: float
    unix: float

    def unix_at(self, now: float) -> float:
        """The wall-clock time of the monotonic moment `now`."""
        return self.unix + (now - self.now)


class Deadlines(Generic[K]):
    """At most one pending deadline per key, each with the reason it was set for.

    Theory of operation. A heap has one entry for each key, and may have stale ones of keys that were
    disarmed or armed for an earlier time. A key that is put off, as with each sign of life, keeps its
    entry: it is moved only when it comes to the top.
    """

    __slots__ = ("_heap", "_live", "_serial")

    def __init__(self) -> None:
        self._live: dict[K, tuple[float, int, str, float]] = {}
        """For when, the serial of its entry, why, and the time that stands in that entry."""
        self._heap: list[tuple[float, int, K]] = []
        self._serial = 0

    def __len__(self) -> int:
        return len(self._live)

    def __iter__(self) -> Iterator[K]:
        """Every armed key."""
        return iter(list(self._live))

    def set(self, key: K, when: float, reason: str) -> None:
        """Arm `key` for the absolute time `when`, replacing an earlier deadline of that key."""
        entry = self._live.get(key)
        if entry is not None and entry[3] <= when:
            self._live[key] = (when, entry[1], reason, entry[3])
            return
        serial = self._serial = self._serial + 1
        self._live[key] = (when, serial, reason, when)
        heappush(self._heap, (when, serial, key))
        if len(self._heap) > _COMPACT_AT + 2 * len(self._live):
            self._heap = [(entry[3], entry[1], k) for k, entry in self._live.items()]
            heapify(self._heap)

    def clear(self, key: K) -> None:
        """Disarm `key`; harmless when it is not armed."""
        self._live.pop(key, None)

    def clear_all(self) -> None:
        """Disarm everything."""
        self._live.clear()
        self._heap.clear()

    def reason(self, key: K) -> str | None:
        """Why `key` is armed, or None when it is not."""
        entry = self._live.get(key)
        return None if entry is None else entry[2]

    def when(self, key: K) -> float | None:
        """For which time `key` is armed, or None when it is not."""
        entry = self._live.get(key)
        return None if entry is None else entry[0]

    def pending(self) -> list[tuple[K, float, str]]:
        """Each ``(key, when, reason)`` that is armed, in the order in which they were set first."""
        entries = sorted(self._live.items(), key=lambda item: item[1][1])
        return [(key, when, reason) for key, (when, _, reason, _) in entries]

    def next(self) -> float | None:
        """The earliest armed time, or None."""
        heap = self._heap
        while heap:
            at, serial, key = heap[0]
            entry = self._live.get(key)
            if entry is None or entry[1] != serial:
                heappop(heap)
                continue
            when, _, reason, _ = entry
            if not when > at:
                return when
            self._live[key] = (when, serial, reason, when)
            heapreplace(heap, (when, serial, key))
        return None

    def expired(self, now: float) -> Iterator[tuple[K, str]]:
        """Yield and disarm each ``(key, reason)`` due at `now`, earliest first."""
        while (when := self.next()) is not None and when <= now:
            _, _, key = heappop(self._heap)
            yield key, self._live.pop(key)[2]


def earliest(*tables: Deadlines[Any]) -> float | None:
    """The earliest time that is armed in any of them, or None."""
    found: float | None = None
    for table in tables:
        if table._heap and (when := table.next()) is not None and (found is None or when < found):
            found = when
    return found
