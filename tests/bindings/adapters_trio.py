"""Plays scenarios with `sansmcp_trio`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, assert_never

import trio

import sansmcp_trio
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

from .stage import Stage


class TrioAdapter:
    name = "trio"

    def not_for(self, scenario: str, transport: str) -> str | None:
        return None

    def play(self, script: Script, stage: Stage) -> None:
        trio.run(_Trio(stage).play, script)


class _Begun:
    """A call in a task of its own."""

    def __init__(self) -> None:
        self.scope = trio.CancelScope()
        self.over = trio.Event()
        self.value: Any = None
        self.error: Exception | None = None


class _Trio:
    _tasks: trio.Nursery

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._client: Any = None
        self._opening: Any = None

    async def play(self, script: Script) -> None:
        value: Any = None
        error: Exception | None = None
        try:
            async with trio.open_nursery() as self._tasks:
                try:
                    while True:
                        action = script.send(value) if error is None else script.throw(error)
                        value = error = None
                        try:
                            # around no opening: its nursery lives longer
                            value = await self._perform(action)
                        except Exception as raised:
                            error = raised
                except StopIteration:
                    pass
                finally:
                    await self._shut()
        except ExceptionGroup as group:
            raise group.exceptions[0] from None

    async def _shut(self) -> None:
        opening, self._opening = self._opening, None
        if opening is not None:
            await opening.__aexit__(None, None, None)

    async def _perform(self, action: Action) -> Any:
        match action:
            case Open():
                await self._shut()
                opening = self._open(action)
                self._client = await opening.__aenter__()
                self._opening = opening
            case Shut():
                begin = time.monotonic()
                await self._client.aclose()
                return time.monotonic() - begin
            case Invoke():
                return await self._invoke(action)
            case Together(actions=actions):
                all_of_them = [self._begin(each) for each in actions]
                for begun in all_of_them:
                    await begun.over.wait()
                return [begun.error or begun.value for begun in all_of_them]
            case Begin(action=begun_action):
                return self._begin(begun_action)
            case Join(handle=handle):
                await handle.over.wait()
                if handle.error is not None:
                    raise handle.error
                return handle.value
            case Cancel(handle=handle):
                handle.scope.cancel()
                await handle.over.wait()
            case Watch(options=options):
                return await self._client.listen(**options).__aenter__()
            case NextChange(handle=handle):
                return await anext(handle)
            case Unwatch(handle=handle):
                await handle.__aexit__(None, None, None)
            case Pause(seconds=seconds):
                await trio.sleep(seconds)
            case Restart():
                await trio.to_thread.run_sync(self._stage.restart)
            case _:
                assert_never(action)
        return None

    def _open(self, action: Open) -> Any:
        target, options = self._stage.target(action.target)
        options = {**options, **action.options}
        if target is None:
            return sansmcp_trio.connect_memory(scenario_app(trio.sleep), **options)
        return sansmcp_trio.connect(target, **options)

    def _begin(self, action: Invoke) -> _Begun:
        begun = _Begun()
        self._tasks.start_soon(self._run, action, begun)
        return begun

    async def _run(self, action: Invoke, begun: _Begun) -> None:
        try:
            with begun.scope:
                begun.value = await self._invoke(action)
        except Exception as error:
            begun.error = error
        finally:
            begun.over.set()

    async def _invoke(self, action: Invoke) -> Any:
        options: Mapping[str, Any] = action.options
        return await getattr(self._client, action.verb)(*action.arguments, **options)
