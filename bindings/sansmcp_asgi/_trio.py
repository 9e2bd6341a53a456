"""As much of an event loop as serving an app takes, made of trio.

Its tasks are system tasks: they outlive the request that began them, as a handler of an older client
has to, and end with `trio.run`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Generator
from contextvars import copy_context
from functools import partial
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, cast

import trio

T = TypeVar("T")

_log: Final = logging.getLogger("sansmcp")
_LOOP: Final[trio.lowlevel.RunVar[TrioLoop]] = trio.lowlevel.RunVar("sansmcp_asgi")


def trio_loop() -> TrioLoop:
    """The loop of this `trio.run`."""
    try:
        return _LOOP.get()
    except LookupError:
        loop = TrioLoop(trio.lowlevel.current_trio_token())
        _LOOP.set(loop)
        return loop


class TrioFuture(Generic[T]):
    """A value that comes later; any number of tasks may wait for it."""

    def __init__(self) -> None:
        self._came = trio.Event()
        self._value: T | None = None
        self._error: BaseException | None = None
        self._cancelled = False

    def done(self) -> bool:
        return self._came.is_set()

    def set_result(self, value: T) -> None:
        self._value = value
        self._came.set()

    def set_exception(self, error: BaseException) -> None:
        self._error = error
        self._came.set()

    def cancel(self) -> None:
        """Nobody brings the value any more. Who waits for it is commonly cancelled as well."""
        self._cancelled = True
        self._came.set()

    def __await__(self) -> Generator[Any, Any, T]:
        return self._wait().__await__()

    async def _wait(self) -> T:
        await self._came.wait()
        if self._cancelled:
            await trio.lowlevel.checkpoint()
            raise RuntimeError("what was waited for is not wanted any more")
        if self._error is not None:
            raise self._error
        return cast(T, self._value)


class TrioTask:
    """A coroutine that runs by itself. What it raises is logged."""

    def __init__(self, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._coroutine = coroutine
        self._scope = trio.CancelScope()
        self._done = False
        self._callbacks: list[Callable[[Any], object]] = []
        trio.lowlevel.spawn_system_task(self._run, name="a task of sansmcp", context=copy_context())

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._coroutine
        except Exception:
            _log.exception("a task of sansmcp raised")
        finally:
            self._done = True
            for callback in self._callbacks:
                callback(self)

    def done(self) -> bool:
        return self._done

    def cancel(self) -> None:
        """End it where it waits next."""
        self._scope.cancel()

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        if self._done:
            callback(self)
        else:
            self._callbacks.append(callback)


class TrioTimer:
    """A call that comes at its time."""

    def __init__(self, when: float, call: Callable[[], object]) -> None:
        self._when = when
        self._call = call
        self._scope = trio.CancelScope()
        trio.lowlevel.spawn_system_task(self._run, name="a timer of sansmcp")

    async def _run(self) -> None:
        with self._scope:
            await trio.sleep_until(self._when)
            _guarded(self._call)

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self._scope.cancel()


class TrioLoop:
    """The part of `asyncio.AbstractEventLoop` that is used here."""

    def __init__(self, token: trio.lowlevel.TrioToken) -> None:
        self._token = token

    def time(self) -> float:
        return trio.current_time()

    def is_closed(self) -> bool:
        try:
            self._token.run_sync_soon(_nothing, idempotent=True)
        except trio.RunFinishedError:
            return True
        return False

    def call_soon(self, call: Callable[..., object], *arguments: Any) -> None:
        """Also from other threads. Raises RuntimeError after the end."""
        self._token.run_sync_soon(partial(_guarded, call, *arguments))

    call_soon_threadsafe = call_soon

    def call_at(self, when: float, call: Callable[[], object]) -> TrioTimer:
        return TrioTimer(when, call)

    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> TrioTask:
        return TrioTask(coroutine)

    def create_future(self) -> TrioFuture[Any]:
        return TrioFuture()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        _log.error("%s", context.get("message"), exc_info=context.get("exception"))


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


def _guarded(call: Callable[..., object], *arguments: Any) -> None:
    # trio would end everything.
    try:
        call(*arguments)
    except Exception:
        _log.exception("a callback of sansmcp raised")


def _nothing() -> None:
    pass
