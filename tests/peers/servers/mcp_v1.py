"""The common peer server, on the first generation of the official Python SDK."""

import asyncio

from mcp.server.fastmcp import Context, FastMCP

server = FastMCP("peer-mcp-v1", log_level="WARNING")


@server.tool()
def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool()
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail() -> str:
    """Raise."""
    raise ValueError("this tool always fails")


@server.tool()
async def slow(seconds: float, ctx: Context) -> str:
    """Take a while and report progress in four steps."""
    for step in range(4):
        await asyncio.sleep(seconds / 4)
        await ctx.report_progress(step + 1, 4)
    return "done"


@server.resource("test://greeting", mime_type="text/plain")
def greeting() -> str:
    """A friendly text."""
    return "Hello from a resource"


@server.prompt()
def greet(name: str) -> str:
    """Ask for a greeting."""
    return f"Please greet {name}."


if __name__ == "__main__":
    server.run("stdio")
