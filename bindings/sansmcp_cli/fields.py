"""The fields of a form that a server wants filled in, for people, and what they type for them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sansmcp.forms import check_form

from .arguments import json_value
from .text import one_line, shorten

NOTHING: Final = object()
"""In the place of a default: there is none."""

_YES_NO: Final = {
    **dict.fromkeys(("y", "yes", "true", "1"), True),
    **dict.fromkeys(("n", "no", "false", "0"), False),
}
_EMPTY: Final = '""'
"""How an empty text is typed: an empty line is the default, or nothing."""
_KINDS: Final = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "yes or no",
    "array": "several, with commas",
}
_BOUNDS: Final = (
    ("minimum", "maximum", ""),
    ("minLength", "maxLength", " characters"),
    ("minItems", "maxItems", " of them"),
)
_MAX_CHOICES: Final = 100
"""Choices that are shown."""


@dataclass(frozen=True)
class Field:
    """One field. `default` is what an empty line stands for, or `NOTHING`."""

    name: str
    schema: Mapping[str, Any]
    required: bool
    default: Any = NOTHING

    @property
    def label(self) -> str:
        """Its name, safe to show."""
        return one_line(self.name, 60)

    def prompt(self) -> str:
        """What stands before the answer, as ``copies* (whole number, 1 to 9) [1]``."""
        parts = [self._kind(), *(_bounds(self.schema, *names) for names in _BOUNDS)]
        about = ", ".join(part for part in parts if part)
        given = "" if self.default is NOTHING else f" [{self.shown(self.default)}]"
        return f"{self.label}{'*' if self.required else ''}{f' ({about})' if about else ''}{given}"

    def _kind(self) -> str:
        kind, form = self.schema.get("type"), self.schema.get("format")
        if kind != "array" and self._choices():
            return "one of these"
        if kind == "string" and isinstance(form, str):
            return one_line(form, 30)
        return _KINDS.get(kind, "JSON") if isinstance(kind, str) else "JSON"

    def about(self) -> list[str]:
        """Lines to show before it is asked for: what it is, and what may be chosen."""
        told = [self.schema.get(member) for member in ("title", "description")]
        lines = [one_line(": ".join(text for text in told if isinstance(text, str) and text))]
        choices = self._choices()
        numbered = _numbered(choices)
        for number, (value, title) in enumerate(choices[:_MAX_CHOICES], 1):
            name = "" if title == value else f"  {one_line(title, 100)}"
            lines.append(f"  {f'{number:3}  ' if numbered else ''}{one_line(value, 100)}{name}")
        if len(choices) > _MAX_CHOICES:
            lines.append(f"  … and {len(choices) - _MAX_CHOICES} more")
        return [line for line in lines if line]

    def shown(self, value: Any) -> str:
        """A value as it could be typed."""
        match value:
            case bool():
                return "yes" if value else "no"
            case str():
                return one_line(value, 200) if value else _EMPTY
            case list() if all(isinstance(item, str) and "," not in item for item in value):
                return one_line(", ".join(value), 200) or "none"
            case _:
                return one_line(json.dumps(value, ensure_ascii=False), 200)

    def problem(self, value: Any) -> str | None:
        """What is wrong with a value, without quoting it."""
        found = check_form({"properties": {self.name: self.schema}}, {self.name: value})
        return found[0].removeprefix(f"{self.name}: ") if found else None

    def read(self, text: str) -> Any:
        """The value that was typed. Raises ValueError, with what is wrong, which does not quote it."""
        value = self._value(text.strip())
        problem = self.problem(value)
        if problem is not None:
            raise ValueError(problem)
        return value

    def take(self, text: str) -> Any:
        """The value of ``KEY=VALUE``: JSON where that fits, else as if it was typed. Raises ValueError."""
        try:
            value = json_value(text)
        except ValueError:
            return self.read(text)
        return self.read(text) if self.problem(value) is not None else value

    def _value(self, text: str) -> Any:
        kind = self.schema.get("type")
        if kind == "array":
            return self._several(text)
        if self._choices():
            return self._choose(text)
        match kind:
            case "string":
                return "" if text == _EMPTY else text
            case "boolean":
                if text.lower() not in _YES_NO:
                    raise ValueError("answer yes or no")
                return _YES_NO[text.lower()]
            case "integer" | "number":
                return _number(text)
            case _:
                try:
                    return json_value(text)
                except ValueError:
                    return text

    def _several(self, text: str) -> list[Any]:
        if text.startswith("["):
            value = json_value(text)
            return value if isinstance(value, list) else [value]
        parts = [part.strip() for part in text.split(",")]
        chosen = [self._choose(part) if self._choices() else part for part in parts if part]
        return list(dict.fromkeys(chosen))

    def _choose(self, text: str) -> str:
        """The value that is meant by itself, by its name or by its number."""
        choices = self._choices()
        for value, _ in choices:
            if value == text:
                return value
        named = [value for value, title in choices if title.casefold() == text.casefold()]
        if len(named) == 1:
            return named[0]
        if _numbered(choices) and text.isascii() and text.isdigit() and 0 < int(text[:9]) <= len(choices):
            return choices[int(text) - 1][0]
        raise ValueError("none of the choices")

    def _choices(self) -> list[tuple[str, str]]:
        """The values that may be chosen, each with its name."""
        schema = self.schema.get("items") if self.schema.get("type") == "array" else self.schema
        if not isinstance(schema, Mapping):
            return []
        for keyword in ("oneOf", "anyOf"):
            options = schema.get(keyword)
            if isinstance(options, list):
                return [
                    (option["const"], _text(option.get("title"), option["const"]))
                    for option in options
                    if isinstance(option, Mapping) and isinstance(option.get("const"), str)
                ]
        values = schema.get("enum")
        values = [value for value in values if isinstance(value, str)] if isinstance(values, list) else []
        names = schema.get("enumNames")
        names = names if isinstance(names, list) and len(names) == len(values) else values
        return [(value, _text(name, value)) for value, name in zip(values, names, strict=True)]


def fields_of(schema: Mapping[str, Any]) -> list[Field]:
    """The fields of a form, in its order."""
    required = schema.get("required")
    needed = required if isinstance(required, list) else []
    properties = schema.get("properties")
    return [
        Field(name, field, name in needed, field.get("default", NOTHING))
        for name, field in (properties.items() if isinstance(properties, Mapping) else ())
        if isinstance(field, Mapping)
    ]


def _text(value: Any, otherwise: str) -> str:
    return value if isinstance(value, str) and value else otherwise


def _numbered(choices: Sequence[tuple[str, str]]) -> bool:
    """Whether numbers can stand for them: not where they could be meant by themselves."""
    return not any(text.strip().isdigit() for choice in choices for text in choice)


def _number(text: str) -> int | float:
    try:
        value = json_value(text)
    except ValueError:
        value = None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("not a number")
    return value


def _bounds(schema: Mapping[str, Any], low: str, high: str, what: str) -> str:
    least, most = (schema.get(name) for name in (low, high))
    least, most = (
        shorten(f"{value:g}" if isinstance(value, float) else str(value), 20)
        if isinstance(value, (int, float)) and not isinstance(value, bool)
        else None
        for value in (least, most)
    )
    if least is not None and most is not None:
        return f"{least} to {most}{what}"
    if least is not None:
        return f"at least {least}{what}"
    return "" if most is None else f"at most {most}{what}"
