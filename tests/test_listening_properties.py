"""Whatever a server says and whatever happens, each subscription opens and ends in order, once."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import (
    ChangesMissed,
    ClientEngine,
    Legacy,
    Limits,
    ListChanged,
    LocalProtocolError,
    Pin,
    Reconnect,
    Relisten,
    RequestFailed,
    ResourceUpdated,
    ResultReady,
    Revision,
    SendRequest,
    SubscriptionClosed,
    SubscriptionInterrupted,
    SubscriptionOpened,
    TransportKind,
)

from .support import ME, initialize_result

ID = "io.modelcontextprotocol/subscriptionId"
URIS = ["a:/", "b:/", "a:/x"]
TELLS_ALL = {
    "tools": {"listChanged": True},
    "resources": {"listChanged": True, "subscribe": True},
}
NOTES = [
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/updated",
    "notifications/subscriptions/acknowledged",
    "notifications/subscriptions/acknowledged",
    "notifications/cancelled",
]
FILTERS: list[Any] = [
    {"toolsListChanged": True, "resourceSubscriptions": URIS},
    {"toolsListChanged": True},
    {},
    {"promptsListChanged": 1},
    None,
]


class Talk:
    """One client of a server that says anything."""

    def __init__(self, draw: Any, legacy: bool) -> None:
        self.draw, self.legacy, self.now = draw, legacy, 0.0
        self.calls: list[Any] = []
        self.ids: list[Any] = [0, "1"]
        self.seen: dict[Any, list[str]] = defaultdict(list)
        self.engine = ClientEngine(
            ME,
            now=0.0,
            mode=Legacy() if legacy else Pin(Revision.V2026_07_28),
            transport=TransportKind.HTTP if draw(st.booleans()) else TransportKind.STREAM,
            limits=Limits(max_subscriptions=4),
            strict=draw(st.booleans()),
            check_capabilities=False,
        )
        self.engine.connect(now=0.0)

    def drain(self) -> None:
        for event in self.engine.events():
            match event:
                case SendRequest():
                    if event.message["method"] == "initialize":
                        result = {**initialize_result(), "capabilities": TELLS_ALL}
                        self.answer(event.message["id"], result=result)
                    else:
                        self.ids.append(event.message["id"])
                case Reconnect():
                    self.engine.connection_restored(now=self.now)
                case (
                    SubscriptionOpened()
                    | SubscriptionClosed()
                    | SubscriptionInterrupted()
                    | ChangesMissed()
                    | RequestFailed()
                    | ResultReady()
                ):
                    self.note(event.call, type(event).__name__)
                case ListChanged() | ResourceUpdated() if event.call is not None:
                    self.note(event.call, "change")
                case _:
                    pass

    def note(self, call: Any, what: str) -> None:
        before = self.seen[call]
        last = before[-1] if before else None
        allowed: dict[str, set[str | None]] = {
            "SubscriptionOpened": {None, "SubscriptionInterrupted"},
            "ChangesMissed": {"SubscriptionOpened"},
            "change": {"SubscriptionOpened", "ChangesMissed", "change"},
            "SubscriptionInterrupted": {
                "SubscriptionOpened",
                "ChangesMissed",
                "change",
                "SubscriptionInterrupted",
            },
            "SubscriptionClosed": {
                "SubscriptionOpened",
                "ChangesMissed",
                "change",
                "SubscriptionInterrupted",
            },
            "RequestFailed": {None},
        }
        assert last in allowed[what], (before, what)
        if what == "SubscriptionOpened" and before:
            assert self.seen[call].count("SubscriptionInterrupted")
        before.append(what)

    def answer(self, id: Any, **body: Any) -> None:
        self.engine.receive_message({"jsonrpc": "2.0", "id": id, **body}, now=self.now)

    def step(self) -> None:
        draw, engine = self.draw, self.engine
        match draw(st.integers(0, 15)):
            case 0 | 1:
                policy = draw(st.sampled_from([None, Relisten(attempts=2, delay=3.0)]))
                wanted = draw(st.sampled_from([{"tools": True}, {"resources": URIS}, {"prompts": True}]))
                try:
                    self.calls.append(engine.listen(now=self.now, relisten=policy, **wanted))
                except LocalProtocolError:
                    assert engine.stats()["subscriptions"] in (0, 4)
            case 2 | 3 | 4 | 5:
                meta = {"_meta": {ID: draw(st.sampled_from(self.ids[-4:]))}}
                params = {**meta, "uri": draw(st.sampled_from(URIS)), "requestId": self.ids[-1]}
                params["notifications"] = draw(st.sampled_from(FILTERS))
                note = {"jsonrpc": "2.0", "method": draw(st.sampled_from(NOTES)), "params": params}
                engine.receive_message(note, now=self.now)
            case 6:
                self.answer(draw(st.sampled_from(self.ids[-4:])), result={"resultType": "complete"})
            case 7:
                self.answer(draw(st.sampled_from(self.ids[-4:])), error={"code": -32603, "message": "no"})
            case 8:
                self.now += draw(st.sampled_from([1.0, 3.0, 6.0]))
                engine.handle_timeout(self.now)
            case 9 if self.calls:
                end = draw(st.sampled_from([engine.cancel, engine.end_lagging]))
                end(draw(st.sampled_from(self.calls)), now=self.now)
            case 11 | 12 | 13 | 14 | 15 if self.calls:
                # what a good server says
                call = draw(st.sampled_from(self.calls))
                method = draw(st.sampled_from([NOTES[0], NOTES[2], NOTES[3], NOTES[3]]))
                params = {"_meta": {ID: call.request_id}, "uri": "a:/", **call.params}
                engine.receive_message({"jsonrpc": "2.0", "method": method, "params": params}, now=self.now)
            case 10 if self.legacy:
                engine.session_lost(now=self.now)
            case 10:
                engine.connection_lost(now=self.now, may_restart=draw(st.integers(0, 9)) > 0)
            case _:
                pass
        self.drain()


@pytest.mark.req("O1", "O5", "O6", "U1")
@pytest.mark.parametrize("legacy", [False, True])
@given(data=st.data())
def test_every_subscription_opens_and_ends_in_order_and_once(legacy: bool, data: st.DataObject) -> None:
    talk = Talk(data.draw, legacy)
    talk.drain()
    for _ in range(data.draw(st.integers(1, 40))):
        talk.step()
        assert talk.engine.stats()["subscriptions"] <= 4
    talk.engine.close(now=talk.now)
    talk.drain()
    for call in talk.calls:
        ends = [what for what in talk.seen[call] if what in ("SubscriptionClosed", "RequestFailed")]
        assert len(ends) == 1, talk.seen[call]
        assert call.done
    names = (
        "calls",
        "subscriptions",
        "subscription_steps",
        "subscribed_uris",
        "relisten_timers",
        "deadlines",
    )
    assert not any(talk.engine.stats()[name] for name in names), talk.engine.stats()
    assert talk.engine.next_timeout() is None
