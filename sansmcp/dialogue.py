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
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import attrs

from .asks import Ask, NeedsInput, PagesFirst, Question, check_askable
from .errors import (
    ErrorCode,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    PeerFault,
    QuestionFailed,
    RemoteProtocolError,
)
from .events import Harmless, RequestFailed, ResultReady
from .questions import Elicit, ElicitUrl, ListRoots, Sample
from .revisions import Era
from .session import modern
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


_SHOWN: Final = 4
"""Answers that are named when they are ignored. Past it: an ellipsis."""


@attrs.define(eq=False)
class Turn:
    """One asking, and what has come of it so far."""

    _dialogue: Dialogue
    _keys: tuple[str, ...]
    _single: bool
    again: bool = False
    """Whether the handler is to be called anew with the answers, rather than to go on with them."""
    ends: bool = False
    """Whether the round ends here: the request is answered with what is asked, by
    `Invocation.end_round`, and the handler never goes on."""
    calls: dict[Call, tuple[str, Question[Any]]] = attrs.field(factory=dict)
    """What a legacy client is still to answer; hand their ends to `take`."""
    error: Exception | None = None
    """What the handler is told instead of answers."""

    @property
    def ready(self) -> bool:
        """Whether the handler can go on."""
        return not self.ends and not self.calls

    def outcome(self) -> Any:
        """The answer, or a tuple of them. Raises what went wrong."""
        if self.error is not None:
            raise self.error
        values = tuple(self._dialogue.value(key) for key in self._keys)
        return values[0] if self._single else values

    def take(self, event: ResultReady | RequestFailed, *, now: float) -> None:
        """One of `calls` has ended. The first that failed ends the others."""
        asked = self.calls.pop(event.call, None)
        if asked is None:
            return
        if isinstance(event, RequestFailed):
            self.fail(QuestionFailed(event.error), now=now)
            return
        key, question = asked
        value: Any = None
        try:
            value = structure(event.raw, question.answer, self._dialogue.request.revision)
            problems = question.problems(value)
        except StructureError as error:
            problems = [str(error)]
        if problems:
            text = f"the answer to {question.method} is not valid: {'; '.join(problems)}"
            cause = RemoteProtocolError(PeerFault.INVALID_ANSWER, text)
            self.fail(QuestionFailed(InvalidResponse(text, cause)), now=now)
        else:
            self._dialogue.keep(key, value, event.raw)

    def fail(self, error: Exception, *, now: float) -> None:
        """The handler is told `error`; what is still asked is no longer wanted."""
        self.error = error
        self.cancel(now=now)

    def cancel(self, *, now: float) -> None:
        """Nobody waits any more: tell the client."""
        calls = list(self.calls)
        self.calls.clear()
        for call in calls:
            self._dialogue.engine.cancel(call, now=now)


