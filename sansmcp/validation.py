"""Checking values against JSON Schemas: what may be checked at all, and by whom.

Schemas come from peers. Before one is compiled, `check_schema` looks at it as data: a dialect that is
known, no reference that would fetch something, bounded depth and size, and no chain of references that
takes for ever. Where schemas come back to themselves, how long that takes depends on the value too, and
is counted before each check. The checking itself is left to a library behind `SchemaValidator`;
`validators` has two.

Specification: 2026-07-28, basic/index (JSON Schema usage, security considerations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from typing import Any, Final, Protocol, TypeAlias, runtime_checkable

from .errors import LocalProtocolError
from .records import frozen
from .wire.jsoncodec import JsonValue

SchemaCheck: TypeAlias = Callable[[Any], "str | None"]
"""Takes a JSON value; returns what is wrong with it, in a line for people and models, or None."""

Schema: TypeAlias = Mapping[str, JsonValue] | bool
"""A JSON Schema."""

DIALECTS: Final = frozenset(
    {
        "https://json-schema.org/draft/2020-12/schema",
        "https://json-schema.org/draft/2019-09/schema",
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-06/schema",
        "http://json-schema.org/draft-04/schema",
    }
)
"""Dialects that are understood; a schema that names none is of 2020-12."""

_REFERENCES: Final = ("$ref", "$dynamicRef", "$recursiveRef")
_ONE: Final = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "contentSchema",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
_LIST: Final = frozenset({"allOf", "anyOf", "items", "oneOf", "prefixItems"})
_MAP: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"}
)
_IN_PLACE: Final = frozenset(
    {"allOf", "anyOf", "dependencies", "dependentSchemas", "else", "if", "not", "oneOf", "then"}
)
"""Keywords whose schemas look at the same value as the schema that they are in."""

_MANY: Final = 1 << 64
"""Nobody counts further."""

_LOOKAHEAD: Final = 50_000
"""Steps in which a schema is looked through for what could grow."""


@runtime_checkable
class SchemaValidator(Protocol):
    """Compiles schemas. `validators.default_validator` is one."""

    def compile(self, schema: Schema) -> SchemaCheck:
        """Return what checks values against `schema`, which `check_schema` has passed.

        Raises UnusableSchemaError for one that it cannot use.
        """
        ...


class UnusableSchemaError(LocalProtocolError):
    """A schema is not one to check anything against; says why."""


@frozen(kw_only=True)
class SchemaLimits:
    """What a schema may be, at most. Past it, it is not used: UnusableSchemaError says why."""

    max_depth: int = 64
    """Schemas within schemas."""
    max_schemas: int = 4096
    """Schemas in it, itself included."""
    max_steps: int = 20_000
    """Schemas that look at one value, references followed: a few lines can make that astronomical."""
    max_looks: int = 1_000_000
    """Schemas that look at a value or at something in it, each as often as it does. Past it the value
    cannot be checked, and that is what is wrong with it. Counted for schemas alone with which the looks at
    one value can grow with its depth."""


def check_schema(schema: object, limits: SchemaLimits | None = None) -> None:
    """Raise UnusableSchemaError unless `schema` is safe to compile and to check values against.

    What `max_looks` bounds shows only with a value: `compile_schema` sees to that.
    """
    _survey(schema, limits or SchemaLimits())


def compile_schema(
    validator: SchemaValidator, schema: Schema, limits: SchemaLimits | None = None
) -> SchemaCheck:
    """`check_schema`, then compile. Raises UnusableSchemaError as both do."""
    limits = limits or SchemaLimits()
    looks = _survey(schema, limits)
    check = validator.compile(schema)
    if looks is None:
        return check

    def bounded(value: Any) -> str | None:
        if looks.exceed(limits.max_looks, value):
            return f"cannot be checked: schemas would look at it more than {limits.max_looks} times"
        return check(value)

    return bounded


# looking at a schema -----------------------------------------------------------------------------


def _survey(schema: object, limits: SchemaLimits) -> _Looks | None:
    """What `check_schema` does. Returns what counts looks, if a deep value could make them too many."""
    if not isinstance(schema, (Mapping, bool)):
        raise UnusableSchemaError("a schema is an object, true or false")
    if isinstance(schema, bool):
        return None
    dialect = schema.get("$schema")
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") not in DIALECTS):
        raise UnusableSchemaError(f"the dialect {str(dialect)[:128]!r} is not known")
    found: list[Mapping[str, Any]] = []
    _collect(schema, found, limits)
    anchors = _anchors(schema, found)
    known = {id(part) for part in found}
    targets: dict[int, list[Mapping[str, Any]]] = {}
    for part in found:  # grows by what is referred to where no schema was looked for
        if id(part) in targets:
            continue  # one object in several places: who makes schemas here may do that
        targets[id(part)] = []
        for keyword in _REFERENCES:
            reference = part.get(keyword)
            if reference is None:
                continue
            target = _target(schema, anchors, reference, keyword)
            targets[id(part)].append(target)
            if id(target) not in known:
                before = len(found)
                _collect(target, found, limits)
                known.update(map(id, found[before:]))
    steps, _ = _count(found, targets, _IN_PLACE)
    if max(steps.values()) > limits.max_steps:
        raise UnusableSchemaError(f"one value would be looked at more than {limits.max_steps} times")
    ways, comes_back = _count(found, targets, None)
    if not comes_back and max(ways.values()) <= limits.max_steps:
        return None
    looks = _Looks(schema, targets, steps)
    return None if looks.are_few(limits.max_steps) else looks


def _parts(schema: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The schemas right inside of `schema`, each with the keyword that it stands under."""
    for keyword, value in schema.items():
        if isinstance(value, Mapping):
            if keyword in _MAP:
                for part in value.values():
                    yield keyword, part
            elif keyword in _ONE:
                yield keyword, value
        elif isinstance(value, list) and keyword in _LIST:
            for part in value:
                yield keyword, part


