"""The ASGI application, spoken to by hand on asyncio and on trio: a carrier that only the test moves."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from starlette.middleware.cors import CORSMiddleware

import sansmcp_asgi
from sansmcp import (
    App,
    Context,
    Event,
    LimitHit,
    ListKind,
    LocalProtocolError,
    RequestCancelled,
    RequestReceived,
)
from sansmcp.http.gateway import GatewayPolicy
from sansmcp.http.guard import ANY, GuardPolicy
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.limits import Limits

from ..http_support import INITIALIZED, call, initialize
from .asgi_support import BACKENDS, LEFT, Script, headers_for, make_app, on_both, pieces, scope_for, soon
from .test_serve_http import message, text_of, tool

Main = Callable[[], Awaitable[None]]
both = pytest.mark.parametrize("backend", BACKENDS)


def application(**options: Any) -> sansmcp_asgi.AsgiApp:
    return sansmcp_asgi.asgi_app(make_app(), **options)


async def ask(app: Any, body: Any, size: int | None = None, **scope: Any) -> Script:
    """One request and its whole response."""
    script = Script(*pieces(json.dumps(body).encode(), size))
    await app(scope_for(body, **scope), script.receive, script.send)
    assert script.complete
    return script


def left(app: sansmcp_asgi.AsgiApp) -> dict[str, int]:
    (gateway,) = app.gateways
    kept = ("read_schemas", "sessions", "session_timers")
    return {name: size for name, size in gateway.stats().items() if size and name not in kept}


# requests ----------------------------------------------------------------------------------------


@both
@pytest.mark.req("R11")
@pytest.mark.parametrize("size", [None, 1, 50])
def test_a_request_in_pieces(backend: str, size: int | None) -> None:
    async def main() -> None:
        app = application()
        script = await ask(app, tool("add", {"a": 2, "b": 40}), size)
        assert (script.status, text_of(script.json)) == (200, "42")
        assert script.headers == {"content-type": "application/json", "content-length": str(len(script.body))}
        assert [m["type"] for m in script.sent] == ["http.response.start", "http.response.body"]
        script = await ask(app, message("no/such"))
        assert (script.status, script.json["error"]["code"]) == (404, -32601)
        assert left(app) == {}

    on_both(main, backend)


@both
def test_an_event_stream_begins_before_its_first_event_is_taken(backend: str) -> None:
    async def main() -> None:
        app = application()
        script = await ask(app, tool("count", {"upto": 3}, token="t"))
        assert script.headers["content-type"] == "text/event-stream"
        assert "content-length" not in script.headers
        assert [m.get("params", {}).get("progress") for m in script.messages_told] == [1, 2, 3, None]
        assert left(app) == {}

    on_both(main, backend)


@both
def test_a_session(backend: str) -> None:
    async def main() -> None:
        app = application(keep_alive=0.05)
        script = await ask(app, initialize())
        named = session_of(script)
        assert (await ask(app, INITIALIZED, **named)).status == 202
        listening = Script(*pieces(b""))
        async with anyio.create_task_group() as group:
            group.start_soon(app, scope_for(method="GET", **named), listening.receive, listening.send)
            await soon(lambda: listening.sent, "the stream")
            await soon(lambda: b":" in listening.body, "a sign of life")
            asked = call("tools/call", {"name": "change", "arguments": {}})
            assert text_of((await ask(app, asked, **named)).json) == "changed"
            await soon(lambda: listening.messages_told, "the change")
            assert listening.messages_told[0]["method"] == "notifications/tools/list_changed"
            ended = Script(*pieces(b""))
            await app(scope_for(method="DELETE", **named), ended.receive, ended.send)
            assert ended.status in (200, 202, 204)
        assert listening.complete
        assert (await ask(app, call(), **named)).status == 404

    on_both(main, backend)


@both
def test_equal_ids_of_two_clients_are_two_requests(backend: str) -> None:
    async def main() -> None:
        app, found = application(), {}

        async def client(number: int) -> None:
            script = await ask(app, tool("late", {"text": str(number), "seconds": 0.02}, id=1))
            found[number] = text_of(script.json)

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(client, number)
        assert found == {number: str(number) for number in range(20)}

    on_both(main, backend)


@both
@pytest.mark.parametrize("threads", [0, 2])
def test_functions_run_in_threads_or_in_the_loop(backend: str, threads: int) -> None:
    async def main() -> None:
        app = application(threads=threads)
        async with app.lifespan():
            found = text_of((await ask(app, tool("where"))).json)
        assert (found == "sansmcp handler") is bool(threads)

    before = threading.active_count()
    on_both(main, backend)
    assert threading.active_count() <= before + 1  # one of anyio's


# the scope ---------------------------------------------------------------------------------------

PLACES: dict[str, tuple[str | None, str, str, int]] = {
    "alone": ("/mcp", "/mcp", "", 200),
    "with a slash": ("/mcp", "/mcp/", "", 200),
    "another": ("/mcp", "/mcpx", "", 404),
    "below": ("/mcp", "/mcp/x", "", 404),
    "mounted, whole path": ("/mcp", "/api/mcp", "/api", 200),
    "mounted, rest of the path": ("/mcp", "/mcp", "/api", 200),
    "mounted there": ("/mcp", "/mcp/", "/mcp", 200),
    "mounted there, rest of the path": ("/mcp", "/", "/mcp", 200),
    "mounted there, nothing left": ("/mcp", "", "/mcp", 200),
    "mounted elsewhere": ("/mcp", "/api/", "/api", 404),
    "a root that is none": ("/mcp", "/mcp", "/mc", 200),
    "everywhere": (None, "/what/ever", "", 200),
    "everywhere, mounted": (None, "/api/", "/api", 200),
    "with blanks": ("/mcp", "/m cp?", "", 404),
    "at the root": ("/", "/", "", 200),
    "at the root, mounted": ("/", "/api", "/api", 404),
}


@pytest.mark.parametrize(("path", "asked", "root", "status"), PLACES.values(), ids=PLACES.keys())
def test_places(path: str | None, asked: str, root: str, status: int) -> None:
    async def main() -> None:
        app = application(path=path)
        script = await ask(
            app, tool("add", {"a": 1, "b": 2}), path=asked, root_path=root, query_string=b"a=b"
        )
        assert script.status == status

    on_both(main, "asyncio")


SCOPES: dict[str, tuple[dict[str, Any], dict[str, Any], int]] = {
    "as it should be": ({}, {}, 200),
    "a foreign host": ({"h_host": "evil.example"}, {}, 421),
    "a host that is served": (
        {"h_host": "mcp.example"},
        {"policy": GuardPolicy(hosts=["mcp.example"])},
        200,
    ),
    "any host": ({"h_host": "mcp.example"}, {"policy": GuardPolicy(hosts=ANY)}, 200),
    "a foreign page": ({"h_origin": "https://evil.example"}, {}, 403),
    "no host": ({"h_host": None}, {}, 400),
    "another method": ({"method": "PUT"}, {}, 405),
    "no JSON": ({"h_content_type": "text/plain"}, {}, 415),
    "names in capitals": ({"headers": None}, {}, 200),
    "HTTP/2": ({"http_version": "2"}, {}, 200),
    "as little as ASGI asks for": ({"root_path": None, "query_string": None, "http_version": None}, {}, 200),
}


@pytest.mark.req("R6")
@pytest.mark.parametrize(("scope", "options", "status"), SCOPES.values(), ids=SCOPES.keys())
def test_scopes(scope: dict[str, Any], options: dict[str, Any], status: int) -> None:
    async def main() -> None:
        body = tool("add", {"a": 1, "b": 2})
        app, script = application(**options), Script(*pieces(json.dumps(body).encode()))
        given = scope_for(body, **scope)
        if given["headers"] is None:
            given["headers"] = [(n.upper(), v) for n, v in scope_for(body)["headers"]]
        given = {name: value for name, value in given.items() if value is not None}
        await app(given, script.receive, script.send)
        assert script.status == status
        assert all(name == name.lower() for name in script.headers)

    on_both(main, "asyncio")


@pytest.mark.req("R6")
@pytest.mark.parametrize(
    ("page", "allowed"), [("https://example.com", True), ("https://evil.example", False)]
)
def test_a_page_is_let_in_by_a_middleware(page: str, allowed: bool) -> None:
    """As the guide has it."""

    async def main() -> None:
        app = CORSMiddleware(
            application(policy=GuardPolicy(hosts=["localhost"], origins=["https://example.com"])),
            allow_origins=["https://example.com"],
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["*"],
            expose_headers=["Mcp-Session-Id", "WWW-Authenticate"],
        )
        asked = {"access-control-request-method": "POST", "origin": page, "host": "localhost"}
        asked["access-control-request-headers"] = "content-type,mcp-method,mcp-param-region"
        script = Script(*pieces(b""))
        headers = [(name.encode(), value.encode()) for name, value in asked.items()]
        await app({**scope_for(method="OPTIONS"), "headers": headers}, script.receive, script.send)
        assert script.status == (200 if allowed else 400)
        assert (script.headers.get("access-control-allow-origin") == page) is allowed
        script = await ask(app, initialize("2025-11-25"), h_origin=page, h_host="localhost")
        assert script.status == (200 if allowed else 403)
        assert (script.headers.get("access-control-allow-origin") == page) is allowed
        assert not allowed or "Mcp-Session-Id" in script.headers["access-control-expose-headers"]

    on_both(main, "asyncio")


def test_the_oldest_transport_below_a_prefix() -> None:
    async def main() -> None:
        app = application(old_sse=OldSsePaths("/api/sse", "/api/messages"))
        listening, mounted = Script(*pieces(b"")), {"root_path": "/api"}
        async with anyio.create_task_group() as group:
            scope = scope_for(method="GET", path="/api/sse", **mounted)
            group.start_soon(app, scope, listening.receive, listening.send)
            await soon(lambda: b"data: /api/messages?" in listening.body, "the address")
            query = listening.body.partition(b"?")[2].split()[0]
            where: dict[str, Any] = {"path": "/api/messages", "query_string": query, **mounted}
            assert (await ask(app, initialize("2024-11-05"), **where)).status == 202
            await soon(lambda: listening.messages_told, "the answer")
            assert listening.messages_told[0]["result"]["protocolVersion"] == "2024-11-05"
            listening.leave()

    on_both(main, "asyncio")


@pytest.mark.parametrize("refuses_in_http", [False, True])
def test_websockets_are_refused(refuses_in_http: bool) -> None:
    async def main() -> None:
        script = Script({"type": "websocket.connect"})
        extensions: Any = {"websocket.http.response": {}} if refuses_in_http else None
        scope = {"type": "websocket", "path": "/mcp", "extensions": extensions}
        await application()(scope, script.receive, script.send)
        if refuses_in_http:
            assert script.status == 404
        else:
            assert script.sent == [{"type": "websocket.close", "code": 1008}]
        with pytest.raises(ValueError, match="smoke"):
            await application()({"type": "smoke"}, script.receive, script.send)

    on_both(main, "asyncio")


# bounds ------------------------------------------------------------------------------------------


@both
@pytest.mark.req("R7")
@pytest.mark.parametrize("told", [True, False])
def test_a_body_that_is_too_large_is_not_read_to_its_end(backend: str, told: bool) -> None:
    async def main() -> None:
        app = application(limits=Limits(max_body=10_000))
        script = Script(*pieces(b"x" * 1_000_000, 1000))
        fields = {"h_content_length": "1000000"} if told else {}
        await app(scope_for(call(), **fields), script.receive, script.send)
        assert (script.status, script.headers["connection"]) == (413, "close")
        assert script.received <= (1 if told else 12)
        assert left(app) == {}

    on_both(main, backend)


@both
def test_a_body_that_does_not_end(backend: str) -> None:
    async def main() -> None:
        app = application(carriage=GatewayPolicy(body_timeout=0.05))
        script = Script({"type": "http.request", "body": b"{", "more_body": True})
        await app(scope_for(call()), script.receive, script.send)
        assert script.status == 408
        assert left(app) == {}

    on_both(main, backend)


@both
@pytest.mark.parametrize("bound", ["max_outgoing", "stall_timeout"])
def test_a_client_that_does_not_read(backend: str, bound: str) -> None:
    told: list[Event] = []

    async def main() -> None:
        options: dict[str, Any] = {"limits": Limits(max_outgoing=10_000)}
        if bound == "stall_timeout":
            options = {"carriage": GatewayPolicy(stall_timeout=0.1)}
        app = application(on_event=told.append, keep_alive=None, **options)
        body = tool("flood", {"pieces": 100, "size": 1000}, token="t")
        script = Script(*pieces(json.dumps(body).encode()))
        script.reads = anyio.Event()  # is never set
        await app(scope_for(body), script.receive, script.send)
        assert script.sent == []
        assert [e.limit for e in told if isinstance(e, LimitHit)] == [bound]
        assert left(app) == {}

    on_both(main, backend)


@both
def test_a_client_that_reads_slowly_gets_everything(backend: str) -> None:
    async def main() -> None:
        app = application()
        body = tool("flood", {"pieces": 50, "size": 100}, token="t")
        script = Script(*pieces(json.dumps(body).encode()))
        script.reads = anyio.Event()
        async with anyio.create_task_group() as group:
            group.start_soon(app, scope_for(body), script.receive, script.send)
            await soon(lambda: app.gateways and app.gateways[0].stats()["unsent"] > 5000, "what waits")
            assert script.sent == []
            script.reads.set()
        assert len(script.messages_told) == 51
        assert len(script.sent) < 10  # what waited was joined
        assert left(app) == {}

    on_both(main, backend)


# clients that leave ------------------------------------------------------------------------------


@both
@pytest.mark.parametrize("how", ["disconnect", "cancel", "send fails", "receive fails"])
def test_to_leave_cancels_a_modern_request(backend: str, how: str) -> None:
    told: list[Event] = []

    async def main() -> None:
        app = application(on_event=told.append, keep_alive=0.05 if how == "send fails" else None)
        body = tool("wait")
        script = Script(*pieces(json.dumps(body).encode()))

        async def fail(message: Any = None) -> Any:
            if how == "send fails":
                raise OSError("gone")
            if not script.messages:
                raise ConnectionError("gone")
            return await script.receive()

        receive = fail if how == "receive fails" else script.receive
        send = fail if how == "send fails" else script.send
        async with anyio.create_task_group() as group:
            group.start_soon(app, scope_for(body), receive, send)
            await soon(lambda: [e for e in told if isinstance(e, RequestReceived)], "the request")
            if how == "disconnect":
                script.leave()
            elif how == "cancel":
                group.cancel_scope.cancel()
        await soon(lambda: [e for e in told if isinstance(e, RequestCancelled)], "the cancel")
        assert not script.sent
        await soon(lambda: left(app) == {}, "the end")

    on_both(main, backend)


@both
def test_what_a_server_raises_is_its_own(backend: str) -> None:
    async def main() -> None:
        app, body = application(), tool("add", {"a": 1, "b": 2})
        script = Script(*pieces(json.dumps(body).encode()))

        async def send(message: Any) -> None:
            raise KeyError("a fault of the server")

        with pytest.raises(KeyError):
            await app(scope_for(body), script.receive, send)
        assert left(app) == {}

    on_both(main, backend)


@both
def test_to_leave_a_session_cancels_nothing(backend: str) -> None:
    told: list[Event] = []

    async def main() -> None:
        app = application(on_event=told.append)
        script = await ask(app, initialize())
        named = session_of(script)
        await ask(app, INITIALIZED, **named)
        asked = call("tools/call", {"name": "late", "arguments": {"text": "kept", "seconds": 0.05}})
        leaving = Script(*pieces(json.dumps(asked).encode()), LEFT)
        await app(scope_for(asked, **named), leaving.receive, leaving.send)
        (gateway,) = app.gateways
        await soon(lambda: not gateway.stats()["carried"], "the end")
        await anyio.sleep(0.1)
        assert not [e for e in told if isinstance(e, RequestCancelled)]
        assert sum(isinstance(e, RequestReceived) for e in told) == 1

    on_both(main, backend)


# questions ---------------------------------------------------------------------------------------

FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
ANSWER: dict[str, Any] = {"action": "accept", "content": {"name": "Ada"}}
ENDED: list[str] = []


def asking_app(**options: Any) -> sansmcp_asgi.AsgiApp:
    own = App("asks", "1.0")

    @own.tool()
    async def awaits(ctx: Context) -> str:
        try:
            answer = await ctx.elicit("Who?", FORM)
            assert answer.content is not None
            return f"hello {answer.content['name']}"
        finally:
            ENDED.append("awaits")

    @own.tool()
    def yields(ctx: Context) -> Any:
        try:
            answer = yield ctx.elicit("Who?", FORM)
            return f"hello {answer.content['name']}"
        finally:
            ENDED.append("yields")

    return sansmcp_asgi.asgi_app(own, **options)


def session_of(script: Script) -> dict[str, Any]:
    """The header fields of a session that `script` has begun."""
    return {
        "h_mcp_session_id": script.headers["mcp-session-id"],
        "h_mcp_protocol_version": "2025-11-25",
    }


async def asking_session(app: sansmcp_asgi.AsgiApp) -> dict[str, Any]:
    """A session of a client that answers."""
    named = session_of(await ask(app, initialize(capabilities={"elicitation": {}})))
    await ask(app, INITIALIZED, **named)
    return named


@both
@pytest.mark.parametrize("name", ["awaits", "yields"])
def test_a_handler_asks_a_modern_client(backend: str, name: str) -> None:
    async def main() -> None:
        app = asking_app()
        body = tool(name)
        body["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"] = {"elicitation": {}}
        asked = (await ask(app, body)).json["result"]
        assert asked["resultType"] == "input_required"
        ((key, question),) = asked["inputRequests"].items()
        assert question["method"] == "elicitation/create"
        body["params"] |= {"inputResponses": {key: ANSWER}}
        if "requestState" in asked:
            body["params"] |= {"requestState": asked["requestState"]}
        assert text_of((await ask(app, body)).json) == "hello Ada"
        await soon(lambda: left(app) == {}, "the end")

    on_both(main, backend)


@both
@pytest.mark.parametrize("name", ["awaits", "yields"])
def test_a_handler_asks_a_legacy_client(backend: str, name: str) -> None:
    async def main() -> None:
        app = asking_app()
        named = await asking_session(app)
        body = call("tools/call", {"name": name, "arguments": {}})
        script = Script(*pieces(json.dumps(body).encode()))
        async with anyio.create_task_group() as group:
            group.start_soon(app, scope_for(**named), script.receive, script.send)
            await soon(lambda: script.messages_told, "the question")
            question = script.messages_told[0]
            assert question["method"] == "elicitation/create"
            answer = {"jsonrpc": "2.0", "id": question["id"], "result": ANSWER}
            assert (await ask(app, answer, **named)).status == 202
        assert text_of(script.messages_told[-1]) == "hello Ada"
        assert app.gateways[0].stats()["carried"] == 0

    on_both(main, backend)


@both
@pytest.mark.parametrize("name", ["awaits", "yields"])
def test_who_waits_for_an_answer_ends_with_the_session(backend: str, name: str) -> None:
    async def main() -> None:
        app = asking_app()
        named = await asking_session(app)
        body = call("tools/call", {"name": name, "arguments": {}})
        script = Script(*pieces(json.dumps(body).encode()))
        async with anyio.create_task_group() as group:
            group.start_soon(app, scope_for(**named), script.receive, script.send)
            await soon(lambda: script.messages_told, "the question")
            ENDED.clear()
            ended = Script(*pieces(b""))
            await app(scope_for(method="DELETE", **named), ended.receive, ended.send)
        await soon(lambda: name in ENDED, "the end of the handler")
        await soon(lambda: left(app) == {}, "the end")

    on_both(main, backend)


@both
@pytest.mark.req("O1")
def test_a_modern_client_listens_to_changes(backend: str) -> None:
    own = make_app()

    async def main() -> None:
        app = sansmcp_asgi.asgi_app(own)
        body = message("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
        script = Script(*pieces(json.dumps(body).encode()))
        async with anyio.create_task_group() as group:
            group.start_soon(app, scope_for(body), script.receive, script.send)
            await soon(lambda: script.messages_told, "the acknowledgement")
            own.notify_changed(ListKind.TOOLS)
            await anyio.to_thread.run_sync(own.notify_changed, ListKind.TOOLS)
            changed = "notifications/tools/list_changed"
            await soon(
                lambda: [m["method"] for m in script.messages_told[1:]] == [changed] * 2, "the changes"
            )
            script.leave()
        await soon(lambda: left(app) == {}, "the end")

    on_both(main, backend)
    own.notify_changed(ListKind.TOOLS)  # nobody is there any more


# lifespans ---------------------------------------------------------------------------------------


@both
def test_the_lifespan_ends_what_is_open(backend: str) -> None:
    stopped: list[str] = []

    async def main() -> None:
        own = make_app()

        @own.tool()
        async def patient() -> str:
            try:
                await anyio.sleep_forever()
            finally:
                stopped.append("patient")
            return "never"

        app = sansmcp_asgi.asgi_app(own)
        life = Script({"type": "lifespan.startup"})
        body = tool("patient")
        script = Script(*pieces(json.dumps(body).encode()))
        async with anyio.create_task_group() as group:
            group.start_soon(app, {"type": "lifespan"}, life.receive, life.send)
            await soon(lambda: life.sent == [{"type": "lifespan.startup.complete"}], "the begin")
            group.start_soon(app, scope_for(body), script.receive, script.send)
            (gateway,) = app.gateways
            await soon(lambda: gateway.stats()["open_requests"], "the request")
            life.leave()  # whatever comes next is the shutdown
        assert life.sent[-1] == {"type": "lifespan.shutdown.complete"}
        assert (script.status, stopped) == (503, ["patient"])
        assert app.gateways == ()
        assert (await ask(app, tool("add", {"a": 1, "b": 1}))).status == 200  # a new life

    on_both(main, backend)


def test_each_loop_has_its_own_clients() -> None:
    app = application()

    async def main() -> None:
        assert (await ask(app, tool("add", {"a": 1, "b": 1}))).status == 200
        assert len(app.gateways) == 1

    for backend in (*BACKENDS, *BACKENDS):
        on_both(main, backend)


@both
def test_many_applications_in_one_process(backend: str) -> None:
    async def main() -> None:
        apps = [application() for _ in range(10)]
        session = (await ask(apps[0], initialize())).headers["mcp-session-id"]
        for app in apps:
            script = await ask(app, tool("add", {"a": 1, "b": 1}))
            assert text_of(script.json) == "2"
            fields: dict[str, Any] = {"h_mcp_session_id": session, "h_mcp_protocol_version": "2025-11-25"}
            assert (await ask(app, call(), **fields)).status == (200 if app is apps[0] else 404)

    on_both(main, backend)


@both
def test_older_clients_without_sessions(backend: str) -> None:
    async def main() -> None:
        opening, other = application(stateless=True), application(stateless=True)
        script = await ask(opening, initialize())
        assert script.status == 200
        assert "mcp-session-id" not in script.headers
        asked = call("tools/call", {"name": "add", "arguments": {"a": 1, "b": 1}})
        script = await ask(other, asked, h_mcp_protocol_version="2025-11-25")
        assert text_of(script.json) == "2"
        assert left(other) == {}

    on_both(main, backend)


def test_options_that_cannot_be_are_told_at_once() -> None:
    with pytest.raises(LocalProtocolError, match="keep_alive"):
        application(keep_alive=-1)


def test_nothing_is_loaded_before_it_is_used() -> None:
    kinds = ("AsgiApp", "AsgiOptions", "WsgiApp", "WsgiOptions", "asgi_app", "wsgi_app")
    assert tuple(sorted(sansmcp_asgi.__all__)) == kinds
    assert set(sansmcp_asgi.__all__) <= set(dir(sansmcp_asgi))
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        getattr(sansmcp_asgi, "no" + "pe")
    assert "sansmcp_asgi._app" in sys.modules


@both
def test_a_fault_of_this_library_ends_what_is_open_and_nothing_else(
    backend: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def main() -> None:
        app = application()
        body = tool("wait")
        script = Script(*pieces(json.dumps(body).encode()))
        ends: list[BaseException] = []

        async def run() -> None:
            with pytest.raises(RuntimeError, match="fault of its own") as caught:
                await app(scope_for(body), script.receive, script.send)
            ends.append(caught.value)

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await soon(lambda: app.gateways and app.gateways[0].stats()["open_requests"], "the request")
            app.gateways[0].server.head_received = None  # type: ignore[method-assign, assignment]
            with pytest.raises(TypeError):
                await ask(app, tool("add", {"a": 1, "b": 1}))
            await soon(lambda: ends, "the end of the other")
        assert (await ask(app, tool("add", {"a": 1, "b": 1}))).status == 200
        assert left(app) == {}

    on_both(main, backend)


@both
def test_the_transport_of_httpx(backend: str) -> None:
    async def main() -> None:
        app, body = application(), tool("count", {"upto": 2}, token="t")
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            answer = await client.post("/mcp", json=body, headers=headers_for(body))
        assert answer.text.count("data: {") == 3
        assert left(app) == {}

    on_both(main, backend)


def test_an_app_may_have_nothing() -> None:
    async def main() -> None:
        app = sansmcp_asgi.asgi_app(App("empty", "1"))
        assert (await ask(app, message("server/discover"))).status == 200

    on_both(main, "asyncio")
