"""The head of a ``SKILL.md``: the part of YAML that skills need, and nothing else of it.

Lines ``key: value`` between two lines ``---``; a value is a plain or a quoted text, a number, true, false
or null, or a block of further such lines, indented. Whatever else YAML has is refused by name: what two
readers take for different things must not be verified.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any, Final

_FENCE: Final = "---"
_KEY: Final = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z0-9_][A-Za-z0-9_./-]*):(?:[ \t]+(?P<value>.*))?")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_NUMBER: Final = re.compile(r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+|[0-9]+)(?:[eE][-+]?[0-9]+)?")
_WORDS: Final[Mapping[str, Any]] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_REFUSED: Final[Mapping[str, str]] = {
    "[": "lists in brackets",
    "{": "maps in braces",
    "&": "anchors",
    "*": "aliases",
    "!": "tags",
    "|": "texts of several lines",
    ">": "texts of several lines",
    "%": "directives",
    "@": "reserved characters",
    "`": "reserved characters",
    "?": "complex keys",
    "#": "comments",
}
_MAX_LINES: Final = 1024
_MAX_DIGITS: Final = 300
"""Of a number: to read one of many takes more than linear time. Past it: refused."""
_OTHER_BREAKS: Final = frozenset("\r\x85\u2028\u2029\0")
"""What ends a line for some readers of YAML, and for others does not."""


class FrontmatterError(ValueError):
    """A head that is none, or has more of YAML than is read here. Tells the line, and quotes nothing."""


def read_frontmatter(text: str) -> dict[str, Any]:
    """The head of a document. Raises FrontmatterError."""
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n", _MAX_LINES)
    if lines[0].rstrip() != _FENCE:
        raise FrontmatterError("line 1: it does not begin with ---")
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == _FENCE), None)
    if end is None:
        raise FrontmatterError("its head has no end ---")
    rows = [(number, line) for number, line in enumerate(lines[1:end], 2) if line.strip()]
    for number, line in rows:
        if _OTHER_BREAKS & set(line):
            raise FrontmatterError(f"line {number}: an odd end of a line is not read here")
    return _read_block(iter(rows))


def _read_block(rows: Iterator[tuple[int, str]]) -> dict[str, Any]:
    top: dict[str, Any] = {}
    inner: dict[str, Any] | None = None
    depth, last = 0, ""
    for number, line in rows:
        match = _KEY.fullmatch(line.rstrip())
        if match is None:
            what = "lists" if line.lstrip().startswith("- ") else "anything but key: value"
            raise FrontmatterError(f"line {number}: {what} is not read here")
        indent, key = len(match["indent"]), match["key"]
        if indent == 0:
            inner, depth, target, last = None, 0, top, key
        elif inner is None and last and top[last] is None:
            inner, depth = {}, indent
            top[last] = target = inner
        elif inner is not None and indent == depth:
            target = inner
        else:
            raise FrontmatterError(f"line {number}: its indent belongs to nothing")
        if key in target:
            raise FrontmatterError(f"line {number}: the key is there twice")
        target[key] = _read_value((match["value"] or "").strip(), number)
        if indent == 0 and match["value"] is not None and match["value"].strip():
            last = ""  # nothing can be indented below it
    return top


def _read_value(text: str, number: int) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if text[0] == '"':
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if not isinstance(value, str):
            raise FrontmatterError(
                f"line {number}: the quoted text does not end, or has escapes unknown here"
            )
        return value
    if text[0] == "'":
        inner = text[1:-1]
        if len(text) < 2 or text[-1] != "'" or "'" in inner.replace("''", ""):
            raise FrontmatterError(f"line {number}: the quoted text does not end")
        return inner.replace("''", "'")
    refused = _REFUSED.get(text[0])
    if refused is None and text.startswith("- "):
        refused = "lists"
    if refused is None and " #" in text:
        refused = "comments"
    if refused is None and (": " in text or text.endswith(":")):
        refused = "a colon in a text without quotes"
    if refused is not None:
        raise FrontmatterError(f"line {number}: {refused} is not read here")
    if not _NUMBER.fullmatch(text):
        return text
    if len(text) > _MAX_DIGITS:
        raise FrontmatterError(f"line {number}: a number of more than {_MAX_DIGITS} digits is not read here")
    value = int(text) if _INTEGER.fullmatch(text) else float(text)
    if not isfinite(value):
        raise FrontmatterError(f"line {number}: so large a number is not read here")
    return value
