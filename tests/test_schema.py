"""Schemas read from annotations, and the way from JSON to the classes that are annotated."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, TypedDict

import attrs
import jsonschema
import pytest

from sansmcp import LocalProtocolError
from sansmcp.schema import input_schema_of, output_schema_of, schema_of
from sansmcp.signature import ArgumentError, arguments_of, plain


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@attrs.define
class Point:
    """Where it is."""

    x: float
    y: float = 0.0
    label: Annotated[str | None, "shown beside it"] = None


@dataclasses.dataclass
class Line:
    start: Point
    end: Point
    colour: Colour = Colour.RED
    notes: list[str] = dataclasses.field(default_factory=list)


class Options(TypedDict):
    deep: bool
    depth: NotRequired[int]


@attrs.define
class Node:
    name: str
    children: list[Node] = attrs.Factory(list)
    _made: int = attrs.field(default=0, init=False)


OBJECT = {"type": "object", "additionalProperties": False}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (int | None, {"anyOf": [{"type": "integer"}, {"type": "null"}]}),
        (Any, {}),
        (Literal["a", 1, True], {"enum": ["a", 1, True]}),
        (Colour, {"enum": ["red", "blue"]}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[Colour], {"type": "array", "items": {"enum": ["red", "blue"]}}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
            },
        ),
        (frozenset[str], {"type": "array", "items": {"type": "string"}, "uniqueItems": True}),
        (dict[str, float], {"type": "object", "additionalProperties": {"type": "number"}}),
        (Mapping[str, Any], {"type": "object", "additionalProperties": {}}),
        (
            Annotated[int, "how many", {"minimum": 1}],
            {"type": "integer", "description": "how many", "minimum": 1},
        ),
        (
            Options,
            {
                **OBJECT,
                "properties": {"deep": {"type": "boolean"}, "depth": {"type": "integer"}},
                "required": ["deep"],
            },
        ),
        (
            Point,
            {
                **OBJECT,
                "description": "Where it is.",
                "properties": {
                    "x": {"type": "number"},
                    "y": {"type": "number", "default": 0.0},
                    "label": {
                        "anyOf": [{"type": "string"}, {"type": "null"}],
                        "description": "shown beside it",
                        "default": None,
                    },
                },
                "required": ["x"],
            },
        ),
        (
            Node,
            {
                **OBJECT,
                "properties": {
                    "name": {"type": "string"},
                    "children": {"type": "array", "items": {"$ref": "#"}},
                },
                "required": ["name"],
            },
        ),
    ],
)
def test_an_annotation_has_a_schema(hint: Any, schema: dict[str, Any]) -> None:
    assert schema_of(hint) == schema
    jsonschema.Draft202012Validator.check_schema(schema)


@pytest.mark.parametrize("hint", [complex, bytes, Callable[[], None], list[complex], dict[str, bytes]])
def test_an_annotation_without_a_schema(hint: Any) -> None:
    with pytest.raises(LocalProtocolError, match="input_schema"):
        schema_of(hint)


def test_what_occurs_once_is_in_its_place_and_what_occurs_more_often_is_defined_once() -> None:
    schema = schema_of(Line)
    assert list(schema["$defs"]) == ["Point"]
    assert schema["properties"]["start"] == schema["properties"]["end"] == {"$ref": "#/$defs/Point"}
    assert schema["properties"]["colour"] == {"enum": ["red", "blue"], "default": "red"}
    assert "default" not in schema["properties"]["notes"]
    assert "description" not in schema, "the signature of a dataclass says nothing"

    def once(at: Point) -> None: ...

    assert input_schema_of(once)["properties"]["at"]["properties"]["x"] == {"type": "number"}

    def tree(node: Node, other: Options) -> None: ...

    made = input_schema_of(tree)
    assert list(made["$defs"]) == ["Node"]
    assert made["$defs"]["Node"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Node"}
    assert made["properties"]["node"] == {"$ref": "#/$defs/Node"}
    assert made["properties"]["other"]["required"] == ["deep"]
    jsonschema.Draft202012Validator(made).validate(
        {"node": {"name": "a", "children": [{"name": "b"}]}, "other": {"deep": True}}
    )


def test_classes_of_one_name_are_kept_apart() -> None:
    def make(kind: type) -> type:
        return attrs.make_class("Same", {"a": attrs.field(type=kind)})

    first, second = make(int), make(str)

    def f(a, b, c, d): ...  # type: ignore[no-untyped-def]

    f.__annotations__ = {"a": first, "b": second, "c": first, "d": second}
    schema = input_schema_of(f)
    assert sorted(schema["$defs"]) == ["Same", "Same_"]
    assert schema["properties"]["a"] == schema["properties"]["c"] != schema["properties"]["b"]


def test_only_classes_with_fields_say_what_a_tool_returns() -> None:
    def point() -> Point: ...  # type: ignore[empty-body]
    def text() -> str: ...  # type: ignore[empty-body]
    def mapping() -> dict[str, Any]: ...  # type: ignore[empty-body]
    def nothing(): ...  # type: ignore[no-untyped-def]

    async def options() -> Options: ...  # type: ignore[empty-body]

    assert output_schema_of(point) == schema_of(Point)
    assert output_schema_of(options) == schema_of(Options)
    assert [output_schema_of(f) for f in (text, mapping, nothing)] == [None, None, None]


# arguments ---------------------------------------------------------------------------------------


def rich(
    at: Point,
    line: Line | None = None,
    colour: Colour = Colour.RED,
    tags: frozenset[str] = frozenset(),
    pair: tuple[int, str] = (0, ""),
    what: Point | Colour | int = 0,
    options: Options | None = None,
    nodes: Sequence[Node] = (),
    level: Annotated[Level, "how high"] = Level.LOW,
    count: int = 0,
) -> None: ...


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"at": {"x": 1}}, {"at": Point(1)}),
        ({"at": {"x": 1.5, "y": 2, "label": "a"}}, {"at": Point(1.5, 2, "a")}),
        ({"line": {"start": {"x": 1}, "end": {"x": 2}}}, {"line": Line(Point(1), Point(2))}),
        ({"line": None}, {"line": None}),
        ({"colour": "blue"}, {"colour": Colour.BLUE}),
        ({"tags": ["a", "b", "a"]}, {"tags": frozenset({"a", "b"})}),
        ({"pair": [1, "a"]}, {"pair": (1, "a")}),
        ({"what": {"x": 1}}, {"what": Point(1)}),
        ({"what": "red"}, {"what": Colour.RED}),
        ({"what": 7}, {"what": 7}),
        ({"options": {"deep": True, "depth": 2}}, {"options": {"deep": True, "depth": 2}}),
        ({"nodes": [{"name": "a", "children": [{"name": "b"}]}]}, {"nodes": [Node("a", [Node("b")])]}),
        ({"level": 2}, {"level": Level.HIGH}),
        ({"count": "left as it is"}, {"count": "left as it is"}),
        ({}, {}),
    ],
)
def test_arguments_become_what_the_handler_wants(given: dict[str, Any], expected: dict[str, Any]) -> None:
    arguments = arguments_of(rich)
    assert arguments is not None
    converted = arguments.convert(given)
    assert {k: list(v) if k == "nodes" else v for k, v in converted.items()} == expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"at": {"x": "1"}}, ["must be a number", "at"]),
        ({"at": {"x": True}}, ["must be a number"]),
        ({"at": {}}, ["required: x"]),
        ({"at": {"x": 1, "z": 2}}, ["unknown: z"]),
        ({"at": 5}, ["at"]),
        ({"line": {"start": {"x": 1}, "end": {"x": None}}}, ["must be a number", "line.end.x"]),
        ({"colour": "green"}, ["green"]),
        ({"pair": [1]}, ["pair"]),
        ({"what": "neither"}, ["fits none"]),
        ({"options": {"deep": 1}}, ["true or false"]),
        ({"nodes": [{"name": "a", "children": [{"name": 5}]}]}, ["must be text"]),
    ],
)
def test_arguments_that_are_not_what_the_handler_wants(given: dict[str, Any], told: list[str]) -> None:
    arguments = arguments_of(rich)
    assert arguments is not None
    with pytest.raises(ArgumentError) as caught:
        arguments.convert(given)
    assert all(part in str(caught.value) for part in told), str(caught.value)


def test_plain_arguments_need_no_conversion() -> None:
    def simple(a: str, b: int | None, c: list[str], d: dict[str, Any], e: Literal["x"]) -> None: ...

    assert arguments_of(simple) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1), {"x": 1, "y": 0.0, "label": None}),
        (
            Line(Point(1), Point(2), Colour.BLUE),
            {
                "start": {"x": 1, "y": 0.0, "label": None},
                "end": {"x": 2, "y": 0.0, "label": None},
                "colour": "blue",
                "notes": [],
            },
        ),
        ({"a": 1}, {"a": 1}),
        ("text", "text"),
        (None, None),
    ],
)
def test_what_a_handler_returns_becomes_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
