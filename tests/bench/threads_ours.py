"""Our part of the lines without a loop: the synchronous client, through public names only."""

import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from sansmcp import Command, Pin, Revision, fast_codec, standard_codec
from sansmcp.wire.jsoncodec import JsonCodec
from sansmcp_threads import connect

from . import messages
from .harness import Prepare, Run, calls_in_threads
from .http_support import ROOT, start_server

CODECS: dict[str, Callable[[], JsonCodec]] = {"standard": standard_codec, "fast": fast_codec}
SERVERS = {"stdio": "our_server", "client": "blocking_floor_server"}
"""Ours, and that of the floor, which shows what the client costs alone."""
AT_ONCE = (1, 8)


def _echo(client: Any) -> Callable[[], object]:
    return partial(client.call_tool, "echo", {"text": messages.TEXT})


def over_stdio(server: str, codec: str, threads: int) -> Prepare:
    """Calls to a child process. The revision is pinned, for the server of the floor knows only calls."""

    async def prepare(stack: AsyncExitStack) -> Run:
        command = Command([sys.executable, "-m", f"tests.bench.programs.{server}", codec], cwd=str(ROOT))
        pinned = Pin(Revision.V2026_07_28)
        client = stack.enter_context(connect(command, codec=CODECS[codec](), mode=pinned))
        return calls_in_threads(_echo(client), threads)

    return prepare


def over_http(threads: int) -> Prepare:
    """Calls to a server in a process of its own."""

    async def prepare(stack: AsyncExitStack) -> Run:
        port = start_server(stack, "programs.our_http_server")
        client = stack.enter_context(connect(f"http://127.0.0.1:{port}/mcp"))
        return calls_in_threads(_echo(client), threads)

    return prepare


BENCHES: dict[str, Prepare] = {}
for _threads in AT_ONCE:
    for _codec in CODECS:
        for _what, _server in SERVERS.items():
            BENCHES[f"blocking-{_what}-{_threads}-{_codec}"] = over_stdio(_server, _codec, _threads)
    BENCHES[f"blocking-http-{_threads}"] = over_http(_threads)
