"""What runs inside every contender: it takes orders as lines of JSON, measures, and prints the numbers.

Standard library only, because the official SDK's process runs it too. All contenders are measured
by this one file: the same clock, and the same garbage collector, emptied before each sample and
left on during it.
"""

import asyncio
import gc
import json
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from time import perf_counter
from typing import Any

Run = Callable[[int], Awaitable[Any]]
"""Does as many calls as it is told and returns the seconds that they took (or what the bench is about)."""

Prepare = Callable[[AsyncExitStack], Awaitable[Run]]
"""Brings up what a bench needs, once; what it enters into the stack ends with the process."""


def timed_loop(make: Callable[[int], Callable[[], object]], chunk: int) -> Prepare:
    """A bench whose work is one plain function; what `make` does for up to `chunk` calls is not timed."""

    async def prepare(stack: AsyncExitStack) -> Run:
        async def run(calls: int) -> float:
            seconds = 0.0
            while calls > 0:
                work = make(min(calls, chunk))
                start = perf_counter()
                work()
                seconds += perf_counter() - start
                calls -= chunk
            return seconds

        return run

    return prepare


def calls_in_flight(call: Callable[[], Awaitable[object]], flying: int) -> Run:
    """`flying` tasks, each making one call after another until all are made."""

    async def run(calls: int) -> float:
        if flying == 1:
            start = perf_counter()
            for _ in range(calls):
                await call()
            return perf_counter() - start
        left = calls

        async def fly() -> None:
            nonlocal left
            while left > 0:
                left -= 1
                await call()

        start = perf_counter()
        await asyncio.gather(*(fly() for _ in range(flying)))
        return perf_counter() - start

    return run


def main(benches: Mapping[str, Prepare]) -> None:
    """Take orders until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed must not look like an answer
    asyncio.run(_serve(benches, out))


async def _serve(benches: Mapping[str, Prepare], out: Any) -> None:
    ready: dict[str, Run] = {}
    async with AsyncExitStack() as stack:
        for line in sys.stdin:
            order = json.loads(line)
            name = order["bench"]
            if name not in ready:
                ready[name] = await benches[name](stack)
            gc.collect()
            value = await ready[name](order["calls"])
            print(json.dumps(value), file=out, flush=True)
