"""Two codecs, one verdict: the table of texts, and everything that hypothesis can think of."""

from __future__ import annotations

import inspect
import json
import math
import sys
from array import array
from collections import OrderedDict, UserDict, deque
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sansmcp.errors import LocalProtocolError, PeerFault
from sansmcp.revisions import Revision
from sansmcp.wire.jsoncodec import (
    CodecUnavailableError,
    DefaultCodec,
    JsonCodec,
    JsonError,
    JsonValue,
    UnencodableError,
    default_codec,
    fast_codec,
    standard_codec,
)

from .vectors.json_texts import DUPLICATES, TEXTS, Text, nested

CODECS: list[JsonCodec] = [standard_codec(), fast_codec()]
BOTH = pytest.mark.parametrize("codec", CODECS, ids=lambda codec: codec.name)


def verdict(codec: JsonCodec, data: bytes | bytearray | memoryview | str) -> tuple[str, Any]:
    """Value or fault; by repr, for which 1, 1.0 and True differ, and 0.0 and -0.0 as well."""
    try:
        return "value", repr(codec.loads(data))
    except JsonError as error:
        return error.fault.name, (str(error), error.position)


# reading -----------------------------------------------------------------------------------------


@pytest.mark.case("J-06", "J-07", "J-12", "J-18", "J-19", "S-08")
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
@BOTH
def test_every_text_has_one_verdict(codec: JsonCodec, text: Text) -> None:
    for data in (text.data, bytearray(text.data), memoryview(text.data)):
        if text.fault is None:
            assert repr(codec.loads(data)) == repr(text.value)
        else:
            with pytest.raises(JsonError) as caught:
                codec.loads(data)
            assert caught.value.fault is text.fault


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
def test_texts_as_str_are_read_alike(text: Text) -> None:
    decoded = text.data.decode("utf-8", "surrogateescape")
    found = {verdict(codec, decoded)[0] for codec in CODECS}
    assert found == {"value" if text.fault is None else text.fault.name}


@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
def test_both_codecs_say_the_same_of_every_text(text: Text) -> None:
    assert verdict(CODECS[0], text.data) == verdict(CODECS[1], text.data)


@pytest.mark.parametrize("make", [standard_codec, fast_codec])
@pytest.mark.parametrize("text", TEXTS, ids=lambda text: text.name)
def test_equal_keys_are_refused_on_demand(make: Callable[..., JsonCodec], text: Text) -> None:
    codec = make(reject_duplicate_keys=True)
    expected = PeerFault.DUPLICATE_KEY if text in DUPLICATES else text.fault
    try:
        assert repr(codec.loads(text.data)) == repr(text.value)
        fault = None
    except JsonError as error:
        fault = error.fault
    assert fault is expected


@BOTH
@pytest.mark.parametrize("max_depth", [1, 2, 3, 127, 256])
def test_the_depth_limit_is_exact_both_ways(codec: JsonCodec, max_depth: int) -> None:
    limited = (standard_codec if codec.name == "standard" else fast_codec)(max_depth)
    assert limited.max_depth == max_depth
    deepest, deeper = nested(max_depth), nested(max_depth + 1)
    assert limited.loads(limited.dumps(deepest)) == deepest
    with pytest.raises(JsonError) as caught:
        limited.loads(json.dumps(deeper))
    assert caught.value.fault is PeerFault.JSON_TOO_DEEP
    with pytest.raises(UnencodableError, match="nested too deep"):
        limited.dumps(deeper)


@pytest.mark.parametrize("max_depth", [0, -1, 257])
def test_a_depth_limit_that_no_stack_could_keep_is_refused(max_depth: int) -> None:
    with pytest.raises(LocalProtocolError, match="max_depth"):
        standard_codec(max_depth)


def with_stack_left(frames: int, action: Callable[[], object]) -> object:
    used = len(inspect.stack(0))

    def descend(rest: int) -> object:
        return descend(rest - 1) if rest else action()

    return descend(sys.getrecursionlimit() - used - frames)


