"""``--header`` and ``--bearer-env``: what goes along on every request. No message quotes a value."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from .failures import usage

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SCHEMES: Final = ("bearer", "basic", "dpop")


def read_headers(given: Sequence[str], bearer_env: str | None, environ: Mapping[str, str]) -> dict[str, str]:
    """The headers by name in lower case. Raises CommandError for what is none."""
    headers: dict[str, str] = {}
    for number, text in enumerate(given, 1):
        if text.startswith("@"):
            for line_number, line in _lines(text[1:]):
                _add(headers, line, f"--header {text}: line {line_number}")
        else:
            _add(headers, text, f"--header: occurrence {number}")
    if bearer_env is not None:
        token = environ.get(bearer_env, "").strip()
        if not token:
            raise usage(f"--bearer-env {bearer_env}: the variable is not set")
        if "authorization" in headers:
            raise usage("give either --bearer-env or a header authorization, not both")
        headers["authorization"] = f"Bearer {token}"
    return headers


def _lines(name: str) -> Iterator[tuple[int, str]]:
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise usage(f"cannot read --header @{name}: {reason}") from None
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _add(headers: dict[str, str], text: str, where: str) -> None:
    name, found, value = text.partition(":")
    name, value = name.strip().lower(), value.strip()
    if not found or not _NAME.fullmatch(name):
        raise usage(f"{where}: give 'NAME: VALUE', or @FILE with such lines")
    if not value or value.lower() in _SCHEMES:
        raise usage(f"{where}: {name} has no value; is the variable in it set?")
    if name in headers:
        raise usage(f"{where}: {name} is given twice")
    headers[name] = value


def secrets_in(headers: Mapping[str, str]) -> dict[str, str]:
    """What must not be shown of the headers: each value, and also the token after a scheme."""
    values = dict(headers)
    for name, value in headers.items():
        _, found, token = value.partition(" ")
        if found:
            values[f"{name} token"] = token.strip()
    return values
