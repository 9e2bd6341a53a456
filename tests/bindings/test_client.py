"""The asyncio client against real child processes that serve with our own binding."""

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    CallTimeout,
    Command,
    ConnectionEnded,
    Era,
    Event,
    Legacy,
    LimitHit,
    LocalProtocolError,
    LogReceived,
    McpError,
    PaginationError,
    Pin,
    ProgressReported,
    Revision,
    SessionEnded,
    Timeouts,
)
from sansmcp.types.content import TextContent, TextResourceContents
from sansmcp_asyncio import Client

from .support import PATIENCE, raised, run, server, soon, text_of


def cancels(wire: list[tuple[str, bytes]]) -> int:
    return sum(data.count(b"notifications/cancelled") for side, data in wire if side == "sent")


def taped() -> tuple[list[tuple[str, bytes]], Callable[[str, bytes], object]]:
    wire: list[tuple[str, bytes]] = []
    return wire, lambda side, data: wire.append((side, data))


# verbs -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [None, Legacy(), Pin(Revision.V2024_11_05), Pin(Revision.V2026_07_28)])
def test_every_verb_answers_with_its_class(mode: Any) -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect(server("good"), mode=mode) as client:
            legacy = client.era is Era.LEGACY
            result = await client.call_tool("echo", {"text": "hallo ü 🐟  "})
            assert text_of(result) == "hallo ü 🐟  "
            assert result.is_error is not True
            assert (await client.call_tool("fail")).is_error is True

            tools = await client.list_tools()
            assert len(tools.tools) == 14
            assert tools.next_cursor is None
            page = await client.list_tools_page()
            assert [tool.name for tool in page.tools] == ["echo", "double"]
            assert len((await client.list_tools_page(page.next_cursor)).tools) == 2
            cut = await raised(client.list_tools(max_pages=2), PaginationError)
            assert len(cut.items) == 4

            assert (await client.list_resources()).resources == []
            assert (await client.list_resources_page()).resources == []
            templates = (await client.list_resource_templates()).resource_templates
            assert templates == (await client.list_resource_templates_page()).resource_templates
            assert templates[0].uri_template == "test://{name}"
            (contents,) = (await client.read_resource("test://x")).contents
            assert isinstance(contents, TextResourceContents)
            assert (contents.uri, contents.mime_type) == ("test://x", "text/plain")

            (prompt,) = (await client.list_prompts()).prompts
            assert (await client.list_prompts_page()).prompts == [prompt]
            (message,) = (await client.get_prompt("greet", {"name": "Ada"})).messages
            assert isinstance(message.content, TextContent)
            assert message.content.text == "Please greet Ada."
            ref = {"type": "ref/prompt", "name": "greet"}
            if client.revision >= Revision.V2025_03_26 or client.server_capabilities is None:
                done = await client.complete(ref, "name", "A", {"x": "y"} if not legacy else None)
                assert done.completion.values == ["Aa", "Ab"]

            assert text_of(await client.request("tools/call", {"name": "count"})) == "0"
            if legacy:
                await client.ping()
                await client.set_log_level("error")
                await client.notify("notifications/roots/list_changed")
                await raised(client.discover(), LocalProtocolError)
            else:
                assert "2026-07-28" in (await client.discover()).supported_versions
                await raised(client.ping(), LocalProtocolError)

    run(main)


@pytest.mark.req("A10", "A16")
def test_what_is_known_of_the_server() -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect(server("good")) as client:
            assert (client.era, client.revision) == (Era.MODERN, Revision.V2026_07_28)
            assert client.server_info is not None
            assert client.server_info.name == "good"
            assert client.server_capabilities is not None
            assert client.server_capabilities.tools is not None
            assert client.instructions == "be good"
            assert [e.step for e in client.evidence] == ["server/discover"]
            verdict = client.verdict
        wire, on_wire = taped()
        async with sansmcp_asyncio.connect(server("good"), prior=verdict, on_wire=on_wire) as client:
            assert wire == []
            assert client.verdict == verdict
            assert text_of(await client.call_tool("echo", {"text": "a"})) == "a"

    run(main)


def test_an_opening_can_be_awaited_instead_of_entered() -> None:
    async def main() -> None:
        client = await sansmcp_asyncio.connect(server("good"))
        assert text_of(await client.call_tool("echo", {"text": "a"})) == "a"
        await client.aclose()

    run(main)


# targets, environment ----------------------------------------------------------------------------


