"""The bridge: a client of either era and a server of either era talk as if there were no eras."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    App,
    CallCancelled,
    ClientEngine,
    Context,
    Elicit,
    ElicitationCompleted,
    ElicitUrl,
    ErrorCode,
    Event,
    Implementation,
    InputRequired,
    InputWithdrawn,
    Legacy,
    ListChanged,
    ListKind,
    LogReceived,
    McpError,
    NeedsInput,
    Pin,
    Principal,
    ProgressReported,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResourceUpdated,
    ResultReady,
    Revision,
    Sample,
    SendNotification,
    SendRequest,
    SendResponse,
    ServerEngine,
    SubscriptionOpened,
)
from sansmcp.bridge import EVERYTHING, UNTRANSLATABLE, Bridge, NotTranslated
from sansmcp.inline import InlineHandlers
from sansmcp.types.lifecycle import ClientCapabilities

from .rounds_support import ACCEPTED, FORM, LISTED, ROOTS, SAMPLE, SAMPLED, SCHEMA
from .support import ALL, LEGACY, ME, MODERN

pytestmark = pytest.mark.req("AA7")

OLD = "2025-11-25"
PAIRS = [(MODERN, OLD), (OLD, MODERN), (MODERN, MODERN), (OLD, OLD)]
ACROSS = PAIRS[:2]
FORMS: Any = FORM
ROOTS_LIST: Any = ROOTS
ANSWERS: dict[str, Any] = {FORM[0]: ACCEPTED, SAMPLE[0]: SAMPLED, ROOTS[0]: LISTED}


def entropy() -> Any:
    count = 0

    def draw(size: int) -> bytes:
        nonlocal count
        count += 1
        return count.to_bytes(size, "big")

    return draw


class Chain:
    """A client, the bridge, and a server that speaks `server`; messages cross at once."""

    def __init__(
        self,
        client: str,
        server: str,
        app: App | None = None,
        *,
        capabilities: ClientCapabilities = EVERYTHING,
    ) -> None:
        self.now = 0.0
        self.far = (app or make_app()).engine(now=0.0, revisions=[Revision(server)])
        self.handlers = None if app is None else InlineHandlers(app, self.far, entropy=entropy())
        self.inner = ClientEngine(Implementation("bridge", "1"), now=0.0, capabilities=EVERYTHING)
        mode = Pin(Revision(client)) if client == MODERN else Legacy((Revision(client),))
        self.near = ClientEngine(ME, now=0.0, capabilities=capabilities, mode=mode, check_capabilities=False)
        self.said: list[Event] = []
        self.server_said: list[Event] = []
        self.wire: list[tuple[str, dict[str, Any]]] = []
        self.inner.connect(now=0.0)
        self.bridge = Bridge(self.inner, entropy=entropy())
        self.outer: ServerEngine | None = None
        self.pump()
        self.outer = self.bridge.app().engine(now=0.0)
        self.bridge.serve(self.outer, now=0.0)
        self.near.connect(now=0.0)
        self.pump()

    def pump(self) -> Chain:
        for _ in range(1000):
            moved = [self._drain(name) for name in ("near", "outer", "inner", "far")]
            if not any(moved):
                return self
        raise AssertionError("they never end")

    def _drain(self, name: str) -> bool:
        engine = getattr(self, name)
        if engine is None:
            return False
        other = {"near": "outer", "outer": "near", "inner": "far", "far": "inner"}[name]
        moved = False
        for event in engine.events():
            moved = True
            if isinstance(event, (SendRequest, SendNotification, SendResponse)):
                self.wire.append((name, event.message))  # type: ignore[arg-type]
                getattr(self, other).receive_message(event.data, now=self.now)
            elif name == "near":
                self.said.append(event)
            elif name == "outer":
                self.bridge.from_client(event, now=self.now)
            elif name == "inner" and self.outer is not None:
                self.bridge.from_server(event, now=self.now)
            elif name == "far":
                self.server_said.append(event)
                if self.handlers is not None:
                    self.handlers.handle(event, now=self.now)
        return moved

    def call(self, verb: str, *arguments: Any, **options: Any) -> Any:
        call = getattr(self.near, verb)(*arguments, now=self.now, **options)
        self.pump()
        return call

    def end(self, call: Any) -> Any:
        """How a call ended; its questions are answered."""
        for _ in range(20):
            rounds = self.near.open_rounds
            if not rounds:
                break
            for round_ in rounds:
                given = {key: ANSWERS[q.method] for key, q in round_.questions.items()}
                if any(getattr(q.params, "url", None) for q in round_.questions.values()):
                    given = {key: {"action": "accept"} for key in round_.questions}
                self.near.provide_input(round_, given, now=self.now)
            self.pump()
        return self.end_without_answers(call)

    def end_without_answers(self, call: Any) -> Any:
        (found,) = [e for e in self.of(ResultReady) + self.of(RequestFailed) if e.call is call]
        return found

    def of(self, kind: Any) -> list[Any]:
        return [event for event in self.said if isinstance(event, kind)]

    def received(self) -> Any:
        """What the server's application was asked last."""
        return [e.request for e in self.server_said if isinstance(e, RequestReceived)][-1]

    def lost(self) -> list[str]:
        names = []
        while (event := self.bridge.next_event()) is not None:
            assert event.name in UNTRANSLATABLE
            names.append(event.name)
        return names

    def quiet(self) -> None:
        """Nothing is left in the bridge."""
        left = {name: size for name, size in self.bridge.stats().items() if size and name != "events"}
        assert left.keys() <= {"pages", "schemas"}, left


