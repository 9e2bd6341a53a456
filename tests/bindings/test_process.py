"""The asyncio client and the life of a child process: how it starts, fails, is left and is got rid of."""

import asyncio
import os
import re
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    CallTimeout,
    ConnectionEnded,
    Era,
    Event,
    MessageIgnored,
    PeerFault,
    PeerGone,
    RestartPolicy,
    ShutdownLadder,
)
from sansmcp_asyncio import Client

from .support import PATIENCE, alive, children, raised, run, server, soon, text_of, until


def ladder(after_close: float, after_terminate: float) -> ShutdownLadder:
    return ShutdownLadder(after_close=after_close, after_terminate=after_terminate)


SHORT = ladder(0.2, 0.2)


async def call_once(client: Client) -> str:
    return text_of(await client.call_tool("x"))


def lived(name: str, use: Callable[[Client], Awaitable[Any]], **options: Any) -> float:
    """Connect to a server, use it, leave; return how long the leaving took."""
    options.setdefault("ladder", SHORT)

    async def main() -> float:
        async with sansmcp_asyncio.connect(server(name), **options) as client:
            await use(client)
            left = time.monotonic()
        return time.monotonic() - left

    return run(main)


# leaving: the ladder -----------------------------------------------------------------------------


@pytest.mark.req("Q4")
def test_a_server_that_leaves_at_eof_is_not_waited_for() -> None:
    assert lived("serve_by_hand", call_once, ladder=ladder(PATIENCE, PATIENCE)) < PATIENCE


@pytest.mark.req("Q4")
@pytest.mark.case("R-03")
def test_a_server_that_stays_at_eof_is_terminated() -> None:
    assert 0.19 < lived("ignores_eof", call_once, ladder=ladder(0.2, PATIENCE)) < PATIENCE


@pytest.mark.req("Q4")
@pytest.mark.case("R-03")
def test_a_server_that_ignores_that_too_is_killed() -> None:
    assert lived("ignores_term", call_once) > 0.39


@pytest.mark.req("Q4")
@pytest.mark.case("R-02")
def test_what_a_wrapper_started_goes_with_it() -> None:
    said: list[bytes] = []
    lived("wrapper", call_once, stderr=said.append)
    pid = grandchild(b"".join(said).decode())
    until(lambda: not alive(pid), "the end of the grandchild")


def grandchild(text: str) -> int:
    found = re.search(r"grandchild (\d+)", text)
    assert found is not None, text
    return int(found[1])


def test_a_cancelled_close_kills_at_once() -> None:
    async def main() -> None:
        slow = ladder(2 * PATIENCE, 2 * PATIENCE)
        client = await sansmcp_asyncio.connect(server("ignores_term"), ladder=slow)
        pid = int(await call_once(client))
        closing = asyncio.create_task(client.aclose())
        await asyncio.sleep(0.05)
        assert alive(pid)
        closing.cancel()
        started = time.monotonic()
        await asyncio.wait([closing])
        assert closing.cancelled()
        assert time.monotonic() - started < PATIENCE
        assert not alive(pid)

    run(main)


def test_cancelled_while_it_connects() -> None:
    async def main() -> None:
        opening = sansmcp_asyncio.connect(server("deaf"), ladder=SHORT)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.1):
                await opening
        assert not children()
        # before there is a process at all, and when there never will be one
        for argv in (server("deaf"), ["/no/such/program"]):
            task = asyncio.create_task(sansmcp_asyncio.connect(argv, ladder=SHORT).__aenter__())
            await asyncio.sleep(0)
            task.cancel()
            await asyncio.wait([task], timeout=PATIENCE)
            assert task.cancelled()

    run(main)


def test_a_start_that_fails_while_the_client_closes_is_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        client: Client

        def on_event(event: Event) -> None:
            # the restart is asked for in this turn of the loop; close before it is tried
            if isinstance(event, PeerGone):
                program.unlink()
                asyncio.get_running_loop().call_later(0.05, client.close)

        argv = [str(program), *server("dies_in_call")[1:]]
        policy = RestartPolicy(delay=0.05)
        async with sansmcp_asyncio.connect(argv, restart=policy, on_event=on_event) as client:
            await raised(call_once(client), ConnectionEnded)
            await raised(call_once(client), ConnectionEnded)

    program = tmp_path / "server"
    program.symlink_to(sys.executable)
    run(main)


