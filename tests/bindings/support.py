"""Runs one coroutine and proves that it left nothing: no task, thread, process, descriptor or complaint."""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

import pytest

from sansmcp.types.content import TextContent
from sansmcp.types.tools import CallToolResult

T = TypeVar("T")
E = TypeVar("E", bound=Exception)
SERVERS = Path(__file__).with_name("servers.py")
PATIENCE: Final = 60.0
"""Seconds for what comes at once: only what never comes is a fault, however busy the machine is."""


def server(name: str, *words: str) -> list[str]:
    """The command line of one of `servers.py`."""
    return [sys.executable, str(SERVERS), name, *words]


def run(main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Run `main` in a loop of its own; fail for whatever is left of it."""
    complaints: list[dict[str, Any]] = []

    async def watched() -> T:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: complaints.append(context))
        try:
            return await main()
        finally:
            await asyncio.sleep(0)
            left = asyncio.all_tasks() - {asyncio.current_task()}
            assert not left, left

    before = descriptors(), threading.active_count()
    result = asyncio.run(watched())
    gc.collect()
    assert not complaints, complaints
    # not more: what others began before may have ended meanwhile, as trio's threads do
    until(lambda: descriptors() <= before[0], "descriptors")
    until(lambda: threading.active_count() <= before[1], "threads")
    assert not children(), children()
    return result


def until(condition: Callable[[], object], what: str) -> None:
    """Wait for what happens outside of any loop."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        time.sleep(0.01)


async def soon(condition: Callable[[], object], what: str) -> None:
    """Wait, in the loop, for what another task or process does."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, f"never came: {what}"
        await asyncio.sleep(0.01)


def descriptors() -> int:
    """How many files this process has open."""
    return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))


def children() -> list[int]:
    """Processes that this one started and that are not gone for good."""
    path = Path(f"/proc/self/task/{os.getpid()}/children")
    if not path.exists():
        return []
    return [int(pid) for pid in path.read_text().split()]


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def text_of(result: CallToolResult) -> str:
    """The text of a result that has one block of it."""
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


async def raised(awaitable: Awaitable[object], kind: type[E]) -> E:
    """The error that ends `awaitable`, which must be of `kind`."""
    with pytest.raises(kind) as caught:
        await awaitable
    return caught.value
