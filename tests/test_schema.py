"""Schemas read from annotations, and the way from JSON to the classes that are annotated."""

# Functions are here for their annotations: none is called, and some have none.
# mypy: disable-error-code="empty-body,no-untyped-def,var-annotated"

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Generator, Mapping, Sequence
from functools import partial
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Required,
    TypedDict,
)

import attrs
import jsonschema
import pytest

from sansmcp import LocalProtocolError
from sansmcp.schema import input_schema_of, output_schema_of, schema_of
from sansmcp.signature import ArgumentError, arguments_of, plain, returns_rich
from sansmcp.types import TextContent

if TYPE_CHECKING:
    from nowhere import Missing  # type: ignore[import-not-found]  # as for a program that runs


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


class Loose(TypedDict, total=False):
    must: Required[Annotated[int, "needed"]]
    may: Annotated[NotRequired[str], "not needed"]


class Half(TypedDict):
    known: int
    unknown: Missing


class Pair(NamedTuple):
    left: int
    right: Point | None = None


@attrs.define
class Bounded:
    _count: Annotated[int, {"minimum": 1}] = attrs.field(validator=attrs.validators.lt(5))
    share: float = float("inf")


@attrs.define
class Leaf:
    child: Leaf | Branch | int
    kind: Literal["leaf"]


@attrs.define
class Branch:
    child: Leaf | Branch | int
    kind: Literal["branch"]


Id = NewType("Id", int)

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
            dict[Colour, int],
            {
                "type": "object",
                "additionalProperties": {"type": "integer"},
                "propertyNames": {"enum": ["red", "blue"]},
            },
        ),
        (Literal[Colour.RED, Level.HIGH, "a"], {"enum": ["red", 2, "a"]}),
        (list[Id], {"type": "array", "items": {"type": "integer"}}),
        (
            Loose,
            {
                **OBJECT,
                "properties": {
                    "must": {"type": "integer", "description": "needed"},
                    "may": {"type": "string", "description": "not needed"},
                },
                "required": ["must"],
            },
        ),
        (
            Half,
            {
                **OBJECT,
                "properties": {"known": {"type": "integer"}, "unknown": {}},
                "required": ["known", "unknown"],
            },
        ),
        (
            Bounded,
            {
                **OBJECT,
                "properties": {"_count": {"type": "integer", "minimum": 1}, "share": {"type": "number"}},
                "required": ["_count"],
            },
        ),
        (
            Annotated[Options, "how to look"],
            {
                **OBJECT,
                "properties": {"deep": {"type": "boolean"}, "depth": {"type": "integer"}},
                "required": ["deep"],
                "description": "how to look",
            },
        ),
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


class Odd(enum.Enum):
    A = object()


@pytest.mark.parametrize(
    "hint",
    [
        complex,
        bytes,
        bytearray,
        Callable[[], None],
        list[complex],
        dict[str, bytes],
        dict[int, str],
        dict[Level, str],
        Odd,
        Literal[b"a"],
    ],
)
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

    def f(a, b, c, d): ...

    f.__annotations__ = {"a": first, "b": second, "c": first, "d": second}
    schema = input_schema_of(f)
    assert sorted(schema["$defs"]) == ["Same", "Same_"]
    assert schema["properties"]["a"] == schema["properties"]["c"] != schema["properties"]["b"]


def test_a_name_that_only_a_type_checker_knows_takes_nothing_else_with_it() -> None:
    def tool(count: int, at: Point, other: Missing = None, *, ctx: Missing) -> Options: ...

    schema = input_schema_of(tool)
    assert schema["properties"]["count"] == {"type": "integer"}
    assert schema["properties"]["at"]["required"] == ["x"]
    assert schema["properties"]["other"] == {"default": None}
    assert output_schema_of(tool) == schema_of(Options)
    arguments = arguments_of(tool)
    assert arguments is not None
    assert arguments.convert({"at": {"x": 1}, "other": {}}) == {"at": Point(1), "other": {}}


def test_what_can_be_called_but_is_no_function_has_annotations_too() -> None:
    class Tool:
        def __call__(self, count: int) -> None: ...

        def method(self, count: int) -> None: ...

    def function(count: int, more: str) -> None: ...

    for thing in (Tool(), Tool().method):
        assert input_schema_of(thing)["properties"] == {"count": {"type": "integer"}}
    bound = input_schema_of(partial(partial(function), more="a"))
    assert bound["properties"] == {"count": {"type": "integer"}, "more": {"type": "string", "default": "a"}}


