"""A connected client: futures for the ends of calls, a queue for everything else that happens."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from typing import Any, Unpack

from sansmcp.client import ClientEngine
from sansmcp.errors import ConnectionEnded, LocalProtocolError, SansmcpError
from sansmcp.events import (
    EraDecided,
    Event,
    InputRequired,
    InputWithdrawn,
    LimitHit,
    ProgressReported,
    RequestFailed,
    ResultReady,
    SessionEnded,
)
from sansmcp.revisions import Era, Revision
from sansmcp.session.calls import Call
from sansmcp.session.era import Evidence, Verdict
from sansmcp.types.lifecycle import Implementation, ServerCapabilities

from ._listen import EVENTS_OF_CHANGES, Changes, ListenOptions
from ._pump import OnEvent, Pump, Transport
from ._questions import Callbacks
from ._verbs import Verbs


class Events:
    """What happens on a connection and belongs to no call, in order; ends with the connection.

    At most `Limits.max_buffered_events` wait to be taken. Past that, one `LimitHit` says so, and
    what comes is dropped until the rest was taken. Each event goes to one taker.
    """

    def __init__(self, bound: int) -> None:
        self._bound = bound
        self._waiting: deque[Event] = deque()
        self._arrived = asyncio.Event()
        self._full = self._over = False

    def put(self, event: Event) -> None:
        """Add an event, or drop it past the bound."""
        if len(self._waiting) < self._bound and not self._full:
            self._waiting.append(event)
        elif not self._full:
            self._full = True
            what = f"{self._bound} events wait to be taken from events(); those to come are dropped"
            self._waiting.append(LimitHit("max_buffered_events", what))
        self._over = self._over or isinstance(event, SessionEnded)
        self._arrived.set()

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        while not self._waiting:
            if self._over:
                raise StopAsyncIteration
            self._arrived.clear()
            await self._arrived.wait()
        event = self._waiting.popleft()
        self._full = self._full and bool(self._waiting)
        return event


class Client(Verbs):
    """A connection to one server. Made by `connect` and `connect_memory`; not to be shared by threads.

    Cancelling the task that waits in a verb cancels the call on the wire. Calls that are open when
    the connection ends raise `ConnectionEnded`.
    """

    def __init__(
        self,
        engine: ClientEngine,
        pump: Callable[[Callable[[Event], None]], Pump],
        *,
        on_event: OnEvent | None,
        callbacks: Callbacks,
    ) -> None:
        self._engine = engine
        self._pump = pump(self._deliver)
        self._pump.on_failure = self._on_failure
        self._loop = self._pump.loop
        self._on_event = on_event
        self._callbacks = callbacks
        self._waiting: dict[Call, asyncio.Future[ResultReady | RequestFailed]] = {}
        self._progress: dict[Call, Callable[[ProgressReported], object]] = {}
        self._listening: dict[Call, Changes] = {}
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._events = Events(engine.limits.max_buffered_events)
        self._error: SansmcpError | None = None
        self._guard: AsyncGenerator[None, None] | None = None

    # what is known -------------------------------------------------------------------------------

    @property
    def era(self) -> Era:
        """Which family of revisions is spoken."""
        return self.verdict.era

    @property
    def revision(self) -> Revision:
        """The protocol revision that is spoken."""
        return self.verdict.revision

    @property
    def verdict(self) -> Verdict:
        """What to remember of this server: the next `connect` takes it as `prior` and need not probe.

        Raises LocalProtocolError while it is being found out anew.
        """
        verdict = self._engine.verdict
        if verdict is None:
            raise LocalProtocolError("it is not known how the server speaks")
        return verdict

    @property
    def server_info(self) -> Implementation | None:
        """As the server says of itself: for display, never for decisions."""
        return self._engine.server_info

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """What the server declared; None where nothing was asked."""
        return self._engine.server_capabilities

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used, for a model."""
        return self._engine.instructions

    @property
    def evidence(self) -> Sequence[Evidence]:
        """What was tried to find out how the server speaks, and what came of it, in order."""
        return self._engine.evidence

    @property
    def engine(self) -> ClientEngine:
        """The engine below. A verb called on it directly takes effect with the next input."""
        return self._engine

    @property
    def transport(self) -> Transport:
        """The transport below; see `engine`."""
        return self._pump.transport

    def events(self) -> Events:
        """What happens and belongs to no call: ``async for event in client.events()``."""
        return self._events

    # verbs ---------------------------------------------------------------------------------------

    def listen(self, **options: Unpack[ListenOptions]) -> Changes:
        """Be told of changes on the server, in either era: see `Changes`. Does nothing until entered."""
        return Changes(self, options)

    async def _call(
        self,
        verb: Callable[..., Call],
        *arguments: Any,
        on_progress: Callable[[ProgressReported], object] | None = None,
        **options: Any,
    ) -> Any:
        if on_progress is not None:
            options["progress"] = True
        self._check_open()
        call = verb(*arguments, now=self._loop.time(), **options)
        future = self._loop.create_future()
        self._waiting[call] = future
        if on_progress is not None:
            self._progress[call] = on_progress
        # Alone, a call leaves at once; among many, with those that other tasks make in this turn.
        if len(self._waiting) == 1:
            self._pump.drain()
        else:
            self._pump.soon()
        try:
            end: ResultReady | RequestFailed = await future
        finally:
            self._progress.pop(call, None)
            if self._waiting.pop(call, None) is not None:
                self._pump.input(lambda now: self._engine.cancel(call, now=now))
        if isinstance(end, RequestFailed):
            raise end.error
        return end.result

    async def _do(self, verb: Callable[..., Any], *arguments: Any) -> Any:
        self._check_open()
        result = verb(*arguments, now=self._loop.time())
        self._pump.soon()
        return result

    def _check_open(self) -> None:
        """The first cause tells more than that it is over."""
        error = self._error
        if isinstance(error, ConnectionEnded):
            code, tail = error.returncode, error.stderr_tail
            raise ConnectionEnded(str(error), returncode=code, stderr_tail=tail) from error
        if error is not None:
            raise error.with_traceback(None)

    # start and end -------------------------------------------------------------------------------

    async def open(self, start: Callable[..., object], *arguments: Any) -> None:
        """Connect; `connect` has done it. Raises why that did not succeed, with nothing left behind.

        The notes of what is raised (``__notes__``) tell what was tried, as `evidence` does.
        """
        self._guard = self._close_with_loop()
        await anext(self._guard)
        self._pump.input(start, *arguments)
        try:
            await self._ready
        except BaseException as error:
            for entry in self.evidence:
                error.add_note(f"{entry.step}: {entry.outcome}")
            await self.aclose()
            raise

    def close(self) -> None:
        """Begin to end the connection, and return at once. Harmless twice, and in any callback."""
        if self._pump.failure is None:
            self._pump.input(self._pump.transport.close)

    async def aclose(self) -> None:
        """End the connection and wait until nothing of it is left, at most as long as the ladder takes.

        When the task that waits is cancelled, a child process is killed at once. Harmless twice,
        and from several tasks.
        """
        self.close()
        try:
            await self._pump.gone.wait()
        except asyncio.CancelledError:
            self._pump.abort()
            await self._pump.gone.wait()
            raise
        finally:
            if self._pump.gone.is_set() and self._guard is not None:
                guard, self._guard = self._guard, None
                await guard.aclose()

    async def _close_with_loop(self) -> AsyncGenerator[None, None]:
        """A loop that ends lets its generators end first: so a client that nobody closed is closed."""
        try:
            yield
        finally:
            self._guard = None
            if not self._pump.gone.is_set():
                await self.aclose()

    # events --------------------------------------------------------------------------------------

    def _on_failure(self, error: Exception) -> None:
        end = ConnectionEnded(f"the connection was given up: {error!r}")
        end.__cause__ = error
        self._error = end
        self._callbacks.stop()
        if not self._ready.done():
            self._ready.set_exception(error)
        for call, future in self._waiting.items():
            if not future.done():
                future.set_result(RequestFailed(call, end.about(call.subject)))
        self._waiting.clear()
        for changes in self._listening.values():
            changes.fail(end)
        self._listening.clear()
        self._events.put(SessionEnded(end))

    def _deliver(self, event: Event) -> None:
        if self._on_event is not None:
            self._pump.tell(self._on_event, event)
        if self._listening and isinstance(event, EVENTS_OF_CHANGES):
            call = event.call
            changes = None if call is None else self._listening.get(call)
            if call is not None and changes is not None:
                if not changes.take(event):
                    del self._listening[call]
                return
        if isinstance(event, (ResultReady, RequestFailed)):
            future = self._waiting.pop(event.call, None)
            if future is not None and not future.done():
                future.set_result(event)
            return
        if isinstance(event, ProgressReported):
            callback = self._progress.get(event.call)
            if callback is not None:
                self._pump.tell(callback, event)
            return
        if isinstance(event, (InputRequired, InputWithdrawn)):
            if self._callbacks.take(event, self._engine, self._pump):
                return
        elif isinstance(event, EraDecided):
            if not self._ready.done():
                self._ready.set_result(None)
        elif isinstance(event, SessionEnded):
            self._error = event.error
            if not self._ready.done():
                end = event.error or ConnectionEnded("the client was closed while it connected")
                self._ready.set_exception(end)
        self._events.put(event)


class Opening:
    """A connection to be: ``async with opening as client``, or ``client = await opening``.

    The first closes the client at its end; after the second, call `Client.aclose`. Once each.
    """

    def __init__(self, connected: Callable[[asyncio.AbstractEventLoop], Awaitable[Client]]) -> None:
        self._connected = connected
        self._client: Client | None = None

    async def _enter(self) -> Client:
        self._client = client = await self._connected(asyncio.get_running_loop())
        return client

    def __await__(self) -> Generator[Any, None, Client]:
        return self._enter().__await__()

    async def __aenter__(self) -> Client:
        return await self._enter()

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._client is not None
        await self._client.aclose()
