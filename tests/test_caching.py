"""Results that are used again: when a client asks its server anew, and when it need not."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    CallTimeout,
    ClientCapabilities,
    DeviationTolerated,
    ListChanged,
    McpError,
    PeerFault,
    RequestFailed,
    ResultReady,
)
from sansmcp.session.cache import CacheUse, ResponseCache
from sansmcp.types import ListToolsResult, RootsCapability

from .support import DISCOVER, LEGACY, Driver, client, connected

HOUR = {"ttlMs": 3_600_000, "cacheScope": "private"}


def tools(*names: str, cursor: str | None = None, **hints: Any) -> dict[str, Any]:
    listed = [{"name": n, "inputSchema": {"type": "object"}} for n in names]
    more = {} if cursor is None else {"nextCursor": cursor}
    return {"resultType": "complete", "tools": listed, **HOUR, **more, **hints}


def caching(*, cache: ResponseCache | None = None, stale_on_error: bool = False, **options: Any) -> Driver:
    use = CacheUse(cache or ResponseCache(), "server", "me", stale_on_error=stale_on_error)
    return connected(cache=use, **options)


def ends(driver: Driver) -> list[Any]:
    """What each call ended with: the names of the tools, or the class of the error."""
    told: list[Any] = []
    for event in driver.said:
        if isinstance(event, ResultReady):
            told.append([t["name"] for t in event.raw["tools"]])
        elif isinstance(event, RequestFailed):
            told.append(type(event.error))
    return told


def list_tools(driver: Driver, **options: Any) -> None:
    driver.engine.list_tools(now=driver.now, **options)
    driver.drain()


@pytest.mark.req("N1")
def test_a_fresh_result_is_used_again_and_a_stale_one_is_asked_for() -> None:
    driver = caching()
    list_tools(driver)
    driver.reply(tools("a"))
    driver.now += 10
    list_tools(driver)
    assert len(driver.sent) == 1
    first, second = driver.of(ResultReady)
    assert (first.age, second.age, second.stale) == (None, 10.0, False)
    assert second.call is not first.call
    assert isinstance(second.result, ListToolsResult)
    assert second.result.tools[0].name == "a"
    driver.now = 3600.0
    list_tools(driver)
    driver.reply(tools("b"))
    assert ends(driver) == [["a"], ["a"], ["b"]]


@pytest.mark.req("N1")
def test_without_a_cache_every_call_asks() -> None:
    driver = connected()
    for _ in range(2):
        list_tools(driver)
        driver.reply(tools("a"))
    assert len(driver.sent) == 2


@pytest.mark.req("N1", "N3")
@pytest.mark.parametrize(
    "hints", [{"ttlMs": 0}, {"ttlMs": -5}, {"ttlMs": None}, {"ttlMs": "5", "cacheScope": ""}]
)
@pytest.mark.case("G-03")
def test_a_result_that_may_not_be_kept_counts_and_is_asked_for_anew(hints: dict[str, Any]) -> None:
    driver = caching()
    for _ in range(2):
        list_tools(driver)
        driver.reply(tools("a", **hints))
    assert ends(driver) == [["a"], ["a"]]
    odd = hints["ttlMs"] not in (0, None)
    assert [d.fault for d in driver.of(DeviationTolerated)] == [PeerFault.INVALID_CACHE_HINT] * (2 * odd)


@pytest.mark.req("N5")
def test_a_call_says_what_may_answer_it() -> None:
    driver = caching()
    list_tools(driver)
    driver.reply(tools("a"))
    list_tools(driver, cache_mode="bypass")
    driver.reply(tools("b"))
    list_tools(driver)
    list_tools(driver, cache_mode="refresh")
    driver.reply(tools("c"))
    list_tools(driver)
    driver.now += 5
    list_tools(driver, max_age=4.0)
    driver.reply(tools("d"))
    assert ends(driver) == [["a"], ["b"], ["a"], ["c"], ["c"], ["d"]]


@pytest.mark.req("N2")
def test_what_one_client_was_told_serves_another_of_the_same_principal_only() -> None:
    cache = ResponseCache()
    mine, mine_too = caching(cache=cache), caching(cache=cache)
    yours = connected(cache=CacheUse(cache, "server", "you"))
    list_tools(mine)
    mine.reply(tools("a"))
    list_tools(mine_too)
    assert ends(mine_too) == [["a"]]
    list_tools(yours)
    assert len(yours.sent) == 1
    yours.reply(tools("b", cacheScope="public"))
    list_tools(yours)
    assert ends(yours) == [["b"], ["b"]]


@pytest.mark.req("N4", "O1")
def test_a_change_is_known_to_the_cache_before_it_is_told() -> None:
    driver = caching(check_capabilities=False)
    driver.engine.listen(tools=True, now=0.0)
    driver.drain()
    listening = driver.last["id"]
    meta = {"io.modelcontextprotocol/subscriptionId": listening}
    acknowledged = {"_meta": meta, "notifications": {"toolsListChanged": True}}

    def note(method: str, params: dict[str, Any]) -> dict[str, Any]:
        return {"jsonrpc": "2.0", "method": method, "params": params}

    driver.receive(note("notifications/subscriptions/acknowledged", acknowledged))
    list_tools(driver)
    driver.reply(tools("a"))
    asked_meanwhile = driver.engine.list_prompts(now=0.0)
    list_tools(driver, cache_mode="refresh")
    in_flight = driver.last["id"]
    driver.receive(note("notifications/tools/list_changed", {"_meta": meta}))
    assert len(driver.of(ListChanged)) == 1
    driver.reply(tools("old"), to=in_flight)
    list_tools(driver)
    assert driver.last["method"] == "tools/list", "neither what was kept nor what was in flight is used"
    driver.reply(tools("new"))
    list_tools(driver)
    assert ends(driver)[-2:] == [["new"], ["new"]]
    assert not asked_meanwhile.done


@pytest.mark.req("N8", "M1")
def test_a_whole_list_is_kept_as_the_least_of_its_pages_allows() -> None:
    cache = ResponseCache()
    driver = caching(cache=cache)
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    driver.reply(tools("a", cursor="2", cacheScope="public", ttlMs=100_000))
    driver.now = 20.0
    driver.reply(tools("b", cacheScope="private", ttlMs=50_000))
    for now, asked in [(49.0, 2), (51.0, 3)]:
        driver.now = now
        driver.engine.list_all_tools(now=now)
        driver.drain()
        assert len(driver.sent) == asked, "as old as its first page"
    other = connected(cache=CacheUse(cache, "server", "you"))
    other.engine.list_all_tools(now=21.0)
    other.drain()
    assert len(other.sent) == 1, "as private as its second page"
    assert ends(driver) == [["a", "b"], ["a", "b"]]
    list_tools(driver)
    assert driver.methods().count("tools/list") == 4, "a page is not the list"


@pytest.mark.req("M5")
def test_a_refused_cursor_drops_the_pages() -> None:
    driver = caching()
    list_tools(driver)
    driver.reply(tools("a", cursor="x"))
    list_tools(driver, cursor="x")
    driver.reply(error=-32602)
    assert ends(driver) == [["a"], McpError]
    list_tools(driver)
    assert len(driver.sent) == 3


@pytest.mark.req("N6")
@pytest.mark.parametrize("how", ["error", "timeout", "end", "cancel"])
@pytest.mark.parametrize("stale_on_error", [True, False])
def test_a_stale_result_is_better_than_none_where_that_is_wanted(how: str, stale_on_error: bool) -> None:
    driver = caching(stale_on_error=stale_on_error)
    list_tools(driver)
    driver.reply(tools("a"))
    driver.now = 4000.0
    call = driver.engine.list_tools(now=driver.now)
    driver.drain()
    if how == "error":
        driver.reply(error=-32603)
    elif how == "timeout":
        driver.advance(61.0)
    elif how == "end":
        driver.engine.connection_lost(now=driver.now)
        driver.drain()
    else:
        driver.engine.cancel(call, now=driver.now)
        driver.drain()
    assert call.done
    if stale_on_error and how != "cancel":
        ready = driver.of(ResultReady)[-1]
        assert (ready.call, ready.stale) == (call, True)
        assert ready.age is not None
        assert ready.age >= 4000.0
    else:
        assert len(driver.of(ResultReady)) == 1
        failed = driver.one(RequestFailed)
        assert failed.call is call
        if how == "timeout":
            assert isinstance(failed.error, CallTimeout)


@pytest.mark.req("N6", "E16")
@pytest.mark.parametrize("how", ["end", "timeout", "refused"])
def test_a_call_that_asks_ends_as_one_whatever_is_kept(how: str) -> None:
    driver = caching(stale_on_error=True, capabilities=ClientCapabilities(roots=RootsCapability()))
    driver.engine.read_resource("a://b", now=0.0)
    driver.drain()
    driver.reply({"resultType": "complete", "contents": [], **HOUR})
    driver.now = 4000.0
    call = driver.engine.read_resource("a://b", now=driver.now)
    driver.drain()
    driver.reply({"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list"}}})
    if how == "end":
        driver.engine.close(now=driver.now)
    elif how == "timeout":
        driver.advance(10_000.0)
    else:
        driver.engine.refuse_input(call, McpError(-1, "no"), now=driver.now)
    driver.drain()
    assert driver.one(RequestFailed).call is call
    assert not driver.engine.stats()["rounds"]


@pytest.mark.req("E16")
def test_what_a_resource_is_after_questions_is_not_kept() -> None:
    driver = caching()
    for _ in range(2):
        call = driver.engine.read_resource("a://b", now=0.0)
        driver.drain()
        driver.reply({"resultType": "input_required", "requestState": "s"})
        driver.advance(1.0)
        assert driver.last["params"]["requestState"] == "s"
        driver.reply({"resultType": "complete", "contents": [], **HOUR})
        assert call.done
    assert driver.methods().count("resources/read") == 4


@pytest.mark.req("N1", "A11")
def test_what_a_server_says_of_itself_is_kept_too() -> None:
    driver = caching()
    kept = {**DISCOVER, **HOUR, "instructions": "be nice"}
    for _ in range(2):
        driver.engine.discover(now=driver.now)
        driver.drain()
    driver.reply(kept)
    driver.reply(kept, to=driver.sent[0]["id"])
    driver.engine.discover(now=driver.now)
    driver.drain()
    assert driver.methods() == ["server/discover"] * 2
    assert [end.result.instructions for end in driver.of(ResultReady)] == ["be nice"] * 3
    driver.now += 3600.0
    driver.engine.discover(now=driver.now)
    driver.drain()
    driver.reply({**kept, "ttlMs": 0})
    driver.engine.discover(now=driver.now)
    driver.drain()
    assert len(driver.sent) == 4


@pytest.mark.req("N1")
def test_calls_that_waited_for_the_era_are_answered_by_the_cache_as_well() -> None:

    cache = ResponseCache()
    first = caching(cache=cache)
    list_tools(first)
    first.reply(tools("a"))
    driver = client(cache=CacheUse(cache, "server", "me"))
    driver.engine.connect(now=0.0)
    list_tools(driver)
    assert driver.methods() == ["server/discover"]
    driver.reply(DISCOVER)
    assert ends(driver) == [["a"]]
    assert driver.methods() == ["server/discover"]


@pytest.mark.req("N1")
@pytest.mark.parametrize("version", LEGACY)
def test_nothing_of_a_legacy_server_is_kept(version: str) -> None:
    driver = caching(version=version)

    for _ in range(2):
        list_tools(driver)
        driver.reply(tools("a"))
    assert len(driver.sent) == 2


@pytest.mark.req("N1")
@pytest.mark.parametrize("method", ["tools/call", "prompts/get", "completion/complete", "vendor/x"])
def test_other_methods_are_always_asked(method: str) -> None:
    driver = caching()
    for _ in range(2):
        driver.engine.request(method, {"name": "a"}, now=0.0)
        driver.drain()
        driver.reply({"resultType": "complete", "content": [], "messages": [], **HOUR})
    assert len(driver.sent) == 2
