"""What was read of a server's list, by the names in it: it holds until a newer list was read.

How long a list may be used again is another matter (`cache`): what is kept here is kept however old
the list is.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

V = TypeVar("V")


class Listed(Generic[V]):
    """One value for each name, at most `limit` of them.

    Each page is taken by `begin`, `note` for what is on it, and `end`.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._known: dict[str, tuple[V, int]] = {}
        """With the number of the list it was in."""
        self._list = 0
        self.overflowed = False
        """Whether there was more than `limit` in the list that was read last."""

    def __len__(self) -> int:
        return len(self._known)

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def get(self, name: object) -> V | None:
        """What was noted for `name`; None for nothing."""
        found = self._known.get(name) if isinstance(name, str) else None
        return None if found is None else found[0]

    def forget(self) -> None:
        """The list changed: nothing that was read of it holds any more."""
        self._known.clear()

    def begin(self, *, first: bool) -> None:
        """A page comes; `first` tells that a list begins with it."""
        if first:
            self._list += 1
            self.overflowed = False

    def note(self, name: str, value: V | None) -> None:
        """Keep what the page says of `name`; None for nothing."""
        known = self._known
        known.pop(name, None)  # what is set anew stands last, so that the first is the oldest
        if value is None:
            return
        if len(known) >= self._limit:
            oldest = next(iter(known), None)
            if oldest is None or known[oldest][1] == self._list:
                self.overflowed = True
                return
            del known[oldest]
        known[name] = (value, self._list)

    def end(self, *, last: bool) -> None:
        """The page was read; `last` tells that the list ends with it: what is not in it is gone."""
        if last:
            for name in [name for name, (_, number) in self._known.items() if number != self._list]:
                del self._known[name]


__all__ = ["Listed"]
