"""Clients that others wrote, asked by one handler of ours: over stdio and HTTP, in both eras."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from sansmcp_asyncio import HttpServing
from tests.peers.registry import CLIENTS
from tests.questions_support import FORMS, SUMMARY, asking_app

from .support import asynchronous, needs
from .test_clients_http import MODES

pytestmark = pytest.mark.interop

SERVER = Path(__file__).with_name("asking_server.py")

COMMON = """
import asyncio, json, sys
from mcp import types
asked = []

async def elicit(context, params):
    asked.append(params.message)
    return types.ElicitResult(action="accept", content={"name": "Bo"})

async def sample(context, params):
    text = types.TextContent(type="text", text="hello")
    return types.CreateMessageResult(role="assistant", content=text, model="m")

async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///home")])

async def use(session):
    said = {}
    for form in FORMS:
        result = await session.call_tool(form, {})
        said[form] = result.content[0].text
    prompt = await session.get_prompt("asks_in_a_prompt", {})
    said["prompt"] = prompt.messages[0].content.text
    print(json.dumps({"said": said, "asked": asked}))

callbacks = dict(elicitation_callback=elicit, sampling_callback=sample, list_roots_callback=roots)
"""
V1 = """
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

def streams(target):
    if len(target) == 1:
        return streamable_http_client(target[0])
    return stdio_client(StdioServerParameters(command=target[0], args=target[1:]))

async def main(mode, *target):
    async with streams(target) as (read, write, *_), ClientSession(read, write, **callbacks) as session:
        await session.initialize()
        await use(session)
"""
V2 = """
from mcp import Client, StdioServerParameters

async def main(mode, *target):
    server = target[0]
    if len(target) > 1:
        server = StdioServerParameters(command=target[0], args=list(target[1:]))
    async with Client(server, mode=mode, **callbacks) as client:
        await use(client)
"""
END = "\nasyncio.run(main(*sys.argv[1:]))\n"


async def run(client: str, target: Sequence[str], scratch: Path) -> tuple[int | None, str, str]:
    """Let the client use the server at a URL or behind a command; its exit code and what it wrote."""
    launch = CLIENTS[client].launch([], scratch)
    code = f"FORMS = {FORMS!r}" + COMMON + (V2 if client in MODES else V1) + END
    process = await asyncio.create_subprocess_exec(
        launch.argv[0],
        "-c",
        code,
        MODES.get(client, ""),
        *target,
        cwd=launch.cwd,
        env=launch.env,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode(), err.decode()


@pytest.mark.req("A17", "E12", "E14", "E15", "F1", "G1", "H1")
@pytest.mark.parametrize("carrier", ["stdio", "http"])
@pytest.mark.parametrize("client", list(CLIENTS))
@asynchronous
async def test_client_answers_what_one_handler_asks(client: str, carrier: str, tmp_path: Path) -> None:
    needs(client)
    if carrier == "stdio":
        code, out, err = await run(client, [sys.executable, str(SERVER)], tmp_path)
    else:
        async with HttpServing(asking_app()) as serving:
            code, out, err = await run(client, [serving.url], tmp_path)
    assert code == 0, err
    got = json.loads(out)
    assert got["said"] == {**dict.fromkeys(FORMS, SUMMARY), "prompt": "accept {'name': 'Bo'}"}
    assert got["asked"] == ["Who are you?"] * 4
