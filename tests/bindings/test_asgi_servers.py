"""The ASGI application under uvicorn and hypercorn, and in Starlette and FastAPI, over real sockets."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import Any

import anyio.lowlevel
import fastapi
import httpx
import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.routing import Mount, Route

import sansmcp_asgi
from sansmcp import Event, LimitHit, RequestCancelled, RequestReceived
from sansmcp.limits import Limits

from ..http_support import INITIALIZED, call, initialize
from .asgi_support import HOSTS, client, headers_for, hosted, make_app
from .support import until
from .test_serve_http import message, text_of, tool

hosts = pytest.mark.parametrize("host", HOSTS)


def told_of(told: list[Event], kind: type[Event]) -> int:
    return sum(isinstance(event, kind) for event in told)


def post(session: httpx.Client, body: Any, path: str = "/mcp", **more: str) -> httpx.Response:
    return session.post(path, json=body, headers=headers_for(body, **more))


def stream(session: httpx.Client, body: Any, path: str = "/mcp", **more: str) -> Any:
    return session.stream("POST", path, json=body, headers=headers_for(body, **more))


def events(response: httpx.Response) -> Iterator[Any]:
    for line in response.iter_lines():
        if line.startswith("data: {"):
            yield json.loads(line[6:])


# servers -----------------------------------------------------------------------------------------


@hosts
@pytest.mark.req("R11", "J1")
def test_both_eras(host: str) -> None:
    told: list[Event] = []
    app = sansmcp_asgi.asgi_app(make_app(), on_event=told.append, keep_alive=0.1)
    with hosted(app, host) as served, client(served) as session:
        # modern
        answer = post(session, tool("add", {"a": 2, "b": 40}))
        assert (answer.status_code, text_of(answer.json())) == (200, "42")
        assert int(answer.headers["content-length"]) == len(answer.content)
        assert post(session, message("no/such")).json()["error"]["code"] == -32601
        assert post(session, tool("add"), host="evil.example").status_code == 421
        with stream(session, tool("count", {"upto": 3}, token="t")) as response:
            assert response.headers["content-type"] == "text/event-stream"
            said = list(events(response))
        assert [m.get("params", {}).get("progress") for m in said] == [1, 2, 3, None]
        # legacy
        answer = post(session, initialize())
        assert answer.json()["result"]["protocolVersion"] == "2025-11-25"
        named = {
            "mcp_session_id": answer.headers["mcp-session-id"],
            "mcp_protocol_version": "2025-11-25",
        }
        assert post(session, INITIALIZED, **named).status_code == 202
        with session.stream("GET", "/mcp", headers=headers_for({}, **named)) as listening:
            assert listening.status_code == 200
            lines = listening.iter_lines()
            assert next(line for line in lines if line.startswith(":"))
            asked = call("tools/call", {"name": "change", "arguments": {}})
            assert text_of(post(session, asked, **named).json()) == "changed"
            changed = next(line for line in lines if "data: {" in line)
            assert "notifications/tools/list_changed" in changed
        assert session.delete("/mcp", headers=headers_for({}, **named)).is_success
        assert post(session, call(), **named).status_code == 404
    assert app.gateways == ()


@hosts
@pytest.mark.req("R11")
def test_to_leave_cancels_a_modern_request_and_no_legacy_one(host: str) -> None:
    told: list[Event] = []
    app = sansmcp_asgi.asgi_app(make_app(), on_event=told.append, keep_alive=0.05)
    with hosted(app, host) as served, client(served) as session:
        answer = post(session, initialize())
        named = {
            "mcp_session_id": answer.headers["mcp-session-id"],
            "mcp_protocol_version": "2025-11-25",
        }
        post(session, INITIALIZED, **named)
        asked = call("tools/call", {"name": "late", "arguments": {"text": "kept", "seconds": 0.3}})
        with stream(session, asked, **named) as response:
            next(response.iter_lines())
        with stream(session, tool("wait")) as response:
            next(response.iter_lines())
        until(lambda: told_of(told, RequestCancelled), "the cancel")
        until(lambda: not app.gateways[0].stats()["carried"], "the end of the exchanges")
        cancelled = [e.request for e in told if isinstance(e, RequestCancelled)]
        assert [request.era.name for request in cancelled] == ["MODERN"]
        assert told_of(told, RequestReceived) == 2


@hosts
@pytest.mark.req("R7")
def test_a_body_without_end_is_refused_while_it_comes(host: str) -> None:
    app = sansmcp_asgi.asgi_app(make_app(), limits=Limits(max_body=10_000))
    with hosted(app, host) as served, client(served) as session:
        assert post(session, {"jsonrpc": "2.0", "text": "x" * 20_000}).status_code == 413
        port = int(served.url.rpartition(":")[2])
        with socket.create_connection(("127.0.0.1", port), timeout=10) as talk:
            head = "".join(f"{name}: {value}\r\n" for name, value in headers_for({}).items())
            talk.sendall(
                f"POST /mcp HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n{head}\r\n".encode()
            )
            for _ in range(11):
                talk.sendall(b"400\r\n" + b"x" * 1024 + b"\r\n")
            assert talk.recv(1000).startswith(b"HTTP/1.1 413 ")
        assert post(session, tool("add", {"a": 1, "b": 1})).status_code == 200


@hosts
def test_a_client_that_does_not_read(host: str) -> None:
    told: list[Event] = []
    limits = Limits(max_outgoing=1 << 20)
    app = sansmcp_asgi.asgi_app(make_app(), on_event=told.append, limits=limits)
    with hosted(app, host) as served, client(served) as session:
        body = tool("flood", {"pieces": 100_000, "size": 10_000}, token="t")
        with stream(session, body) as response:
            lines = response.iter_lines()  # as long as it is there, the client is
            next(lines)
            until(lambda: told_of(told, RequestCancelled), "the end of it")
        assert [e.limit for e in told if isinstance(e, LimitHit)] == ["max_outgoing"]
        assert post(session, tool("add", {"a": 1, "b": 1})).status_code == 200


@hosts
def test_large_answers(host: str) -> None:
    size = 20 << 20
    with hosted(sansmcp_asgi.asgi_app(make_app()), host) as served, client(served) as session:
        answer = post(session, tool("large", {"size": size}))
        assert len(text_of(answer.json())) == size


@hosts
def test_equal_ids_of_many_clients(host: str) -> None:
    app = sansmcp_asgi.asgi_app(make_app())
    with hosted(app, host) as served, ThreadPoolExecutor(10) as pool:

        def work(number: int) -> str:
            with client(served) as session:
                asked = tool("late", {"text": str(number), "seconds": 0.05}, id="same")
                return text_of(post(session, asked).json())

        assert list(pool.map(work, range(30))) == [str(number) for number in range(30)]


@hosts
def test_without_a_lifespan(host: str) -> None:
    app = sansmcp_asgi.asgi_app(make_app(), keep_alive=0.05)
    with hosted(app, host, lifespan=False) as served, client(served) as session:
        assert post(session, tool("add", {"a": 1, "b": 1})).status_code == 200
        named = {
            "mcp_session_id": post(session, initialize()).headers["mcp-session-id"],
            "mcp_protocol_version": "2025-11-25",
        }
        with stream(session, call("tools/call", {"name": "wait", "arguments": {}}), **named) as response:
            next(response.iter_lines())
        # The handler of an older client works on. It must not keep the server from its end.
        assert app.gateways[0].stats()["open_requests"] == 0


@hosts
@pytest.mark.parametrize("lifespan", [True, False])
def test_a_server_ends_while_streams_are_open(host: str, lifespan: bool) -> None:
    app = sansmcp_asgi.asgi_app(make_app(), keep_alive=0.05)
    with ExitStack() as stack:
        with hosted(app, host, lifespan=lifespan) as served:
            session = stack.enter_context(client(served))
            named = {
                "mcp_session_id": post(session, initialize()).headers["mcp-session-id"],
                "mcp_protocol_version": "2025-11-25",
            }
            waiting = call("tools/call", {"name": "wait", "arguments": {}})
            lines = [
                stack.enter_context(opened).iter_lines()
                for opened in (
                    session.stream("GET", "/mcp", headers=headers_for({}, **named)),
                    stream(session, waiting, **named),
                    stream(session, tool("wait")),
                )
            ]
            for each in lines:
                next(each)
        # It ended in time. The streams did as well, in whatever way.
        for each in lines:
            with suppress(httpx.HTTPError):
                list(each)


@pytest.mark.parametrize("host", HOSTS[1:])
def test_http_2(host: str) -> None:
    app = sansmcp_asgi.asgi_app(make_app())
    with hosted(app, host) as served, client(served, http1=False, http2=True) as session:
        answer = post(session, tool("add", {"a": 2, "b": 40}))
        assert (answer.http_version, text_of(answer.json())) == ("HTTP/2", "42")
        with stream(session, tool("count", {"upto": 2}, token="t")) as response:
            assert len(list(events(response))) == 3


# frameworks --------------------------------------------------------------------------------------


async def _pass(request: Any, call_next: Any) -> Any:
    return await call_next(request)


MIDDLEWARE = [
    Middleware(CORSMiddleware, allow_origins=["https://page.example"]),
    Middleware(GZipMiddleware, minimum_size=1),
    Middleware(BaseHTTPMiddleware, dispatch=_pass),
]


def _fastapi(app: Any, at: str) -> Any:
    api = fastapi.FastAPI(lifespan=app.lifespan)
    api.mount(at, app)

    @api.get("/hello")
    def hello() -> str:
        return "hello"

    return api


def _proxied(app: Any, stripped: str) -> Any:
    """What a server does that is told its root; a proxy may have taken that off."""

    async def proxied(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "root_path": "/v1", "path": stripped + scope["path"]}
        await app(scope, receive, send)

    return proxied


def _nested(app: Any) -> Any:
    return Starlette(routes=[Mount("/a", Starlette(routes=[Mount("/b", app)]))], lifespan=app.lifespan)


FRAMEWORKS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "alone": (lambda app: app, "/mcp"),
    "a mount at the root": (lambda app: Starlette(routes=[Mount("/", app)], lifespan=app.lifespan), "/mcp"),
    "a mount below a prefix": (lambda app: Starlette(routes=[Mount("/api", app)]), "/api/mcp"),
    "a mount at its path": (lambda app: Starlette(routes=[Mount("/mcp", app)]), "/mcp/"),
    "a mount that is left to redirects": (lambda app: Starlette(routes=[Mount("/mcp", app)]), "/mcp"),
    "a route": (lambda app: Starlette(routes=[Route("/mcp", app)], lifespan=app.lifespan), "/mcp"),
    "mounts in mounts": (_nested, "/a/b/mcp"),
    "middleware": (lambda app: Starlette(routes=[Mount("/", app)], middleware=MIDDLEWARE), "/mcp"),
    "FastAPI": (lambda app: _fastapi(app, "/"), "/mcp"),
    "FastAPI below a prefix": (lambda app: _fastapi(app, "/tools"), "/tools/mcp"),
    "FastAPI behind a proxy": (lambda app: _proxied(_fastapi(app, "/tools"), ""), "/v1/tools/mcp"),
    "FastAPI behind a proxy that strips": (
        lambda app: _proxied(_fastapi(app, "/tools"), "/v1"),
        "/tools/mcp",
    ),
}


@pytest.mark.parametrize(("build", "path"), FRAMEWORKS.values(), ids=FRAMEWORKS.keys())
def test_mounted(build: Callable[[Any], Any], path: str) -> None:
    told: list[Event] = []
    app = sansmcp_asgi.asgi_app(make_app(), on_event=told.append, keep_alive=0.05)
    with hosted(build(app), "uvicorn") as served, client(served, follow_redirects=True) as session:
        _use(session, path)
        with stream(session, tool("wait"), path) as response:
            next(response.iter_lines())
        until(lambda: told_of(told, RequestCancelled), "the cancel")
        assert session.get("/somewhere/else").status_code == 404


@pytest.mark.parametrize("host", HOSTS[1:])
def test_mounted_under_another_server(host: str) -> None:
    app = sansmcp_asgi.asgi_app(make_app())
    built = Starlette(routes=[Mount("/api", app)], middleware=MIDDLEWARE, lifespan=app.lifespan)
    with hosted(built, host) as served, client(served) as session:
        _use(session, "/api/mcp")
    assert app.gateways == ()


def _use(session: httpx.Client, path: str) -> None:
    """Both eras, each with one JSON value and with a stream."""
    assert text_of(post(session, tool("add", {"a": 2, "b": 40}), path).json()) == "42"
    with stream(session, tool("count", {"upto": 2}, token="t"), path) as response:
        assert len(list(events(response))) == 3
    answer = post(session, initialize(), path)
    named = {"mcp_session_id": answer.headers["mcp-session-id"], "mcp_protocol_version": "2025-11-25"}
    assert post(session, INITIALIZED, path, **named).status_code == 202
    asked = call("tools/call", {"name": "count", "arguments": {"upto": 2}, "_meta": {"progressToken": 1}})
    with stream(session, asked, path, **named) as response:
        assert len(list(events(response))) == 3


def test_what_a_middleware_says_reaches_a_handler() -> None:
    """What one sets for the context of a request holds for the handler, in both eras."""
    from contextvars import ContextVar

    who: ContextVar[str] = ContextVar("who", default="nobody")
    own = make_app()

    @own.tool()
    async def asked_by() -> str:
        await anyio.lowlevel.checkpoint()
        return who.get()

    app = sansmcp_asgi.asgi_app(own)

    async def middleware(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            who.set(dict(scope["headers"]).get(b"x-who", b"nobody").decode())
        await app(scope, receive, send)

    for host in HOSTS:
        with hosted(middleware, host) as served, client(served) as session:
            answer = post(session, tool("asked_by"), x_who="Ada")
            assert text_of(answer.json()) == "Ada"
            assert text_of(post(session, tool("asked_by")).json()) == "nobody"
