"""Servers at WebSockets and sockets, named by their address."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sansmcp_asyncio import tcp_serving, unix_serving, websocket_serving
from sansmcp_cli.demo_app import app

from .run import invoke

pytestmark = pytest.mark.req("AA11", "S1", "Q10")


@pytest.fixture(scope="module")
def urls(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The demo at each kind of address."""
    path = tmp_path_factory.mktemp("sockets") / "socket"
    found: dict[str, str] = {}
    started = threading.Event()
    over: list[Any] = []

    async def main() -> None:
        over.extend((asyncio.get_running_loop(), asyncio.Event()))
        async with websocket_serving(app) as ws, tcp_serving(app) as tcp, unix_serving(app, path):
            found["ws"] = f"ws://127.0.0.1:{ws.port}/mcp"
            found["tcp"] = f"tcp://127.0.0.1:{tcp.port}"
            found["unix"] = f"unix://{path}"
            started.set()
            await over[1].wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    assert started.wait(60)
    yield found
    over[0].call_soon_threadsafe(over[1].set)
    thread.join()


KINDS = pytest.mark.parametrize("kind", ["ws", "tcp", "unix"])


@KINDS
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_call(kind: str, mode: str, urls: dict[str, str]) -> None:
    ran = invoke("call", urls[kind], "add", "a=2", "b=40", "--mode", mode)
    assert ran.code == 0, ran.err
    assert '"sum": 42' in ran.out


@KINDS
def test_the_trace_shows_messages_whatever_they_are_in(kind: str, urls: dict[str, str]) -> None:
    url = urls[kind] + ("?key=sesame" if kind == "ws" else "")
    ran = invoke("tools", url, "--trace")
    assert ran.code == 0, ran.err
    assert "→ request server/discover #1" in ran.err
    assert "← result #1" in ran.err
    assert ("closed: 1000, done" in ran.err) is (kind == "ws")
    assert ("HTTP/1.1 101" in ran.err) is (kind == "ws")
    assert "sesame" not in ran.err


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["ws://user:s3cret@x/"], "no user and password"),
        (["tcp://x"], "needs a host and a port"),
        (["tcp://x:1/path"], "and nothing else"),
        (["unix://host/path"], "unix:///path"),
        (["ws://x/", "--proxy", "http://p"], "--proxy is for HTTP"),
        (["ws://x/", "--insecure"], "is not encrypted"),
        (["tcp://x:1", "--header", "a: b"], "for HTTP and WebSockets"),
        (["tcp://x:1", "--env", "A=b"], "for a server that is started here"),
    ],
)
def test_what_does_not_fit_is_refused(args: list[str], told: str) -> None:
    ran = invoke("tools", *args)
    assert ran.code == 2
    assert told in ran.first_error
    assert "s3cret" not in ran.err


def test_nobody_logs_in_there() -> None:
    ran = invoke("login", "ws://x/")
    assert ran.code == 2
    assert "logging in is for HTTP" in ran.first_error


def test_what_is_not_there(urls: dict[str, str]) -> None:
    for url, told in (
        (urls["ws"].replace("/mcp", "/other"), "HTTP 404"),
        (urls["unix"] + "x", "cannot connect to"),
        (urls["tcp"].replace("tcp", "ws"), "the server closed the connection"),
    ):
        ran = invoke("probe", url)
        assert ran.code == 3, (url, ran.err)
        assert told in ran.first_error


def test_a_websocket_in_a_file(urls: dict[str, str], tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    entry = {"type": "ws", "url": urls["ws"], "headers": {"X-Key": "k"}}
    file.write_text(json.dumps({"mcpServers": {"mine": entry}}))
    ran = invoke("call", "mine", "add", "a=1", "b=2", "--config", str(file))
    assert ran.code == 0, ran.err
    assert '"sum": 3' in ran.out
