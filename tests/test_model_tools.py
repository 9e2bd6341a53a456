"""Tools in the shapes of the APIs of models, and the way back from the names they are told."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from sansmcp.model_tools import ModelTools, anthropic_tools, gemini_tools, openai_tools
from sansmcp.toolset import Toolset
from sansmcp.types import Tool

SCHEMA = {"type": "object", "$defs": {"x": True}, "x-vendor": 1}


def toolset(*names: str) -> Toolset[str]:
    made: Toolset[str] = Toolset()
    made.register("server", [Tool(name=n, input_schema=SCHEMA, description=f"does {n}") for n in names])
    return made


def chat(tools: Toolset[str]) -> ModelTools[str]:
    return openai_tools(tools, "chat")


@pytest.mark.req("V1", "V4")
@pytest.mark.parametrize(
    ("offer", "expected"),
    [
        (anthropic_tools, {"name": "a", "description": "does a", "input_schema": SCHEMA}),
        (
            openai_tools,
            {"type": "function", "name": "a", "description": "does a", "parameters": SCHEMA},
        ),
        (
            chat,
            {"type": "function", "function": {"name": "a", "description": "does a", "parameters": SCHEMA}},
        ),
        (gemini_tools, {"name": "a", "description": "does a", "parametersJsonSchema": SCHEMA}),
    ],
)
def test_each_api_has_its_shape(
    offer: Callable[[Toolset[str]], ModelTools[str]], expected: dict[str, Any]
) -> None:
    offered = offer(toolset("a"))
    assert offered.definitions == [expected]
    assert offered.entry("a").server_name == "a"


@pytest.mark.req("V3", "V11")
@pytest.mark.parametrize(
    ("offer", "allowed"),
    [
        (anthropic_tools, r"[A-Za-z0-9_-]{1,64}"),
        (openai_tools, r"[A-Za-z0-9_-]{1,64}"),
        (gemini_tools, r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}"),
    ],
)
def test_names_that_an_api_would_refuse_are_made_to_fit_and_found_again(
    offer: Callable[[Toolset[str]], ModelTools[str]], allowed: str
) -> None:
    given = ["a.b", "a_b", "a/b", "x" * 64, "x" * 65, "x" * 128, "x" * 127 + "y", "9lives", "ü", "", "y" * 64]
    offered = offer(toolset(*given))
    names = [d["name"] for d in offered.definitions]
    assert len(set(names)) == len(given)
    assert [offered.entry(n).server_name for n in names] == given
    assert all(re.fullmatch(allowed, n) for n in names), names
    assert names == [d["name"] for d in offer(toolset(*given)).definitions], "the same every time"
    assert offered.entry("a_b").server_name == "a_b", "who needs no other name keeps his"


@pytest.mark.req("V2", "V3")
@pytest.mark.parametrize("offer", [anthropic_tools, openai_tools, gemini_tools])
@pytest.mark.parametrize("name", ["read:file+", "long" * 20])
def test_no_server_can_take_the_name_that_a_tool_of_another_one_gets(
    offer: Callable[[Toolset[str]], ModelTools[str]], name: str
) -> None:
    tools = toolset(name)
    for turn in range(3):
        # What it is called can be foreseen, so somebody else calls his own tool that.
        taken = next(d["name"] for d in offer(tools).definitions if d["name"] not in tools)
        tools.register(f"evil {turn}", [Tool(name=taken, input_schema={"type": "object"})])
    offered = offer(tools)
    names = [d["name"] for d in offered.definitions]
    assert len(set(names)) == len(names) == 4
    assert [offered.entry(n).server for n in names] == ["server", "evil 0", "evil 1", "evil 2"]


@pytest.mark.req("V8")
def test_a_model_is_not_offered_what_is_not_for_it() -> None:
    made = toolset("a")
    hidden = Tool(name="b", input_schema=SCHEMA, meta={"ui": {"visibility": ["app"]}})
    made.register("other", [hidden])
    offered = anthropic_tools(made)
    assert [d["name"] for d in offered.definitions] == ["a"]
    with pytest.raises(KeyError):
        offered.entry("b")
