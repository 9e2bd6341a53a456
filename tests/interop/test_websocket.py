"""Others' WebSockets: the official SDK's, which had both roles once, and the library `websockets`."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sansmcp import MessageIgnored, PeerFault
from sansmcp.revisions import Era, Revision
from sansmcp_asyncio import connect, websocket_serving
from tests.peers import registry
from tests.peers.registry import PEERS, environment

from .demo_server import app
from .http_support import HOST, free_port, running
from .support import asynchronous, needs, text_of
from .test_clients_http import got
from .test_clients_stdio import expected

pytestmark = [pytest.mark.interop, pytest.mark.req("S1")]

SDK = "mcp-1.30.0"
LIBRARY = "fastmcp-4.2.3"
"""In its environment there is `websockets`, which the SDK needs for this and does not bring."""

SCRIPTS = Path(registry.__file__).with_name("clients")
SERVERS = Path(registry.__file__).with_name("servers")

BEGIN = """
import asyncio, glob, json, os, sys, warnings
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
sys.path.append(sys.argv[2])  # last, so that all else is the SDK's own
"""
CLIENT = """
from mcp import ClientSession
from mcp.client.websocket import websocket_client
from mcp_v1 import use

async def main(url):
    async with websocket_client(url) as (read, write), ClientSession(read, write) as session:
        print(json.dumps(await use(session)))
asyncio.run(main(sys.argv[3]))
"""
SERVER = """
import uvicorn
from mcp.server.websocket import websocket_server
from mcp_v1 import server
inner = server._mcp_server

async def asgi(scope, receive, send):
    if scope["type"] == "websocket":
        async with websocket_server(scope, receive, send) as (read, write):
            await inner.run(read, write, inner.create_initialization_options())

port = int(sys.argv[3])
uvicorn.run(asgi, host="127.0.0.1", port=port, log_level="error", ws="websockets-sansio", lifespan="off")
"""
BY_HAND = """
import websockets

async def main(url):
    seen = {}
    async with websockets.connect(url, subprotocols=["mcp"]) as ws:
        seen["subprotocol"] = ws.subprotocol
        seen["extensions"] = [e.name for e in ws.protocol.extensions]
        text = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {}}}})
        await ws.send([text[:10], text[10:11], text[11:]])
        seen["versions"] = json.loads(await ws.recv())["result"]["supportedVersions"]
        await (await ws.ping())
        await ws.send(b"{}")
        try:
            await ws.recv()
        except websockets.ConnectionClosed as error:
            seen["code"], seen["reason"] = error.rcvd.code, error.rcvd.reason
    try:
        await websockets.connect(url, origin="http://evil.example")
    except websockets.InvalidStatus as error:
        seen["foreign"] = error.response.status_code
    print(json.dumps(seen))
asyncio.run(main(sys.argv[3]))
"""


def library() -> str:
    """Where the packages of `LIBRARY` are."""
    needs(LIBRARY)
    python = Path(PEERS[LIBRARY].argv[0])
    return str(next((python.parent.parent / "lib").glob("python3*/site-packages")))


def command(peer: str, code: str, folder: Path, word: str) -> list[str]:
    needs(peer)
    return [PEERS[peer].argv[0], "-c", BEGIN + code, str(folder), library(), word]


async def output(argv: list[str], scratch: Path) -> Any:
    """What a client prints."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        cwd=scratch,
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    return got(out.decode())


@asynchronous
async def test_the_sdks_client_and_our_server(tmp_path: Path) -> None:
    async with websocket_serving(app) as serving:
        url = f"ws://{HOST}:{serving.port}/mcp"
        seen = await output(command(SDK, CLIENT, SCRIPTS, url), tmp_path)
        assert serving.listener.stats()["connections"] <= 1
    assert seen == expected(SDK, Revision.V2025_11_25)


@asynchronous
@pytest.mark.case("W-01")
async def test_our_client_and_the_sdks_server(tmp_path: Path) -> None:
    port = free_port()
    launch = registry.Launch(command(SDK, SERVER, SERVERS, str(port)), tmp_path, environment())
    async with running(launch, port), connect(f"ws://{HOST}:{port}/") as client:
        assert client.era is Era.LEGACY
        result = await client.call_tool("echo", {"text": "hello ü 🐟"})
        assert text_of(result) == "hello ü 🐟"
        many = await asyncio.gather(*(client.call_tool("add", {"a": n, "b": 1}) for n in range(50)))
        assert list(map(text_of, many)) == [str(n + 1) for n in range(50)]
        large = "x" * 300_000
        result = await client.call_tool("echo", {"text": large})
        assert text_of(result) == large


@asynchronous
async def test_a_library_for_websockets_and_our_server(tmp_path: Path) -> None:
    faults: list[PeerFault] = []

    def on_event(event: Any) -> None:
        if isinstance(event, MessageIgnored) and isinstance(event.reason, PeerFault):
            faults.append(event.reason)

    async with websocket_serving(app, on_event=on_event) as serving:
        url = f"ws://{HOST}:{serving.port}/mcp"
        seen = await output(command(LIBRARY, BY_HAND, SCRIPTS, url), tmp_path)
    assert seen["subprotocol"] == "mcp"
    assert seen["extensions"] == []
    assert "2026-07-28" in seen["versions"]
    assert (seen["code"], seen["reason"]) == (1003, "a message must be text, not bytes")
    assert seen["foreign"] == 403
    assert faults == [PeerFault.BINARY_MESSAGE, PeerFault.FOREIGN_ORIGIN]
