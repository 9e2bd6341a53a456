"""Runs the examples of the documentation as people do: as programs."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import sansmcp_asyncio
from sansmcp import ALL_REVISIONS, App, Context, Era

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "docs" / "examples"
PATIENCE = 50.0

REVISIONS = {
    "modern": [r for r in ALL_REVISIONS if r.era is Era.MODERN],
    "legacy": [r for r in ALL_REVISIONS if r.era is Era.LEGACY],
}
NEWEST = {era: max(revisions).value for era, revisions in REVISIONS.items()}


def make_app() -> App:
    """What a server of an SDK has in these tests: `echo`. It answers with a stream."""
    app = App("echoes", "1.0")

    @app.tool()
    async def echo(text: str, ctx: Context) -> str:
        ctx.progress(1)
        await asyncio.sleep(0.02)
        return text

    return app


@asynccontextmanager
async def served(era: str) -> AsyncIterator[str]:
    """The address of a server of ours that speaks one era."""
    async with sansmcp_asyncio.HttpServing(make_app(), revisions=REVISIONS[era]) as serving:
        yield serving.url


async def program(argv: Sequence[str | Path], **environment: str) -> list[str]:
    """What a program prints, line by line. Its errors are shown if it fails."""
    path = os.pathsep.join(map(str, (ROOT, ROOT / "bindings", EXAMPLES)))
    process = await asyncio.create_subprocess_exec(
        *map(str, argv),
        cwd=EXAMPLES,
        env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(PATIENCE):
            printed, complaints = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, complaints.decode()[-2000:]
    assert complaints == b"", complaints.decode()[-2000:]
    return printed.decode().splitlines()


def calling(url: str, text: str = "hi") -> list[Any]:
    """The arguments of an example that calls a tool."""
    return [url, "echo", json.dumps({"text": text})]
