"""Engines on WebSockets: the handshake, silence, back-pressure, and every way to end."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    AuthorizationRequired,
    Close,
    CloseCode,
    Connect,
    ConnectionEnded,
    DeviationTolerated,
    Era,
    EraDecided,
    HttpFailure,
    Legacy,
    LimitHit,
    LocalProtocolError,
    McpError,
    MessageIgnored,
    NetworkFailure,
    NetworkProblem,
    Op,
    PeerFault,
    PeerGone,
    PingPolicy,
    RedirectRefused,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    RestartPolicy,
    ResultReady,
    SessionEnded,
    Timeouts,
    WebSocketClient,
    WebSocketClosed,
    WebSocketServer,
    Write,
)
from sansmcp.client import ClientEngine
from sansmcp.http.guard import GuardPolicy
from sansmcp.limits import Limits
from sansmcp.states import DialState
from sansmcp.stream_listener import StreamListener, websockets
from sansmcp.testing import Network

from .stream_support import URL, app, client, network, stats
from .support import DISCOVER, ME, initialize_result
from .test_wire_websocket import BYTES, CLOSE, PING, PONG, TEXT, close, frame
from .test_wire_ws_handshake import answer_to, asking

pytestmark = pytest.mark.req("S1")

MODES = pytest.mark.parametrize("mode", [None, Legacy()], ids=["modern", "legacy"])


@MODES
@pytest.mark.req("S1", "S3")
@pytest.mark.parametrize("seed", range(10))
def test_a_conversation_however_the_bytes_come(mode: Any, seed: int) -> None:
    net = network(seed=seed, max_chunk=9, max_delay=0.2)
    c = net.add(client(engine={"mode": mode}))
    net.advance(2)
    decided = net.of(EraDecided)[0]
    assert decided.verdict.era is (Era.LEGACY if mode else Era.MODERN)
    calls = [net.call(c.engine.call_tool, "echo", {"text": f"é{n}"}) for n in range(20)]
    net.advance(20)
    assert [net.end_of(call).result.content[0].text for call in calls] == [f"é{n}" for n in range(20)]
    net.call(c.close)
    net.advance(1)
    assert c.finished
    assert [event.error for event in net.of(SessionEnded)] == [None]
    assert not any(stats(net).values())
    assert not net.links


# the handshake, seen from the client -------------------------------------------------------------


class Hand:
    """A client, driven by hand."""

    def __init__(self, **options: Any) -> None:
        engine = options.pop("engine", {})
        self.now = 0.0
        self.client = WebSocketClient(ClientEngine(ME, now=0.0, **engine), URL, now=0.0, **options)
        self.ops: list[Op] = []
        self.events: list[Any] = []
        self.client.start(0.0)
        self.drain()

    def drain(self) -> Hand:
        while (op := self.client.next_op()) is not None:
            self.ops.append(op)
        while (event := self.client.next_event()) is not None:
            self.events.append(event)
        return self

    def open(self) -> Hand:
        self.client.opened(self.conn, self.now)
        return self.drain()

    def receive(self, data: bytes) -> Hand:
        self.client.receive_data(self.conn, data, self.now)
        return self.drain()

    def agree(self, behind: bytes = b"", **changes: str | None) -> Hand:
        self.open()
        return self.receive(answer_to(self.client._handshake, **changes) + behind)

    def advance(self, seconds: float) -> Hand:
        end = self.now + seconds
        while (when := self.client.next_timeout()) is not None and when <= end:
            self.now = max(when, self.now)
            self.client.handle_timeout(self.now)
            self.drain()
        self.now = end
        return self

    @property
    def conn(self) -> int:
        return max(op.conn for op in self.ops)

    @property
    def error(self) -> Any:
        (ended,) = [event for event in self.events if isinstance(event, SessionEnded)]
        return ended.error

    def written(self) -> list[bytes]:
        return [op.data for op in self.ops if isinstance(op, Write)]


def unmasked(data: bytes) -> bytes:
    """The payload of a client's frame of 126 bytes to 64 KiB."""
    key = data[4:8]
    return bytes(byte ^ key[n % 4] for n, byte in enumerate(data[8:]))


def server_frame(opcode: int, payload: bytes = b"") -> bytes:
    return frame(opcode, payload, mask=False)


@pytest.mark.case("W-01")
def test_a_server_that_selects_nothing_is_tolerated_and_told() -> None:
    hand = Hand().agree(sec_websocket_protocol=None)
    assert hand.client.state is DialState.OPEN
    (told,) = hand.events
    assert isinstance(told, DeviationTolerated)
    assert told.fault is PeerFault.MISSING_SUBPROTOCOL


