"""What is seen of a message that nobody can read in full."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.wire.jsonrpc import RequestId
from sansmcp.wire.peek import (
    HEAD_SIZE,
    Sighting,
    excerpt,
    find_id,
    like_json,
    like_response,
    sight,
    wants_parse_error,
)

HEADS: list[tuple[bytes, RequestId | None, bool]] = [
    # the common orders of members
    (b'{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"te', 7, True),
    (b'{"jsonrpc":"2.0","id":"a-1","error":{"code":1', "a-1", True),
    (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"na', 7, False),
    (b'{"method":"tools/call","id":7,"params":{"result":1', 7, False),
    (b' {\t"jsonrpc" : "2.0" , "id" : 7 , "result" : {', 7, True),
    (b'{"id":0,"jsonrpc":"2.0","result":{}', 0, True),
    (b'{"id":"","result":{}', "", True),
    (b'{"id":-7,"result":{}', -7, True),
    (b'{"id":12345678901234567890123,"result":{}', 12345678901234567890123, True),
    (rb'{"id":"\u0061\"","result":{}', 'a"', True),
    # a nested value that is all there can be stepped over
    (b'{"params":{"a":[{"id":1}],"b":"}"},"id":7,"method":"x"', 7, False),
    (b'{"result":{"id":1},"id":7}', 7, True),
    (b'{"x":null,"y":true,"z":1.5,"id":7,"result":{}', 7, True),
    # one that is not, cannot
    (b'{"result":{"id":1,"text":"', None, True),
    (b'{"params":{"a":[1,2],"id":7', None, False),
    (b'{"method":"x","params":{"id":7}', None, False),
    # what is not certain
    (b'{"id":7', None, False),
    (b'{"id":77777', None, False),
    (b'{"id":"abc', None, False),
    (b'{"id":"abc"', None, False),
    (b'{"id":7}', 7, False),
    (b'{"x":"\\', None, False),
    (b'{"x":"\n","id":7,', None, False),
    (b'{"id":1,"id":2,"result":{}', None, True),
    # what is no id
    (b'{"id":null,"result":{}', None, True),
    (b'{"id":true,"result":{}', None, True),
    (b'{"id":1.0,"result":{}', None, True),
    (b'{"id":1e2,"result":{}', None, True),
    (b'{"id":[1],"result":{}', None, True),
    (b'{"id":--1,"result":{}', None, False),
    (rb'{"id":"\ud800","result":{}', None, True),
    (rb'{"id":"\x","result":{}', None, True),
    (b'{"id":"\xff","result":{}', None, True),
    (b'{"id":"' + b"a" * 1000 + b'","result":{}', None, True),
    # what is no object
    (b"", None, False),
    (b"[", None, False),
    (b'[{"id":7,"result":{}', None, False),
    (b'"id":7,', None, False),
    (b"not json", None, False),
    (b'{"id" 7,', None, False),
    (b'{"id":7 "result":{}', None, False),
    (b'{"a":{"b":1}}{"id":7,', None, False),
    (b'{"a":1}{"id":7,', None, False),
    (b'{"a":]"id":7,', None, False),
]


@pytest.mark.req("Q2")
@pytest.mark.parametrize(("head", "id_", "is_response"), HEADS, ids=range(len(HEADS)))
def test_the_start_of_a_message(head: bytes, id_: RequestId | None, is_response: bool) -> None:
    assert sight(head) == Sighting(id_, is_response)
    assert type(find_id(head)) is type(id_)


TAILS: list[tuple[bytes, bytes, RequestId | None, bool]] = [
    (b'{"result":{"text":"', b'xx"}]},"jsonrpc":"2.0","id":7}', 7, True),
    (b'{"result":{"text":"', b'xx"}]},"id":"s-1","jsonrpc":"2.0"}', "s-1", True),
    (b'{"result":{"text":"', b'xx"} , "id" : 7 } \r', 7, True),
    (b'{"params":{"text":"', b'xx"},"jsonrpc":"2.0","id":7,"method":"tools/call"}', 7, False),
    (b'{"jsonrpc":"2.0","id":1,"result":{"x":', b'1},"id":7}', 1, True),
    # within a nested value or a string
    (b'{"result":{"text":"', b'xx","id":7}}', None, True),
    (b'{"result":{"text":"', b'\\",\\"id\\":7}', None, True),
    (b'{"result":{"text":"', b',"id":"7\\"}', None, True),
    (b'{"result":{"text":"', b'xx"},"id":{"a":7}}', None, True),
    (b'{"result":{"text":"', b'xx"},"id":7', None, True),
    (b'{"result":{"text":"', b'xx"},"id":null}', None, True),
    (b'{"result":{"text":"', b'xx"},"id":1.5}', None, True),
    (b'{"result":{"text":"', b'xx"},"id":7,"id":8}', None, True),
    (b'{"result":{"text":"', b"}", None, True),
    (b'{"result":{"text":"', b"", None, True),
]


@pytest.mark.req("Q2")
@pytest.mark.parametrize(("head", "tail", "id_", "is_response"), TAILS, ids=range(len(TAILS)))
def test_the_end_of_a_message(head: bytes, tail: bytes, id_: RequestId | None, is_response: bool) -> None:
    assert sight(head, tail) == Sighting(id_, is_response)


scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
objects = st.dictionaries(
    st.sampled_from(["id", "jsonrpc", "method", "result", "error", "params", "x"]) | st.text(max_size=3),
    st.recursive(scalars, lambda inner: st.lists(inner) | st.dictionaries(st.just("id") | st.text(), inner)),
    max_size=6,
)


@settings(deadline=None)
@given(objects, st.integers(0, 200), st.integers(0, 200), st.booleans())
def test_an_id_that_is_seen_is_the_id(message: dict[str, object], head: int, tail: int, spaced: bool) -> None:
    data = json.dumps(
        message, separators=(" , ", " : ") if spaced else (",", ":"), ensure_ascii=False
    ).encode()
    seen = sight(data[:head], data[len(data) - tail :] if tail else b"")
    if seen.id is not None:
        assert seen.id == message["id"]
        assert type(seen.id) is type(message["id"])
    if seen.like_response:
        assert "result" in message or "error" in message


def test_no_more_is_looked_at_than_promised() -> None:
    assert find_id(b" " * HEAD_SIZE + b'{"id":7,') is None
    assert find_id(b'{"a":' + b"[" * 10_000_000) is None
    assert find_id(b"{" + b'"a":1,' * 1_000_000 + b'"id":7}') is None
    assert find_id(b"{", b'"\\' * 1_000_000 + b"}") is None
    assert find_id(b"{", b',"a":"' * 1_000_000 + b"}") is None


BROKEN = [
    # line, like_json, like_response, wants_parse_error
    (b"not json", False, False, False),
    (b"Starting server on port 0", False, False, False),
    (b"", False, False, False),
    (b"   ", False, False, False),
    (b'"result"', False, True, False),
    (b"{", True, False, True),
    (b" \t[", True, False, True),
    (b'{"jsonrpc":"2.0","id":1,"method":"ping",}', True, False, True),
    (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"result":}}', True, False, True),
    (b'{"jsonrpc":"2.0","id":1,"result":{}', True, True, False),
    (b'{"jsonrpc":"2.0","id":1,"error":{"code":-32700,', True, True, False),
    (b'{"result":{"routes":[{"method":"GET"}]}', True, True, False),
    (b'[{"jsonrpc":"2.0","result":', True, True, False),
    (b'{"text":"\\"result\\"",', True, False, True),
    (b" " * HEAD_SIZE + b"{", False, False, False),
]


@pytest.mark.case("S-05", "S-07")
@pytest.mark.parametrize(("line", "json_", "response", "answer"), BROKEN, ids=range(len(BROKEN)))
def test_what_a_broken_line_was_meant_to_be(line: bytes, json_: bool, response: bool, answer: bool) -> None:
    assert like_json(line) is json_
    assert like_response(line) is response
    assert wants_parse_error(line) is answer


EXCERPTS = [
    (b"", ""),
    (b"abc", "abc"),
    (b"12345678", "12345678"),
    (b"123456789", "1234567…"),
    ("日本語テキスト".encode(), "日本語テキスト"),
    ("🙂".encode() * 8, "🙂" * 8),
    ("🙂".encode() * 9, "🙂" * 7 + "…"),
    (b"a\xffb", "a\\xffb"),
    (b"\x1b[2J", "\\x1b[2J"),
    (b"a\tb\r", "a\\tb\\r"),
    ("\u202e\u2028".encode(), "\\u202e\\…"),
    (b"x" * 10_000_000, "xxxxxxx…"),
]


@pytest.mark.parametrize(("data", "shown"), EXCERPTS, ids=range(len(EXCERPTS)))
def test_an_excerpt_is_short_and_printable(data: bytes, shown: str) -> None:
    assert excerpt(data, 8) == shown


@settings(deadline=None)
@given(st.binary(), st.integers(1, 20))
def test_an_excerpt_is_never_longer_than_asked(data: bytes, limit: int) -> None:
    shown = excerpt(data, limit)
    assert len(shown) <= limit
    assert shown.isprintable()
