"""WebSockets and sockets in every binding: TLS, files, options, bounds, and nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sansmcp import (
    CallFailure,
    Legacy,
    LimitHit,
    LocalProtocolError,
    NetworkFailure,
    NetworkProblem,
    PingPolicy,
)
from sansmcp.errors import ConnectionEnded
from sansmcp.http.listener import ConnectionPolicy
from sansmcp.limits import Timeouts
from sansmcp_asyncio import connect

from .every_app import app
from .http_support import closed_port
from .kits import AWAITING_KITS, KITS, AwaitingKit, Kit
from .support import raised, run, text_of
from .test_connect_tls import certificate, contexts

pytestmark = pytest.mark.req("S1", "Q10")

__all__ = ["certificate"]  # a fixture


@pytest.fixture(params=KITS, ids=lambda kit: kit.name)
def kit(request: pytest.FixtureRequest) -> Kit:
    kit: Kit = request.param
    return kit


MODES = pytest.mark.parametrize("mode", [None, Legacy()], ids=["modern", "legacy"])


@MODES
def test_over_tls(kit: Kit, certificate: Any, mode: Any) -> None:
    theirs, ours = contexts(certificate)

    async def main() -> None:
        for kind, address in (("ws", "wss://localhost:{}/mcp"), ("tcp", "tls://localhost:{}")):
            async with kit.streaming(kind, app(), ssl=theirs) as serving:
                url = address.format(serving.port)
                async with kit.connect(url, ssl=ours, mode=mode) as client:
                    large = "ü" * 200_000
                    assert text_of(await client.call_tool("echo", {"text": large})) == large
                with pytest.raises(NetworkFailure) as caught:
                    async with kit.connect(url):
                        pass
                assert caught.value.problem is NetworkProblem.TLS

    kit.run(main)


def test_a_unix_socket_is_for_its_user_and_goes_with_its_server(kit: Kit, tmp_path: Path) -> None:
    path = tmp_path / "a socket"
    url = f"unix://{tmp_path}/a%20socket"

    async def main() -> None:
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(path))  # of a server that was killed
        left.close()
        async with kit.streaming("unix", app(), path) as serving:
            assert serving.port == 0
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            async with kit.connect(url) as client:
                assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
        assert not path.exists()
        with pytest.raises(NetworkFailure) as caught:
            async with kit.connect(url):
                pass
        assert caught.value.problem is NetworkProblem.REFUSED
        path.write_text("no socket")
        with pytest.raises(OSError, match="in use"):
            async with kit.streaming("unix", app(), path):
                pass
        assert path.read_text() == "no socket"

    kit.run(main)


@pytest.mark.parametrize("kit", AWAITING_KITS, ids=lambda kit: kit.name)
@pytest.mark.parametrize("kind", ["ws", "tcp", "unix"])
def test_they_serve_until_they_are_cancelled(kit: AwaitingKit, kind: str, tmp_path: Path) -> None:
    places: list[tuple[str, int]] = []

    def ready(host: str, port: int) -> None:
        places.append((host, port))

    async def main() -> None:
        name = {"ws": "serve_websocket", "tcp": "serve_tcp", "unix": "serve_unix"}[kind]
        place = (tmp_path / "x",) if kind == "unix" else ()
        async with kit.until_cancelled(getattr(kit.binding, name), app(), *place, ready=ready) as cancel:
            await kit.soon(lambda: places, "ready")
            host, port = places[0]
            where = f"unix://{host}" if kind == "unix" else f"{kind}://{host}:{port}"
            async with kit.connect(f"{where}/mcp" if kind == "ws" else where) as client:
                assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"

                async def cancels() -> None:
                    await kit.sleep(0.1)
                    cancel()

                call = client.call_tool("sleeps", {"seconds": 60})
                ended, _ = await kit.together(call, cancels())
                assert isinstance(ended, ConnectionEnded)
        assert not (tmp_path / "x").exists()

    kit.run(main)


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


def test_past_the_bound_of_connections(kit: Kit) -> None:
    """AA12: one too many is ended at once."""
    hits: list[str] = []

    def on_event(event: Any) -> None:
        if isinstance(event, LimitHit):
            hits.append(event.limit)

    async def main() -> None:
        async with kit.streaming("tcp", app(), max_connections=1, on_event=on_event) as serving:
            url = f"tcp://127.0.0.1:{serving.port}"
            async with kit.connect(url):
                with pytest.raises(ConnectionEnded):
                    async with kit.connect(url, mode=Legacy()):
                        pass
            await kit.soon(lambda: not serving.listener.stats()["connections"], "the end")
            async with kit.connect(url) as client:
                await client.list_tools()
        assert hits == ["max_connections"]

    kit.run(main)


def test_one_too_many_over_http_is_told_so(kit: Kit) -> None:
    """AA12"""

    async def main() -> None:
        async with kit.serving(app(), connections=ConnectionPolicy(max_connections=1)) as serving:
            with (
                socket.create_connection(("127.0.0.1", serving.port)),
                socket.create_connection(("127.0.0.1", serving.port)) as second,
            ):
                second.settimeout(0)
                said: list[bytes] = []

                def heard() -> bool:
                    with suppress(BlockingIOError):
                        said.append(second.recv(4096))
                    return bool(said) and said[-1] == b""

                await kit.soon(heard, "the end")
                assert said[0].startswith(b"HTTP/1.1 503 ")

    kit.run(main)


def test_a_server_is_started_once_and_can_be_closed(kit: Kit) -> None:
    async def main() -> None:
        serving = kit.binding.tcp_serving(app())
        with pytest.raises(RuntimeError, match="not started"):
            serving.listener  # noqa: B018
        async with kit.entered(serving):
            with pytest.raises(RuntimeError, match="once"):
                async with kit.entered(serving):
                    pass
        await kit.waits(serving.closed)

    kit.run(main)


def test_a_server_that_cannot_be_made_listens_nowhere(kit: Kit) -> None:
    async def main() -> None:
        port = closed_port()
        with pytest.raises(LocalProtocolError):
            async with kit.streaming("tcp", app(), port=port, max_connections=0):
                pass
        async with kit.streaming("tcp", app(), port=port) as serving:
            assert serving.port == port
            with pytest.raises(OSError, match="in use"):
                async with kit.streaming("tcp", app(), port=port):
                    pass

    kit.run(main)


def test_a_client_that_does_not_read_is_not_read_from(kit: Kit) -> None:
    async def main() -> None:
        async with kit.streaming("tcp", app()) as serving:
            with socket.create_connection(("127.0.0.1", serving.port)) as sock:
                sock.setblocking(False)
                written = await flood(kit, sock)
                assert written < 64 * 1024 * 1024
                await kit.soon(lambda: serving.listener.stats()["paused"] == 1, "a pause")
                async with kit.connect(f"tcp://127.0.0.1:{serving.port}") as client:
                    assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
            await kit.soon(lambda: not any(serving.listener.stats().values()), "the end of all")

    kit.run(main)


async def flood(kit: Kit, sock: socket.socket) -> int:
    """Ask without reading until nothing more is taken; returns how much was."""
    call = {"name": "echo", "arguments": {"text": "x" * 60_000}}
    initialize = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    }
    lines = json_line("initialize", initialize, 1) + json_line("notifications/initialized", {}, None)
    written, idle, number = 0, 0, 1
    while idle < 50 and written < 64 * 1024 * 1024:
        if not lines:
            number += 1
            lines = json_line("tools/call", call, number)
        try:
            sent = sock.send(lines)
        except BlockingIOError:
            idle += 1
            await kit.sleep(0.01)
        else:
            idle, written, lines = 0, written + sent, lines[sent:]
    return written


def json_line(method: str, params: dict[str, Any], id: int | None) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message if id is None else {**message, "id": id}).encode() + b"\n"


def test_a_loop_of_connections_leaves_nothing(kit: Kit) -> None:
    async def main() -> None:
        async with kit.streaming("ws", app()) as ws, kit.streaming("tcp", app()) as tcp:
            for n in range(50):
                for url in (f"ws://127.0.0.1:{ws.port}/mcp", f"tcp://127.0.0.1:{tcp.port}"):
                    async with kit.connect(url, mode=Legacy() if n % 2 else None) as client:
                        await client.call_tool("echo", {"text": str(n)})
            await kit.soon(lambda: not any(ws.listener.stats().values()), "the end of all")
            await kit.soon(lambda: not any(tcp.listener.stats().values()), "the end of all")

    kit.run(main)
