"""Text that a server chose, made safe to show: no control characters, no endless lines."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# Everything that could move the cursor, change colours or reverse the reading order. Tab and line feed stay.
_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)

MAX_LINE: Final = 600


def visible(text: str) -> str:
    """The text with each control character replaced by its escape."""
    return _CONTROL.sub(lambda match: _escape(match[0]), text.replace("\r\n", "\n"))


def _escape(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 256 else f"\\u{number:04x}"


def shorten(text: str, limit: int = MAX_LINE) -> str:
    """The text, cut to `limit` characters with an ellipsis."""
    return text if len(text) <= limit else text[: limit - 1] + "…"


def one_line(text: str, limit: int = MAX_LINE) -> str:
    """The text on one line, visible and bounded."""
    return shorten(visible(" ".join(text[: limit * 8].split())), limit)


def first_paragraph(text: str, limit: int = 240) -> str:
    """What comes before the first empty line, on one line, cut between words."""
    line = one_line(re.split(r"\n\s*\n", text.strip()[: limit * 8], maxsplit=1)[0], limit * 8)
    if len(line) <= limit:
        return line
    head = line[: limit - 1]
    return (head.rpartition(" ")[0] or head).rstrip(" ,;:") + "…"


def likely(name: str, known: Iterable[str]) -> str:
    """Of which names that are known it may be a slip, as a question; empty where there is none like it."""
    from difflib import get_close_matches

    scheme, found, _ = name.lower().partition("://")
    same = scheme + found if found else ""  # what two URIs have in common does not make them alike
    names = {each.lower().removeprefix(same): one_line(each, 80) for each in known}
    close = get_close_matches(name.lower().removeprefix(same), names, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(names[each] for each in close)}?" if close else ""


def instead(name: str, known: Iterable[str], otherwise: str) -> str:
    """The same, or where there is none like it `otherwise` and all names that are known."""
    names = list(known)
    return likely(name, names) or f"{otherwise} {one_line(', '.join(names), 300) or 'none'}"


def size(count: int) -> str:
    """A number of bytes for people."""
    if count < 1024:
        return f"{count} byte{'' if count == 1 else 's'}"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024 or unit == "GiB":
            return f"{value:.1f} {unit}"
    raise AssertionError


__all__ = ["first_paragraph", "instead", "likely", "one_line", "shorten", "size", "visible"]
