"""Clients that are only just arriving when a server ends, in every binding: nothing is left of them."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from typing import Any

import pytest

from sansmcp import App

from .every_app import app
from .kits import KITS, Kit
from .support import PATIENCE
from .test_connect_tls import certificate, contexts

__all__ = ["certificate"]  # a fixture

pytestmark = pytest.mark.case("R-06")


@pytest.fixture(params=KITS, ids=lambda kit: kit.name)
def kit(request: pytest.FixtureRequest) -> Kit:
    kit: Kit = request.param
    return kit


def serving(kit: Kit, kind: str, made: App, **options: Any) -> Any:
    return kit.serving(made, **options) if kind == "http" else kit.streaming(kind, made, **options)


def arrives(stack: ExitStack, port: int) -> socket.socket:
    """Connects without giving the server a turn."""
    return stack.enter_context(socket.create_connection(("127.0.0.1", port)))


@pytest.mark.parametrize("kind", ["http", "tcp"])
@pytest.mark.parametrize("turns", range(6))
def test_a_server_that_ends_while_clients_arrive(kit: Kit, kind: str, turns: int) -> None:
    async def main() -> None:
        with ExitStack() as stack:
            async with serving(kit, kind, app()) as server:
                clients = [arrives(stack, server.port) for _ in range(20)]
                for _ in range(turns):
                    await kit.sleep(0)
            for client in clients:
                client.settimeout(PATIENCE)
                try:
                    assert client.recv(1) == b""
                except ConnectionError:
                    pass

    kit.run(main)


@pytest.mark.parametrize("kind", ["http", "tcp"])
@pytest.mark.parametrize("turns", [0, 1, 3, 40])
def test_a_server_that_ends_while_nobody_begins_with_tls(
    kit: Kit, kind: str, turns: int, certificate: Any
) -> None:
    theirs, _ = contexts(certificate)

    async def main() -> None:
        with ExitStack() as stack:
            async with serving(kit, kind, app(), ssl=theirs) as server:
                client = arrives(stack, server.port)
                for _ in range(turns):
                    await kit.sleep(0)
            client.settimeout(PATIENCE)
            try:
                assert client.recv(1) == b""
            except ConnectionError:
                pass

    kit.run(main)
