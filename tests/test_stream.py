"""Engines on a byte stream: framing, order, back-pressure, end; the same whatever the chunks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import (
    App,
    ClientEngine,
    Close,
    CloseWrite,
    DeviationTolerated,
    EraDecided,
    Event,
    LimitHit,
    Limits,
    LineClient,
    LineServer,
    MessageIgnored,
    Op,
    PeerFault,
    PeerGone,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResultReady,
    SessionEnded,
    SocketClient,
    TcpAddress,
    Timeouts,
    Write,
)
from sansmcp.stream import LineTransport

from .support import DISCOVER, ME, request


class Pump:
    """Executes nothing: keeps the ops and events of a transport, in order."""

    def __init__(self, transport: LineTransport[Any]) -> None:
        self.transport = transport
        self.ops: list[Op] = []
        self.events: list[Event] = []
        self.drain()

    def drain(self) -> Pump:
        while (op := self.transport.next_op()) is not None:
            self.ops.append(op)
        while (event := self.transport.next_event()) is not None:
            self.events.append(event)
        return self

    @property
    def written(self) -> list[Any]:
        data = b"".join(op.data for op in self.ops if isinstance(op, Write))
        return [json.loads(line) for line in data.split(b"\n") if line]

    def of(self, kind: type[Any]) -> list[Any]:
        return [event for event in self.events if isinstance(event, kind)]

    def feed(self, data: bytes, now: float = 0.0, size: int | None = None) -> Pump:
        size = size or max(1, len(data))
        for start in range(0, len(data), size):
            self.transport.receive_data(1, data[start : start + size], now)
            self.drain()
        return self


def line(message: Any) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def client(**options: Any) -> Pump:
    transport = LineClient(ClientEngine(ME, now=0.0, **options), now=0.0)
    pump = Pump(transport)
    transport.opened(1, 0.0)
    return pump.drain()


def connected(**options: Any) -> Pump:
    return client(**options).feed(line({"jsonrpc": "2.0", "id": 1, "result": DISCOVER}))


def server(limits: Limits | None = None, grace: float = 10.0) -> Pump:
    app = App("s")

    @app.tool()
    def echo(text: str) -> str:
        return text

    engine = app.engine(now=0.0, limits=limits or Limits())
    transport = LineServer(engine, now=0.0, grace=grace)
    transport.accepted(1, 0.0)
    return Pump(transport)


# the client -------------------------------------------------------------------------------------


@pytest.mark.req("Q1", "Q10")
def test_a_client_connects_over_a_stream() -> None:
    pump = connected()
    assert pump.written[0]["method"] == "server/discover"
    assert pump.of(EraDecided)
    first = pump.ops[0]
    assert isinstance(first, Write)
    assert first.data.endswith(b"\n")
    assert first.data.count(b"\n") == 1
    assert b"\r" not in first.data


@pytest.mark.req("Q1")
@pytest.mark.case("S-13", "S-02", "S-01", "S-04", "S-12", "S-03")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 10_000])
def test_any_chunks_give_the_same_events(size: int) -> None:
    pump = client()
    data = (
        b"\xef\xbb\xbf"
        + line({"jsonrpc": "2.0", "id": 1, "result": DISCOVER}).replace(b"\n", b"\r\n")
        + b"\n  \n"
    )
    pump.feed(data, size=size)
    calls = [pump.transport.engine.call_tool("t", now=0.0) for _ in range(3)]
    pump.drain()
    text = "a\u2028b\u0085c€日本🙂"
    for call in calls:
        body = {"resultType": "complete", "content": [{"type": "text", "text": text}]}
        pump.feed(line({"jsonrpc": "2.0", "id": call.request_id, "result": body}), size=size)
    assert [e.call for e in pump.of(ResultReady)] == calls
    assert all(e.result.content[0].text == text for e in pump.of(ResultReady))
    assert [e.fault for e in pump.of(DeviationTolerated)] == [PeerFault.BYTE_ORDER_MARK]
    assert not pump.of(MessageIgnored)


@given(st.data())
def test_any_split_of_any_traffic_gives_the_same_events(data: st.DataObject) -> None:
    pieces = [
        line({"jsonrpc": "2.0", "id": 1, "result": DISCOVER}),
        b"banner\n",
        b'{"jsonrpc":\n',
        b"\xff\xfe\n",
        b"\r\n",
        line({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}),
        line({"jsonrpc": "2.0", "id": 7, "method": "ping"}),
        b"x" * 500 + b"\n",
        b"Content-Length: 5\r\n",
        b'{"cut":',
    ]
    stream = b"".join(data.draw(st.lists(st.sampled_from(pieces), max_size=12)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))

    def run(chunks: list[bytes]) -> tuple[list[str], list[Any]]:
        pump = client(limits=Limits(max_message=400))
        for chunk in chunks:
            pump.feed(chunk)
        pump.transport.receive_eof(1, 0.0)  # type: ignore[attr-defined]
        pump.drain()
        return [repr(e) for e in pump.events], pump.written

    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    assert run([stream]) == run(parts)


@pytest.mark.req("Q2")
@pytest.mark.case("S-10")
def test_an_oversize_answer_fails_its_call_and_the_next_line_works() -> None:
    pump = connected(limits=Limits(max_message=70_000))
    engine = pump.transport.engine
    big, fine = engine.call_tool("big", now=0.0), engine.call_tool("fine", now=0.0)
    body = {"resultType": "complete", "content": [{"type": "text", "text": "x" * 65_000}]}
    pump.feed(line({"jsonrpc": "2.0", "id": big.request_id, "result": {"x": "y" * 100_000}}), size=4096)
    pump.feed(line({"jsonrpc": "2.0", "id": fine.request_id, "result": body}), size=4096)
    assert [e.call for e in pump.of(RequestFailed)] == [big]
    assert [e.call for e in pump.of(ResultReady)] == [fine], "64 KiB and more must pass"
    assert len(pump.of(LimitHit)) == 1


@pytest.mark.case("S-09")
def test_the_framing_of_another_protocol_is_named() -> None:
    pump = client()
    pump.feed(b'Content-Length: 36\r\n\r\n{"jsonrpc":"2.0","id":1,"result":{}}')
    ignored = pump.of(MessageIgnored)
    assert [e.reason for e in ignored] == [PeerFault.HEADER_FRAMING]
    assert "Language Server Protocol" in ignored[0].detail


@pytest.mark.case("S-05", "S-06")
def test_chatter_before_the_first_message_is_told_and_passed_over() -> None:
    pump = client()
    pump.feed(b'Starting server on port 0\n{"level":"info","msg":"ready"}\n')
    pump.feed(line({"jsonrpc": "2.0", "id": 1, "result": DISCOVER}))
    assert [e.reason for e in pump.of(MessageIgnored)] == [PeerFault.INVALID_JSON, PeerFault.NOT_A_MESSAGE]
    assert pump.of(EraDecided)


@pytest.mark.req("Q7")
def test_the_end_of_the_stream_ends_the_client() -> None:
    pump = connected()
    pump.transport.engine.call_tool("t", now=0.0)
    transport = pump.transport
    assert isinstance(transport, LineClient)
    transport.receive_eof(1, 1.0)
    transport.receive_eof(1, 1.0)
    transport.receive_data(1, b"late\n", 1.0)
    transport.failed(1, "broken", 1.0)
    pump.drain()
    assert len(pump.of(PeerGone)) == len(pump.of(RequestFailed)) == len(pump.of(SessionEnded)) == 1
    assert isinstance(pump.ops[-1], Close)
    assert transport.finished
    assert transport.next_timeout() is None


def test_writes_that_come_together_are_one_op() -> None:
    pump = connected()
    count = len(pump.ops)
    for _ in range(64):
        pump.transport.engine.call_tool("t", now=0.0)
    pump.drain()
    assert len(pump.ops) == count + 1
    assert len(pump.written) == 65


def test_another_connections_bytes_are_not_ours() -> None:
    pump = client()
    pump.transport.receive_data(9, line({"jsonrpc": "2.0", "id": 1, "result": DISCOVER}), 0.0)
    pump.drain()
    assert not pump.events


@pytest.mark.req("Q7")
@pytest.mark.parametrize("kind", [LineClient, SocketClient])
@pytest.mark.parametrize("end", ["eof", "failed"])
def test_answers_past_a_limit_count_though_the_stream_ended_behind_them(kind: Any, end: str) -> None:
    engine = ClientEngine(ME, now=0.0, limits=Limits(max_buffered_events=2))
    if kind is LineClient:
        transport: Any = LineClient(engine, now=0.0)
    else:
        transport = SocketClient(engine, TcpAddress("localhost", 1), now=0.0)
        transport.start(0.0)
    pump = Pump(transport)
    transport.opened(1, 0.0)
    pump.drain().feed(line({"jsonrpc": "2.0", "id": 1, "result": DISCOVER}))
    calls = [engine.call_tool("t", now=0.0) for _ in range(9)]
    pump.drain()
    body = {"resultType": "complete", "content": []}
    pump.feed(b"".join(line({"jsonrpc": "2.0", "id": call.request_id, "result": body}) for call in calls))
    if end == "eof":
        transport.receive_eof(1, 0.0)
    else:
        transport.failed(1, "reset", 0.0)
    pump.drain()
    assert [event.call for event in pump.of(ResultReady)] == calls
    assert not pump.of(RequestFailed)
    assert transport.finished


def test_unread_events_stop_the_reading_and_nothing_is_lost() -> None:
    pump = connected(limits=Limits(max_buffered_events=10))
    data = b"".join(line({"jsonrpc": "2.0", "method": "vendor/x", "params": {"n": n}}) for n in range(100))
    pump.transport.receive_data(1, data, 0.0)
    wanted = [pump.transport.wants_data]
    for _ in range(50):
        pump.drain()
    wanted.append(pump.transport.wants_data)
    assert wanted == [False, True]
    assert [e.params["n"] for e in pump.events if hasattr(e, "params")] == list(range(100))


# the server -------------------------------------------------------------------------------------


def answer_all(pump: Pump) -> None:
    """Answer every open request of a server."""
    for event in pump.of(RequestReceived):
        if event.request.open:
            pump.transport.engine.respond(event.request, {"tools": []}, now=0.0)
    pump.drain()


@pytest.mark.case("S-11", "S-15")
def test_a_server_answers_what_it_owes_after_the_end_of_input() -> None:
    pump = server()
    transport = pump.transport
    assert isinstance(transport, LineServer)
    transport.receive_data(1, line(request("tools/list")), 0.0)
    transport.receive_eof(1, 0.0)
    pump.drain()
    assert not any(isinstance(op, Close) for op in pump.ops)
    answer_all(pump)
    assert [m["id"] for m in pump.written] == [1]
    assert isinstance(pump.ops[-1], Close)
    assert transport.finished
    assert len(pump.of(SessionEnded)) == 1


@pytest.mark.case("S-11", "R-03")
def test_the_grace_after_the_end_of_input_is_bounded() -> None:
    pump = server(grace=3.0)
    transport = pump.transport
    assert isinstance(transport, LineServer)
    transport.receive_data(1, line(request("tools/list")), 0.0)
    transport.receive_eof(1, 1.0)
    pump.drain()
    assert transport.next_timeout() == 4.0
    transport.handle_timeout(4.0)
    pump.drain()
    assert isinstance(pump.ops[-1], Close)
    assert pump.of(LimitHit)


@pytest.mark.req("Q11")
def test_past_the_limit_requests_wait_and_none_is_refused() -> None:
    pump = server(Limits(max_open_requests=4))
    transport = pump.transport
    data = b"".join(line(request("tools/list", id=n)) for n in range(20))
    transport.receive_data(1, data, 0.0)
    pump.drain()
    assert len(pump.of(RequestReceived)) == 4
    assert not transport.wants_data
    for _ in range(10):
        answer_all(pump)
    assert [m["id"] for m in pump.written] == list(range(20))
    assert transport.wants_data


@pytest.mark.req("Q11")
@pytest.mark.case("S-11")
def test_requests_that_wait_are_served_even_after_the_end_of_input() -> None:
    pump = server(Limits(max_open_requests=2))
    transport = pump.transport
    assert isinstance(transport, LineServer)
    transport.receive_data(1, b"".join(line(request("tools/list", id=n)) for n in range(7)), 0.0)
    transport.receive_eof(1, 0.0)
    pump.drain()
    for _ in range(10):
        answer_all(pump)
    assert [m["id"] for m in pump.written] == list(range(7))
    assert transport.finished


def test_a_client_that_does_not_read_stops_the_reading() -> None:
    transport = server().transport
    transport.pause_writing(1)
    assert not transport.wants_data
    transport.resume_writing(1)
    assert transport.wants_data


@pytest.mark.req("AA12")
def test_what_handlers_tell_a_client_that_does_not_read_is_bounded() -> None:
    pump = server(Limits(max_outgoing=1000))
    transport, engine = pump.transport, pump.transport.engine
    asked = request("tools/call", {"name": "t", "_meta": {"progressToken": "p"}})
    transport.receive_data(1, line(asked), 0.0)
    (received,) = (e.request for e in pump.drain().of(RequestReceived))
    for n in range(100):
        engine.report_progress(received, n, now=0.0)
    assert not pump.drain().of(LimitHit), "it reads"
    transport.pause_writing(1)
    for n in range(100, 105):
        engine.report_progress(received, n, now=0.0)
    pump.drain()
    transport.resume_writing(1)
    transport.pause_writing(1)
    for n in range(110, 115):
        engine.report_progress(received, n, now=0.0)
    assert not pump.drain().of(LimitHit), "less than the bound at a time"
    for n in range(120, 140):
        engine.report_progress(received, n, now=0.0)
    (hit,) = pump.drain().of(LimitHit)
    assert hit.limit == "max_outgoing"
    assert len(pump.of(RequestCancelled)) == len(pump.of(SessionEnded)) == 1
    assert transport.finished


@pytest.mark.case("R-05")
def test_a_broken_stream_ends_the_server_in_order() -> None:
    pump = server()
    transport = pump.transport
    assert isinstance(transport, LineServer)
    transport.receive_data(1, line(request("tools/list")), 0.0)
    transport.failed(1, "EPIPE", 0.0)
    transport.failed(1, "EPIPE", 0.0)
    pump.drain()
    assert [e.reason for e in pump.of(MessageIgnored)] == [PeerFault.WRITE_CLOSED]
    assert len(pump.of(SessionEnded)) == 1
    assert transport.finished


@pytest.mark.req("Q2")
@pytest.mark.case("S-10")
def test_an_oversize_request_is_refused_by_its_id() -> None:
    pump = server(Limits(max_message=1000))
    big = request("tools/call", {"name": "t", "arguments": {"x": "y" * 5000}}, id=5)
    pump.feed(line({"jsonrpc": "2.0", "id": 5, **big}), size=100)
    pump.feed(line(request("server/discover", id=6)))
    assert [m["id"] for m in pump.written] == [5, 6]
    assert pump.written[0]["error"]["code"] == -32600
    assert len(pump.of(LimitHit)) == 1


@pytest.mark.case("S-08")
def test_bytes_that_are_no_utf8_spoil_one_line_only() -> None:
    pump = server()
    pump.feed(
        b'{"jsonrpc":"2.0","id":1,"method":"ping","x":"\xff\xfe"}\n'
        + line({"jsonrpc": "2.0", "id": 2, "method": "ping"})
    )
    assert pump.written[-1] == {"jsonrpc": "2.0", "id": 2, "result": {}}
    assert pump.of(MessageIgnored)[0].reason is PeerFault.INVALID_UTF8


@pytest.mark.case("J-19")
def test_escapes_of_plain_characters_are_decoded() -> None:
    pump = server()
    pump.feed(line(request("tools/list")).replace(b"tools/list", b"tools\\/list"))
    assert pump.of(RequestReceived)[0].request.method == "tools/list"


# both -------------------------------------------------------------------------------------------


def test_both_ends_talk_over_any_cut_of_the_stream() -> None:
    near, far = client(), server()
    sent: list[int] = [0, 0]

    def carry(rounds: int = 50) -> None:
        for _ in range(rounds):
            for index, (source, target) in enumerate(((near, far), (far, near))):
                writes = [op.data for op in source.ops if isinstance(op, Write)]
                data = b"".join(writes)[sent[index] :]
                sent[index] += len(data)
                target.feed(data, size=5)
            for event in far.of(RequestReceived):
                if event.request.open:
                    text = event.request.params["arguments"]["text"]
                    result = {"content": [{"type": "text", "text": text}]}
                    far.transport.engine.respond(event.request, result, now=0.0)
            far.drain()
            near.drain()

    carry()
    calls = [near.transport.engine.call_tool("echo", {"text": f"{n}€"}, now=0.0) for n in range(20)]
    near.drain()
    carry()
    texts = {e.call: e.result.content[0].text for e in near.of(ResultReady)}
    assert texts == {call: f"{n}€" for n, call in enumerate(calls)}


def test_the_timer_is_the_earliest_of_both() -> None:
    pump = client(timeouts=Timeouts(probe=3.0))
    assert pump.transport.next_timeout() == 3.0
    pump.transport.handle_timeout(3.0)
    pump.drain()
    assert pump.written[-1]["method"] == "initialize"
    assert not any(isinstance(op, CloseWrite) for op in pump.ops)
