"""The common peer server, on the first generation of the official Python SDK.

Without arguments on stdio; else `mcp_v1.py streamable-http|sse PORT [json] [stateless] [resume]`.
Over HTTP there are two more tools, which ask the client and which end the stream of their answer.
"""

import asyncio
import sys

from mcp.server.fastmcp import Context, FastMCP
from pydantic import BaseModel

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


class Name(BaseModel):
    """What is asked for."""

    name: str


async def ask(ctx: Context) -> str:
    """Ask the client for a name by a form, and for a text from its model."""
    from mcp.types import SamplingMessage, TextContent

    form = await ctx.elicit("Who are you?", Name)
    name = form.data.name if form.action == "accept" else form.action
    question = SamplingMessage(role="user", content=TextContent(type="text", text=f"Greet {name}."))
    said = await ctx.session.create_message([question], max_tokens=10)
    return f"{name}: {said.content.text}"


async def cut(ctx: Context) -> str:
    """End the stream, and answer when the client has come back for the rest."""
    await ctx.close_sse_stream()
    # Mostly it is back by then. If not, the store of events has the answer for when it comes.
    await asyncio.sleep(0.2)
    return "the rest"


def serve(transport: str, port: str, *more: str) -> None:
    from mcp.server.streamable_http import EventMessage, EventStore

    class Store(EventStore):
        """Keeps everything."""

        def __init__(self) -> None:
            self.kept: list = []

        async def store_event(self, stream_id, message):
            self.kept.append((stream_id, message))
            return str(len(self.kept))

        async def replay_events_after(self, last_event_id, send_callback):
            stream = self.kept[int(last_event_id) - 1][0]
            for number, (of, message) in enumerate(self.kept, 1):
                if of == stream and number > int(last_event_id) and message is not None:
                    await send_callback(EventMessage(message, str(number)))
            return stream

    if "resume" in more:
        server._event_store, server._retry_interval = Store(), 10
    server.settings.port = int(port)
    server.settings.json_response = "json" in more
    server.settings.stateless_http = "stateless" in more
    server.tool()(ask)
    server.tool()(cut)
    server.run(transport)


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(*sys.argv[1:])
    else:
        server.run("stdio")
