"""Event streams of legacy servers that break, and how the HTTP client comes back for the rest."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    CallTimeout,
    LocalProtocolError,
    MessageIgnored,
    PeerFault,
    ProgressReported,
    RequestFailed,
    ResultReady,
    Timeouts,
)
from sansmcp.errors import AuthorizationRequired, McpError, StreamLost
from sansmcp.http.resume import EventStream, ReconnectPolicy

from .http_client_support import CUTS, LEGACY, SESSION, SSE, Asked, Link, event, linked, note, response
from .support import TEXT

PRIMING = b"id: s1-0\ndata:\n\n"


def calling(**options: Any) -> tuple[Link, Asked]:
    """A legacy client that called a tool."""
    link = linked(LEGACY, **options)
    link.call(progress=True)
    return link, link.last


def progress(asked: Asked, value: int, **fields: Any) -> bytes:
    return event(note("notifications/progress", progressToken=asked.message["id"], progress=value), **fields)


@pytest.mark.req("P3", "P11", "R1")
@pytest.mark.case("E-01", "E-08")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("broken", [False, True])
def test_a_stream_that_gave_an_id_is_resumed(cut: Any, broken: bool) -> None:
    link, asked = calling(cut=cut)
    link.stream(asked, PRIMING, progress(asked, 1, id="s1-1"), b"data: {", end=False)
    if broken:
        link.fail(asked)
    else:
        link.end(asked)
    assert not link.of(RequestFailed)
    link.advance(0.999)
    assert link.rpcs() == ["tools/call"]
    link.advance(0.001)
    get = link.last
    assert (get.method, get.request.target, get.request.body) == ("GET", "/mcp", b"")
    assert get.headers["last-event-id"] == "s1-1"
    assert get.headers["accept"] == SSE
    assert get.headers["mcp-session-id"] == SESSION
    assert get.headers["mcp-protocol-version"] == LEGACY
    link.stream(get, progress(asked, 2), event(response(asked, TEXT), id="s1-3"))
    assert [e.progress for e in link.of(ProgressReported)] == [1, 2]
    link.one(ResultReady)
    link.advance(100.0)
    assert len(link.asked) == 2
    assert link.quiet()


@pytest.mark.req("P3", "P11")
@pytest.mark.case("E-11")
def test_the_servers_own_wait_rules() -> None:
    link, asked = calling()
    link.stream(asked, b"id: event-1\nretry: 500\ndata:\n\n")
    link.advance(0.499)
    assert len(link.asked) == 1
    link.advance(0.001)
    assert link.last.headers["last-event-id"] == "event-1"
    link.stream(link.last, b"retry: 90000\ndata:\n\n")
    link.advance(59.0)
    assert len(link.asked) == 2, "a wait that is longer than our own is kept as well"


@pytest.mark.req("P3")
@pytest.mark.case("E-08")
@pytest.mark.parametrize(
    "events", [b"", b"data:\n\n", b"id: x\n", b"id: a\ndata:\n\nid:\ndata:\n\n", "id: é\ndata:\n\n".encode()]
)
def test_without_an_id_there_is_nothing_to_go_on_from(events: bytes) -> None:
    link, asked = calling()
    link.stream(asked, events)
    error = link.one(RequestFailed).error
    assert isinstance(error, StreamLost)
    assert error.retryable
    assert error.fault is PeerFault.STREAM_ENDED
    link.advance(100.0)
    assert link.rpcs() == ["tools/call"]
    assert link.quiet()


@pytest.mark.req("P3")
@pytest.mark.case("E-10")
@pytest.mark.parametrize("how", ["result", "error", "cancelled"])
def test_what_is_answered_or_unwanted_is_not_resumed(how: str) -> None:
    link, asked = calling()
    link.stream(asked, PRIMING, end=False)
    match how:
        case "result":
            link.data(asked, event(response(asked, TEXT), id="s1-1"))
        case "error":
            link.data(asked, event(response(asked, error=-32603), id="s1-1"))
            assert isinstance(link.one(RequestFailed).error, McpError)
        case _:
            link.engine.cancel(one(link), now=0.0)
            link.drain()
    link.end(asked)
    link.advance(100.0)
    assert "GET" not in link.rpcs()


def one(link: Link) -> Any:
    (call,) = link.engine._calls
    return call


@pytest.mark.req("P3")
@pytest.mark.case("E-11")
@pytest.mark.parametrize("how", ["empty", "primed", "garbled", "broken", "refused", "unheard"])
def test_reconnects_are_counted_until_there_is_something_new(how: str) -> None:
    link, asked = calling(timeouts=Timeouts(request=1000.0))
    link.stream(asked, PRIMING)
    times = []
    for _ in range(20):
        link.advance(31.0)
        get = link.last
        if get.over:
            break
        times.append(link.now)
        match how:
            case "empty":
                link.stream(get)
            case "primed":
                link.stream(get, b"id: s1-%d\ndata:\n\n" % len(times))
            case "garbled":
                link.stream(get, b"id: s1-%d\ndata: no message\n\n" % len(times))
            case "broken":
                link.head(get, 200, ("content-type", SSE))
                link.fail(get)
            case "refused":
                link.answer(get, 503)
            case _:
                link.fail(get)
    assert len(times) == 5
    error = link.one(RequestFailed).error
    assert isinstance(error, StreamLost)
    assert "5 tries" in str(error)
    assert link.quiet()


@pytest.mark.req("P3")
@pytest.mark.case("E-11")
def test_a_new_message_starts_the_count_anew() -> None:
    link, asked = calling(timeouts=Timeouts(request=1000.0))
    link.stream(asked, PRIMING)
    for step in range(12):
        link.advance(1.0)
        assert len(link.of_rpc("GET")) == step + 1
        link.stream(link.last, progress(asked, step + 1, id=f"s1-{step}"))
    link.advance(1.0)
    link.stream(link.last, response(asked, TEXT))
    link.one(ResultReady)


@pytest.mark.req("P3")
def test_waits_double_up_to_their_bound() -> None:
    link, asked = calling(timeouts=Timeouts(request=1000.0), http={"reconnect": ReconnectPolicy(limit=8)})
    link.stream(asked, PRIMING)
    waits = []
    for _ in range(8):
        when = link.client.next_timeout()
        assert when is not None
        waits.append(when - link.now)
        link.advance(waits[-1])
        link.fail(link.last)
    assert waits == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0, 30.0]


@pytest.mark.req("P3")
def test_streams_that_break_together_are_resumed_each_for_itself() -> None:
    link, first = calling()
    link.stream(first, b"id: a\nretry: 3000\ndata:\n\n")
    second = link.call()
    link.stream(link.last, b"id: b\nretry: 2000\ndata:\n\n")
    assert link.client.stats()["paused_streams"] == 2
    link.call()
    link.reply(TEXT)
    link.advance(2.0)
    assert link.last.headers["last-event-id"] == "b"
    link.stream(link.last, response(link.of_rpc("tools/call")[1], TEXT))
    assert link.of(ResultReady)[-1].call is second
    link.advance(1.0)
    assert link.last.headers["last-event-id"] == "a"
    link.stream(link.last, response(first, TEXT))
    assert len(link.of(ResultReady)) == 3
    assert link.quiet()


@pytest.mark.req("P3")
def test_a_server_that_is_busy_says_how_long() -> None:
    link, asked = calling()
    link.stream(asked, PRIMING)
    link.advance(1.0)
    link.answer(link.last, 503, headers=[("retry-after", "20")])
    link.advance(19.9)
    assert len(link.of_rpc("GET")) == 1
    link.advance(0.1)
    assert len(link.of_rpc("GET")) == 2


@pytest.mark.req("P3")
@pytest.mark.case("E-11")
def test_no_reconnects_are_none() -> None:
    link, asked = calling(http={"reconnect": ReconnectPolicy(limit=0)})
    link.stream(asked, PRIMING)
    assert isinstance(link.one(RequestFailed).error, StreamLost)


@pytest.mark.req("P3")
@pytest.mark.parametrize(
    ("status", "kind", "error"),
    [
        (405, None, StreamLost),
        (404, None, StreamLost),
        (204, None, StreamLost),
        (200, "text/html", StreamLost),
        (200, "application/json", StreamLost),
        (401, None, AuthorizationRequired),
    ],
)
def test_a_server_that_does_not_resume_ends_the_call(status: int, kind: Any, error: Any) -> None:
    link, asked = calling()
    link.stream(asked, PRIMING)
    link.advance(1.0)
    link.answer(link.last, status, "" if kind is None else "x", kind)
    assert isinstance(link.one(RequestFailed).error, error)
    link.advance(100.0)
    assert len(link.of_rpc("GET")) == 1
    assert link.quiet()


@pytest.mark.req("L1", "P3")
@pytest.mark.parametrize("resumed", [False, True])
def test_the_calls_own_deadline_ends_a_stream_in_any_state(resumed: bool) -> None:
    link, asked = calling(timeouts=Timeouts(request=10.0))
    link.stream(asked, b"id: 1\nretry: 20000\ndata:\n\n" if not resumed else PRIMING)
    link.advance(5.0)
    assert (link.last.rpc == "GET") == resumed
    link.advance(5.0)
    assert isinstance(link.one(RequestFailed).error, CallTimeout)
    assert link.last.rpc == "notifications/cancelled"
    link.answer(link.last, 202)
    assert all(a.aborted or a.over for a in link.asked)
    assert link.quiet()
    link.advance(50.0)
    assert link.rpcs().count("GET") == resumed


@pytest.mark.req("P3")
def test_a_close_while_a_stream_waits_forgets_it() -> None:
    link, asked = calling()
    link.stream(asked, PRIMING)
    link.close()
    link.advance(10.0)
    assert "GET" not in link.rpcs()
    assert link.quiet()


@pytest.mark.req("P3")
def test_the_stream_of_the_handshake_itself_is_resumed() -> None:
    from sansmcp import EraDecided, Legacy

    from .support import initialize_result

    link = Link(mode=Legacy()).start()
    asked = link.last
    link.stream(asked, PRIMING, headers=[("mcp-session-id", SESSION)])
    link.advance(1.0)
    assert link.last.headers["last-event-id"] == "s1-0"
    assert link.last.headers["mcp-session-id"] == SESSION
    link.stream(link.last, response(asked, initialize_result()))
    link.one(EraDecided)
    assert link.last.headers["mcp-session-id"] == SESSION


@pytest.mark.case("E-04", "E-14")
def test_field_corners_do_not_matter() -> None:
    link, asked = calling()
    body = json.dumps(response(asked, TEXT)).encode()
    link.stream(asked, b"\xef\xbb\xbf:x\rdata\r\rretry: 12x\rdata:%b\r\r" % body, end=False)
    link.one(ResultReady)


def test_a_broken_event_is_told_and_the_next_one_works() -> None:
    link, asked = calling()
    link.stream(asked, b"data: {\n\n", b"data: 5\n\n", b'data: "text"\n\n', response(asked, TEXT))
    assert [e.reason for e in link.of(MessageIgnored)] == [
        PeerFault.INVALID_JSON,
        PeerFault.NOT_A_MESSAGE,
        PeerFault.NOT_A_MESSAGE,
    ]
    link.one(ResultReady)


@pytest.mark.parametrize("bad", [{"limit": -1}, {"delay": -1.0}, {"max_delay": -0.1}])
def test_a_policy_has_no_negative_numbers(bad: Any) -> None:
    with pytest.raises(LocalProtocolError):
        ReconnectPolicy(**bad)


def test_a_wait_is_bounded_however_many_tries_there_were() -> None:
    policy = ReconnectPolicy()
    assert policy.wait(10_000, None) == 30.0
    assert policy.wait(10_000, 0.0) == 0.0


@pytest.mark.parametrize(
    ("last_id", "resumable"),
    [
        (None, False),
        ("x", True),
        ("a b", True),
        (" x", False),
        ("x\t", False),
        ("é", False),
        ("x" * 1024, True),
        ("x" * 1025, False),
        ("\x7f", False),
    ],
)
def test_only_an_id_that_fits_into_a_header_can_be_gone_on_from(last_id: str | None, resumable: bool) -> None:
    stream = EventStream(1, standing=False, last_id=last_id)
    assert stream.resumable is resumable
    assert last_id is None or last_id not in repr(stream) or len(last_id) < 3
