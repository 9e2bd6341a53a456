"""Subscriptions at message level: who is told of what, in both eras, and how it ends."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    ErrorCode,
    Harmless,
    LimitHit,
    Limits,
    ListKind,
    LocalProtocolError,
    MessageIgnored,
    PeerFault,
    RequestCancelled,
    RequestReceived,
    ResourceUnwatched,
    ResourceWatched,
    Revision,
    SendNotification,
    ServerCapabilities,
    ServerEngine,
)
from sansmcp.states import ServerState
from sansmcp.types import structure

from .support import LEGACY, ME, Driver, error_code, request

ID = "io.modelcontextprotocol/subscriptionId"
CHANGED = {kind: f"notifications/{kind.value}/list_changed" for kind in ListKind}
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"

TELLS_ALL = {
    "tools": {"listChanged": True},
    "prompts": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
ALL_KINDS = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}


def publisher(capabilities: Any = None, **options: Any) -> Driver:
    """A server that tells of everything, unless `capabilities` say otherwise."""
    declared = structure(
        TELLS_ALL if capabilities is None else capabilities, ServerCapabilities, Revision.V2026_07_28
    )
    return Driver(ServerEngine(ME, now=0.0, capabilities=declared, **options))


def session(version: str = "2025-11-25", capabilities: Any = None, **options: Any) -> Driver:
    """The same with a legacy session."""
    driver = publisher(capabilities, **options)
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    driver.receive({"jsonrpc": "2.0", "id": "init", "method": "initialize", "params": params})
    driver.sent.clear()
    return driver


def listen(driver: Driver, id: Any = 1, **filter: Any) -> None:
    driver.receive(request("subscriptions/listen", {"notifications": filter}, id=id))


def subscribe(driver: Driver, uri: Any, *, off: bool = False, id: Any = 5) -> None:
    method = "resources/unsubscribe" if off else "resources/subscribe"
    driver.receive(request(method, {"uri": uri}, id=id, modern=False))


def change(driver: Driver, kind: ListKind = ListKind.TOOLS) -> list[dict[str, Any]]:
    """What is sent because a list changed."""
    before = len(driver.sent)
    told = driver.engine.notify_changed(kind, now=driver.now)
    driver.drain()
    assert told is (len(driver.sent) > before)
    return driver.sent[before:]


def update(driver: Driver, uri: str) -> list[dict[str, Any]]:
    """What is sent because a resource changed."""
    before = len(driver.sent)
    told = driver.engine.notify_updated(uri, now=driver.now)
    driver.drain()
    assert told is (len(driver.sent) > before)
    return driver.sent[before:]


def tagged(method: str, id: Any, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {"_meta": {ID: id}, **params}}


# server, modern: opening ------------------------------------------------------------------------


@pytest.mark.req("O3", "O4", "O9")
@pytest.mark.parametrize(
    ("capabilities", "asked", "honored"),
    [
        (TELLS_ALL, {}, {}),
        (TELLS_ALL, ALL_KINDS, ALL_KINDS),
        (TELLS_ALL, {"toolsListChanged": False, "promptsListChanged": None}, {}),
        (
            TELLS_ALL,
            {"resourceSubscriptions": ["b:/", "a:/", "b:/"]},
            {"resourceSubscriptions": ["b:/", "a:/"]},
        ),
        (TELLS_ALL, {"resourceSubscriptions": []}, {}),
        (TELLS_ALL, {"taskIds": ["t"], "toolsListChanged": True}, {"toolsListChanged": True}),
        (
            {"tools": {"listChanged": True}, "resources": {}},
            {**ALL_KINDS, "resourceSubscriptions": ["a:/"]},
            {"toolsListChanged": True},
        ),
        (
            {"resources": {"subscribe": True}},
            {**ALL_KINDS, "resourceSubscriptions": ["a:/"]},
            {"resourceSubscriptions": ["a:/"]},
        ),
        ({"prompts": {"listChanged": True}}, {"toolsListChanged": True}, {}),
    ],
)
@pytest.mark.parametrize("id", [0, 1, "1", ""])
def test_the_first_message_says_what_will_be_told(
    capabilities: Any, asked: Any, honored: Any, id: Any
) -> None:
    driver = publisher(capabilities)
    listen(driver, id, **asked)
    assert driver.sent == [tagged(ACKNOWLEDGED, id, notifications=honored)]
    [sent] = driver.wired(SendNotification)
    assert sent.related is driver.engine.subscriptions[0]
    assert not driver.of(RequestReceived)


@pytest.mark.req("O9")
@pytest.mark.parametrize(
    ("capabilities", "params", "code", "text"),
    [
        (None, {}, -32602, "notifications"),
        (None, {"notifications": []}, -32602, "notifications"),
        (None, {"notifications": {"toolsListChanged": "yes"}}, -32602, "toolsListChanged"),
        (None, {"notifications": {"promptsListChanged": 1}}, -32602, "promptsListChanged"),
        (None, {"notifications": {"resourceSubscriptions": "a:/"}}, -32602, "resourceSubscriptions"),
        (None, {"notifications": {"resourceSubscriptions": [1]}}, -32602, "resourceSubscriptions"),
        ({"tools": {}, "resources": {}}, {"notifications": ALL_KINDS}, -32601, "changes"),
        ({"tools": {"listChanged": False}}, {}, -32601, "changes"),
        ({}, {"notifications": {}}, -32601, "changes"),
    ],
)
def test_a_subscription_is_refused(capabilities: Any, params: Any, code: int, text: str) -> None:
    driver = publisher(capabilities)
    driver.receive(request("subscriptions/listen", params))
    assert error_code(driver) == code
    assert text in driver.last["error"]["message"]
    assert not driver.engine.subscriptions
    assert driver.of(MessageIgnored)


@pytest.mark.req("O9")
@pytest.mark.parametrize("version", LEGACY)
def test_only_modern_requests_listen(version: str) -> None:
    driver = session(version)
    driver.receive(request("subscriptions/listen", {"notifications": {}}, modern=False))
    assert error_code(driver) == -32601


def test_a_batch_cannot_hold_a_subscription() -> None:
    driver = session("2025-03-26")
    driver.receive([request("subscriptions/listen", {"notifications": {}})])
    assert driver.last[0]["error"]["code"] == -32600  # type: ignore[index]
    assert driver.of(MessageIgnored)[-1].reason is PeerFault.BATCH_NOT_ALLOWED


@pytest.mark.req("O9")
def test_subscriptions_are_bounded_and_do_not_stop_the_connection() -> None:
    driver = publisher(limits=Limits(max_subscriptions=3, max_open_requests=1, max_subscribed_uris=2))
    for id in range(3):
        listen(driver, id, toolsListChanged=True)
    listen(driver, 3)
    assert error_code(driver) == ErrorCode.INTERNAL_ERROR
    assert driver.last["error"]["data"] == {"limit": "max_subscriptions"}
    assert driver.one(LimitHit).limit == "max_subscriptions"
    assert driver.engine.wants_data, "a subscription is no work"
    driver.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 0}})
    listen(driver, 4, resourceSubscriptions=["a:/", "b:/", "c:/"])
    assert driver.last["error"]["data"] == {"limit": "max_subscribed_uris"}
    listen(driver, 5, resourceSubscriptions=["a:/", "b:/"])
    assert driver.last["method"] == ACKNOWLEDGED


# server, modern: telling ------------------------------------------------------------------------


@pytest.mark.req("O3", "O4", "O9", "W14")
@pytest.mark.case("M-07")
def test_each_subscription_is_told_what_it_asked_for_under_its_own_id() -> None:
    driver = publisher()
    listen(driver, 1, toolsListChanged=True)
    listen(driver, "1", toolsListChanged=True, resourceSubscriptions=["a:/", "b:/"])
    listen(driver, 2, promptsListChanged=True, resourceSubscriptions=["b:/"])
    assert change(driver) == [tagged(CHANGED[ListKind.TOOLS], 1), tagged(CHANGED[ListKind.TOOLS], "1")]
    assert change(driver, ListKind.PROMPTS) == [tagged(CHANGED[ListKind.PROMPTS], 2)]
    assert change(driver, ListKind.RESOURCES) == []
    assert update(driver, "a:/") == [tagged(UPDATED, "1", uri="a:/")]
    assert update(driver, "b:/") == [tagged(UPDATED, "1", uri="b:/"), tagged(UPDATED, 2, uri="b:/")]
    assert update(driver, "c:/") == []


@pytest.mark.req("W14")
def test_one_verb_reaches_both_eras() -> None:
    driver = session()
    subscribe(driver, "a:/")
    listen(driver, 7, toolsListChanged=True, resourceSubscriptions=["a:/"])
    assert change(driver) == [
        {"jsonrpc": "2.0", "method": CHANGED[ListKind.TOOLS]},
        tagged(CHANGED[ListKind.TOOLS], 7),
    ]
    assert update(driver, "a:/") == [
        {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "a:/"}},
        tagged(UPDATED, 7, uri="a:/"),
    ]


# server, modern: ending -------------------------------------------------------------------------


def result_of(driver: Driver, id: Any) -> Any:
    found = [m["result"] for m in driver.sent if m.get("id") == id and "result" in m]
    assert len(found) == 1, driver.sent
    return found[0]


@pytest.mark.req("O9", "O10")
@pytest.mark.case("M-08")
@pytest.mark.parametrize("end", ["close", "verb", "eof"])
@pytest.mark.parametrize("id", [0, "0"])
def test_a_graceful_end_is_a_result(end: str, id: Any) -> None:
    driver = publisher()
    listen(driver, id, toolsListChanged=True)
    listen(driver, "other", toolsListChanged=True)
    engine = driver.engine
    if end == "close":
        engine.close(now=0.0)
    elif end == "verb":
        engine.end_subscription(engine.subscriptions[0], now=0.0)
    else:
        engine.receive_eof(now=0.0)
    driver.drain()
    body = result_of(driver, id)
    assert body["resultType"] == "complete"
    assert body["_meta"][ID] == id
    assert type(body["_meta"][ID]) is type(id)
    assert not driver.of(RequestCancelled)
    if end == "verb":
        assert change(driver) == [tagged(CHANGED[ListKind.TOOLS], "other")]
    else:
        assert engine.state is ServerState.CLOSED, "a subscription keeps nobody waiting"
        assert result_of(driver, "other")
        assert change(driver) == []
        assert engine.stats()["open_requests"] == engine.stats()["subscriptions"] == 0


@pytest.mark.req("O9")
def test_the_end_of_input_waits_for_answers_but_not_for_subscriptions() -> None:
    driver = publisher()
    listen(driver, 1, toolsListChanged=True)
    driver.receive(request("tools/list", id=2))
    driver.engine.receive_eof(now=0.0)
    driver.drain()
    assert result_of(driver, 1)
    states = [driver.engine.state]
    driver.engine.respond(driver.one(RequestReceived).request, {"tools": []}, now=0.0)
    assert [*states, driver.engine.state] == [ServerState.DRAINING, ServerState.CLOSED]


@pytest.mark.req("O10")
@pytest.mark.parametrize("reason", ["overload", None])
def test_an_abrupt_end_is_a_cancel_that_names_the_request(reason: str | None) -> None:
    driver = publisher()
    listen(driver, "x", toolsListChanged=True)
    [open_] = driver.engine.subscriptions
    for _ in range(2):
        driver.engine.end_subscription(open_, now=0.0, graceful=False, reason=reason)
    driver.drain()
    why = {} if reason is None else {"reason": reason}
    assert driver.sent[1:] == [tagged("notifications/cancelled", "x", requestId="x", **why)]
    assert change(driver) == []
    assert driver.engine.stats()["open_requests"] == 0


@pytest.mark.req("O9")
def test_a_result_of_ones_own_ends_it_as_well() -> None:
    driver = publisher()
    listen(driver, 3, toolsListChanged=True)
    driver.engine.respond(driver.engine.subscriptions[0], {"_meta": {"a": 1}}, now=0.0)
    driver.drain()
    meta = result_of(driver, 3)["_meta"]
    assert (meta["a"], meta[ID]) == (1, 3)
    assert not driver.engine.subscriptions


def test_what_is_no_subscription_cannot_be_ended_as_one() -> None:
    driver = publisher()
    driver.receive(request("tools/list"))
    with pytest.raises(LocalProtocolError, match="no subscription"):
        driver.engine.end_subscription(driver.one(RequestReceived).request, now=0.0)


@pytest.mark.req("O9")
@pytest.mark.case("R-06")
def test_a_client_that_cancels_is_told_nothing_more() -> None:
    driver = publisher()
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    for _ in range(3):
        listen(driver, 1, **ALL_KINDS, resourceSubscriptions=["a:/"])
        driver.receive(cancel)
    driver.receive(cancel)
    assert driver.of(MessageIgnored)[-1].reason is Harmless.LATE_CANCEL
    assert len(driver.sent) == 3
    assert [len(change(driver, kind)) for kind in ListKind] == [0, 0, 0]
    assert update(driver, "a:/") == []
    assert not any(
        driver.engine.stats()[name] for name in ("open_requests", "subscriptions", "listened_uris")
    )


@pytest.mark.req("O9")
def test_exchanges_may_use_one_id_each() -> None:
    driver = publisher(ids_per_exchange=True)
    for origin in ("a", "b"):
        message = request("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, id=1)
        driver.engine.receive_message(message, now=0.0, origin=origin)
    driver.drain()
    assert len(change(driver)) == 2
    driver.engine.exchange_closed("a", now=0.0)
    assert change(driver) == [tagged(CHANGED[ListKind.TOOLS], 1)]
    [left] = driver.engine.subscriptions
    assert left.origin == "b"


def test_a_lost_connection_is_sent_nothing() -> None:
    driver = publisher()
    listen(driver, 1, resourceSubscriptions=["a:/"])
    driver.engine.connection_lost(now=0.0)
    driver.drain()
    assert len(driver.sent) == 1
    assert driver.one(ResourceUnwatched).uri == "a:/"
    assert not driver.engine.subscriptions


# server, legacy ---------------------------------------------------------------------------------


@pytest.mark.req("O8")
@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_session_subscribes_to_resources(version: str) -> None:
    driver = session(version)
    assert update(driver, "a:/") == []
    subscribe(driver, "a:/")
    assert driver.last == {"jsonrpc": "2.0", "id": 5, "result": {}}
    subscribe(driver, "a:/")
    assert update(driver, "a:/") == [{"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "a:/"}}]
    assert update(driver, "b:/") == []
    subscribe(driver, "a:/", off=True)
    assert driver.last == {"jsonrpc": "2.0", "id": 5, "result": {}}
    subscribe(driver, "a:/", off=True)
    assert driver.last == {"jsonrpc": "2.0", "id": 5, "result": {}}, "harmless"
    assert update(driver, "a:/") == []
    assert not driver.of(RequestReceived)


@pytest.mark.req("O8")
@pytest.mark.parametrize("off", [False, True])
def test_a_legacy_subscription_is_refused(off: bool) -> None:
    driver = session(capabilities={"resources": {}})
    subscribe(driver, "a:/", off=off)
    assert error_code(driver) == -32601
    driver = session()
    subscribe(driver, 7, off=off)
    assert error_code(driver) == -32602
    driver = publisher()
    driver.receive(request("resources/subscribe", {}))
    assert error_code(driver) == -32601, "modern clients listen"


@pytest.mark.req("O8")
def test_the_resources_of_a_session_are_bounded() -> None:
    driver = session(limits=Limits(max_subscribed_uris=2))
    for uri in ("a:/", "b:/", "c:/"):
        subscribe(driver, uri)
    assert error_code(driver) == ErrorCode.INTERNAL_ERROR
    assert driver.last["error"]["data"] == {"limit": "max_subscribed_uris"}
    assert driver.one(LimitHit).limit == "max_subscribed_uris"
    assert driver.engine.stats()["subscribed_uris"] == 2


# server: what is watched ------------------------------------------------------------------------


@pytest.mark.req("O9")
def test_the_application_knows_what_is_watched_whoever_watches() -> None:
    driver = session()

    def heard() -> list[tuple[str, str]]:
        events = [e for e in driver.said if isinstance(e, (ResourceWatched, ResourceUnwatched))]
        driver.said.clear()
        return [(type(e).__name__, e.uri) for e in events]

    subscribe(driver, "a:/")
    assert heard() == [("ResourceWatched", "a:/")]
    listen(driver, 1, resourceSubscriptions=["a:/", "b:/"])
    assert heard() == [("ResourceWatched", "b:/")]
    listen(driver, 2, resourceSubscriptions=["b:/"])
    assert heard() == []
    assert driver.engine.watched == {"a:/", "b:/"}
    subscribe(driver, "a:/", off=True)
    assert heard() == []
    driver.engine.end_subscription(driver.engine.subscriptions[0], now=0.0)
    driver.drain()
    assert heard() == [("ResourceUnwatched", "a:/")]
    subscribe(driver, "c:/")
    driver.said.clear()
    driver.engine.close(now=0.0)
    driver.drain()
    assert sorted(heard()) == [("ResourceUnwatched", "b:/"), ("ResourceUnwatched", "c:/")]
    assert driver.engine.watched == frozenset()
