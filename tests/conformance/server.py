"""The server that the suite is run against: `python -m tests.conformance.server [PORT]`.

One endpoint serves every revision. It prints its URL once clients can connect, and ends when its
standard input does.
"""

from __future__ import annotations

import asyncio
import sys
import traceback
from typing import Final

from sansmcp import App
from sansmcp_asyncio import HttpServing

from . import content, diagnostics, questions, skills, tasks


def report(error: BaseException, number: int) -> None:
    """Show what clients are not shown."""
    print(f"error {number}:", file=sys.stderr)
    traceback.print_exception(error)


app: Final = App(
    "sansmcp-conformance",
    "1.0",
    logging=True,
    list_changed=True,
    subscribe=True,
    on_error=report,
    extensions=[tasks.TASKS, skills.SKILLS],
)
content.register(app)
diagnostics.register(app)
questions.register(app)
tasks.register(app)


async def serve(port: int) -> None:
    """Serve until standard input ends."""
    async with HttpServing(app, port=port) as serving:
        print(serving.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]) if len(sys.argv) > 1 else 0))
