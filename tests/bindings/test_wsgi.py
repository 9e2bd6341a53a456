"""The WSGI application, spoken to by hand: what a server gives it, and what it gives back."""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sansmcp_asgi
from sansmcp import App, Event, LimitHit, LocalProtocolError, MessageIgnored, RequestReceived
from sansmcp.extensions.tasks import ServerTasks
from sansmcp.http.gateway import GatewayPolicy
from sansmcp.http.guard import ANY, GuardPolicy
from sansmcp.limits import Limits

from ..http_support import INITIALIZED, call, initialize
from ..support import meta
from .test_serve_http import message, text_of, tool
from .wsgi_support import Source, ask, environ_for, kinds, make_app, serve

KEY = b"k" * 32


def application(**options: Any) -> sansmcp_asgi.WsgiApp:
    return sansmcp_asgi.wsgi_app(make_app(), **options)


# requests ----------------------------------------------------------------------------------------


@pytest.mark.req("R11")
def test_a_request_and_its_answer() -> None:
    app = application()
    answered = ask(app, tool("add", {"a": 2, "b": 40}))
    assert (answered.status, text_of(answered.json)) == (200, "42")
    assert answered.headers == {
        "content-type": "application/json",
        "content-length": str(len(answered.returned)),
    }
    assert answered.written == []
    answered = ask(app, message("no/such"))
    assert (answered.status, answered.json["error"]["code"]) == (404, -32601)
    assert (
        ask(app, {"jsonrpc": "2.0", "method": "notifications/x", "params": {"_meta": meta()}}).status == 202
    )


