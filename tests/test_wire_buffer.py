"""Lines come out whole however the bytes came in, and no byte is looked at twice."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.wire.buffer import LineTooLongError, ReceiveBuffer

MANY = 1 << 30

LINES = [
    ("nothing", b"", [], b""),
    ("no newline", b"abc", [], b"abc"),
    ("one line", b"abc\n", [b"abc"], b""),
    ("two lines and a rest", b"a\nbc\nd", [b"a", b"bc"], b"d"),
    ("empty lines", b"\n\na\n\n", [b"", b"", b"a", b""], b""),
    ("crlf", b"a\r\n\r\nb\r\n", [b"a", b"", b"b"], b""),
    ("only one cr is taken off", b"a\r\r\n", [b"a\r"], b""),
    ("cr inside", b"a\rb\n\r\rb\n", [b"a\rb", b"\r\rb"], b""),
    ("cr at the end", b"a\r", [], b"a\r"),
    ("other line ends", b"a\x0b\x0c\x1c\x85\xe2\x80\xa8b\n", [b"a\x0b\x0c\x1c\x85\xe2\x80\xa8b"], b""),
    ("long lines", b"x" * 3000 + b"\n" + b"y" * 5000 + b"\r\n" + b"z", [b"x" * 3000, b"y" * 5000], b"z"),
]


def drain(buffer: ReceiveBuffer, max_line: int = MANY) -> list[bytes]:
    lines = []
    while (line := buffer.take_line(max_line)) is not None:
        lines.append(line)
    return lines


def chunked(data: bytes, sizes: list[int]) -> list[bytes]:
    chunks = []
    at = 0
    for size in sizes:
        chunks.append(data[at : at + size])
        at += size
    return [*chunks, data[at:]]


@pytest.mark.req("Q1")
@pytest.mark.case("S-04", "S-13")
@pytest.mark.parametrize(("data", "lines", "rest"), [row[1:] for row in LINES], ids=[row[0] for row in LINES])
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1023, 1024, 4096, MANY])
def test_lines_in_chunks_of_one_size(data: bytes, lines: list[bytes], rest: bytes, size: int) -> None:
    buffer = ReceiveBuffer()
    found = []
    for at in range(0, len(data), size):
        buffer.append(data[at : at + size])
        found += drain(buffer)
    assert found == lines
    assert len(buffer) == len(rest)
    assert buffer.peek(MANY) == rest


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"a", b"\r", b"\n", b"\r\n", b"x" * 1500])).map(b"".join), st.data())
def test_any_split_and_any_time_to_drain(data: bytes, draw: st.DataObject) -> None:
    buffer = ReceiveBuffer()
    found = []
    for chunk in chunked(data, draw.draw(st.lists(st.integers(0, 2000), max_size=12))):
        buffer.append(chunk)
        if draw.draw(st.booleans()):
            found += drain(buffer)
        assert len(buffer) == len(buffer.peek(MANY))
    found += drain(buffer)
    *lines, rest = data.split(b"\n")
    assert found == [line.removesuffix(b"\r") for line in lines]
    assert buffer.peek(MANY) == rest
    assert buffer.scanned == len(data)


@pytest.mark.req("Q2")
@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_a_long_line_is_told_and_nothing_consumed(size: int) -> None:
    data = b"12345678\nrest"
    buffer = ReceiveBuffer()
    with pytest.raises(LineTooLongError):
        for at in range(0, len(data), size):
            buffer.append(data[at : at + size])
            buffer.take_line(7)
    assert buffer.peek(7) == b"1234567"
    with pytest.raises(LineTooLongError):
        buffer.take_line(7)
    buffer.append(b"" if len(buffer) == len(data) else data[len(buffer) :])
    assert buffer.take_line(8) == b"12345678"
    assert buffer.peek(MANY) == b"rest"


@pytest.mark.parametrize("keep", [0, 3, 100])
@pytest.mark.parametrize("size", [1, 3, 8, 100])
def test_dropping_a_line_keeps_its_end_and_the_next_line(size: int, keep: int) -> None:
    data = b"12345678\nrest\n"
    buffer = ReceiveBuffer()
    dropped, tail, ended = 0, b"", False
    for at in range(0, len(data), size):
        buffer.append(data[at : at + size])
        if not ended:
            more, end, ended = buffer.drop_line(keep)
            dropped += more
            tail = (tail + end)[-keep:] if keep else b""
    assert (dropped, tail, ended) == (8, b"12345678"[-keep:] if keep else b"", True)
    assert drain(buffer) == [b"rest"]


def test_dropping_takes_what_take_line_had_looked_at() -> None:
    buffer = ReceiveBuffer()
    buffer.append(b"x" * 2000)
    assert buffer.take_line(MANY) is None
    buffer.append(b"yz")
    assert buffer.take_line(MANY) is None
    buffer.append(b"!\nnext\n")
    assert buffer.drop_line(4) == (2003, b"xyz!", True)
    assert drain(buffer) == [b"next"]
    assert buffer.drop_line(4) == (0, b"", False)


def test_chunks_that_the_caller_writes_over_are_copied() -> None:
    buffer = ReceiveBuffer()
    chunk = bytearray(b"ab")
    buffer.append(chunk)
    buffer.append(memoryview(chunk))
    chunk[:] = b"\n\n"
    buffer.append(b"c\n")
    assert drain(buffer) == [b"ababc"]


@pytest.mark.req("Q1")
@pytest.mark.parametrize("size", [1, 64, 4096])
def test_every_byte_is_searched_once_whatever_the_chunks(size: int) -> None:
    data = b"x" * 200_000 + b"\n"
    buffer = ReceiveBuffer()
    lines = 0
    for at in range(0, len(data), size):
        buffer.append(data[at : at + size])
        lines += len(drain(buffer))
    assert lines == 1
    assert buffer.scanned == len(data)


def test_a_whole_line_of_a_chunk_of_its_own_is_cut_once() -> None:
    """Lines of one chunk are slices of it: nothing is kept back in between."""
    buffer = ReceiveBuffer()
    buffer.append(b"a\nb\nc")
    assert buffer.take_line(MANY) == b"a"
    assert len(buffer) == len(b"b\nc")
    assert drain(buffer) == [b"b"]


def test_small_pieces_do_not_become_many_objects() -> None:
    buffer = ReceiveBuffer()
    for _ in range(10_000):
        buffer.append(b"xy")
        assert buffer.take_line(MANY) is None
    assert len(buffer._parts) <= 2
    for _ in range(100):
        buffer.append(b"z" * 1024)
        buffer.append(b"!")
        assert buffer.take_line(MANY) is None
    assert len(buffer._parts) <= 2 + 200
