"""Callbacks that answer what a server asks, in threads: they may take as long as a human needs."""

from __future__ import annotations

import inspect
import threading
from typing import TYPE_CHECKING, Any, cast

from sansmcp.client import ClientEngine
from sansmcp.errors import LocalProtocolError
from sansmcp.events import InputRequired
from sansmcp_shared.questions import Callbacks

if TYPE_CHECKING:
    from sansmcp_shared.pump import Pump

    from ._pump import ThreadPump


class ThreadCallbacks(Callbacks):
    """Each round is answered in a thread of its own, one question after the other."""

    def _start(self, event: InputRequired, engine: ClientEngine, pump: Pump) -> None:
        answering = _Answering(self, event, engine, cast("ThreadPump", pump))
        self._tasks[event.round] = cast(Any, answering)
        threading.Thread(target=answering.work, name="sansmcp question", daemon=True).start()


class _Answering:
    def __init__(
        self, callbacks: ThreadCallbacks, event: InputRequired, engine: ClientEngine, pump: ThreadPump
    ) -> None:
        self._callbacks = callbacks
        self._event = event
        self._engine = engine
        self._pump = pump
        self._unwanted = False

    def cancel(self) -> None:
        """Nobody waits for the answers: a callback that runs is left alone, and no other is called."""
        self._unwanted = True

    def work(self) -> None:
        loop, callbacks = self._pump.threads, self._callbacks
        try:
            for key in self._event.requests:
                if self._unwanted:
                    break
                self._answer(key)
        except Exception as cause:
            with loop.lock:
                if self._event.round.open:
                    callbacks._refuse(self._event.round, cause, self._engine, self._pump)
        finally:
            with loop.lock:
                del callbacks._tasks[self._event.round]

    def _answer(self, key: str) -> None:
        question = self._event.requests[key]
        callback = self._callbacks._by_method[question.method]
        answer = callback(question.params)
        if inspect.isawaitable(answer):
            if inspect.iscoroutine(answer):
                answer.close()
            raise LocalProtocolError(f"{callback!r} has to be awaited, and here is no loop: use a function")
        loop = self._pump.threads
        with loop.lock:
            if self._event.round.open:
                now, defaults = loop.time(), self._callbacks._defaults
                self._engine.provide_input(self._event.round, {key: answer}, now=now, apply_defaults=defaults)
                self._pump.drain()
