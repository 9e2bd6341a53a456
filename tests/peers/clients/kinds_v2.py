"""`kinds.py` through the second generation of the official Python SDK: `python kinds_v2.py JOB`."""

import asyncio
import sys
from contextlib import asynccontextmanager

import kinds
from mcp import Client, MCPError, StdioServerParameters, types

MODERN = "2026-07-28"


async def elicit(context, params):
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    return types.ElicitResult(action="accept", content={"name": "Bo"})


async def sample(context, params):
    if params.tools:
        use = types.ToolUseContent(type="tool_use", id="1", name="look", input={"at": "it"})
        answer = types.CreateMessageResultWithTools
        return answer(role="assistant", content=[use], model="m", stop_reason="toolUse")
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
        match message:
            case types.ToolListChangedNotification():
                self.told.add("tools")
            case types.ResourceUpdatedNotification(params=params):
                self.told.add(str(params.uri))

    async def ask(self, answer):
        try:
            result = await answer
        except MCPError as error:
            raise kinds.Refused(error.error.code, error.error.message, error.error.data) from None
        return result.model_dump(mode="json", by_alias=True, exclude_none=True)

    async def call_tool(self, name, arguments, on_progress=None):
        return await self.ask(self.client.call_tool(name, arguments, progress_callback=on_progress))

    async def want_logs(self, level):
        if self.client.protocol_version != MODERN:  # there each request says so
            await self.client.set_logging_level(level)

    async def changes(self, tool, uri):
        if self.client.protocol_version == MODERN:
            async with self.client.listen(tools_list_changed=True, resource_subscriptions=[uri]) as changes:
                await self.call_tool(tool, {})
                for _ in range(2):
                    change = await anext(changes)
                    self.told.add(getattr(change, "uri", "tools"))
            return self.told
        await self.client.subscribe_resource(uri)
        while len(self.told) < 2:  # over HTTP, the stream that tells may not be there yet
            await self.call_tool(tool, {})
            await asyncio.sleep(0.02)
        await self.client.unsubscribe_resource(uri)
        return self.told

    async def read(self, uri):
        return await self.ask(self.client.read_resource(uri))

    async def prompt(self, name, arguments):
        return await self.ask(self.client.get_prompt(name, arguments))

    async def complete(self, kind, named, argument, value, context):
        reference = (
            types.PromptReference(type="ref/prompt", name=named)
            if kind == "prompt"
            else types.ResourceTemplateReference(type="ref/resource", uri=named)
        )
        argument = {"name": argument, "value": value}
        return await self.ask(self.client.complete(reference, argument, context))

    async def list(self, what):
        return await self.ask(getattr(self.client, f"list_{what}")())


@asynccontextmanager
async def connect(server):
    target = server["target"]
    if len(target) > 1:
        target = [StdioServerParameters(command=target[0], args=target[1:])]
    adapter = Adapter()
    capabilities = types.SamplingCapability(tools=types.SamplingToolsCapability())
    async with Client(
        target[0],
        mode=MODERN if server["revision"] == MODERN else "legacy",
        elicitation_callback=elicit,
        sampling_callback=sample,
        sampling_capabilities=capabilities,
        list_roots_callback=roots,
        logging_callback=adapter.on_log,
        log_level="info",
        message_handler=adapter.on_message,
    ) as client:
        assert client.protocol_version == server["revision"]
        adapter.client = client
        yield adapter


if __name__ == "__main__":
    kinds.main(connect, sys.argv[1])
