"""What is loaded for one call of a plain tool, over stdio and in threads: nothing that it does not need."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SERVER = """
import asyncio, json, sys
from pathlib import Path
from sansmcp import App
from sansmcp_asyncio import serve_stdio

app = App("test", "1")

@app.tool()
async def echo(text: str) -> str:
    return text

asyncio.run(serve_stdio(app))
Path(sys.argv[1]).write_text(json.dumps(list(sys.modules)))
"""

CLIENT = """
import asyncio, json, sys
from sansmcp_asyncio import connect

async def main():
    async with connect([sys.executable, *sys.argv[1:]]) as client:
        result = await client.call_tool("echo", {"text": "hi"})
        assert result.content[0].text == "hi"

asyncio.run(main())
print(json.dumps(list(sys.modules)))
"""

NOT_NEEDED = (
    *("cattr", "cattrs", "click", "h11", "jsonschema", "jsonschema_rs", "msgspec", "rich", "trio", "wsproto"),
    *("hmac", "secrets"),
    *("sansmcp.auth", "sansmcp.bridge", "sansmcp.http", "sansmcp.replay", "sansmcp.toolset"),
    *("sansmcp.extensions.apps", "sansmcp.extensions.skills", "sansmcp.extensions.tasks"),
    *("sansmcp.dialogue", "sansmcp.forms", "sansmcp.questions", "sansmcp.uritemplate"),
    *("sansmcp.session.sealing", "sansmcp.session.snapshot"),
    *("sansmcp.states.auth", "sansmcp.states.http"),
    *("sansmcp.wire.http1", "sansmcp.wire.sse", "sansmcp.wire.websocket"),
)

TYPES = {"base", "codegen", "content", "convert", "icons", "lifecycle", "methods", "plan", "projection"}
TYPES |= {"reader", "results", "subscriptions", "tools", "writer"}
"""Modules of `sansmcp.types` that are needed."""


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The modules of both processes."""
    folder = tmp_path_factory.mktemp("loading")
    server, told = folder / "server.py", folder / "told.json"
    server.write_text(SERVER, "utf-8")
    argv = [sys.executable, "-c", CLIENT, str(server), str(told)]
    done = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=60)
    return {"client": json.loads(done.stdout), "server": json.loads(told.read_text("utf-8"))}


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_call_over_stdio_loads_nothing_that_it_does_not_need(
    loaded: dict[str, list[str]], side: str
) -> None:
    modules = loaded[side]
    assert "sansmcp" in modules
    assert [m for m in modules for name in NOT_NEEDED if m == name or m.startswith(f"{name}.")] == []
    types = {m.removeprefix("sansmcp.types.") for m in modules if m.startswith("sansmcp.types.")}
    assert types - TYPES == set()
    opposite = {"client": "sansmcp.server", "server": "sansmcp.client"}[side]
    assert opposite not in modules


IN_THREADS = """
import json, sys
from sansmcp import App
from sansmcp_threads import connect_memory

app = App("test", "1")

@app.tool()
def echo(text: str) -> str:
    return text

with connect_memory(app) as client:
    assert client.call_tool("echo", {"text": "hi"}).content[0].text == "hi"
print(json.dumps(list(sys.modules)))
"""

ALL_SHARED = """
import importlib, json, pkgutil, sys
import sansmcp_shared

names = [module.name for module in pkgutil.iter_modules(sansmcp_shared.__path__, "sansmcp_shared.")]
for name in names:
    importlib.import_module(name)
assert "sansmcp_shared.pump" in names
print(json.dumps(list(sys.modules)))
"""


@pytest.mark.parametrize("code", [IN_THREADS, ALL_SHARED], ids=["threads", "shared"])
def test_what_is_for_no_loop_loads_none(code: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    loaded = {name.partition(".")[0] for name in json.loads(done.stdout)}
    assert "sansmcp_shared" in loaded
    assert loaded & {"asyncio", "trio", "sansmcp_asyncio", "sansmcp_trio"} == set()
