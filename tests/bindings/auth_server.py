"""A server on this computer that wants to see tokens, and is its own authorization server."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, contextmanager, suppress
from itertools import count
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import attrs

from sansmcp.wire.http1 import BodyData, BodyEnd, Http1Server, RequestHead

from ..http_client_support import DONE
from ..support import DISCOVER


@attrs.define(eq=False)
class AuthServer:
    """What it was asked, and what it takes."""

    base: str = ""
    valid: set[str] = attrs.field(factory=set)
    asked: list[str] = attrs.field(factory=list)
    """Method and path, in order."""
    tokens: Any = attrs.field(factory=lambda: (f"t0ken-{n}" for n in count(1)))
    open: bool = False
    """Whether it takes everybody."""
    connections: dict[asyncio.Task[None], asyncio.StreamWriter] = attrs.field(factory=dict)

    @property
    def url(self) -> str:
        return f"{self.base}/mcp"

    def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections[asyncio.create_task(self.serve(reader, writer))] = writer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        codec, head, body = Http1Server(), None, b""
        try:
            while data := await reader.read(65_536):
                codec.receive_data(data)
                while (event := codec.next_event()) is not None:
                    match event:
                        case RequestHead():
                            head, body = event, b""
                        case BodyData(data=piece):
                            body += piece
                        case BodyEnd():
                            assert head is not None
                            status, fields, answer = self.answer(head, body)
                            codec.send_response(status, fields, answer)
                            writer.write(codec.data_to_send())
        except ConnectionError:
            pass
        finally:
            writer.close()

    async def end(self) -> None:
        """Wait until every client has left, then let go of the sockets before the loop ends."""
        for _ in range(5):
            await asyncio.sleep(0)  # what was accepted last is a connection after some turns
        if self.connections:
            _, late = await asyncio.wait(self.connections, timeout=5.0)
            for task in late:
                task.cancel()
            await asyncio.gather(*self.connections, return_exceptions=True)
        for writer in self.connections.values():
            with suppress(ConnectionError):
                await writer.wait_closed()

    def answer(self, head: RequestHead, body: bytes) -> tuple[int, list[tuple[str, str]], bytes]:
        path, _, query = head.target.partition("?")
        self.asked.append(f"{head.method} {path}")
        headers = dict(head.headers.items())
        given = dict(parse_qsl(query))
        match path:
            case "/mcp":
                token = headers.get("authorization", "").removeprefix("Bearer ")
                if token not in self.valid and not self.open:
                    place = f"{self.base}/.well-known/oauth-protected-resource/mcp"
                    return 401, [("www-authenticate", f'Bearer resource_metadata="{place}"')], b""
                message = json.loads(body)
                result = DISCOVER if message["method"] == "server/discover" else DONE
                if message["method"] == "tools/list":
                    result = {**DISCOVER, "tools": []}
                return self.json({"jsonrpc": "2.0", "id": message["id"], "result": result})
            case "/.well-known/oauth-protected-resource/mcp":
                return self.json({"resource": self.url, "authorization_servers": [self.base]})
            case "/.well-known/oauth-authorization-server":
                return self.json(
                    {
                        "issuer": self.base,
                        **{f"{name}_endpoint": f"{self.base}/{name}" for name in ("authorization", "token")},
                        "registration_endpoint": f"{self.base}/registration",
                        "code_challenge_methods_supported": ["S256"],
                        "token_endpoint_auth_methods_supported": ["none"],
                    }
                )
            case "/registration":
                return self.json({"client_id": "cl1ent"}, 201)
            case "/authorization":
                there = f"{given['redirect_uri']}?code=c0de&state={given['state']}&iss={self.base}"
                return 302, [("location", there)], b""
            case "/token":
                token = next(self.tokens)
                self.valid.add(token)
                return self.json({"access_token": token, "token_type": "Bearer", "refresh_token": "r3fresh"})
        return 404, [], b""

    @staticmethod
    def json(value: Any, status: int = 200) -> tuple[int, list[tuple[str, str]], bytes]:
        return status, [("content-type", "application/json")], json.dumps(value).encode()


@asynccontextmanager
async def auth_server() -> AsyncIterator[AuthServer]:
    """One that listens."""
    server = AuthServer()
    listener = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    server.base = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listener.close()
        await server.end()


@contextmanager
def auth_server_beside() -> Iterator[AuthServer]:
    """One that listens, in a thread of its own."""
    started: Future[tuple[AuthServer, Callable[[], object]]] = Future()

    async def main() -> None:
        over = asyncio.Event()
        async with auth_server() as server:
            loop = asyncio.get_running_loop()
            started.set_result((server, lambda: loop.call_soon_threadsafe(over.set)))
            await over.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    server, end = started.result(5)
    try:
        yield server
    finally:
        end()
        thread.join()


class Browser:
    """Goes where it is sent, in threads, and keeps the pages."""

    def __init__(self, *, goes: bool = True) -> None:
        self._goes = goes
        self.opened: list[str] = []
        self.pages: list[str] = []
        self.first: Callable[[], object] = lambda: None
        """Done before it goes there, or instead of that."""

    def open(self, url: str) -> None:
        self.opened.append(url)
        threading.Thread(target=self._go, args=(url,)).start()

    def _go(self, url: str) -> None:
        self.first()
        if self._goes:
            self.pages.append(asyncio.run(browse(url)))


def get(url: str) -> tuple[int, dict[str, str], str]:
    """`fetch`, for whoever has no loop."""
    return asyncio.run(fetch(url))


async def fetch(url: str) -> tuple[int, dict[str, str], str]:
    """What is at `url`: status, headers and body."""
    parts = urlsplit(url)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    try:
        writer.write(f"GET {target} HTTP/1.1\r\nhost: {parts.netloc}\r\nconnection: close\r\n\r\n".encode())
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").splitlines()
        fields = (line.partition(":") for line in head[1:])
        headers = {name.lower(): value.strip() for name, _, value in fields}
        data = await reader.readexactly(int(headers.get("content-length", "0")))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return int(head[0].split()[1]), headers, data.decode()


async def browse(url: str) -> str:
    """Do as a browser does with `url`: go where it leads; returns the page at the end."""
    for _ in range(5):
        status, headers, page = await fetch(url)
        if status != 302:
            return page
        url = headers["location"]
    raise AssertionError("no end")
