"""Forms: what a server wants filled in, held against what was, with the little schema they have.

A form is an object of texts, numbers, yes-or-no and choices. Constraints that forms do not have are
not looked at: the server checks them.

Specification: 2026-07-28, client/elicitation (requested schema).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

_EMAIL: Final = re.compile(r"[^@\s]+@[^@\s]+")
_URI: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s\x00-\x1f\x7f]*")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_TIME: Final = re.compile(r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(\.\d+)?([Zz]|[+-]\d{2}:\d{2})")


def check_form(schema: Mapping[str, Any], content: object) -> list[str]:
    """What is wrong with `content` as the form `schema`, one line each; empty: nothing.

    No line quotes a value. A member that the schema does not name is no fault.
    """
    if not isinstance(content, Mapping):
        return ["the content is no object"]
    required = schema.get("required")
    problems = [
        f"{name}: missing"
        for name in (required if isinstance(required, list) else ())
        if isinstance(name, str) and name not in content
    ]
    properties = schema.get("properties")
    for name, field in properties.items() if isinstance(properties, Mapping) else ():
        if name in content and isinstance(field, Mapping):
            problem = _check_field(field, content[name])
            if problem is not None:
                problems.append(f"{name}: {problem}")
    return problems


def _check_field(field: Mapping[str, Any], value: object) -> str | None:
    kind = field.get("type")
    check = _CHECKS.get(kind) if isinstance(kind, str) else None
    return None if check is None else check(field, value)


def _check_text(field: Mapping[str, Any], value: object) -> str | None:
    if not isinstance(value, str):
        return "not a text"
    choices = _choices(field)
    if choices is not None and value not in choices:
        return "none of the choices"
    low, high = _bounds(field, "minLength", "maxLength")
    if low is not None and len(value) < low:
        return f"shorter than {_shown(low)} characters"
    if high is not None and len(value) > high:
        return f"longer than {_shown(high)} characters"
    name = field.get("format")
    has_format = _FORMATS.get(name) if isinstance(name, str) else None
    return None if has_format is None or has_format(value) else f"not of the format {name}"


def _check_number(field: Mapping[str, Any], value: object) -> str | None:
    if not _is_number(value):
        return "not a number"
    assert isinstance(value, (int, float))
    if field["type"] == "integer" and not (isinstance(value, int) or value.is_integer()):
        return "not an integer"
    low, high = _bounds(field, "minimum", "maximum")
    if low is not None and value < low:
        return f"less than {_shown(low)}"
    if high is not None and value > high:
        return f"more than {_shown(high)}"
    return None


def _check_boolean(field: Mapping[str, Any], value: object) -> str | None:
    return None if isinstance(value, bool) else "neither true nor false"


def _check_list(field: Mapping[str, Any], value: object) -> str | None:
    if not isinstance(value, (list, tuple)):
        return "not a list"
    low, high = _bounds(field, "minItems", "maxItems")
    if low is not None and len(value) < low:
        return f"fewer than {_shown(low)} choices"
    if high is not None and len(value) > high:
        return f"more than {_shown(high)} choices"
    items = field.get("items")
    if isinstance(items, Mapping):
        for item in value:
            problem = _check_text(items, item)
            if problem is not None:
                return f"an item is {problem}"
    return None


_CHECKS: Final[Mapping[str, Callable[[Mapping[str, Any], object], str | None]]] = {
    "string": _check_text,
    "number": _check_number,
    "integer": _check_number,
    "boolean": _check_boolean,
    "array": _check_list,
}


def _choices(field: Mapping[str, Any]) -> list[Any] | None:
    """The values that may be chosen, None where there is no choice."""
    enum = field.get("enum")
    if isinstance(enum, list):
        return enum
    for name in ("oneOf", "anyOf"):
        options = field.get(name)
        if isinstance(options, list) and all(isinstance(o, Mapping) and "const" in o for o in options):
            return [option["const"] for option in options]
    return None


def _bounds(field: Mapping[str, Any], low: str, high: str) -> tuple[Any, Any]:
    least, most = field.get(low), field.get(high)
    return least if _is_number(least) else None, most if _is_number(most) else None


def _shown(bound: float) -> str:
    try:
        return f"{bound:g}"
    except OverflowError:  # JSON has integers of any size
        return "a huge number"


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def is_uri(text: str) -> bool:
    """Whether a text looks like a whole URI: with a scheme, and nothing in it that no URI has."""
    return _URI.fullmatch(text) is not None


def _is_date(text: str) -> bool:
    from datetime import date

    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return _DATE.fullmatch(text) is not None


def _is_time(text: str) -> bool:
    if _TIME.fullmatch(text) is None or not _is_date(text[:10]):
        return False
    hour, minute, second = (int(text[at : at + 2]) for at in (11, 14, 17))
    return hour <= 23 and minute <= 59 and second <= 60  # a minute may have a leap second


_FORMATS: Final[Mapping[str, Callable[[str], bool]]] = {
    "email": lambda text: _EMAIL.fullmatch(text) is not None,
    "uri": is_uri,
    "date": _is_date,
    "date-time": _is_time,
}


# defaults ----------------------------------------------------------------------------------------


def apply_defaults(schema: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """`content` with the default of each field that it lacks. What is there stays as it is.

    Goes into objects that are there, and into the branch of an ``anyOf`` or ``oneOf`` that they fit;
    an object that is not there and has no default of its own is not made. Returns a new object.
    """
    filled = dict(content)
    properties = schema.get("properties")
    for name, field in properties.items() if isinstance(properties, Mapping) else ():
        if not isinstance(field, Mapping):
            continue
        if name not in filled:
            if "default" in field:
                filled[name] = _copy(field["default"])
        elif isinstance(filled[name], Mapping):
            filled[name] = apply_defaults(field, filled[name])
    for keyword in ("anyOf", "oneOf"):
        branches = schema.get(keyword)
        for branch in branches if isinstance(branches, list) else ():
            if isinstance(branch, Mapping) and _fits(branch, filled):
                return apply_defaults(branch, filled)
    return filled


def _fits(branch: Mapping[str, Any], content: Mapping[str, Any]) -> bool:
    """Whether `content` is meant to be of this branch: it is valid but for what the defaults give."""
    with_defaults = {**_own_defaults(branch), **content}
    if check_form(branch, with_defaults):
        return False
    properties = branch.get("properties")
    return all(
        content[name] == field["const"]
        for name, field in (properties.items() if isinstance(properties, Mapping) else ())
        if name in content and isinstance(field, Mapping) and "const" in field
    )


def _own_defaults(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = schema.get("properties")
    return {
        name: field["default"]
        for name, field in (properties.items() if isinstance(properties, Mapping) else ())
        if isinstance(field, Mapping) and "default" in field
    }


def _copy(value: Any) -> Any:
    """A default of its own: whoever changes the content must not change the schema."""
    if isinstance(value, Mapping):
        return {name: _copy(member) for name, member in value.items()}
    return [_copy(item) for item in value] if isinstance(value, list) else value
