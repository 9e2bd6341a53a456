"""Between JSON and the classes that handlers are annotated with: arguments in, results out.

Only what needs it is converted: a handler with plain JSON types costs nothing here. Conversion is strict:
no text becomes a number, no number a truth value. It knows the annotations that `sansmcp.schema` knows.
"""

from __future__ import annotations

import enum
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, is_typeddict

import attrs

from .schema import (
    CONTEXT_PARAMETER,
    REQUIRED,
    Member,
    bare,
    hints_of,
    is_named_tuple,
    is_record,
    members_of,
    returned,
)

_TOLD: Final = 5
"""Faults of one argument that are told."""

_WRONG: Final = object()
"""Stands for a value with a fault."""

_NAMES: Final = {
    str: "text",
    int: "an integer",
    float: "a number",
    bool: "true or false",
    NoneType: "null",
}


class ArgumentError(ValueError):
    """An argument is not what its annotation says. The text says which, and what it should be."""


@attrs.frozen(eq=False)
class Arguments:
    """Makes a handler's keywords of a request's arguments."""

    _by_name: Mapping[str, Any]
    """The annotations of those parameters whose values have to be converted."""

    def convert(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """`arguments` with objects where the handler wants them. Raises ArgumentError."""
        converted = dict(arguments)
        for name, hint in self._by_name.items():
            if name in converted:
                reader = _Reader()
                converted[name] = reader.read(converted[name], hint, name)
                if reader.faults:
                    raise ArgumentError("; ".join(reader.faults[:_TOLD]))
        return converted


def arguments_of(function: Callable[..., Any]) -> Arguments | None:
    """What has to be done with the arguments of `function`; None if nothing has."""
    hints = hints_of(function)
    names = {n: h for n, h in hints.items() if n not in ("return", CONTEXT_PARAMETER) and is_rich(h)}
    return Arguments(names) if names else None


def returns_rich(function: Callable[..., Any]) -> bool:
    """Whether what `function` returns, by its annotation, holds what `plain` makes JSON of."""
    return is_rich(returned(function))


def is_rich(hint: Any) -> bool:
    """Whether JSON's own values are not yet what the annotation asks for."""
    hint = bare(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(map(is_rich, arguments))
    if origin is Literal:
        return any(isinstance(choice, enum.Enum) for choice in arguments)
    kind = origin or hint
    if not isinstance(kind, type):
        return False
    if is_record(kind) or issubclass(kind, (enum.Enum, AbstractSet, tuple)):
        return True
    return issubclass(kind, (Mapping, Sequence)) and any(map(is_rich, arguments))


@cache
def _members(cls: type) -> Mapping[str, Member]:
    return {member.name: member for member in members_of(cls)}


class _Reader:
    """Makes of one JSON value what its annotation asks for, and notes all that is wrong with it."""

    def __init__(self, tried: dict[tuple[int, type], tuple[Any, list[str]]] | None = None) -> None:
        self.faults: list[str] = []
        self._tried = tried
        """What became of a value as one of several classes: alternatives within alternatives would else
        be tried again and again. None: there are no alternatives."""

    def read(self, value: Any, hint: Any, where: str) -> Any:
        """The value; `_WRONG`, and something among `faults`, if it is none."""
        hint = bare(hint)
        origin, arguments = get_origin(hint), get_args(hint)
        if origin in (Union, UnionType):
            return self._alternative(value, arguments, where)
        if origin is Literal:
            return self._choice(value, arguments, where)
        kind = origin or hint
        if not isinstance(kind, type) or kind is object:
            return value
        if kind in _NAMES:
            return self._simple(value, kind, where)
        if is_record(kind):
            return self._record(value, kind, where)
        if issubclass(kind, enum.Enum):
            return self._choice(value, tuple(kind), where)
        if issubclass(kind, Mapping):
            return self._mapping(value, arguments or (str, Any), where)
        if issubclass(kind, (Sequence, AbstractSet)):
            return self._several(value, kind, arguments, where)
        return value

    def _wrong(self, text: str, where: str) -> Any:
        self.faults.append(f"{text} @ {where}")
        return _WRONG

    def _simple(self, value: Any, kind: type, where: str) -> Any:
        if type(value) is kind or (kind is float and type(value) is int):
            return value
        return self._wrong(f"must be {_NAMES[kind]}", where)

    def _choice(self, value: Any, choices: Sequence[Any], where: str) -> Any:
        for choice in choices:
            said = choice.value if isinstance(choice, enum.Enum) else choice
            if said == value and isinstance(said, bool) is isinstance(value, bool):
                return choice
        return self._wrong(f"{str(value)[:64]!r} is none of the choices", where)

    def _alternative(self, value: Any, hints: Sequence[Any], where: str) -> Any:
        tried = {} if self._tried is None else self._tried
        readers = []
        for hint in hints:
            reader = _Reader(tried)
            made = reader.read(value, hint, where)
            if not reader.faults:
                return made
            readers.append(reader)
        rest = [reader for hint, reader in zip(hints, readers, strict=True) if hint is not NoneType]
        if len(rest) > 1:
            return self._wrong("fits none of the alternatives", where)
        self.faults += rest[0].faults
        return _WRONG

    def _record(self, value: Any, cls: type, where: str) -> Any:
        if self._tried is None:
            return self._read_record(value, cls, where)
        key = id(value), cls
        if key not in self._tried:
            before, self.faults = self.faults, []
            self._tried[key] = self._read_record(value, cls, where), self.faults
            self.faults = before
        made, faults = self._tried[key]
        self.faults += faults
        return made

    def _read_record(self, value: Any, cls: type, where: str) -> Any:
        if not isinstance(value, dict):
            return self._wrong("must be an object", where)
        members = _members(cls)
        unknown = sorted(str(name) for name in value.keys() - members.keys())
        missing = [n for n, member in members.items() if member.default is REQUIRED and n not in value]
        if unknown:
            self._wrong(f"unknown: {', '.join(unknown)}", where)
        for name in missing:
            self._wrong(f"required: {name}", f"{where}.{name}")
        made = {
            name: self.read(value[name], member.hint, f"{where}.{name}")
            for name, member in members.items()
            if name in value
        }
        if unknown or missing or any(member is _WRONG for member in made.values()):
            return _WRONG
        return self._make(cls, made, where)

    def _make(self, cls: type, members: dict[str, Any], where: str) -> Any:
        if is_typeddict(cls):
            return members
        if attrs.has(cls):
            members = {a.alias or a.name: members[a.name] for a in attrs.fields(cls) if a.name in members}
        try:
            return cls(**members)
        except Exception as error:  # what the class itself demands of them
            told = str(error)[:200] if isinstance(error, (TypeError, ValueError)) else ""
            return self._wrong(told or f"not a valid {cls.__name__}", where)

    def _mapping(self, value: Any, hints: Sequence[Any], where: str) -> Any:
        if not isinstance(value, dict):
            return self._wrong("must be an object", where)
        return {
            self.read(name, hints[0], where): self.read(member, hints[1], f"{where}[{str(name)[:64]!r}]")
            for name, member in value.items()
        }

    def _several(self, value: Any, kind: type, hints: Sequence[Any], where: str) -> Any:
        if not isinstance(value, (list, tuple)):
            return self._wrong("must be a list", where)
        if is_named_tuple(kind):
            members = _members(kind).values()
            hints, least = [m.hint for m in members], sum(m.default is REQUIRED for m in members)
        elif issubclass(kind, tuple) and hints and hints[-1] is not Ellipsis:
            least = len(hints)
        else:
            hints, least = (hints[0] if hints else Any,) * len(value), 0
        if not least <= len(value) <= len(hints):
            return self._wrong(f"must be a list of {len(hints)}, not of {len(value)}", where)
        items = [self.read(v, h, f"{where}[{i}]") for i, (v, h) in enumerate(zip(value, hints, strict=False))]
        if any(item is _WRONG for item in items):
            return _WRONG
        if is_named_tuple(kind):
            return kind(*items)
        if inspect.isabstract(kind):
            kind = set if issubclass(kind, AbstractSet) else list
        make: Callable[[Iterable[Any]], Any] = kind
        try:
            return make(items)
        except TypeError as error:
            return self._wrong(str(error), where)


# results -----------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """What a handler returned, as JSON: objects of classes with fields become mappings, also within others.

    Objects of the protocol stay as they are.
    """
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, Mapping):
        return {plain(name): plain(member) for name, member in value.items()}
    if isinstance(value, (list, tuple, AbstractSet)):
        return [plain(item) for item in value]
    kind: Any = type(value)
    return {name: plain(getattr(value, name)) for name in _members(kind)} if is_record(kind) else value


__all__ = ["ArgumentError", "Arguments", "arguments_of", "is_rich", "plain", "returns_rich"]
