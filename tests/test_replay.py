"""Logs: what was written down happens again, byte by byte, or the first step that does not is named."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import pytest

from sansmcp import (
    ClientEngine,
    InputRequired,
    LineClient,
    LineServer,
    LocalProtocolError,
    McpError,
    RequestReceived,
    ServerEngine,
)
from sansmcp.replay import hide_secrets, rebuild, record, replay
from sansmcp.types import CallToolResult, Implementation, ServerCapabilities, TextContent, ToolsCapability

from .http_client_support import SESSION, TEXT, Link
from .rounds_support import ACCEPTED, EVERYTHING, FORM, required
from .support import DISCOVER, ME, MODERN, Driver, initialize_result, request, result

pytestmark = pytest.mark.req("AA5")

TOOLS = ServerCapabilities(tools=ToolsCapability())


def a_client(lines: list[str], hide: Any = None) -> Any:
    """A client engine that is recorded; it was asked something, and its call ended."""
    made = {"info": ME, "capabilities": EVERYTHING}
    engine = record(
        ClientEngine(ME, now=0.0, capabilities=EVERYTHING), lines.append, made_with=made, hide=hide
    )
    driver = Driver(engine)
    engine.connect(now=0.0)
    driver.drain()
    driver.reply({**DISCOVER, "supportedVersions": [MODERN]})
    call = engine.call_tool("echo", {"text": "hé"}, now=1.0, progress=True)
    driver.drain()
    driver.reply(required({"a": FORM}, "the-state"))
    engine.provide_input(driver.one(InputRequired).round, {"a": ACCEPTED}, now=2.0)
    driver.drain()
    driver.receive(b'{"jsonrpc": 1}', b"\xff{")
    driver.reply(result(MODERN, {"content": []}))
    with pytest.raises(LocalProtocolError):
        engine.call_tool("echo", now=2.0, log_level="loud")
    other = engine.call_tool("slow", now=2.0)
    driver.drain()
    engine.cancel(other, now=3.0)
    driver.advance(100.0)
    assert call.done
    return engine


def new_client() -> ClientEngine:
    return ClientEngine(ME, now=0.0, capabilities=EVERYTHING)


def test_a_client_engine_does_the_same_again() -> None:
    lines: list[str] = []
    a_client(lines)
    assert replay(lines, new_client()) == replay(lines, rebuild(lines))
    outcome = replay(lines, new_client())
    assert (outcome.divergence, outcome.steps) == (None, len(lines) - 1)
    assert any('"is":"SendRequest"' in line for line in lines)


def a_server(lines: list[str]) -> LineServer:
    """A server on bytes that is recorded; verbs are used on its engine."""
    made = {"info": ME, "capabilities": TOOLS}
    inner = LineServer(ServerEngine(ME, now=0.0, capabilities=TOOLS), now=0.0)
    server = record(inner, lines.append, made_with=made)

    def drain() -> list[Any]:
        while server.next_op() is not None:
            pass
        events = []
        while (event := server.next_event()) is not None:
            events.append(event)
        server.next_timeout()
        return events

    server.accepted(1, 0.0)
    data = b"".join(
        json.dumps(request("tools/call", {"name": "t"}, id=n)).encode() + b"\n" for n in (1, 2, 3)
    )
    server.receive_data(1, data[:50], 1.0)
    assert drain() == []
    server.receive_data(1, data[50:] + b"\x80garbage\n", 2.0)
    first, second, third = (e.request for e in drain() if isinstance(e, RequestReceived))
    server.engine.respond(second, CallToolResult(content=[TextContent(text="ok")]), now=3.0)
    drain()
    server.engine.respond_error(first, McpError(-32602, "no", {"x": 1}), now=3.0)
    server.receive_eof(1, 4.0)
    drain()
    server.engine.respond(third, {"content": []}, now=5.0)
    drain()
    return server


def test_a_transport_does_the_same_again_from_its_bytes() -> None:
    lines: list[str] = []
    a_server(lines)
    machine = rebuild(lines)
    assert isinstance(machine, LineServer)
    assert replay(lines, machine).divergence is None
    assert any('"is":"Write"' in line for line in lines)


def test_exchanges_over_http_happen_again() -> None:
    lines: list[str] = []
    link = Link()
    link.client = record(link.client, lines.append)
    link.engine = link.client.engine
    link.start().reply(error=-32601, status=400)
    link.reply(initialize_result(), headers=[("mcp-session-id", SESSION)])
    link.answer(link.of_rpc("notifications/initialized")[-1], 202)
    link.call()
    asked = link.of_rpc("tools/call")[-1]
    link.stream(asked, {"jsonrpc": "2.0", "id": asked.message["id"], "result": TEXT})
    link.advance(30.0).close()
    assert any(SESSION in line for line in lines)
    assert replay(lines, Link().client).divergence is None


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        (
            '"$text":"{\\"jsonrpc\\":\\"2.0\\",\\"id\\":2,\\"method\\"',
            '"$text":"{',
            "SendRequest: another data",
        ),
        ('"is":"ResultReady"', '"is":"RequestFailed"', "expected RequestFailed, got ResultReady"),
        ('"raised":{', '"raised":{"x":1,', "call_tool: another raised"),
        ('"in":"cancel"', '"in":"no_such_verb"', "no input or verb 'no_such_verb'"),
        ('"in":"cancel"', '"in":"_tell_cancelled"', "no input or verb"),
        ('"args":[{"$round":1}', '"args":[{"$round":9}', "not to be brought back"),
        ('"args":[{"$round":1}', '"args":[5', "provide_input: AttributeError"),
        ('"args":[{"$round":1}', '"arguments":[{"$round":1}', "does not say what it was given"),
        ('"in":"cancel"', '"in":"cancel","on":"__class__"', "there is no '__class__' here"),
    ],
)
def test_the_first_step_that_differs_is_named(old: str, new: str, reason: str) -> None:
    lines: list[str] = []
    a_client(lines)
    at = next(number for number, line in enumerate(lines) if old in line)
    changed = [line.replace(old, new, 1) if number == at else line for number, line in enumerate(lines)]
    divergence = replay(changed, new_client()).divergence
    assert divergence is not None
    assert reason in divergence.reason
    assert divergence.step == at + 1


def test_an_engine_of_another_make_diverges() -> None:
    lines: list[str] = []
    a_client(lines)
    divergence = replay(lines, ClientEngine(Implementation("other", "1"), now=0.0)).divergence
    assert divergence is not None
    assert divergence.reason == "SendRequest: another data"
    assert "other" in str(divergence.got)


def test_what_is_hidden_is_not_written_and_ends_the_replay() -> None:
    lines: list[str] = []
    a_client(lines, hide=hide_secrets)
    assert "the-state" not in "".join(lines)
    assert '"hidden":true' in "".join(lines)
    outcome = replay(lines, new_client())
    assert outcome.divergence is not None
    assert (
        outcome.divergence.reason == "receive_message: something of it was hidden, so it cannot be run again"
    )


@pytest.mark.parametrize(
    "text",
    [
        '{"requestState": "S3CRET"}',
        '{"access_token":"S3CRET"}',
        "POST / HTTP/1.1\r\nAuthorization: Bearer S3CRET\r\n",
        "Mcp-Session-Id: S3CRET",
        "/callback?code=S3CRET&x=1",
    ],
)
def test_secrets_are_found_by_their_names(text: str) -> None:
    assert "S3CRET" not in hide_secrets(text)


@pytest.mark.parametrize("lines", [[], ["no json"], ["[]"], ['{"in":"x"}'], ['{"sansmcp":"log","format":2}']])
def test_what_is_no_log_is_misuse(lines: list[str]) -> None:
    with pytest.raises(LocalProtocolError, match="log"):
        replay(lines, new_client())


def test_a_transport_that_needs_more_than_an_engine_is_not_rebuilt() -> None:
    lines: list[str] = []
    record(LineClient(new_client(), now=0.0), lines.append)
    with pytest.raises(LocalProtocolError, match="made_with"):
        rebuild(lines)
    head = json.loads(lines[0])
    with pytest.raises(LocalProtocolError, match="use replay"):
        rebuild([json.dumps({**head, "machine": "StdioClient"})])


PLACED: list[Any] = [None, -1, "x", [], {}, {"$type": "Tool", "value": {}}, {"$enum": 5}, {"$attrs": "Write"}]


@pytest.mark.parametrize("value", PLACED, ids=str)
def test_a_log_that_was_spoilt_is_misuse_or_diverges(value: Any) -> None:
    lines: list[str] = []
    a_client(lines)
    for number, line in enumerate(lines):
        entry = json.loads(line)
        for name in entry:
            spoilt = [*lines[:number], json.dumps({**entry, name: value}), *lines[number + 1 :]]
            with suppress(LocalProtocolError):
                replay(spoilt, new_client())
            with suppress(LocalProtocolError):
                rebuild(spoilt[: number + 1])
