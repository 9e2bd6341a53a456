# mypy: ignore-errors
"""The official SDK's part of the HTTP lines."""

import asyncio
import socket
from functools import partial
from time import perf_counter

import httpx2
import uvicorn
from mcp import Client
from mcp.server.mcpserver import MCPServer
from mcp_types import jsonrpc_message_adapter

from .. import messages
from ..harness import calls_in_flight
from ..http_support import CHUNKS, EVENTS, event_stream, memory_held, start_server

SERVER = "peers.sdk_http_server"
KINDS = {"json": "echo", "stream": "report"}
HEADERS = {"content-type": "text/event-stream"}
REQUEST = httpx2.Request("POST", "http://127.0.0.1/mcp")


def over_http(kind, flying):
    """Calls to a server in a process of its own."""

    async def prepare(stack):
        port = start_server(stack, SERVER, kind)
        client = await stack.enter_async_context(Client(f"http://127.0.0.1:{port}/mcp"))
        arguments = {"text": messages.TEXT}
        if kind == "json":
            call = partial(client.call_tool, "echo", arguments)
        else:

            async def seen(progress, total, message):
                pass

            call = partial(client.call_tool, "report", arguments, progress_callback=seen)
        return calls_in_flight(call, flying)

    return prepare


def stream_to_messages(chunk):
    """An event stream through the SDK's parser, each of its messages validated as an envelope."""

    async def prepare(stack):
        data = event_stream(EVENTS)
        pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]

        class Stream(httpx2.AsyncByteStream):
            async def __aiter__(self):
                for piece in pieces:
                    yield piece

        async def run(calls):
            seconds = 0.0
            for _ in range(calls):
                response = httpx2.Response(200, headers=HEADERS, stream=Stream(), request=REQUEST)
                seen = 0
                start = perf_counter()
                async for event in httpx2.EventSource(response):
                    jsonrpc_message_adapter.validate_json(event.data, by_name=False)
                    seen += 1
                seconds += perf_counter() - start
                assert seen == EVENTS, seen
            return seconds

        return run

    return prepare


def held(kind):
    """Bytes for each legacy session that is idle, or that has its stream open."""

    async def prepare(stack):
        async def run(calls):
            server = MCPServer("bench", version="1", log_level="WARNING")
            listening = socket.create_server(("127.0.0.1", 0))
            config = uvicorn.Config(server.streamable_http_app(), log_level="warning", http="h11", ws="none")
            running = uvicorn.Server(config)
            task = asyncio.create_task(running.serve(sockets=[listening]))
            while not running.started:  # noqa: ASYNC110  (uvicorn tells it no other way)
                await asyncio.sleep(0.01)
            size = await memory_held(listening.getsockname()[1], kind)
            running.should_exit = True
            await task
            return size

        return run

    return prepare


BENCHES = {f"http-{kind}-memory": held(kind) for kind in ("session", "stream")}
for kind in KINDS:
    for flying in (1, 16):
        BENCHES[f"http-{kind}-{flying}"] = over_http(kind, flying)
for chunk in CHUNKS:
    BENCHES[f"http-events-{chunk}"] = stream_to_messages(chunk)
