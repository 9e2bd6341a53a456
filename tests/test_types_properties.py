"""What holds for every class, revision and value: made from the classes' own declarations."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sansmcp.types as t
from sansmcp.errors import LocalProtocolError
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.types import StructureError, WireObject, project, structure, unstructure
from sansmcp.types.codegen import MisfitError
from sansmcp.types.convert import _reader
from sansmcp.types.plan import (
    AnyObject,
    AnyValue,
    Choice,
    ListOf,
    MapOf,
    Mixed,
    Node,
    Object,
    OneOf,
    Scalar,
    plan_for,
)

CLASSES = [
    found
    for name in t.__all__
    if isinstance(found := getattr(t, name), type)
    and issubclass(found, WireObject)
    and not issubclass(found, t.Unknown)
]
PAIRS = [(cls, r) for cls in CLASSES for r in ALL_REVISIONS if cls.__wire__.exists_in(r)]

NAMES = st.text("abc/", min_size=1, max_size=3).map(lambda text: f"x-{text}")
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=4,
)
KINDS: dict[str, st.SearchStrategy[Any]] = {
    "str": st.text(max_size=5),
    "int": st.integers(),
    "float": st.floats(allow_nan=False, allow_infinity=False) | st.integers(),
    "bool": st.booleans(),
}


def values(node: Node, revision: Revision) -> st.SearchStrategy[Any]:
    """JSON values of a shape."""
    match node:
        case Scalar(kinds):
            return st.one_of([KINDS[kind] for kind in kinds])
        case Choice(choices):
            return st.sampled_from(choices)
        case AnyValue():
            return JSON
        case AnyObject(root):
            some = st.dictionaries(NAMES, JSON, max_size=2)
            return some.map(lambda d: {"type": "object", **d}) if root else some
        case ListOf(item, or_single):
            one = values(item, revision)
            many = st.lists(one, max_size=2)
            return many | one if or_single else many
        case MapOf(value):
            return st.dictionaries(NAMES, values(value, revision), max_size=2)
        case Object(cls):
            return objects(cls, revision)
        case OneOf(members):
            return st.one_of([objects(c, revision) for c in members if c.__wire__.exists_in(revision)])
        case Mixed(scalar, array):
            return values(scalar, revision) | values(array, revision)


def objects(cls: type[WireObject], revision: Revision) -> st.SearchStrategy[dict[str, Any]]:
    """JSON objects that a class stands for."""
    plan = plan_for(cls, revision)
    needed = {f.name: values(f.node, revision) for f in plan.known if f.required}
    others = {f.name: values(f.node, revision) for f in plan.known if not f.required}
    if plan.tag is not None:
        needed[plan.tag[0]] = st.just(plan.tag[1])
    if cls is t.ElicitRequestFormParams and revision >= "2025-11-25":
        others["mode"] = st.just("form")
    return st.builds(
        lambda known, unknown: unknown | known,
        st.fixed_dictionaries(needed, optional=others),
        st.dictionaries(NAMES, JSON, max_size=1),
    )


@st.composite
def cases(draw: st.DrawFn) -> tuple[type[WireObject], Revision, dict[str, Any]]:
    cls, revision = draw(st.sampled_from(PAIRS))
    return cls, revision, draw(objects(cls, revision))


@pytest.mark.req("B10")
@given(cases())
def test_round_trip(case: tuple[type[WireObject], Revision, dict[str, Any]]) -> None:
    cls, revision, value = case
    before = copy.deepcopy(value)
    tolerances: list[str] = []
    typed = structure(value, cls, revision, strict=True, tolerances=tolerances)
    assert tolerances == []
    assert unstructure(typed, revision) == value
    assert unstructure(typed, revision, unsupported="error") == value
    assert project(value, cls, revision) is value
    assert value == before


@pytest.mark.req("B10")
@given(cases(), st.data())
def test_damage(case: tuple[type[WireObject], Revision, dict[str, Any]], data: st.DataObject) -> None:
    """A damaged value is refused with a path or tolerated without loss; nothing else happens."""
    cls, revision, value = case
    hurt = copy.deepcopy(value)
    place: Any = hurt
    while True:
        steps = list(place) if isinstance(place, dict) else list(range(len(place)))
        if not steps:
            return
        step = data.draw(st.sampled_from(steps))
        if not isinstance(place[step], (dict, list)) or data.draw(st.booleans()):
            break
        place = place[step]
    if isinstance(place, dict) and data.draw(st.booleans()):
        del place[step]
    else:
        place[step] = data.draw(JSON.filter(lambda v: v is not None))
    tolerances: list[str] = []
    try:
        typed = structure(hurt, cls, revision, tolerances=tolerances)
    except StructureError:
        with pytest.raises(StructureError):
            structure(hurt, cls, revision, strict=True)
    else:
        written = unstructure(typed, revision)
        assert {name: written[name] for name in hurt} == hurt
        if tolerances:
            with pytest.raises(StructureError):
                structure(hurt, cls, revision, strict=True)
    project(hurt, cls, revision)


@given(st.sampled_from(PAIRS), JSON | st.dictionaries(st.sampled_from(["type", "name", "content"]), JSON))
def test_any_json(pair: tuple[type[WireObject], Revision], value: Any) -> None:
    """The fast and the tracing build agree, also on what is tolerated."""
    cls, revision = pair
    fast: list[Any] = []
    traced: list[str] = []
    try:
        quick = _reader(revision, False, False).object(cls)(value, fast)
    except MisfitError:
        with pytest.raises(StructureError):
            structure(value, cls, revision)
    else:
        assert _reader(revision, False, True).object(cls)(value, traced, "$") == quick
        assert bool(fast) == bool(traced)


@pytest.mark.req("A18")
@given(cases(), st.sampled_from(ALL_REVISIONS))
def test_two_ways_to_project(
    case: tuple[type[WireObject], Revision, dict[str, Any]], target: Revision
) -> None:
    """Raw and typed objects look the same to a peer of another revision, and fit there."""
    cls, revision, value = case
    if not cls.__wire__.exists_in(target):
        return
    try:
        written = unstructure(structure(value, cls, revision), target)
    except LocalProtocolError:
        return
    assert project(value, cls, target) == written
    assert project(written, cls, target) is written
    structure(written, cls, target)
