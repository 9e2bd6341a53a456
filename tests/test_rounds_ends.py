"""How rounds end: by time, with their call, their question or their connection."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    AbandonRequest,
    CallCancelled,
    CallTimeout,
    ClientCapabilities,
    InputRequired,
    InputWithdrawn,
    LimitHit,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestFailed,
    Timeouts,
    TransportKind,
)
from sansmcp.states import CallState, RoundState
from sansmcp.types import (
    ElicitationCapability,
)

from .rounds_support import (
    ACCEPTED,
    FORM,
    FORMS,
    LISTED,
    PAGE,
    PLAIN,
    ROOTS,
    SAMPLE,
    URLS,
    WITH_TOOLS,
    able,
    answer_on_wire,
    asked,
    provide,
    required,
    sizes,
)
from .support import MODERN, call_tool

# time ---------------------------------------------------------------------------------------------


@pytest.mark.req("E3", "F8")
@pytest.mark.parametrize("question", [FORM, PAGE], ids=["form", "url"])
@pytest.mark.parametrize("version", URLS)
def test_a_round_ends_after_its_time_and_the_calls_own_stands_still_meanwhile(
    version: str, question: tuple[str, Any]
) -> None:
    driver = able(version)
    call = call_tool(driver)
    round_ = asked(driver, version, question)
    assert round_ is not None
    driver.advance(599)
    assert round_.open
    assert not call.done, "it has 60 seconds of silence, and is not the one who is silent"
    sent = len(driver.sent)
    driver.advance(2)
    assert round_.state is RoundState.WITHDRAWN
    assert driver.one(InputWithdrawn).round is round_
    if version == MODERN:
        error = driver.one(RequestFailed).error
        assert isinstance(error, CallTimeout)
        assert error.reason == "round_timeout"
        assert len(driver.sent) == sent, "nothing of it is on its way"
    else:
        assert driver.last["id"] == "k"
        assert driver.last["error"]["code"] == -32603
        driver.advance(58)
        assert not call.done, "the silence counts from the end of the question"
        driver.advance(3)
        error = driver.one(RequestFailed).error
        assert isinstance(error, CallTimeout)
        assert error.reason == "timeout"
    assert not provide(driver, round_, {"k": {"action": "cancel"}}), "too late, and told so"
    assert not sizes(driver)


@pytest.mark.req("E3")
def test_the_time_of_a_round_covers_the_answer_to_the_retry() -> None:
    driver = able(timeouts=Timeouts(request=None, total=5000.0, round=100.0))
    call = call_tool(driver)
    driver.reply(required({"k": FORM}))
    driver.advance(90)
    provide(driver, call, {"k": ACCEPTED})
    driver.advance(9)
    driver.reply(required({"k": FORM}))
    driver.advance(90)
    assert not call.done, "each round has its own time"
    provide(driver, call, {"k": ACCEPTED})
    driver.advance(11)
    error = driver.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "round_timeout"
    assert driver.last["method"] == "notifications/cancelled"
    assert not driver.of(InputWithdrawn)
    assert not sizes(driver)


@pytest.mark.req("E3")
def test_after_a_retry_silence_counts_as_ever() -> None:
    driver = able()
    call = call_tool(driver)
    driver.reply(required({"k": FORM}))
    driver.advance(300)
    provide(driver, call, {"k": ACCEPTED})
    driver.advance(61)
    error = driver.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "timeout"


@pytest.mark.req("E4")
@pytest.mark.parametrize("asks", [True, False])
def test_all_rounds_together_have_a_time_that_is_off_unless_set(asks: bool) -> None:
    assert Timeouts().rounds is None
    assert Timeouts().round == 600.0
    driver = able(timeouts=Timeouts(rounds=10.0), limits=Limits(max_rounds=1000))
    call = call_tool(driver)
    for _ in range(100):
        driver.advance(0.5)
        if call.done:
            break
        if driver.engine.stats()["waiting_ids"]:
            driver.reply(required({"k": FORM} if asks else None, "s"))
        elif asks:
            provide(driver, call, {"k": ACCEPTED})
    error = driver.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "rounds_timeout"
    assert driver.now == pytest.approx(10.5), "from the first question on"


@pytest.mark.req("E4")
@pytest.mark.parametrize("version", FORMS)
def test_questions_do_not_extend_the_total_time_of_a_call(version: str) -> None:
    driver = able(version)
    call = call_tool(driver, total_timeout=100.0)
    round_ = asked(driver, version, FORM)
    assert round_ is not None
    driver.advance(101)
    failed = driver.one(RequestFailed)
    assert failed.call is call
    assert isinstance(failed.error, CallTimeout)
    assert failed.error.reason == "total_timeout"
    assert round_.open is (version != MODERN), "the server itself withdraws its requests"


def test_a_question_for_nobody_known_gives_all_calls_time() -> None:
    driver = able("2025-11-25")
    early = call_tool(driver)
    ping = driver.engine.ping(now=0.0)
    driver.advance(5)
    round_ = asked(driver, "2025-11-25", FORM)
    assert round_ is not None
    late = call_tool(driver)
    driver.advance(500)
    assert [early.done, late.done] == [False, False]
    assert ping.done, "whoever asks is alive enough to answer that"
    provide(driver, round_, {"k": ACCEPTED})
    driver.advance(61)
    assert early.done
    assert late.done


def test_a_question_of_one_call_gives_that_call_time() -> None:
    driver = able("2025-11-25")
    one, other = call_tool(driver), call_tool(driver)
    question = {"jsonrpc": "2.0", "id": "k", "method": FORM[0], "params": FORM[1]}
    driver.engine.receive_message(question, now=0.0, origin=one)
    driver.drain()
    assert driver.one(InputRequired).call is one
    driver.advance(61)
    assert (one.done, other.done) == (False, True)
    assert provide(driver, one, {"k": ACCEPTED})


# the end of a call, a question, a connection -----------------------------------------------------


@pytest.mark.req("E1")
def test_a_call_that_is_cancelled_while_it_asks_takes_its_question_back() -> None:
    driver = able()
    call = call_tool(driver)
    driver.reply(required({"k": FORM}))
    driver.engine.cancel(call, now=0.0)
    driver.drain()
    assert [type(e) for e in driver.said] == [InputRequired, InputWithdrawn, RequestFailed]
    assert isinstance(driver.one(RequestFailed).error, CallCancelled)
    assert len(driver.sent) == 1, "the server has answered already"
    assert not provide(driver, call, {"k": ACCEPTED})
    assert not driver.engine.refuse_input(call, McpError(-1, "no"), now=0.0)
    assert not sizes(driver)


def test_over_http_nothing_is_abandoned_while_a_call_asks() -> None:
    driver = able(transport=TransportKind.HTTP)
    call = call_tool(driver)
    driver.reply(required({"k": FORM}))
    driver.engine.cancel(call, now=0.0)
    driver.drain()
    assert not driver.wired(AbandonRequest)


def test_a_legacy_server_can_take_its_question_back() -> None:
    driver = able("2025-11-25")
    call_tool(driver)
    round_ = asked(driver, "2025-11-25", FORM)
    assert round_ is not None
    cancel = {"requestId": "k", "reason": "never mind"}
    driver.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})
    withdrawn = driver.one(InputWithdrawn)
    assert (withdrawn.round, withdrawn.reason) == (round_, "never mind")
    sent = len(driver.sent)
    assert not provide(driver, round_, {"k": ACCEPTED})
    assert not driver.engine.refuse_input(round_, McpError(-1, "no"), now=0.0)
    assert len(driver.sent) == sent
    assert driver.engine.stats()["open_requests"] == 0


@pytest.mark.parametrize("how", ["close", "lost", "restart"])
@pytest.mark.parametrize("version", FORMS)
def test_the_end_of_the_connection_takes_questions_back(version: str, how: str) -> None:
    driver = able(version)
    call = call_tool(driver)
    round_ = asked(driver, version, FORM)
    assert round_ is not None
    if how == "close":
        driver.engine.close(now=0.0)
    else:
        driver.engine.connection_lost(now=0.0, may_restart=how == "restart")
    driver.drain()
    if version == MODERN and how == "restart":
        assert not call.done, "nothing of it was lost"
        assert provide(driver, round_, {"k": ACCEPTED})
        assert call.state is CallState.QUEUED
        driver.engine.connection_restored(now=0.0)
        driver.drain()
        assert answer_on_wire(driver, version) == ACCEPTED
        return
    assert driver.one(InputWithdrawn).round is round_
    assert not provide(driver, round_, {"k": ACCEPTED})
    assert driver.one(RequestFailed).call is call
    assert not sizes(driver)


def test_an_expired_session_takes_questions_back() -> None:
    driver = able("2025-11-25")
    call_tool(driver)
    round_ = asked(driver, "2025-11-25", FORM)
    driver.engine.session_lost(now=0.0)
    driver.drain()
    assert driver.one(InputWithdrawn).round is round_
    assert driver.engine.stats()["open_requests"] == 0


@pytest.mark.req("E1")
def test_a_round_that_is_elsewhere_is_misuse() -> None:
    one, two = able("2025-11-25"), able("2025-11-25")
    for driver in (one, two):
        call_tool(driver)
        asked(driver, "2025-11-25", FORM)
    with pytest.raises(LocalProtocolError):
        one.engine.provide_input(two.one(InputRequired).round, {"k": ACCEPTED}, now=0.0)
    call = call_tool(one)
    with pytest.raises(LocalProtocolError):
        one.engine.provide_input(call, {}, now=0.0)


def test_two_rounds_of_one_legacy_call_have_to_be_named() -> None:
    driver = able("2025-11-25")
    call = call_tool(driver)
    for key in ("k", "l"):
        message = {"jsonrpc": "2.0", "id": key, "method": "roots/list"}
        driver.engine.receive_message(message, now=0.0, origin=call)
    driver.drain()
    with pytest.raises(LocalProtocolError, match="say which"):
        driver.engine.provide_input(call, {"k": LISTED}, now=0.0)
    for event in driver.of(InputRequired):
        assert provide(driver, event.round, dict.fromkeys(event.requests, LISTED))
    assert [m["id"] for m in driver.sent[-2:]] == ["k", "l"]


TOOL_USE = {"role": "assistant", "content": {"type": "tool_use", "id": "1", "name": "t", "input": {}}}
MIXED = {
    "role": "user",
    "content": [
        {"type": "tool_result", "toolUseId": "1", "content": []},
        {"type": "text", "text": "here they are"},
    ],
}


# legacy requests ----------------------------------------------------------------------------------


@pytest.mark.req("G2", "G3", "F3")
@pytest.mark.parametrize(
    ("question", "code", "fault"),
    [
        (PAGE, -32602, PeerFault.UNDECLARED_INPUT),
        (WITH_TOOLS, -32602, PeerFault.UNDECLARED_INPUT),
        ((FORM[0], {"message": "who?"}), -32602, PeerFault.INVALID_QUESTION),
        ((FORM[0], {**FORM[1], "mode": "voice"}), -32602, PeerFault.INVALID_QUESTION),
        ((PAGE[0], {**PAGE[1], "url": "/x"}), -32602, PeerFault.UNDECLARED_INPUT),
        ((SAMPLE[0], {}), -32602, PeerFault.INVALID_QUESTION),
        ((SAMPLE[0], {**SAMPLE[1], "messages": [TOOL_USE]}), -32602, PeerFault.INVALID_QUESTION),
        ((SAMPLE[0], {**SAMPLE[1], "messages": [MIXED]}), -32602, PeerFault.INVALID_QUESTION),
    ],
)
def test_a_legacy_question_that_cannot_be_answered_is_refused_at_once(
    question: tuple[str, Any], code: int, fault: PeerFault
) -> None:
    driver = able("2025-11-25", capabilities=PLAIN)
    assert asked(driver, "2025-11-25", question) is None
    assert driver.last["error"]["code"] == code
    assert driver.one(MessageIgnored).reason is fault
    assert driver.engine.stats()["open_requests"] == 0


def test_a_client_of_pages_alone_is_asked_no_forms() -> None:
    driver = able("2025-11-25", capabilities=ClientCapabilities(elicitation=ElicitationCapability(url={})))
    assert asked(driver, "2025-11-25", FORM) is None
    assert driver.last["error"]["code"] == -32602
    assert asked(driver, "2025-11-25", PAGE, "l") is not None


def test_open_questions_have_a_bound() -> None:
    driver = able("2025-11-25", limits=Limits(max_questions=2))
    for number in range(4):
        asked(driver, "2025-11-25", ROOTS, str(number))
    assert len(driver.of(InputRequired)) == 2
    assert {e.limit for e in driver.of(LimitHit)} == {"max_questions"}
    assert [m["error"]["code"] for m in driver.sent] == [-32603] * 2
    assert driver.engine.stats()["rounds"] == 2
