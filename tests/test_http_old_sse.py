"""HTTP+SSE of 2024-11-05, the client's side: how it is found, spoken, and how it ends."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    ConnectionEnded,
    DeviationTolerated,
    EraDecided,
    Harmless,
    InputRequired,
    Legacy,
    LimitHit,
    Limits,
    ListChanged,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    PeerFault,
    PeerGone,
    Pin,
    RequestFailed,
    ResultReady,
    Revision,
    SessionEnded,
    Timeouts,
)
from sansmcp.errors import AuthorizationRequired, HttpFailure
from sansmcp.http.old_sse import OldSse, OldSseUse
from sansmcp.http.url import parse_url
from sansmcp.states import OldSseState
from sansmcp.types.convert import structure
from sansmcp.types.lifecycle import ClientCapabilities

from .http_client_support import CUTS, JSON, SAMPLE, SAMPLED, SSE, TEXT, Asked, Link, event, note, response
from .support import initialize_result

OLD = "2024-11-05"
ENDPOINT = b"event: endpoint\ndata: /messages?sessionId=s3cret-s3ssion\n\n"
ONLY = {"old_sse": OldSseUse.ONLY}
SAMPLING = structure({"sampling": {}}, ClientCapabilities, Revision.V2025_11_25)


def refused(status: int = 404, **options: Any) -> Link:
    """A client whose probe and `initialize` were refused, as an old server does it."""
    link = Link(**options).start()
    link.answer(link.last, 404)
    link.answer(link.last, status, "no such page", "text/plain")
    return link


def opened(**options: Any) -> tuple[Link, Asked]:
    """A client that is connected over the old transport, and the exchange of its stream."""
    link = refused(**options)
    stream = link.last
    link.stream(stream, ENDPOINT, end=False)
    link.answer(link.last, 202, "Accepted")
    link.data(stream, event(response(link.last, initialize_result(OLD))))
    link.answer(link.last, 202)
    return link, stream


# how it is found -----------------------------------------------------------------------------------


@pytest.mark.req("P7", "P9", "A1", "A7")
@pytest.mark.case("W-05", "V-08")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("status", [400, 404, 405])
def test_a_refused_initialize_leads_to_the_old_transport(status: int, cut: Any) -> None:
    link = refused(status, cut=cut, headers=[("authorization", "Bearer t")])
    assert link.rpcs() == ["server/discover", "initialize", "GET"]
    get = link.last
    assert (get.request.target, get.headers["accept"]) == ("/mcp", SSE)
    assert "mcp-protocol-version" not in get.headers
    link.stream(get, b": hello\n\n", ENDPOINT, end=False)
    again = link.last
    assert again.rpc == "initialize", "and no probe: the transport is older than it"
    assert again.request.target == "/messages?sessionId=s3cret-s3ssion"
    assert again.headers["authorization"] == "Bearer t"
    link.answer(again, 202, "Accepted")
    link.data(get, event(response(again, initialize_result(OLD)), event="message"))
    decided = link.one(EraDecided)
    assert (decided.era, decided.revision) == ("legacy", OLD)
    assert any("HTTP+SSE" in e.outcome for e in decided.evidence)
    assert link.last.rpc == "notifications/initialized"
    link.answer(link.last, 202)
    assert link.rpcs().count("GET") == 1, "one stream brings everything"


@pytest.mark.req("P9")
def test_a_json_rpc_refusal_that_is_not_modern_leads_there_too() -> None:
    link = Link().start()
    link.reply(error=-32601, status=404)
    link.reply(error=-32000, status=400, id=None)
    assert link.last.rpc == "GET"
    link.answer(link.last, 405)
    error: Any = link.one(SessionEnded).error
    assert isinstance(error.__cause__, McpError), "the first cause"
    assert error.__cause__.code == -32000


@pytest.mark.req("P9", "A5")
@pytest.mark.parametrize("code", [-32020, -32021, -32022])
def test_a_modern_refusal_does_not(code: int) -> None:
    link = Link(mode=Legacy()).start()
    link.reply(error=(code, {"supported": ["2026-07-28"]}), status=400)
    assert "GET" not in link.rpcs()
    assert link.of(SessionEnded)


@pytest.mark.req("P9")
@pytest.mark.parametrize("status", [401, 403, 429, 500, 302])
def test_other_statuses_do_not(status: int) -> None:
    link = Link().start()
    link.answer(link.last, 404)
    link.answer(link.last, status)
    assert "GET" not in link.rpcs()
    error: Any = link.one(SessionEnded).error
    assert error.status == status
    assert isinstance(error, AuthorizationRequired) == (status in (401, 403))


@pytest.mark.req("P9", "A16")
@pytest.mark.case("W-03", "H-18")
@pytest.mark.parametrize(
    "how", ["405", "html", "401", "network", "silent", "comments", "ends", "foreign", "empty", "garbage"]
)
def test_when_it_is_not_spoken_either_the_first_failure_is_the_cause(how: str) -> None:
    link = refused(405)
    call = link.call()
    get = link.last
    match how:
        case "405" | "401":
            link.answer(get, int(how), "gone", "text/plain")
        case "html":
            link.answer(get, 200, "<html>", "text/html")
        case "network":
            link.fail(get)
        case "silent":
            link.advance(5.0)
        case "comments":
            link.stream(get, b":\n\n", end=False)
            link.advance(4.0)
            link.data(get, b":\n\n")
            link.advance(1.0)
        case "ends":
            link.stream(get)
        case "foreign":
            link.stream(get, b"event: endpoint\ndata: https://evil.example/messages?s3cret\n\n", end=False)
        case "empty":
            link.stream(get, b"event: endpoint\ndata: \x01\n\n", end=False)
        case _:
            link.stream(get, b"event: endpoint\ndata: \xff\n\n", end=False)
    error: Any = link.one(SessionEnded).error
    assert isinstance(error, HttpFailure)
    assert (error.status, error.excerpt) == (405, "no such page")
    assert link.one(RequestFailed).call is call
    trail = link.engine.evidence[-1]
    assert "HTTP+SSE" in trail.outcome
    assert "s3cret" not in trail.outcome
    assert get.aborted or get.over
    assert link.finished()
    assert link.quiet()


@pytest.mark.req("A3", "P9")
def test_the_connect_timeout_covers_it() -> None:
    link = Link(timeouts=Timeouts(probe=20.0, connect=10.0)).start()
    link.answer(link.last, 404)
    link.answer(link.last, 404)
    link.stream(link.last, end=False)
    link.advance(10.0)
    assert link.last.aborted
    assert "10" in str(link.one(SessionEnded).error)
    assert link.finished()


@pytest.mark.req("P9")
def test_a_refusal_over_the_old_transport_is_the_end() -> None:
    link = refused()
    link.stream(link.last, ENDPOINT, end=False)
    link.answer(link.last, 404)
    assert link.rpcs() == ["server/discover", "initialize", "GET", "initialize"]
    assert link.one(SessionEnded).error
    assert link.finished()


@pytest.mark.req("P7", "T1")
@pytest.mark.parametrize(
    ("data", "target"),
    [
        (b"/messages", "/messages"),
        (b"messages?x=1", "/a/messages?x=1"),
        (b"https://EXAMPLE.com/m", "/m"),
        (b"https://example.com:443/m#f", "/m"),
        (b"?session=1", "/a/sse?session=1"),
        (b"http://example.com/m", None),
        (b"https://example.com:8443/m", None),
        (b"https://example.com.evil.example/m", None),
        (b"//evil.example/m", None),
        (b"https://me:s3cret@example.com/m", None),
        (b"javascript:alert(1)", None),
        (b"/a b", None),
    ],
)
def test_the_endpoint_is_at_the_same_origin(data: bytes, target: str | None) -> None:
    link = Link(url="https://example.com/a/sse", mode=Legacy(), http=ONLY).start()
    link.stream(link.last, b"event: endpoint\ndata: %b\n\n" % data, end=False)
    if target is not None:
        assert link.last.request.target == target
        return
    error: Any = link.one(SessionEnded).error
    assert error.fault is PeerFault.INVALID_ENDPOINT
    assert "s3cret" not in str(error)
    assert link.rpcs() == ["GET"]


# from the start ------------------------------------------------------------------------------------


@pytest.mark.req("P7")
@pytest.mark.case("W-05")
@pytest.mark.parametrize("mode", [Legacy(), Pin(Revision.V2024_11_05)])
def test_it_can_be_spoken_from_the_start(mode: Any) -> None:
    link = Link(mode=mode, http=ONLY).start()
    assert link.rpcs() == ["GET"]
    with pytest.raises(LocalProtocolError):
        link.client.start(0.0)
    call = link.call()
    stream = link.last
    link.stream(stream, ENDPOINT, end=False)
    assert link.last.rpc == "initialize"
    link.answer(link.last, 202)
    link.data(stream, event(response(link.last, initialize_result(OLD))))
    link.answer(link.last, 202)
    assert link.last.rpc == "tools/call"
    link.answer(link.last, 202)
    link.data(stream, event(response(link.last, TEXT)))
    assert link.one(ResultReady).call is call


@pytest.mark.case("W-05")
def test_a_modern_engine_does_not_speak_it() -> None:
    with pytest.raises(LocalProtocolError):
        Link(http=ONLY)


@pytest.mark.req("P9")
@pytest.mark.parametrize("how", [401, 500, "fail", "end"])
def test_from_the_start_a_failure_is_its_own_cause(how: Any) -> None:
    link = Link(mode=Legacy(), http=ONLY).start()
    link.call()
    if how == "fail":
        link.fail(link.last)
    elif how == "end":
        link.stream(link.last)
    else:
        link.answer(link.last, how)
    error: Any = link.one(SessionEnded).error
    assert isinstance(error, AuthorizationRequired if how == 401 else HttpFailure)
    assert link.one(RequestFailed).error is error
    assert link.finished()


@pytest.mark.req("P9")
def test_it_can_be_switched_off() -> None:
    link = refused(http={"old_sse": OldSseUse.NEVER})
    assert "GET" not in link.rpcs()
    error: Any = link.one(SessionEnded).error
    assert error.status == 404


# how it is spoken ----------------------------------------------------------------------------------


@pytest.mark.req("P7")
@pytest.mark.parametrize("cut", CUTS)
def test_messages_go_to_the_endpoint_and_answers_come_on_the_stream(cut: Any) -> None:
    link, stream = opened(cut=cut, capabilities=SAMPLING)
    link.said.clear()
    first, second = link.call(), link.call()
    asked = link.asked[-2:]
    assert {a.request.target for a in asked} == {"/messages?sessionId=s3cret-s3ssion"}
    assert not any("mcp-session-id" in a.headers for a in asked)
    link.answer(asked[0], 202, "Accepted")
    link.data(stream, event(response(asked[1], TEXT)))
    assert link.one(ResultReady).call is second
    link.answer(asked[1], 200, "ok", "text/plain")
    link.data(stream, event(response(asked[0], TEXT)))
    assert link.of(ResultReady)[1].call is first
    link.data(stream, event(note("notifications/tools/list_changed")))
    link.one(ListChanged)
    link.data(stream, event({**SAMPLE, "id": "q"}))
    link.engine.provide_input(link.one(InputRequired).round, {"q": SAMPLED}, now=0.0)
    link.drain()
    assert link.last.request.target == "/messages?sessionId=s3cret-s3ssion"
    assert link.last.message["id"] == "q"
    link.answer(link.last, 202)
    assert {k: v for k, v in link.client.stats().items() if v} == {"exchanges": 1}


@pytest.mark.case("W-04")
def test_an_answer_in_the_body_of_its_post_is_taken_once() -> None:
    link, stream = opened()
    link.call()
    asked = link.last
    link.reply(TEXT, asked)
    assert link.one(DeviationTolerated).fault is PeerFault.UNEXPECTED_STATUS
    link.one(ResultReady)
    link.data(stream, event(response(asked, TEXT)))
    link.one(ResultReady)
    assert link.one(MessageIgnored).reason is Harmless.LATE_RESPONSE


@pytest.mark.case("W-04")
@pytest.mark.parametrize("body", ["", "{}", "{", '"x"'])
def test_a_body_that_is_no_answer_is_not_one(body: str) -> None:
    link, stream = opened()
    link.call()
    asked = link.last
    link.answer(asked, 200, body, JSON)
    assert not link.of(RequestFailed)
    link.data(stream, event(response(asked, TEXT)))
    link.one(ResultReady)


@pytest.mark.req("P7")
@pytest.mark.case("H-05", "H-07")
def test_a_post_that_is_refused_fails_its_call() -> None:
    link, _ = opened()
    link.call()
    link.answer(link.last, 500, "boom", "text/plain")
    link.call()
    link.reply(error=-32602, status=400)
    link.call()
    link.fail(link.last)
    link.call()
    link.answer(link.last, 404)
    errors: list[Any] = [e.error for e in link.of(RequestFailed)]
    assert errors[0].excerpt == "boom"
    assert errors[1].code == -32602
    assert errors[2].retryable
    assert errors[3].status == 404
    assert link.engine.state.name == "READY"


@pytest.mark.req("P7", "K1")
def test_a_cancel_is_posted() -> None:
    link, _ = opened()
    call = link.call()
    link.answer(link.last, 202)
    link.engine.cancel(call, now=0.0)
    link.drain()
    assert link.last.rpc == "notifications/cancelled"
    assert link.last.request.target.startswith("/messages")
    link.answer(link.last, 202)
    assert {k: v for k, v in link.client.stats().items() if v} == {"exchanges": 1}


def test_an_acknowledgement_that_the_answer_overtakes_is_waited_for() -> None:
    link, stream = opened()
    link.call()
    asked = link.last
    link.data(stream, event(response(asked, TEXT)))
    assert not asked.aborted, "the connection can be used again"
    link.advance(5.0)
    assert asked.aborted, "but not for ever"


def test_a_second_endpoint_changes_nothing() -> None:
    link, stream = opened()
    link.data(stream, b"event: endpoint\ndata: /elsewhere\n\n")
    assert link.of(MessageIgnored)[-1].reason is Harmless.OTHER_EVENT
    link.call()
    assert link.last.request.target.startswith("/messages")


@pytest.mark.req("R7")
def test_an_event_over_its_bound_fails_the_call_that_it_answers() -> None:
    link, stream = opened(limits=Limits(max_event=500))
    call = link.call()
    other = link.call()
    link.data(stream, event({**response(link.asked[-2], TEXT), "x": "x" * 600}))
    link.one(LimitHit)
    assert link.one(RequestFailed).call is call
    link.data(stream, event(response(link.asked[-1], TEXT)))
    assert link.one(ResultReady).call is other


# the end -------------------------------------------------------------------------------------------


@pytest.mark.req("P7")
@pytest.mark.case("W-02")
@pytest.mark.parametrize("how", ["end", "fail"])
def test_the_end_of_the_stream_is_the_end(how: str) -> None:
    link, stream = opened()
    calls = [link.call(), link.call()]
    link.answer(link.asked[-2], 202)
    if how == "end":
        link.end(stream)
    else:
        link.fail(stream)
    assert [e.call for e in link.of(RequestFailed)] == calls
    assert all(isinstance(e.error, ConnectionEnded) for e in link.of(RequestFailed))
    link.one(PeerGone)
    assert isinstance(link.one(SessionEnded).error, ConnectionEnded)
    assert link.finished()
    assert link.quiet()


def test_the_end_during_the_handshake_is_the_end() -> None:
    link = refused()
    stream = link.last
    link.stream(stream, ENDPOINT, end=False)
    link.end(stream)
    assert link.one(SessionEnded).error
    assert link.finished()


@pytest.mark.req("P6")
def test_a_close_ends_the_stream_and_deletes_nothing() -> None:
    link, stream = opened()
    link.close()
    assert stream.aborted
    assert link.finished()
    assert "DELETE" not in link.rpcs()
    assert link.one(SessionEnded).error is None


def test_a_redirect_of_the_stream_is_followed() -> None:
    link = refused()
    link.answer(link.last, 307, "", None, [("location", "/sse/")])
    assert (link.last.method, link.last.request.target) == ("GET", "/sse/")
    link.stream(link.last, b"event: endpoint\ndata: messages\n\n", end=False)
    assert link.last.request.target == "/sse/messages", "an address is read where it was found"


def test_no_secret_of_the_endpoint_is_shown() -> None:
    link, stream = opened()
    link.call()
    link.fail(link.last)
    link.end(stream)
    shown = [repr(link.client), *(repr(a.request) for a in link.asked)]
    shown += [repr(e) + str(getattr(e, "error", "")) for e in link.said]
    assert not any("s3cret" in text for text in shown)


def test_the_state_is_that_of_the_table() -> None:
    old = OldSse()
    assert (old.state, old.in_use, old.endpoint) == (OldSseState.IDLE, False, None)
    assert old.end() is OldSseState.IDLE
    old.ask()
    old.opened()
    old.name(parse_url("https://example.com/sse"), b" /m \n")
    assert (old.state, old.in_use, str(old.endpoint)) == (OldSseState.READY, True, "https://example.com/m")
    assert old.end() is OldSseState.READY
    assert (old.state, old.endpoint) == (OldSseState.OVER, None)


def test_the_answer_can_be_json_of_any_size() -> None:
    link, stream = opened()
    link.call()
    big = {"content": [{"type": "text", "text": "x" * 100_000}]}
    link.data(stream, json.dumps(response(link.last, big)).join(["data: ", "\n\n"]).encode())
    assert link.one(ResultReady).raw == big
