"""The common peer server, on the second generation of the official Python SDK.

Without arguments on stdio; else `mcp_v2.py streamable-http|sse PORT [json] [stateless]`.
Over HTTP there are two more tools, which ask the client and which tell of a change.
"""

import asyncio
import sys
from typing import Annotated

from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.resolve import Elicit, Resolve
from pydantic import BaseModel

server = MCPServer("peer-mcp-v2", version="1.0.0", log_level="WARNING")


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


class Name(BaseModel):
    """What is asked for."""

    name: str


async def who() -> Elicit[Name]:
    return Elicit("Who are you?", Name)


async def ask(name: Annotated[Name, Resolve(who)]) -> str:
    """Ask the client for a name by a form."""
    return f"hello {name.name}"


async def change(ctx: Context) -> str:
    """Tell who listens that the greeting is another, and that there are other tools."""
    await ctx.notify_resource_updated("test://greeting")
    await ctx.notify_tools_changed()
    return "told"


if __name__ == "__main__":
    transport, port, *more = sys.argv[1:] or ("stdio", "0")
    options = {} if transport == "stdio" else {"port": int(port)}
    if transport == "streamable-http":
        options |= {"json_response": "json" in more, "stateless_http": "stateless" in more}
    if port != "0":
        server.tool()(ask)
        server.tool()(change)
    server.run(transport, **options)
