"""Servers over real sockets: `served` is ours, `listening` one by hand."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from sansmcp import App, Context
from sansmcp_asyncio import HttpServing, connect

from .support import PATIENCE


def make_app() -> App:
    app = App("over http", "1.0", logging=True)

    @app.tool()
    def add(a: int, b: int) -> int:
        return a + b

    @app.tool()
    async def count(upto: int, ctx: Context) -> str:
        for step in range(upto):
            ctx.progress(step + 1, upto)
            await asyncio.sleep(0.01)
        return "counted"

    @app.tool()
    async def wait() -> str:
        await asyncio.Event().wait()
        return "never"

    @app.tool()
    def large(size: int) -> str:
        return "x" * size

    @app.resource("file:///a.txt")
    def a() -> str:
        return "text of a"

    @app.prompt()
    def greet(name: str) -> str:
        return f"hello {name}"

    return app


@asynccontextmanager
async def served(**options: Any) -> AsyncIterator[HttpServing]:
    async with asyncio.timeout(PATIENCE), HttpServing(make_app(), **options) as serving:
        yield serving


def text_of(result: Any) -> str:
    text = result.content[0].text
    assert isinstance(text, str)
    return text


async def fails_with(kind: Any, url: str, **options: Any) -> Any:
    """The error with which it is not possible to connect."""
    with pytest.raises(kind) as caught:
        async with connect(url, **options):
            pass
    return caught.value


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]],
    tls: ssl.SSLContext | None = None,
) -> AsyncIterator[int]:
    """A server by hand; gives its port."""
    tasks: set[asyncio.Task[Any]] = set()
    writers: list[asyncio.StreamWriter] = []

    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        writers.append(writer)
        try:
            await serve(reader, writer)
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=tls)
    async with asyncio.timeout(PATIENCE), server:
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for writer in writers:
                writer.transport.abort()
            await asyncio.sleep(0)