# dying -------------------------------------------------------------------------------------------


@pytest.mark.req("Q6", "Q7")
def test_a_server_that_dies_in_a_call_fails_it_with_its_last_words() -> None:
    async def main() -> None:
        events: list[Event] = []
        never = RestartPolicy(limit=0)
        argv = server("dies_in_call")
        async with sansmcp_asyncio.connect(argv, restart=never, on_event=events.append) as client:
            calls = [asyncio.create_task(call_once(client)) for _ in range(3)]
            for call in calls:
                error = await raised(call, ConnectionEnded)
                assert (error.returncode, error.stderr_tail) == (3, "boom\n")
            # the cause is kept for whoever comes later
            error = await raised(call_once(client), ConnectionEnded)
            assert (error.returncode, error.stderr_tail) == (3, "boom\n")
            await raised(client.notify("x/y"), ConnectionEnded)
        (gone,) = [event for event in events if isinstance(event, PeerGone)]
        assert (gone.returncode, gone.stderr_tail, gone.restarting) == (3, "boom\n", False)

    run(main)


@pytest.mark.req("Q6", "Q7")
@pytest.mark.case("R-07")
def test_a_server_that_cannot_run_says_why() -> None:
    async def main() -> None:
        error = await raised(sansmcp_asyncio.connect(server("dies_always")), ConnectionEnded)
        assert error.returncode == 2
        assert error.stderr_tail.endswith("no such module\n")
        assert len(error.stderr_tail) == 8192
        error = await raised(sansmcp_asyncio.connect(["/no/such/program"]), ConnectionEnded)
        assert "/no/such/program" in str(error)
        assert error.returncode is None
        assert "Traceback" not in str(error)
        await raised(sansmcp_asyncio.connect(["x\0y"]), ConnectionEnded)
        await raised(sansmcp_asyncio.connect(server("good"), cwd="/no/such/folder"), ConnectionEnded)

    run(main)


@pytest.mark.req("A13")
@pytest.mark.case("V-03")
def test_a_server_that_dies_on_the_probe_is_started_again_and_not_probed() -> None:
    async def main() -> None:
        wire: list[bytes] = []

        def sent(side: str, data: bytes) -> None:
            if side == "sent":
                wire.append(data)

        async with sansmcp_asyncio.connect(server("dies_on_probe"), on_wire=sent) as client:
            assert client.era is Era.LEGACY
            assert await call_once(client)
            assert b"".join(wire).count(b"server/discover") == 1
            verdict = client.verdict
        wire.clear()
        async with sansmcp_asyncio.connect(server("dies_on_probe"), on_wire=sent, prior=verdict) as client:
            assert await call_once(client)
            assert b"server/discover" not in b"".join(wire)

    run(main)


@pytest.mark.req("Q9")
def test_a_crashed_server_is_started_again_and_waiting_calls_reach_it(tmp_path: Path) -> None:
    async def main() -> None:
        argv = server("crashes_once", str(tmp_path / "mark"))
        policy = RestartPolicy(delay=0.05)
        async with sansmcp_asyncio.connect(argv, restart=policy) as client:
            error = await raised(call_once(client), ConnectionEnded)
            assert error.returncode == 7
            again = await asyncio.gather(*[call_once(client) for _ in range(3)])
            assert len(set(again)) == 1
            assert client.engine.stats()["calls"] == 0
        # and closing while it waits to start again
        (tmp_path / "mark").unlink()
        async with sansmcp_asyncio.connect(argv, restart=RestartPolicy(delay=60)) as client:
            await raised(call_once(client), ConnectionEnded)
            waiting = asyncio.create_task(call_once(client))
            await asyncio.sleep(0)
        await raised(waiting, ConnectionEnded)

    run(main)


