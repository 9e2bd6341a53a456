"""The registry of handlers: one for both eras, lists, results, failures."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any, Literal

import pytest

from sansmcp import (
    App,
    Context,
    LocalProtocolError,
    McpError,
    Responder,
    Revision,
    ToolError,
)
from sansmcp.types import (
    CallToolResult,
    CompleteResult,
    Completion,
    PromptArgument,
    PromptMessage,
    TextContent,
    TextResourceContents,
)

from .support import meta, request

ALL = [r.value for r in Revision]
MODERN = ALL[-1]
ANY_ERA = pytest.mark.parametrize("version", ALL)


def demo(**options: Any) -> App:
    app = App("demo", "1.0", logging=True, **options)

    @app.tool()
    def echo(text: str) -> str:
        """Say it again."""
        return text

    @app.tool(title="Adder", output_schema={"type": "object"})
    def add(a: int, b: int = 1) -> dict[str, int]:
        return {"sum": a + b}

    @app.tool()
    def fail(how: str) -> Any:
        errors: dict[str, Exception] = {
            "tool": ToolError("no coffee"),
            "mcp": McpError(-32602, "bad", {"x": 1}),
            "bug": ValueError("s3cret"),
            "reserved": McpError(-32000, "x"),
        }
        if how in errors:
            raise errors[how]
        return {"nan": float("nan"), "object": object()}[how]

    @app.tool()
    def blocks(ctx: Context) -> list[Any]:
        ctx.progress(1, 2, "half")
        ctx.log("error", {"a": 1})
        return [TextContent(text="a"), {"type": "text", "text": ctx.era.value}]

    @app.tool()
    def whole() -> CallToolResult:
        return CallToolResult(content=[TextContent(text="w")], is_error=True)

    @app.resource("test://greeting", mime_type="text/plain")
    def greeting() -> str:
        return "hello"

    @app.resource("test://blob")
    def blob() -> bytes:
        return b"\x00\xff"

    @app.resource("test://users/{name}/profile")
    def profile(name: str) -> list[Any]:
        return [TextResourceContents(uri=f"test://users/{name}/profile", text=name)]

    @app.prompt()
    def greet(name: str, tone: str = "kind") -> str:
        """Greet somebody."""
        return f"Greet {name}, {tone}"

    @app.prompt(arguments=[PromptArgument(name="x", required=True)])
    def talk(x: str) -> list[Any]:
        return [PromptMessage(role="assistant", content=TextContent(text=x)), "and?"]

    @app.completion
    def complete(ref: Mapping[str, Any], name: str, value: str, context: Mapping[str, str]) -> list[str]:
        return [f"{value}{n}" for n in range(120)]

    @app.method("vendor/double")
    def double(params: Mapping[str, Any]) -> dict[str, Any]:
        return {"twice": params["x"] * 2}

    return app


class Asker:
    """Asks a responder in one revision and hands out result or error."""

    def __init__(self, app: App, version: str) -> None:
        self.responder = Responder(app)
        self.modern = version == MODERN
        self._id = 0
        if not self.modern:
            self(
                "initialize",
                {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
            )

    def raw(self, method: str, params: Any = None) -> dict[str, Any]:
        self._id += 1
        reply = self.responder.handle(request(method, params, id=self._id, modern=self.modern))
        assert isinstance(reply, dict)
        assert reply["id"] == self._id
        return reply

    def __call__(self, method: str, params: Any = None) -> Any:
        return self.raw(method, params)["result"]

    def error(self, method: str, params: Any = None) -> Any:
        return self.raw(method, params)["error"]

    def tool(self, name: str, **arguments: Any) -> Any:
        return self("tools/call", {"name": name, "arguments": arguments})


@pytest.fixture(params=ALL)
def ask(request: pytest.FixtureRequest) -> Asker:
    return Asker(demo(), request.param)


# lists ------------------------------------------------------------------------------------------


@pytest.mark.req("W2", "W3", "W9", "W13", "V4")
def test_lists_are_in_the_order_of_registration(ask: Asker) -> None:
    assert [t["name"] for t in ask("tools/list")["tools"]] == ["echo", "add", "fail", "blocks", "whole"]
    assert [r["uri"] for r in ask("resources/list")["resources"]] == ["test://greeting", "test://blob"]
    templates = ask("resources/templates/list")["resourceTemplates"]
    assert [t["uriTemplate"] for t in templates] == ["test://users/{name}/profile"]
    prompts = ask("prompts/list")["prompts"]
    assert prompts[0]["arguments"] == [
        {"name": "name", "required": True},
        {"name": "tone", "required": False},
    ]
    assert "nextCursor" not in ask("tools/list")


@pytest.mark.req("W2")
def test_capabilities_are_what_there_are_handlers_for() -> None:
    app = App("s")
    assert Asker(app, MODERN)("server/discover")["capabilities"] == {}
    app.tool()(lambda_tool)
    assert Asker(app, MODERN)("server/discover")["capabilities"] == {"tools": {}}
    whole = Asker(demo(list_changed=True), MODERN)("server/discover")["capabilities"]
    assert whole == {
        "tools": {"listChanged": True},
        "resources": {"listChanged": True},
        "prompts": {"listChanged": True},
        "completions": {},
        "logging": {},
    }


def lambda_tool() -> None: ...


@pytest.mark.req("M4")
@ANY_ERA
def test_lists_in_pages_and_cursors_that_are_none(version: str) -> None:
    ask = Asker(demo(page_size=2), version)
    names: list[str] = []
    cursor = None
    for _ in range(3):
        page = ask("tools/list", {} if cursor is None else {"cursor": cursor})
        names += [t["name"] for t in page["tools"]]
        cursor = page.get("nextCursor")
    assert names == ["echo", "add", "fail", "blocks", "whole"]
    assert cursor is None
    for bad in ("", "x", "from:1", "from:99", "from:-2", "from:0", "from:٢", 5, "from:" + "9" * 50):
        assert ask.error("tools/list", {"cursor": bad})["code"] == -32602
    with pytest.raises(LocalProtocolError):
        App("s", page_size=0)


# tools ------------------------------------------------------------------------------------------


@pytest.mark.req("W12", "A18")
def test_plain_values_become_results(ask: Asker) -> None:
    assert ask.tool("echo", text="hi")["content"] == [{"type": "text", "text": "hi"}]
    summed = ask.tool("add", a=1)
    assert summed["content"] == [{"type": "text", "text": '{"sum": 2}'}]
    revision = Revision.V2026_07_28 if ask.modern else ask.responder._engine.session_revision
    assert revision is not None
    assert summed.get("structuredContent") == ({"sum": 2} if revision >= "2025-06-18" else None)
    assert ask.tool("whole")["isError"] is True
    assert "isError" not in summed


@pytest.mark.req("W12")
@pytest.mark.parametrize(
    ("returned", "blocks"),
    [
        ([{"type": "text", "text": "a"}], True),
        ([{"type": "resource_link", "uri": "a://b", "name": "b"}], True),
        ([{"type": "image", "data": "", "mimeType": "image/png"}, TextContent(text="a")], True),
        ([{"type": "circle", "radius": 1}], False),
        ([{"type": "image", "path": "a.png"}], False),
        ([{"type": "text", "text": "a"}, {"type": "bug", "id": 1}], False),
        ([{"type": ["text"], "text": "a"}], False),
    ],
)
def test_values_that_have_a_type_are_not_content_for_that(returned: Any, blocks: bool) -> None:
    app = App("s")
    app.tool("rows")(lambda: returned)
    content = Asker(app, MODERN)("tools/call", {"name": "rows"})["content"]
    if blocks:
        assert [block["type"] for block in content] == [_type_of(block) for block in returned]
    else:
        assert [block["type"] for block in content] == ["text"]
        assert json.loads(content[0]["text"]) == returned


def _type_of(block: Any) -> str:
    return str(block["type"] if isinstance(block, Mapping) else block.type)


@pytest.mark.req("J1", "I2", "I3")
def test_a_handler_can_report_and_log() -> None:
    for version in (MODERN, "2025-11-25"):
        ask = Asker(demo(), version)
        ask.responder.notifications.clear()
        stamp = {"progressToken": "t"}
        if ask.modern:
            stamp["io.modelcontextprotocol/logLevel"] = "info"
        result = ask("tools/call", {"name": "blocks", "_meta": stamp})
        assert [b["text"] for b in result["content"]] == ["a", "modern" if ask.modern else "legacy"]
        progress, log = ask.responder.notifications
        assert progress["params"] == {"progressToken": "t", "progress": 1, "total": 2, "message": "half"}
        assert log["params"] == {"level": "error", "data": {"a": 1}}


@pytest.mark.parametrize("version", [MODERN, "2025-11-25"])
def test_nobody_hangs_up_where_there_is_one_connection_for_all(version: str) -> None:
    app, asked = App("demo"), []

    @app.tool()
    def long(ctx: Context) -> str:
        asked.append(ctx.request)
        ctx.hang_up()
        return "done"

    ask = Asker(app, version)
    assert ask("tools/call", {"name": "long"})["content"][0]["text"] == "done"
    assert app.engine(now=0.0).hang_up(asked[0], now=0.0) is False


@pytest.mark.req("W6")
@pytest.mark.case("G-06")
def test_an_unknown_name_is_a_protocol_error_that_repeats_it(ask: Asker) -> None:
    for method, params, key in (
        ("tools/call", {"name": "nope"}, "name"),
        ("prompts/get", {"name": "nope"}, "name"),
        ("resources/read", {"uri": "nope:x"}, "uri"),
    ):
        error = ask.error(method, params)
        assert error["data"] == {key: params[key]}
        legacy_resource = method == "resources/read" and not ask.modern
        assert error["code"] == (-32002 if legacy_resource else -32602)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("tools/call", {}),
        ("tools/call", {"name": 5}),
        ("tools/call", {"name": "echo", "arguments": [1]}),
        ("resources/read", {"uri": None}),
        ("prompts/get", {"name": "greet", "arguments": "x"}),
        ("prompts/get", {"name": "greet", "arguments": {}}),
        ("completion/complete", {"ref": 1, "argument": {"name": "a", "value": "b"}}),
        ("completion/complete", {"ref": {}, "argument": {"name": "a"}}),
    ],
)
def test_params_of_a_wrong_shape_are_invalid(ask: Asker, method: str, params: Any) -> None:
    if (
        method == "completion/complete"
        and not ask.modern
        and ask.responder._engine.session_revision == "2024-11-05"
    ):
        return
    assert ask.error(method, params)["code"] == -32602


def test_arguments_that_do_not_fit_are_told_to_the_model(ask: Asker) -> None:
    for arguments in ({}, {"text": "a", "x": 1}, {"ctx": 1}):
        result = ask.tool("echo", **arguments)
        assert result["isError"] is True
        assert "echo" in result["content"][0]["text"]
    assert ask.tool("blocks", ctx=5)["isError"] is True


@pytest.mark.req("W5", "U5")
@pytest.mark.case("J-12")
def test_failures_are_hidden_unless_they_are_meant_for_the_client() -> None:
    seen: list[tuple[BaseException, int]] = []
    ask = Asker(demo(on_error=lambda error, number: seen.append((error, number))), MODERN)
    assert ask.tool("fail", how="tool")["content"][0]["text"] == "no coffee"
    error = ask.error("tools/call", {"name": "fail", "arguments": {"how": "mcp"}})
    assert error == {"code": -32602, "message": "bad", "data": {"x": 1}}
    hidden = ask.tool("fail", how="bug")
    assert hidden["isError"] is True
    assert "s3cret" not in str(hidden)
    assert "error 1" in hidden["content"][0]["text"]
    for how in ("nan", "object", "reserved"):
        assert ask.error("tools/call", {"name": "fail", "arguments": {"how": how}})["code"] == -32603
    assert [number for _, number in seen] == [1, 2, 3, 4]
    shown = Asker(demo(expose_errors=True), MODERN).tool("fail", how="bug")
    assert "s3cret" in str(shown)


# resources, prompts, completion, own methods ----------------------------------------------------


def test_resources(ask: Asker) -> None:
    assert ask("resources/read", {"uri": "test://greeting"})["contents"] == [
        {"uri": "test://greeting", "mimeType": "text/plain", "text": "hello"}
    ]
    assert ask("resources/read", {"uri": "test://blob"})["contents"] == [
        {"uri": "test://blob", "blob": "AP8="}
    ]
    uri = "test://users/ann%20b/profile"
    assert ask("resources/read", {"uri": uri})["contents"][0]["text"] == "ann b"
    for bad in (
        "test://users/../profile",
        "test://users//profile",
        "test://users/a/b/profile",
        "test://users/%2e%2e/profile",
        "test://users/a%2Fb/profile",
    ):
        assert "code" in ask.error("resources/read", {"uri": bad})


def test_prompts(ask: Asker) -> None:
    result = ask("prompts/get", {"name": "greet", "arguments": {"name": "Ann"}})
    assert result["description"] == "Greet somebody."
    assert result["messages"] == [{"role": "user", "content": {"type": "text", "text": "Greet Ann, kind"}}]
    talk = ask("prompts/get", {"name": "talk", "arguments": {"x": "hm"}})
    assert [m["role"] for m in talk["messages"]] == ["assistant", "user"]


@pytest.mark.req("Z1")
@ANY_ERA
def test_completion(version: str) -> None:
    ask = Asker(demo(), version)
    params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "tone", "value": "k"}}
    if version == "2024-11-05":
        # the capability came later, the method is as old
        assert ask("completion/complete", params)["completion"]["values"][0] == "k0"
        return
    completion = ask("completion/complete", params)["completion"]
    assert len(completion["values"]) == 100
    assert (completion["total"], completion["hasMore"]) == (120, True)


GREET = {"type": "ref/prompt", "name": "greet"}
TONE = {"name": "tone", "value": "k"}


@pytest.mark.req("Z1", "W6")
@ANY_ERA
@pytest.mark.parametrize(
    ("params", "told"),
    [
        ({"ref": {**GREET, "name": "nope"}, "argument": TONE}, "no prompt named 'nope'"),
        ({"ref": {"type": "ref/other", "name": "greet"}, "argument": TONE}, "ref must be"),
        ({"ref": {"type": ["ref/prompt"], "name": "greet"}, "argument": TONE}, "ref must be"),
        ({"ref": {"type": "ref/resource", "name": "greet"}, "argument": TONE}, "ref must be"),
        ({"ref": GREET, "argument": {**TONE, "value": 5}}, "argument must have"),
        ({"ref": GREET, "argument": TONE, "context": 5}, "context must be"),
        ({"ref": GREET, "argument": TONE, "context": {"arguments": []}}, "context.arguments"),
        ({"ref": GREET, "argument": TONE, "context": {"arguments": {"a": 1}}}, "context.arguments"),
    ],
)
def test_what_is_to_be_completed_has_to_be_said_properly(
    version: str, params: dict[str, Any], told: str
) -> None:
    error = Asker(demo(), version).raw("completion/complete", params)["error"]
    assert error["code"] == -32602
    assert told in error["message"]


@pytest.mark.req("Z1")
@pytest.mark.parametrize(
    ("given", "sent"),
    [
        (("a", "b"), (["a", "b"], 2, False)),
        (None, ([], 0, False)),
        (CompleteResult(completion=Completion(values=["a"] * 101, total=500)), (["a"] * 100, 500, True)),
        ({"completion": {"values": ["a"] * 101}}, (["a"] * 100, None, True)),
        ({"completion": {"values": ["a"]}}, (["a"], None, None)),
        ("abc", None),
        ([1], None),
        ({"values": []}, None),
        ({"completion": {"values": "abc"}}, None),
    ],
)
def test_what_a_completion_may_return(given: Any, sent: Any) -> None:
    app = App("s")
    app.prompt("greet")(lambda tone: tone)
    app.completion(lambda ref, name, value, context: given)
    reply = Asker(app, MODERN).raw("completion/complete", {"ref": GREET, "argument": TONE})
    if sent is None:
        assert reply["error"]["code"] == -32603
    else:
        completion = reply["result"]["completion"]
        assert (completion["values"], completion.get("total"), completion.get("hasMore")) == sent


@pytest.mark.req("U5")
@ANY_ERA
def test_the_arguments_of_a_prompt_are_text(version: str) -> None:
    error = Asker(demo(), version).raw("prompts/get", {"name": "greet", "arguments": {"name": 5}})["error"]
    assert (error["code"], error["data"]) == (-32602, {"name": "greet"})
    assert "'name' must be a string" in error["message"]


@pytest.mark.req("B11")
def test_own_methods(ask: Asker) -> None:
    assert ask("vendor/double", {"x": 2})["twice"] == 4


# registering ------------------------------------------------------------------------------------


@pytest.mark.req("V11")
@pytest.mark.parametrize("name", ["", "a b", "ü", "x" * 129, "a/b"])
def test_a_tool_name_that_is_not_allowed(name: str) -> None:
    app = App("s")
    with pytest.raises(LocalProtocolError, match="tool name"):
        app.tool(name or "a b")(lambda_tool)


def test_a_name_that_is_taken() -> None:
    app = demo()
    for register in (
        app.tool("echo"),
        app.resource("test://greeting"),
        app.resource("test://users/{name}/profile"),
        app.prompt("greet"),
        app.method("vendor/double"),
        app.completion,
    ):
        with pytest.raises(LocalProtocolError, match="already"):
            register(lambda_tool)


def test_a_schema_from_the_signature() -> None:
    app = App("s")

    @app.tool()
    def t(
        a: str,
        b: int | None = None,
        c: list[float] | None = None,
        d: Literal["x", "y"] = "x",
        e: dict[str, bool] | None = None,
        f: Any = None,
        ctx: Any = None,
    ) -> None: ...

    schema = Asker(app, MODERN)("tools/list")["tools"][0]["inputSchema"]
    assert schema["required"] == ["a"]
    assert schema["additionalProperties"] is False
    assert list(schema["properties"]) == ["a", "b", "c", "d", "e", "f"]
    assert schema["properties"]["a"] == {"type": "string"}
    assert schema["properties"]["b"] == {"anyOf": [{"type": "integer"}, {"type": "null"}], "default": None}
    assert schema["properties"]["d"] == {"enum": ["x", "y"], "default": "x"}
    with pytest.raises(LocalProtocolError, match="input_schema"):

        @app.tool()
        def u(x: complex) -> None: ...

    @app.tool(input_schema={"type": "object", "x-vendor": [1]})
    def v(x: complex) -> None: ...

    assert Asker(app, MODERN)("tools/list")["tools"][-1]["inputSchema"] == {"type": "object", "x-vendor": [1]}


@pytest.mark.parametrize("template", ["a://{x}{y}", "a://{;x}", "a://{x", "a://{x}/{x}", "a://{}"])
def test_templates_that_are_not_understood(template: str) -> None:
    with pytest.raises(LocalProtocolError, match="template"):
        App("s").resource(template)(lambda_tool)


# the responder ----------------------------------------------------------------------------------


@pytest.mark.req("W1")
def test_a_message_in_a_reply_out() -> None:
    responder = Responder(demo())
    assert (
        responder.handle({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        is None
    )
    assert responder.handle(b"not json") is None
    assert responder.handle(b'{"jsonrpc":') == {
        "jsonrpc": "2.0",
        "error": {"code": -32700, "message": responder_text(responder)},
    }


@pytest.mark.req("W1", "C6", "C7")
def test_a_message_and_its_headers_in_a_reply_out() -> None:
    app = App("s")
    schema: Any = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    }

    @app.tool(input_schema=schema)
    def where(region: str = "") -> str:
        return region

    responder = Responder(app)
    call = request("tools/call", {"name": "where", "arguments": {"region": "eu"}})
    right = [
        ("mcp-protocol-version", MODERN),
        ("mcp-method", "tools/call"),
        ("mcp-name", "where"),
        ("mcp-param-region", "eu"),
    ]
    for headers, code in (
        (None, None),
        (right, None),
        (iter(right), None),
        (right[:-1], -32020),
        ([*right[:-1], ("mcp-param-region", "us")], -32020),
        ([], -32020),
        (None, None),
    ):
        reply = responder.handle(call, headers)
        assert isinstance(reply, dict)
        assert reply.get("error", {}).get("code") == code
    legacy = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    assert responder.handle(legacy, []) == {"jsonrpc": "2.0", "id": 1, "result": {}}


def responder_text(responder: Responder) -> str:
    reply = Responder(demo()).handle(b'{"jsonrpc":')
    assert isinstance(reply, dict)
    text: str = reply["error"]["message"]
    return text


@pytest.mark.req("W1")
def test_a_handler_that_waits_needs_a_binding() -> None:
    app = App("s")

    @app.tool()
    async def slow() -> str:
        await asyncio.sleep(0)
        return "x"

    @app.tool()
    async def quick() -> str:
        return "y"

    responder = Responder(app)
    with pytest.raises(LocalProtocolError, match="binding"):
        responder.handle(request("tools/call", {"name": "slow"}))
    quick_one = responder.handle(request("tools/call", {"name": "quick"}))
    assert isinstance(quick_one, dict)
    assert quick_one["result"]["content"] == [{"type": "text", "text": "y"}]
    again = responder.handle(
        {"jsonrpc": "2.0", "id": 2, "method": "server/discover", "params": {"_meta": meta()}}
    )
    assert isinstance(again, dict)
