"""What a client is whatever it waits with: what it knows, and where its events go."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from sansmcp.client import ClientEngine
from sansmcp.errors import ConnectionEnded, LocalProtocolError, SansmcpError
from sansmcp.events import (
    EraDecided,
    Event,
    InputRequired,
    InputWithdrawn,
    ProgressReported,
    RequestFailed,
    ResultReady,
    SessionEnded,
)
from sansmcp.revisions import Era, Revision
from sansmcp.session.calls import Call
from sansmcp.session.era import Evidence, Verdict
from sansmcp.types.lifecycle import Implementation, ServerCapabilities

from .changes import EVENTS_OF_CHANGES, BaseChanges
from .events import BaseEvents
from .flag import Flag
from .pump import OnEvent, Pump, Transport
from .questions import Callbacks

if TYPE_CHECKING:
    import asyncio

    from sansmcp.spans import Span, SpanHook

    from .login import Login


class BaseClient(ABC):
    """A connection to one server, but for its verbs and for how one waits."""

    def __init__(
        self,
        engine: ClientEngine,
        pump: Callable[[Callable[[Event], None]], Pump],
        *,
        on_event: OnEvent | None,
        callbacks: Callbacks,
        login: Login | None = None,
    ) -> None:
        self._engine = engine
        self._pump = pump(self._deliver)
        self._pump.on_failure = self._on_failure
        self._loop = self._pump.loop
        self._on_event = on_event
        self._callbacks = callbacks
        self._login = login
        if login is not None:
            login.pump = self._pump
        self._waiting: dict[Call, asyncio.Future[ResultReady | RequestFailed]] = {}
        self._spans: dict[Call, Span] = {}
        self._progress: dict[Call, Callable[[ProgressReported], object]] = {}
        self._listening: dict[Call, BaseChanges] = {}
        self._ready: asyncio.Future[None] = self._loop.create_future()
        self._events = self._make_events(self._pump.make_flag(), engine.limits.max_buffered_events)
        self._error: SansmcpError | None = None

    @abstractmethod
    def _make_events(self, arrived: Flag, bound: int) -> BaseEvents:
        """What `events` of this client returns."""

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

    def _tell_evidence(self, error: BaseException) -> None:
        """Note on `error` what was tried, but for what it says itself."""
        for entry in self.evidence:
            note = f"{entry.step}: {entry.outcome}"
            if note != str(error):
                error.add_note(note)

    @property
    def engine(self) -> ClientEngine:
        """The engine below. A verb called on it directly takes effect with the next input."""
        return self._engine

    @property
    def transport(self) -> Transport:
        """The transport below; see `engine`."""
        return self._pump.transport

    # for whoever derives -------------------------------------------------------------------------

    def _begin(
        self,
        verb: Callable[..., Call],
        arguments: tuple[Any, ...],
        on_progress: Callable[[ProgressReported], object] | None,
        options: dict[str, Any],
    ) -> tuple[Call, asyncio.Future[ResultReady | RequestFailed]]:
        """Make a call, and what its end will be told to. Nothing is sent before the pump is drained."""
        if on_progress is not None:
            options["progress"] = True
        self._check_open()
        hook = self._callbacks.spans
        if hook is None:
            call = verb(*arguments, now=self._loop.time(), **options)
        else:
            call = self._make_traced(hook, verb, arguments, options)
        future: asyncio.Future[ResultReady | RequestFailed] = self._loop.create_future()
        self._waiting[call] = future
        if on_progress is not None:
            self._progress[call] = on_progress
        return call, future

    def _make_traced(
        self, hook: SpanHook, verb: Callable[..., Call], arguments: tuple[Any, ...], options: dict[str, Any]
    ) -> Call:
        from sansmcp.spans import start_client_span

        span = start_client_span(hook, getattr(verb, "__name__", ""), arguments, options)
        try:
            call = verb(*arguments, now=self._loop.time(), **options)
        except BaseException as error:
            if span is not None:
                span.end({"error.type": type(error).__name__}, error)
            raise
        if span is not None:
            self._spans[call] = span
        return call

    def _end_span(self, event: ResultReady | RequestFailed) -> None:
        span = self._spans.pop(event.call, None)
        if span is not None:
            from sansmcp.spans import end_attributes

            raw, error = (event.raw, None) if isinstance(event, ResultReady) else (None, event.error)
            span.end(end_attributes(raw, error), error)

    def _forget(self, call: Call) -> None:
        """Nobody waits for the end of a call any more: cancel it, if it has none."""
        self._progress.pop(call, None)
        if self._waiting.pop(call, None) is not None:
            self._pump.input(lambda now: self._engine.cancel(call, now=now))

    def _check_open(self) -> None:
        """The first cause tells more than that it is over."""
        error = self._error
        if isinstance(error, ConnectionEnded):
            code, tail = error.returncode, error.stderr_tail
            raise ConnectionEnded(str(error), returncode=code, stderr_tail=tail) from error
        if error is not None:
            raise error.with_traceback(None)

    # events --------------------------------------------------------------------------------------

    def _on_failure(self, error: Exception) -> None:
        end = ConnectionEnded(f"the connection was given up: {error!r}")
        end.__cause__ = error
        self._error = end
        self._callbacks.stop()
        if self._login is not None:
            self._login.fail(end)
        if not self._ready.done():
            self._ready.set_exception(error)
        for call, future in self._waiting.items():
            failed = RequestFailed(call, end.about(call.subject))
            self._end_span(failed)
            if not future.done():
                future.set_result(failed)
        self._waiting.clear()
        for changes in self._listening.values():
            changes.fail(end)
        self._listening.clear()
        self._events.put(SessionEnded(end))

    def _end_told(self, event: ResultReady | RequestFailed) -> None:
        """Tell who waits for the end of a call, once all that came before it was told."""
        future = self._waiting.pop(event.call, None)
        if future is not None and not future.done():
            future.set_result(event)

    def _deliver(self, event: Event) -> None:
        if self._login is not None:
            self._login.take(event)
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
            if self._spans:
                self._end_span(event)
            if event.call in self._progress:  # after the reports of its progress
                self._pump.tell(self._end_told, event)
            else:
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
