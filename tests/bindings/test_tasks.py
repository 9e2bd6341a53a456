"""Tasks on a loop: handlers go on beyond their requests, in every way that they run."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Generator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import App, Context, McpError
from sansmcp.extensions.tasks import (
    ClientTasks,
    MemoryTaskStore,
    ServerTasks,
    TaskReported,
    cancel_task,
    get_task,
    resume_task,
)
from sansmcp.extensions.tasks.sqlite import SqliteTaskStore
from sansmcp.types import ElicitRequestFormParams, ElicitResult, TaskResult
from sansmcp.wire.jsoncodec import JsonCodec, default_codec, standard_codec
from sansmcp_asyncio import HttpServing

from .support import raised, run, soon, text_of

FORM: dict[str, Any] = {"type": "object", "properties": {"name": {"type": "string"}}}
CODECS = {"standard": standard_codec, "default": default_codec}


def make_app(tasks: ServerTasks, stopped: list[str] | None = None, begun: list[str] | None = None) -> App:
    app = App("tasks", "1", extensions=[tasks])

    @app.tool()
    @tasks.task()
    async def coroutine(ctx: Context) -> str:
        await asyncio.sleep(0.05)
        return f"Hello, {((await ctx.elicit('Who?', FORM)).content or {}).get('name')}"

    @app.tool()
    @tasks.task()
    def generator(ctx: Context) -> Generator[Any, Any, str]:
        answer = yield ctx.elicit("Who?", FORM)
        return f"Hello, {answer.content.get('name')}"

    @app.tool()
    @tasks.task()
    def thread() -> str:
        return "done"

    @app.tool()
    @tasks.task("handler")
    def starts(ctx: Context) -> Generator[Any, Any, str]:
        answer = yield ctx.elicit("Who?", FORM, key="who")
        tasks.start(ctx)
        more = yield ctx.elicit("More?", FORM, key="more")
        return f"{answer.action} {more.action}"

    @app.tool()
    @tasks.task()
    async def forever() -> None:
        if begun is not None:
            begun.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            if stopped is not None:
                stopped.append("stopped")

    return app


def answer(params: Any) -> ElicitResult:
    assert isinstance(params, ElicitRequestFormParams)
    return ElicitResult("accept", {"name": "Bo"})


@asynccontextmanager
async def connected(
    kind: str, app: App, codec: JsonCodec | None = None, **options: Any
) -> AsyncIterator[sansmcp_asyncio.Client]:
    given = {"extensions": [ClientTasks(poll_interval=0.02)], "on_elicit": answer, "codec": codec, **options}
    if kind == "memory":
        async with sansmcp_asyncio.connect_memory(app, **given) as client:
            yield client
        return
    async with HttpServing(app) as serving, sansmcp_asyncio.connect(serving.url, **given) as client:
        yield client


@pytest.mark.req("X3", "X5", "X7")
@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("kind", ["memory", "http"])
def test_every_kind_of_handler_goes_on(kind: str, codec: str) -> None:
    async def main() -> None:
        tasks = ServerTasks(poll_interval=0.05)
        events: list[Any] = []
        async with connected(kind, make_app(tasks), CODECS[codec](), on_event=events.append) as client:
            results = await asyncio.gather(
                *(client.call_tool(name) for name in ("coroutine", "generator", "thread", "starts"))
            )
            assert list(map(text_of, results)) == ["Hello, Bo", "Hello, Bo", "done", "accept accept"]
        assert {e.task.status for e in events if isinstance(e, TaskReported)} >= {"working", "completed"}
        assert tasks.stats() == {"tasks": 4, "running_tasks": 0}

    run(main)


@pytest.mark.req("X3", "X7")
@pytest.mark.parametrize("kind", ["memory", "http"])
def test_to_cancel_who_waits_cancels_the_handler(kind: str) -> None:
    async def main() -> None:
        begun, stopped = list[str](), list[str]()
        tasks = ServerTasks(store=(store := MemoryTaskStore()))
        async with connected(kind, make_app(tasks, stopped, begun)) as client:
            waiting = asyncio.create_task(client.call_tool("forever"))
            await soon(lambda: len(store) and begun, "the task")
            waiting.cancel()
            await raised(waiting, asyncio.CancelledError)  # type: ignore[type-var]
            await soon(lambda: stopped, "the end of the handler")
            assert not store.unfinished()

    run(main)


@pytest.mark.req("X3", "X7")
def test_a_task_is_taken_up_by_another_client() -> None:
    async def main() -> None:
        stopped: list[str] = []
        app = make_app(ServerTasks(poll_interval=0.02), stopped)
        options: Any = {"extensions": [ClientTasks()], "on_elicit": answer}
        async with HttpServing(app) as serving:
            async with sansmcp_asyncio.connect(serving.url, **options) as first:
                handle = await first.call_tool("coroutine", task="handle")
                other = await first.call_tool("forever", task="handle")
            assert isinstance(handle, TaskResult)
            assert isinstance(other, TaskResult)
            async with sansmcp_asyncio.connect(serving.url, **options) as second:
                assert text_of(await second.use(resume_task, handle.task_id)) == "Hello, Bo"
                assert (await second.use(get_task, other.task_id)).status == "working"
                await second.use(cancel_task, other.task_id)
                assert (await second.use(get_task, other.task_id)).status == "cancelled"
                assert (await raised(second.use(get_task, "none"), McpError)).code == -32602
            await soon(lambda: stopped, "the end of the handler")

    run(main)


@pytest.mark.req("X7")
def test_a_task_outlives_the_server() -> None:
    async def main(connection: sqlite3.Connection) -> None:
        stopped: list[str] = []
        options: Any = {"extensions": [ClientTasks()]}
        ids = []
        app = make_app(ServerTasks(store=SqliteTaskStore(connection)), stopped)
        async with connected("http", app, **options) as client:
            ids.append((await client.call_tool("thread", task="handle")).task_id)  # type: ignore[attr-defined]
            assert text_of(await client.use(resume_task, ids[0])) == "done"
            ids.append((await client.call_tool("forever", task="handle")).task_id)  # type: ignore[attr-defined]
        assert stopped == ["stopped"]
        async with connected("http", make_app(ServerTasks(store=SqliteTaskStore(connection)))) as client:
            assert text_of(await client.use(resume_task, ids[0])) == "done"
            error = await raised(client.use(resume_task, ids[1]), McpError)
            assert "the server stopped while it was at work" in str(error)

    connection = sqlite3.connect(":memory:")
    run(lambda: main(connection))
    connection.close()
