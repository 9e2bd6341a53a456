"""Any split of a stream gives the same lines, and a bad line costs itself alone."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.errors import LocalProtocolError, PeerFault
from sansmcp.limits import CLIENT_LIMITS
from sansmcp.wire.jsoncodec import JsonError, default_codec
from sansmcp.wire.jsonrpc import ErrorResponse, Notification, Request, ResultResponse, classify
from sansmcp.wire.lines import LineDecoder, LineFault, encode_line
from sansmcp.wire.peek import HEAD_SIZE, TAIL_SIZE

from .vectors.line_streams import ENDED, MAX, ONE, PING, STREAMS, Found, Stream


def shown(item: bytes | LineFault) -> Found:
    return item if isinstance(item, bytes) else (item.fault, item.id, item.like_response)


def drain(decoder: LineDecoder) -> list[bytes | LineFault]:
    found = []
    while (item := decoder.next_line()) is not None:
        found.append(item)
    return found


def decode(chunks: list[bytes], max_message: int = MAX, *, eof: bool = False) -> list[bytes | LineFault]:
    decoder = LineDecoder(max_message)
    found = []
    for chunk in chunks:
        decoder.receive_data(chunk)
        found += drain(decoder)
        assert decoder.stats()["buffered"] <= max_message + len(chunk) + HEAD_SIZE + TAIL_SIZE
    if eof:
        decoder.receive_eof()
        found += drain(decoder)
        assert drain(decoder) == []
        assert decoder.stats()["buffered"] <= HEAD_SIZE + TAIL_SIZE
    return found


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def rows(streams: tuple[Stream, ...]) -> list[object]:
    return [
        pytest.param(row, id=row.name, marks=[pytest.mark.case(*row.cases)] if row.cases else [])
        for row in streams
    ]


@pytest.mark.req("Q1", "Q2", "Q10")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("row", rows(STREAMS))
def test_streams(row: Stream, size: int) -> None:
    assert [shown(item) for item in decode(pieces(row.data, size))] == row.found


@pytest.mark.req("Q1", "Q2")
@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 20])
@pytest.mark.parametrize("row", rows(ENDED))
def test_streams_that_end(row: Stream, size: int) -> None:
    assert [shown(item) for item in decode(pieces(row.data, size), eof=True)] == row.found


@pytest.mark.req("Q1")
@pytest.mark.parametrize(
    "row", [row for row in STREAMS if row.data.endswith(b"\n")], ids=lambda row: row.name
)
@pytest.mark.parametrize("trailing", [b"\n", b"{", b"\r", b"x\n", b"\xff\n", PING + b"\n" + ONE])
def test_trailing_bytes_change_nothing_before_them(row: Stream, trailing: bytes) -> None:
    found = [shown(item) for item in decode([row.data + trailing])]
    assert found[: len(row.found)] == row.found
    assert found == [shown(item) for item in decode([row.data, trailing])]


def heads(found: list[bytes | LineFault]) -> list[object]:
    return [(shown(item), item.head) if isinstance(item, LineFault) else item for item in found]


parts = st.sampled_from(
    [row.data for row in STREAMS + ENDED]
    + [b"\n", b"\r", b"\r\n", b" ", b"{", b'"id":7', b"}", b"\xef", b"\xbb\xbf", b"\xff"]
)


@pytest.mark.req("Q1")
@pytest.mark.case("S-13")
@settings(max_examples=300, deadline=None)
@given(
    st.lists(parts, max_size=8).map(b"".join),
    st.lists(st.integers(0, 300), max_size=20),
    st.integers(1, 300),
    st.booleans(),
)
def test_any_split_gives_the_same(data: bytes, sizes: list[int], max_message: int, eof: bool) -> None:
    chunks, at = [], 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    chunks.append(data[at:])
    whole = heads(decode([data], max_message, eof=eof))
    assert heads(decode(chunks, max_message, eof=eof)) == whole
    assert heads(decode(pieces(data, 1), max_message, eof=eof)) == whole
    for item in whole:
        assert not isinstance(item, bytes) or (
            b"\n" not in item and item.strip() and len(item) <= max_message
        )


@pytest.mark.req("Q2")
@pytest.mark.case("S-10")
def test_a_line_past_the_common_64_kib_passes_and_one_past_the_limit_is_dropped() -> None:
    decoder = LineDecoder(16 << 20)
    message = b'{"jsonrpc":"2.0","id":1,"result":{"t":"' + b"x" * 65_500 + b'"}}'
    for chunk in [*pieces(message + b"\n", 4096), *[b"y" * (1 << 20)] * 20]:
        decoder.receive_data(chunk)
    decoder.receive_data(b"\n" + PING + b"\n")
    assert [shown(item) for item in drain(decoder)] == [
        message,
        (PeerFault.MESSAGE_TOO_LARGE, None, False),
        PING,
    ]


@pytest.mark.req("Q2")
@pytest.mark.parametrize("unit", [b"x", b'{"result":"'], ids=["told at once", "told later"])
def test_an_endless_line_takes_no_memory(unit: bytes) -> None:
    decoder = LineDecoder(1 << 16)
    faults = 0
    tracemalloc.start()
    try:
        decoder.receive_data(unit)
        for _ in range(10_000):
            decoder.receive_data(b"x" * 4096)
            faults += len(drain(decoder))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert faults == 1
    assert peak < 1 << 19


@pytest.mark.req("Q1")
@pytest.mark.parametrize("size", [1, 100, 4096])
@pytest.mark.parametrize("max_message", [1000, 1 << 30], ids=["too long", "long"])
def test_no_byte_is_searched_more_than_twice(size: int, max_message: int) -> None:
    data = (b'{"result":"' + b"x" * 100_000 + b'"}\n') * 2
    decoder = LineDecoder(max_message)
    for chunk in pieces(data, size):
        decoder.receive_data(chunk)
        drain(decoder)
    assert decoder.stats()["scanned"] <= 2 * len(data)


def test_a_fault_keeps_the_start_of_its_line_and_no_more() -> None:
    line = b'{"jsonrpc":"2.0","id":3,"result":"' + b"z" * 10_000
    too_large, header, truncated = decode(
        [line + b"\n" + b"Content-Length: 5\r\n" + line[:9000]], max_message=9000, eof=True
    )
    assert isinstance(too_large, LineFault)
    assert isinstance(header, LineFault)
    assert isinstance(truncated, LineFault)
    assert too_large.head == truncated.head == line[:HEAD_SIZE]
    assert header.head == b"Content-Length: 5"
    assert "zzz" not in repr(too_large)


def test_chunks_may_be_of_any_bytes_like_type_and_are_the_callers_own() -> None:
    decoder = LineDecoder(MAX)
    chunk = bytearray(PING)
    decoder.receive_data(memoryview(chunk))
    chunk[:] = b"x" * len(chunk)
    decoder.receive_data(bytearray(b"\n"))
    assert drain(decoder) == [PING]


def test_the_end_is_the_end() -> None:
    decoder = LineDecoder(MAX)
    decoder.receive_eof()
    decoder.receive_eof()
    with pytest.raises(LocalProtocolError, match="end of the stream"):
        decoder.receive_data(b"x")
    assert decoder.next_line() is None


@pytest.mark.parametrize("max_message", [0, -1])
def test_a_limit_is_positive(max_message: int) -> None:
    with pytest.raises(LocalProtocolError, match="max_message"):
        LineDecoder(max_message)


@pytest.mark.req("Q1")
@pytest.mark.parametrize("payload", [b"", b"  ", b"a\nb", b"a\rb", PING + b"\n", PING + b"\r\n"])
def test_what_is_no_line_is_not_written(payload: bytes) -> None:
    with pytest.raises(LocalProtocolError):
        encode_line(payload)


@pytest.mark.req("Q1", "Q10")
@settings(deadline=None)
@given(st.lists(st.binary(min_size=1).filter(lambda b: b.strip() and not {10, 13} & set(b)), max_size=5))
def test_what_is_written_is_read(payloads: list[bytes]) -> None:
    stream = b"".join(map(encode_line, payloads))
    if not stream.startswith(b"\xef\xbb\xbf"):
        lines = [item.head if isinstance(item, LineFault) else item for item in decode([stream], 1 << 20)]
        assert lines == payloads


# from bytes to messages --------------------------------------------------------------------------


@pytest.mark.req("Q1")
@pytest.mark.case("S-01", "S-02", "S-05", "S-08", "S-12", "S-13")
@pytest.mark.parametrize("size", [1, 3, 1 << 20])
def test_messages_out_of_a_dirty_stream(size: int) -> None:
    codec = default_codec()
    text = "a\u2028b\u2029\x85€🙂日本"
    stream = (
        b"Starting server on port 0\r\n"
        + encode_line(codec.dumps({"jsonrpc": "2.0", "id": 1, "result": {"t": text}}))
        + b'\n{"jsonrpc":"2.0","id":2,"method":"ping","x":"\xff\xfe"}\n'
        + b'{"jsonrpc":"2.0","id":"3","method":"ping","params":{"t":"'
        + text.encode()
        + b'"}}\r\n'
        + b'{"jsonrpc":"2.0","method":"notifications/x"}\n'
        + b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"?"}}\n'
    )
    messages: list[object] = []
    for line in decode(pieces(stream, size), CLIENT_LIMITS.max_message):
        assert isinstance(line, bytes)
        try:
            messages.append(classify(codec.loads(line)))
        except JsonError as error:
            messages.append(error.fault)
    noise, result, broken, request, notification, refusal = messages
    assert noise is PeerFault.INVALID_JSON
    assert broken is PeerFault.INVALID_UTF8
    assert isinstance(result, ResultResponse)
    assert result.result == {"t": text}
    assert isinstance(request, Request)
    assert (request.id, request.params) == ("3", {"t": text})
    assert isinstance(notification, Notification)
    assert isinstance(refusal, ErrorResponse)
