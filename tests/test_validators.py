"""What plain schemas are checked with: nothing that has to be loaded, and with the verdict of what is."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp.validation import DIALECTS, check_schema
from sansmcp.validators import RustValidator, ValidatorUnavailableError, plainly_fits

KINDS = st.sampled_from(["boolean", "integer", "number", "string"])
NAMES = st.sampled_from(["a", "b", "c"])
SCHEMAS = st.fixed_dictionaries(
    {"type": st.just("object")},
    optional={
        "properties": st.dictionaries(
            NAMES,
            st.fixed_dictionaries({"type": KINDS}, optional={"title": st.text(), "default": st.none()}),
        ),
        "required": st.lists(NAMES, unique=True),
        "additionalProperties": st.just(False),
        "description": st.text(),
    },
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.just(10**400),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.just("\ud800"),
)


@given(SCHEMAS, st.one_of(SCALARS, st.dictionaries(NAMES, SCALARS)))
def test_what_shows_at_a_glance_is_what_the_library_says(schema: dict[str, Any], value: Any) -> None:
    fits = plainly_fits(schema)
    assert fits is not None
    check_schema(schema)
    whole = RustValidator._compile(schema)
    if fits(value):
        assert whole(value) is None
    assert RustValidator().compile(schema)(value) == whole(value)


@pytest.mark.parametrize(
    "schema",
    [
        True,
        {},
        {"type": "array"},
        {"type": ["object"]},
        {"type": "object", "$schema": min(DIALECTS)},
        {"type": "object", "minProperties": 1},
        {"type": "object", "title": 5},
        {"type": "object", "properties": []},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {"a": {}}},
        {"type": "object", "properties": {"a": {"type": "object"}}},
        {"type": "object", "properties": {"a": {"type": ["string"]}}},
        {"type": "object", "properties": {"a": {"type": "string", "minLength": 1}}},
        {"type": "object", "properties": {"a": {"type": "string", "description": []}}},
        {"type": "object", "required": ["a", "a"]},
        {"type": "object", "required": [1]},
        {"type": "object", "required": "a"},
        {"type": "object", "additionalProperties": {"type": "string"}},
    ],
)
def test_what_is_not_plain_is_left_to_the_library(schema: Any) -> None:
    assert plainly_fits(schema) is None


def test_a_library_that_is_not_there_is_told_before_it_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    with pytest.raises(ValidatorUnavailableError, match="install"):
        RustValidator()


def test_the_library_is_loaded_when_it_is_needed() -> None:
    program = """
import sys
from sansmcp.validators import RustValidator
check = RustValidator().compile({"type": "object", "properties": {"a": {"type": "string"}}})
assert check({"a": "b"}) is None and "jsonschema_rs" not in sys.modules
assert check({"a": 1}) == 'a: 1 is not of type "string"' and "jsonschema_rs" in sys.modules
"""
    subprocess.run([sys.executable, "-c", program], check=True)
