"""Use a stdio server through the second generation of the official Python SDK; print what came back as JSON.

python mcp_v2.py MODE COMMAND [ARGUMENT...]

MODE is auto, legacy, or a modern revision to adopt without a probe.
"""

import asyncio
import json
import sys

from mcp import Client, MCPError, StdioServerParameters
from pydantic import BaseModel


def plain(model: BaseModel) -> object:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def use(client: Client) -> dict[str, object]:
    tools = await client.list_tools()
    seen: dict[str, object] = {
        "protocol": client.protocol_version,
        "server": plain(client.server_info) if client.server_info else None,
        "tools": [tool.name for tool in tools.tools],
        "echo": plain(await client.call_tool("echo", {"text": "hello ü 🐟"})),
        "add": plain(await client.call_tool("add", {"a": 2, "b": 40})),
        "resource": plain(await client.read_resource("test://greeting")),
        "prompt": plain(await client.get_prompt("greet", {"name": "Ada"})),
    }
    try:
        seen["fail"] = plain(await client.call_tool("fail", {}))
    except MCPError as error:
        seen["fail"] = {"error": plain(error.error)}
    if "slow" in seen["tools"]:
        progress: list[list[float | None]] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total])

        seen["slow"] = plain(await client.call_tool("slow", {"seconds": 0.2}, progress_callback=on_progress))
        seen["progress"] = progress
    return seen


async def main(mode: str, argv: list[str]) -> None:
    parameters = StdioServerParameters(command=argv[0], args=argv[1:])
    async with Client(parameters, mode=mode) as client:
        print(json.dumps(await use(client)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2:]))