def test_a_class_may_say_its_types_without_annotations() -> None:
    @attrs.define
    class Old:
        a = attrs.field(type=int)
        b = attrs.field(default=1)

    properties = schema_of(Old)["properties"]
    assert properties == {"a": {"type": "integer"}, "b": {"default": 1}}


def test_a_tuple_with_names_is_a_list() -> None:
    schema = schema_of(Pair)
    assert schema["type"] == "array"
    assert schema["prefixItems"][0] == {"type": "integer"}
    assert schema["minItems"] == 1


def test_only_classes_with_fields_say_what_a_tool_returns() -> None:
    def point() -> Point: ...
    def text() -> str: ...
    def mapping() -> dict[str, Any]: ...
    def nothing(): ...

    async def options() -> Options: ...

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
    loose: Loose | None = None,
    bounded: Bounded | None = None,
    named: Pair | None = None,
    only: Literal[Colour.RED, "x"] = "x",
    by_colour: Mapping[Colour, list[Point]] = {},
    tree: Leaf | Branch | None = None,
) -> None: ...


def chain(depth: int) -> dict[str, Any]:
    """What fits `Branch` and, but for its last line, `Leaf`."""
    node: Any = 1
    for _ in range(depth):
        node = {"child": node, "kind": "branch"}
    made: dict[str, Any] = node
    return made


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
        ({"options": {"deep": True}}, {"options": {"deep": True}}),
        ({"loose": {"must": 1}}, {"loose": {"must": 1}}),
        ({"bounded": {"_count": 1}}, {"bounded": Bounded(1)}),
        ({"named": [1]}, {"named": Pair(1)}),
        ({"named": [1, {"x": 2}]}, {"named": Pair(1, Point(2))}),
        ({"only": "red"}, {"only": Colour.RED}),
        ({"by_colour": {"blue": [{"x": 1}]}}, {"by_colour": {Colour.BLUE: [Point(1)]}}),
        ({"tree": chain(2)}, {"tree": Branch(Branch(1, "branch"), "branch")}),
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
        (
            {"nodes": [{"name": "a", "children": [{"name": 5}]}]},
            ["must be text", "nodes[0].children[0].name"],
        ),
        ({"nodes": {"name": "a"}}, ["must be a list"]),
        ({"loose": {"may": "a", "more": 1}}, ["required: must", "unknown: more"]),
        ({"bounded": {"_count": 9}}, ["must be < 5"]),
        ({"named": []}, ["a list of 2, not of 0"]),
        ({"level": True}, ["none of the choices"]),
        ({"only": "blue"}, ["none of the choices"]),
        ({"by_colour": {"green": []}}, ["none of the choices"]),
        ({"tags": [["a"]]}, ["must be text @ tags[0]"]),
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


def test_alternatives_within_alternatives_are_not_tried_again_and_again() -> None:
    arguments = arguments_of(rich)
    assert arguments is not None
    deepest = arguments.convert({"tree": chain(60)})["tree"]
    for _ in range(59):
        deepest = deepest.child
    assert deepest == Branch(1, "branch")
    wrong = chain(60)
    wrong["kind"] = "neither"
    with pytest.raises(ArgumentError, match="fits none"):
        arguments.convert({"tree": wrong})


def test_whether_a_result_has_to_be_looked_through_is_known_before() -> None:
    def rich_list() -> list[Point]: ...
    def steps() -> Generator[Any, Any, Options]: ...
    def blocks() -> list[TextContent]: ...
    def untold(): ...

    assert [returns_rich(f) for f in (rich_list, steps, blocks, untold)] == [True, True, False, False]


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
        ({"p": [Point(1)], Colour.RED: {Level.LOW}}, {"p": [{"x": 1, "y": 0.0, "label": None}], "red": [1]}),
        (Pair(1, Point(2)), [1, {"x": 2, "y": 0.0, "label": None}]),
        (Bounded(2), {"_count": 2, "share": float("inf")}),
        (TextContent(text="a"), TextContent(text="a")),
        ("text", "text"),
        (None, None),
    ],
)
def test_what_a_handler_returns_becomes_json(value: Any, expected: Any) -> None:
    assert plain(value) == expected
