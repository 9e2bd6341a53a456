"""Exchanges that wait on this side, for somebody to be authorized: no deadline of theirs passes."""

from __future__ import annotations

import pytest

from sansmcp import CallTimeout, ConnectTimeout, Legacy, RequestFailed, SessionEnded, Timeouts
from sansmcp.events import DeliveryFailed, EraDecided
from sansmcp.http.client import ENDPOINT_WAIT
from sansmcp.http.client_sessions import INITIALIZED_WAIT, MESSAGE_WAIT
from sansmcp.http.old_sse import OldSseUse

from .http_client_support import LEGACY, Link, linked
from .support import DISCOVER, initialize_result

pytestmark = pytest.mark.req("T2")
LONG = 10_000.0


def hold(link: Link) -> int:
    """The exchange that was asked for last waits."""
    exchange = link.last.id
    link.client.exchange_held(exchange, link.now)
    link.advance(LONG)
    return exchange


def release(link: Link, exchange: int) -> None:
    link.client.exchange_released(exchange, link.now)
    link.drain()


def test_a_call() -> None:
    link = linked()
    call = link.call(timeout=30.0)
    exchange = hold(link)
    assert not call.done
    release(link, exchange)
    link.advance(29.9)
    assert not call.done
    link.advance(0.2)
    assert isinstance(link.one(RequestFailed).error, CallTimeout)


def test_the_total_time_of_a_call_runs() -> None:
    link = linked()
    call = link.call(timeout=5.0, total_timeout=100.0)
    hold(link)
    assert call.done
    error = link.one(RequestFailed).error
    assert isinstance(error, CallTimeout)
    assert error.reason == "total_timeout"


def test_the_probe_and_the_time_to_connect() -> None:
    link = Link(timeouts=Timeouts(probe=5.0, connect=20.0)).start()
    link.advance(4.0)
    exchange = hold(link)
    release(link, exchange)
    link.advance(4.9)
    assert link.rpcs() == ["server/discover"]
    link.advance(0.2)
    assert link.last.rpc == "initialize"
    link.advance(10.8)
    assert not link.of(SessionEnded)
    link.advance(0.2)
    assert isinstance(link.one(SessionEnded).error, ConnectTimeout)


def test_a_probe_that_is_answered_after_all() -> None:
    link = Link().start()
    exchange = hold(link)
    release(link, exchange)
    link.reply(DISCOVER)
    link.one(EraDecided)
    link.advance(LONG)
    assert not link.of(SessionEnded)


def test_a_notification() -> None:
    link = linked(LEGACY, mode=Legacy())
    link.engine.notify("notifications/roots/list_changed", None, now=link.now)
    link.drain()
    wait = link.engine.timeouts.request or MESSAGE_WAIT
    exchange = hold(link)
    assert not link.of(DeliveryFailed)
    release(link, exchange)
    link.advance(wait - 0.1)
    assert not link.of(DeliveryFailed)
    link.advance(0.2)
    link.one(DeliveryFailed)


def test_what_follows_a_handshake_waits_as_long() -> None:
    link = Link(mode=Legacy()).start()
    link.reply(initialize_result(LEGACY))
    assert link.last.rpc == "notifications/initialized"
    exchange = hold(link)
    link.engine.list_tools(now=link.now)
    link.drain().advance(INITIALIZED_WAIT + 1)
    assert "tools/list" not in link.rpcs()
    release(link, exchange)
    link.advance(INITIALIZED_WAIT + 0.1)
    assert "tools/list" in link.rpcs()


def test_the_stream_of_the_old_transport() -> None:
    link = Link(mode=Legacy(), http={"old_sse": OldSseUse.ONLY}).start()
    wait = link.engine.timeouts.probe or ENDPOINT_WAIT
    exchange = hold(link)
    assert not link.of(SessionEnded)
    release(link, exchange)
    link.advance(wait - 0.1)
    assert not link.of(SessionEnded)
    link.advance(0.2)
    link.one(SessionEnded)


def test_one_that_is_over() -> None:
    link = linked()
    link.client.exchange_held(99, link.now)
    link.client.exchange_released(99, link.now)
    call = link.call()
    exchange = link.last.id
    link.engine.cancel(call, now=link.now)
    link.drain()
    link.client.exchange_held(exchange, link.now)
    link.client.exchange_released(exchange, link.now)
    link.engine.exchange_held(999, now=link.now)
    link.engine.exchange_released(999, now=link.now)
    assert link.drain().quiet()
