"""The WSGI application under waitress and gunicorn, alone, in Flask and in Django, over real sockets."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import httpx
import pytest

import sansmcp_asyncio
from sansmcp import Legacy, ProgressReported
from sansmcp.types import ElicitResult

from .asgi_support import headers_for
from .support import PATIENCE, until
from .test_serve_http import text_of, tool

ROOT = Path(__file__).parents[2]
APPLICATIONS = ("plain", "in_flask", "in_django")
GUNICORN = {
    "gunicorn sync": ["--workers", "2"],
    "gunicorn gthread": ["--worker-class", "gthread", "--threads", "8"],
}
HOSTS = ("waitress", *GUNICORN)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="gunicorn needs POSIX")


@contextmanager
def hosted(host: str, name: str = "plain") -> Iterator[str]:
    """The address of one of `APPLICATIONS` under the server `host`, until the context ends."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        applications = import_module("tests.bindings.wsgi_applications")
        with (
            waitress(listening, getattr(applications, name))
            if host == "waitress"
            else _gunicorn(host, listening, name)
        ):
            until(lambda: _answers(url), f"{host} to answer")
            yield url


def _answers(url: str) -> bool:
    try:
        httpx.get(f"{url}/nothing", timeout=5)
    except httpx.HTTPError:
        return False
    return True


@contextmanager
def waitress(listening: socket.socket, application: Any) -> Iterator[None]:
    """Serve `application` at a socket that listens."""
    from waitress.server import create_server

    server = create_server(application, sockets=[listening.dup()], threads=8)
    thread = threading.Thread(target=server.run, name="waitress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.trigger.pull_trigger(server.close)
        server.task_dispatcher.shutdown()
        thread.join(PATIENCE)
    assert not thread.is_alive()


@contextmanager
def _gunicorn(host: str, listening: socket.socket, name: str) -> Iterator[None]:
    where = ["--bind", f"fd://{listening.fileno()}", "--log-level", "error", "--graceful-timeout", "1"]
    command = [sys.executable, "-m", "gunicorn", *where, *GUNICORN[host]]
    process = subprocess.Popen(
        [*command, f"tests.bindings.wsgi_applications:{name}"],
        cwd=ROOT,
        pass_fds=[listening.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "bindings")])},
    )
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(PATIENCE) == 0


def post(url: str, body: Any, content: Any = None, **more: str) -> httpx.Response:
    data = content if content is not None else json.dumps(body).encode()
    return httpx.post(f"{url}/mcp", content=data, headers=headers_for(body, **more), timeout=10)


def text(result: Any) -> str:
    found: str = result.content[0].text
    return found


@pytest.mark.req("R11")
@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.parametrize("host", HOSTS)
def test_our_client_in_both_eras(host: str, name: str, tmp_path: Path) -> None:
    blue = ElicitResult(action="accept", content={"colour": "blue"})
    file = tmp_path / "now"
    heard: list[float] = []

    def on_progress(event: ProgressReported) -> None:
        heard.append(event.progress)
        file.touch()  # the handler waits for what only its progress brings

    async def check(client: sansmcp_asyncio.Client) -> None:
        heard.clear()
        file.unlink(missing_ok=True)
        assert text(await client.call_tool("add", {"a": 2, "b": 40})) == "42"
        until_then = {"until": str(file)}
        held = await client.call_tool("hold", until_then, on_progress=on_progress, timeout=20)
        assert (text(held), heard) == ("held", [1])

    async def main(url: str) -> None:
        async with sansmcp_asyncio.connect(f"{url}/mcp", on_elicit=lambda _: blue) as client:
            assert client.revision == "2026-07-28"
            await check(client)
            assert text(await client.call_tool("paint")) == "painted blue"
        async with sansmcp_asyncio.connect(f"{url}/mcp", mode=Legacy()) as client:
            assert client.revision == "2025-11-25"
            await check(client)

    with hosted(host, name) as url:
        asyncio.run(main(url))
        if name != "plain":
            assert httpx.get(f"{url}/hello").text == "hello"


@pytest.mark.parametrize("host", HOSTS)
def test_bodies_in_chunks_and_refusals(host: str) -> None:
    body = tool("add", {"a": 1, "b": 2})
    data = json.dumps(body).encode()
    with hosted(host) as url:
        answer = post(url, body, content=iter([data[:10], data[10:]]))
        assert (answer.status_code, text_of(answer.json())) == (200, "3")
        assert post(url, body, content=iter([b"x" * 1_000_000] * 5)).status_code == 413
        assert post(url, body, host="evil.example").status_code == 421
        assert httpx.get(f"{url}/mcp").status_code == 405
        assert post(url, body).status_code == 200
