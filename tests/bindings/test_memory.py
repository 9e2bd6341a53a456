"""Both ends in this process: on a loop with `connect_memory`, without one with `MemoryLink`."""

import asyncio
import threading
from collections.abc import Generator
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    App,
    CallTimeout,
    ClientEngine,
    ConnectionEnded,
    Context,
    Era,
    Event,
    Implementation,
    Legacy,
    LimitHit,
    LineClient,
    LineServer,
    LocalProtocolError,
    McpError,
    PeerGone,
    ProgressReported,
    RequestCancelled,
    SessionEnded,
    standard_codec,
)
from sansmcp.testing import MemoryLink, link

from .support import raised, run, text_of


def make_app(stopped: list[str] | None = None) -> App:
    app = App("here", "1", expose_errors=True, logging=True)

    @app.tool()
    def echo(text: str) -> str:
        return text

    @app.tool()
    def thread() -> str:
        return threading.current_thread().name

    @app.tool()
    def steps(ctx: Context) -> str:
        for step in (1, 2):
            ctx.progress(step, 2)
        return "done"

    @app.tool()
    async def soon(text: str) -> str:
        return text

    @app.tool()
    async def forever() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            if stopped is not None:
                stopped.append("forever")
        return "never"

    @app.tool()
    def returns_a_coroutine(text: str) -> Any:
        return soon(text)

    @app.tool()
    async def gives_up() -> str:
        raise asyncio.CancelledError

    @app.tool()
    def breaks() -> str:
        raise ValueError("broken")

    @app.tool()
    async def breaks_later() -> str:
        raise ValueError("broken later")

    return app


# on a loop ---------------------------------------------------------------------------------------


@pytest.mark.req("S2")
@pytest.mark.parametrize("mode", [None, Legacy()])
@pytest.mark.parametrize("threads", [0, 2])
def test_a_call_crosses_as_bytes_and_comes_back_typed(mode: Legacy | None, threads: int) -> None:
    async def main() -> None:
        wire: list[bytes] = []
        async with sansmcp_asyncio.connect_memory(
            make_app(), mode=mode, threads=threads, on_wire=lambda _, data: wire.append(data)
        ) as client:
            for tool in ("echo", "soon", "returns_a_coroutine"):
                assert text_of(await client.call_tool(tool, {"text": "ü"})) == "ü"
            assert b'"text":"\xc3\xbc"' in b"".join(wire)
            where = text_of(await client.call_tool("thread"))
            assert where.startswith("sansmcp handler" if threads else "MainThread")
            seen: list[ProgressReported] = []
            assert text_of(await client.call_tool("steps", on_progress=seen.append)) == "done"
            assert [report.progress for report in seen] == [1, 2]
            assert len((await client.list_tools()).tools) == 9
            many = await asyncio.gather(*[client.call_tool("echo", {"text": str(n)}) for n in range(300)])
            assert [text_of(result) for result in many] == [str(n) for n in range(300)]

    run(main)


def test_what_a_handler_raises_is_its_answer() -> None:
    async def main() -> None:
        for threads in (0, 1):
            async with sansmcp_asyncio.connect_memory(make_app(), threads=threads) as client:
                for tool in ("breaks", "breaks_later", "gives_up"):
                    assert (await client.call_tool(tool)).is_error
                assert "broken later" in text_of(await client.call_tool("breaks_later"))

    run(main)


def test_a_cancel_stops_the_handler_and_an_end_stops_all() -> None:
    async def main() -> None:
        stopped: list[str] = []
        async with sansmcp_asyncio.connect_memory(make_app(stopped)) as client:
            calls = [asyncio.create_task(client.call_tool("forever")) for _ in range(3)]
            await client.call_tool("soon", {"text": "they have started"})
            calls[0].cancel()
            await asyncio.wait(calls[:1])
            await client.call_tool("soon", {"text": "it has stopped"})
            assert len(stopped) == 1
            await raised(client.call_tool("forever", timeout=0.5), CallTimeout)
        assert len(stopped) == 4
        for call in calls[1:]:
            await raised(call, ConnectionEnded)

    run(main)


