"""Our own server, for clients that others wrote: `python demo_server.py REPORT [REVISION...]`.

It offers what the SDK servers of tests/peers offer, serves all revisions or those named, and writes
to the file REPORT, as JSON, whom it served and how that ended.
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import anyio

import sansmcp_asyncio
from sansmcp import (
    ALL_REVISIONS,
    App,
    Context,
    DeviationTolerated,
    Event,
    MessageIgnored,
    PeerFault,
    RequestReceived,
    Revision,
    SessionEnded,
)

app = App("demo ü", "2.1", instructions="Say hello.", logging=True, list_changed=True)

RESULT: dict[str, Any] = {
    "type": "object",
    "properties": {"result": {"type": "integer"}},
    "required": ["result"],
}


@app.tool()
def echo(text: str) -> str:
    """Give the text back."""
    print("a print of a handler disturbs nobody")
    return text


@app.tool(output_schema=RESULT)
def add(a: int, b: int) -> dict[str, int]:
    """Add two numbers."""
    return {"result": a + b}


@app.tool()
def fail() -> str:
    """Raise."""
    raise ValueError("a secret of the server")


@app.tool()
async def slow(ctx: Context, seconds: float) -> str:
    """Take a while and report progress in four steps."""
    for step in range(4):
        await anyio.sleep(seconds / 4)
        ctx.progress(step + 1, 4)
    return "done"


@app.resource("test://greeting", mime_type="text/plain")
def greeting() -> str:
    """A friendly text."""
    return "Hello from a resource"


@app.prompt()
def greet(name: str) -> str:
    """Ask for a greeting."""
    return f"Please greet {name}."


class Report:
    """Whom the server served, and what was wrong."""

    def __init__(self) -> None:
        self.requests: list[list[str]] = []
        self.faults: list[str] = []
        self.ends: list[str | None] = []

    def on_event(self, event: Event) -> None:
        match event:
            case RequestReceived():
                self.requests.append([event.request.revision.value, event.request.method])
            case MessageIgnored() if isinstance(event.reason, PeerFault):
                self.faults.append(event.reason.name)
            case DeviationTolerated():
                self.faults.append(event.fault.name)
            case SessionEnded():
                self.ends.append(None if event.error is None else str(event.error))
            case _:
                pass

    def to_json(self) -> dict[str, Any]:
        return {"requests": self.requests, "faults": self.faults, "ends": self.ends}


def main(report_to: str, *revisions: str) -> None:
    report = Report()
    chosen = [Revision(name) for name in revisions] or ALL_REVISIONS
    asyncio.run(sansmcp_asyncio.serve_stdio(app, revisions=chosen, on_event=report.on_event))
    Path(report_to).write_text(json.dumps(report.to_json()), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