def make_app() -> App:
    app = App("far", "7", instructions="be nice", logging=True, list_changed=True, subscribe=True)

    @app.tool()
    async def echo(text: str) -> str:
        """Say it again."""
        return text

    @app.tool()
    async def form(ctx: Context) -> str:
        (answer,) = await ctx.ask(Elicit("who?", SCHEMA))
        return f"{answer.action} {answer.content}"

    @app.tool()
    async def three(ctx: Context) -> str:
        (one,) = await ctx.ask(Elicit("who?", SCHEMA))
        (said,) = await ctx.ask(Sample(messages=[], max_tokens=1))
        return f"{one.action} {said.model}"

    @app.tool()
    async def page(ctx: Context) -> str:
        (answer,) = await ctx.ask(ElicitUrl("go there", "https://example.com/x"))
        return str(answer.action)

    @app.tool()
    async def busy(ctx: Context) -> str:
        ctx.progress(1, 2, "half")
        ctx.log("warning", {"x": 1}, logger="l")
        return "done"

    @app.resource("x:1")
    async def one() -> str:
        return "contents"

    @app.prompt()
    async def greet(name: str) -> str:
        return f"hello {name}"

    return app


def chain(client: str, server: str, **options: Any) -> Chain:
    return Chain(client, server, make_app(), **options)


def by_hand(client: str, server: str, **options: Any) -> Chain:
    """The test answers for the server."""
    return Chain(client, server, **options)


def text_of(event: Any) -> str:
    assert isinstance(event, ResultReady), event.error
    return str(event.raw["content"][0]["text"])


