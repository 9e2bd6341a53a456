"""The public tools for tests: a clock, chance, and a network that a test can break."""

from __future__ import annotations

import pytest

from sansmcp import LocalProtocolError, RequestFailed, ResultReady, SessionEnded
from sansmcp.testing import Dice, Network, VirtualClock

from .stream_support import client, network

pytestmark = pytest.mark.req("AA2")


def test_a_clock_moves_when_it_is_told_to() -> None:
    clock = VirtualClock(5.0, unix=1000.0)
    assert clock() == clock.now == 5.0
    assert clock.advance(2.5) == clock() == 7.5
    assert clock.pair().unix == 1007.5
    with pytest.raises(LocalProtocolError):
        clock.advance(-1)


def test_dice_depend_on_their_seed_alone() -> None:
    def rolls(seed: int) -> list[int]:
        dice = Dice(seed)
        return [dice.roll(6) for _ in range(50)]

    assert rolls(1) == rolls(1) != rolls(2)
    assert set(rolls(3)) == set(range(6))
    assert all(0 <= Dice(n).fraction() < 1 for n in range(50))
    assert len(Dice().entropy(9)) == 9


def conversation(seed: int) -> tuple[list[str], float]:
    net = network("tcp", seed=seed, max_chunk=20, max_delay=1.0)
    clients = [net.add(client("tcp")) for _ in range(3)]
    net.advance(5)
    for n, c in enumerate(clients):
        net.call(c.engine.call_tool, "echo", {"text": str(n)})
    while len(net.client_events) < 6:
        net.advance(0.1)
    return [event.result.content[0].text for event in net.of(ResultReady)], net.now


def test_a_run_depends_on_its_seed_alone_and_connections_overtake_each_other() -> None:
    assert conversation(1) == conversation(1)
    assert len({tuple(conversation(seed)[0]) for seed in range(12)}) > 1


def test_what_is_written_is_read_in_order_and_whole() -> None:
    for seed in range(8):
        net = network("tcp", seed=seed, max_chunk=3, max_delay=0.5)
        c = net.add(client("tcp"))
        net.advance(2)
        calls = [net.call(c.engine.call_tool, "echo", {"text": str(n) * n}) for n in range(30)]
        net.advance(10)
        assert [net.end_of(call).result.content[0].text for call in calls] == [str(n) * n for n in range(30)]


def test_half_of_a_connection_can_be_closed() -> None:
    net = network("tcp")
    c = net.add(client("tcp"))
    net.half_close("client")
    net.advance(1)
    assert c.finished
    assert net.links == []
    net = network("tcp")
    c = net.add(client("tcp"))
    net.half_close("server")
    assert str(net.of(SessionEnded)[0].error) == "the server closed the connection"


def test_an_end_that_does_not_read_gets_nothing_until_it_does() -> None:
    net = network("tcp")
    c = net.add(client("tcp"))
    net.hold("server")
    call = net.call(c.engine.call_tool, "echo", {"text": "hi"})
    net.advance(10)
    with pytest.raises(LocalProtocolError, match="has not ended"):
        net.end_of(call)
    net.release("server")
    assert net.end_of(call).result.content[0].text == "hi"


def test_a_cut_is_told_both_ends() -> None:
    net = network("tcp")
    c = net.add(client("tcp"))
    net.hold("server")
    call = net.call(c.engine.call_tool, "echo", {"text": "hi"})
    net.cut()
    assert [event.call for event in net.of(RequestFailed)] == [call]
    assert len(net.of(SessionEnded, "server")) == 1
    with pytest.raises(LocalProtocolError, match="no connection"):
        net.cut()


def test_http_can_be_at_both_ends_too() -> None:
    from sansmcp import HttpClient, HttpConnector
    from sansmcp.client import ClientEngine
    from sansmcp.http.listener import HttpListener
    from sansmcp.http.server import HttpServer
    from sansmcp.session.era import TransportKind

    from .stream_support import app
    from .support import ME

    served = app()
    server = HttpServer(served.engine, now=0.0, entropy=Dice().entropy)
    net = Network(HttpListener(server, now=0.0), served, answers=server, max_chunk=30, max_delay=0.1, seed=4)
    engine = ClientEngine(ME, now=0.0, transport=TransportKind.HTTP)
    net.add(HttpConnector(HttpClient(engine, "http://localhost/mcp", now=0.0), now=0.0))
    net.advance(3)
    call = net.call(engine.call_tool, "echo", {"text": "hi"})
    net.advance(3)
    assert net.end_of(call).result.content[0].text == "hi"
