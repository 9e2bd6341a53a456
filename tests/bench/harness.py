"""What runs inside every contender: it takes orders as lines of JSON, measures, and prints the numbers.

Standard library only, because the official SDK's process runs it too. All contenders are measured
by this one file: the same clock, and the same garbage collector, emptied before each sample and
left on during it.
"""

import asyncio
import gc
import itertools
import json
import os
import sys
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from time import perf_counter
from typing import Any

Run = Callable[[int], Awaitable[Any]]
"""Does as many calls as it is told and returns the seconds that they took (or what the bench is about)."""

Prepare = Callable[[AsyncExitStack], Awaitable[Run]]
"""Brings up what a bench needs, once; what it enters into the stack ends with the process."""

Start = Callable[[Coroutine[Any, Any, None]], object]
"""Runs a coroutine in a loop of its own."""


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


def calls_in_threads(call: Callable[[], object], threads: int) -> Run:
    """The same for a call that blocks; a single thread is the one that asks."""

    async def run(calls: int) -> float:
        left = itertools.repeat(None, calls)  # to take one of them is one step, for all threads

        def work() -> None:
            for _ in left:
                call()

        if threads == 1:
            start = perf_counter()
            work()
            return perf_counter() - start
        with ThreadPoolExecutor(threads) as pool:
            start = perf_counter()
            for done in [pool.submit(work) for _ in range(threads)]:
                done.result()
            return perf_counter() - start

    return run


def main(benches: Mapping[str, Prepare], start: Start = asyncio.run) -> None:
    """Take orders until the input ends, in the loop that `start` runs a coroutine in."""
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever else is printed must not look like an answer
    start(_serve(benches, out))


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
