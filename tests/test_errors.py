"""The trees of errors, the table of codes, and one way to each fault of a peer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sansmcp
from sansmcp import (
    App,
    CallFailure,
    ConnectFailure,
    DeviationTolerated,
    Era,
    ErrorCode,
    InvalidResponse,
    Limits,
    LineServer,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    RemoteProtocolError,
    RequestFailed,
    ResultReady,
    SansmcpError,
)
from sansmcp.errors import known_code, may_emit

from .support import (
    DISCOVER,
    TEXT,
    Driver,
    call_tool,
    client,
    connected,
    initialize_result,
    meta,
    opened,
    request,
    server,
)
from .test_stream import Pump
from .test_wire_sse import WAYS as SSE_WAYS

# trees ------------------------------------------------------------------------------------------


@pytest.mark.req("U4")
def test_local_failures_and_answers_of_the_peer_are_different_trees() -> None:
    errors = [getattr(sansmcp, name) for name in sansmcp.__all__]
    errors = [e for e in errors if isinstance(e, type) and issubclass(e, Exception)]
    for error in errors:
        assert issubclass(error, SansmcpError)
    trees = (LocalProtocolError, RemoteProtocolError, McpError, CallFailure)
    for error in errors:
        assert error is SansmcpError or sum(issubclass(error, tree) for tree in trees) <= 1, error
        if issubclass(error, CallFailure):
            assert not hasattr(error, "code"), "only what came over the wire has a code"
    assert issubclass(ConnectFailure, CallFailure)


@pytest.mark.req("U1")
def test_codes_both_ways() -> None:
    for code in ErrorCode:
        assert known_code(int(code)) is code
    for unknown in (0, 1, -32000, -32050, -1):
        assert known_code(unknown) is None
    assert str(McpError(-32602, "bad")) == "bad (-32602 INVALID_PARAMS)"
    assert str(McpError(7, "odd")) == "odd (7)"
    assert "s3cret" not in repr(McpError(7, "odd", {"token": "s3cret"}))


@pytest.mark.req("U2")
def test_what_may_be_sent_to_whom() -> None:
    for number in range(-32100, -31990):
        modern, legacy = may_emit(number, Era.MODERN), may_emit(number, Era.LEGACY)
        if -32019 <= number <= -32000:
            assert not modern
            assert legacy == (number == -32002)
        elif -32099 <= number <= -32020:
            assert modern == (number in (-32020, -32021, -32022))
            assert legacy == (number == -32042)
        else:
            assert modern
            assert legacy


# faults -----------------------------------------------------------------------------------------


def stream(data: bytes, limits: Limits | None = None) -> list[Any]:
    """What a server on a stream tells of these bytes."""
    app = App("s")
    transport = LineServer(app.engine(now=0.0, limits=limits or Limits()), now=0.0)
    transport.accepted(1, 0.0)
    pump = Pump(transport).feed(data)
    transport.receive_eof(1, 0.0)
    return pump.drain().events


def told(driver: Driver, *messages: Any) -> list[Any]:
    return driver.receive(*messages).said


def answered(answer: dict[str, Any], **options: Any) -> list[Any]:
    driver = connected(**options)
    call = call_tool(driver)
    return told(driver, {"jsonrpc": "2.0", "id": call.request_id, **answer})


def probed(result: Any) -> list[Any]:
    driver = client()
    driver.engine.connect(now=0.0)
    driver.drain()
    return driver.reply(result).said


def initialized(result: Any) -> list[Any]:
    driver = client()
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply(error=-32601)
    return driver.reply(result).said


def read(result: Any) -> list[Any]:
    """A result whose shape is only looked at when it is read."""
    driver = connected()
    call_tool(driver)
    driver.reply({"resultType": "complete", **result})
    try:
        driver.one(ResultReady).result  # noqa: B018
    except RemoteProtocolError as error:
        return [error]
    return []


def walked() -> list[Any]:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    for _ in range(2):
        driver.reply({"resultType": "complete", "tools": [], "nextCursor": "x"})
    return driver.said


def broken() -> list[Any]:
    app = App("s")
    transport = LineServer(app.engine(now=0.0), now=0.0)
    transport.accepted(1, 0.0)
    pump = Pump(transport)
    transport.failed(1, "EPIPE", 0.0)
    return pump.drain().events


def progressed(token: Any, *values: Any) -> list[Any]:
    driver = connected()
    call_tool(driver, progress=True)
    token = driver.last["id"] if token is None else token
    for value in values:
        params = {"progressToken": token, "progress": value}
        driver.receive({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    return driver.said


def answered_too_large() -> list[Any]:
    driver = connected()
    call = call_tool(driver)
    driver.engine.receive_oversize(call.request_id, like_response=True, now=0.0)
    driver.drain()
    return driver.said


def twice() -> list[Any]:
    return told(server(), request("tools/list"), request("tools/list"))


def note(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": params}


def initialize() -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "x"}}


BAD_ID = {"jsonrpc": "2.0", "id": 1.5, "method": "ping"}
ODD_PROBE = {"supportedVersions": ["2026-07-28"], "capabilities": 5}
STRAY = {"jsonrpc": "2.0", "id": 99, "result": {}}

WAYS: dict[PeerFault, Callable[[], list[Any]]] = {
    PeerFault.INVALID_UTF8: lambda: stream(b'{"\xff"}\n'),
    PeerFault.INVALID_JSON: lambda: stream(b"hello\n"),
    PeerFault.JSON_TOO_DEEP: lambda: stream(b"[" * 500 + b"]" * 500 + b"\n"),
    PeerFault.DUPLICATE_KEY: lambda: told(server(strict=True), b'{"a":1,"a":2}'),
    PeerFault.MESSAGE_TOO_LARGE: answered_too_large,
    PeerFault.TRUNCATED_MESSAGE: lambda: stream(b'{"jsonrpc"'),
    PeerFault.HEADER_FRAMING: lambda: stream(b"Content-Length: 5\r\n"),
    PeerFault.BYTE_ORDER_MARK: lambda: stream(b"\xef\xbb\xbf\n"),
    PeerFault.NOT_A_MESSAGE: lambda: told(server(), {"level": "info"}),
    PeerFault.INVALID_ID: lambda: told(server(), BAD_ID),
    PeerFault.INVALID_METHOD: lambda: told(server(), {"jsonrpc": "2.0", "id": 1, "method": 5}),
    PeerFault.INVALID_PARAMS: lambda: told(server(), note("x/y", [1])),
    PeerFault.INVALID_RESPONSE: lambda: answered({"result": []}),
    PeerFault.NOTIFICATION_WITH_ID: lambda: told(server(), {**note("notifications/x", {}), "id": 1}),
    PeerFault.REQUEST_WITHOUT_ID: lambda: told(server(), note("tools/call", {"name": "x"})),
    PeerFault.BATCH_NOT_ALLOWED: lambda: told(connected(), [STRAY]),
    PeerFault.EMPTY_BATCH: lambda: told(opened("2025-03-26"), []),
    PeerFault.BATCH_TOO_LARGE: lambda: told(opened("2025-03-26"), [note("x/y", {})] * 300),
    PeerFault.DUPLICATE_REQUEST_ID: twice,
    PeerFault.UNKNOWN_RESPONSE_ID: lambda: told(connected(), STRAY),
    PeerFault.RESPONSE_ID_TYPE: lambda: answered({"id": "2", "result": TEXT}),
    PeerFault.UNANSWERABLE_ERROR: lambda: told(
        connected(), {"jsonrpc": "2.0", "error": {"code": -32700, "message": "what?"}}
    ),
    PeerFault.UNKNOWN_METHOD: lambda: told(server(), request("no/such")),
    PeerFault.UNEXPECTED_REQUEST: lambda: told(connected(), {**note("roots/list", {}), "id": 1}),
    PeerFault.MALFORMED_NOTIFICATION: lambda: told(connected(), note("notifications/message", {})),
    PeerFault.MISSING_META: lambda: told(server(), request("tools/list", modern=False)),
    PeerFault.INVALID_META: lambda: told(
        server(), request("tools/list", {"_meta": {"io.modelcontextprotocol/clientInfo": 5}})
    ),
    PeerFault.UNSUPPORTED_VERSION: lambda: told(
        server(), request("tools/list", {"_meta": meta("1900-01-01")})
    ),
    PeerFault.NOT_INITIALIZED: lambda: told(server(), note("notifications/initialized", {})),
    PeerFault.ALREADY_INITIALIZED: lambda: told(opened(), initialize()),
    PeerFault.INVALID_INITIALIZE_RESULT: lambda: initialized({**initialize_result(), "serverInfo": "x"}),
    PeerFault.INVALID_DISCOVER_RESULT: lambda: probed(ODD_PROBE),
    PeerFault.HEADER_MISMATCH: lambda: told(
        server(check=lambda origin, message: McpError(-32020, "no")), request("tools/list")
    ),
    PeerFault.INVALID_RESULT: lambda: read({"content": [{"type": "text", "text": 5}]}),
    PeerFault.UNKNOWN_RESULT_TYPE: lambda: answered({"result": {"resultType": "x"}}),
    PeerFault.MISSING_RESULT_TYPE: lambda: answered({"result": TEXT}),
    PeerFault.MISSING_CONTENT: lambda: answered({"result": {"resultType": "complete"}}),
    PeerFault.UNKNOWN_PROGRESS_TOKEN: lambda: progressed("zz", 1),
    PeerFault.PROGRESS_NOT_INCREASING: lambda: progressed(None, 2, 1),
    PeerFault.MALFORMED_CANCEL: lambda: told(server(), note("notifications/cancelled", {})),
    PeerFault.CURSOR_LOOP: walked,
    PeerFault.WRITE_CLOSED: broken,
    **SSE_WAYS,
}


def faults(events: list[Any]) -> set[PeerFault]:
    found: set[PeerFault] = set()
    for event in events:
        match event:
            case MessageIgnored(reason=PeerFault() as fault) | DeviationTolerated(fault=fault):
                found.add(fault)
            case RequestFailed(error=InvalidResponse() as error):
                found.add(error.fault)
            case RemoteProtocolError():
                found.add(event.fault)
            case _:
                pass
    return found


@pytest.mark.parametrize("fault", [f for f in PeerFault if f not in WAYS], ids=lambda f: f.name)
def test_the_other_faults_are_shown_elsewhere(fault: PeerFault) -> None:
    """Those of HTTP: beside the codec that finds them."""
    here = Path(__file__)
    others = [p for p in here.parent.glob("test_*.py") if p != here]
    assert any(f"PeerFault.{fault.name}" in p.read_text("utf-8") for p in others)


@pytest.mark.req("U7")
@pytest.mark.parametrize("fault", WAYS, ids=lambda f: f.name)
def test_each_fault_is_told_by_its_own_name(fault: PeerFault) -> None:
    assert fault in faults(WAYS[fault]())


def test_an_ignored_message_can_be_raised() -> None:
    ignored = told(connected(), STRAY)[0]
    assert isinstance(ignored.error, RemoteProtocolError)
    assert ignored.error.fault is PeerFault.UNKNOWN_RESPONSE_ID
    assert "UNKNOWN_RESPONSE_ID" in repr(ignored.error)


def test_the_probe_of_these_tests_is_a_good_one() -> None:
    assert not faults(probed(DISCOVER))
