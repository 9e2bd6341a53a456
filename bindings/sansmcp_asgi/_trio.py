"""The loop that is made of trio, for requests.

Its tasks are system tasks: they outlive the request that began them, as a handler of an older client
has to, and end with `trio.run`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextvars import copy_context
from types import TracebackType
from typing import Final, Self

import trio

from sansmcp_trio._loop import TrioLoop

_LOOP: Final[trio.lowlevel.RunVar[TrioLoop]] = trio.lowlevel.RunVar("sansmcp_asgi")


def trio_loop() -> TrioLoop:
    """The loop of this `trio.run`."""
    try:
        return _LOOP.get()
    except LookupError:
        loop = TrioLoop(_spawn)
        _LOOP.set(loop)
        return loop


def _spawn(run: Callable[[], Awaitable[object]]) -> None:
    trio.lowlevel.spawn_system_task(run, name="a task of sansmcp", context=copy_context())


class TrioScope:
    """A piece of a coroutine that can be left from outside."""

    def __init__(self) -> None:
        self._scope = trio.CancelScope()

    def cancel(self) -> None:
        self._scope.cancel()

    async def __aenter__(self) -> Self:
        self._scope.__enter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        return bool(self._scope.__exit__(kind, error, traceback))
