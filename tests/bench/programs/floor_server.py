"""A bare echo server on standard input and output: lines in, lines out, one write per read."""

import asyncio
import json
import os
import sys
from typing import Any

META = {"io.modelcontextprotocol/serverInfo": {"name": "bench", "version": "1"}}


def answer(request: Any) -> dict[str, Any]:
    """What an echo tool answers."""
    text = request["params"]["arguments"]["text"]
    result = {"content": [{"type": "text", "text": text}], "resultType": "complete", "_meta": META}
    return {"jsonrpc": "2.0", "id": request["id"], "result": result}


class Echo(asyncio.Protocol):
    def __init__(self, codec: str) -> None:
        self.rest = b""
        self.ended = asyncio.get_running_loop().create_future()
        self.loads: Any = json.loads
        encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
        self.dumps: Any = lambda value: encode(value).encode()
        if codec == "fast":
            import msgspec

            self.loads, self.dumps = msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
        self.out: Any = None

    def data_received(self, data: bytes) -> None:
        *lines, self.rest = (self.rest + data).split(b"\n")
        self.out.write(b"".join([self.dumps(answer(self.loads(line))) + b"\n" for line in lines]))

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended.set_result(None)


async def main(codec: str) -> None:
    loop = asyncio.get_running_loop()
    echo = Echo(codec)
    echo.out, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, os.fdopen(1, "wb", 0))
    await loop.connect_read_pipe(lambda: echo, os.fdopen(0, "rb", 0))
    await echo.ended


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
