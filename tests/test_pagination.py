"""Lists in pages: read to their end by one call, with a guard against servers that never end."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    DeviationTolerated,
    McpError,
    PaginationError,
    PeerFault,
    RequestFailed,
    ResultReady,
)
from sansmcp.types import ListToolsResult

from .support import connected, result

# lists ------------------------------------------------------------------------------------------


def page(*names: str, cursor: Any = None) -> dict[str, Any]:
    tools = [{"name": n, "inputSchema": {"type": "object"}} for n in names]
    body: dict[str, Any] = {"resultType": "complete", "tools": tools, "vendor": 1}
    if cursor is not None:
        body["nextCursor"] = cursor
    return body


@pytest.mark.req("M1", "M3")
@pytest.mark.case("G-02")
def test_a_list_is_read_to_its_end_by_one_call() -> None:
    driver = connected()
    call = driver.engine.list_all_tools(now=0.0)
    driver.drain()
    assert "cursor" not in driver.last["params"]
    driver.reply(page("a", "b", cursor=""))
    assert driver.last["params"]["cursor"] == "", "an empty cursor is a cursor"
    driver.reply(page("c", cursor="x"))
    driver.reply(page("d"))
    ready = driver.one(ResultReady)
    assert ready.call is call
    assert isinstance(ready.result, ListToolsResult)
    assert [t.name for t in ready.result.tools] == ["a", "b", "c", "d"]
    assert ready.result.next_cursor is None
    assert len({m["id"] for m in driver.sent}) == 3


@pytest.mark.req("M1")
@pytest.mark.case("G-02")
@pytest.mark.parametrize("version", ["2024-11-05", "2026-07-28"])
@pytest.mark.parametrize(
    ("verb", "method", "member", "attribute"),
    [
        ("list_all_tools", "tools/list", "tools", "tools"),
        ("list_all_prompts", "prompts/list", "prompts", "prompts"),
        ("list_all_resources", "resources/list", "resources", "resources"),
        (
            "list_all_resource_templates",
            "resources/templates/list",
            "resourceTemplates",
            "resource_templates",
        ),
    ],
)
def test_each_of_the_four_lists_is_read_to_its_end(
    version: str, verb: str, method: str, member: str, attribute: str
) -> None:
    driver = connected(version)
    getattr(driver.engine, verb)(now=0.0)
    driver.drain()
    common = {"inputSchema": {"type": "object"}, "uri": "a:b", "uriTemplate": "a:{b}"}
    for name, more in (("a", {"nextCursor": "2"}), ("b", {"nextCursor": "3"}), ("c", {})):
        driver.reply(result(version, {member: [{"name": name, **common}], **more}))
    assert driver.methods() == [method] * 3
    assert [m["params"].get("cursor") for m in driver.sent[1:]] == ["2", "3"]
    ready = driver.one(ResultReady)
    assert [each.name for each in getattr(ready.result, attribute)] == ["a", "b", "c"]
    assert ready.result.next_cursor is None


@pytest.mark.req("M3")
@pytest.mark.case("G-01")
@pytest.mark.parametrize("cursors", [["x", "x"], ["x", "y", "x"], ["", ""]])
def test_a_repeated_cursor_ends_the_walk_with_what_was_read(cursors: list[str]) -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    for number, cursor in enumerate(cursors):
        driver.reply(page(str(number), cursor=cursor))
    error = driver.one(RequestFailed).error
    assert isinstance(error, PaginationError)
    assert len(error.items) == len(cursors) - 1, "the repeated page is not counted"
    assert driver.one(DeviationTolerated).fault is PeerFault.CURSOR_LOOP


@pytest.mark.req("M2")
def test_the_page_limit_is_never_passed() -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    for number in range(64):
        driver.reply(page(str(number), cursor=f"c{number}"))
    assert len(driver.sent) == 64
    error = driver.one(RequestFailed).error
    assert isinstance(error, PaginationError)
    assert len(error.items) == 64


@pytest.mark.req("M5")
def test_an_expired_cursor_starts_the_list_over_once() -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    driver.reply(page("a", cursor="x"))
    driver.reply(error=-32602)
    assert "cursor" not in driver.last["params"]
    driver.reply(page("b", cursor="y"))
    driver.reply(page("c"))
    assert [t.name for t in driver.one(ResultReady).result.tools] == ["b", "c"]


@pytest.mark.req("M5")
def test_a_cursor_that_expires_twice_is_an_error() -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    for _ in range(2):
        driver.reply(page("a", cursor="x"))
        driver.reply(error=-32602)
    assert isinstance(driver.one(RequestFailed).error, McpError)


@pytest.mark.parametrize("bad", [{"tools": {}}, {}, {"tools": [], "nextCursor": 5}])
def test_a_page_that_is_none_ends_the_walk(bad: dict[str, Any]) -> None:
    driver = connected()
    driver.engine.list_all_tools(now=0.0)
    driver.drain()
    driver.reply({"resultType": "complete", **bad})
    assert isinstance(driver.one(RequestFailed).error, PaginationError)


@pytest.mark.req("M1")
def test_one_page_is_one_page() -> None:
    driver = connected()
    driver.engine.list_tools("abc", now=0.0)
    driver.drain()
    assert driver.last["params"]["cursor"] == "abc"
    driver.reply(page("a", cursor="x"))
    assert driver.one(ResultReady).result.next_cursor == "x"
