"""Starts our echo server, makes one call, says when the answer was there, and leaves."""

import asyncio
import json
import sys
import time
from pathlib import Path

from sansmcp_asyncio import connect


async def main() -> None:
    server = Path(__file__).with_name("our_server.py")
    async with connect([sys.executable, str(server)]) as client:
        result = await client.call_tool("echo", {"text": "hi"})
        assert result.content[0].text == "hi"  # type: ignore[union-attr]
        done = time.monotonic()
    print(json.dumps({"done": done, "modules": len(sys.modules)}))


asyncio.run(main())
