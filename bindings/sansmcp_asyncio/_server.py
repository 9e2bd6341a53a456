"""Serves an `App`: calls its handlers, in tasks, in threads or in place."""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from sansmcp.app import App, Invocation
from sansmcp.context import Answers, Context
from sansmcp.events import Event, RequestCancelled, RequestReceived
from sansmcp.line_server import LineServer
from sansmcp.session.calls import IncomingRequest

from ._pump import OnEvent, OnWire, Pump


class Workers:
    """At most `limit` threads, started when they are needed. None of them keeps the process alive."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0
        self._closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` in a thread; it must not raise."""
        with self._changed:
            self._jobs.append(job)
            if self._idle >= len(self._jobs) or self._threads >= self._limit:
                self._changed.notify()
                return
            self._threads += 1
        threading.Thread(target=self._work, name="sansmcp handler", daemon=True).start()

    def withdraw(self, job: Callable[[], None]) -> None:
        """Forget a job that no thread has taken."""
        with self._changed, suppress(ValueError):
            self._jobs.remove(job)

    def close(self) -> None:
        """Let the threads end; one that is in a handler ends with it."""
        with self._changed:
            self._closed = True
            self._jobs.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._jobs and not self._closed:
                    self._changed.wait()
                self._idle -= 1
                if self._closed:
                    return
                job = self._jobs.popleft()
            job()
            del job


class Handlers:
    """Calls the handlers of `app` for the requests that `pump` delivers; `answers` takes what they return.

    Whoever derives from it sets `pump`, with `_deliver` for what it delivers to.
    """

    pump: Pump

    def __init__(
        self,
        app: App,
        loop: asyncio.AbstractEventLoop,
        answers: Answers,
        *,
        threads: int,
        on_event: OnEvent | None = None,
    ) -> None:
        self._answers = answers
        self._app = app
        self._loop = loop
        self._on_event = on_event
        self._workers = Workers(threads) if threads else None
        self._work: dict[IncomingRequest, asyncio.Task[None] | Callable[[], None]] = {}
        self._stopping: set[asyncio.Task[None]] = set()
        """Tasks whose request is gone, until they have ended."""
        self._thread = threading.get_ident()

    async def stop(self) -> None:
        """End every connection at once, and every handler that can be ended."""
        if self.pump.failure is None:
            self.pump.input(self.pump.transport.close)
        self.pump.abort()
        for request in list(self._work):
            self._cancel(request)
        if self._workers is not None:
            self._workers.close()
        if self._stopping:
            await asyncio.wait(self._stopping)
        await self.pump.gone.wait()

    def _deliver(self, event: Event) -> None:
        if self._on_event is not None:
            self.pump.tell(self._on_event, event)
        if isinstance(event, RequestReceived):
            self._begin(event.request)
        elif isinstance(event, RequestCancelled):
            self._cancel(event.request)

    def _begin(self, request: IncomingRequest) -> None:
        context = Context(request, self._answers, self._submit)
        invocation = self._app.begin(self._answers, request, context, now=self._loop.time())
        if invocation is None:
            return
        if invocation.is_async:
            self._start_task(invocation, None)
        elif self._workers is not None:
            job = self._work[request] = partial(self._run_in_thread, invocation)
            self._workers.submit(job)
        else:
            self._run(invocation)

    def _cancel(self, request: IncomingRequest) -> None:
        work = self._work.pop(request, None)
        if callable(work):
            if self._workers is not None:
                self._workers.withdraw(work)
        elif work is not None:
            self._stopping.add(work)
            work.add_done_callback(self._stopping.discard)
            work.cancel()

    # handlers ------------------------------------------------------------------------------------

    def _start_task(self, invocation: Invocation, awaitable: Any) -> None:
        self._work[invocation.request] = self._loop.create_task(self._run_task(invocation, awaitable))

    async def _run_task(self, invocation: Invocation, awaitable: Any) -> None:
        try:
            if awaitable is None:
                awaitable = invocation.function(*invocation.arguments, **invocation.keywords)
            value = await awaitable
        except asyncio.CancelledError as error:
            if not invocation.request.open:
                raise
            # Not the client's doing: the handler waited for something that was cancelled.
            self._end(invocation, partial(invocation.fail, error))
        except Exception as error:
            self._end(invocation, partial(invocation.fail, error))
        else:
            self._end(invocation, partial(invocation.finish, value))

    def _run(self, invocation: Invocation) -> None:
        try:
            value = invocation.function(*invocation.arguments, **invocation.keywords)
        except Exception as error:
            invocation.fail(error, now=self._loop.time())
        else:
            self._take(invocation, value)

    def _run_in_thread(self, invocation: Invocation) -> None:
        end: Callable[[], None]
        try:
            value = invocation.function(*invocation.arguments, **invocation.keywords)
        except BaseException as error:
            end = partial(self._end, invocation, partial(invocation.fail, error))
        else:
            end = partial(self._take, invocation, value)
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            self._loop.call_soon_threadsafe(end)

    def _take(self, invocation: Invocation, value: Any) -> None:
        if not inspect.isawaitable(value):
            self._end(invocation, partial(invocation.finish, value))
        elif invocation.request.open:
            self._start_task(invocation, value)
        elif inspect.iscoroutine(value):
            value.close()

    def _end(self, invocation: Invocation, finish: Callable[..., None]) -> None:
        self._work.pop(invocation.request, None)
        finish(now=self._loop.time())
        if self._work:
            self.pump.soon()
        else:
            self.pump.drain()

    def _submit(self, action: Callable[[float], object]) -> None:
        """What a `Context` wants done, from whichever thread its handler runs in."""
        if threading.get_ident() == self._thread:
            action(self._loop.time())
            self.pump.soon()
        else:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._submit, action)


class Serving(Handlers):
    """One connection of `app`. A channel for it must be entered into `pump` before `accepted`."""

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
        self.pump = Pump(self.transport, loop, self._deliver, on_wire=on_wire)