@pytest.mark.req("R11")
def test_an_older_client_has_no_session() -> None:
    app = application()
    opened = ask(app, initialize())
    assert opened.json["result"]["protocolVersion"] == "2025-11-25"
    assert opened.json["result"]["capabilities"] == {"logging": {}, "resources": {}, "tools": {}}
    assert "mcp-session-id" not in opened.headers
    named = {"h_mcp_protocol_version": "2025-11-25"}
    assert ask(app, INITIALIZED, **named).status == 202
    assert text_of(ask(app, call("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}}), **named).json)
    assert ask(app, call(), h_mcp_session_id="s", **named).status == 404
    asked = ask(app, call("tools/call", {"name": "paint", "arguments": {}}), **named).json["result"]
    assert asked["isError"]
    assert "elicitation" in asked["content"][0]["text"]
    assert ask(application(legacy=False), initialize()).status == 400


def test_clients_are_told_of_no_changes() -> None:
    app = application()
    discovered = ask(app, message("server/discover")).json["result"]
    assert discovered["capabilities"] == {"logging": {}, "resources": {}, "tools": {}}
    refused = ask(app, message("subscriptions/listen", {"notifications": {"toolsListChanged": True}}))
    assert (refused.status, refused.json["error"]["code"]) == (404, -32601)
    # A handler need not know.
    assert text_of(ask(app, tool("change")).json) == "changed"


@pytest.mark.parametrize("era", ["modern", "legacy"])
def test_progress_goes_out_while_the_handler_works(era: str) -> None:
    app = application()
    if era == "modern":
        environ = environ_for(tool("count", {"upto": 3}, token="t"))
    else:
        params = {"name": "count", "arguments": {"upto": 3}, "_meta": {"progressToken": "t"}}
        environ = environ_for(call("tools/call", params), h_mcp_protocol_version="2025-11-25")
    answered = serve(app, environ)
    assert answered.headers["content-type"] == "text/event-stream"
    assert "content-length" not in answered.headers
    assert [m.get("params", {}).get("progress") for m in answered.messages] == [1, 2, 3, None]
    assert len(answered.written) == 4
    assert answered.returned == b""


BLUE = {"action": "accept", "content": {"colour": "blue"}}


def asking(name: str, **more: Any) -> Any:
    """A call of a client that can be asked."""
    request = tool(name)
    request["params"]["_meta"] |= {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    request["params"] |= more
    return request


@pytest.mark.parametrize("name", ["paint", "paint_in_steps"])
def test_a_handler_that_asks(name: str) -> None:
    first, second = (sansmcp_asgi.wsgi_app(make_app(state_keys=[KEY])) for _ in range(2))
    result = ask(first, asking(name)).json["result"]
    assert result["resultType"] == "input_required"
    ((key, question),) = result["inputRequests"].items()
    assert question["params"]["message"] == "Which colour?"
    # The next round may come to another process.
    more = {"inputResponses": {key: BLUE}}
    if "requestState" in result:
        more["requestState"] = result["requestState"]
    assert text_of(ask(second, asking(name, **more)).json) == "painted blue"


def test_a_handler_that_waits_for_something_else(caplog: pytest.LogCaptureFixture) -> None:
    answered = ask(application(), tool("sleep"))
    assert answered.json["error"]["code"] == -32603
    assert "its handler waits for something" in caplog.text


# bodies ------------------------------------------------------------------------------------------

ADD = json.dumps(tool("add", {"a": 1, "b": 2})).encode()


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("length", [str(len(ADD)), None])
def test_a_body_in_pieces(length: str | None, size: int) -> None:
    """With its length, or with a server that says where it ends."""
    environ = environ_for(tool("add", {"a": 1, "b": 2}), CONTENT_LENGTH=length)
    environ["wsgi.input"] = Source(ADD + (b"" if length is None else b"the next request"), size)
    if length is None:
        environ |= {"wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}
    environ["wsgi.errors"] = sys.stderr
    answered = serve(application(), environ, checked=False)
    assert text_of(json.loads(answered.returned)) == "3"
    assert environ["wsgi.input"].taken == len(ADD)


BODIES: dict[str, tuple[dict[str, Any], int]] = {
    "no body": ({"CONTENT_LENGTH": ""}, 400),
    "no length": ({"CONTENT_LENGTH": None}, 400),
    "a length that is none": ({"CONTENT_LENGTH": "+5"}, 400),
    "digits that are none of ASCII": ({"CONTENT_LENGTH": "\u0662"}, 400),
    "a length that is a novel": ({"CONTENT_LENGTH": "9" * 30}, 400),
    "a length and chunks": ({"HTTP_TRANSFER_ENCODING": "chunked"}, 400),
    "chunks, with no end that the server shows": (
        {"CONTENT_LENGTH": None, "HTTP_TRANSFER_ENCODING": "chunked"},
        411,
    ),
    "too long": ({"CONTENT_LENGTH": "1001"}, 413),
    "no JSON": ({"CONTENT_TYPE": "text/plain"}, 415),
    "another path": ({"PATH_INFO": "/other"}, 404),
    "another method": ({"REQUEST_METHOD": "GET"}, 405),
    "a foreign host": ({"HTTP_HOST": "evil.example"}, 421),
    "a foreign page": ({"HTTP_ORIGIN": "https://evil.example"}, 403),
    "no media type": ({"HTTP_ACCEPT": "text/html"}, 406),
}


@pytest.mark.parametrize(("given", "status"), BODIES.values(), ids=BODIES.keys())
def test_refusals(given: dict[str, Any], status: int) -> None:
    app = application(limits=Limits(max_body=1000))
    environ = environ_for(tool("add", {"a": 1, "b": 2}), **given)
    assert serve(app, environ, checked=False).status == status
    assert ask(app, tool("add", {"a": 1, "b": 2})).status == 200


def test_nothing_but_a_head_is_given_to_who_asks_for_one() -> None:
    """Some servers would send a body that no client reads, and the next response would be read in it."""
    for path, status in (("/mcp", 405), ("/other", 404)):
        environ = environ_for({}, REQUEST_METHOD="HEAD", PATH_INFO=path)
        answered = serve(application(), environ, checked=False)
        assert (answered.status, answered.returned, answered.written) == (status, b"", [])
        assert int(answered.headers["content-length"]) > 0


def test_what_a_server_says_of_the_body_twice_counts_once() -> None:
    environ = environ_for(tool("add", {"a": 1, "b": 2}))
    environ["HTTP_CONTENT_TYPE"] = environ["CONTENT_TYPE"]
    environ["HTTP_CONTENT_LENGTH"] = environ["CONTENT_LENGTH"]
    assert serve(application(), environ, checked=False).status == 200


@pytest.mark.req("R7")
def test_a_body_without_end_is_refused_while_it_comes() -> None:
    app = application(limits=Limits(max_body=1000))
    source = Source(b"x" * 1_000_000, 100)
    environ = environ_for({}, CONTENT_LENGTH=None)
    environ |= {"wsgi.input": source, "wsgi.input_terminated": True}
    assert serve(app, environ, checked=False).status == 413
    assert source.taken < 2000


@pytest.mark.parametrize("error", [None, OSError("reset")])
def test_a_client_that_leaves_before_its_body_is_complete(error: OSError | None) -> None:
    app = application()
    environ = environ_for(tool("add", {"a": 1, "b": 2}))
    environ["wsgi.input"] = Source(ADD[:20], fails=error)
    with pytest.raises(OSError):
        serve(app, environ, checked=False)
    assert ask(app, tool("add", {"a": 1, "b": 2})).status == 200


TEXTS = st.text(st.characters(max_codepoint=255), max_size=30)
HEADS = st.fixed_dictionaries(
    {},
    optional={
        "REQUEST_METHOD": st.sampled_from(["POST", "GET", "DELETE", "HEAD", "OPTIONS", "\xe4"]),
        "PATH_INFO": TEXTS,
        "SCRIPT_NAME": TEXTS,
        "QUERY_STRING": TEXTS,
        "CONTENT_LENGTH": st.one_of(TEXTS, st.integers(-2, 2000).map(str)),
        "CONTENT_TYPE": TEXTS,
        "HTTP_ACCEPT": TEXTS,
        "HTTP_HOST": TEXTS,
        "HTTP_ORIGIN": TEXTS,
        "HTTP_MCP_SESSION_ID": TEXTS,
        "HTTP_MCP_PROTOCOL_VERSION": st.one_of(TEXTS, st.sampled_from(["2025-11-25", "2026-07-28"])),
        "HTTP_TRANSFER_ENCODING": TEXTS,
        "SERVER_PROTOCOL": TEXTS,
        "wsgi.input_terminated": st.booleans(),
    },
)
FUZZED = application(limits=Limits(max_body=1000))


@given(HEADS, st.one_of(st.binary(max_size=1500), st.just(ADD), st.just(json.dumps(initialize()).encode())))
def test_whatever_comes_is_answered(head: dict[str, Any], body: bytes) -> None:
    """With one response; or its client left before its body was complete."""
    environ = environ_for(tool("add", {"a": 1, "b": 2}), CONTENT_LENGTH=str(len(body))) | head
    environ["wsgi.input"] = Source(body)
    try:
        answered = serve(FUZZED, environ, checked=False)
    except ConnectionError:
        assert int(environ["CONTENT_LENGTH"]) > len(body)
    else:
        assert answered.status
        told = 0 if environ["REQUEST_METHOD"] == "HEAD" else int(answered.headers["content-length"])
        assert told == len(answered.returned)
    assert text_of(ask(FUZZED, tool("add", {"a": 1, "b": 2})).json) == "3"


# where it is -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "path", "options"),
    [
        ("", "/mcp", {}),
        ("", "/mcp/", {}),
        ("/mcp", "", {}),
        ("/mcp", "/", {}),
        ("/tools", "/mcp", {}),
        ("/tools", "/mcp", {"path": "/tools/mcp"}),
        ("/tools", "/anywhere", {"path": None}),
        ("", "/m\u00c3\u00a4p", {"path": "/m\u00e4p"}),
    ],
)
def test_where_it_is_mounted(root: str, path: str, options: dict[str, Any]) -> None:
    app = application(**options)
    assert ask(app, tool("add", {"a": 1, "b": 2}), SCRIPT_NAME=root, PATH_INFO=path).status == 200


def test_who_is_let_in() -> None:
    app = application(policy=GuardPolicy(hosts=["mcp.example.com"], origins=ANY))
    assert ask(app, tool("add", {"a": 1, "b": 2}), h_host="mcp.example.com").status == 200
    assert ask(app, tool("add", {"a": 1, "b": 2})).status == 421


# threads, and what breaks ------------------------------------------------------------------------


def test_one_key_is_drawn_in_however_many_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    together = threading.Barrier(4, timeout=10)
    draw = secrets.token_bytes

    def slow(size: int) -> bytes:
        together.wait()  # all of them found that there is no key
        return draw(size)

    monkeypatch.setattr(secrets, "token_bytes", slow)
    app = application()
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: ask(app, asking("paint_twice")), range(4)))
    for answered in answers:
        result = answered.json["result"]
        (key,) = result["inputRequests"]
        more = {"inputResponses": {key: BLUE}, "requestState": result["requestState"]}
        assert ask(app, asking("paint_twice", **more)).json["result"]["resultType"] == "input_required"


def test_what_is_registered_later_is_offered() -> None:
    app = App("late")
    served = sansmcp_asgi.wsgi_app(app)
    app.tool("late")(lambda: "came")
    assert text_of(ask(served, tool("late")).json) == "came"


def test_requests_in_many_threads_at_once() -> None:
    app = App("threads")
    both = threading.Barrier(8, timeout=10)

    @app.tool()
    def meet(text: str) -> str:
        both.wait()
        return f"{text} {threading.get_ident()}"

    served = sansmcp_asgi.wsgi_app(app)

    def client(number: int) -> bool:
        answered = ask(served, tool("meet", {"text": str(number)}, id=1))
        return text_of(answered.json) == f"{number} {threading.get_ident()}"

    with ThreadPoolExecutor(8) as pool:
        for _ in range(5):
            assert all(pool.map(client, range(8)))


@pytest.mark.parametrize("fails_at", [1, 2])
def test_a_client_that_leaves_while_it_is_answered(fails_at: int) -> None:
    told: list[Event] = []
    app = application(on_event=told.append)
    written = 0

    def on_write(data: bytes) -> None:
        nonlocal written
        written += 1
        if written == fails_at:
            raise BrokenPipeError("gone")

    environ = environ_for(tool("count", {"upto": 3}, token="t"))
    with pytest.raises(BrokenPipeError, match="gone"):
        serve(app, environ, on_write=on_write)
    assert written == fails_at
    assert kinds(told) == ["RequestReceived", "RequestCancelled"]
    assert ask(app, tool("add", {"a": 1, "b": 2})).status == 200


def test_a_handler_that_ends_the_process() -> None:
    app = application()
    with pytest.raises(SystemExit):
        serve(app, environ_for(tool("crash")), checked=False)
    assert ask(app, tool("add", {"a": 1, "b": 2})).status == 200


def test_events_are_told() -> None:
    told: list[Event] = []
    app = application(on_event=told.append, limits=Limits(max_body=500), strict=True)
    assert ask(app, tool("add", {"a": 1, "b": 2})).status == 200
    assert ask(app, tool("add"), h_origin="https://evil.example").status == 403
    assert [type(e) for e in told] == [RequestReceived, MessageIgnored]
    assert not [e for e in told if isinstance(e, LimitHit)]
    assert ask(app, tool("add"), h_accept="application/json").status == 406


def test_options_that_cannot_be() -> None:
    for options in ({"nonsense": True}, {"old_sse": None, "sessions": 1, "threads": 4}):
        with pytest.raises(TypeError):
            application(**options)
    with pytest.raises(LocalProtocolError, match="must be positive"):
        application(carriage=GatewayPolicy(body_timeout=0))
    with pytest.raises(LocalProtocolError, match="use asgi_app"):
        sansmcp_asgi.wsgi_app(App("late", extensions=[ServerTasks()]))


def test_it_needs_no_loop() -> None:
    code = "import sys, sansmcp_asgi; sansmcp_asgi.wsgi_app; sys.exit('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
