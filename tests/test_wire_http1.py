"""One meaning of each message however it is cut, refusals that arrive, and nothing smuggled."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

import attrs
import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.errors import LocalProtocolError, PeerFault
from sansmcp.limits import Limits
from sansmcp.wire.http1 import (
    BodyData,
    BodyEnd,
    ConnectionClosed,
    FieldBlock,
    Http1Client,
    Http1Server,
    HttpEvent,
    HttpFault,
    InformationalHead,
    RequestHead,
    ResponseHead,
)
from sansmcp.wire.http1_body import ChunkedBody
from sansmcp.wire.http1_head import HeadBuffer, KnownHeads, read_request, read_response

from .vectors.http1_messages import (
    ANSWERED,
    CHUNKED,
    CLOSED,
    GET,
    LIMITS,
    OK,
    POST,
    REQUESTS,
    RESPONSES,
    STREAM,
    Found,
    Row,
    head,
)

SIZES = pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])


def shown(event: HttpEvent) -> Found:
    match event:
        case RequestHead():
            return (event.method, event.target)
        case ResponseHead():
            return (event.status, *event.deviations)
        case InformationalHead():
            return ("interim", event.status)
        case BodyData():
            return ("data", event.data)
        case BodyEnd():
            return ("end",)
        case ConnectionClosed():
            return CLOSED
        case HttpFault(status=None):
            return (event.fault,)
        case HttpFault():
            return (event.fault, event.status, event.answered)


def joined(found: Iterable[Found]) -> list[Found]:
    """With neighbouring pieces of a body put together."""
    merged: list[Found] = []
    for item in found:
        if item[0] == "data" and merged and merged[-1][0] == "data":
            merged[-1] = ("data", merged[-1][1] + item[1])  # type: ignore[operator]
        else:
            merged.append(item)
    return merged


def drain(connection: Http1Server | Http1Client) -> list[Found]:
    found = []
    while (event := connection.next_event()) is not None:
        found.append(shown(event))
    return found


def received(data: bytes, limits: Limits = LIMITS) -> Http1Server:
    server = Http1Server(limits)
    server.receive_data(data)
    drain(server)
    return server


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def serve(
    chunks: list[bytes], *, eof: bool = False, limits: Limits = LIMITS
) -> tuple[list[Found], Http1Server]:
    """A server that answers each request when it is complete."""
    server = Http1Server(limits)
    found: list[Found] = []

    def run() -> None:
        while (event := server.next_event()) is not None:
            found.append(shown(event))
            if isinstance(event, BodyEnd):
                server.send_response(200, body=b"ok")

    for chunk in chunks:
        server.receive_data(chunk)
        run()
        assert server.stats()["buffered"] <= limits.max_head + len(chunk)
    if eof:
        server.receive_eof()
        run()
    return joined(found), server


def ask(
    chunks: list[bytes], method: str = "GET", *, eof: bool = False, limits: Limits = LIMITS
) -> tuple[list[Found], Http1Client]:
    """A client that made one request."""
    client = Http1Client(limits)
    client.send_request(method, "/", [("host", "x")])
    client.data_to_send()
    found: list[Found] = []
    for chunk in chunks:
        client.receive_data(chunk)
        found += drain(client)
        assert client.stats() == {"buffered": client.stats()["buffered"], "outgoing": 0}
        assert client.stats()["buffered"] <= limits.max_head
    if eof:
        client.receive_eof()
        found += drain(client)
    return joined(found), client


def statuses(data: bytes, method: str = "GET") -> list[int]:
    """The statuses of the responses in `data`, as h11 reads them."""
    found = []
    while data:
        reader = h11.Connection(h11.CLIENT)
        reader.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
        reader.send(h11.EndOfMessage())
        reader.receive_data(data)
        while not isinstance(event := reader.next_event(), h11.EndOfMessage):
            assert isinstance(event, h11.Event), "the response is not complete"
            if isinstance(event, h11.Response | h11.InformationalResponse):
                found.append(event.status_code)
        data = reader.trailing_data[0]
    return found


def rows(table: tuple[Row, ...]) -> list[object]:
    return [
        pytest.param(row, id=row.name, marks=[pytest.mark.case(*row.cases)] if row.cases else [])
        for row in table
    ]


# reading -----------------------------------------------------------------------------------------


@pytest.mark.req("R7", "R11")
@SIZES
@pytest.mark.parametrize("row", rows(REQUESTS))
def test_requests(row: Row, size: int) -> None:
    found, server = serve(pieces(row.data, size), eof=row.eof)
    assert found == row.found
    told = [item for item in row.found if isinstance(item[0], PeerFault)]
    out = server.data_to_send()
    assert statuses(out) == [200] * row.found.count(("end",)) + [item[1] for item in told]
    assert server.should_close == (out.count(b"connection: close") == 1 or row.eof)


@pytest.mark.req("R7", "R11")
@SIZES
@pytest.mark.parametrize("row", rows(RESPONSES))
def test_responses(row: Row, size: int) -> None:
    found, client = ask(pieces(row.data, size), row.method, eof=row.eof)
    assert found == row.found
    if any(isinstance(item[0], PeerFault) for item in row.found) or row.eof:
        assert client.should_close
        assert not client.reusable


@pytest.mark.req("R11")
@pytest.mark.parametrize("trailing", [b"\r\n", b"\n", b"x", b"\xff\r\n\r\n", GET, OK])
def test_trailing_bytes_change_nothing_before_them(trailing: bytes) -> None:
    for row in REQUESTS:
        if row.eof:
            continue
        found, _ = serve([row.data + trailing])
        assert found[: len(row.found)] == row.found
        assert found == serve([row.data, trailing])[0] == serve(pieces(row.data + trailing, 1))[0]
    for row in RESPONSES:
        if row.eof or row.name == "not-ended":
            continue
        found, _ = ask([row.data + trailing], row.method)
        assert found[: len(row.found)] == row.found
        assert found == ask(pieces(row.data + trailing, 1), row.method)[0]


snippets = st.sampled_from(
    [row.data for row in REQUESTS + RESPONSES if len(row.data) < 120]
    + [b"\r\n", b"\n", b"\r", b" ", b":", b"0\r\n\r\n", b"2\r\n{}\r\n", b"x", b"\xe9", GET, POST, OK, STREAM]
    + [CHUNKED, b"Content-Length: 3\r\n", b"Transfer-Encoding: chunked\r\n", b"Connection: close\r\n"]
)


@pytest.mark.req("R11")
@settings(max_examples=300, deadline=None)
@given(st.lists(snippets, max_size=8).map(b"".join), st.lists(st.integers(0, 90), max_size=12), st.booleans())
def test_any_split_gives_the_same(data: bytes, sizes: list[int], eof: bool) -> None:
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    chunks.append(data[at:])
    chunks = [chunk for chunk in chunks if chunk]
    whole, server = serve([data], eof=eof)
    out = server.data_to_send()
    for split in (chunks, pieces(data, 1)):
        found, server = serve(split, eof=eof)
        assert found == whole
        assert server.data_to_send() == out
        assert ask(split, eof=eof)[0] == ask([data], eof=eof)[0]


@pytest.mark.req("R11")
def test_what_a_head_says() -> None:
    server = Http1Server()
    server.receive_data(
        b"POST /mcp?code=secret HTTP/1.1\r\nHOST: x\r\nX-A: 1\r\nx-a:  2 \r\nX-B:\r\nExpect: 100-Continue\r\n"
        b"Authorization: Bearer secret\r\nContent-Length: 2\r\n\r\n"
    )
    event = server.next_event()
    assert isinstance(event, RequestHead)
    assert event.headers == {
        "host": "x",
        "x-a": "1, 2",
        "x-b": "",
        "expect": "100-Continue",
        "authorization": "Bearer secret",
        "content-length": "2",
    }
    assert [value for name, value in event.lines if name == "x-a"] == ["1", "2"]
    assert len(event.lines) == 7
    assert (event.target, event.content_length, event.http_version) == ("/mcp?code=secret", 2, "1.1")
    assert event.expects_continue
    assert not event.close
    assert "secret" not in repr(event)
    client = Http1Client()
    client.send_request("GET", "/", {"host": "x"})
    client.receive_data(b"HTTP/1.1 404 N\xe4\r\nA: b\r\nContent-Length: 0\r\n\r\n")
    answer = client.next_event()
    assert isinstance(answer, ResponseHead)
    assert (answer.status, answer.reason, answer.http_version) == (404, "Nä", "1.1")
    assert answer.headers == {"a": "b", "content-length": "0"}


lines = st.sampled_from(
    [b"content-length: 17", b"Content-Length:5", b"CONTENT-LENGTH: 007 ", b"Content-Length:", b" 3"]
    + [b"content-length: " + digits * 19 for digits in (b"9", b"1,")]
    + [b"x-content-length: 4", b" content-length: 6", b"a: content-length: 2", b"Transfer-Encoding: chunked"]
    + [b"connection: close", b"expect: 100-continue"]
)
ends = st.sampled_from([b"\r\n", b"\r\n", b"\r\n", b"\n"])
others = st.sampled_from(
    [b"0", b"7", b"123", b"00", b"9" * 18, b"9" * 19, b"", b"x", b"-1", b"1,1", b"5\r\na: b", b" 5"]
)


@pytest.mark.req("R11")
@settings(max_examples=600, deadline=None)
@given(st.booleans(), st.lists(st.tuples(lines, ends), max_size=5), others, st.data())
def test_a_head_that_is_known_says_what_it_says_alone(
    answer: bool, fields: list[tuple[bytes, bytes]], other: bytes, data: st.DataObject
) -> None:
    """Whatever the first head is, and whatever stands in the next one in the place of some digits."""
    begin = b"HTTP/1.1 200 OK\r\n" if answer else b"POST /mcp HTTP/1.1\r\nHost: x\r\n"
    first = begin + b"".join(line + end for line, end in fields) + b"\r\n"
    runs = [match.span() for match in re.finditer(rb"[0-9]+", first)]
    start, stop = data.draw(st.sampled_from(runs))
    read: Any = read_response if answer else read_request
    known_heads: KnownHeads[Any] = KnownHeads()
    known = read(first, 100)
    if isinstance(known, RequestHead | ResponseHead):
        known_heads.keep(first, known)
    for given_head in (first, first[:start] + other + first[stop:], first):
        again = known_heads.read(given_head)
        if again is not None:
            fresh = read(given_head, 100)
            assert attrs.asdict(again) == attrs.asdict(fresh)
            assert list(again.headers) == list(fresh.headers)
            again.headers.clear()  # it is nobody else's


@pytest.mark.parametrize("extra", [b"", b"expect: 100-continue\r\n", b"a: " + b"b" * 2048 + b"\r\n"])
def test_only_the_digits_of_the_length_may_differ_from_a_known_head(extra: bytes) -> None:
    known_heads: KnownHeads[RequestHead] = KnownHeads()
    shape = b"POST /mcp HTTP/1.1\r\nhost: x\r\nContent-Length: %b\r\n" + extra + b"\r\n"
    assert known_heads.read(shape % b"2") is None
    for length in (b"2", b"0123", b"0"):
        known = read_request(shape % length, 100)
        assert isinstance(known, RequestHead)
        known_heads.keep(shape % length, known)
        again = known_heads.read(shape % b"45")
        assert (again is not None) is (extra == b"")
        assert again is None or (again.content_length, again.headers["content-length"]) == (45, "45")
        assert known_heads.read(shape.replace(b"host: x", b"host: y") % length) is None
        for other in (b"", b"5x", b"9" * 19):
            assert known_heads.read(shape % other) is None


def test_a_few_heads_are_known() -> None:
    known_heads: KnownHeads[ResponseHead] = KnownHeads()
    heads = [b"HTTP/1.1 200 OK\r\na: %d\r\ncontent-length: 5\r\n\r\n" % number for number in range(6)]
    for head_of_answer in heads:
        read = read_response(head_of_answer, 100)
        assert isinstance(read, ResponseHead)
        known_heads.keep(head_of_answer, read)
    found = [known_heads.read(head_of_answer) for head_of_answer in heads]
    assert [None if again is None else again.headers["a"] for again in found] == [None, None, *"2345"]


@pytest.mark.parametrize(
    "line", [b"secret", b"A: secret\0", b"A : secret", b"Content-Length: secret", b"a\r\n secret"]
)
def test_a_fault_quotes_nothing(line: bytes) -> None:
    server = Http1Server(LIMITS)
    server.receive_data(head(line))
    event = server.next_event()
    assert isinstance(event, HttpFault)
    assert "secret" not in repr(event)


# misuse ------------------------------------------------------------------------------------------

BAD_FIELDS = [
    ("a", "b\r\nc: d"),
    ("a", "b\nc: d"),
    ("a", "\r"),
    ("a", "\0"),
    ("a", "é"),
    ("a", "\u20ac"),
    ("a", " b"),
    ("a", "b\t"),
    ("a b", "c"),
    ("", "c"),
    ("é", "c"),
    ("a: b\r\nc", "d"),
    ("Content-Length", "2"),
    ("transfer-encoding", "chunked"),
    ("Connection", "close"),
]


@pytest.mark.req("R11")
@pytest.mark.parametrize("field", BAD_FIELDS, ids=ascii)
def test_a_field_that_could_be_read_as_another_is_not_sent(field: tuple[str, str]) -> None:
    with pytest.raises(LocalProtocolError):
        FieldBlock([field])
    client = Http1Client()
    with pytest.raises(LocalProtocolError):
        client.send_request("GET", "/", [("host", "x"), field, ("z", "z")])
    assert client.reusable
    server = received(POST)
    with pytest.raises(LocalProtocolError):
        server.send_response(200, [field])
    assert client.data_to_send() + server.data_to_send() == b""
    server.send_response(200)
    assert statuses(server.data_to_send()) == [200]


def test_misuse_changes_nothing() -> None:
    client = Http1Client()
    wrong: list[Callable[[], Any]] = [
        lambda: client.send_request("GET", "/"),
        lambda: client.send_request("GET", "/", [("host", "x"), ("Host", "y")]),
        lambda: client.send_request("G T", "/", {"host": "x"}),
        lambda: client.send_request("GET", "/a b", {"host": "x"}),
        lambda: client.send_request("GET", "/é", {"host": "x"}),
        lambda: client.send_request("GET", "", {"host": "x"}),
        lambda: client.start_request("POST", "/", {"host": "x"}, length=-1),
        lambda: client.send_data(b"x"),
    ]
    server = Http1Server()
    wrong += [
        lambda: server.send_response(200),
        lambda: server.start_response(200),
        lambda: server.send_data(b"x"),
        server.send_end,
    ]
    for call in wrong:
        with pytest.raises(LocalProtocolError):
            call()
    client.start_request("POST", "/", {"host": "x"}, length=2)
    for call in (lambda: client.send_request("GET", "/", {"host": "x"}), lambda: client.send_data(b"xxx")):
        with pytest.raises(LocalProtocolError):
            call()
    client.send_data(b"{}")
    server.receive_data(client.data_to_send())
    assert joined(drain(server)) == [("POST", "/"), ("data", b"{}"), ("end",)]
    for status in (100, 199, 600):
        with pytest.raises(LocalProtocolError):
            server.send_response(status)
    with pytest.raises(LocalProtocolError):
        server.start_response(200, length=-1)
    server.start_response(200, length=2)
    for call in (lambda: server.send_data(b"xxx"), server.send_end, lambda: server.send_response(200)):
        with pytest.raises(LocalProtocolError):
            call()
    server.send_data(b"{}")
    server.send_end()
    client.receive_data(server.data_to_send())
    assert joined(drain(client)) == ANSWERED
    client.receive_eof()
    client.receive_eof()
    with pytest.raises(LocalProtocolError, match="end of the connection"):
        client.receive_data(b"x")
    assert repr(FieldBlock({"a": "b"})) == "FieldBlock(6 bytes)"


# work --------------------------------------------------------------------------------------------


@pytest.mark.req("R7")
@pytest.mark.parametrize("size", [1, 7, 1000])
def test_each_byte_of_a_head_is_searched_a_few_times(size: int) -> None:
    searched = 0

    class Counting(bytearray):
        def find(self, sub: Any, start: Any = 0, end: Any = None) -> int:
            nonlocal searched
            stop = len(self) if end is None else min(end, len(self))
            found = super().find(sub, start, stop)
            searched += (found if found >= 0 else stop) - start
            return found

    data = b"GET / HTTP/1.1\r\n" + b"a: bcd\r\n" * 5000
    buffer = HeadBuffer(len(data), of_client=True)
    buffer._held = Counting()
    for chunk in pieces(data, size):
        buffer.feed(chunk, 0)
    assert searched <= 6 * len(data)


@pytest.mark.req("R7")
@pytest.mark.parametrize("size", [1, 7, 1000, 1 << 20])
def test_each_byte_of_a_chunked_body_is_looked_at_once(size: int) -> None:
    looked = 0

    class Counting(bytes):
        def find(self, sub: Any, start: Any = 0, end: Any = None) -> int:
            nonlocal looked
            found = super().find(sub, start)
            looked += (found if found >= 0 else len(self)) - start
            return found

        def __getitem__(self, key: Any) -> Any:
            nonlocal looked
            part = super().__getitem__(key)
            looked += len(part)
            return part

    data = b"5;xx\r\nhello\r\n" * 3000 + b"0\r\n" + b"a: b\r\n" * 2000 + b"\r\n"
    body = ChunkedBody(30_000)
    found: list[bytes] = []
    for chunk in pieces(data, size):
        assert body.read(Counting(chunk), 0, found) == len(chunk)
    assert b"".join(found) == b"hello" * 3000
    assert body.done
    assert looked <= 2 * len(data)


@pytest.mark.req("R1")
@pytest.mark.parametrize(
    ("chunk", "times", "good"),
    [
        (b"5;p=1\r\nhello\r\n", 1000, True),
        (b"5     \r\nhello\r\n", 1000, True),
        (b"5;" + b"x" * 99 + b"\r\nhello\r\n", 1, True),
        (b"5;" + b"x" * 120 + b"\r\nhello\r\n", 1, False),
        (b"5;" + b"x" * 54 + b"\r\nhello\r\n", 2, True),
        (b"5;" + b"x" * 54 + b"\r\nhello\r\n", 3, False),
        (b"ffffff;" + b"x" * 99 + b"\r\n", 1, True),
    ],
)
def test_what_stands_beside_chunks_is_bounded_by_what_is_in_them(
    chunk: bytes, times: int, good: bool
) -> None:
    """A stream whose server pads the sizes of its chunks is not to end after some thousands of them."""
    for size in (1, 7, 10_000):
        body = ChunkedBody(100)
        found: list[bytes] = []
        for piece in pieces(chunk * times, size):
            if body.problem is None:
                body.read(piece, 0, found)
        assert (body.problem is None) is good
        assert not good or b"".join(found) in (b"hello" * times, b"")


# faults ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fault",
    [
        PeerFault.INVALID_HTTP_HEAD,
        PeerFault.HEAD_TOO_LARGE,
        PeerFault.NON_ASCII_HEADER,
        PeerFault.BARE_LINE_FEED,
        PeerFault.FOLDED_HEADER,
        PeerFault.AMBIGUOUS_LENGTH,
        PeerFault.UNSUPPORTED_TRANSFER_CODING,
        PeerFault.UNSUPPORTED_HTTP_VERSION,
        PeerFault.BODY_TOO_LARGE,
        PeerFault.INVALID_CHUNK,
        PeerFault.TRUNCATED_HTTP,
    ],
    ids=lambda fault: fault.name,
)
def test_each_fault_is_shown_on_both_sides(fault: PeerFault) -> None:
    for table in (REQUESTS, RESPONSES):
        assert any(fault in item for row in table for item in row.found)
