"""Checking values against JSON Schemas: what may be checked at all, and by whom.

Schemas come from peers. Before one is compiled, `check_schema` looks at it as data: a dialect that is
known, no reference that would fetch something, bounded depth and size, and no chain of references that
takes for ever. The checking itself is left to a library behind `SchemaValidator`; `validators` has two.

Specification: 2026-07-28, basic/index (JSON Schema usage, security considerations).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    """What a schema may be, at most. Past it, it is not used, and that is told."""

    max_depth: int = 64
    """Schemas within schemas."""
    max_schemas: int = 4096
    """Schemas in it, itself included."""
    max_steps: int = 20_000
    """Schemas that look at one value, references followed: a few lines can make that astronomical."""


def check_schema(schema: object, limits: SchemaLimits | None = None) -> None:
    """Raise UnusableSchemaError unless `schema` is safe to compile and to check values against."""
    limits = limits or SchemaLimits()
    if not isinstance(schema, (Mapping, bool)):
        raise UnusableSchemaError("a schema is an object, true or false")
    if isinstance(schema, bool):
        return
    dialect = schema.get("$schema")
    if dialect is not None and (not isinstance(dialect, str) or dialect.rstrip("#") not in DIALECTS):
        raise UnusableSchemaError(f"the dialect {str(dialect)[:128]!r} is not known")
    found: list[Mapping[str, Any]] = []
    _collect(schema, found, limits)
    anchors = _anchors(schema, found)
    known = {id(part) for part in found}
    targets: dict[int, list[Mapping[str, Any]]] = {}
    for part in found:  # grows by what is referred to where no schema was looked for
        for keyword in _REFERENCES:
            reference = part.get(keyword)
            if reference is None:
                continue
            target = _target(schema, anchors, reference, keyword)
            targets.setdefault(id(part), []).append(target)
            if id(target) not in known:
                before = len(found)
                _collect(target, found, limits)
                known.update(map(id, found[before:]))
    _count_steps(found, targets, limits.max_steps)


def compile_schema(
    validator: SchemaValidator, schema: Schema, limits: SchemaLimits | None = None
) -> SchemaCheck:
    """`check_schema`, then compile. Raises UnusableSchemaError as both do."""
    check_schema(schema, limits)
    return validator.compile(schema)


# looking at a schema -----------------------------------------------------------------------------


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


def _count_steps(
    found: list[Mapping[str, Any]], targets: Mapping[int, list[Mapping[str, Any]]], bound: int
) -> None:
    """How many schemas look at one value: those in place of each other, and through references.

    Without recursion, since the schema decides how deep it would be; a schema that comes back to itself
    at the same value counts once.
    """
    steps: dict[int, int] = {}
    open_now: set[int] = set()
    for start in found:
        stack: list[tuple[Mapping[str, Any], bool]] = [(start, False)]
        while stack:
            part, entered = stack.pop()
            key = id(part)
            inner = [p for k, p in _parts(part) if k in _IN_PLACE and isinstance(p, Mapping)]
            inner += targets.get(key, [])
            if entered:
                open_now.discard(key)
                steps[key] = 1 + sum(steps.get(id(p), 1) for p in inner)
                if steps[key] > bound:
                    raise UnusableSchemaError(f"one value would be looked at more than {bound} times")
            elif key not in steps and key not in open_now:
                open_now.add(key)
                stack.append((part, True))
                stack += [(p, False) for p in inner]


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
