"""What asyncio's loop has not."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self


class AsyncioScope:
    """A piece of a coroutine that can be left from outside: a timeout that comes when it is told to."""

    def __init__(self) -> None:
        self._timeout: asyncio.Timeout | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """Leave it at once, also before it was entered. Harmless when it was left."""
        if not self._cancelled and self._timeout is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time())
        self._cancelled = True

    async def __aenter__(self) -> Self:
        self._timeout = await asyncio.timeout(0 if self._cancelled else None).__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        timeout, self._timeout = self._timeout, None
        assert timeout is not None
        try:
            await timeout.__aexit__(kind, error, traceback)
        except TimeoutError:
            return True
        return False