@pytest.mark.case("W-01")
@pytest.mark.parametrize(
    ("strict", "selected", "fault"),
    [
        (False, "soap", PeerFault.UNKNOWN_SUBPROTOCOL),
        (True, None, PeerFault.MISSING_SUBPROTOCOL),
    ],
)
def test_a_server_that_selects_wrongly_is_left(strict: bool, selected: str | None, fault: PeerFault) -> None:
    hand = Hand(engine={"strict": strict}).agree(sec_websocket_protocol=selected)
    assert isinstance(hand.error, HttpFailure)
    assert (hand.error.status, hand.error.fault) == (101, fault)
    assert hand.client.finished
    assert isinstance(hand.ops[-1], Close)


@pytest.mark.parametrize(
    ("answer", "kind", "told"),
    [
        (b"HTTP/1.1 404 Not Found\r\n\r\n", HttpFailure, "HTTP 404: is the path right"),
        (b"HTTP/1.1 200 OK\r\n\r\nhello", HttpFailure, "HTTP 200: it is no WebSocket"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", HttpFailure, "HTTP 503"),
        (
            b"HTTP/1.1 401 No\r\nwww-authenticate: Bearer\r\n\r\n",
            AuthorizationRequired,
            "authorization header",
        ),
        (b"HTTP/1.1 308 There\r\nlocation: ws://there/?secret\r\n\r\n", RedirectRefused, "where it points"),
        (b"SSH-2.0-x\r\n", HttpFailure, "no proper HTTP"),
    ],
)
def test_a_handshake_that_is_refused_says_how(answer: bytes, kind: type[Any], told: str) -> None:
    hand = Hand().open().receive(answer)
    assert isinstance(hand.error, kind)
    assert told in str(hand.error)
    assert "secret" not in str(hand.error) + str(getattr(hand.error, "location", ""))
    assert hand.client.finished


def test_a_server_that_ends_or_says_nothing_within_the_handshake() -> None:
    hand = Hand().open()
    hand.client.receive_eof(hand.conn, 0.0)
    assert isinstance(hand.drain().error, NetworkFailure)
    hand = Hand(engine={"timeouts": Timeouts(connect=3.0)}).open().advance(5)
    assert isinstance(hand.error, NetworkFailure)
    assert hand.error.problem is NetworkProblem.TIMEOUT
    assert "not within 3 s" in str(hand.error)


def test_a_connection_that_is_not_made() -> None:
    hand = Hand()
    assert hand.ops == [hand.ops[0]]
    assert isinstance(hand.ops[0], Connect)
    assert (hand.ops[0].host, hand.ops[0].port, hand.ops[0].tls) == ("localhost", 8000, None)
    hand.client.failed(hand.conn, "refused", 0.0, NetworkProblem.REFUSED)
    error = hand.drain().error
    assert isinstance(error, NetworkFailure)
    assert (error.problem, error.retryable) == (NetworkProblem.REFUSED, True)


def test_a_secure_one_names_its_server_and_hides_its_query() -> None:
    made = WebSocketClient(ClientEngine(ME, now=0.0), "WSS://example.com/mcp?key=secret", now=0.0)
    made.start(0.0)
    op = made.next_op()
    assert isinstance(op, Connect)
    assert (op.host, op.port, op.tls) == ("example.com", 443, "example.com")
    assert made.url == "wss://example.com/mcp?…"
    assert "secret" not in repr(made.__dict__["_where"])


@pytest.mark.parametrize("url", ["http://x/", "ws://", "ws://user:pw@x/", "x", "ws://x:0/"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(LocalProtocolError):
        WebSocketClient(ClientEngine(ME, now=0.0), url, now=0.0)


# the handshake, seen from the server -------------------------------------------------------------


class Served:
    """A server of one connection, driven by hand."""

    def __init__(self, engine: dict[str, Any] | None = None, **options: Any) -> None:
        self.app = app()
        made = self.app.engine(now=0.0, **(engine or {}))
        self.server = WebSocketServer(made, now=0.0, **options)
        self.ops: list[Op] = []
        self.events: list[Any] = []
        self.now = 0.0
        self.server.accepted(1, 0.0)

    def receive(self, data: bytes) -> Served:
        self.server.receive_data(1, data, self.now)
        return self.drain()

    def drain(self) -> Served:
        while (op := self.server.next_op()) is not None:
            self.ops.append(op)
        while (event := self.server.next_event()) is not None:
            self.events.append(event)
        return self

    def advance(self, seconds: float) -> Served:
        end = self.now + seconds
        while (when := self.server.next_timeout()) is not None and when <= end:
            self.now = max(when, self.now)
            self.server.handle_timeout(self.now)
            self.drain()
        self.now = end
        return self

    @property
    def answer(self) -> bytes:
        return b"".join(op.data for op in self.ops if isinstance(op, Write))

    def faults(self) -> list[Any]:
        return [event.reason for event in self.events if isinstance(event, MessageIgnored)]


@pytest.mark.parametrize(
    ("changes", "status", "fault"),
    [
        ({"origin": "http://evil.example"}, 403, PeerFault.FOREIGN_ORIGIN),
        ({"host": "evil.example"}, 421, PeerFault.FOREIGN_HOST),
        ({"line": "GET /other HTTP/1.1"}, 404, PeerFault.WRONG_ENDPOINT),
        ({"upgrade": None}, 426, PeerFault.INVALID_UPGRADE),
    ],
)
def test_whom_a_server_turns_away(changes: dict[str, Any], status: int, fault: PeerFault) -> None:
    served = Served().receive(asking(**changes))
    assert served.answer.startswith(b"HTTP/1.1 %d " % status)
    assert served.faults() == [fault]
    assert isinstance(served.ops[-1], Close)
    assert served.server.finished
    assert served.server.next_timeout() is None


def test_whom_it_serves() -> None:
    for options, changes in (
        ({}, {"origin": "http://localhost:3000"}),
        ({"path": None}, {"line": "GET /any?x=1 HTTP/1.1"}),
        ({"policy": GuardPolicy(hosts=["a.example"])}, {"host": "a.example"}),
    ):
        served = Served(**options).receive(asking(**changes))
        assert served.answer.startswith(b"HTTP/1.1 101 ")
        assert served.events == []


@pytest.mark.case("W-01")
def test_a_client_that_does_not_offer_the_subprotocol() -> None:
    served = Served().receive(asking(sec_websocket_protocol=None))
    assert served.answer.startswith(b"HTTP/1.1 101 ")
    assert b"protocol" not in served.answer.lower().replace(b"switching protocols", b"")
    assert isinstance(served.events[0], DeviationTolerated)
    served = Served(engine={"strict": True}).receive(asking(sec_websocket_protocol="other"))
    assert served.answer.startswith(b"HTTP/1.1 400 ")
    assert served.faults() == [PeerFault.MISSING_SUBPROTOCOL]


def test_a_client_that_takes_too_long() -> None:
    served = Served().receive(b"GET /mcp HTTP/1.1\r\n").advance(40)
    (hit,) = [event for event in served.events if isinstance(event, LimitHit)]
    assert hit.limit == "handshake_timeout"
    assert served.server.finished


# what is no message ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (frame(BYTES, b"{}"), PeerFault.BINARY_MESSAGE),
        (frame(TEXT, b"\xff"), PeerFault.INVALID_UTF8),
        (frame(TEXT, b"{}", mask=False), PeerFault.INVALID_FRAME),
    ],
)
def test_a_client_that_breaks_the_protocol_is_left(data: bytes, fault: PeerFault) -> None:
    served = Served().receive(asking() + data)
    assert served.faults() == [fault]
    assert served.answer.endswith(fault_words(fault))
    assert served.server.finished
    (ended,) = [event for event in served.events if isinstance(event, SessionEnded)]
    assert "closed, for what the client sent: 100" in str(ended.error)


def fault_words(fault: PeerFault) -> bytes:
    return {
        PeerFault.BINARY_MESSAGE: b"a message must be text, not bytes",
        PeerFault.INVALID_UTF8: b"text that is no UTF-8",
        PeerFault.INVALID_FRAME: b"this is no proper frame of a WebSocket",
    }[fault]


def test_a_message_that_is_too_large_costs_itself_alone() -> None:
    """AA12: and is told."""
    net = network(serving={"limits": Limits(max_message=600)})
    c = net.add(client())
    large = net.call(c.engine.call_tool, "echo", {"text": "x" * 700})
    small = net.call(c.engine.call_tool, "echo", {"text": "x"})
    assert [hit.limit for hit in net.of(LimitHit, "server")] == ["max_message"]
    with pytest.raises(McpError, match="max_message"):
        net.end_of(large)
    assert net.end_of(small).result.content[0].text == "x"


def test_what_the_server_closes_for_is_in_the_error() -> None:
    hand = Hand(engine={"mode": Legacy()}).agree()
    call = hand.client.engine.call_tool("echo", now=0.0)
    hand.receive(server_frame(CLOSE, b"\x03\xf0you are not known"))
    (failed,) = [e for e in hand.events if isinstance(e, RequestFailed)]
    assert failed.call is call
    error = failed.error
    assert isinstance(error, WebSocketClosed)
    assert (error.code, error.reason, error.fault) == (CloseCode.POLICY_VIOLATION, "you are not known", None)
    assert "1008, against its policy: you are not known" in str(error)
    assert hand.client.finished


@MODES
def test_answers_past_a_limit_count_though_the_server_closed_behind_them(mode: Any) -> None:
    hand = Hand(engine={"mode": mode, "limits": Limits(max_buffered_events=2)}).agree()
    hello = initialize_result("2025-11-25") if mode else DISCOVER
    hand.receive(server_frame(TEXT, json.dumps({"jsonrpc": "2.0", "id": 1, "result": hello}).encode()))
    calls = [hand.client.engine.call_tool("echo", now=0.0) for _ in range(9)]
    hand.drain()
    body = {"resultType": "complete", "content": []}
    answers = [{"jsonrpc": "2.0", "id": call.request_id, "result": body} for call in calls]
    frames = [server_frame(TEXT, json.dumps(answer).encode()) for answer in answers]
    hand.receive(b"".join(frames) + server_frame(CLOSE, b"\x03\xe8"))
    assert [event.call for event in hand.events if isinstance(event, ResultReady)] == calls
    assert hand.client.finished


def test_a_server_that_sends_bytes() -> None:
    hand = Hand(engine={"mode": Legacy()}).agree(server_frame(BYTES, b"{}"))
    assert isinstance(hand.error, WebSocketClosed)
    assert (hand.error.code, hand.error.fault) == (1003, PeerFault.BINARY_MESSAGE)


def test_a_server_that_ends_without_a_word() -> None:
    hand = Hand(engine={"mode": Legacy()}).agree()
    hand.client.receive_eof(hand.conn, 0.0)
    assert isinstance(hand.drain().error, WebSocketClosed)
    assert hand.error.code == CloseCode.ABNORMAL


# silence -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pings", [PingPolicy(), PingPolicy(interval=3, timeout=1), PingPolicy(interval=None)]
)
def test_two_ends_that_say_nothing_stay_connected(pings: PingPolicy) -> None:
    net = network(serving={"pings": pings}, max_delay=0.3, seed=3)
    c = net.add(client(pings=pings))
    net.advance(1000)
    assert c.state is DialState.OPEN
    assert stats(net)["connections"] == 1


