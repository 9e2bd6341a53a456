"""``--header``, ``--bearer``, ``--bearer-env``: what goes along on every request. Values are never quoted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from .failures import usage

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SCHEMES: Final = ("bearer", "basic", "dpop")


def read_headers(
    given: Sequence[str], bearer: str | None, bearer_env: str | None, environ: Mapping[str, str]
) -> dict[str, str]:
    """The headers by name in lower case. Raises CommandError for what is none."""
    headers: dict[str, str] = {}
    for number, text in enumerate(given, 1):
        if text.startswith("@"):
            for line_number, line in _lines(text[1:]):
                _add(headers, line, f"--header {text}: line {line_number}")
        else:
            _add(headers, text, f"--header: occurrence {number}")
    token = _token(bearer, bearer_env, environ)
    if token is not None:
        if "authorization" in headers:
            raise usage("give either --bearer, --bearer-env or a header authorization, not two of them")
        headers["authorization"] = f"Bearer {token}"
    return headers


def _token(bearer: str | None, bearer_env: str | None, environ: Mapping[str, str]) -> str | None:
    if bearer is not None and bearer_env is not None:
        raise usage("give either --bearer, --bearer-env or a header authorization, not two of them")
    if bearer_env is not None:
        token, problem = environ.get(bearer_env, ""), f"--bearer-env {bearer_env}: the variable is not set"
    elif bearer is None:
        return None
    elif bearer.startswith("@"):
        token, problem = _read("--bearer", bearer[1:]), f"--bearer {bearer}: there is no token in it"
    else:
        token, problem = bearer, "--bearer: there is no token; is the variable in it set?"
    token = token.strip()
    if not token:
        raise usage(problem)
    if any(c.isspace() for c in token):
        raise usage("--bearer: a token has no blanks in it")
    return token


def _lines(name: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(_read("--header", name).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            yield number, line


def _read(option: str, name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise usage(f"cannot read {option} @{name}: {reason}") from None


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
