"""Use a stdio server through the first generation of the official Python SDK; print what came back as JSON.

python mcp_v1.py COMMAND [ARGUMENT...]
"""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl, BaseModel


def plain(model: BaseModel) -> object:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


async def use(session: ClientSession) -> dict[str, object]:
    started = await session.initialize()
    tools = await session.list_tools()
    seen: dict[str, object] = {
        "protocol": started.protocolVersion,
        "server": plain(started.serverInfo),
        "tools": [tool.name for tool in tools.tools],
        "echo": plain(await session.call_tool("echo", {"text": "hello ü 🐟"})),
        "add": plain(await session.call_tool("add", {"a": 2, "b": 40})),
        "resource": plain(await session.read_resource(AnyUrl("test://greeting"))),
        "prompt": plain(await session.get_prompt("greet", {"name": "Ada"})),
    }
    try:
        seen["fail"] = plain(await session.call_tool("fail", {}))
    except McpError as error:
        seen["fail"] = {"error": plain(error.error)}
    if "slow" in seen["tools"]:
        progress: list[list[float | None]] = []

        async def on_progress(done: float, total: float | None, message: str | None) -> None:
            progress.append([done, total])

        seen["slow"] = plain(await session.call_tool("slow", {"seconds": 0.2}, progress_callback=on_progress))
        seen["progress"] = progress
    return seen


async def main(argv: list[str]) -> None:
    parameters = StdioServerParameters(command=argv[0], args=argv[1:])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        print(json.dumps(await use(session)))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
