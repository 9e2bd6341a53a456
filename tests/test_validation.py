"""Schemas of peers: which are used, and that none of them fetches, bombs or hangs."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.validation import (
    SchemaLimits,
    SchemaValidator,
    UnusableSchemaError,
    check_schema,
    compile_schema,
)
from sansmcp.validators import PythonValidator, RustValidator, default_validator

BOTH = [RustValidator, PythonValidator]
DRAFT = "https://json-schema.org/draft/2020-12/schema"


REFERENCE = {"$ref": "#/$defs/a"}


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth - 1):
        schema = {"properties": {"a": schema}}
    return schema


def doubling(levels: int) -> dict[str, Any]:
    """A few lines that look at one value 2**levels times."""
    defs: dict[str, Any] = {"d0": {"type": "string"}}
    for n in range(levels):
        defs[f"d{n + 1}"] = {"allOf": [{"$ref": f"#/$defs/d{n}"}, {"$ref": f"#/$defs/d{n}"}]}
    return {"$defs": defs, "$ref": f"#/$defs/d{levels}"}


@pytest.mark.req("V13")
@pytest.mark.parametrize(
    "schema",
    [
        True,
        False,
        {},
        {"$schema": DRAFT, "type": "object"},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"$defs": {"a": {"type": "string"}}, "properties": {"x": {"$ref": "#/$defs/a"}}},
        {"$defs": {"a/b~c": {}}, "$ref": "#/$defs/a~1b~0c"},
        {"$defs": {"ä": {}}, "$ref": "#/$defs/%C3%A4"},
        {"$defs": {"a": {"$anchor": "there"}}, "$ref": "#there"},
        {
            "$defs": {"a": {"$id": "https://example.com/a", "$defs": {"b": {}}}},
            "$ref": "https://example.com/a",
        },
        {"$defs": {"a": {"$id": "a", "$defs": {"b": {}}}}, "$ref": "a#/$defs/b"},
        {"properties": {"child": {"$ref": "#"}}},
        {"anyOf": [{"type": "string"}, {"$ref": "#"}]},
        {"$defs": {"a": True}, "$ref": "#/$defs/a"},
        {"prefixItems": [{}, {"type": "string"}], "$ref": "#/prefixItems/1"},
        {"enum": [{"$ref": "http://example.com"}], "const": {"$ref": "x"}, "default": {"$ref": "x"}},
        {"properties": {"$ref": {"type": "string"}, "$schema": {"type": "string"}}},
        {"examples": [{"$ref": "file:///etc/passwd"}]},
        nested(64),
        doubling(12),
        {"$defs": {"a": {}}, "allOf": [{"allOf": [REFERENCE] * 30}] * 30},
    ],
)
def test_schemas_that_are_used(schema: Any) -> None:
    check_schema(schema)


@pytest.mark.req("V13")
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (None, "an object"),
        ("x", "an object"),
        ([], "an object"),
        ({"$schema": "https://json-schema.org/draft/2030-01/schema"}, "dialect"),
        ({"$schema": 7}, "dialect"),
        ({"$ref": "https://example.com/schema"}, "leads out"),
        ({"$ref": "file:///etc/passwd"}, "leads out"),
        ({"$ref": "other.json#/a"}, "leads out"),
        ({"properties": {"a": {"items": {"$ref": "http://169.254.169.254/"}}}}, "leads out"),
        ({"allOf": [{"$dynamicRef": "http://x"}]}, "leads out"),
        ({"$recursiveRef": "x"}, "leads out"),
        ({"$ref": 5}, "no text"),
        ({"$ref": "#/nowhere"}, "no schema"),
        ({"$ref": "#nowhere"}, "no schema"),
        ({"x": [1], "$ref": "#/x/0"}, "no schema"),
        ({"x": {"y": {"$ref": "http://x"}}, "$ref": "#/x/y"}, "leads out"),
        ({"x": [{"not": {"$ref": "http://x"}}], "$ref": "#/x/0"}, "leads out"),
        (nested(65), "nested deeper"),
        ({"properties": {str(n): {} for n in range(5000)}}, "more than 4096"),
        (doubling(40), "looked at more than"),
        (doubling(1000), "looked at more than"),
    ],
)
def test_schemas_that_are_not_used(schema: Any, reason: str) -> None:
    with pytest.raises(UnusableSchemaError, match=reason):
        check_schema(schema)


def recursive(applied: Any, **more: Any) -> dict[str, Any]:
    """A schema of schemas `applied`, in which ``{}`` stands for itself."""
    again: Any = {"$ref": "#/$defs/a"}

    def put(part: Any) -> Any:
        if part == {}:
            return again
        if isinstance(part, dict):
            return {name: put(inner) for name, inner in part.items()}
        return [put(inner) for inner in part] if isinstance(part, list) else part

    return {"$defs": {"a": put(applied)}, **again, **more}


def in_rows(levels: int) -> dict[str, Any]:
    """As `doubling`, but each schema looks one level deeper into the value. None comes back to itself."""
    defs: dict[str, Any] = {"d0": {}}
    for n in range(levels):
        defs[f"d{n + 1}"] = {"allOf": [{"items": {"$ref": f"#/$defs/d{n}"}}] * 2}
    return {"$defs": defs, "$ref": f"#/$defs/d{levels}"}


DRAFT7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.req("V13")
@pytest.mark.parametrize("validator", BOTH)
@pytest.mark.parametrize(
    ("schema", "as_list"),
    [
        (recursive({"allOf": [{"items": {}}, {"items": {}}]}), True),
        (recursive({"anyOf": [{"items": {}, "maxItems": 0}, {"contains": {}}]}), True),
        (recursive({"prefixItems": [{}], "unevaluatedItems": {}}), True),
        (
            recursive(
                {"allOf": [{"items": [{}]}, {"additionalItems": {}, "items": []}] * 2}, **{"$schema": DRAFT7}
            ),
            True,
        ),
        (in_rows(60), True),
        (recursive({"properties": {"c": {}}, "patternProperties": {"^c": {}}}), False),
        (recursive({"additionalProperties": {}, "unevaluatedProperties": {}}), False),
        (recursive({"properties": {"c": {}}, "dependentSchemas": {"c": {"properties": {"c": {}}}}}), False),
        (
            {
                "$dynamicAnchor": "n",
                "allOf": [
                    {"properties": {"c": {"$dynamicRef": "#n"}}},
                    {"additionalProperties": {"$ref": "#"}},
                ],
            },
            False,
        ),
    ],
)
def test_a_value_that_would_be_looked_at_for_ever_is_not_checked(
    validator: type[RustValidator | PythonValidator], schema: Any, as_list: bool
) -> None:
    check = compile_schema(validator(), schema)
    value: Any = 1
    for _ in range(60):
        value = [value] if as_list else {"c": value}
    assert "cannot be checked" in (check(value) or "")
    assert check([[1]] if as_list else {"c": {"c": 1}}) is None or "anyOf" in str(schema)


@pytest.mark.req("V13")
@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"c": {"$ref": "#"}, "d": {"$ref": "#"}, "v": {"type": "integer"}}},
        recursive({"anyOf": [{"type": "integer"}, {"additionalProperties": {}}, {"items": {}}]}),
        {"anyOf": [{"type": "object"}, {"$ref": "#"}]},
    ],
)
def test_a_schema_that_comes_back_to_itself_once_is_as_good_as_any(schema: Any) -> None:
    value: Any = {"v": 1}
    for _ in range(9):
        value = {"c": value, "d": value}  # more than `max_looks` in all, if somebody counted
    assert compile_schema(RustValidator(), schema, SchemaLimits(max_looks=500))(value) is None


def test_limits_can_be_chosen() -> None:
    doubled = recursive({"allOf": [{"items": {}}, {"items": {}}]})
    assert compile_schema(RustValidator(), doubled)([[[1]]]) is None
    assert compile_schema(RustValidator(), doubled, SchemaLimits(max_looks=20))([[[1]]]) is not None
    check_schema(nested(65), SchemaLimits(max_depth=65))
    with pytest.raises(UnusableSchemaError):
        check_schema(nested(3), SchemaLimits(max_depth=2))


TOOL: dict[str, Any] = {
    "$schema": DRAFT,
    "type": "object",
    "$defs": {"city": {"$anchor": "city", "type": "string", "minLength": 2}},
    "properties": {"to": {"$ref": "#/$defs/city"}, "n": {"type": "integer", "maximum": 9}},
    "required": ["to"],
    "additionalProperties": False,
}


@pytest.mark.req("V12", "V13")
@pytest.mark.parametrize("validator", BOTH)
@pytest.mark.parametrize(
    ("value", "told"),
    [
        ({"to": "Rome"}, []),
        ({"to": "Rome", "n": 3}, []),
        ({}, ["to"]),
        ({"to": "R"}, ["to: "]),
        ({"to": "Rome", "n": 10}, ["n: ", "10"]),
        ({"to": "Rome", "n": 2**70}, ["n: "]),
        ({"to": "Rome", "n": 1.5}, ["n: "]),
        ({"to": "Rome", "x": 1, "n": "a"}, ["x", "n: ", "; "]),
        ([], ["object"]),
        (None, ["object"]),
    ],
)
def test_what_is_wrong_is_told_in_one_line(
    validator: type[RustValidator | PythonValidator], value: Any, told: list[str]
) -> None:
    made: SchemaValidator = validator()
    problem = compile_schema(made, TOOL)(value)
    assert (problem is None) is (not told)
    assert all(part in (problem or "") for part in told), problem
    assert "\n" not in (problem or "")


@pytest.mark.req("V13")
@pytest.mark.parametrize("validator", BOTH)
def test_nothing_is_fetched_even_without_the_check_before(
    validator: type[RustValidator | PythonValidator],
) -> None:
    for uri in ["http://127.0.0.1:9/x", "file:///etc/passwd"]:
        try:
            problem = validator().compile({"$ref": uri})({})
        except UnusableSchemaError:
            continue
        assert problem is not None


@pytest.mark.parametrize("validator", BOTH)
@pytest.mark.parametrize("schema", [{"type": "nonsense"}, {"properties": []}, {"minimum": "x"}])
def test_a_schema_that_is_none(validator: type[RustValidator | PythonValidator], schema: Any) -> None:
    with pytest.raises(UnusableSchemaError, match="not usable"):
        validator().compile(schema)


@pytest.mark.parametrize("validator", BOTH)
def test_a_long_list_of_faults_is_cut(validator: type[RustValidator | PythonValidator]) -> None:
    check = validator().compile({"items": {"type": "string"}})
    problem = check([{"x": "y" * 1000}] * 100)
    assert problem is not None
    assert problem.count("; ") == 5
    assert len(problem) < 2000


def test_a_pattern_that_takes_for_ever_in_python_does_not() -> None:
    check = RustValidator().compile({"pattern": "^(a+)+$"})
    assert check("a" * 50 + "!") is not None


def test_the_faster_one_is_the_default() -> None:
    assert isinstance(default_validator(), RustValidator)
