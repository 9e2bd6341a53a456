"""Verifies access tokens that are signed: a pure machine that asks for the keys it needs.

`verify` says who a token is of, or why it is of nobody; or it wants keys fetched first. Keys are fetched
when there are none, when they are old, and when a token names one that is not among them, which is how a
change of keys is noticed; each of these only so often, or anybody could have them fetched all the time.

Specification: RFC 9068 (JWT access tokens), RFC 7517 (key sets), RFC 8725 (best practices); 2026-07-28,
basic/authorization (token handling).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import urlsplit

import attrs

from ..clock import ClockPair
from ..errors import LocalProtocolError, SansmcpError
from ..http.proxy import is_loopback
from .jose import MAX_KEYS, Signed, check_algorithms, number, read_key, read_signed
from .principal import Principal

if TYPE_CHECKING:
    from joserfc.jwk import Key

MAX_KEY_SET: Final = 256 * 1024
"""Largest key set that is read, in bytes. Past it: it counts as not read."""

DEFAULT_ALGORITHMS: Final = ("ES256", "ES384", "ES512", "Ed25519", "EdDSA", "PS256", "RS256")
_KINDS: Final = frozenset({"", "jwt", "at+jwt"})
_MAX_TRIED: Final = 8
"""Keys that are tried for a token that names none."""


@attrs.frozen
class Rejected:
    """The token is not valid."""

    reason: str
    """For people, and without anything of the token."""


@attrs.frozen
class FetchKeys:
    """Fetch the key set, tell it to ``keys_received`` or ``keys_failed``, and verify again."""

    url: str


class KeysUnavailable(SansmcpError):  # noqa: N818  (a state of affairs, like the failures of calls)
    """There are no keys to verify a token with, and they cannot be fetched now."""


Outcome: TypeAlias = Principal | Rejected | FetchKeys


def _texts(value: str | Iterable[str]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else tuple(value)


class JwtVerifier:
    """Tokens of `issuer`, one or several that share their keys.

    The keys are in `keys`, a key set as an object, or at `keys_url`. `algorithms` are taken and no others.
    `leeway` is by how many seconds clocks may differ. Keys are fetched again when they are older than
    `keep` seconds, and at most every `pause` seconds. The audience is left to `ResourceServer`.

    Raises LocalProtocolError without an issuer, without keys or an address of them, for an address that
    is not ``https`` (``http`` on this computer), and for algorithms that are none or share their secret.
    """

    def __init__(
        self,
        issuer: str | Iterable[str],
        *,
        keys: Mapping[str, Any] | None = None,
        keys_url: str | None = None,
        algorithms: Iterable[str] = DEFAULT_ALGORITHMS,
        leeway: float = 30.0,
        keep: float = 3600.0,
        pause: float = 60.0,
    ) -> None:
        self._issuers: Final = frozenset(_texts(issuer))
        self._algorithms: Final = check_algorithms(algorithms)
        self._url: Final = keys_url
        self._leeway: Final = leeway
        self._keep: Final = keep
        self._pause: Final = pause
        self._keys: list[Mapping[str, Any]] = []
        self._loaded: dict[tuple[int, str], Key | None] = {}
        """What the keys are for an algorithm, as far as that was asked."""
        self._fetched_at: float | None = None
        self._tried_at: float | None = None
        if not self._issuers or (keys is None) is (keys_url is None):
            raise LocalProtocolError("a JwtVerifier needs an issuer, and either keys or keys_url")
        if keys_url is not None:
            parts = urlsplit(keys_url)
            if parts.scheme != "https" and not (parts.scheme == "http" and is_loopback(parts.hostname or "")):
                raise LocalProtocolError("keys_url must be https, or http on this computer")
        elif not self._take(dict(keys or {})):
            raise LocalProtocolError("there is no key in `keys` that a signature could be verified with")

    def __repr__(self) -> str:
        return f"<JwtVerifier of {', '.join(sorted(self._issuers))}, {len(self._keys)} keys>"

    def stats(self) -> dict[str, int]:
        """Sizes of all tables."""
        return {"keys": len(self._keys), "loaded_keys": len(self._loaded)}

    # keys ----------------------------------------------------------------------------------------

    def keys_received(self, data: bytes, clock: ClockPair) -> bool:
        """The body of the key set came. False if it is none: then the earlier keys stay."""
        try:
            value = json.loads(data) if len(data) <= MAX_KEY_SET else None
        except (ValueError, RecursionError):
            value = None
        if not isinstance(value, dict) or not self._take(value):
            return False
        self._fetched_at = clock.now
        return True

    def keys_failed(self, clock: ClockPair) -> None:
        """The key set could not be fetched. It is not asked for again before `pause` has passed."""
        self._tried_at = clock.now

    def _take(self, key_set: Mapping[str, Any]) -> bool:
        listed = key_set.get("keys")
        members = listed[:MAX_KEYS] if isinstance(listed, list) else []
        usable = [k for k in members if any(read_key(k, a) is not None for a in self._algorithms)]
        if usable:
            self._keys = usable
            self._loaded.clear()
        return bool(usable)

    def _wants_keys(self, clock: ClockPair) -> FetchKeys | None:
        """What to do for want of a key; None when that was done just now, or cannot be done."""
        url, tried = self._url, self._tried_at
        if url is None or (tried is not None and clock.now < tried + self._pause):
            return None
        self._tried_at = clock.now
        return FetchKeys(url)

    def _found(self, signed: Signed) -> list[Key]:
        """Keys that may have signed it, as far as it says."""
        name, found = signed.header.get("kid"), []
        for index, jwk in enumerate(self._keys):
            if name is not None and jwk.get("kid") != name:
                continue
            place = index, signed.algorithm
            if place not in self._loaded:
                self._loaded[place] = read_key(jwk, signed.algorithm)
            key = self._loaded[place]
            if key is not None:
                found.append(key)
        return found[:_MAX_TRIED]

    # tokens --------------------------------------------------------------------------------------

    def verify(self, token: str, clock: ClockPair) -> Outcome:
        """Find out what a token says at the moment `clock`. Never raises for what is in it.

        Raises KeysUnavailable when nobody can tell, for want of keys.
        """
        signed = read_signed(token, self._algorithms)
        if signed is None:
            return Rejected("it is no token that is signed with an algorithm that is taken here")
        if signed.kind not in _KINDS:
            return Rejected("it is signed, but no access token")
        issuer = signed.claims.get("iss")
        if not isinstance(issuer, str) or issuer not in self._issuers:
            return Rejected("its issuer is another one")
        old = self._fetched_at is not None and clock.now >= self._fetched_at + self._keep
        keys = [] if old else self._found(signed)
        if not keys:
            wanted = self._wants_keys(clock)
            if wanted is not None:
                return wanted
            if not self._keys:
                raise KeysUnavailable("there are no keys to verify tokens with; they are fetched again later")
            keys = self._found(signed)
        if not any(signed.is_signed_by(key) for key in keys):
            wanted = self._wants_keys(clock) if signed.header.get("kid") is None else None
            if wanted is not None:  # it does not name its key: perhaps that is a new one
                return wanted
            return Rejected("its signature is of no key that is known here")
        return self._read(signed.claims, issuer, clock.unix)

    def _read(self, claims: Mapping[str, Any], issuer: str, unix: float) -> Principal | Rejected:
        expires = number(claims.get("exp"))
        if expires is None:
            return Rejected("it does not say when it ends")
        if unix >= expires + self._leeway:
            return Rejected("it has expired")
        for name in ("nbf", "iat"):
            value = claims.get(name)
            if value is not None and ((begins := number(value)) is None or unix < begins - self._leeway):
                return Rejected("it is not valid yet")
        subject, audience = claims.get("sub"), claims.get("aud")
        if not isinstance(subject, str) or not subject:
            return Rejected("it does not say who it is of")
        listed = [audience] if isinstance(audience, str) else audience
        if not isinstance(listed, list):
            return Rejected("it does not say for whom it is")
        client = claims.get("client_id", claims.get("azp"))
        bound = claims.get("cnf")
        try:
            return Principal(
                subject=subject,
                scopes=_scopes(claims),
                audience=[a for a in listed if isinstance(a, str)],
                expires_at=expires + self._leeway,
                issuer=issuer,
                client_id=client if isinstance(client, str) else None,
                key=_thumbprint(bound),
                claims=claims,
            )
        except LocalProtocolError:
            return Rejected("its scopes are none")


def _scopes(claims: Mapping[str, Any]) -> list[str]:
    value = claims.get("scope", claims.get("scp"))
    if isinstance(value, str):
        return value.split()
    return [s for s in value if isinstance(s, str)] if isinstance(value, list) else []


def _thumbprint(bound: object) -> str | None:
    """The key that a token is bound to; what is bound in another way suits no key at all."""
    if bound is None:
        return None
    key = bound.get("jkt") if isinstance(bound, dict) else None
    return key if isinstance(key, str) else ""


__all__ = ["FetchKeys", "JwtVerifier", "KeysUnavailable", "Outcome", "Rejected"]
