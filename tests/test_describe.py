"""`describe`: state, allowed inputs and deadlines come from the tables that the engine runs on."""

from __future__ import annotations

import json

import pytest

from sansmcp import InputRequired
from sansmcp.describe import describe
from sansmcp.states import CALL, CLIENT, SERVER, CallState, ClientState, ServerState

from .rounds_support import EVERYTHING, FORM, able, required
from .support import LEGACY, MODERN, Driver, ask, call_tool, client, opened, server

pytestmark = pytest.mark.req("AA6")


def test_a_client_at_its_start_and_connected() -> None:
    driver = client()
    at_start = describe(driver.engine)
    assert (at_start.engine.table, at_start.engine.state) == (CLIENT.name, "IDLE")
    assert set(at_start.engine.allowed) == {i.name for i in CLIENT.transitions[ClientState.IDLE]}
    assert (at_start.next_timeout, at_start.waiting_for, at_start.calls) == (None, (), ())
    driver.engine.connect(now=0.0)
    driver.drain()
    probing = describe(driver.engine)
    assert probing.engine.state == "PROBING"
    assert [name for name, _ in probing.waiting_for] == ["timeout of call #1", "connect"]
    assert probing.next_timeout == probing.waiting_for[0][1]


def test_calls_and_rounds_say_what_they_allow() -> None:
    driver = able(MODERN, capabilities=EVERYTHING)
    call_tool(driver)
    told = describe(driver.engine)
    assert told.calls[0].state == "SENT"
    assert set(told.calls[0].allowed) == {i.name for i in CALL.transitions[CallState.SENT]}
    driver.reply(required({"a": FORM}, "the-state"))
    assert driver.of(InputRequired)
    told = describe(driver.engine)
    assert (told.rounds[0].state, told.calls[0].state) == ("OPEN", "ASKING")
    text = json.dumps(told.to_json())
    assert "the-state" not in text
    assert "the-state" not in repr(told)
    assert told.sizes == driver.engine.stats()


@pytest.mark.parametrize("version", [LEGACY[-1], MODERN])
def test_a_server_tells_its_requests(version: str) -> None:
    driver: Driver = opened(version) if version != MODERN else server()
    ask(driver, version, "tools/call", {"name": "t"}, id=7)
    told = describe(driver.engine)
    state = ServerState.READY if version != MODERN else ServerState.OPEN
    assert told.engine.state == state.name
    assert set(told.engine.allowed) == {i.name for i in SERVER.transitions[state]}
    assert told.requests[0].subject == "7 tools/call"


def test_a_subscription_is_told() -> None:
    driver = able(MODERN)
    driver.engine._server_capabilities = {"tools": {"listChanged": True}}
    driver.engine.listen(now=0.0, tools=True)
    driver.drain()
    assert describe(driver.engine).subscriptions[0].state == "ASKED"