def test_a_server_that_is_gone_is_noticed() -> None:
    hand = Hand(pings=PingPolicy(interval=10, timeout=5), engine={"mode": Legacy()}).agree()
    hand.receive(
        server_frame(
            TEXT,
            b'{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25",'
            b'"capabilities":{},"serverInfo":{"name":"x","version":"1"}}}',
        )
    )
    written = len(hand.written())
    hand.advance(9).receive(server_frame(PONG)).advance(9)
    assert len(hand.written()) == written
    hand.advance(2)
    assert len(hand.written()) == written + 1
    hand.advance(3)
    assert hand.client.state is DialState.OPEN
    hand.advance(2)
    assert isinstance(hand.error, ConnectionEnded)
    assert "said nothing for 5 s after it was asked (a ping)" in str(hand.error)
    assert hand.client.finished
    assert hand.client.next_timeout() is None


def test_a_client_that_is_gone_is_noticed() -> None:
    served = Served(pings=PingPolicy(interval=10, timeout=5)).receive(asking()).advance(16)
    assert [e.limit for e in served.events if isinstance(e, LimitHit)] == ["ping_timeout"]
    assert served.server.finished


def test_a_peer_that_is_not_read_is_not_taken_for_dead() -> None:
    """Q-rows of back-pressure: the engine takes no more, and still the pings are answered."""
    limits = Limits(max_open_requests=1)
    net = network(serving={"limits": limits, "pings": PingPolicy(interval=None)})
    net._handlers = None  # nobody answers
    c = net.add(client(pings=PingPolicy(interval=5, timeout=2)))
    for n in range(5):
        net.call(c.engine.call_tool, "echo", {"text": str(n)}, timeout=None, total_timeout=1000)
    net.advance(100)
    assert c.state is DialState.OPEN
    assert len(net.of(RequestReceived, "server")) == 1


