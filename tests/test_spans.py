"""A hook that hears of requests: on servers here, on clients with both ends in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import attrs
import pytest

from sansmcp import App, Context, LocalProtocolError, McpError, Pin, Responder, Revision, ToolError
from sansmcp.spans import described, end_attributes, start_client_span
from sansmcp_asyncio import connect_memory

from .questions_support import FORM, KEY, Talk
from .support import ALL, MODERN, meta


@attrs.define
class Told:
    """A span, and all that was told of it."""

    kind: str
    name: str
    attributes: dict[str, str]
    parent: dict[str, str]
    number: int
    ends: list[tuple[dict[str, str], Any]] = attrs.field(factory=list)

    def context(self) -> Mapping[str, str]:
        return {"traceparent": f"00-{self.number:032x}-{self.number:016x}-01"}

    def end(self, attributes: Mapping[str, str], error: BaseException | None) -> None:
        self.ends.append((dict(attributes), error))


class Hook:
    def __init__(self) -> None:
        self.spans: list[Told] = []

    def start(self, kind: str, name: str, attributes: Mapping[str, str], parent: Mapping[str, str]) -> Told:
        self.spans.append(Told(kind, name, dict(attributes), dict(parent), len(self.spans) + 1))
        return self.spans[-1]

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def errors(self) -> list[Any]:
        """How each ended, once."""
        assert all(len(span.ends) == 1 for span in self.spans), self.spans
        return [span.ends[0][0].get("error.type") for span in self.spans]


def make_app(hook: Hook | None = None) -> App:
    app = App("traced", "1", state_keys=[KEY], spans=hook)

    @app.tool()
    def echo(text: str) -> str:
        return text

    @app.tool()
    def refuses() -> str:
        raise ToolError("no")

    @app.tool()
    def errs() -> str:
        raise McpError(4711, "no such thing")

    @app.tool()
    async def asks(ctx: Context) -> str:
        return (await ctx.elicit("who?", FORM)).action

    @app.tool()
    async def waits() -> str:
        await asyncio.sleep(60)
        return "done"

    @app.resource("test://a")
    def read() -> str:
        return "a"

    return app


@pytest.mark.req("Y2")
@pytest.mark.parametrize(
    ("method", "target", "name", "attributes"),
    [
        ("tools/call", "echo", "tools/call echo", {"gen_ai.tool.name": "echo"}),
        ("prompts/get", "p", "prompts/get p", {"gen_ai.prompt.name": "p"}),
        ("resources/read", "a:b", "resources/read", {"mcp.resource.uri": "a:b"}),
        ("tools/list", None, "tools/list", {}),
        ("tools/call", 5, "tools/call", {}),
        ("vendor/x", "y", "vendor/x", {}),
    ],
)
def test_what_a_span_is_called(method: str, target: Any, name: str, attributes: dict[str, str]) -> None:
    found, told = described(method, target)
    assert found == name
    if method == "tools/call":
        attributes = {"gen_ai.operation.name": "execute_tool", **attributes}
    assert told == {"mcp.method.name": method, **attributes}


@pytest.mark.req("Y1", "Y2")
@pytest.mark.parametrize("version", ALL)
def test_a_server_tells_of_each_request_and_whose_trace_it_belongs_to(version: str) -> None:
    hook = Hook()
    talk = Talk(make_app(hook), version)
    trace = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    talk.tool("echo", arguments={"text": "x"}, _meta=trace)
    talk.tool("refuses")
    talk.tool("errs")
    talk.tool("nope")
    talk.once("tools/list")
    talk.once("resources/read", {"uri": "test://a"})
    talk.converse("tools/call", {"name": "asks"})
    first = hook.spans[0]
    assert (first.kind, first.name, first.parent) == ("server", "tools/call echo", trace)
    assert first.attributes["mcp.protocol.version"] == version
    assert first.attributes["jsonrpc.request.id"] == "1"
    assert hook.names[1:6] == [
        "tools/call refuses",
        "tools/call errs",
        "tools/call nope",
        "tools/list",
        "resources/read",
    ]
    rounds = 2 if version == MODERN else 1
    asked = [None] * rounds if version >= "2025-06-18" else ["tool_error"]
    assert hook.errors() == [None, "tool_error", "4711", "-32602", None, None, *asked]
    assert isinstance(hook.spans[2].ends[0][1], McpError)


@pytest.mark.req("Y2")
def test_a_request_that_is_cancelled_has_an_end() -> None:
    hook = Hook()
    talk = Talk(make_app(hook), "2025-11-25")
    id = talk.send("tools/call", {"name": "asks"})
    cancel = {"method": "notifications/cancelled", "params": {"requestId": id}}
    talk.receive({"jsonrpc": "2.0", **cancel})
    assert hook.errors() == ["cancelled"]


@pytest.mark.req("Y1", "Y2")
@pytest.mark.parametrize("version", ALL)
def test_a_client_tells_of_each_call_and_hands_its_trace_on(version: str) -> None:
    async def run() -> None:
        here, there = Hook(), Hook()
        mode = Pin(Revision(version))
        async with connect_memory(make_app(there), mode=mode, spans=here) as client:
            await client.call_tool("echo", {"text": "x"}, meta={"tracestate": "a=1"})
            await client.call_tool("refuses")
            with pytest.raises(McpError):
                await client.request("tools/call", {"name": "errs"})
            await client.read_resource("test://a")
            await client.list_tools()
            with pytest.raises((McpError, LocalProtocolError)):  # who declared no prompts is not asked
                await client.get_prompt("none")
            task = asyncio.ensure_future(client.call_tool("waits"))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        wanted = ["tools/call echo", "tools/call refuses", "tools/call errs", "resources/read", "tools/list"]
        assert here.names[:5] == there.names[:5] == wanted
        assert here.names[-1] == "tools/call waits"
        assert [span.parent["traceparent"] for span in there.spans[:5]] == [
            span.context()["traceparent"] for span in here.spans[:5]
        ]
        assert there.spans[0].parent["tracestate"] == "a=1"
        assert here.errors()[:5] == there.errors()[:5] == [None, "tool_error", "4711", None, None]
        assert here.errors()[-1] == "CallCancelled"
        assert there.errors()[-1] == "cancelled"

    asyncio.run(run())


@pytest.mark.req("Y2")
def test_what_asks_for_nothing_has_no_span() -> None:
    hook, options = Hook(), dict[str, Any]()
    for verb, arguments in (("ping", ()), ("notify", ("x",)), ("request", ()), ("request", (5,))):
        assert start_client_span(hook, verb, arguments, options) is None
    assert hook.spans == []
    assert options == {}
    assert end_attributes({"isError": True}, None) == {"error.type": "tool_error"}
    assert end_attributes({"isError": 1}, None) == {}


def test_without_a_hook_nothing_is_told() -> None:
    reply = Responder(make_app()).handle(
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta()}}
    )
    assert isinstance(reply, dict)
    assert "result" in reply
