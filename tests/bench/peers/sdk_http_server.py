# mypy: ignore-errors
"""The echo server on the official SDK over HTTP. It prints its port, and ends with its standard input."""

import asyncio
import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("bench", version="1", log_level="WARNING")


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@server.tool(structured_output=False)
async def report(text: str, ctx: Context) -> str:
    """Give the text back, and say so before."""
    await ctx.report_progress(1)
    return text


async def main(json_response):
    app = server.streamable_http_app(json_response=json_response, stateless_http=True)
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", http="h11", ws="none")
    running = uvicorn.Server(config)
    task = asyncio.create_task(running.serve(sockets=[listening]))
    while not running.started:  # noqa: ASYNC110  (uvicorn tells it no other way)
        await asyncio.sleep(0.01)
    print(listening.getsockname()[1], flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    running.should_exit = True
    await task


if __name__ == "__main__":
    asyncio.run(main(json_response="json" in sys.argv))
