"""The common peer server, on FastMCP 4.

Without arguments on stdio; else `fastmcp_v4.py http|sse PORT [json] [stateless]`.
"""

import asyncio
import sys

from fastmcp import Context, FastMCP

server = FastMCP("peer-fastmcp", version="1.0.0")


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
    transport, port, *more = sys.argv[1:] or ("stdio", "0")
    options = {} if transport == "stdio" else {"host": "127.0.0.1", "port": int(port)}
    if transport == "http":
        options |= {"json_response": "json" in more, "stateless_http": "stateless" in more}
    server.run(transport, show_banner=False, **options)
