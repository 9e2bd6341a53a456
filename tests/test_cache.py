"""What may be kept of a server's answers: for how long, for whom, and what ends it early."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import ListKind, LocalProtocolError
from sansmcp.session.cache import CACHEABLE, CacheUse, Hit, ResponseCache, Ticket
from sansmcp.session.hints import Hints, read_hints

LIST = "tools/list"
READ = "resources/read"


class Shelf:
    """A cache, one who uses it, and the time."""

    def __init__(self, **options: Any) -> None:
        self.cache = ResponseCache(**options)
        self.me = CacheUse(self.cache, "server", "me")
        self.you = CacheUse(self.cache, "server", "you")
        self.now = 0.0

    def ask(
        self, method: str = LIST, params: dict[str, Any] | None = None, *, use: CacheUse | None = None
    ) -> Ticket:
        ticket = self.cache.ticket(use or self.me, method, params or {}, whole=False, now=self.now)
        assert ticket is not None
        return ticket

    def keep(self, ticket: Ticket, raw: dict[str, Any], *, use: CacheUse | None = None) -> bool:
        return self.cache.keep(use or self.me, ticket, raw, read_hints(raw), now=self.now)

    def put(
        self,
        method: str = LIST,
        params: dict[str, Any] | None = None,
        *,
        use: CacheUse | None = None,
        **raw: Any,
    ) -> bool:
        raw = {"ttlMs": 1000, "cacheScope": "private", "tools": [], **raw}
        return self.keep(self.ask(method, params, use=use), raw, use=use)

    def find(
        self,
        method: str = LIST,
        params: dict[str, Any] | None = None,
        *,
        use: CacheUse | None = None,
        **options: Any,
    ) -> Hit | None:
        return self.cache.find(use or self.me, method, params or {}, whole=False, now=self.now, **options)


@pytest.mark.req("N1", "N3")
@pytest.mark.case("G-03")
@pytest.mark.parametrize(
    ("raw", "seconds", "public", "odd"),
    [
        ({"ttlMs": 5000, "cacheScope": "public"}, 5.0, True, False),
        ({"ttlMs": 0, "cacheScope": "private"}, 0.0, False, False),
        ({"ttlMs": 1.5}, 0.0015, False, False),
        ({"ttlMs": 10**30, "cacheScope": "public"}, 86_400.0, True, False),
        ({}, 0.0, False, False),
        ({"ttlMs": -1}, 0.0, False, True),
        ({"ttlMs": "5", "cacheScope": ""}, 0.0, False, True),
        ({"ttlMs": True}, 0.0, False, True),
        ({"ttlMs": [1], "cacheScope": {}}, 0.0, False, True),
        ({"ttlMs": 5000, "cacheScope": "everybody"}, 5.0, False, True),
    ],
)
def test_hints_are_read_carefully(raw: dict[str, Any], seconds: float, public: bool, odd: bool) -> None:
    hints = read_hints(raw)
    assert (hints.ttl, hints.public, hints.odd is not None) == (seconds, public, odd)


@pytest.mark.req("N1")
def test_the_six_methods_are_cacheable_and_no_other() -> None:
    six = ["server/discover", LIST, "prompts/list", "resources/list", "resources/templates/list", READ]
    assert set(six) == CACHEABLE


@pytest.mark.req("N1")
def test_a_result_is_used_until_its_time_is_over() -> None:
    shelf = Shelf()
    assert shelf.put(tools=["a"])
    for now, fresh in [(0.0, True), (0.999, True), (1.0, False), (0.5, True)]:
        shelf.now = now
        hit = shelf.find()
        assert (hit is not None) is fresh
    shelf.now = 7.0
    hit = shelf.find(stale=True)
    assert hit is not None
    assert (hit.stale, hit.age) == (True, 7.0)


@pytest.mark.req("N5")
def test_a_caller_can_ask_for_a_younger_one() -> None:
    shelf = Shelf()
    shelf.put()
    shelf.now = 0.5
    assert shelf.find(max_age=0.5) is not None
    assert shelf.find(max_age=0.4) is None
    assert shelf.find(max_age=0.0) is None


@pytest.mark.req("N1")
@pytest.mark.parametrize(
    ("kept", "asked", "same"),
    [
        ({}, {}, True),
        ({"_meta": {"progressToken": 1}}, {}, True),
        ({"a": 1, "b": [1, {"c": None}]}, {"b": [1, {"c": None}], "a": 1}, True),
        ({}, {"cursor": ""}, False),
        ({"cursor": ""}, {}, False),
        ({"cursor": "1"}, {"cursor": "2"}, False),
        ({"a": 1}, {"a": "1"}, False),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
    ],
)
def test_only_the_same_request_is_answered(kept: dict[str, Any], asked: dict[str, Any], same: bool) -> None:
    shelf = Shelf()
    assert shelf.put(params=kept)
    assert (shelf.find(params=asked) is not None) is same


@pytest.mark.req("N1")
def test_a_whole_list_is_not_its_first_page() -> None:
    shelf = Shelf()
    shelf.put()
    assert shelf.cache.find(shelf.me, LIST, {}, whole=True, now=0.0) is None


@pytest.mark.req("N2")
def test_a_private_result_is_for_one_only_and_a_public_one_for_all() -> None:
    shelf = Shelf()
    shelf.put(tools=["mine"])
    assert shelf.find(use=shelf.you) is None
    shelf.put(use=shelf.you, tools=["yours"])
    mine, yours = shelf.find(), shelf.find(use=shelf.you)
    assert mine is not None
    assert yours is not None
    assert (mine.raw["tools"], yours.raw["tools"]) == (["mine"], ["yours"])
    shelf.put(cacheScope="public", params={"cursor": "2"})
    assert shelf.find(use=shelf.you, params={"cursor": "2"}) is not None
    elsewhere = CacheUse(shelf.cache, "another server", "me")
    assert shelf.find(use=elsewhere) is None
    assert shelf.find(use=elsewhere, params={"cursor": "2"}) is None


@pytest.mark.req("N2")
def test_nobody_is_a_principal_like_any_other() -> None:
    shelf = Shelf()
    nobody = CacheUse(shelf.cache, "server")
    shelf.put(use=nobody)
    assert shelf.find(use=nobody) is not None
    assert shelf.find() is None


@pytest.mark.req("N2")
def test_a_result_that_became_private_is_public_no_more() -> None:
    shelf = Shelf()
    shelf.put(cacheScope="public")
    shelf.put(cacheScope="private")
    assert shelf.find() is not None
    assert shelf.find(use=shelf.you) is None


@pytest.mark.req("E16", "N1")
@pytest.mark.parametrize(
    ("method", "params", "raw"),
    [
        (READ, {"uri": "a"}, {"resultType": "input_required", "ttlMs": 9, "cacheScope": "public"}),
        (READ, {"uri": "a"}, {"resultType": "complete"}),
        (READ, {"uri": "a"}, {"ttlMs": 0}),
    ],
)
def test_what_may_not_be_kept_is_not(method: str, params: dict[str, Any], raw: dict[str, Any]) -> None:
    shelf = Shelf()
    shelf.put(method, params)
    assert not shelf.keep(shelf.ask(method, params), raw)
    assert shelf.find(method, params, stale=True) is None, "and what was kept before is gone"


@pytest.mark.req("E16")
@pytest.mark.parametrize("member", ["inputResponses", "requestState"])
def test_what_depends_on_an_answer_has_no_key(member: str) -> None:
    shelf = Shelf()
    params = {"uri": "a", member: {}}
    assert shelf.cache.ticket(shelf.me, READ, params, whole=False, now=0.0) is None
    assert shelf.find(READ, params) is None


def test_params_that_are_no_json_have_no_key() -> None:
    loop: dict[str, Any] = {}
    loop["self"] = loop
    for params in [{"a": object()}, loop]:
        assert ResponseCache().ticket(Shelf().me, READ, params, whole=False, now=0.0) is None


@pytest.mark.req("N4", "M5")
@pytest.mark.parametrize(
    ("change", "gone"),
    [
        (lambda c: c.list_changed("server", ListKind.TOOLS), {LIST}),
        (lambda c: c.list_changed("server", ListKind.PROMPTS), {"prompts/list"}),
        (
            lambda c: c.list_changed("server", ListKind.RESOURCES),
            {"resources/list", "resources/templates/list"},
        ),
        (lambda c: c.resource_updated("server", "a"), {READ}),
        (lambda c: c.resource_updated("server", "b"), set()),
        (lambda c: c.cursor_refused("server", LIST), {LIST}),
        (lambda c: c.list_changed("another", ListKind.TOOLS), set()),
        (
            lambda c: c.forget("server"),
            {LIST, "prompts/list", "resources/list", "resources/templates/list", READ},
        ),
        (lambda c: c.clear(), {LIST, "prompts/list", "resources/list", "resources/templates/list", READ}),
    ],
)
def test_a_change_drops_what_it_is_about(change: Any, gone: set[str]) -> None:
    shelf = Shelf()
    kept: dict[str, dict[str, str]] = {
        m: {} for m in [LIST, "prompts/list", "resources/list", "resources/templates/list"]
    }
    kept[READ] = {"uri": "a"}
    for method, params in kept.items():
        assert shelf.put(method, params)
    change(shelf.cache)
    assert {m for m, params in kept.items() if shelf.find(m, params) is None} == gone


@pytest.mark.req("N4")
def test_what_was_asked_before_a_change_is_not_kept_after_it() -> None:
    shelf = Shelf()
    ticket = shelf.ask()
    shelf.cache.list_changed("server", ListKind.TOOLS)
    assert not shelf.keep(ticket, {"ttlMs": 1000})
    assert shelf.put(), "the next one is"


@pytest.mark.req("N8")
def test_pages_are_as_private_as_the_most_private_of_them() -> None:
    both = Hints(10.0, True).joined(Hints(3.0, False, "odd"))
    assert (both.ttl, both.public, both.odd) == (3.0, False, "odd")


@pytest.mark.req("N1", "N3")
def test_a_cache_has_bounds_and_lets_go_of_what_was_not_used() -> None:
    shelf = Shelf(max_entries=2)
    for cursor in "abc":
        shelf.put(params={"cursor": cursor})
        if cursor == "b":
            shelf.find(params={"cursor": "a"})
    assert shelf.find(params={"cursor": "b"}) is None
    assert shelf.find(params={"cursor": "a"}) is not None
    assert shelf.cache.stats()["results"] == 2
    small = Shelf(max_bytes=150)
    assert not small.put(tools=["x" * 300])
    for cursor in "abc":
        assert small.put(params={"cursor": cursor}, tools=["x" * 40])
    assert small.cache.stats()["results"] == 1
    assert 0 < small.cache.stats()["bytes"] <= 150
    small.cache.clear()
    assert small.cache.stats() == {"results": 0, "bytes": 0}
    short = Shelf(max_ttl=0.5)
    short.put()
    short.now = 0.6
    assert short.find() is None


@pytest.mark.parametrize("options", [{"max_entries": 0}, {"max_bytes": 0}, {"max_ttl": -1.0}])
def test_a_cache_without_room_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError, match="needs room"):
        ResponseCache(**options)


def test_who_is_asked_for_is_not_shown() -> None:
    use = CacheUse(ResponseCache(), "server", "a secret token")
    assert "secret" not in repr(use)
    assert "secret" not in repr(use.cache)