@pytest.mark.parametrize("server", [LEGACY[0], LEGACY[-1], MODERN])
@pytest.mark.parametrize("client", ALL)
def test_lists_calls_reads_and_prompts_cross(client: str, server: str) -> None:
    both = chain(client, server)
    assert both.near.server_info is None or both.near.server_info.name == "far"
    tools = both.end(both.call("list_all_tools")).result.tools
    assert [tool.name for tool in tools] == ["echo", "form", "three", "page", "busy"]
    assert text_of(both.end(both.call("call_tool", "echo", {"text": "hé"}))) == "hé"
    assert both.end(both.call("read_resource", "x:1")).result.contents[0].text == "contents"
    assert both.end(both.call("get_prompt", "greet", {"name": "you"})).result.messages
    failed = both.end(both.call("read_resource", "x:9"))
    wanted = ErrorCode.INVALID_PARAMS if client == MODERN else ErrorCode.RESOURCE_NOT_FOUND
    assert failed.error.code == wanted
    both.quiet()


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_questions_cross_in_either_direction(client: str, server: str) -> None:
    both = chain(client, server)
    assert text_of(both.end(both.call("call_tool", "form"))).startswith("accept")
    assert text_of(both.end(both.call("call_tool", "three"))) == "accept m"
    assert text_of(both.end(both.call("call_tool", "page"))) == "accept"
    assert both.lost() == []
    both.quiet()


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_what_the_client_does_not_declare_is_refused_for_it(client: str, server: str) -> None:
    both = chain(client, server, capabilities=ClientCapabilities())
    end = both.end(both.call("call_tool", "form"))
    assert isinstance(end, RequestFailed) or end.is_error
    assert not both.of(InputRequired)
    assert both.lost() == ["undeclared"]
    both.quiet()


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_a_declined_question_is_told_as_such(client: str, server: str) -> None:
    both = chain(client, server)
    call = both.call("call_tool", "form")
    (round_,) = both.near.open_rounds
    both.near.provide_input(round_, {key: {"action": "decline"} for key in round_.questions}, now=0.0)
    both.pump()
    assert text_of(both.end(call)) == "decline None"


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_progress_and_logs_cross(client: str, server: str) -> None:
    both = chain(client, server)
    options = {"log_level": "info"} if client == MODERN else {}
    call = both.call("call_tool", "busy", progress=True, **options)
    assert text_of(both.end(call)) == "done"
    (told,) = both.of(ProgressReported)
    assert (told.call, told.progress, told.total, told.message) == (call, 1, 2, "half")
    (log,) = both.of(LogReceived)
    assert (log.level, log.logger, log.data) == ("warning", "l", {"x": 1})


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_levels_are_told_each_server_in_its_way(client: str, server: str) -> None:
    both = chain(client, server)
    if client == MODERN:
        call = both.call("call_tool", "busy", log_level="error")
    else:
        both.call("set_log_level", "error")
        call = both.call("call_tool", "busy")
    both.end(call)
    assert not both.of(LogReceived)
    asked = [
        m
        for name, m in both.wire
        if name == "inner" and m.get("method") in ("tools/call", "logging/setLevel")
    ]
    if server == MODERN:
        assert asked[0]["params"]["_meta"]["io.modelcontextprotocol/logLevel"] == "error"
    else:
        assert (asked[0]["method"], asked[0]["params"]) == ("logging/setLevel", {"level": "error"})


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_subscriptions_cross(client: str, server: str) -> None:
    both = chain(client, server)
    call = both.call("listen", tools=True, resources=["x:1"])
    assert both.of(SubscriptionOpened)
    both.far.notify_updated("x:1", now=0.0)
    both.far.notify_updated("x:2", now=0.0)
    both.far.notify_changed(ListKind.TOOLS, now=0.0)
    both.pump()
    assert [e.uri for e in both.of(ResourceUpdated)] == ["x:1"]
    assert [e.kind for e in both.of(ListChanged)] == [ListKind.TOOLS]
    assert both.far.watched == {"x:1"}
    both.near.cancel(call, now=0.0)
    both.pump()
    assert both.far.watched == frozenset()
    both.quiet()


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_a_cancel_crosses(client: str, server: str) -> None:
    both = by_hand(client, server)
    call = both.call("call_tool", "slow")
    both.near.cancel(call, now=0.0)
    both.pump()
    (failed,) = both.of(RequestFailed)
    assert isinstance(failed.error, CallCancelled)
    assert any(isinstance(event, RequestCancelled) for event in both.server_said)
    both.quiet()


@pytest.mark.parametrize(("client", "server"), PAIRS)
def test_what_is_unknown_passes_untouched(client: str, server: str) -> None:
    both = by_hand(client, server)
    big = 2**70 + 1
    meta = {"traceparent": "00-x", "com.example/y": {"z": [big]}}
    call = both.call("request", "tools/call", {"name": "t", "odd": {"n": None}}, meta=meta)
    request = both.received()
    assert request.params["odd"] == {"n": None}
    assert {k: request.meta[k] for k in meta} == meta
    both.far.respond(
        request,
        {"content": [{"type": "new", "n": big}], "odd": [None], "_meta": {"com.example/m": 1}},
        now=0.0,
    )
    both.pump()
    raw = both.end(call).raw
    assert (raw["content"], raw["odd"], raw["_meta"]["com.example/m"]) == (
        [{"type": "new", "n": big}],
        [None],
        1,
    )


@pytest.mark.parametrize(
    ("client", "code", "told"),
    [
        (OLD, ErrorCode.MISSING_CLIENT_CAPABILITY, ErrorCode.INTERNAL_ERROR),
        (OLD, -32601, -32601),
        (OLD, 17, 17),
        (MODERN, 17, 17),
        (MODERN, -32603, -32603),
    ],
)
def test_codes_that_an_era_lacks_are_wrapped(client: str, code: int, told: int) -> None:
    both = by_hand(client, MODERN if client == OLD else OLD)
    call = both.call("call_tool", "t")
    both.far.respond_error(both.received(), McpError(code, "why", {"x": 1}), now=0.0)
    both.pump()
    error = both.end(call).error
    assert (error.code, error.message) == (told, "why")
    assert error.data == ({"x": 1} if told == code else {"code": code, "data": {"x": 1}})
    assert both.lost() == ([] if told == code else ["error-code"])


