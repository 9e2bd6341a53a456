"""Our part of the bench, through public names only."""

import asyncio
import gc
import sys
import tracemalloc
from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import Any

from sansmcp import (
    App,
    ClientEngine,
    Context,
    Implementation,
    Limits,
    LineClient,
    Pin,
    RequestReceived,
    ResultReady,
    Revision,
    SendRequest,
    SendResponse,
    fast_codec,
    standard_codec,
)
from sansmcp.wire.jsoncodec import JsonCodec
from sansmcp.wire.jsonrpc import ResultResponse, classify
from sansmcp_asyncio import connect, connect_memory

from . import http_ours, messages, threads_ours
from .harness import Prepare, Run, calls_in_flight, main, timed_loop
from .programs.our_server import app

SERVER = Path(__file__).parent / "programs" / "our_server.py"
CODECS: dict[str, Callable[[], JsonCodec]] = {"standard": standard_codec, "fast": fast_codec}
INFO = Implementation("bench", "1")
NOW = 0.0
CONN = 1
CHUNK = 100

MANY = 20_000
"""No limit of ours is to get in the way of the benches with thousands of calls in flight."""
WIDE = Limits(max_open_requests=MANY, max_buffered_events=MANY)

MESSAGE = 10_000_000
PIECE = 4096


def client_engine(codec: JsonCodec) -> ClientEngine:
    """A client that may call at once: the revision is pinned, so nothing is probed."""
    pinned = Pin(Revision.V2026_07_28)
    return ClientEngine(INFO, now=NOW, mode=pinned, codec=codec, limits=WIDE)


def line_client(codec: JsonCodec) -> LineClient:
    """The same on a byte stream."""
    transport = LineClient(client_engine(codec), now=NOW)
    transport.opened(CONN, NOW)
    drive(transport)
    return transport


def drive(transport: LineClient) -> Any:
    """What every driver does after an input: ops, events, timer. Returns the last event."""
    while transport.next_op() is not None:
        pass
    last = None
    while (event := transport.next_event()) is not None:
        last = event
    transport.next_timeout()
    return last


# reading -----------------------------------------------------------------------------------------


def envelopes(line: bytes, codec: JsonCodec) -> Prepare:
    """Bytes to the kind of message they are."""
    loads = codec.loads

    def make(calls: int) -> Callable[[], object]:
        lines = [messages.with_id(line, number) for number in range(calls)]

        def work() -> None:
            for one in lines:
                assert type(classify(loads(one))) is ResultResponse

        return work

    return timed_loop(make, CHUNK)


def engine_answers(line: bytes, codec: JsonCodec) -> Prepare:
    """One message to the event that ends a call, by the engine alone."""
    engine = Pair(codec).client

    def make(calls: int) -> Callable[[], object]:
        made = [engine.call_tool("echo", now=NOW) for _ in range(calls)]
        for _ in engine.events():
            pass
        lines = [messages.with_id(line, call.request_id).rstrip() for call in made]

        def work() -> None:
            for one in lines:
                engine.receive_message(one, now=NOW)
                assert type(engine.next_event()) is ResultReady
                engine.next_timeout()

        return work

    return timed_loop(make, CHUNK)


def answers(line: bytes, method: str, codec: JsonCodec, *, typed: bool) -> Prepare:
    """Bytes to the event that ends a call, one read per line; `typed`: and its result as a class."""
    transport = line_client(codec)
    engine = transport.engine

    def make(calls: int) -> Callable[[], object]:
        params = {"name": "echo"} if method == "tools/call" else None
        made = [engine.request(method, params, now=NOW) for _ in range(calls)]
        drive(transport)
        lines = [messages.with_id(line, call.request_id) for call in made]

        def work() -> None:
            receive = transport.receive_data
            for one in lines:
                receive(CONN, one, NOW)
                event = drive(transport)
                assert type(event) is ResultReady
                if typed:
                    event.result  # noqa: B018  (made at the first access)

        return work

    return timed_loop(make, CHUNK)


def big_answer(codec: JsonCodec, piece: int) -> Prepare:
    """One answer of 10 MB, in pieces."""
    transport = line_client(codec)
    line = messages.call_result("x" * MESSAGE)

    def make(calls: int) -> Callable[[], object]:
        call = transport.engine.call_tool("echo", now=NOW)
        drive(transport)
        data = messages.with_id(line, call.request_id)
        pieces = [data[at : at + piece] for at in range(0, len(data), piece)]

        def work() -> None:
            event = None
            for one in pieces:
                transport.receive_data(CONN, one, NOW)
                event = drive(transport)
            assert type(event) is ResultReady

        return work

    return timed_loop(make, 1)


# calls -------------------------------------------------------------------------------------------


