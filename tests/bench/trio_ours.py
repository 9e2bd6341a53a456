"""Our part of the lines on trio, through public names only."""

import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import trio

from sansmcp import fast_codec
from sansmcp_trio import connect

from . import messages
from .harness import Prepare, Run, calls_in_flight, main
from .http_support import start_server

SERVER = Path(__file__).parent / "programs" / "our_server.py"


def _calls(client: Any, flying: int) -> Run:
    call = partial(client.call_tool, "echo", {"text": messages.TEXT})
    return calls_in_flight(call, 1) if flying == 1 else _in_a_nursery(call, flying)


def _in_a_nursery(call: Callable[[], Awaitable[object]], flying: int) -> Run:
    """As `calls_in_flight`, with tasks of trio."""

    async def run(calls: int) -> float:
        left = calls

        async def fly() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await call()

        start = perf_counter()
        async with trio.open_nursery() as nursery:
            for _ in range(flying):
                nursery.start_soon(fly)
        return perf_counter() - start

    return run


def over_stdio(flying: int) -> Prepare:
    """Calls to a child process, the same as on asyncio."""

    async def prepare(stack: AsyncExitStack) -> Run:
        command = [sys.executable, str(SERVER), "fast"]
        return _calls(await stack.enter_async_context(connect(command, codec=fast_codec())), flying)

    return prepare


def over_http(flying: int) -> Prepare:
    """Calls to a server in a process of its own, the same as on asyncio."""

    async def prepare(stack: AsyncExitStack) -> Run:
        port = start_server(stack, "programs.our_http_server")
        return _calls(await stack.enter_async_context(connect(f"http://127.0.0.1:{port}/mcp")), flying)

    return prepare


BENCHES: dict[str, Prepare] = {f"http-json-{_flying}": over_http(_flying) for _flying in (1, 16)}
for _flying in (1, 64):
    BENCHES[f"stdio-{_flying}-fast"] = over_stdio(_flying)

if __name__ == "__main__":
    main(BENCHES, lambda serve: trio.run(lambda: serve))
