"""A way to wait, on any loop that makes futures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import asyncio


class Flag:
    """Whether something has happened, and a way to wait until it has."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._set = False
        self._waiting: set[asyncio.Future[None]] = set()

    def is_set(self) -> bool:
        return self._set

    def set(self) -> None:
        """It has happened."""
        self._set = True
        for future in self._waiting:
            if not future.done():
                future.set_result(None)

    def clear(self) -> None:
        """It is to happen again."""
        self._set = False

    async def wait(self) -> None:
        """Return once it has happened."""
        if self._set:
            return
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.add(future)
        try:
            await future
        finally:
            self._waiting.discard(future)
