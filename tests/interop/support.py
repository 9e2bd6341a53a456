"""What the tests here share: a peer or a server of ours as a child process, and all that was said."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import pytest

import sansmcp_asyncio
from sansmcp import Command, DeviationTolerated, Event, Legacy, MessageIgnored, PeerFault, Timeouts
from sansmcp.types import CallToolResult, TextContent
from tests.peers.registry import PEERS, available

from .known import KNOWN, Ask

Json = dict[str, Any]
P = ParamSpec("P")
E = TypeVar("E", bound=Event)

LIMIT = 60.0
"""Seconds after which a test hangs; no wait below is unbounded."""


def needs(name: str) -> None:
    """Skip the test when the peer or client cannot be had."""
    reason = available(name)
    if reason is not None:
        pytest.skip(reason)


def prepare(name: str, scratch: Path) -> None:
    """Put into the peer's folder what has to be there."""
    for file, text in KNOWN[name].files.items():
        (scratch / file).write_text(text, encoding="utf-8")


def peers_with(attribute: str) -> pytest.MarkDecorator:
    """Run a test for each peer of which something is known."""
    names = [name for name, known in KNOWN.items() if getattr(known, attribute)]
    return pytest.mark.parametrize("name", names)


every_peer = pytest.mark.parametrize("name", PEERS)


def usual(name: str) -> Json:
    """How to connect to a peer when the test is not about that: without waiting for a silent one."""
    if PEERS[name].probe == "silence":
        return {"mode": Legacy()}
    return {"timeouts": Timeouts(probe=20.0)}


def text_of(result: CallToolResult) -> str:
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


async def check(client: sansmcp_asyncio.Client, ask: Ask) -> None:
    """Call a tool and look at what it answers."""
    result = await client.call_tool(ask.tool, ask.arguments)
    assert isinstance(result, CallToolResult)
    assert not result.is_error
    assert ask.text in text_of(result)
    assert result.structured_content == ask.structured


def asynchronous(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Let pytest run a coroutine function, in a loop of its own and not for ever."""

    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(LIMIT):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return run


class Talk:
    """Everything that is said on one connection, in order: messages both ways, events."""

    def __init__(self) -> None:
        self.sent: list[Json] = []
        self.received: list[Json] = []
        self.events: list[Event] = []
        self._rest = {"sent": b"", "received": b""}
        self._more = asyncio.Event()

    def on_wire(self, direction: Literal["sent", "received"], data: bytes) -> None:
        *lines, self._rest[direction] = (self._rest[direction] + data).split(b"\n")
        getattr(self, direction).extend(json.loads(line) for line in lines if line.strip())
        self._more.set()

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        self._more.set()

    async def until(self, condition: Callable[[], object]) -> None:
        """Wait for something to be said; the test as a whole has a limit."""
        while not condition():
            self._more.clear()
            await self._more.wait()

    def methods(self) -> list[str]:
        """Of all requests and notifications sent so far."""
        return [message["method"] for message in self.sent if "method" in message]

    def sent_with(self, method: str) -> list[Json]:
        return [message for message in self.sent if message.get("method") == method]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.events if isinstance(event, kind)]

    def faults(self) -> list[PeerFault]:
        """What the peer did against the protocol, as far as anybody was told."""
        ignored = [e.reason for e in self.of(MessageIgnored) if isinstance(e.reason, PeerFault)]
        return ignored + [event.fault for event in self.of(DeviationTolerated)]


@asynccontextmanager
async def connected(
    name: str, scratch: Path, talk: Talk, **options: Any
) -> AsyncIterator[sansmcp_asyncio.Client]:
    """A client of the peer called `name`, and into `talk` whatever is said."""
    needs(name)
    launch = PEERS[name].launch(scratch)
    command = Command(launch.argv, launch.env, str(launch.cwd))
    async with sansmcp_asyncio.connect(
        command, on_event=talk.on_event, on_wire=talk.on_wire, **options
    ) as client:
        yield client
