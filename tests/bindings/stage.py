"""The peers of the scenarios, over each transport: they run in threads and processes of their own."""

from __future__ import annotations

import asyncio
import functools
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

import sansmcp_asyncio as served_by
from sansmcp.app import App
from sansmcp.http.guard import ANY, GuardPolicy
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.limits import SERVER_LIMITS
from sansmcp.testing.scenarios import Scene, scenario_app
from sansmcp.wire.ws_handshake import Asked, ServerHandshake

from .support import PATIENCE

SERVER = str(Path(__file__).with_name("scenario_server.py"))
SCHEMES = {"http": "http", "sse": "http", "ws": "ws", "tcp": "tcp"}
PATHS = {"http": "/mcp", "sse": "/sse", "ws": "/mcp", "tcp": ""}
SECURE = {"http": "https", "ws": "wss", "tcp": "tls"}


class MissingToolError(Exception):
    """Something that this machine lacks."""


class Stage:
    """The peers that a scenario names, each made when it is asked for, for as long as the context lasts."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self._stack = ExitStack()
        self._server: _Server | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stack.close()

    def target(self, name: str) -> tuple[Any, dict[str, Any]]:
        """What to connect to, an `App` for memory, and what a client must be told for it."""
        transport = self.scene.transport
        if transport == "memory":
            return None, {}
        if transport == "stdio":
            words = [] if name == "server" else [name]
            return [sys.executable, SERVER, *words], {}
        options: dict[str, Any] = {"proxy": False} if transport in ("http", "sse") else {}
        if transport == "sse":
            options["old_sse"] = OldSseUse.ONLY
        match name:
            case "server":
                return self._real().url, options
            case "nowhere":
                return f"{SCHEMES[transport]}://nowhere.invalid:80{PATHS[transport]}", options
            case "untrusted":
                made = self._stack.enter_context(_Server(transport, tls=_certificate()))
                return made.url.replace(SCHEMES[transport], SECURE[transport], 1), options
            case "proxied":
                port = self._stack.enter_context(_forwarding(self._real().port))
                return "http://scenarios.invalid/mcp", {"proxy": f"http://127.0.0.1:{port}"}
            case _:
                address = self._stack.enter_context(_silent(transport, reads=name == "mute"))
                where = address if transport == "unix" else f"127.0.0.1:{address}{PATHS[transport]}"
                return f"{SCHEMES.get(transport, 'unix')}://{where}", options

    def restart(self) -> None:
        """End the server and start it again at the same place."""
        self._real().restart()

    def _real(self) -> _Server:
        if self._server is None:
            self._server = self._stack.enter_context(_Server(self.scene.transport))
        return self._server


def app() -> App:
    return scenario_app(asyncio.sleep)


class _Server:
    """`scenario_app`, served by the binding of asyncio in a thread."""

    def __init__(self, transport: str, tls: ssl.SSLContext | None = None) -> None:
        self._transport = transport
        self._tls = tls
        self._folder: str | None = None
        self.port = 0

    def _serving(self) -> Any:
        limits = SERVER_LIMITS
        common: dict[str, Any] = {"ssl": self._tls, "limits": limits}
        policy = GuardPolicy(hosts=ANY)
        match self._transport:
            case "http":
                return served_by.HttpServing(app(), port=self.port, policy=policy, **common)
            case "sse":
                return served_by.HttpServing(app(), port=self.port, old_sse=OldSsePaths(), **common)
            case "ws":
                return served_by.websocket_serving(app(), port=self.port, policy=policy, **common)
            case "tcp":
                return served_by.tcp_serving(app(), port=self.port, **common)
            case _:
                assert self._folder is not None
                return served_by.unix_serving(app(), f"{self._folder}/socket", **common)

    @property
    def url(self) -> str:
        if self._transport == "unix":
            return f"unix://{self._folder}/socket"
        host = "localhost" if self._tls else "127.0.0.1"
        return f"{SCHEMES[self._transport]}://{host}:{self.port}{PATHS[self._transport]}"

    def __enter__(self) -> Self:
        self._folder = tempfile.mkdtemp() if self._transport == "unix" else None
        self._start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._stop()
        if self._folder is not None:
            shutil.rmtree(self._folder)

    def restart(self) -> None:
        self._stop()
        self._start()

    def _start(self) -> None:
        started = threading.Event()
        failure: list[BaseException] = []

        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._over = asyncio.Event()
            try:
                async with self._serving() as serving:
                    self.port = serving.port
                    started.set()
                    await self._over.wait()
            except BaseException as error:
                failure.append(error)
                raise
            finally:
                started.set()

        self._thread = threading.Thread(target=asyncio.run, args=(main(),))
        self._thread.start()
        assert started.wait(PATIENCE), "the server did not start"
        if failure:
            raise failure[0]

    def _stop(self) -> None:
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive(), "the server did not end"


@contextmanager
def _listening(
    handle: Callable[[socket.socket, list[socket.socket]], None], path: str | None = None
) -> Iterator[int]:
    """A port, or a path, whose connections are handled in threads."""
    listener = socket.socket(socket.AF_INET if path is None else socket.AF_UNIX)
    listener.bind(("127.0.0.1", 0) if path is None else path)
    listener.listen(200)
    socks = [listener]

    def accept() -> None:
        with suppress(OSError):
            while True:
                sock, _ = listener.accept()
                socks.append(sock)
                threading.Thread(target=handle, args=(sock, socks), daemon=True).start()

    thread = threading.Thread(target=accept, daemon=True)
    thread.start()
    try:
        yield 0 if path is not None else listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(PATIENCE)  # from now on there are no more of them
        for sock in socks:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()


@contextmanager
def _silent(transport: str, *, reads: bool) -> Iterator[int | str]:
    """A peer that says nothing, and may read nothing either."""

    def handle(sock: socket.socket, socks: list[socket.socket]) -> None:
        with suppress(OSError):
            if transport == "ws":
                handshake = ServerHandshake(SERVER_LIMITS)
                while not isinstance(handshake.receive_data(sock.recv(65536)), Asked):
                    pass
                sock.sendall(handshake.accept("mcp"))
            while reads and sock.recv(65536):
                pass

    if transport != "unix":
        with _listening(handle) as port:
            yield port
        return
    with tempfile.TemporaryDirectory() as folder, _listening(handle, f"{folder}/socket"):
        yield f"{folder}/socket"


@contextmanager
def _forwarding(port: int) -> Iterator[int]:
    """A proxy that knows one server."""

    def carry(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                sink.sendall(data)
        with suppress(OSError):
            sink.shutdown(socket.SHUT_WR)

    def handle(sock: socket.socket, socks: list[socket.socket]) -> None:
        inner = socket.create_connection(("127.0.0.1", port))
        socks.append(inner)
        threading.Thread(target=carry, args=(inner, sock), daemon=True).start()
        carry(sock, inner)

    with _listening(handle) as listening:
        yield listening


@functools.cache
def _certificate() -> ssl.SSLContext:
    """For a server whose certificate nobody trusts. Raises MissingToolError where none can be made."""
    if shutil.which("openssl") is None:
        raise MissingToolError("openssl is not there to make a certificate")
    with tempfile.TemporaryDirectory() as folder:
        make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
        files = ["-keyout", f"{folder}/key", "-out", f"{folder}/made"]
        subprocess.run([*make.split(), *files], check=True, capture_output=True, timeout=30)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{folder}/made", f"{folder}/key")
    return context
