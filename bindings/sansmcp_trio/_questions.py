"""Callbacks that answer what a server asks, in tasks of trio."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from sansmcp_shared.awaiting_questions import AwaitingCallbacks

if TYPE_CHECKING:
    from sansmcp_shared.pump import Pump

    from ._loop import TrioLoop


class TrioCallbacks(AwaitingCallbacks):
    """In tasks of trio."""

    async def _together(self, pump: Pump, *coroutines: Coroutine[Any, Any, object]) -> None:
        await cast("TrioLoop", pump.loop).together(*coroutines)
