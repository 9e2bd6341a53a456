"""Serves an `App`: calls its handlers, in tasks, in threads or in place."""

from __future__ import annotations

import inspect
import os
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from sansmcp.app import App
from sansmcp.asks import Ask
from sansmcp.clock import ClockPair
from sansmcp.context import Answers, Context, Host
from sansmcp.events import Event, RequestCancelled, RequestFailed, RequestReceived, ResultReady
from sansmcp.invocation import Ended, Invocation, Raised, Step
from sansmcp.line_server import LineServer
from sansmcp.records import frozen
from sansmcp.session.calls import Call, IncomingRequest
from sansmcp.spans import SpannedAnswers

from .flag import Flag
from .pump import OnEvent, OnWire, Pump
from .workers import Workers

if TYPE_CHECKING:
    import asyncio

    from sansmcp.dialogue import Turn


class Handlers:
    """Calls the handlers of `app` for the requests that `pump` delivers; `answers` takes what they return.

    Whoever derives from it sets `pump`, with `_deliver` for what it delivers to.
    """

    pump: Pump
    inline = False
    """Whether coroutines run as plain handlers do, and can wait for nothing but answers."""

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        answers: Answers,
        *,
        threads: int,
        on_event: OnEvent | None = None,
    ) -> None:
        self._spans = None if app.spans is None else SpannedAnswers(answers, app.spans)
        self._answers = answers if self._spans is None else cast(Answers, self._spans)
        self._app = app
        self._loop = loop
        self._on_event = on_event
        self._host = Host(
            asks=True, entropy=os.urandom, clock=self._clock, tell=self._deliver, moved=self._moved
        )
        self.workers = Workers(threads) if threads else None
        self._work: dict[IncomingRequest, asyncio.Task[None] | _Steps] = {}
        self._waits: dict[Call, _Wait] = {}
        """Who waits for which question."""
        self._stopping: set[asyncio.Task[None]] = set()
        """Tasks whose request is gone, until they have ended."""
        self._thread = threading.get_ident()
        self._detach = app.attach(self._publish, self._host)

    async def stop(self) -> None:
        """End every connection at once, and every handler that can be ended."""
        self.end()
        for task in list(self._stopping):
            ended = self.pump.make_flag()
            task.add_done_callback(partial(_tell, ended))
            await ended.wait()
        await self.pump.gone.wait()

    def end(self) -> None:
        """Do what `stop` does, and do not wait."""
        self._detach()
        if self.pump.failure is None:
            self.pump.input(self.pump.transport.close)
        self.pump.abort()
        for request in list(self._work):
            self._cancel(request)
        if self.workers is not None:
            self.workers.close()

    def _deliver(self, event: Event) -> None:
        if self._on_event is not None:
            self.pump.tell(self._on_event, event)
        if isinstance(event, RequestReceived):
            self._begin(event.request)
        elif isinstance(event, RequestCancelled):
            self._cancel(event.request)
        elif isinstance(event, (ResultReady, RequestFailed)):
            self._answered(event)

    def _begin(self, request: IncomingRequest) -> None:
        if self._spans is not None:
            self._spans.begin(request)
        context = Context(request, self._answers, self._submit, self._host)
        invocation = self._app.begin(self._answers, request, context, now=self._loop.time())
        if invocation is None:
            return
        if not self.inline:
            context.waiter = partial(self._wait, invocation)
        if invocation.is_async and not self.inline:
            self.start_task(invocation, None)
        else:
            steps = self._work[invocation.request] = _Steps(self, invocation)
            steps.go_on(None)

    def _moved(self, before: IncomingRequest, after: IncomingRequest) -> None:
        """A handler goes on for the sake of another request."""
        work = self._work.pop(before, None)
        if work is not None:
            self._work[after] = work

    def _cancel(self, request: IncomingRequest) -> None:
        if self._spans is not None:
            self._spans.drop(request)
        work = self._work.pop(request, None)
        if work is not None:
            if not isinstance(work, _Steps):
                self._stopping.add(work)
                work.add_done_callback(self._stopping.discard)
            work.cancel()
        if self._waits:
            # also of tasks that the handler started and left to themselves
            for wait in [w for call, w in self._waits.items() if call.related is request]:
                self.give_up(wait.turn)
                wait.drop()

    # handlers ------------------------------------------------------------------------------------

    def start_task(self, invocation: Invocation, awaitable: Any) -> None:
        """Await what a handler returned; with None, the handler is called for it."""
        self._work[invocation.request] = self._loop.create_task(self._run_task(invocation, awaitable))

    async def _run_task(self, invocation: Invocation, awaitable: Any) -> None:
        turn: Turn | None = None
        while True:
            try:
                if turn is not None:
                    turn.outcome()
                if awaitable is None:
                    awaitable = invocation.call()
                step: Step = Ended(await awaitable)
            except Exception as error:
                step = Raised(error)
            except BaseException as error:
                # Nobody else cancels with this; who is on another loop need not load it.
                asyncio = sys.modules.get("asyncio")
                stray = asyncio is not None and isinstance(error, asyncio.CancelledError)
                if not stray or not invocation.request.open:
                    raise
                # Not the client's doing: the handler waited for something that was cancelled.
                step = Raised(error)
            turn, awaitable = self.take(invocation, step), None
            if turn is None:
                return
            if not turn.ready:
                await self._over(invocation, turn)

    def take(self, invocation: Invocation, step: Step) -> Turn | None:
        """What comes of a step; None when the request was answered."""
        turn = invocation.take(step, now=self._loop.time())
        if turn is not None and not turn.ends:
            return turn
        if turn is not None:
            invocation.end_round(now=self._loop.time())
        self._work.pop(invocation.request, None)
        if self._work:
            self.pump.soon()
        else:
            self.pump.drain()
        return None

    def post(self, action: Callable[[], None]) -> None:
        """Let the loop do it, from any thread."""
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(action)

    def _publish(self, action: Callable[[Answers, float], object]) -> None:
        """What the app wants told, from any thread."""
        self._submit(lambda now: action(self._answers, now))

    def _clock(self) -> ClockPair:
        return ClockPair(now=self._loop.time(), unix=time.time())

    def _submit(self, action: Callable[[float], object]) -> None:
        """What a `Context` wants done, from whichever thread its handler runs in."""
        if threading.get_ident() == self._thread:
            action(self._loop.time())
            self.pump.soon()
        else:
            self.post(partial(self._submit, action))

    # questions -----------------------------------------------------------------------------------

    def wait_for(self, wait: _Wait) -> None:
        """Tell when the client has answered all that a turn asks."""
        self._waits.update(dict.fromkeys(wait.turn.calls, wait))
        self.pump.soon()

    def give_up(self, turn: Turn) -> None:
        """Nobody waits for the answers any more."""
        for call in turn.calls:
            self._waits.pop(call, None)
        if self.pump.failure is None:
            turn.cancel(now=self._loop.time())
            self.pump.soon()

    def _answered(self, event: ResultReady | RequestFailed) -> None:
        wait = self._waits.pop(event.call, None)
        if wait is not None:
            wait.turn.take(event, now=self._loop.time())
            if wait.turn.ready:
                wait.then()

    async def _wait(self, invocation: Invocation, ask: Ask[Any]) -> Any:
        """The value of what a coroutine asks."""
        turn = invocation.take(ask, now=self._loop.time())
        assert turn is not None
        if not turn.ready:
            await self._over(invocation, turn)
        return turn.outcome()

    async def _over(self, invocation: Invocation, turn: Turn) -> None:
        """Wait for the answers; where the round ends, for the cancel that this brings."""
        over: asyncio.Future[None] = self._loop.create_future()
        if turn.ends:
            # Not at once: what is asked beside it belongs to the same round.
            self._loop.call_soon(self._end_round, invocation, over)
        else:
            self.wait_for(_Wait(turn, partial(_resolve, over), over.cancel))
        try:
            await over
        except BaseException:  # whatever the loop cancels with
            self.give_up(turn)
            raise

    def _end_round(self, invocation: Invocation, over: asyncio.Future[None]) -> None:
        """Answer with what was asked, and end the task that asked it."""
        over.cancel()
        if invocation.request.open:
            invocation.end_round(now=self._loop.time())
            self._cancel(invocation.request)
            self.pump.soon()


