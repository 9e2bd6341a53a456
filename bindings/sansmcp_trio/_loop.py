"""As much of an event loop as the bindings ask for, made of trio."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Generator
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Generic, TypeAlias, TypeVar, cast

import trio

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

T = TypeVar("T")
Spawn: TypeAlias = Callable[[Callable[[], Awaitable[object]]], object]
"""Starts a task."""

_log: Final = logging.getLogger("sansmcp")


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

    def __init__(self, loop: TrioLoop, coroutine: Coroutine[Any, Any, Any]) -> None:
        self._loop = loop
        self._coroutine = coroutine
        self._scope = loop.enter()
        self._done = False
        self._callbacks: list[Callable[[Any], object]] = []
        loop.spawn(self._run)

    async def _run(self) -> None:
        try:
            with self._scope:
                await self._coroutine
        except Exception:
            _log.exception("a task of sansmcp raised")
        finally:
            self._loop.leave(self._scope)
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

    def __init__(self, loop: TrioLoop, when: float, call: Callable[[], object]) -> None:
        self._loop = loop
        self._when = when
        self._call = call
        self._scope = loop.enter()
        loop.spawn(self._run)

    async def _run(self) -> None:
        with self._scope:
            await trio.sleep_until(self._when)
            _guarded(self._call)
        self._loop.leave(self._scope)

    def when(self) -> float:
        return self._when

    def cancel(self) -> None:
        self._scope.cancel()


class TrioLoop:
    """The part of `asyncio.AbstractEventLoop` that is used here, on the `trio.run` that it is made in.

    `spawn` starts its tasks. With `shield` nothing but the loop ends them: not even a cancel scope
    around all of it, whose end waits for what they have to tidy up.
    """

    def __init__(self, spawn: Spawn, *, shield: bool = False) -> None:
        self.spawn = spawn
        self._shield = shield
        self._scopes: set[trio.CancelScope] = set()
        """Of what runs."""
        self._token = trio.lowlevel.current_trio_token()
        self._ready: deque[Callable[[], object]] = deque()

    @property
    def as_asyncio(self) -> AbstractEventLoop:
        """As what the shared parts of the bindings call a loop; they use no more of it than there is."""
        return cast("AbstractEventLoop", self)

    def enter(self) -> trio.CancelScope:
        """A scope for something that runs."""
        scope = trio.CancelScope(shield=self._shield)
        self._scopes.add(scope)
        return scope

    def leave(self, scope: trio.CancelScope) -> None:
        """It has ended."""
        self._scopes.discard(scope)

    def close(self) -> None:
        """End all that runs."""
        for scope in list(self._scopes):
            scope.cancel()

    def time(self) -> float:
        return trio.current_time()

    def is_closed(self) -> bool:
        try:
            self._token.run_sync_soon(_nothing, idempotent=True)
        except trio.RunFinishedError:
            return True
        return False

    def call_soon(self, call: Callable[..., object], *arguments: Any) -> None:
        self._ready.append(partial(_guarded, call, *arguments))
        if len(self._ready) == 1:
            TrioTask(self, self._call_ready())

    async def _call_ready(self) -> None:
        for _ in range(len(self._ready)):
            self._ready[0]()
            self._ready.popleft()
        if self._ready:
            TrioTask(self, self._call_ready())

    def call_soon_threadsafe(self, call: Callable[..., object], *arguments: Any) -> None:
        """Also from other threads. Raises RuntimeError after the end."""
        self._token.run_sync_soon(partial(_guarded, call, *arguments))

    def call_at(self, when: float, call: Callable[[], object]) -> TrioTimer:
        return TrioTimer(self, when, call)

    def create_task(self, coroutine: Coroutine[Any, Any, Any]) -> TrioTask:
        return TrioTask(self, coroutine)

    async def run_in_executor(self, executor: None, call: Callable[..., T], *arguments: Any) -> T:
        """Call it in a thread, which goes on when nobody waits any more."""
        return await trio.to_thread.run_sync(partial(call, *arguments), abandon_on_cancel=True)

    def create_future(self) -> TrioFuture[Any]:
        return TrioFuture()

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        _log.error("%s", context.get("message"), exc_info=context.get("exception"))

    async def together(self, *coroutines: Coroutine[Any, Any, object]) -> None:
        """Await all of them at once. The first that raises ends the others, and that is raised."""
        first: BaseException | None = None
        try:
            async with trio.open_nursery() as nursery:
                for coroutine in coroutines:
                    nursery.start_soon(_awaited, coroutine)
        except BaseExceptionGroup as raised:
            causes = raised.exceptions
            first = next((e for e in causes if not isinstance(e, trio.Cancelled)), causes[0])
        if first is not None:
            raise first


def _guarded(call: Callable[..., object], *arguments: Any) -> None:
    # trio would end everything.
    try:
        call(*arguments)
    except Exception:
        _log.exception("a callback of sansmcp raised")


def _nothing() -> None:
    pass


async def _awaited(coroutine: Coroutine[Any, Any, object]) -> None:
    await coroutine
