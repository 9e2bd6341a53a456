"""The examples of embedding in event loops of others, and against servers of others, as programs."""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sansmcp import ALL_REVISIONS
from tests.examples_support import EXAMPLES, NEWEST, ROOT, calling, program, served
from tests.peers.registry import CLIENTS as SDK_CLIENTS
from tests.peers.registry import EXAMPLES_INSTALL, NODE, NODE_INSTALL, NPM_INSTALL, PYODIDE, Install, missing

from .http_support import served as peer_served
from .support import asynchronous, needs
from .test_clients_http import got, run
from .test_clients_stdio import expected, spoken
from .test_clients_wsgi import make_app

pytestmark = pytest.mark.interop

PEERS = {
    "mcp-2.3.0": "modern",
    "mcp-1.30.0": "legacy",
    "npm-server-2.4.0 json": "modern",
    "fastmcp-4.2.3 json stateless": "modern",
}
CLIENTS = ("qt", "gevent", "twisted", "select", "httpx", "fetch")
PACKAGES = ("attr", "attrs", "cattr", "cattrs", "h11", "wsproto", "typing_extensions.py")


def skip_without(*installs: Install) -> None:
    reason = missing(*installs)
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="module")
def packages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What sansmcp needs, and nothing that is compiled for this machine."""
    folder = tmp_path_factory.mktemp("packages")
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    asked = subprocess.run([EXAMPLES_INSTALL.python, "-c", code], check=True, capture_output=True, text=True)
    installed = Path(asked.stdout.strip())
    for name in PACKAGES:
        path = installed / name
        (shutil.copytree if path.is_dir() else shutil.copy)(path, folder / name)
    for found in installed.glob("*.dist-info"):
        shutil.copytree(found, folder / found.name)
    return folder


def command(name: str, url: str, packages: Path) -> list[str | Path]:
    if name == "fetch":
        return [NODE, "fetch_client.mjs", PYODIDE, ROOT, packages, "--", *calling(url, "hi ü 🐟")]
    python = sys.executable if name in ("select", "httpx") else EXAMPLES_INSTALL.python
    return [python, f"{name}_client.py", *calling(url, "hi ü 🐟")]


@pytest.mark.req("R11", "AA1")
@pytest.mark.parametrize("era", NEWEST)
@pytest.mark.parametrize("name", CLIENTS)
@asynchronous
async def test_a_client_and_our_server(name: str, era: str, packages: Path) -> None:
    skip_without(EXAMPLES_INSTALL, NODE_INSTALL, NPM_INSTALL)
    async with served(era) as url:
        printed = await program(command(name, url, packages), QT_QPA_PLATFORM="offscreen")
    assert sorted(printed) == ["said hi ü 🐟", f"speaks {NEWEST[era]}"]


@pytest.mark.parametrize("peer", PEERS)
@pytest.mark.parametrize("name", CLIENTS)
@asynchronous
async def test_a_client_and_a_server_of_others(name: str, peer: str, packages: Path, tmp_path: Path) -> None:
    skip_without(EXAMPLES_INSTALL, NODE_INSTALL, NPM_INSTALL)
    async with peer_served(peer, tmp_path) as url:
        printed = await program(command(name, url, packages), QT_QPA_PLATFORM="offscreen")
    assert sorted(printed) == ["said hi ü 🐟", f"speaks {NEWEST[PEERS[peer]]}"]


@pytest.mark.parametrize("client", SDK_CLIENTS)
@asynchronous
async def test_a_client_of_others_and_a_host_with_a_timer(
    client: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(client)
    revision = spoken(client, ALL_REVISIONS)
    assert revision is not None
    monkeypatch.syspath_prepend(str(EXAMPLES))
    from timer_host import Host  # type: ignore[import-not-found]

    host = Host(make_app())
    running = asyncio.create_task(run(client, host.url, tmp_path))
    while not running.done():
        host.poll()
        await asyncio.sleep(0.002)
    host.close()
    code, out, err = await running
    assert code == 0, err
    assert got(out) == expected(client, revision)


SHELL = """
import asyncio, sys
from IPython.core.interactiveshell import InteractiveShell

async def main():
    shell = InteractiveShell.instance()
    cells = open("notebook.py").read().replace("http://127.0.0.1:8000/mcp", sys.argv[1])
    for cell in cells.split("# %%")[1:]:
        ready = shell.transform_cell(cell)
        (await shell.run_cell_async(cell, transformed_cell=ready)).raise_error()

asyncio.run(main())
"""


@pytest.mark.parametrize("era", NEWEST)
@asynchronous
async def test_the_cells_of_a_notebook(era: str, tmp_path: Path) -> None:
    """In IPython's shell, one after another in one loop, which is how Jupyter runs them."""
    skip_without(EXAMPLES_INSTALL)
    async with served(era) as url:
        printed = await program([EXAMPLES_INSTALL.python, "-c", SHELL, url], IPYTHONDIR=str(tmp_path))
    assert printed == [f"speaks {NEWEST[era]}", "said hi"]
