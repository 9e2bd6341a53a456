"""JSON Schemas (2020-12) read from Python's annotations.

Covers the JSON types, ``Literal``, enumerations, unions, lists, tuples (with names, too), sets and
mappings, ``NewType``, and classes of attrs, dataclasses and ``TypedDict``, recursive ones too.
``Annotated[T, "what it is"]`` describes a value; a mapping among the metadata adds keywords:
``Annotated[int, {"minimum": 1}]``. Anything richer is given as a schema, verbatim.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import math
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Final,
    Literal,
    NewType,
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

REQUIRED: Final = object()
"""Stands for the default of what has none."""

_OPTIONAL: Final = object()
"""Stands for the default of what can be left out, and is then not there."""


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
    members: list[Member] = []
    closed = True
    called = getattr(function, "__name__", type(function).__name__)
    for name, parameter in inspect.signature(function).parameters.items():
        if name == CONTEXT_PARAMETER or parameter.kind is parameter.VAR_POSITIONAL:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            closed = False
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise LocalProtocolError(f"{called}: arguments arrive as keywords, {name!r} takes none")
        default = REQUIRED if parameter.default is parameter.empty else parameter.default
        members.append(Member(name, hints.get(name, inspect.Parameter.empty), default))
    return writer.finish(writer.object_schema(members, called, closed=closed))


def output_schema_of(function: Callable[..., Any]) -> dict[str, Any] | None:
    """A JSON Schema of what the function returns, if it says that this is a class with fields.

    None for anything else: text, content and results say for themselves what they are. A handler that
    asks the client says it beside that, as the last parameter of `Generator` or next to `NeedsInput`.
    """
    hint = returned(function)
    if get_origin(hint) in (Union, UnionType):
        rest = [part for part in get_args(hint) if part is not NeedsInput]
        hint = rest[0] if len(rest) == 1 else None
    return schema_of(hint) if is_record(bare(hint)) else None


def returned(function: Callable[..., Any]) -> Any:
    """The annotation of what the function returns in the end; None without one."""
    hint = hints_of(function).get("return")
    if get_origin(hint) is Generator and len(get_args(hint)) == 3:
        return get_args(hint)[2]
    return hint


def schema_of(hint: Any) -> dict[str, Any]:
    """A JSON Schema of the values that an annotation allows.

    Raises LocalProtocolError for one that has no JSON Schema here.
    """
    writer = _Writer()
    name = getattr(hint, "__name__", "the annotation")
    return writer.finish(writer.root_schema(hint, name))


def hints_of(thing: Callable[..., Any]) -> dict[str, Any]:
    """The annotations of a function or a class, read; those that cannot be are left out."""
    thing = _annotated(thing)
    try:
        return get_type_hints(thing, include_extras=True)
    except (NameError, AttributeError):
        # A name that exists only for a type checker. It must not take the others with it.
        return _hints_one_by_one(thing)


def _annotated(thing: Any) -> Any:
    """What has the annotations of `thing`: of a partial its function, of a callable object its method."""
    while isinstance(thing, functools.partial):
        thing = thing.func
    return thing if inspect.isroutine(thing) or isinstance(thing, type) else type(thing).__call__


def _hints_one_by_one(thing: Any) -> dict[str, Any]:
    hints: dict[str, Any] = {}
    for source in reversed(thing.__mro__) if isinstance(thing, type) else (thing,):
        module = sys.modules.get(source.__module__)
        known = getattr(inspect.unwrap(source), "__globals__", {} if module is None else vars(module))
        for name, annotation in inspect.get_annotations(source).items():
            alone = type(name, (), {"__annotations__": {name: annotation}})
            try:
                hints |= get_type_hints(alone, known, vars(source), include_extras=True)
            except (NameError, AttributeError):
                hints.pop(name, None)
    return hints


def bare(hint: Any) -> Any:
    """An annotation without what only tells more of it: `Annotated`, `NotRequired`, `NewType` and so on."""
    while True:
        if get_origin(hint) in (Annotated, Required, NotRequired, Final):
            hint = get_args(hint)[0]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        else:
            return hint


def is_record(hint: Any) -> bool:
    """Whether values of this annotation are JSON objects with known members, of the user's own kind."""
    if not isinstance(hint, type) or issubclass(hint, (WireObject, NeedsInput)):
        return False
    return is_typeddict(hint) or attrs.has(hint) or dataclasses.is_dataclass(hint)