@BOTH
@pytest.mark.parametrize("frames", [30, 60, 90, 120])
def test_a_caller_deep_in_its_own_stack_gets_no_recursion_error(codec: JsonCodec, frames: int) -> None:
    value = nested(100)
    text = json.dumps(value)

    def read() -> object:
        try:
            return codec.loads(text)
        except JsonError as error:
            return error.fault

    def write() -> object:
        try:
            return codec.dumps(value)
        except UnencodableError:
            return PeerFault.JSON_TOO_DEEP

    assert with_stack_left(frames, read) in (value, PeerFault.JSON_TOO_DEEP)
    assert with_stack_left(frames, write) in (text.encode(), PeerFault.JSON_TOO_DEEP)


@BOTH
def test_the_interpreters_limit_on_digits_rules_both(codec: JsonCodec) -> None:
    limit = sys.get_int_max_str_digits()
    digits = b"9" * 1000
    try:
        sys.set_int_max_str_digits(999)
        assert verdict(codec, digits)[0] == "INVALID_JSON"
        with pytest.raises(UnencodableError, match="too many digits"):
            codec.dumps([10**999])
        sys.set_int_max_str_digits(0)
        assert codec.loads(b"9" * 5000) == 10**5000 - 1
        assert codec.dumps(10**5000 - 1) == b"9" * 5000
    finally:
        sys.set_int_max_str_digits(limit)


@BOTH
@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b'{"a":1,}', 7),
        (b"[1]x", 3),
        (b'{"a":"\xff"}', 6),
        ("\N{EURO SIGN}".encode(), 0),
        ('"a\ud800"', 2),
        (b"1e400", None),
    ],
)
def test_an_error_says_where(codec: JsonCodec, data: bytes | str, position: int | None) -> None:
    with pytest.raises(JsonError) as caught:
        codec.loads(data)
    assert caught.value.position == position


@BOTH
@pytest.mark.parametrize("data", [b'{"a":"hunter2"', b'{"a":"hunter2\xff"}', '{"a":"hunter2\ud800"}'])
def test_an_error_neither_quotes_the_text_nor_holds_on_to_it(codec: JsonCodec, data: bytes | str) -> None:
    with pytest.raises(JsonError) as caught:
        codec.loads(data)
    error: BaseException | None = caught.value
    while error is not None:
        assert "hunter2" not in repr(vars(error)) + repr(error.args)
        error = error.__context__


# writing -----------------------------------------------------------------------------------------


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Kind(StrEnum):
    TOOL = "tool"


class Name(str):
    __slots__ = ()


class Pair(NamedTuple):
    a: int
    b: int


class Big(int):
    pass


class Half(float):
    pass


@attrs.define
class Thing:
    x: int = 1


WRITTEN: list[tuple[object, bytes]] = [
    (None, b"null"),
    ({"a": [1, 2.5, True, None, "x"]}, b'{"a":[1,2.5,true,null,"x"]}'),
    ((1, (2,)), b"[1,[2]]"),
    ([Level.HIGH, Kind.TOOL, Revision.V2026_07_28], b'[3,"tool","2026-07-28"]'),
    ([Name("n"), Big(7), Half(0.5)], b'["n",7,0.5]'),
    ({Name("n"): 1, Kind.TOOL: 2}, b'{"n":1,"tool":2}'),
    (OrderedDict(a=1), b'{"a":1}'),
    (UserDict(a=UserDict()), b'{"a":{}}'),
    (Pair(1, 2), b"[1,2]"),
    (deque([1, 2]), b"[1,2]"),
    (range(3), b"[0,1,2]"),
    ("é€😀", '"é€😀"'.encode()),
    ('"\\/\b\f\n\r\t\x00\x1f\x7f', b'"\\"\\\\/\\b\\f\\n\\r\\t\\u0000\\u001f\x7f"'),
    ("\u2028\u2029\x85\u2027", b'"\\u2028\\u2029\\u0085\xe2\x80\xa7"'),
    ("\ud800", b'"\\ud800"'),
    ({"\udfff": "a\ud800\\b"}, b'{"\\udfff":"a\\ud800\\\\b"}'),
    (2**64, b"18446744073709551616"),
    (-(2**64), b"-18446744073709551616"),
    (-0.0, b"-0.0"),
]


