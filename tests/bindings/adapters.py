"""Plays scenarios with a binding. To add one, write a class like these and enter it into `ADAPTERS`."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Protocol, assert_never

import sansmcp_asyncio
from sansmcp.testing.scenarios import (
    Action,
    Begin,
    Cancel,
    Invoke,
    Join,
    NextChange,
    Open,
    Pause,
    Restart,
    Script,
    Shut,
    Together,
    Unwatch,
    Watch,
    scenario_app,
)

from .adapters_threads import ThreadsAdapter
from .adapters_trio import TrioAdapter
from .stage import Stage


class Adapter(Protocol):
    """Plays scripts with one binding."""

    name: str

    def not_for(self, scenario: str, transport: str) -> str | None:
        """Why this binding does not play it; None if it does."""

    def play(self, script: Script, stage: Stage) -> None:
        """Perform the script, from its begin to its end. Raises what it raises, and leaves nothing behind."""


class AsyncioAdapter:
    name = "asyncio"

    def not_for(self, scenario: str, transport: str) -> str | None:
        return None

    def play(self, script: Script, stage: Stage) -> None:
        asyncio.run(_Asyncio(stage).play(script))


class UvloopAdapter(AsyncioAdapter):
    """The same binding, on a loop that others wrote."""

    name = "uvloop"

    def not_for(self, scenario: str, transport: str) -> str | None:
        return None if find_spec("uvloop") is not None else "uvloop is not there on this platform"

    def play(self, script: Script, stage: Stage) -> None:
        loop = import_module("uvloop").new_event_loop
        with asyncio.Runner(loop_factory=loop) as runner:
            runner.run(_Asyncio(stage).play(script))


class _Asyncio:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._client: Any = None

    async def play(self, script: Script) -> None:
        value: Any = None
        error: Exception | None = None
        try:
            while True:
                action = script.send(value) if error is None else script.throw(error)
                value = error = None
                try:
                    async with asyncio.timeout(60):
                        value = await self._perform(action)
                except Exception as raised:
                    error = raised
        except StopIteration:
            pass
        finally:
            if self._client is not None:
                await self._client.aclose()

    async def _perform(self, action: Action) -> Any:
        match action:
            case Open():
                self._client = await self._open(action)
            case Shut():
                begin = time.monotonic()
                await self._client.aclose()
                return time.monotonic() - begin
            case Invoke():
                return await self._invoke(action)
            case Together(actions=actions):
                return await asyncio.gather(*map(self._invoke, actions), return_exceptions=True)
            case Begin(action=begun):
                return asyncio.create_task(self._invoke(begun))
            case Join(handle=handle):
                return await handle
            case Cancel(handle=handle):
                handle.cancel()
                await asyncio.wait([handle])
            case Watch(options=options):
                return await self._client.listen(**options).__aenter__()
            case NextChange(handle=handle):
                return await anext(handle)
            case Unwatch(handle=handle):
                await handle.__aexit__(None, None, None)
            case Pause(seconds=seconds):
                await asyncio.sleep(seconds)
            case Restart():
                await asyncio.to_thread(self._stage.restart)
            case _:
                assert_never(action)
        return None

    async def _open(self, action: Open) -> Any:
        target, options = self._stage.target(action.target)
        options = {**options, **action.options}
        if target is None:
            return await sansmcp_asyncio.connect_memory(scenario_app(asyncio.sleep), **options)
        return await sansmcp_asyncio.connect(target, **options)

    async def _invoke(self, action: Invoke) -> Any:
        options: Mapping[str, Any] = action.options
        return await getattr(self._client, action.verb)(*action.arguments, **options)


ADAPTERS: list[Adapter] = [AsyncioAdapter(), UvloopAdapter(), TrioAdapter(), ThreadsAdapter()]
