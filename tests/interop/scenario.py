"""Both engines in one process, and much of what they can say to each other, in any revision."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal

import attrs

from sansmcp import (
    App,
    Auto,
    Call,
    ClientEngine,
    Context,
    IncomingRequest,
    InputRequired,
    ListKind,
    McpError,
    RequestFailed,
    RequestReceived,
    ResultReady,
    Revision,
    SendNotification,
    SendRequest,
    SendResponse,
    ServerEngine,
    ToolError,
)
from sansmcp.types import (
    CallToolResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    ListToolsResult,
)
from sansmcp.types.convert import unstructure

from . import rich

Json = dict[str, Any]
Role = Literal["client", "server"]
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
LATEST = Revision.V2026_07_28


@attrs.frozen
class Said:
    """A message that one of our engines sent, and the revision in which."""

    role: Role
    message: Json
    revision: Revision
    method: str | None
    """Of the request that it answers."""


class Pair:
    """A client and a server of ours, whose messages pass through here. Time stands still unless moved."""

    def __init__(
        self, app: App, offered: tuple[Revision, ...], served: tuple[Revision, ...], **options: Any
    ) -> None:
        self.said: list[Said] = []
        self.batches: list[list[Json]] = []
        self.ends: dict[Call, ResultReady | RequestFailed] = {}
        self.now = 0.0
        self.client = ClientEngine(
            rich.ME, now=0.0, capabilities=rich.CLIENT_CAPABILITIES, mode=Auto(offered), **options
        )
        self.server = ServerEngine(
            rich.SERVER,
            now=0.0,
            capabilities=rich.SERVER_CAPABILITIES,
            instructions="Use it well.",
            methods=["example.org/own"],
            revisions=served,
        )
        self._app = app
        self._asked: dict[tuple[Role, Any], tuple[str, Revision]] = {}
        self._raw = LATEST
        self.hold: set[str] = set()
        """Tools whose calls are left open."""

    # the wire ------------------------------------------------------------------------------------

    def pump(self) -> None:
        """Carry messages until nothing is left to carry."""
        moved = True
        while moved:
            moved = False
            ends: tuple[tuple[Role, ClientEngine | ServerEngine], ...] = (
                ("client", self.client),
                ("server", self.server),
            )
            for role, engine in ends:
                for event in engine.events():
                    moved = True
                    self._take(role, event)

    def _take(self, role: Role, event: Any) -> None:
        match event:
            case SendRequest() | SendNotification() | SendResponse():
                message = json.loads(event.data)
                if isinstance(message, list):
                    self.batches.append(message)
                    for member in message:
                        self._note(role, member, event)
                else:
                    self._note(role, message, event)
                other = self.server if role == "client" else self.client
                other.receive_message(event.data, now=self.now)
            case RequestReceived() if role == "server":
                self._serve(event.request)
            case InputRequired():
                asked = event.requests
                if not any(q.raw.get("systemPrompt") == "no answer" for q in asked.values()):
                    given = {key: rich.answer(q, event.round.revision) for key, q in asked.items()}
                    self.client.provide_input(event.round, given, now=self.now)
            case ResultReady() | RequestFailed():
                self.ends[event.call] = event
            case _:
                pass

    def _note(self, role: Role, message: Json, event: Any) -> None:
        other: Role = "server" if role == "client" else "client"
        method: str | None = None
        if "method" not in message:
            known = self._asked.get((other, message.get("id")))
            method, revision = known if known is not None else (None, self._raw)
        elif role == "server":
            related = getattr(event, "related", None)
            session = self.server.session_revision
            revision = related.revision if related is not None else session or LATEST
        else:
            revision = self._revision_of(message)
        if "method" in message and "id" in message:
            self._asked[role, message["id"]] = (message["method"], revision)
        self.said.append(Said(role, message, revision, method))

    def _revision_of(self, message: Json) -> Revision:
        params = message.get("params", {})
        if message["method"] == "initialize":
            return Revision(params["protocolVersion"])
        if VERSION_KEY in params.get("_meta", {}):
            return Revision(params["_meta"][VERSION_KEY])
        assert self.client.verdict is not None
        return self.client.verdict.revision

    def inject(self, raw: Any, revision: Revision) -> None:
        """Let the server receive what no client of ours would say."""
        self._raw = revision
        data = raw if isinstance(raw, bytes) else json.dumps(raw).encode()
        for message in raw if isinstance(raw, list) else [raw]:
            if isinstance(message, dict) and isinstance(message.get("id"), (int, str)):
                self._asked["client", message["id"]] = (str(message.get("method")), revision)
        self.server.receive_message(data, now=self.now)
        self.pump()

    # both ends -----------------------------------------------------------------------------------

    def _serve(self, request: IncomingRequest) -> None:
        if request.params.get("name") in self.hold:
            return
        context = Context(request, self.server, lambda action: action(self.now))
        invocation = self._app.begin(self.server, request, context, now=self.now)
        if invocation is None:
            return
        try:
            value = invocation.function(*invocation.arguments, **invocation.keywords)
        except Exception as error:
            invocation.fail(error, now=self.now)
        else:
            invocation.finish(value, now=self.now)

    def do(self, verb: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Carry a verb out and everything that follows; the end of the call, if it was one."""
        made = verb(*arguments, now=self.now, **options)
        self.pump()
        return self.ends.get(made) if isinstance(made, Call) else made

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.now += seconds
        for engine in (self.client, self.server):
            engine.handle_timeout(self.now)
        self.pump()


