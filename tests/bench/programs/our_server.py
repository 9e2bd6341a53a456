"""Our echo server on standard input and output; the codec is named by the first argument, if any."""

import asyncio
import sys

from sansmcp import App, fast_codec, standard_codec
from sansmcp_asyncio import serve_stdio

app = App("bench", "1")


@app.tool()
async def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    codecs = {"standard": standard_codec, "fast": fast_codec}
    asyncio.run(serve_stdio(app, codec=codecs[sys.argv[1]]() if sys.argv[1:] else None))
