"""One call of a handler: what the host does step by step, and what becomes of what the handler did.

A handler is a plain function, a coroutine function, or a generator function that yields what it asks
the client. The host calls it, in the thread or loop of its choice; everything else is decided here.

How a host drives one::

    step = invocation.advance()                      # runs the handler: in any thread
    while (turn := invocation.take(step, now=now)):  # decides: where the engine may be touched
        if turn.ends:
            invocation.end_round(now=now)            # then close the handler
            break
        ...                                          # until turn.ready: hand ends of turn.calls to turn.take
        step = invocation.advance(turn)
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Generator
from typing import TYPE_CHECKING, Any, TypeAlias

import attrs

from .asks import Ask, NeedsInput, PagesFirst, Question, as_ask
from .context import Answers, Context
from .errors import LocalProtocolError
from .records import frozen
from .revisions import Revision
from .session.calls import IncomingRequest

if TYPE_CHECKING:
    from .app import App
    from .dialogue import Turn

Handler = Callable[..., Any]
Convert = Callable[[Any, Revision], Any]
Steps: TypeAlias = "Generator[Any, Any, Any] | Coroutine[Any, Any, Any]"


class NeedsLoop(LocalProtocolError):  # noqa: N818  (a kind of LocalProtocolError)
    """A handler was run without a loop, and waits for something else than an answer of the client."""


@frozen
class Ended:
    """A handler is done; `value` is what it returned, or something to await that."""

    value: Any


@frozen
class Raised:
    """A handler ended with an exception."""

    error: BaseException


Step: TypeAlias = "Ended | Raised | Ask[Any]"
"""How far a handler came."""


@attrs.define(eq=False)
class Invocation:
    """A handler that is to be called, and what becomes of what it does.

    Either drive it with `advance` and `take`, as this module tells, or call
    ``function(*arguments, **keywords)`` yourself, await the value if it is awaitable, and then call
    `finish` with it, or `fail` with the exception: exactly one of them, once.
    """

    function: Handler
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    is_async: bool
    """Whether the handler is a coroutine function: it never blocks, so call it in the loop."""
    context: Context
    _app: App
    _convert: Convert
    _steps: Steps | None = None
    """The handler, where it runs in steps."""
    _round_ended: bool = False

    @property
    def request(self) -> IncomingRequest:
        """For whose sake it is called; that may change while it runs (`Context.move`)."""
        return self.context.request

    @property
    def _engine(self) -> Answers:
        return self.context.answers_to

    # running the handler -------------------------------------------------------------------------

    def call(self) -> Any:
        """Call the handler's function. Raises what that raises."""
        return self.function(*self.arguments, **self.keywords)

    def advance(self, turn: Turn | None = None, *, inline: bool = False) -> Step:
        """Run the handler to its end, or to its next question; `turn` is what it goes on with.

        With `inline`, a coroutine is run here as well, without a loop: it can wait for nothing but
        answers. Raises of what the handler raises only what is no Exception, such as KeyboardInterrupt.
        """
        try:
            if self._steps is None or (turn is not None and turn.again):
                if turn is not None:
                    turn.outcome()
                value = self.call()
                if not inspect.isgenerator(value) and not (inline and inspect.iscoroutine(value)):
                    return Ended(value)
                self._steps = value
                turn = None
        except Exception as error:
            return Raised(error)
        try:
            return self._run(self._steps, turn)
        except StopIteration as done:
            return Ended(done.value)
        except Exception as error:
            return Raised(error)

    def _run(self, steps: Steps, turn: Turn | None) -> Step:
        if turn is None:
            yielded = steps.send(None)
        elif turn.error is not None:
            yielded = steps.throw(turn.error)
        else:
            yielded = steps.send(turn.outcome())
        try:
            if isinstance(yielded, Ask) or inspect.isgenerator(steps):
                return as_ask(yielded)
        except LocalProtocolError as error:
            self.close()
            return Raised(error)
        self.close()
        return Raised(
            NeedsLoop(
                f"{self.request!r}: its handler waits for something, and here is no loop to wait in; "
                "use a binding"
            )
        )

    @property
    def in_steps(self) -> bool:
        """Whether it runs in steps, so that there may be something to `close`."""
        return self._steps is not None

    def close(self) -> None:
        """Let the handler end where it stands: its ``finally`` blocks run. Harmless when it has ended.

        What it raises meanwhile is told to nobody, and what it asks is answered by nobody.
        """
        if self._steps is not None:
            try:
                self._steps.close()
            except Exception:
                return

    # deciding ------------------------------------------------------------------------------------

    def take(self, step: Step, *, now: float) -> Turn | None:
        """What comes of a step: a turn to wait for, or None when the request was answered."""
        match step:
            case Raised():
                self.fail(step.error, now=now)
                return None
            case Ask():
                return self.context.dialogue.ask(step, now=now)
            case Ended(value=NeedsInput() as required):
                turn = self.context.dialogue.require(required, now=now)
                if turn.error is None:
                    return turn
                self.fail(turn.error, now=now)
                return None
        self.finish(step.value, now=now)
        return None

    def end_round(self, *, now: float) -> None:
        """Answer the request with the questions that have no answer yet (modern)."""
        if self._round_ended:
            return
        self._round_ended = True
        try:
            state = self._app._seals.seal(self.context, now=now)
            result = self.context.dialogue.round_result(state)
            self._remark(now)
            self._engine.respond(self.request, result, now=now)
        except Exception as error:
            self._app._answer_failure(self._engine, self.request, error, now=now)

    # the end -------------------------------------------------------------------------------------

    def finish(self, value: Any, *, now: float) -> None:
        """Answer with what the handler returned."""
        if self._round_ended:
            return  # it caught what was to end it
        try:
            self._refuse_unasked(value)
            self._remark(now)
            result = self._convert(value, self.request.revision)
            self._engine.respond(self.request, result, now=now)
        except Exception as error:
            self.fail(error, now=now)

    def fail(self, error: BaseException, *, now: float) -> None:
        """Answer for a handler that raised. Its text is shown only where that is meant."""
        if self._round_ended:
            return
        if isinstance(error, PagesFirst):
            try:
                refusal = self.context.dialogue.send_off(error, now=now)
            except Exception as stands_against:
                error = stands_against
            else:
                if refusal is None:
                    self.end_round(now=now)
                    return
                error = refusal
        self._remark(now)
        self._app._answer_failure(self._engine, self.request, error, now=now)

    def _remark(self, now: float) -> None:
        """Tell what was ignored of the answers that came with the request."""
        if self.context._dialogue is not None:
            self.context._dialogue.remark(now)

    def _refuse_unasked(self, value: Any) -> None:
        if type(value) in (str, dict, list):
            return
        if isinstance(value, (Ask, Question)):
            text = "returned a question: it has to be awaited, or yielded in a generator"
        elif isinstance(value, NeedsInput):
            text = "wants to be called again, which only a host that drives it by steps can do"
        elif inspect.isgenerator(value) or inspect.isasyncgen(value):
            text = f"returned a {type(value).__name__.replace('_', ' ')}, which is no result"
        else:
            return
        raise LocalProtocolError(f"{self.request!r}: its handler {text}")