def test_pings_are_answered_by_the_last_and_not_while_nobody_reads() -> None:
    served = Served().receive(asking())
    before = len(served.ops)
    served.receive(frame(PING, b"1") + frame(PING, b"2"))
    assert [op.data for op in served.ops[before:] if isinstance(op, Write)] == [b"\x8a\x012"]
    served.server.pause_writing(1)
    before = len(served.ops)
    for n in range(100):
        served.receive(frame(PING, b"%d" % n))
    assert len(served.ops) == before
    served.server.resume_writing(1)
    served.drain()
    assert [op.data for op in served.ops[before:] if isinstance(op, Write)] == [b"\x8a\x0299"]


@pytest.mark.parametrize("interval", [0, -1.0])
def test_times_that_cannot_be(interval: float) -> None:
    with pytest.raises(LocalProtocolError):
        PingPolicy(interval=interval)
    with pytest.raises(LocalProtocolError):
        PingPolicy(timeout=interval)


# the end -----------------------------------------------------------------------------------------


@pytest.mark.case("W-02")
def test_a_lost_connection_fails_what_was_open_and_is_not_resumed() -> None:
    net = network()
    net._handlers = None
    c = net.add(client())
    calls = [net.call(c.engine.call_tool, "echo", {"text": str(n)}) for n in range(2)]
    net.cut()
    failed = [event for event in net.of(RequestFailed) if event.call in calls]
    assert [str(event.error) for event in failed] == [
        "tools/call 'echo': the connection failed: the network was cut" for _ in calls
    ]
    assert all(isinstance(event.error, ConnectionEnded) for event in failed)
    assert c.finished
    assert len(net.of(RequestCancelled, "server")) == 2


