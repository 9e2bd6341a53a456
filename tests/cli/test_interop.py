"""The commands against servers that somebody else wrote, and what they serve for clients of others."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from sansmcp import ALL_REVISIONS
from tests.interop import demo_server
from tests.interop.http_support import served
from tests.interop.support import needs
from tests.interop.test_clients_http import got
from tests.interop.test_clients_http import run as use_server
from tests.interop.test_clients_stdio import expected, spoken
from tests.peers.registry import CLIENTS, HTTP_PEERS, PEERS, available

from .run import Ran, invoke, run, serve_http

pytestmark = [pytest.mark.req("AA11"), pytest.mark.interop]

ARGUMENTS = {
    "everything": ["message=hello there"],
    "mcp-1.8.1": ["text=hello there"],
    "mcp-2.3.0": ["text=hello there"],
    "npm-server-2.4.0": ["text=hello there"],
}


def ask(name: str, tmp_path: Path, *args: str) -> Ran:
    peer = PEERS[name]
    if reason := available(peer.name):
        pytest.skip(reason)
    launch = peer.launch(tmp_path)
    env = [word for key, value in launch.env.items() for word in ("--env", f"{key}={value}")]
    # what is known of a server spares the probe, which some answer with silence
    mode = "legacy" if peer.era == "legacy" and args[0] != "probe" else "auto"
    where = ("--cwd", str(launch.cwd), *env, "--", *launch.argv)
    return invoke(*args, "--timeout", "60", "--mode", mode, *where)


@pytest.mark.parametrize("name", ARGUMENTS)
def test_probe_tools_and_call(name: str, tmp_path: Path) -> None:
    peer = PEERS[name]
    probed = ask(name, tmp_path, "probe", "--json")
    assert probed.code == 0, probed.err
    assert probed.document["result"]["era"] == peer.era
    if peer.era == "legacy":
        assert probed.document["result"]["revision"] == peer.legacy_revision
    tools = ask(name, tmp_path, "tools")
    assert tools.code == 0, tools.err
    assert set(peer.tools) <= {line.split()[0] for line in tools.out.splitlines() if line[:1].strip()}
    called = ask(name, tmp_path, "call", "echo", *ARGUMENTS[name])
    assert called.code == 0, called.err
    assert "hello there" in called.out


@pytest.mark.parametrize(
    "name",
    [
        "everything streamableHttp",
        "everything sse",
        "mcp-1.8.1 sse",
        "mcp-2.3.0 stateless",
        "npm-server-2.4.0 auto",
    ],
)
def test_probe_tools_and_call_over_http(name: str, tmp_path: Path) -> None:
    peer = HTTP_PEERS[name]

    async def ask() -> list[Ran]:
        commands = (["probe", "--json"], ["tools"], ["call", "echo", *ARGUMENTS[peer.peer]])
        async with served(name, tmp_path) as url:
            return [
                await asyncio.to_thread(run, [command, url, *rest], cwd=tmp_path)
                for command, *rest in commands
            ]

    probed, tools, called = asyncio.run(ask())
    assert [ran.code for ran in (probed, tools, called)] == [0, 0, 0], (probed.err, tools.err, called.err)
    assert probed.document["result"]["era"] == peer.era
    assert "echo" in tools.out
    assert "hello there" in called.out


def test_everything_has_all_kinds_of_things(tmp_path: Path) -> None:
    name = "everything"
    assert "demo://resource/static" in ask(name, tmp_path, "resources").out
    assert "args-prompt" in ask(name, tmp_path, "prompts").out
    assert ask(name, tmp_path, "prompt", "args-prompt", "city=Oslo").out.startswith("user:\n")
    long = ask(name, tmp_path, "call", "trigger-long-running-operation", "duration=0.2", "steps=2")
    assert long.err == "progress 1/2\nprogress 2/2\n"
    failed = ask(name, tmp_path, "call", "get-sum", '{"a": "x"}')
    assert failed.code == 1
    structured = ask(name, tmp_path, "call", "get-structured-content", "location=Chicago")
    assert "temperature" in json.loads(structured.out)


@pytest.mark.parametrize("client", CLIENTS)
def test_what_is_served_over_http_is_for_their_clients(client: str, tmp_path: Path) -> None:
    needs(client)
    revision = spoken(client, ALL_REVISIONS)
    assert revision is not None
    with serve_http(f"{demo_server.__file__}:app", cwd=tmp_path) as (url, _):
        code, out, err = asyncio.run(use_server(client, url, tmp_path))
    assert code == 0, err
    assert got(out) == expected(client, revision)
