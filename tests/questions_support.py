"""Handlers that ask their client, and a client made by hand that answers, in every revision."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Mapping
from typing import Any

from sansmcp import (
    App,
    Context,
    Elicit,
    Event,
    ListRoots,
    MessageIgnored,
    NeedsInput,
    Sample,
    SendNotification,
    SendRequest,
    SendResponse,
)
from sansmcp.context import Clock
from sansmcp.inline import InlineHandlers
from sansmcp.types import CreateMessageResult, ElicitResult, ListRootsResult, TextContent

from .support import CAPABILITIES_KEY, MODERN, request

Answer = Callable[[str, Mapping[str, Any]], Any]
"""Answers a question: its method and params in, its result out."""

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
}
EVERYTHING: dict[str, Any] = {
    "elicitation": {"form": {}, "url": {}},
    "sampling": {"tools": {}, "context": {}},
    "roots": {},
}
ACCEPTED: dict[str, Any] = {"action": "accept", "content": {"name": "Bo"}}
SAMPLED: dict[str, Any] = {
    "role": "assistant",
    "content": {"type": "text", "text": "hello"},
    "model": "m",
    "stopReason": "endTurn",
}
ROOTS: dict[str, Any] = {"roots": [{"uri": "file:///home", "name": "home"}]}
ANSWERS = {"elicitation/create": ACCEPTED, "sampling/createMessage": SAMPLED, "roots/list": ROOTS}
KEY = b"k" * 32


def usual(method: str, params: Mapping[str, Any]) -> Any:
    """The answer that everybody gives."""
    return ANSWERS[method]


def said(result: CreateMessageResult) -> str:
    assert isinstance(result.content, TextContent)
    return result.content.text


def summary(name: ElicitResult, model: CreateMessageResult, roots: ListRootsResult) -> str:
    assert name.content is not None
    return f"{said(model)} {name.content['name']} at {roots.roots[0].uri}"


SUMMARY = "hello Bo at file:///home"


def asking_app(**options: Any) -> App:
    """The same three questions, one and then two, in each form that a handler can have.

    ``runs`` counts how often a handler was begun.
    """
    app = App("asker", "1", **options)
    app.runs = []  # type: ignore[attr-defined]
    runs: list[str] = app.runs  # type: ignore[attr-defined]

    @app.tool()
    async def awaits(ctx: Context) -> str:
        runs.append("awaits")
        name = await ctx.elicit("Who are you?", FORM)
        model, roots = await ctx.ask(ctx.sample("greet", max_tokens=9), ListRoots())
        return summary(name, model, roots)

    @app.tool()
    def yields(ctx: Context) -> Generator[Any, Any, str]:
        runs.append("yields")
        name = yield ctx.elicit("Who are you?", FORM)
        model, roots = yield [ctx.sample("greet", max_tokens=9), ListRoots()]
        return summary(name, model, roots)

    @app.tool()
    def returns(ctx: Context) -> Any:
        runs.append("returns")
        known = ctx.answers
        if "who" not in known:
            return NeedsInput({"who": Elicit("Who are you?", FORM)}, state={"step": 1})
        if not {"what", "where"} <= known.keys():
            return NeedsInput({"what": Sample("greet", max_tokens=9), "where": ListRoots()})
        assert ctx.state == {"step": 1}
        return summary(known["who"], known["what"], known["where"])

    @app.prompt()
    async def asks_in_a_prompt(ctx: Context) -> str:
        name = await ctx.elicit("Who are you?", FORM)
        return f"{name.action} {name.content}"

    @app.resource("test://asks")
    def asks_in_a_resource(ctx: Context) -> Generator[Any, Any, str]:
        name = yield ctx.elicit("Who are you?", FORM)
        return f"{name.action} {name.content}"

    return app


FORMS = ("awaits", "yields", "returns")


class Talk:
    """A client of one revision that talks to `app`, without a loop, under a clock that it moves."""

    def __init__(
        self,
        app: App,
        version: str,
        *,
        capabilities: Any = None,
        clock: Clock | None = None,
        engine: Any = None,
        **options: Any,
    ) -> None:
        self.now = 0.0
        self.version = version
        self.modern = version == MODERN
        self.capabilities = EVERYTHING if capabilities is None else capabilities
        self.engine = engine or app.engine(now=0.0, **options)
        self.handlers = InlineHandlers(app, self.engine, entropy=lambda n: b"\x01" * n, clock=clock)
        self.sent: list[dict[str, Any]] = []
        self.events: list[Event] = []
        self._id = 0
        if not self.modern:
            info = {"name": "c", "version": "1"}
            opening = {"protocolVersion": version, "capabilities": self.capabilities, "clientInfo": info}
            self.receive(request("initialize", opening, id="i", modern=False))
            self.receive({"jsonrpc": "2.0", "method": "notifications/initialized"})
            self.sent.clear()

    def drain(self) -> None:
        for event in self.engine.events():
            if isinstance(event, (SendRequest, SendNotification, SendResponse)):
                assert isinstance(event.message, dict)
                self.sent.append(event.message)
            else:
                self.events.append(event)
                self.handlers.handle(event, now=self.now)

    def receive(self, message: Any) -> None:
        self.engine.receive_message(json.loads(json.dumps(message)), now=self.now)
        self.drain()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.engine.handle_timeout(self.now)
        self.drain()

    def send(self, method: str, params: Any = None) -> int:
        """Make a request; its id."""
        self._id += 1
        body = dict(params or {})
        if self.modern:
            body["_meta"] = {CAPABILITIES_KEY: self.capabilities, **body.get("_meta", {})}
        self.receive(request(method, body, id=self._id, modern=self.modern))
        return self._id

    def reply(self, id: Any) -> dict[str, Any] | None:
        """The response to a request; None while there is none."""
        found = [m for m in self.sent if m.get("id") == id and "method" not in m]
        assert len(found) <= 1
        return found[0] if found else None

    def questions(self) -> list[dict[str, Any]]:
        """The requests of a legacy server that have no answer yet; each is given once."""
        asked = [m for m in self.sent if "method" in m and "id" in m]
        self.sent = [m for m in self.sent if m not in asked]
        return asked

    def once(self, method: str, params: Any = None) -> dict[str, Any]:
        """The response to one request, without answering anything."""
        reply = self.reply(self.send(method, params))
        assert reply is not None
        return reply

    def tool(self, name: str, **more: Any) -> dict[str, Any]:
        """The result of a tool, or the error, of one request."""
        reply = self.once("tools/call", {"name": name, **more})
        result: dict[str, Any] = reply["result"] if "result" in reply else reply["error"]
        return result

    def converse(self, method: str, params: Any, answer: Answer = usual) -> tuple[dict[str, Any], list[Any]]:
        """The last response to a request, and all that was asked on the way, round by round."""
        return (
            self._converse_modern(method, params, answer)
            if self.modern
            else self._wait(method, params, answer)
        )

    def _converse_modern(self, method: str, params: Any, answer: Answer) -> tuple[dict[str, Any], list[Any]]:
        rounds: list[Any] = []
        extra: dict[str, Any] = {}
        for _ in range(20):
            reply = self.once(method, {**params, **extra})
            result = reply.get("result", {})
            if result.get("resultType") != "input_required":
                return reply, rounds
            asked = result.get("inputRequests", {})
            rounds.append([(q["method"], q.get("params")) for q in asked.values()])
            extra = {
                "inputResponses": {k: answer(q["method"], q.get("params", {})) for k, q in asked.items()}
            }
            if "requestState" in result:
                extra["requestState"] = result["requestState"]
        raise AssertionError("rounds without end")

    def _wait(self, method: str, params: Any, answer: Answer) -> tuple[dict[str, Any], list[Any]]:
        rounds: list[Any] = []
        id = self.send(method, params)
        for _ in range(20):
            reply = self.reply(id)
            if reply is not None:
                return reply, rounds
            asked = self.questions()
            rounds.append([(q["method"], q.get("params")) for q in asked])
            for question in asked:
                result = answer(question["method"], question.get("params", {}))
                self.receive({"jsonrpc": "2.0", "id": question["id"], "result": result})
        raise AssertionError("rounds without end")

    @property
    def ignored(self) -> list[Any]:
        """Why anything was ignored, in order."""
        return [event.reason for event in self.events if isinstance(event, MessageIgnored)]


def text_of(reply: Mapping[str, Any]) -> str:
    """The text of a tool's result."""
    (block,) = reply["result"]["content"]
    text: str = block["text"]
    return text
