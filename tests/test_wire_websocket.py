"""Frames of a WebSocket: each case whole, byte by byte, in threes, and with more behind it."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import CloseCode, PeerFault
from sansmcp.wire.lines import LineFault
from sansmcp.wire.websocket import Closed, Frames, Message, Pinged, Ponged

pytestmark = pytest.mark.req("S1")

MAX = 100
TEXT, BYTES, CLOSE, PING, PONG, MORE = 1, 2, 8, 9, 10, 0
BROKEN = Closed(1002, "this is no proper frame of a WebSocket", PeerFault.INVALID_FRAME)


def frame(opcode: int, payload: bytes = b"", *, fin: bool = True, rsv: int = 0, mask: bool = True) -> bytes:
    """A frame as a client sends it; the key of its mask is zero, so that the payload can be read."""
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    bit = 0x80 if mask else 0
    if len(payload) < 126:
        head = struct.pack("!BB", first, bit | len(payload))
    elif len(payload) < 65536:
        head = struct.pack("!BBH", first, bit | 126, len(payload))
    else:
        head = struct.pack("!BBQ", first, bit | 127, len(payload))
    return head + (b"\0\0\0\0" if mask else b"") + payload


def close(code: int, reason: bytes = b"") -> bytes:
    return frame(CLOSE, struct.pack("!H", code) + reason)


def shown(event: object) -> Any:
    """What an event says, to be compared."""
    match event:
        case Message(data=data):
            return data
        case Pinged(payload=payload):
            return ("ping", payload)
        case Ponged():
            return "pong"
        case LineFault():
            return (event.fault, event.id, event.like_response)
        case Closed():
            return (event.code, event.reason, event.fault)
        case _:
            raise AssertionError(event)


def told(data: bytes, sizes: list[int], *, eof: bool = False, limit: int = MAX) -> list[Any]:
    frames = Frames(limit, of_client=False)
    events = []
    at = 0
    while at < len(data):
        size = sizes[at % len(sizes)]
        frames.receive_data(data[at : at + size])
        while (event := frames.next_event()) is not None:
            events.append(shown(event))
        at += size
    if eof:
        frames.receive_eof()
    while (event := frames.next_event()) is not None:
        events.append(shown(event))
    return events


REQUEST = b'{"jsonrpc":"2.0","id":7,"method":"' + b"x" * MAX + b'"}'
LATE_ID = b'{"jsonrpc":"2.0","result":{"text":"' + b"x" * MAX + b'"},"id":7}'
ENDLESS = b'{"jsonrpc":"2.0","result":{"text":"' + b"x" * 3 * MAX + b'"},"id":7}'
TOO_LARGE = PeerFault.MESSAGE_TOO_LARGE
EURO = "€".encode()

CASES: dict[str, tuple[bytes, list[Any]]] = {
    "a message": (frame(TEXT, b'{"a":1}'), [b'{"a":1}']),
    "two": (frame(TEXT, b"1") + frame(TEXT, b"2"), [b"1", b"2"]),
    "fragments": (
        frame(TEXT, b'{"a"', fin=False) + frame(MORE, b":", fin=False) + frame(MORE, b"1}"),
        [b'{"a":1}'],
    ),
    "a ping between fragments": (
        frame(TEXT, b"[1", fin=False) + frame(PING, b"there?") + frame(MORE, b"]"),
        [("ping", b"there?"), b"[1]"],
    ),
    "a fragment without bytes": (frame(TEXT, b"", fin=False) + frame(MORE, b"{}"), [b"{}"]),
    "a character over two fragments": (
        frame(TEXT, b'"' + EURO[:1], fin=False) + frame(MORE, EURO[1:] + b'"'),
        [b'"' + EURO + b'"'],
    ),
    "a masked one": (b"\x81\x82\x01\x02\x03\x04" + bytes([0x7B ^ 1, 0x7D ^ 2]), [b"{}"]),
    "as large as allowed": (frame(TEXT, b"[" + b" " * (MAX - 2) + b"]"), [b"[" + b" " * (MAX - 2) + b"]"]),
    "white space": (frame(TEXT, b" \r\n") + frame(TEXT, b"{}"), [b"{}"]),
    "nothing": (frame(TEXT) + frame(TEXT, b"{}"), [b"{}"]),
    "a line end inside": (frame(TEXT, b'{\n"a":1}'), [b'{\n"a":1}']),
    "a pong": (frame(PONG), ["pong"]),
    "too large": (frame(TEXT, REQUEST) + frame(TEXT, b"{}"), [(TOO_LARGE, 7, False), b"{}"]),
    "too large, in fragments": (
        frame(TEXT, REQUEST[:90], fin=False) + frame(MORE, REQUEST[90:]) + frame(TEXT, b"{}"),
        [(TOO_LARGE, 7, False), b"{}"],
    ),
    "too large, the id at the end": (
        frame(TEXT, LATE_ID) + frame(TEXT, b"{}"),
        [(TOO_LARGE, 7, True), b"{}"],
    ),
    "so large that its end is not awaited": (
        frame(TEXT, ENDLESS) + frame(TEXT, b"{}"),
        [(TOO_LARGE, None, True), b"{}"],
    ),
    "too large, no message": (frame(TEXT, b"x" * (MAX + 1)), [(TOO_LARGE, None, False)]),
    "a length of 64 bits": (frame(TEXT, b'"' + b"x" * 70_000 + b'"'), [(TOO_LARGE, None, False)]),
    "closed": (close(1000, b"bye"), [(1000, "bye", None)]),
    "closed, and more": (close(1001) + frame(TEXT, b"{}"), [(1001, "", None)]),
    "closed without a code": (frame(CLOSE), [(1005, "", None)]),
    "closed with a code of its own": (close(4001, b"mine"), [(4001, "mine", None)]),
    "bytes": (
        frame(BYTES, b"{}"),
        [(1003, "a message must be text, not bytes", PeerFault.BINARY_MESSAGE)],
    ),
    "no UTF-8": (frame(TEXT, b"\xff"), [(1007, "text that is no UTF-8", PeerFault.INVALID_UTF8)]),
    "half a character": (
        frame(TEXT, EURO[:1]),
        [(1007, "text that is no UTF-8", PeerFault.INVALID_UTF8)],
    ),
    "a surrogate in UTF-8": (
        frame(TEXT, b"\xed\xa0\x80"),
        [(1007, "text that is no UTF-8", PeerFault.INVALID_UTF8)],
    ),
    "not masked": (frame(TEXT, b"{}", mask=False), [shown(BROKEN)]),
    "a reserved bit": (frame(TEXT, b"{}", rsv=4), [shown(BROKEN)]),
    "compressed": (frame(TEXT, b"\xaaV\n\x00", rsv=4), [shown(BROKEN)]),
    "an unknown opcode": (frame(3), [shown(BROKEN)]),
    "a continuation of nothing": (frame(MORE, b"{}"), [shown(BROKEN)]),
    "a message within a message": (frame(TEXT, b"{", fin=False) + frame(TEXT, b"}"), [shown(BROKEN)]),
    "a ping in fragments": (frame(PING, fin=False), [shown(BROKEN)]),
    "a long ping": (frame(PING, b"x" * 126), [shown(BROKEN)]),
    "closed with half a code": (frame(CLOSE, b"\x03"), [shown(BROKEN)]),
    "closed with a code that is never sent": (close(1006), [shown(BROKEN)]),
    "closed with an impossible code": (close(999), [shown(BROKEN)]),
    "closed with a reason that is no UTF-8": (
        close(1000, b"\xff"),
        [(1007, "text that is no UTF-8", PeerFault.INVALID_UTF8)],
    ),
    "a length that could be shorter": (
        b"\x81\xfe\x00\x02\0\0\0\0{}",
        [shown(BROKEN)],
    ),
    "a length past 63 bits": (b"\x81\xff" + b"\xff" * 8, [shown(BROKEN)]),
    "HTTP": (b"GET /", [shown(BROKEN)]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("sizes", [[1 << 20], [1], [3], [1, 7, 2]], ids=["whole", "bytes", "threes", "mixed"])
def test_the_same_events_however_it_is_cut(name: str, sizes: list[int]) -> None:
    data, events = CASES[name]
    assert told(data, sizes) == events
    if not any(isinstance(e, tuple) and isinstance(e[0], int) for e in events):
        assert told(data + frame(TEXT, b"[0]"), sizes) == [*events, b"[0]"]
        assert told(data, sizes, eof=True) == [*events, (1006, "", None)]
    else:
        assert told(data + b"more", sizes, eof=True) == events


@settings(max_examples=200)
@given(
    messages=st.lists(
        st.tuples(st.text(min_size=1, max_size=60).map(lambda t: f"[{t}]".encode()), st.integers(1, 9)),
        max_size=6,
    ),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=5),
    pings=st.booleans(),
)
def test_any_fragments_in_any_chunks(
    messages: list[tuple[bytes, int]], sizes: list[int], pings: bool
) -> None:
    data, wanted = b"", []
    for message, step in messages:
        parts = [message[i : i + step] for i in range(0, len(message), step)]
        for i, part in enumerate(parts):
            data += frame(MORE if i else TEXT, part, fin=i == len(parts) - 1)
            if pings:
                data += frame(PING, b"%d" % i)
        wanted.append(message if len(message) <= MAX else (TOO_LARGE, None, False))
    got = [e for e in told(data, sizes) if e[0] != "ping"]
    assert got == wanted


@settings(max_examples=300)
@given(data=st.binary(max_size=200), sizes=st.lists(st.integers(1, 20), min_size=1, max_size=4))
def test_any_bytes_give_the_same_events_however_they_are_cut(data: bytes, sizes: list[int]) -> None:
    assert told(data, sizes, eof=True) == told(data, [1 << 20], eof=True)


def pair(limit: int = MAX) -> tuple[Frames, Frames]:
    return Frames(limit, of_client=True), Frames(limit, of_client=False)


@pytest.mark.parametrize("size", [1, 125, 126, 65535, 65536])
def test_what_one_end_writes_the_other_reads(size: int) -> None:
    client, server = pair(1 << 20)
    text = b'"' + b"x" * size + b'"'
    for writer, reader in ((client, server), (server, client)):
        assert reader.receive_data(writer.message(text)) == b""
        assert shown(reader.next_event()) == text
        reader.receive_data(writer.ping())
        assert shown(reader.next_event()) == ("ping", b"")
        reader.receive_data(writer.pong(b"x"))
        assert shown(reader.next_event()) == "pong"
        assert reader.next_event() is None


@pytest.mark.parametrize("of_client", [True, False])
def test_a_close_is_answered_once_and_is_the_end(of_client: bool) -> None:
    a, b = pair() if of_client else reversed(pair())
    first = a.close(CloseCode.GOING_AWAY, "later")
    assert first
    assert not a.close()
    assert not a.open
    answer = b.receive_data(first)
    assert shown(b.next_event()) == (1001, "later", None)
    assert b.over
    assert not b.open
    assert a.receive_data(answer) == b""
    assert shown(a.next_event()) == (1001, "later", None)
    assert a.receive_data(b"more") == b.receive_data(b"more") == b""
    a.receive_eof()
    b.receive_eof()
    assert a.next_event() is b.next_event() is None


def test_what_comes_after_ones_own_close_is_dropped_up_to_the_end() -> None:
    server = Frames(MAX, of_client=False)
    server.close()
    assert server.receive_data(frame(TEXT, b"{}") + frame(BYTES, b"x")) == b""
    assert shown(server.next_event()) == (1003, "a message must be text, not bytes", PeerFault.BINARY_MESSAGE)
    assert server.next_event() is None


def test_a_fault_is_told_the_peer_before_it_is_told_here() -> None:
    client, server = pair()
    farewell = server.receive_data(frame(TEXT, b"\xff"))
    client.receive_data(farewell)
    assert shown(client.next_event()) == (1007, "text that is no UTF-8", None)


def test_no_more_is_held_than_allowed() -> None:
    """AA12: also not of a message without end, in pieces of any size."""
    server = Frames(MAX, of_client=False)
    server.receive_data(frame(TEXT, b"{" + b"x" * 1000, fin=False))
    for _ in range(100):
        server.receive_data(frame(MORE, b"x" * 5000, fin=False))
        assert server.stats()["buffered"] <= 4096 + 1024 + MAX
    events = []
    while (event := server.next_event()) is not None:
        events.append(shown(event))
    assert events == [(TOO_LARGE, None, False)]


def test_the_words_for_a_code() -> None:
    assert Closed(1009, "").why == "1009, message too big"
    assert Closed(4000, "mine").why == "4000, a reason of its own: mine"
    assert "\x1b" not in Closed(1000, "\x1b[31mred").why
