"""The floor: what the same bytes cost with nothing but a JSON codec, an event loop and pipes."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from . import http_floor, messages, threads_floor
from .floor_calls import codec, request
from .harness import Prepare, Run, calls_in_flight, main, timed_loop
from .programs.floor_server import answer

ECHO = Path(__file__).parent / "programs" / "floor_server.py"
CHUNK = 100


def decoding(line: bytes, name: str) -> Prepare:
    """The codec alone."""
    loads, _ = codec(name)

    def make(calls: int) -> Callable[[], object]:
        lines = [messages.with_id(line, number) for number in range(calls)]

        def work() -> None:
            for one in lines:
                loads(one)

        return work

    return timed_loop(make, CHUNK)


class _Caller:
    """Futures by id. Alone, a request leaves at once; among many, all of a turn leave as one write."""

    def __init__(self, name: str) -> None:
        self.loads, self._dumps = codec(name)
        self.write: Callable[[bytes], object] = lambda data: None
        self._loop = asyncio.get_running_loop()
        self._futures: dict[int, asyncio.Future[Any]] = {}
        self._out: list[bytes] = []
        self._last = 0

    def take(self, line: bytes) -> None:
        message = self.loads(line)
        self._futures.pop(message["id"]).set_result(message["result"])

    async def call(self) -> Any:
        self._last += 1
        future = self._futures[self._last] = self._loop.create_future()
        data = self._dumps(request(self._last)) + b"\n"
        if len(self._futures) == 1:
            self.write(data)
        else:
            self._out.append(data)
            if len(self._out) == 1:
                self._loop.call_soon(self._flush)
        return await future

    def _flush(self) -> None:
        self.write(b"".join(self._out))
        self._out.clear()


def in_memory(name: str, flying: int) -> Prepare:
    """A future, a turn of the loop, and the codec four times."""

    async def prepare(stack: AsyncExitStack) -> Run:
        caller = _Caller(name)
        loads, dumps = codec(name)

        def serve(data: bytes) -> None:
            for line in data.splitlines():
                caller.take(dumps(answer(loads(line))))

        loop = asyncio.get_running_loop()
        caller.write = lambda data: loop.call_soon(serve, data)
        return calls_in_flight(caller.call, flying)

    return prepare


class _Child(asyncio.SubprocessProtocol):
    def __init__(self, caller: _Caller) -> None:
        self._caller = caller
        self._rest = b""

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._caller.take(line)


def over_pipes(name: str, flying: int) -> Prepare:
    """Bare pipes to a child that reads lines and writes lines, the codec on each side."""

    async def prepare(stack: AsyncExitStack) -> Run:
        caller = _Caller(name)
        transport, _ = await asyncio.get_running_loop().subprocess_exec(
            lambda: _Child(caller), sys.executable, str(ECHO), name, stderr=None
        )
        stack.callback(transport.close)
        stdin: Any = transport.get_pipe_transport(0)
        caller.write = stdin.write
        return calls_in_flight(caller.call, flying)

    return prepare


BENCHES: dict[str, Prepare] = {**http_floor.BENCHES, **threads_floor.BENCHES}
for _name in ("standard", "fast"):
    BENCHES[f"call-result-{_name}"] = decoding(messages.call_result(), _name)
    BENCHES[f"list-result-{_name}"] = decoding(messages.list_result(), _name)
    for _flying in (1, 64):
        BENCHES[f"memory-{_flying}-{_name}"] = in_memory(_name, _flying)
        BENCHES[f"stdio-{_flying}-{_name}"] = over_pipes(_name, _flying)

if __name__ == "__main__":
    main(BENCHES)
