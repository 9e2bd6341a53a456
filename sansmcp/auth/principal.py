"""Who makes a request, as far as its access token says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from math import isnan
from typing import Any

import attrs

from ..errors import LocalProtocolError


def read_scopes(value: str | Iterable[str]) -> tuple[str, ...]:
    """Scopes in order, without repetition, from a list or from a text with blanks between them.

    Raises LocalProtocolError for one that cannot be a scope.

    Specification: RFC 6749, section 3.3.
    """
    names = value.split() if isinstance(value, str) else value
    scopes = tuple(dict.fromkeys(names))
    for scope in scopes:
        if not scope or not all("!" <= c <= "~" and c not in '"\\' for c in scope):
            text = f"{scope!r} is no scope: printable ASCII without blanks, quotes, backslashes"
            raise LocalProtocolError(text)
    return scopes


def _scope_set(value: str | Iterable[str]) -> frozenset[str]:
    return frozenset(read_scopes(value))


def _audience(value: str | Iterable[str]) -> frozenset[str]:
    return frozenset((value,) if isinstance(value, str) else value)


@attrs.frozen(kw_only=True)
class Principal:
    """What a verifier found in a token. Holds no token; its repr shows no claims.

    Raises LocalProtocolError for scopes that are none, without a subject, and for an end that is no time.
    """

    subject: str
    """Who it is: a user, or a client that acts for itself. Unique within `issuer`."""
    scopes: frozenset[str] = attrs.field(default=(), converter=_scope_set)
    """What the token is good for."""
    audience: frozenset[str] = attrs.field(default=(), converter=_audience)
    """The resources that the token was made for."""
    expires_at: float | None = None
    """When the token ends, in seconds since 1970; None: whoever verified it does not know."""
    issuer: str = ""
    """The authorization server that made the token."""
    client_id: str | None = None
    """The client that the token was given to."""
    key: str | None = None
    """The thumbprint of the key that the token is bound to (``cnf.jkt``): it is of no use without a proof."""
    claims: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """Everything that the token, or its introspection, says."""

    def __attrs_post_init__(self) -> None:
        subject: object = self.subject  # both come from an application's verifier
        end: object = self.expires_at
        if not isinstance(subject, str) or not subject:
            raise LocalProtocolError("a principal needs a subject: a text that is not empty")
        if end is not None and (isinstance(end, bool) or not isinstance(end, (int, float)) or isnan(end)):
            raise LocalProtocolError("expires_at is in seconds since 1970, or None")

    @property
    def identity(self) -> str:
        """One text for who it is: equal for two tokens of one subject at one issuer, and for no others."""
        return json.dumps([self.issuer, self.subject])


__all__ = ["Principal", "read_scopes"]