@pytest.mark.case("W-02")
@MODES
def test_with_a_policy_a_new_connection_is_a_new_conversation(mode: Any) -> None:
    net = network()
    policy = RestartPolicy(delay=1.0, limit=2, legacy=True)
    c = net.add(client(engine={"mode": mode}, restart=policy))
    net.call(c.engine.call_tool, "echo", {"text": "1"})
    net.cut()
    assert net.of(PeerGone)[0].restarting
    waiting = net.call(c.engine.call_tool, "echo", {"text": "2"})
    net.advance(2)
    assert net.end_of(waiting).result.content[0].text == "2"
    net.cut()
    net.advance(2)
    assert c.state is DialState.OPEN
    net.cut()
    assert c.finished


@pytest.mark.case("W-02")
def test_attempts_that_take_long_are_no_more_than_others() -> None:
    """Q-rows of deadlines: a call that waits for a connection ends with the last attempt."""
    policy = RestartPolicy(delay=1.0, limit=2, window=5.0, legacy=True)
    hand = Hand(engine={"mode": Legacy(), "timeouts": Timeouts(connect=30.0)}, restart=policy).agree()
    hello = {"jsonrpc": "2.0", "id": 1, "result": initialize_result("2025-11-25")}
    hand.receive(server_frame(TEXT, json.dumps(hello).encode()))
    hand.client.receive_eof(hand.conn, 0.0)
    call = hand.drain().client.engine.call_tool("echo", now=0.0)
    hand.drain().advance(61)
    waiting = call.done
    hand.advance(2)
    assert (waiting, call.done) == (False, True)
    assert isinstance(hand.error, NetworkFailure)
    assert hand.conn == 3
    assert hand.client.finished


def test_an_end_between_two_connections_closes_each_once() -> None:
    hand = Hand(engine={"mode": Legacy()}, restart=RestartPolicy(delay=1.0, legacy=True)).agree()
    hello = {"jsonrpc": "2.0", "id": 1, "result": initialize_result("2025-11-25")}
    hand.receive(server_frame(TEXT, json.dumps(hello).encode()))
    hand.client.receive_eof(hand.conn, 0.0)
    assert hand.drain().client.state is DialState.WAITING
    hand.client.close(0.0)
    assert hand.drain().client.finished
    assert [op.conn for op in hand.ops if isinstance(op, Close)] == [1]


def test_a_server_that_does_not_come_back() -> None:
    net = network()
    c = net.add(client(restart=RestartPolicy(delay=1.0, limit=3)))
    net.refuse = True
    net.cut()
    net.advance(10)
    assert c.finished
    assert isinstance(net.of(SessionEnded)[-1].error, NetworkFailure)


