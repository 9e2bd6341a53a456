"""One way to write a scenario for every binding: as coroutines, which threads run without a loop.

A `Kit` connects, serves, waits and runs coroutines at once, each in the manner of its binding. For
threads a coroutine never waits: what it awaits blocks, and each of several has a thread of its own.
"""

import asyncio
import gc
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Any

import trio

import sansmcp_asyncio
import sansmcp_threads
import sansmcp_trio

from . import support
from .support import PATIENCE, children, descriptors, until

Scenario = Callable[[], Coroutine[Any, Any, Any]]


class Kit(ABC):
    """A binding under test."""

    name: str
    binding: Any

    def run(self, scenario: Scenario) -> None:
        """Run it; fail for whatever is left of it: threads, processes, descriptors."""
        before = descriptors(), threads()
        self._run(scenario)
        gc.collect()
        # not more: what the test before began may have ended meanwhile
        until(lambda: descriptors() <= before[0], "descriptors")
        until(lambda: threads() <= before[1], "threads")
        assert not children(), children()

    @abstractmethod
    def _run(self, scenario: Scenario) -> None: ...

    def connect(self, target: Any, **options: Any) -> Any:
        return self.binding.connect(target, **options)

    def connect_memory(self, app: Any, **options: Any) -> Any:
        return self.binding.connect_memory(app, threads=4, **options)

    def connect_many(self, targets: Mapping[str, Any]) -> Any:
        return self.binding.connect_many({name: self.connect(t) for name, t in targets.items()})

    def serving(self, app: Any, **options: Any) -> Any:
        return self.binding.HttpServing(app, **options)

    def streaming(self, kind: str, app: Any, *place: Any, **options: Any) -> Any:
        """A server of ``"ws"``, ``"tcp"`` or, given a path, ``"unix"``."""
        return self._streaming(kind)(app, *place, **options)

    def entered(self, context: Any) -> Any:
        """A context of the binding as an asynchronous one."""
        return context

    async def waits(self, function: Callable[[], Any]) -> Any:
        """Call what waits in the manner of the binding."""
        return await function()

    def _streaming(self, kind: str) -> Callable[..., Any]:
        name = {"ws": "websocket_serving", "tcp": "tcp_serving", "unix": "unix_serving"}[kind]
        serving: Callable[..., Any] = getattr(self.binding, name)
        return serving

    @abstractmethod
    async def together(self, *coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
        """Run all of them at once; what each returned, or raised."""

    @abstractmethod
    async def sleep(self, seconds: float) -> None: ...

    async def connects(self, target: Any, **options: Any) -> None:
        """Connect, and be done."""
        async with self.connect(target, **options):
            pass

    def break_(self, client: Any) -> None:
        """Let a fault of this library hit it."""
        with suppress(ZeroDivisionError):
            client._pump.input(lambda now: 1 / 0)

    def callback(self, function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        """What the binding can call, made of a coroutine function."""
        return function

    async def log_in(self, client: Any) -> Any:
        return await self.binding.log_in(client)

    async def soon(self, condition: Callable[[], object], what: str) -> None:
        """Wait for what others do."""
        end = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < end, f"never came: {what}"
            await self.sleep(0.01)


def threads() -> int:
    """How many there are, but for those that trio keeps for ten seconds."""
    return sum(not thread.name.startswith("Trio") for thread in threading.enumerate())


async def _outcome(coroutine: Awaitable[Any]) -> Any:
    try:
        return await coroutine
    except Exception as error:
        return error


class AwaitingKit(Kit):
    """A binding whose tasks can be cancelled. A blocked thread is not: its Ctrl-C is in test_threads."""

    @abstractmethod
    def until_cancelled(
        self, serve: Callable[..., Any], *arguments: Any, **options: Any
    ) -> AbstractAsyncContextManager[Callable[[], object]]:
        """Call it beside all else; gives what cancels it. Its end is waited for."""


class AsyncioKit(AwaitingKit):
    name = "asyncio"
    binding = sansmcp_asyncio

    def _run(self, scenario: Scenario) -> None:
        support.run(scenario)

    @asynccontextmanager
    async def until_cancelled(
        self, serve: Callable[..., Any], *arguments: Any, **options: Any
    ) -> AsyncIterator[Callable[[], object]]:
        task = asyncio.create_task(serve(*arguments, **options))
        yield task.cancel
        await asyncio.wait([task], timeout=PATIENCE)
        assert task.cancelled()

    async def together(self, *coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
        return list(await asyncio.gather(*map(_outcome, coroutines)))

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class TrioKit(AwaitingKit):
    name = "trio"
    binding = sansmcp_trio

    def _run(self, scenario: Scenario) -> None:
        trio.run(scenario)

    @asynccontextmanager
    async def until_cancelled(
        self, serve: Callable[..., Any], *arguments: Any, **options: Any
    ) -> AsyncIterator[Callable[[], object]]:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(serve, *arguments, **options))
            yield nursery.cancel_scope.cancel
        assert nursery.cancel_scope.cancelled_caught

    async def together(self, *coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
        results: list[Any] = [None] * len(coroutines)

        async def one(index: int, coroutine: Coroutine[Any, Any, Any]) -> None:
            results[index] = await _outcome(coroutine)

        async with trio.open_nursery() as nursery:
            for index, coroutine in enumerate(coroutines):
                nursery.start_soon(one, index, coroutine)
        return results

    async def sleep(self, seconds: float) -> None:
        await trio.sleep(seconds)


class ThreadsKit(Kit):
    name = "threads"
    binding = sansmcp_threads

    def _run(self, scenario: Scenario) -> None:
        _drive(scenario())

    def entered(self, context: Any) -> Any:
        return _Later(lambda: context)

    async def waits(self, function: Callable[[], Any]) -> Any:
        return function()

    def connect(self, target: Any, **options: Any) -> Any:
        return _Later(lambda: sansmcp_threads.connect(target, **options))

    def connect_memory(self, app: Any, **options: Any) -> Any:
        return _Later(lambda: sansmcp_threads.connect_memory(app, threads=4, **options))

    def connect_many(self, targets: Mapping[str, Any]) -> Any:
        openings = {name: lambda t=t: sansmcp_threads.connect(t) for name, t in targets.items()}
        return _Later(lambda: sansmcp_threads.connect_many(openings))

    def serving(self, app: Any, **options: Any) -> Any:
        return _Later(lambda: sansmcp_threads.HttpServing(app, **options))

    def streaming(self, kind: str, app: Any, *place: Any, **options: Any) -> Any:
        return _Later(lambda: self._streaming(kind)(app, *place, **options))

    def break_(self, client: Any) -> None:
        with client._threads.lock:
            super().break_(client)

    def callback(self, function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
        return lambda *arguments: _drive(function(*arguments))

    async def log_in(self, client: Any) -> Any:
        return sansmcp_threads.log_in(client._real)

    async def together(self, *coroutines: Coroutine[Any, Any, Any]) -> list[Any]:
        results: list[Any] = [None] * len(coroutines)

        def one(index: int, coroutine: Coroutine[Any, Any, Any]) -> None:
            results[index] = _drive(_outcome(coroutine))

        threads = [threading.Thread(target=one, args=each) for each in enumerate(coroutines)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return results

    async def sleep(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251


def _drive(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine that never waits."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("it waits for a loop")


class _Later:
    """A blocking context as an asynchronous one."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self._make = make

    async def __aenter__(self) -> Any:
        self._real = self._make()
        return _Blocking(self._real.__enter__())

    async def __aexit__(self, *error: object) -> None:
        self._real.__exit__(*error)


class _Blocking:
    """A blocking object whose methods can be awaited; what they return is as it is."""

    def __init__(self, real: Any) -> None:
        self._real = real

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._real, name)
        if name == "listen":
            return lambda **options: _Later(lambda: value(**options))
        if name in {"events", "stats"} or not callable(value) or isinstance(value, type):
            return value if not callable(value) else lambda: _Blocking(value())

        async def blocks(*arguments: Any, **options: Any) -> Any:
            return value(*arguments, **options)

        return blocks

    def __aiter__(self) -> "_Blocking":
        return self

    async def __anext__(self) -> Any:
        try:
            return next(self._real)
        except StopIteration:
            raise StopAsyncIteration from None


AWAITING_KITS: tuple[AwaitingKit, ...] = (AsyncioKit(), TrioKit())
KITS: tuple[Kit, ...] = (*AWAITING_KITS, ThreadsKit())
