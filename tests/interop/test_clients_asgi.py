"""Clients that others wrote against our server as an ASGI application, under servers that others wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

import sansmcp_asgi
from sansmcp import ALL_REVISIONS
from tests.bindings.asgi_support import HOSTS, hosted
from tests.peers.registry import CLIENTS

from .demo_server import Report, app
from .support import asynchronous, needs
from .test_clients_http import got, run
from .test_clients_stdio import CALLS, expected, spoken

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.req("A17", "J1", "R11")
@asynchronous
async def test_client_gets_everything(client: str, host: str, tmp_path: Path) -> None:
    needs(client)
    revision = spoken(client, ALL_REVISIONS)
    assert revision is not None
    report = Report()
    application = sansmcp_asgi.asgi_app(app, on_event=report.on_event)
    with hosted(application, host) as served:
        report.faults.clear()  # of who looked whether it is there
        code, out, err = await run(client, f"{served.url}/mcp", tmp_path)
    assert code == 0, err
    assert got(out) == expected(client, revision)
    assert report.requests == [[revision.value, method] for method in CALLS]
    assert report.faults == []
