"""WebSockets, ports and Unix sockets on asyncio: TLS, files, options, bounds, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from sansmcp import (
    App,
    CallFailure,
    Legacy,
    LimitHit,
    LocalProtocolError,
    NetworkFailure,
    NetworkProblem,
    PingPolicy,
)
from sansmcp.errors import ConnectionEnded
from sansmcp.limits import Timeouts
from sansmcp_asyncio import (
    connect,
    serve_tcp,
    serve_unix,
    serve_websocket,
    tcp_serving,
    unix_serving,
    websocket_serving,
)

from .support import raised, run, soon, text_of
from .test_connect_tls import certificate, contexts

pytestmark = pytest.mark.req("S1", "Q10")

__all__ = ["certificate"]  # a fixture


def app() -> App:
    made = App("sockets", "1.0")

    @made.tool()
    async def echo(text: str) -> str:
        return text

    @made.tool()
    async def sleep() -> str:
        await asyncio.sleep(60)
        return "slept"

    @made.tool()
    def plain(text: str) -> str:
        return text.upper()

    return made


MODES = pytest.mark.parametrize("mode", [None, Legacy()], ids=["modern", "legacy"])


@MODES
def test_over_tls(certificate: Any, mode: Any) -> None:
    theirs, ours = contexts(certificate)

    async def main() -> None:
        async with websocket_serving(app(), ssl=theirs) as ws, tcp_serving(app(), ssl=theirs) as tcp:
            for url in (f"wss://localhost:{ws.port}/mcp", f"tls://localhost:{tcp.port}"):
                async with connect(url, ssl=ours, mode=mode) as client:
                    large = "ü" * 200_000
                    assert text_of(await client.call_tool("echo", {"text": large})) == large
                    assert text_of(await client.call_tool("plain", {"text": "hi"})) == "HI"
                error = await raised(connect(url), NetworkFailure)
                assert error.problem is NetworkProblem.TLS

    run(main)


def test_a_unix_socket_is_for_its_user_and_goes_with_its_server(tmp_path: Path) -> None:
    path = tmp_path / "a socket"

    async def main() -> None:
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(path))  # of a server that was killed
        left.close()
        async with unix_serving(app(), path):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            async with connect(f"unix://{tmp_path}/a%20socket") as client:
                assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
        assert not path.exists()
        error = await raised(connect(f"unix://{tmp_path}/a%20socket"), NetworkFailure)
        assert error.problem is NetworkProblem.REFUSED

    run(main)


@pytest.mark.parametrize("kind", ["ws", "tcp", "unix"])
def test_they_serve_until_they_are_cancelled(kind: str, tmp_path: Path) -> None:
    places: list[tuple[str, int]] = []

    def ready(host: str, port: int) -> None:
        places.append((host, port))

    async def main() -> None:
        serving: Callable[[], Coroutine[Any, Any, None]] = {
            "ws": lambda: serve_websocket(app(), ready=ready),
            "tcp": lambda: serve_tcp(app(), ready=ready),
            "unix": lambda: serve_unix(app(), tmp_path / "x", ready=ready),
        }[kind]
        task = asyncio.create_task(serving())
        await soon(lambda: places, "ready")
        host, port = places[0]
        where = f"unix://{host}" if kind == "unix" else f"{kind}://{host}:{port}"
        async with connect(f"{where}/mcp" if kind == "ws" else where) as client:
            call = asyncio.create_task(client.call_tool("sleep"))
            assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
            task.cancel()
            await raised(call, ConnectionEnded)
        await asyncio.wait([task])
        assert task.cancelled()

    run(main)


@pytest.mark.parametrize(
    ("url", "options", "told"),
    [
        ("ws://x/", {"proxy": "http://p"}, "proxy: no option for a WebSocket"),
        ("ws://x/", {"cwd": "/"}, "cwd: no option for a WebSocket"),
        ("tcp://x:1", {"headers": {"a": "b"}}, "headers: no option for a socket"),
        ("tcp://x:1", {"pings": PingPolicy()}, "pings: no option for a socket"),
        ("http://x/", {"pings": PingPolicy()}, "pings: no option for a URL"),
        ("ws://x/", {"headers": {"Host": "b"}}, "host is written by the handshake itself"),
        ("tcp://x", {}, "an address needs a host and a port"),
        ("tcp://x:99999", {}, "a host and a port are needed"),
        ("unix:", {}, "a unix socket has a path"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_awaited(
    url: str, options: dict[str, Any], told: str
) -> None:
    with pytest.raises(LocalProtocolError, match=told):
        connect(url, **options)


def test_a_server_that_is_cancelled_while_it_is_being_reached() -> None:
    async def main() -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        for url in (f"ws://127.0.0.1:{port}/", f"tcp://127.0.0.1:{port}"):
            for turns in range(4):
                task = asyncio.ensure_future(connect(url).__aenter__())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
            await raised(connect(url, timeouts=Timeouts(connect=0.1)), CallFailure)
        listener.close()

    run(main)


def test_past_the_bound_of_connections() -> None:
    """AA12"""
    hits: list[str] = []

    def on_event(event: Any) -> None:
        if isinstance(event, LimitHit):
            hits.append(event.limit)

    async def main() -> None:
        async with tcp_serving(app(), max_connections=1, on_event=on_event) as serving:
            url = f"tcp://127.0.0.1:{serving.port}"
            async with connect(url):
                await raised(connect(url, mode=Legacy()), ConnectionEnded)
            await soon(lambda: not serving.listener.stats()["connections"], "the end")
            async with connect(url) as client:
                await client.list_tools()
        assert hits == ["max_connections"]

    run(main)


def test_a_server_is_started_once() -> None:
    async def main() -> None:
        serving = tcp_serving(app())
        with pytest.raises(RuntimeError, match="not started"):
            serving.listener  # noqa: B018
        async with serving:
            with pytest.raises(RuntimeError, match="once"):
                await serving.__aenter__()

    run(main)


def test_a_loop_of_connections_leaves_nothing() -> None:
    async def main() -> None:
        async with websocket_serving(app()) as ws, tcp_serving(app()) as tcp:
            for n in range(50):
                for url in (f"ws://127.0.0.1:{ws.port}/mcp", f"tcp://127.0.0.1:{tcp.port}"):
                    async with connect(url, mode=Legacy() if n % 2 else None) as client:
                        await client.call_tool("echo", {"text": str(n)})
            await soon(lambda: not any(ws.listener.stats().values()), "the end of all")
            await soon(lambda: not any(tcp.listener.stats().values()), "the end of all")

    run(main)
