"""What the declarations of a class mean in one revision.

`plan_for(cls, revision)` turns annotations and field declarations into `FieldPlan`s over a handful
of `Node`s, the only shapes that the protocol's objects are made of. `codegen` and `projection` work
from plans alone.
"""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, Union

from ..records import record
from ..revisions import Revision
from .base import (
    NOTHING,
    ROOT_OBJECT,
    UNSET,
    Choose,
    JsonObject,
    TypeSpec,
    Unknown,
    Unset,
    WireObject,
    camel_case,
)


@record
class Scalar:
    """One of the JSON scalars, or one of several: of `kinds` "str", "int", "float", "bool"."""

    kinds: tuple[str, ...]


@record
class Choice:
    """One of some strings."""

    values: tuple[str, ...]


@record
class AnyValue:
    """Any JSON value, null included."""


@record
class AnyObject:
    """A JSON object, not looked into; `root_object`: a schema that should say `type: object`."""

    root_object: bool = False


@record
class ListOf:
    """An array."""

    item: Node
    or_single: bool = False
    """Or one item without the array around it."""


@record
class MapOf:
    """An object whose values have one shape."""

    value: Node


@record
class Object:
    """An object that a class stands for."""

    cls: type[WireObject]


@record
class OneOf:
    """An object that one of several classes stands for.

    `tag` is the wire name of the member that tells which, None where `pick` does. `unknown` is
    the class for what none of them stands for, None where that is an error.
    """

    members: tuple[type[WireObject], ...]
    tag: str | None
    pick: Callable[[JsonObject, Revision], type[WireObject] | None] | None
    unknown: type[Unknown] | None


@record
class Mixed:
    """A scalar or an array."""

    scalar: Node
    array: ListOf


Node: TypeAlias = Scalar | Choice | AnyValue | AnyObject | ListOf | MapOf | Object | OneOf | Mixed


@record
class FieldPlan:
    """One field in one revision."""

    attribute: str
    name: str
    """On the wire, in this revision."""
    node: Node
    exists: bool
    """Whether this revision has the member."""
    required: bool
    nullable: bool
    """Whether null is a legal value."""
    absent: Any
    """The attribute's value when the member is absent; `NOTHING` where it never is."""
    default: Any
    """The attribute's default, or `NOTHING`."""
    missing: Callable[[], Any] | None
    fill: Any
    stamped: bool
    firm: bool
    secret: bool
    narrowed: bool
    """Whether a later revision allows more values."""
    names: tuple[str, ...]
    """Every wire name the member has in any revision."""


@record
class Plan:
    """One class in one revision."""

    cls: type[WireObject]
    spec: TypeSpec
    revision: Revision
    tag: tuple[str, str] | None
    """Wire name and value of the constant member."""
    fields: tuple[FieldPlan, ...]

    @property
    def known(self) -> tuple[FieldPlan, ...]:
        """The fields that the revision has."""
        return tuple(f for f in self.fields if f.exists)


def is_wire_type(cls: object) -> bool:
    """Whether `cls` is a protocol object's class."""
    return isinstance(cls, type) and issubclass(cls, WireObject)


_PLANS: dict[tuple[type[Any], Revision], Plan] = {}


def plan_for(cls: type[WireObject], revision: Revision) -> Plan:
    """Return what `cls` means in `revision`."""
    plan = _PLANS.get((cls, revision))
    if plan is None:
        plan = _PLANS[cls, revision] = _plan(cls, revision)
    return plan


def _plan(cls: type[WireObject], revision: Revision) -> Plan:
    spec: TypeSpec = cls.__wire__
    tag = (spec.tag, getattr(cls, spec.tag)) if spec.tag is not None else None
    annotations = _annotations(cls)
    fields = tuple(
        _field_plan(a, annotations[a.name], spec, revision) for a in cls.__attrs_attrs__ if a.name != "extra"
    )
    return Plan(cls, spec, revision, tag, fields)


def node_for(annotation: Any) -> tuple[Node, bool, bool]:
    """Return an annotation's node, whether it has None in it, and whether it has `Unset`."""
    args = _members(annotation)
    nullable = type(None) in args
    unset = Unset in args
    rest = [a for a in args if a is not type(None) and a is not Unset]
    nodes = [_plain_node(a) for a in rest]
    marks = getattr(annotation, "__metadata__", ())
    return _join(nodes, marks), nullable, unset


