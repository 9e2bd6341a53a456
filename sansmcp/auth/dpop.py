"""Tokens that are bound to a key: a client proves with each request that it has the key (DPoP).

`ProofKey` makes proofs, on the client's side. `DpopCheck` takes them, on that of the server: give it to
`ResourceServer` as ``proofs``.

Specification: RFC 9449.
"""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from hashlib import sha256
from typing import Any, Final
from urllib.parse import urlsplit

from ..errors import LocalProtocolError
from .jose import SigningKey, check_algorithms, number, read_key, read_signed, url_safe
from .resource_server import ProofProblem
from .showing import USE_NONCE

KIND: Final = "dpop+jwt"
MIN_KEY: Final = 16

_DEFAULT: Final = ("ES256", "ES384", "Ed25519", "EdDSA", "PS256", "RS256")


def token_hash(token: str) -> str:
    """Names a token in a proof (``ath``)."""
    return url_safe(sha256(token.encode("ascii", "replace")).digest())


def bare_url(url: str) -> str:
    """An address without query and fragment, as proofs name it (``htu``)."""
    return url.partition("#")[0].partition("?")[0]


def _normal(url: str) -> tuple[str, str, int | None, str] | None:
    """What makes two addresses the same."""
    try:
        parts = urlsplit(bare_url(url))
        port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return None
    return parts.scheme, (parts.hostname or ""), port, parts.path or "/"


class ProofKey:
    """Makes the proofs of one client. Keep the key as long as tokens that are bound to it."""

    def __init__(self, key: SigningKey) -> None:
        self._key: Final = key
        self.thumbprint: Final = key.thumbprint
        """Names the key."""

    def __repr__(self) -> str:
        return f"<ProofKey {self._key.algorithm}>"

    @classmethod
    def generate(cls, entropy: Callable[[int], bytes]) -> ProofKey:
        """A new key, out of `entropy`, which gives random bytes."""
        return cls(SigningKey.generate(entropy))

    def prove(
        self,
        *,
        method: str,
        url: str,
        unix: float,
        entropy: Callable[[int], bytes],
        token: str | None = None,
        nonce: str | None = None,
    ) -> str:
        """A proof for one request, to be used once.

        `token` is what the request shows besides; None at a token endpoint. `nonce` is what the server
        handed out last.
        """
        claims: dict[str, Any] = {
            "jti": url_safe(entropy(16)),
            "htm": method,
            "htu": bare_url(url),
            "iat": int(unix),
        }
        if token is not None:
            claims["ath"] = token_hash(token)
        if nonce is not None:
            claims["nonce"] = nonce
        return self._key.sign({"typ": KIND, "jwk": self._key.public_jwk}, claims)


class DpopCheck:
    """Takes proofs, each of them once.

    A proof is good for `window` seconds from when it was made; clocks may differ by `leeway`. For that long
    `max_proofs` are remembered; past it the oldest is forgotten, and could be used again. `urls` are further
    addresses of the server in proofs.

    With `nonce_key`, at least 16 secret random bytes, a proof must have a nonce that the server handed out
    less than `nonce_life` to twice that many seconds ago: so no proof can be made for later. Servers with
    the same key take each other's.

    Raises LocalProtocolError for a key that is too short, and for algorithms that are none.
    """

    def __init__(
        self,
        *,
        algorithms: Iterable[str] = _DEFAULT,
        window: float = 60.0,
        leeway: float = 30.0,
        max_proofs: int = 65_536,
        urls: Iterable[str] = (),
        nonce_key: bytes | None = None,
        nonce_life: float = 300.0,
    ) -> None:
        if nonce_key is not None and len(nonce_key) < MIN_KEY:
            raise LocalProtocolError(f"nonce_key has {len(nonce_key)} bytes: it must have {MIN_KEY} or more")
        self._nonce_key: Final = nonce_key
        self._nonce_life: Final = nonce_life
        self._algorithms: Final = check_algorithms(algorithms)
        self._window: Final = window
        self._leeway: Final = leeway
        self._max: Final = max_proofs
        self._urls: Final = tuple(urls)
        self._seen: Final[OrderedDict[bytes, float]] = OrderedDict()
        """Proofs by a digest, and until when each is good."""

    def __repr__(self) -> str:
        return f"<DpopCheck, {len(self._seen)} proofs>"

    @property
    def algorithms(self) -> Sequence[str]:
        """The signature algorithms that are taken."""
        return self._algorithms

    def stats(self) -> dict[str, int]:
        """Sizes of all tables."""
        return {"proofs": len(self._seen)}

    def nonce(self, unix: float) -> str | None:
        """What is to be handed out at the time of day `unix`; None without a key."""
        return None if self._nonce_key is None else self._nonce(int(unix // self._nonce_life))

    def _nonce(self, period: int) -> str:
        assert self._nonce_key is not None
        return url_safe(hmac.digest(self._nonce_key, b"nonce %d" % period, "sha256")[:18])

    def check(
        self, proof: str, *, method: str, url: str, token: str, key: str, unix: float
    ) -> ProofProblem | None:
        """Say what is wrong with `proof`, or None. As `ProofCheck.check`; never raises."""
        signed = read_signed(proof, self._algorithms)
        if signed is None or signed.kind != KIND:
            return ProofProblem("there is no proof, or it is none")
        jwk, claims = signed.header.get("jwk"), signed.claims
        public = read_key(jwk, signed.algorithm)
        if public is None or public.thumbprint() != key:
            return ProofProblem("the proof is of another key than the token is bound to")
        if not signed.is_signed_by(public):
            return ProofProblem("the signature of the proof is wrong")
        named = claims.get("htu")
        places = {_normal(place) for place in (url, *self._urls)}
        if claims.get("htm") != method or not isinstance(named, str) or _normal(named) not in places:
            return ProofProblem("the proof is for another request")
        if claims.get("ath") != token_hash(token):
            return ProofProblem("the proof is for another token")
        made, name = number(claims.get("iat")), claims.get("jti")
        if made is None or not made - self._leeway <= unix < made + self._window + self._leeway:
            return ProofProblem("the proof is too old, or from the future: are the clocks right?")
        if self._nonce_key is not None and not self._is_ours(claims.get("nonce"), unix):
            return ProofProblem("the proof needs the nonce that comes with this", USE_NONCE)
        if not isinstance(name, str) or not self._once(f"{key} {name}", unix):
            return ProofProblem("the proof was used before")
        return None

    def _is_ours(self, nonce: object, unix: float) -> bool:
        period = int(unix // self._nonce_life)
        given = nonce.encode("utf-8", "replace") if isinstance(nonce, str) else b""
        return any(hmac.compare_digest(given, self._nonce(p).encode()) for p in (period, period - 1))

    def _once(self, name: str, unix: float) -> bool:
        seen, digest = self._seen, sha256(name.encode("utf-8", "surrogatepass")).digest()
        while seen and next(iter(seen.values())) <= unix:
            seen.popitem(last=False)
        if digest in seen:
            return False
        seen[digest] = unix + self._window + 2 * self._leeway
        if len(seen) > self._max:
            seen.popitem(last=False)
        return True


__all__ = ["DpopCheck", "ProofKey", "bare_url", "token_hash"]
