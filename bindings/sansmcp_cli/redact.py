"""What must never be shown: values of the child's environment, and members that hold credentials."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

HIDDEN: Final = "[hidden]"

_MIN_LENGTH: Final = 4
"""Shorter values ("1", "on") are everywhere; they are hidden only under a name that tells."""

_TELLING: Final = re.compile(
    r"auth(?!ors?(_|$))|bearer|cookie|credential|passw|passphrase|private_?key|secret|session_?id|"
    r"(api|access|client|account|subscription)_?key|jwt|verifier|request_?state|"
    r"(^|_)(token|pat|pwd)s?($|_)",
    re.IGNORECASE,
)
_HARMLESS: Final = frozenset(
    {
        *("progress_token", "authorization_servers", "pwd", "token_type", "token_endpoint"),
        *("authorization_endpoint", "token_endpoint_auth_method", "token_endpoint_auth_methods_supported"),
        "authorization_response_iss_parameter_supported",
    }
)
_PLACES: Final = ("file", "path", "dir", "sock", "authority", "url", "uri")
"""Ends of names of variables that say where something is, not what it is."""
_SCHEMA: Final = frozenset({"type", "$ref", "anyOf", "oneOf", "allOf", "enum", "const", "description"})

_SCHEME: Final = re.compile(r"\b(Bearer|Basic|DPoP)\s+(?![a-z_]+=\")[A-Za-z0-9._~+/=-]{6,}", re.IGNORECASE)
_KNOWN_FORM: Final = re.compile(
    r"\beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*|\b(?:sk|pk|rk)[-_][\w-]{16,}|"
    r"\bgh[a-z]_\w{16,}|\bxox[a-z]-[\w-]{10,}|\bAKIA\w{16}"
)
_ASSIGNED: Final = re.compile(
    r"((?:token|secret|passw(?:or)?d|api[ _-]?key|authorization|request_?state)"
    # name=value, "name": value, name:value; after a colon and a space only what looks made up
    r"""(?:\s*=\s*["']?|["']\s*:\s*["']?|:\s*["']|:(?=\S)|:\s+(?=[^\s"']*\d)(?=\S{6})))"""
    r"""(?!\[hidden)(?!(?:Bearer|Basic|DPoP)\b)([^\s"'&,;}]{3,})""",
    re.IGNORECASE,
)


def tells_of_secret(name: str) -> bool:
    """Whether what is called `name` is likely a credential."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").lower()
    return words not in _HARMLESS and _TELLING.search(words) is not None


class Redactor:
    """Knows the values to hide, and hides them in text and in JSON.

    `given` was set for the child: all its values are hidden, except very short ones under a name
    that does not tell. Of `inherited` those are hidden whose names tell.
    """

    def __init__(
        self, given: Mapping[str, str] | None = None, inherited: Mapping[str, str] | None = None
    ) -> None:
        values = {v for k, v in (given or {}).items() if len(v) >= _MIN_LENGTH or (v and tells_of_secret(k))}
        values |= {
            v
            for k, v in (inherited or {}).items()
            if len(v) >= _MIN_LENGTH and tells_of_secret(k) and not k.lower().endswith(_PLACES)
        }
        forms = {form for value in values for form in _forms(value)}
        # the longest first: one value may be a part of another
        ordered = sorted(forms, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, ordered))) if ordered else None

    def text(self, text: str) -> str:
        """The text without what must not be shown."""
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        text = _SCHEME.sub(lambda match: f"{match[1]} {HIDDEN}", text)
        text = _KNOWN_FORM.sub(HIDDEN, text)
        return _ASSIGNED.sub(lambda match: f"{match[1]}{HIDDEN}", text)

    def json(self, value: Any) -> Any:
        """The JSON value without what must not be shown; the original is not touched."""
        match value:
            case dict():
                value = _without_answers(value)
                return {
                    self.text(key): HIDDEN if _hides(key, member) else self.json(member)
                    for key, member in value.items()
                }
            case list():
                return [self.json(item) for item in value]
            case str():
                return self.text(value)
            case _:
                return value

    def argv(self, words: Iterable[str]) -> list[str]:
        """A command line without what must not be shown: also what follows ``--token``."""
        shown: list[str] = []
        hide_next = False
        for word in words:
            name, found, _ = word.partition("=")
            if hide_next and not word.startswith("-"):
                shown.append(HIDDEN)
                hide_next = False
            elif found and tells_of_secret(name):
                shown.append(f"{name}={HIDDEN}")
            else:
                hide_next = word.startswith("-") and tells_of_secret(word)
                shown.append(self.text(word))
        return shown


def _hides(key: str, value: Any) -> bool:
    if not tells_of_secret(key):
        return False
    match value:
        case bool() | None:
            return False
        case int() | float():
            return not key.lower().endswith("tokens")  # how many words of a model
        case dict():
            return not _SCHEMA & value.keys()  # a schema only describes a member of that name
        case _:
            return bool(value)


def _without_answers(value: dict[str, Any]) -> dict[str, Any]:
    """What a user filled in, and where a page is that is for this user alone, are nobody else's business."""
    content, url = value.get("content"), value.get("url")
    if "action" in value and isinstance(content, dict):
        return {**value, "content": dict.fromkeys(content, HIDDEN)}
    if value.get("mode") == "url" and isinstance(url, str):
        return {**value, "url": url.partition("?")[0] + ("?…" if "?" in url else "")}
    return value


def _forms(value: str) -> set[str]:
    """The value as it stands, and as it looks inside JSON text."""
    return {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
