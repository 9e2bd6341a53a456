"""Arguments from the command line get the types that the tool's schema gives them, or are refused."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp_cli.arguments import allowed_types, object_from_words, split_pairs, type_label, typed_pairs
from sansmcp_cli.failures import CommandError

from .run import RICH, invoke

pytestmark = pytest.mark.req("AA11")


def schema(member: Any, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"x": member}, **more}


@pytest.mark.parametrize(
    ("member", "text", "value"),
    [
        ({"type": "string"}, "5", "5"),
        ({"type": "string"}, '"quoted"', '"quoted"'),
        ({"type": "string"}, "", ""),
        ({"type": "string"}, "null", "null"),
        ({"type": "string"}, '{"a": 1}', '{"a": 1}'),
        ({"type": "integer"}, "-5", -5),
        ({"type": "integer"}, "123456789012345678901234567890", 123456789012345678901234567890),
        ({"type": "integer"}, "5.0", 5.0),
        ({"type": "number"}, "5", 5),
        ({"type": "number"}, "5e-1", 0.5),
        ({"type": "boolean"}, "true", True),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": null}', {"a": None}),
        ({"type": ["integer", "string"]}, "5", 5),
        ({"type": ["integer", "string"]}, "five", "five"),
        ({"type": ["string", "null"]}, "null", None),
        ({"type": ["string", "null"]}, "nil", "nil"),
        ({"type": ["integer", "null"]}, "null", None),
        ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "false", False),
        ({"anyOf": [{"type": "boolean"}, {"type": "string"}]}, "no", "no"),
        ({"oneOf": [{"type": "number"}, {"type": "null"}]}, "1.5", 1.5),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"const": True}, "true", True),
        ({"$ref": "#/$defs/Count"}, "7", 7),
        ({"$ref": "#/$defs/nowhere"}, "7", 7),
        ({"$ref": "https://example.com/x"}, "seven", "seven"),
        ({}, "7", 7),
        ({}, "seven", "seven"),
        (True, "[1]", [1]),
        ({"type": "holo"}, "seven", "seven"),
        ("nonsense", "seven", "seven"),
    ],
)
def test_a_pair_is_typed_by_the_schema(member: Any, text: str, value: Any) -> None:
    root = schema(member, **{"$defs": {"Count": {"type": "integer"}}})
    typed = typed_pairs({"x": text}, root, "t")["x"]
    assert typed == value
    assert type(typed) is type(value)


@pytest.mark.parametrize(
    ("member", "text", "wanted"),
    [
        ({"type": "integer"}, "1.5", "an integer, got '1.5'"),
        ({"type": "integer"}, "true", "an integer, got 'true'"),
        ({"type": "integer"}, '"5"', "an integer, got '\"5\"'"),
        ({"type": "number"}, "NaN", "a number, got 'NaN'"),
        ({"type": "boolean"}, "1", "true or false, got '1'"),
        ({"type": "boolean"}, "True", "true or false, got 'True'"),
        ({"type": "array"}, "a,b", "a JSON array, as in '[1, 2]', got 'a,b'"),
        ({"type": "object"}, "[1]", "a JSON object, as in '{\"a\": 1}', got '[1]'"),
        ({"type": ["boolean", "integer"]}, "x", "true or false or an integer, got 'x'"),
        ({"type": "null"}, "x", "null, got 'x'"),
        ({"type": "integer"}, "x" * 100, f"an integer, got '{'x' * 59}…'"),
    ],
)
def test_a_pair_that_does_not_fit(member: Any, text: str, wanted: str) -> None:
    with pytest.raises(CommandError) as caught:
        typed_pairs({"x": text}, schema(member), "t")
    assert str(caught.value) == f"t: argument 'x': expected {wanted}"
    assert caught.value.code == 2


def test_a_secret_argument_is_not_quoted() -> None:
    root = {"properties": {"api_key": {"type": "integer"}}}
    with pytest.raises(CommandError, match=r"an integer, got \[hidden\]"):
        typed_pairs({"api_key": "sesame"}, root, "t")


def test_an_unknown_name_is_refused_only_by_a_closed_schema() -> None:
    assert typed_pairs({"y": "1"}, schema({}), "t") == {"y": 1}
    with pytest.raises(CommandError, match="t: there is no argument 'y'; it takes x"):
        typed_pairs({"y": "1"}, schema({}, additionalProperties=False), "t")
    with pytest.raises(CommandError, match="it takes no arguments"):
        typed_pairs({"y": "1"}, {"additionalProperties": False}, "t")


def test_pairs_are_split_at_the_first_sign() -> None:
    assert split_pairs(["a=b=c", "d="]) == {"a": "b=c", "d": ""}
    for wrong in ("a", "=b", "-"):
        with pytest.raises(CommandError, match="expected key=value"):
            split_pairs([wrong])


@pytest.mark.parametrize("text", ["[" * 100_000, "{" + '"a":{' * 50_000, "9" * 5000])
def test_hostile_json_is_refused_in_one_line(text: str) -> None:
    words = [text if text.startswith(("{", "[")) else '{"a": ' + text + "}"]
    with pytest.raises(CommandError) as caught:
        object_from_words(words, None)
    assert "\n" not in caught.value.message


def test_a_schema_that_refers_to_itself_ends() -> None:
    loop = {"$ref": "#/properties/x"}
    assert "string" in allowed_types(loop, schema(loop))
    nested: Any = {"type": "array"}
    nested["items"] = nested
    assert type_label(nested, {}) == "array[][][]"


@pytest.mark.parametrize(
    ("member", "label"),
    [
        ({"type": "string"}, "string"),
        ({"type": ["string", "null"]}, "string"),
        ({"type": "array", "items": {"type": "integer"}}, "integer[]"),
        ({"type": "array", "items": {"type": ["integer", "string"]}}, "(integer|string)[]"),
        ({"type": "array"}, "array"),
        ({"enum": ["a", 1, None]}, "a|1|null"),
        ({"enum": list("abcdefgh")}, "a|b|c|d|e|f|…"),
        ({"type": "null"}, "null"),
        ({}, "any"),
        (True, "any"),
    ],
)
def test_what_a_type_is_called(member: Any, label: str) -> None:
    assert type_label(member, schema(member)) == label


def test_all_types_reach_the_server() -> None:
    pairs = [
        "text=5",
        "count=5",
        "share=5",
        "flag=true",
        'items=["a"]',
        'options={"deep": [1]}',
        "size=small",
        "either=five",
        "anything=null",
    ]
    document = invoke("call", "typed", "--json", *pairs, "--", *RICH).document
    assert document["result"]["structuredContent"]["arguments"] == {
        "text": "5",
        "count": 5,
        "share": 5,
        "flag": True,
        "items": ["a"],
        "options": {"deep": [1]},
        "size": "small",
        "either": "five",
        "anything": None,
    }
