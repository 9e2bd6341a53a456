# mypy: ignore-errors
"""Starts the SDK's echo server, makes one call, says when the answer was there, and leaves."""

import asyncio
import json
import sys
import time
from pathlib import Path

from mcp import Client, StdioServerParameters


async def main() -> None:
    server = Path(__file__).with_name("sdk_server.py")
    async with Client(StdioServerParameters(command=sys.executable, args=[str(server)])) as client:
        result = await client.call_tool("echo", {"text": "hi"})
        assert result.content[0].text == "hi"
        done = time.monotonic()
    print(json.dumps({"done": done, "modules": len(sys.modules)}))


asyncio.run(main())
