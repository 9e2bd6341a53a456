"""Both ends of HTTP, exchange by exchange: our client and our server, under one clock."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    LEGACY_REVISIONS,
    App,
    EraDecided,
    InputRequired,
    Legacy,
    ListChanged,
    ListKind,
    LogReceived,
    ProgressReported,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResultReady,
    Revision,
    SessionEnded,
    SessionStarted,
    ToolExcluded,
)
from sansmcp.http.client import HttpClient
from sansmcp.http.exchange import (
    AbortExchange,
    EndResponse,
    HttpRequest,
    SendBody,
    StartExchange,
    StartResponse,
)
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.recovery import EVERY_TOOL, Recovery
from sansmcp.http.server import HttpServer
from sansmcp.inline import InlineHandlers
from sansmcp.types.convert import structure
from sansmcp.types.lifecycle import ClientCapabilities

from .http_client_support import CUTS, LEGACY, MODERN, TEXT, Link
from .http_support import make_engine
from .questions_support import ANSWERS, EVERYTHING, FORMS, KEY, SUMMARY, asking_app

URL = "http://localhost:3000/mcp"
SAMPLING = structure({"sampling": {}}, ClientCapabilities, LEGACY_REVISIONS[-1])
VERSIONS = [MODERN, *(revision.value for revision in LEGACY_REVISIONS)]


class Pair:
    """A client and a server; what either said; and the exchanges between them."""

    def __init__(
        self,
        version: str = MODERN,
        *,
        app: App | None = None,
        cut: int | None = None,
        server: Any = None,
        url: str = URL,
        **client: Any,
    ) -> None:
        if version != MODERN:
            client.setdefault("mode", Legacy((*(r for r in LEGACY_REVISIONS if r == version),)))
        self.link = Link(url=url, cut=cut, **client)
        self.client: HttpClient = self.link.client
        options = dict(server or {})
        if app is not None:
            options.setdefault("input_schema", app.input_schema)
        make = make_engine if app is None else app.engine
        self.server = HttpServer(make, now=0.0, entropy=self._entropy, **options)
        self.handlers = None if app is None else InlineHandlers(app, self.server)
        self.heard: list[Any] = []
        self.requests: list[HttpRequest] = []
        self.open: set[int] = set()
        self._drawn = 0

    def _entropy(self, size: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(size, "big")

    @property
    def now(self) -> float:
        return self.link.now

    # the wire ------------------------------------------------------------------------------------

    def pump(self) -> Pair:
        """Carry whatever there is to carry."""
        moved = True
        while moved:
            moved = False
            while (op := self.client.next_op()) is not None:
                moved = True
                self._to_server(op)
            while (answer := self.server.next_op()) is not None:
                moved = True
                self._to_client(answer)
            while (event := self.client.next_event()) is not None:
                self.link.said.append(event)
            while (said := self.server.next_event()) is not None:
                moved = True
                self.heard.append(said)
                self._serve(said)
        return self

    def _to_server(self, op: StartExchange | AbortExchange) -> None:
        match op:
            case StartExchange(exchange, request):
                self.open.add(exchange)
                self.requests.append(request)
                headers = [("host", self.client.url.authority), *request.headers]
                carried = HttpRequest(request.method, request.target, headers, request.body)
                self.server.request_received(exchange, carried, self.now)
            case AbortExchange(exchange):
                self.open.discard(exchange)
                self.server.exchange_closed(exchange, self.now)

    def _to_client(self, op: StartResponse | SendBody | EndResponse) -> None:
        match op:
            case StartResponse():
                self.client.response_started(op.exchange, op.status, op.headers, self.now)
            case SendBody(exchange, data):
                size = self.link.cut or len(data)
                for at in range(0, len(data), size):
                    self.client.response_data(exchange, data[at : at + size], self.now)
            case EndResponse(exchange):
                self.open.discard(exchange)
                self.client.response_ended(exchange, self.now)

    def cut_off(self) -> Pair:
        """Every connection breaks."""
        for exchange in sorted(self.open):
            self.server.exchange_closed(exchange, self.now)
            self.client.exchange_failed(exchange, "connection reset", self.now)
        self.open.clear()
        return self.pump()

    def advance(self, seconds: float) -> Pair:
        end = self.now + seconds
        for _ in range(10_000):
            times = [t for t in (self.client.next_timeout(), self.server.next_timeout()) if t is not None]
            if not times or min(times) > end:
                break
            self.link.now = max(self.now, min(times))
            self.client.handle_timeout(self.now)
            self.server.handle_timeout(self.now)
            self.pump()
        else:
            raise AssertionError("deadlines without end")
        self.link.now = end
        self.client.handle_timeout(end)
        self.server.handle_timeout(end)
        return self.pump()

    # the server's application --------------------------------------------------------------------

    def _serve(self, event: Any) -> None:
        if self.handlers is not None:
            self.handlers.handle(event, now=self.now)

    @property
    def asked(self) -> Any:
        """The request that the server got last."""
        return [e for e in self.heard if isinstance(e, RequestReceived)][-1].request

    def respond(self, result: Any = None, request: Any = None) -> Pair:
        self.server.respond(request or self.asked, TEXT if result is None else result, now=self.now)
        return self.pump()

    def start(self) -> Pair:
        self.client.start(self.now)
        return self.pump()

    def call(self, name: str = "echo", **arguments: Any) -> Any:
        call = self.link.engine.call_tool(name, arguments, now=self.now, progress=True)
        self.pump()
        return call

    def posted(self, method: str) -> list[dict[str, str]]:
        """The headers of every POST of one method."""
        mark = f'"method":"{method}"'.encode()
        return [dict(r.headers) for r in self.requests if mark in r.body.replace(b": ", b":")]


@pytest.fixture(params=VERSIONS)
def version(request: pytest.FixtureRequest) -> Any:
    return request.param


def sessions_of(pair: Pair) -> list[Any]:
    """The legacy sessions that the server has now."""
    return list(pair.server.sessions)


@pytest.mark.req("R2", "A1", "A15", "P1")
@pytest.mark.parametrize("cut", CUTS)
def test_a_tool_is_called_in_every_revision(version: str, cut: Any) -> None:
    pair = Pair(version, cut=cut).start()
    decided = pair.link.one(EraDecided)
    assert decided.revision == version
    call = pair.call(text="hi")
    pair.respond()
    assert pair.link.one(ResultReady).call is call
    sessions = {h.get("mcp-session-id") for h in pair.posted("tools/call")}
    assert (None in sessions) == (version == MODERN)
    pair.client.close(0.0)
    pair.pump()
    assert pair.client.finished
    assert not sessions_of(pair)


@pytest.mark.req("A1", "A4")
def test_a_client_of_all_revisions_falls_back_to_an_older_server() -> None:
    pair = Pair(mode=None, server={"revisions": LEGACY_REVISIONS}).start()
    assert pair.link.one(EraDecided).revision == LEGACY
    pair.call()
    pair.respond()
    pair.link.one(ResultReady)


@pytest.mark.req("R1", "J1")
@pytest.mark.parametrize("cut", CUTS)
def test_progress_comes_before_the_answer(version: str, cut: Any) -> None:
    pair = Pair(version, cut=cut).start()
    pair.call()
    for step in (1, 2, 3):
        pair.server.report_progress(pair.asked, step, 3, now=0.0)
        pair.pump()
    pair.respond()
    assert [e.progress for e in pair.link.of(ProgressReported)] == [1, 2, 3]
    pair.link.one(ResultReady)
    pair.advance(10.0)
    assert not pair.link.of(RequestFailed)


@pytest.mark.req("K1", "K2", "K5")
@pytest.mark.case("H-12")
def test_a_cancel_reaches_the_server(version: str) -> None:
    pair = Pair(version).start()
    call = pair.call()
    pair.link.engine.cancel(call, now=0.0)
    pair.pump()
    cancelled = [e for e in pair.heard if isinstance(e, RequestCancelled)]
    assert [e.request for e in cancelled] == [pair.asked]
    assert bool(pair.posted("notifications/cancelled")) == (version != MODERN)
    assert not pair.server.respond(pair.asked, TEXT, now=0.0)
    pair.pump()
    assert not pair.link.of(ResultReady)


@pytest.mark.req("R8")
@pytest.mark.case("E-07")
def test_a_long_call_lives_by_comments_but_not_beyond_its_timeout(version: str) -> None:
    pair = Pair(version).start()
    pair.call()
    pair.advance(59.0)
    assert not pair.link.of(RequestFailed)
    pair.advance(1.0)
    pair.link.one(RequestFailed)
    assert any(isinstance(e, RequestCancelled) for e in pair.heard)


@pytest.mark.req("P3", "P4")
@pytest.mark.case("E-08")
def test_a_call_survives_broken_connections_in_a_session() -> None:
    pair = Pair(LEGACY).start()
    call = pair.call()
    pair.server.report_progress(pair.asked, 1, now=0.0)
    pair.pump().cut_off()
    assert not pair.link.of(RequestFailed)
    pair.server.report_progress(pair.asked, 2, now=0.0)
    pair.advance(1.0)
    assert [e.progress for e in pair.link.of(ProgressReported)] == [1, 2]
    pair.cut_off()
    pair.respond()
    pair.advance(2.0)
    assert pair.link.one(ResultReady).call is call


@pytest.mark.req("R9")
def test_a_modern_call_does_not_survive_them() -> None:
    pair = Pair().start()
    pair.call()
    pair.server.report_progress(pair.asked, 1, now=0.0)
    pair.pump().cut_off()
    failed: Any = pair.link.one(RequestFailed).error
    assert failed.retryable
    assert any(isinstance(e, RequestCancelled) for e in pair.heard)


@pytest.mark.req("P3", "P11")
def test_a_server_that_hangs_up_is_asked_again_when_it_wants() -> None:
    pair = Pair(LEGACY, server={"sessions": SessionPolicy(reconnect_after=3.0)}).start()
    pair.call()
    assert pair.server.hang_up(pair.asked, now=0.0)
    pair.pump()
    pair.respond()
    pair.advance(2.9)
    assert not pair.link.of(ResultReady)
    pair.advance(0.1)
    pair.link.one(ResultReady)


@pytest.mark.req("P2", "P10")
@pytest.mark.case("L-01")
def test_a_session_that_the_server_ended_is_opened_anew() -> None:
    policy = SessionPolicy(idle_timeout=100.0)
    recovery = Recovery(tools=EVERY_TOOL)
    pair = Pair(LEGACY, server={"sessions": policy}, http={"recovery": recovery, "listen": False}).start()
    (first,) = sessions_of(pair)
    pair.advance(200.0)
    assert not sessions_of(pair)
    call = pair.call()
    pair.respond()
    assert pair.link.one(ResultReady).call is call
    assert len(sessions_of(pair)) == 1
    assert len(pair.link.of(SessionStarted)) == 2
    assert first not in sessions_of(pair)


@pytest.mark.req("P6")
def test_a_close_ends_the_session_at_the_server() -> None:
    pair = Pair(LEGACY).start()
    assert len(sessions_of(pair)) == 1
    pair.call()
    pair.client.close(0.0)
    pair.pump()
    assert not sessions_of(pair)
    assert pair.link.one(SessionEnded).error is None
    assert pair.client.finished


@pytest.mark.req("G1", "P5")
@pytest.mark.parametrize("related", [True, False])
def test_a_legacy_server_asks_its_client(related: bool) -> None:
    pair = Pair(LEGACY, capabilities=SAMPLING).start()
    pair.call()
    first = pair.asked
    (session,) = pair.server.sessions
    where: dict[str, Any] = {"related": first} if related else {"session": session}
    pair.server.request("sampling/createMessage", {"messages": [], "maxTokens": 1}, now=0.0, **where)
    pair.pump()
    asked = pair.link.one(InputRequired)
    answer = {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"}
    pair.link.engine.provide_input(asked.round, dict.fromkeys(asked.requests, answer), now=0.0)
    pair.pump()
    assert [e.raw["model"] for e in pair.heard if isinstance(e, ResultReady)] == ["m"]
    pair.respond(request=first)
    pair.link.one(ResultReady)


@pytest.mark.req("E12", "E14", "E15", "F1", "G1", "H1")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", [v for v in VERSIONS if v >= "2025-06-18"])
def test_one_handler_asks_clients_of_both_eras(version: str, form: str, cut: int | None) -> None:
    declared = structure(EVERYTHING, ClientCapabilities, Revision.V2026_07_28)
    app = asking_app(state_keys=[KEY])
    pair = Pair(version, app=app, cut=cut, capabilities=declared).start()
    call = pair.call(form)
    answered: list[Any] = []
    while fresh := [e for e in pair.link.of(InputRequired) if e.round not in answered]:
        for event in fresh:
            answered.append(event.round)
            answers = {key: ANSWERS[question.method] for key, question in event.requests.items()}
            pair.link.engine.provide_input(event.round, answers, now=pair.now)
        pair.pump()
    (ready,) = [e for e in pair.link.of(ResultReady) if e.call is call]
    assert ready.raw["content"] == [{"type": "text", "text": SUMMARY}]
    assert pair.handlers is not None
    assert pair.handlers.stats() == {"waiting_handlers": 0}


@pytest.mark.req("P5", "O8", "I1")
def test_what_belongs_to_no_request_comes_on_the_servers_own_stream() -> None:
    pair = Pair(LEGACY).start()
    assert pair.server.notify_changed(ListKind.TOOLS, now=0.0)
    pair.server.log("warning", "hot", now=0.0)
    pair.pump()
    pair.link.one(ListChanged)
    pair.link.one(LogReceived)
    pair.cut_off()
    pair.server.notify_changed(ListKind.RESOURCES, now=0.0)
    pair.advance(1.0)
    assert [e.kind for e in pair.link.of(ListChanged)] == [ListKind.TOOLS, ListKind.RESOURCES]


@pytest.mark.req("C4", "C7", "C8", "C5")
@pytest.mark.case("P-06")
def test_arguments_that_the_server_compares_are_mirrored_after_one_refusal() -> None:
    app = App("demo", "1.0")
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {"region": {"type": "string", "x-mcp-header": "Region"}, "n": {"type": "integer"}},
    }

    @app.tool(input_schema=schema)
    def sql(region: str, n: int = 0) -> str:
        return f"{region} {n}"

    bad: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "object", "x-mcp-header": "X"}}}

    pair = Pair(app=app).start()
    call = pair.call("sql", region="Hello, 世界", n=3)
    ready = pair.link.one(ResultReady)
    assert ready.call is call
    assert ready.raw["content"][0]["text"] == "Hello, 世界 3"
    first, again = pair.posted("tools/call")
    assert "mcp-param-region" not in first
    assert again["mcp-param-region"].startswith("=?base64?")
    assert len(pair.posted("tools/list")) == 1
    pair.call("sql", region="plain")
    assert len(pair.link.of(ResultReady)) == 2
    assert pair.posted("tools/call")[-1]["mcp-param-region"] == "plain"

    app.tool("bad", input_schema=bad)(lambda x: "")
    pair.link.engine.list_all_tools(now=0.0)
    pair.pump()
    assert [t["name"] for t in pair.link.of(ResultReady)[-1].raw["tools"]] == ["sql"]
    assert pair.link.one(ToolExcluded).name == "bad"


@pytest.mark.req("R4", "U6")
@pytest.mark.case("H-05", "H-06")
def test_errors_keep_their_status(version: str) -> None:
    pair = Pair(version, check_capabilities=False).start()
    pair.link.engine.request("no/such", now=0.0)
    pair.pump()
    error: Any = pair.link.one(RequestFailed).error
    assert error.code == -32601
    assert error.http_status == (404 if version == MODERN else None)
    assert pair.link.engine.state.name == "READY"


@pytest.mark.req("AA12")
def test_a_thousand_calls_leave_nothing_behind(version: str) -> None:
    pair = Pair(version, http={"listen": False}).start()
    for number in range(1000):
        call = pair.call()
        if number % 3 == 0:
            pair.respond()
        elif number % 3 == 1:
            pair.link.engine.cancel(call, now=0.0)
            pair.pump()
        else:
            # A legacy server goes on for a client that may come back.
            pair.cut_off()
            pair.respond()
    assert len(pair.link.of(ResultReady)) == 334
    assert len(pair.link.of(RequestFailed)) == 666
    pair.advance(10.0)
    assert pair.link.quiet(), pair.client.stats()
    assert not pair.open
