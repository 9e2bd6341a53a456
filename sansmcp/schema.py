"""JSON Schemas (2020-12) read from Python's annotations.

Covers the JSON types, ``Literal``, enumerations, unions, lists, tuples, sets and mappings, and classes of
attrs, dataclasses and ``TypedDict``, recursive ones too. ``Annotated[T, "what it is"]`` describes a value;
a mapping among the metadata adds keywords: ``Annotated[int, {"minimum": 1}]``. Anything richer is given
as a schema, verbatim.
"""

from __future__ import annotations

import dataclasses
import enum
import inspect
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NotRequired,
    Required,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

import attrs

from .asks import NeedsInput
from .errors import LocalProtocolError
from .types.base import WireObject

CONTEXT_PARAMETER: Final = "ctx"
"""The parameter that receives the `Context` instead of an argument."""

_SIMPLE: Final[Mapping[Any, dict[str, Any]]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
    object: {},
    inspect.Parameter.empty: {},
}

_REQUIRED: Final = object()
"""Stands for the default of what has none."""


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the handler has the parameter that receives the `Context`."""
    return CONTEXT_PARAMETER in inspect.signature(function).parameters


def input_schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """A JSON Schema of the function's keyword arguments.

    Raises LocalProtocolError for a positional-only parameter or an annotation that has no JSON
    Schema here: then give `input_schema`.
    """
    hints = hints_of(function)
    writer = _Writer()
    members: list[tuple[str, Any, Any]] = []
    closed = True
    for name, parameter in inspect.signature(function).parameters.items():
        if name == CONTEXT_PARAMETER or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            closed = False
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise LocalProtocolError(
                f"{function.__name__}: arguments arrive as keywords, {name!r} takes none"
            )
        default = _REQUIRED if parameter.default is parameter.empty else parameter.default
        members.append((name, hints.get(name, inspect.Parameter.empty), default))
    return writer.finish(writer.object_schema(members, function.__name__, closed=closed))


def output_schema_of(function: Callable[..., Any]) -> dict[str, Any] | None:
    """A JSON Schema of what the function returns, if it says that this is a class with fields.

    None for anything else: text, content and results say for themselves what they are. A handler that
    asks the client says it beside that, as the last parameter of `Generator` or next to `NeedsInput`.
    """
    hint = hints_of(function).get("return")
    if get_origin(hint) is Generator and len(get_args(hint)) == 3:
        hint = get_args(hint)[2]
    if get_origin(hint) in (Union, UnionType):
        rest = [part for part in get_args(hint) if part is not NeedsInput]
        hint = rest[0] if len(rest) == 1 else None
    return schema_of(hint) if is_record(hint) else None


def schema_of(hint: Any) -> dict[str, Any]:
    """A JSON Schema of the values that an annotation allows.

    Raises LocalProtocolError for one that has no JSON Schema here.
    """
    writer = _Writer()
    name = getattr(hint, "__name__", "the annotation")
    if is_record(hint):
        return writer.finish(writer.record_schema(hint))
    return writer.finish(writer.schema(hint, name))


def hints_of(thing: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function or a class, read; those that cannot be are left out."""
    try:
        return get_type_hints(thing, include_extras=True)
    except NameError:
        # A name that exists only for a type checker: the plain annotations still help.
        return {k: v for k, v in inspect.get_annotations(thing).items() if not isinstance(v, str)}


def is_record(hint: Any) -> bool:
    """Whether values of this annotation are JSON objects with known members, of the user's own kind."""
    if not isinstance(hint, type) or issubclass(hint, (WireObject, NeedsInput)):
        return False
    return is_typeddict(hint) or attrs.has(hint) or dataclasses.is_dataclass(hint)


