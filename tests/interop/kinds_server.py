"""A server with a handler of each kind: `python kinds_server.py REVISION`.

What each is answered, under which revision, is the table in `test_handler_kinds.py`.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import attrs

if __name__ == "__main__":  # what starts it knows nothing of where it stands
    sys.path.insert(0, str(Path(__file__).parents[2]))

import sansmcp_asyncio
from sansmcp import App, Context, Elicit, ListKind, McpError, NeedsInput, Revision, ToolError
from sansmcp.types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    PromptMessage,
    ResourceLink,
    TextContent,
    TextResourceContents,
    Tool,
    ToolAnnotations,
    ToolUseContent,
)

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
TAKEN: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
URI = "test://notes/1"


@attrs.frozen
class Place:
    """What a tool takes and gives as an object."""

    city: str
    height: float = 0.5


def make_app() -> App:
    """The server, anew: its counters begin at one."""
    app = App("kinds", "1.0", logging=True, list_changed=True, subscribe=True, state_keys=[b"k" * 32])
    _add_results(app)
    _add_reports(app)
    _add_questions(app)
    _add_resources(app)
    _add_prompts(app)
    return app


def _add_results(app: App) -> None:
    @app.tool()
    def plain() -> str:
        """A plain function, which may block."""
        return "loop" if threading.current_thread() is threading.main_thread() else "thread"

    @app.tool()
    async def coroutine() -> str:
        await asyncio.sleep(0)
        return "loop" if threading.current_thread() is threading.main_thread() else "thread"

    @app.tool(
        title="Map",
        annotations=ToolAnnotations(read_only_hint=True),
        input_schema=TAKEN,
        output_schema={"type": "object"},
    )
    def mapping(a: int = 1) -> Any:
        """Give it back."""
        return {"a": a, "b": [None, 0.5]}

    @app.tool()
    def record(place: Place) -> Place:
        """Take an object of a class and give one."""
        return Place(place.city.upper(), place.height * 2)

    @app.tool()
    def blocks() -> Sequence[Any]:
        note = TextResourceContents(uri=URI, text="note", mime_type="text/plain")
        return [
            TextContent("text ü"),
            ImageContent("iVBORw==", "image/png"),
            AudioContent("UklGRg==", "audio/wav"),
            ResourceLink(name="note", uri=URI),
            EmbeddedResource(note),
        ]

    @app.tool()
    def whole() -> CallToolResult:
        return CallToolResult(content=[TextContent("whole")], structured_content={"n": 1})

    @app.tool()
    def nothing() -> None:
        return

    @app.tool()
    def refuses() -> str:
        raise ToolError("not on a Sunday")

    @app.tool()
    def breaks() -> str:
        raise ValueError("a secret of the server")

    @app.tool()
    def errs() -> str:
        raise McpError(4711, "no such thing", {"thing": "x"})


def _add_reports(app: App) -> None:
    @app.tool()
    def progresses(ctx: Context) -> str:
        ctx.progress(0.5, 1, "half")
        ctx.progress(1, 1)
        return "done"

    @app.tool()
    def logs(ctx: Context) -> str:
        ctx.log("debug", "not asked for")
        ctx.log("warning", {"left": 1}, logger="kinds")
        return "done"

    @app.tool()
    def changes(ctx: Context) -> str:
        ctx.notify_changed(ListKind.TOOLS)
        ctx.notify_updated(URI)
        return "told"


def _add_questions(app: App) -> None:
    @app.tool()
    async def awaits(ctx: Context) -> str:
        answer = await ctx.elicit("Who are you?", FORM)
        return f"{answer.action} {answer.content}"

    @app.tool()
    def yields(ctx: Context) -> Generator[Any, Any, str]:
        answer = yield ctx.elicit("Who are you?", FORM)
        return f"{answer.action} {answer.content}"

    @app.tool()
    def returns(ctx: Context) -> Any:
        answer = ctx.answers.get("who")
        if answer is None:
            return NeedsInput({"who": Elicit("Who are you?", FORM)}, state="asked")
        return f"{answer.action} {answer.content} {ctx.state}"

    @app.tool()
    async def visits(ctx: Context) -> str:
        answer = await ctx.elicit_url("Look at it", "https://example.com/page")
        return f"{answer.action} {answer.content}"

    @app.tool()
    async def samples(ctx: Context) -> str:
        answer = await ctx.sample("greet", max_tokens=9, system_prompt="Be short.")
        assert isinstance(answer.content, TextContent)
        return f"{answer.model}: {answer.content.text}"

    @app.tool()
    async def samples_with_tools(ctx: Context) -> str:
        tool = Tool(name="look", input_schema={"type": "object"})
        answer = await ctx.sample("look", max_tokens=9, tools=[tool])
        blocks = answer.content if isinstance(answer.content, list) else [answer.content]
        (used,) = [block for block in blocks if isinstance(block, ToolUseContent)]
        return f"{answer.stop_reason}: {used.name} {used.input}"

    @app.tool()
    async def lists_roots(ctx: Context) -> str:
        return " ".join(root.uri for root in (await ctx.list_roots()).roots)

    @app.tool()
    async def asks_at_once(ctx: Context) -> str:
        form, model = await ctx.ask(ctx.elicit("Who are you?", FORM), ctx.sample("greet", max_tokens=9))
        return f"{form.action} {model.model}"


def _add_resources(app: App) -> None:
    @app.resource(URI, mime_type="text/plain")
    def text() -> str:
        return "text ü"

    @app.resource("test://picture")
    async def binary() -> bytes:
        return b"\x00\xff"

    @app.resource("test://people/{name}{?age}")
    def template(name: str, age: str = "?") -> str:
        return f"{name} {age}"

    @app.resource("test://asks")
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("Who are you?", FORM)
        return f"{answer.action} {answer.content}"


def _add_prompts(app: App) -> None:
    @app.prompt()
    def says(name: str, tone: str = "kind") -> str:
        """Ask for a greeting."""
        return f"Greet {name}, be {tone}."

    @app.prompt()
    async def talks() -> list[PromptMessage]:
        return [PromptMessage("user", TextContent("one")), PromptMessage("assistant", TextContent("two"))]

    @app.prompt()
    def asks_first(ctx: Context) -> Generator[Any, Any, str]:
        answer = yield ctx.elicit("Who are you?", FORM)
        return f"{answer.action} {answer.content}"

    @app.completion
    def complete(ref: dict[str, Any], name: str, value: str, context: dict[str, str]) -> list[str]:
        kind = ref["type"].removeprefix("ref/")
        known = [f"{kind}-{name}-{sorted(context.items())}", "other"]
        return [text for text in known if text.startswith(value)]


if __name__ == "__main__":
    asyncio.run(sansmcp_asyncio.serve_stdio(make_app(), revisions=[Revision(sys.argv[1])]))
