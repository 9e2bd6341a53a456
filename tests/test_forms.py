"""Forms held against what was filled in, and filled up with their defaults."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from sansmcp import apply_defaults, check_form


def form(field: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"f": field}, **more}


TEXT = {"type": "string"}
MAIL = {"type": "string", "format": "email"}
URI = {"type": "string", "format": "uri"}
DATE = {"type": "string", "format": "date"}
TIME = {"type": "string", "format": "date-time"}
ONE_OF = {"type": "string", "oneOf": [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]}
MANY = {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": 1, "maxItems": 2}
TITLED = {"type": "array", "items": {"anyOf": [{"const": "a", "title": "A"}]}}

GOOD: list[tuple[Any, Any]] = [
    (TEXT, ""),
    (TEXT, "x" * 10_000),
    ({"type": "string", "minLength": 2, "maxLength": 2}, "\U0001f600é"),
    (MAIL, "a@b"),
    (MAIL, "ünï@exämple.org"),
    (URI, "urn:x"),
    (URI, "https://example.com/?a=b#c"),
    (DATE, "2024-02-29"),
    (TIME, "2024-02-29T23:59:60Z"),
    (TIME, "2024-02-29t00:00:00.123456789+05:30"),
    ({"type": "string", "format": "uuid"}, "not checked"),
    ({"type": "string", "enum": ["a", "b"]}, "b"),
    ({"type": "string", "enum": ["a"], "enumNames": ["A"]}, "a"),
    (ONE_OF, "#0f0"),
    ({"type": "number"}, 1),
    ({"type": "number", "minimum": 0, "maximum": 1}, 0.5),
    ({"type": "number", "minimum": 0.5}, 0.5),
    ({"type": "integer"}, 10**30),
    ({"type": "integer"}, 2.0),
    ({"type": "boolean"}, False),
    (MANY, ["a", "b"]),
    (TITLED, []),
    ({"type": "future"}, object()),
    ({"type": ["string", "null"]}, None),
    (5, "a field that is no schema is not looked at"),
    ({"type": "string", "minLength": "2"}, "a"),
    ({"type": "string", "minLength": True}, ""),
]

BAD: list[tuple[Any, Any, str]] = [
    (TEXT, 5, "not a text"),
    (TEXT, None, "not a text"),
    ({"type": "string", "minLength": 2}, "\U0001f600", "shorter"),
    ({"type": "string", "maxLength": 1}, "ab", "longer"),
    ({"type": "string", "minLength": 10**400}, "ab", "shorter than a huge number"),
    ({"type": "number", "minimum": 10**400}, 5, "less than a huge number"),
    ({"type": "number", "maximum": -(10**5000)}, 5, "more than a huge number"),
    (MAIL, "a@", "email"),
    (MAIL, "a b@c", "email"),
    (MAIL, "a@b@c", "email"),
    (URI, "example.com", "uri"),
    (URI, "https://a b", "uri"),
    (DATE, "2023-02-29", "date"),
    (DATE, "20230228", "date"),
    (DATE, "2023-2-28", "date"),
    (TIME, "2023-02-28", "date-time"),
    (TIME, "2023-02-28T10:00:00", "date-time"),
    (TIME, "2023-02-29T10:00:00Z", "date-time"),
    (TIME, "2023-02-28T24:00:00Z", "date-time"),
    (TIME, "2023-02-28T10:60:00Z", "date-time"),
    ({"type": "string", "enum": ["a", "b"]}, "c", "choices"),
    (ONE_OF, "Red", "choices"),
    ({"type": "number"}, True, "not a number"),
    ({"type": "number"}, "5", "not a number"),
    ({"type": "number", "minimum": 0}, -0.1, "less"),
    ({"type": "number", "maximum": 1}, 2, "more"),
    ({"type": "integer"}, 2.5, "not an integer"),
    ({"type": "boolean"}, 0, "neither"),
    ({"type": "boolean"}, "true", "neither"),
    (MANY, "a", "not a list"),
    (MANY, [], "fewer"),
    (MANY, ["a", "b", "a"], "more"),
    (MANY, ["c"], "choices"),
    (MANY, [1], "not a text"),
    (TITLED, ["A"], "choices"),
]


@pytest.mark.req("F5")
@pytest.mark.parametrize(("field", "value"), GOOD)
def test_what_fits(field: Any, value: Any) -> None:
    assert check_form(form(field, required=["f"]), {"f": value}) == []


@pytest.mark.req("F5")
@pytest.mark.parametrize(("field", "value", "told"), BAD)
def test_what_does_not_fit_is_told_without_the_value(field: Any, value: Any, told: str) -> None:
    (problem,) = check_form(form(field), {"f": value})
    assert problem.startswith("f: ")
    assert told in problem
    if isinstance(value, str) and len(value) > 4 and value != "email":
        assert value not in problem


@pytest.mark.req("F5")
@pytest.mark.parametrize(
    ("schema", "content", "problems"),
    [
        (form(TEXT, required=["f", "g"]), {}, ["f: missing", "g: missing"]),
        (form(TEXT), {}, []),
        (form(TEXT), {"other": object()}, []),
        (form(TEXT, required="f"), {}, []),
        (form(TEXT, required=[5]), {}, []),
        ({}, {"f": 1}, []),
        ({"properties": []}, {"f": 1}, []),
        (form(TEXT), None, ["the content is no object"]),
        (form(TEXT), [], ["the content is no object"]),
        (form({"type": "number", "minimum": float("nan")}), {"f": 1}, []),
    ],
)
def test_forms_as_a_whole(schema: Any, content: Any, problems: list[str]) -> None:
    assert check_form(schema, content) == problems


# defaults ----------------------------------------------------------------------------------------

INNER = {"type": "object", "properties": {"a": {"type": "number", "default": 1}, "b": {"type": "string"}}}


@pytest.mark.req("F4")
@pytest.mark.parametrize(
    ("schema", "content", "filled"),
    [
        (form({"type": "string", "default": "d"}), {}, {"f": "d"}),
        (form({"type": "string", "default": "d"}), {"f": "own"}, {"f": "own"}),
        (form({"type": "string", "default": "d"}), {"f": None}, {"f": None}),
        (form({"type": "string", "default": "d"}), {"f": ""}, {"f": ""}),
        (form({"type": "boolean", "default": False}), {}, {"f": False}),
        (form({"type": "string", "default": None}), {}, {"f": None}),
        (form(TEXT), {}, {}),
        (form({**MANY, "default": ["a"]}), {"g": 1}, {"g": 1, "f": ["a"]}),
        # into what is there, and never making what is not
        (form(INNER), {}, {}),
        (form(INNER), {"f": {}}, {"f": {"a": 1}}),
        (form(INNER), {"f": {"a": 5, "b": "x"}}, {"f": {"a": 5, "b": "x"}}),
        (form(INNER), {"f": 5}, {"f": 5}),
        (form({**INNER, "default": {"b": "y"}}), {}, {"f": {"b": "y"}}),
        # the branch that fits
        (
            {
                "oneOf": [
                    form({"const": "x", "type": "string"}, required=["f"]),
                    {
                        "type": "object",
                        "properties": {"f": {"const": "y", "type": "string"}, "g": {"default": 2}},
                        "required": ["f"],
                    },
                ]
            },
            {"f": "y"},
            {"f": "y", "g": 2},
        ),
        (
            {"anyOf": [form({"type": "number"}, required=["f"]), form({"type": "string", "default": "s"})]},
            {},
            {"f": "s"},
        ),
        ({"anyOf": [form({"type": "number"}, required=["f"])]}, {"f": "no"}, {"f": "no"}),
        ({"anyOf": 5, "properties": 5}, {"f": 1}, {"f": 1}),
        ({"properties": {"f": 5}, "oneOf": [5]}, {}, {}),
    ],
)
def test_defaults_fill_what_is_missing_and_nothing_else(schema: Any, content: Any, filled: Any) -> None:
    before = copy.deepcopy((schema, content))
    assert apply_defaults(schema, content) == filled
    assert (schema, content) == before


@pytest.mark.req("F4")
def test_a_default_is_not_shared_with_the_schema() -> None:
    schema = form({**MANY, "default": [["a"]]})
    made = apply_defaults(schema, {})
    made["f"][0].append("b")
    assert schema["properties"]["f"]["default"] == [["a"]]