@pytest.mark.req("Q5")
def test_target_environment_and_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SANSMCP_SECRET", "s3cret")

    here = os.path.realpath(tmp_path)

    async def variable(client: Client, name: str) -> str:
        return text_of(await client.call_tool("environment", {"name": name}))

    async def main() -> None:
        line = " ".join(f"'{word}'" for word in server("good"))
        async with sansmcp_asyncio.connect(line, env={"MINE": "1"}, cwd=tmp_path) as client:
            assert await variable(client, "SANSMCP_SECRET") == "(unset)"
            assert await variable(client, "PATH") == os.environ["PATH"]
            assert await variable(client, "MINE") == "1"
            assert text_of(await client.call_tool("folder")) == here
        async with sansmcp_asyncio.connect(server("good"), inherit_env=True) as client:
            assert await variable(client, "SANSMCP_SECRET") == "s3cret"
        command = Command(server("good"), {"ONLY": "this"})
        async with sansmcp_asyncio.connect(command) as client:
            assert await variable(client, "ONLY") == "this"
            assert await variable(client, "HOME") == "(unset)"

    run(main)


def test_a_target_that_is_none_is_refused_at_once() -> None:
    targets: list[str | list[str]] = ["", [], "http://", "http://user:pw@localhost/"]
    for target in targets:
        with pytest.raises(LocalProtocolError):
            sansmcp_asyncio.connect(target)


# errors ------------------------------------------------------------------------------------------


def test_errors_are_the_real_ones() -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect(server("good")) as client:
            error = await raised(client.call_tool("nothing"), McpError)
            assert (error.code, error.data) == (-32602, {"name": "nothing"})
            await raised(client.request("no/such"), McpError)
            await raised(client.call_tool("echo", {"text": {1, 2}}), LocalProtocolError)  # type: ignore[dict-item]
            await raised(client.notify("notifications/initialized"), LocalProtocolError)
            assert text_of(await client.call_tool("echo", {"text": "still here"})) == "still here"
        error_after = await raised(client.call_tool("echo", {"text": "a"}), LocalProtocolError)
        assert "ended" in str(error_after)
        await raised(client.notify("x/y"), LocalProtocolError)

    run(main)


@pytest.mark.req("K1", "L1", "L2")
@pytest.mark.case("C-03", "C-08")
def test_timeouts_end_one_call_and_tell_the_server() -> None:
    async def main() -> None:
        wire, on_wire = taped()
        async with sansmcp_asyncio.connect(server("good"), on_wire=on_wire) as client:
            error = await raised(client.call_tool("forever", timeout=0.1), CallTimeout)
            assert error.reason == "timeout"
            slow = {"count": 1_000_000, "pause": 0.02}
            error = await raised(
                client.call_tool("steps", slow, timeout=PATIENCE, total_timeout=0.3), CallTimeout
            )
            assert error.reason == "total_timeout"
            assert cancels(wire) == 2
            assert text_of(await client.call_tool("count")) == "0"
            assert client.engine.stats()["calls"] == 0

    run(main)


def test_progress_is_reported_while_the_call_waits() -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect(server("good")) as client:
            seen: list[ProgressReported] = []
            result = await client.call_tool("steps", {"count": 3, "pause": 0}, on_progress=seen.append)
            assert text_of(result) == "done"
            assert [(p.progress, p.total, p.message) for p in seen] == [
                (1, 3, "step 1"),
                (2, 3, "step 2"),
                (3, 3, "step 3"),
            ]
            seen.clear()
            blocked = await client.call_tool("blocks", {"seconds": 0}, on_progress=seen.append)
            assert text_of(blocked) == "slept"
            assert [p.progress for p in seen] == [1, 2]

    run(main)


async def until_running(client: Client, count: str) -> None:
    while text_of(await client.call_tool("count")) != count:
        pass


# cancel ------------------------------------------------------------------------------------------