def _resolve(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


@frozen(eq=False)
class _Wait:
    """Somebody who waits for answers."""

    turn: Turn
    then: Callable[[], object]
    """To be called when they are there."""
    drop: Callable[[], object]
    """To be called when they are no longer wanted."""


class _Steps:
    """A handler that is no coroutine: it runs in threads, or in place where there are none."""

    def __init__(self, handlers: Handlers, invocation: Invocation) -> None:
        self._handlers = handlers
        self._invocation = invocation
        self._workers = handlers.workers
        self._turn: Turn | None = None
        """What it waits for; None while it runs."""
        self._job: Callable[[], None] | None = None

    def go_on(self, turn: Turn | None) -> None:
        """Let it run until it asks something that is not known yet, or has ended."""
        self._turn = None
        if self._workers is not None:
            self._job = partial(self._work, turn)
            self._workers.submit(self._job)
            return
        while True:
            turn = self._take(self._invocation.advance(turn, inline=self._handlers.inline))
            if turn is None:
                return

    def cancel(self) -> None:
        """Its request is gone."""
        if self._turn is not None:
            self._handlers.give_up(self._turn)
            self._turn = None
            self._close()
        elif self._workers is not None and self._job is not None and self._workers.withdraw(self._job):
            self._close()

    def _work(self, turn: Turn | None) -> None:
        step: Step
        try:
            step = self._invocation.advance(turn, inline=self._handlers.inline)
        except BaseException as error:  # there is nobody above who could take it
            step = Raised(error)
        self._handlers.post(partial(self._stepped, step))

    def _stepped(self, step: Step) -> None:
        turn = self._take(step)
        if turn is not None:
            self.go_on(turn)

    def _take(self, step: Step) -> Turn | None:
        """What it can go on with at once."""
        invocation, handlers = self._invocation, self._handlers
        value = step.value if isinstance(step, Ended) else None
        if inspect.isawaitable(value) and not isinstance(value, Ask):
            if invocation.request.open:
                handlers.start_task(invocation, value)
            elif inspect.iscoroutine(value):
                value.close()
            return None
        if isinstance(step, Ask) and not invocation.request.open:
            self._close()
            return None
        turn = handlers.take(invocation, step)
        if turn is None:
            self._close()
        elif not turn.ready:
            self._turn = turn
            handlers.wait_for(_Wait(turn, partial(self.go_on, turn), self.cancel))
            return None
        return turn

    def _close(self) -> None:
        if not self._invocation.in_steps:
            return
        if self._workers is not None:
            self._workers.submit(self._invocation.close)
        else:
            self._invocation.close()


class Serving(Handlers):
    """One connection of `app`. A channel for it must be entered into `pump` before `accepted`."""

    pump_kind: type[Pump] = Pump

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        *,
        threads: int,
        grace: float = 10.0,
        on_event: OnEvent | None = None,
        on_wire: OnWire | None = None,
        **engine_options: Any,
    ) -> None:
        now = loop.time()
        self.engine = app.engine(now=now, **engine_options)
        super().__init__(app, loop, self.engine, threads=threads, on_event=on_event)
        self.transport = LineServer(self.engine, now=now, grace=grace)
        self.pump = self.pump_kind(self.transport, loop, self._deliver, on_wire=on_wire)


def _tell(ended: Flag, task: asyncio.Task[None]) -> None:
    ended.set()
