"""`kinds.py` through the first generation of the official Python SDK: `python kinds_v1.py JOB`."""

import asyncio
import sys
from contextlib import asynccontextmanager

import kinds
from mcp import ClientSession, StdioServerParameters, types
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import McpError
from pydantic import AnyUrl


async def elicit(context, params):
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="accept", content={"name": "Bo"})


async def sample(context, params):
    if params.tools:
        use = types.ToolUseContent(type="tool_use", id="1", name="look", input={"at": "it"})
        answer = types.CreateMessageResultWithTools
        return answer(role="assistant", content=[use], model="m", stopReason="toolUse")
    text = types.TextContent(type="text", text="hello")
    return types.CreateMessageResult(role="assistant", content=text, model="m")


async def roots(context):
    return types.ListRootsResult(roots=[types.Root(uri="file:///home")])


class Adapter:
    def __init__(self):
        self.logs = []
        self.told = set()

    async def on_log(self, params):
        self.logs.append([params.level, params.logger, params.data])

    async def on_message(self, message):
        if isinstance(message, types.ServerNotification):
            match message.root:
                case types.ToolListChangedNotification():
                    self.told.add("tools")
                case types.ResourceUpdatedNotification(params=params):
                    self.told.add(str(params.uri))

    async def ask(self, answer):
        try:
            result = await answer
        except McpError as error:
            raise kinds.Refused(error.error.code, error.error.message, error.error.data) from None
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def call_tool(self, name, arguments, on_progress=None):
        return await self.ask(self.session.call_tool(name, arguments, progress_callback=on_progress))

    async def want_logs(self, level):
        await self.session.set_logging_level(level)

    async def changes(self, tool, uri):
        await self.session.subscribe_resource(AnyUrl(uri))
        while len(self.told) < 2:  # over HTTP, the stream that tells may not be there yet
            await self.call_tool(tool, {})
            await asyncio.sleep(0.02)
        await self.session.unsubscribe_resource(AnyUrl(uri))
        return self.told

    async def read(self, uri):
        return await self.ask(self.session.read_resource(AnyUrl(uri)))

    async def prompt(self, name, arguments):
        return await self.ask(self.session.get_prompt(name, arguments))

    async def complete(self, kind, named, argument, value, context):
        reference = (
            types.PromptReference(type="ref/prompt", name=named)
            if kind == "prompt"
            else types.ResourceTemplateReference(type="ref/resource", uri=named)
        )
        argument = {"name": argument, "value": value}
        return await self.ask(self.session.complete(reference, argument, context))

    async def list(self, what):
        return await self.ask(getattr(self.session, f"list_{what}")())


@asynccontextmanager
async def connect(server):
    target = server["target"]
    if len(target) == 1:
        streams = streamable_http_client(target[0])
    else:
        streams = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    adapter = Adapter()
    capabilities = types.SamplingCapability(tools=types.SamplingToolsCapability())
    async with (
        streams as (read, write, *_),
        ClientSession(
            read,
            write,
            elicitation_callback=elicit,
            sampling_callback=sample,
            sampling_capabilities=capabilities,
            list_roots_callback=roots,
            logging_callback=adapter.on_log,
            message_handler=adapter.on_message,
        ) as session,
    ):
        started = await session.initialize()
        assert started.protocolVersion == server["revision"]
        adapter.session = session
        yield adapter


if __name__ == "__main__":
    kinds.main(connect, sys.argv[1])