@pytest.mark.req("K1", "K3")
@pytest.mark.case("C-01", "C-09")
def test_cancelling_the_task_cancels_the_call_once() -> None:
    async def main() -> None:
        wire, on_wire = taped()
        async with sansmcp_asyncio.connect(server("good"), on_wire=on_wire) as client:
            tasks = [asyncio.create_task(client.call_tool("forever")) for _ in range(3)]
            await until_running(client, "3")
            tasks[0].cancel()
            tasks[0].cancel()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await tasks[1]
            await asyncio.wait(tasks[:2])
            await until_running(client, "1")
            assert cancels(wire) == 2
            assert client.engine.stats()["calls"] == 1
            tasks[2].cancel()
            await asyncio.wait(tasks)
            # an answer and a cancel in the same turn: the call has ended, nothing is sent
            task = asyncio.create_task(client.call_tool("echo", {"text": "a"}))
            await asyncio.sleep(0)
            await soon(lambda: client.engine.stats()["calls"] == 0, "an answer")
            task.cancel()
            await asyncio.wait([task])
            assert cancels(wire) == 3
            assert client.engine.stats()["calls"] == 0

    run(main)


def test_a_cancelled_call_that_never_left_is_forgotten() -> None:
    async def main() -> None:
        wire, on_wire = taped()
        async with sansmcp_asyncio.connect(server("good"), on_wire=on_wire) as client:
            first = asyncio.create_task(client.call_tool("forever"))
            second = asyncio.create_task(client.call_tool("echo", {"text": "a"}))
            first.cancel()
            with pytest.raises(asyncio.CancelledError):
                await first
            assert text_of(await second) == "a"
            assert cancels(wire) == 0

    run(main)


# many at once ------------------------------------------------------------------------------------


@pytest.mark.req("Q11")
def test_many_calls_in_flight_leave_in_few_writes() -> None:
    async def main() -> None:
        wire, on_wire = taped()
        async with sansmcp_asyncio.connect(server("good"), on_wire=on_wire) as client:
            before = len(wire)
            texts = [f"{number} {'x' * 1000}" for number in range(500)]
            results = await asyncio.gather(*[client.call_tool("echo", {"text": t}) for t in texts])
            assert [text_of(result) for result in results] == texts
            sent = [data for side, data in wire[before:] if side == "sent"]
            assert len(sent) <= 500 / 16 + 2, "sixteen at a time, so that the server works meanwhile"
            big = "€" * 3_000_000
            assert text_of(await client.call_tool("echo", {"text": big})) == big

    run(main)


@pytest.mark.case("S-10")
def test_a_message_of_several_megabytes_passes() -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect(server("good")) as client:
            for size in (65_535, 65_537, 4_000_000):
                text = "z" * size
                assert text_of(await client.call_tool("echo", {"text": text})) == text

    run(main)


# events ------------------------------------------------------------------------------------------


@pytest.mark.req("W10")
def test_events_of_no_call_are_a_stream_that_ends() -> None:
    async def main() -> None:
        everything: list[Event] = []
        async with sansmcp_asyncio.connect(server("good"), on_event=everything.append) as client:
            task = asyncio.create_task(client.call_tool("forever", log_level="debug"))
            logs = [event async for event in _until(client, LogReceived)]
            assert isinstance(logs[-1], LogReceived)
            assert logs[-1].data == "waiting"
            task.cancel()
        rest = [event async for event in client.events()]
        assert isinstance(rest[-1], SessionEnded)
        assert [event async for event in client.events()] == []
        kinds = {type(event).__name__ for event in everything}
        assert {"EraDecided", "LogReceived", "RequestFailed", "SessionEnded"} <= kinds

    run(main)


async def _until(client: Client, kind: type[Event]) -> Any:
    async for event in client.events():
        yield event
        if isinstance(event, kind):
            return


def test_events_nobody_takes_are_bounded_and_the_loss_is_told() -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect(server("floods")) as client:
            await client.call_tool("flood")
            events = client.events()
            taken = [await anext(events) for _ in range(4097)]
            assert isinstance(taken[-1], LimitHit)
            assert taken[-1].limit == "max_buffered_events"
            assert sum(isinstance(event, LimitHit) for event in taken) == 1
            await client.call_tool("flood")
            assert not isinstance(await anext(events), LimitHit)

    run(main)


def test_a_server_that_asks_gets_its_answer() -> None:
    from sansmcp import ClientCapabilities, InputRequired
    from sansmcp.types.lifecycle import RootsCapability

    async def main() -> None:
        able = ClientCapabilities(roots=RootsCapability())
        async with sansmcp_asyncio.connect(server("asks"), capabilities=able) as client:
            for refuse in (False, True):
                call = asyncio.create_task(client.call_tool("x"))
                async for event in client.events():
                    if isinstance(event, InputRequired):
                        break
                else:
                    raise AssertionError("it did not ask")
                (key,) = event.requests
                if refuse:
                    assert await client.refuse_input(event.round, McpError(-1, "not now"))
                else:
                    assert await client.provide_input(event.round, {key: {"roots": []}})
                answer = json.loads(text_of(await call))
                assert answer == ({"code": -1, "message": "not now"} if refuse else {"roots": []})

    run(main)


