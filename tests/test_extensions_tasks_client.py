"""Tasks, the client's side: a call that has become a task ends as any other."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import (
    CallCancelled,
    CallTimeout,
    ClientCapabilities,
    InputRefused,
    InputRequired,
    InputWithdrawn,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestFailed,
    ResultReady,
    SubscriptionOpened,
)
from sansmcp.events import NotificationReceived
from sansmcp.extensions.tasks import (
    TASKS_EXTENSION,
    ClientTasks,
    ServerTasks,
    TaskReported,
    cancel_task,
    get_task,
    resume_task,
    update_task,
)
from sansmcp.states import CallState
from sansmcp.types import ElicitResult

from .support import DISCOVER, TEXT, Driver, call_tool, client, connected
from .tasks_support import ASKABLE, FORM, NAMED, pair, task_app

CAPABILITIES: dict[str, Any] = {"tools": {}, "extensions": {TASKS_EXTENSION: {}}}
STAMP = "2026-07-28T00:00:00Z"
ASKED = {"method": "elicitation/create", "params": {"message": "Who?", "requestedSchema": FORM}}
ACCEPTED = {"action": "accept", "content": {"name": "Bo"}}


def tasked(extension: ClientTasks | None = None, *, server: Any = CAPABILITIES, **options: Any) -> Driver:
    """A client with tasks, connected to a server made by hand."""
    driver = client(capabilities=ASKABLE, extensions=[extension or ClientTasks()], **options)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply({**DISCOVER, "capabilities": server})
    driver.sent.clear()
    driver.said.clear()
    return driver


def task(
    status: str = "working", kind: str = "complete", task_id: str = "t1", **members: Any
) -> dict[str, Any]:
    body = {"taskId": task_id, "status": status, "createdAt": STAMP, "lastUpdatedAt": STAMP, "ttlMs": None}
    return {"resultType": kind, **body, **members}


def became(driver: Driver, *, task_id: str = "t1", **members: Any) -> Any:
    """A call that has become a task."""
    call = call_tool(driver)
    driver.reply(task(kind="task", task_id=task_id, **members))
    assert call.state is CallState.DEFERRED
    return call


# the way there -----------------------------------------------------------------------------------


@pytest.mark.req("X3", "X4")
def test_a_call_that_became_a_task_ends_as_any_other() -> None:
    driver = tasked()
    assert TASKS_EXTENSION in str(driver.engine._own_capabilities.extensions)
    call = became(driver, pollIntervalMs=1000)
    assert driver.methods() == ["tools/call"]
    driver.advance(0.9)
    assert driver.methods() == ["tools/call"]
    driver.advance(0.2)
    assert driver.last["method"] == "tasks/get"
    assert driver.last["params"]["taskId"] == "t1"
    capabilities = driver.last["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]
    assert TASKS_EXTENSION in capabilities["extensions"]
    driver.reply(task(pollIntervalMs=3000, statusMessage="half"))
    sent = len(driver.sent)
    driver.advance(2.9)
    assert len(driver.sent) == sent  # each answer says anew how long to wait
    driver.advance(0.2)
    driver.reply(task("completed", result={**TEXT, "resultType": "complete"}))
    ready = driver.one(ResultReady)
    assert ready.call is call
    assert ready.result.content[0].text == "hi"
    assert [(e.task.status, e.task.status_message) for e in driver.of(TaskReported)] == [
        ("working", None),
        ("working", "half"),
        ("completed", None),
    ]
    assert driver.engine.next_timeout() is None
    sizes = driver.engine.stats()
    assert not any(sizes[k] for k in ("calls", "polled_tasks", "poll_timers", "extension_calls", "rounds"))


@pytest.mark.req("X4")
@pytest.mark.parametrize("told", [None, 0, -5, 1])
def test_without_a_usable_word_of_the_server_it_is_asked_as_often_as_we_think(told: int | None) -> None:
    driver = tasked(ClientTasks(poll_interval=0.25))
    more: dict[str, Any] = {} if told is None else {"pollIntervalMs": told}
    became(driver, **more)
    least = 0.05 if told == 1 else 0.25
    driver.advance(least - 0.01)
    assert driver.methods() == ["tools/call"]
    driver.advance(0.02)
    assert driver.methods() == ["tools/call", "tasks/get"]
    driver.advance(5.0)
    assert driver.methods() == ["tools/call", "tasks/get"]  # not again before that is answered


@pytest.mark.req("X4")
def test_time_is_bounded_and_the_task_goes_on() -> None:
    driver = tasked()
    call = became(driver, pollIntervalMs=60_000)
    for _ in range(4):
        driver.advance(60.0)
        driver.reply(task())
    driver.advance(61.0)
    error = driver.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "task_timeout"
    assert "t1" not in str(error)
    assert "tasks/cancel" not in driver.methods()
    assert call.done


@pytest.mark.req("X3")
@pytest.mark.parametrize(
    ("answer", "kind", "text"),
    [
        (task("failed", error={"code": -32603, "message": "broke", "data": 0}), McpError, "broke"),
        (task("cancelled"), CallCancelled, "the server cancelled its task"),
        (task("completed"), InvalidResponse, "without a result"),
        (task("completed", result={"resultType": "task"}), InvalidResponse, "without a result"),
        (task("completed", result={"resultType": {}}), InvalidResponse, "without a result"),
        (task("failed"), InvalidResponse, "without an error"),
        (task("odd"), InvalidResponse, "tasks/get"),
        (task(task_id="t2"), InvalidResponse, "another task"),
        ({"resultType": "complete"}, InvalidResponse, "tasks/get"),
        ({"resultType": "task"}, InvalidResponse, "was not expected"),
    ],
)
def test_other_ends(answer: dict[str, Any], kind: type[Exception], text: str) -> None:
    driver = tasked()
    became(driver)
    driver.advance(0.5)
    if answer["resultType"] == "task":
        driver.reply(answer)
        driver.advance(1.0)
        assert not driver.of(RequestFailed)  # of one answer that means nothing, nothing follows
        return
    driver.reply(answer)
    error = driver.one(RequestFailed).error
    assert isinstance(error, kind)
    assert text in str(error)
    if isinstance(error, McpError):
        assert error.data == 0
    driver.advance(10.0)
    assert driver.methods().count("tasks/get") == 1


@pytest.mark.req("X3")
def test_an_unknown_task_is_the_end_and_a_lost_answer_is_not() -> None:
    driver = tasked()
    became(driver)
    driver.advance(0.5)
    driver.advance(60.0)  # the poll has timed out
    driver.advance(0.5)
    assert driver.methods().count("tasks/get") == 2
    driver.reply(error=-32602)
    assert isinstance(driver.one(RequestFailed).error, McpError)


@pytest.mark.req("X6", "D4")
def test_a_task_without_the_extension_is_a_violation() -> None:
    driver = connected()
    call_tool(driver)
    driver.reply(task(kind="task"))
    error = driver.one(RequestFailed).error
    assert isinstance(error, InvalidResponse)
    assert error.fault is PeerFault.UNKNOWN_RESULT_TYPE


@pytest.mark.req("X6")
def test_only_tools_become_tasks() -> None:
    driver = tasked(server={**CAPABILITIES, "prompts": {}})
    driver.engine.get_prompt("p", now=0.0)
    driver.drain()
    driver.reply(task(kind="task"))
    assert isinstance(driver.one(RequestFailed).error, InvalidResponse)


@pytest.mark.req("X3")
@pytest.mark.parametrize("body", [{"resultType": "task"}, task("odd", kind="task")])
def test_a_task_that_is_none_is_a_violation(body: dict[str, Any]) -> None:
    driver = tasked()
    call_tool(driver)
    driver.reply(body)
    error = driver.one(RequestFailed).error
    assert isinstance(error, InvalidResponse)
    assert error.fault is PeerFault.INVALID_RESULT


# handles -----------------------------------------------------------------------------------------


@pytest.mark.req("X3")
def test_a_task_can_be_handed_back_and_taken_up_elsewhere() -> None:
    driver = tasked()
    call_tool(driver, task="handle")
    driver.reply(task(kind="task"))
    handle = driver.one(ResultReady).result
    assert (handle.task_id, handle.status) == ("t1", "working")
    other = tasked()
    call = resume_task(other.engine, "t1", now=other.now, tool="echo")
    other.drain()
    assert other.methods() == ["tasks/get"]
    with pytest.raises(LocalProtocolError, match="already"):
        resume_task(other.engine, "t1", now=other.now)
    other.reply(task("completed", result=TEXT))
    ready = other.one(ResultReady)
    assert ready.call is call
    assert ready.result.content[0].text == "hi"


@pytest.mark.req("X3")
def test_the_three_verbs_by_hand() -> None:
    driver = tasked()
    engine = driver.engine
    get_task(engine, "t1", now=0.0)
    driver.drain()
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    assert driver.of(ResultReady)[-1].result.input_requests["k"].params.message == "Who?"
    update_task(engine, "t1", {"k": ACCEPTED}, now=0.0)
    driver.drain()
    assert driver.last["params"]["inputResponses"] == {"k": ACCEPTED}
    driver.reply({"resultType": "complete"})
    cancel_task(engine, "t1", now=0.0)
    driver.drain()
    driver.reply({"resultType": "complete"})
    assert [e.result.result_type for e in driver.of(ResultReady)] == ["complete"] * 3
    assert driver.methods() == ["tasks/get", "tasks/update", "tasks/cancel"]


@pytest.mark.req("X2")
def test_what_cannot_be_is_refused_at_once() -> None:
    driver = tasked(server={"tools": {}})
    with pytest.raises(LocalProtocolError, match="does not declare the extension"):
        get_task(driver.engine, "t1", now=0.0)
    with pytest.raises(LocalProtocolError, match="must be one of 'poll', 'handle'"):
        call_tool(driver, task="no")
    with pytest.raises(TypeError, match="unexpected keyword argument 'tsak'"):
        call_tool(driver, tsak="handle")
    with pytest.raises(TypeError, match="'task'"):
        call_tool(connected(), task="handle")
    with pytest.raises(LocalProtocolError, match="ClientTasks"):
        resume_task(connected().engine, "t1", now=0.0)
    impossible: list[dict[str, Any]] = [{"poll_interval": 0.0}, {"timeout": -1.0}]
    for times in impossible:
        with pytest.raises(LocalProtocolError, match="positive"):
            ClientTasks(**times)
    assert not driver.sent


# cancel ------------------------------------------------------------------------------------------


@pytest.mark.req("X3")
@pytest.mark.parametrize("polling", [False, True])
def test_to_cancel_the_call_cancels_the_task(polling: bool) -> None:
    driver = tasked()
    call = became(driver)
    if polling:
        driver.advance(0.5)
    driver.engine.cancel(call, now=driver.now)
    driver.drain()
    assert driver.last["method"] == "tasks/cancel"
    assert driver.last["params"]["taskId"] == "t1"
    assert isinstance(driver.one(RequestFailed).error, CallCancelled)
    driver.reply({"resultType": "complete"})
    driver.advance(100.0)
    assert driver.methods()[-1] == "tasks/cancel"
    assert driver.engine.stats()["polled_tasks"] == driver.engine.stats()["extension_calls"] == 0


@pytest.mark.req("X3")
def test_the_end_of_the_connection_ends_the_call_and_not_the_task() -> None:
    driver = tasked()
    became(driver)
    driver.advance(0.5)
    driver.engine.close(now=driver.now)
    driver.drain()
    assert len(driver.of(RequestFailed)) == 1
    assert "tasks/cancel" not in driver.methods()
    assert driver.engine.stats()["polled_tasks"] == 0


# questions ---------------------------------------------------------------------------------------


@pytest.mark.req("X5")
def test_what_a_task_asks_is_asked_once_and_answered_once() -> None:
    driver = tasked()
    call = became(driver)
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    asked = driver.one(InputRequired)
    assert asked.call is call
    assert asked.requests["k"].raw["message"] == "Who?"
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    assert len(driver.of(InputRequired)) == 1  # it was asked before
    assert driver.engine.provide_input(asked.round, {"k": NAMED}, now=driver.now)
    driver.drain()
    assert driver.last["method"] == "tasks/update"
    assert driver.last["params"]["inputResponses"] == {"k": ACCEPTED}
    driver.reply({"resultType": "complete"})
    assert driver.last["method"] == "tasks/get"
    driver.reply(task("input_required", inputRequests={"k": ASKED}))  # it has not taken it in yet
    assert len(driver.of(InputRequired)) == 1
    driver.advance(0.5)
    driver.reply(task("completed", result=TEXT))
    driver.one(ResultReady)
    assert driver.methods().count("tasks/update") == 1
    assert driver.engine.stats()["rounds"] == driver.engine.stats()["round_timers"] == 0


@pytest.mark.req("X5")
def test_the_time_of_questions_does_not_count() -> None:
    driver = tasked(ClientTasks(timeout=10.0, poll_interval=8.0))
    call = became(driver)
    driver.advance(8.0)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    driver.advance(100.0)
    assert not call.done
    driver.engine.provide_input(call, {"k": NAMED}, now=driver.now)
    driver.drain()
    driver.advance(11.0)
    assert isinstance(driver.one(RequestFailed).error, CallTimeout)


@pytest.mark.req("X5")
def test_a_question_that_is_no_longer_asked_is_withdrawn() -> None:
    driver = tasked()
    became(driver)
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    asked = driver.one(InputRequired)
    driver.advance(0.5)
    driver.reply(task())
    assert driver.one(InputWithdrawn).round is asked.round
    assert not driver.engine.provide_input(asked.round, {"k": NAMED}, now=driver.now)


@pytest.mark.req("X5")
def test_an_update_that_was_not_heard_is_sent_again() -> None:
    driver = tasked()
    call = became(driver)
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    driver.engine.provide_input(call, {"k": NAMED}, now=driver.now)
    driver.drain()
    driver.advance(61.0)
    assert driver.methods().count("tasks/update") == 2


@pytest.mark.req("X5")
def test_an_answer_that_crosses_with_a_look_leaves_after_it() -> None:
    driver = tasked()
    call = became(driver)
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    driver.advance(0.5)
    driver.engine.provide_input(call, {"k": NAMED}, now=driver.now)
    driver.drain()
    assert driver.last["method"] == "tasks/get"
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    driver.advance(0.0)
    assert driver.last["method"] == "tasks/update"


@pytest.mark.req("X5")
def test_who_refuses_to_answer_gives_up_the_task() -> None:
    driver = tasked()
    call = became(driver)
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    driver.engine.refuse_input(call, McpError(-1, "no"), now=driver.now)
    driver.drain()
    assert isinstance(driver.one(RequestFailed).error, InputRefused)
    assert driver.last["method"] == "tasks/cancel"


@pytest.mark.req("X5")
@pytest.mark.parametrize("request_", [{"method": "roots/list"}, {"method": "odd"}, {"no": 1}])
def test_what_may_not_be_asked_ends_the_call(request_: dict[str, Any]) -> None:
    driver = tasked()
    became(driver)
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": request_}))
    assert isinstance(driver.one(RequestFailed).error, InvalidResponse)


@pytest.mark.req("X5")
def test_a_call_with_a_task_is_not_suspended() -> None:
    driver = tasked()
    call = became(driver)
    driver.advance(0.5)
    driver.reply(task("input_required", inputRequests={"k": ASKED}))
    with pytest.raises(LocalProtocolError, match="remember its task"):
        driver.engine.suspend(call, now=driver.now)


# being told --------------------------------------------------------------------------------------


@pytest.mark.req("X8")
def test_what_is_told_need_not_be_asked() -> None:
    driver = tasked()
    became(driver)
    status = {"jsonrpc": "2.0", "method": "notifications/tasks"}
    driver.receive({**status, "params": {"taskId": "t9", **_without(task(), "taskId")}})
    driver.receive({**status, "params": {"taskId": "t1"}})
    assert driver.one(MessageIgnored).reason is PeerFault.MALFORMED_NOTIFICATION
    driver.receive({**status, "params": _without(task("completed", result=TEXT), "resultType")})
    driver.one(ResultReady)
    assert driver.methods() == ["tools/call"]


@pytest.mark.req("X8")
def test_tasks_are_listened_to() -> None:
    driver = tasked()
    became(driver)
    listen = driver.engine.listen(topics={"taskIds": ["t1", "t2"]}, now=0.0)
    driver.drain()
    assert driver.last["params"]["notifications"] == {"taskIds": ["t1", "t2"]}
    tag = {"_meta": {"io.modelcontextprotocol/subscriptionId": driver.last["id"]}}
    told = {"jsonrpc": "2.0", "method": "notifications/tasks"}
    done = _without(task("completed", result=TEXT), "resultType")
    driver.receive({**told, "params": {**done, **tag}})
    assert driver.one(MessageIgnored).reason is PeerFault.NOT_ACKNOWLEDGED
    granted = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"}
    driver.receive({**granted, "params": {"notifications": {"taskIds": ["t1"]}, **tag}})
    opened = driver.one(SubscriptionOpened)
    assert opened.call is listen
    assert opened.honored.extra == {"taskIds": ["t1"]}
    assert opened.refused.extra == {"taskIds": ["t2"]}
    other = {"_meta": {"io.modelcontextprotocol/subscriptionId": 99}}
    driver.receive({**told, "params": {**done, **other}})
    assert not driver.of(ResultReady)
    driver.receive({**told, "params": {**done, **tag}})
    assert driver.one(NotificationReceived).params["taskId"] == "t1"
    driver.one(ResultReady)


@pytest.mark.req("X8")
def test_a_server_without_extensions_is_not_listened_to_for_any() -> None:
    driver = tasked(server={"tools": {}})
    with pytest.raises(LocalProtocolError, match="tells of no changes"):
        driver.engine.listen(topics={"taskIds": ["t1"]}, now=0.0)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
STATUSES = st.sampled_from(["working", "input_required", "completed", "failed", "cancelled"])
MEMBERS = [
    "result",
    "error",
    "inputRequests",
    "pollIntervalMs",
    "ttlMs",
    "statusMessage",
    "taskId",
    "resultType",
]
ANSWERS = st.dictionaries(st.sampled_from(MEMBERS), JSON | st.just({"k": ASKED}), max_size=3)


@pytest.mark.req("X3", "X5")
@given(st.lists(st.tuples(STATUSES, ANSWERS), max_size=6))
@settings(max_examples=150, deadline=None)
def test_whatever_a_server_says_of_a_task_never_raises(answers: list[tuple[str, dict[str, Any]]]) -> None:
    driver = tasked()
    call = became(driver)
    for status, members in answers:
        driver.receive(
            {"jsonrpc": "2.0", "method": "notifications/tasks", "params": {**task(status), **members}}
        )
        driver.advance(0.5)
        if driver.last["method"].startswith("tasks/"):
            driver.reply({**task(status), **members})
    driver.advance(100_000.0)
    driver.engine.close(now=driver.now)
    driver.drain()
    assert call.done
    assert len(driver.of(ResultReady)) + len(driver.of(RequestFailed)) == 1
    sizes = driver.engine.stats()
    assert not any(sizes[k] for k in ("calls", "polled_tasks", "poll_timers", "extension_calls", "rounds"))


@pytest.mark.req("X3")
@given(ANSWERS)
@settings(max_examples=100, deadline=None)
def test_whatever_a_server_says_of_a_task_at_first_never_raises(members: dict[str, Any]) -> None:
    driver = tasked()
    call = call_tool(driver)
    driver.reply({**task(kind="task"), **members})
    driver.engine.close(now=driver.now)
    driver.drain()
    assert call.done
    assert len(driver.of(ResultReady)) + len(driver.of(RequestFailed)) == 1


@pytest.mark.req("X3")
@pytest.mark.parametrize("member", ["result", "error", "inputRequests"])
def test_what_the_first_word_of_a_task_cannot_say_means_nothing(member: str) -> None:
    driver = tasked()
    call_tool(driver)
    driver.reply({**task(kind="task"), member: 5})
    assert driver.one(TaskReported).task.status == "working"


def _without(body: dict[str, Any], name: str) -> dict[str, Any]:
    return {k: v for k, v in body.items() if k != name}


# both sides of this library ----------------------------------------------------------------------


@pytest.mark.req("X3", "X5", "X7")
def test_both_sides_together() -> None:
    both = pair(task_app(ServerTasks()))
    engine = both.client.engine
    sums = both.call(engine.call_tool, "adds", {"a": 1, "b": 2})
    asks = both.call(engine.call_tool, "asks_twice")
    both.advance(1.0)
    assert both.end_of(sums).result.content[0].text == "3"
    first = both.of(InputRequired)[0]
    assert set(first.requests) == {"a", "b"}
    both.call(engine.provide_input, first.round, {"a": NAMED, "b": ElicitResult("decline")})
    both.advance(1.0)
    second = both.of(InputRequired)[1]
    both.call(engine.provide_input, second.round, dict.fromkeys(second.requests, NAMED))
    both.advance(1.0)
    assert both.end_of(asks).result.content[0].text == "accept decline accept"
    assert not both.of(MessageIgnored)


@pytest.mark.req("X1")
def test_capabilities_that_were_declared_by_hand_stay() -> None:
    given = ClientCapabilities(extensions={"com.example/x": {"a": 1}, TASKS_EXTENSION: {"b": 2}})
    driver = client(capabilities=given, extensions=[ClientTasks()])
    declared = driver.engine._own_capabilities.extensions
    assert declared == {"com.example/x": {"a": 1}, TASKS_EXTENSION: {"b": 2}}
