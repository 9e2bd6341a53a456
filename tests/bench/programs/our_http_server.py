"""Our echo server over HTTP. It prints its port, and ends with its standard input."""

import asyncio
import sys

from sansmcp import App, Context
from sansmcp_asyncio import serve_http

app = App("bench", "1")


@app.tool()
async def echo(text: str) -> str:
    """Give the text back."""
    return text


@app.tool()
async def report(text: str, ctx: Context) -> str:
    """Give the text back, and say so before."""
    ctx.progress(1)
    return text


async def main() -> None:
    """Serve until nobody needs it any more."""
    serving = asyncio.create_task(
        serve_http(app, "127.0.0.1", 0, ready=lambda host, port: print(port, flush=True))
    )
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    serving.cancel()


if __name__ == "__main__":
    asyncio.run(main())
