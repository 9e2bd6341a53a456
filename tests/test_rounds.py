"""What a server wants to know before it goes on: one event and one verb, in both eras."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    AbandonRequest,
    Call,
    CallCancelled,
    CallSuspended,
    CallTimeout,
    ClientCapabilities,
    DeviationTolerated,
    ElicitationCompleted,
    Harmless,
    InputRefused,
    InputRequired,
    InputWithdrawn,
    InvalidAnswer,
    InvalidResponse,
    LimitHit,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestFailed,
    RequestReceived,
    ResultReady,
    Round,
    RoundsExceeded,
    Timeouts,
    TransportKind,
)
from sansmcp.events import NotificationReceived
from sansmcp.revisions import Revision
from sansmcp.states import CallState, RoundState
from sansmcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationCapability,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ListRootsRequestParams,
    ListRootsResult,
    Root,
    RootsCapability,
    SamplingCapability,
    TextContent,
)

from .support import LEGACY, MODERN, TEXT, VERSION_KEY, Driver, call_tool, connected, result

FORMS = [v for v in LEGACY if v >= "2025-06-18"] + [MODERN]
"""Revisions that have elicitation."""
URLS = ["2025-11-25", MODERN]

EVERYTHING = ClientCapabilities(
    roots=RootsCapability(),
    sampling=SamplingCapability(tools={}),
    elicitation=ElicitationCapability(form={}, url={}),
)
PLAIN = ClientCapabilities(
    roots=RootsCapability(), sampling=SamplingCapability(), elicitation=ElicitationCapability()
)

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2, "default": "nobody"}},
    "required": ["name"],
}
FORM = ("elicitation/create", {"message": "who?", "requestedSchema": SCHEMA})
PAGE = (
    "elicitation/create",
    {"mode": "url", "message": "go", "url": "https://example.com/s3cret", "elicitationId": "e1"},
)
SAMPLE = (
    "sampling/createMessage",
    {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9},
)
WITH_TOOLS = (SAMPLE[0], {**SAMPLE[1], "tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
ROOTS: tuple[str, Any] = ("roots/list", {})

ACCEPTED = {"action": "accept", "content": {"name": "ada"}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"}
LISTED = {"roots": [{"uri": "file:///x"}]}


def asked(driver: Driver, version: str, question: tuple[str, Any], key: str = "k") -> Round | None:
    """The server asks: by a request of its own, or by its answer to the request sent last."""
    before = len(driver.of(InputRequired))
    method, params = question
    if version == MODERN:
        driver.reply(required({key: question}, state="s1"))
    else:
        driver.receive({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    found = driver.of(InputRequired)[before:]
    return found[0].round if found else None


def required(questions: Any = None, state: Any = None) -> dict[str, Any]:
    """An InputRequiredResult."""
    body: dict[str, Any] = {"resultType": "input_required"}
    if questions is not None:
        body["inputRequests"] = {k: {"method": m, "params": p} for k, (m, p) in questions.items()}
    if state is not None:
        body["requestState"] = state
    return body


def provide(driver: Driver, where: Round | Call, answers: Any, **options: Any) -> bool:
    done: bool = driver.engine.provide_input(where, answers, now=driver.now, **options)
    driver.drain()
    return done


def answer_on_wire(driver: Driver, version: str, key: str = "k") -> Any:
    """What the server got as the answer to `key`."""
    if version == MODERN:
        return driver.last["params"]["inputResponses"][key]
    assert driver.last["id"] == key
    return driver.last["result"]


def able(version: str = MODERN, **options: Any) -> Driver:
    options.setdefault("capabilities", EVERYTHING)
    return connected(version, **options)


def sizes(driver: Driver) -> dict[str, int]:
    """The tables that are not empty."""
    stats = driver.engine.stats()
    return {name: size for name, size in stats.items() if size and name not in ("ended_ids", "pages")}


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


# legacy requests ----------------------------------------------------------------------------------


@pytest.mark.req("G2", "G3", "F3")
@pytest.mark.parametrize(
    ("question", "code", "fault"),
    [
        (PAGE, -32602, PeerFault.UNDECLARED_INPUT),
        (WITH_TOOLS, -32602, PeerFault.UNDECLARED_INPUT),
        ((FORM[0], {"message": "who?"}), -32602, PeerFault.INVALID_QUESTION),
        ((FORM[0], {**FORM[1], "mode": "voice"}), -32602, PeerFault.INVALID_QUESTION),
        ((SAMPLE[0], {}), -32602, PeerFault.INVALID_QUESTION),
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


# pages to visit -----------------------------------------------------------------------------------


def must_visit(*names: Any, **more: Any) -> dict[str, Any]:
    pages = [
        {"mode": "url", "elicitationId": name, "url": f"https://e.example/{name}", "message": "go", **more}
        for name in names
    ]
    return {"code": -32042, "message": "visit first", "data": {"elicitations": pages}}


def told_to_visit(driver: Driver, error: Any) -> None:
    request_id = next(m["id"] for m in reversed(driver.sent) if "method" in m)
    driver.receive({"jsonrpc": "2.0", "id": request_id, "error": error})


@pytest.mark.req("F7", "E1")
def test_an_error_that_names_pages_is_a_question_and_the_call_goes_again_once() -> None:
    driver = able("2025-11-25")
    call = call_tool(driver)
    first = driver.last
    told_to_visit(driver, must_visit("a", "b"))
    event = driver.one(InputRequired)
    assert event.call is call
    assert {k: q.params.url for k, q in event.requests.items()} == {  # type: ignore[union-attr]
        "a": "https://e.example/a",
        "b": "https://e.example/b",
    }
    driver.advance(300)
    assert provide(driver, call, {"b": {"action": "accept"}})
    assert driver.last is first
    assert provide(driver, call, {"a": {"action": "accept"}})
    assert driver.last["params"] == first["params"], "nothing is added to it"
    assert driver.last["id"] != first["id"]
    told_to_visit(driver, must_visit("a"))
    error = driver.one(RequestFailed).error
    assert isinstance(error, McpError)
    assert error.code == -32042
    assert not sizes(driver)


@pytest.mark.req("F7")
@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_who_does_not_want_to_visit_gets_the_error(action: str) -> None:
    driver = able("2025-11-25")
    call = call_tool(driver)
    told_to_visit(driver, must_visit("a"))
    sent = len(driver.sent)
    assert provide(driver, call, {"a": {"action": action}})
    error = driver.one(RequestFailed).error
    assert isinstance(error, McpError)
    assert error.code == -32042
    assert len(driver.sent) == sent
    assert not sizes(driver)


@pytest.mark.req("F7")
@pytest.mark.parametrize(
    ("version", "capabilities", "error"),
    [
        (MODERN, EVERYTHING, must_visit("a")),
        ("2025-06-18", EVERYTHING, must_visit("a")),
        ("2025-11-25", PLAIN, must_visit("a")),
        ("2025-11-25", EVERYTHING, must_visit()),
        ("2025-11-25", EVERYTHING, must_visit("a", "a")),
        ("2025-11-25", EVERYTHING, must_visit(5)),
        ("2025-11-25", EVERYTHING, must_visit("a", mode="form")),
        ("2025-11-25", EVERYTHING, must_visit("a", url=None)),
        ("2025-11-25", EVERYTHING, {**must_visit("a"), "data": None}),
        ("2025-11-25", EVERYTHING, must_visit(*(str(n) for n in range(65)))),
    ],
)
def test_where_that_is_no_question_the_error_is_the_end(
    version: str, capabilities: ClientCapabilities, error: dict[str, Any]
) -> None:
    driver = able(version, capabilities=capabilities)
    call_tool(driver)
    told_to_visit(driver, error)
    failed = driver.one(RequestFailed).error
    assert isinstance(failed, McpError)
    assert failed.code == -32042
    assert not driver.of(InputRequired)


@pytest.mark.req("F6")
def test_a_page_that_is_done_is_told_once() -> None:
    driver = able("2025-11-25")
    call_tool(driver)
    asked(driver, "2025-11-25", PAGE)

    def done(params: Any) -> None:
        driver.receive({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params})

    done({"elicitationId": "e1"})
    assert driver.one(ElicitationCompleted).elicitation_id == "e1"
    for params in ({"elicitationId": "e1"}, {"elicitationId": "other"}, {}, {"elicitationId": 5}):
        done(params)
    driver.one(ElicitationCompleted)
    assert [e.reason for e in driver.of(MessageIgnored)] == [
        *[Harmless.UNKNOWN_ELICITATION] * 2,
        *[PeerFault.MALFORMED_NOTIFICATION] * 2,
    ]


@pytest.mark.req("F6")
@pytest.mark.parametrize("version", ["2025-06-18", MODERN])
def test_other_revisions_have_no_such_notification(version: str) -> None:
    driver = able(version)
    params = {"elicitationId": "e1"}
    driver.receive({"jsonrpc": "2.0", "method": "notifications/elicitation/complete", "params": params})
    driver.one(NotificationReceived)
    assert not driver.of(ElicitationCompleted)


def test_pages_are_remembered_up_to_a_bound() -> None:
    driver = able("2025-11-25", limits=Limits(max_remembered_ids=3))
    for number in range(6):
        round_ = asked(
            driver, "2025-11-25", (PAGE[0], {**PAGE[1], "elicitationId": f"e{number}"}), f"k{number}"
        )
        assert round_ is not None
        provide(driver, round_, {f"k{number}": {"action": "accept"}})
    assert driver.engine.stats()["pages"] == 3


# by hand ------------------------------------------------------------------------------------------


@pytest.mark.req("E9")
def test_a_call_without_auto_rounds_goes_on_only_with_what_is_given() -> None:
    driver = able()
    call = call_tool(driver, auto_rounds=False)
    driver.reply(required(state="s1"))
    event = driver.one(InputRequired)
    assert dict(event.requests) == {}
    assert event.round.request_state == "s1"
    sent = len(driver.sent)
    driver.advance(59)
    assert len(driver.sent) == sent, "not by itself"
    assert provide(driver, call, {})
    assert driver.last["params"]["requestState"] == "s1"
    assert "inputResponses" not in driver.last["params"]
    driver.reply(required({"a": FORM, "b": ROOTS}, "s2"))
    assert provide(driver, call, {"b": LISTED})
    assert driver.last["params"]["inputResponses"] == {"b": LISTED}, "the server asks again for the rest"
    driver.reply(required({"a": FORM}))
    assert provide(driver, call, {"a": ACCEPTED})
    driver.reply(result(MODERN, TEXT))
    driver.one(ResultReady)
    assert not sizes(driver)


# elsewhere ----------------------------------------------------------------------------------------


@pytest.mark.req("E17")
def test_a_call_is_put_aside_and_goes_on_in_another_process() -> None:
    here = able(timeouts=Timeouts(rounds=5000.0))
    call = call_tool(here, progress=True, meta={"traceparent": "t"}, total_timeout=1000.0)
    here.reply(required({"a": FORM, "b": ROOTS}, "s 1%20"))
    provide(here, call, {"b": LISTED})
    here.advance(100)
    text = json.dumps(here.engine.suspend(call, now=here.now))
    here.drain()
    assert isinstance(here.one(RequestFailed).error, CallSuspended)
    here.one(InputWithdrawn)
    assert len(here.sent) == 1, "the server is not told"
    assert not sizes(here)

    there = able()
    there.now = 77_000.0
    again = there.engine.resume(json.loads(text), now=there.now)
    there.drain()
    event = there.one(InputRequired)
    assert event.call == again
    assert list(event.requests) == ["a"], "the other one is answered"
    assert list(event.round.questions) == ["a", "b"]
    with pytest.raises(LocalProtocolError):
        there.engine.provide_input(again, {"b": LISTED}, now=there.now)
    assert there.engine.next_timeout() == pytest.approx(77_000 + 500), "what is left of the round"
    there.advance(400)
    assert provide(there, again, {"a": ACCEPTED})
    params = there.last["params"]
    assert (params["name"], params["arguments"]) == ("echo", {"text": "hi"})
    assert params["inputResponses"] == {"a": ACCEPTED, "b": LISTED}
    assert params["requestState"] == "s 1%20"
    assert params["_meta"]["traceparent"] == "t"
    assert params["_meta"][VERSION_KEY] == MODERN
    assert again.rounds == 1
    there.reply(result(MODERN, TEXT))
    assert there.one(ResultReady).call is again
    assert not sizes(there)


@pytest.mark.req("E17")
def test_a_suspended_call_keeps_its_deadlines_and_its_count() -> None:
    here = able(limits=Limits(max_rounds=2))
    call = call_tool(here, total_timeout=300.0)
    here.reply(required(state="s"))
    here.advance(0.05)
    here.reply(required({"k": FORM}))
    here.advance(200)
    there = able(limits=Limits(max_rounds=2))
    again = there.engine.resume(here.engine.suspend(call, now=here.now), now=0.0)
    there.drain()
    assert there.one(InputRequired).round.number == 2
    provide(there, again, {"k": ACCEPTED})
    there.reply(required({"k": FORM}))
    assert isinstance(there.one(RequestFailed).error, RoundsExceeded)
    late = able(timeouts=Timeouts(round=None))
    late.engine.resume({**snapshot(), "roundLeft": 5.0}, now=0.0)
    late.drain()
    late.advance(6)
    error = late.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "round_timeout"
    late = able()
    late.engine.resume({**snapshot(), "totalTimeout": 300.0, "totalLeft": 99.0}, now=0.0)
    late.drain()
    late.advance(100)
    error = late.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "total_timeout"


def snapshot() -> dict[str, Any]:
    driver = able()
    call = call_tool(driver)
    driver.reply(required({"k": FORM}, "s3cret"))
    made: dict[str, Any] = driver.engine.suspend(call, now=0.0)
    return made


@pytest.mark.req("E17")
def test_a_call_that_waits_for_nothing_can_be_put_aside_too() -> None:
    here, there = able(), able()
    call = call_tool(here)
    here.reply(required(state="s"))
    there.engine.resume(here.engine.suspend(call, now=0.0), now=0.0)
    here.drain()
    assert not here.of(InputWithdrawn), "nobody was asked"
    there.advance(1)
    assert there.last["params"]["requestState"] == "s"


@pytest.mark.req("E17")
def test_a_suspended_call_may_be_taken_up_before_the_era_is_known() -> None:
    from .support import DISCOVER, client, initialize_result

    for legacy in (False, True):
        driver = client(capabilities=EVERYTHING)
        call = driver.engine.resume(snapshot(), now=0.0)
        driver.engine.connect(now=0.0)
        driver.drain()
        provide(driver, call, {"k": ACCEPTED})
        assert driver.methods() == ["server/discover"]
        if legacy:
            driver.reply(error=-32601)
            driver.reply(initialize_result())
            assert isinstance(driver.one(RequestFailed).error, LocalProtocolError)
            assert "tools/call" not in driver.methods()
        else:
            driver.reply(DISCOVER)
            assert answer_on_wire(driver, MODERN) == ACCEPTED


@pytest.mark.req("E17")
@pytest.mark.parametrize(
    "change",
    [
        *({name: value} for name in snapshot() for value in ([1], "no" if name != "method" else 5)),
        {"format": 2},
        {"rounds": -1},
        {"rounds": True},
        {"answers": {"other": {}}},
        {"requests": {"k": {"method": "ping"}}},
        {"requests": {str(n): {"method": "roots/list"} for n in range(65)}},
    ],
    ids=lambda change: str(change)[:40],
)
def test_what_was_never_suspended_is_not_resumed(change: dict[str, Any]) -> None:
    driver = able()
    value = {**snapshot(), **change}
    if change in ({"requestState": "no"}, {"logLevel": "no"}):
        return
    with pytest.raises(LocalProtocolError) as raised:
        driver.engine.resume(value, now=0.0)
    assert "s3cret" not in str(raised.value)
    assert not sizes(driver)


@pytest.mark.req("E17")
def test_suspending_and_resuming_out_of_place_is_misuse() -> None:
    driver = able()
    call = call_tool(driver)
    with pytest.raises(LocalProtocolError):
        driver.engine.suspend(call, now=0.0)
    driver.reply(result(MODERN, TEXT))
    with pytest.raises(LocalProtocolError):
        driver.engine.suspend(call, now=0.0)
    old = able("2025-11-25")
    waiting = call_tool(old)
    told_to_visit(old, must_visit("a"))
    misuses: list[Callable[[], object]] = [
        lambda: old.engine.suspend(waiting, now=0.0),
        lambda: old.engine.resume(snapshot(), now=0.0),
        lambda: connected().engine.resume(snapshot(), now=0.0),
        lambda: driver.engine.resume([], now=0.0),
        lambda: driver.engine.resume({}, now=0.0),
    ]
    for misuse in misuses:
        with pytest.raises(LocalProtocolError):
            misuse()


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
