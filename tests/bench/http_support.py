"""Servers of the HTTP lines as child processes. Standard library only: the SDK's process runs it too."""

import asyncio
import gc
import subprocess
import sys
import tracemalloc
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]

IDLE = 200
"""Sessions, or streams, that are open while their memory is measured."""

EVENTS = 100_000
EVENT_BYTES = 500
CHUNKS = (65_536, 1024)


def start_server(stack: AsyncExitStack, module: str, *arguments: str) -> int:
    """Start a server that prints its port, and ends with its standard input. Returns the port."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.bench.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    stack.callback(process.communicate)
    return int(process.stdout.readline())


def event_stream(count: int) -> bytes:
    """An event stream of `count` progress notifications, the answer behind them left out."""
    filler = "x" * (EVENT_BYTES - 150)
    return b"".join(
        b'event: message\ndata: {"jsonrpc":"2.0","method":"notifications/progress","params":'
        b'{"progressToken":1,"progress":%d,"total":%d,"message":"%b"}}\n\n' % (n, count, filler.encode())
        for n in range(1, count + 1)
    )


async def memory_held(port: int, kind: str) -> float:
    """Bytes that a server in this process keeps for each session or stream of clients in another one."""
    warm = await _hold(port, 1, kind)  # what is there for the first one only is not counted
    gc.collect()
    tracemalloc.start()
    held = await _hold(port, IDLE, kind)
    await asyncio.sleep(0.1)  # connections that were closed are seen to be so
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    for process in (warm, held):
        process.stdin.close()
        await process.wait()
    return size / IDLE


async def _hold(port: int, count: int, kind: str) -> Any:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bench.programs.http_holder",
        *map(str, (port, count, kind)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )
    assert process.stdout is not None
    if not await process.stdout.readline():
        raise RuntimeError(f"the {kind}s could not be opened")
    return process
