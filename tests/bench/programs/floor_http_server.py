"""A bare echo server over HTTP: h11 on a socket of asyncio, JSON in and out, one write per answer.

Started as a program it prints its port.
"""

import asyncio
import sys
from collections.abc import Callable
from typing import Any

import h11
import msgspec

from tests.bench.programs.floor_server import answer

_JSON = [("content-type", "application/json")]
_STREAM = [("content-type", "text/event-stream"), ("transfer-encoding", "chunked")]
_PROGRESS = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 1},
}


class Echo(asyncio.Protocol):
    """One connection. With `stream`, the answer is an event stream with one progress notification."""

    def __init__(self, stream: bool) -> None:
        self._stream = stream
        self._conn = h11.Connection(h11.SERVER)
        self._body: list[bytes] = []
        self._loads: Callable[[bytes], Any] = msgspec.json.Decoder().decode
        self._dumps: Callable[[Any], bytes] = msgspec.json.Encoder().encode

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        conn = self._conn
        conn.receive_data(data)
        while True:
            event = conn.next_event()
            if type(event) is h11.Data:
                self._body.append(event.data)
            elif type(event) is h11.EndOfMessage:
                self._answer(self._loads(b"".join(self._body)))
                self._body.clear()
                conn.start_next_cycle()
            elif event is h11.NEED_DATA or type(event) is h11.ConnectionClosed:
                return

    def _answer(self, request: Any) -> None:
        send, dumps = self._conn.send, self._dumps
        body = dumps(answer(request))
        if self._stream:
            out = [
                send(h11.Response(status_code=200, headers=_STREAM)),
                send(h11.Data(b"data: " + dumps(_PROGRESS) + b"\n\n")),
                send(h11.Data(b"data: " + body + b"\n\n")),
            ]
        else:
            headers = [*_JSON, ("content-length", str(len(body)))]
            out = [send(h11.Response(status_code=200, headers=headers)), send(h11.Data(body))]
        out.append(send(h11.EndOfMessage()))
        self._transport.write(b"".join(filter(None, out)))


async def listen(stream: bool) -> asyncio.Server:
    """Serve on a port that the system chooses."""
    return await asyncio.get_running_loop().create_server(lambda: Echo(stream), "127.0.0.1", 0)


async def _main() -> None:
    server = await listen(stream="stream" in sys.argv)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)  # until whoever started it ends


if __name__ == "__main__":
    asyncio.run(_main())
