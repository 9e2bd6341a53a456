"""Which status an error goes out with, and which errors only a modern server writes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import Era, ErrorCode
from sansmcp.errors import MODERN_ONLY_CODES
from sansmcp.http.status import ERROR_STATUS, is_modern_error, status_for_error

# code, modern, legacy
STATUSES = [
    (-32700, 400, 400),
    (-32600, 400, 400),
    (-32601, 404, 200),
    (-32602, 400, 200),
    (-32603, 200, 200),
    (-32020, 400, 400),
    (-32021, 400, 400),
    (-32022, 400, 400),
    (-32002, 200, 200),
    (-32042, 200, 200),
    (-32000, 200, 200),
    (-1, 200, 200),
    (0, 200, 200),
    (404, 200, 200),
    (10**30, 200, 200),
]


@pytest.mark.req("R4")
@pytest.mark.parametrize(("code", "modern", "legacy"), STATUSES)
def test_the_status_of_an_error(code: int, modern: int, legacy: int) -> None:
    assert status_for_error(code, Era.MODERN) == modern
    assert status_for_error(code, Era.LEGACY) == legacy


@pytest.mark.req("R4")
def test_every_defined_code_has_a_row_above_and_every_status_too() -> None:
    assert set(ErrorCode) <= {code for code, _, _ in STATUSES}
    for era, column in ((Era.MODERN, 1), (Era.LEGACY, 2)):
        told = {row[0]: row[column] for row in STATUSES if row[column] != 200}
        assert dict(ERROR_STATUS[era]) == told


@pytest.mark.req("R4")
@pytest.mark.case("H-06")
def test_a_legacy_404_always_means_that_the_session_is_gone() -> None:
    assert 404 not in ERROR_STATUS[Era.LEGACY].values()


@pytest.mark.req("R4")
@given(st.integers(), st.sampled_from(Era))
def test_every_code_has_a_status(code: int, era: Era) -> None:
    assert status_for_error(code, era) in (200, 400, 404)


def error(code: Any, data: Any = None, **more: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "m", "data": data}, **more}


SUPPORTED = {"supported": ["2026-07-28"], "requested": "x"}


@pytest.mark.req("A4", "A5", "A6", "A7")
@pytest.mark.case("H-05")
@pytest.mark.parametrize(
    ("body", "modern"),
    [
        (error(-32020), True),
        (error(-32021, {"requiredCapabilities": {"elicitation": {}}}), True),
        (error(-32021), True),
        (error(-32022, SUPPORTED), True),
        (error(-32020, id=None), True),
        ({"jsonrpc": "2.0", "error": {"code": -32020, "message": "m"}}, True),
        ({"jsonrpc": "2.0", "id": "a", "error": {"code": -32020}}, True),
        (error(-32020.0), True),
        # a list of versions is what the code is for
        (error(-32022), False),
        (error(-32022, {"supported": []}), False),
        (error(-32022, {"supported": "2026-07-28"}), False),
        (error(-32022, {"supported": ["2026-07-28", 5]}), False),
        # what legacy servers say as well
        (error(-32601), False),
        (error(-32602), False),
        (error(-32600), False),
        (error(-32700), False),
        (error(-32000), False),
        (error(-32001), False),
        (error(-32023), False),
        # no JSON-RPC error
        ({"error": {"code": -32020, "message": "m"}}, False),
        ({"jsonrpc": "2.0", "id": 1, "result": {"code": -32020}}, False),
        ({"jsonrpc": "2.0", "id": 1, "result": {}, "error": {"code": -32020, "message": "m"}}, False),
        (error("-32020"), False),
        (error(True), False),
        ({"jsonrpc": "2.0", "id": 1, "error": "-32020"}, False),
        ({"code": -32020}, False),
        ([error(-32020)], False),
        ([], False),
        ({}, False),
        (None, False),
        ("", False),
        (b'{"jsonrpc":"2.0"}', False),
        (-32020, False),
    ],
)
def test_which_bodies_show_a_modern_server(body: Any, modern: bool) -> None:
    assert is_modern_error(body) is modern


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-32030, 1) | st.floats() | st.text(max_size=3) | st.just("2.0"),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["jsonrpc", "id", "error", "code", "message", "data", "supported", "result"]),
            inner,
        )
    ),
    max_leaves=12,
)


@pytest.mark.req("A7")
@given(JSON_VALUES, st.sampled_from(sorted(MODERN_ONLY_CODES)))
def test_the_judgement_is_total(value: Any, code: int) -> None:
    assert is_modern_error(value) in (True, False)
    assert is_modern_error(error(code, value)) in (True, False)
    assert is_modern_error({"jsonrpc": "2.0", "id": value, "error": value}) in (True, False)