def test_the_server_closes() -> None:
    net = network()
    c = net.add(client())
    net.call(net.server.close)  # type: ignore[attr-defined]
    net.advance(1)
    error = net.of(SessionEnded)[0].error
    assert isinstance(error, WebSocketClosed)
    assert error.code == CloseCode.GOING_AWAY
    assert c.finished
    assert net.server.finished  # type: ignore[attr-defined]


def test_a_peer_that_does_not_say_that_it_saw_the_end_is_not_waited_for() -> None:
    hand = Hand(engine={"mode": Legacy()}).agree()
    hand.client.close(0.0)
    hand.drain()
    assert hand.client.state is DialState.CLOSING
    assert hand.error is None
    hand.advance(3)
    assert hand.client.finished
    served = Served().receive(asking())
    served.server.close(0.0)
    served.drain()
    assert served.answer.endswith(b"\x88\x02\x03\xe9")
    assert not served.server.finished
    served.advance(3)
    assert served.server.finished


def test_an_end_in_order_waits_for_the_server_to_close() -> None:
    hand = Hand(engine={"mode": Legacy()}).agree()
    hand.client.close(0.0)
    hand.drain().receive(server_frame(CLOSE, b"\x03\xe8"))
    assert hand.client.state is DialState.CLOSING
    hand.client.receive_eof(hand.conn, 0.0)
    hand.drain()
    assert hand.client.finished
    hand.client.close(0.0)
    hand.client.failed(hand.conn, "closed", 0.0)
    hand.client.receive_data(hand.conn, b"x", 0.0)
    assert hand.drain().client.finished


@pytest.mark.parametrize("when", ["before", "connecting", "upgrading"])
def test_a_close_before_there_is_anything(when: str) -> None:
    hand = Hand()
    if when == "upgrading":
        hand.open()
    if when == "before":
        made = client()
        made.close(0.0)
        assert made.next_op() is None
        assert made.finished
        return
    hand.client.close(0.0)
    hand.drain()
    assert isinstance(hand.ops[-1], Close)
    assert hand.client.finished


def test_a_server_that_ends_on_the_probe_is_asked_again_in_the_old_way() -> None:
    """The era probe may end a server that does not know it: a new connection, and `initialize`."""
    hand = Hand().agree()
    hand.client.receive_eof(hand.conn, 0.0)
    hand.drain().advance(0.0)
    assert hand.conn == 2
    hand.agree()
    assert b'"initialize"' in unmasked(hand.written()[-1])
    hand.client.receive_eof(hand.conn, 0.0)
    assert isinstance(hand.drain().error, WebSocketClosed)


def test_ping_frames_within_the_handshake_come_after_it() -> None:
    hand = Hand(engine={"mode": Legacy()}).agree(server_frame(PING, b"early"))
    assert any(data.startswith(b"\x8a") for data in hand.written())


def test_a_client_that_closes_cancels_what_it_asked() -> None:
    served = Served().receive(asking())
    text = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )
    served.receive(frame(TEXT, text))
    assert isinstance(served.events[-1], RequestReceived)
    served.receive(close(1000))
    assert any(isinstance(event, RequestCancelled) for event in served.events)
    assert served.answer.endswith(b"\x88\x02\x03\xe8")
    assert served.server.finished


@pytest.mark.req("AA12")
def test_what_is_held_is_bounded_while_the_engine_takes_nothing() -> None:
    listener = StreamListener(websockets(app(), limits=Limits(max_open_requests=1)), now=0.0)
    net = Network(listener)
    c = net.add(client())
    for n in range(1500):
        c.engine.call_tool("echo", {"text": "x" * 200 + str(n)}, now=0.0)
    net.run()
    server = next(iter(listener._conns.values()))
    assert isinstance(server, WebSocketServer)
    assert not server.wants_data
    assert server._waiting < 1 << 20
    assert net.links[0].up.pieces or server._inbox


def test_what_was_too_large_counts_in_what_waits() -> None:
    served = Served(engine={"limits": Limits(max_open_requests=1, max_message=600)}).receive(asking())
    text = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{'
        b'"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
        b'"io.modelcontextprotocol/clientCapabilities":{}}}}'
    )
    served.receive(frame(TEXT, text))
    served.events.clear()
    large = frame(TEXT, b'{"jsonrpc":"2.0","id":2,"method":"' + b"x" * 700 + b'"}')
    sent = 0
    while served.server.wants_data and sent < 1000:
        served.receive(large)
        sent += 1
    assert sent < 120
    assert not served.events