class Dialogue:
    """The questions and answers of one request."""

    def __init__(self, request: IncomingRequest, engine: Answers, host: Host) -> None:
        self.request = request
        self.engine = engine
        self.app_state: JsonValue = None
        """The application's own."""
        self._host = host
        self._kept: dict[str, JsonValue] = {}
        """Answers of earlier rounds, as they stand on the wire."""
        self._given: dict[str, JsonValue] = {}
        """Answers that came with the request and that nobody asked for yet."""
        self._expected: dict[str, Question[Any]] = {}
        """What the round before asked to be called again for."""
        self._answers: dict[str, Any] = {}
        """The answers that are known and asked for, in their class."""
        self._used: set[str] = set()
        self._numbers: dict[str, int] = {}
        self._pending: dict[str, dict[str, Any]] = {}
        self._awaited: dict[str, Question[Any]] = {}
        """What has to be answered before the handler is called again (modern)."""
        self._reruns = 0
        self._invalid: dict[str, str] = {}
        """Answers that are none to what was asked, and why."""

    def move(self, request: IncomingRequest, engine: Answers, host: Host) -> None:
        """Go on for the sake of `request`: see `Context.move`."""
        self.request, self.engine, self._host = request, engine, host

    # rounds of a modern request ------------------------------------------------------------------

    def resume(self, memory: JsonValue, given: Mapping[str, JsonValue]) -> None:
        """Go on from what `memory` gave in the round before, with the answers that came since."""
        if isinstance(memory, dict):
            kept = memory.get("answers")
            self._kept = dict(kept) if isinstance(kept, dict) else {}
            expected = memory.get("expected")
            if isinstance(expected, dict):
                self._expected = {key: _recalled(question) for key, question in expected.items()}
            self.app_state = memory.get("state")
        self._given = dict(given)

    @property
    def memory(self) -> JsonValue:
        """What the next round has to know of this one; None when there is nothing."""
        memory: dict[str, JsonValue] = {}
        if self._kept:
            memory["answers"] = dict(self._kept)
        if self._awaited:
            memory["expected"] = {key: _brief(question) for key, question in self._awaited.items()}
        if self.app_state is not None:
            memory["state"] = self.app_state
        return memory or None

    def round_result(self, state: str | None) -> dict[str, Any]:
        """The `input_required` result, with the state that its client is to bring back."""
        return modern.input_required_result(self._pending, state)

    def remark(self, now: float) -> None:
        """Tell what was ignored in the request. To be called once, when all was asked."""
        unasked, self._given = [key for key in self._given if key not in self._expected], {}
        invalid, self._invalid = self._invalid, {}
        if unasked:
            text = f"answers to nothing that was asked: {_some(map(_shown, unasked))}"
            self.engine.report_ignored(self.request, Harmless.UNASKED_ANSWER, text, now=now)
        if invalid:
            text = "no valid answers: " + _some(f"{_shown(key)} ({why})" for key, why in invalid.items())
            self.engine.report_ignored(self.request, PeerFault.INVALID_ANSWER, text, now=now)

    # answers -------------------------------------------------------------------------------------

    @property
    def answers(self) -> Mapping[str, Any]:
        """Every answer that is known, by its key. One that is no answer to anything is left out.

        What was asked for a handler to be called again is held against its question. What a coroutine
        or a generator asked is not known before it asks again: then an answer shows by its shape what
        it is.
        """
        for key, question in self._expected.items():
            self._known(key, question)
        given = {} if self._expected else self._given
        for source in (dict(self._kept), given):
            for key, raw in list(source.items()):
                if key not in self._answers:
                    source.pop(key)
                    members = raw if isinstance(raw, dict) else {}
                    kind = next((kind for member, kind in _SHAPES if member in members), None)
                    self._accept(key, raw, kind)
        return dict(self._answers)

    def keep(self, key: str, value: Any, raw: JsonValue) -> None:
        """Note an answer."""
        self._answers[key] = value
        self._kept[key] = raw

    def _known(self, key: str, question: Question[Any]) -> bool:
        """Whether there is a valid answer; one that is not is told, and then there is none."""
        if key not in self._answers:
            if key in self._kept:
                self._accept(key, self._kept.pop(key), question.answer)
            elif key in self._given:
                self._accept(key, self._given.pop(key), question.answer)
        if key not in self._answers:
            return False
        value = self._answers[key]
        problems = question.problems(value) if isinstance(value, question.answer) else ["of another kind"]
        if problems:
            del self._answers[key], self._kept[key]
            self._refuse(key, "; ".join(problems))
        return not problems

    def _accept(self, key: str, raw: JsonValue, kind: type[Any] | None) -> None:
        if kind is None:
            self._refuse(key, "no result of any question")
            return
        try:
            value = structure(raw, kind, self.request.revision)
        except StructureError as error:
            self._refuse(key, str(error))
        else:
            self.keep(key, value, raw)

    def _refuse(self, key: str, why: str) -> None:
        self._invalid[key] = why

    # asking --------------------------------------------------------------------------------------

    def ask(self, ask: Ask[Any], *, now: float) -> Turn:
        """What a handler waits for. It is told of everything that is wrong by `Turn.outcome`."""
        try:
            named = self._name(ask.questions)
            self._check(named.values())
        except Exception as error:
            return Turn(self, (), ask.single, error=error)
        turn = Turn(self, tuple(named), ask.single)
        self._put(turn, {key: q for key, q in named.items() if not self._known(key, q)}, now)
        return turn

    def require(self, required: NeedsInput, *, now: float) -> Turn:
        """What a handler wants before it is called again."""
        questions = dict(required.requests)
        turn = Turn(self, tuple(questions), False, again=True)
        try:
            self._check(questions.values())
            self._count_rerun()
        except Exception as error:
            turn.error = error
            return turn
        if required.state is not None:
            self.app_state = required.state
        for key in questions:
            self._answers.pop(key, None)
            self._kept.pop(key, None)
        self._used.clear()
        self._numbers.clear()
        if self.request.era is Era.MODERN:
            self._awaited = questions
        self._put(turn, questions, now)
        return turn

    def send_off(self, first: PagesFirst, *, now: float) -> McpError | None:
        """The error that sends a legacy client to pages; None: the round is over (modern).

        Raises what stands against it.
        """
        named = self._name(first.pages)
        if self._host.ask is not None:
            raise LocalProtocolError(f"{self.request!r}: a task asks for pages to be visited by ElicitUrl")
        if self.request.era is Era.MODERN:
            turn = self.require(NeedsInput(named), now=now)
            if turn.error is not None:
                raise turn.error
            return None
        check_askable(first.pages, self.request.revision, self.request.peer_capabilities)
        pages = [self._params(page) for page in named.values()]
        return McpError(ErrorCode.URL_ELICITATION_REQUIRED, str(first), {"elicitations": pages})

    def value(self, key: str) -> Any:
        """The answer to what was asked under `key`."""
        return self._answers[key]

    def _name(self, questions: Sequence[Question[Any]]) -> dict[str, Question[Any]]:
        named: dict[str, Question[Any]] = {}
        for question in questions:
            key = question.key
            if key is None:
                number = self._numbers[question.kind] = self._numbers.get(question.kind, 0) + 1
                key = f"{question.kind}-{number}"
            if key in self._used:
                raise LocalProtocolError(
                    f"{self.request!r}: {key!r} was asked before; to ask again, give another key"
                )
            self._used.add(key)
            named[key] = question
        return named

    def _check(self, questions: Iterable[Question[Any]]) -> None:
        """Raise what stands against asking these."""
        request = self.request
        if request.era is Era.MODERN:
            spec = spec_for(request.method)
            if spec is None or not spec.mrtr:
                raise LocalProtocolError(
                    f"{request!r}: a modern client can be asked for the sake of tools/call, prompts/get and "
                    "resources/read only"
                )
        elif not self._host.asks:
            raise LocalProtocolError(
                f"{request!r}: what serves it carries no questions to a client of {request.revision}"
            )
        check_askable(questions, request.revision, request.peer_capabilities)

    def _count_rerun(self) -> None:
        self._reruns += 1
        if self._reruns >= self.engine.limits.max_rounds:
            raise LocalProtocolError(
                f"{self.request!r}: its handler was called {self._reruns} times and wants answers still "
                "(limit max_rounds)"
            )

    def _put(self, turn: Turn, questions: Mapping[str, Question[Any]], now: float) -> None:
        """Ask, each era in its way."""
        request = self.request
        try:
            asked = {key: self._params(question) for key, question in questions.items()}
            if self._host.ask is not None:
                for key, question in questions.items():
                    turn.calls[self._host.ask(key, question.method, asked[key], now=now)] = (key, question)
                return
            if request.era is Era.MODERN:
                turn.ends = bool(questions) or turn.again
                for key, params in asked.items():
                    self._pending[key] = {"method": questions[key].method, "params": params}
                return
            for key, question in questions.items():
                call = self.engine.request(
                    question.method, asked[key], now=now, related=request, timeout=question.timeout
                )
                turn.calls[call] = (key, question)
        except Exception as error:
            turn.fail(error, now=now)

    def _params(self, question: Question[Any]) -> dict[str, Any]:
        entropy = self._host.entropy
        if isinstance(question, ElicitUrl) and question.elicitation_id is None and entropy is not None:
            question = attrs.evolve(question, elicitation_id=entropy(16).hex())
        return question.params(self.request.revision)


def _brief(question: Question[Any]) -> JsonValue:
    """As much of a question as tells what its answer has to be."""
    if isinstance(question, Elicit):
        return {"kind": question.kind, "schema": question.schema}
    return {"kind": question.kind}


def _recalled(brief: JsonValue) -> Question[Any]:
    """A question that has the same answers as that of which `brief` was made."""
    members = brief if isinstance(brief, dict) else {}
    schema = members.get("schema")
    match members.get("kind"):
        case Elicit.kind:
            return Elicit("", schema if isinstance(schema, dict) else {})
        case Sample.kind:
            return Sample((), max_tokens=1)
        case ListRoots.kind:
            return ListRoots()
    return ElicitUrl("", "")


def _shown(key: str) -> str:
    return repr(key[:64])


def _some(texts: Iterable[str]) -> str:
    """The first few: a client can send any number."""
    shown = list(islice(texts, _SHOWN + 1))
    return ", ".join(shown[:_SHOWN]) + (", …" if len(shown) > _SHOWN else "")
