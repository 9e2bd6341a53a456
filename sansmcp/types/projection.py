"""Raw JSON objects, written for one revision, as another one has them.

The counterpart of `unstructure` for those who answer with dicts. Nothing is validated: members
nobody knows are kept, and what does not look like its declaration is left alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

from ..errors import LocalProtocolError
from ..revisions import LATEST, Revision
from .base import NOTHING, JsonObject, JsonValue, WireObject
from .plan import (
    AnyObject,
    FieldPlan,
    ListOf,
    MapOf,
    Mixed,
    Node,
    Object,
    OneOf,
    Plan,
    node_for,
    plan_for,
)

Projector: TypeAlias = Callable[[Any], Any]
"""Returns the very value it got when there is nothing to change."""


def project(raw: JsonObject, cls: Any, revision: Revision) -> JsonObject:
    """Return `raw`, an object that `cls` stands for, as `revision` has it.

    Members that `cls` has in other revisions only are left out, members that the revision requires
    and that have one sensible value (`resultType`, `ttlMs`, `cacheScope`) are added, blocks that it
    lacks are replaced by their stand-in. Returns `raw` itself when there is nothing to change, and
    never changes it.

    Raises LocalProtocolError when `raw` holds an object that the revision has no way to express.
    """
    projector = _projector_for(cls, revision)
    made: JsonObject = raw if projector is None else projector(raw)
    return made


@cache
def _projectors(revision: Revision) -> Projectors:
    return Projectors(revision)


@cache
def _projector_for(cls: Any, revision: Revision) -> Projector | None:
    # by class: each call of `node_for` makes a node of its own, which no table would find again
    return _projectors(revision).of(node_for(cls)[0])


class Projectors:
    """Makes and keeps the projectors of one revision; None stands for "changes nothing"."""

    def __init__(self, revision: Revision) -> None:
        self.revision = revision
        self.made: dict[Node, Projector | None] = {}

    def of(self, node: Node) -> Projector | None:
        """Return the projector of values of this shape."""
        if node not in self.made:
            self.made[node] = self._make(node)
        return self.made[node]

    def _make(self, node: Node) -> Projector | None:
        match node:
            case Object(cls):
                return self._object(cls)
            case OneOf():
                return self._one_of(node)
            case ListOf(item, or_single):
                each = self.of(item)
                return None if each is None else _items(each, or_single)
            case MapOf(value):
                each = self.of(value)
                return None if each is None else _values(each)
            case Mixed(_, array):
                return self.of(array)
            case _:
                return None

    def _object(self, cls: type[WireObject]) -> Projector | None:
        plan = plan_for(cls, self.revision)
        before = plan.spec.adapts_before
        plain = self._members(plan) if plan.spec.exists_in(self.revision) else None
        if before is None or self.revision >= before:
            return plain
        return self._adapted(cls, plain)

    def _members(self, plan: Plan) -> Projector | None:
        """Return the projector for an object whose class the revision has."""
        here = {f.name for f in plan.known}
        drop = frozenset(n for f in plan.fields for n in f.names) - here
        renames = [(n, f.name) for f in plan.known for n in f.names if n != f.name]
        add = [(f.name, f.fill) for f in plan.known if f.required and f.fill is not NOTHING]
        kind = next((f.fill for f in plan.known if f.name == "resultType"), None)
        checks = [
            (f.name, f) for f in plan.known if f.narrowed and not f.firm and isinstance(f.node, AnyObject)
        ]
        inner = [(f.name, p) for f in plan.known if (p := self.of(f.node)) is not None]
        if not (drop or add or checks or inner):
            return None
        touched = drop.union((n for n, _ in renames), (n for n, _ in checks), (n for n, _ in inner))

        def projector(value: Any) -> Any:
            if not isinstance(value, dict) or (not add and touched.isdisjoint(value)):
                return value
            changed: JsonObject = {}
            gone = {name for name in drop if name in value}
            for old, new in renames:
                if old in value and new not in value:
                    changed[new] = value[old]
            for name, f in checks:
                if name in value and not _narrow_enough(f, value[name]):
                    gone.add(name)
            for name, inside in inner:
                if name in value:
                    member = inside(value[name])
                    if member is not value[name]:
                        changed[name] = member
            # A result of another kind than the class's (`input_required`) has other members.
            if value.get("resultType", kind) == kind:
                for name, fill in add:
                    if name not in value:
                        changed[name] = fill
            if not gone and not changed:
                return value
            return {k: v for k, v in value.items() if k not in gone} | changed

        return projector

    def _one_of(self, node: OneOf) -> Projector | None:
        projectors = {cls: self._object(cls) for cls in node.members}
        if not any(projectors.values()):
            return None
        tags = {getattr(c, c.__wire__.tag): c for c in node.members if c.__wire__.tag is not None}

        def projector(value: Any) -> Any:
            if not isinstance(value, dict):
                return value
            if node.pick is not None:
                # As the newest revision tells the members apart: the object may be of its kind.
                cls = node.pick(value, LATEST)
            else:
                kind = value.get(node.tag)
                cls = tags.get(kind) if isinstance(kind, str) else None
            inside = projectors.get(cls) if cls is not None else None
            return value if inside is None else inside(value)

        return projector

    def _adapted(self, cls: type[WireObject], plain: Projector | None) -> Projector:
        """Return the projector for objects that may need a stand-in."""
        # Stand-ins are made of typed objects.
        from .convert import StructureError, structure, unstructure

        known_in = cls.__wire__.until or LATEST

        def projector(value: Any) -> Any:
            try:
                typed = structure(value, cls, known_in)
            except StructureError:
                return value
            other = typed.stand_in(self.revision)
            if other is typed:
                return value if plain is None else plain(value)
            if other is None:
                raise LocalProtocolError(f"this {cls.__name__} cannot be expressed in {self.revision}")
            made = unstructure(other, self.revision)
            return value if made == value else made

        return projector


def _narrow_enough(f: FieldPlan, value: JsonValue) -> bool:
    """Whether a value that a later revision allows fits the older one, which wants an object."""
    root = isinstance(f.node, AnyObject) and f.node.root_object
    return isinstance(value, dict) and (not root or value.get("type") == "object")


def _items(each: Projector, or_single: bool) -> Projector:
    def projector(value: Any) -> Any:
        if not isinstance(value, (list, tuple)):
            return each(value) if or_single else value
        made = [each(item) for item in value]
        same = all(new is old for new, old in zip(made, value, strict=True))
        return value if same else made

    return projector


def _values(each: Projector) -> Projector:
    def projector(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        made = {name: each(item) for name, item in value.items()}
        return value if all(made[name] is item for name, item in value.items()) else made

    return projector
