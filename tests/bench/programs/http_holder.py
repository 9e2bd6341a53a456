"""Opens legacy sessions on a server, or streams in them, and holds them. Standard library only.

Arguments: the port, how many, and ``session`` or ``stream``. Prints a line when they are open, and ends
with its standard input.
"""

import asyncio
import sys

_ACCEPT = "accept: application/json, text/event-stream\r\n"
_INITIALIZE = (
    '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    '"capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}'
)
_INITIALIZED = '{"jsonrpc":"2.0","method":"notifications/initialized"}'


def _post(port: int, fields: str, body: str) -> bytes:
    head = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n{_ACCEPT}{fields}"
    )
    return f"{head}content-length: {len(body)}\r\n\r\n{body}".encode()


async def _head(reader: asyncio.StreamReader) -> dict[str, str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    return dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if line)


async def hold(port: int, kind: str) -> asyncio.StreamWriter | None:
    """Open one; return what keeps it open."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_post(port, "", _INITIALIZE))
    fields = await _head(reader)
    writer.close()
    session = f"mcp-session-id: {fields['mcp-session-id']}\r\nmcp-protocol-version: 2025-11-25\r\n"
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(_post(port, session, _INITIALIZED))
    await _head(reader)
    writer.close()
    if kind == "session":
        return None
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    fields_of_get = f"host: 127.0.0.1:{port}\r\naccept: text/event-stream\r\n{session}"
    writer.write(f"GET /mcp HTTP/1.1\r\n{fields_of_get}\r\n".encode())
    await _head(reader)
    return writer


async def _main(port: int, count: int, kind: str) -> None:
    kept = [await hold(port, kind) for _ in range(count)]
    print(len(kept), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
