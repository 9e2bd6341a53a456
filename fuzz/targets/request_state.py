"""INVARIANT: whatever comes as state and answers, a request is answered once, its handler runs only with
the state that was sealed for it or with none, and is handed nothing but answers of the class it asked for."""

from __future__ import annotations

from typing import Any

from fuzz.steps import Steps
from sansmcp import App, Context, NeedsInput, Responder
from sansmcp.questions import Elicit, ListRoots
from sansmcp.session.sealing import HmacSealer, bind
from sansmcp.types import CreateMessageResult, ElicitResult, ListRootsResult

CAPABILITIES: dict[str, Any] = {"elicitation": {}, "roots": {}, "sampling": {}}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "c": {"type": "string", "enum": ["a", "b"]}},
    "required": ["n"],
}
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": CAPABILITIES,
}
KEY = b"fuzz" * 8
RUNS: list[str] = []


def make_app() -> App:
    app = App("fuzz", state_keys=[KEY])

    @app.tool()
    async def awaits(ctx: Context) -> str:
        RUNS.append("awaits")
        assert ctx.state in (None, "mine")
        answer = await ctx.elicit("x", FORM)
        check(answer)
        ctx.state = "mine"
        (roots,) = await ctx.ask(ListRoots())
        assert isinstance(roots, ListRootsResult)
        assert ctx.state == "mine"
        return "done"

    @app.tool()
    def returns(ctx: Context) -> Any:
        RUNS.append("returns")
        assert ctx.state in (None, "mine")
        for answer in ctx.answers.values():
            assert isinstance(answer, (ElicitResult, ListRootsResult, CreateMessageResult))
        if "k" in ctx.answers and ctx.state is not None:
            return "done"
        return NeedsInput({"k": Elicit("x", FORM)}, state="mine")

    return app


def check(answer: ElicitResult) -> None:
    assert isinstance(answer, ElicitResult)
    if answer.action == "accept":
        assert answer.content is not None
        assert isinstance(answer.content["n"], (int, float))
        assert answer.content.get("c", "a") in ("a", "b")


APP = make_app()
ACCEPTED = {"action": "accept", "content": {"n": 1}}
ROOTS = {"roots": [{"uri": "file:///x"}]}


def genuine(name: str) -> str:
    """A state that the server may have given."""
    payload = b'{"answers":{"elicit-1":{"action":"accept","content":{"n":1}}},"state":"mine"}'
    return HmacSealer([KEY]).seal(payload, bind("tools/call", {"name": name}, None), unix=0)


STATES = {name: genuine(name) for name in ("awaits", "returns")}


def state_of(steps: Steps, name: str) -> Any:
    """A state: the right one, that of another tool, a changed one, or anything."""
    text = STATES[name]
    match steps.byte() % 6:
        case 0:
            return text
        case 1:
            return STATES["returns" if name == "awaits" else "awaits"]
        case 2:
            at = steps.byte() % len(text)
            return text[:at] + chr(steps.byte()) + text[at + 1 :]
        case 3:
            return text[: steps.byte() % len(text)] + steps.take(steps.byte() % 8).decode("latin-1")
        case 4:
            return steps.take(steps.byte()).decode("utf-8", "replace")
    return steps.value()


def answer_of(steps: Steps) -> Any:
    match steps.byte() % 4:
        case 0:
            return ACCEPTED
        case 1:
            return ROOTS
        case 2:
            return {"action": steps.choose(["accept", "decline", "x"]), "content": steps.value()}
    return steps.value()


def one_input(data: bytes) -> None:
    steps = Steps(data)
    responder = Responder(APP)
    for number in range(4):
        name = steps.choose(["awaits", "returns"])
        params: dict[str, Any] = {"name": name, "_meta": META}
        if steps.byte() % 2:
            params["requestState"] = state_of(steps, name)
        if steps.byte() % 2:
            keys = ["elicit-1", "roots-1", "k", "\ud800"]
            params["inputResponses"] = {steps.choose(keys): answer_of(steps) for _ in range(steps.byte() % 4)}
        elif steps.byte() % 2:
            params["inputResponses"] = steps.value()
        RUNS.clear()
        reply = responder.handle({"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params})
        assert isinstance(reply, dict)
        assert reply["id"] == number
        believed = "requestState" not in params or params["requestState"] == STATES[name]
        if not believed:
            assert reply["error"] == {"code": -32602, "message": "invalid requestState"} or (
                reply["error"]["message"] == "inputResponses must be an object"
            )
        if "error" in reply:
            assert reply["error"]["code"] == -32602
            assert not RUNS
        else:
            assert [name] == RUNS
            result = reply["result"]
            assert not result.get("isError"), result
            if result["resultType"] == "input_required":
                assert result["inputRequests"]
                assert len(result.get("requestState", "")) <= 256 * 1024
        if not steps.more:
            break
