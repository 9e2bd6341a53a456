"""What is asked and answered in the course of one request: the same to a handler in both eras.

A legacy client is asked by requests of the server's, and the handler goes on with their answers. A
modern client is asked by what its request is answered with; it makes the request again with the
answers, and the handler runs again from its start. What the first run was told is told to the second
at once, so it comes to the first question that has no answer yet.

Specification: 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation, client/sampling and
client/roots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import attrs

from .errors import (
    CapabilityMissing,
    InvalidResponse,
    LocalProtocolError,
    PeerFault,
    QuestionFailed,
    RemoteProtocolError,
)
from .events import RequestFailed, ResultReady
from .limits import SERVER_LIMITS
from .questions import Ask, ElicitUrl, NeedsInput, Question, askable, merged
from .revisions import Era
from .session.calls import Call, IncomingRequest
from .types.convert import StructureError, structure
from .types.elicitation import ElicitResult
from .types.methods import spec_for
from .types.roots import ListRootsResult
from .types.sampling import CreateMessageResult
from .wire.jsoncodec import JsonValue

if TYPE_CHECKING:
    from .context import Answers, Host

_SHAPES: Final[tuple[tuple[str, type[Any]], ...]] = (
    ("action", ElicitResult),
    ("roots", ListRootsResult),
    ("role", CreateMessageResult),
)
"""The member by which an answer shows of what class it is."""


@attrs.define(eq=False)
class Turn:
    """One asking, and what has come of it so far."""

    _dialogue: Dialogue
    _keys: tuple[str, ...]
    _single: bool
    again: bool = False
    """Whether the handler is to be called anew with the answers, rather than to go on with them."""
    ends: bool = False
    """Whether the round ends here: its request is answered with questions. Do so with
    `Invocation.end_round`; the handler never goes on."""
    _values: dict[str, Any] = attrs.field(factory=dict)
    calls: dict[Call, Question[Any]] = attrs.field(factory=dict)
    """What is still to be answered; hand their ends to `take`."""
    _names: dict[Call, str] = attrs.field(factory=dict)
    error: Exception | None = None
    """What the handler is to be told instead of answers."""

    @property
    def ready(self) -> bool:
        """Whether the handler can go on."""
        return not self.ends and not self.calls

    def outcome(self) -> Any:
        """The answer, or a tuple of them. Raises what went wrong."""
        if self.error is not None:
            raise self.error
        values = tuple(self._values[key] for key in self._keys)
        return values[0] if self._single else values

    def take(self, event: ResultReady | RequestFailed, *, now: float) -> None:
        """One of `calls` has ended. The first that failed ends the others."""
        question = self.calls.pop(event.call, None)
        if question is None or self.error is not None:
            return
        if isinstance(event, RequestFailed):
            self._fail(QuestionFailed(event.error), now)
            return
        key = self._names[event.call]
        try:
            value = structure(event.raw, question.answer, self._dialogue.request.revision)
        except StructureError as error:
            cause = RemoteProtocolError(
                PeerFault.INVALID_RESULT, f"the answer to {question.method} is not valid: {error}"
            )
            self._fail(QuestionFailed(InvalidResponse(str(cause), cause)), now)
            return
        self._values[key] = self._dialogue.keep(key, value)

    def cancel(self, *, now: float) -> None:
        """Nobody waits any more: tell the client."""
        calls = list(self.calls)
        self.calls.clear()
        for call in calls:
            self._dialogue.engine.cancel(call, now=now)

    def _fail(self, error: Exception, now: float) -> None:
        self.error = error
        self.cancel(now=now)


class Dialogue:
    """The questions and answers of one request."""

    def __init__(
        self,
        request: IncomingRequest,
        engine: Answers,
        host: Host,
        *,
        max_rounds: int = SERVER_LIMITS.max_rounds,
    ) -> None:
        self.request: Final = request
        self.engine: Final = engine
        self.state: JsonValue = None
        """The application's own."""
        self._host = host
        self._max_rounds = max_rounds
        self._answers: dict[str, Any] = {}
        """What is known, by key, in its class."""
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._pending: dict[str, Question[Any]] = {}
        self._calls_again = 0

    @property
    def answers(self) -> Mapping[str, Any]:
        """Every answer that is known, by its key."""
        return dict(self._answers)

    def keep(self, key: str, value: Any) -> Any:
        """Note an answer."""
        self._answers[key] = value
        return value

    # asking --------------------------------------------------------------------------------------

    def ask(self, ask: Ask[Any], *, now: float) -> Turn:
        """What a handler waits for. It is told of everything that is wrong by `Turn.outcome`."""
        try:
            named = self._name(ask.questions)
            self._check(named.values())
        except Exception as error:
            return Turn(self, (), ask.single, error=error)
        turn = Turn(self, tuple(named), ask.single)
        for key in named:
            if key in self._answers:
                turn._values[key] = self._answers[key]
        self._put(turn, {k: q for k, q in named.items() if k not in self._answers}, now)
        return turn

    def require(self, required: NeedsInput, *, now: float) -> Turn:
        """What a handler wants before it is called again."""
        questions = dict(required.requests)
        turn = Turn(self, tuple(questions), False, again=True)
        try:
            self._check(questions.values())
            self._count_again()
        except Exception as error:
            turn.error = error
            return turn
        if required.state is not None:
            self.state = required.state
        for key in questions:
            self._answers.pop(key, None)
        self._used.clear()
        self._numbers.clear()
        self._put(turn, questions, now)
        return turn

    def _name(self, questions: Sequence[Question[Any]]) -> dict[str, Question[Any]]:
        named: dict[str, Question[Any]] = {}
        for question in questions:
            key = question.key
            if key is None:
                number = self._numbers[question.kind] = self._numbers.get(question.kind, 0) + 1
                key = f"{question.kind}-{number}"
            if key in self._used:
                raise LocalProtocolError(
                    f"{self.request!r}: the key {key!r} was asked before; to ask again, give another key"
                )
            self._used.add(key)
            named[key] = question
        return named

    def _check(self, questions: Iterable[Question[Any]]) -> None:
        request = self.request
        if request.era is Era.MODERN:
            spec = spec_for(request.method)
            if spec is None or not spec.mrtr:
                raise LocalProtocolError(f"{request!r}: a modern server may not ask back for this method")
        elif not self._host.asks:
            raise LocalProtocolError(
                f"{request!r}: what serves it cannot ask a {request.revision} client; use a binding"
            )
        lacking: dict[str, Any] = {}
        for question in questions:
            lacking = merged(lacking, askable(question, request.revision, request.peer_capabilities))
        if lacking:
            raise CapabilityMissing(lacking)

    def _count_again(self) -> None:
        if self.request.era is Era.LEGACY:
            self._calls_again += 1
            if self._calls_again > self._max_rounds:
                raise LocalProtocolError(
                    f"{self.request!r}: its handler wanted to be called again more than {self._max_rounds} "
                    "times (max_rounds)"
                )

    def _put(self, turn: Turn, questions: Mapping[str, Question[Any]], now: float) -> None:
        """Ask, each era in its way."""
        if self.request.era is Era.MODERN:
            if questions or turn.again:
                turn.ends = True
                self._pending.update(questions)
            return
        try:
            for key, question in questions.items():
                call = self.engine.request(
                    question.method,
                    self._params(question),
                    now=now,
                    related=self.request,
                    timeout=question.timeout,
                )
                turn.calls[call] = question
                turn._names[call] = key
        except Exception as error:
            turn._fail(error, now)

    def _params(self, question: Question[Any]) -> dict[str, Any]:
        entropy = self._host.entropy
        if isinstance(question, ElicitUrl) and question.elicitation_id is None and entropy is not None:
            question = attrs.evolve(question, elicitation_id=entropy(16).hex())
        return question.params(self.request.revision)