def _collect(schema: Mapping[str, Any], found: list[Mapping[str, Any]], limits: SchemaLimits) -> None:
    """Add `schema` and all in it to `found`."""
    waiting: list[tuple[Mapping[str, Any], int]] = [(schema, 1)]
    while waiting:
        part, depth = waiting.pop()
        found.append(part)
        if depth > limits.max_depth:
            raise UnusableSchemaError(f"schemas nested deeper than {limits.max_depth}")
        if len(found) + len(waiting) > limits.max_schemas:
            raise UnusableSchemaError(f"more than {limits.max_schemas} schemas in one")
        waiting += [(inner, depth + 1) for _, inner in _parts(part) if isinstance(inner, Mapping)]


def _anchors(schema: Mapping[str, Any], found: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """What can be referred to by name, inside of the schema."""
    named: dict[str, Mapping[str, Any]] = {"#": schema, "": schema}
    for part in found:
        for keyword in ("$anchor", "$dynamicAnchor"):
            name = part.get(keyword)
            if isinstance(name, str):
                named.setdefault("#" + name, part)
        own = part.get("$id", part.get("id"))
        if isinstance(own, str):
            named.setdefault(own, part)
            named.setdefault(own.rstrip("#"), part)
    return named


def _target(
    schema: Mapping[str, Any], anchors: Mapping[str, Mapping[str, Any]], reference: object, keyword: str
) -> Mapping[str, Any]:
    if not isinstance(reference, str):
        raise UnusableSchemaError(f"{keyword} is no text")
    known = anchors.get(reference)
    if known is not None:
        return known
    base, _, pointer = reference.partition("#")
    root: Any = anchors.get(base) if base else schema
    if root is None:
        raise UnusableSchemaError(
            f"{keyword} {reference[:128]!r} leads out of the schema; nothing is fetched"
        )
    if pointer.startswith("/"):
        for token in pointer[1:].split("/"):
            root = _step(root, _unescape(token))
        if isinstance(root, bool):
            return {}
        if isinstance(root, Mapping):
            return root
    raise UnusableSchemaError(f"{keyword} {reference[:128]!r} leads to no schema")


def _step(value: Any, token: str) -> Any:
    if isinstance(value, Mapping):
        return value.get(token)
    if isinstance(value, list) and token.isdecimal() and int(token[:9]) < len(value):
        return value[int(token[:9])]
    return None


def _unescape(token: str) -> str:
    from urllib.parse import unquote

    return unquote(token).replace("~1", "/").replace("~0", "~")


def _count(
    found: list[Mapping[str, Any]],
    targets: Mapping[int, list[Mapping[str, Any]]],
    keywords: frozenset[str] | None,
) -> tuple[dict[int, int], bool]:
    """How many schemas each one brings along, itself included: those under `keywords` (None: all that
    have schemas) and through references. And whether one of them comes back to itself.

    In the order in which each stands after those that it brings. Without recursion, since the schema
    decides how deep it would be; where one comes back to itself, that is not counted again.
    """
    counts: dict[int, int] = {}
    open_now: set[int] = set()
    comes_back = False
    for start in found:
        stack: list[tuple[Mapping[str, Any], bool]] = [(start, False)]
        while stack:
            part, entered = stack.pop()
            key = id(part)
            if not entered and key in open_now:
                comes_back = True
                continue
            if not entered and key in counts:
                continue
            inner = [
                p for k, p in _parts(part) if (keywords is None or k in keywords) and isinstance(p, Mapping)
            ]
            inner += targets.get(key, [])
            if entered:
                open_now.discard(key)
                counts[key] = min(1 + sum(counts.get(id(p), 1) for p in inner), _MANY)
            else:
                open_now.add(key)
                stack.append((part, True))
                stack += [(p, False) for p in inner]
    return counts, comes_back


# looking at a value ------------------------------------------------------------------------------


class _Looks:
    """Counts how many schemas would look at a value and all in it, each as often as it would.

    At most that: what a schema says of names by patterns, or of what others left over, is taken to be
    about everything.
    """

    def __init__(
        self,
        root: Mapping[str, Any],
        targets: Mapping[int, list[Mapping[str, Any]]],
        order: Iterable[int],
    ) -> None:
        self._root = root
        self._targets = targets
        self._rank = {key: -number for number, key in enumerate(order)}
        """Lower for a schema than for those that it brings to the same value, unless they bring it too."""

    def are_few(self, bound: int) -> bool:
        """Whether no value can have more than `bound` looks at it, or at one thing in it.

        False also where that takes too long to tell.
        """
        left = _LOOKAHEAD
        seen: set[frozenset[tuple[int, int]]] = set()
        waiting: list[_Counts] = [{id(self._root): (self._root, 1)}]
        while waiting:
            counts = self._in_place(waiting.pop())
            if sum(times for _, times in counts.values()) > bound:
                return False
            known = frozenset((key, times) for key, (_, times) in counts.items())
            if known in seen:
                continue
            seen.add(known)
            parts = [part for part, _ in counts.values()]
            names = {name for part in parts for name in _mapping(part.get("properties"))}
            indexes = range(1 + max((len(_first_items(part)) for part in parts), default=0))
            left -= len(parts) * (len(names) + 1 + len(indexes))
            if left < 0:
                return False
            waiting += [_at(counts, _of_member, name) for name in (*names, None)]
            waiting += [_at(counts, _of_item, index) for index in indexes]
        return True

    def exceed(self, bound: int, value: Any) -> bool:
        """Whether they are more than `bound`. Takes no longer than so many steps."""
        left = bound
        waiting: list[tuple[Any, _Counts]] = [(value, {id(self._root): (self._root, 1)})]
        while waiting:
            value, counts = waiting.pop()
            counts = self._in_place(counts)
            left -= len(counts) + sum(times for _, times in counts.values())
            if left < 0:
                return True
            if isinstance(value, Mapping):
                inner = [(member, _at(counts, _of_member, name)) for name, member in value.items()]
            elif isinstance(value, (list, tuple)):
                inner = [(item, _at(counts, _of_item, index)) for index, item in enumerate(value)]
            else:
                continue
            waiting += [(part, looking) for part, looking in inner if looking]
        return False

    def _in_place(self, counts: _Counts) -> _Counts:
        """With the schemas that those of `counts` bring to the same value."""
        done: _Counts = {}
        counts = dict(counts)
        waiting = [(self._rank[key], key) for key in counts]
        heapify(waiting)
        while waiting:
            rank, key = heappop(waiting)
            part, times = done[key] = counts[key]
            brought = [p for k, p in _parts(part) if k in _IN_PLACE and isinstance(p, Mapping)]
            for inner in brought + self._targets.get(key, []):
                other = id(inner)
                if self._rank[other] <= rank:
                    continue  # it has come back to one that was counted
                if other not in counts:
                    heappush(waiting, (self._rank[other], other))
                _add(counts, inner, times)
        return done


_Counts: TypeAlias = dict[int, tuple[Mapping[str, Any], int]]
"""Schemas, and how often each looks."""


def _add(counts: _Counts, part: Mapping[str, Any], times: int) -> None:
    _, before = counts.get(id(part), (part, 0))
    counts[id(part)] = part, before + times


def _at(counts: _Counts, of: Callable[[Mapping[str, Any], Any], Iterator[Any]], where: Any) -> _Counts:
    """The schemas that look at a member or an item, if those of `counts` look at the whole."""
    inner: _Counts = {}
    for part, times in counts.values():
        for found in of(part, where):
            if isinstance(found, Mapping):
                _add(inner, found, times)
    return inner


def _of_member(schema: Mapping[str, Any], name: str | None) -> Iterator[Any]:
    """`name` None: one that no schema names."""
    properties = _mapping(schema.get("properties"))
    if name in properties:
        yield properties[name]
    else:
        yield schema.get("additionalProperties")
    yield from _mapping(schema.get("patternProperties")).values()
    yield schema.get("unevaluatedProperties")


def _of_item(schema: Mapping[str, Any], index: int) -> Iterator[Any]:
    first = _first_items(schema)
    if index < len(first):
        yield first[index]
    else:
        yield schema.get("additionalItems" if isinstance(schema.get("items"), list) else "items")
    yield schema.get("contains")
    yield schema.get("unevaluatedItems")


def _first_items(schema: Mapping[str, Any]) -> list[Any]:
    """The schemas of items that have one each."""
    items = schema.get("items")
    first = items if isinstance(items, list) else schema.get("prefixItems")
    return first if isinstance(first, list) else []


def _mapping(value: Any) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}


__all__ = [
    "DIALECTS",
    "Schema",
    "SchemaCheck",
    "SchemaLimits",
    "SchemaValidator",
    "UnusableSchemaError",
    "check_schema",
    "compile_schema",
]
