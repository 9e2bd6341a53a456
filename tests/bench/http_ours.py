"""Our part of the HTTP lines, through public names only."""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from sansmcp import ClientEngine, Implementation, Pin, ProgressReported, Revision, TransportKind
from sansmcp.http.client import HttpClient
from sansmcp.http.exchange import StartExchange
from sansmcp_asyncio import HttpServing, connect

from . import messages
from .harness import Prepare, Run, calls_in_flight, timed_loop
from .http_floor import spent
from .http_support import CHUNKS, EVENTS, event_stream, memory_held, start_server
from .programs.our_http_server import app

SERVER = "programs.our_http_server"
HOSTED = "programs.hosted_server"
HOSTS = ("uvicorn", "waitress")
KINDS = {"json": "echo", "stream": "report"}


async def _client(stack: AsyncExitStack, port: int) -> Any:
    return await stack.enter_async_context(connect(f"http://127.0.0.1:{port}/mcp"))


def _call(client: Any, kind: str) -> Callable[[], Any]:
    arguments = {"text": messages.TEXT}
    if kind == "json":
        return partial(client.call_tool, "echo", arguments)
    return partial(client.call_tool, "report", arguments, on_progress=lambda event: None)


def over_http(kind: str, flying: int, *server: str) -> Prepare:
    """Calls to a server in a process of its own: ours, unless another one is given."""

    async def prepare(stack: AsyncExitStack) -> Run:
        client = await _client(stack, start_server(stack, *(server or (SERVER,))))
        return calls_in_flight(_call(client, kind), flying)

    return prepare


def processor_time(kind: str) -> Prepare:
    """Seconds of the processor for both ends, in one process."""

    async def prepare(stack: AsyncExitStack) -> Run:
        serving = await stack.enter_async_context(HttpServing(app))
        return spent(_call(await _client(stack, serving.port), kind))

    return prepare


def stream_to_events(chunk: int) -> Prepare:
    """An event stream of 100,000 messages, as far as the events that tell of their progress."""

    def make(calls: int) -> Callable[[], object]:
        pinned = Pin(Revision.V2026_07_28)
        engine = ClientEngine(
            Implementation("bench", "1"), now=0.0, mode=pinned, transport=TransportKind.HTTP
        )
        client = HttpClient(engine, "http://127.0.0.1/mcp", now=0.0)
        client.start(0.0)
        engine.call_tool("echo", now=0.0, progress=True)
        client.handle_timeout(0.0)
        op = client.next_op()
        assert isinstance(op, StartExchange)
        client.response_started(op.exchange, 200, [("content-type", "text/event-stream")], 0.0)
        data = event_stream(EVENTS)
        pieces = [data[at : at + chunk] for at in range(0, len(data), chunk)]

        def work() -> None:
            seen = 0
            for piece in pieces:
                client.response_data(op.exchange, piece, 0.0)
                while (event := client.next_event()) is not None:
                    seen += type(event) is ProgressReported
                client.next_timeout()
            assert seen == EVENTS, seen

        return work

    return timed_loop(make, 1)


# memory ------------------------------------------------------------------------------------------


def held(kind: str) -> Prepare:
    """Bytes for each legacy session that is idle, or that has its stream open, with the server's socket."""

    async def prepare(stack: AsyncExitStack) -> Run:
        async def run(calls: int) -> float:
            async with HttpServing(app) as serving:
                return await memory_held(serving.port, kind)

        return run

    return prepare


BENCHES: dict[str, Prepare] = {f"http-{kind}-memory": held(kind) for kind in ("session", "stream")}
for _kind in KINDS:
    BENCHES[f"http-cpu-{_kind}"] = processor_time(_kind)
    for _flying in (1, 16):
        BENCHES[f"http-{_kind}-{_flying}"] = over_http(_kind, _flying)
    for _host in HOSTS:
        BENCHES[f"http-{_kind}-{_host}"] = over_http(_kind, 16, HOSTED, _host)
for _chunk in CHUNKS:
    BENCHES[f"http-events-{_chunk}"] = stream_to_events(_chunk)
