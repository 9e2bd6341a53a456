"""Several coroutines at once, such as callbacks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from sansmcp_shared.awaiting_questions import AwaitingCallbacks

if TYPE_CHECKING:
    from sansmcp_shared.pump import Pump


async def together(*coroutines: Coroutine[Any, Any, object]) -> None:
    """Await all of them at once. The first that raises ends the others, and that is raised."""
    first: BaseException | None = None
    try:
        async with asyncio.TaskGroup() as group:
            for coroutine in coroutines:
                group.create_task(coroutine)
    except BaseExceptionGroup as raised:
        first = raised.exceptions[0]
    if first is not None:
        raise first


class AsyncioCallbacks(AwaitingCallbacks):
    """In tasks of asyncio."""

    async def _together(self, pump: Pump, *coroutines: Coroutine[Any, Any, object]) -> None:
        await together(*coroutines)
