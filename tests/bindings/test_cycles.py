"""Connecting and closing, again and again, leaves nothing: no file, task, thread, process or memory.

``SANSMCP_CYCLES=1000`` is the number of cycles of each kind; unless it is given there are fewer, so
that this takes seconds.
"""

import asyncio
import gc
import os
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import trio

from sansmcp import Era, Legacy

from .every_app import app
from .kits import KITS, Kit, threads
from .support import PATIENCE, children, descriptors, server, text_of

pytestmark = pytest.mark.matrix


CYCLES: Final[Mapping[str, int]] = {
    "memory": 300,
    "stdio": 12,  # each is a process
    "http": 200,
    "ws": 200,
    "tcp": 200,
    "unix": 200,
}
ROUNDS: Final = 4
"""Of so many cycles at most. A cache that is filled grows in one round and not in the next; a leak in all."""
MODES: Final = (None, Legacy())
"""How every second cycle connects."""
NOISE: Final = 50
"""Blocks of memory that come and go with what else runs."""
MEGABYTE: Final = 1 << 20

Count = dict[str, int]


def cycles_of(transport: str) -> int:
    return int(os.environ.get("SANSMCP_CYCLES", CYCLES[transport]))


def tasks(kit: Kit) -> int:
    match kit.name:
        case "asyncio":
            return len(asyncio.all_tasks())
        case "trio":
            return trio.lowlevel.current_statistics().tasks_living
        case _:
            return 0


def counted(kit: Kit) -> Count:
    """What there is that may be too much."""
    return {
        "descriptors": descriptors(),
        "threads": threads(),
        "tasks": tasks(kit),
        "processes": len(children()),
    }


def memory() -> tuple[int, int]:
    """Blocks that are in use, and bytes that this process has of the machine, where that is told."""
    gc.collect()
    statm = Path("/proc/self/statm")
    size = int(statm.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") if statm.exists() else 0
    return sys.getallocatedblocks(), size


async def cycle(kit: Kit, transport: str, where: Any, number: int) -> None:
    mode = MODES[number % len(MODES)]
    if transport == "memory":
        opening = kit.connect_memory(app(), mode=mode)
    else:
        opening = kit.connect(where, mode=mode)
    async with opening as client:
        assert client.era is (Era.LEGACY if mode else Era.MODERN)
        assert text_of(await client.call_tool("echo", {"text": "x"})) == "x"


async def settled(kit: Kit, before: Count) -> None:
    """Wait until there is no more than before: peers learn late that something is over."""
    end = time.monotonic() + PATIENCE
    while any(now > before[what] for what, now in counted(kit).items()):
        assert time.monotonic() < end, f"before: {before}; now: {counted(kit)}"
        await kit.sleep(0.01)


async def cycles(kit: Kit, transport: str, where: Any) -> None:
    """Nothing is more after all of them than it was before."""
    count = cycles_of(transport)
    for number in range(len(MODES)):
        await cycle(kit, transport, where, number)
    await kit.sleep(0.2)  # a peer learns a little later that a connection is over
    before = counted(kit)
    grown = []
    for _ in range(ROUNDS):
        blocks, size = memory()
        for number in range(count):
            await cycle(kit, transport, where, number)
        await settled(kit, before)
        blocks_now, size_now = memory()
        grown.append((blocks_now - blocks, size_now - size))
        # One block that every cycle in one of the modes leaves would be more.
        if grown[-1][0] < count / len(MODES) + NOISE and grown[-1][1] < MEGABYTE:
            return
    raise AssertionError(f"blocks and bytes that {count} cycles leave, each time: {grown}")


@asynccontextmanager
async def target(kit: Kit, transport: str) -> AsyncIterator[Any]:
    """What to connect to: a server of the same binding."""
    alone = {"threads": 1}  # how many more there are for handlers would be a matter of luck
    match transport:
        case "memory":
            yield None
        case "stdio":
            yield server("every", kit.name)
        case "http":
            async with kit.serving(app(), **alone) as serving:
                yield serving.url
        case "unix":
            with TemporaryDirectory() as folder:
                async with kit.streaming("unix", app(), f"{folder}/socket", **alone):
                    yield f"unix://{folder}/socket"
        case _:
            async with kit.streaming(transport, app(), **alone) as serving:
                yield f"{transport}://127.0.0.1:{serving.port}{'/mcp' if transport == 'ws' else ''}"


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("transport", CYCLES)
@pytest.mark.parametrize("kit", KITS, ids=lambda kit: kit.name)
def test_nothing_is_left_of_many_connections(kit: Kit, transport: str) -> None:
    async def main() -> None:
        async with target(kit, transport) as where:
            await cycles(kit, transport, where)

    kit.run(main)
