"""What a server wants to know before it goes on: one event and one verb, in both eras."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    DeviationTolerated,
    InputRefused,
    InputRequired,
    InputWithdrawn,
    InvalidAnswer,
    InvalidResponse,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestFailed,
    RequestReceived,
    ResultReady,
    RoundsExceeded,
)
from sansmcp.revisions import Revision
from sansmcp.states import CallState, RoundState
from sansmcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ListRootsRequestParams,
    ListRootsResult,
    Root,
    TextContent,
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
    SAMPLED,
    URLS,
    WITH_TOOLS,
    able,
    answer_on_wire,
    asked,
    provide,
    required,
    sizes,
)
from .support import LEGACY, MODERN, TEXT, call_tool, connected, result

# one meaning --------------------------------------------------------------------------------------


@pytest.mark.req("E1", "F1", "F2", "F3", "G1", "G2", "H1")
@pytest.mark.case("M-01")
@pytest.mark.parametrize("typed", [False, True], ids=["json", "typed"])
@pytest.mark.parametrize(
    ("question", "kind", "answer", "as_typed", "versions"),
    [
        (FORM, ElicitRequestFormParams, ACCEPTED, ElicitResult("accept", {"name": "ada"}), FORMS),
        (FORM, ElicitRequestFormParams, {"action": "decline"}, ElicitResult("decline"), FORMS),
        (PAGE, ElicitRequestURLParams, {"action": "accept"}, ElicitResult("accept"), URLS),
        (PAGE, ElicitRequestURLParams, {"action": "cancel"}, ElicitResult("cancel"), URLS),
        (
            SAMPLE,
            CreateMessageRequestParams,
            SAMPLED,
            CreateMessageResult("assistant", TextContent("!"), "m"),
            [*LEGACY, MODERN],
        ),
        (
            WITH_TOOLS,
            CreateMessageRequestParams,
            {**SAMPLED, "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]},
            None,
            URLS,
        ),
        (ROOTS, ListRootsRequestParams, LISTED, ListRootsResult([Root("file:///x")]), [*LEGACY, MODERN]),
    ],
)
def test_a_question_is_told_and_answered_alike_in_both_eras(
    question: tuple[str, Any], kind: type, answer: Any, as_typed: Any, versions: list[str], typed: bool
) -> None:
    for version in versions:
        driver = able(version)
        call = call_tool(driver)
        round_ = asked(driver, version, question)
        assert round_ is not None, driver.said
        event = driver.one(InputRequired)
        (key,) = event.requests
        told = event.requests[key]
        assert (key, told.method, told.raw, type(told.params)) == ("k", *question, kind)
        assert round_.number == 1
        assert round_.open
        assert not driver.of(RequestReceived)
        given = as_typed if typed and as_typed is not None else answer
        assert provide(driver, round_, {"k": given})
        assert answer_on_wire(driver, version) == answer
        assert round_.state is RoundState.ANSWERED
        driver.reply(result(version, TEXT))
        assert driver.one(ResultReady).call is call
        assert not sizes(driver)


def test_an_elicitation_without_members_is_by_form_only() -> None:
    for version in URLS:
        for question, told in ((FORM, True), (PAGE, False)):
            driver = able(version, capabilities=PLAIN)
            call_tool(driver)
            assert (asked(driver, version, question) is not None) is told


# the modern loop ----------------------------------------------------------------------------------


@pytest.mark.req("E7", "E8", "B3")
@pytest.mark.case("M-01", "M-03")
def test_a_retry_has_a_new_id_the_same_params_and_the_last_state() -> None:
    driver = able()
    call = call_tool(driver, progress=True, log_level="info", meta={"traceparent": "t"})
    first = driver.last
    other = driver.engine.get_prompt("p", now=0.0)
    driver.drain()
    beside = driver.last
    state = 'a b%20 "é\\u0000" \ud83d\ude00'
    driver.reply(required({"k": FORM}, state), to=first["id"])
    assert provide(driver, call, {"k": ACCEPTED})
    second = driver.last
    assert second["id"] not in (first["id"], beside["id"])
    assert second["method"] == "tools/call"
    assert second["params"]["requestState"] == state
    assert second["params"]["inputResponses"] == {"k": ACCEPTED}
    expected = {**first["params"]["_meta"], "progressToken": second["id"]}
    assert second["params"]["_meta"] == expected, "stamped anew; its progress token is its id"
    assert {k: second["params"][k] for k in ("name", "arguments")} == {
        "name": "echo",
        "arguments": {"text": "hi"},
    }
    driver.reply(required({"r": ROOTS}), to=second["id"])
    assert provide(driver, call, {"r": LISTED})
    third = driver.last["params"]
    assert third["inputResponses"] == {"r": LISTED}, "of the last round only"
    assert "requestState" not in third, "none was given"
    assert not {"requestState", "inputResponses"} & beside["params"].keys()
    progress = {"progressToken": driver.last["id"], "progress": 1}
    driver.receive({"jsonrpc": "2.0", "method": "notifications/progress", "params": progress})
    driver.reply(result(MODERN, {"messages": []}), to=beside["id"])
    driver.reply(result(MODERN, TEXT), to=driver.sent[-1]["id"])
    assert {e.call for e in driver.of(ResultReady)} == {call, other}
    assert call.rounds == 2
    assert not sizes(driver)


def test_progress_of_each_round_counts_on_its_own() -> None:
    driver = able()
    call = call_tool(driver, progress=True)
    for progress in (5, 1):
        params = {"progressToken": driver.last["id"], "progress": progress}
        driver.receive({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
        driver.reply(required({"k": FORM}))
        provide(driver, call, {"k": ACCEPTED})
    assert {type(e).__name__ for e in driver.said} == {"ProgressReported", "InputRequired"}


@pytest.mark.req("E7")
def test_state_and_answers_that_the_application_gives_are_not_carried_on() -> None:
    driver = able()
    params = {"name": "x", "requestState": "old", "inputResponses": {"a": ACCEPTED}}
    call = driver.engine.request("tools/call", params, now=0.0)
    driver.drain()
    assert driver.last["params"]["requestState"] == "old"
    driver.reply(required({"k": FORM}))
    provide(driver, call, {"k": ACCEPTED})
    assert driver.last["params"]["inputResponses"] == {"k": ACCEPTED}
    assert "requestState" not in driver.last["params"]


@pytest.mark.req("E2")
def test_ten_retries_and_no_more() -> None:
    driver = able()
    call = call_tool(driver)
    for number in range(1, 11):
        driver.reply(required({"k": FORM}, f"s{number}"))
        assert driver.of(InputRequired)[-1].round.number == number
        provide(driver, call, {"k": ACCEPTED})
    assert driver.methods().count("tools/call") == 11
    last = required({"k": FORM}, "s3cret")
    driver.reply(last)
    error = driver.one(RequestFailed).error
    assert isinstance(error, RoundsExceeded)
    assert (error.rounds, error.result) == (10, last)
    assert "s3cret" not in repr(error) + str(error)
    assert len(driver.of(InputRequired)) == 10
    assert not sizes(driver)


@pytest.mark.req("E2")
@pytest.mark.parametrize("limit", [0, 1, 3])
def test_the_number_of_rounds_can_be_set(limit: int) -> None:
    driver = able(limits=Limits(max_rounds=limit))
    call_tool(driver)
    for _ in range(limit + 1):
        driver.reply(required(state="s"))
        driver.advance(0.3)
    assert driver.methods().count("tools/call") == limit + 1
    assert isinstance(driver.one(RequestFailed).error, RoundsExceeded)


@pytest.mark.req("E5")
@pytest.mark.case("M-02")
def test_a_state_without_questions_makes_the_call_go_again_after_a_while() -> None:
    driver = able()
    call = call_tool(driver)
    waits = []
    for number in range(6):
        driver.reply(required(state=f"s{number}"))
        assert call.state is CallState.ASKING
        when = driver.engine.next_timeout()
        assert when is not None
        waits.append(round(when - driver.now, 6))
        sent = len(driver.sent)
        driver.advance(waits[-1] / 2)
        assert len(driver.sent) == sent
        driver.advance(waits[-1])
        assert driver.last["params"]["requestState"] == f"s{number}"
        assert "inputResponses" not in driver.last["params"]
    assert waits == [0.05, 0.1, 0.2, 0.25, 0.25, 0.25]
    driver.reply(required({"k": FORM}))
    provide(driver, call, {"k": ACCEPTED})
    driver.reply(required(state="again"))
    assert driver.engine.next_timeout() == pytest.approx(driver.now + 0.05), "counted in a row"
    driver.advance(0.05)
    driver.reply(result(MODERN, TEXT))
    driver.one(ResultReady)
    assert len(driver.of(InputRequired)) == 1
    assert not sizes(driver)


@pytest.mark.req("E10", "E11")
@pytest.mark.case("M-02", "M-09")
@pytest.mark.parametrize(
    ("body", "fault"),
    [
        ({}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"inputRequests": {}}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"inputRequests": None, "requestState": None}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"inputRequests": []}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"requestState": 5}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"requestState": "s", "inputRequests": 5}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"inputRequests": {"k": "roots/list"}}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"inputRequests": {"k": {"params": {}}}}, PeerFault.INVALID_INPUT_REQUIRED),
        ({"inputRequests": {"k": {"method": "ping"}}}, PeerFault.INVALID_QUESTION),
        ({"inputRequests": {"k": {"method": "elicitation/create"}}}, PeerFault.INVALID_QUESTION),
        ({"inputRequests": {"k": {"method": FORM[0], "params": 5}}}, PeerFault.INVALID_QUESTION),
        (
            {"inputRequests": {"k": {"method": FORM[0], "params": {**FORM[1], "mode": "voice"}}}},
            PeerFault.INVALID_QUESTION,
        ),
        (
            {"inputRequests": {"k": {"method": SAMPLE[0], "params": WITH_TOOLS[1]}}},
            PeerFault.UNDECLARED_INPUT,
        ),
        ({"inputRequests": {"k": {"method": PAGE[0], "params": PAGE[1]}}}, PeerFault.UNDECLARED_INPUT),
        (
            {"inputRequests": {str(n): {"method": "roots/list"} for n in range(65)}},
            PeerFault.INVALID_INPUT_REQUIRED,
        ),
    ],
)
def test_input_that_is_not_required_properly_fails_the_call_at_once(
    body: dict[str, Any], fault: PeerFault
) -> None:
    driver = able(capabilities=PLAIN)
    call_tool(driver)
    driver.reply({"resultType": "input_required", **body})
    error = driver.one(RequestFailed).error
    assert isinstance(error, InvalidResponse)
    assert error.fault is fault
    assert len(driver.sent) == 1
    assert not driver.of(InputRequired)
    assert not sizes(driver)


@pytest.mark.req("G3", "E10")
@pytest.mark.case("M-09")
@pytest.mark.parametrize("question", [FORM, SAMPLE, ROOTS], ids=lambda q: q[0])
def test_a_client_that_declares_nothing_is_asked_nothing(question: tuple[str, Any]) -> None:
    for version in FORMS:
        driver = connected(version)
        call_tool(driver)
        assert asked(driver, version, question) is None
        if version == MODERN:
            error = driver.one(RequestFailed).error
            assert isinstance(error, InvalidResponse)
            assert error.fault is PeerFault.UNDECLARED_INPUT
        else:
            assert driver.last["error"]["code"] == -32601
            assert driver.one(MessageIgnored).reason is PeerFault.UNEXPECTED_REQUEST


@pytest.mark.req("E11")
@pytest.mark.parametrize(
    ("verb", "arguments", "allowed"),
    [
        ("call_tool", ("t",), True),
        ("read_resource", ("a:b",), True),
        ("get_prompt", ("p",), True),
        ("list_tools", (), False),
        ("list_all_tools", (), False),
        ("complete", ({"type": "ref/prompt", "name": "p"}, "a", "v"), False),
        ("discover", (), False),
        ("request", ("vendor/thing",), False),
    ],
)
def test_input_is_required_only_for_what_may_ask(verb: str, arguments: Any, allowed: bool) -> None:
    driver = able()
    getattr(driver.engine, verb)(*arguments, now=0.0)
    driver.drain()
    driver.reply(required({"k": FORM}))
    if allowed:
        driver.one(InputRequired)
        return
    error = driver.one(RequestFailed).error
    assert isinstance(error, InvalidResponse)
    assert error.fault is PeerFault.INPUT_NOT_ALLOWED


def test_a_null_member_is_as_good_as_absent_and_told() -> None:
    for strict in (False, True):
        driver = able(strict=strict)
        call = call_tool(driver)
        driver.reply({**required({"k": ("roots/list", None)}), "requestState": None})
        if strict:
            error = driver.one(RequestFailed).error
            assert isinstance(error, InvalidResponse)
            assert error.fault is PeerFault.INVALID_INPUT_REQUIRED
            continue
        assert driver.one(DeviationTolerated).fault is PeerFault.INVALID_INPUT_REQUIRED
        provide(driver, call, {"k": LISTED})
        assert "requestState" not in driver.last["params"]


@pytest.mark.req("E1")
@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_result_is_never_a_question(version: str) -> None:
    driver = able(version)
    call_tool(driver)
    driver.reply({**required({"k": FORM}), **TEXT})
    driver.one(ResultReady)


# answers ------------------------------------------------------------------------------------------


@pytest.mark.req("E6")
def test_answers_come_key_by_key_in_any_order_and_the_last_one_sends() -> None:
    driver = able()
    call = call_tool(driver)
    driver.reply(required({"a": FORM, "b": SAMPLE, "c": ROOTS}, "s"))
    assert list(driver.one(InputRequired).requests) == ["a", "b", "c"]
    sent = len(driver.sent)
    assert provide(driver, call, {"c": LISTED})
    assert provide(driver, call, {"a": ACCEPTED})
    assert len(driver.sent) == sent
    for wrong in ({"c": LISTED}, {"d": LISTED}, {"b": SAMPLED, "c": LISTED}, {"b": SAMPLED, "x": LISTED}):
        with pytest.raises(LocalProtocolError):
            driver.engine.provide_input(call, wrong, now=0.0)
        driver.drain()
        assert len(driver.sent) == sent, "nothing is taken of what is wrong in part"
    assert provide(driver, call, {"b": SAMPLED})
    assert driver.last["params"]["inputResponses"] == {"a": ACCEPTED, "b": SAMPLED, "c": LISTED}
    with pytest.raises(LocalProtocolError):
        driver.engine.provide_input(call, {"b": SAMPLED}, now=0.0)
    assert len(driver.sent) == sent + 1


@pytest.mark.parametrize("version", FORMS)
def test_a_second_answer_is_misuse(version: str) -> None:
    driver = able(version)
    call_tool(driver)
    round_ = asked(driver, version, FORM)
    assert round_ is not None
    provide(driver, round_, {"k": ACCEPTED})
    sent = len(driver.sent)
    misuses: list[Callable[[], object]] = [
        lambda: driver.engine.provide_input(round_, {"k": ACCEPTED}, now=0.0),
        lambda: driver.engine.refuse_input(round_, McpError(-1, "no"), now=0.0),
    ]
    for misuse in misuses:
        with pytest.raises(LocalProtocolError):
            misuse()
    driver.drain()
    assert len(driver.sent) == sent


BAD_ANSWERS: list[tuple[tuple[str, Any], Any]] = [
    (FORM, {"action": "accept"}),
    (FORM, {"action": "accept", "content": {}}),
    (FORM, {"action": "accept", "content": {"name": "s"}}),
    (FORM, {"action": "accept", "content": {"name": 5}}),
    (FORM, {"action": "accept", "content": None}),
    (FORM, {"action": "decline", "content": {"name": "ada"}}),
    (FORM, {"action": "perhaps"}),
    (FORM, {}),
    (FORM, "accept"),
    (FORM, None),
    (FORM, SAMPLED),
    (PAGE, {"action": "accept", "content": {"name": "ada"}}),
    (SAMPLE, {"role": "assistant", "model": "m"}),
    (SAMPLE, {"role": "tool", "content": {"type": "text", "text": ""}, "model": "m"}),
    (ROOTS, {"roots": [{"uri": "https://example.com"}]}),
    (ROOTS, {"roots": [{"name": "x"}]}),
    (ROOTS, []),
]


@pytest.mark.req("F2", "F5")
@pytest.mark.parametrize(("question", "answer"), BAD_ANSWERS)
@pytest.mark.parametrize("version", URLS)
def test_what_does_not_answer_the_question_is_refused_here(
    version: str, question: tuple[str, Any], answer: Any
) -> None:
    driver = able(version)
    call_tool(driver)
    round_ = asked(driver, version, question)
    assert round_ is not None
    sent = len(driver.sent)
    with pytest.raises(InvalidAnswer) as raised:
        driver.engine.provide_input(round_, {"k": answer}, now=0.0)
    driver.drain()
    assert raised.value.key == "k"
    assert raised.value.problems
    assert "ada" not in str(raised.value)
    assert len(driver.sent) == sent
    assert round_.open, "answer again"
    good = {FORM[0]: {"action": "cancel"}, SAMPLE[0]: SAMPLED, "roots/list": {"roots": []}}
    assert provide(driver, round_, {"k": good[question[0]]})
    assert len(driver.sent) == sent + 1


@pytest.mark.req("F5")
def test_an_answer_that_is_no_json_is_refused_before_anything_changes() -> None:
    driver = able()
    call = call_tool(driver)
    driver.reply(required({"k": SAMPLE}))
    with pytest.raises(LocalProtocolError):
        driver.engine.provide_input(call, {"k": {**SAMPLED, "_meta": {"x": {1, 2}}}}, now=0.0)
    assert provide(driver, call, {"k": SAMPLED})


@pytest.mark.req("G2")
@pytest.mark.parametrize("version", URLS)
def test_what_a_model_says_may_be_of_an_unknown_kind(version: str) -> None:
    driver = able(version)
    call_tool(driver)
    round_ = asked(driver, version, SAMPLE)
    assert round_ is not None
    answer = {**SAMPLED, "content": {"type": "hologram", "x": 1}, "future": True}
    assert provide(driver, round_, {"k": answer})
    assert answer_on_wire(driver, version) == answer


@pytest.mark.req("F4")
@pytest.mark.parametrize("version", FORMS)
@pytest.mark.parametrize(
    ("answer", "sent"),
    [
        ({"action": "accept"}, {"action": "accept", "content": {"name": "nobody"}}),
        ({"action": "accept", "content": {}}, {"action": "accept", "content": {"name": "nobody"}}),
        (ACCEPTED, ACCEPTED),
        ({"action": "decline"}, {"action": "decline"}),
    ],
)
def test_defaults_are_filled_in_where_that_is_wanted(version: str, answer: Any, sent: Any) -> None:
    driver = able(version)
    call_tool(driver)
    round_ = asked(driver, version, FORM)
    assert round_ is not None
    assert provide(driver, round_, {"k": answer}, apply_defaults=True)
    assert answer_on_wire(driver, version) == sent


# refusals -----------------------------------------------------------------------------------------


@pytest.mark.req("E6")
@pytest.mark.parametrize("version", FORMS)
def test_a_refusal_is_an_error_for_the_server_or_the_end_of_the_call(version: str) -> None:
    driver = able(version)
    call = call_tool(driver)
    round_ = asked(driver, version, FORM)
    assert round_ is not None
    sent = len(driver.sent)
    assert driver.engine.refuse_input(round_, McpError(-1, "not now", {"a": 1}), now=0.0)
    driver.drain()
    assert round_.state is RoundState.REFUSED
    if version == MODERN:
        failed = driver.one(RequestFailed)
        assert failed.call is call
        assert isinstance(failed.error, InputRefused)
        assert isinstance(failed.error.__cause__, McpError)
        assert len(driver.sent) == sent
    else:
        assert driver.last["error"] == {"code": -1, "message": "not now", "data": {"a": 1}}
        assert not call.done
        driver.reply(TEXT, to=1 if driver.methods().count("tools/call") == 0 else None)
        driver.one(ResultReady)
    assert not driver.of(InputWithdrawn)
    assert not sizes(driver)


def test_a_legacy_server_is_sent_no_code_of_the_modern_era() -> None:
    driver = able("2025-11-25")
    call_tool(driver)
    round_ = asked(driver, "2025-11-25", FORM)
    assert round_ is not None
    with pytest.raises(LocalProtocolError):
        driver.engine.refuse_input(round_, McpError(-32021, "no"), now=0.0)
    assert round_.open


# secrets ------------------------------------------------------------------------------------------


def test_neither_state_nor_answers_nor_pages_are_shown() -> None:
    driver = able()
    call = call_tool(driver)
    driver.reply(required({"k": PAGE, "f": FORM}, "s3cret"))
    event = driver.one(InputRequired)
    provide(driver, call, {"f": {"action": "accept", "content": {"name": "s3cret"}}})
    shown = repr([event, event.round, call, event.requests, event.round.questions["k"].params])
    assert "s3cret" not in shown


def test_a_round_that_is_over_leaves_nothing_in_the_call() -> None:
    driver = able()
    call = call_tool(driver)
    driver.reply(required({"k": FORM}, "s"))
    provide(driver, call, {"k": ACCEPTED})
    driver.reply(result(MODERN, TEXT))
    assert call.round is None
    assert Revision(MODERN) is driver.one(InputRequired).round.revision
