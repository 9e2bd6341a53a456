"""Calls at message level, in both eras: their one end, timeouts, cancel, progress, what is left."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    AbandonRequest,
    CallCancelled,
    CallTimeout,
    CloseConnection,
    ConnectionEnded,
    DeviationTolerated,
    Harmless,
    InvalidResponse,
    Limits,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    PeerGone,
    ProgressReported,
    Reconnect,
    RequestFailed,
    ResultReady,
    SendNotification,
    SessionEnded,
    Timeouts,
    TransportKind,
)
from sansmcp.types import CallToolResult, TextContent

from .support import ALL, TEXT, call_tool, client, connected, initialize_result, result

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
    progress(10**400)
    progress(10**399)
    progress(0.1)
    assert [e.fault for e in driver.of(DeviationTolerated)] == [PeerFault.PROGRESS_NOT_INCREASING] * 4
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


@pytest.mark.req("K1", "K4")
def test_an_orderly_end_cancels_what_the_server_works_on() -> None:
    driver = connected()
    call = call_tool(driver)
    request_id = call.request_id
    driver.engine.close(now=0.0)
    driver.drain()
    assert driver.last["method"] == "notifications/cancelled"
    assert driver.last["params"]["requestId"] == request_id
    assert isinstance(driver.wire[-1], CloseConnection), "before the end"
    probing = client()
    probing.engine.connect(now=0.0)
    probing.engine.close(now=0.0)
    probing.drain()
    assert probing.methods() == ["server/discover"], "the probe is never cancelled"
