"""The server of Streamable HTTP: what it lets in, and what it answers modern clients."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import (
    App,
    DeviationTolerated,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RequestCancelled,
    RequestReceived,
    Revision,
)
from sansmcp.events import NotificationReceived
from sansmcp.http.guard import ANY, GuardPolicy

from .http_support import (
    BOTH,
    INITIALIZED,
    LIST_HEADERS,
    MODERN_LIST,
    PROGRESS,
    Client,
    Http,
    call,
    initialize,
    note,
    reasons,
)
from .support import CAPABILITIES_KEY, INFO_KEY, MODERN, VERSION_KEY, meta

# who may talk, and how --------------------------------------------------------------------------

FIRST = pytest.mark.parametrize("body", [MODERN_LIST, initialize()], ids=["modern", "legacy"])


@pytest.mark.req("R6")
@pytest.mark.case("H-17")
@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "http://evil.example.com"}, 403),
        ({"origin": "http://localhost.evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"host": "evil.example.com", "origin": "http://evil.example.com"}, 403),
        ({"host": "evil.example.com"}, 421),
        ({"host": None}, 400),
        ({"origin": "http://LOCALHOST:3000"}, 200),
        ({"host": "127.0.0.1:8080"}, 200),
    ],
)
@FIRST
def test_only_this_machine_is_served(headers: dict[str, Any], status: int, body: Any) -> None:
    http = Http()
    reply = http.post(body, **LIST_HEADERS, **headers)
    if status != 200:
        assert (reply.status, reply.type) == (status, "text/plain; charset=utf-8")
        assert not http.of(RequestReceived)
        fault = PeerFault.FOREIGN_ORIGIN if status == 403 else PeerFault.FOREIGN_HOST
        assert reasons(http) == [fault]
    else:
        assert reply.status in (None, 200)
        assert not reasons(http)


@pytest.mark.req("R6")
def test_a_policy_opens_the_server() -> None:
    http = Http(policy=GuardPolicy(hosts=ANY, origins=["https://app.example"]))
    assert http.ask("server/discover", host="x.example", origin="https://app.example").status == 200
    assert http.ask("server/discover", host="x.example", origin="https://x.example").status == 403


def test_http_1_0_needs_no_host() -> None:
    http = Http()
    headers = {**LIST_HEADERS, "content-type": "application/json", "host": None}
    assert http.send("POST", headers, MODERN_LIST, version="1.0").status is None
    assert http.send("POST", headers, MODERN_LIST, version="1.1").status == 400


@pytest.mark.parametrize(
    ("path", "target", "found"),
    [
        ("/mcp", "/mcp", True),
        ("/mcp", "/mcp?x=1", True),
        ("/mcp", "http://localhost:3000/mcp", True),
        ("/", "http://localhost:3000", True),
        ("/mcp", "/mcp/", False),
        ("/mcp", "/MCP", False),
        ("/mcp", "/", False),
        ("/mcp", "http://localhost:3000", False),
        ("/mcp", "/?/mcp", False),
        (None, "/whatever", True),
    ],
)
def test_the_endpoint_is_one_path(path: str | None, target: str, found: bool) -> None:
    http = Http(path=path)
    reply = http.post(MODERN_LIST, target=target, **LIST_HEADERS)
    assert reply.status == (None if found else 404)
    if not found:
        assert reply.type.startswith("text/plain")
        assert reasons(http) == [PeerFault.WRONG_ENDPOINT]


@pytest.mark.case("H-01")
@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", None),
        ("Application/JSON;charset=UTF-8", None),
        ("application/json ; a=b", None),
        ("text/plain", 415),
        ("application/jsonp", 415),
        ("application/json-patch+json", 415),
        ("", 415),
        (None, 415),
    ],
)
@FIRST
def test_a_body_must_say_that_it_is_json(content_type: str | None, status: int | None, body: Any) -> None:
    http = Http()
    reply = http.post(body, **LIST_HEADERS, content_type=content_type)
    if status is None:
        assert reply.status in (None, 200)
    else:
        assert reply.status == status
        assert reasons(http) == [PeerFault.WRONG_MEDIA_TYPE]


@pytest.mark.req("R2")
@pytest.mark.parametrize(
    ("accept", "lenient", "strict"),
    [
        (BOTH, True, True),
        ("text/event-stream, application/json", True, True),
        ("TEXT/Event-Stream;q=0.5,application/*", True, True),
        ("*/*", True, True),
        (None, True, True),
        ("application/json", True, False),
        ("text/event-stream", True, False),
        ("application/json;q=0, */*", True, False),
        ("text/html", False, False),
        ("application/json;q=0, text/event-stream;q=0.0", False, False),
        ("", False, False),
    ],
)
def test_a_client_says_what_it_takes(accept: str | None, lenient: bool, strict: bool) -> None:
    for mode, served in ((False, lenient), (True, strict)):
        http = Http(strict=mode)
        reply = http.post(MODERN_LIST, **LIST_HEADERS, accept=accept)
        assert reply.status == (None if served else 406), mode
        if not served:
            assert reasons(http) == [PeerFault.WRONG_MEDIA_TYPE]
        elif not strict:
            assert http.one(DeviationTolerated).fault is PeerFault.WRONG_MEDIA_TYPE


@pytest.mark.req("R5")
@pytest.mark.case("H-04")
@pytest.mark.parametrize(
    ("method", "legacy", "version", "allow"),
    [
        ("GET", False, None, "POST"),
        ("DELETE", False, None, "POST"),
        ("GET", False, "2025-11-25", "POST"),
        ("GET", True, MODERN, "POST"),
        ("DELETE", True, MODERN, "POST"),
        ("PUT", True, None, "GET, POST, DELETE"),
        ("HEAD", True, None, "GET, POST, DELETE"),
        ("OPTIONS", True, "2025-11-25", "GET, POST, DELETE"),
        ("post", True, None, "GET, POST, DELETE"),
    ],
)
def test_other_methods_of_http_are_not_allowed(
    method: str, legacy: bool, version: str | None, allow: str
) -> None:
    http = Http(legacy=legacy)
    headers = {"accept": "text/event-stream", "mcp-protocol-version": version, "mcp-session-id": "0" * 48}
    reply = http.send(method, headers)
    assert (reply.status, reply.headers["allow"]) == (405, allow)
    assert reasons(http) == [PeerFault.WRONG_ENDPOINT]


UNREADABLE = [b"", b"{", b"\xff{}", b'{"a":NaN}', b"[" * 200 + b"]" * 200, b"\xef\xbb\xbf{}", b"{} {}"]


@pytest.mark.req("R4")
@pytest.mark.parametrize("raw", UNREADABLE)
@pytest.mark.parametrize("version", [MODERN, "2025-11-25", None])
def test_a_body_that_is_no_json_is_a_parse_error(raw: bytes, version: str | None) -> None:
    http = Http()
    reply = http.post(raw, mcp_protocol_version=version)
    assert (reply.status, reply.code) == (400, -32700)
    assert "id" not in reply.json
    assert isinstance(http.one(MessageIgnored).reason, PeerFault)


def test_duplicate_keys_are_refused_in_strict_mode() -> None:
    raw = json.dumps(MODERN_LIST)[:-1].encode() + b',"id":2}'
    assert Http().post(raw, **LIST_HEADERS).status is None
    assert Http(strict=True).post(raw, **LIST_HEADERS).code == -32700


INVALID: list[tuple[Any, int, Any]] = [
    ([], -32600, None),
    ([MODERN_LIST], -32600, None),
    ([call(), INITIALIZED], -32600, None),
    (1, -32600, None),
    ("x", -32600, None),
    (None, -32600, None),
    ({}, -32600, None),
    ({**MODERN_LIST, "jsonrpc": "1.0"}, -32600, 1),
    ({**MODERN_LIST, "id": None}, -32600, None),
    ({**MODERN_LIST, "id": True}, -32600, None),
    ({**MODERN_LIST, "id": 1.5}, -32600, None),
    ({**MODERN_LIST, "method": 5}, -32600, 1),
    ({**MODERN_LIST, "params": [1]}, -32602, 1),
    ({**MODERN_LIST, "params": None}, -32602, 1),
    ({**MODERN_LIST, "method": "notifications/initialized"}, -32600, 1),
]


@pytest.mark.req("R4", "B5", "B14")
@pytest.mark.case("J-03", "J-06", "J-08", "J-09", "J-10")
@pytest.mark.parametrize(("body", "code", "id"), INVALID)
def test_a_body_that_is_no_message_is_refused(body: Any, code: int, id: Any) -> None:
    http = Http()
    for _ in range(3):  # and each time anew: an exchange cannot stay without a response
        reply = http.post(body, **LIST_HEADERS)
        assert (reply.status, reply.code) == (400, code)
        assert reply.json.get("id") == id
        assert ("id" in reply.json) == (id is not None), "a modern error without an id has no such member"
    assert not http.of(RequestReceived)
    assert len(http.of(MessageIgnored)) == 3


@pytest.mark.req("R7")
@pytest.mark.case("H-16")
def test_a_body_that_is_too_large_is_refused() -> None:
    http = Http(limits=Limits(max_body=300))
    assert http.post(MODERN_LIST, **LIST_HEADERS).status is None
    assert http.post(MODERN_LIST | {"x": "y" * 300}, **LIST_HEADERS).status == 413
    assert reasons(http) == [PeerFault.BODY_TOO_LARGE]


@pytest.mark.case("H-18")
def test_of_several_faults_the_first_is_told() -> None:
    """Each step mends what the one before was refused for."""
    http = Http()
    wrong: dict[str, Any] = {
        "origin": "http://evil.example",
        "host": "evil.example",
        "content-type": "text/plain",
        "accept": "text/html",
        "mcp-method": "tools/call",
        "mcp-protocol-version": "1900-01-01",
    }
    body: Any = b"{"
    version = {VERSION_KEY: "1900-01-01"}
    good = {"jsonrpc": "2.0", "id": 1, "method": "no/such", "params": {"_meta": version}}
    whole = {**good, "params": {"_meta": {**version, CAPABILITIES_KEY: {}}}}
    served = {**good, "params": {"_meta": meta()}}
    steps: list[tuple[dict[str, Any], Any, str, int, int | None]] = [
        ({}, body, "/other", 403, None),
        ({"origin": None}, body, "/other", 421, None),
        ({"host": "localhost"}, body, "/other", 404, None),
        ({}, body, "/mcp", 415, None),
        ({"content-type": "application/json"}, body, "/mcp", 406, None),
        ({"accept": BOTH}, body, "/mcp", 400, -32700),
        ({}, good, "/mcp", 400, -32602),
        ({}, whole, "/mcp", 400, -32020),
        ({"mcp-method": "no/such"}, whole, "/mcp", 400, -32022),
        ({"mcp-protocol-version": MODERN}, served, "/mcp", 404, -32601),
    ]
    for change, body, target, status, code in steps:
        wrong.update(change)
        reply = http.send("POST", wrong, body, target=target)
        assert reply.status == status, (status, reply.body)
        assert code is None or reply.code == code


# what modern requests are answered --------------------------------------------------------------


@pytest.mark.req("R4", "B6", "B7")
@pytest.mark.case("H-11", "J-14")
@pytest.mark.parametrize(
    ("method", "params", "headers", "status", "code"),
    [
        ("server/discover", {}, {}, 400, -32602),
        ("server/discover", {"_meta": {CAPABILITIES_KEY: {}}}, {}, 400, -32602),
        ("server/discover", {"_meta": {VERSION_KEY: MODERN}}, {}, 400, -32602),
        ("server/discover", {"_meta": {INFO_KEY: {"name": "x", "version": "1"}}}, {}, 400, -32602),
        ("server/discover", {"_meta": {}}, {}, 400, -32602),
        ("ping", {}, {}, 400, -32602),
        ("no/such", {}, {}, 400, -32602),
        ("server/discover", {"_meta": meta("v999.0.0")}, {"mcp-protocol-version": "v999.0.0"}, 400, -32022),
        ("server/discover", {"_meta": meta("v999.0.0")}, {}, 400, -32020),
        ("tools/list", {"_meta": meta()}, {"mcp-protocol-version": "2025-11-25"}, 400, -32020),
        ("tools/list", {"_meta": meta()}, {"mcp-protocol-version": None}, 400, -32020),
        ("tools/list", {"_meta": meta("2025-11-25")}, {"mcp-protocol-version": "2025-11-25"}, 400, -32022),
        ("initialize", {"_meta": meta()}, {}, 404, -32601),
        ("ping", {"_meta": meta()}, {}, 404, -32601),
        ("logging/setLevel", {"_meta": meta()}, {}, 404, -32601),
        ("resources/subscribe", {"_meta": meta()}, {}, 404, -32601),
        ("resources/unsubscribe", {"_meta": meta()}, {}, 404, -32601),
        ("unknown/method", {"_meta": meta()}, {}, 404, -32601),
        ("completion/complete", {"_meta": meta()}, {}, 404, -32601),
        ("server/discover", {"_meta": meta()}, {}, 200, None),
        ("server/discover", {"_meta": {**meta(), INFO_KEY: {"name": "x", "version": "1"}}}, {}, 200, None),
    ],
)
@pytest.mark.parametrize("legacy", [True, False])
def test_the_ladder_has_a_status_for_each_rung(
    method: str, params: Any, headers: dict[str, Any], status: int, code: int | None, legacy: bool
) -> None:
    http = Http(legacy=legacy)
    fields = {"mcp-protocol-version": MODERN, "mcp-method": method, **headers}
    reply = http.post({"jsonrpc": "2.0", "id": 104, "method": method, "params": params}, **fields)
    assert reply.status == status
    assert reply.json["id"] == 104
    if code is None:
        assert reply.json["result"]["supportedVersions"][0] == MODERN
    else:
        assert reply.code == code
        assert http.of(MessageIgnored)
    if code == -32022:
        supported = reply.json["error"]["data"]["supported"]
        assert (MODERN in supported, "2025-11-25" in supported) == (True, legacy)
    assert http.server.stats()["exchanges"] == 0


@pytest.mark.case("V-09")
@pytest.mark.parametrize(("legacy", "status", "code"), [(True, 404, -32601), (False, 400, -32022)])
def test_discover_under_a_legacy_version(legacy: bool, status: int, code: int) -> None:
    """Where that version is served, it is a method that the version does not have."""
    params = {"_meta": meta("2025-11-25")}
    headers = {"mcp-protocol-version": "2025-11-25", "mcp-method": "server/discover"}
    reply = Http(legacy=legacy).post(call("server/discover", params), **headers)
    assert (reply.status, reply.code) == (status, code)


@pytest.mark.req("R4")
@pytest.mark.parametrize(
    ("code", "status"),
    [(-32602, 400), (-32021, 400), (-32601, 404), (-32603, 200), (-32700, 400), (7, 200)],
)
@pytest.mark.parametrize("committed", [False, True])
def test_an_error_of_a_handler_has_a_status_unless_it_is_too_late(
    code: int, status: int, committed: bool
) -> None:
    http = Http()
    reply = http.ask("tools/list", PROGRESS)
    if committed:
        assert http.progress(1)
    http.server.respond_error(http.request, McpError(code, "no", {"why": 1}), now=0.0)
    http.drain()
    assert reply.status == (200 if committed else status)
    assert reply.messages[-1]["error"] == {"code": code, "message": "no", "data": {"why": 1}}
    assert reply.ended


@pytest.mark.req("C6", "C9")
@pytest.mark.case("P-02", "P-04")
@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ([], None),
        ([("mcp-method", "tools/call")], -32020),
        ([("mcp-name", "echo")], -32020),
        ([("mcp-name", "wrong")], -32020),
    ],
)
def test_two_headers_of_one_kind_are_one_too_many(headers: list[tuple[str, str]], code: int | None) -> None:
    http = Http()
    body = call("tools/call", {"name": "echo", "_meta": meta()})
    fields = [
        ("host", "localhost"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", MODERN),
        ("mcp-method", " tools/call\t"),
        ("mcp-name", "echo"),
        *headers,
    ]
    reply = http.send("POST", fields, body)
    assert reply.status == (None if code is None else 400)
    assert code is None or reply.code == code


ANNOTATED: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}
SPOILT: dict[str, Any] = {
    "type": "object",
    "properties": {"region": {"type": "number", "x-mcp-header": "Region"}},
}


@pytest.mark.req("C6", "C7")
@pytest.mark.case("P-02", "P-07")
@pytest.mark.parametrize(
    ("arguments", "header", "served"),
    [
        ({"region": "eu"}, "eu", True),
        ({"region": "eu"}, None, False),
        ({"region": "eu"}, "us", False),
        ({"region": "Hello"}, "=?base64?SGVsbG8=?=", True),
        ({"region": "Hello"}, "=?base64?SGVsbG8?=", False),
        ({"region": None}, None, True),
        ({}, None, True),
        ({}, "eu", False),
    ],
)
def test_arguments_are_compared_with_their_headers(
    arguments: dict[str, Any], header: str | None, served: bool
) -> None:
    app = App("a")
    app.tool("go", input_schema=ANNOTATED)(lambda region=None: "gone")
    app.tool("odd", input_schema=SPOILT)(lambda region=None: "gone")
    http = Http(app, input_schema=app.input_schema)
    for _ in range(2):
        reply = http.ask("tools/call", {"name": "go", "arguments": arguments}, mcp_param_region=header)
        assert reply.status == (None if served else 400)
        assert served or reply.code == -32020
    assert http.server.stats()["read_schemas"] == 1
    assert http.ask("tools/call", {"name": "odd", "arguments": arguments}).status is None
    assert http.ask("tools/call", {"name": "none"}).status is None, "its handler says that there is none"
    unaware = Http(app)
    assert unaware.ask("tools/call", {"name": "go", "arguments": arguments}).status is None


def test_annotations_are_read_anew_when_the_schema_is_another() -> None:
    schemas: list[Any] = [ANNOTATED, None, {**ANNOTATED}, {"type": "object"}]
    http = Http(input_schema=lambda name: schemas[0])
    params = {"name": "go", "arguments": {"region": "eu"}}
    statuses = []
    while schemas:
        statuses.append(http.ask("tools/call", params).status)
        schemas.pop(0)
    assert statuses == [400, None, 400, None]


def test_schemas_that_were_read_are_bounded() -> None:
    http = Http(input_schema=lambda name: {"name": name}, max_exchanges=2000)
    for n in range(1100):
        http.ask("tools/call", {"name": f"t{n}"})
    assert http.server.stats()["read_schemas"] <= 1024


# notifications and responses --------------------------------------------------------------------


@pytest.mark.req("R3")
@pytest.mark.case("H-02")
@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (note("notifications/cancelled", {"requestId": 1, "_meta": meta()}), {}, 202),
        (note("notifications/vendor", {"_meta": meta()}), {}, 202),
        (note("notifications/vendor"), {"mcp-method": None}, 202),
        (note("notifications/vendor", {"_meta": meta()}), {"mcp-method": "notifications/other"}, 400),
        (note("notifications/vendor", {"_meta": meta()}), {"mcp-protocol-version": "2025-11-25"}, 400),
        (note("notifications/vendor", [1]), {}, 400),
        (note("tools/call", {"name": "rm", "_meta": meta()}), {}, 400),
    ],
)
def test_a_notification_is_accepted_without_a_body(body: Any, headers: dict[str, Any], status: int) -> None:
    http = Http()
    reply = http.post(body, **{"mcp-protocol-version": MODERN, "mcp-method": body["method"], **headers})
    assert reply.status == status
    assert reply.ended
    if status == 202:
        assert (reply.body, reply.headers, reply.length) == (b"", {}, 0)
    else:
        assert reasons(http)
        assert not http.of(NotificationReceived)
    assert not http.of(RequestReceived)


def test_an_own_notification_is_handed_on() -> None:
    http = Http()
    http.post(note("notifications/vendor", {"a": 1}), **LIST_HEADERS, mcp_method="notifications/vendor")
    assert http.one(NotificationReceived).params == {"a": 1}


@pytest.mark.parametrize(
    "body",
    [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "x"}},
        {"jsonrpc": "2.0", "id": 1, "result": {}, "error": {}},
    ],
)
def test_a_modern_client_has_nothing_to_answer(body: Any) -> None:
    http = Http()
    reply = http.post(body, mcp_protocol_version=MODERN)
    assert reply.status == 400
    assert reply.type.startswith("text/plain"), "an answer to an answer could be answered"
    assert len(reasons(http)) == 1


@pytest.mark.req("W4")
@pytest.mark.case("C-01")
def test_nobody_can_cancel_the_request_of_somebody_else() -> None:
    http = Http()
    reply = http.ask("tools/list", id=1)
    cancel = note("notifications/cancelled", {"requestId": 1, "_meta": meta()})
    headers = {"mcp-protocol-version": MODERN, "mcp-method": "notifications/cancelled"}
    assert http.post(cancel, **headers).status == 202
    assert not http.of(RequestCancelled)
    assert http.answer()
    assert reply.status == 200


# a server of the modern era alone ---------------------------------------------------------------


@pytest.mark.req("R5", "P1")
@pytest.mark.case("V-08", "V-09")
def test_a_modern_server_tells_an_older_client_what_it_serves() -> None:
    http = Http(legacy=False)
    reply = http.post(initialize())
    assert (reply.status, reply.code) == (400, -32022)
    assert reply.json["error"]["data"]["supported"] == [MODERN]
    assert "mcp-session-id" not in reply.headers
    assert http.post(INITIALIZED, mcp_session_id="x").status == 202, "nobody minds"
    assert http.post(call(), mcp_session_id="x").code == -32602
    assert http.server.sessions == ()
    assert "sessions" not in http.server.stats()
    with pytest.raises(LocalProtocolError):
        http.server.cancel(object(), now=0.0)  # type: ignore[arg-type]


def test_revisions_can_be_narrowed() -> None:
    http = Http(revisions=[Revision.V2026_07_28])
    assert http.server.sessions == ()
    assert http.ask("server/discover").json["result"]["supportedVersions"] == [MODERN]


# one way to each fault: `test_errors` wants one for every kind ----------------------------------


def _after(*sent: Callable[[Http], object]) -> list[Any]:
    http = Http()
    for send in sent:
        send(http)
    return http.said


WAYS: dict[PeerFault, Callable[[], list[Any]]] = {
    PeerFault.FOREIGN_HOST: lambda: _after(lambda http: http.post(b"", host="evil.example")),
    PeerFault.FOREIGN_ORIGIN: lambda: _after(lambda http: http.post(b"", origin="null")),
    PeerFault.WRONG_ENDPOINT: lambda: _after(lambda http: http.post(b"", target="/")),
    PeerFault.WRONG_MEDIA_TYPE: lambda: _after(lambda http: http.post(b"", content_type=None)),
    PeerFault.MISSING_HEADER: lambda: _after(lambda http: http.post(call())),
    PeerFault.UNKNOWN_SESSION: lambda: _after(lambda http: http.post(call(), mcp_session_id="x")),
    PeerFault.UNKNOWN_EVENT_ID: lambda: _after(lambda http: Client(http).get(last_event_id="9-9")),
}


@pytest.mark.parametrize("fault", WAYS, ids=lambda f: f.name)
def test_each_fault_of_an_exchange_is_told_by_its_own_name(fault: PeerFault) -> None:
    assert [e.reason for e in WAYS[fault]() if isinstance(e, MessageIgnored)] == [fault]
