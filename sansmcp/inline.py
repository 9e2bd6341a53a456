"""Handlers called in place: one after another, without a loop, a task or a thread.

For hosts that have a request in hand, and for tests. A handler that asks the client is put aside until
the answer comes; a coroutine can wait for answers, and for nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from .app import App
from .context import Answers, Clock, Context, Host
from .dialogue import Turn
from .events import Event, RequestCancelled, RequestFailed, RequestReceived, ResultReady
from .invocation import Invocation, NeedsLoop, Raised
from .session.calls import IncomingRequest

if TYPE_CHECKING:  # who traces nothing need not load what traces
    from .spans import SpannedAnswers


class InlineHandlers:
    """Calls the handlers of `app` for the events it is given; `answers` takes what they return.

    `entropy` gives random bytes, for the state of requests that are made again, where `app` was given
    no keys. `clock` tells the time of day; without it, ``now`` is taken for that. `on_said` is called
    when a handler reported or logged something and goes on: by then it can be sent.
    """

    def __init__(
        self,
        app: App,
        answers: Answers,
        *,
        entropy: Callable[[int], bytes] | None = None,
        clock: Clock | None = None,
        on_said: Callable[[], object] | None = None,
    ) -> None:
        self._app = app
        self._spans: SpannedAnswers | None = None
        if app.spans is not None:
            from .spans import SpannedAnswers

            self._spans = SpannedAnswers(answers, app.spans)
        self._answers = answers if self._spans is None else cast(Answers, self._spans)
        self._host = Host(asks=True, entropy=entropy, clock=clock, tell=self._tell)
        self._on_said = on_said
        self._now = 0.0
        self._needs_loop: NeedsLoop | None = None
        self._waiting: dict[IncomingRequest, tuple[Invocation, Turn]] = {}
        """Handlers that were put aside, and what they wait for."""

    def stats(self) -> dict[str, int]:
        """Sizes of all tables, by name. There are never more than open requests."""
        return {"waiting_handlers": len(self._waiting)}

    def handle(self, event: Event, *, now: float) -> NeedsLoop | None:
        """Do what `event` asks for, if it is about a request or a question.

        Returns the error for a handler that waits for something else than an answer: its request was
        refused.
        """
        self._now = now
        self._needs_loop = None
        match event:
            case RequestReceived():
                if self._spans is not None:
                    self._spans.begin(event.request)
                context = Context(event.request, self._answers, self._submit, self._host)
                invocation = self._app.begin(self._answers, event.request, context, now=now)
                if invocation is not None:
                    self._go_on(invocation, None)
            case RequestCancelled():
                if self._spans is not None:
                    self._spans.drop(event.request)
                parked = self._waiting.pop(event.request, None)
                if parked is not None:
                    parked[1].cancel(now=now)
                    parked[0].close()
            case ResultReady() | RequestFailed():
                request = event.call.related
                parked = None if request is None else self._waiting.get(request)
                if parked is not None:
                    self._take(*parked, event)
        return self._needs_loop

    def _tell(self, event: Event) -> None:
        failed = self._needs_loop
        self._needs_loop = self.handle(event, now=self._now) or failed

    def _submit(self, action: Callable[[float], object]) -> None:
        action(self._now)
        if self._on_said is not None:
            self._on_said()

    def _take(self, invocation: Invocation, turn: Turn, event: ResultReady | RequestFailed) -> None:
        turn.take(event, now=self._now)
        if turn.ready:
            del self._waiting[invocation.request]
            self._go_on(invocation, turn)

    def _go_on(self, invocation: Invocation, turn: Turn | None) -> None:
        while True:
            step = invocation.advance(turn, inline=True)
            turn = invocation.take(step, now=self._now)
            if turn is None:
                break
            if turn.ends:
                invocation.end_round(now=self._now)
                invocation.close()
                break
            if not turn.ready:
                self._waiting[invocation.request] = (invocation, turn)
                break
        if isinstance(step, Raised) and isinstance(step.error, NeedsLoop):
            self._needs_loop = step.error
