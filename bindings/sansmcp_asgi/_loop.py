"""The event loop that a request runs in, be it asyncio's or trio's.

What serves an app asks little of a loop; asyncio's has it all, and `_trio` makes it of trio.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, cast

if TYPE_CHECKING:
    import asyncio


class Scope(Protocol):
    """A piece of a coroutine that can be left from outside, in silence."""

    def cancel(self) -> None:
        """Leave it at once, also before it was entered. Harmless when it was left."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool: ...


def running_loop() -> tuple[asyncio.AbstractEventLoop, Callable[[], Scope]]:
    """The running loop, and what makes scopes in it. Raises RuntimeError if there is none.

    That of trio has only what is used here; it is the same for as long as trio runs.
    """
    # Another thread may be about to import trio: then it is there in part.
    in_trio_task = getattr(sys.modules.get("trio.lowlevel"), "in_trio_task", None)
    if in_trio_task is not None and in_trio_task():
        from ._trio import TrioScope, trio_loop

        return cast("asyncio.AbstractEventLoop", trio_loop()), TrioScope
    import asyncio

    from ._asyncio import AsyncioScope

    return asyncio.get_running_loop(), AsyncioScope
