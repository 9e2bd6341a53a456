"""``WWW-Authenticate``: what a server wants to be sent, read as RFC 9110 has it.

A header lists challenges, and each challenge lists parameters, with the same commas between them. Values
in quotes may hold anything, also what looks like a parameter or like another challenge.

Specification: RFC 9110, section 11.6.1; RFC 6750, section 3; RFC 9728, section 5.1; 2026-07-28,
basic/authorization/authorization-server-discovery.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

import attrs

MAX_LENGTH: Final = 16 * 1024
"""Characters of one header that are read: nobody needs more than some hundred. The rest is left out."""

MAX_CHALLENGES: Final = 16
MAX_PARAMETERS: Final = 32
"""Of one challenge. Those past it are left out."""

TOKEN_SCHEMES: Final = ("bearer", "dpop")
"""Schemes that want an access token."""

_TELLING: Final = frozenset({"error", "scope", "resource_metadata"})
"""Of what a challenge for a token says, that which makes a difference."""

_T: Final = r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_NAME: Final = re.compile(_T)
_PARAMETER: Final = re.compile(
    rf'({_T})[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*+)"|([^\s",]+))(?=[ \t,]|$)', re.DOTALL
)
_OPEN_QUOTE: Final = re.compile(rf'{_T}[ \t]*=[ \t]*"')
_TOKEN68: Final = re.compile(r"([A-Za-z0-9\-._~+/]+=*)[ \t]*(?=,|$)")
_BETWEEN: Final = re.compile(r"[ \t,]*")
_BLANK: Final = re.compile(r"[ \t]*")
_ESCAPED: Final = re.compile(r"\\(.)", re.DOTALL)


@attrs.frozen
class Challenge:
    """One way in which a server lets itself be shown who asks."""

    scheme: str
    """In lower case."""
    parameters: Mapping[str, str] = attrs.field(factory=dict)
    """By name in lower case; of one that is there twice, the first."""
    token: str | None = None
    """What stands there instead of parameters."""

    @property
    def scopes(self) -> tuple[str, ...] | None:
        """The scopes that are needed; None where it does not say."""
        value = self.parameters.get("scope")
        return None if value is None else tuple(dict.fromkeys(value.split()))


def parse_challenges(values: Iterable[str]) -> tuple[list[Challenge], bool]:
    """Read the values of all ``WWW-Authenticate`` headers of a response, in order.

    Total: what is malformed is left out, up to the next comma, and the second result is then True. So
    it is past a bound. Takes linear time.
    """
    found: list[Challenge] = []
    odd = False
    for value in values:
        odd |= len(value) > MAX_LENGTH
        odd |= _parse(value[:MAX_LENGTH].strip(" \t"), found)
        if len(found) > MAX_CHALLENGES:
            return found[:MAX_CHALLENGES], True
    return found, odd


def _parse(text: str, found: list[Challenge]) -> bool:
    """Add the challenges of one header; returns whether something had to be left out."""
    odd, at = False, 0
    parameters: dict[str, str] | None = None
    while (at := _after(_BETWEEN, text, at)) < len(text) and len(found) <= MAX_CHALLENGES:
        pair = _PARAMETER.match(text, at)
        if pair is not None and parameters is not None:
            name, quoted, plain = pair.groups()
            if len(parameters) < MAX_PARAMETERS and name.lower() not in parameters:
                parameters[name.lower()] = plain if quoted is None else _ESCAPED.sub(r"\1", quoted)
            else:
                odd = True
            odd |= plain is not None and _NAME.fullmatch(plain) is None  # an address without its quotes
            at = _after(_BLANK, text, pair.end())
            odd |= at < len(text) and text[at] != ","  # some leave the comma out
            continue
        if pair is None and _OPEN_QUOTE.match(text, at):
            return True  # where it would end, nobody knows: nothing after it can be believed
        name_match = _NAME.match(text, at)
        end = at if name_match is None else name_match.end()
        if pair is not None or name_match is None or (end < len(text) and text[end] not in " \t,"):
            odd, at = True, _next_comma(text, pair.end() if pair else at)
            continue
        scheme, parameters = name_match[0].lower(), {}
        value = _TOKEN68.match(text, _after(_BLANK, text, end))
        if value is None:
            found.append(Challenge(scheme, parameters))  # which are read next
        else:
            found.append(Challenge(scheme, token=value[1]))
            parameters, end = None, value.end()
        at = end
    return odd


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    assert match is not None
    return match.end()


def _next_comma(text: str, at: int) -> int:
    comma = text.find(",", at)
    return len(text) if comma < 0 else comma


def for_tokens(challenges: Iterable[Challenge]) -> Challenge | None:
    """The challenge that wants an access token; of several, the first that says more. None for none."""
    wanted = [c for c in challenges if c.scheme in TOKEN_SCHEMES]
    return next((c for c in wanted if not _TELLING.isdisjoint(c.parameters)), wanted[0] if wanted else None)
