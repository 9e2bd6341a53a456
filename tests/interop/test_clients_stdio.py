"""Clients that others wrote against our server: what they get of it, in every era and revision."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sansmcp import ALL_REVISIONS, LEGACY_REVISIONS, Revision
from tests.peers.registry import CLIENTS

from .support import LIMIT, Json, needs

pytestmark = pytest.mark.interop

SERVER = Path(__file__).with_name("demo_server.py")
INFO = {"name": "demo ü", "version": "2.1"}
MODERN = Revision.V2026_07_28
CALLS = [
    "tools/list",
    "tools/call",
    "tools/call",
    "resources/read",
    "prompts/get",
    "tools/call",
    "tools/call",
]


def spoken(client: str, served: tuple[Revision, ...]) -> Revision | None:
    """The revision that this client and a server of these revisions have in common."""
    known = {
        "mcp-1.30.0": LEGACY_REVISIONS,
        "mcp-2.3.0-auto": ALL_REVISIONS,
        "mcp-2.3.0-legacy": LEGACY_REVISIONS,
        "mcp-2.3.0-modern": (MODERN,),
    }
    return max({*known[client]} & {*served}, default=None)


def expected(client: str, revision: Revision) -> Json:
    """What the client prints; the second generation adds its own defaults to legacy results."""
    more: Json = {} if client == "mcp-1.30.0" else {"resultType": "complete"}
    cached: Json = {} if client == "mcp-1.30.0" else {"ttlMs": 0, "cacheScope": "private"}
    if revision is MODERN:
        more["_meta"] = {"io.modelcontextprotocol/serverInfo": INFO}

    def text(value: str, *, is_error: bool = False, **members: Any) -> Json:
        return {"content": [{"type": "text", "text": value}], "isError": is_error, **members, **more}

    structured: Json = {"structuredContent": {"result": 42}} if revision >= Revision.V2025_06_18 else {}
    greeting = {"uri": "test://greeting", "mimeType": "text/plain", "text": "Hello from a resource"}
    asked = {"role": "user", "content": {"type": "text", "text": "Please greet Ada."}}
    return {
        "protocol": revision.value,
        # Who does not ask is not told beforehand.
        "server": None if client == "mcp-2.3.0-modern" else INFO,
        "tools": ["echo", "add", "fail", "slow"],
        "echo": text("hello ü 🐟"),
        "add": text('{"result": 42}', **structured),
        "resource": {"contents": [greeting], **cached, **more},
        "prompt": {"description": "Ask for a greeting.", "messages": [asked], **more},
        "fail": text("the server failed to carry this out (error 1)", is_error=True),
        "slow": text("done"),
        "progress": [[1.0, 4.0], [2.0, 4.0], [3.0, 4.0], [4.0, 4.0]],
    }


def run(client: str, served: tuple[Revision, ...], scratch: Path) -> subprocess.CompletedProcess[str]:
    needs(client)
    server = [sys.executable, str(SERVER), str(scratch / "report")]
    if served != ALL_REVISIONS:
        server += [revision.value for revision in served]
    launch = CLIENTS[client].launch(server, scratch)
    return subprocess.run(
        launch.argv,
        cwd=launch.cwd,
        env=launch.env,
        capture_output=True,
        encoding="utf-8",
        timeout=LIMIT,
        check=False,
    )


def reported(scratch: Path) -> Json:
    report: Json = json.loads((scratch / "report").read_text(encoding="utf-8"))
    return report


def rows() -> list[Any]:
    """Each client with a server of everything, and with one of each single revision it knows.

    One that only opens with the handshake does so as it does when its probe failed: once is enough.
    """
    sets = [ALL_REVISIONS, *((revision,) for revision in ALL_REVISIONS)]
    return [
        pytest.param(client, served, id=f"{client}-{'all' if served == ALL_REVISIONS else served[0]}")
        for client in CLIENTS
        for served in sets
        if spoken(client, served) is not None
        and (client != "mcp-2.3.0-legacy" or served in (ALL_REVISIONS, sets[1]))
    ]


@pytest.mark.parametrize(("client", "served"), rows())
@pytest.mark.req("A17", "D3", "J1", "Q8", "W2", "W3", "W5", "W12", "W13")
def test_client_gets_everything(client: str, served: tuple[Revision, ...], tmp_path: Path) -> None:
    revision = spoken(client, served)
    assert revision is not None
    done = run(client, served, tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == expected(client, revision)
    # Standard error is the server's, too: there go the prints of its handlers, and nothing else.
    assert done.stderr == "a print of a handler disturbs nobody\n"

    report = reported(tmp_path)
    assert report["requests"] == [[revision.value, method] for method in CALLS]
    probed_in_vain = client == "mcp-2.3.0-auto" and MODERN not in served
    assert report["faults"] == (["UNSUPPORTED_VERSION"] if probed_in_vain else [])
    assert report["ends"] == [None]


@pytest.mark.parametrize(
    ("client", "served"),
    [
        ("mcp-1.30.0", (MODERN,)),
        ("mcp-2.3.0-legacy", (MODERN,)),
        ("mcp-2.3.0-modern", (Revision.V2025_11_25,)),
    ],
)
@pytest.mark.req("B7")
@pytest.mark.case("V-08", "V-09")
def test_client_without_a_revision_in_common_is_told(
    client: str, served: tuple[Revision, ...], tmp_path: Path
) -> None:
    assert spoken(client, served) is None
    done = run(client, served, tmp_path)
    assert done.returncode != 0
    asked = MODERN if client == "mcp-2.3.0-modern" else Revision.V2025_11_25
    assert f"protocol version '{asked}' is not supported" in done.stderr
    assert reported(tmp_path) == {"requests": [], "faults": ["UNSUPPORTED_VERSION"], "ends": [None]}
