"""The client engine at message level, in both eras: calls, answers, timeouts, progress, lists."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    AbandonRequest,
    CallCancelled,
    CallTimeout,
    ClientCapabilities,
    CloseConnection,
    ConnectionEnded,
    DeviationTolerated,
    Harmless,
    InvalidResponse,
    LimitHit,
    Limits,
    ListChanged,
    ListKind,
    LocalProtocolError,
    LogReceived,
    McpError,
    MessageIgnored,
    NotificationReceived,
    PaginationError,
    PeerFault,
    PeerGone,
    ProgressReported,
    Reconnect,
    RemoteProtocolError,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResourceUpdated,
    ResultReady,
    Revision,
    SendNotification,
    SessionEnded,
    Timeouts,
    TransportKind,
)
from sansmcp.types import CallToolResult, ListToolsResult, RootsCapability, TextContent

from .support import VERSION_KEY, Driver, client, connected

ALL = [r.value for r in Revision]
LEGACY = ALL[:-1]
TEXT = {"content": [{"type": "text", "text": "hi"}]}


def result(version: str, body: dict[str, Any]) -> dict[str, Any]:
    return {"resultType": "complete", **body} if version == ALL[-1] else body


def call_tool(driver: Driver, **options: Any) -> Any:
    call = driver.engine.call_tool("echo", {"text": "hi"}, now=driver.now, **options)
    driver.drain()
    return call


# the one end of a call --------------------------------------------------------------------------


@pytest.mark.req("B1", "D1")
@pytest.mark.parametrize("version", ALL)
def test_a_call_and_its_typed_result(version: str) -> None:
    driver = connected(version)
    call = call_tool(driver)
    assert driver.last["method"] == "tools/call"
    assert ("_meta" in driver.last["params"]) == (version == ALL[-1])
    driver.reply(result(version, TEXT))
    ready = driver.one(ResultReady)
    assert ready.call is call
    assert call.done
    assert not ready.is_error
    assert isinstance(ready.result, CallToolResult)
    assert ready.result is ready.result, "typed once"
    block = ready.result.content[0]
    assert isinstance(block, TextContent)
    assert block.text == "hi"


@pytest.mark.req("U5")
@pytest.mark.parametrize("version", ALL)
def test_a_failing_tool_is_a_result(version: str) -> None:
    driver = connected(version)
    call_tool(driver)
    driver.reply(result(version, {**TEXT, "isError": True}))
    assert driver.one(ResultReady).is_error


@pytest.mark.req("U1", "U6")
@pytest.mark.parametrize("version", ALL)
def test_an_error_keeps_code_and_data(version: str) -> None:
    driver = connected(version)
    call_tool(driver)
    data = {"deep": [1, {"x": None}]}
    driver.reply(error=(-32602, data))
    error = driver.one(RequestFailed).error
    assert isinstance(error, McpError)
    assert (error.code, error.data) == (-32602, data)
    assert "INVALID_PARAMS" in str(error)


@pytest.mark.case("J-01")
def test_an_id_of_another_type_is_tolerated_and_told() -> None:
    driver = connected()
    call = call_tool(driver)
    driver.reply(result(ALL[-1], TEXT), to=str(call.request_id))
    assert driver.one(ResultReady).call is call
    assert driver.one(DeviationTolerated).fault is PeerFault.RESPONSE_ID_TYPE


@pytest.mark.case("J-01", "J-17")
@pytest.mark.parametrize("strange", ["01", "zz", "", -1, 999, "9" * 30])
def test_a_response_that_nobody_asked_for_is_ignored(strange: Any) -> None:
    driver = connected()
    call = call_tool(driver)
    driver.reply(TEXT, to=strange)
    assert driver.one(MessageIgnored).reason is PeerFault.UNKNOWN_RESPONSE_ID
    assert not call.done


@pytest.mark.case("J-01")
def test_strict_mode_does_not_convert_ids() -> None:
    driver = connected(strict=True)
    call = call_tool(driver)
    driver.reply(result(ALL[-1], TEXT), to=str(call.request_id))
    assert not call.done


@pytest.mark.case("J-05", "J-16")
@pytest.mark.parametrize(
    "body",
    [
        {"result": {}, "error": {"code": -32603, "message": "x"}},
        {},
        {"result": []},
        {"result": None},
        {"result": "done"},
        {"error": "bad"},
        {"error": {"code": "x", "message": "y"}},
    ],
)
def test_an_invalid_response_ends_its_call_at_once(body: dict[str, Any]) -> None:
    driver = connected()
    call = call_tool(driver)
    driver.receive({"jsonrpc": "2.0", "id": call.request_id, **body})
    error = driver.one(RequestFailed).error
    assert isinstance(error, InvalidResponse)
    assert error.fault is PeerFault.INVALID_RESPONSE
    later = call_tool(driver)
    driver.reply(result(ALL[-1], TEXT))
    assert driver.one(ResultReady).call is later


@pytest.mark.req("K3")
@pytest.mark.case("C-01", "C-03")
def test_a_late_answer_is_ignored_once_the_call_has_ended() -> None:
    driver = connected()
    call = call_tool(driver)
    old = call.request_id
    driver.engine.cancel(call, now=0.0)
    driver.drain()
    driver.reply(TEXT, to=old)
    driver.reply(TEXT, to=old)
    assert [e.reason for e in driver.of(MessageIgnored)] == [Harmless.LATE_RESPONSE] * 2
    assert len(driver.of(RequestFailed)) == 1


def test_an_answer_that_comes_twice_ends_the_call_once() -> None:
    driver = connected()
    call = call_tool(driver)
    old = call.request_id
    driver.reply(result(ALL[-1], TEXT)).reply(error=-32603, to=old)
    assert len(driver.of(ResultReady)) == 1
    assert not driver.of(RequestFailed)


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


# timeouts, cancel, progress ---------------------------------------------------------------------


@pytest.mark.req("L1", "L4", "K1")
@pytest.mark.case("C-03", "C-09")
@pytest.mark.parametrize("version", ALL)
def test_a_call_times_out_and_the_peer_is_told_once(version: str) -> None:
    driver = connected(version)
    call = call_tool(driver)
    driver.advance(59.9)
    assert not call.done
    driver.advance(0.1)
    error = driver.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "timeout"
    assert "echo" in str(error)
    assert "60" in str(error)
    assert driver.last["method"] == "notifications/cancelled"
    assert driver.last["params"]["requestId"] == driver.sent[0]["id"]
    driver.engine.cancel(call, now=driver.now)
    driver.advance(1000)
    assert driver.methods().count("notifications/cancelled") == 1


@pytest.mark.req("K1")
@pytest.mark.parametrize("version", ALL)
def test_cancel_ends_the_call_here_and_now(version: str) -> None:
    driver = connected(version)
    call = call_tool(driver)
    driver.engine.cancel(call, now=1.0, reason="no longer needed")
    driver.engine.cancel(call, now=1.0)
    driver.drain()
    assert isinstance(driver.one(RequestFailed).error, CallCancelled)
    assert driver.last["params"]["reason"] == "no longer needed"
    assert len(driver.wired(SendNotification)) == 1
    assert driver.engine.next_timeout() is None


@pytest.mark.req("K2")
def test_over_http_a_modern_cancel_closes_the_exchange_instead() -> None:
    driver = connected(transport=TransportKind.HTTP)
    call = call_tool(driver)
    request_id = call.request_id
    driver.engine.cancel(call, now=0.0)
    driver.drain()
    assert [e.request_id for e in driver.wired(AbandonRequest)] == [request_id]
    assert not driver.wired(SendNotification)


@pytest.mark.req("K2")
def test_over_http_a_legacy_cancel_is_a_notification() -> None:
    driver = connected("2025-11-25", transport=TransportKind.HTTP)
    driver.engine.cancel(call_tool(driver), now=0.0)
    driver.drain()
    assert len(driver.wired(SendNotification)) == 1


def test_a_call_cancelled_while_it_waits_is_never_sent() -> None:
    driver = client()
    call = driver.engine.call_tool("echo", now=0.0)
    driver.engine.connect(now=0.0)
    driver.engine.cancel(call, now=0.0)
    driver.drain()
    driver.reply({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}})
    assert driver.methods() == ["server/discover"]
    driver.one(RequestFailed)


@pytest.mark.req("J2", "L2")
@pytest.mark.case("C-08")
def test_progress_extends_the_silence_but_never_the_total() -> None:
    driver = connected()
    call = call_tool(driver, progress=True, timeout=60.0, total_timeout=300.0)
    token = driver.last["params"]["_meta"]["progressToken"]
    for step in range(1, 6):
        driver.advance(50.0)
        assert not call.done
        driver.receive(
            {
                "jsonrpc": "2.0",
                "method": "notifications/progress",
                "params": {"progressToken": token, "progress": step},
            }
        )
    driver.advance(49.9)
    assert not call.done
    driver.advance(0.1)
    error = driver.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "total_timeout"
    assert driver.now == 300.0


@pytest.mark.req("J2")
def test_progress_need_not_extend_anything() -> None:
    driver = connected(timeouts=Timeouts(progress_resets=False))
    call = call_tool(driver, progress=True)
    driver.advance(50.0)
    token = driver.last["params"]["_meta"]["progressToken"]
    driver.receive(
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": token, "progress": 1},
        }
    )
    driver.advance(10.0)
    assert call.done


@pytest.mark.req("L1")
def test_a_call_must_end_some_day() -> None:
    driver = connected()
    with pytest.raises(LocalProtocolError, match="total_timeout"):
        call_tool(driver, timeout=None)
    call_tool(driver, timeout=None, total_timeout=5.0)
    driver.advance(5.0)
    driver.one(RequestFailed)


@pytest.mark.req("J1", "J3", "J4")
@pytest.mark.case("C-04", "C-06", "C-07", "J-02")
def test_progress_is_told_with_its_call() -> None:
    driver = connected()
    call = call_tool(driver, progress=True)
    token = driver.last["params"]["_meta"]["progressToken"]

    def progress(value: Any, token: Any = token, **more: Any) -> None:
        params = {"progressToken": token, "progress": value, **more}
        driver.receive({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})

    progress(0.25, total=1.0, message="quarter")
    event = driver.one(ProgressReported)
    assert (event.call, event.progress, event.total, event.message) == (call, 0.25, 1.0, "quarter")
    progress(0.25)
    progress(0.1)
    assert [e.progress for e in driver.of(ProgressReported)] == [0.25, 0.25, 0.1]
    assert [e.fault for e in driver.of(DeviationTolerated)] == [PeerFault.PROGRESS_NOT_INCREASING] * 2
    for bad in (True, None, [1], 1.5):
        progress(1, token=bad)
    progress("1")
    progress(True)
    assert [e.reason for e in driver.of(MessageIgnored)] == [PeerFault.MALFORMED_NOTIFICATION] * 6
    driver.said.clear()
    progress(1, token="zz")
    progress(1, token=str(token))
    assert [e.reason for e in driver.of(MessageIgnored)] == [PeerFault.UNKNOWN_PROGRESS_TOKEN] * 2
    driver.reply({"resultType": "complete", "content": []})
    driver.said.clear()
    progress(2)
    assert driver.one(MessageIgnored).reason is Harmless.LATE_PROGRESS


# lists ------------------------------------------------------------------------------------------


def page(*names: str, cursor: Any = None) -> dict[str, Any]:
    tools = [{"name": n, "inputSchema": {"type": "object"}} for n in names]
    body: dict[str, Any] = {"resultType": "complete", "tools": tools, "vendor": 1}
    if cursor is not None:
        body["nextCursor"] = cursor
    return body


@pytest.mark.req("M1", "M3")
@pytest.mark.case("G-02")
def test_a_list_is_read_to_its_end_by_one_call() -> None:
    driver = connected()
    call = driver.engine.list_all_tools(now=0.0)
    driver.drain()
    assert "cursor" not in driver.last["params"]
    driver.reply(page("a", "b", cursor=""))
    assert driver.last["params"]["cursor"] == "", "an empty cursor is a cursor"
    driver.reply(page("c", cursor="x"))
    driver.reply(page("d"))
    ready = driver.one(ResultReady)
    assert ready.call is call
    assert isinstance(ready.result, ListToolsResult)
    assert [t.name for t in ready.result.tools] == ["a", "b", "c", "d"]
    assert ready.result.next_cursor is None
    assert len({m["id"] for m in driver.sent}) == 3


@pytest.mark.req("M3")
@pytest.mark.case("G-01")
@pytest.mark.parametrize("cursors", [["x", "x"], ["x", "y", "x"], ["", ""]])
def test_a_repeated_cursor_ends_the_walk_with_what_was_read(cursors: list[str]) -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    for number, cursor in enumerate(cursors):
        driver.reply(page(str(number), cursor=cursor))
    error = driver.one(RequestFailed).error
    assert isinstance(error, PaginationError)
    assert len(error.items) == len(cursors) - 1, "the repeated page is not counted"
    assert driver.one(DeviationTolerated).fault is PeerFault.CURSOR_LOOP


@pytest.mark.req("M2")
def test_the_page_limit_is_never_passed() -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    for number in range(64):
        driver.reply(page(str(number), cursor=f"c{number}"))
    assert len(driver.sent) == 64
    error = driver.one(RequestFailed).error
    assert isinstance(error, PaginationError)
    assert len(error.items) == 64


@pytest.mark.req("M5")
def test_an_expired_cursor_starts_the_list_over_once() -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    driver.reply(page("a", cursor="x"))
    driver.reply(error=-32602)
    assert "cursor" not in driver.last["params"]
    driver.reply(page("b", cursor="y"))
    driver.reply(page("c"))
    assert [t.name for t in driver.one(ResultReady).result.tools] == ["b", "c"]


@pytest.mark.req("M5")
def test_a_cursor_that_expires_twice_is_an_error() -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    for _ in range(2):
        driver.reply(page("a", cursor="x"))
        driver.reply(error=-32602)
    assert isinstance(driver.one(RequestFailed).error, McpError)


@pytest.mark.parametrize("bad", [{"tools": {}}, {}, {"tools": [], "nextCursor": 5}])
def test_a_page_that_is_none_ends_the_walk(bad: dict[str, Any]) -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    driver.reply({"resultType": "complete", **bad})
    assert isinstance(driver.one(RequestFailed).error, PaginationError)


@pytest.mark.req("M1")
def test_one_page_is_one_page() -> None:
    driver = connected()
    driver.engine.list_tools("abc", now=0.0)
    driver.drain()
    assert driver.last["params"]["cursor"] == "abc"
    driver.reply(page("a", cursor="x"))
    assert driver.one(ResultReady).result.next_cursor == "x"


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
def test_a_declared_request_reaches_the_application_and_is_answered_once() -> None:
    driver = connected("2025-11-25", capabilities=ClientCapabilities(roots=RootsCapability()))
    driver.receive({"jsonrpc": "2.0", "id": 5, "method": "roots/list"})
    request = driver.one(RequestReceived).request
    assert driver.engine.respond(request, {"roots": []}, now=0.0)
    driver.drain()
    assert driver.last == {"jsonrpc": "2.0", "id": 5, "result": {"roots": []}}
    with pytest.raises(LocalProtocolError):
        driver.engine.respond(request, {"roots": []}, now=0.0)


def test_a_cancelled_request_of_the_server_is_not_answered() -> None:
    driver = connected("2025-11-25", capabilities=ClientCapabilities(roots=RootsCapability()))
    driver.receive(
        {"jsonrpc": "2.0", "id": 0, "method": "roots/list"},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}},
    )
    request = driver.one(RequestCancelled).request
    assert not driver.engine.respond(request, {"roots": []}, now=0.0)
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


# loss, end, limits ------------------------------------------------------------------------------


@pytest.mark.req("Q7")
@pytest.mark.parametrize("version", ALL)
def test_a_lost_peer_fails_each_call_once_with_its_last_words(version: str) -> None:
    driver = connected(version)
    calls = [call_tool(driver) for _ in range(3)]
    driver.engine.connection_lost(now=1.0, returncode=-9, stderr_tail="oh no")
    driver.engine.connection_lost(now=1.0)
    driver.drain()
    gone = driver.one(PeerGone)
    assert (gone.returncode, gone.stderr_tail, gone.restarting) == (-9, "oh no", False)
    failed = driver.of(RequestFailed)
    assert [e.call for e in failed] == calls
    assert all(isinstance(e.error, ConnectionEnded) and e.error.stderr_tail == "oh no" for e in failed)
    assert "signal 9" in str(failed[0].error)
    assert isinstance(driver.one(SessionEnded).error, ConnectionEnded)


@pytest.mark.req("Q9")
@pytest.mark.parametrize("version", ALL)
def test_a_restarted_peer_is_used_again_under_the_same_verdict(version: str) -> None:
    driver = connected(version)
    call_tool(driver)
    driver.engine.connection_lost(now=1.0, returncode=1, may_restart=True)
    driver.drain()
    assert driver.one(PeerGone).restarting
    assert len(driver.wired(Reconnect)) == 1
    waiting = call_tool(driver)
    assert len(driver.sent) == 1
    driver.engine.connection_restored(now=2.0)
    driver.drain()
    if version != ALL[-1]:
        assert driver.last["method"] == "initialize"
        assert driver.last["params"]["protocolVersion"] == version
        from .support import initialize_result

        driver.reply(initialize_result(version))
    assert driver.last["method"] == "tools/call"
    assert waiting.request_id == driver.last["id"]
    assert "server/discover" not in driver.methods()


@pytest.mark.case("R-08")
def test_close_is_idempotent_and_final() -> None:
    driver = connected()
    call = call_tool(driver)
    driver.engine.close(now=0.0)
    driver.engine.close(now=0.0)
    driver.drain()
    assert driver.one(SessionEnded).error is None
    assert driver.one(RequestFailed).call is call
    assert len(driver.wired(CloseConnection)) == 1
    with pytest.raises(LocalProtocolError):
        call_tool(driver)
    driver.receive({"jsonrpc": "2.0", "id": 1, "result": {}})
    assert driver.one(MessageIgnored).reason is Harmless.AFTER_CLOSE
    assert driver.engine.next_timeout() is None


@pytest.mark.case("R-06")
def test_nothing_is_left_of_many_calls() -> None:
    driver = connected(limits=Limits(max_remembered_ids=64))
    for number in range(3000):
        call = call_tool(driver, progress=number % 2 == 0)
        match number % 3:
            case 0:
                driver.reply({"resultType": "complete", "content": []})
            case 1:
                driver.engine.cancel(call, now=driver.now)
                driver.drain()
            case _:
                driver.advance(60.0)
        driver.sent.clear()
        driver.said.clear()
        driver.wire.clear()
    stats = driver.engine.stats()
    assert stats.pop("ended_ids") == 64
    assert set(stats.values()) == {0}


@pytest.mark.req("AA12")
def test_too_many_open_calls_are_refused_here() -> None:
    driver = connected(limits=Limits(max_pending_calls=2))
    call_tool(driver)
    call_tool(driver)
    with pytest.raises(LocalProtocolError, match="max_pending_calls"):
        call_tool(driver)


@pytest.mark.req("AA12")
def test_unread_events_stop_the_reading() -> None:
    driver = connected(limits=Limits(max_buffered_events=3))
    for _ in range(3):
        assert driver.engine.wants_data
        driver.engine.receive_message({"jsonrpc": "2.0", "method": "vendor/x"}, now=0.0)
    assert not driver.engine.wants_data
    driver.drain()
    assert driver.engine.wants_data


def test_time_never_goes_back() -> None:
    driver = connected()
    driver.advance(100.0)
    call = driver.engine.call_tool("echo", now=5.0)
    driver.drain()
    assert driver.engine.next_timeout() == 160.0
    driver.engine.handle_timeout(50.0)
    assert not call.done


def test_no_secret_in_a_representation() -> None:
    driver = connected()
    call = driver.engine.call_tool("echo", {"token": "s3cret"}, now=0.0)
    driver.drain()
    driver.reply({"resultType": "complete", "content": [{"type": "text", "text": "s3cret"}]})
    shown = repr([call, *driver.wire, *driver.said])
    assert "s3cret" not in shown
    assert "echo" in shown
