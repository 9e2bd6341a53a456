"""The examples of embedding that need nothing but the development environment."""

from __future__ import annotations

import ast
import asyncio
import base64
import json
import socket
import sys
import threading
import time
from collections.abc import Mapping
from typing import Any

import httpx
import pytest
from hypercorn.asyncio import serve
from hypercorn.config import Config

import sansmcp_asgi
import sansmcp_asyncio
from sansmcp import App, Legacy

from .bindings.test_serve_http import fields_for, message, text_of, tool
from .examples_support import EXAMPLES, NEWEST, PATIENCE, REVISIONS, calling, make_app, program, served
from .http_support import call, initialize

ERAS = pytest.mark.parametrize("era", NEWEST)
MAX_LINES = 60


@pytest.fixture(autouse=True)
def importable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_is_short(path: Any) -> None:
    """At most 60 lines beside what is imported, blank lines and the docstring of the file."""
    text = path.read_text("utf-8")
    kept = {number for number, line in enumerate(text.splitlines(), 1) if line.strip()}
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree: Any = compile(text, str(path), "exec", flags=flags)
    for node in (*tree.body[:1], *tree.body):
        if node is tree.body[0] or isinstance(node, (ast.Import, ast.ImportFrom)):
            kept -= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    assert len(kept) <= MAX_LINES


@ERAS
@pytest.mark.parametrize("name", ["select_client", "httpx_client"])
def test_a_client(name: str, era: str) -> None:
    async def main() -> None:
        async with served(era) as url:
            printed = await program([sys.executable, f"{name}.py", *calling(url)])
        assert printed == [f"speaks {NEWEST[era]}", "said hi"]

    asyncio.run(main())


@pytest.mark.parametrize("name", ["select_client", "httpx_client"])
def test_a_client_whose_server_is_not_there(name: str) -> None:
    printed = asyncio.run(program([sys.executable, f"{name}.py", *calling("http://127.0.0.1:1/mcp")]))
    assert len(printed) == 1
    assert printed[0].startswith("failed: server/discover: ")


@ERAS
def test_httpx_over_http_2(era: str, capsys: pytest.CaptureFixture[str]) -> None:
    import httpx_client  # type: ignore[import-not-found]

    told: list[str] = []
    application = sansmcp_asgi.asgi_app(make_app(), revisions=REVISIONS[era])

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            told.append(scope["http_version"])
        await application(scope, receive, send)

    async def main() -> None:
        listening = socket.create_server(("127.0.0.1", 0))
        port, ends, config = listening.getsockname()[1], asyncio.Event(), Config()
        config.bind = [f"fd://{listening.detach()}"]  # it closes what it is given
        config.graceful_timeout = 1
        serving = asyncio.create_task(serve(watched, config, shutdown_trigger=ends.wait))
        await httpx_client.main(*calling(f"http://127.0.0.1:{port}/mcp"), http1=False, http2=True)
        ends.set()
        await serving

    asyncio.run(main())
    assert capsys.readouterr().out.splitlines() == [f"speaks {NEWEST[era]}", "said hi"]
    assert set(told) == {"2"}


# servers -----------------------------------------------------------------------------------------


@ERAS
def test_a_host_with_a_timer(era: str) -> None:
    """Its tools run where it polls: here in the main thread, with the client in another."""
    from timer_host import Host  # type: ignore[import-not-found]

    app = App("scene", "1.0")

    @app.tool()
    def where(times: int) -> str:
        return f"{threading.current_thread() is threading.main_thread()} " + "x" * times

    host = Host(app)
    found: list[str] = []

    async def client() -> None:
        mode = {"mode": Legacy()} if era == "legacy" else {}
        async with sansmcp_asyncio.connect(host.url, **mode) as one:  # type: ignore[arg-type]
            assert one.revision == NEWEST[era]
            for times in (1, 3_000_000):
                result = await one.call_tool("where", {"times": times})
                found.append(result.content[0].text)  # type: ignore[union-attr]

    thread = threading.Thread(target=lambda: asyncio.run(client()))
    thread.start()
    end = time.monotonic() + PATIENCE
    while thread.is_alive() and time.monotonic() < end:
        host.poll()
        time.sleep(0.001)  # the timer of a host, which the example polls from
    thread.join(0)
    assert [(text[:6], len(text)) for text in found] == [("True x", 6), ("True x", 3_000_005)]
    end = time.monotonic() + PATIENCE
    while host.sockets and time.monotonic() < end:  # until it saw the end of each connection
        host.poll()
    assert host.sockets == host.unsent == {}
    host.close()
    assert host.listener.finished


def gateway_event(
    body: Any, fields: Mapping[str, str] | None = None, *, encoded: bool = False, method: str = "POST"
) -> dict[str, Any]:
    """As API Gateway sends it, version 2.0."""
    text = json.dumps(body)
    return {
        "version": "2.0",
        "rawPath": "/mcp",
        "headers": {**fields_for(body if "_meta" in body.get("params", {}) else {}), **(fields or {})},
        "requestContext": {"http": {"method": method, "path": "/mcp", "protocol": "HTTP/1.1"}},
        "body": base64.b64encode(text.encode()).decode() if encoded else text,
        "isBase64Encoded": encoded,
    }


@pytest.mark.parametrize("encoded", [False, True])
def test_a_function(encoded: bool) -> None:
    from lambda_handler import handle  # type: ignore[import-not-found]

    response = handle(gateway_event(tool("greet", {"name": "Ada"}), encoded=encoded), None)
    assert response["statusCode"] == 200
    assert response["headers"] == {"content-type": "application/json"}
    assert text_of(json.loads(response["body"])) == "Hello, Ada!"
    response = handle(gateway_event(message("no/such")))
    assert (response["statusCode"], json.loads(response["body"])["error"]["code"]) == (404, -32601)


def test_a_function_for_older_clients() -> None:
    from lambda_handler import handle

    response = handle(gateway_event(initialize()))
    assert json.loads(response["body"])["result"]["protocolVersion"] == "2025-11-25"
    named = {"mcp-protocol-version": "2025-11-25"}
    asked = call("tools/call", {"name": "greet", "arguments": {"name": "Ada"}})
    assert text_of(json.loads(handle(gateway_event(asked, named))["body"])) == "Hello, Ada!"
    assert handle(gateway_event({}, named, method="GET"))["statusCode"] == 405


@ERAS
def test_our_client_of_a_function(era: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Through a gateway that is as simple as can be."""
    from lambda_handler import handle

    async def gateway(scope: Any, receive: Any, send: Any) -> None:
        taken = await receive()
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        about = {"http": {"method": scope["method"], "path": scope["path"]}}
        event = {"headers": headers, "requestContext": about, "body": taken.get("body", b"").decode()}
        response = handle(event)
        fields = [(n.encode(), v.encode()) for n, v in response["headers"].items()]
        await send({"type": "http.response.start", "status": response["statusCode"], "headers": fields})
        await send({"type": "http.response.body", "body": response["body"].encode()})

    async def main() -> None:
        import httpx_client
        from one_call import OneCall  # type: ignore[import-not-found]

        mode = {"mode": Legacy()} if era == "legacy" else {}
        one = OneCall("http://gateway/mcp", "greet", '{"name": "Ada"}', **mode)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(gateway)) as session:
            await httpx_client.HttpxDriver(session, one.client, one.on_event).run()

    asyncio.run(main())
    assert capsys.readouterr().out.splitlines() == [f"speaks {NEWEST[era]}", "said Hello, Ada!"]