# the end -----------------------------------------------------------------------------------------


@pytest.mark.case("R-08")
def test_close_fails_what_is_open_and_is_harmless_twice_and_from_anywhere() -> None:
    async def main() -> None:
        client: Client

        def on_event(event: Event) -> None:
            if isinstance(event, SessionEnded):
                client.close()
                closers.append(asyncio.get_running_loop().create_task(client.aclose()))

        closers: list[asyncio.Task[None]] = []
        async with sansmcp_asyncio.connect(server("good"), on_event=on_event) as client:
            calls = [asyncio.create_task(client.call_tool("forever")) for _ in range(4)]
            await asyncio.sleep(0.05)
            await asyncio.gather(asyncio.create_task(client.aclose()), client.aclose())
            for call in calls:
                assert "closed" in str(await raised(call, ConnectionEnded))
            await client.aclose()
        await asyncio.gather(*closers)

    run(main)


def test_a_client_that_nobody_closed_ends_with_its_loop() -> None:
    pids: list[int] = []

    async def main() -> None:
        client = await sansmcp_asyncio.connect(server("serve_by_hand"))
        pids.append(int(text_of(await client.call_tool("x"))))

    run(main)


def test_callbacks_that_raise_are_reported_and_harm_nothing() -> None:
    def broken(*_: object) -> None:
        raise ValueError("mine")

    async def main() -> None:
        reported: list[Any] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context["exception"]))
        async with sansmcp_asyncio.connect(
            server("good"), on_event=broken, on_wire=broken, stderr=broken
        ) as client:
            args = {"count": 1, "pause": 0}
            result = await client.call_tool("steps", args, on_progress=broken)
            assert text_of(result) == "done"
        assert len(reported) > 3
        assert {str(error) for error in reported} == {"mine"}

    run(main)


def test_the_child_gets_no_part_of_our_terminal() -> None:
    async def main() -> None:
        pieces: list[bytes] = []
        original = sys.stderr
        sys.stderr = None
        try:
            async with sansmcp_asyncio.connect(server("good"), stderr=pieces.append) as client:
                await client.call_tool("chatter")
                await soon(lambda: b"child read ''" in b"".join(pieces), "what the child printed")
        finally:
            sys.stderr = original
        text = b"".join(pieces)
        assert b"printed by the handler" in text
        assert b"written by the handler" in text

    run(main)


def test_connecting_is_bounded_by_its_timeout() -> None:
    from sansmcp import ConnectTimeout

    async def main() -> None:
        timeouts = Timeouts(probe=0.1, connect=0.3)
        opening = sansmcp_asyncio.connect(server("deaf"), timeouts=timeouts)
        error = await raised(opening.__aenter__(), ConnectTimeout)
        assert "0.3 s" in str(error)

    run(main)


def test_a_fault_of_the_engine_ends_the_connection_and_whoever_waits() -> None:
    """Not a hang: the loop only logs what a callback raises."""
    logged: list[Any] = []

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda loop, context: logged.append(context))
        async with sansmcp_asyncio.connect(server("good")) as client:
            await client.call_tool("echo", {"text": "hi"})

            def broken(*arguments: Any, **options: Any) -> None:
                raise ZeroDivisionError("a fault on purpose")

            client.transport.receive_data = broken  # type: ignore[method-assign]
            with pytest.raises((ConnectionEnded, ZeroDivisionError)):
                await asyncio.wait_for(client.call_tool("echo", {"text": "hi"}), PATIENCE)
            with pytest.raises(ConnectionEnded, match="a fault on purpose"):
                await client.call_tool("echo", {"text": "hi"})

    asyncio.run(asyncio.wait_for(main(), 2 * PATIENCE))


@pytest.mark.case("S-14")
def test_the_code_page_of_the_system_has_no_say() -> None:
    text = "日本 🙂 ä\u2028"
    env = {"PYTHONIOENCODING": "cp1252", "PYTHONUTF8": "0", "LC_ALL": "C", "LANG": "C"}

    async def main() -> None:
        async with sansmcp_asyncio.connect(server("good"), env=env) as client:
            assert text_of(await client.call_tool("echo", {"text": text})) == text

    run(main)
