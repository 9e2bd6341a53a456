"""A client that is asked: rounds of questions, whichever way they came, and how calls go on after them.

What a round is, and what answers it, is in `rounds.py`. A modern server asks by its answer to a call,
which is then made again; a legacy one by a request of its own, or by the error that pages have to be
visited first.

Specification: 2026-07-28, basic/patterns/mrtr; 2025-11-25, client/elicitation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..clock import Deadlines
from ..errors import (
    CallSuspended,
    CallTimeout,
    ConnectionEnded,
    ErrorCode,
    InputRefused,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    PeerFault,
    RemoteProtocolError,
    RoundsExceeded,
    SansmcpError,
)
from ..events import ElicitationCompleted, Harmless, InputRequired, InputWithdrawn, LimitHit
from ..revisions import Era, Revision
from ..states import CallInput, ClientState, RoundInput, RoundState
from ..types.lifecycle import Implementation
from ..types.methods import spec_for
from ..wire import jsonrpc
from ..wire.jsoncodec import JsonValue
from . import legacy, modern
from .calls import Call, IncomingRequest
from .connection import ClientConnection
from .rounds import Answer, IncomingQuestion, Round, back_off, check_answer, read_question
from .suspended import SuspendedCall, dump, load

_RETRY: Final = "retry"


class Asking(ClientConnection):
    """Everything of `ClientEngine` that concerns what the server wants to know."""

    def __init__(self, info: Implementation, **options: Any) -> None:
        super().__init__(info, **options)
        self._rounds: dict[Round, None] = {}
        """Those that await answers, or the time to go on."""
        self._pages: dict[str, None] = {}
        """Ids of pages that the user was sent to, and that are not known to be done."""
        self._round_timers: Deadlines[Round] = Deadlines()

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        return {
            **super().stats(),
            "rounds": len(self._rounds),
            "round_timers": len(self._round_timers),
            "pages": len(self._pages),
        }

    @property
    def open_rounds(self) -> tuple[Round, ...]:
        """What the server asked and is not answered, oldest first."""
        return tuple(round_ for round_ in self._rounds if round_.state is RoundState.OPEN)

    # verbs ---------------------------------------------------------------------------------------

    def provide_input(
        self,
        where: Round | Call,
        answers: Mapping[str, Answer],
        *,
        now: float,
        apply_defaults: bool = False,
    ) -> bool:
        """Answer questions of an `InputRequired`: some or all, in any order, each once.

        `where` is the event's round, or its call as long as one round of it is open. An answer is the
        result class of the question's method, or the same as JSON. When nothing is missing, the call
        goes on (legacy: each answer leaves at once). With `apply_defaults`, an accepted form gets the
        defaults of the fields that it lacks. A call made with ``auto_rounds=False`` goes on with
        whatever is given here, be it nothing.

        Returns False, with nothing sent, when nobody waits for answers any more. Raises
        LocalProtocolError, with nothing sent, for a key that was not asked or is answered, and
        InvalidAnswer for what does not answer its question.
        """
        self._tick(now)
        round_ = self._open_round(where)
        if round_ is None:
            return False
        checked = {}
        for key, answer in answers.items():
            question = round_.questions.get(key)
            if question is None:
                raise LocalProtocolError(f"{round_.subject}: {key!r} was not asked for, but {round_.names()}")
            if key in round_.answers:
                raise LocalProtocolError(f"{round_.subject}: {key!r} was answered already")
            checked[key] = check_answer(key, question, answer, round_.revision, fill=apply_defaults)
            self._encode(checked[key])
        round_.answers.update(checked)
        if len(round_.answers) == len(round_.questions) or not _waits_for_all(round_):
            self._answered(round_)
        return True

    def refuse_input(self, where: Round | Call, error: McpError, *, now: float) -> bool:
        """Refuse to answer: legacy, the server gets `error`; else the call fails with `InputRefused`.

        For what a user declines there is the answer ``decline``. Returns False, with nothing sent, when
        nobody waits for answers any more. Raises LocalProtocolError for a round that is over, and for an
        error that may not be sent.
        """
        self._tick(now)
        round_ = self._open_round(where)
        if round_ is None:
            return False
        if round_.request is not None:
            if not self.respond_error(round_.request, error, now=now):
                return False
            self._settle(round_, RoundInput.REFUSE)
            return True
        call = round_.call
        assert call is not None
        self._settle(round_, RoundInput.REFUSE)
        failure = InputRefused(f"{call.subject}: what the server asked was not answered: {error.message}")
        failure.__cause__ = error
        self._end(call, CallInput.CANCEL, failure)
        return True

    def suspend(self, call: Call, *, now: float) -> SuspendedCall:
        """Put aside a call whose modern server wants something; what is returned takes it up again.

        It is plain JSON, for `resume` at any later time and in any process. Of each deadline it holds
        the time left, which does not run meanwhile. Here the call fails with `CallSuspended`.

        Raises LocalProtocolError, with nothing changed, for a call that is not at such a point.
        """
        now = self._tick(now)
        round_ = call.round
        if round_ is None or not round_.open or round_.refusal is not None:
            raise LocalProtocolError(f"{call!r}: not suspended: no modern server waits for its answers")
        suspended = dump(call, round_, now)
        self._end(call, CallInput.CANCEL, CallSuspended(f"{call.subject}: suspended"))
        return suspended

    def resume(self, suspended: Mapping[str, JsonValue], *, now: float) -> Call:
        """Take up a call that was suspended, here or elsewhere: it is asked for as before.

        Raises LocalProtocolError, with nothing sent, for anything but what `suspend` returned, for
        questions that this client does not declare to answer, and on a legacy connection.
        """
        now = self._tick(now)
        read = load(suspended)
        raw = read.raw
        verdict = self._verdict
        if self._closed or (verdict is not None and verdict.era is Era.LEGACY):
            raise LocalProtocolError("resume: there is no connection to a modern server")
        if len(raw["requests"]) > self._room:
            raise LocalProtocolError("resume: too many questions are open (limit max_questions)")
        try:
            asked = self._read_questions(raw["requests"])
        except RemoteProtocolError as error:
            raise LocalProtocolError(f"resume: {error}") from error
        call = self._calls.new(
            raw["method"],
            raw["params"],
            timeout=raw["timeout"],
            total_timeout=raw["totalTimeout"],
            wants_progress=raw["progress"],
            meta=raw["meta"],
            log_level=raw["logLevel"],
            auto_rounds=raw["auto"],
        )
        call.rounds, call.total_at = raw["rounds"], read.end("totalLeft", now)
        self._calls.asking(call, now)
        number, state = call.rounds + 1, raw["requestState"]
        round_ = Round(call, asked, number, self._revision, request_state=state)
        round_.waits, round_.all_end_at = raw["waits"], read.end("roundsLeft", now)
        round_.answers.update(raw["answers"])
        self._begin(round_, ends_at=read.end("roundLeft", now))
        return call

    def _open_round(self, where: Round | Call) -> Round | None:
        if isinstance(where, Call):
            found = [r for r in self._rounds if r.call is where and r.state is RoundState.OPEN]
            if len(found) > 1:
                raise LocalProtocolError(f"{where!r}: {len(found)} rounds are open: say which")
            if not found and not where.done:
                raise LocalProtocolError(f"{where!r}: nothing is asked")
            return found[0] if found else None
        if where.state is RoundState.WITHDRAWN:
            return None
        if where not in self._rounds or where.state is not RoundState.OPEN:
            raise LocalProtocolError(f"{where!r}: answered or refused already, or not of this connection")
        return where

    # what the server asks ------------------------------------------------------------------------

    def _on_input_required(self, call: Call, result: dict[str, Any], before: Round | None) -> None:
        """A modern server answered that it wants something first, perhaps after a round `before`."""
        try:
            asked, state = self._read_input_required(call, result)
        except RemoteProtocolError as cause:
            self._fail(call, InvalidResponse(f"{call.subject}: {cause}", cause))
            return
        limit = self.limits.max_rounds
        if call.rounds >= limit:
            text = f"{call.subject}: the server wants more input after {limit} rounds (max_rounds)"
            self._fail(call, RoundsExceeded(text, call.rounds, result))
            return
        self._calls.asking(call, self._now)
        round_ = Round(call, asked, call.rounds + 1, self._revision, request_state=state)
        if before is not None:
            round_.waits, round_.all_end_at = before.waits, before.all_end_at
        self._begin(round_)

    def _read_input_required(
        self, call: Call, result: dict[str, Any]
    ) -> tuple[dict[str, IncomingQuestion], str | None]:
        spec = spec_for(call.method)
        if spec is None or not spec.mrtr:
            raise RemoteProtocolError(
                PeerFault.INPUT_NOT_ALLOWED, f"input is required, which {call.method} does not allow"
            )
        asked, state = modern.read_input_required(result)
        for name in modern.null_members(result):
            if not self._tolerate(PeerFault.INVALID_INPUT_REQUIRED, f"{call.subject}: {name} is null", call):
                raise RemoteProtocolError(
                    PeerFault.INVALID_INPUT_REQUIRED, f"input is required, but {name} is null"
                )
        if self._no_room(len(asked)):
            raise RemoteProtocolError(PeerFault.INVALID_INPUT_REQUIRED, "too many questions are open")
        return self._read_questions(asked), state

    def _read_questions(self, asked: Mapping[str, Any]) -> dict[str, IncomingQuestion]:
        questions = {}
        for key, item in asked.items():
            method, params = modern.read_input_request(item)
            questions[key] = read_question(method, params, self._own_capabilities, self._revision)
        return questions

    def _on_question(self, request: IncomingRequest) -> None:
        """A legacy server asks by a request of its own, which is in the table."""
        try:
            question = read_question(request.method, request.params, self._own_capabilities, request.revision)
        except RemoteProtocolError as error:
            code = error.hint or ErrorCode.INVALID_PARAMS
            self._send_answer(request, self._error_message(request.id, McpError(code, str(error))))
            self._ignore(error.fault, f"refused: {error}")
            return
        if self._no_room(1):
            busy = McpError(ErrorCode.INTERNAL_ERROR, "too many questions are open")
            self._send_answer(request, self._error_message(request.id, busy))
            return
        origin = request.origin
        call = origin if isinstance(origin, Call) else None
        self._calls.asked(call)
        self._begin(Round(call, {str(request.id): question}, 1, request.revision, request=request))

    @property
    def _room(self) -> int:
        """How many more questions may be open."""
        return self.limits.max_questions - sum(len(r.questions) for r in self._rounds)

    def _no_room(self, more: int) -> bool:
        if more <= self._room:
            return False
        limit = self.limits.max_questions
        self._emit(LimitHit("max_questions", f"more than {limit} questions of the server were open"))
        return True

    def _must_visit_pages(self, call: Call, error: McpError) -> bool:
        """Whether a legacy server's error is a question: the call goes again when the user was there."""
        verdict = self._verdict
        if (
            error.code != ErrorCode.URL_ELICITATION_REQUIRED
            or verdict is None
            or verdict.era is not Era.LEGACY
            or call.rounds
        ):
            return False
        pages = legacy.read_pages_to_visit(error.data)
        if pages is None or self._no_room(len(pages)):
            return False
        try:
            asked = {
                key: read_question("elicitation/create", params, self._own_capabilities, verdict.revision)
                for key, params in pages.items()
            }
        except RemoteProtocolError:
            return False
        self._calls.asking(call, self._now)
        self._begin(Round(call, asked, 1, verdict.revision, refusal=error))
        return True

    def _on_page_done(self, params: Mapping[str, Any]) -> None:
        """`notifications/elicitation/complete`, which only 2025-11-25 has."""
        name = params.get("elicitationId")
        if not isinstance(name, str):
            self._ignore(PeerFault.MALFORMED_NOTIFICATION, "a completed elicitation without elicitationId")
        elif name in self._pages:
            del self._pages[name]
            self._emit(ElicitationCompleted(name))
        else:
            self._ignore(Harmless.UNKNOWN_ELICITATION, "an elicitation was completed that is not open")

    # rounds --------------------------------------------------------------------------------------

    def _begin(self, round_: Round, *, ends_at: float | None = None) -> None:
        """Ask for what is missing, or let the call go again after a while. Either must end some day."""
        self._rounds[round_] = None
        now, call = self._now, round_.call
        round_.ends_at = ends_at
        if ends_at is None and self.timeouts.round is not None:
            round_.ends_at = now + self.timeouts.round
        if call is not None and round_.request is None:
            call.round = round_
            if round_.all_end_at is None and self.timeouts.rounds is not None:
                round_.all_end_at = now + self.timeouts.rounds
            end = round_.all_end_at
            if end is not None and (round_.ends_at is None or end < round_.ends_at):
                round_.ends_at, round_.ends_by = end, "rounds_timeout"
        self._arm(round_)
        if round_.questions or not _waits_for_all(round_):
            self._ask(round_)
            return
        round_.machine.fire(RoundInput.WAIT)
        round_.waits += 1
        again_at = now + back_off(round_.waits)
        if round_.ends_at is None or again_at < round_.ends_at:
            self._round_timers.set(round_, again_at, _RETRY)

    def _ask(self, round_: Round) -> None:
        round_.waits = 0
        missing = {key: q for key, q in round_.questions.items() if key not in round_.answers}
        self._emit(InputRequired(round_.call, missing, round_))
        if round_.revision is not Revision.V2025_11_25:
            return
        for question in missing.values():
            name = getattr(question.params, "elicitation_id", None)
            if name is not None:
                self._pages[name] = None
                if len(self._pages) > self.limits.max_remembered_ids:
                    del self._pages[next(iter(self._pages))]

    def _arm(self, round_: Round) -> None:
        if round_.ends_at is None:
            self._round_timers.clear(round_)
        else:
            self._round_timers.set(round_, round_.ends_at, round_.ends_by)

    def _settle(self, round_: Round, how: RoundInput) -> None:
        """The round is over as far as this side has a part in it."""
        round_.machine.fire(how)
        self._rounds.pop(round_, None)
        if round_.request is not None:
            self._calls.answered(round_.call, self._now)
            self._round_timers.clear(round_)

    def _answered(self, round_: Round) -> None:
        """Everything was answered: tell the server."""
        call, request = round_.call, round_.request
        self._settle(round_, RoundInput.ANSWER)
        if request is not None:
            (answer,) = round_.answers.values()
            self._send_answer(request, jsonrpc.result_response(request.id, answer))
            return
        assert call is not None
        if round_.refusal is None:
            call.again = modern.retry_members(round_.answers, round_.request_state)
        elif any(answer["action"] != "accept" for answer in round_.answers.values()):
            self._fail(call, round_.refusal)
            return
        call.rounds += 1
        self._arm(round_)  # which is over only when the server has answered again
        if self.state is ClientState.READY:
            self._send_call(call)
        else:
            self._calls.requeue(call)
            self._held.append(call)

    def _round_over(self, call: Call) -> None:
        """The server has answered to the last round of `call`, or the call has ended."""
        round_, call.round = call.round, None
        if round_ is None:
            return
        self._round_timers.clear(round_)
        if round_.open:
            self._withdraw(round_, "the call has ended")

    def _withdraw(self, round_: Round, reason: str) -> None:
        told = round_.state is RoundState.OPEN
        self._settle(round_, RoundInput.WITHDRAW)
        if told:
            self._emit(InputWithdrawn(round_, reason))

    # ends ----------------------------------------------------------------------------------------

    def _end(self, call: Call, how: CallInput, error: SansmcpError) -> None:
        self._round_over(call)
        super()._end(call, how, error)

    def _tell_request_cancelled(self, request: IncomingRequest, reason: str | None) -> None:
        round_ = next((r for r in self._rounds if r.request is request), None)
        if round_ is None:
            super()._tell_request_cancelled(request, reason)
        else:
            self._withdraw(round_, reason or "the server cancelled its question")

    def _drop_questions(self, reason: str) -> None:
        """Nobody is there any more to hear answers to the server's own requests."""
        for round_ in list(self._rounds):
            if round_.request is not None:
                self._cancel_request(round_.request, reason)

    def session_lost(self, *, now: float) -> None:
        before = self._verdict
        super().session_lost(now=now)
        if before is not None:
            self._drop_questions("the session has expired")

    def _fail_waiting(self, error: ConnectionEnded) -> None:
        self._drop_questions(str(error))
        super()._fail_waiting(error)

    def _close(self, error: SansmcpError | None) -> None:
        if not self._closed:
            self._drop_questions("the connection has ended" if error is None else str(error))
        super()._close(error)

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        now = self._tick(now)
        for round_, reason in self._round_timers.expired(now):
            if reason == _RETRY:
                self._answered(round_)
            else:
                self._round_timed_out(round_, reason)
        super().handle_timeout(now)

    def _round_timed_out(self, round_: Round, reason: str) -> None:
        all_rounds = reason == "rounds_timeout"
        seconds = self.timeouts.rounds if all_rounds else self.timeouts.round
        after = "" if seconds is None else f" after {seconds:g} s"
        if round_.request is not None:
            error = McpError(ErrorCode.INTERNAL_ERROR, f"not answered{after}")
            self._send_answer(round_.request, self._error_message(round_.request.id, error))
            self._withdraw(round_, f"not answered{after}")
        elif round_.call is not None:
            what = "what its server wanted first was not settled"
            told = f"{round_.subject}: {what}{after}{', all rounds together' if all_rounds else ''}"
            self._on_call_timeout(round_.call, CallTimeout(told, reason=reason))


def _waits_for_all(round_: Round) -> bool:
    """Whether the call goes on by itself, as soon as nothing is missing."""
    return round_.request is not None or round_.call is None or round_.call.auto_rounds
