"""The floor over HTTP: h11 on both ends of a socket, and the codec on each."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from time import process_time
from typing import Any

import h11

from .floor_calls import codec, request
from .floor_calls import headers as headers_of
from .harness import Prepare, Run, calls_in_flight
from .http_support import start_server
from .programs.floor_http_server import listen

SERVER = "programs.floor_http_server"


class _Connection(asyncio.Protocol):
    """One exchange at a time; what it was answered goes to the future."""

    def __init__(self) -> None:
        self._conn = h11.Connection(h11.CLIENT)
        self._body: list[bytes] = []
        self.answered: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self, headers: list[tuple[str, str]], body: bytes) -> None:
        conn = self._conn
        request = h11.Request(method="POST", target="/mcp", headers=headers)
        sent = [conn.send(request), conn.send(h11.Data(body)), conn.send(h11.EndOfMessage())]
        self._transport.write(b"".join(filter(None, sent)))

    def data_received(self, data: bytes) -> None:
        conn = self._conn
        conn.receive_data(data)
        while True:
            event = conn.next_event()
            if type(event) is h11.Data:
                self._body.append(event.data)
            elif type(event) is h11.EndOfMessage:
                body = b"".join(self._body)
                self._body.clear()
                conn.start_next_cycle()
                assert self.answered is not None
                self.answered.set_result(body)
            elif event is h11.NEED_DATA or type(event) is h11.ConnectionClosed:
                return


class Caller:
    """Calls over as many connections as are needed at once, each kept for the next call."""

    def __init__(self, port: int, stream: bool) -> None:
        self._port = port
        self._stream = stream
        self._idle: deque[_Connection] = deque()
        self._loop = asyncio.get_running_loop()
        self._loads, self._dumps = codec("fast")
        self._last = 0

    async def call(self) -> Any:
        """One call."""
        self._last += 1
        body = self._dumps(request(self._last))
        headers = headers_of(self._port, len(body))
        connection = self._idle.pop() if self._idle else await self._connect()
        connection.answered = self._loop.create_future()
        connection.send(headers, body)
        answer = await connection.answered
        self._idle.append(connection)
        if not self._stream:
            return self._loads(answer)["result"]
        result = None
        for event in answer.split(b"\n\n"):
            if event:
                result = self._loads(event[6:])
        return result

    async def _connect(self) -> _Connection:
        _, made = await self._loop.create_connection(_Connection, "127.0.0.1", self._port)
        return made


def _kind(stream: bool) -> str:
    return "stream" if stream else "json"


def over_http(stream: bool, flying: int) -> Prepare:
    """Calls to a server in a process of its own."""

    async def prepare(stack: AsyncExitStack) -> Run:
        return calls_in_flight(Caller(start_server(stack, SERVER, _kind(stream)), stream).call, flying)

    return prepare


def processor_time(stream: bool) -> Prepare:
    """Seconds of the processor for both ends, in one process."""

    async def prepare(stack: AsyncExitStack) -> Run:
        server = await listen(stream)
        stack.callback(server.close)
        return spent(Caller(server.sockets[0].getsockname()[1], stream).call)

    return prepare


def spent(call: Callable[[], Awaitable[object]]) -> Run:
    """One call after another, by the processor's clock."""

    async def run(calls: int) -> float:
        start = process_time()
        for _ in range(calls):
            await call()
        return process_time() - start

    return run


BENCHES: dict[str, Prepare] = {}
for _stream in (False, True):
    BENCHES[f"http-cpu-{_kind(_stream)}"] = processor_time(_stream)
    for _flying in (1, 16):
        BENCHES[f"http-{_kind(_stream)}-{_flying}"] = over_http(_stream, _flying)