def test_a_modern_client_comes_back_to_the_call_of_a_legacy_server() -> None:
    both = chain(MODERN, OLD)
    call = both.call("call_tool", "three")
    assert both.bridge.stats()["parked"] == 1
    results = [m["result"] for name, m in both.wire if name == "outer" and "result" in m]
    state = results[-1]["requestState"]
    assert text_of(both.end(call)) == "accept m"
    calls = [m for name, m in both.wire if name == "inner" and m.get("method") == "tools/call"]
    assert len(calls) == 1
    again = both.call("request", "tools/call", {"name": "three", "requestState": state, "inputResponses": {}})
    assert both.end(again).error.code == ErrorCode.INVALID_PARAMS
    both.quiet()


def test_a_modern_server_gets_its_state_back_and_the_bridge_keeps_nothing() -> None:
    both = chain(MODERN, MODERN)
    both.call("call_tool", "three")
    assert both.bridge.stats() | {"events": 0} == dict.fromkeys(both.bridge.stats(), 0)


def test_a_call_that_ends_while_its_client_is_away_is_told_when_it_is_back() -> None:
    both = by_hand(MODERN, OLD)
    call = both.call("call_tool", "t")
    request = both.received()
    asked = both.far.request(*FORMS, now=0.0, related=request)
    both.pump()
    (round_,) = both.near.open_rounds
    both.far.cancel(asked, now=0.0)
    both.far.respond(request, {"content": [{"type": "text", "text": "never mind"}]}, now=0.0)
    both.pump()
    both.near.provide_input(round_, dict.fromkeys(round_.questions, ACCEPTED), now=0.0)
    both.pump()
    assert text_of(both.end(call)) == "never mind"
    both.quiet()


def test_a_legacy_client_hears_that_nobody_waits_for_its_answer() -> None:
    both = by_hand(OLD, OLD)
    both.call("call_tool", "t")
    asked = both.far.request(*FORMS, now=0.0, related=both.received())
    both.pump()
    both.far.cancel(asked, now=0.0)
    both.pump()
    assert both.of(InputWithdrawn)


def test_a_legacy_server_that_asks_without_a_request_reaches_a_session_only() -> None:
    for client, reached in ((OLD, True), (MODERN, False)):
        both = by_hand(client, OLD)
        both.far.request(*ROOTS_LIST, now=0.0)
        both.pump()
        assert bool(both.of(InputRequired)) is reached
        assert both.lost() == ([] if reached else ["unasked"])


def test_two_questions_at_once_are_one_round_and_one_after_the_other() -> None:
    both = by_hand(MODERN, OLD)
    call = both.call("call_tool", "t")
    request = both.received()
    first, second = (both.far.request(*q, now=0.0, related=request) for q in (FORMS, ROOTS_LIST))
    both.pump()
    for _ in range(2):
        (round_,) = both.near.open_rounds
        both.near.provide_input(
            round_, {key: ANSWERS[q.method] for key, q in round_.questions.items()}, now=0.0
        )
        both.pump()
    answered = [e.call for e in both.server_said if isinstance(e, ResultReady)]
    assert answered == [first, second]
    both.far.respond(request, {"content": [{"type": "text", "text": "both"}]}, now=0.0)
    both.pump()
    assert text_of(both.end(call)) == "both"
    both.quiet()


def test_calls_that_nobody_comes_back_for_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sansmcp.bridge.MAX_PARKED", 2)
    both = by_hand(MODERN, OLD)
    for _ in range(3):
        both.call("call_tool", "t", auto_rounds=False)
        both.far.request(*FORMS, now=0.0, related=both.received())
        both.pump()
    assert both.bridge.stats()["parked"] == 2
    assert both.lost()[-1] == "waiting"
    assert [e.request.id for e in both.server_said if isinstance(e, RequestCancelled)] == [3]


def test_a_page_is_named_for_a_legacy_client_and_its_end_is_told() -> None:
    both = chain(OLD, MODERN)
    both.call("call_tool", "page")
    (asked,) = [m for name, m in both.wire if name == "outer" and m.get("method") == "elicitation/create"]
    assert asked["params"]["elicitationId"].startswith("bridge-")
    same = chain(OLD, OLD)
    same.call("call_tool", "page")
    (page,) = same.near._pages
    same.far.elicitation_complete(page, now=0.0)
    same.pump()
    assert same.of(ElicitationCompleted)


