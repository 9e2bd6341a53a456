"""Clients that others wrote, asked by our server over HTTP, and told by it of changes."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from sansmcp import App, Context, ListKind
from sansmcp.types import TextContent
from sansmcp_asyncio import HttpServing
from tests.peers.registry import NODE, NODE_MODULES, VENVS, environment

from .demo_server import Report
from .support import Json, asynchronous, needs
from .test_clients_http import all_gone

pytestmark = pytest.mark.interop

BOTH = """
import asyncio, json, sys
from mcp import ClientSession, types

async def elicited(context, params):
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"name": "Ada ü"})

async def sampled(context, params):
    text = params.messages[0].content.text
    content = types.TextContent(type="text", text=f"<{text}>")
    return types.CreateMessageResult(role="assistant", content=content, model="none")

async def rooted(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///demo", name="demo ü")])

def text_of(result):
    return result.content[0].text

asked = []
told = []
ANSWERS = {
    "elicitation_callback": elicited,
    "sampling_callback": sampled,
    "list_roots_callback": rooted,
}
def say(**what):
    print(json.dumps({"asked": asked, "told": told, **what}))
"""
V1 = (
    BOTH
    + """
from mcp.client.streamable_http import streamable_http_client

async def on_message(message):
    if isinstance(message, types.ServerNotification):
        told.append(message.root.method)

async def main(url):
    async with streamable_http_client(url) as (read, write, _):
        async with ClientSession(read, write, message_handler=on_message, **ANSWERS) as session:
            started = await session.initialize()
            names = [tool.name for tool in (await session.list_tools()).tools]
            answer = text_of(await session.call_tool("ask", {}))
            while not told:
                await session.call_tool("change", {})
                await asyncio.sleep(0.05)
    say(protocol=started.protocolVersion, answer=answer)

asyncio.run(main(sys.argv[1]))
"""
)
V2 = (
    BOTH
    + """
from mcp import Client

async def main(url, mode):
    async def on_message(message):
        if mode == "legacy" and hasattr(message, "method"):
            told.append(message.method)

    async with Client(url, mode=mode, message_handler=on_message, **ANSWERS) as client:
        answer = text_of(await client.call_tool("ask", {}))
        if client.protocol_version == "2026-07-28":
            wanted = {"tools_list_changed": True, "resource_subscriptions": ["test://greeting"]}
            async with client.listen(**wanted) as changes:
                await client.call_tool("change", {})
                for _ in range(2):
                    told.append(type(await anext(changes)).__name__)
        else:
            while not told:
                await client.call_tool("change", {})
                await asyncio.sleep(0.05)
        say(protocol=client.protocol_version, answer=answer)

asyncio.run(main(*sys.argv[1:]))
"""
)
NODE_SCRIPT = """
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const types = require("@modelcontextprotocol/sdk/types.js");

async function main(url) {
  const capabilities = { elicitation: {}, sampling: {}, roots: {} };
  const client = new Client({ name: "asked", version: "1" }, { capabilities });
  const asked = [], told = [];
  client.setRequestHandler(types.ElicitRequestSchema, async ({ params }) => {
    asked.push(params.message);
    return { action: "accept", content: { name: "Ada ü" } };
  });
  client.setRequestHandler(types.CreateMessageRequestSchema, async ({ params }) => {
    const { content } = params.messages[0];
    return { role: "assistant", model: "none", content: { type: "text", text: `<${content.text}>` } };
  });
  client.setRequestHandler(types.ListRootsRequestSchema, async () => (
    { roots: [{ uri: "file:///demo", name: "demo ü" }] }
  ));
  const transport = new StreamableHTTPClientTransport(new URL(url));
  const changed = new Promise((resolve) => {
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, ({ method }) => {
      told.push(method);
      resolve();
    });
  });
  await client.connect(transport);
  const answer = (await client.callTool({ name: "ask", arguments: {} })).content[0].text;
  const timer = setInterval(() => client.callTool({ name: "change", arguments: {} }), 50);
  await changed;
  clearInterval(timer);
  console.log(JSON.stringify({ protocol: transport.protocolVersion, asked, told, answer }));
  await transport.terminateSession();
  await client.close();
  process.exit(0);
}

main(process.argv.at(-1));
"""
PYTHONS = {install.name: str(install.python) for install in VENVS}
NPM = {"NODE_PATH": str(NODE_MODULES)}
CLIENTS: dict[str, tuple[str, list[str], dict[str, str], tuple[str, ...]]] = {
    "mcp-1.30.0": ("mcp-1.30.0", [PYTHONS["mcp-1.30.0"], "-c", V1], {}, ()),
    "mcp-2.3.0 legacy": ("mcp-2.3.0", [PYTHONS["mcp-2.3.0"], "-c", V2], {}, ("legacy",)),
    "mcp-2.3.0 auto": ("mcp-2.3.0", [PYTHONS["mcp-2.3.0"], "-c", V2], {}, ("auto",)),
    "mcp-2.3.0 modern": ("mcp-2.3.0", [PYTHONS["mcp-2.3.0"], "-c", V2], {}, ("2026-07-28",)),
    "npm sdk": ("everything", [str(NODE), "-e", NODE_SCRIPT, "--"], NPM, ()),
}
"""The peer that has to be installed, what starts the client, and its words after the address."""


def asking_app() -> App:
    app = App("curious", "1.0", list_changed=True, subscribe=True, state_keys=[os.urandom(32)])

    @app.tool()
    async def ask(ctx: Context) -> str:
        """Ask for all that there is to ask for, one after the other."""
        form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        who = await ctx.elicit("Who are you?", form)
        assert who.content is not None
        said = await ctx.sample(f"Greet {who.content['name']}.", max_tokens=10)
        roots = await ctx.list_roots()
        text = said.content
        assert isinstance(text, TextContent)
        return f"{who.content['name']}: {text.text} in {roots.roots[0].name}"

    @app.tool()
    def change(ctx: Context) -> str:
        """Tell of changes."""
        ctx.notify_updated("test://greeting")
        ctx.notify_changed(ListKind.TOOLS)
        return "told"

    @app.resource("test://greeting")
    def greeting() -> str:
        return "hello"

    return app


async def run(client: str, url: str, scratch: Path) -> Json:
    """Let the client use the server at `url`; return what it says of that."""
    _, argv, env, words = CLIENTS[client]
    process = await asyncio.create_subprocess_exec(
        *argv,
        url,
        *words,
        cwd=scratch,
        env=environment(env),
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
    return printed


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.req("F1", "G1", "H1", "O1", "W3", "W14")
@asynchronous
async def test_client_is_asked_and_told(client: str, tmp_path: Path) -> None:
    """Asked by requests of the server in a legacy session, in the other era by what a call is answered."""
    needs(CLIENTS[client][0])
    report = Report()
    async with HttpServing(asking_app(), on_event=report.on_event) as serving:
        said = await run(client, serving.url, tmp_path)
        await all_gone(serving)
    modern = said["protocol"] == "2026-07-28"
    assert modern == (client in ("mcp-2.3.0 auto", "mcp-2.3.0 modern"))
    assert said["asked"] == ["Who are you?"]
    assert said["answer"] == "Ada ü: <Greet Ada ü.> in demo ü"
    if modern:
        assert set(said["told"]) == {"ToolsListChanged", "ResourceUpdated"}
    else:
        assert set(said["told"]) == {"notifications/tools/list_changed"}
    assert report.faults == []
    asks = [method for _, method in report.requests].count("tools/call")
    assert asks >= (4 if modern else 2)  # a round is a call of its own