def make_app(kind: type[App]) -> App:
    """A server with a tool for each kind of answer."""
    app = kind("server", page_size=3)

    @app.tool()
    def text(ctx: Context, a: str = "") -> str:
        ctx.progress(0.25, 1.0, "a quarter")
        ctx.progress(1)
        ctx.log("warning", {"a": [a]}, logger="tools")
        ctx.log("debug", "details")
        return a

    @app.tool()
    def mapping() -> Json:
        return {"a": 1, "b": [None, 1.5]}

    @app.tool()
    def number() -> int:
        return 3

    @app.tool()
    def nothing() -> None:
        return None

    @app.tool()
    def blocks() -> list[Any]:
        return rich.BLOCKS

    @app.tool()
    def typed() -> CallToolResult:
        return CallToolResult(rich.BLOCKS, {"a": 1}, False, meta=rich.META)

    @app.tool()
    def any_json() -> CallToolResult:
        return CallToolResult([], [1, None, "a"])

    @app.tool()
    def fails() -> str:
        raise ToolError("it does not work")

    @app.tool()
    def raises() -> str:
        raise ValueError("hidden")

    @app.tool()
    def refuses(code: int, data: Json) -> str:
        raise McpError(code, "refused", data)

    @app.resource("test://text", mime_type="text/plain")
    def as_text() -> str:
        return "some ü text"

    @app.resource("test://blob", mime_type="image/png")
    def as_blob() -> bytes:
        return b"\0\1\2"

    @app.resource("test://parts")
    def as_parts() -> list[Any]:
        return [rich.TEXT_PART, rich.BLOB_PART]

    @app.resource("test://broken")
    def broken() -> str:
        raise ValueError("hidden")

    @app.resource("test://items/{name}")
    def item(name: str) -> str:
        return name

    @app.prompt()
    def simple(x: str) -> str:
        """A simple prompt."""
        return x

    @app.prompt()
    def filled() -> Any:
        return rich.FILLED

    @app.completion
    def completion(ref: Json, name: str, value: str, context: Json) -> list[str]:
        return [f"{value}{number}" for number in range(150)]

    @app.method("example.org/own")
    def own(params: Json) -> Json:
        return {"seen": sorted(params)}

    return app


class RichApp(App):
    """Answers every list with definitions in which every member is set."""

    def begin(self, engine: Any, request: IncomingRequest, context: Context, *, now: float) -> Any:
        lists = {
            "tools/list": ListToolsResult([rich.TOOL], meta=rich.META),
            "resources/list": ListResourcesResult([rich.RESOURCE], meta=rich.META),
            "resources/templates/list": ListResourceTemplatesResult([rich.TEMPLATE], meta=rich.META),
            "prompts/list": ListPromptsResult([rich.PROMPT], meta=rich.META),
        }
        if request.method in lists and "cursor" not in request.params:
            engine.respond(request, lists[request.method], now=now)
            return None
        return super().begin(engine, request, context, now=now)


