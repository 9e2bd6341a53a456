"""What an HTTP server answers with, one object or a stream, and when."""

from __future__ import annotations

import pytest

from sansmcp import (
    Harmless,
    LimitHit,
    LocalProtocolError,
    RequestCancelled,
)

from .http_support import (
    BOTH,
    LEVEL,
    PROGRESS,
    Http,
    reasons,
)

# one object, or a stream ------------------------------------------------------------------------


@pytest.mark.req("R2", "R12")
@pytest.mark.case("H-13", "H-15")
@pytest.mark.parametrize(
    ("accept", "before", "streams"),
    [
        (BOTH, None, False),
        (BOTH, "progress", True),
        (BOTH, "log", True),
        (BOTH, "silence", True),
        ("application/json", None, False),
        ("application/json", "progress", False),
        ("application/json", "silence", False),
        ("text/event-stream", None, True),
        ("text/event-stream", "progress", True),
    ],
)
def test_an_answer_is_one_object_unless_something_comes_before_it(
    accept: str, before: str | None, streams: bool
) -> None:
    http = Http()
    params = {"_meta": {"progressToken": "t", LEVEL: "info"}}
    reply = http.ask("tools/list", params, accept=accept)
    assert reply.waits
    if before == "progress":
        http.progress(1)
    elif before == "log":
        http.server.log("error", "x", now=0.0, request=http.request)
        http.drain()
    elif before == "silence":
        http.advance(15)
    assert (reply.status == 200) == (streams and before is not None)
    assert http.answer({"tools": []})
    assert (reply.status, reply.streams, reply.ended) == (200, streams, True)
    assert reply.messages[-1]["result"]["tools"] == []
    told = [m["method"] for m in reply.messages[:-1]]
    if streams:
        expected = {"progress": ["notifications/progress"], "log": ["notifications/message"]}
        assert told == expected.get(before or "", [])
        assert reply.headers == {
            "content-type": "text/event-stream",
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
        }
        assert b"id:" not in reply.body
        assert b"retry:" not in reply.body
    elif before == "progress":
        assert Harmless.UNDELIVERABLE in reasons(http), "never in silence"
    assert http.server.next_timeout() is None


@pytest.mark.req("R8")
@pytest.mark.case("E-07", "E-13")
def test_a_silent_stream_is_kept_alive() -> None:
    http = Http(keep_alive=15.0)
    reply = http.ask("tools/list", PROGRESS)
    assert http.server.next_timeout() == 15.0
    http.advance(14.9)
    assert reply.waits
    http.advance(0.1)
    assert (reply.status, reply.comments) == (200, 1), "the head leaves at once"
    http.advance(45)
    assert reply.comments == 4
    http.advance(10)
    http.progress(1)
    http.advance(14)
    assert reply.comments == 4, "progress is a sign of life"
    http.advance(1)
    assert reply.comments == 5
    http.answer()
    assert reply.ended
    assert len(reply.messages) == 2
    http.advance(1000)
    assert reply.comments == 5
    assert http.server.next_timeout() is None


@pytest.mark.req("R8")
def test_keep_alive_can_be_off() -> None:
    http = Http(keep_alive=None)
    reply = http.ask("tools/list")
    assert http.server.next_timeout() is None
    http.advance(1000)
    http.answer()
    assert not reply.streams
    for seconds in (0, -1.0):
        with pytest.raises(LocalProtocolError, match="keep_alive"):
            Http(keep_alive=seconds)


def test_timeouts_may_be_early_late_and_repeated() -> None:
    http = Http()
    reply = http.ask("tools/list")
    for now in (3.0, 1.0, 14.0, 100.0, 100.0, 50.0):
        http.server.handle_timeout(now)
        http.drain()
    assert reply.comments == 1


@pytest.mark.req("R10")
@pytest.mark.parametrize("committed", [False, True])
def test_a_request_that_takes_too_long_is_answered_504(committed: bool) -> None:
    http = Http(response_timeout=30.0, keep_alive=10.0 if committed else None)
    reply = http.ask("tools/list", id="x")
    http.advance(29)
    assert reply.status == (200 if committed else None)
    http.advance(1)
    assert reply.status == (200 if committed else 504)
    assert reply.messages[-1]["error"]["code"] == -32603
    assert reply.messages[-1]["id"] == "x"
    assert reply.ended
    assert http.one(RequestCancelled).reason == "no answer within 30 s"
    assert http.one(LimitHit).limit == "response_timeout"
    assert http.answer() is False
    quick = http.ask("tools/list", id="y")
    http.answer()
    assert quick.status == 200
    gone = http.ask("tools/list", id="z")
    http.leave(gone)
    http.advance(100)
    assert http.server.stats()["response_timers"] == 0
    with pytest.raises(LocalProtocolError, match="response_timeout"):
        Http(response_timeout=0)


@pytest.mark.case("H-12")
@pytest.mark.parametrize("committed", [False, True])
def test_a_modern_client_that_leaves_has_cancelled(committed: bool) -> None:
    http = Http()
    reply = http.ask("tools/list", PROGRESS)
    if committed:
        http.progress(1)
    said = reply.body
    http.leave(reply)
    cancelled = http.one(RequestCancelled)
    assert cancelled.request is http.request
    assert not http.request.open
    assert http.answer() is False
    assert http.progress(2) is False
    http.advance(100)
    assert reply.body == said
    assert not reply.ended
    http.leave(reply)
    http.server.exchange_closed(99, 0.0)
    assert len(http.of(RequestCancelled)) == 1
