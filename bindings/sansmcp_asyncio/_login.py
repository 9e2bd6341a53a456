"""Listens, on asyncio, for a browser that comes back from where the user logged in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from sansmcp_shared.awaiting_login import AwaitingLogin, Catches
from sansmcp_shared.login import MAX_HEAD, MAX_VISITS, VISIT_WAIT, Visit, address


class AsyncioLogin(AwaitingLogin):
    """In tasks of asyncio."""

    def _catches(self, path: str, arrived: Callable[[str], bool]) -> Catches:
        return Catcher(path, arrived)


class Catcher:
    """See `Catches`."""

    def __init__(self, path: str, arrived: Callable[[str], bool]) -> None:
        self._path = path
        self._arrived = arrived
        self._server: asyncio.Server | None = None
        self._visits = 0
        self._visitors: set[asyncio.Task[Any]] = set()
        self.uri = ""

    async def listen(self, host: str, port: int) -> None:
        # In two steps: who is cancelled within one would leave it listening.
        self._server = await asyncio.start_server(
            self._visited, host, port, limit=MAX_HEAD, start_serving=False
        )
        await self._server.start_serving()
        self.uri = address(host, self._server.sockets[0].getsockname()[1], self._path)

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        answering = asyncio.current_task()
        for visitor in self._visitors:
            if visitor is not answering:
                visitor.cancel()

    async def _visited(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        visitor = asyncio.current_task()
        assert visitor is not None
        self._visits += 1
        if self._visits > MAX_VISITS:
            self.close()
            writer.close()
            return
        self._visitors.add(visitor)
        try:
            async with asyncio.timeout(VISIT_WAIT):
                writer.write(await self._answer(reader))
                await writer.drain()
        except (OSError, TimeoutError, asyncio.CancelledError):
            pass
        finally:
            self._visitors.discard(visitor)
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader) -> bytes:
        visit = Visit(self.uri, self._arrived)
        while data := await reader.read(MAX_HEAD):
            answer = visit.receive(data)
            if answer is not None:
                return answer
        return b""
