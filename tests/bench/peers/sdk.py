# mypy: ignore-errors
"""The official SDK's part of the bench. Runs in the SDK's own environment, and uses public names only."""

import asyncio
import gc
import math
import sys
import tracemalloc
from functools import partial
from pathlib import Path
from time import perf_counter

import anyio
from mcp import Client, StdioServerParameters
from mcp.server.mcpserver import MCPServer
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from mcp_types.methods import parse_server_result

from .. import messages
from ..harness import calls_in_flight, main, timed_loop
from . import sdk_http
from .sdk_server import server

CHUNK = 100


def received(line):
    """What `stdio_client` does to a line before its session sees it: decode, split, validate."""
    text, _ = line.decode("utf-8").split("\n")
    return SessionMessage(jsonrpc_message_adapter.validate_json(text, by_name=False))


def reading(line, method=None):
    """Bytes to the message that is dispatched; with `method`, to the typed result its caller gets.

    What comes in between (a memory stream, the dispatcher, a task that wakes up) is left out.
    """

    def make(calls):
        lines = [messages.with_id(line, number) for number in range(calls)]

        def work():
            for one in lines:
                message = received(one).message
                if method is not None:
                    parse_server_result(method, messages.REVISION, message.result)

        return work

    return timed_loop(make, CHUNK)


async def dispatching(stack):
    """Bytes to the caller that waits for the answer, by the SDK's own dispatcher.

    As in `stdio_client`, a line goes through a memory stream. It ends with the caller's task woken
    up: there is nothing to be seen of a message before that.
    """
    to_client, incoming = anyio.create_memory_object_stream(0)
    outgoing, from_client = anyio.create_memory_object_stream(math.inf)
    dispatcher = JSONRPCDispatcher(incoming, outgoing)
    group = await stack.enter_async_context(anyio.create_task_group())
    stack.callback(group.cancel_scope.cancel)
    await group.start(dispatcher.run, None, None)
    line = messages.call_result()

    async def run(calls):
        seconds = 0.0
        while calls > 0:
            count = min(calls, CHUNK)
            calls -= count
            tasks = [asyncio.create_task(dispatcher.send_raw_request("tools/call", {})) for _ in range(count)]
            sent = [(await from_client.receive()).message.id for _ in tasks]
            lines = [messages.with_id(line, request_id) for request_id in sent]
            start = perf_counter()
            for one in lines:
                await to_client.send(received(one))
            await asyncio.gather(*tasks)
            seconds += perf_counter() - start
        return seconds

    return run


def calling(target, mode, flying):
    """Calls of the echo tool, by one client to one server."""

    async def prepare(stack):
        client = await stack.enter_async_context(Client(target, mode=mode))
        return calls_in_flight(partial(client.call_tool, "echo", {"text": messages.TEXT}), flying)

    return prepare


STDIO = StdioServerParameters(command=sys.executable, args=[str(Path(__file__).with_name("sdk_server.py"))])


async def memory_per_call(stack):
    """Bytes that each open call takes, its task and the server's side included."""

    async def run(calls):
        waiting = MCPServer("bench", version="1", log_level="WARNING")
        arrived, release = asyncio.Event(), asyncio.Event()
        expected = 1

        @waiting.tool(structured_output=False)
        async def wait(text: str) -> str:
            nonlocal expected
            expected -= 1
            if not expected:
                arrived.set()
            await release.wait()
            return text

        async with Client(waiting, mode=messages.REVISION) as client:
            tasks = [asyncio.create_task(client.call_tool("wait", {"text": "x"}))]
            await arrived.wait()
            arrived.clear()
            expected = calls
            gc.collect()
            tracemalloc.start()
            tasks += [asyncio.create_task(client.call_tool("wait", {"text": "x"})) for _ in range(calls)]
            await arrived.wait()
            gc.collect()
            size, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            release.set()
            await asyncio.gather(*tasks)
        return size / calls

    return run


async def about(stack):
    async def run(calls):
        return {"python": sys.version.split()[0]}

    return run


BENCHES = {
    **sdk_http.BENCHES,
    "about": about,
    "call-envelope": reading(messages.call_result()),
    "call-dispatched": dispatching,
    "call-typed": reading(messages.call_result(), "tools/call"),
    "list-typed": reading(messages.list_result(), "tools/list"),
    "memory-per-call": memory_per_call,
}
for flying in (1, 64):
    BENCHES[f"memory-direct-{flying}"] = calling(server, "auto", flying)
    BENCHES[f"memory-streams-{flying}"] = calling(server, "legacy", flying)
    BENCHES[f"stdio-{flying}"] = calling(STDIO, "auto", flying)

if __name__ == "__main__":
    main(BENCHES)
