"""Plays scenarios with `sansmcp_threads`."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any, assert_never

import sansmcp_threads
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


class ThreadsAdapter:
    name = "threads"

    def not_for(self, scenario: str, transport: str) -> str | None:
        if scenario == "cancel":
            return "a blocked thread is not cancelled by another: Ctrl-C and timeouts are in test_threads"
        return None

    def play(self, script: Script, stage: Stage) -> None:
        _Threads(stage).play(script)


class _Begun(threading.Thread):
    """A call in a thread of its own."""

    def __init__(self, player: _Threads, action: Invoke) -> None:
        super().__init__(daemon=True)
        self._player = player
        self._action = action
        self.value: Any = None
        self.error: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.value = self._player.invoke(self._action)
        except Exception as error:
            self.error = error

    def over(self) -> None:
        self.join(60)
        if self.is_alive():
            raise TimeoutError(self._action.verb)


class _Threads:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._client: Any = None

    def play(self, script: Script) -> None:
        value: Any = None
        error: Exception | None = None
        try:
            while True:
                action = script.send(value) if error is None else script.throw(error)
                value = error = None
                try:
                    value = self._perform(action)
                except Exception as raised:
                    error = raised
        except StopIteration:
            pass
        finally:
            if self._client is not None:
                self._client.close()

    def _perform(self, action: Action) -> Any:
        match action:
            case Open():
                self._client = self._open(action)
            case Shut():
                begin = time.monotonic()
                self._client.close()
                return time.monotonic() - begin
            case Invoke():
                return self.invoke(action)
            case Together(actions=actions):
                all_of_them = [_Begun(self, each) for each in actions]
                for begun in all_of_them:
                    begun.over()
                return [begun.error or begun.value for begun in all_of_them]
            case Begin(action=begun_action):
                return _Begun(self, begun_action)
            case Join(handle=handle):
                handle.over()
                if handle.error is not None:
                    raise handle.error
                return handle.value
            case Cancel():
                raise NotImplementedError
            case Watch(options=options):
                return self._client.listen(**options).__enter__()
            case NextChange(handle=handle):
                return handle.next(60)
            case Unwatch(handle=handle):
                handle.close()
            case Pause(seconds=seconds):
                time.sleep(seconds)
            case Restart():
                self._stage.restart()
            case _:
                assert_never(action)
        return None

    def _open(self, action: Open) -> Any:
        target, options = self._stage.target(action.target)
        options = {**options, **action.options}
        if target is None:
            return sansmcp_threads.connect_memory(scenario_app(_sleep), **options)
        return sansmcp_threads.connect(target, **options)

    def invoke(self, action: Invoke) -> Any:
        options: Mapping[str, Any] = action.options
        return getattr(self._client, action.verb)(*action.arguments, **options)


async def _sleep(seconds: float) -> None:
    time.sleep(seconds)  # noqa: ASYNC251  (a handler has a thread of its own)