def test_pages_that_must_be_visited_first_are_a_round_for_a_modern_client() -> None:
    both = by_hand(MODERN, OLD)
    call = both.call("call_tool", "t")
    data = {
        "elicitations": [{"mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": "e"}]
    }
    both.far.respond_error(both.received(), McpError(-32042, "go", data), now=0.0)
    both.pump()
    (round_,) = both.near.open_rounds
    both.near.provide_input(round_, {key: {"action": "accept"} for key in round_.questions}, now=0.0)
    both.pump()
    both.far.respond(both.received(), {"content": [{"type": "text", "text": "was there"}]}, now=0.0)
    both.pump()
    assert text_of(both.end(call)) == "was there"


@pytest.mark.parametrize("server", [OLD, MODERN])
def test_roots_that_changed_are_told_to_a_legacy_server_only(server: str) -> None:
    both = chain(OLD, server)
    both.near.roots_changed(now=0.0)
    both.pump()
    told = [
        m
        for name, m in both.wire
        if name == "inner" and m.get("method") == "notifications/roots/list_changed"
    ]
    assert len(told) == (server == OLD)
    assert both.lost() == ([] if server == OLD else ["roots-changed"])


def test_members_that_the_server_lacks_are_left_out_and_that_is_told() -> None:
    both = by_hand(OLD, MODERN)
    both.call("request", "tools/call", {"name": "t", "task": {"ttl": 1}})
    assert "task" not in both.received().params
    assert both.lost() == ["member"]


def test_the_end_of_the_server_ends_every_call() -> None:
    both = by_hand(MODERN, OLD)
    call = both.call("call_tool", "t")
    both.inner.connection_lost(now=0.0)
    both.pump()
    error = both.end(call).error
    assert error.code == ErrorCode.INTERNAL_ERROR
    later = both.call("call_tool", "t")
    assert both.end(later).error.code == ErrorCode.INTERNAL_ERROR


def test_needs_input_crosses_too() -> None:
    app = make_app()

    @app.tool()
    def plain(ctx: Context) -> Any:
        if not ctx.answers:
            return NeedsInput({"who": Elicit("who?", SCHEMA)}, state={"n": 1})
        return f"{ctx.answers['who'].action} {ctx.state}"

    for pair in PAIRS:
        both = Chain(*pair, app)
        assert text_of(both.end(both.call("call_tool", "plain"))) == "accept {'n': 1}"


def test_headers_are_compared_with_the_schemas_that_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sansmcp.bridge.MAX_SCHEMAS", 2)
    both = chain(MODERN, OLD)
    app = both.bridge.app()
    assert app.input_schema("echo") is None
    both.end(both.call("list_tools"))
    schema = app.input_schema("busy")
    assert schema is not None
    assert schema["type"] == "object"
    assert app.input_schema("echo") is None, "the oldest"
    both.far.notify_changed(ListKind.TOOLS, now=0.0)
    both.pump()
    assert app.input_schema("busy") is None


def test_what_nobody_takes_note_of_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sansmcp.bridge.MAX_UNTOLD", 3)
    both = chain(OLD, MODERN)
    for _ in range(5):
        both.near.roots_changed(now=0.0)
    both.pump()
    assert both.lost() == ["roots-changed"] * 3


def test_every_name_of_what_is_lost_has_a_text() -> None:
    assert all(text.endswith(".") for text in UNTRANSLATABLE.values())
    assert NotTranslated("identity", "x").name in UNTRANSLATABLE


def test_a_state_of_somebody_else_is_none() -> None:
    both = chain(MODERN, OLD)
    both.call("call_tool", "three", auto_rounds=False)
    (state, work) = next(iter(both.bridge._parked.items()))
    again = {"requestState": state, "inputResponses": {}}
    other = both.call("request", "prompts/get", {"name": "greet", **again})
    assert both.end_without_answers(other).error.code == ErrorCode.INVALID_PARAMS
    work.identity = Principal(issuer="https://as.example", subject="somebody").identity
    same = both.call("request", "tools/call", {"name": "three", **again})
    assert both.end_without_answers(same).error.code == ErrorCode.INVALID_PARAMS
    assert both.bridge.stats()["parked"] == 1
