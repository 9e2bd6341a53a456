"""Peers over HTTP as child processes, each on a port of its own, and what is said with them."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import pytest

import sansmcp_asyncio
from sansmcp import Timeouts
from tests.peers.registry import HTTP_PEERS, Launch

from .known import KNOWN, Known
from .support import LIMIT, Json, Talk, needs

HOST = "127.0.0.1"

every_http_peer = pytest.mark.parametrize("name", HTTP_PEERS)


def known_of(name: str) -> Known:
    """What is known of a peer over HTTP is what holds over stdio."""
    return KNOWN[HTTP_PEERS[name].peer]


def free_port() -> int:
    """A port that nobody listens at now."""
    with socket.create_server((HOST, 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


async def listening(port: int, process: asyncio.subprocess.Process) -> None:
    """Wait until connections to `port` are accepted. Raises RuntimeError if the process ends first."""
    async with asyncio.timeout(LIMIT / 2):
        while True:
            if process.returncode is not None:
                raise RuntimeError(f"the server ended with code {process.returncode}")
            try:
                _, writer = await asyncio.open_connection(HOST, port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return


@asynccontextmanager
async def running(launch: Launch, port: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process that listens at `port`, ended with the context at the latest."""
    process = await asyncio.create_subprocess_exec(
        *launch.argv,
        cwd=launch.cwd,
        env=launch.env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        await listening(port, process)
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


@asynccontextmanager
async def served(name: str, scratch: Path, port: int | None = None) -> AsyncIterator[str]:
    """The address of the peer called `name`, for as long as the context lasts."""
    needs(name)
    peer, port = HTTP_PEERS[name], port or free_port()
    async with running(peer.launch(port, scratch), port):
        yield f"http://{HOST}:{port}{peer.path}"


class Relay:
    """Stands between a client and the server at an address, and can cut what goes through it."""

    def __init__(self, address: str) -> None:
        self._target = urlsplit(address)
        self._open: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    def cut(self) -> None:
        """Break all connections; new ones are led on."""
        for writer in self._open:
            writer.transport.abort()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._lead, HOST, 0)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://{HOST}:{port}{self._target.path}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        await self._server.wait_closed()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        both = {writer, far_writer}
        self._open |= both
        try:
            await asyncio.gather(self._carry(reader, far_writer), self._carry(far_reader, writer))
        except ConnectionError:
            pass
        finally:
            self._open -= both
            for end in both:
                end.close()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()


class HttpTalk(Talk):
    """All messages and events, as far as each message comes and goes in one piece."""

    def __init__(self) -> None:
        super().__init__()
        self.raw = {"sent": b"", "received": b""}

    def on_wire(self, direction: Literal["sent", "received"], data: bytes) -> None:
        self.raw[direction] += data
        for line in data.split(b"\n"):
            text = line.removeprefix(b"data:").strip().decode(errors="replace")
            if text.startswith("{"):
                try:
                    message: Json = json.JSONDecoder().raw_decode(text)[0]
                except ValueError:
                    continue
                getattr(self, direction).append(message)
        self._more.set()

    def requests(self) -> list[str]:
        """The first line of each request, without the version of HTTP."""
        lines = self.raw["sent"].decode("latin-1").splitlines()
        found = (line.rpartition(" HTTP/1.1") for line in lines)
        return [line[line.rfind("}") + 1 :] for line, version, _ in found if version]


@asynccontextmanager
async def reached(
    name: str, scratch: Path, talk: Talk, **options: Any
) -> AsyncIterator[sansmcp_asyncio.Client]:
    """A client of the peer called `name`, which is started for it."""
    options.setdefault("timeouts", Timeouts(probe=20.0))
    async with (
        served(name, scratch) as url,
        sansmcp_asyncio.connect(url, on_event=talk.on_event, on_wire=talk.on_wire, **options) as client,
    ):
        yield client