def connect(app: App, offered: tuple[Revision, ...], served: tuple[Revision, ...]) -> Pair:
    pair = Pair(app, offered, served)
    pair.do(pair.client.connect)
    assert pair.client.verdict is not None
    return pair


def use_what_both_eras_have(pair: Pair, revision: Revision) -> None:
    """Lists, tools, resources, prompts, completion, progress, cancel, timeout."""
    client, legacy = pair.client, revision is not LATEST
    for verb in (
        client.list_all_tools,
        client.list_all_resources,
        client.list_all_resource_templates,
        client.list_all_prompts,
        client.list_tools,
        client.list_resources,
        client.list_resource_templates,
        client.list_prompts,
    ):
        assert isinstance(pair.do(verb), ResultReady)
    assert isinstance(pair.do(client.list_tools, "no such cursor"), RequestFailed)

    for name in ("mapping", "number", "nothing", "blocks", "typed", "any_json", "fails", "raises", "text"):
        assert isinstance(pair.do(client.call_tool, name), ResultReady), name
    pair.do(client.call_tool, "text", {"a": "ü"}, progress=True, meta={"traceparent": "00-1-2-01"})
    pair.do(client.call_tool, "text", {"b": 1})
    pair.do(client.call_tool, "nope", {})
    pair.do(client.call_tool, "refuses", {"code": -32602, "data": {"a": 1}})
    pair.do(client.call_tool, "refuses", {"code": 1234, "data": {"a": 1}})

    for uri in ("text", "blob", "parts", "items/x"):
        assert isinstance(pair.do(client.read_resource, f"test://{uri}"), ResultReady)
    for uri in ("nope", "broken"):
        assert isinstance(pair.do(client.read_resource, f"test://{uri}"), RequestFailed)

    assert isinstance(pair.do(client.get_prompt, "simple", {"x": "y"}), ResultReady)
    assert isinstance(pair.do(client.get_prompt, "filled"), ResultReady)
    for name in ("simple", "nope"):
        assert isinstance(pair.do(client.get_prompt, name), RequestFailed)

    known: Json = {} if revision < Revision.V2025_06_18 else {"context": {"y": "z"}}
    for ref in ({"type": "ref/prompt", "name": "simple"}, {"type": "ref/resource", "uri": "test://{x}"}):
        assert isinstance(pair.do(client.complete, ref, "x", "a", **known), ResultReady)

    assert isinstance(pair.do(client.request, "example.org/own", {"a": 1}), ResultReady)
    assert isinstance(pair.do(client.request, "example.org/other"), RequestFailed)

    pair.hold.add("text")
    call = client.call_tool("text", now=pair.now)
    pair.pump()
    pair.do(client.cancel, call, reason="changed my mind")
    pair.do(client.call_tool, "text", timeout=5.0)
    pair.wait(6.0)
    pair.hold.clear()

    pair.inject(b"{not json", revision)
    own: Json = {} if legacy else {"_meta": {VERSION_KEY: revision.value}}
    pair.inject(
        {"jsonrpc": "2.0", "id": "x-1", "method": "tools/call", "params": {**own, "name": 7}}, revision
    )
    pair.inject({"jsonrpc": "2.0", "id": "x-2", "method": 3}, revision)
    pair.inject({"id": "x-3", "method": "tools/list"}, revision)
    pair.inject([], revision)