def in_memory(codec: str, flying: int) -> Prepare:
    """Calls through `connect_memory`: bytes both ways, typed result."""

    async def prepare(stack: AsyncExitStack) -> Run:
        client = await stack.enter_async_context(connect_memory(app, codec=CODECS[codec]()))
        return calls_in_flight(partial(client.call_tool, "echo", {"text": messages.TEXT}), flying)

    return prepare


def over_stdio(codec: str, flying: int) -> Prepare:
    """Calls to a child process that serves the same app."""

    async def prepare(stack: AsyncExitStack) -> Run:
        command = [sys.executable, str(SERVER), codec]
        client = await stack.enter_async_context(connect(command, codec=CODECS[codec]()))
        return calls_in_flight(partial(client.call_tool, "echo", {"text": messages.TEXT}), flying)

    return prepare


class Pair:
    """Both engines and no transport: calls leave, arrive, are answered and end, all of them at each step."""

    def __init__(self, codec: JsonCodec) -> None:
        self.client = client_engine(codec)
        self.server = app.engine(now=NOW, codec=codec, limits=WIDE)
        self.client.connect(now=NOW)

    def send(self, flying: int) -> list[bytes]:
        client = self.client
        for _ in range(flying):
            client.call_tool("echo", {"text": messages.TEXT}, now=NOW)
        return [event.data for event in client.events() if type(event) is SendRequest]

    def answer(self, sent: list[bytes]) -> list[bytes]:
        server = self.server
        for data in sent:
            server.receive_message(data, now=NOW)
        requests = [event.request for event in server.events() if type(event) is RequestReceived]
        for request in requests:
            invocation = app.begin(server, request, Context(request, server, _no_context), now=NOW)
            assert invocation is not None
            invocation.finish(messages.TEXT, now=NOW)
        return [event.data for event in server.events() if type(event) is SendResponse]

    def end(self, answered: list[bytes], flying: int) -> None:
        client = self.client
        for data in answered:
            client.receive_message(data, now=NOW)
        results = [event.result for event in client.events() if type(event) is ResultReady]
        assert len(results) == flying
        assert results[0].content[0].text == messages.TEXT

    def calls(self, flying: int) -> None:
        self.end(self.answer(self.send(flying)), flying)


def _no_context(action: Callable[[float], object]) -> None:
    raise AssertionError("the echo tool asks for no context")


def engines(codec: JsonCodec, flying: int) -> Prepare:
    """Calls between two engines, `flying` at a time."""
    pair = Pair(codec)

    def make(calls: int) -> Callable[[], object]:
        def work() -> None:
            for _ in range(max(1, calls // flying)):
                pair.calls(flying)

        return work

    return timed_loop(make, MANY)


# memory ------------------------------------------------------------------------------------------


async def engine_memory(stack: AsyncExitStack) -> Run:
    """Bytes that each open call takes in the client's engine, once its request has left."""

    async def run(calls: int) -> float:
        pair = Pair(fast_codec())
        pair.calls(10)
        gc.collect()
        tracemalloc.start()
        pair.send(calls)
        gc.collect()
        size, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return size / calls

    return run


async def client_memory(stack: AsyncExitStack) -> Run:
    """Bytes that each open call takes, its task and the server's side included."""

    async def run(calls: int) -> float:
        waiting = App("bench", "1")
        arrived, release = asyncio.Event(), asyncio.Event()
        expected = 1

        @waiting.tool()
        async def wait(text: str) -> str:
            nonlocal expected
            expected -= 1
            if not expected:
                arrived.set()
            await release.wait()
            return text

        async with connect_memory(waiting, server_limits=WIDE, limits=WIDE) as client:
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


BENCHES: dict[str, Prepare] = {
    "engine-memory": engine_memory,
    "client-memory": client_memory,
    **http_ours.BENCHES,
    **threads_ours.BENCHES,
}
for _name, _codec in CODECS.items():
    _call, _list = messages.call_result(), messages.list_result()
    BENCHES[f"call-envelope-{_name}"] = envelopes(_call, _codec())
    BENCHES[f"call-engine-{_name}"] = engine_answers(_call, _codec())
    BENCHES[f"call-event-{_name}"] = answers(_call, "tools/call", _codec(), typed=False)
    BENCHES[f"call-typed-{_name}"] = answers(_call, "tools/call", _codec(), typed=True)
    BENCHES[f"list-typed-{_name}"] = answers(_list, "tools/list", _codec(), typed=True)
    BENCHES[f"big-chunked-{_name}"] = big_answer(_codec(), PIECE)
    BENCHES[f"big-whole-{_name}"] = big_answer(_codec(), 2 * MESSAGE)
    for _flying in (1, 64):
        BENCHES[f"memory-{_flying}-{_name}"] = in_memory(_name, _flying)
        BENCHES[f"stdio-{_flying}-{_name}"] = over_stdio(_name, _flying)
for _flying in (1, 10, 100, 1000, 10_000):
    BENCHES[f"engines-{_flying}"] = engines(fast_codec(), _flying)

if __name__ == "__main__":
    main(BENCHES)
