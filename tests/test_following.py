"""Lists that are read anew whenever they changed, in both eras."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    CloseReason,
    Following,
    Listing,
    LocalProtocolError,
    Relisten,
    SubscriptionClosed,
)

from .support import ALL, MODERN, Driver, connected, result
from .test_listening import ACKNOWLEDGED, legacy, modern, note

CHANGED = "notifications/tools/list_changed"


class Follower:
    """A `Following` on a driven engine, and what it read."""

    def __init__(self, version: str, *, follow: Any = None, **options: Any) -> None:
        self.version = version
        self.driver = modern(**options) if version == MODERN else legacy(version, **options)
        self.following = Following(self.driver.engine, **(follow or {"tools": True}))
        self.read: list[tuple[str, list[str]]] = []
        self._seen = len(self.driver.said)
        self._done: set[Any] = set()

    def start(self) -> Follower:
        self.following.start(now=self.driver.now)
        return self.work()

    def work(self) -> Follower:
        self.driver.drain()
        while self._seen < len(self.driver.said):
            event = self.driver.said[self._seen]
            self._seen += 1
            listing = self.following.take(event, now=self.driver.now)
            if listing is not None:
                assert isinstance(listing, Listing)
                self.read.append((listing.method, [each.name for each in listing.items]))
            self.driver.drain()
        return self

    def open(self, **granted: Any) -> Follower:
        """Let the server grant everything, or what is given."""
        if self.version == MODERN:
            asked = next(m for m in reversed(self.driver.sent) if m["method"] == "subscriptions/listen")
            filter = granted or asked["params"]["notifications"]
            self.driver.receive(note(ACKNOWLEDGED, asked["id"], notifications=filter))
            self._listen = asked["id"]
        return self.work()

    def changed(self, method: str = CHANGED) -> Follower:
        self.driver.receive(note(method, self._listen if self.version == MODERN else None))
        return self.work()

    def asked(self) -> list[str]:
        """The lists that were asked for and not answered."""
        return [m["method"] for m in self.pending()]

    def pending(self) -> list[Any]:
        return [m for m in self.driver.sent if m["method"].endswith("/list") and m["id"] not in self._done]

    def answer(self, *names: str, error: int | None = None, **more: Any) -> Follower:
        asked = self.pending()[0]
        self._done.add(asked["id"])
        member = "resourceTemplates" if "templates" in asked["method"] else asked["method"].split("/")[0]
        parts = {"inputSchema": {"type": "object"}, "uri": "a:b", "uriTemplate": "a:{b}"}
        page = {member: [{"name": name, **parts} for name in names], **more}
        if error is None:
            self.driver.reply(result(self.version, page), to=asked["id"])
        else:
            self.driver.reply(error=error, to=asked["id"])
        return self.work()


@pytest.mark.req("O7")
@pytest.mark.parametrize("version", ALL)
def test_a_list_is_read_at_first_and_whenever_it_changed(version: str) -> None:
    follower = Follower(version).start().open()
    assert follower.following.open
    follower.answer("a")
    assert follower.read == [("tools/list", ["a"])]
    follower.changed().answer("a", "b")
    assert follower.read[1:] == [("tools/list", ["a", "b"])]
    assert follower.asked() == []
    follower.changed("notifications/prompts/list_changed")
    assert follower.asked() == []


@pytest.mark.req("O7")
@pytest.mark.parametrize("version", ALL)
def test_a_change_while_it_is_read_has_it_read_once_more(version: str) -> None:
    follower = Follower(version).start().open().changed().changed().changed()
    assert follower.asked() == ["tools/list"]
    follower.answer("old").answer("new")
    assert follower.read == [("tools/list", ["old"]), ("tools/list", ["new"])]
    assert follower.asked() == []


@pytest.mark.req("O7")
@pytest.mark.parametrize("version", ALL)
def test_all_lists_at_once(version: str) -> None:
    follower = Follower(version, follow={"tools": True, "prompts": True, "resources": True}).start().open()
    for name in "abcd":
        follower.answer(name)
    methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"]
    assert follower.read == [(method, [name]) for method, name in zip(methods, "abcd", strict=True)]
    follower.changed("notifications/resources/list_changed")
    assert follower.asked() == methods[2:]


@pytest.mark.req("O7")
def test_what_is_not_told_is_read_once() -> None:
    wanted = {"tools": True, "prompts": True}
    follower = Follower(MODERN, follow=wanted).start().open(promptsListChanged=True)
    follower.answer("a").answer("b")
    assert [method for method, _ in follower.read] == ["tools/list", "prompts/list"]
    refused = Follower("2025-11-25", capabilities={"tools": {}}).start().answer("a")
    assert refused.read == [("tools/list", ["a"])]
    assert not refused.following.open
    assert list(refused.following.errors) == ["subscriptions/listen"]


@pytest.mark.req("O7")
def test_a_list_that_the_server_does_not_have_is_not_read() -> None:
    wanted = {"tools": True, "prompts": True}
    capabilities = {"tools": {"listChanged": True}}
    follower = Follower("2025-11-25", follow=wanted, capabilities=capabilities).start()
    assert follower.asked() == ["tools/list"]


@pytest.mark.req("O7")
@pytest.mark.parametrize("version", ALL)
def test_a_list_that_cannot_be_read_is_told_and_read_at_the_next_change(version: str) -> None:
    follower = Follower(version).start().open().answer(error=-32603)
    assert follower.read == []
    assert str(follower.following.errors["tools/list"]) != ""
    follower.changed().answer(tools=[{"name": 5}])
    assert follower.read == []
    assert list(follower.following.errors) == ["tools/list"]
    follower.changed().answer("a")
    assert follower.read == [("tools/list", ["a"])]
    assert follower.following.errors == {}


@pytest.mark.req("O6", "O7")
def test_what_was_missed_is_read_anew() -> None:
    follower = (
        Follower(MODERN, follow={"tools": True, "relisten": Relisten(delay=1.0)}).start().open().answer("a")
    )
    follower.driver.engine.connection_lost(now=0.0, may_restart=True)
    assert not follower.work().following.open
    follower.driver.engine.connection_restored(now=0.5)
    follower.driver.advance(1.0)
    follower.work().open()
    assert follower.following.open
    follower.answer("b")
    assert follower.read == [("tools/list", ["a"]), ("tools/list", ["b"])]
    assert follower.asked() == []


@pytest.mark.req("O7")
@pytest.mark.parametrize("version", ALL)
def test_the_end(version: str) -> None:
    follower = Follower(version).start().open()
    follower.following.stop(now=0.0)
    follower.work()
    assert follower.driver.one(SubscriptionClosed).reason is CloseReason.LOCAL
    assert follower.following.closed is not None
    assert not follower.following.open
    assert follower.driver.engine.stats()["calls"] == 0
    follower.following.stop(now=0.0)
    with pytest.raises(LocalProtocolError):
        follower.start()


def test_nothing_to_follow_is_misuse() -> None:
    driver: Driver = connected()
    with pytest.raises(LocalProtocolError):
        Following(driver.engine).start(now=0.0)
    assert driver.sent == []
