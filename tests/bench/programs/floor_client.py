"""Starts the bare echo server, makes one call, says when the answer was there, and leaves."""

import asyncio
import json
import sys
import time
from pathlib import Path


async def main() -> None:
    server = Path(__file__).with_name("floor_server.py")
    pipe = asyncio.subprocess.PIPE
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(server), "standard", stdin=pipe, stdout=pipe
    )
    assert child.stdin is not None
    assert child.stdout is not None
    params = {"name": "echo", "arguments": {"text": "hi"}}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    child.stdin.write(json.dumps(request).encode() + b"\n")
    answer = json.loads(await child.stdout.readline())
    assert answer["result"]["content"][0]["text"] == "hi"
    done = time.monotonic()
    child.stdin.close()
    await child.wait()
    print(json.dumps({"done": done, "modules": len(sys.modules)}))


asyncio.run(main())
