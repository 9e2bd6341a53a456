"""The HTTP server on its connections: bytes in, ops out, under a clock that only the test moves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, TypeVar

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import App, Event, IncomingRequest, LimitHit, LocalProtocolError, MessageIgnored, PeerFault
from sansmcp.events import RequestCancelled, RequestReceived
from sansmcp.http.headers import project_headers
from sansmcp.http.listener import ConnectionPolicy, HttpListener
from sansmcp.http.server import HttpServer
from sansmcp.limits import Limits
from sansmcp.ops import Close, CloseWrite, Write

from .http_support import BOTH, INITIALIZED, call, initialize, make_engine, note
from .support import meta

E = TypeVar("E")
LISTED: dict[str, Any] = {"tools": []}


@attrs.define(eq=False)
class Seen:
    """What happened on one connection."""

    data: bytes = b""
    writes: int = 0
    half_closed: Any = False
    closed: Any = False

    @property
    def statuses(self) -> list[int]:
        return [int(s) for s in re.findall(rb"HTTP/1\.1 (\d+) ", self.data)]


class Wire:
    """A listener, what it did on each connection, and what it said. Answers at once if `answers`."""

    def __init__(self, app: App | None = None, *, answers: bool = True, **options: Any) -> None:
        self.now = 0.0
        self.said: list[Event] = []
        self.seen: dict[int, Seen] = {}
        self.answers = answers
        self._drawn = 0
        policy = ConnectionPolicy(**options.pop("connections", {}))
        make = make_engine if app is None else app.engine
        server = HttpServer(make, now=0.0, entropy=self._entropy, **options)
        self.listener = HttpListener(server, now=0.0, policy=policy)

    def _entropy(self, size: int) -> bytes:
        self._drawn += 1
        return self._drawn.to_bytes(size, "big")

    def drain(self) -> None:
        listener = self.listener
        while True:
            while (op := listener.next_op()) is not None:
                seen = self.seen[op.conn]
                assert not seen.closed, "after its end"
                match op:
                    case Write():
                        assert op.data
                        assert not seen.half_closed, "written after its end"
                        seen.data += op.data
                        seen.writes += 1
                    case CloseWrite():
                        seen.half_closed = True
                    case Close():
                        seen.closed = True
            event = listener.next_event()
            if event is None:
                return
            while event is not None:
                self.said.append(event)
                if self.answers and isinstance(event, RequestReceived):
                    listener.server.respond(event.request, LISTED, now=self.now)
                event = listener.next_event()

    def connect(self, conn: int = 1) -> Seen:
        seen = self.seen[conn] = Seen()
        self.listener.accepted(conn, "", self.now)
        self.drain()
        return seen

    def send(self, data: bytes, conn: int = 1) -> Seen:
        self.listener.receive_data(conn, data, self.now)
        self.drain()
        return self.seen[conn]

    def eof(self, conn: int = 1) -> None:
        self.listener.receive_eof(conn, self.now)
        self.drain()

    def fail(self, conn: int = 1) -> None:
        self.listener.failed(conn, "reset", self.now)
        self.drain()

    def advance(self, seconds: float) -> None:
        end = self.now + seconds
        for _ in range(1000):
            when = self.listener.next_timeout()
            if when is None or when > end:
                break
            self.now = max(self.now, when)
            self.listener.handle_timeout(self.now)
            self.drain()
        else:
            raise AssertionError("deadlines without end")
        self.now = end
        self.listener.handle_timeout(end)
        self.drain()

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    @property
    def request(self) -> IncomingRequest:
        return self.of(RequestReceived)[-1].request

    def respond(self, request: IncomingRequest | None = None) -> None:
        self.listener.server.respond(request or self.request, LISTED, now=self.now)
        self.drain()

    def progress(self, value: float) -> None:
        self.listener.server.report_progress(self.request, value, now=self.now)
        self.drain()


def head(
    method: str = "POST", fields: Any = (), *, length: int | None = None, host: str = "localhost"
) -> bytes:
    given: dict[str, Any] = {"host": host, "accept": BOTH, **dict(fields)}
    if length is not None:
        given |= {"content-type": "application/json", "content-length": length}
    lines = "".join(f"{name}: {value}\r\n" for name, value in given.items())
    return f"{method} /mcp HTTP/1.1\r\n{lines}\r\n".encode()


def reasons(wire: Wire) -> list[Any]:
    return [event.reason for event in wire.of(MessageIgnored)]


def post(message: Any, **fields: Any) -> bytes:
    body = json.dumps(message).encode()
    given = {name.replace("_", "-"): value for name, value in fields.items()}
    return head(fields=given, length=len(body)) + body


def ask(method: str = "tools/list", *, id: Any = 1, progress: bool = False, **fields: Any) -> bytes:
    """A modern request."""
    marked = {**meta(), "progressToken": "p"} if progress else meta()
    message = {"jsonrpc": "2.0", "id": id, "method": method, "params": {"_meta": marked}}
    projected = {name.lower().replace("-", "_"): value for name, value in project_headers(message)}
    return post(message, **projected, **fields)


def chunked(data: bytes, size: int = 7) -> bytes:
    """A request with the same body in chunks."""
    begin, _, body = data.partition(b"\r\n\r\n")
    begin = re.sub(rb"content-length: \d+", b"transfer-encoding: chunked", begin)
    parts = [body[i : i + size] for i in range(0, len(body), size)]
    framed = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
    return begin + b"\r\n\r\n" + framed + b"0\r\n\r\n"


def open_session(wire: Wire, conn: int = 1) -> dict[str, str]:
    seen = wire.send(post(initialize()), conn)
    found = re.search(rb"mcp-session-id: (\S+)", seen.data)
    assert found is not None
    return {"mcp_session_id": found[1].decode(), "mcp_protocol_version": "2025-11-25"}


SPEECHES = {
    "modern": ask() + ask(id=2) + ask(id=3),
    "chunks": chunked(ask()) + ask(id=2),
    "initialize": post(initialize()) + ask(),
    "refused": head("PUT") + head("GET", host="evil.example") + ask(),
    "refused with a body": ask(host="evil.example") + ask(),
    "no message": post([]) + ask() + post({"a": 1}),
    "last": ask(connection="close") + ask(id=2),
    "broken": ask() + b"nonsense\r\n\r\n" + ask(),
    "bad body": head(length=5) + b"{nope" + ask(),
    "early": ask()
    + head(fields={"content-type": "application/json", "transfer-encoding": "chunked"})
    + b"x\r\n",
    "early and refused": ask() + head(fields={"transfer-encoding": "chunked"}) + b"x\r\n",
}


@pytest.mark.req("R11")
@pytest.mark.parametrize("name", SPEECHES)
@settings(deadline=None)
@given(data=st.data())
def test_how_the_bytes_are_divided_means_nothing(name: str, data: st.DataObject) -> None:
    speech = SPEECHES[name]
    whole = Wire()
    whole.connect()
    expected = whole.send(speech)
    cuts = data.draw(st.lists(st.integers(0, len(speech)), max_size=8).map(sorted))
    wire = Wire()
    seen = wire.connect()
    for begin, end in pairwise([0, *cuts, len(speech)]):
        if not seen.closed:
            wire.send(speech[begin:end])
    assert seen.data == expected.data
    assert [type(e) for e in wire.said] == [type(e) for e in whole.said]
    assert (seen.half_closed or seen.closed) == (expected.half_closed or expected.closed)


@pytest.mark.req("R11")
@pytest.mark.parametrize(
    ("name", "statuses", "ended"),
    [
        ("modern", [200, 200, 200], False),
        ("chunks", [200, 200], False),
        ("initialize", [200, 200], False),
        ("refused", [405, 421, 200], False),
        ("refused with a body", [421], True),
        ("no message", [400, 200, 400], False),
        ("last", [200], True),
        ("broken", [200, 400], True),
        ("early", [200, 400], True),
        ("early and refused", [200, 415], True),
    ],
)
def test_what_is_answered(name: str, statuses: list[int], ended: bool) -> None:
    wire = Wire()
    wire.connect()
    seen = wire.send(SPEECHES[name])
    assert seen.statuses == statuses
    assert (seen.closed or seen.half_closed) is ended


def test_a_byte_at_a_time() -> None:
    wire = Wire()
    seen = wire.connect()
    for byte in ask():
        wire.send(bytes([byte]))
    assert seen.statuses == [200]


# legacy ------------------------------------------------------------------------------------------


def test_a_session_outlives_its_connections() -> None:
    wire = Wire()
    wire.connect(1)
    named = open_session(wire)
    wire.eof(1)
    wire.connect(2)
    seen = wire.send(post(INITIALIZED, **named) + post(call(), **named), 2)
    assert seen.statuses == [202, 200]
    assert wire.send(head("DELETE", {k.replace("_", "-"): v for k, v in named.items()}), 2).statuses[-1] < 300
    assert wire.send(post(call(), **named), 2).statuses[-1] == 404


def test_a_get_stream_carries_what_the_server_says() -> None:
    from sansmcp.events import ListKind

    wire = Wire()
    wire.connect(1)
    wire.connect(2)
    named = open_session(wire)
    wire.send(post(INITIALIZED, **named))
    fields = {"accept": "text/event-stream"} | {k.replace("_", "-"): v for k, v in named.items()}
    seen = wire.send(head("GET", fields), 2)
    assert seen.statuses == [200]
    wire.listener.server.notify_changed(ListKind.TOOLS, now=wire.now)
    wire.drain()
    assert b"notifications/tools/list_changed" in seen.data
    assert not seen.closed


# leaving -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["eof", "fail"])
@pytest.mark.parametrize("streams", [False, True])
def test_to_leave_cancels_a_modern_request(how: str, streams: bool) -> None:
    wire = Wire(answers=False)
    seen = wire.connect()
    wire.send(ask(progress=True))
    if streams:
        wire.progress(1)
        assert b"notifications/progress" in seen.data
    getattr(wire, how)()
    assert len(wire.of(RequestCancelled)) == 1
    assert not wire.request.open
    assert seen.closed
    wire.respond()  # too late
    assert wire.listener.stats() | {"read_schemas": 0} == Wire().listener.stats()


@pytest.mark.parametrize("how", ["eof", "fail"])
def test_to_leave_cancels_nothing_in_a_session(how: str) -> None:
    wire = Wire()
    seen = wire.connect()
    named = open_session(wire)
    wire.send(post(INITIALIZED, **named))
    wire.answers = False
    wire.send(post(call(), **named))
    getattr(wire, how)()
    assert not wire.of(RequestCancelled)
    assert wire.request.open
    assert seen.closed
    wire.respond()
    assert wire.listener.stats()["answering"] == 0


@pytest.mark.parametrize("part", [1, 40, len(ask()) - 1])
def test_to_leave_within_a_request_is_told(part: int) -> None:
    wire = Wire()
    seen = wire.connect()
    wire.send(ask()[:part])
    wire.eof()
    assert seen.statuses == [400]
    assert seen.closed
    assert [e.reason for e in wire.of(MessageIgnored)] == [PeerFault.TRUNCATED_HTTP]


def test_to_leave_between_requests_is_nothing() -> None:
    wire = Wire()
    seen = wire.connect()
    wire.send(ask())
    said = len(wire.said)
    wire.eof()
    assert seen.closed
    assert len(wire.said) == said
    for ended in (wire.eof, wire.fail, lambda: wire.send(ask())):
        ended()
    assert len(wire.said) == said


# one request at a time ---------------------------------------------------------------------------


def test_pipelined_requests_are_answered_in_order_one_by_one() -> None:
    wire = Wire(answers=False)
    seen = wire.connect()
    wire.send(ask(id=1) + ask(id=2))
    assert [e.request.id for e in wire.of(RequestReceived)] == [1]
    wire.respond()
    assert [e.request.id for e in wire.of(RequestReceived)] == [1, 2]
    assert seen.statuses == [200]
    wire.respond()
    assert seen.statuses == [200, 200]


def test_what_is_sent_ahead_is_bounded() -> None:
    wire = Wire(answers=False, limits=Limits(max_head=4096, max_body=4096))
    seen = wire.connect()
    wire.send(ask())
    assert wire.listener.wants_data(1)
    wire.send(b"x" * 4097)
    assert not wire.listener.wants_data(1)
    wire.send(b"x" * 8192)
    assert PeerFault.SENT_TOO_FAR_AHEAD in [e.reason for e in wire.of(MessageIgnored)]
    wire.respond()
    assert seen.statuses == [200]
    assert seen.half_closed


def test_what_comes_together_is_one_write() -> None:
    wire = Wire()
    seen = wire.connect()
    wire.send(ask(id=1))
    assert seen.writes == 1
    wire.send(post(note("notifications/nothing")) * 5)
    assert seen.writes == 2


# bodies ------------------------------------------------------------------------------------------


@pytest.mark.req("R7")
@pytest.mark.parametrize("framing", ["length", "chunks"])
def test_a_body_that_is_too_large(framing: str) -> None:
    wire = Wire(limits=Limits(max_body=100))
    seen = wire.connect()
    body = post({"text": "x" * 200})
    wire.send(body if framing == "length" else chunked(body))
    assert seen.statuses == [413]
    assert seen.half_closed
    assert not seen.closed
    assert [e.reason for e in wire.of(MessageIgnored)] == [PeerFault.BODY_TOO_LARGE]


# time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sent", "seconds", "statuses", "limits"),
    [
        (b"", 30, [], []),
        (ask()[:20], 30, [], ["head_timeout"]),
        (ask()[:-1], 60, [408], ["body_timeout"]),
        (ask(), 75, [200], []),
        (ask() + ask()[:20], 30, [200], ["head_timeout"]),
    ],
)
def test_who_is_too_slow(sent: bytes, seconds: float, statuses: list[int], limits: list[str]) -> None:
    wire = Wire()
    seen = wire.connect()
    wire.send(sent)
    wire.advance(seconds - 0.1)
    assert (seen.closed, seen.half_closed) == (False, False)
    wire.advance(0.2)
    assert seen.statuses == statuses
    assert [e.limit for e in wire.of(LimitHit)] == limits
    assert seen.closed or seen.half_closed
    wire.advance(2)
    assert seen.closed
    assert wire.listener.next_timeout() is None


def test_a_byte_now_and_then_does_not_help() -> None:
    wire = Wire()
    seen = wire.connect()
    for byte in ask():
        wire.send(bytes([byte]))
        wire.advance(5)
        if seen.closed:
            break
    assert wire.now < 40


def test_between_requests_the_time_starts_anew() -> None:
    wire = Wire()
    seen = wire.connect()
    for _ in range(4):
        wire.send(ask())
        wire.advance(70)
        wire.send(post(note("notifications/nothing")))
        wire.advance(70)
    assert not seen.closed
    wire.advance(6)
    assert seen.closed


@pytest.mark.req("R8")
def test_an_answer_may_take_as_long_as_it_takes() -> None:
    wire = Wire(answers=False)
    seen = wire.connect()
    wire.send(ask())
    wire.advance(1000)
    wire.respond()
    assert seen.statuses == [200]
    assert seen.data.count(b":\n") > 50


def test_the_end_lingers_for_what_is_still_coming() -> None:
    wire = Wire()
    seen = wire.connect()
    wire.send(b"nonsense\r\n\r\n")
    assert (seen.half_closed, seen.closed) == (True, False)
    wire.send(b"more of it" * 1000)
    wire.eof()
    assert seen.closed


# bounds ------------------------------------------------------------------------------------------


def test_too_many_connections() -> None:
    wire = Wire(connections={"max_connections": 2})
    first, _ = wire.connect(1), wire.connect(2)
    third = wire.connect(3)
    assert third.statuses == [503]
    assert third.closed
    assert [e.limit for e in wire.of(LimitHit)] == ["max_connections"]
    wire.eof(1)
    assert first.closed
    wire.connect(4)
    assert wire.send(ask(), 4).statuses == [200]


def test_who_does_not_read_is_not_read_from() -> None:
    wire = Wire()
    seen = wire.connect()
    wire.listener.pause_writing(1)
    wire.listener.pause_writing(1)
    wire.send(ask())
    assert seen.data == b""
    assert not wire.listener.wants_data(1)
    wire.listener.resume_writing(1)
    wire.listener.resume_writing(1)
    wire.drain()
    assert wire.listener.wants_data(1)
    assert seen.statuses == [200]


def test_who_does_not_read_for_long_is_let_go() -> None:
    wire = Wire()
    seen = wire.connect()
    wire.send(ask(connection="close")[:-1])
    wire.listener.pause_writing(1)
    wire.send(ask(connection="close")[-1:])
    assert not seen.closed
    wire.advance(299)
    assert not seen.closed
    wire.advance(2)
    assert seen.closed
    assert [e.limit for e in wire.of(LimitHit)] == ["stall_timeout"]


def test_what_waits_for_a_reader_is_bounded() -> None:
    wire = Wire(answers=False, limits=Limits(max_outgoing=1000))
    seen = wire.connect()
    wire.send(ask(progress=True))
    wire.listener.pause_writing(1)
    for value in range(1, 100):
        wire.progress(value)
    assert seen.closed
    assert 1000 < len(seen.data) < 3000
    assert [e.limit for e in wire.of(LimitHit)] == ["max_outgoing"]
    assert len(wire.of(RequestCancelled)) == 1


def test_while_events_pile_up_no_request_is_taken() -> None:
    wire = Wire(limits=Limits(max_buffered_events=2))
    listener = wire.listener
    for conn in (1, 2, 3, 4):
        wire.connect(conn)
    for conn in (1, 2, 3, 4):
        listener.receive_data(conn, ask(), 0.0)
        while listener.next_op() is not None:
            pass
    assert not listener.takes_requests
    assert listener.stats()["answering"] == 2
    assert [listener.wants_data(conn) for conn in (1, 2, 3, 4)] == [True, True, False, False]
    wire.drain()
    assert [wire.seen[conn].statuses for conn in (1, 2, 3, 4)] == [[200]] * 4
    assert all(listener.wants_data(conn) for conn in (1, 2, 3, 4))


# the end -----------------------------------------------------------------------------------------


def test_close_answers_what_is_open() -> None:
    wire = Wire(answers=False)
    idle, waiting, streaming, uploading = (wire.connect(conn) for conn in (1, 2, 3, 4))
    wire.send(ask(), 2)
    wire.send(ask(progress=True), 3)
    wire.progress(1)
    wire.send(ask()[:-1], 4)
    assert not finished(wire)
    for _ in range(2):
        wire.listener.close(wire.now)
        wire.drain()
    assert finished(wire)
    assert (idle.closed, waiting.closed, streaming.closed) == (True, True, True)
    assert waiting.statuses[0] in (200, 503)
    assert streaming.data.endswith(b"0\r\n\r\n")
    assert (uploading.statuses, uploading.closed) == ([503], True)
    late = wire.connect(5)
    assert late.closed
    assert late.data == b""
    assert wire.listener.next_timeout() is None


def test_misuse_is_told_at_once() -> None:
    wire = Wire()
    wire.connect()
    with pytest.raises(LocalProtocolError, match="open already"):
        wire.listener.accepted(1, "", 0.0)
    for name in (f.name for f in attrs.fields(ConnectionPolicy)):
        with pytest.raises(LocalProtocolError, match=name):
            ConnectionPolicy(**{name: 0})


def test_what_is_unknown_is_harmless() -> None:
    listener = Wire().listener
    listener.receive_data(9, b"x", 0.0)
    listener.receive_eof(9, 0.0)
    listener.failed(9, "", 0.0)
    listener.pause_writing(9)
    listener.resume_writing(9)
    assert listener.wants_data(9)
    assert listener.next_op() is None


@settings(deadline=None)
@given(st.data())
def test_whatever_clients_do_nothing_is_left_of_them(data: st.DataObject) -> None:
    wire = Wire(answers=data.draw(st.booleans()), connections={"max_connections": 3})
    pieces = list(pieces_of_speeches())
    used = 0
    for _ in range(data.draw(st.integers(1, 25))):
        live = [conn for conn, seen in wire.seen.items() if not seen.closed]
        action = data.draw(
            st.sampled_from(["connect", "send", "eof", "fail", "pause", "resume", "wait", "answer"])
        )
        if action == "connect" or not live:
            used += 1
            wire.connect(used)
            continue
        conn = data.draw(st.sampled_from(live))
        match action:
            case "send":
                wire.send(data.draw(st.sampled_from(pieces)), conn)
            case "eof":
                wire.eof(conn)
            case "fail":
                wire.fail(conn)
            case "pause":
                wire.listener.pause_writing(conn)
            case "resume":
                wire.listener.resume_writing(conn)
                wire.drain()
            case "wait":
                wire.advance(data.draw(st.floats(0, 100)))
            case "answer":
                for event in wire.of(RequestReceived):
                    if event.request.open:
                        wire.respond(event.request)
    wire.listener.close(wire.now)
    wire.drain()
    wire.advance(1)
    for conn, seen in wire.seen.items():
        if not seen.closed:
            wire.fail(conn)
    assert finished(wire)
    stats = wire.listener.stats()
    assert {name: size for name, size in stats.items() if size} == {}


def pieces_of_speeches() -> Iterator[bytes]:
    for speech in SPEECHES.values():
        yield speech
        yield speech[: len(speech) // 2]
        yield speech[len(speech) // 2 :]


def finished(wire: Wire) -> bool:
    return wire.listener.finished


@pytest.mark.parametrize(("seconds", "told"), [(75.0, b"75"), (5.9, b"5"), (0.5, b"0")])
def test_clients_are_told_how_long_a_connection_is_kept(seconds: float, told: bytes) -> None:
    wire = Wire(connections={"idle_timeout": seconds})
    seen = wire.connect()
    wire.send(ask())
    assert b"\r\nconnection: keep-alive\r\nkeep-alive: timeout=" + told + b"\r\n" in seen.data
    wire.send(ask().replace(b"HTTP/1.1", b"HTTP/1.0", 1))
    last = seen.data.rpartition(b"HTTP/1.1 200")[2]
    assert b"connection: close" in last
    assert b"keep-alive" not in last