@BOTH
@pytest.mark.case("J-07", "S-01")
@pytest.mark.parametrize(("value", "data"), WRITTEN, ids=range(len(WRITTEN)))
def test_values_are_written_as_one_compact_line(codec: JsonCodec, value: object, data: bytes) -> None:
    assert codec.dumps(value) == data
    assert codec.dumps([value]) == b"[" + data + b"]"


def cyclic_list() -> object:
    a: list[object] = [1]
    a.append({"a": a})
    return a


def cyclic_dict() -> object:
    a: dict[str, object] = {}
    a["self"] = a
    return a


def twice_itself() -> object:
    a: list[object] = []
    a += [a, a]
    return a


UNWRITABLE: list[tuple[object, str]] = [
    ({"structuredContent": {"score": float("nan")}}, "$.structuredContent.score: nan is no JSON"),
    ([1, [2, float("inf")]], "$[1][1]: inf is no JSON"),
    ([Half("-inf")], "$[0]: -inf is no JSON"),
    (float("nan"), "$: nan is no JSON"),
    ({"a": {1: 2}}, "$.a: a key of type int"),
    ({None: 1}, "$: a key of type NoneType"),
    ({True: 1}, "$: a key of type bool"),
    ({1.5: 1}, "$: a key of type float"),
    ({("a",): 1}, "$: a key of type tuple"),
    ([{"x": b"bytes"}], "$[0].x: bytes has no JSON form"),
    ([bytearray(b"x")], "$[0]: bytearray has no JSON form"),
    ([memoryview(b"x")], "$[0]: memoryview has no JSON form"),
    ([array("b", b"x")], "$[0]: array has no JSON form"),
    ({"a b": {1}}, "$['a b']: set has no JSON form"),
    ([frozenset({1})], "$[0]: frozenset has no JSON form"),
    ([Colour.RED], "$[0]: Colour has no JSON form"),
    ([Decimal("1.5")], "$[0]: Decimal has no JSON form"),
    ([datetime.now(UTC)], "$[0]: datetime has no JSON form"),
    ([Thing()], "$[0]: Thing has no JSON form"),
    ([object()], "$[0]: object has no JSON form"),
    ([iter([1])], "$[0]: list_iterator has no JSON form"),
    ([10**4300], "$[0]: an integer with too many digits"),
    ({"k" * 100: {1}}, "$." + "k" * 63 + "…: set has no JSON form"),
    (UserDict(a=UserDict({"b": [b""]})), "$.a.b[0]: bytes has no JSON form"),
    (cyclic_list(), "nested too deep, or a cycle"),
    (cyclic_dict(), "nested too deep, or a cycle"),
    (twice_itself(), "nested too deep, or a cycle"),
    (nested(129), "nested too deep, or a cycle"),
    (nested(5000), "nested too deep, or a cycle"),
]


@BOTH
@pytest.mark.case("J-12")
@pytest.mark.parametrize(("value", "problem"), UNWRITABLE, ids=range(len(UNWRITABLE)))
def test_what_is_no_json_is_refused_and_named(codec: JsonCodec, value: object, problem: str) -> None:
    with pytest.raises(UnencodableError) as caught:
        codec.dumps(value)
    assert problem in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert isinstance(caught.value, LocalProtocolError)


# what both must share ----------------------------------------------------------------------------

