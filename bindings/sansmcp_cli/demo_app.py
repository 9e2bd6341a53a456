"""The demo server: what an `App` looks like, and something to try the commands on.

python -m sansmcp_cli.demo_app            serves every revision
python -m sansmcp_cli.demo_app legacy     serves only the revisions with a handshake
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence

from sansmcp.app import App, ToolError
from sansmcp.context import Context
from sansmcp.errors import ErrorCode, McpError
from sansmcp.revisions import ALL_REVISIONS, LEGACY_REVISIONS, MODERN_REVISIONS, Era, Revision

app = App(
    "sansmcp-demo",
    "1.0",
    title="Demo",
    instructions="Call echo or add. slow reports progress, fail always fails.",
    logging=True,
)

CITIES = ("Amsterdam", "Athens", "Berlin", "Bern", "Bogotá", "Cairo", "Oslo", "Quito")


@app.tool()
def echo(text: str) -> str:
    """Say the text again."""
    return text


@app.tool()
def add(a: int, b: int) -> dict[str, int]:
    """Add two whole numbers."""
    return {"sum": a + b}


@app.tool()
async def slow(ctx: Context, steps: int = 4, pause: float = 0.1) -> str:
    """Take a while, and report progress after each step."""
    for step in range(1, steps + 1):
        await asyncio.sleep(pause)
        ctx.progress(step, steps, f"step {step}")
    return f"{steps} steps done"


@app.tool()
def fail(reason: str = "because it was asked to") -> str:
    """Fail always."""
    raise ToolError(f"this tool fails {reason}")


@app.resource("demo://greeting", mime_type="text/plain")
def greeting() -> str:
    """A few friendly words."""
    return "Hello from the demo server.\n"


@app.resource("demo://dot", mime_type="image/png")
def dot() -> bytes:
    """The smallest picture."""
    return bytes.fromhex(
        "89504e470d0a1a0a0000000d49484452000000010000000108000000003a7e9b"
        "550000000a4944415478da6360000000020001e527defc0000000049454e44ae426082"
    )


@app.resource("demo://cities/{name}", mime_type="text/plain")
def city(name: str) -> str:
    """A city of the list."""
    if name not in CITIES:
        raise McpError(ErrorCode.INVALID_PARAMS, f"no city named {name!r} here")
    return f"{name} is number {CITIES.index(name) + 1} of {len(CITIES)}.\n"


@app.prompt()
def greet(name: str, tone: str = "friendly") -> str:
    """Greet somebody."""
    return f"Greet {name} in a {tone} way."


@app.completion
def complete(ref: dict[str, str], name: str, value: str, context: dict[str, str]) -> list[str]:
    """Cities for the template, tones for the prompt."""
    choices = CITIES if name == "name" else ("formal", "friendly", "funny")
    return [choice for choice in choices if choice.lower().startswith(value.lower())]


def revisions_of(names: Sequence[str]) -> tuple[Revision, ...]:
    """The revisions that names like ``legacy``, ``modern`` or ``2025-06-18`` stand for; none: all.

    Raises ValueError for a name that stands for nothing.
    """
    groups = {Era.LEGACY.value: LEGACY_REVISIONS, Era.MODERN.value: MODERN_REVISIONS}
    chosen: set[Revision] = set()
    for name in names:
        chosen.update(groups[name] if name in groups else [Revision(name)])
    return tuple(sorted(chosen)) or ALL_REVISIONS


def main() -> None:
    """Serve the demo on standard input and output."""
    import sansmcp_asyncio

    asyncio.run(sansmcp_asyncio.serve_stdio(app, revisions=revisions_of(sys.argv[1:])))


if __name__ == "__main__":
    main()
