"""Many servers, one registry: names, collisions, what a model is shown and what it is told."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import Revision
from sansmcp.toolset import (
    ToolEntry,
    ToolFeedback,
    ToolNameCollisionError,
    Toolset,
    result_text,
    server_fingerprint,
    text_only,
    tool_feedback,
    ui_resource_uri,
    visible_to_model,
)
from sansmcp.types import CallToolResult, Tool
from sansmcp.types.convert import structure

SCHEMA = {"type": "object", "x-vendor": {"deep": [1]}, "properties": {"q": {"type": "string"}}}


def tool(name: str, **more: Any) -> Tool:
    return Tool(name=name, input_schema=SCHEMA, **more)


def tools(*names: str) -> list[Tool]:
    return [tool(n) for n in names]


def names(toolset: Toolset[str]) -> list[str]:
    return [e.name for e in toolset]


@pytest.mark.req("V1", "V2", "V3", "V4")
def test_a_tool_is_shown_under_one_name_and_called_under_another() -> None:
    toolset: Toolset[str] = Toolset()
    assert toolset.register("hub", tools("search", "read"), prefix="hub_") == ["hub_search", "hub_read"]
    entry = toolset["hub_search"]
    assert (entry.name, entry.server, entry.server_name) == ("hub_search", "hub", "search")
    assert entry.tool.input_schema is SCHEMA
    assert "hub_search" in toolset
    assert "search" not in toolset
    assert len(toolset) == 2
    with pytest.raises(KeyError):
        toolset["search"]


@pytest.mark.req("V2")
@pytest.mark.parametrize(
    ("more", "prefix", "colliding"),
    [
        (["a"], "", ["a"]),
        (["x", "b", "a"], "", ["b", "a"]),
        (["x", "x"], "", ["x"]),
        (["a"], "p_", None),
    ],
)
def test_a_collision_is_told_before_anything_is_registered(
    more: list[str], prefix: str, colliding: list[str] | None
) -> None:
    toolset: Toolset[str] = Toolset()
    toolset.register("one", tools("a", "b"))
    if colliding is None:
        assert toolset.register("two", tools(*more), prefix=prefix) == [prefix + m for m in more]
        return
    with pytest.raises(ToolNameCollisionError, match="give this server a prefix") as caught:
        toolset.register("two", tools(*more), prefix=prefix)
    assert list(caught.value.names) == colliding
    assert names(toolset) == ["a", "b"]


@pytest.mark.req("V2")
def test_names_can_be_chosen_freely() -> None:
    toolset: Toolset[str] = Toolset()
    toolset.register("one", tools("a"), rename=lambda name: f"{name}@one")
    assert toolset["a@one"].server_name == "a"
    with pytest.raises(ToolNameCollisionError):
        toolset.register("two", tools("b", "c"), rename=lambda name: "same")
    assert names(toolset) == ["a@one"]


@pytest.mark.req("V2")
def test_a_list_that_changed_takes_the_place_of_the_old_one() -> None:
    toolset: Toolset[str] = Toolset()
    toolset.register("one", tools("a", "b"))
    toolset.register("two", tools("c"))
    assert toolset.replace("one", tools("b", "d")) == ["b", "d"]
    assert sorted(names(toolset)) == ["b", "c", "d"]
    with pytest.raises(ToolNameCollisionError):
        toolset.replace("one", tools("c"))
    assert sorted(names(toolset)) == ["b", "c", "d"], "nothing changed"
    assert toolset.remove("one") == ["b", "d"]
    assert toolset.remove("one") == []
    assert names(toolset) == ["c"]


def result(content: list[dict[str, Any]], **more: Any) -> CallToolResult:
    raw = {"resultType": "complete", "content": content, **more}
    made = structure(raw, CallToolResult, Revision.V2026_07_28)
    assert isinstance(made, CallToolResult)
    return made


TEXT = {"type": "text", "text": "one"}
IMAGE = {"type": "image", "data": "aGk=", "mimeType": "image/png"}


@pytest.mark.req("V5", "V6", "U5")
@pytest.mark.parametrize(
    ("content", "more", "text", "only"),
    [
        ([TEXT, {"type": "text", "text": "twö"}], {}, "one\ntwö", "one\ntwö"),
        ([TEXT, IMAGE], {}, "one", "one"),
        ([TEXT], {"structuredContent": {"a": "ö"}}, '{"a":"ö"}', "one"),
        ([TEXT], {"structuredContent": {}}, "{}", "one"),
        ([TEXT], {"structuredContent": 0}, "0", "one"),
        ([TEXT], {"structuredContent": None}, "null", "one"),
        ([IMAGE], {}, '[{"type":"image","data":"aGk=","mimeType":"image/png"}]', ""),
        ([{"type": "new", "x": 1}], {}, '[{"type":"new","x":1}]', ""),
        ([], {}, "", ""),
    ],
)
def test_a_result_is_one_text(content: list[Any], more: dict[str, Any], text: str, only: str) -> None:
    made = result(content, **more)
    assert result_text(made) == text
    assert text_only(made) == only
    assert tool_feedback(made) == ToolFeedback(text, is_error=False)
    assert tool_feedback(result(content, **more, isError=True)).is_error


@pytest.mark.req("V7")
@pytest.mark.parametrize(
    ("meta", "uri"),
    [
        ({"ui": {"resourceUri": "ui://a"}, "ui/resourceUri": "ui://b"}, "ui://a"),
        ({"ui/resourceUri": "ui://b"}, "ui://b"),
        ({"ui": "no map", "ui/resourceUri": "ui://b"}, "ui://b"),
        ({"ui": {"resourceUri": 5}, "ui/resourceUri": "ui://b"}, "ui://b"),
        ({"ui": {"resourceUri": 5}}, None),
        ({"ui/resourceUri": ["ui://b"]}, None),
        ({}, None),
        (None, None),
    ],
)
def test_where_the_user_interface_is(meta: Any, uri: str | None) -> None:
    assert ui_resource_uri(tool("a", meta=meta)) == uri


@pytest.mark.req("V8")
@pytest.mark.parametrize(
    ("meta", "visible"),
    [
        (None, True),
        ({"ui": {}}, True),
        ({"ui": {"visibility": ["model", "app"]}}, True),
        ({"ui": {"visibility": ["app"]}}, False),
        ({"ui": {"visibility": []}}, False),
        ({"ui": {"visibility": "app"}}, True),
        ({"ui": 1}, True),
    ],
)
def test_tools_for_the_user_interface_alone_are_not_for_the_model(meta: Any, visible: bool) -> None:
    toolset: Toolset[str] = Toolset()
    toolset.register("one", [tool("a", meta=meta), tool("b")])
    assert visible_to_model(toolset["a"].tool) is visible
    assert [e.name for e in toolset.for_model()] == (["a", "b"] if visible else ["b"])
    assert len(toolset) == 2


@pytest.mark.req("V10")
def test_a_server_has_a_name_that_stays() -> None:
    known = server_fingerprint("https://example.com/mcp")
    assert known == server_fingerprint("https://example.com/mcp")
    assert len(known) == 64
    others = [
        server_fingerprint("https://example.com/mcp2"),
        server_fingerprint(["https://example.com/mcp"]),
        server_fingerprint(["python", "server.py"]),
        server_fingerprint(["python server.py"]),
        server_fingerprint(["python", "server.py"], {"A": "1"}),
        server_fingerprint(["python", "server.py"], {"A": "2"}),
    ]
    assert len({known, *others}) == 1 + len(others)
    assert server_fingerprint(["x"], {"A": "1", "B": "2"}) == server_fingerprint(["x"], {"B": "2", "A": "1"})


def test_an_entry_shows_what_it_is() -> None:
    entry = ToolEntry("shown", "server", "name", tool("name"))
    assert "shown" in repr(entry)
    assert repr(Toolset()) == "<Toolset of 0 tools>"
