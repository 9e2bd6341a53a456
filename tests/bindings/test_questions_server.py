"""Handlers that ask, called by asyncio: in tasks, in threads and in place, over memory and over HTTP."""

from __future__ import annotations

import asyncio
import threading
import warnings
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    App,
    CallTimeout,
    ConnectionEnded,
    Context,
    Legacy,
    McpError,
    Pin,
    QuestionFailed,
    Revision,
)
from sansmcp.types import TextContent
from sansmcp_asyncio import Client, HttpServing
from tests.questions_support import ACCEPTED, FORM, FORMS, ROOTS, SAMPLED, SUMMARY, asking_app
from tests.support import ALL, MODERN

from .support import raised, run, soon, text_of

WITH_FORMS = [v for v in ALL if v >= "2025-06-18"]
ERAS = ["2025-11-25", MODERN]
CARRIERS = ["memory", "threads", "http"]


@asynccontextmanager
async def connected(
    app: App, version: str, carrier: str = "memory", *, on_elicit: Any = None, **options: Any
) -> AsyncIterator[Client]:
    """A client that answers every question, and speaks `version`."""
    revision = Revision(version)
    mode = Pin(revision)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        options = {
            "on_elicit": on_elicit or (lambda params: ACCEPTED),
            "on_sample": lambda params: SAMPLED,
            "on_roots": lambda params: ROOTS,
            "mode": mode,
            **options,
        }
        if carrier == "http":
            async with (
                HttpServing(app) as serving,
                sansmcp_asyncio.connect(serving.url, **options) as client,
            ):
                yield client
                return
        threads = 4 if carrier == "threads" else 0
        async with sansmcp_asyncio.connect_memory(app, threads=threads, **options) as client:
            yield client


@pytest.mark.req("E12", "E14", "E15", "F1", "G1", "H1")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("version", WITH_FORMS)
def test_one_handler_asks_in_every_revision(version: str, carrier: str) -> None:
    async def main() -> None:
        app = asking_app()
        async with connected(app, version, carrier) as client:
            for form in FORMS:
                assert text_of(await client.call_tool(form)) == SUMMARY
            again = 3 if version == MODERN else 1
            runs = app.runs  # type: ignore[attr-defined]
            assert [runs.count(form) for form in FORMS] == [again, again, 3]
            many = await asyncio.gather(*(client.call_tool(FORMS[n % 3]) for n in range(12)))
            assert [text_of(result) for result in many] == [SUMMARY] * 12
            prompt = await client.get_prompt("asks_in_a_prompt")
            assert isinstance(prompt.messages[0].content, TextContent)
            assert prompt.messages[0].content.text == "accept {'name': 'Bo'}"

    run(main)


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", ERAS)
def test_what_is_asked_side_by_side_is_one_round(version: str) -> None:
    async def main() -> None:
        app = App("beside")
        runs: list[int] = []

        @app.tool()
        async def beside(ctx: Context) -> str:
            runs.append(1)
            answers = await asyncio.gather(
                ctx.elicit("a", FORM), ctx.elicit("b", FORM), ctx.sample("c", max_tokens=1)
            )
            return str(len(answers))

        async with connected(app, version) as client:
            assert text_of(await client.call_tool("beside")) == "3"
        assert len(runs) == (2 if version == MODERN else 1)

    run(main)


@pytest.mark.req("E15")
@pytest.mark.parametrize("carrier", CARRIERS)
def test_the_end_of_a_round_ends_the_handler_and_nothing_else(carrier: str) -> None:
    """Not as an exception that it swallows; also what it started and left behind is ended."""

    async def main() -> None:
        app = App("ends")
        seen: list[str] = []

        @app.tool()
        async def awaits(ctx: Context) -> str:
            try:
                return (await ctx.elicit("x", FORM)).action
            except Exception:
                seen.append("caught")
                return "swallowed"
            finally:
                await asyncio.sleep(0)
                seen.append("closed")

        @app.tool()
        def yields(ctx: Context) -> Generator[Any, Any, str]:
            try:
                answer = yield ctx.elicit("x", FORM)
                return str(answer.action)
            except Exception:
                seen.append("caught")
                return "swallowed"
            finally:
                seen.append("closed")

        @app.tool()
        async def stubborn(ctx: Context) -> str:
            try:
                return (await ctx.elicit("x", FORM)).action
            except asyncio.CancelledError:
                return "stays"

        @app.tool()
        async def leaves_behind(ctx: Context) -> str:
            async def other() -> None:
                try:
                    await ctx.elicit("y", FORM)
                finally:
                    seen.append("other")

            task = asyncio.create_task(other())
            await ctx.elicit("x", FORM)
            await task
            return "both"

        async with connected(app, MODERN, carrier) as client:
            for name in ("awaits", "yields"):
                assert text_of(await client.call_tool(name)) == "accept"
                assert seen == ["closed", "closed"]
                seen.clear()
            assert text_of(await client.call_tool("stubborn")) == "accept"
            assert text_of(await client.call_tool("leaves_behind")) == "both"
            assert seen == ["other", "other"]

    run(main)


