"""The client engine at message level, in both eras: results, gates, notifications, garbage."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    ClientCapabilities,
    DeviationTolerated,
    InputRequired,
    InvalidResponse,
    LimitHit,
    Limits,
    ListChanged,
    ListKind,
    LocalProtocolError,
    LogReceived,
    MessageIgnored,
    NotificationReceived,
    PeerFault,
    RemoteProtocolError,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResourceUpdated,
    ResultReady,
)
from sansmcp.types import (
    ClientTasksCapability,
    PromptReference,
    ResourceTemplateReference,
    RootsCapability,
)

from .support import ALL, LEGACY, TEXT, VERSION_KEY, call_tool, client, connected, result, serving

# result types -----------------------------------------------------------------------------------


@pytest.mark.req("D1")
@pytest.mark.case("M-04")
def test_a_modern_result_without_type_is_complete_and_told() -> None:
    driver = connected()
    call_tool(driver)
    driver.reply(TEXT)
    driver.one(ResultReady)
    assert driver.one(DeviationTolerated).fault is PeerFault.MISSING_RESULT_TYPE


@pytest.mark.req("D1")
def test_strict_mode_refuses_a_result_without_type() -> None:
    driver = connected(strict=True)
    call_tool(driver)
    driver.reply(TEXT)
    assert isinstance(driver.one(RequestFailed).error, InvalidResponse)


@pytest.mark.req("D2")
@pytest.mark.parametrize("kind", ["task", "", 5, {"a": 1}])
def test_an_unknown_result_type_is_an_error(kind: Any) -> None:
    driver = connected()
    call_tool(driver)
    driver.reply({"resultType": kind, **TEXT})
    error = driver.one(RequestFailed).error
    assert isinstance(error, InvalidResponse)
    assert error.fault is PeerFault.UNKNOWN_RESULT_TYPE


@pytest.mark.req("D4", "X6")
def test_an_extension_may_define_a_result_type() -> None:
    extension = "com.example/jobs"
    declared = ClientCapabilities(extensions={extension: {}})
    driver = connected(capabilities=declared)
    driver.engine.register_result_type("job", lambda raw: ("job", raw["jobId"]), extension=extension)
    call_tool(driver)
    driver.reply({"resultType": "job", "jobId": 5})
    ready = driver.one(ResultReady)
    assert ready.result == ("job", 5)
    assert ready.raw == {"resultType": "job", "jobId": 5}
    for tag, by in (("job", extension), ("complete", extension), ("input_required", extension), ("x", "y/z")):
        with pytest.raises(LocalProtocolError):
            driver.engine.register_result_type(tag, dict, extension=by)


@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_result_needs_no_type(version: str) -> None:
    driver = connected(version)
    call_tool(driver)
    driver.reply({**TEXT, "resultType": "whatever"})
    driver.one(ResultReady)
    assert not driver.of(DeviationTolerated)


@pytest.mark.case("G-04")
@pytest.mark.parametrize("version", ALL)
def test_a_tool_result_without_content_is_read_as_empty(version: str) -> None:
    driver = connected(version)
    call_tool(driver)
    driver.reply(result(version, {"structuredContent": {"a": 1}}))
    assert driver.one(DeviationTolerated).fault is PeerFault.MISSING_CONTENT
    assert driver.one(ResultReady).result.content == []


@pytest.mark.case("J-15")
def test_the_result_of_a_custom_method_is_the_raw_object() -> None:
    driver = connected()
    driver.engine.request("vendor/thing", {"x": 1}, now=0.0)
    driver.drain()
    body = {"resultType": "complete", "content": [], "vendorField": {"a": 1}}
    driver.reply(body)
    assert driver.one(ResultReady).result == body


def test_a_result_of_the_wrong_shape_says_so_when_it_is_read() -> None:
    driver = connected()
    call_tool(driver)
    driver.reply({"resultType": "complete", "content": [{"type": "text", "text": 5}]})
    ready = driver.one(ResultReady)
    with pytest.raises(RemoteProtocolError, match=r"content\[0\]"):
        ready.result  # noqa: B018
    assert ready.raw["content"][0]["text"] == 5


# what goes on the wire --------------------------------------------------------------------------


@pytest.mark.req("B2", "B3", "Y1")
def test_modern_requests_carry_meta_and_what_the_application_adds() -> None:
    driver = connected()
    trace = {"traceparent": "00-1-2-01", "vendor/x": [1]}
    call_tool(driver, meta=trace, progress=True, log_level="debug")
    stamped = driver.last["params"]["_meta"]
    assert stamped["traceparent"] == "00-1-2-01"
    assert stamped["vendor/x"] == [1]
    assert stamped["progressToken"] == driver.last["id"]
    assert stamped["io.modelcontextprotocol/logLevel"] == "debug"
    driver.engine.call_tool("echo", now=0.0)
    driver.drain()
    assert "traceparent" not in driver.last["params"]["_meta"], "nothing carries over"
    assert "io.modelcontextprotocol/logLevel" not in driver.last["params"]["_meta"]


@pytest.mark.req("Z1")
@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    ("ref", "written"),
    [
        (PromptReference("p", title="P"), {"type": "ref/prompt", "name": "p"}),
        (ResourceTemplateReference("a:{b}"), {"type": "ref/resource", "uri": "a:{b}"}),
        ({"type": "ref/prompt", "name": "p"}, {"type": "ref/prompt", "name": "p"}),
    ],
)
def test_what_is_completed_may_be_typed(version: str, ref: Any, written: dict[str, Any]) -> None:
    driver = connected(version)
    call = driver.engine.complete(ref, "a", "b", now=0.0)
    driver.drain()
    params = driver.last["params"]
    assert params["argument"] == {"name": "a", "value": "b"}
    if version >= "2025-06-18" and isinstance(ref, PromptReference):
        written = {**written, "title": "P"}
    assert params["ref"] == written
    driver.reply(result(version, {"completion": {"values": ["bc"], "total": 1, "hasMore": False}}))
    done = driver.one(ResultReady)
    assert done.call is call
    assert done.result.completion.values == ["bc"]


@pytest.mark.req("Y1")
@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(
    "trace",
    [
        {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "tracestate": "a=1,b=2"},
        {"traceparent": "not one", "tracestate": "", "baggage": "ü=%ZZ; ,,"},
        {"traceparent": "\ud800"},
        {},
    ],
    ids=str,
)
def test_a_trace_context_is_carried_and_shown_as_it_is(version: str, trace: dict[str, str]) -> None:
    driver = connected(version)
    call_tool(driver, meta={**trace, "tracy": "no part of it"})
    other = serving(version)
    other.receive(driver.last)
    request = other.one(RequestReceived).request
    assert request.trace_context == trace
    assert request.meta["tracy"] == "no part of it"


@pytest.mark.req("Y1")
@pytest.mark.parametrize("version", ALL)
def test_what_is_no_text_is_no_trace_context(version: str) -> None:
    driver = connected(version)
    call_tool(driver, meta={"traceparent": 5, "baggage": ["a"], "tracestate": "a=1"})
    other = serving(version)
    other.receive(driver.last)
    request = other.one(RequestReceived).request
    assert request.trace_context == {"tracestate": "a=1"}
    assert (request.meta["traceparent"], request.meta["baggage"]) == (5, ["a"])


@pytest.mark.req("B4")
@pytest.mark.parametrize("version", LEGACY)
def test_legacy_messages_never_carry_modern_keys(version: str) -> None:
    driver = connected(version)
    call_tool(driver, progress=True)
    call = call_tool(driver)
    driver.engine.cancel(call, now=0.0)
    driver.engine.notify("notifications/roots/list_changed", now=0.0)
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    assert "io.modelcontextprotocol" not in str(driver.sent)
    with pytest.raises(LocalProtocolError):
        call_tool(driver, meta={VERSION_KEY: "2026-07-28"})


@pytest.mark.req("B2")
def test_client_info_can_be_left_out() -> None:
    driver = connected(send_client_info=False)
    call_tool(driver)
    assert "clientInfo" not in str(driver.sent)


@pytest.mark.parametrize("key", [VERSION_KEY, "io.modelcontextprotocol/clientCapabilities"])
def test_the_application_cannot_set_the_engines_own_keys(key: str) -> None:
    driver = connected()
    with pytest.raises(LocalProtocolError):
        call_tool(driver, meta={key: "x"})
    assert not driver.sent


@pytest.mark.req("B5")
@pytest.mark.parametrize("version", ALL)
def test_ids_are_never_used_twice(version: str) -> None:
    driver = connected(version)
    for _ in range(50):
        call_tool(driver)
        driver.reply(result(version, TEXT))
    ids = [m["id"] for m in driver.sent]
    assert len(set(ids)) == 50
    assert all(type(i) is int for i in ids)


@pytest.mark.case("J-08")
def test_params_are_always_an_object() -> None:
    driver = connected("2025-11-25")
    driver.engine.list_tools(now=0.0)
    driver.drain()
    assert driver.last["params"] == {}


@pytest.mark.case("J-12")
@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"x", object(), {1: 2}])
@pytest.mark.parametrize("connect", [True, False])
def test_a_value_that_is_no_json_is_refused_before_anything_is_sent(value: Any, connect: bool) -> None:
    driver = connected() if connect else client()
    with pytest.raises(LocalProtocolError):
        driver.engine.call_tool("echo", {"x": value}, now=0.0)
    driver.drain()
    assert not driver.sent
    assert driver.engine.stats()["calls"] == 0
    assert driver.engine.next_timeout() is None


# gates ------------------------------------------------------------------------------------------


@pytest.mark.req("B12", "A11", "A18", "H2", "I2", "L3")
@pytest.mark.parametrize(
    ("version", "verb"),
    [
        ("2026-07-28", lambda e: e.ping(now=0.0)),
        ("2026-07-28", lambda e: e.set_log_level("info", now=0.0)),
        ("2026-07-28", lambda e: e.roots_changed(now=0.0)),
        ("2026-07-28", lambda e: e.request("resources/subscribe", {"uri": "x:y"}, now=0.0)),
        ("2026-07-28", lambda e: e.request("initialize", now=0.0)),
        ("2025-11-25", lambda e: e.discover(now=0.0)),
        ("2025-11-25", lambda e: e.call_tool("x", now=0.0, log_level="info")),
        ("2025-11-25", lambda e: e.request("sampling/createMessage", now=0.0)),
        ("2025-06-18", lambda e: e.request("tasks/list", now=0.0)),
        (
            "2025-03-26",
            lambda e: e.complete({"type": "ref/prompt", "name": "p"}, "a", "b", now=0.0, context={"x": "y"}),
        ),
        ("2025-06-18", lambda e: e.call_tool("x", now=0.0, log_level="loud")),
    ],
)
def test_what_the_revision_lacks_is_a_local_error(version: str, verb: Any) -> None:
    driver = connected(version)
    with pytest.raises(LocalProtocolError):
        verb(driver.engine)
    driver.drain()
    assert not driver.sent
    assert driver.engine.stats()["calls"] == 0


@pytest.mark.req("L3", "I2", "A11")
@pytest.mark.parametrize(
    ("version", "verb", "method"),
    [
        ("2025-11-25", lambda e: e.ping(now=0.0), "ping"),
        ("2025-11-25", lambda e: e.set_log_level("info", now=0.0), "logging/setLevel"),
        ("2026-07-28", lambda e: e.discover(now=0.0), "server/discover"),
        (
            "2025-06-18",
            lambda e: e.complete({"type": "ref/prompt", "name": "p"}, "a", "b", now=0.0, context={"x": "y"}),
            "completion/complete",
        ),
        ("2024-11-05", lambda e: e.read_resource("a:b", now=0.0), "resources/read"),
        ("2024-11-05", lambda e: e.get_prompt("p", {"a": "b"}, now=0.0), "prompts/get"),
    ],
)
def test_what_the_revision_has_is_sent(version: str, verb: Any, method: str) -> None:
    driver = connected(version)
    verb(driver.engine)
    driver.drain()
    assert driver.last["method"] == method


@pytest.mark.case("G-07")
def test_what_the_server_does_not_declare_is_not_asked() -> None:
    driver = client()
    held = driver.engine.list_prompts(now=0.0)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    failed = driver.one(RequestFailed)
    assert failed.call is held
    assert "prompts" in str(failed.error)
    with pytest.raises(LocalProtocolError, match="prompts"):
        driver.engine.list_prompts(now=0.0)
    driver.engine.list_tools(now=0.0)
    driver.drain()
    assert driver.methods() == ["server/discover", "tools/list"]


def test_the_capability_gate_can_be_left_open() -> None:
    driver = client(check_capabilities=False)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply({"supportedVersions": ["2026-07-28"], "capabilities": {}})
    driver.engine.list_prompts(now=0.0)
    driver.drain()
    assert driver.methods()[-1] == "prompts/list"


@pytest.mark.req("B11")
@pytest.mark.parametrize("version", ALL)
def test_custom_methods_work_in_every_revision(version: str) -> None:
    driver = connected(version)
    driver.engine.request("vendor/thing", {"x": 1}, now=0.0)
    driver.engine.notify("vendor/note", {"y": 2}, now=0.0)
    driver.drain()
    assert driver.methods() == ["vendor/thing", "vendor/note"]
    assert all(("_meta" in m["params"]) == (version == ALL[-1]) for m in driver.sent)


# notifications ----------------------------------------------------------------------------------


@pytest.mark.req("I1", "O8")
@pytest.mark.parametrize("version", ALL)
def test_notifications_mean_the_same_in_every_revision(version: str) -> None:
    driver = connected(version)
    for kind in ListKind:
        driver.receive({"jsonrpc": "2.0", "method": f"notifications/{kind.value}/list_changed"})
    driver.receive(
        {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "a:b"}},
        {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": None}},
        {"jsonrpc": "2.0", "method": "vendor/x", "params": {"a": 1}},
    )
    assert [e.kind for e in driver.of(ListChanged)] == list(ListKind)
    assert driver.one(ResourceUpdated).uri == "a:b"
    log = driver.one(LogReceived)
    assert (log.level, log.logger, log.data) == ("info", None, None)
    assert driver.one(NotificationReceived).method == "vendor/x"
    assert not driver.sent


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("notifications/message", {"level": "loud", "data": 1}),
        ("notifications/message", {"level": "info"}),
        ("notifications/resources/updated", {"uri": 5}),
        ("notifications/cancelled", {"requestId": None}),
        ("notifications/cancelled", {}),
    ],
)
def test_malformed_notifications_are_ignored_and_told(method: str, params: Any) -> None:
    driver = connected("2025-11-25")
    driver.receive({"jsonrpc": "2.0", "method": method, "params": params})
    assert isinstance(driver.one(MessageIgnored).error, RemoteProtocolError)
    assert not driver.sent


# requests of the server -------------------------------------------------------------------------


@pytest.mark.req("G3", "L3")
@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_server_gets_an_answer_to_whatever_it_asks(version: str) -> None:
    driver = connected(version)
    driver.receive({"jsonrpc": "2.0", "id": 0, "method": "ping"})
    assert driver.last == {"jsonrpc": "2.0", "id": 0, "result": {}}
    for method in ("sampling/createMessage", "roots/list", "elicitation/create", "no/such"):
        driver.receive({"jsonrpc": "2.0", "id": "s", "method": method, "params": {}})
        assert driver.last["error"]["code"] == -32601
    assert driver.engine.stats()["open_requests"] == 0


@pytest.mark.req("H1")
def test_a_declared_question_reaches_the_application_and_is_answered_once() -> None:
    driver = connected("2025-11-25", capabilities=ClientCapabilities(roots=RootsCapability()))
    driver.receive({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})
    asked = driver.one(InputRequired).round
    assert driver.engine.provide_input(asked, {"5": {"roots": []}}, now=0.0)
    driver.drain()
    assert driver.last == {"jsonrpc": "2.0", "id": 5, "result": {"roots": []}}
    with pytest.raises(LocalProtocolError):
        driver.engine.provide_input(asked, {"5": {"roots": []}}, now=0.0)


def test_a_request_that_is_no_question_reaches_the_application_as_it_is() -> None:
    driver = connected("2025-11-25", capabilities=ClientCapabilities(tasks=ClientTasksCapability(list={})))
    driver.receive({"jsonrpc": "2.0", "id": 5, "method": "tasks/list"})
    request = driver.one(RequestReceived).request
    assert driver.engine.respond(request, {"tasks": []}, now=0.0)
    driver.drain()
    assert driver.last == {"jsonrpc": "2.0", "id": 5, "result": {"tasks": []}}
    with pytest.raises(LocalProtocolError):
        driver.engine.respond(request, {"tasks": []}, now=0.0)


def test_a_cancelled_request_of_the_server_is_not_answered() -> None:
    driver = connected("2025-11-25", capabilities=ClientCapabilities(tasks=ClientTasksCapability(list={})))
    driver.receive(
        {"jsonrpc": "2.0", "id": 0, "method": "tasks/list"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}},
    )
    request = driver.one(RequestCancelled).request
    assert not driver.engine.respond(request, {"tasks": []}, now=0.0)
    driver.drain()
    assert not driver.sent


def test_a_modern_client_never_writes_a_response() -> None:
    driver = connected(capabilities=ClientCapabilities(roots=RootsCapability()))
    driver.receive(
        {"jsonrpc": "2.0", "id": 5, "method": "roots/list"}, {"jsonrpc": "2.0", "id": 6, "method": "ping"}
    )
    assert [e.reason for e in driver.of(MessageIgnored)] == [PeerFault.UNEXPECTED_REQUEST] * 2
    assert not driver.sent


# garbage ----------------------------------------------------------------------------------------


@pytest.mark.req("Q3", "U7")
@pytest.mark.case("S-05", "S-06", "S-07", "S-08", "J-04")
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize(
    "garbage",
    [
        b"Starting server on port 0",
        b'{"level":"info","msg":"ready"}',
        b'{"jsonrpc":"2.0",',
        b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff\xfe"}',
        b"[1,2]",
        b"[]",
        b"null",
        b"5",
        b'"x"',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"bad json"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"bad json"}}',
        b'{"jsonrpc":"1.0","id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":true,"result":{}}',
        b'{"jsonrpc":"2.0","id":1.5,"result":{}}',
        b'{"jsonrpc":"2.0","method":5}',
        b"[" * 5000,
        b"",
    ],
)
def test_garbage_is_told_and_never_answered(version: str, garbage: bytes) -> None:
    driver = connected(version)
    call = call_tool(driver)
    sent = len(driver.sent)
    driver.receive(garbage)
    assert driver.of(MessageIgnored)
    assert len(driver.sent) == sent
    driver.reply(result(version, TEXT), to=call.request_id)
    driver.one(ResultReady)


@pytest.mark.req("B14")
@pytest.mark.case("J-10")
@pytest.mark.parametrize("version", ALL)
def test_a_batch_is_read_in_its_one_revision(version: str) -> None:
    driver = connected(version)
    first, second = call_tool(driver), call_tool(driver)
    driver.receive([{"jsonrpc": "2.0", "id": c.request_id, "result": TEXT} for c in (first, second)])
    if version == "2025-03-26":
        assert {e.call for e in driver.of(ResultReady)} == {first, second}
    else:
        assert driver.one(MessageIgnored).reason is PeerFault.BATCH_NOT_ALLOWED
        assert not first.done


def test_a_batch_of_server_requests_is_answered_together() -> None:
    driver = connected("2025-03-26")
    driver.receive([{"jsonrpc": "2.0", "id": i, "method": "ping"} for i in (1, 2)])
    replies: Any = driver.last
    assert [m["id"] for m in replies] == [1, 2]


@pytest.mark.req("Q2")
def test_an_oversize_answer_fails_its_call() -> None:
    driver = connected(limits=Limits(max_message=1000))
    call, other = call_tool(driver), call_tool(driver)
    driver.engine.receive_oversize(call.request_id, like_response=True, now=0.0)
    driver.engine.receive_oversize(None, like_response=True, now=0.0)
    driver.engine.receive_oversize(other.request_id, like_response=False, now=0.0)
    driver.drain()
    assert len(driver.of(LimitHit)) == 3
    failed = driver.one(RequestFailed)
    assert failed.call is call
    assert "max_message" in str(failed.error)
    assert not other.done
