"""Listening to changes with the asyncio binding: in this process, over HTTP, and to a child."""

from __future__ import annotations

import asyncio
import threading
from contextlib import AsyncExitStack
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    App,
    ChangesMissed,
    CloseReason,
    Context,
    Legacy,
    ListChanged,
    ListKind,
    LocalProtocolError,
    McpError,
    SubscriptionInterrupted,
    SubscriptionLost,
)
from sansmcp.errors import ConnectionEnded
from sansmcp.http.exchange import EndResponse
from sansmcp.session.subscriptions import Relisten
from sansmcp.types import SubscriptionFilter

from .support import run

ANY_ERA = pytest.mark.parametrize("mode", [None, Legacy()], ids=["modern", "legacy"])


def make_app(**options: Any) -> App:
    app = App("here", "1", **{"list_changed": True, "subscribe": True, **options})

    @app.tool()
    def add(ctx: Context, name: str) -> str:
        app.tool(name)(lambda: name)
        ctx.notify_changed(ListKind.TOOLS)
        return name

    @app.tool()
    def touch(uri: str, times: int = 1) -> str:
        for number in range(times):
            app.notify_updated(uri.format(number))
        return uri

    @app.resource("a:/{x}")
    def a(x: str) -> str:
        return x

    return app


def told(change: Any) -> Any:
    return change.kind if isinstance(change, ListChanged) else change.uri


@pytest.mark.req("O1", "O8", "O9", "W14")
@ANY_ERA
def test_changes_come_for_as_long_as_the_context_lasts(mode: Any) -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect_memory(make_app(), mode=mode) as client:
            async with client.listen(tools=True, prompts=True, resources=["a:/1", "a:/2"]) as changes:
                assert changes.honored == SubscriptionFilter(
                    tools_list_changed=True, resource_subscriptions=["a:/1", "a:/2"]
                )
                assert changes.refused == SubscriptionFilter(prompts_list_changed=True)
                await client.call_tool("add", {"name": "new"})
                await client.call_tool("touch", {"uri": "a:/2"})
                await client.call_tool("touch", {"uri": "a:/3"})
                assert told(await anext(changes)) is ListKind.TOOLS
                assert told(await anext(changes)) == "a:/2"
                assert "new" in [tool.name for tool in (await client.list_tools()).tools]
            await client.call_tool("touch", {"uri": "a:/2"})
            assert [change async for change in changes] == []
            assert changes.closed is not None
            assert changes.closed.reason is CloseReason.LOCAL
            assert client.engine.stats()["subscriptions"] == 0

    run(main)


@pytest.mark.req("O9", "W14")
@ANY_ERA
def test_everybody_hears_of_it_over_http(mode: Any) -> None:
    async def main() -> None:
        app = make_app()
        async with (
            sansmcp_asyncio.HttpServing(app) as serving,
            sansmcp_asyncio.connect(serving.url, mode=mode) as client,
            sansmcp_asyncio.connect(serving.url) as other,
            client.listen(tools=True, resources=["a:/1"]) as changes,
            other.listen(tools=True) as others,
        ):
            await other.call_tool("add", {"name": "new"})
            assert told(await anext(changes)) is told(await anext(others)) is ListKind.TOOLS
            threading.Thread(target=app.notify_updated, args=("a:/1",)).start()
            assert told(await anext(changes)) == "a:/1"
            assert len(serving.listener.server.subscriptions) == (2 if mode is None else 1)

    run(main)


@pytest.mark.req("O5", "O9")
@pytest.mark.case("M-08")
def test_the_end_of_a_server_is_graceful() -> None:
    async def main() -> None:
        async with AsyncExitStack() as stack:
            serving = await stack.enter_async_context(sansmcp_asyncio.HttpServing(make_app()))
            client = await sansmcp_asyncio.connect(serving.url)
            async with client.listen(tools=True) as changes:
                reading = asyncio.create_task(_all(changes))
                await asyncio.sleep(0)
                await stack.aclose()
                assert await reading == []
                assert changes.closed is not None
                assert changes.closed.reason is CloseReason.GRACEFUL
            await client.aclose()

    run(main)


async def _all(changes: sansmcp_asyncio.Changes) -> list[Any]:
    return [change async for change in changes]


