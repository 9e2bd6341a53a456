"""Between JSON and the classes that handlers are annotated with: arguments in, results out.

Only what needs it is converted: a handler with plain JSON types costs nothing here. Conversion is strict:
no text becomes a number, no number a truth value.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, Union, get_args, get_origin

import attrs

from .schema import CONTEXT_PARAMETER, hints_of, is_record

if TYPE_CHECKING:
    from cattrs import Converter

Convert = Callable[[Any], Any]


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
                converted[name] = _structured(converted[name], hint, name)
        return converted


def arguments_of(function: Callable[..., Any]) -> Arguments | None:
    """What has to be done with the arguments of `function`; None if nothing has."""
    hints = hints_of(function)
    names = {n: h for n, h in hints.items() if n not in ("return", CONTEXT_PARAMETER) and _is_rich(h)}
    return Arguments(names) if names else None


def plain(value: Any) -> Any:
    """What a handler returned, as JSON: objects of classes with fields become mappings."""
    if is_record(type(value)):
        return _converter().unstructure(value)
    return value


def _is_rich(hint: Any) -> bool:
    """Whether JSON's own values are not yet what the annotation asks for."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _is_rich(arguments[0])
    if origin in (Union, UnionType):
        return any(map(_is_rich, arguments))
    kind = origin or hint
    if not isinstance(kind, type):
        return False
    if is_record(kind):
        return True
    if issubclass(kind, (enum.Enum, AbstractSet, tuple)):
        return True
    return issubclass(kind, (Mapping, Sequence)) and any(map(_is_rich, arguments))


def _structured(value: Any, hint: Any, name: str) -> Any:
    import cattrs

    try:
        return _converter().structure(value, hint)
    except cattrs.BaseValidationError as error:
        told = "; ".join(cattrs.transform_error(error, path=name, format_exception=_told)[:5])
        raise ArgumentError(told) from None
    except Exception as error:
        raise ArgumentError(f"{_told(error, None)} @ {name}") from None


def _told(error: BaseException, type_: type | None) -> str:
    import cattrs

    if isinstance(error, cattrs.errors.ForbiddenExtraKeysError):
        return f"unknown: {', '.join(sorted(map(str, error.extra_fields)))}"
    if isinstance(error, KeyError):
        return f"required: {error.args[0]}"
    if isinstance(error, (TypeError, ValueError)) and str(error):
        return str(error)[:200]
    return f"not a valid {type_.__name__}" if type_ is not None else "not valid"


@cache
def _converter() -> Converter:
    import cattrs

    made = cattrs.Converter(forbid_extra_keys=True)
    for kind in (str, int, float, bool):
        made.register_structure_hook(kind, _strictly(kind))
    made.register_structure_hook_func(
        _is_wide_union,
        lambda value, hint: _first_that_fits(made, value, hint),
    )
    return made


def _strictly(kind: type) -> Callable[[Any, Any], Any]:
    def structure(value: Any, _: Any) -> Any:
        if kind is float and type(value) is int:
            return value
        if type(value) is not kind:
            raise TypeError(f"must be {_NAMES[kind]}")
        return value

    return structure


_NAMES = {str: "text", int: "an integer", float: "a number", bool: "true or false"}


def _is_wide_union(hint: Any) -> bool:
    """Whether it is a union of more than one thing and None, which cattrs leaves to its user."""
    origin: Any = get_origin(hint)
    arguments = get_args(hint)
    return origin in (Union, UnionType) and not (len(arguments) == 2 and type(None) in arguments)


def _first_that_fits(converter: Converter, value: Any, hint: Any) -> Any:
    for member in get_args(hint):
        if member is type(None):
            if value is None:
                return None
            continue
        try:
            return converter.structure(value, member)
        except Exception:  # the next one may fit
            continue
    raise TypeError("fits none of the alternatives")


__all__ = ["ArgumentError", "Arguments", "arguments_of", "plain"]
