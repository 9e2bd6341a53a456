"""Several addresses of one name, in every binding: the first to answer is used, and nothing is left."""

from __future__ import annotations

import asyncio
import socket
from contextlib import ExitStack
from typing import Any

import pytest

from sansmcp.errors import NetworkFailure, NetworkProblem
from sansmcp_asyncio import connect

from .every_app import app
from .http_support import closed_port
from .kits import KITS, Kit
from .support import run, text_of


@pytest.fixture(params=KITS, ids=lambda kit: kit.name)
def kit(request: pytest.FixtureRequest) -> Kit:
    kit: Kit = request.param
    return kit


def named(monkeypatch: pytest.MonkeyPatch, *places: tuple[str, int]) -> None:
    """Let ``many.example`` be there."""
    real = socket.getaddrinfo

    def looked_up(host: Any, *arguments: Any, **options: Any) -> Any:
        if host not in ("many.example", b"many.example"):
            return real(host, *arguments, **options)
        return [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", place) for place in places]

    monkeypatch.setattr(socket, "getaddrinfo", looked_up)


def silent(stack: ExitStack) -> int:
    """A port of this machine where nobody is refused and nobody is let in."""
    server = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
    place: tuple[str, int] = server.getsockname()
    for _ in range(4):
        full = stack.enter_context(socket.socket())
        full.setblocking(False)
        full.connect_ex(place)
    return place[1]


@pytest.mark.req("AA2")
def test_the_first_address_to_answer_is_used(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        with ExitStack() as stack:
            nobody, mute = ("127.0.0.1", closed_port()), ("127.0.0.1", silent(stack))
            async with kit.streaming("tcp", app()) as serving:
                here = ("127.0.0.1", serving.port)
                for places in ([nobody, here], [mute, here], [mute, nobody, here], [here, here, here]):
                    named(monkeypatch, *places)
                    async with kit.connect("tcp://many.example:1") as client:
                        assert text_of(await client.call_tool("echo", {"text": "hi"})) == "hi"
                    monkeypatch.undo()
            named(monkeypatch, nobody, nobody)
            with pytest.raises(NetworkFailure) as caught:
                async with kit.connect("tcp://many.example:1"):
                    pass
            assert caught.value.problem is NetworkProblem.REFUSED

    kit.run(main)


@pytest.mark.case("R-07")
@pytest.mark.parametrize("places", [1, 2])
def test_whoever_is_cancelled_when_a_race_is_won_leaves_no_socket(
    monkeypatch: pytest.MonkeyPatch, places: int
) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            where = server.getsockname()
            found = [(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", where)] * places

            async def looked_up(*arguments: Any, **options: Any) -> Any:
                return found

            # without its thread, so that a number of turns is a place in the code
            monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", looked_up)
            for turns in range(24):
                task = asyncio.ensure_future(connect("tcp://many.example:1").__aenter__())
                for _ in range(turns):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.wait([task])
                assert task.cancelled()

    run(main)
