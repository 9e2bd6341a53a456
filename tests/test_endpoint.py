"""What a server does with what it cannot use, and how it ends: garbage, batches, strays, the end."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    CloseConnection,
    ConnectionEnded,
    Harmless,
    Limits,
    LocalProtocolError,
    MessageIgnored,
    NotificationReceived,
    PeerFault,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResultReady,
    SessionEnded,
)

from .support import (
    ALL,
    LEGACY,
    MODERN,
    ask,
    error_code,
    meta,
    opened,
    request,
    server,
    serving,
)

ANY_ERA = pytest.mark.parametrize("version", ALL)


# notifications and requests without id ----------------------------------------------------------


@pytest.mark.case("J-09")
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_a_request_without_an_id_is_not_carried_out(version: str) -> None:
    driver = serving(version)
    driver.receive({"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "rm"}})
    assert driver.one(MessageIgnored).reason is PeerFault.REQUEST_WITHOUT_ID
    assert not driver.sent
    assert not driver.of(RequestReceived)


@pytest.mark.case("J-09")
def test_a_notification_with_an_id_is_an_invalid_request() -> None:
    driver = server()
    driver.receive({"jsonrpc": "2.0", "id": 5, "method": "notifications/initialized"})
    assert driver.last["error"]["code"] == -32600
    assert driver.last["id"] == 5


@pytest.mark.case("J-13")
def test_unknown_notifications_are_passed_on_and_never_answered() -> None:
    driver = opened()
    driver.receive({"jsonrpc": "2.0", "method": "window/logMessage", "params": {"type": 3}})
    assert driver.one(NotificationReceived).params == {"type": 3}
    assert not driver.sent


@pytest.mark.case("J-08")
@pytest.mark.parametrize("params", [None, [1], "x", 5])
def test_params_that_are_no_object_are_refused(params: Any) -> None:
    driver = opened()
    driver.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params})
    assert error_code(driver) in (-32600, -32602)
    assert driver.last["id"] == 1


@pytest.mark.case("J-08")
def test_absent_params_are_empty() -> None:
    driver = opened()
    driver.receive({"jsonrpc": "2.0", "id": 1, "method": "tools/list"})
    assert driver.one(RequestReceived).request.params == {}


@pytest.mark.req("B5")
@pytest.mark.case("J-03", "J-06")
@pytest.mark.parametrize("request_id", [None, True, 1.5, [], {}])
def test_a_request_with_an_unusable_id_is_invalid(request_id: Any) -> None:
    driver = server()
    driver.receive({"jsonrpc": "2.0", "id": request_id, "method": "tools/list", "params": {"_meta": meta()}})
    assert error_code(driver) == -32600
    assert driver.last.get("id") is None
    assert not driver.of(RequestReceived)


# garbage ----------------------------------------------------------------------------------------


@pytest.mark.req("W7", "Q3")
@pytest.mark.case("S-07")
def test_an_unreadable_message_gets_one_answer_never_two_in_a_row() -> None:
    driver = server()
    driver.receive(b'{"jsonrpc":', b"[1,", b'{"jsonrpc":')
    assert [m["error"]["code"] for m in driver.sent] == [-32700]
    assert "id" not in driver.last
    driver.receive(request("server/discover"), b'{"jsonrpc":')
    assert [m.get("error", {}).get("code") for m in driver.sent] == [-32700, None, -32700]
    assert len(driver.of(MessageIgnored)) == 4


@pytest.mark.req("W7")
def test_a_legacy_client_is_told_with_a_null_id() -> None:
    driver = opened()
    driver.receive(b'{"jsonrpc":')
    assert driver.last["id"] is None


@pytest.mark.req("W7")
@pytest.mark.case("S-05", "S-07")
@pytest.mark.parametrize(
    "line",
    [
        b"not json",
        b"Content-Length: 36",
        b'{"jsonrpc":"2.0","id":1,"result":',
        b'{"jsonrpc":"2.0","error":{',
        b"\xff\xfe",
    ],
)
def test_noise_and_what_looks_like_a_response_are_never_answered(line: bytes) -> None:
    driver = server()
    driver.receive(line)
    assert not driver.sent
    driver.one(MessageIgnored)


@pytest.mark.case("S-06", "S-07")
def test_json_of_a_wrong_shape_gets_one_answer() -> None:
    driver = server()
    driver.receive(b'{"level":"info"}', b'{"level":"info"}', b"5")
    assert [m["error"]["code"] for m in driver.sent] == [-32600]
    assert "id" not in driver.last


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","id":9,"result":{}}',
        b'{"jsonrpc":"2.0","id":9}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"x"}}',
    ],
)
def test_responses_that_nobody_awaits_are_never_answered(line: bytes) -> None:
    driver = server()
    driver.receive(line)
    driver.one(MessageIgnored)
    if b'"result"' in line or b'"error"' in line:
        assert not driver.sent


@pytest.mark.req("B14")
@pytest.mark.case("J-10")
@ANY_ERA
def test_a_batch_is_served_in_its_one_revision(version: str) -> None:
    driver = serving(version)
    driver.receive(
        [
            request("tools/list", id=1, modern=version == MODERN),
            {"jsonrpc": "2.0", "method": "vendor/note"},
            {"jsonrpc": "2.0", "id": 2, "method": "no/such"},
            {"jsonrpc": "2.0", "id": 3, "method": "ping"},
        ]
    )
    if version == "2025-03-26":
        assert not driver.sent, "the answers leave together"
        driver.engine.respond(driver.one(RequestReceived).request, {"tools": []}, now=0.0)
        driver.drain()
        replies: Any = driver.last
        assert {m["id"]: "error" in m for m in replies} == {1: False, 2: True, 3: False}
    else:
        assert len(driver.sent) == 1
        assert error_code(driver) == -32600
        assert driver.last.get("id") is None


@pytest.mark.req("B14")
@pytest.mark.case("J-10")
@pytest.mark.parametrize("batch", [[], [{"jsonrpc": "2.0", "method": "vendor/x"}] * 300])
def test_an_empty_or_endless_batch_is_invalid(batch: Any) -> None:
    driver = opened("2025-03-26")
    driver.receive(batch)
    assert error_code(driver) == -32600


def test_a_batch_of_notifications_gets_no_answer_and_a_cancelled_member_none() -> None:
    driver = opened("2025-03-26")
    driver.receive([{"jsonrpc": "2.0", "method": "vendor/x"}])
    assert not driver.sent
    driver.receive([request("tools/list", id=1, modern=False), {"jsonrpc": "2.0", "id": 2, "method": "ping"}])
    driver.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    replies: Any = driver.last
    assert [m["id"] for m in replies] == [2]


# asking the client ------------------------------------------------------------------------------


@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_client_can_be_asked_for_what_it_declared(version: str) -> None:
    driver = opened(version, client_capabilities={"roots": {}})
    call = driver.engine.request("roots/list", now=0.0)
    driver.drain()
    driver.reply({"roots": [{"uri": "file:///a"}]})
    ready = driver.one(ResultReady)
    assert ready.call is call
    assert ready.result.roots[0].uri == "file:///a"
    with pytest.raises(LocalProtocolError, match="sampling"):
        driver.engine.request("sampling/createMessage", {"messages": [], "maxTokens": 1}, now=0.0)
    driver.engine.ping(now=0.0)
    driver.drain()
    driver.advance(10.0)
    driver.one(RequestFailed)
    assert driver.last["method"] == "notifications/cancelled"


def test_a_modern_client_cannot_be_asked() -> None:
    driver = server()
    with pytest.raises(LocalProtocolError):
        driver.engine.request("roots/list", now=0.0)


# end --------------------------------------------------------------------------------------------


@pytest.mark.case("S-11", "S-15")
@ANY_ERA
def test_answers_that_are_owed_are_given_after_the_end_of_input(version: str) -> None:
    driver = serving(version)
    received = ask(driver, version, "tools/list")
    driver.engine.receive_eof(now=1.0)
    driver.drain()
    assert not driver.wired(CloseConnection)
    driver.engine.respond(received, {"tools": []}, now=2.0)
    driver.drain()
    assert "result" in driver.last
    assert driver.one(SessionEnded).error is None
    assert isinstance(driver.wire[-1], CloseConnection), "after the answer"


@pytest.mark.case("R-03", "R-08")
def test_the_end_of_input_ends_an_idle_server_once() -> None:
    driver = server()
    for _ in range(2):
        driver.engine.receive_eof(now=1.0)
        driver.engine.close(now=1.0)
    driver.drain()
    assert len(driver.of(SessionEnded)) == 1


@pytest.mark.case("R-05")
def test_a_client_that_is_gone_cancels_what_it_asked() -> None:
    driver = server()
    received = ask(driver, MODERN, "tools/list")
    driver.engine.connection_lost(now=1.0)
    driver.drain()
    assert driver.one(RequestCancelled).request is received
    assert isinstance(driver.one(SessionEnded).error, ConnectionEnded)
    assert not driver.engine.respond(received, {"tools": []}, now=1.0)


@pytest.mark.req("Q11")
def test_many_open_requests_stop_the_reading_but_refuse_nothing() -> None:
    driver = server(limits=Limits(max_open_requests=3))
    for number in range(5):
        ask(driver, MODERN, "tools/list", id=number)
    assert len(driver.of(RequestReceived)) == 5
    assert not driver.engine.wants_data
    for event in driver.of(RequestReceived)[:3]:
        driver.engine.respond(event.request, {"tools": []}, now=0.0)
    assert driver.engine.wants_data


def test_a_method_of_the_protocol_cannot_be_added() -> None:
    with pytest.raises(LocalProtocolError):
        server(methods=["tools/call"])


@pytest.mark.req("B11")
@ANY_ERA
def test_added_methods_are_served_in_every_revision(version: str) -> None:
    driver = serving(version, methods=["vendor/x"])
    received = ask(driver, version, "vendor/x", {"a": 1})
    driver.engine.respond(received, {"b": 2}, now=0.0)
    driver.drain()
    assert driver.last["result"]["b"] == 2


def test_what_comes_after_the_end_of_input_is_ignored() -> None:
    driver = server()
    ask(driver, MODERN, "tools/list")
    driver.engine.receive_eof(now=0.0)
    driver.receive(request("server/discover", id=2), {"jsonrpc": "2.0", "id": 3, "method": "initialize"})
    assert not driver.sent
    assert [e.reason for e in driver.of(MessageIgnored)] == [Harmless.AFTER_CLOSE] * 2


@pytest.mark.case("J-08", "J-13")
def test_a_notification_with_bad_params_is_told_and_not_answered() -> None:
    driver = opened()
    driver.receive({"jsonrpc": "2.0", "method": "notifications/initialized", "params": [1]})
    assert driver.one(MessageIgnored).reason is PeerFault.INVALID_PARAMS
    assert not driver.sent
