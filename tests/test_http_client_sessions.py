"""Legacy sessions, as the HTTP client keeps them: opened in order, lost, listened to, ended."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    ConnectTimeout,
    DeviationTolerated,
    EraDecided,
    InputRequired,
    Legacy,
    LimitHit,
    Limits,
    McpError,
    PeerFault,
    RequestFailed,
    ResultReady,
    SessionEnded,
    SessionStarted,
    Timeouts,
)
from sansmcp.errors import AuthorizationRequired, HttpFailure, SessionExpired
from sansmcp.events import DeliveryFailed
from sansmcp.http.recovery import EVERY_TOOL, Recovery
from sansmcp.revisions import Revision
from sansmcp.types.convert import structure
from sansmcp.types.lifecycle import ClientCapabilities

from .http_client_support import (
    JSON,
    LEGACY,
    SAMPLE,
    SAMPLED,
    SESSION,
    SSE,
    Asked,
    Link,
    event,
    linked,
    note,
)
from .support import DISCOVER, TEXT, initialize_result

SAMPLING = structure({"sampling": {}}, ClientCapabilities, Revision.V2025_11_25)
ALL_TOOLS = {"recovery": Recovery(tools=EVERY_TOOL)}


def opening(**options: Any) -> Link:
    """A legacy client whose `initialize` was answered, with a session."""
    link = Link(mode=Legacy(), **options).start()
    return link.reply(initialize_result(), headers=[("Mcp-Session-Id", SESSION)])


def listening(**options: Any) -> tuple[Link, Asked]:
    """A legacy client, and its GET."""
    link = opening(**options)
    link.answer(link.one_rpc("notifications/initialized"), 202)
    return link, link.one_rpc("GET")


def reopen(link: Link, session: str = "second") -> None:
    """Answer the handshake of a new session."""
    initialize = link.of_rpc("initialize")[-1]
    link.reply(initialize_result(), initialize, headers=[("mcp-session-id", session)])
    link.answer(link.of_rpc("notifications/initialized")[-1], 202)


# the id ------------------------------------------------------------------------------------------


@pytest.mark.req("P1", "P12")
def test_the_session_id_goes_along_on_everything_after_initialize() -> None:
    link, get = listening()
    assert "mcp-session-id" not in link.one_rpc("initialize").headers
    link.call()
    link.engine.notify("notifications/roots/list_changed", now=0.0)
    link.drain()
    link.close()
    later = link.asked[1:]
    assert [a.rpc for a in later] == [
        "notifications/initialized",
        "GET",
        "tools/call",
        "notifications/roots/list_changed",
        "notifications/cancelled",
        "DELETE",
    ]
    assert {a.headers["mcp-session-id"] for a in later} == {SESSION}
    assert {a.headers["mcp-protocol-version"] for a in later} == {LEGACY}
    assert get.headers["accept"] == SSE


@pytest.mark.req("P1")
def test_without_a_session_id_there_is_none() -> None:
    link = linked(LEGACY, session=None)
    link.call()
    assert "mcp-session-id" not in link.last.headers
    link.answer(link.last, 404)
    assert type(link.one(RequestFailed).error) is HttpFailure, "no session, and so none that expired"
    link.close()
    assert not link.of_rpc("DELETE")


@pytest.mark.req("P1")
def test_a_modern_server_has_no_session() -> None:
    link = Link().start()
    link.reply(DISCOVER, headers=[("mcp-session-id", SESSION)])
    link.call()
    assert "mcp-session-id" not in link.last.headers
    link.answer(link.last, 404)
    assert type(link.one(RequestFailed).error) is HttpFailure
    link.close()
    assert {a.method for a in link.asked} == {"POST"}


@pytest.mark.req("P1")
@pytest.mark.parametrize("bad", ["", "a b", "\x01", "é", "x" * 1025])
def test_an_impossible_session_id_is_told_and_not_used(bad: str) -> None:
    link = Link(mode=Legacy()).start()
    link.reply(initialize_result(), headers=[("mcp-session-id", bad)])
    assert link.one(DeviationTolerated).fault is PeerFault.INVALID_SESSION_ID
    assert "mcp-session-id" not in link.one_rpc("notifications/initialized").headers


# the order of the beginning ------------------------------------------------------------------------


@pytest.mark.case("L-04", "H-02")
@pytest.mark.parametrize("how", ["head", "fail", "refused", "silent"])
def test_nothing_overtakes_the_confirmation(how: str) -> None:
    link = opening()
    assert link.of(EraDecided)
    link.call()
    confirmation = link.last
    assert link.rpcs() == ["initialize", "notifications/initialized"]
    match how:
        case "head":
            link.head(confirmation, 202)
        case "fail":
            link.fail(confirmation)
        case "refused":
            link.answer(confirmation, 400)
        case _:
            link.advance(4.999)
            assert len(link.asked) == 2
            link.advance(0.001)
    assert link.rpcs()[2:] == ["GET", "tools/call"]
    assert len(link.of(DeliveryFailed)) == (how in ("fail", "refused"))


@pytest.mark.case("L-04")
def test_a_redirected_confirmation_is_still_waited_for() -> None:
    link = opening()
    link.call()
    link.answer(link.last, 307, "", None, [("location", "/mcp/")])
    assert link.rpcs() == ["initialize", *["notifications/initialized"] * 2]
    link.advance(4.0)
    link.answer(link.last, 202)
    assert link.rpcs()[3:] == ["GET", "tools/call"]


@pytest.mark.case("L-04")
def test_notifications_keep_their_place_too() -> None:
    link = opening()
    link.call()
    link.engine.notify("notifications/roots/list_changed", now=0.0)
    link.drain()
    link.answer(link.last, 202)
    assert link.rpcs()[2:] == ["GET", "tools/call", "notifications/roots/list_changed"]


@pytest.mark.case("L-04", "H-09")
def test_a_compressed_refusal_of_the_confirmation_is_read_to_its_end() -> None:
    link = opening()
    link.call()
    link.head(link.last, 400, ("content-encoding", "gzip"))
    assert link.rpcs()[2:] == ["GET", "tools/call"]
    link.one(DeliveryFailed)


@pytest.mark.req("R7")
def test_a_refusal_that_is_too_large_is_told() -> None:
    link = linked(LEGACY, limits=Limits(max_body=1000))
    link.engine.notify("notifications/roots/list_changed", now=0.0)
    link.drain()
    link.answer(link.last, 400, b"x" * 1001, JSON)
    failed: Any = link.one(DeliveryFailed).error
    assert failed.fault is PeerFault.BODY_TOO_LARGE
    assert link.one(LimitHit).limit == "max_body"
    assert link.quiet()


@pytest.mark.case("L-04")
def test_a_call_that_ends_while_it_waits_is_never_sent() -> None:
    link = opening()
    call = link.call()
    link.engine.cancel(call, now=0.0)
    link.drain()
    link.answer(link.one_rpc("notifications/initialized"), 202)
    assert "tools/call" not in link.rpcs()


@pytest.mark.req("R3")
@pytest.mark.case("H-02", "H-14")
@pytest.mark.parametrize(
    ("status", "kind", "body"),
    [
        (202, None, ""),
        (202, "text/plain", "Accepted"),
        (204, None, ""),
        (200, None, ""),
        (200, JSON, '{"jsonrpc":"2.0","result":{}}'),
        (201, SSE, ":\n\n"),
    ],
)
def test_any_success_accepts_a_notification(status: int, kind: Any, body: str) -> None:
    link = opening()
    link.answer(link.one_rpc("notifications/initialized"), status, body, kind)
    assert [e.fault for e in link.of(DeviationTolerated)] == (
        [] if status == 202 else [PeerFault.UNEXPECTED_STATUS]
    )
    assert not link.of(DeliveryFailed)
    link.answer(link.one_rpc("GET"), 405)
    assert link.quiet()


@pytest.mark.req("R3")
def test_a_refused_notification_is_told_with_its_error() -> None:
    link = linked(LEGACY)
    link.engine.notify("notifications/roots/list_changed", now=0.0)
    link.drain()
    body = json.dumps({"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})
    link.answer(link.last, 400, body, JSON)
    failed = link.one(DeliveryFailed)
    assert failed.method == "notifications/roots/list_changed"
    assert isinstance(failed.error, McpError)
    assert (failed.error.code, failed.error.http_status) == (-32600, 400)
    link.engine.notify("notifications/roots/list_changed", now=0.0)
    link.drain()
    link.answer(link.last, 401, body, JSON, [("www-authenticate", "Bearer")])
    assert isinstance(link.of(DeliveryFailed)[1].error, AuthorizationRequired)
    assert link.quiet()


# requests of the server ------------------------------------------------------------------------------


@pytest.mark.req("G1", "R1")
@pytest.mark.parametrize("where", ["post", "get"])
def test_a_request_of_the_server_is_answered_with_a_post_of_its_own(where: str) -> None:
    link, get = listening(capabilities=SAMPLING)
    call = link.call()
    asking = {**SAMPLE, "id": "q1"}
    link.stream(link.last if where == "post" else get, asking, end=False)
    asked = link.one(InputRequired)
    assert asked.call is (call if where == "post" else None)
    link.engine.provide_input(asked.round, {"q1": SAMPLED}, now=0.0)
    link.drain()
    assert link.last.message == {"jsonrpc": "2.0", "id": "q1", "result": SAMPLED}
    assert link.last.headers["mcp-session-id"] == SESSION
    link.answer(link.last, 202)
    assert not link.of(DeliveryFailed)


def test_a_response_that_is_not_taken_is_told() -> None:
    link, get = listening(capabilities=SAMPLING)
    link.stream(get, {"jsonrpc": "2.0", "id": 5, "method": "ping"}, end=False)
    assert link.last.message == {"jsonrpc": "2.0", "id": 5, "result": {}}
    link.answer(link.last, 500)
    assert link.one(DeliveryFailed).method is None


# sessions that are lost ----------------------------------------------------------------------------

ABOUT_THE_SESSION = [
    (None, ""),
    ("text/html", "<html>"),
    (JSON, '{"jsonrpc":"2.0","error":{"code":-32001,"message":"Session not found"},"id":null}'),
    (JSON, '{"jsonrpc":"2.0","error":{"code":-32600,"message":"gone"},"id":"server-error"}'),
]


@pytest.mark.req("P2")
@pytest.mark.case("L-01", "H-06")
@pytest.mark.parametrize(("kind", "body"), ABOUT_THE_SESSION)
def test_an_expired_session_is_opened_anew_and_the_request_made_again(kind: Any, body: str) -> None:
    link = linked(LEGACY)
    call = link.engine.list_tools(now=0.0)
    link.drain()
    first = link.last
    link.answer(first, 404, body, kind)
    assert link.last.rpc == "initialize"
    assert "mcp-session-id" not in link.last.headers
    assert "mcp-protocol-version" not in link.last.headers
    later = link.call()
    reopen(link)
    assert link.rpcs()[1:] == ["initialize", "notifications/initialized", "tools/list", "tools/call"]
    again = link.one_rpc("tools/call"), link.of_rpc("tools/list")[-1]
    assert {a.headers["mcp-session-id"] for a in again} == {"second"}
    assert again[1].message["id"] != first.message["id"]
    link.reply({"tools": []}, again[1])
    link.reply(TEXT, again[0])
    assert [e.call for e in link.of(ResultReady)] == [call, later]
    link.one(SessionStarted)
    assert not link.of(EraDecided), "the verdict has not changed"
    assert link.quiet()


@pytest.mark.req("P2")
@pytest.mark.case("H-06")
def test_a_refusal_with_404_is_no_expiry() -> None:
    link = linked(LEGACY)
    link.engine.list_tools(now=0.0)
    link.drain()
    link.reply(error=-32601, status=404)
    error: Any = link.one(RequestFailed).error
    assert (error.code, error.http_status) == (-32601, 404)
    assert link.rpcs() == ["tools/list"]


@pytest.mark.case("L-02")
def test_400_is_no_expiry() -> None:
    link = linked(LEGACY)
    link.engine.list_tools(now=0.0)
    link.drain()
    link.answer(link.last, 400, "unknown session", "text/plain")
    error: Any = link.one(RequestFailed).error
    assert error.status == 400
    assert link.rpcs() == ["tools/list"]


@pytest.mark.req("P2")
@pytest.mark.case("L-01")
def test_a_second_404_surfaces() -> None:
    link = linked(LEGACY)
    link.engine.list_tools(now=0.0)
    link.drain()
    link.answer(link.last, 404)
    reopen(link)
    link.answer(link.last, 404)
    error = link.one(RequestFailed).error
    assert isinstance(error, SessionExpired)
    assert error.retryable
    assert link.rpcs().count("initialize") == 1
    link.engine.list_tools(now=0.0)
    link.drain()
    assert link.rpcs()[-1] == "tools/list", "the connection lives"
    link.answer(link.last, 404)
    assert link.last.rpc == "initialize", "and another request may find another session"


@pytest.mark.req("P2")
@pytest.mark.case("L-01")
@pytest.mark.parametrize("late", [False, True])
def test_requests_that_fail_together_open_one_session(late: bool) -> None:
    link = linked(LEGACY, http=ALL_TOOLS)
    calls = [link.call() for _ in range(3)]
    first = list(link.asked)
    link.answer(first[0], 404)
    link.answer(first[1], 404)
    if late:
        link.answer(first[2], 404)
    assert link.rpcs().count("initialize") == 1
    reopen(link)
    again = link.of_rpc("tools/call")[3:]
    assert len(again) == 2 + late
    if not late:
        failed = link.one(RequestFailed)
        assert failed.call is calls[2]
        assert isinstance(failed.error, SessionExpired)
        assert first[2].aborted
    for asked in again:
        link.reply(TEXT, asked)
    assert len(link.of(ResultReady)) == 2 + late
    assert link.quiet()


@pytest.mark.req("P2")
def test_a_stream_of_the_old_session_fails_with_it() -> None:
    link = linked(LEGACY)
    link.engine.list_tools(now=0.0)
    running = link.call()
    link.stream(link.last, event(note("notifications/message", level="info", data=1), id="e1"), end=False)
    link.answer(link.one_rpc("tools/list"), 404)
    assert not link.of(RequestFailed), "an answer that is on its way still counts"
    reopen(link)
    assert link.one(RequestFailed).call is running
    assert link.one_rpc("tools/call").aborted


def test_an_answer_in_the_old_session_that_comes_in_time_is_an_answer() -> None:
    link = linked(LEGACY)
    link.engine.list_tools(now=0.0)
    running = link.call()
    link.answer(link.one_rpc("tools/list"), 404)
    link.reply(TEXT, link.one_rpc("tools/call"))
    assert link.one(ResultReady).call is running


@pytest.mark.req("P2")
@pytest.mark.parametrize(
    ("recovery", "method", "again"),
    [
        (Recovery(), "tools/call", False),
        (Recovery(tools=["other"]), "tools/call", False),
        (Recovery(tools=["echo"]), "tools/call", True),
        (Recovery(tools=EVERY_TOOL), "tools/call", True),
        (Recovery(), "prompts/get", True),
        (Recovery(), "vendor/x", False),
        (Recovery(methods=["vendor/x"]), "vendor/x", True),
    ],
)
def test_what_may_do_something_is_made_again_with_leave_only(
    recovery: Recovery, method: str, again: bool
) -> None:
    link = linked(LEGACY, http={"recovery": recovery})
    link.engine.request(method, {"name": "echo"}, now=0.0)
    link.drain()
    link.answer(link.last, 404)
    assert link.last.rpc == "initialize", "the session is opened anew all the same"
    reopen(link)
    assert len(link.of_rpc(method)) == 1 + again
    if not again:
        assert isinstance(link.one(RequestFailed).error, SessionExpired)


@pytest.mark.req("P2")
def test_opening_anew_can_be_switched_off() -> None:
    link = linked(LEGACY, http={"recovery": Recovery(reopen_session=False)})
    link.engine.list_tools(now=0.0)
    link.drain()
    link.answer(link.last, 404)
    assert isinstance(link.one(RequestFailed).error, SessionExpired)
    assert link.rpcs() == ["tools/list"]


@pytest.mark.req("P2")
@pytest.mark.parametrize("status", [202, 404, 500])
def test_a_notification_can_tell_that_the_session_expired(status: int) -> None:
    link = linked(LEGACY)
    link.engine.notify("notifications/roots/list_changed", now=0.0)
    link.drain()
    link.answer(link.last, status)
    assert ("initialize" in link.rpcs()) == (status == 404)
    if status == 404:
        assert isinstance(link.one(DeliveryFailed).error, SessionExpired)
        reopen(link)
        assert link.rpcs()[-1] == "notifications/initialized"


@pytest.mark.req("P2")
def test_a_late_404_of_the_old_session_opens_none() -> None:
    link = linked(LEGACY, http=ALL_TOOLS)
    link.engine.notify("notifications/roots/list_changed", now=0.0)
    link.call()
    late = link.one_rpc("notifications/roots/list_changed")
    link.answer(link.last, 404)
    reopen(link)
    link.answer(late, 404)
    assert link.rpcs().count("initialize") == 1
    assert isinstance(link.one(DeliveryFailed).error, SessionExpired)


@pytest.mark.req("P2")
def test_a_new_session_that_is_lost_at_once_does_not_go_in_circles() -> None:
    link = linked(LEGACY)
    link.engine.list_tools(now=0.0)
    link.drain()
    for _ in range(10):
        if link.last.rpc == "initialize":
            link.reply(initialize_result(), headers=[("mcp-session-id", "x")])
        elif not link.last.over:
            link.answer(link.last, 404)
    assert link.rpcs() == ["tools/list", "initialize", "notifications/initialized", "tools/list"]
    assert isinstance(link.one(RequestFailed).error, SessionExpired)


@pytest.mark.req("A3", "P2")
@pytest.mark.parametrize("how", ["silent", "broken", "refused"])
def test_a_session_that_cannot_be_opened_anew_ends_the_connection(how: str) -> None:
    link = linked(LEGACY)
    link.engine.list_tools(now=0.0)
    link.drain()
    link.answer(link.last, 404)
    match how:
        case "silent":
            link.advance(60.0)
            assert isinstance(link.one(SessionEnded).error, ConnectTimeout)
        case "broken":
            link.fail(link.last)
        case _:
            link.answer(link.last, 404)
    assert link.one(RequestFailed).error is link.one(SessionEnded).error
    assert link.rpcs() == ["tools/list", "initialize"]
    assert link.finished()
    assert link.quiet()


# the end -----------------------------------------------------------------------------------------


@pytest.mark.req("P6")
@pytest.mark.case("L-05")
@pytest.mark.parametrize("status", [200, 204, 405, 404, 500, None])
def test_a_session_is_ended_with_delete_and_a_bounded_wait(status: int | None) -> None:
    link, get = listening()
    link.stream(get, end=False)
    link.call()
    running = link.last
    link.close()
    assert get.aborted
    assert running.aborted
    delete = link.one_rpc("DELETE")
    assert delete.headers["mcp-session-id"] == SESSION
    assert delete.headers["mcp-protocol-version"] == LEGACY
    assert delete.request.target == "/mcp"
    assert link.one(SessionEnded).error is None
    assert not link.finished()
    cancel = link.one_rpc("notifications/cancelled")
    if status is None:
        link.advance(4.999)
        assert not link.finished()
        link.advance(0.001)
        assert delete.aborted
        assert cancel.aborted
    else:
        link.answer(cancel, 202)
        link.answer(delete, status)
    assert link.finished()
    assert link.said[-1] is link.one(SessionEnded)
    assert link.quiet()


@pytest.mark.req("P6")
def test_a_session_of_a_handshake_that_failed_is_ended_too() -> None:
    link = Link(mode=Legacy()).start()
    link.reply(initialize_result("1999-01-01"), headers=[("mcp-session-id", SESSION)])
    assert link.rpcs() == ["initialize", "DELETE"]
    assert link.last.headers["mcp-session-id"] == SESSION
    assert "mcp-protocol-version" not in link.last.headers


def test_the_wait_for_an_acknowledgement_ends_after_a_close_too() -> None:
    link = linked(LEGACY, timeouts=Timeouts(request=1.0))
    link.call()
    link.close()
    link.advance(5.0)
    assert link.finished()
    assert not link.of(DeliveryFailed)
