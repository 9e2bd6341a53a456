"""Any split of an event stream gives the same events, and what is written stays one event."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.errors import LocalProtocolError, PeerFault, RemoteProtocolError
from sansmcp.wire.peek import HEAD_SIZE
from sansmcp.wire.sse import MESSAGE, ServerSentEvent, SseDecoder, SseFault, encode_comment, encode_event

ANSWER = b'{"jsonrpc":"2.0","id":1,"result":{}}'
EVENT = b"data: " + ANSWER + b"\n\n"
BOM = b"\xef\xbb\xbf"
MAX = 1000

Found = tuple[str, bytes, str | None, int | None] | tuple[PeerFault, bytes]


def message(data: bytes = ANSWER, id: str | None = None, *, event: str = MESSAGE) -> Found:
    return (event, data, id, None)


def shown(item: ServerSentEvent | SseFault) -> Found:
    if isinstance(item, SseFault):
        return (item.fault, item.head)
    return (item.event, item.data, item.id, item.retry)


def drain(decoder: SseDecoder) -> list[Found]:
    found = []
    while (item := decoder.next_event()) is not None:
        found.append(shown(item))
    return found


def decode(chunks: list[bytes], max_event: int = MAX, *, eof: bool = False) -> list[Found]:
    decoder = SseDecoder(max_event)
    found = []
    for chunk in chunks:
        decoder.receive_data(chunk)
        found += drain(decoder)
        assert decoder.stats()["buffered"] <= max_event + len(BOM)
    if eof:
        decoder.receive_eof()
        found += drain(decoder)
        assert drain(decoder) == []
        assert decoder.stats()["buffered"] == 0
    return found


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@attrs.frozen
class Stream:
    name: str
    data: bytes
    found: list[Found]
    cases: tuple[str, ...] = ()
    last_id: str | None = None
    retry: int | None = None
    comments: int = 0


STREAMS = (
    Stream("nothing", b"", []),
    Stream("one", EVENT, [message()]),
    Stream("many", EVENT * 5, [message()] * 5),
    Stream("named-message", b"event: message\n" + EVENT, [message()]),
    Stream(
        "priming",
        b"id: s1-0\ndata:\n\nid: s1-1\n" + EVENT,
        [message(id="s1-1")],
        ("E-01",),
        last_id="s1-1",
    ),
    Stream("priming-alone", b"id: s1-0\nretry: 500\ndata: \n\n", [], ("E-01",), last_id="s1-0", retry=500),
    Stream("id-alone", b"id: s1-0\n\n", [], ("E-01",), last_id="s1-0"),
    Stream("crlf", b"event: message\r\ndata: " + ANSWER + b"\r\n\r\n", [message()], ("E-03",)),
    Stream("crlf-many", EVENT.replace(b"\n", b"\r\n") * 3, [message()] * 3, ("E-03",)),
    Stream("cr", EVENT.replace(b"\n", b"\r"), [message()], ("E-04",)),
    Stream("cr-many", EVENT.replace(b"\n", b"\r") * 3, [message()] * 3, ("E-04",)),
    Stream(
        "mixed-line-ends",
        b"data: a\r\rdata: b\n\rdata: c\r\n\ndata: d\n\r\ndata: e\r\n\r\n",
        [message(b"a"), message(b"b"), message(b"c"), message(b"d"), message(b"e")],
        ("E-03", "E-04"),
    ),
    Stream(
        "multi-line",
        b'data: {\ndata: "jsonrpc":"2.0","id":1,\ndata: "result":{}}\n\n',
        [message(b'{\n"jsonrpc":"2.0","id":1,\n"result":{}}')],
        ("E-05",),
    ),
    Stream("multi-line-crlf", b"data: a\r\ndata: b\r\ndata:\r\n\r\n", [message(b"a\nb\n")], ("E-05",)),
    Stream("one-space-goes", b"data:  a\ndata:\tb\ndata:c \n\n", [message(b" a\n\tb\nc ")], ("E-05",)),
    Stream(
        "other-types",
        b"event: ping\ndata: 2026-01-01\n\n" + EVENT,
        [message(b"2026-01-01", event="ping"), message()],
        ("E-06",),
    ),
    Stream("the-last-type-counts", b"event: x\nevent: message\n" + EVENT, [message()], ("E-06",)),
    Stream("an-empty-type-is-message", b"event: x\nevent:\n" + EVENT, [message()]),
    Stream("a-type-holds-for-one-event", b"event: x\n\n" + EVENT, [message()], ("E-06",)),
    Stream("keep-alive", b":\n\n" + EVENT + b": ping\r\n\r\n:\r\r", [message()], ("E-07",), comments=3),
    Stream("unfinished-keep-alive", b":" + b"x" * 2 * MAX, [], ("E-07",), comments=1),
    Stream("long-comment", b": " + b"x" * 2 * MAX + b"\n" + EVENT, [message()], ("E-07",), comments=1),
    Stream("comment-inside", b"data: a\n:\ndata: b\n\n", [message(b"a\nb")], ("E-07",), comments=1),
    Stream("open", b"data: " + ANSWER + b"\n", [], ("E-09",)),
    Stream("no-space", EVENT.replace(b" ", b""), [message()], ("E-14",)),
    Stream(
        "colons-in-the-value",
        b'data:{"jsonrpc":"2.0","id":1,"result":{"u":"a: b"}}\n\n',
        [message(b'{"jsonrpc":"2.0","id":1,"result":{"u":"a: b"}}')],
        ("E-14",),
    ),
    Stream("no-colon", b"data\n\ndata\ndata\n\n", [message(b"\n")], ("E-14",)),
    Stream("commented-out", b":data: {}\n\n", [], ("E-14",), comments=1),
    Stream("retry-12x", b"retry: 12x\nretry:\nretry: -1\nretry: \xd9\xa3\n\n", [], ("E-14",)),
    Stream("retry-huge", b"retry: " + b"9" * 900 + b"\n\n", [], ("E-14",)),
    Stream("retry", b"retry: 0012\n" + EVENT + EVENT, [(MESSAGE, ANSWER, None, 12), message()], retry=12),
    Stream("bom", BOM + EVENT, [message()], ("E-14",)),
    Stream("bom-later", EVENT + BOM + EVENT, [message()], ("E-14",)),
    Stream("half-a-bom", BOM[:2] + b"data: a\n" + EVENT, [message()], ("E-14",)),
    Stream("unknown-fields", b"Data: a\n data: b\ndata : c\nx\nfoo: bar\n" + EVENT, [message()], ("E-14",)),
    Stream("blank-lines", b"\n\r\n\r\r\n" + EVENT + b"\n\n", [message()], ("E-14",)),
    Stream(
        "ids",
        b"id: 1\n" + EVENT + EVENT + b"id\n" + EVENT + b"id: 2\nid: 3\n" + EVENT,
        [message(id="1"), message(id="1"), message(), message(id="3")],
        last_id="3",
    ),
    Stream("id-with-nul", b"id: 1\n\nid: 2\0\n" + EVENT, [message(id="1")], last_id="1"),
    Stream("id-not-complete", b"id: 1\n\nid: 2\ndata: x\n", [], last_id="1"),
    Stream(
        "id-no-utf-8",
        b"id: 1\n\nid: \xff\n" + EVENT,
        [(PeerFault.INVALID_UTF8, b"\xff"), message(id="1")],
        last_id="1",
    ),
    Stream(
        "type-no-utf-8",
        b"event: m\xff\n" + EVENT,
        [(PeerFault.INVALID_UTF8, b"m\xff"), message(event="m\ufffd")],
    ),
    Stream("type-with-u-fffd", "event: \ufffd\n".encode() + EVENT, [message(event="\ufffd")]),
    Stream("utf-8", "id: ü\nevent: é\ndata: €\n\n".encode(), [("é", "€".encode(), "ü", None)], last_id="ü"),
    Stream("data-no-utf-8", b'data: "\xff"\n\n', [message(b'"\xff"')]),
    Stream("as-large-as-allowed", b"data: " + b"x" * (MAX - 6) + b"\n\n", [message(b"x" * (MAX - 6))]),
    Stream(
        "too-large",
        b"id: 7\ndata: " + b"x" * (MAX - 5) + b"\nid: 8\nevent: y\n:\n\n" + EVENT,
        [(PeerFault.EVENT_TOO_LARGE, b"x" * (MAX - 10)), message()],
        comments=1,
    ),
    Stream(
        "too-many-lines",
        b"data: abc\r\n" * 200 + b"\r\n" + EVENT,
        [(PeerFault.EVENT_TOO_LARGE, b"\n".join([b"abc"] * 111)), message()],
    ),
    Stream(
        "too-large-and-more-data",
        b"x" * (MAX + 1) + b"\ndata: y\n\n" + EVENT,
        [(PeerFault.EVENT_TOO_LARGE, b""), message()],
    ),
    Stream(
        "too-large-no-data", b"x" * (MAX + 1) + b"\n\n" + EVENT, [(PeerFault.EVENT_TOO_LARGE, b""), message()]
    ),
)
ENDED = (
    Stream("whole", EVENT, [message()]),
    Stream("without-blank-line", EVENT[:-1], [(PeerFault.TRUNCATED_EVENT, ANSWER)], ("E-09",)),
    Stream("without-line-end", EVENT[:-2], [(PeerFault.TRUNCATED_EVENT, ANSWER)], ("E-09",)),
    Stream("cut-in-the-data", EVENT * 2 + b"data: {", [message()] * 2 + [(PeerFault.TRUNCATED_EVENT, b"{")]),
    Stream("cut-in-the-name", b"da", [(PeerFault.TRUNCATED_EVENT, b"")], ("E-09",)),
    Stream("cut-in-the-id", b"id: 4\n", [(PeerFault.TRUNCATED_EVENT, b"")], ("E-09",)),
    Stream("cut-in-a-comment", EVENT + b": pi", [message()], ("E-07",), comments=1),
    Stream("cut-in-the-bom", BOM[:2], [(PeerFault.TRUNCATED_EVENT, b"")]),
    Stream("cut-in-a-crlf", b"data: a\r\n\r", [message(b"a")], ("E-04",)),
    Stream("cut-while-too-large", b"data:" + b"x" * MAX, [(PeerFault.EVENT_TOO_LARGE, b"x" * (MAX - 4))]),
    Stream("nothing-lost", EVENT + b"\n\r\n\r", [message()]),
)
SIZES = pytest.mark.parametrize("size", [1, 2, 3, 5, 7, 64, 1100, 1 << 20])


def rows(streams: tuple[Stream, ...]) -> list[object]:
    return [
        pytest.param(row, id=row.name, marks=[pytest.mark.case(*row.cases)] if row.cases else [])
        for row in streams
    ]


@pytest.mark.req("R1", "R7")
@SIZES
@pytest.mark.parametrize("row", rows(STREAMS))
def test_streams(row: Stream, size: int) -> None:
    decoder = SseDecoder(MAX)
    found = []
    for chunk in pieces(row.data, size):
        decoder.receive_data(chunk)
        found += drain(decoder)
    assert found == row.found
    assert decoder.last_event_id == row.last_id
    assert decoder.retry == row.retry
    assert decoder.comments == row.comments
    assert decoder.stats()["scanned"] <= 2 * len(row.data)


@pytest.mark.req("R1")
@SIZES
@pytest.mark.parametrize("row", rows(ENDED))
def test_streams_that_end(row: Stream, size: int) -> None:
    assert decode(pieces(row.data, size), eof=True) == row.found


@pytest.mark.req("R1")
@pytest.mark.parametrize("row", STREAMS, ids=lambda row: row.name)
@pytest.mark.parametrize("trailing", [b"\n", b"\r", b"x", b"\r\n\xff", b"data", EVENT], ids=repr)
def test_trailing_bytes_change_nothing_before_them(row: Stream, trailing: bytes) -> None:
    found = decode([row.data + trailing])
    assert found[: len(row.found)] == row.found
    assert found == decode([row.data, trailing])


@pytest.mark.req("R1")
def test_one_buffer_after_another_without_a_pull_in_between() -> None:
    decoder = SseDecoder(MAX)
    for chunk in (bytearray(EVENT[:9]), memoryview(EVENT[9:]), EVENT):
        decoder.receive_data(chunk)
    assert decoder.stats()["buffered"] == 2 * len(EVENT)
    assert drain(decoder) == [message()] * 2
    assert decoder.stats()["buffered"] == 0


@pytest.mark.case("E-04")
def test_a_lone_cr_ends_the_event_at_once() -> None:
    decoder = SseDecoder(MAX)
    decoder.receive_data(b"data: a\r\r")
    assert drain(decoder) == [message(b"a")]
    decoder.receive_data(b"\ndata: b\r\n\r")  # the LF belonged to the CR
    assert drain(decoder) == [message(b"b")]


@pytest.mark.case("E-12")
@pytest.mark.req("R1")
def test_a_message_over_many_reads_is_one_event() -> None:
    big = b'{"jsonrpc":"2.0","id":1,"result":{"x":"' + "é".encode() * 5000 + b'"}}'
    for size in (1, 1000, 4096):
        assert decode(pieces(b"data: " + big + b"\n\n", size), 1 << 20) == [message(big)]


@pytest.mark.case("E-01")
def test_an_id_counts_from_its_blank_line_on() -> None:
    decoder = SseDecoder(MAX)
    decoder.receive_data(b"id: 1\ndata:\n")
    assert (decoder.next_event(), decoder.last_event_id) == (None, None)
    decoder.receive_data(b"\n")
    assert (decoder.next_event(), decoder.last_event_id) == (None, "1")


parts = st.sampled_from(
    [row.data for row in STREAMS + ENDED if len(row.data) < 100]
    + [
        b"\n",
        b"\r",
        b"\r\n",
        b":",
        b" ",
        b"data",
        b"data: ",
        b"id",
        b"event",
        b"retry:1",
        BOM,
        b"\xff",
        b"\0",
    ]
)


@pytest.mark.req("R1")
@pytest.mark.case("E-03", "E-04", "E-05", "E-09", "E-14")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(parts, max_size=12).map(b"".join),
    st.lists(st.integers(0, 60), max_size=20),
    st.integers(1, 300),
)
def test_any_split_gives_the_same(data: bytes, sizes: list[int], max_event: int) -> None:
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    chunks.append(data[at:])
    whole = decode([data], max_event, eof=True)
    assert decode(chunks, max_event, eof=True) == whole
    assert decode(pieces(data, 1), max_event, eof=True) == whole


USUAL = [
    *(b"event: message\n", b"data: x\n", b"data: " + b"y" * 40 + b"\n", b"data:\n", b"data: \n", b"data:z\n"),
    *(b"data: a\r", b"data: a\r\n", b"id: 1\n", b"event: other\n", b"retry: 5\n", b": ping\n"),
]


@pytest.mark.req("R1")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(USUAL), max_size=3).map(b"".join), max_size=6),
    st.sampled_from([b"\n", b"\n", b"\r\n", b"\r"]),
    st.lists(st.integers(0, 60), max_size=20),
)
def test_what_is_usual_is_read_like_everything_else(
    blocks: list[bytes], end: bytes, sizes: list[int]
) -> None:
    """An unknown field before it makes an event unusual, and means nothing."""
    usual, unusual = ([before + block + end for block in blocks] for before in (b"", b"x\n"))
    chunks, data = [], b"".join(usual)
    for size in sizes:
        chunks.append(data[:size])
        data = data[size:]
    assert decode([*chunks, data], 1 << 20, eof=True) == decode([b"".join(unusual)], 1 << 20, eof=True)


@pytest.mark.req("R1")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.lists(st.sampled_from(USUAL), max_size=3).map(b"".join), max_size=6),
    st.lists(st.integers(0, 60), max_size=20),
)
def test_the_data_of_messages_may_be_taken_together(blocks: list[bytes], sizes: list[int]) -> None:
    one, many = SseDecoder(MAX), SseDecoder(MAX)
    data = b"".join(block + b"\n" for block in blocks)
    for size in [*sizes, len(data)]:
        for decoder in (one, many):
            decoder.receive_data(data[:size])
        data = data[size:]
        found: list[Found] = []
        while (taken := many.next_data()) is not None:
            if isinstance(taken, list):
                found += [message(part, many.last_event_id) for part in taken]
            else:
                found.append(shown(taken))
        assert found == drain(one)
        assert (many.last_event_id, many.retry, many.comments) == (one.last_event_id, one.retry, one.comments)
        assert many.stats() == one.stats()


def told(data: bytes) -> list[RemoteProtocolError]:
    """The faults of a stream, as errors."""
    decoder = SseDecoder(MAX)
    decoder.receive_data(data)
    decoder.receive_eof()
    found = iter(decoder.next_event, None)
    return [RemoteProtocolError(item.fault, "") for item in found if isinstance(item, SseFault)]


WAYS: dict[PeerFault, Callable[[], list[RemoteProtocolError]]] = {
    PeerFault.EVENT_TOO_LARGE: lambda: told(b"x" * 2 * MAX),
    PeerFault.TRUNCATED_EVENT: lambda: told(b"data: x"),
}
"""How a peer comes to be told of the faults that only an event stream has."""


# limits ------------------------------------------------------------------------------------------


@pytest.mark.req("R7")
def test_the_default_limit_is_64_mib() -> None:
    from sansmcp.limits import CLIENT_LIMITS

    assert CLIENT_LIMITS.max_event == 64 << 20


@pytest.mark.req("R7")
@pytest.mark.parametrize("unit", [b"x" * 64, b":" * 64, b"x\n" * 32, b"data:\n" * 10, b":\n" * 32])
def test_an_endless_event_takes_no_memory(unit: bytes) -> None:
    decoder = SseDecoder(1 << 16)
    found: list[Found] = []
    tracemalloc.start()
    try:
        for _ in range(10_000):
            decoder.receive_data(unit)
            found += drain(decoder)
        assert tracemalloc.get_traced_memory()[1] < 400_000
    finally:
        tracemalloc.stop()
    assert len(found) == (0 if unit.startswith(b":") else 1)
    decoder.receive_data(b"\n\n" + EVENT)
    assert drain(decoder) == [message()]


@pytest.mark.req("R7")
def test_of_a_lost_event_its_begin_is_shown() -> None:
    big = b"data: " + ANSWER + b" " * 10_000
    for data in (big + b"\n\n", big):
        for size in (100, 1 << 20):
            assert decode(pieces(data, size), 8000, eof=True) == [
                (PeerFault.EVENT_TOO_LARGE, (ANSWER + b" " * 10_000)[:HEAD_SIZE])
            ]
    assert decode([big], 1 << 20, eof=True) == [
        (PeerFault.TRUNCATED_EVENT, (ANSWER + b" " * 10_000)[:HEAD_SIZE])
    ]


@pytest.mark.req("R1", "R7")
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("size", [1, 100, 1460, 1 << 16, 1 << 24])
def test_each_byte_is_searched_once_for_each_line_end(end: bytes, size: int) -> None:
    many = (b"data: " + b"x" * 50 + end + end) * 2000
    one = b"data: " + b"x" * 200_000 + end + end
    for data in (many, one, b"data: a\r" * 10_000 + b"\n", b"data: a\n" * 10_000 + b"\r"):
        decoder = SseDecoder(1 << 20)
        for chunk in pieces(data, size):
            decoder.receive_data(chunk)
            drain(decoder)
        assert decoder.stats()["scanned"] <= 2 * len(data)


def test_misuse() -> None:
    with pytest.raises(LocalProtocolError, match="positive"):
        SseDecoder(0)
    decoder = SseDecoder(1)
    decoder.receive_eof()
    decoder.receive_eof()
    with pytest.raises(LocalProtocolError, match="end of the stream"):
        decoder.receive_data(b"x")


def test_nothing_of_the_data_is_shown() -> None:
    assert "secret" not in repr(ServerSentEvent(MESSAGE, b"secret"))
    assert "secret" not in repr(SseFault(PeerFault.TRUNCATED_EVENT, b"secret"))


# writing -----------------------------------------------------------------------------------------


@pytest.mark.req("R1")
def test_what_is_written() -> None:
    assert encode_event(ANSWER) == EVENT
    assert encode_event(b"{\r\n}\r", event="x", id="7", retry=0) == (
        b"event: x\nid: 7\nretry: 0\ndata: {\ndata: }\ndata: \n\n"
    )
    assert encode_event(b"", id="7") == b"id: 7\ndata: \n\n"


@pytest.mark.req("R8")
@pytest.mark.case("E-07")
def test_a_keep_alive_is_a_comment() -> None:
    assert encode_comment() == b":\n\n"
    assert encode_comment("ping ü") == ": ping ü\n\n".encode()
    assert decode([encode_comment() + encode_comment("data: x") + EVENT]) == [message()]


@pytest.mark.parametrize("bad", ["a\nb", "a\rb", "\0", "\n", "\ud800"], ids=ascii)
def test_a_field_cannot_become_two(bad: str) -> None:
    with pytest.raises(LocalProtocolError):
        encode_event(ANSWER, event=bad)
    with pytest.raises(LocalProtocolError):
        encode_event(ANSWER, id=bad)
    with pytest.raises(LocalProtocolError):
        encode_comment(bad)
    with pytest.raises(LocalProtocolError, match="milliseconds"):
        encode_event(ANSWER, retry=-1)


@pytest.mark.req("R1")
@given(
    st.binary() | st.lists(st.sampled_from([b"\n", b"\r", b"data: x", b"", b" a"])).map(b"".join),
    st.none() | st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])),
    st.none() | st.text(st.characters(exclude_characters="\r\n\0", exclude_categories=["Cs"])),
    st.none() | st.integers(0, 10**14),
)
def test_one_event_comes_back(data: bytes, event: str | None, id: str | None, retry: int | None) -> None:
    decoder = SseDecoder(1 << 20)
    decoder.receive_data(encode_event(data, event=event, id=id, retry=retry))
    joined = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    found = [(event or MESSAGE, joined, id or None, retry)] if joined else []
    assert drain(decoder) == found
    assert (decoder.last_event_id, decoder.retry) == (id or None, retry)
    decoder.receive_eof()
    assert drain(decoder) == []
