"""INVARIANT: a text is a template or is refused with LocalProtocolError; what a template without reserved
parts is filled in to is matched by it with values that fill it in alike, if it is matched at all; and of
whatever text it is given, it hands out no part that leads out of its folder."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from fuzz.steps import Steps
from sansmcp import LocalProtocolError
from sansmcp.uritemplate import TemplateValue, UriTemplate

PIECES = [
    "test://",
    "/",
    "-",
    ".txt",
    "?q=1",
    "%20",
    "{a}",
    "{b}",
    "{+path}",
    "{/parts*}",
    "{/a,b}",
    "{.ext}",
    "{#part}",
    "{?a,b}",
    "{&c}",
    "{;d}",
    "{a:3}",
    "{list*}",
]
TEXTS = ["x", "x.y", "..", ".", "a/b", "a/../b", "\\", "\0", "ü", "%2e%2e", "50%25", "", "a b+c", "?&=#", "𝄞"]
NAMES = ["a", "b", "c", "d", "path", "parts", "ext", "part", "list"]


def template_of(steps: Steps) -> str:
    parts = [steps.choose(PIECES) for _ in range(1 + steps.byte() % 6)]
    if steps.byte() % 4 == 3:
        parts.append(steps.take(steps.byte() % 16).decode("latin-1"))
    return "".join(parts)


def text_of(steps: Steps) -> str:
    if steps.byte() % 4 == 3:
        return steps.take(steps.byte() % 12).decode("utf-8", "replace")
    return steps.choose(TEXTS)


def values_of(steps: Steps) -> dict[str, TemplateValue]:
    values: dict[str, TemplateValue] = {}
    for name in NAMES:
        match steps.byte() % 5:
            case 0 | 1:
                values[name] = text_of(steps)
            case 2:
                values[name] = [text_of(steps) for _ in range(steps.byte() % 3)]
            case 3:
                values[name] = {text_of(steps): text_of(steps) for _ in range(steps.byte() % 3)}
            case _:
                pass
    return values


def check_inside(template: UriTemplate, values: dict[str, str | list[str]]) -> None:
    """No part of a path leads elsewhere; a query may say anything."""
    asked = {name for found in re.findall(r"\{[?&]([^}]*)\}", template.template) for name in found.split(",")}
    for name, value in values.items():
        if name not in asked:
            for text in [value] if isinstance(value, str) else value:
                assert text, f"{name} is empty"
                assert "\\" not in text
                assert "\0" not in text
                assert not {".", ".."} & set(text.split("/")), f"{name} leads out"
    for name in re.findall(r"(?<!:/)/\{\+(\w+)\}", template.template):
        assert not str(values.get(name, "")).startswith("/"), f"{name} starts anew at the root"


def one_input(data: bytes) -> None:
    steps = Steps(data)
    try:
        template = UriTemplate(template_of(steps))
        filled = template.expand(values_of(steps))
        template.check_matchable()
    except LocalProtocolError:
        return
    found = template.match(filled)
    if found is not None:
        check_inside(template, found)
        again: dict[str, Any] = dict(found)
        if "{+" not in template.template and "{#" not in template.template:
            assert unquote(template.expand(again)) == unquote(filled)
            assert template.match(template.expand(again)) == found
    for _ in range(4):
        at = steps.byte() % (len(filled) + 1)
        given = filled[:at] + text_of(steps) + filled[at + steps.byte() % 3 :]
        other = template.match(given)
        if other is not None:
            check_inside(template, other)
