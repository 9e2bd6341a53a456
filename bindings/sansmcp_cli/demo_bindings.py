"""The last part of the demo: one script through asyncio, trio and threads."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from typing import Any, Final

import sansmcp_asyncio
import sansmcp_threads

SERVER: Final = [sys.executable, "-m", "sansmcp_cli.demo_app"]
SCRIPT: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("call_tool", ("echo", {"text": "one script"})),
    ("call_tool", ("add", {"a": 2, "b": 40})),
    ("list_tools", ()),
    ("read_resource", ("demo://greeting",)),
    ("get_prompt", ("greet", {"name": "Ada"})),
)
"""Verbs, and what they are given."""


def through_asyncio() -> list[Any]:
    """What the verbs return there."""

    async def main() -> list[Any]:
        async with sansmcp_asyncio.connect(SERVER) as client:
            return [await getattr(client, verb)(*arguments) for verb, arguments in SCRIPT]

    return asyncio.run(main())


def through_trio() -> list[Any]:
    """What the verbs return there. Raises ModuleNotFoundError without trio."""
    import trio

    import sansmcp_trio

    async def main() -> list[Any]:
        async with sansmcp_trio.connect(SERVER) as client:
            return [await getattr(client, verb)(*arguments) for verb, arguments in SCRIPT]

    return trio.run(main)


def through_threads() -> list[Any]:
    """What the verbs return there."""
    with sansmcp_threads.connect(SERVER) as client:
        return [getattr(client, verb)(*arguments) for verb, arguments in SCRIPT]


def same_everywhere() -> bool:
    """Run the script in each; whether the results are the same."""
    print("\n=== one script through asyncio, trio and threads ===")
    runs: list[tuple[str, Callable[[], list[Any]]]] = [
        ("asyncio", through_asyncio),
        ("trio", through_trio),
        ("threads", through_threads),
    ]
    results: list[list[Any]] = []
    for name, run in runs:
        try:
            results.append(run())
        except ModuleNotFoundError:
            print(f"  {name}: not installed")
        else:
            print(f"  {name}: {len(results[-1])} verbs, {', '.join(verb for verb, _ in SCRIPT)}")
    same = all(result == results[0] for result in results)
    print(f"  {'ok ' if same else 'WRONG'} the results are the same")
    return same