@attrs.frozen
class Member:
    """What one member of an object may be."""

    name: str
    hint: Any
    default: Any
    """`REQUIRED` where there is none."""


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
            return _noted(self.schema(arguments[0], where), arguments[1:])
        if origin in (Required, NotRequired, Final):
            return self.schema(arguments[0], where)
        if isinstance(hint, NewType):
            return self.schema(hint.__supertype__, where)
        if origin in (Union, UnionType):
            return {"anyOf": [self.schema(argument, where) for argument in arguments]}
        if origin is Literal:
            return {"enum": [self._choice(choice, where) for choice in arguments]}
        simple = _SIMPLE.get(hint) if hint.__hash__ is not None else None
        if simple is not None:
            return dict(simple)
        if is_record(hint):
            return self._reference(hint)
        kind = origin or hint
        if isinstance(kind, type):
            if issubclass(kind, enum.Enum):
                return {"enum": [self._choice(member, where) for member in kind]}
            written = self._container(kind, arguments, where)
            if written is not None:
                return written
        raise _no_schema(hint, where)

    @staticmethod
    def _choice(choice: Any, where: str) -> Any:
        value = choice.value if isinstance(choice, enum.Enum) else choice
        if value is not None and not isinstance(value, (str, int, float)):
            raise _no_schema(choice, where)
        return value

    def _container(self, kind: type, arguments: tuple[Any, ...], where: str) -> dict[str, Any] | None:
        if issubclass(kind, Mapping):
            schema: dict[str, Any] = {"type": "object"}
            if len(arguments) == 2:
                schema["additionalProperties"] = self.schema(arguments[1], where)
                schema |= self._names_schema(bare(arguments[0]), where)
            return schema
        if is_named_tuple(kind):
            members = members_of(kind)
            items = [self.schema(member.hint, where) for member in members]
            least = sum(member.default is REQUIRED for member in members)
            return {"type": "array", "prefixItems": items, "items": False, "minItems": least}
        if issubclass(kind, tuple) and arguments and arguments[-1] is not Ellipsis:
            items = [self.schema(argument, where) for argument in arguments]
            return {"type": "array", "prefixItems": items, "items": False, "minItems": len(items)}
        if issubclass(kind, (Sequence, AbstractSet)) and not issubclass(kind, (str, bytes, bytearray)):
            schema = {"type": "array"}
            if arguments:
                schema["items"] = self.schema(arguments[0], where)
            if issubclass(kind, AbstractSet):
                schema["uniqueItems"] = True
            return schema
        return None

    def _names_schema(self, hint: Any, where: str) -> dict[str, Any]:
        """What a mapping's names may be, which in JSON are text."""
        if hint in (str, Any, object):
            return {}
        names = self.schema(hint, where)
        if all(isinstance(name, str) for name in names.get("enum", [None])):
            return {"propertyNames": names}
        raise _no_schema(hint, f"{where}, names of an object")

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

    def root_schema(self, hint: Any, where: str) -> dict[str, Any]:
        """The schema of all: that of a class is not behind a reference there."""
        if get_origin(hint) is Annotated:
            return _noted(self.root_schema(get_args(hint)[0], where), get_args(hint)[1:])
        if not is_record(hint):
            return self.schema(hint, where)
        self._root = hint
        return self._fields_schema(hint)

    def _fields_schema(self, cls: type) -> dict[str, Any]:
        schema = self.object_schema(members_of(cls), cls.__name__, closed=True)
        text = cls.__doc__
        # A dataclass without a docstring gets its signature for one.
        if text and not (dataclasses.is_dataclass(cls) and text.startswith(f"{cls.__name__}(")):
            schema = {"description": inspect.cleandoc(text), **schema}
        return schema

    def object_schema(self, members: Sequence[Member], where: str, *, closed: bool) -> dict[str, Any]:
        """The schema of an object with these members."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        for member in members:
            name, default = member.name, member.default
            schema = self.schema(member.hint, f"{where}({name})")
            if isinstance(default, enum.Enum):
                default = default.value
            if default is REQUIRED:
                required.append(name)
            elif default is None or isinstance(default, (str, int)) or _is_finite(default):
                schema = {**schema, "default": default}
            properties[name] = schema
        result: dict[str, Any] = {"type": "object", "properties": properties}
        if required:
            result["required"] = required
        if closed:
            result["additionalProperties"] = False
        return result


def is_named_tuple(kind: type) -> bool:
    """Whether it is a `NamedTuple`: a list in JSON, each item of which has its annotation."""
    return issubclass(kind, tuple) and hasattr(kind, "_field_defaults")


def members_of(cls: type) -> list[Member]:
    """The members that a value of `cls`, a class with fields, is made of."""
    hints = hints_of(cls)
    if is_typeddict(cls):
        required: frozenset[str] = getattr(cls, "__required_keys__", frozenset())
        return [
            Member(n, hints.get(n, Any), REQUIRED if _is_required(hints.get(n), n in required) else _OPTIONAL)
            for n in cls.__annotations__
        ]
    if is_named_tuple(cls):
        tuple_class: Any = cls
        defaults = tuple_class._field_defaults
        return [Member(n, hints.get(n, Any), defaults.get(n, REQUIRED)) for n in tuple_class._fields]
    if attrs.has(cls):
        return [
            Member(
                a.name,
                hints.get(a.name, Any if a.type is None or isinstance(a.type, str) else a.type),
                REQUIRED if a.default is attrs.NOTHING else a.default,
            )
            for a in attrs.fields(cls)
            if a.init
        ]
    return [
        Member(f.name, hints.get(f.name, Any), REQUIRED if _has_no_default(f) else f.default)
        for f in dataclasses.fields(cls)
        if f.init
    ]


def _is_required(hint: Any, said: bool) -> bool:
    """Whether a `TypedDict` has the member: `said` is what the class itself knows.

    It was made before its annotations were read, so where these are text its own record can be wrong.
    """
    while (origin := get_origin(hint)) in (Annotated, Required, NotRequired):
        if origin is not Annotated:
            return origin is Required
        hint = get_args(hint)[0]
    return said


def _has_no_default(field: dataclasses.Field[Any]) -> bool:
    return field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING


def _is_finite(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)


def _no_schema(hint: Any, where: str) -> LocalProtocolError:
    return LocalProtocolError(f"{where}: no JSON Schema for {hint!r}; give input_schema")


def _noted(schema: dict[str, Any], notes: Sequence[Any]) -> dict[str, Any]:
    """`schema` with what the metadata of an `Annotated` says of it."""
    for note in notes:
        if isinstance(note, str):
            schema = {**schema, "description": note}
        elif isinstance(note, Mapping):
            schema = {**schema, **note}
    return schema


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
    "REQUIRED",
    "Member",
    "bare",
    "hints_of",
    "input_schema_of",
    "is_named_tuple",
    "is_record",
    "members_of",
    "output_schema_of",
    "returned",
    "schema_of",
    "takes_context",
]
