"""Rounds that end outside of the conversation: on a page, by hand, in another process."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    CallSuspended,
    CallTimeout,
    ClientCapabilities,
    ElicitationCompleted,
    Harmless,
    InputRequired,
    InputWithdrawn,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestFailed,
    ResultReady,
    RoundsExceeded,
    Timeouts,
)
from sansmcp.events import NotificationReceived

from .rounds_support import (
    ACCEPTED,
    EVERYTHING,
    FORM,
    LISTED,
    PAGE,
    PLAIN,
    ROOTS,
    able,
    answer_on_wire,
    asked,
    provide,
    required,
    sizes,
)
from .support import MODERN, TEXT, VERSION_KEY, Driver, call_tool, connected, result

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
        {"method": ""},
        {"method": "tools/list"},
        {"totalLeft": 5.0, "totalTimeout": None},
        {"roundLeft": float("nan")},
        {"timeout": float("inf")},
        {"rounds": 10**400},
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
