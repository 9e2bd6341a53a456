"""Connections that end too early: what is sent again, what is not, and what a tool is not called on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from sansmcp import LocalProtocolError, RequestFailed, ResultReady
from sansmcp.errors import NetworkFailure, NetworkProblem
from sansmcp.http.connector import STALE_WITHIN
from sansmcp.http.pool import DEFAULT_POOL, SETTLED
from sansmcp.http.recovery import EVERY_TOOL, Recovery

from .http_connector_support import Net, Wire, done, failure, settled
from .support import DISCOVER

TOOLS = {"resultType": "complete", "tools": [], "ttlMs": 0, "cacheScope": "private"}


@pytest.mark.parametrize("end", [Net.eof, Net.fail])
def test_a_request_that_crossed_with_the_end_is_sent_once_more(end: Callable[[Net, Wire], None]) -> None:
    net = Net().connected()
    call = net.ask()
    wire = net.last
    sent = bytes(wire.data)
    end(net, wire)
    again = net.open(net.wires[2])
    assert sent.endswith(bytes(again.data))
    net.answer(again, TOOLS)
    assert net.one(ResultReady).call is call
    settled(net)


def _request(net: Net, method: str) -> None:
    net.engine.request(method, {}, now=net.now)
    net.drain()


ONCE: list[tuple[str, Recovery, Callable[[Net], Any], bool]] = [
    ("a tool", Recovery(), lambda net: net.call("pay"), False),
    ("a tool that is not named", Recovery(tools={"find"}, reissue=True), lambda net: net.call("pay"), False),
    ("a tool that is", Recovery(tools={"find"}), lambda net: net.call("find"), True),
    ("every tool", Recovery(tools=EVERY_TOOL), lambda net: net.call("pay"), True),
    ("what the protocol does not have", Recovery(), lambda net: _request(net, "acme/pay"), False),
    ("unless it is named", Recovery(methods={"acme/find"}), lambda net: _request(net, "acme/find"), True),
]


@pytest.mark.req("R9", "P2")
@pytest.mark.case("H-07")
@pytest.mark.parametrize(
    ("recovery", "ask", "again"), [row[1:] for row in ONCE], ids=[row[0] for row in ONCE]
)
@pytest.mark.parametrize("end", [Net.eof, Net.fail])
def test_what_may_have_had_an_effect_is_not_sent_twice(
    recovery: Recovery, ask: Callable[[Net], Any], again: bool, end: Callable[[Net, Wire], None]
) -> None:
    """RFC 9110, section 9.2.2: whether the server began with it, nobody knows."""
    net = Net(http={"recovery": recovery}).connected()
    ask(net)
    end(net, net.last)
    assert len(net.wires) == (2 if again else 1)
    if not again:
        assert "the connection was lost" in str(failure(net))
        assert failure(net).retryable
        settled(net)


@pytest.mark.parametrize("wrong", [{"tools": "find"}, {"methods": "acme/find"}])
def test_a_text_is_no_list_of_names(wrong: Any) -> None:
    with pytest.raises(LocalProtocolError, match="a list of names"):
        Recovery(**wrong)


@pytest.mark.req("R9")
def test_a_tool_is_not_called_on_a_connection_that_is_about_to_end() -> None:
    trusted = DEFAULT_POOL.trusted_for
    for seconds, wires in ((trusted - 0.1, 1), (trusted, 2)):
        net = Net().connected()
        net.advance(seconds)
        net.call()
        assert len(net.wires) == wires
        assert net.wires[1].closed is (wires == 2), "one that nobody trusts is not kept beside"
    net = Net().connected()
    net.advance(trusted)
    net.ask()
    assert net.wires[1].methods == ["server/discover", "tools/list"], "others take the risk"


@pytest.mark.req("R9")
@pytest.mark.parametrize("ask", [Net.call, Net.ask])
def test_where_one_kept_connection_had_ended_no_tool_is_called_on_the_others(
    ask: Callable[[Net], Any],
) -> None:
    net = Net().connected()
    for _ in range(3):
        net.call()
    net.open(net.wires[2])
    net.open(net.wires[3])
    for conn in (1, 2, 3):
        net.answer(net.wires[conn])
    ask(net)
    net.eof(net.wires[3])
    net.call()
    assert all(wire.closed for wire in list(net.wires.values())[:3])
    assert len(net.of(RequestFailed)) == (ask is Net.call)


@pytest.mark.req("P5", "R9")
@pytest.mark.parametrize(("seconds", "wires"), [(1.0, 1), (10.0, 2)])
def test_nor_on_one_whose_long_stream_just_ended(seconds: float, wires: int) -> None:
    """A server that stops ends its streams first."""
    net = Net().connected()
    net.call()
    net.stream(net.last)
    net.advance(seconds)
    net.event(net.last, {"jsonrpc": "2.0", "id": net.last.message["id"], "result": done()})
    net.send(net.last, b"0\r\n\r\n")
    net.call()
    assert len(net.wires) == wires


@pytest.mark.req("R9")
@pytest.mark.parametrize(
    ("field", "before", "wires"),
    [
        ("x: y", lambda net: None, 2),
        ("x: y", lambda net: net.advance(SETTLED), 1),
        ("x: y", lambda net: (net.ask(), net.answer(net.wires[1], TOOLS)), 1),
        ("connection: keep-alive", lambda net: None, 1),
        ("keep-alive: timeout=5", lambda net: None, 1),
        ("keep-alive: timeout=1", lambda net: None, 2),
    ],
)
def test_nor_on_one_that_the_server_may_end_with_its_response(field: str, before: Any, wires: int) -> None:
    """Some end each connection without a word about it: then every call would be lost."""
    net = Net()
    net.connector.start(0.0)
    net.drain()
    net.answer(net.open(), DISCOVER, field)
    before(net)
    call = net.call()
    assert len(net.wires) == wires
    if wires == 2:
        net.eof(net.wires[1])
        net.open(net.wires[2])
    net.answer(net.last)
    assert net.of(ResultReady)[-1].call is call
    settled(net)


def test_it_counts_from_when_the_call_was_made() -> None:
    """Verbs are called on the engine: that time passes is seen by nobody else."""
    for seconds in (1.0, 20.0):
        net = Net().connected()
        net.now = seconds
        net.ask()
        net.eof(net.wires[1])
        assert net.open(net.wires[2]).methods == ["tools/list"]
    net = Net(pool={"idle_timeout": 100.0}).connected()
    net.now = 50.0
    net.ask()
    net.ask()
    net.advance(9.0)  # the second connection has 10 s
    assert not net.of(RequestFailed)


NOT_AGAIN: list[tuple[str, Callable[[Net], None]]] = [
    ("something of the answer came", lambda net: net.send(net.last, b"H")),
    ("be it that it is to wait", lambda net: net.send(net.last, b"HTTP/1.1 100 Continue\r\n\r\n")),
    ("it took so long that the server had it", lambda net: net.advance(STALE_WITHIN + 0.1)),
]


@pytest.mark.req("R9")
@pytest.mark.case("H-07")
@pytest.mark.parametrize("step", [row[1] for row in NOT_AGAIN], ids=[row[0] for row in NOT_AGAIN])
@pytest.mark.parametrize("end", [Net.eof, Net.fail])
def test_otherwise_it_is_not(step: Callable[[Net], None], end: Callable[[Net, Wire], None]) -> None:
    net = Net().connected()
    net.ask()
    step(net)
    end(net, net.last)
    error = failure(net)
    assert isinstance(error, NetworkFailure)
    assert error.problem is NetworkProblem.LOST
    assert error.retryable
    assert "tools/list" in str(error)
    assert len(net.wires) == 1
    settled(net)


def test_a_new_connection_that_ends_is_no_reason_to_try_again() -> None:
    net = Net().connected()
    net.ask()
    net.eof(net.last)
    net.open(net.wires[2])
    net.eof(net.wires[2])
    assert failure(net).retryable
    assert len(net.wires) == 2


def test_a_broken_body_fails_the_call() -> None:
    for data in (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{",
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{",
    ):
        for end in (Net.eof, Net.fail):
            net = Net().connected()
            net.call()
            net.send(net.last, data)
            end(net, net.last)
            error = failure(net)
            assert "the connection was lost" in str(error)
            assert (error.status, error.retryable) == (200, True)
            settled(net)


@pytest.mark.req("R9")
def test_a_broken_stream_fails_the_call() -> None:
    net = Net().connected()
    net.call()
    net.stream(net.last)
    net.fail(net.last, "reset by peer")
    assert "the stream broke: the connection was lost: reset by peer" in str(failure(net))