# A pair of surrogates that stands in a str as two characters becomes one character on the way.
characters = st.characters(codec=None) | st.sampled_from(list('"\\/\n\u2028\x85\x00\ud800'))
texts = st.text(characters, max_size=8).map(
    lambda s: s.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(values)
@example({"\ud800": ["\udc00", 2**70, -0.0, 5e-324]})
def test_values_survive_every_way_through_both_codecs(value: JsonValue) -> None:
    for writer in CODECS:
        data = writer.dumps(value)
        assert data.splitlines() == [data]
        assert data.decode().splitlines() == [data.decode()]
        assert not data.startswith(b"\xef\xbb\xbf")
        for reader in CODECS:
            assert repr(reader.loads(data)) == repr(value)


# fmt: off
FRAGMENTS = [
    b"{", b"}", b"[", b"]", b",", b":", b'"', b"\\", b"\\u", b"\\ud83d", b"\\ude00", b"d800", b"0", b"-",
    b".", b"e", b"E+", b"e400", b"1" * 310, b"null", b"true", b"NaN", b"Infinity", b" ", b"\t", b"\n",
    b"\x00", b"\xff", b"\xc3\xa9", b"\xed\xa0\x80", b"\xef\xbb\xbf", b'"a":1,', b"[" * 130, b"]" * 130,
    b"9" * 4301,
]
# fmt: on


@st.composite
def mutated(draw: st.DrawFn) -> bytes:
    """JSON with pieces cut out, put in or written over."""
    data = CODECS[0].dumps(draw(values))
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(data)))
        end = draw(st.integers(start, min(len(data), start + 4)))
        data = data[:start] + draw(st.sampled_from(FRAGMENTS) | st.binary(max_size=3)) + data[end:]
    return data


@settings(max_examples=1000, deadline=None)
@given(mutated() | st.binary(max_size=64) | st.lists(st.sampled_from(FRAGMENTS), max_size=12).map(b"".join))
def test_both_codecs_give_the_same_verdict_on_anything(data: bytes) -> None:
    assert verdict(CODECS[0], data) == verdict(CODECS[1], data)
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return
    assert verdict(CODECS[0], text) == verdict(CODECS[1], text)


numbers = st.from_regex(r"\A-?(0|[1-9][0-9]{0,25})(\.[0-9]{1,25})?([eE][+-]?[0-9]{1,3})?\Z")


@settings(max_examples=1000, deadline=None)
@given(numbers | st.floats(allow_nan=False, allow_infinity=False).map(repr))
def test_every_number_is_the_one_that_python_reads(literal: str) -> None:
    fraction = any(c in literal for c in ".eE")
    expected = float(literal) if fraction else int(literal)
    for codec in CODECS:
        if isinstance(expected, float) and math.isinf(expected):
            assert verdict(codec, literal)[0] == "INVALID_JSON"
        else:
            assert repr(codec.loads(literal)) == repr(expected)


# choosing ----------------------------------------------------------------------------------------


def test_the_fast_codec_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "msgspec", None)
    with pytest.raises(CodecUnavailableError, match=r"sansmcp\[fast\]") as caught:
        fast_codec()
    assert isinstance(caught.value, ImportError)
    assert isinstance(caught.value, LocalProtocolError)
    codec = default_codec()
    assert codec.loads(b" " * (64 * 1024) + b"1") == 1
    assert codec.name == "standard"


@pytest.mark.parametrize("use", [lambda codec: codec.loads(b"[1]"), lambda codec: codec.dumps([1])])
def test_the_default_codec_is_the_fast_one_as_soon_as_that_pays(use: Callable[[JsonCodec], object]) -> None:
    codec = DefaultCodec(5, True)
    for n in range(250):
        assert codec.name == ("standard" if n < 200 else "fast")
        assert use(codec) in ([1], b"[1]")
    assert codec.max_depth == 5
    with pytest.raises(JsonError, match="nested deeper than 5"):
        codec.loads(b"[" * 6 + b"]" * 6)
    with pytest.raises(JsonError, match="two equal keys"):
        codec.loads(b'{"a":1,"a":2}')
    assert standard_codec().max_depth == 128


def test_the_default_codec_is_the_fast_one_for_a_long_text() -> None:
    codec = DefaultCodec(5, False)
    assert codec.loads(b" " * (64 * 1024) + b"1") == 1
    assert codec.name == "fast"


def test_the_default_codec_is_the_fast_one_where_that_is_loaded_anyway() -> None:
    assert default_codec(5).name == fast_codec().name
    assert default_codec(5).max_depth == 5
