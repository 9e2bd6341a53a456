"""The command line against every peer: what people see, the JSON that programs get, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import pytest

from tests.peers.registry import PEERS, environment

from .known import KNOWN
from .support import LIMIT, Json, needs, prepare

pytestmark = [pytest.mark.interop, pytest.mark.req("AA11")]

OK, ANSWERED_ERROR, USAGE, NO_CONNECTION, TIMED_OUT = range(5)
MODERN = "2026-07-28"


class Run:
    """One run of the program against a peer."""

    def __init__(
        self, name: str, scratch: Path, command: str, *words: str, server: Sequence[str] = ()
    ) -> None:
        needs(name)
        peer = PEERS[name]
        launch = peer.launch(scratch)
        options = ["--cwd", str(launch.cwd)]
        for variable in peer.env:
            options += ["--env", f"{variable}={launch.env[variable]}"]
        if peer.probe == "silence" and "--mode" not in words and "--timeout" not in words:
            options += ["--mode", "legacy"]
        done = subprocess.run(
            [sys.executable, "-m", "sansmcp_cli", command, *options, *words, "--", *(server or launch.argv)],
            cwd=scratch,
            # it has to find the package where this process found it
            env=environment({name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=LIMIT,
            check=False,
        )
        self.code, self.out, self.err = done.returncode, done.stdout, done.stderr

    @property
    def document(self) -> Json:
        document: Json = json.loads(self.out)
        return document


def connection(name: str) -> Json:
    peer = PEERS[name]
    return {"era": peer.era, "revision": MODERN if peer.era == "modern" else peer.legacy_revision}


def shown(document: Json) -> Json:
    return {key: document["connection"][key] for key in ("era", "revision")}


# Who is looked at in both ways; the others in the way that a command has first.
BOTH = ("everything", "mcp-1.30.0", "npm-server-2.4.0")


def looked_at(first: Literal["text", "json"]) -> pytest.MarkDecorator:
    """Each peer, with the output that people or that programs get."""
    other = "json" if first == "text" else "text"
    rows = [(name, first) for name in PEERS] + [(name, other) for name in BOTH]
    return pytest.mark.parametrize(("name", "output"), rows)


@looked_at("json")
def test_probe(name: str, output: str, tmp_path: Path) -> None:
    known = KNOWN[name]
    if output == "text":
        run = Run(name, tmp_path, "probe")
        assert (run.code, run.err) == (OK, "")
        for part in (known.server, *connection(name).values(), *known.offers, "how that was found out"):
            assert part in run.out
        return
    run = Run(name, tmp_path, "probe", "--json")
    assert (run.code, run.err) == (OK, "")
    document = run.document
    assert (document["ok"], document["command"]) == (True, "probe")
    assert shown(document) == connection(name)
    result = document["result"]
    assert result["serverInfo"]["name"] == known.server
    assert known.offers <= set(result["capabilities"])
    first = "initialize" if PEERS[name].probe == "silence" else "server/discover"
    assert result["evidence"][0]["step"].startswith(first)


def test_probe_of_a_server_that_dies_of_it(tmp_path: Path) -> None:
    run = Run("mcp-1.8.1", tmp_path, "probe", "--json", "--timeout", "8")
    assert (run.code, run.err) == (OK, "")
    outcomes = [entry["outcome"] for entry in run.document["result"]["evidence"]]
    assert outcomes[0].startswith("no answer")
    assert "the server ended with exit code 1" in outcomes
    assert outcomes[-1] == "answered version 2024-11-05"


@looked_at("text")
def test_tools(name: str, output: str, tmp_path: Path) -> None:
    peer = PEERS[name]
    if output == "text":
        run = Run(name, tmp_path, "tools")
        assert (run.code, run.err) == (OK, "")
        assert all(tool in run.out for tool in peer.tools)
        return
    run = Run(name, tmp_path, "tools", "--json")
    assert (run.code, run.err) == (OK, "")
    assert shown(run.document) == connection(name)
    tools = run.document["result"]["tools"]
    assert set(peer.tools) <= {tool["name"] for tool in tools}
    assert all(tool["inputSchema"]["type"] == "object" for tool in tools)


@looked_at("json")
def test_call(name: str, output: str, tmp_path: Path) -> None:
    ask = KNOWN[name].good[0]
    prepare(name, tmp_path)
    arguments = json.dumps(ask.arguments)
    if output == "text":
        run = Run(name, tmp_path, "call", ask.tool, arguments)
        assert (run.code, run.err) == (OK, "")
        assert ask.text in run.out
        return
    run = Run(name, tmp_path, "call", "--json", ask.tool, arguments)
    assert (run.code, run.err) == (OK, "")
    document = run.document
    assert (document["ok"], document["command"]) == (True, "call")
    assert ask.text in "".join(block.get("text", "") for block in document["result"]["content"])


@looked_at("text")
def test_call_that_fails(name: str, output: str, tmp_path: Path) -> None:
    known = KNOWN[name]
    if output == "text":
        run = Run(name, tmp_path, "call", "nope", "{}")
        assert (run.code, run.out) == (ANSWERED_ERROR, "")
        assert known.unknown_tool in run.err
        assert run.err.startswith("sansmcp: tools/call 'nope': ")
        return
    run = Run(name, tmp_path, "call", "--json", known.failing.tool, json.dumps(known.failing.arguments))
    assert failed(run) == (ANSWERED_ERROR, ANSWERED_ERROR, "tool_error")
    document = run.document
    assert document["ok"] is False
    assert document["result"]["isError"] is True
    assert known.failing.text in json.dumps(document)


@pytest.mark.parametrize("name", BOTH)
def test_pairs_and_progress(name: str, tmp_path: Path) -> None:
    slow = KNOWN[name].slow
    assert slow is not None
    pairs = [f"{key}={value}" for key, value in slow.lasting(0.2).items()]
    run = Run(name, tmp_path, "call", slow.tool, *pairs)
    assert run.code == OK
    assert slow.text in run.out
    assert run.err.splitlines() == [f"progress {step}/4" for step in range(1, 5)]


def failed(run: Run) -> tuple[Any, ...]:
    error = run.document["error"]
    return run.code, error["exitCode"], error["kind"]


def test_ways_to_fail(tmp_path: Path) -> None:
    name = "npm-server-2.4.0"
    run = Run(name, tmp_path, "call", "--json", "--timeout", "3", "slow", "seconds=30")
    assert failed(run) == (TIMED_OUT, TIMED_OUT, "timeout")
    run = Run(name, tmp_path, "tools", "--json", server=["no-such-program"])
    assert failed(run) == (NO_CONNECTION, NO_CONNECTION, "cannot_start")
    run = Run(
        name, tmp_path, "tools", "--json", server=[sys.executable, "-c", "raise SystemExit('last words')"]
    )
    assert failed(run) == (NO_CONNECTION, NO_CONNECTION, "server_gone")
    assert "last words" in json.dumps(run.document)
    run = Run(name, tmp_path, "tools", "--json", "--mode", "1999-01-01")
    assert failed(run) == (USAGE, USAGE, "usage")


def test_mode_that_the_server_does_not_have(tmp_path: Path) -> None:
    run = Run("mcp-1.8.1", tmp_path, "tools", "--json", "--mode", "2025-06-18")
    assert failed(run) == (NO_CONNECTION, NO_CONNECTION, "no_common_version")
    run = Run("mcp-1.30.0", tmp_path, "tools", "--json", "--mode", MODERN)
    assert run.code != OK
    assert run.document["ok"] is False
