"""The client that the suite's mock servers are told of: `python -m tests.conformance.client URL`.

The environment says which scenario it is in and which revision is spoken. Exit code 0: it could do
what the scenario asks for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

from sansmcp import Implementation
from sansmcp_asyncio import Client, connect

SECONDS: Final = 45.0
"""For all of it. The suite ends only the shell that started it, and that later."""

Scenario = Callable[[Client], Awaitable[object]]

CONTEXT: Final[dict[str, Any]] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
"""What the suite tells besides, for some scenarios."""


async def list_tools(client: Client) -> None:
    """See what there is."""
    await client.list_tools()


async def add_numbers(client: Client) -> None:
    """Call the one tool there is."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def call_all(client: Client) -> None:
    """Call every tool, without arguments that nobody needs."""
    for tool in (await client.list_tools()).tools:
        required = tool.input_schema.get("required", [])
        assert isinstance(required, list)
        await client.call_tool(tool.name, {str(name): "test" for name in required})


async def echo_schema(client: Client) -> None:
    """Send a tool's schema back as it came."""
    schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


async def every_header(client: Client) -> None:
    """Send every request whose headers are looked at."""
    await client.discover()
    for tool in (await client.list_tools()).tools:
        await client.call_tool(tool.name)
    for resource in (await client.list_resources()).resources:
        await client.read_resource(resource.uri)
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name)


async def given_calls(client: Client) -> None:
    """Make the calls that the suite lists."""
    await client.list_tools()
    for call in CONTEXT["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def rounds(client: Client) -> None:
    """Be asked back, and do something else meanwhile."""
    await client.list_tools()
    for name in (
        "test_mrtr_echo_state",
        "test_mrtr_unrelated",
        "test_mrtr_no_state",
        "test_mrtr_no_result_type",
    ):
        await client.call_tool(name)


SCENARIOS: Final[dict[str, Scenario]] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "elicitation-sep1034-client-defaults": call_all,
    "sse-retry": call_all,
    "request-metadata": list_tools,
    "sep-2322-client-request-state": rounds,
    "http-standard-headers": every_header,
    "http-custom-headers": given_calls,
    "http-invalid-tool-headers": call_all,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": echo_schema,
}


async def main(name: str, url: str) -> None:
    """Play the client of the scenario `name`. Raises KeyError for one that it does not know."""
    play = SCENARIOS[name]
    async with (
        asyncio.timeout(SECONDS),
        connect(url, info=Implementation("sansmcp-conformance", "1.0")) as client,
    ):
        await play(client)


if __name__ == "__main__":
    asyncio.run(main(os.environ["MCP_CONFORMANCE_SCENARIO"], sys.argv[-1]))
