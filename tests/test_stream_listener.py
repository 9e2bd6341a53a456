"""Many connections under one driver, each a conversation of its own; and clients that make them."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    App,
    ClientCapabilities,
    Close,
    ConnectionEnded,
    ConnectUnix,
    Elicit,
    Era,
    EraDecided,
    InputRequired,
    Legacy,
    LimitHit,
    ListChanged,
    ListKind,
    LocalProtocolError,
    MessageIgnored,
    NetworkFailure,
    NetworkProblem,
    Op,
    PeerFault,
    PingPolicy,
    ProgressReported,
    RestartPolicy,
    SessionEnded,
    SessionStarted,
    SocketClient,
    SocketServer,
    StreamListener,
    TcpAddress,
    UnixAddress,
)
from sansmcp.client import ClientEngine
from sansmcp.states import DialState
from sansmcp.stream_listener import lines, websockets
from sansmcp.testing import Network
from sansmcp.types.lifecycle import ElicitationCapability

from .stream_support import app, client, network, stats
from .support import ME

KINDS = pytest.mark.parametrize("kind", ["ws", "tcp"])
MODES = pytest.mark.parametrize("mode", [None, Legacy()], ids=["modern", "legacy"])


@KINDS
@MODES
@pytest.mark.req("S1", "S3", "Q10")
def test_many_clients_at_once(kind: str, mode: Any) -> None:
    net = network(kind, max_chunk=50, max_delay=0.5, seed=11)
    clients = [net.add(client(kind, engine={"mode": mode})) for _ in range(20)]
    net.advance(5)
    calls = [
        net.call(c.engine.call_tool, "echo", {"text": f"{n}:{k}"})
        for n, c in enumerate(clients)
        for k in (1, 2)
    ]
    net.advance(5)
    texts = [net.end_of(call).result.content[0].text for call in calls]
    assert texts == [f"{n}:{k}" for n in range(20) for k in (1, 2)]
    assert stats(net)["connections"] == 20
    if mode is not None:
        sessions = {event.session for event in net.of(SessionStarted, "server")}
        assert len(sessions) == 20
    for n, c in enumerate(clients):
        if n % 2:
            net.call(c.close)
        else:
            net.cut(next(link for link in net.links if link.client is c))
    net.advance(5)
    assert all(c.finished for c in clients)
    assert not any(stats(net).values())
    ended = {event.session for event in net.of(SessionEnded, "server")}
    assert len(ended) == 20


@KINDS
@MODES
def test_progress_and_changes_reach_the_client_they_are_for(kind: str, mode: Any) -> None:
    served = app()
    listener = StreamListener((websockets if kind == "ws" else lines)(served), now=0.0)
    net = Network(listener, served)
    clients = [net.add(client(kind, engine={"mode": mode})) for _ in range(3)]
    net.call(clients[1].engine.call_tool, "steps", progress=True)
    assert [event.progress for event in net.of(ProgressReported)] == [1, 2, 3]
    listener.notify_changed(ListKind.TOOLS, now=0.0)
    net.run()
    assert len(net.of(ListChanged)) == (0 if mode is None else 3)


@KINDS
@MODES
def test_a_client_is_asked_on_its_own_connection(kind: str, mode: Any) -> None:
    served = App("server", "1.0")

    @served.tool()
    def ask() -> Any:
        answer = yield Elicit("name?", {"type": "object", "properties": {"name": {"type": "string"}}})
        return str(answer.content["name"])

    listener = StreamListener((websockets if kind == "ws" else lines)(served), now=0.0)
    net = Network(listener, served)
    can = ClientCapabilities(elicitation=ElicitationCapability())
    clients = [net.add(client(kind, engine={"mode": mode, "capabilities": can})) for _ in range(2)]
    call = net.call(clients[1].engine.call_tool, "ask")
    (asked,) = net.of(InputRequired)
    (key,) = asked.requests
    answer = {"action": "accept", "content": {"name": "Ada"}}
    net.call(clients[1].engine.provide_input, asked.round, {key: answer})
    assert net.end_of(call).result.content[0].text == "Ada"


def test_past_the_bound_a_connection_is_ended_at_once() -> None:
    """AA12: and that is told."""
    served = app()
    net = Network(StreamListener(lines(served), now=0.0, max_connections=2), served)
    first = [net.add(client("tcp")) for _ in range(2)]
    third = net.add(client("tcp", engine={"mode": Legacy()}))
    net.advance(1)
    assert [hit.limit for hit in net.of(LimitHit, "server")] == ["max_connections"]
    assert third.finished
    assert all(c.state is DialState.OPEN for c in first)
    net.call(first[0].close)
    net.advance(1)
    assert net.add(client("tcp")).state is DialState.OPEN
    with pytest.raises(LocalProtocolError):
        StreamListener(lines(served), now=0.0, max_connections=0)


@KINDS
@pytest.mark.req("AA12")
def test_a_client_that_does_not_read_holds_up_itself_alone(kind: str) -> None:
    net = network(kind)
    quiet: dict[str, Any] = {"pings": PingPolicy(interval=None)} if kind == "ws" else {}
    slow, quick = net.add(client(kind, **quiet)), net.add(client(kind))
    held = next(link for link in net.links if link.client is slow)
    net.hold("client", held)
    for _ in range(40):
        slow.engine.call_tool("echo", {"text": "x" * 10_000}, now=net.now, timeout=None, total_timeout=9999)
        net.run()
    assert stats(net)["paused"] == 1
    written = held.down.size
    net.call(slow.engine.call_tool, "echo", {"text": "x" * 10_000}, timeout=None, total_timeout=9999)
    assert held.down.size == written, "nothing is answered to who does not read"
    call = net.call(quick.engine.call_tool, "echo", {"text": "quick"})
    assert net.end_of(call).result.content[0].text == "quick"
    net.release("client", held)
    assert stats(net)["paused"] == 0
    net.hold("client", held)
    for _ in range(40):
        slow.engine.call_tool("echo", {"text": "x" * 10_000}, now=net.now, timeout=None, total_timeout=9999)
        net.run()
    net.advance(301)
    assert [hit.limit for hit in net.of(LimitHit, "server")] == ["stall_timeout"]


def test_a_second_connection_of_the_same_name_is_a_mistake() -> None:
    listener = StreamListener(lines(app()), now=0.0)
    listener.accepted(1, "peer", 0.0)
    with pytest.raises(LocalProtocolError, match="open already"):
        listener.accepted(1, "peer", 0.0)
    listener.receive_eof(7, 0.0)
    listener.failed(7, "x", 0.0)
    listener.receive_data(7, b"x", 0.0)
    listener.pause_writing(7)
    listener.resume_writing(7)
    assert listener.wants_data(7)


@pytest.mark.parametrize(
    "begin",
    [
        b"POST /mcp HTTP/1.1\r\n",
        b"\x16\x03\x01\x02\n",
        b"Content-Length: 20\r\n\r\nGET / HTTP/1.1\r\n",
        b"hello\n",
    ],
)
@pytest.mark.req("Q10")
def test_a_socket_whose_first_line_is_no_message_is_ended(begin: bytes) -> None:
    """A page could have a form sent to the port; the lines of its body must not be carried out."""
    served = app()
    server = SocketServer(served.engine(now=0.0), now=0.0)
    server.accepted(1, 0.0)
    body = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ops: list[Op] = []
    for at in range(0, len(begin), 5):
        server.receive_data(1, begin[at : at + 5], 0.0)
    server.receive_data(1, b"host: localhost\r\n\r\n" + body, 0.0)
    while (op := server.next_op()) is not None:
        ops.append(op)
    events = []
    while (event := server.next_event()) is not None:
        events.append(event)
    if begin.startswith(b"Content"):
        assert any(isinstance(e, MessageIgnored) and e.reason is PeerFault.HEADER_FRAMING for e in events)
        return
    assert [type(op) for op in ops] == [Close]
    ignored = [e for e in events if isinstance(e, MessageIgnored)]
    assert ignored[0].reason is PeerFault.NOT_A_MESSAGE
    assert server.finished
    assert server.next_timeout() is None


# clients that make their connection --------------------------------------------------------------


def test_addresses() -> None:
    assert str(TcpAddress("::1", 80)) == "[::1]:80"
    for host, port in (("", 1), ("x", 0), ("x", 65536)):
        with pytest.raises(LocalProtocolError):
            TcpAddress(host, port)
    for path in ("", "a\0b"):
        with pytest.raises(LocalProtocolError):
            UnixAddress(path)
    made = SocketClient(ClientEngine(ME, now=0.0), UnixAddress("/run/x"), now=0.0)
    made.start(0.0)
    op = made.next_op()
    assert isinstance(op, ConnectUnix)
    assert op.path == "/run/x"


def test_a_connection_that_is_refused_says_where() -> None:
    net = network("tcp", refuse=True)
    c = net.add(client("tcp"))
    error = net.of(SessionEnded)[0].error
    assert isinstance(error, NetworkFailure)
    assert str(error) == "cannot connect to localhost:8000: connection refused"
    assert error.problem is NetworkProblem.REFUSED
    assert c.finished


@KINDS
def test_a_connection_that_takes_too_long_is_given_up(kind: str) -> None:
    c = client(kind)
    c.start(0.0)
    assert c.next_op() is not None
    assert c.next_timeout() == 60.0
    c.handle_timeout(60.0)
    assert isinstance(c.next_op(), Close)
    event = c.next_event()
    assert isinstance(event, SessionEnded)
    assert isinstance(event.error, NetworkFailure)
    assert event.error.problem is NetworkProblem.TIMEOUT
    c.opened(1, 61.0)
    assert c.finished


@pytest.mark.req("A1")
def test_a_peer_that_ends_on_the_probe_is_greeted_in_the_old_way() -> None:
    c = client("tcp")
    c.start(0.0)
    c.next_op()
    c.opened(1, 0.0)
    while c.next_op() is not None:
        pass
    c.receive_eof(1, 0.0)
    assert isinstance(c.next_op(), Close)
    c.handle_timeout(0.0)
    op = c.next_op()
    assert op is not None
    assert op.conn == 2
    c.opened(2, 0.0)
    written = c.next_op()
    assert b'"initialize"' in written.data  # type: ignore[union-attr]


@KINDS
@MODES
@pytest.mark.case("W-02")
def test_a_connection_that_is_made_again(kind: str, mode: Any) -> None:
    net = network(kind)
    c = net.add(client(kind, engine={"mode": mode}, restart=RestartPolicy(delay=0.5, legacy=False)))
    net.cut()
    waiting = net.call(c.engine.call_tool, "echo", {"text": "again"}) if mode is None else None
    net.advance(1)
    if waiting is None:
        assert c.finished, "a legacy server has lost its session"
        assert isinstance(net.of(SessionEnded)[0].error, ConnectionEnded)
    else:
        assert net.end_of(waiting).result.content[0].text == "again"
        assert [e.verdict.era for e in net.of(EraDecided)] == [Era.MODERN]
