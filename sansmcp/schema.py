"""What a tool takes, read from its function's signature.

Covers the JSON types; anything richer is given as `input_schema` verbatim.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Final, Literal, Union, get_args, get_origin, get_type_hints

from .errors import LocalProtocolError

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


def takes_context(function: Callable[..., Any]) -> bool:
    """Whether the handler has the parameter that receives the `Context`."""
    return CONTEXT_PARAMETER in inspect.signature(function).parameters


def input_schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    """A JSON Schema (2020-12) of the function's keyword arguments.

    Raises LocalProtocolError for a positional-only parameter or an annotation that has no JSON
    Schema here: then give `input_schema`.
    """
    hints = _hints(function)
    properties: dict[str, Any] = {}
    required: list[str] = []
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
        schema = _schema_of(hints.get(name, inspect.Parameter.empty), f"{function.__name__}({name})")
        if parameter.default is parameter.empty:
            required.append(name)
        elif parameter.default is None or isinstance(parameter.default, (str, int, float, bool)):
            schema = {**schema, "default": parameter.default}
        properties[name] = schema
    result: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        result["required"] = required
    if closed:
        result["additionalProperties"] = False
    return result


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except NameError:
        # A name that exists only for a type checker: the plain annotations still help.
        return {k: v for k, v in inspect.get_annotations(function).items() if not isinstance(v, str)}


def _schema_of(hint: Any, where: str) -> dict[str, Any]:
    simple = _SIMPLE.get(hint) if hint.__hash__ is not None else None
    if simple is not None:
        return dict(simple)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return {"anyOf": [_schema_of(argument, where) for argument in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    kind = origin or hint
    if isinstance(kind, type):
        if issubclass(kind, Mapping):
            schema: dict[str, Any] = {"type": "object"}
            if len(arguments) == 2:
                schema["additionalProperties"] = _schema_of(arguments[1], where)
            return schema
        if issubclass(kind, Sequence) and kind is not bytes:
            schema = {"type": "array"}
            if arguments and kind is not tuple:
                schema["items"] = _schema_of(arguments[0], where)
            return schema
    raise LocalProtocolError(f"{where}: no JSON Schema for {hint!r}; give input_schema")
