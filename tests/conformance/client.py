"""The client that the suite's mock servers are used by: `python -m tests.conformance.client URL`.

The environment says which scenario it is in. It finds out by itself which revision is spoken. Exit
code 0: it could do what the scenario asks for.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any, Final

from sansmcp import Implementation, Timeouts
from sansmcp.extensions.skills import client_skills
from sansmcp.types import (
    BooleanSchema,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitRequestFormParams,
    ElicitRequestURLParams,
    ElicitResult,
    ListRootsRequestParams,
    ListRootsResult,
    Root,
    TextContent,
)
from sansmcp_asyncio import Client, connect

from . import auth, skills

SECONDS: Final = 45.0
"""For all of it. The suite ends only the shell that started it, and that later."""

CONTEXT: Final[dict[str, Any]] = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
"""What the suite tells besides, for some scenarios."""


class Person:
    """Who answers when a server asks: accepts every form, with its defaults and every box ticked."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        """What is done before the first answer."""

    async def elicit(self, params: ElicitRequestFormParams | ElicitRequestURLParams) -> ElicitResult:
        """Fill in a form."""
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            await meanwhile()
        if isinstance(params, ElicitRequestURLParams):
            return ElicitResult("decline")
        fields = params.requested_schema.properties
        ticked: dict[str, str | int | float | bool | list[str]] = {
            name: True
            for name, field in fields.items()
            if isinstance(field, BooleanSchema) and field.default is None
        }
        return ElicitResult("accept", ticked)

    def sample(self, params: CreateMessageRequestParams) -> CreateMessageResult:
        """Be the model."""
        return CreateMessageResult(role="assistant", content=TextContent("Something."), model="none")

    def roots(self, params: ListRootsRequestParams) -> ListRootsResult:
        """Name a place."""
        return ListRootsResult([Root("file:///tmp")])


# what is done in a scenario ----------------------------------------------------------------------


async def look(client: Client, person: Person) -> None:
    """See which tools there are."""
    await client.list_tools()


async def add_numbers(client: Client, person: Person) -> None:
    """Call the one tool there is."""
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


async def call_all(client: Client, person: Person) -> None:
    """Call every tool that is offered to the application, with every argument that it knows."""
    for tool in (await client.list_tools()).tools:
        known = tool.input_schema.get("properties")
        await client.call_tool(tool.name, dict.fromkeys(known, "test") if isinstance(known, dict) else {})


async def echo_schema(client: Client, person: Person) -> None:
    """Send a tool's schema back as it came."""
    schemas = {tool.name: tool.input_schema for tool in (await client.list_tools()).tools}
    await client.call_tool("json_schema_echo", {"schema": schemas["json_schema_2020_12_tool"]})


async def every_header(client: Client, person: Person) -> None:
    """Send every request whose headers are looked at."""
    await client.discover()
    for tool in (await client.list_tools()).tools:
        await client.call_tool(tool.name)
    for resource in (await client.list_resources()).resources:
        await client.read_resource(resource.uri)
    for prompt in (await client.list_prompts()).prompts:
        await client.get_prompt(prompt.name)


async def given_calls(client: Client, person: Person) -> None:
    """Make the calls that the suite lists."""
    await client.list_tools()
    for call in CONTEXT["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def rounds(client: Client, person: Person) -> None:
    """Be asked back, and make another call before the answer."""
    await client.list_tools()
    person.meanwhile = lambda: client.call_tool("test_mrtr_unrelated")
    for name in ("test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"):
        await client.call_tool(name)


async def authorized(client: Client, person: Person) -> None:
    """Do what needs a token."""
    await auth.use(client)


async def find_skills(client: Client, person: Person) -> None:
    """See which skills there are."""
    await skills.find(client)


async def use_skills(client: Client, person: Person) -> None:
    """Read every skill, as far as it is what its server says."""
    await skills.use(client)


SCENARIOS: Final[dict[str, Callable[[Client, Person], Awaitable[None]]]] = {
    "initialize": look,
    "tools_call": add_numbers,
    "elicitation-sep1034-client-defaults": call_all,
    "sse-retry": call_all,
    "request-metadata": look,
    "sep-2322-client-request-state": rounds,
    "http-standard-headers": every_header,
    "http-custom-headers": given_calls,
    "http-invalid-tool-headers": call_all,
    "json-schema-ref-no-deref": look,
    "json-schema-2020-12-preservation": echo_schema,
    "sep-2640-client-no-prefetch": find_skills,
    "sep-2640-client-verify-digest": use_skills,
    "sep-2640-client-verify-frontmatter": use_skills,
    "sep-2640-client-verify-size": use_skills,
}


async def main(url: str, scenario: str) -> None:
    """Play the client of a scenario; one that needs more than a connection is not known here."""
    usual = authorized if scenario.startswith("auth/") else look
    play, person = SCENARIOS.get(scenario, usual), Person()
    opening = connect(
        url,
        info=Implementation("sansmcp-conformance", "1.0"),
        on_elicit=person.elicit,
        on_sample=person.sample,
        on_roots=person.roots,
        apply_defaults=True,
        # All clients of a leg start at once, beside one process that serves them.
        timeouts=Timeouts(probe=SECONDS / 2),
        # Some of the suite's servers declare nothing and want to be asked.
        check_capabilities=False,
        extensions=[client_skills()],
        **auth.options(scenario, CONTEXT),
    )
    async with asyncio.timeout(SECONDS), opening as client:
        await play(client, person)


if __name__ == "__main__":
    if len(sys.argv) != 2 or "MCP_CONFORMANCE_SCENARIO" not in os.environ:
        sys.exit(__doc__)
    asyncio.run(main(sys.argv[1], os.environ["MCP_CONFORMANCE_SCENARIO"]))
