"""The server engine at message level: ladder, eras, answers, cancel, progress, logs."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sansmcp import (
    ErrorCode,
    Harmless,
    Implementation,
    ListKind,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestCancelled,
    RequestReceived,
    Revision,
    SendNotification,
    ServerCapabilities,
    ServerEngine,
    SessionStarted,
)
from sansmcp.types import CallToolResult, ListToolsResult, TextContent, Tool, structure

from .support import (
    ALL,
    CAPABILITIES_KEY,
    INFO_KEY,
    LEGACY,
    ME,
    MODERN,
    VERSION_KEY,
    Driver,
    ask,
    error_code,
    meta,
    opened,
    request,
    server,
    serving,
)

ANY_ERA = pytest.mark.parametrize("version", ALL)


# the ladder -------------------------------------------------------------------------------------


@pytest.mark.req("B6", "I3")
@pytest.mark.parametrize(
    ("stamp", "expected", "key"),
    [
        ({CAPABILITIES_KEY: {}}, -32602, VERSION_KEY),
        ({VERSION_KEY: MODERN}, -32602, CAPABILITIES_KEY),
        ({INFO_KEY: {"name": "x", "version": "1"}}, -32602, VERSION_KEY),
        ({VERSION_KEY: 5, CAPABILITIES_KEY: {}}, -32602, VERSION_KEY),
        ({VERSION_KEY: MODERN, CAPABILITIES_KEY: []}, -32602, CAPABILITIES_KEY),
        ({VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, INFO_KEY: "x"}, -32602, INFO_KEY),
        ({VERSION_KEY: "1900-01-01"}, -32602, CAPABILITIES_KEY),
        ({VERSION_KEY: "1900-01-01", CAPABILITIES_KEY: {}}, -32022, None),
        ({**meta(), "io.modelcontextprotocol/logLevel": "loud"}, -32602, "logLevel"),
        ({}, -32602, VERSION_KEY),
        (None, -32602, "_meta"),
    ],
)
def test_an_incomplete_meta_is_refused_by_name(stamp: Any, expected: int, key: str | None) -> None:
    driver = server()
    params = {} if stamp is None else {"_meta": stamp}
    driver.receive({"jsonrpc": "2.0", "id": 7, "method": "tools/list", "params": params})
    assert error_code(driver) == expected
    assert driver.last["id"] == 7
    if key is not None:
        assert key in driver.last["error"]["message"]
    assert not driver.of(RequestReceived)
    assert driver.of(MessageIgnored)


@pytest.mark.req("B7")
@pytest.mark.case("V-09")
@pytest.mark.parametrize("version", ["1900-01-01", "2025-11-25", "2099-01-01"])
def test_an_unserved_version_is_told_what_is_served(version: str) -> None:
    driver = server()
    driver.receive(request("tools/list", {"_meta": meta(version)}))
    assert error_code(driver) == -32022
    assert driver.last["error"]["data"] == {"supported": ALL[::-1], "requested": version}


@pytest.mark.case("V-09")
def test_discover_under_a_legacy_version_is_unknown() -> None:
    driver = server()
    driver.receive(request("server/discover", {"_meta": meta("2025-11-25")}))
    assert error_code(driver) == -32601


@pytest.mark.case("J-14")
@pytest.mark.parametrize("version", [*ALL, None])
def test_an_unknown_method_is_not_found_in_any_era(version: str | None) -> None:
    driver = server() if version is None else serving(version)
    driver.receive(request("no/such", id=3, modern=version == MODERN))
    assert error_code(driver) == -32601
    assert driver.last["id"] == 3


@pytest.mark.req("W2")
@pytest.mark.case("G-07")
@ANY_ERA
def test_only_what_is_declared_is_served(version: str) -> None:
    driver = serving(version, capabilities=("tools",))
    ask(driver, version, "prompts/list")
    assert error_code(driver) == -32601
    assert ask(driver, version, "tools/list").method == "tools/list"


@pytest.mark.parametrize(
    ("version", "method"),
    [
        (MODERN, "ping"),
        (MODERN, "logging/setLevel"),
        (MODERN, "resources/subscribe"),
        (MODERN, "initialize"),
        (MODERN, "subscriptions/listen"),
        ("2025-11-25", "server/discover"),
        ("2025-11-25", "sampling/createMessage"),
        ("2025-06-18", "logging/setLevel"),
    ],
)
def test_a_method_outside_its_revision_or_capability_is_not_found(version: str, method: str) -> None:
    driver = serving(version)
    ask(driver, version, method)
    assert error_code(driver) == -32601


# both eras on one connection --------------------------------------------------------------------


@pytest.mark.req("A17", "W3", "W8")
@pytest.mark.case("V-11")
def test_modern_requests_are_served_before_during_and_after_a_legacy_session() -> None:
    driver = server()
    ask(driver, MODERN, "tools/list", id=1)
    driver.receive(
        {
            "jsonrpc": "2.0",
            "id": 2,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        }
    )
    assert driver.last["result"]["protocolVersion"] == "2025-06-18"
    ask(driver, "2025-06-18", "tools/list", id=3)
    ask(driver, MODERN, "tools/list", id=4)
    revisions = [e.request.revision.value for e in driver.of(RequestReceived)]
    assert revisions == [MODERN, "2025-06-18", MODERN]


@pytest.mark.req("W8", "B8", "N7")
def test_discover_tells_versions_capabilities_and_who_answers() -> None:
    driver = server(instructions="be nice")
    driver.receive(request("server/discover", id="d"))
    body = driver.last["result"]
    assert body["supportedVersions"] == ALL[::-1]
    assert body["capabilities"] == {"tools": {}, "resources": {}, "prompts": {}}
    assert body["instructions"] == "be nice"
    assert (body["ttlMs"], body["cacheScope"], body["resultType"]) == (0, "private", "complete")
    assert body["_meta"]["io.modelcontextprotocol/serverInfo"] == {"name": "me", "version": "1.0"}


@pytest.mark.req("B8")
def test_the_server_can_keep_its_name_to_itself() -> None:
    driver = server(show_server_info=False)
    driver.receive(request("server/discover"))
    assert "_meta" not in driver.last["result"]


@pytest.mark.case("V-08", "L-07")
@pytest.mark.parametrize(
    ("asked", "answered"),
    [*((v, v) for v in LEGACY), (MODERN, "2025-11-25"), ("2099-01-01", "2025-11-25"), ("", "2025-11-25")],
)
def test_initialize_is_answered_with_a_legacy_version(asked: str, answered: str) -> None:
    driver = server()
    driver.receive(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": asked,
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        }
    )
    assert driver.last["result"]["protocolVersion"] == answered
    started = driver.one(SessionStarted)
    assert started.revision.value == answered
    assert started.peer == Implementation(name="c", version="1")


@pytest.mark.case("V-08")
def test_a_modern_only_server_refuses_initialize_and_names_its_versions() -> None:
    driver = server(revisions=[Revision.V2026_07_28])
    driver.receive(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    )
    assert error_code(driver) == -32022
    assert driver.last["error"]["data"]["supported"] == [MODERN]


def test_a_legacy_only_server_knows_no_discover() -> None:
    driver = server(revisions=[Revision.V2025_11_25])
    driver.receive(request("server/discover"))
    assert error_code(driver) in (-32022, -32601)
    assert not driver.of(SessionStarted)


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 5}])
def test_initialize_without_a_version_is_refused(params: dict[str, Any]) -> None:
    driver = server()
    driver.receive({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert error_code(driver) == -32602


def test_initialize_twice_is_refused() -> None:
    driver = opened()
    driver.receive(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2024-11-05"}}
    )
    assert error_code(driver) == -32600
    assert driver.engine.session_revision is Revision.V2025_11_25


@pytest.mark.case("L-03")
def test_ping_is_answered_at_any_time_and_others_once_initialize_is_answered() -> None:
    driver = server(("tools", "logging"))
    driver.receive({"jsonrpc": "2.0", "id": 0, "method": "ping"})
    assert driver.last == {"jsonrpc": "2.0", "id": 0, "result": {}}
    driver.receive(
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "c", "version": "1"},
            },
        },
        {"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "error"}},
    )
    assert driver.last == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.req("W4", "W11")
@pytest.mark.case("M-06", "M-09")
def test_modern_requests_are_served_alike_in_any_order() -> None:
    requests = [
        request(
            "tools/list", {"_meta": {**meta(sampling={}), "io.modelcontextprotocol/logLevel": "debug"}}, id=1
        ),
        request("tools/list", id=2),
        request("server/discover", id=3),
        request("no/such", id=4),
    ]
    seen = set()
    for order in itertools.permutations(requests):
        driver = server(("tools", "logging"))
        driver.receive(*order)
        for event in driver.of(RequestReceived):
            driver.engine.log("info", "x", request=event.request, now=0.0)
            driver.engine.respond(event.request, {"tools": []}, now=0.0)
        driver.drain()
        seen.add(repr(sorted(map(repr, driver.sent))))
        assert [
            e.request.peer_capabilities
            for e in sorted(driver.of(RequestReceived), key=lambda e: e.request.id)
        ] == [{"sampling": {}}, {}]
    assert len(seen) == 1


# answers ----------------------------------------------------------------------------------------


@pytest.mark.req("D3", "A18", "B10")
@pytest.mark.case("M-04")
@ANY_ERA
def test_a_result_is_written_as_its_revision_has_it(version: str) -> None:
    tool = Tool(name="t", title="T", input_schema={"type": "object"}, output_schema={"type": "object"})
    typed = ListToolsResult(tools=[tool])
    raw = {
        "tools": [
            {"name": "t", "title": "T", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}}
        ],
        "ttlMs": 5,
    }
    for result in (typed, raw):
        driver = serving(version)
        driver.engine.respond(ask(driver, version, "tools/list"), result, now=0.0)
        driver.drain()
        body = driver.last["result"]
        assert ("resultType" in body) == ("ttlMs" in body) == ("cacheScope" in body) == (version == MODERN)
        assert ("title" in body["tools"][0]) == (version >= "2025-06-18")
        assert ("outputSchema" in body["tools"][0]) == (version >= "2025-06-18")


@pytest.mark.case("G-04")
@ANY_ERA
def test_a_tool_result_always_has_content(version: str) -> None:
    driver = serving(version)
    driver.engine.respond(ask(driver, version, "tools/call", {"name": "t"}), {}, now=0.0)
    driver.drain()
    assert driver.last["result"]["content"] == []


@ANY_ERA
def test_a_typed_tool_result(version: str) -> None:
    driver = serving(version)
    typed = CallToolResult(content=[TextContent(text="hi")])
    driver.engine.respond(ask(driver, version, "tools/call", {"name": "t"}), typed, now=0.0)
    driver.drain()
    assert driver.last["result"]["content"] == [{"type": "text", "text": "hi"}]


@pytest.mark.case("J-01", "J-02", "J-06")
@pytest.mark.parametrize("request_id", [0, "", "1", -7, 4294967296, 9007199254740993, 10**40])
def test_an_id_comes_back_as_it_was(request_id: Any) -> None:
    driver = server()
    driver.engine.respond(ask(driver, MODERN, "tools/list", id=request_id), {"tools": []}, now=0.0)
    driver.drain()
    assert driver.last["id"] == request_id
    assert type(driver.last["id"]) is type(request_id)


@ANY_ERA
def test_a_request_is_answered_once(version: str) -> None:
    driver = serving(version)
    received = ask(driver, version, "tools/list")
    assert driver.engine.respond(received, {"tools": []}, now=0.0)
    with pytest.raises(LocalProtocolError):
        driver.engine.respond(received, {}, now=0.0)
    with pytest.raises(LocalProtocolError):
        driver.engine.respond_error(received, McpError(1, "x"), now=0.0)
    driver.drain()
    assert len(driver.sent) == 1


@pytest.mark.case("J-12")
@pytest.mark.parametrize("value", [float("nan"), object(), b"x"])
def test_a_result_that_is_no_json_leaves_the_request_open(value: Any) -> None:
    driver = server()
    received = ask(driver, MODERN, "tools/call", {"name": "t"})
    with pytest.raises(LocalProtocolError):
        driver.engine.respond(received, {"content": [], "structuredContent": {"x": value}}, now=0.0)
    assert received.open
    driver.engine.respond_error(received, McpError(ErrorCode.INTERNAL_ERROR, "x"), now=0.0)
    driver.drain()
    assert error_code(driver) == -32603


@pytest.mark.req("U2")
@pytest.mark.parametrize(
    ("version", "bad"),
    [
        (MODERN, -32000),
        (MODERN, -32019),
        (MODERN, -32002),
        (MODERN, -32042),
        (MODERN, -32050),
        ("2025-11-25", -32021),
        ("2025-11-25", -32001),
    ],
)
def test_reserved_codes_are_not_sent(version: str, bad: int) -> None:
    driver = serving(version)
    received = ask(driver, version, "tools/list")
    with pytest.raises(LocalProtocolError, match="reserved"):
        driver.engine.respond_error(received, McpError(bad, "x"), now=0.0)
    assert received.open


@pytest.mark.req("U2", "U3")
@pytest.mark.parametrize(
    ("version", "good"),
    [(MODERN, -32021), (MODERN, -31999), (MODERN, 5), ("2025-11-25", -32002), ("2025-11-25", -32042)],
)
def test_defined_codes_are_sent(version: str, good: int) -> None:
    driver = serving(version)
    received = ask(driver, version, "tools/list")
    data: Any = {"requiredCapabilities": {"elicitation": {}}}
    driver.engine.respond_error(received, McpError(good, "x", data), now=0.0)
    driver.drain()
    assert driver.last["error"] == {"code": good, "message": "x", "data": data}


@pytest.mark.case("J-11")
@ANY_ERA
def test_an_id_in_use_is_refused_and_the_first_request_stays(version: str) -> None:
    driver = serving(version)
    first = ask(driver, version, "tools/list", id=1)
    driver.receive(request("tools/call", {"name": "t"}, id=1, modern=version == MODERN))
    assert error_code(driver) == -32600
    assert len(driver.of(RequestReceived)) == 1
    assert driver.engine.respond(first, {"tools": []}, now=0.0)
    driver.drain()
    assert driver.last["id"] == 1
    assert "result" in driver.last


@pytest.mark.case("J-11")
def test_ids_of_another_type_are_other_ids() -> None:
    driver = server()
    ask(driver, MODERN, "tools/list", id=1)
    ask(driver, MODERN, "tools/list", id="1")
    assert len(driver.of(RequestReceived)) == 2


# cancel, progress, logs -------------------------------------------------------------------------


@pytest.mark.req("K5")
@pytest.mark.case("C-01", "C-10", "J-02")
@pytest.mark.parametrize("request_id", [0, "", 3, "x"])
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_a_cancelled_request_is_not_answered(version: str, request_id: Any) -> None:
    driver = serving(version)
    received = ask(driver, version, "tools/call", {"name": "slow"}, id=request_id)
    driver.receive(
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": request_id, "reason": "timeout", "x": 1},
        }
    )
    event = driver.one(RequestCancelled)
    assert event.request is received
    assert event.reason == "timeout"
    assert not driver.engine.respond(received, {}, now=0.0)
    assert not driver.engine.respond_error(received, McpError(1, "x"), now=0.0)
    assert not driver.engine.report_progress(received, 1, now=0.0)
    driver.drain()
    assert not driver.sent
    assert driver.engine.stats()["open_requests"] == 0


@pytest.mark.case("C-10")
@pytest.mark.parametrize(
    "params", [None, {}, {"requestId": None}, {"requestId": {"a": 1}}, {"requestId": True}, {"requestId": 99}]
)
def test_a_cancel_of_nothing_is_ignored(params: Any) -> None:
    driver = opened()
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
    if params is not None:
        message["params"] = params
    driver.receive(message)
    reason = driver.one(MessageIgnored).reason
    assert reason in (PeerFault.MALFORMED_CANCEL, Harmless.LATE_CANCEL)
    assert not driver.sent


@pytest.mark.req("J1")
@pytest.mark.case("C-05", "C-06", "C-07")
@ANY_ERA
def test_only_progress_that_is_allowed_leaves(version: str) -> None:
    driver = serving(version)
    without = ask(driver, version, "tools/call", {"name": "t"}, id=1)
    assert not driver.engine.report_progress(without, 10, now=0.0)
    received = ask(driver, version, "tools/call", {"name": "t", "_meta": {"progressToken": 0}}, id=2)
    sent = [driver.engine.report_progress(received, v, 1.0, "m", now=0.0) for v in (0.5, 0.5, 0.4, 0.75)]
    assert sent == [True, False, False, True]
    odd: list[tuple[Any, ...]] = [
        ("9",),
        (True,),
        (None,),
        (9, "x"),
        (9, 10, 11),
        (float("nan"),),
        (9, float("inf")),
    ]
    for told in odd:
        with pytest.raises(LocalProtocolError):
            driver.engine.report_progress(received, *told, now=0.0)
    driver.engine.respond(received, {}, now=0.0)
    assert not driver.engine.report_progress(received, 1.0, now=0.0)
    notes = [e.message for e in driver.wired(SendNotification)]
    driver.drain()
    notes = [e.message for e in driver.wired(SendNotification)]
    assert [n["params"]["progress"] for n in notes] == [0.5, 0.75]
    assert notes[0]["params"]["progressToken"] == 0
    assert ("message" in notes[0]["params"]) == (version >= "2025-03-26")
    assert [e.related for e in driver.wired(SendNotification)] == [received] * 2


@pytest.mark.req("I3")
@pytest.mark.case("M-06")
def test_a_modern_client_gets_the_logs_of_a_request_that_asked_for_them() -> None:
    driver = server(("tools", "logging"))
    asked = ask(
        driver,
        MODERN,
        "tools/call",
        {"name": "t", "_meta": {"io.modelcontextprotocol/logLevel": "warning"}},
        id=1,
    )
    silent = ask(driver, MODERN, "tools/call", {"name": "t"}, id=2)
    log = driver.engine.log
    assert not log("info", "x", request=asked, now=0.0)
    assert log("error", {"a": 1}, request=asked, logger="db", now=0.0)
    assert not log("emergency", "x", request=silent, now=0.0)
    assert not log("emergency", "x", now=0.0)
    driver.engine.respond(asked, {}, now=0.0)
    assert not log("emergency", "x", request=asked, now=0.0)
    driver.drain()
    assert [m["params"] for m in driver.sent if "method" in m] == [
        {"level": "error", "data": {"a": 1}, "logger": "db"}
    ]


@pytest.mark.req("I2")
@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_session_has_one_log_level(version: str) -> None:
    driver = opened(version, capabilities=("tools", "logging"))
    assert not driver.engine.log("debug", "x", now=0.0)
    assert driver.engine.log("info", "x", now=0.0)
    driver.receive({"jsonrpc": "2.0", "id": 1, "method": "logging/setLevel", "params": {"level": "loud"}})
    assert error_code(driver) == -32602
    driver.receive({"jsonrpc": "2.0", "id": 2, "method": "logging/setLevel", "params": {"level": "debug"}})
    assert driver.last["result"] == {}
    assert driver.engine.log("debug", "x", now=0.0)


def test_logging_must_be_declared_and_levels_must_exist() -> None:
    driver = opened()
    with pytest.raises(LocalProtocolError, match="logging"):
        driver.engine.log("info", "x", now=0.0)
    with pytest.raises(LocalProtocolError, match="level"):
        driver.engine.log("loud", "x", now=0.0)


@pytest.mark.req("W14")
@pytest.mark.case("M-07")
def test_a_change_is_told_only_where_it_may_be() -> None:

    declared = structure(
        {"tools": {"listChanged": True}, "prompts": {}}, ServerCapabilities, Revision.V2026_07_28
    )

    driver = Driver(ServerEngine(Implementation(name="s", version="1"), now=0.0, capabilities=declared))
    assert not driver.engine.notify_changed(ListKind.TOOLS, now=0.0), "nobody asked"
    driver.receive(
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}}
    )
    assert driver.engine.notify_changed(ListKind.TOOLS, now=0.0)
    assert not driver.engine.notify_changed(ListKind.PROMPTS, now=0.0), "not declared"
    driver.drain()
    assert driver.last["method"] == "notifications/tools/list_changed"


INITIALIZE: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    },
}


@pytest.mark.req("X9")
def test_the_tasks_of_2025_11_25_are_passed_through() -> None:
    declared = structure({"tasks": {"list": {}}}, ServerCapabilities, Revision.V2025_11_25)
    driver = Driver(ServerEngine(ME, now=0.0, capabilities=declared))
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"},
    }
    driver.receive({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params})
    assert driver.last["result"]["capabilities"] == {"tasks": {"list": {}}}
    received = ask(driver, "2025-11-25", "tasks/list", id=2)
    assert driver.engine.respond(received, {"tasks": [], "vendor": 1}, now=0.0)
    driver.drain()
    assert driver.last["result"] == {"tasks": [], "vendor": 1}
    ask(driver, MODERN, "tasks/list", id=3)
    assert error_code(driver) == -32601


@pytest.mark.parametrize("params", [{"capabilities": []}, {"clientInfo": "x"}, {"clientInfo": {}}])
def test_strict_mode_refuses_an_odd_initialize(params: dict[str, Any]) -> None:
    message = {**INITIALIZE, "params": {**INITIALIZE["params"], **params}}
    strict, lenient = server(strict=True), server()
    strict.receive(message)
    lenient.receive(message)
    assert error_code(strict) == -32602
    assert strict.engine.session_revision is None
    assert "result" in lenient.last
