"""A client and a server with tasks, in memory, under a clock that only the test moves."""

from __future__ import annotations

from itertools import count
from typing import Any

from sansmcp import (
    App,
    ClientCapabilities,
    Context,
    Elicit,
    ErrorCode,
    McpError,
    MessageIgnored,
    Revision,
    Sample,
    ToolError,
)
from sansmcp.client import ClientEngine
from sansmcp.events import SendNotification, SendResponse
from sansmcp.extensions.tasks import TASKS_EXTENSION, ClientTasks, ServerTasks
from sansmcp.inline import InlineHandlers
from sansmcp.line_client import LineClient
from sansmcp.line_server import LineServer
from sansmcp.session.era import Pin
from sansmcp.testing.memory import MemoryLink, link
from sansmcp.types import ElicitationCapability, ElicitResult, Implementation, SamplingCapability, TaskResult
from sansmcp.types.convert import structure

from .support import CAPABILITIES_KEY, request

FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
NAMED = ElicitResult("accept", {"name": "Bo"})
OPEN: dict[str, Any] = {"extensions": {TASKS_EXTENSION: {}}, "elicitation": {}, "sampling": {}}
"""What a client with tasks declares."""
ASKABLE = ClientCapabilities(elicitation=ElicitationCapability(), sampling=SamplingCapability())


def counter() -> Any:
    """Entropy that a test can foretell."""
    numbers = count(1)
    return lambda size: next(numbers).to_bytes(size, "big")


def task_app(tasks: ServerTasks, **options: Any) -> App:
    """Tools of every mode, that end in every way."""
    app = App("tasks", "1", extensions=[tasks], **options)

    @app.tool()
    @tasks.task()
    def adds(a: int, b: int) -> str:
        return str(a + b)

    @app.tool()
    @tasks.task("required", ttl=None, poll_interval=2.0)
    def needs_tasks() -> str:
        return "done"

    @app.tool()
    @tasks.task("forbidden")
    def plain() -> str:
        return "plain"

    @app.tool()
    @tasks.task()
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", FORM)
        return f"Hello, {(answer.content or {}).get('name')}"

    @app.tool()
    @tasks.task()
    async def asks_twice(ctx: Context) -> str:
        first, second = await ctx.ask(Elicit("Who?", FORM, key="a"), Elicit("Who else?", FORM, key="b"))
        third = await ctx.elicit("And?", FORM)
        return f"{first.action} {second.action} {third.action}"

    @app.tool()
    @tasks.task()
    async def samples(ctx: Context) -> str:
        return (await ctx.ask(Sample("hi", max_tokens=5)))[0].model

    @app.tool()
    @tasks.task()
    async def says(ctx: Context) -> str:
        ctx.progress(1, 2, "half of it")
        ctx.log("info", "unheard")
        await ctx.elicit("Go on?", FORM)
        return "said"

    @app.tool()
    @tasks.task()
    def fails() -> str:
        raise ToolError("no luck")

    @app.tool()
    @tasks.task()
    def breaks() -> str:
        raise McpError(ErrorCode.INTERNAL_ERROR, "it broke", {"why": 1})

    @app.tool()
    @tasks.task()
    def no_json() -> Any:
        return {"content": {1}}

    @app.tool()
    @tasks.task("handler", ttl=7.0, poll_interval=3.0)
    async def starts(ctx: Context) -> str:
        answer = await ctx.elicit("Who?", FORM, key="who")
        tasks.start(ctx)
        tasks.start(ctx)
        more = await ctx.elicit("More?", FORM, key="more")
        return f"{(answer.content or {}).get('name')} {more.action}"

    return app


def pair(app: App, *, extension: ClientTasks | None = None, **options: Any) -> MemoryLink:
    """A modern client with tasks, connected to `app`."""
    engine = ClientEngine(
        Implementation("me", "1"),
        now=0.0,
        capabilities=ASKABLE,
        extensions=[extension or ClientTasks()],
        mode=Pin(Revision.V2026_07_28),
        **options,
    )
    server = LineServer(app.engine(now=0.0), now=0.0)
    return link(LineClient(engine, now=0.0), server, app, entropy=counter())


def asked(method: str, params: dict[str, Any], *, id: Any = 1, **capabilities: Any) -> dict[str, Any]:
    """A request as a client with tasks makes it; with `capabilities`, one that declares those."""
    declared = capabilities.get("capabilities", OPEN)
    return request(method, {**params, "_meta": {CAPABILITIES_KEY: declared}}, id=id)


class Server:
    """An app behind an engine, whose clients are made by hand."""

    def __init__(self, app: App, **options: Any) -> None:
        self.app = app
        self.now = 1000.0
        self.engine = app.engine(now=self.now)
        self.handlers = InlineHandlers(app, self.engine, entropy=options.get("entropy", counter()))
        self.detach = app.attach(lambda action: action(self.engine, self.now), self.handlers._host)
        self.told: list[dict[str, Any]] = []
        self.ignored: list[MessageIgnored] = []
        self._ids = 0

    def ask(self, method: str, params: Any = None, capabilities: Any = OPEN) -> dict[str, Any]:
        """The reply to a request."""
        self._ids += 1
        self.engine.receive_message(
            asked(method, params or {}, id=self._ids, capabilities=capabilities), now=self.now
        )
        reply = None
        for event in self.engine.events():
            match event:
                case SendResponse():
                    assert reply is None
                    reply = event.message
                case SendNotification():
                    self.told.append(event.message)
                case MessageIgnored():
                    self.ignored.append(event)
                case _:
                    assert self.handlers.handle(event, now=self.now) is None
        assert isinstance(reply, dict), f"{method}: no reply"
        assert reply["id"] == self._ids
        return reply

    def result(self, method: str, params: Any = None, **options: Any) -> dict[str, Any]:
        reply = self.ask(method, params, **options)
        assert "result" in reply, reply
        found: dict[str, Any] = reply["result"]
        assert found["_meta"].keys() == {"io.modelcontextprotocol/serverInfo"}
        return {k: v for k, v in found.items() if k != "_meta"}

    def code(self, method: str, params: Any = None, **options: Any) -> int:
        code: int = self.ask(method, params, **options)["error"]["code"]
        return code

    def call(self, tool: str, arguments: Any = None, **options: Any) -> dict[str, Any]:
        return self.result("tools/call", {"name": tool, "arguments": arguments or {}}, **options)

    def begin(self, tool: str, arguments: Any = None) -> str:
        """The id of the task that a call becomes."""
        result = self.call(tool, arguments)
        assert result["resultType"] == "task"
        assert not {"task", "result", "error", "inputRequests", "requestState", "content"} & result.keys()
        structure(result, TaskResult, Revision.V2026_07_28, strict=True)
        task_id: str = result["taskId"]
        return task_id

    def get(self, task_id: str) -> dict[str, Any]:
        return self.result("tasks/get", {"taskId": task_id})
