"""Our client against servers that others wrote or that run on others' SDKs: what it gets from them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from sansmcp import (
    InputRequired,
    ListChanged,
    LocalProtocolError,
    LogReceived,
    McpError,
    ProgressReported,
)
from sansmcp.revisions import Era
from sansmcp.types import (
    BlobResourceContents,
    ClientCapabilities,
    ElicitationCapability,
    RootsCapability,
    SamplingCapability,
    TextContent,
    TextResourceContents,
)
from sansmcp_asyncio import Client
from tests.peers.registry import PEERS

from .known import KNOWN, MANY, Known
from .support import Talk, asynchronous, check, connected, every_peer, peers_with, prepare, text_of, usual

pytestmark = pytest.mark.interop

# tools -------------------------------------------------------------------------------------------


@every_peer
@pytest.mark.req("M1", "U5")
@pytest.mark.case("S-01")
@asynchronous
async def test_tools(name: str, tmp_path: Path) -> None:
    peer, known, talk = PEERS[name], KNOWN[name], Talk()
    prepare(name, tmp_path)
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        listed = await client.list_tools()
        names = {tool.name for tool in listed.tools}
        assert set(peer.tools) <= names
        assert names == set(peer.tools) or peer.kind == "reference server"
        assert listed.next_cursor is None
        assert all(tool.input_schema["type"] == "object" for tool in listed.tools)

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
    assert not talk.faults()


@every_peer
@asynchronous
async def test_many_calls_in_flight(name: str, tmp_path: Path) -> None:
    """All of them leave before the first answer is there, and each gets its own."""
    known, talk = KNOWN[name], Talk()
    prepare(name, tmp_path)
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        before = len(talk.received)
        async with asyncio.TaskGroup() as group:
            for number in range(MANY):
                group.create_task(check(client, known.many(number)))
            await talk.until(lambda: len(talk.sent_with("tools/call")) == MANY)
            assert client.engine.stats()["calls"] == MANY
            assert len(talk.received) == before
        assert client.engine.stats()["calls"] == 0
    assert not talk.faults()


# resources, prompts, completion, and the verbs of one era ----------------------------------------


@every_peer
@pytest.mark.req("M1", "U6", "Z1", "L3", "I2", "A11", "B12")
@pytest.mark.case("G-07")
@asynchronous
async def test_everything_beside_tools(name: str, tmp_path: Path) -> None:
    known, talk = KNOWN[name], Talk()
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        if "resources" in known.offers:
            await use_resources(client, talk, known)
        else:
            await refused(talk, client.list_resources, client.list_resource_templates)
        if "prompts" in known.offers:
            await use_prompts(client, known)
        else:
            await refused(talk, client.list_prompts)
        for ask in known.completions:
            found = await client.complete(ask.ref, ask.argument, ask.value, ask.context)
            assert found.completion.values == ask.values
        if client.era is Era.LEGACY:
            await client.ping()
            await refused(talk, client.discover)
            if "logging" in known.offers:
                await client.set_log_level("warning")
            else:
                await refused(talk, lambda: client.set_log_level("warning"))
        else:
            assert client.revision.value in (await client.discover()).supported_versions
            await refused(talk, client.ping, lambda: client.set_log_level("warning"))
    assert not talk.faults()


async def refused(talk: Talk, *verbs: Callable[[], Awaitable[Any]]) -> None:
    """What the server does not offer or its era does not have is not even asked for."""
    sent = len(talk.sent)
    for verb in verbs:
        with pytest.raises(LocalProtocolError):
            await verb()
    assert len(talk.sent) == sent


async def use_resources(client: Client, talk: Talk, known: Known) -> None:
    listed = await client.list_resources()
    templates = await client.list_resource_templates()
    assert {t.uri_template for t in templates.resource_templates} == set(known.templates)
    assert {r.uri for r in listed.resources} & set(known.resources)
    for uri, start in known.resources.items():
        contents = (await client.read_resource(uri)).contents
        assert len(contents) == 1
        part = contents[0]
        assert isinstance(part, (TextResourceContents, BlobResourceContents))
        assert part.uri == uri
        text = part.text if isinstance(part, TextResourceContents) else part.blob
        assert text.startswith(start)

    with pytest.raises(McpError) as caught:
        await client.read_resource("nope://x")
    assert caught.value.code == known.missing_resource
    raw = talk.received[-1]["error"]
    assert caught.value.message == raw["message"]
    assert caught.value.data == raw.get("data")


async def use_prompts(client: Client, known: Known) -> None:
    listed = {prompt.name for prompt in (await client.list_prompts()).prompts}
    for prompt in known.prompts:
        assert prompt.name in listed
        message = (await client.get_prompt(prompt.name, prompt.arguments)).messages[0]
        assert message.role == "user"
        assert isinstance(message.content, TextContent)
        assert message.content.text == prompt.text
    with pytest.raises(McpError):
        await client.get_prompt("nope")


# progress, logs ----------------------------------------------------------------------------------


@peers_with("slow")
@pytest.mark.req("J1", "J2")
@pytest.mark.case("C-08")
@asynchronous
async def test_progress(name: str, tmp_path: Path) -> None:
    """Each report arrives, belongs to its call, and keeps a call alive that outlasts its timeout."""
    slow, talk = KNOWN[name].slow, Talk()
    assert slow is not None
    told: list[ProgressReported] = []
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        result = await client.call_tool(
            slow.tool, slow.lasting(1.2), on_progress=told.append, timeout=1.0, total_timeout=20.0
        )
        assert slow.text in text_of(result)
        quiet = len(talk.of(ProgressReported))
        await client.call_tool(slow.tool, slow.lasting(0.01))
    assert [(event.progress, event.total) for event in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert len(talk.of(ProgressReported)) == quiet == 4
    assert not talk.faults()


@pytest.mark.req("I1", "I2")
@asynchronous
async def test_logs(tmp_path: Path) -> None:
    talk = Talk()
    async with connected("everything", tmp_path, talk) as client:
        await client.set_log_level("debug")
        await client.call_tool("toggle-simulated-logging", {})
        await talk.until(lambda: talk.of(LogReceived))
    first = talk.of(LogReceived)[0]
    assert first.level in ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
    assert isinstance(first.data, str)
    assert not talk.faults()


# a server that asks ------------------------------------------------------------------------------


@pytest.mark.req("G1", "H1", "F1")
@asynchronous
async def test_server_asks_and_client_answers(tmp_path: Path) -> None:
    """What was declared is asked for and answered; the answer reaches the tool that asked."""
    talk, asked = Talk(), []
    answers: dict[str, dict[str, Any]] = {
        "roots/list": {"roots": [{"uri": "file:///demo", "name": "demo ü"}]},
        "sampling/createMessage": {
            "role": "assistant",
            "content": {"type": "text", "text": "sampled ü"},
            "model": "none",
        },
        "elicitation/create": {"action": "decline"},
    }

    async def answer(client: Client) -> None:
        async for event in client.events():
            if isinstance(event, InputRequired):
                for key, question in event.requests.items():
                    asked.append(question.method)
                    assert await client.provide_input(event.round, {key: answers[question.method]})

    async with connected(
        "everything",
        tmp_path,
        talk,
        capabilities=ClientCapabilities(
            roots=RootsCapability(), sampling=SamplingCapability(), elicitation=ElicitationCapability()
        ),
    ) as client:
        answering = asyncio.create_task(answer(client))
        # it offers what needs a capability of ours once it has seen that
        await talk.until(lambda: talk.of(ListChanged))
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert {"get-roots-list", "trigger-sampling-request", "trigger-elicitation-request"} <= names
        roots = await client.call_tool("get-roots-list", {})
        sampled = await client.call_tool("trigger-sampling-request", {"prompt": "say", "maxTokens": 10})
        elicited = await client.call_tool("trigger-elicitation-request", {})
    await answering
    assert "demo ü" in text_of(roots)
    assert "sampled ü" in text_of(sampled)
    assert "decline" in text_of(elicited)
    assert set(asked) == set(answers)
    assert not talk.faults()