def test_a_dead_server_whose_pipes_live_on_is_not_waited_for() -> None:
    pids: list[int] = []

    async def main() -> None:
        argv = server("holds_pipes")
        async with sansmcp_asyncio.connect(argv, restart=RestartPolicy(limit=0)) as client:
            started = time.monotonic()
            error = await raised(call_once(client), ConnectionEnded)
            assert error.returncode == 5
            assert time.monotonic() - started < 30  # those who hold them do so for 60 seconds
            pids.append(grandchild(error.stderr_tail))

    try:
        run(main)
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGKILL)


def test_a_server_that_closes_its_output_is_got_rid_of() -> None:
    async def main() -> None:
        argv = server("closes_stdout")
        async with sansmcp_asyncio.connect(argv, ladder=SHORT, restart=RestartPolicy(limit=0)) as client:
            error = await raised(call_once(client), ConnectionEnded)
            assert error.returncode == -15

    run(main)


@pytest.mark.case("R-05")
def test_a_server_that_closes_its_input_is_got_rid_of() -> None:
    async def main() -> None:
        argv = server("closes_stdin")
        async with sansmcp_asyncio.connect(argv, ladder=SHORT, restart=RestartPolicy(limit=0)) as client:
            await raised(client.call_tool("x", {"text": "y" * 1_000_000}), ConnectionEnded)

    run(main)


# misbehaving -------------------------------------------------------------------------------------


@pytest.mark.req("Q6")
@pytest.mark.case("R-01")
def test_a_full_standard_error_blocks_nobody() -> None:
    seen: list[int] = []

    async def several(client: Client) -> None:
        for _ in range(3):
            await call_once(client)

    lived("loud", several, stderr=lambda data: seen.append(len(data)))
    assert sum(seen) >= 4 * 200 * 1024


@pytest.mark.req("Q3")
@pytest.mark.case("S-05")
def test_a_banner_is_told_and_ignored() -> None:
    events: list[Event] = []
    lived("banner", call_once, on_event=events.append)
    (ignored,) = [event for event in events if isinstance(event, MessageIgnored)]
    assert "Starting server" in ignored.detail


@pytest.mark.case("S-09")
def test_the_framing_of_language_servers_is_recognised() -> None:
    async def main() -> None:
        events: list[Event] = []
        opening = sansmcp_asyncio.connect(server("lsp"), ladder=SHORT, on_event=events.append)
        task = asyncio.create_task(opening.__aenter__())

        def told() -> bool:
            reasons = {event.reason for event in events if isinstance(event, MessageIgnored)}
            return PeerFault.HEADER_FRAMING in reasons

        await soon(told, "what was ignored")
        task.cancel()
        await asyncio.wait([task])

    run(main)


@pytest.mark.case("C-09")
def test_a_server_that_stops_reading_blocks_nobody() -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect(server("goes_deaf"), ladder=SHORT) as client:
            big = {"text": "x" * 1_000_000}
            given_up = asyncio.create_task(client.call_tool("x", big))
            calls = [asyncio.create_task(client.call_tool("x", big, timeout=0.3)) for _ in range(4)]
            await asyncio.sleep(0.1)
            given_up.cancel()
            for call in calls:
                await raised(call, CallTimeout)
            assert given_up.cancelled()
            assert client.engine.stats()["calls"] == 0

    run(main)


def test_a_flood_of_notifications_loses_no_answer() -> None:
    async def main() -> None:
        counted = 0

        def count(event: Event) -> None:
            nonlocal counted
            counted += type(event).__name__ == "ListChanged"

        async with sansmcp_asyncio.connect(server("floods"), on_event=count) as client:
            await asyncio.gather(*[call_once(client) for _ in range(3)])
            assert counted == 30_000

    run(main)


# again and again ---------------------------------------------------------------------------------


@pytest.mark.case("R-06")
def test_a_hundred_connections_leave_nothing() -> None:
    async def one(number: int) -> None:
        async with sansmcp_asyncio.connect(server("serve_by_hand"), ladder=SHORT) as client:
            if number % 3:
                await call_once(client)
            if number % 5 == 0:
                await client.aclose()

    async def main() -> None:
        for start in range(0, 100, 4):
            await asyncio.gather(*map(one, range(start, start + 4)))
            await soon(lambda: not children(), "the end of every child")

    run(main)