@pytest.mark.req("K5", "K1", "E15")
@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("form", FORMS)
def test_who_cancels_a_request_is_asked_no_more(form: str, carrier: str) -> None:
    async def main() -> None:
        asked: list[str] = []

        async def elicit(params: Any) -> Any:
            asked.append("asked")
            try:
                await asyncio.Event().wait()
            finally:
                asked.append("withdrawn")

        async with connected(asking_app(), "2025-11-25", carrier, on_elicit=elicit) as client:
            call = asyncio.create_task(client.call_tool(form))
            await soon(lambda: asked, "the question")
            call.cancel()
            await soon(lambda: asked == ["asked", "withdrawn"], "the end of the question")
            await asyncio.wait([call])

    run(main)


@pytest.mark.req("L1", "E15")
@pytest.mark.parametrize("carrier", ["memory", "threads"])
def test_an_answer_is_not_awaited_for_ever(carrier: str) -> None:
    async def main() -> None:
        app = App("late")
        seen: list[Exception] = []

        @app.tool()
        async def awaits(ctx: Context) -> str:
            try:
                return (await ctx.elicit("x", FORM, timeout=0.1)).action
            except QuestionFailed as failed:
                seen.append(failed.error)
            try:
                async with asyncio.timeout(0.05):
                    await ctx.elicit("y", FORM)
            except TimeoutError as error:
                seen.append(error)
            return "late"

        @app.tool()
        def yields(ctx: Context) -> Generator[Any, Any, str]:
            try:
                yield ctx.elicit("x", FORM, timeout=0.1)
            except QuestionFailed as failed:
                seen.append(failed.error)
            return "late"

        async def elicit(params: Any) -> Any:
            await asyncio.Event().wait()

        async with connected(app, "2025-11-25", carrier, on_elicit=elicit) as client:
            assert text_of(await client.call_tool("awaits")) == "late"
            assert text_of(await client.call_tool("yields")) == "late"
        assert [type(error) for error in seen] == [CallTimeout, TimeoutError, CallTimeout]

    run(main)


@pytest.mark.req("E15")
@pytest.mark.parametrize("carrier", CARRIERS)
def test_what_the_client_answers_instead_is_told(carrier: str) -> None:
    async def main() -> None:
        def elicit(params: Any) -> Any:
            raise McpError(-5, "not today")

        async with connected(asking_app(), "2025-11-25", carrier, on_elicit=elicit) as client:
            for form in FORMS:
                result = await client.call_tool(form)
                assert result.is_error
                assert "not today" in text_of(result)

    run(main)


@pytest.mark.req("Q11", "E15")
def test_a_generator_runs_in_threads_and_holds_none_while_it_waits() -> None:
    async def main() -> None:
        app = App("threads")
        where: list[int] = []
        go = asyncio.Event()

        @app.tool()
        def asks(ctx: Context) -> Generator[Any, Any, str]:
            where.append(threading.get_ident())
            answer = yield ctx.elicit("x", FORM)
            where.append(threading.get_ident())
            return str(answer.action)

        async def elicit(params: Any) -> Any:
            await go.wait()
            return ACCEPTED

        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            options: dict[str, Any] = {"mode": Legacy(), "on_elicit": elicit}
            async with sansmcp_asyncio.connect_memory(app, threads=1, **options) as client:
                calls = [asyncio.create_task(client.call_tool("asks")) for _ in range(5)]
                await soon(lambda: len(where) == 5, "five handlers in one thread")
                go.set()
                assert [text_of(await call) for call in calls] == ["accept"] * 5
        assert threading.get_ident() not in where

    run(main)


@pytest.mark.req("E15")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("carrier", CARRIERS)
def test_the_end_ends_handlers_that_wait_for_answers(form: str, carrier: str) -> None:
    async def main() -> None:
        asked = asyncio.Event()

        async def elicit(params: Any) -> Any:
            asked.set()
            await asyncio.Event().wait()

        app = asking_app()
        async with connected(app, "2025-11-25", carrier, on_elicit=elicit) as client:
            call = asyncio.create_task(client.call_tool(form))
            await asked.wait()
        await raised(call, ConnectionEnded)
        await soon(lambda: len(asyncio.all_tasks()) == 1, "the end of what the client asked its user")

    run(main)


@pytest.mark.req("I2", "J1")
@pytest.mark.parametrize("version", ERAS)
def test_a_coroutine_reports_and_logs(version: str) -> None:
    async def main() -> None:
        app = App("tells", logging=True)

        @app.tool()
        async def tells(ctx: Context) -> str:
            for step in range(3):
                ctx.progress(step + 1, 3)
                ctx.log("debug", f"step {step}")
                await asyncio.sleep(0)
            return "done"

        seen: list[tuple[float, float | None]] = []
        async with connected(app, version) as client:
            if version != MODERN:
                await client.request("logging/setLevel", {"level": "debug"})
            await client.call_tool("tells", on_progress=lambda p: seen.append((p.progress, p.total)))
        assert seen == [(1, 3), (2, 3), (3, 3)]

    run(main)
