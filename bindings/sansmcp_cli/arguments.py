"""A tool's arguments from the command line: one JSON object, ``key=value`` pairs, or a file."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from .failures import usage
from .redact import HIDDEN, tells_of_secret
from .text import one_line, shorten

_TYPES: Final = frozenset({"string", "integer", "number", "boolean", "array", "object", "null"})
_WANTED: Final = {
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "a JSON array, as in '[1, 2]'",
    "object": "a JSON object, as in '{\"a\": 1}'",
    "null": "null",
    "string": "a string",
}
_DEPTH: Final = 16
"""How far a schema's own references are followed."""


def object_from_words(words: Sequence[str], args_file: str | None) -> dict[str, Any] | None:
    """The arguments, where they are given as JSON; None when they are pairs."""
    if args_file is not None:
        if words:
            raise usage("give arguments either on the command line or with --args-file, not both")
        return read_object("--args-file", args_file)
    if words and words[0].lstrip().startswith(("{", "[")):
        if len(words) > 1:
            raise usage(
                "arguments: one JSON object or key=value pairs, not both (quote the JSON for your shell)"
            )
        return _object(words[0], "arguments")
    return None


def _stdin() -> str:
    try:
        return sys.stdin.read()
    except UnicodeDecodeError:
        raise usage("standard input: it is not UTF-8") from None


def read_object(option: str, name: str) -> dict[str, Any]:
    """The JSON object in a file, or with ``-`` in standard input. Raises CommandError."""
    if name == "-":
        return _object(_stdin(), "standard input")
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise usage(f"cannot read {option} {name}: {reason}") from None
    return _object(text, name)


def json_value(text: str) -> Any:
    """The JSON value. Raises ValueError for text that is none, or that is too deep."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("too deep") from None


def _object(text: str, where: str) -> dict[str, Any]:
    try:
        value = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        position = f"line {error.lineno} column {error.colno}"
        raise usage(f"{where}: not JSON at {position}: {error.msg}") from None
    except _NotJsonError as error:
        raise usage(f"{where}: {error} is no JSON value") from None
    except (ValueError, RecursionError):
        raise usage(f"{where}: not usable as JSON: too deep, or a number too long") from None
    if not isinstance(value, dict):
        raise usage(f"{where}: expected a JSON object, got {_kind(value)}")
    return value


class _NotJsonError(ValueError):
    pass


def _no_constant(name: str) -> Any:
    raise _NotJsonError(name)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case list():
            return "an array"
        case str():
            return "a string"
        case _:
            return "a number"


def split_pairs(words: Sequence[str]) -> dict[str, str]:
    """The ``key=value`` pairs as they stand."""
    pairs: dict[str, str] = {}
    for word in words:
        key, found, value = word.partition("=")
        if not found or not key:
            raise usage(f"arguments: expected key=value or one JSON object, got {shorten(word, 60)!r}")
        if key in pairs:
            raise usage(
                f"arguments: {shorten(key, 60)} is given twice; a list is written as JSON, {key}='[1, 2]'"
            )
        pairs[key] = value
    return pairs


def typed_pairs(pairs: Mapping[str, str], schema: Mapping[str, Any], tool: str) -> dict[str, Any]:
    """The pairs with the types that the tool's `inputSchema` gives them."""
    properties = schema.get("properties")
    known: Mapping[str, Any] = properties if isinstance(properties, Mapping) else {}
    arguments: dict[str, Any] = {}
    for key, text in pairs.items():
        if key not in known and schema.get("additionalProperties") is False:
            takes = ", ".join(known) or "no arguments"
            raise usage(
                f"{tool}: there is no argument {one_line(key, 60)!r}; it takes {one_line(takes, 200)}"
            )
        arguments[key] = _typed(text, allowed_types(known.get(key, True), schema), key, tool)
    return arguments


def _typed(text: str, types: frozenset[str], key: str, tool: str) -> Any:
    try:
        value = json_value(text)
    except ValueError:
        value, is_json = None, False
    else:
        is_json = True
    if is_json and not isinstance(value, str) and _fits(value, types):
        return value
    if "string" in types:
        return text
    if is_json and _fits(value, types):
        return value
    wanted = " or ".join(_WANTED[name] for name in sorted(types) if name != "null") or "null"
    got = HIDDEN if tells_of_secret(key) else repr(shorten(text, 60))
    raise usage(f"{tool}: argument {key!r}: expected {wanted}, got {got}")


def _fits(value: Any, types: frozenset[str]) -> bool:
    match value:
        case bool():
            return "boolean" in types
        case int():
            return "integer" in types or "number" in types
        case float():
            return "number" in types or ("integer" in types and value.is_integer())
        case str():
            return "string" in types
        case list():
            return "array" in types
        case dict():
            return "object" in types
        case _:
            return "null" in types


def allowed_types(schema: Any, root: Mapping[str, Any], depth: int = 0) -> frozenset[str]:
    """The JSON types that a property's schema allows; all of them where it does not say."""
    if not isinstance(schema, Mapping) or depth > _DEPTH:
        return _TYPES
    declared = schema.get("type")
    if isinstance(declared, str):
        declared = [declared]
    if isinstance(declared, list):
        return frozenset(name for name in declared if isinstance(name, str)) & _TYPES or _TYPES
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list) and branches:
            return frozenset().union(*(allowed_types(branch, root, depth + 1) for branch in branches))
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list) and values:
        return frozenset(_type_of(value) for value in values)
    target = _resolve(schema.get("$ref"), root)
    if target is not None:
        return allowed_types(target, root, depth + 1)
    return _TYPES


def _type_of(value: Any) -> str:
    return next(
        name
        for name in ("boolean", "integer", "number", "string", "array", "object", "null")
        if _fits(value, frozenset({name}))
    )


def _resolve(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a reference inside the same schema points at, or None."""
    if not isinstance(reference, str) or not reference.startswith("#/"):
        return None
    at: Any = root
    for step in reference[2:].split("/"):
        if not isinstance(at, Mapping):
            return None
        at = at.get(step.replace("~1", "/").replace("~0", "~"))
    return at


def type_label(schema: Any, root: Mapping[str, Any], depth: int = 0) -> str:
    """A property's type in a word or two, as ``string`` or ``integer[]``."""
    if not isinstance(schema, Mapping):
        return "any"
    values = schema.get("enum")
    if isinstance(values, list) and values:
        shown = "|".join(v if isinstance(v, str) else json.dumps(v) for v in values[:6])
        return shown + ("|…" if len(values) > 6 else "")
    types = allowed_types(schema, root)
    if types == _TYPES:
        return "any"
    if types - {"null"} == {"array"} and depth < 3:
        items = schema.get("items")
        if isinstance(items, Mapping):
            inner = type_label(items, root, depth + 1)
            return f"({inner})[]" if "|" in inner else f"{inner}[]"
    shown_types = types - {"null"} or types
    return "|".join(sorted(shown_types))
