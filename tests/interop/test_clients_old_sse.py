"""Clients that others wrote, over HTTP+SSE of 2024-11-05, against our server."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from sansmcp import Revision
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp_asyncio import HttpServing
from tests.peers.registry import NODE, NODE_MODULES, VENVS, environment

from .demo_server import Report, app
from .support import Json, asynchronous, needs
from .test_clients_http import all_gone

pytestmark = pytest.mark.interop

PYTHON = """
import asyncio, inspect, json, sys
from mcp import ClientSession
from mcp.client.sse import sse_client

def plain(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)

async def main(url):
    steps = []
    async def on_progress(step, total, message):
        steps.append([step, total])
    async with sse_client(url) as (read, write), ClientSession(read, write) as session:
        started = plain(await session.initialize())
        tools = plain(await session.list_tools())["tools"]
        echoes = await asyncio.gather(*(session.call_tool("echo", {"text": f"ü {n}"}) for n in range(5)))
        if "progress_callback" in inspect.signature(session.call_tool).parameters:
            await session.call_tool("slow", {"seconds": 0.2}, progress_callback=on_progress)
        print(json.dumps({
            "protocol": started["protocolVersion"],
            "tools": [tool["name"] for tool in tools],
            "echoes": [plain(echo)["content"][0]["text"] for echo in echoes],
            "steps": steps,
        }))

asyncio.run(main(sys.argv[1]))
"""
NODE_SCRIPT = """
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");

async function main(url) {
  const client = new Client({ name: "old", version: "1" }, { capabilities: {} });
  const transport = new SSEClientTransport(new URL(url));
  let protocol;
  transport.setProtocolVersion = (version) => { protocol = version; transport._protocolVersion = version; };
  await client.connect(transport);
  const { tools } = await client.listTools();
  const numbers = [0, 1, 2, 3, 4];
  const call = (n) => client.callTool({ name: "echo", arguments: { text: `ü ${n}` } });
  const echoes = await Promise.all(numbers.map(call));
  const steps = [];
  const onprogress = ({ progress, total }) => { steps.push([progress, total]); };
  await client.callTool({ name: "slow", arguments: { seconds: 0.2 } }, undefined, { onprogress });
  console.log(JSON.stringify({
    protocol, tools: tools.map((t) => t.name), echoes: echoes.map((e) => e.content[0].text), steps,
  }));
  await client.close();
}

main(process.argv.at(-1));
"""
STEPS = [[1, 4], [2, 4], [3, 4], [4, 4]]
PYTHONS = {install.name: str(install.python) for install in VENVS}
CLIENTS = {
    "mcp-1.8.1": ("2024-11-05", []),
    "mcp-1.30.0": ("2025-11-25", STEPS),
    "mcp-2.3.0": ("2025-11-25", STEPS),
    "npm-server-2.4.0": ("2025-11-25", STEPS),  # what is installed for it has a client, too
}
"""What each of them speaks at most, and the progress that it can be told of."""


async def run(client: str, url: str, scratch: Path) -> Json:
    """Let the client use the server whose stream is at `url`; return what it says of that."""
    if client in PYTHONS:
        argv, more = [PYTHONS[client], "-c", PYTHON], {}
    else:
        argv, more = [str(NODE), "-e", NODE_SCRIPT, "--"], {"NODE_PATH": str(NODE_MODULES)}
    process = await asyncio.create_subprocess_exec(
        *argv,
        url,
        cwd=scratch,
        env=environment(more),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    printed: Json = json.loads(out)
    if client not in PYTHONS and printed["steps"] == STEPS[:-1]:
        # It forgets who wants to know of a step when the answer comes with it.
        printed["steps"] = STEPS
    return printed


def expected(client: str, revision: str | None = None) -> Json:
    newest, steps = CLIENTS[client]
    return {
        "protocol": revision or newest,
        "tools": ["echo", "add", "fail", "slow"],
        "echoes": [f"ü {n}" for n in range(5)],
        "steps": steps,
    }


def stream_of(serving: HttpServing) -> str:
    return f"http://{serving.host}:{serving.port}/sse"


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.req("P8", "J1")
@asynchronous
async def test_client_gets_everything(client: str, tmp_path: Path) -> None:
    needs(client)
    report = Report()
    async with HttpServing(app, old_sse=OldSsePaths(), on_event=report.on_event) as serving:
        assert await run(client, stream_of(serving), tmp_path) == expected(client)
        await all_gone(serving)
    assert report.faults == []
    assert {revision for revision, _ in report.requests} == {CLIENTS[client][0]}


@pytest.mark.parametrize("revision", [Revision.V2024_11_05, Revision.V2025_03_26, Revision.V2025_06_18])
@pytest.mark.req("P8")
@asynchronous
async def test_newer_clients_go_back_to_what_is_served(revision: Revision, tmp_path: Path) -> None:
    client = "mcp-1.30.0"
    needs(client)
    async with HttpServing(app, old_sse=OldSsePaths(), revisions=[revision]) as serving:
        assert await run(client, stream_of(serving), tmp_path) == expected(client, revision.value)
        await all_gone(serving)


@pytest.mark.req("P8", "W11")
@pytest.mark.case("J-11")
@asynchronous
async def test_clients_at_once_do_not_meet(tmp_path: Path) -> None:
    """They all count their requests from the same number."""
    for client in CLIENTS:
        needs(client)
    async with HttpServing(app, old_sse=OldSsePaths()) as serving:
        done = await asyncio.gather(*(run(client, stream_of(serving), tmp_path) for client in CLIENTS))
        await all_gone(serving)
    assert done == [expected(client) for client in CLIENTS]
