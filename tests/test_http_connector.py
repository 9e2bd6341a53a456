"""A client's connections by hand: bytes in, ops out, under a clock that only the test moves."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    DeviationTolerated,
    EraDecided,
    Legacy,
    LimitHit,
    LocalProtocolError,
    MessageIgnored,
    PeerFault,
    RequestFailed,
    ResultReady,
    SessionEnded,
)
from sansmcp.errors import NetworkFailure, NetworkProblem
from sansmcp.limits import Limits

from .http_client_support import CUTS
from .http_connector_support import Net, done, failure, response, settled
from .support import initialize_result

JSON_TYPE = "content-type: application/json"


# requests and responses --------------------------------------------------------------------------


@pytest.mark.req("R2", "R11")
@pytest.mark.case("H-10")
@pytest.mark.parametrize("cut", CUTS)
def test_a_call_goes_over_a_kept_connection(cut: Any) -> None:
    net = Net(cut=cut).connected()
    assert net.one(EraDecided).revision == "2026-07-28"
    (wire,) = net.wires.values()
    assert (wire.host, wire.port, wire.tls) == ("example.com", 443, "example.com")
    call = net.call(text="hi")
    head, body = wire.requests[-1]
    assert (head.method, head.target, head.http_version) == ("POST", "/mcp", "1.1")
    assert head.headers["host"] == "example.com"
    assert head.headers["content-length"] == str(len(body))
    assert head.headers["mcp-method"] == "tools/call"
    assert "transfer-encoding" not in head.headers
    net.answer(wire)
    assert net.one(ResultReady).call is call
    assert len(net.wires) == 1
    settled(net)


@pytest.mark.req("R2", "J1")
@pytest.mark.parametrize("cut", CUTS)
def test_an_answer_comes_as_a_stream_and_the_connection_is_kept(cut: Any) -> None:
    net = Net(cut=cut).connected()
    call = net.call()
    wire = net.last
    net.stream(wire)
    assert net.connector.stats()["streams"] == 1
    net.event(wire, {"jsonrpc": "2.0", "id": wire.message["id"], "result": done()})
    assert net.one(ResultReady).call is call
    net.send(wire, b"0\r\n\r\n")
    settled(net)
    net.call()
    assert wire.methods == ["server/discover", "tools/call", "tools/call"]


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://a.example/", ("a.example", 80, None)),
        ("http://a.example:8080/x?y=z", ("a.example", 8080, None)),
        ("https://[2001:db8::1]/", ("2001:db8::1", 443, "2001:db8::1")),
    ],
)
def test_where_it_connects(url: str, place: Any) -> None:
    net = Net(url=url)
    net.connector.start(0.0)
    net.drain()
    assert (net.last.host, net.last.port, net.last.tls) == place
    net.open()
    ((head, _),) = net.last.requests
    assert head.headers["host"] == url.split("/")[2]
    assert head.target == "/" + url.split("/", 3)[3]


def test_a_response_of_unknown_length_ends_with_its_connection() -> None:
    net = Net().connected()
    net.call()
    wire = net.last
    body = response(
        200,
        body=b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[]}}'
        % wire.message["id"],
    )
    net.send(wire, b"HTTP/1.1 200 OK\r\n" + JSON_TYPE.encode() + b"\r\n\r\n" + body.partition(b"\r\n\r\n")[2])
    assert not net.of(ResultReady)
    net.eof(wire)
    net.one(ResultReady)
    assert wire.closed
    settled(net)


@pytest.mark.parametrize("status", [100, 102, 103])
def test_informational_responses_mean_nothing(status: int) -> None:
    net = Net().connected()
    net.call()
    net.send(net.last, f"HTTP/1.1 {status} Wait\r\n\r\n".encode())
    net.answer(net.last)
    net.one(ResultReady)


@pytest.mark.case("H-14")
def test_a_body_that_nobody_wants_is_read_to_its_end() -> None:
    net = Net().connected()
    for _ in range(10):
        net.call()
        wire = net.last
        net.send(wire, b"HTTP/1.1 202 Accepted\r\ntransfer-encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n")
    assert len(net.wires) == 1
    assert len(net.of(RequestFailed)) == 10
    settled(net)


# which connection --------------------------------------------------------------------------------


def test_calls_go_side_by_side_and_past_the_cap_in_order() -> None:
    net = Net(pool={"max_requests": 2}).connected()
    calls = [net.call() for _ in range(4)]
    first, second = net.wires[1], net.open(net.wires[2])
    assert len(net.wires) == 2
    assert net.one(LimitHit).limit == "max_requests"
    for wire in (second, first, first, second):
        net.answer(wire)
    assert {e.call for e in net.of(ResultReady)} == set(calls)
    assert [len(wire.requests) for wire in (first, second)] == [3, 2]
    ids = [m["id"] for m in (first.message, second.message)]
    assert ids == sorted(ids, reverse=True), "the one that waited longest took what became free first"
    settled(net)


@pytest.mark.req("P5")
def test_streams_that_stay_open_leave_room_for_requests() -> None:
    net = Net(pool={"max_requests": 1}).connected()
    for number in range(1, 20):
        net.call()
        if number > 1:
            net.open()
        net.stream(net.wires[number])
    assert net.connector.stats()["streams"] == 19
    net.call()
    net.answer(net.open())
    net.one(ResultReady)


def test_too_many_calls_fail_at_once() -> None:
    net = Net(pool={"max_requests": 1, "max_waiting": 1}).connected()
    for _ in range(3):
        net.call()
    error = failure(net)
    assert isinstance(error, NetworkFailure)
    assert error.problem is NetworkProblem.NO_ROOM
    assert "max_waiting" in str(error)


@pytest.mark.parametrize(
    ("fields", "kept"),
    [((), True), (("connection: close",), False), (("connection: keep-alive",), True)],
)
def test_a_connection_is_kept_unless_the_server_ends_it(fields: Any, kept: bool) -> None:
    net = Net().connected()
    net.call()
    net.answer(net.last, None, *fields)
    assert net.wires[1].closed is not kept
    net.call()
    assert len(net.wires) == (1 if kept else 2)


@pytest.mark.parametrize(
    ("field", "seconds"),
    [
        ("x: y", 30.0),
        ("keep-alive: timeout=5", 4.0),
        ("keep-alive: timeout=5, max=100", 4.0),
        ("Keep-Alive: max=100, Timeout=5", 4.0),
        ("keep-alive: timeout=0", 0.0),
        ("keep-alive: timeout=1000", 30.0),
        ("keep-alive: timeout=x", 30.0),
        ("keep-alive: timeout=99999999999999999999", 30.0),
    ],
)
def test_an_idle_connection_is_closed_before_the_server_does_it(field: str, seconds: float) -> None:
    net = Net().connected()
    net.call()
    net.answer(net.last, None, field)
    net.advance(max(seconds - 0.1, 0.0))
    assert net.wires[1].closed is (seconds == 0)
    net.advance(0.2)
    assert net.wires[1].closed
    assert not net.connector.stats()["connections"]


def test_a_connection_that_the_server_ends_while_it_is_idle_is_forgotten() -> None:
    for end in (Net.eof, Net.fail):
        net = Net().connected()
        end(net, net.last)
        assert net.connector.stats()["connections"] == 0
        net.call()
        net.answer(net.open(net.wires[2]))
        net.one(ResultReady)
        assert not net.of(MessageIgnored)


# what is no HTTP ---------------------------------------------------------------------------------

FAULTS = [
    (b"SSH-2.0-OpenSSH_9.9\r\n", PeerFault.INVALID_HTTP_HEAD),
    (b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 101 + b"\r\n", PeerFault.HEAD_TOO_LARGE),
    (b"HTTP/1.1 200 OK\r\na: " + b"b" * 70_000 + b"\r\n\r\n", PeerFault.HEAD_TOO_LARGE),
    (
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        PeerFault.AMBIGUOUS_LENGTH,
    ),
    (
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\n",
        PeerFault.UNSUPPORTED_TRANSFER_CODING,
    ),
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\n",
        PeerFault.INVALID_CHUNK,
    ),
    (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 999999999999\r\n\r\n",
        PeerFault.BODY_TOO_LARGE,
    ),
]


@pytest.mark.req("R7")
@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("data", "fault"), FAULTS)
def test_a_response_that_is_no_http_fails_the_call(data: bytes, fault: PeerFault, cut: Any) -> None:
    net = Net(cut=cut).connected()
    net.call()
    net.send(net.last, data)
    error = failure(net)
    assert error.fault is fault
    assert not error.retryable
    assert net.last.closed
    settled(net)
    net.call()
    net.answer(net.open())
    net.one(ResultReady)


def test_an_event_stream_may_be_longer_than_any_body() -> None:
    net = Net(limits=Limits(max_body=1000)).connected()
    net.call()
    wire = net.last
    net.stream(wire)
    for number in range(100):
        params = {
            "progressToken": wire.message["params"]["_meta"].get("progressToken", 0),
            "progress": number,
        }
        net.event(wire, {"jsonrpc": "2.0", "method": "notifications/progress", "params": params})
    net.event(wire, {"jsonrpc": "2.0", "id": wire.message["id"], "result": done()})
    net.one(ResultReady)


LENIENT = b"HTTP/1.1 200 OK\ncontent-type: application/json\ncontent-length: "


def test_a_sloppy_head_is_read_and_told_unless_strict() -> None:
    for strict in (False, True):
        net = Net(strict=strict).connected()
        net.call()
        wire = net.last
        body = response(
            200,
            body=b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[]}}'
            % wire.message["id"],
        )
        body = body.partition(b"\r\n\r\n")[2]
        net.send(wire, LENIENT + b"%d\n\n" % len(body) + body)
        if strict:
            assert failure(net).fault is PeerFault.BARE_LINE_FEED
        else:
            net.one(ResultReady)
            assert net.one(DeviationTolerated).fault is PeerFault.BARE_LINE_FEED


@pytest.mark.parametrize("cut", CUTS)
def test_what_nobody_asked_for_ends_the_connection(cut: Any) -> None:
    net = Net(cut=cut).connected()
    net.send(net.last, response(200))
    assert net.one(MessageIgnored).reason is PeerFault.UNSOLICITED_DATA
    assert net.last.closed
    net.call()
    net.answer(net.open())
    net.one(ResultReady)


def test_a_second_response_is_not_taken_for_the_answer_to_the_next_request() -> None:
    net = Net().connected()
    net.call()
    wire = net.last
    answer = response(
        200, JSON_TYPE, body=b'{"jsonrpc":"2.0","id":%d,"result":{"content":[]}}' % wire.message["id"]
    )
    net.send(wire, answer + answer)
    net.one(ResultReady)
    assert wire.closed
    assert net.one(MessageIgnored).reason is PeerFault.UNSOLICITED_DATA
    settled(net)


def test_an_early_refusal_is_the_answer() -> None:
    net = Net().connected()
    net.call(text="x" * 100_000)
    net.send(net.last, response(413, "connection: close", body=b"too large"))
    net.fail(net.last, "broken pipe")
    assert failure(net).status == 413
    settled(net)


# calls that nobody waits for any more ------------------------------------------------------------


@pytest.mark.req("K1")
@pytest.mark.case("H-12")
@pytest.mark.parametrize("streams", [False, True])
def test_a_cancel_closes_the_connection_of_the_call(streams: bool) -> None:
    net = Net().connected()
    call = net.call()
    if streams:
        net.stream(net.last)
    net.engine.cancel(call, now=0.0)
    net.drain()
    assert net.last.closed
    settled(net)
    net.send(net.last, b"HTTP/1.1 200 OK\r\n")  # too late
    net.eof(net.last)
    net.fail(net.last)
    assert not net.of(MessageIgnored)


def test_a_cancel_before_there_is_a_connection_leaves_it_to_the_next() -> None:
    net = Net().connected()
    net.call()
    call = net.call()
    net.engine.cancel(call, now=0.0)
    net.drain()
    assert not net.last.closed
    net.open()
    assert net.last.methods == []
    net.call()
    assert net.last.methods == ["tools/call"]


def test_a_cancel_of_a_call_that_waits_sends_nothing() -> None:
    net = Net(pool={"max_requests": 1}).connected()
    net.call()
    call = net.call()
    net.engine.cancel(call, now=0.0)
    net.drain()
    net.answer(net.last)
    assert net.last.methods == ["server/discover", "tools/call"]
    settled(net)


def test_a_timeout_closes_the_connection_of_the_call() -> None:
    net = Net().connected()
    net.call()
    net.advance(61.0)
    net.one(RequestFailed)
    assert net.last.closed
    settled(net)


# connections that are not made -------------------------------------------------------------------

REASONS = [
    (NetworkProblem.NAME, "Name or service not known", "the name has no address", False),
    (NetworkProblem.REFUSED, "[Errno 111]", "nobody listens there", True),
    (NetworkProblem.UNREACHABLE, "[Errno 113]", "there is no way to it", True),
    (NetworkProblem.TLS, "certificate verify failed: self-signed", "no secure connection", False),
    (NetworkProblem.LOST, "[Errno 24] Too many open files", "Too many open files", True),
]


@pytest.mark.req("R11")
@pytest.mark.parametrize(("problem", "text", "hint", "retryable"), REASONS)
def test_a_connection_that_cannot_be_made(problem: Any, text: str, hint: str, retryable: bool) -> None:
    net = Net()
    net.connector.start(0.0)
    net.drain()
    net.fail(net.last, text, problem)
    error: Any = net.one(SessionEnded).error
    assert isinstance(error, NetworkFailure)
    assert (error.problem, error.retryable, error.status) == (problem, retryable, None)
    for part in ("cannot connect to example.com:443", text, hint):
        assert part in str(error)
    settled(net)


def test_a_connection_that_takes_too_long() -> None:
    net = Net(pool={"connect_timeout": 3.0}).connected()
    net.call()
    net.call()
    net.advance(3.0)
    error: Any = failure(net)
    assert error.problem is NetworkProblem.TIMEOUT
    assert "within 3 s" in str(error)
    assert net.last.closed
    net.connector.opened(net.last.conn, net.now)  # it came all the same
    net.drain()
    net.answer(net.wires[1])
    net.one(ResultReady)
    settled(net)


def test_a_new_connection_is_not_waited_for_when_another_is_free() -> None:
    net = Net().connected()
    net.call()
    net.call()
    net.answer(net.wires[1])
    net.answer(net.wires[1])
    assert len(net.of(ResultReady)) == 2
    net.fail(net.wires[2])
    assert not net.of(RequestFailed)
    settled(net)


# back-pressure -----------------------------------------------------------------------------------


def test_reading_stops_while_events_pile_up() -> None:
    net = Net(limits=Limits(max_buffered_events=3)).connected()
    net.call()
    wire = net.last
    assert net.connector.wants_data(wire.conn)
    data = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n" + b"data: x\n\n" * 3
    net.connector.receive_data(wire.conn, data, 0.0)
    net.connector.next_op()
    assert not net.connector.wants_data(wire.conn)
    assert not net.connector.takes_data
    assert net.connector.wants_data(99)
    net.drain()
    assert net.connector.wants_data(wire.conn)


# begin and end -----------------------------------------------------------------------------------


def test_it_starts_once_and_closes_twice() -> None:
    net = Net().connected()
    with pytest.raises(LocalProtocolError, match="already"):
        net.connector.start(0.0)
    net.close()
    assert net.wires[1].closed
    assert net.connector.finished
    net.close()
    net.one(SessionEnded)
    assert net.connector.next_timeout() is None
    assert not any(net.connector.stats().values())


@pytest.mark.case("R-06")
def test_a_close_ends_what_is_open_and_what_is_being_opened() -> None:
    net = Net(pool={"max_requests": 2}).connected()
    for _ in range(4):
        net.call()
    net.close()
    assert net.connector.finished
    assert all(wire.closed for wire in net.wires.values())
    assert len(net.of(RequestFailed)) == 4
    assert not any(net.connector.stats().values())


@pytest.mark.req("P6")
@pytest.mark.parametrize("server", ["answers", "is silent", "is gone", "is not waited for"])
def test_a_session_is_ended_as_far_as_the_server_lets(server: str) -> None:
    net = legacy()
    net.close()
    (wire,) = net.wires.values()
    assert not wire.closed
    assert wire.methods[-1] == "DELETE"
    assert wire.requests[-1][0].headers["mcp-session-id"] == "s3ssion"
    if server == "answers":
        net.send(wire, response(200))
    elif server == "is silent":
        net.advance(5.0)
    elif server == "is gone":
        net.fail(wire)
        net.fail(net.last, "refused", NetworkProblem.REFUSED)
    else:
        net.connector.abort(net.now)
        net.drain()
    assert net.connector.finished
    assert not net.connector.stats()["connections"]
    assert "s3ssion" not in f"{net.connector!r}{net.said!r}"


def legacy() -> Net:
    """A connection to a legacy server, which has a session and no stream of its own."""
    net = Net(mode=Legacy(), http={"listen": False})
    net.connector.start(0.0)
    net.drain()
    net.answer(net.open(), initialize_result("2025-11-25"), "mcp-session-id: s3ssion")
    net.send(net.last, response(202))
    net.one(EraDecided)
    return net


def test_an_abort_ends_all_at_once() -> None:
    net = legacy()
    net.call()
    net.connector.abort(0.0)
    net.drain()
    assert net.connector.finished
    assert all(wire.closed for wire in net.wires.values())
    net.connector.abort(0.0)
    net.drain()
    net.one(SessionEnded)
