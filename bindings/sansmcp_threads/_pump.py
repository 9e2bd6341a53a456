"""The pump, as threads drive it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from sansmcp.errors import ConnectionEnded
from sansmcp_shared.flag import Flag
from sansmcp_shared.pump import Pump

from ._loop import Loop, Signal


class ThreadPump(Pump):
    """Drives a transport on a `Loop`, with its lock held. Callbacks are made without it."""

    @property
    def threads(self) -> Loop:
        """The loop, as what it is."""
        return cast(Loop, self.loop)

    def make_flag(self) -> Flag:
        self.threads.on_interrupt.append(self._interrupted)
        return cast(Flag, Signal(self.threads))

    def tell(self, callback: Callable[..., object], *arguments: Any) -> None:
        self.threads.tell(callback, *arguments)

    def _interrupted(self) -> None:
        self._break(ConnectionEnded("a thread was interrupted amid its work"))