def test_a_task_that_only_calls_leaves_others_their_turn() -> None:
    async def main() -> None:
        turns = 0

        async def other() -> None:
            nonlocal turns
            while True:
                turns += 1
                await asyncio.sleep(0)

        async with sansmcp_asyncio.connect_memory(make_app()) as client:
            task = asyncio.create_task(other())
            for _ in range(50):
                await client.call_tool("echo", {"text": "a"})
            task.cancel()
            await asyncio.wait([task])
        assert turns >= 50

    run(main)


@pytest.mark.case("R-06")
def test_a_hundred_connections_in_memory_leave_nothing() -> None:
    async def main() -> None:
        for number in range(100):
            async with sansmcp_asyncio.connect_memory(make_app(), threads=number % 3) as client:
                await client.call_tool("thread")

    run(main)


# without a loop ----------------------------------------------------------------------------------


def both(app: App | None = None, *, chunk: int | None = None, **options: Any) -> MemoryLink:
    app = app or make_app()
    client = LineClient(ClientEngine(Implementation("me", "1"), now=0.0, **options), now=0.0)
    return link(client, LineServer(app.engine(now=0.0), now=0.0), app, chunk=chunk)


@pytest.mark.req("S2", "Q1")
@pytest.mark.parametrize("chunk", [None, 1, 7])
@pytest.mark.parametrize("codec", [None, standard_codec()])
def test_the_link_carries_bytes_until_both_are_quiet(chunk: int | None, codec: Any) -> None:
    pair = both(chunk=chunk, codec=codec)
    verdict = pair.client.engine.verdict
    assert verdict is not None
    assert verdict.era is Era.MODERN
    engine = pair.client.engine
    call = pair.call(engine.call_tool, "steps", progress=True)
    assert text_of(pair.end_of(call).result) == "done"
    assert [report.progress for report in pair.of(ProgressReported)] == [1, 2]
    assert text_of(pair.end_of(pair.call(engine.call_tool, "soon", {"text": "€"})).result) == "€"
    with pytest.raises(McpError):
        pair.end_of(pair.call(engine.call_tool, "nothing"))
    assert {side for side, _ in pair.trace} == {"client", "server"}
    pair.call(pair.client.close)
    assert pair.client.finished
    assert pair.server.finished


def test_a_handler_that_waits_has_no_loop_to_wait_in() -> None:
    app = App("waits", expose_errors=True)

    class Pause:
        def __await__(self) -> Generator[None, None, None]:
            yield

    @app.tool()
    async def pause() -> str:
        await Pause()
        return "never"

    pair = both(app)
    call = pair.call(pair.client.engine.call_tool, "pause")
    with pytest.raises(McpError, match="no loop"):
        pair.end_of(call)


def test_requests_are_left_to_the_test_without_an_app() -> None:
    app = make_app()
    client = LineClient(ClientEngine(Implementation("me", "1"), now=0.0), now=0.0)
    pair = link(client, LineServer(app.engine(now=0.0), now=0.0))
    call = pair.call(client.engine.call_tool, "echo", {"text": "a"})
    with pytest.raises(LocalProtocolError, match="not ended"):
        pair.end_of(call)
    pair.advance(59.9)
    with pytest.raises(LocalProtocolError, match="not ended"):
        pair.end_of(call)
    pair.advance(0.2)
    with pytest.raises(CallTimeout):
        pair.end_of(call)
    assert len(pair.of(RequestCancelled, "server")) == 1


def test_a_cut_is_told_to_both_ends() -> None:
    pair = both()
    pair.cut("lightning")
    gone: list[Event] = [*pair.of(PeerGone), *pair.of(SessionEnded), *pair.of(SessionEnded, "server")]
    assert len(gone) == 3
    with pytest.raises(LocalProtocolError):
        pair.client.engine.call_tool("echo", {"text": "a"}, now=pair.now)
    assert not pair.of(LimitHit)


def test_a_chunk_of_nothing_is_refused() -> None:
    with pytest.raises(LocalProtocolError):
        both(chunk=0)
