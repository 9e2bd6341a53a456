"""Tokens: what a token endpoint answers, how long that is good, and where it is kept.

Specification: RFC 6749, sections 5 and 6; 2026-07-28, basic/authorization (refresh tokens).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Protocol

import attrs

from .registration import Registration
from .scopes import Scopes

MARGIN: Final = 30.0
"""Seconds before its end at which a token is not used any more: it must arrive while it is good, and clocks
differ. Of a token that lasts less than five minutes, a tenth."""

MAX_TOKEN: Final = 32 * 1024
"""Characters of a token: it goes into every head. Past it: the answer is refused."""

_LONGEST: Final = 10 * 365 * 86_400.0
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_VISIBLE: Final = re.compile(r"[!-~]+")


@attrs.frozen(kw_only=True, repr=False)
class Tokens:
    """What an authorization server gave for one server."""

    access_token: str
    token_type: str
    """In lower case: ``bearer``, or ``dpop``."""
    issuer: str
    """Who gave it, and nobody else is shown it."""
    resource: str
    """For whom it is made."""
    scopes: Scopes = ()
    """What was granted, as far as that is known."""
    requested: Scopes = ()
    """What was asked for."""
    expires_at: float | None = None
    """Seconds since 1970 from which on it is not used any more; None where that is not known."""
    refresh_token: str | None = None
    metadata_url: str | None = None
    """Where the server's metadata was found."""
    client: Registration | None = None
    """Who it was given to, and can renew it: another registration at the same issuer cannot. Without the
    secret of a client that was made known beforehand."""

    def __repr__(self) -> str:
        more = ", can be refreshed" if self.refresh_token else ""
        place, mark, _ = self.resource.partition("?")  # behind it may be secrets
        return f"<Tokens for {place}{mark and '?…'} of {self.issuer}, scopes {' '.join(self.scopes)!r}{more}>"

    def stale(self, unix: float) -> bool:
        """Whether it is not to be used at the time `unix`."""
        return self.expires_at is not None and unix >= self.expires_at


class TokenStore(Protocol):
    """Where tokens and registrations are kept between connections. What it keeps is secret.

    Asked and told by the flow, at once: it must not take long. One that has nothing returns None; one that
    cannot say, or cannot keep what it is given, raises what it likes, which is told by `TokensNotKept`.
    """

    def tokens(self, server: str) -> Tokens | None:
        """What is kept for the server at this address."""
        ...

    def keep_tokens(self, server: str, tokens: Tokens | None) -> None:
        """Keep these tokens for the server in the place of earlier ones; None: forget them."""
        ...

    def registration(self, issuer: str) -> Registration | None:
        """By what the authorization server `issuer` knows this client."""
        ...

    def keep_registration(self, issuer: str, registration: Registration | None) -> None:
        """Keep this registration; None: forget it."""
        ...


class MemoryTokenStore:
    """Keeps tokens as long as it lives. Each server and each authorization server takes one place.

    May be shared by the clients of one user.
    """

    def __init__(self) -> None:
        self._tokens: dict[str, Tokens] = {}
        self._registrations: dict[str, Registration] = {}

    def __repr__(self) -> str:
        return f"<MemoryTokenStore, {len(self._tokens)} servers>"

    def tokens(self, server: str) -> Tokens | None:
        """What is kept for the server at this address."""
        return self._tokens.get(server)

    def keep_tokens(self, server: str, tokens: Tokens | None) -> None:
        """Keep these tokens, or forget them."""
        if tokens is None:
            self._tokens.pop(server, None)
        else:
            self._tokens[server] = tokens

    def registration(self, issuer: str) -> Registration | None:
        """By what the authorization server `issuer` knows this client."""
        return self._registrations.get(issuer)

    def keep_registration(self, issuer: str, registration: Registration | None) -> None:
        """Keep this registration, or forget it."""
        if registration is None:
            self._registrations.pop(issuer, None)
        else:
            self._registrations[issuer] = registration


@attrs.frozen(kw_only=True, repr=False)
class TokenAnswer:
    """What a token endpoint answered, as far as it means anything."""

    access_token: str
    token_type: str
    expires_in: float | None
    refresh_token: str | None
    scopes: Scopes | None
    """None where it does not say: then it is what was asked for."""
    raw: Mapping[str, Any]


def is_sendable(token: object) -> bool:
    """Whether it can be an access token: it goes into a header as it is."""
    return isinstance(token, str) and len(token) <= MAX_TOKEN and _TOKEN.fullmatch(token) is not None


def read_answer(value: object, types: tuple[str, ...] = ("bearer",)) -> TokenAnswer | str:
    """Read a decoded answer; for one that is none, why. `types` are the kinds of tokens that can be used.

    The reason quotes nothing of it.
    """
    if not isinstance(value, dict):
        return "it is no JSON object"
    token, kind = value.get("access_token"), value.get("token_type")
    if not isinstance(token, str) or not token:
        return "it has no access_token"
    if not is_sendable(token):
        return "its access_token cannot be sent in a header"
    if not isinstance(kind, str) or kind.lower() not in types:
        return f"its token_type is none of {', '.join(types)}"
    refresh = value.get("refresh_token")
    if not isinstance(refresh, str) or not _VISIBLE.fullmatch(refresh) or len(refresh) > MAX_TOKEN:
        refresh = None
    scope = value.get("scope")
    return TokenAnswer(
        access_token=token,
        token_type=kind.lower(),
        expires_in=_seconds(value.get("expires_in")),
        refresh_token=refresh,
        scopes=tuple(dict.fromkeys(scope.split())) if isinstance(scope, str) else None,
        raw=value,
    )


def _seconds(value: object) -> float | None:
    """A time span; None for what is none, and for one that is over already."""
    if isinstance(value, str) and value.isdecimal() and len(value) < 12:
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0:
        return None
    return min(float(value), _LONGEST) if value < 1e15 else _LONGEST


def end_of(expires_in: float | None, unix: float) -> float | None:
    """Until when a token is used that was given at `unix` for `expires_in` seconds."""
    return None if expires_in is None else unix + expires_in - min(MARGIN, expires_in / 10)
