"""Our client over HTTP against servers that others wrote or that run on others' SDKs."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    HttpFailure,
    Legacy,
    ListChanged,
    McpError,
    ProgressReported,
    QuirkUsed,
    ResourceUpdated,
    SansmcpError,
)
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.recovery import EVERY_TOOL, Recovery
from sansmcp.http.resume import ReconnectPolicy
from sansmcp.revisions import Era
from sansmcp.types import ElicitResult
from sansmcp_asyncio import Client
from tests.peers.registry import HTTP_PEERS, PEERS

from .http_support import HttpTalk, Relay, every_http_peer, free_port, known_of, reached, served
from .known import MANY
from .support import Json, asynchronous, check, text_of
from .test_servers_stdio import refused, use_prompts, use_resources

pytestmark = pytest.mark.interop


# what there is -----------------------------------------------------------------------------------


@every_http_peer
@pytest.mark.req("M1", "U5", "P7", "P9", "R11", "A1")
@pytest.mark.case("S-01")
@asynchronous
async def test_everything(name: str, tmp_path: Path) -> None:
    """Tools, resources, prompts and completion, errors, and the verbs of one era."""
    peer, known, talk = HTTP_PEERS[name], known_of(name), HttpTalk()
    async with reached(name, tmp_path, talk) as client:
        assert client.era is Era[peer.era.upper()]
        assert client.server_info is not None
        assert client.server_info.name == known.server
        listed = await client.list_tools()
        assert set(PEERS[peer.peer].tools) <= {tool.name for tool in listed.tools}

        for ask in known.good:
            await check(client, ask)
        failed = await client.call_tool(known.failing.tool, known.failing.arguments)
        assert failed.is_error
        assert known.failing.text in text_of(failed)
        if known.unknown_is_error:
            with pytest.raises(McpError, match=known.unknown_tool) as caught:
                await client.call_tool("nope", {})
            assert caught.value.code == -32602
        else:
            unknown = await client.call_tool("nope", {})
            assert unknown.is_error
            assert known.unknown_tool in text_of(unknown)

        await use_resources(client, talk, known)
        await use_prompts(client, known)
        for part in known.completions:
            found = await client.complete(part.ref, part.argument, part.value, part.context)
            assert found.completion.values == part.values
        if client.era is Era.LEGACY:
            await client.ping()
            await refused(talk, client.discover)
        else:
            assert client.revision.value in (await client.discover()).supported_versions
            await refused(talk, client.ping)
    assert not talk.faults()
    said = talk.requests()
    assert said[0] == f"POST {peer.path}"
    assert (f"GET {peer.path}" in said) >= peer.old_sse
    assert (f"DELETE {peer.path}" in said) == (peer.sessions and client.era is Era.LEGACY)


@every_http_peer
@pytest.mark.req("R2", "R7")
@asynchronous
async def test_many_calls_at_once_and_a_big_one(name: str, tmp_path: Path) -> None:
    """Each gets its own answer, and an answer of a megabyte comes whole."""
    known, talk = known_of(name), HttpTalk()
    async with reached(name, tmp_path, talk) as client:
        async with asyncio.TaskGroup() as group:
            for number in range(MANY):
                group.create_task(check(client, known.many(number)))
        assert client.engine.stats()["calls"] == 0
        echo = known.good[0]
        (argument,) = echo.arguments
        big = "ü" * 500_000
        assert big in text_of(await client.call_tool(echo.tool, {argument: big}))
    assert not talk.faults()


@every_http_peer
@pytest.mark.req("J1", "J2")
@pytest.mark.case("C-08")
@asynchronous
async def test_progress(name: str, tmp_path: Path) -> None:
    peer, slow, talk = HTTP_PEERS[name], known_of(name).slow, HttpTalk()
    assert slow is not None
    told: list[ProgressReported] = []
    async with reached(name, tmp_path, talk) as client:
        result = await client.call_tool(slow.tool, slow.lasting(0.4), on_progress=told.append)
        assert slow.text in text_of(result)
    steps = [(event.progress, event.total) for event in told]
    assert steps == ([(1, 4), (2, 4), (3, 4), (4, 4)] if peer.progress else [])
    assert not talk.faults()


# the era, and how it is found --------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, peer in HTTP_PEERS.items() if peer.era == "modern"])
@pytest.mark.req("A1", "R1", "R11")
@asynchronous
async def test_a_modern_server_in_its_other_era(name: str, tmp_path: Path) -> None:
    """A session with an id, where the server keeps one, that is ended with DELETE."""
    peer, known, talk = HTTP_PEERS[name], known_of(name), HttpTalk()
    async with reached(name, tmp_path, talk, mode=Legacy()) as client:
        assert client.revision.value == PEERS[peer.peer].legacy_revision
        await client.list_tools()
        for ask in known.good:
            await check(client, ask)
        await client.ping()
    assert not talk.faults()
    assert (f"DELETE {peer.path}" in talk.requests()) == peer.sessions
    assert (b"mcp-session-id" in talk.raw["received"].lower()) == peer.sessions


@pytest.mark.parametrize("name", [name for name, peer in HTTP_PEERS.items() if peer.old_sse])
@pytest.mark.req("P7", "P9")
@asynchronous
async def test_http_sse_is_found_only_where_it_may_be(name: str, tmp_path: Path) -> None:
    """By default after two refusals; at once where it is known; and where it is not wanted, not at all."""
    async with served(name, tmp_path) as url:
        path = HTTP_PEERS[name].path
        for use, mode, first in (
            (OldSseUse.AUTO, None, ["POST", "POST", "GET"]),
            (OldSseUse.AUTO, Legacy(), ["POST", "GET"]),
            (OldSseUse.ONLY, Legacy(), ["GET"]),
        ):
            talk = HttpTalk()
            async with sansmcp_asyncio.connect(
                url, mode=mode, on_event=talk.on_event, on_wire=talk.on_wire, old_sse=use
            ) as client:
                assert client.era is Era.LEGACY
                await client.list_tools()
            assert talk.requests()[: len(first)] == [f"{method} {path}" for method in first]
        with pytest.raises(HttpFailure) as caught:
            async with sansmcp_asyncio.connect(url, old_sse=OldSseUse.NEVER):
                pass
        assert caught.value.status in (404, 405)


@pytest.mark.parametrize(
    "name", ["mcp-2.3.0", "npm-server-2.4.0 auto", "mcp-1.30.0", "everything streamableHttp"]
)
@pytest.mark.req("B3")
@asynchronous
async def test_a_remembered_verdict_saves_the_probe(name: str, tmp_path: Path) -> None:
    async with served(name, tmp_path) as url:
        async with sansmcp_asyncio.connect(url) as client:
            verdict = client.verdict
        talk = HttpTalk()
        async with sansmcp_asyncio.connect(url, prior=verdict, on_wire=talk.on_wire) as client:
            assert client.verdict.revision is verdict.revision
            await client.list_tools()
    assert talk.methods()[0] == ("initialize" if verdict.era is Era.LEGACY else "tools/list")
    assert "server/discover" not in talk.methods()


# a server that asks ------------------------------------------------------------------------------


def form(params: Any) -> ElicitResult:
    return ElicitResult(action="accept", content={"name": "Ada ü"})


def model(params: Any) -> Json:
    text = params.messages[0].content.text
    return {"role": "assistant", "model": "none", "content": {"type": "text", "text": f"<{text}>"}}


ASKING = {
    "everything streamableHttp": None,
    "everything sse": None,
    "mcp-1.30.0": "Ada ü: <Greet Ada ü.>",
    "mcp-1.30.0 sse": "Ada ü: <Greet Ada ü.>",
    "mcp-2.3.0": "hello Ada ü",
    "mcp-2.3.0 json": "hello Ada ü",
    "mcp-2.3.0 sse": "hello Ada ü",
    "npm-server-2.4.0 auto": "hello Ada ü",
    "npm-server-2.4.0 sse": "hello Ada ü",
}
"""What the tool ``ask`` of each says at the end; None: it has tools of its own for that."""


async def offered(client: Client, name: str) -> None:
    """Wait for a tool that needs a capability of ours: the server adds it once it has seen that.

    It tells so, but before there is a stream to tell it on.
    """
    while True:
        if name in {tool.name for tool in (await client.list_tools()).tools}:
            return
        await asyncio.sleep(0.05)


@pytest.mark.filterwarnings("ignore:on_:DeprecationWarning")
@pytest.mark.parametrize("name", ASKING)
@pytest.mark.req("F1", "G1", "H1")
@asynchronous
async def test_server_asks_and_client_answers(name: str, tmp_path: Path) -> None:
    """In the middle of a call, or by a result; the answer reaches the tool that asked."""
    talk, told = HttpTalk(), ASKING[name]
    roots = {"roots": [{"uri": "file:///demo", "name": "demo ü"}]}
    async with reached(
        name, tmp_path, talk, on_elicit=form, on_sample=model, on_roots=lambda _: roots
    ) as client:
        if told is not None:
            assert text_of(await client.call_tool("ask", {})) == told
        else:
            await offered(client, "trigger-sampling-request")
            assert "demo ü" in text_of(await client.call_tool("get-roots-list", {}))
            asked: Json = {"prompt": "say ü", "maxTokens": 10}
            assert "say ü" in text_of(await client.call_tool("trigger-sampling-request", asked))
            elicited = await client.call_tool("trigger-elicitation-request", {})
            assert "Ada ü" in text_of(elicited)
    assert not talk.faults()


@pytest.mark.req("F1")
@asynchronous
async def test_a_modern_server_asks_in_a_legacy_session(tmp_path: Path) -> None:
    talk = HttpTalk()
    async with reached("mcp-2.3.0", tmp_path, talk, mode=Legacy(), on_elicit=form) as client:
        assert text_of(await client.call_tool("ask", {})) == "hello Ada ü"
    assert not talk.faults()


# changes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "granted"),
    [
        ("mcp-2.3.0", {ListChanged, ResourceUpdated}),
        ("npm-server-2.4.0 auto", {ListChanged}),
        ("npm-server-2.4.0 json", {ListChanged}),
    ],
)
@pytest.mark.req("O1")
@asynchronous
async def test_listening_to_a_modern_server(name: str, granted: set[type], tmp_path: Path) -> None:
    """It tells of what it said that it would, and that need not be all that was asked for."""
    talk = HttpTalk()
    async with (
        reached(name, tmp_path, talk) as client,
        client.listen(tools=True, resources=["test://greeting"]) as changes,
    ):
        await client.call_tool("change", {})
        assert {type(await anext(changes)) for _ in granted} == granted
        assert changes.refused is not None
        assert bool(changes.refused.resource_subscriptions) == (ResourceUpdated not in granted)
    assert not talk.faults()


# streams that are cut, sessions that are lost ------------------------------------------------------


@pytest.mark.req("P3", "P11")
@asynchronous
async def test_the_rest_of_an_answer_is_fetched(tmp_path: Path) -> None:
    """The server ends the stream in the middle of the call, and says how to come back."""
    talk = HttpTalk()
    async with reached("mcp-1.30.0 resume", tmp_path, talk) as client:
        assert text_of(await client.call_tool("cut", {})) == "the rest"
    assert b"last-event-id: " in talk.raw["sent"].lower()
    assert talk.methods().count("tools/call") == 1
    assert not talk.faults()


@pytest.mark.parametrize("name", ["everything streamableHttp", "mcp-1.30.0 resume"])
@pytest.mark.req("P3", "P11")
@asynchronous
async def test_a_stream_that_is_cut_on_the_way(name: str, tmp_path: Path) -> None:
    """The call goes on; what was missed is told when the client is back, and nothing twice."""
    slow, talk = known_of(name).slow, HttpTalk()
    assert slow is not None
    told: list[float] = []

    def on_progress(event: ProgressReported) -> None:
        told.append(event.progress)
        if len(told) == 1:
            wire.cut()

    async with (
        served(name, tmp_path) as url,
        Relay(url) as wire,
        sansmcp_asyncio.connect(
            wire.url, on_event=talk.on_event, on_wire=talk.on_wire, reconnect=ReconnectPolicy(delay=1.5)
        ) as client,
    ):
        result = await client.call_tool(slow.tool, slow.lasting(0.8), on_progress=on_progress)
        assert slow.text in text_of(result)
    assert told == [1, 2, 3, 4]
    assert talk.methods().count("tools/call") == 1
    assert talk.methods().count("initialize") == 1


RESTARTED = ("mcp-1.30.0", "mcp-1.30.0 stateless", "mcp-2.3.0", "fastmcp-4.2.3")


@pytest.mark.parametrize("era", [None, Legacy()])
@pytest.mark.parametrize("name", RESTARTED)
@pytest.mark.req("P2")
@asynchronous
async def test_a_server_that_was_started_again(name: str, era: Legacy | None, tmp_path: Path) -> None:
    """A session that it does not know any more is opened anew by what can be repeated."""
    known, talk, port = known_of(name), HttpTalk(), free_port()
    ask = known.good[0]
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        url = await first.enter_async_context(served(name, tmp_path, port))
        client = await stack.enter_async_context(
            sansmcp_asyncio.connect(
                url,
                mode=era,
                on_event=talk.on_event,
                on_wire=talk.on_wire,
                recovery=Recovery(tools=EVERY_TOOL),
            )
        )
        await check(client, ask)
        await first.aclose()
        with pytest.raises(SansmcpError):
            await client.call_tool(ask.tool, ask.arguments)
        await stack.enter_async_context(served(name, tmp_path, port))
        await check(client, ask)
    lost = HTTP_PEERS[name].sessions and client.era is Era.LEGACY
    assert talk.methods().count("initialize") == (0 if client.era is Era.MODERN else 2 if lost else 1)


@pytest.mark.req("P2")
@asynchronous
async def test_a_server_that_says_400_of_a_lost_session(tmp_path: Path) -> None:
    """It may as well mean the request: what it says is passed on, and no session is opened for it."""
    name, talk, port = "everything streamableHttp", HttpTalk(), free_port()
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        url = await first.enter_async_context(served(name, tmp_path, port))
        client = await stack.enter_async_context(
            sansmcp_asyncio.connect(url, on_event=talk.on_event, on_wire=talk.on_wire)
        )
        await first.aclose()
        await stack.enter_async_context(served(name, tmp_path, port))
        with pytest.raises(McpError, match="No valid session ID") as caught:
            await client.list_tools()
        assert caught.value.code == -32000
    assert talk.methods().count("initialize") == 1


@pytest.mark.req("AA10")
@asynchronous
async def test_a_client_that_was_told_so_takes_400_for_a_lost_session(tmp_path: Path) -> None:
    name, talk, port = "everything streamableHttp", HttpTalk(), free_port()
    async with AsyncExitStack() as stack:
        first = AsyncExitStack()
        url = await first.enter_async_context(served(name, tmp_path, port))
        client = await stack.enter_async_context(
            sansmcp_asyncio.connect(
                url, on_event=talk.on_event, on_wire=talk.on_wire, quirks=["session-lost-400"]
            )
        )
        await first.aclose()
        await stack.enter_async_context(served(name, tmp_path, port))
        await client.list_tools()
    assert talk.methods().count("initialize") == 2
    assert [event.name for event in talk.of(QuirkUsed)] == ["session-lost-400"]
