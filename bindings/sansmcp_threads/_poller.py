"""Waiting for many descriptors at once, as `selectors` does, but with numbers in and numbers out."""

from __future__ import annotations

import select
import selectors
import sys
from contextlib import suppress
from typing import Final, Protocol

READ: Final = selectors.EVENT_READ
WRITE: Final = selectors.EVENT_WRITE
_BOTH: Final = READ | WRITE


class Poller(Protocol):
    """What waits for descriptors."""

    def watch(self, fd: int, events: int) -> None:
        """Wait for `events` of `fd`; 0: for nothing any more."""

    def poll(self, timeout: float | None) -> list[tuple[int, int]]:
        """Which descriptors are ready within `timeout` seconds, and for what. What broke is so for both."""

    def close(self) -> None:
        """Give it back."""


class Selected(Poller):
    """By whatever the system has."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, fd: int, events: int) -> None:
        with suppress(KeyError, ValueError):
            self._selector.unregister(fd)
        if events:
            self._selector.register(fd, events)

    def poll(self, timeout: float | None) -> list[tuple[int, int]]:
        return [(key.fd, events) for key, events in self._selector.select(timeout)]

    def close(self) -> None:
        self._selector.close()


if sys.platform == "linux":

    class Polled(Poller):
        """By epoll, which threads that call alone would else reach by a detour with each call."""

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self._masks: dict[int, int] = {}

        def watch(self, fd: int, events: int) -> None:
            mask = (select.EPOLLIN if events & READ else 0) | (select.EPOLLOUT if events & WRITE else 0)
            if not mask:
                if self._masks.pop(fd, None) is not None:
                    with suppress(OSError):  # it is closed already
                        self._epoll.unregister(fd)
            elif fd in self._masks:
                self._masks[fd] = mask
                self._epoll.modify(fd, mask)
            else:
                self._epoll.register(fd, mask)
                self._masks[fd] = mask

        def poll(self, timeout: float | None) -> list[tuple[int, int]]:
            return [(fd, _EVENTS.get(mask, _BOTH)) for fd, mask in self._epoll.poll(timeout)]

        def close(self) -> None:
            self._epoll.close()

    _EVENTS: Final = {select.EPOLLIN: READ, select.EPOLLOUT: WRITE}
    default: type[Poller] = Polled
else:
    default = Selected
