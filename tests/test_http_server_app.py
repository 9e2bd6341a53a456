"""The server of Streamable HTTP: many clients at once, and the application behind it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from sansmcp import (
    App,
    Context,
    LimitHit,
    Limits,
    ListKind,
    LocalProtocolError,
    McpError,
    RequestCancelled,
    RequestReceived,
    SessionEnded,
    ToolError,
)
from sansmcp.http.exchange import HttpRequest

from .http_support import (
    LEVEL,
    MODERN_LIST,
    PROGRESS,
    Client,
    Http,
    Reply,
    call,
    make_engine,
    note,
    reads,
)
from .support import MODERN

# many clients -----------------------------------------------------------------------------------


@pytest.mark.req("W11")
@pytest.mark.case("J-11")
def test_equal_ids_of_different_clients_do_not_meet() -> None:
    http = Http()
    replies = [http.ask("tools/call", {"name": f"t{n}"}, id=1) for n in range(5)]
    requests = [event.request for event in http.of(RequestReceived)]
    assert [r.params["name"] for r in requests] == [f"t{n}" for n in range(5)]
    for n in (3, 0, 4, 1, 2):
        http.answer({"content": [], "structuredContent": {"n": n}}, requests[n])
    assert [r.json["result"]["structuredContent"] for r in replies] == [{"n": n} for n in range(5)]
    assert {r.json["id"] for r in replies} == {1}


@pytest.mark.req("W11")
@pytest.mark.case("M-06")
def test_no_request_leaves_a_trace_in_another() -> None:
    """Whatever the order, each gets the same response."""

    def ask(http: Http, kind: str) -> Reply:
        match kind:
            case "discover":
                return http.ask("server/discover")
            case "bad":
                return http.ask("tools/list", mcp_method="x")
            case "garbage":
                return http.post(b"[")
            case "leaves":
                reply = http.ask("tools/list")
                http.leave(reply)
                return reply
            case _:
                reply = http.ask("tools/list", {"_meta": {LEVEL: "debug"} if kind == "logs" else {}})
                http.server.log("info", "x", now=0.0, request=http.request)
                http.answer({"tools": []})
                return reply

    kinds = ("discover", "bad", "garbage", "leaves", "logs", "quiet")
    alone = {kind: vars_of(ask(Http(), kind)) for kind in kinds}
    for order in itertools.permutations(kinds):
        http = Http()
        assert {kind: vars_of(ask(http, kind)) for kind in order} == {kind: alone[kind] for kind in order}


def vars_of(reply: Reply) -> tuple[Any, ...]:
    return reply.status, reply.headers, reply.body, reply.ended


@pytest.mark.req("P1")
def test_sessions_and_event_ids_mean_nothing_to_modern_requests() -> None:
    http = Http()
    client = Client(http)
    for session in (client.session, "unknown", "\x01"):
        reply = http.ask("tools/list", mcp_session_id=session, last_event_id="0-0")
        assert http.server.session_of(http.request) is None
        http.answer({"tools": []})
        assert reply.json["result"]["resultType"] == "complete"
        assert "mcp-session-id" not in reply.headers
    missing = http.post(call("server/discover"), mcp_protocol_version=MODERN, mcp_session_id=client.session)
    assert (missing.status, missing.code) == (400, -32602)


@pytest.mark.req("AA12")
def test_open_responses_are_bounded() -> None:
    http = Http(max_exchanges=3)
    client = Client(http)
    replies = [http.ask("tools/list"), client.call(id=1), client.get()]
    assert reads(http), "there may be a cancel among what comes"
    for refused in (http.ask("server/discover"), client.call("ping", id=2), client.get(last_event_id="0-9")):
        assert refused.status in (400, 503)
    assert {e.limit for e in http.of(LimitHit)} == {"max_exchanges"}
    assert len(http.of(LimitHit)) == 2
    again = client.get()
    assert (again.status, replies[2].ended) == (200, True), "it takes the place of another"
    assert client.post(note("notifications/cancelled", {"requestId": 1})).status == 202
    assert replies[1].ended
    assert http.ask("server/discover").status == 200
    assert client.delete().status == 204


def test_unread_events_stop_the_reading() -> None:
    http = Http(limits=Limits(max_buffered_events=2))
    for n in range(2):
        assert reads(http)
        request = HttpRequest("POST", "/other", [("host", "localhost")])
        http.server.request_received(n, request, 0.0)
    assert not reads(http)
    while http.server.next_event():
        pass
    assert reads(http)


@pytest.mark.case("R-06")
def test_nothing_is_left_of_requests_that_are_over() -> None:
    http = Http(response_timeout=1000.0)
    for n in range(300):
        reply = http.ask("tools/list", PROGRESS, id=n)
        if n % 3 == 0:
            http.progress(1)
        if n % 5 == 0:
            http.leave(reply)
        else:
            http.answer()
    left = {name: size for name, size in http.server.stats().items() if size}
    assert not left
    assert http.server.next_timeout() is None


# the application's side -------------------------------------------------------------------------


def demo() -> App:
    app = App("demo", logging=True)

    @app.tool()
    def echo(text: str, ctx: Context) -> str:
        ctx.progress(1, 2)
        ctx.log("error", {"said": text})
        if text == "fail":
            raise ToolError("no")
        return text

    return app


@pytest.mark.req("W3")
@pytest.mark.parametrize("legacy", [False, True])
def test_an_app_answers_through_the_server(legacy: bool) -> None:
    app = demo()
    http = Http(app, input_schema=app.input_schema)
    params = {"name": "echo", "arguments": {"text": "hi"}}
    asked = {**params, "_meta": {**PROGRESS["_meta"], LEVEL: "info"}}
    if legacy:
        reply = Client(http).call("tools/call", {**params, **PROGRESS})
    else:
        reply = http.ask("tools/call", asked)
    request = http.request
    context = Context(request, http.server, lambda action: action(http.now))
    invocation = app.begin(http.server, request, context, now=0.0)
    assert invocation is not None
    value = invocation.function(*invocation.arguments, **invocation.keywords)
    invocation.finish(value, now=0.0)
    http.drain()
    methods = [m.get("method") for m in reply.messages]
    assert methods == ["notifications/progress", "notifications/message", None]
    assert reply.messages[-1]["result"]["content"] == [{"type": "text", "text": "hi"}]
    assert reply.ended


@pytest.mark.req("P11")
@pytest.mark.parametrize("legacy", [False, True])
def test_a_handler_can_let_its_client_come_back(legacy: bool) -> None:
    http = Http()
    reply = Client(http).call("tools/list") if legacy else http.ask("tools/list")
    Context(http.request, http.server, lambda action: action(http.now)).hang_up()
    http.drain()
    assert reply.ended == legacy
    http.answer()
    assert reply.ended


def test_lists_of_an_app_need_no_handler() -> None:
    app = demo()
    http = Http(app)
    reply = http.ask("tools/list")
    context = Context(http.request, http.server, lambda action: action(0.0))
    assert app.begin(http.server, http.request, context, now=0.0) is None
    http.drain()
    assert [t["name"] for t in reply.json["result"]["tools"]] == ["echo"]


def test_an_exchange_shows_its_headers_to_the_application_and_to_nobody_else() -> None:
    http = Http()
    http.ask("tools/list", authorization="Bearer s3cret")
    origin: Any = http.request.origin
    assert origin.fields["authorization"] == "Bearer s3cret"
    assert origin.id == 1
    for thing in (origin, http.request, http.said):
        assert "s3cret" not in repr(thing)


def test_mistakes_of_the_application_are_raised_and_change_nothing() -> None:
    http = Http()
    reply = http.ask("tools/list")
    request = http.request
    stranger = make_engine(
        now=0.0,
        limits=http.server.limits,
        codec=None,
        check=None,
    )
    stranger.receive_message(MODERN_LIST, now=0.0)
    foreign = next(e.request for e in stranger.events() if isinstance(e, RequestReceived))
    with pytest.raises(LocalProtocolError, match="no exchange of this server"):
        http.server.respond(foreign, {}, now=0.0)
    with pytest.raises(LocalProtocolError):
        http.server.respond(request, {"x": float("nan")}, now=0.0)
    with pytest.raises(LocalProtocolError):
        http.server.respond_error(request, McpError(-32000, "x"), now=0.0)
    with pytest.raises(LocalProtocolError, match="level"):
        http.server.log("loud", "x", now=0.0)
    with pytest.raises(LocalProtocolError, match="open already"):
        http.server.request_received(reply.id, HttpRequest("POST", "/mcp", []), 0.0)
    with pytest.raises(LocalProtocolError, match="legacy session"):
        http.server.request("roots/list", now=0.0, related=request)
    with pytest.raises(LocalProtocolError, match="legacy session"):
        http.server.request("roots/list", now=0.0)
    http.drain()
    assert reply.waits
    http.answer()
    assert reply.status == 200
    with pytest.raises(LocalProtocolError, match="answered already"):
        http.server.respond(request, {}, now=0.0)
    assert http.server.hang_up(request, now=0.0) is False


@pytest.mark.req("W14")
@pytest.mark.case("M-07")
def test_a_modern_client_is_told_no_changes_that_it_did_not_ask_for() -> None:
    http = Http()
    reply = http.ask("tools/list")
    assert not http.server.notify_changed(ListKind.TOOLS, now=0.0)
    assert not http.server.log("error", "x", now=0.0)
    http.drain()
    assert reply.waits


@pytest.mark.parametrize("legacy", [True, False])
def test_the_end_of_the_server_ends_every_response(legacy: bool) -> None:
    http = Http(legacy=legacy)
    waiting = http.ask("tools/list", id=1)
    streaming = http.ask("tools/list", PROGRESS, id=2)
    http.progress(1)
    http.server.close(1.0)
    http.server.close(2.0)
    http.drain()
    assert (waiting.status, waiting.ended) == (503, True)
    assert (streaming.status, streaming.ended, len(streaming.messages)) == (200, True, 1)
    assert len(http.of(RequestCancelled)) == 2
    assert http.said[-1] is http.one(SessionEnded)
    assert http.one(SessionEnded).session is None
    assert http.answer() is False
    assert http.ask("server/discover").status == 503
    assert http.server.next_timeout() is None
    assert http.server.stats()["exchanges"] == 0
