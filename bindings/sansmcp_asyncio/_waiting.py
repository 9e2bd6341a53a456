"""Ways to wait, on any loop that makes futures and tasks."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

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


async def together(loop: asyncio.AbstractEventLoop, *coroutines: Coroutine[Any, Any, object]) -> None:
    """Await all of them at once. The first that raises ends the others, and that is raised."""
    own = getattr(loop, "together", None)
    if own is not None:  # a loop that is not asyncio's
        await own(*coroutines)
        return
    import asyncio

    first: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in coroutines:
                group.create_task(coroutine)
    except BaseExceptionGroup as raised:
        first = raised.exceptions[0]
    if first is not None:
        raise first