def _field_plan(a: Any, where: _Annotation, spec: TypeSpec, revision: Revision) -> FieldPlan:
    told: typing.Mapping[str, Any] = a.metadata
    node, nullable, unset = node_for(where.resolve(where.text))
    before = told.get("before")
    narrowed = before is not None and revision < before[0]
    if before is not None and narrowed:
        node = node_for(where.resolve(before[1]))[0]
    since, until = told.get("since"), told.get("until")
    name = told.get("name", camel_case(a.name))
    names: tuple[str, ...] = (name,)
    renamed = told.get("renamed")
    if renamed is not None:
        names = (name, renamed[1])
        if revision >= renamed[0]:
            name = renamed[1]
    required_in = told.get("required_in")
    optional = a.default is not NOTHING
    required = revision in required_in if required_in is not None else not optional
    # `x: T | None` with a default reads "absent or a T"; only a field that has no other way to
    # be absent, or that says `Unset` for it, can hold null.
    is_any = isinstance(node, AnyValue)
    null_ok = (nullable or is_any) if unset or not optional else False
    absent = UNSET if unset else None if nullable else a.default
    firm = told.get("firm", spec.firm or not optional)
    return FieldPlan(
        attribute=a.name,
        name=name,
        node=node,
        exists=(since is None or since <= revision) and (until is None or revision <= until),
        required=required,
        nullable=null_ok,
        absent=absent,
        default=a.default,
        missing=told.get("missing"),
        fill=told.get("fill", NOTHING),
        stamped=bool(told.get("stamped")),
        firm=firm,
        secret=bool(told.get("secret")),
        narrowed=narrowed,
        names=names,
    )


class _Annotation:
    """The text of an annotation and the module whose names it uses."""

    __slots__ = ("module", "text")

    def __init__(self, text: Any, module: str) -> None:
        self.text = text
        self.module = module

    def resolve(self, text: Any) -> Any:
        if not isinstance(text, str):
            return text
        return eval(text, vars(sys.modules[self.module]))


def _annotations(cls: type[Any]) -> dict[str, _Annotation]:
    found: dict[str, _Annotation] = {}
    for base in reversed(cls.__mro__):
        for name, text in inspect.get_annotations(base).items():
            found[name] = _Annotation(text, base.__module__)
    return found


def _members(annotation: Any) -> list[Any]:
    origin = typing.get_origin(annotation)
    if origin is typing.Annotated:
        return _members(annotation.__origin__)
    if origin is Union or origin is types.UnionType:
        return [m for arg in typing.get_args(annotation) for m in _members_kept(arg)]
    return [annotation]


def _members_kept(annotation: Any) -> list[Any]:
    # An annotated union inside a union keeps its mark: it is one member.
    if typing.get_origin(annotation) is typing.Annotated:
        return [annotation]
    return _members(annotation)


_SCALARS = {str: "str", int: "int", float: "float", bool: "bool"}


def _plain_node(annotation: Any) -> Node:
    if annotation is Any:
        return AnyValue()
    if annotation in _SCALARS:
        return Scalar((_SCALARS[annotation],))
    if is_wire_type(annotation):
        return Object(annotation)
    origin = typing.get_origin(annotation)
    args = typing.get_args(annotation)
    if origin is Literal:
        return Choice(args)
    if origin is list:
        return ListOf(node_for(args[0])[0])
    if origin is dict:
        value = node_for(args[1])[0]
        return AnyObject() if isinstance(value, AnyValue) else MapOf(value)
    if origin is typing.Annotated:
        if ROOT_OBJECT in annotation.__metadata__:
            return AnyObject(root_object=True)
        return node_for(annotation)[0]
    raise TypeError(f"no JSON shape for the annotation {annotation!r}")


def _join(nodes: Sequence[Node], marks: tuple[Any, ...]) -> Node:
    if ROOT_OBJECT in marks:
        return AnyObject(root_object=True)
    if len(nodes) == 1:
        return nodes[0]
    if all(isinstance(n, Scalar) for n in nodes):
        return Scalar(tuple(k for n in nodes if isinstance(n, Scalar) for k in n.kinds))
    if all(isinstance(n, Object) for n in nodes):
        return _one_of([n.cls for n in nodes if isinstance(n, Object)], marks)
    lists = [n for n in nodes if isinstance(n, ListOf)]
    singles = [n for n in nodes if not isinstance(n, ListOf)]
    item = lists[0].item if len(lists) == 1 else None
    if isinstance(item, OneOf):
        single = _join(singles, ())
        if isinstance(single, OneOf) and single.members == item.members:
            return ListOf(item, or_single=True)
    if len(lists) == 1 and all(isinstance(n, Scalar) for n in singles):
        return Mixed(_join(singles, ()), lists[0])
    raise TypeError(f"nothing tells these shapes apart: {nodes}")


def _one_of(classes: list[type[WireObject]], marks: tuple[Any, ...]) -> OneOf:
    members = tuple(c for c in classes if not issubclass(c, Unknown))
    unknown = next((c for c in classes if issubclass(c, Unknown)), None)
    pick = next((m.pick for m in marks if isinstance(m, Choose)), None)
    tags = {c.__wire__.tag for c in members}
    if pick is None and (len(tags) != 1 or None in tags):
        raise TypeError(f"nothing tells the members of the union {classes} apart")
    return OneOf(members, None if pick is not None else tags.pop(), pick, unknown)
