"""``sansmcp bridge`` between clients and servers that others wrote: each client gets what each server has."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sansmcp import Revision
from tests.peers.registry import CLIENTS, PEERS

from .support import LIMIT, Json, needs

pytestmark = [pytest.mark.interop, pytest.mark.req("AA7", "AA11")]

SPOKEN = {
    "mcp-1.30.0": Revision.V2025_11_25,
    "mcp-2.3.0-auto": Revision.V2026_07_28,
    "mcp-2.3.0-legacy": Revision.V2025_11_25,
    "mcp-2.3.0-modern": Revision.V2026_07_28,
}
"""What a client speaks with a bridge, which serves every revision."""


@pytest.mark.parametrize("server", ["mcp-1.30.0", "mcp-2.3.0", "fastmcp-4.2.3", "npm-server-2.4.0"])
@pytest.mark.parametrize("client", list(CLIENTS))
def test_clients_of_either_era_use_servers_of_either(client: str, server: str, tmp_path: Path) -> None:
    needs(client)
    needs(server)
    behind = PEERS[server].launch(tmp_path)
    bridge = [sys.executable, "-m", "sansmcp_cli", "bridge", "--cwd", str(behind.cwd)]
    for name in PEERS[server].env:
        bridge += ["--env", f"{name}={behind.env[name]}"]
    launch = CLIENTS[client].launch([*bridge, "--", *behind.argv], tmp_path)
    # the bridge has to find the package where this process found it
    env = {**launch.env, **{n: os.environ[n] for n in ("PYTHONPATH",) if n in os.environ}}
    done = subprocess.run(
        launch.argv,
        cwd=launch.cwd,
        env=env,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    got: Json = json.loads(done.stdout)
    assert got["protocol"] == SPOKEN[client].value
    assert {"echo", "add", "fail", "slow"} <= set(got["tools"])
    assert got["echo"]["content"][0]["text"] == "hello ü 🐟"
    assert got["add"]["content"][0]["text"].endswith("42")
    assert got["resource"]["contents"][0]["text"] == "Hello from a resource"
    assert "Ada" in got["prompt"]["messages"][0]["content"]["text"]
    assert got["fail"]["isError"] is True
    assert got["slow"]["content"][0]["text"] == "done"
    assert [step for step, _ in got["progress"]] == [1.0, 2.0, 3.0, 4.0]
