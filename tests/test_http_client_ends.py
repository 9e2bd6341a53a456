"""The HTTP client: how calls end, and how it ends itself, with nothing left behind."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    CallCancelled,
    CallTimeout,
    Legacy,
    Limits,
    RequestFailed,
    ResultReady,
    SessionEnded,
    Timeouts,
)
from sansmcp.errors import HttpFailure

from .http_client_support import DONE, JSON, LEGACY, SSE, Asked, Link, linked, response
from .support import initialize_result


def ended(link: Link) -> Any:
    return link.one(SessionEnded).error


def failed(link: Link) -> Any:
    return link.one(RequestFailed).error


# ends of calls -----------------------------------------------------------------------------------


@pytest.mark.req("K2", "K3")
@pytest.mark.case("C-01", "H-12")
@pytest.mark.parametrize("state", ["waiting", "collecting", "streaming"])
def test_a_modern_cancel_aborts_the_exchange_and_posts_nothing(state: str) -> None:
    link = linked()
    call = link.call()
    asked = link.last
    if state != "waiting":
        link.head(asked, 200, ("content-type", JSON if state == "collecting" else SSE))
    link.engine.cancel(call, now=0.0)
    link.drain()
    assert asked.aborted
    assert isinstance(failed(link), CallCancelled)
    link.client.response_data(asked.id, b"late", 0.0)
    link.client.response_ended(asked.id, 0.0)
    link.drain()
    assert link.rpcs() == ["tools/call"]
    assert link.quiet()


@pytest.mark.req("K2", "L1")
@pytest.mark.case("C-08")
def test_a_modern_timeout_aborts_the_exchange() -> None:
    link = linked(timeouts=Timeouts(request=10.0))
    link.call()
    link.head(link.last, 200, ("content-type", SSE))
    link.data(link.last, b":\n\n" * 10)
    link.advance(10.0)
    assert isinstance(failed(link), CallTimeout), "comments are liveness, not progress"
    assert link.last.aborted
    assert link.quiet()


@pytest.mark.req("K1")
@pytest.mark.case("H-12")
def test_a_legacy_cancel_is_a_notification_and_then_nobody_listens() -> None:
    link = linked(LEGACY)
    call = link.call()
    asked = link.last
    link.engine.cancel(call, now=0.0, reason="enough")
    link.drain()
    cancel = link.one_rpc("notifications/cancelled")
    assert cancel.message["params"] == {"requestId": asked.message["id"], "reason": "enough"}
    assert asked.aborted
    link.answer(cancel, 202)
    assert link.quiet()


@pytest.mark.req("AA12")
def test_many_calls_leave_nothing_behind() -> None:
    link = linked()
    calls = [link.call() for _ in range(300)]
    asked: list[Asked] = list(link.asked)
    for number, (call, one) in enumerate(zip(calls, asked, strict=True)):
        match number % 3:
            case 0:
                link.reply(DONE, one)
            case 1:
                link.engine.cancel(call, now=0.0)
            case _:
                link.fail(one)
    link.drain()
    assert len(link.of(ResultReady)) == 100
    assert len(link.of(RequestFailed)) == 200
    assert link.quiet()
    assert link.client.next_timeout() is None


def test_what_is_reported_too_late_or_twice_has_no_effect() -> None:
    link = linked()
    link.call()
    asked = link.last
    link.head(asked, 200, ("content-type", JSON))
    link.head(asked, 500)
    link.client.response_started(99, 200, [], 0.0)
    link.client.response_data(99, b"x", 0.0)
    link.client.response_ended(99, 0.0)
    link.client.exchange_failed(99, "x", 0.0)
    link.data(asked, json.dumps(response(asked, DONE)).encode())
    link.end(asked)
    link.fail(asked)
    link.one(ResultReady)
    assert not link.of(RequestFailed)


def test_informational_responses_are_passed_over() -> None:
    link = linked()
    link.call()
    link.head(link.last, 103)
    link.reply(DONE)
    link.one(ResultReady)


def test_an_end_without_a_response_is_a_failure() -> None:
    link = linked()
    link.call()
    link.end(link.last)
    assert isinstance(failed(link), HttpFailure)
    assert failed(link).retryable


# the end -----------------------------------------------------------------------------------------


@pytest.mark.req("K2")
def test_a_modern_close_aborts_everything_and_says_nothing() -> None:
    link = linked()
    link.call()
    link.call()
    assert not link.finished()
    link.close()
    assert all(a.aborted for a in link.asked)
    assert link.finished()
    assert link.rpcs() == ["tools/call"] * 2
    assert ended(link) is None
    assert len(link.of(RequestFailed)) == 2
    link.close()
    link.one(SessionEnded)
    assert link.quiet()
    assert link.client.next_timeout() is None


def test_an_accepted_notification_does_not_delay_a_close() -> None:
    link = linked()
    link.engine.notify("notifications/custom", now=0.0)
    link.drain()
    link.head(link.last, 202)
    link.close()
    assert link.last.aborted
    assert link.finished()


def test_a_close_before_the_start_is_an_end() -> None:
    link = Link()
    link.close()
    assert link.finished()
    assert link.asked == []


def test_a_close_while_connecting_aborts_the_probe() -> None:
    link = Link().start()
    link.close()
    assert link.last.aborted
    assert link.finished()


@pytest.mark.req("T1")
def test_no_secret_is_shown() -> None:
    secrets = ["s3cret-t0ken", "s3cret-query", "s3ssion-0f-t3sts"]
    link = Link(
        url="https://example.com/mcp?key=s3cret-query",
        headers=[("authorization", "Bearer s3cret-t0ken")],
        mode=Legacy(),
    ).start()
    link.reply(initialize_result(), headers=[("mcp-session-id", "s3ssion-0f-t3sts")])
    link.answer(link.one_rpc("notifications/initialized"), 500, "no")
    link.answer(link.one_rpc("GET"), 500, "no")
    link.call()
    assert link.last.headers["mcp-session-id"] == "s3ssion-0f-t3sts"
    shown = [repr(link.client), str(link.client.url), repr(link.client.url), repr(link.engine)]
    shown += [repr(ex) for ex in link.client._exchanges.values()]
    link.fail(link.last)
    for said in link.said:
        shown += [repr(said), str(getattr(said, "error", ""))]
    shown += [repr(a.request) for a in link.asked]
    assert not any(secret in text for text in shown for secret in secrets)


@pytest.mark.req("AA12")
def test_reading_stops_while_events_pile_up() -> None:
    link = linked(limits=Limits(max_buffered_events=3))
    for _ in range(4):
        link.call()
    for asked in link.asked:
        link.client.response_started(asked.id, 500, [], 0.0)
        link.client.response_ended(asked.id, 0.0)
    assert not link.client.wants_data
    link.drain()
    assert link.client.wants_data


def test_a_message_has_its_time_from_when_it_was_sent() -> None:
    link = linked()
    link.now = 1000.0
    link.engine.notify("notifications/x", now=link.now)
    link.drain().advance(59.0)
    assert not link.last.aborted
    link.advance(1.0)
    assert link.last.aborted