class _Writer:
    """Writes one schema. Classes that occur in themselves, or more than once, become definitions."""

    def __init__(self) -> None:
        self._definitions: dict[str, dict[str, Any]] = {}
        self._names: dict[type, str] = {}
        self._root: type | None = None
        self._open: set[type] = set()
        self._uses: dict[str, int] = {}

    def finish(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The whole schema. What is referred to once, and not by itself, is put in its place."""
        for name in [n for n, uses in self._uses.items() if uses == 1]:
            definition = self._definitions.get(name)
            if definition is None or _refers_to(definition, name):
                continue
            del self._definitions[name]
            schema = _put(schema, name, definition)
            self._definitions = {n: _put(d, name, definition) for n, d in self._definitions.items()}
        return {**schema, "$defs": self._definitions} if self._definitions else schema

    def schema(self, hint: Any, where: str) -> dict[str, Any]:
        origin, arguments = get_origin(hint), get_args(hint)
        if origin is Annotated:
            return self._annotated(arguments, where)
        simple = _SIMPLE.get(hint) if hint.__hash__ is not None else None
        if simple is not None:
            return dict(simple)
        if origin in (Required, NotRequired):
            return self.schema(arguments[0], where)
        if origin in (Union, UnionType):
            return {"anyOf": [self.schema(argument, where) for argument in arguments]}
        if origin is Literal:
            return {"enum": list(arguments)}
        if is_record(hint):
            return self._reference(hint)
        kind = origin or hint
        if isinstance(kind, type):
            if issubclass(kind, enum.Enum):
                return {"enum": [member.value for member in kind]}
            written = self._container(kind, arguments, where)
            if written is not None:
                return written
        raise LocalProtocolError(f"{where}: no JSON Schema for {hint!r}; give input_schema")

    def _annotated(self, arguments: tuple[Any, ...], where: str) -> dict[str, Any]:
        schema = self.schema(arguments[0], where)
        for note in arguments[1:]:
            if isinstance(note, str):
                schema = {**schema, "description": note}
            elif isinstance(note, Mapping):
                schema = {**schema, **note}
        return schema

    def _container(self, kind: type, arguments: tuple[Any, ...], where: str) -> dict[str, Any] | None:
        if issubclass(kind, Mapping):
            schema: dict[str, Any] = {"type": "object"}
            if len(arguments) == 2:
                schema["additionalProperties"] = self.schema(arguments[1], where)
            return schema
        if issubclass(kind, tuple) and arguments and arguments[-1] is not Ellipsis:
            items = [self.schema(argument, where) for argument in arguments]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
        if issubclass(kind, (Sequence, AbstractSet)) and not issubclass(kind, (str, bytes)):
            schema = {"type": "array"}
            if arguments:
                schema["items"] = self.schema(arguments[0], where)
            if issubclass(kind, AbstractSet):
                schema["uniqueItems"] = True
            return schema
        return None

    # classes with fields -------------------------------------------------------------------------

    def _reference(self, cls: type) -> dict[str, Any]:
        if cls is self._root:
            return {"$ref": "#"}
        name = self._names.get(cls)
        if name is None:
            name = cls.__name__
            while name in self._names.values():
                name += "_"
            self._names[cls] = name
            self._definitions[name] = self._fields_schema(cls)
        self._uses[name] = self._uses.get(name, 0) + 1
        return {"$ref": f"#/$defs/{name}"}

    def record_schema(self, cls: type) -> dict[str, Any]:
        """The schema of a class as the root."""
        self._root = cls
        return self._fields_schema(cls)

    def _fields_schema(self, cls: type) -> dict[str, Any]:
        schema = self.object_schema(_members(cls), cls.__name__, closed=True)
        text = cls.__doc__
        # A dataclass without a docstring gets its signature for one.
        if text and not (dataclasses.is_dataclass(cls) and text.startswith(f"{cls.__name__}(")):
            schema = {"description": inspect.cleandoc(text), **schema}
        return schema

    def object_schema(
        self, members: Sequence[tuple[str, Any, Any]], where: str, *, closed: bool
    ) -> dict[str, Any]:
        """The schema of an object with these members: name, annotation and default of each."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for name, hint, default in members:
            schema = self.schema(hint, f"{where}({name})")
            if default is _REQUIRED:
                required.append(name)
            elif isinstance(default, enum.Enum):
                schema = {**schema, "default": default.value}
            elif default is None or isinstance(default, (str, int, float, bool)):
                schema = {**schema, "default": default}
            properties[name] = schema
        result: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            result["required"] = required
        if closed:
            result["additionalProperties"] = False
        return result


def _members(cls: type) -> list[tuple[str, Any, Any]]:
    """Name, annotation and default of each member that a value of `cls` is made of."""
    hints = hints_of(cls)
    if is_typeddict(cls):
        # The class was made before its annotations were read, so its own record can be wrong.
        required: frozenset[str] = getattr(cls, "__required_keys__", frozenset())
        return [
            (n, h, _REQUIRED if n in required and get_origin(h) is not NotRequired else ...)
            for n, h in hints.items()
        ]
    if attrs.has(cls):
        return [
            (a.name, hints.get(a.name, a.type or Any), _REQUIRED if a.default is attrs.NOTHING else a.default)
            for a in attrs.fields(cls)
            if a.init
        ]
    return [
        (f.name, hints.get(f.name, Any), _REQUIRED if _has_no_default(f) else f.default)
        for f in dataclasses.fields(cls)
        if f.init
    ]


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _refers_to(schema: Any, name: str) -> bool:
    if isinstance(schema, dict):
        return schema.get("$ref") == f"#/$defs/{name}" or any(_refers_to(v, name) for v in schema.values())
    return isinstance(schema, list) and any(_refers_to(item, name) for item in schema)


def _put(schema: Any, name: str, definition: dict[str, Any]) -> Any:
    """`schema` with `definition` in the place of the reference to it."""
    if isinstance(schema, dict):
        if schema.get("$ref") == f"#/$defs/{name}":
            rest = {k: v for k, v in schema.items() if k != "$ref"}
            return {**definition, **rest}
        return {k: _put(v, name, definition) for k, v in schema.items()}
    if isinstance(schema, list):
        return [_put(item, name, definition) for item in schema]
    return schema


__all__ = [
    "CONTEXT_PARAMETER",
    "hints_of",
    "input_schema_of",
    "is_record",
    "output_schema_of",
    "schema_of",
    "takes_context",
]
