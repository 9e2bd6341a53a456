"""The measure of depth agrees with counting by hand, on JSON and on noise."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.wire import depth
from sansmcp.wire.depth import nests_deeper


def by_hand(data: bytes) -> int:
    """The deepest nesting outside of strings, one byte at a time."""
    deepest = now = at = 0
    inside = False
    while at < len(data):
        byte = data[at : at + 1]
        at += 1
        if byte == b"\\" and data[at : at + 1] in {b"\\", b'"'}:
            at += 1
        elif byte == b'"':
            inside = not inside
        elif not inside and byte in {b"[", b"{"}:
            now += 1
            deepest = max(deepest, now)
        elif not inside and byte in {b"]", b"}"}:
            now -= 1
    return deepest


pieces = st.sampled_from(rb"""[ { ] } [] [[[ ]]] " "" "[" "]" \ \" \\ a ,""".split())


@settings(max_examples=500, deadline=None)
@given(
    st.lists(pieces, max_size=60).map(b"".join), st.integers(1, 12), st.sampled_from([1, 2, 3, 7, 1 << 18])
)
def test_it_agrees_with_counting_by_hand(data: bytes, limit: int, window: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(depth, "_WINDOW", window)
        patch.setattr(depth, "_SHORT", len(data) % 3 * 50)
        assert nests_deeper(data, limit) == (by_hand(data) > limit)
        assert nests_deeper(bytearray(data), limit) == (by_hand(data) > limit)


@pytest.mark.parametrize("size", [1 << 18, (1 << 18) + 1, 3 << 18])
def test_strings_and_escapes_across_windows(size: int) -> None:
    filler = b'"' + b"\\" * (size // 2 * 2) + b'[[[[",'
    assert not nests_deeper(b"[" + filler + b"[1]]", 2)
    assert nests_deeper(b"[" + filler + b"[[1]]]", 2)


@pytest.mark.parametrize("unit", [b'"', b'""', b'"["', b'"[', b"[]", b"]", b"\\", b'\\"', b"{[]}"])
def test_no_text_makes_many_times_its_size(unit: bytes) -> None:
    data = unit * ((8 << 20) // len(unit))
    tracemalloc.start()
    try:
        nests_deeper(data, 128)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(data)
