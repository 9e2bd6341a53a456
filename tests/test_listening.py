"""A client that listens: one kind of call and one kind of events, whatever the era of the server."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    AbandonRequest,
    CallCancelled,
    CallTimeout,
    ChangeBuffer,
    ChangesMissed,
    CloseReason,
    ConnectionEnded,
    DeviationTolerated,
    Harmless,
    InvalidResponse,
    Limits,
    ListChanged,
    ListKind,
    LocalProtocolError,
    MessageIgnored,
    PeerFault,
    Reconnect,
    Relisten,
    RequestFailed,
    ResourceUpdated,
    ResultReady,
    SubscriptionClosed,
    SubscriptionInterrupted,
    SubscriptionOpened,
    TransportKind,
)
from sansmcp.types import SubscriptionFilter

from .support import LEGACY, MODERN, Driver, connected, initialize_result

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS = "notifications/tools/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
TELLS_ALL = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
ENDINGS = (SubscriptionClosed, RequestFailed, ResultReady)


def modern(**options: Any) -> Driver:
    return connected(check_capabilities=False, **options)


def legacy(version: str = "2025-11-25", capabilities: Any = None, **options: Any) -> Driver:
    from .support import client

    driver = client(**options)
    driver.engine.connect(now=0.0)
    driver.drain()
    driver.reply(error=-32601)
    declared = TELLS_ALL if capabilities is None else capabilities
    driver.reply({**initialize_result(version), "capabilities": declared})
    driver.sent.clear()
    driver.said.clear()
    driver.wire.clear()
    return driver


def listen(driver: Driver, **wanted: Any) -> Any:
    call = driver.engine.listen(now=driver.now, **(wanted or {"tools": True}))
    driver.drain()
    return call


def note(method: str, id: Any = None, **params: Any) -> dict[str, Any]:
    meta = {} if id is None else {"_meta": {ID: id}}
    return {"jsonrpc": "2.0", "method": method, "params": {**meta, **params}}


def ack(id: Any, **granted: Any) -> dict[str, Any]:
    return note(ACKNOWLEDGED, id, notifications=granted or {"toolsListChanged": True})


def opened(driver: Driver, **wanted: Any) -> Any:
    """A call that the server has acknowledged in full."""
    call = listen(driver, **wanted)
    asked = driver.last["params"]["notifications"]
    driver.receive(note(ACKNOWLEDGED, call.request_id, notifications=asked))
    assert driver.of(SubscriptionOpened)[-1].call is call
    return call


def closed(driver: Driver, call: Any) -> SubscriptionClosed:
    """The one end of a call."""
    ends = [e for e in driver.said if isinstance(e, ENDINGS) and e.call is call]
    assert len(ends) == 1, driver.said
    assert isinstance(ends[0], SubscriptionClosed)
    assert call.done
    return ends[0]


def failed(driver: Driver, call: Any) -> Any:
    ends = [e for e in driver.said if isinstance(e, ENDINGS) and e.call is call]
    assert len(ends) == 1, driver.said
    assert isinstance(ends[0], RequestFailed)
    return ends[0].error


def nothing_left(driver: Driver) -> bool:
    names = (
        "calls",
        "subscriptions",
        "subscription_steps",
        "subscribed_uris",
        "relisten_timers",
        "deadlines",
    )
    return not any(driver.engine.stats()[name] for name in names)


def reasons(driver: Driver) -> list[Any]:
    return [e.reason for e in driver.of(MessageIgnored)]


# modern: opening --------------------------------------------------------------------------------


@pytest.mark.req("O1", "O3", "O4")
@pytest.mark.case("M-05")
def test_a_subscription_opens_with_what_is_granted_and_tells_under_its_id() -> None:
    driver = modern()
    call = listen(driver, tools=True, prompts=True, resource_list=True, resources=["a:/", "b:/", "a:/"])
    assert driver.last["method"] == "subscriptions/listen"
    assert driver.last["params"]["notifications"] == {
        "toolsListChanged": True,
        "promptsListChanged": True,
        "resourcesListChanged": True,
        "resourceSubscriptions": ["a:/", "b:/"],
    }
    assert not driver.said, "sent is not open"
    driver.receive(ack(call.request_id, toolsListChanged=True, resourceSubscriptions=["b:/"]))
    event = driver.one(SubscriptionOpened)
    assert event.call is call
    assert event.honored == SubscriptionFilter(tools_list_changed=True, resource_subscriptions=["b:/"])
    assert event.refused == SubscriptionFilter(
        prompts_list_changed=True, resources_list_changed=True, resource_subscriptions=["a:/"]
    )
    driver.receive(note(TOOLS, call.request_id), note(UPDATED, call.request_id, uri="b:/part"))
    assert (driver.one(ListChanged).kind, driver.one(ListChanged).call) == (ListKind.TOOLS, call)
    assert (driver.one(ResourceUpdated).uri, driver.one(ResourceUpdated).call) == ("b:/part", call)
    driver.receive(
        note("notifications/prompts/list_changed", call.request_id), note(UPDATED, call.request_id, uri="a:/")
    )
    assert reasons(driver) == [PeerFault.NOT_SUBSCRIBED] * 2
    driver.advance(10_000.0)
    assert not call.done, "a quiet subscription lasts"
    assert driver.engine.next_timeout() is None


@pytest.mark.req("O3")
def test_ids_are_compared_with_their_type_and_unknown_ones_are_told() -> None:
    driver = modern()
    first, second = opened(driver), opened(driver)
    driver.receive(note(TOOLS, second.request_id))
    assert [e.call for e in driver.of(ListChanged)] == [second]
    strange: list[Any] = [str(first.request_id), float(first.request_id), True, 99, "x", {}, []]
    for id in strange:
        driver.receive(note(TOOLS, id))
    assert len(driver.of(ListChanged)) == 1
    malformed, unknown = PeerFault.MALFORMED_NOTIFICATION, PeerFault.UNKNOWN_SUBSCRIPTION
    assert reasons(driver) == [unknown, malformed, malformed, unknown, unknown, malformed, malformed]


@pytest.mark.req("O2")
def test_without_an_acknowledgment_the_call_times_out() -> None:
    driver = modern()
    call = listen(driver)
    driver.advance(4.9)
    assert not call.done
    driver.advance(0.2)
    error = failed(driver, call)
    assert isinstance(error, CallTimeout)
    assert error.reason == "ack_timeout"
    assert "5 s" in str(error)
    assert driver.last["method"] == "notifications/cancelled"
    patient = listen(driver, tools=True, ack_timeout=60.0)
    driver.advance(30.0)
    driver.receive(ack(patient.request_id))
    assert driver.one(SubscriptionOpened).call is patient


@pytest.mark.req("O2")
@pytest.mark.case("M-05")
@pytest.mark.parametrize("strict", [False, True])
def test_what_comes_before_the_acknowledgment_is_a_violation(strict: bool) -> None:
    driver = modern(strict=strict)
    call = listen(driver)
    driver.receive(note(TOOLS, call.request_id))
    assert reasons(driver) == [PeerFault.NOT_ACKNOWLEDGED]
    assert not driver.of(ListChanged)
    if strict:
        assert failed(driver, call).fault is PeerFault.NOT_ACKNOWLEDGED
        assert driver.last["method"] == "notifications/cancelled"
    else:
        driver.receive(ack(call.request_id))
        assert driver.one(SubscriptionOpened).call is call


@pytest.mark.req("O2")
@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ({"result": {"resultType": "complete"}}, PeerFault.NOT_ACKNOWLEDGED),
        ({"method": ACKNOWLEDGED, "notifications": []}, PeerFault.MALFORMED_NOTIFICATION),
        (
            {"method": ACKNOWLEDGED, "notifications": {"toolsListChanged": 1}},
            PeerFault.MALFORMED_NOTIFICATION,
        ),
        ({"method": ACKNOWLEDGED}, PeerFault.MALFORMED_NOTIFICATION),
    ],
)
def test_an_opening_that_is_none_fails_the_call(message: dict[str, Any], fault: PeerFault) -> None:
    driver = modern()
    call = listen(driver)
    if "result" in message:
        driver.receive({"jsonrpc": "2.0", "id": call.request_id, **message})
    else:
        driver.receive(note(message.pop("method"), call.request_id, **message))
    error = failed(driver, call)
    assert isinstance(error, InvalidResponse)
    assert error.fault is fault
    assert nothing_left(driver)


@pytest.mark.req("O4")
@pytest.mark.parametrize("strict", [False, True])
def test_more_than_was_asked_for_is_not_granted(strict: bool) -> None:
    driver = modern(strict=strict)
    call = listen(driver, tools=True, resources=["a:/"])
    driver.receive(ack(call.request_id, promptsListChanged=True, resourceSubscriptions=["a:/", "b:/"]))
    if strict:
        assert failed(driver, call).fault is PeerFault.NOT_SUBSCRIBED
    else:
        assert driver.one(DeviationTolerated).fault is PeerFault.NOT_SUBSCRIBED
        assert driver.one(SubscriptionOpened).honored == SubscriptionFilter(resource_subscriptions=["a:/"])


@pytest.mark.req("O2")
def test_a_second_acknowledgment_changes_nothing() -> None:
    driver = modern()
    call = opened(driver)
    driver.receive(ack(call.request_id, promptsListChanged=True))
    assert reasons(driver) == [PeerFault.ALREADY_ACKNOWLEDGED]
    assert driver.one(SubscriptionOpened).call is call


@pytest.mark.req("O1")
def test_a_refusal_is_the_servers_error() -> None:
    driver = modern()
    call = listen(driver)
    driver.reply(error=-32601)
    assert failed(driver, call).code == -32601
    assert nothing_left(driver)


@pytest.mark.req("O4")
@pytest.mark.parametrize("strict", [False, True])
def test_a_change_without_an_id_is_told_for_nobody(strict: bool) -> None:
    driver = modern(strict=strict)
    opened(driver)
    driver.receive(note(TOOLS))
    if strict:
        assert reasons(driver) == [PeerFault.UNKNOWN_SUBSCRIPTION]
    else:
        assert driver.one(ListChanged).call is None
        assert driver.one(DeviationTolerated).fault is PeerFault.UNKNOWN_SUBSCRIPTION


@pytest.mark.parametrize("make", [modern, legacy])
def test_what_cannot_be_listened_to_is_refused_here(make: Any) -> None:
    driver = make(limits=Limits(max_subscriptions=1, max_subscribed_uris=1))
    refused: list[dict[str, Any]] = [{"tools": False}, {"resources": []}, {"resources": ["a:/", "b:/"]}]
    for wanted in refused:
        with pytest.raises(LocalProtocolError):
            listen(driver, **wanted)
    assert not driver.sent
    listen(driver)
    with pytest.raises(LocalProtocolError, match="max_subscriptions"):
        listen(driver)
    silent = connected() if make is modern else legacy(capabilities={"tools": {}})
    with pytest.raises(LocalProtocolError, match="no changes"):
        listen(silent)
    assert nothing_left(silent)
    silent.engine.close(now=0.0)
    with pytest.raises(LocalProtocolError, match="ended"):
        listen(silent)
    assert nothing_left(silent)


# modern: ends -----------------------------------------------------------------------------------


def end(driver: Driver, call: Any, how: str) -> None:
    engine, id = driver.engine, call.request_id
    match how:
        case "cancel":
            engine.cancel(call, now=driver.now)
        case "close":
            engine.close(now=driver.now)
        case "lag":
            engine.end_lagging(call, now=driver.now)
        case "result":
            driver.reply({"resultType": "complete", "_meta": {ID: id}}, to=id)
        case "torn":
            driver.receive(note("notifications/cancelled", requestId=id, reason="update"))
        case "both":
            end(driver, call, "result")
            driver.receive(note("notifications/cancelled", requestId=id))
        case "reversed":
            end(driver, call, "torn")
            driver.reply({"resultType": "complete", "_meta": {ID: id}}, to=id)
        case "error":
            driver.reply(error=-32603, to=id)
        case "lost":
            engine.connection_lost(now=driver.now)
    driver.drain()


@pytest.mark.req("O5", "O10", "O11")
@pytest.mark.case("M-08")
@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ("cancel", CloseReason.LOCAL),
        ("close", CloseReason.LOCAL),
        ("lag", CloseReason.LAGGED),
        ("result", CloseReason.GRACEFUL),
        ("torn", CloseReason.GRACEFUL),
        ("both", CloseReason.GRACEFUL),
        ("reversed", CloseReason.GRACEFUL),
        ("error", CloseReason.LOST),
        ("lost", CloseReason.LOST),
    ],
)
def test_a_subscription_ends_once_with_its_reason(how: str, reason: CloseReason) -> None:
    driver = modern()
    call = opened(driver)
    id = call.request_id
    end(driver, call, how)
    event = closed(driver, call)
    assert event.reason is reason
    assert (event.error is None) is (how in ("cancel", "close", "lag", "result", "both"))
    assert nothing_left(driver)
    cancelled = [m["params"]["requestId"] for m in driver.sent if m["method"] == "notifications/cancelled"]
    assert cancelled == ([id] if how in ("cancel", "close", "lag") else [])
    for again in ("cancel", "lag"):
        end(driver, call, again)
    assert closed(driver, call) is event
    if how not in ("close", "lost"):
        driver.said.clear()
        driver.receive(note(TOOLS, id))
        assert reasons(driver) == [Harmless.LATE_CHANGE]


@pytest.mark.req("O5")
@pytest.mark.parametrize("how", ["cancel", "close", "lost", "lag", "torn"])
def test_one_that_never_opened_fails(how: str) -> None:
    driver = modern()
    call = listen(driver)
    end(driver, call, how)
    kind = ConnectionEnded if how in ("close", "lost") else CallCancelled
    assert isinstance(failed(driver, call), kind)
    assert nothing_left(driver)


@pytest.mark.req("O5")
def test_over_http_a_cancel_closes_the_exchange() -> None:
    driver = modern(transport=TransportKind.HTTP)
    call = opened(driver)
    end(driver, call, "cancel")
    assert driver.wired(AbandonRequest)
    assert closed(driver, call).reason is CloseReason.LOCAL


@pytest.mark.req("O5")
@pytest.mark.parametrize(
    "result", [{}, {"resultType": "complete"}, {"resultType": "odd", "_meta": {ID: 1}}, {"_meta": {ID: "2"}}]
)
@pytest.mark.parametrize("strict", [False, True])
def test_a_sloppy_end_is_an_end_and_told(result: dict[str, Any], strict: bool) -> None:
    driver = modern(strict=strict)
    call = opened(driver)
    driver.reply(result, to=call.request_id)
    event = closed(driver, call)
    if strict:
        assert event.reason is CloseReason.LOST
        assert isinstance(event.error, InvalidResponse)
    else:
        assert event.reason is CloseReason.GRACEFUL
        assert driver.one(DeviationTolerated).call is call


def test_an_acknowledgment_confirms_a_remembered_verdict() -> None:
    driver = modern()
    verdict = driver.engine.verdict
    from .support import client

    again = client(prior=verdict)
    again.engine.connect(now=0.0)
    again.drain()
    call = opened(again)
    again.engine.call_tool("x", now=0.0)
    again.drain()
    again.reply(error=-32602)
    assert again.engine.state.name == "READY", "nothing is doubted any more"
    assert not call.done


# asking again -----------------------------------------------------------------------------------


@pytest.mark.req("O6", "Q9")
@pytest.mark.case("W-02")
def test_a_lost_subscription_is_asked_for_again_and_that_is_told() -> None:
    driver = modern()
    call = opened(driver, tools=True, relisten=Relisten(delay=2.0))
    first = call.request_id
    driver.engine.connection_lost(now=0.0, may_restart=True)
    driver.drain()
    event = driver.one(SubscriptionInterrupted)
    assert (event.call, event.attempt, event.retry_at) == (call, 1, 2.0)
    assert isinstance(event.error, ConnectionEnded)
    assert driver.wired(Reconnect)
    driver.engine.connection_restored(now=0.5)
    driver.drain()
    driver.receive(note(TOOLS, first))
    assert reasons(driver) == [Harmless.LATE_CHANGE]
    driver.advance(2.0)
    assert driver.last["method"] == "subscriptions/listen"
    assert call.request_id not in (None, first)
    driver.said.clear()
    driver.receive(ack(call.request_id))
    assert [type(e) for e in driver.said] == [SubscriptionOpened, ChangesMissed]
    driver.receive(note(TOOLS, call.request_id))
    assert driver.one(ListChanged).call is call


@pytest.mark.req("O6")
def test_it_waits_for_the_connection() -> None:
    driver = modern()
    call = opened(driver, tools=True, relisten=Relisten(delay=1.0))
    driver.engine.connection_lost(now=0.0, may_restart=True)
    driver.advance(100.0)
    assert call.request_id is None
    driver.engine.connection_restored(now=100.0)
    driver.drain()
    assert driver.last["method"] == "subscriptions/listen"
    driver.advance(4.0)
    assert not call.done
    driver.receive(ack(call.request_id))
    assert driver.one(ChangesMissed).call is call


@pytest.mark.req("O6")
def test_asking_again_ends_after_its_attempts_with_growing_pauses() -> None:
    driver = modern()
    call = opened(driver, tools=True, relisten=Relisten(attempts=3, delay=10.0, max_delay=25.0))
    end(driver, call, "error")
    assert closed(driver, call).reason is CloseReason.LOST, "a server that says no is not asked again"
    call = opened(driver, tools=True, relisten=Relisten(attempts=3, delay=10.0, max_delay=25.0))
    driver.said.clear()
    driver.engine._fail(call, ConnectionEnded("cut"))
    driver.drain()
    driver.advance(1000.0)
    assert [e.attempt for e in driver.of(SubscriptionInterrupted)] == [1, 2, 3]
    assert [e.retry_at for e in driver.of(SubscriptionInterrupted)] == [10.0, 35.0, 65.0]
    event = closed(driver, call)
    assert event.reason is CloseReason.LOST
    assert isinstance(event.error, CallTimeout)
    assert not driver.of(SubscriptionOpened)


@pytest.mark.req("O5", "O6")
@pytest.mark.parametrize("how", ["cancel", "close", "lag"])
@pytest.mark.parametrize("when", ["paused", "asked"])
def test_it_can_be_ended_meanwhile(how: str, when: str) -> None:
    driver = modern()
    call = opened(driver, tools=True, relisten=Relisten())
    driver.engine._fail(call, ConnectionEnded("cut"))
    driver.drain()
    if when == "asked":
        driver.advance(1.0)
    end(driver, call, how)
    assert closed(driver, call).reason is (CloseReason.LAGGED if how == "lag" else CloseReason.LOCAL)
    assert nothing_left(driver)
    assert driver.engine.next_timeout() is None


def test_a_policy_has_an_end() -> None:
    for options in ({"attempts": 0}, {"delay": -1.0}, {"max_delay": -1.0}):
        with pytest.raises(LocalProtocolError):
            Relisten(**options)
    assert Relisten(delay=1.0).wait(10_000) == 60.0


# legacy -----------------------------------------------------------------------------------------


def subscribed(driver: Driver, *, refuse: tuple[str, ...] = ()) -> None:
    """Answer every request to subscribe, or not to any more."""
    for message in [m for m in driver.sent if m["method"].startswith("resources/") and "id" in m]:
        driver.sent.remove(message)
        refused = message["params"]["uri"] in refuse
        driver.reply(None if refused else {}, error=-32002 if refused else None, to=message["id"])


@pytest.mark.req("O8", "O1")
@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_server_gives_the_same_events(version: str) -> None:
    driver = legacy(version)
    call = listen(driver, tools=True, resources=["a:/", "b:/"])
    assert [(m["method"], m["params"]["uri"]) for m in driver.sent] == [
        ("resources/subscribe", "a:/"),
        ("resources/subscribe", "b:/"),
    ]
    assert not driver.said
    subscribed(driver, refuse=("b:/",))
    event = driver.one(SubscriptionOpened)
    assert event.call is call
    assert event.honored == SubscriptionFilter(tools_list_changed=True, resource_subscriptions=["a:/"])
    assert event.refused == SubscriptionFilter(resource_subscriptions=["b:/"])
    driver.receive({"jsonrpc": "2.0", "method": TOOLS}, note(UPDATED, uri="a:/"), note(UPDATED, uri="c:/"))
    assert [(e.kind, e.call) for e in driver.of(ListChanged)] == [(ListKind.TOOLS, call)]
    assert [(e.uri, e.call) for e in driver.of(ResourceUpdated)] == [("a:/", call), ("c:/", None)]
    driver.engine.cancel(call, now=0.0)
    driver.drain()
    assert closed(driver, call).reason is CloseReason.LOCAL
    assert [(m["method"], m["params"]["uri"]) for m in driver.sent] == [
        ("resources/unsubscribe", "a:/"),
        ("resources/unsubscribe", "b:/"),
    ]
    subscribed(driver)
    assert nothing_left(driver)
    assert not driver.of(ResultReady)
    assert not driver.of(RequestFailed)
    driver.receive({"jsonrpc": "2.0", "method": TOOLS})
    assert driver.of(ListChanged)[-1].call is None, "a session is told unasked"


@pytest.mark.req("O8", "O4")
def test_a_legacy_server_grants_what_it_declares() -> None:
    driver = legacy(capabilities={"tools": {"listChanged": True}, "resources": {}})
    call = listen(driver, tools=True, prompts=True, resources=["a:/"])
    assert not driver.sent
    event = driver.one(SubscriptionOpened)
    assert event.call is call
    assert event.honored == SubscriptionFilter(tools_list_changed=True)
    assert event.refused == SubscriptionFilter(prompts_list_changed=True, resource_subscriptions=["a:/"])


@pytest.mark.req("O8")
def test_two_may_listen_to_one_resource() -> None:
    driver = legacy()
    first, second = listen(driver, resources=["a:/"]), listen(driver, resources=["a:/"])
    subscribed(driver)
    driver.receive(note(UPDATED, uri="a:/x"))
    assert [e.call for e in driver.of(ResourceUpdated)] == [first, second]
    driver.engine.cancel(first, now=0.0)
    driver.drain()
    assert not driver.sent, "the other one still listens"
    driver.engine.cancel(second, now=0.0)
    driver.drain()
    assert driver.last["method"] == "resources/unsubscribe"


@pytest.mark.req("O5", "O8")
@pytest.mark.parametrize("when", ["asked", "open"])
@pytest.mark.parametrize("how", ["cancel", "close", "lag", "lost", "unheard", "expired"])
def test_a_legacy_subscription_ends_once(how: str, when: str) -> None:
    driver = legacy(transport=TransportKind.HTTP)
    call = listen(driver, tools=True, resources=["a:/"])
    if when == "open":
        subscribed(driver)
    if how == "unheard":
        driver.engine.pushes_ended(ConnectionEnded("the stream is gone"), now=0.0)
        driver.drain()
    elif how == "expired":
        driver.engine.session_lost(now=0.0)
        driver.drain()
    else:
        end(driver, call, how)
    if when == "open":
        reason = {"lag": CloseReason.LAGGED, "cancel": CloseReason.LOCAL, "close": CloseReason.LOCAL}
        assert closed(driver, call).reason is reason.get(how, CloseReason.LOST)
    else:
        assert failed(driver, call)
    told = [m for m in driver.sent if m["method"] == "resources/unsubscribe"]
    assert len(told) == (how in ("cancel", "lag", "unheard"))
    if how in ("cancel", "lag", "unheard"):
        subscribed(driver)
    if how == "unheard":
        with_error = listen(driver)
        assert "stream is gone" in str(failed(driver, with_error))
    if how != "expired":
        assert nothing_left(driver)


@pytest.mark.req("O6", "O8")
def test_a_legacy_subscription_is_taken_into_the_next_session() -> None:
    driver = legacy(transport=TransportKind.HTTP)
    call = listen(driver, resources=["a:/"], relisten=Relisten(delay=1.0))
    subscribed(driver)
    driver.engine.session_lost(now=0.0)
    driver.drain()
    assert driver.one(SubscriptionInterrupted).call is call
    driver.sent.clear()
    driver.reply(initialize_result(), to=driver.wire[-1].message["id"])  # type: ignore[attr-defined]
    driver.advance(1.0)
    assert [m["method"] for m in driver.sent if "id" in m] == ["resources/subscribe"]
    subscribed(driver)
    assert driver.one(ChangesMissed).call is call
    driver.receive(note(UPDATED, uri="a:/"))
    assert driver.one(ResourceUpdated).call is call


@pytest.mark.req("O8", "A11")
def test_resources_can_be_subscribed_to_by_hand_in_a_session() -> None:
    driver = legacy()
    call = driver.engine.subscribe_resource("a:/", now=0.0)
    driver.drain()
    assert driver.last["params"] == {"uri": "a:/"}
    driver.reply({})
    assert driver.one(ResultReady).call is call
    driver.receive(note(UPDATED, uri="a:/"))
    assert driver.one(ResourceUpdated).call is None
    driver.engine.unsubscribe_resource("a:/", now=0.0)
    driver.drain()
    assert driver.last["method"] == "resources/unsubscribe"
    with pytest.raises(LocalProtocolError):
        modern().engine.subscribe_resource("a:/", now=0.0)


def test_calls_made_before_the_era_is_known_wait_for_it() -> None:
    from .support import DISCOVER, client

    for version in (MODERN, LEGACY[-1]):
        driver = client()
        driver.engine.connect(now=0.0)
        call = listen(driver)
        assert [m["method"] for m in driver.sent] == ["server/discover"]
        if version == MODERN:
            driver.reply({**DISCOVER, "capabilities": TELLS_ALL})
            driver.receive(ack(call.request_id))
        else:
            driver.reply(error=-32601)
            driver.reply({**initialize_result(), "capabilities": TELLS_ALL})
        assert driver.one(SubscriptionOpened).call is call


# reading ----------------------------------------------------------------------------------------


@pytest.mark.req("O11")
def test_a_buffer_holds_each_piece_of_news_once_and_no_more_than_it_may() -> None:
    buffer = ChangeBuffer(3)
    for event in (ListChanged(ListKind.TOOLS), ResourceUpdated("a:/"), ListChanged(ListKind.TOOLS)):
        assert buffer.put(event)
    assert len(buffer) == 2
    assert buffer.put(ListChanged(ListKind.PROMPTS))
    assert not buffer.put(ResourceUpdated("b:/"))
    assert buffer.put(ResourceUpdated("a:/"))
    seen = []
    while (event := buffer.take()) is not None:  # type: ignore[assignment]
        seen.append(event)
    assert [type(e) for e in seen] == [ListChanged, ResourceUpdated, ListChanged]
    buffer = ChangeBuffer()
    assert [buffer.put(ResourceUpdated(str(number))) for number in range(65)] == [True] * 64 + [False]
    with pytest.raises(LocalProtocolError):
        ChangeBuffer(0)
