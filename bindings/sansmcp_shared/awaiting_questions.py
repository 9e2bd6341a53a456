"""Callbacks that answer what a server asks, in tasks: they may be awaited."""

from __future__ import annotations

import inspect
from abc import abstractmethod
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from sansmcp.client import ClientEngine
from sansmcp.errors import ErrorCode, McpError
from sansmcp.events import InputRequired

from .questions import Callbacks

if TYPE_CHECKING:
    from .pump import Pump


class AwaitingCallbacks(Callbacks):
    """Each round is answered in a task of its own, all questions at once."""

    @abstractmethod
    async def _together(self, pump: Pump, *coroutines: Coroutine[Any, Any, object]) -> None:
        """Await all of them at once. The first that raises ends the others, and that is raised."""

    def _start(self, event: InputRequired, engine: ClientEngine, pump: Pump) -> None:
        task = pump.loop.create_task(self._answer(event, engine, pump))
        self._tasks[event.round] = task
        task.add_done_callback(lambda _: self._tasks.pop(event.round))

    async def _answer(self, event: InputRequired, engine: ClientEngine, pump: Pump) -> None:
        # A callback that was cancelled, but not from here, gives no answer and no error.
        cause: Exception = McpError(ErrorCode.INTERNAL_ERROR, "the client gave up to look for an answer")
        try:
            await self._together(pump, *(self._answer_one(k, event, engine, pump) for k in event.requests))
        except Exception as raised:
            cause = raised
        if event.round.open:
            self._refuse(event.round, cause, engine, pump)

    async def _answer_one(self, key: str, event: InputRequired, engine: ClientEngine, pump: Pump) -> None:
        question = event.requests[key]
        answer = self._by_method[question.method](question.params)
        if inspect.isawaitable(answer):
            answer = await answer
        now = pump.loop.time()
        engine.provide_input(event.round, {key: answer}, now=now, apply_defaults=self._defaults)
        pump.soon()
