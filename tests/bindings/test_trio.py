"""What only trio can show: cancel scopes, errors as they are, and virtual time."""

import time
from typing import Any

import pytest
import trio
import trio.testing

import sansmcp_trio
from sansmcp import App, CallTimeout, Context, Legacy, Relisten, ShutdownLadder, SpawnFailed

from .every_app import app
from .support import PATIENCE, children, server, text_of

ERAS = [None, Legacy()]


def waiting() -> tuple[App, list[str]]:
    made, ended = App("waits", "1"), list[str]()

    @made.tool()
    async def forever(ctx: Context) -> str:
        try:
            await trio.sleep_forever()
        finally:
            ended.append("x")
        raise AssertionError

    @made.tool()
    async def reports(ctx: Context) -> str:
        for step in range(10):
            await trio.sleep(40)
            ctx.progress(step)
        return "done"

    return made, ended


@pytest.mark.req("K1", "L1", "L2")
@pytest.mark.case("C-03", "C-08")
@pytest.mark.parametrize("mode", ERAS)
def test_timeouts_of_minutes_take_no_time(mode: Any) -> None:
    made, ended = waiting()

    async def main() -> None:
        began = trio.current_time()
        async with sansmcp_trio.connect_memory(made, mode=mode) as client:
            with pytest.raises(CallTimeout) as caught:
                await client.call_tool("forever", timeout=600)
            assert caught.value.reason == "timeout"
            assert trio.current_time() - began == pytest.approx(600)
            await trio.sleep(1)
            assert ended == ["x"]
            seen: list[Any] = []
            done = await client.call_tool("reports", timeout=60, total_timeout=None, on_progress=seen.append)
            assert text_of(done) == "done"
            assert len(seen) == 10
            with pytest.raises(CallTimeout) as caught:
                await client.call_tool("reports", timeout=60, total_timeout=100, on_progress=seen.append)
            assert caught.value.reason == "total_timeout"

    started = time.monotonic()
    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
    assert time.monotonic() - started < PATIENCE


@pytest.mark.req("K1", "K3")
@pytest.mark.case("C-01")
@pytest.mark.parametrize("mode", ERAS)
def test_a_cancelled_scope_cancels_the_call(mode: Any) -> None:
    made, ended = waiting()

    async def main() -> None:
        async with sansmcp_trio.connect_memory(made, mode=mode) as client:
            with trio.move_on_after(30) as scope:
                await client.call_tool("forever")
            assert scope.cancelled_caught
            await trio.sleep(1)
            assert ended == ["x"]
            assert client.engine.stats()["calls"] == 0

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_an_error_is_raised_as_it_is() -> None:
    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            async with sansmcp_trio.connect_memory(app()) as client:
                await client.list_tools()
                raise KeyError("mine")
        with pytest.raises(SpawnFailed):
            async with sansmcp_trio.connect("/no/such/program"):
                pass
        with pytest.raises(KeyError, match="mine"):
            async with sansmcp_trio.HttpServing(app()):
                raise KeyError("mine")
        with pytest.raises(KeyError, match="mine"):
            async with sansmcp_trio.connect_many({"a": sansmcp_trio.connect_memory(app())}) as many:
                assert list(many.clients) == ["a"]
                raise KeyError("mine")

    trio.run(main)


def test_a_scope_around_a_connection_ends_it_at_once() -> None:
    async def main() -> None:
        started = time.monotonic()
        slow = ShutdownLadder(after_close=PATIENCE, after_terminate=PATIENCE)
        with trio.move_on_after(0.3) as scope:
            async with sansmcp_trio.connect(server("ignores_term"), ladder=slow):
                await trio.sleep_forever()
        assert scope.cancelled_caught
        with trio.move_on_after(0.3) as scope:
            async with sansmcp_trio.connect(server("deaf"), ladder=slow):
                pass
        assert scope.cancelled_caught
        assert time.monotonic() - started < PATIENCE

    trio.run(main)
    assert not children()


def test_a_scope_inside_a_connection_can_be_left_from_a_callback() -> None:
    async def main() -> None:
        with trio.CancelScope() as scope:

            async def ask(params: Any) -> Any:
                await trio.sleep(5)
                scope.cancel()

            async with sansmcp_trio.connect_memory(app(), on_elicit=ask) as client:
                await client.call_tool("who")
        assert scope.cancelled_caught

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))


def test_a_listener_can_be_cancelled_and_the_connection_goes_on() -> None:
    async def main() -> None:
        async with sansmcp_trio.connect_memory(app()) as client:
            with trio.move_on_after(60) as scope:
                async with client.listen(tools=True, relisten=Relisten()) as changes:
                    await client.call_tool("changes")
                    async for _ in changes:
                        pass
            assert scope.cancelled_caught
            assert text_of(await client.call_tool("echo", {"text": "a"})) == "a"

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
