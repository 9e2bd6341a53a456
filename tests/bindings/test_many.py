"""Many servers at once: one that fails does not sink the rest."""

from __future__ import annotations

import asyncio
import sys

import pytest

from sansmcp import App, ToolNameCollisionError
from sansmcp_asyncio import connect, connect_many, connect_memory


def app(name: str, *tools: str) -> App:
    made = App(name, "1")
    for tool in tools:

        def handler(text: str, said: str = f"{name}/{tool}") -> str:
            if text == "fail":
                raise ValueError("no")
            return f"{said}: {text}"

        made.tool(tool)(handler)
    return made


@pytest.mark.req("V1", "V3", "V6", "V9")
def test_the_tools_of_many_servers_are_one_set_and_a_bad_server_is_told_of() -> None:
    async def run() -> None:
        servers = {
            "one": connect_memory(app("one", "a", "b")),
            "gone": connect([sys.executable, "-c", "raise SystemExit(3)"]),
            "two": connect_memory(app("two", "a")),
            "refused": connect("http://127.0.0.1:9/mcp"),
            "empty": connect_memory(App("empty", "1")),
        }
        async with connect_many(servers) as many:
            assert [e.name for e in many.toolset] == ["one_a", "one_b", "two_a"]
            assert sorted(many.clients) == ["empty", "one", "two"]
            assert sorted(many.failures) == ["gone", "refused"]
            assert "3" in str(many.failures["gone"])
            feedback = await many.call("two_a", {"text": "hi"})
            assert (feedback.content, feedback.is_error) == ("two/a: hi", False)
            assert (await many.call("one_a", {"text": "fail"})).is_error
            with pytest.raises(KeyError):
                await many.call("a")
            clients = list(many.clients.values())
        for client in clients:
            with pytest.raises(Exception, match="ended"):
                await client.list_tools()

    asyncio.run(run())


@pytest.mark.req("V2", "V9")
def test_names_that_collide_are_the_failure_of_the_later_server() -> None:
    async def run() -> None:
        servers = {"one": connect_memory(app("one", "a")), "two": connect_memory(app("two", "b", "a"))}
        async with connect_many(servers, prefix=lambda name: "") as many:
            assert [e.name for e in many.toolset] == ["a"]
            assert isinstance(many.failures["two"], ToolNameCollisionError)
            assert list(many.clients) == ["one"]

    asyncio.run(run())


@pytest.mark.req("V2")
def test_a_list_that_changed_is_read_anew() -> None:
    async def run() -> None:
        one = app("one", "a")
        async with connect_many({"one": connect_memory(one), "two": connect_memory(app("two", "a"))}) as many:
            one.tool("c")(lambda text: text)
            assert await many.refresh("one") == ["one_a", "one_c"]
            assert sorted(e.name for e in many.toolset) == ["one_a", "one_c", "two_a"]
            assert (await many.call("one_c", {"text": "x"})).content == "x"

    asyncio.run(run())
