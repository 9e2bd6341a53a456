"""Changes, between our engines and those of others: the second generation of the official Python SDK."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import CloseReason, Command, ListChanged, ListKind, ResourceUpdated, Revision
from sansmcp.types import SubscriptionFilter
from sansmcp_asyncio import HttpServing
from tests.bindings.support import soon
from tests.peers.registry import CLIENTS

from .changing_server import make_app
from .support import Json, Talk, asynchronous, needs

pytestmark = pytest.mark.interop

SDK = "mcp-2.3.0-modern"
SERVER = Path(__file__).with_name("changing_server.py")

LISTENS = """
import asyncio, json, sys
from mcp import Client, StdioServerParameters

async def main(how, *target):
    server = StdioServerParameters(command=target[0], args=target[1:]) if how == "stdio" else target[0]
    async with Client(server, mode="2026-07-28") as client:
        asked = {"tools_list_changed": True, "prompts_list_changed": True}
        async with client.listen(**asked, resource_subscriptions=["test://watched"]) as changes:
            print(json.dumps(changes.honored.model_dump(by_alias=True, exclude_none=True)), flush=True)
            for uri in ("test://watched", "test://other"):
                await client.call_tool("change", {"uri": uri})
            for _ in range(2):
                print(json.dumps(repr(await anext(changes))), flush=True)
            if how == "until-the-end":
                async for change in changes:
                    print(json.dumps(repr(change)), flush=True)
                print(json.dumps("graceful"), flush=True)
        tools = await client.list_tools()
        print(json.dumps(len(tools.tools)), flush=True)

asyncio.run(main(*sys.argv[1:]))
"""

SUBSCRIBES = """
import asyncio, json, sys
from mcp import Client

async def main(url):
    heard, both = [], asyncio.Event()

    async def on_message(message):
        heard.append(message.model_dump(by_alias=True, mode="json", exclude_none=True))
        if len(heard) == 2:
            both.set()

    async with Client(url, mode="legacy", message_handler=on_message) as client:
        await client.subscribe_resource("test://watched")
        await client.call_tool("change", {"uri": "test://watched"})
        await asyncio.wait_for(both.wait(), 20)
        await client.unsubscribe_resource("test://watched")
    print(json.dumps(sorted(m["method"] for m in heard)))

asyncio.run(main(*sys.argv[1:]))
"""

CHANGES = """
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("changing", version="1.0.0", log_level="WARNING")

@server.tool()
async def change(uri: str, ctx: Context) -> str:
    await ctx.notify_tools_changed()
    await ctx.notify_resource_updated(uri)
    return uri

@server.resource("test://watched")
def watched() -> str:
    return "x"

server.run("stdio")
"""


async def sdk(code: str, scratch: Path, *arguments: str) -> asyncio.subprocess.Process:
    """Run `code` with the SDK."""
    needs(SDK)
    launch = CLIENTS[SDK].launch([], scratch)
    return await asyncio.create_subprocess_exec(
        launch.argv[0],
        "-c",
        code,
        *arguments,
        cwd=launch.cwd,
        env=launch.env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )


async def printed(process: asyncio.subprocess.Process) -> list[Any]:
    """Each line that it prints, until its end."""
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    return [json.loads(line) for line in out.splitlines()]


HONORED: Json = {"toolsListChanged": True, "resourceSubscriptions": ["test://watched"]}


@pytest.mark.req("O9", "W14")
@pytest.mark.parametrize("how", ["stdio", "http"])
@asynchronous
async def test_the_sdk_listens_to_our_server(how: str, tmp_path: Path) -> None:
    async with HttpServing(make_app()) as serving:
        target = [sys.executable, str(SERVER)] if how == "stdio" else [serving.url]
        honored, *changes, tools = await printed(await sdk(LISTENS, tmp_path, how, *target))
        await soon(lambda: not serving.listener.server.subscriptions, "the end of the subscription")
    assert honored == HONORED
    assert changes == ["ToolsListChanged()", "ResourceUpdated(uri='test://watched')"]
    assert tools == 3


@pytest.mark.req("O9", "O10")
@pytest.mark.case("M-08")
@asynchronous
async def test_the_sdk_takes_the_end_of_our_server_for_graceful(tmp_path: Path) -> None:
    async with HttpServing(make_app()) as serving:
        process = await sdk(LISTENS, tmp_path, "until-the-end", serving.url)
        assert process.stdout is not None
        lines = [json.loads(await process.stdout.readline()) for _ in range(3)]
        [request] = serving.listener.server.subscriptions
        now = asyncio.get_running_loop().time()
        serving.listener.server.end_subscription(request, now=now)
        assert serving._handlers is not None
        serving._handlers.pump.drain()
        lines += await printed(process)
    # A change that was told just before may come in between.
    assert lines[-2:] == ["graceful", 3]


@pytest.mark.req("O8", "W14")
@asynchronous
async def test_the_sdk_subscribes_as_older_clients_do(tmp_path: Path) -> None:
    async with HttpServing(make_app()) as serving:
        [heard] = await printed(await sdk(SUBSCRIBES, tmp_path, serving.url))
    assert heard == ["notifications/resources/updated", "notifications/tools/list_changed"]


@pytest.mark.req("O1", "O3", "O5")
@asynchronous
async def test_our_client_listens_to_a_server_of_the_sdk(tmp_path: Path) -> None:
    needs(SDK)
    launch = CLIENTS[SDK].launch([], tmp_path)
    talk = Talk()
    async with sansmcp_asyncio.connect(
        Command([launch.argv[0], "-c", CHANGES], launch.env, str(launch.cwd)),
        on_event=talk.on_event,
        on_wire=talk.on_wire,
    ) as client:
        assert client.revision is Revision.V2026_07_28
        async with client.listen(tools=True, resources=["test://watched"]) as changes:
            assert changes.honored == SubscriptionFilter(
                tools_list_changed=True, resource_subscriptions=["test://watched"]
            )
            for uri in ("test://watched", "test://other"):
                await client.call_tool("change", {"uri": uri})
            seen = [await anext(changes) for _ in range(2)]
        await client.call_tool("change", {"uri": "test://watched"})
    assert [type(change) for change in seen] == [ListChanged, ResourceUpdated]
    assert seen[0].kind is ListKind.TOOLS  # type: ignore[union-attr]
    assert changes.closed is not None
    assert changes.closed.reason is CloseReason.LOCAL
    assert not talk.faults()
