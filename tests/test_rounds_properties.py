"""Rounds under any order of what servers, users and clocks do: each ends once, and nothing stays."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sansmcp import (
    Call,
    IncomingQuestion,
    InputRequired,
    InputWithdrawn,
    InvalidAnswer,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    RequestFailed,
    ResultReady,
    Round,
    Timeouts,
    apply_defaults,
    check_form,
)
from sansmcp.states import CallState, RoundState

from .rounds_support import (
    ACCEPTED,
    EVERYTHING,
    FORM,
    LISTED,
    ROOTS,
    SAMPLE,
    SAMPLED,
    able,
    required,
    sizes,
)
from .support import LEGACY, MODERN, TEXT, Driver, result
from .test_rounds_elsewhere import must_visit

ANSWERS: dict[str, dict[str, Any]] = {FORM[0]: ACCEPTED, SAMPLE[0]: SAMPLED, ROOTS[0]: LISTED}

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=6,
)


def good(question: IncomingQuestion) -> dict[str, Any]:
    """An answer to it."""
    is_page = question.method == FORM[0] and question.schema is None
    return {"action": "accept"} if is_page else ANSWERS[question.method]


class Rounds(RuleBasedStateMachine):
    """One client, in either era, with a few calls open."""

    @initialize(version=st.sampled_from([LEGACY[-1], MODERN]))
    def connect(self, version: str) -> None:
        self.version = version
        timeouts = Timeouts(request=30.0, round=50.0, rounds=120.0)
        self.driver: Driver = able(version, timeouts=timeouts, capabilities=EVERYTHING)
        self.last_key = 0
        self.made: list[Call] = []

    @property
    def rounds(self) -> list[Round]:
        return [event.round for event in self.driver.of(InputRequired)]

    def waiting(self, number: int) -> int | None:
        """The id of a request that waits for its answer."""
        waiting = [c.request_id for c in self.made if c.request_id is not None]
        return waiting[number % len(waiting)] if waiting else None  # type: ignore[return-value]

    # what the application does ---------------------------------------------------------------------

    @rule(auto=st.booleans(), total=st.sampled_from([None, 80.0]))
    def call(self, auto: bool, total: float | None) -> None:
        if len(self.made) < 6:
            driver = self.driver
            options = {"auto_rounds": auto, "total_timeout": total}
            self.made.append(driver.engine.call_tool("echo", now=driver.now, **options))
            driver.drain()

    @rule(number=st.integers(0, 9), part=st.booleans())
    def answer(self, number: int, part: bool) -> None:
        if self.rounds:
            round_ = self.rounds[number % len(self.rounds)]
            missing = [key for key in round_.questions if key not in round_.answers]
            given = {key: good(round_.questions[key]) for key in missing[: 1 if part else None]}
            self.use(round_, lambda: self.driver.engine.provide_input(round_, given, now=self.driver.now))

    @rule(number=st.integers(0, 9), answer=JSON)
    def answer_wrongly(self, number: int, answer: Any) -> None:
        if self.rounds:
            round_ = self.rounds[number % len(self.rounds)]
            sent, state = len(self.driver.sent), round_.state
            try:
                self.driver.engine.provide_input(
                    round_, dict.fromkeys(round_.questions, answer), now=self.driver.now
                )
            except LocalProtocolError:
                self.driver.drain()
                assert (len(self.driver.sent), round_.state) == (sent, state)
            self.driver.drain()

    @rule(number=st.integers(0, 9))
    def refuse(self, number: int) -> None:
        if self.rounds:
            round_ = self.rounds[number % len(self.rounds)]
            error = McpError(-1, "no")
            self.use(round_, lambda: self.driver.engine.refuse_input(round_, error, now=self.driver.now))

    def use(self, round_: Round, verb: Any) -> None:
        """A verb works on an open round, does nothing on a withdrawn one, and else is misuse."""
        before = round_.state
        if before in (RoundState.ANSWERED, RoundState.REFUSED):
            with pytest.raises(LocalProtocolError):
                verb()
        else:
            assert verb() is (before is RoundState.OPEN)
        self.driver.drain()

    @rule(number=st.integers(0, 9))
    def cancel(self, number: int) -> None:
        if self.made:
            self.driver.engine.cancel(self.made[number % len(self.made)], now=self.driver.now)
            self.driver.drain()

    @rule(number=st.integers(0, 9))
    def move(self, number: int) -> None:
        """Put a call aside and take it up again at once."""
        asking = [c for c in self.made if c.state is CallState.ASKING and self.version == MODERN]
        if asking:
            driver = self.driver
            kept = driver.engine.suspend(asking[number % len(asking)], now=driver.now)
            self.made.append(driver.engine.resume(kept, now=driver.now))
            driver.drain()

    @rule(seconds=st.sampled_from([0.01, 0.3, 20.0, 40.0, 200.0]))
    def wait(self, seconds: float) -> None:
        self.driver.advance(seconds)

    # what the server does --------------------------------------------------------------------------

    @rule(
        number=st.integers(0, 9),
        kinds=st.sets(st.sampled_from([FORM[0], SAMPLE[0], ROOTS[0]])),
        state=st.booleans(),
    )
    def ask(self, number: int, kinds: set[str], state: bool) -> None:
        params = {FORM[0]: FORM[1], SAMPLE[0]: SAMPLE[1], ROOTS[0]: {}}
        if self.version == MODERN:
            request_id = self.waiting(number)
            if request_id is not None:
                questions = {kind: (kind, params[kind]) for kind in kinds}
                self.driver.reply(required(questions, "s" if state else None), to=request_id)
            return
        for kind in kinds:
            self.last_key += 1
            message = {"jsonrpc": "2.0", "id": self.last_key, "method": kind, "params": params[kind]}
            about = self.made[number % len(self.made)] if state and self.made else None
            self.driver.engine.receive_message(message, now=self.driver.now, origin=about)
            self.driver.drain()

    @rule(key=st.integers(1, 9))
    def take_back(self, key: int) -> None:
        cancel = {"requestId": key}
        self.driver.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})

    @rule(number=st.integers(0, 9), how=st.sampled_from(["result", "error", "pages"]))
    def end(self, number: int, how: str) -> None:
        request_id = self.waiting(number)
        if request_id is None:
            return
        if how == "result":
            self.driver.reply(result(self.version, TEXT), to=request_id)
        elif how == "error":
            self.driver.reply(error=-32603, to=request_id)
        else:
            self.driver.receive({"jsonrpc": "2.0", "id": request_id, "error": must_visit("a", "b")})

    @rule(restart=st.booleans())
    def lose(self, restart: bool) -> None:
        if self.version == MODERN and restart:
            self.driver.engine.connection_lost(now=self.driver.now, may_restart=True)
            self.driver.drain()
            self.driver.engine.connection_restored(now=self.driver.now)
            self.driver.drain()

    # what always holds -----------------------------------------------------------------------------

    @invariant()
    def each_call_ends_once_and_each_round_is_told_once(self) -> None:
        if not hasattr(self, "driver"):
            return
        driver = self.driver
        ended = [e.call for e in driver.said if isinstance(e, (ResultReady, RequestFailed))]
        assert len(ended) == len(set(ended))
        assert {c for c in self.made if c.done} == set(ended)
        withdrawn = [e.round for e in driver.of(InputWithdrawn)]
        assert len(withdrawn) == len(set(withdrawn))
        assert {r for r in self.rounds if r.state is RoundState.WITHDRAWN} == set(withdrawn)
        open_ = [r for r in self.rounds if r.open]
        stats = driver.engine.stats()
        assert len(open_) <= stats["rounds"] <= stats["round_timers"] or stats["rounds"] == 0
        for call in self.made:
            assert call.done or call.state is CallState.QUEUED or driver.engine.next_timeout() is not None

    def teardown(self) -> None:
        if hasattr(self, "driver"):
            self.driver.advance(10_000)
            assert not sizes(self.driver)
            assert all(c.done for c in self.made)


@pytest.mark.req("E1", "E6")
def test_whatever_happens_in_whatever_order() -> None:
    run_state_machine_as_test(Rounds)


@pytest.mark.req("E10")
@given(body=st.fixed_dictionaries({}, optional={"inputRequests": JSON, "requestState": JSON}), params=JSON)
def test_whatever_a_modern_server_requires_ends_in_a_question_or_an_error(body: Any, params: Any) -> None:
    for requests in (body.get("inputRequests"), {"k": {"method": FORM[0], "params": params}}):
        driver = able()
        driver.engine.call_tool("echo", now=0.0)
        driver.drain()
        driver.reply({"resultType": "input_required", **body, "inputRequests": requests})
        driver.advance(0.3)
        failed = [e.error for e in driver.of(RequestFailed)]
        assert all(isinstance(error, InvalidResponse) for error in failed)
        sent_again = driver.methods().count("tools/call") == 2
        assert len(failed) + len(driver.of(InputRequired)) + sent_again == 1


@pytest.mark.req("G3")
@given(
    method=st.sampled_from([FORM[0], SAMPLE[0], ROOTS[0]]), params=st.dictionaries(st.text(max_size=3), JSON)
)
def test_whatever_a_legacy_server_asks_is_a_question_or_refused(method: str, params: Any) -> None:
    driver = able(LEGACY[-1])
    driver.receive({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    assert len(driver.of(InputRequired)) + len(driver.sent) == 1


@pytest.mark.req("F4", "F5")
@given(schema=st.dictionaries(st.sampled_from(["properties", "required", "anyOf"]), JSON), content=JSON)
def test_no_form_and_no_content_makes_the_helpers_fail(schema: Any, content: Any) -> None:
    for problem in check_form(schema, content):
        assert isinstance(problem, str)
    if isinstance(content, dict):
        filled = apply_defaults(schema, content)
        assert {k: filled[k] for k in content if not isinstance(content[k], dict)}.items() == {
            k: v for k, v in content.items() if not isinstance(v, dict)
        }.items()
        assert apply_defaults(schema, filled) == filled


@given(answer=JSON)
def test_no_answer_makes_anything_but_a_local_error(answer: Any) -> None:
    driver = able()
    call = driver.engine.call_tool("echo", now=0.0)
    driver.drain()
    driver.reply(required({"k": FORM, "r": ROOTS, "s": SAMPLE}))
    for key in ("k", "r", "s"):
        with contextlib.suppress(InvalidAnswer):
            driver.engine.provide_input(call, {key: answer}, now=0.0)