def use_the_legacy_session(pair: Pair, revision: Revision) -> None:
    """Pings, log levels, subscriptions, and a server that asks."""
    client, server = pair.client, pair.server
    assert isinstance(pair.do(client.ping), ResultReady)
    for level in ("warning", "debug"):
        assert isinstance(pair.do(client.set_log_level, level), ResultReady)
        pair.do(client.call_tool, "text", {"a": level}, progress=True)
    for method in ("resources/subscribe", "resources/unsubscribe"):
        assert isinstance(pair.do(client.request, method, {"uri": "test://text"}), ResultReady)
        assert pair.do(server.notify_updated, "test://text") is (method == "resources/subscribe")
    pair.do(client.roots_changed)
    pair.do(server.log, "error", "on its own", logger="server")
    for kind in ListKind:
        assert pair.do(server.notify_changed, kind)

    assert isinstance(pair.do(server.ping), ResultReady)
    assert isinstance(pair.do(server.request, "roots/list"), ResultReady)
    params = unstructure(rich.SAMPLING, revision)
    assert isinstance(pair.do(server.request, "sampling/createMessage", params), ResultReady)
    if revision >= Revision.V2025_06_18:
        form = unstructure(rich.form(revision), revision)
        assert isinstance(pair.do(server.request, "elicitation/create", form), ResultReady)
    params["systemPrompt"] = "no answer"
    call = server.request("sampling/createMessage", params, now=pair.now, progress=True)
    pair.pump()
    pair.do(server.cancel, call)

    if revision is Revision.V2025_11_25:
        asked = {"mode": "url", "message": "log in", "url": "https://example.org", "elicitationId": "e-1"}
        refused = {"code": -32042, "data": {"elicitations": [asked]}}
        assert isinstance(pair.do(client.call_tool, "refuses", refused), RequestFailed)
    if revision is Revision.V2025_03_26:
        batch = [
            {"jsonrpc": "2.0", "id": "b-1", "method": "ping"},
            {"jsonrpc": "2.0", "id": "b-2", "method": "tools/list"},
            {"jsonrpc": "2.0", "id": "b-3", "method": "no/such"},
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
        ]
        pair.inject(batch, revision)
    pair.inject({"jsonrpc": "2.0", "id": "x-4", "method": "logging/setLevel", "params": {}}, revision)
    pair.inject({"jsonrpc": "2.0", "id": "x-5", "method": "initialize", "params": {}}, revision)


def use_the_modern_era(pair: Pair) -> None:
    """Discovery, log levels by request, subscriptions, and the errors that only this era has."""
    client, server = pair.client, pair.server
    assert isinstance(pair.do(client.discover), ResultReady)
    pair.do(client.call_tool, "text", {"a": "ü"}, log_level="debug", progress=True)
    for code, data in (
        (-32020, {"a": 1}),
        (-32021, {"requiredCapabilities": {"sampling": {}}}),
        (-32022, {"supported": ["2026-07-28"], "requested": "1999-01-01"}),
    ):
        assert isinstance(pair.do(client.call_tool, "refuses", {"code": code, "data": data}), RequestFailed)
    able: Json = {"io.modelcontextprotocol/clientCapabilities": {}}
    metas: list[Json] = [
        {},
        {VERSION_KEY: "2026-07-28"},
        {VERSION_KEY: 7, **able},
        {VERSION_KEY: "1999-01-01", **able},
    ]
    every: Json = {"tools": True, "prompts": True, "resource_list": True, "resources": ["test://text"]}
    listening = [client.listen(now=pair.now, **every) for _ in range(3)]
    pair.pump()
    for kind in ListKind:
        assert pair.do(server.notify_changed, kind)
    assert pair.do(server.notify_updated, "test://text")
    pair.do(server.end_subscription, server.subscriptions[1], graceful=False, reason="too slow")
    pair.do(server.end_subscription, server.subscriptions[0])
    pair.do(client.cancel, listening[-1])
    for number, meta in enumerate(metas):
        asked = {"jsonrpc": "2.0", "id": f"m-{number}", "method": "tools/list", "params": {"_meta": meta}}
        pair.inject(asked, LATEST)


def tour(app: App, revision: Revision, *, probed: bool) -> Pair:
    """Everything above, in `revision`; `probed`: the client offers all, and finds that out."""
    offered = tuple(Revision) if probed else (revision,)
    pair = connect(app, offered, (revision,))
    assert pair.client.verdict is not None
    assert pair.client.verdict.revision is revision
    use_what_both_eras_have(pair, revision)
    if revision is LATEST:
        use_the_modern_era(pair)
    else:
        use_the_legacy_session(pair, revision)
    pair.do(pair.client.close)
    pair.do(pair.server.close)
    return pair