@pytest.mark.req("O11")
@ANY_ERA
def test_whoever_does_not_read_lags(mode: Any) -> None:
    async def main() -> None:
        uris = [f"a:/{number}" for number in range(5)]
        async with sansmcp_asyncio.connect_memory(make_app(), mode=mode) as client:
            async with client.listen(resources=uris, max_buffered=3) as changes:
                for _ in range(10):
                    await client.call_tool("touch", {"uri": "a:/0"})
                assert changes.closed is None, "the same news waits once"
                await client.call_tool("touch", {"uri": "a:/{}", "times": 5})
                assert [told(await anext(changes)) for _ in range(3)] == ["a:/0", "a:/1", "a:/2"]
                with pytest.raises(SubscriptionLost, match="not read as fast") as caught:
                    await anext(changes)
                assert caught.value.reason is CloseReason.LAGGED
            await client.call_tool("touch", {"uri": "a:/0"})
            assert client.engine.stats()["subscriptions"] == 0

    run(main)


@pytest.mark.req("O1", "O5")
def test_what_cannot_be_opened_is_raised_on_entering() -> None:
    async def main() -> None:
        app = make_app(list_changed=False, subscribe=False)
        async with sansmcp_asyncio.connect_memory(app) as client:
            with pytest.raises(LocalProtocolError, match="no changes"):
                async with client.listen(tools=True):
                    pass
        async with sansmcp_asyncio.connect_memory(app, check_capabilities=False) as client:
            changes = client.listen(tools=True)
            with pytest.raises(McpError, match="no changes"):
                await changes.__aenter__()
            with pytest.raises(RuntimeError, match="once"):
                await changes.__aenter__()
            assert client.engine.stats()["subscriptions"] == 0
        with pytest.raises(LocalProtocolError):
            client.listen(tools=True, max_buffered=0)

    run(main)


@pytest.mark.req("O5")
@ANY_ERA
def test_a_connection_that_is_lost_is_raised_by_the_iteration(mode: Any) -> None:
    async def main() -> None:
        async with (
            sansmcp_asyncio.connect_memory(make_app(), mode=mode) as client,
            client.listen(tools=True) as changes,
        ):
            await client.call_tool("add", {"name": "x"})
            client.transport.failed(1, "cut", asyncio.get_running_loop().time())
            client._pump.soon()
            assert told(await anext(changes)) is ListKind.TOOLS
            with pytest.raises(SubscriptionLost) as caught:
                await anext(changes)
            assert caught.value.reason is CloseReason.LOST
            assert isinstance(caught.value.__cause__, ConnectionEnded)

    run(main)


@pytest.mark.req("O6")
def test_a_stream_that_breaks_is_asked_for_again_and_that_is_told() -> None:
    async def main() -> None:
        app = make_app()
        async with (
            sansmcp_asyncio.HttpServing(app) as serving,
            sansmcp_asyncio.connect(serving.url) as client,
            client.listen(tools=True, relisten=Relisten(delay=0.01)) as changes,
        ):
            server, handlers = serving.listener.server, serving._handlers
            assert handlers is not None
            [request] = server.subscriptions
            app.notify_changed(ListKind.TOOLS)
            assert told(await anext(changes)) is ListKind.TOOLS
            server.exchange_closed(request.origin.id, asyncio.get_running_loop().time())  # type: ignore[attr-defined]
            server._out.ops.append(EndResponse(request.origin.id))  # type: ignore[attr-defined]
            handlers.pump.drain()
            assert isinstance(await anext(changes), SubscriptionInterrupted)
            assert isinstance(await anext(changes), ChangesMissed)
            app.notify_changed(ListKind.TOOLS)
            assert told(await anext(changes)) is ListKind.TOOLS

    run(main)


@pytest.mark.req("O5")
def test_a_task_that_is_cancelled_meanwhile_leaves_nothing_behind() -> None:
    async def main() -> None:
        async with sansmcp_asyncio.connect_memory(make_app()) as client:

            async def enter() -> None:
                async with client.listen(tools=True) as changes:
                    async for _ in changes:
                        pass

            for wait in (0, 5):
                task = asyncio.create_task(enter())
                for _ in range(wait + 1):
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            await client.list_tools()
            assert client.engine.stats()["subscriptions"] == 0
            assert not client._listening

    run(main)
