"""Clients that others wrote against our server as a WSGI application, without sessions for the older ones."""

from __future__ import annotations

import socket
import time
from pathlib import Path

import pytest

import sansmcp_asgi
from sansmcp import ALL_REVISIONS, App, Context
from tests.bindings.test_wsgi_servers import waitress
from tests.peers.registry import CLIENTS

from . import demo_server as demo
from .support import asynchronous, needs
from .test_clients_http import got, run
from .test_clients_stdio import CALLS, expected, spoken

pytestmark = pytest.mark.interop


def make_app() -> App:
    """The app of `demo_server`, with no handler that needs a loop."""
    app = App("demo ü", "2.1", instructions="Say hello.", logging=True, list_changed=True)
    app.tool()(demo.echo)
    app.tool(output_schema=demo.RESULT)(demo.add)
    app.tool()(demo.fail)

    @app.tool()
    def slow(ctx: Context, seconds: float) -> str:
        """Take a while and report progress in four steps."""
        for step in range(4):
            time.sleep(seconds / 4)
            ctx.progress(step + 1, 4)
        return "done"

    app.resource("test://greeting", mime_type="text/plain")(demo.greeting)
    app.prompt()(demo.greet)
    return app


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.req("J1", "R11")
@asynchronous
async def test_client_gets_everything(client: str, tmp_path: Path) -> None:
    needs(client)
    revision = spoken(client, ALL_REVISIONS)
    assert revision is not None
    report = demo.Report()
    application = sansmcp_asgi.wsgi_app(make_app(), on_event=report.on_event)
    with socket.create_server(("127.0.0.1", 0)) as listening, waitress(listening, application):
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        code, out, err = await run(client, url, tmp_path)
    assert code == 0, err
    assert got(out) == expected(client, revision)
    assert report.requests == [[revision.value, method] for method in CALLS]
    assert set(report.faults) <= {"WRONG_ENDPOINT"}  # some try whether there is a stream of the session
