"""Clients that others wrote against our server over HTTP: what they get of it, in every era and revision."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path

import pytest

from sansmcp import ALL_REVISIONS, Revision
from sansmcp_asyncio import HttpServing
from tests.bindings.support import soon
from tests.peers import registry
from tests.peers.registry import CLIENTS

from .demo_server import Report, app
from .support import Json, asynchronous, needs
from .test_clients_stdio import CALLS, MODERN, expected, rows, spoken

pytestmark = pytest.mark.interop

V1 = """
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client
from mcp_v1 import use

async def main(url, mode):
    async with streamable_http_client(url) as (read, write, _), ClientSession(read, write) as session:
        print(json.dumps(await use(session)))
"""
V2 = """
from mcp import Client
from mcp_v2 import use

async def main(url, mode):
    async with Client(url, mode=mode) as client:
        print(json.dumps(await use(client)))
"""
BEGIN = "import asyncio, json, sys\nsys.path.insert(0, sys.argv[1])\n"
END = "\nasyncio.run(main(*sys.argv[2:]))\n"
MODES = {"mcp-2.3.0-auto": "auto", "mcp-2.3.0-legacy": "legacy", "mcp-2.3.0-modern": MODERN.value}
SCRIPTS = Path(registry.__file__).with_name("clients")


async def run(client: str, url: str, scratch: Path) -> tuple[int | None, str, str]:
    """Let the client use the server at `url`; return its exit code and what it wrote."""
    launch = CLIENTS[client].launch([], scratch)
    code = BEGIN + (V2 if client in MODES else V1) + END
    process = await asyncio.create_subprocess_exec(
        launch.argv[0],
        "-c",
        code,
        str(SCRIPTS),
        url,
        MODES.get(client, ""),
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


def got(out: str) -> Json:
    """What the client printed, with errors counted from one: the app serves many tests."""
    printed: Json = json.loads(re.sub(r"\(error \d+\)", "(error 1)", out))
    return printed


async def all_gone(serving: HttpServing) -> None:
    """Wait until nothing is left of the clients."""
    await soon(lambda: not serving.listener.stats()["connections"], "the end of all connections")
    stats = serving.listener.stats()
    stats["read_schemas"] = 0
    assert {name: size for name, size in stats.items() if size} == {}


@pytest.mark.parametrize(("client", "served"), rows())
@pytest.mark.req("A17", "J1", "R11")
@asynchronous
async def test_client_gets_everything(client: str, served: tuple[Revision, ...], tmp_path: Path) -> None:
    needs(client)
    revision = spoken(client, served)
    assert revision is not None
    report = Report()
    async with HttpServing(app, revisions=served, on_event=report.on_event) as serving:
        code, out, err = await run(client, serving.url, tmp_path)
        assert code == 0, err
        await all_gone(serving)
    assert got(out) == expected(client, revision)
    assert report.requests == [[revision.value, method] for method in CALLS]
    probed_in_vain = client == "mcp-2.3.0-auto" and MODERN not in served
    assert report.faults == (["UNSUPPORTED_VERSION"] if probed_in_vain else [])
    assert set(report.ends) == {None}


@pytest.mark.req("A17", "J1", "R11")
@asynchronous
async def test_clients_of_both_eras_at_once(tmp_path: Path) -> None:
    for client in CLIENTS:
        needs(client)
    async with HttpServing(app) as serving:
        done = await asyncio.gather(*(run(client, serving.url, tmp_path) for client in CLIENTS))
        await all_gone(serving)
    for client, (code, out, err) in zip(CLIENTS, done, strict=True):
        revision = spoken(client, ALL_REVISIONS)
        assert code == 0, err
        assert revision is not None
        assert got(out) == expected(client, revision)
