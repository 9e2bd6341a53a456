"""Signed tokens: the one place that knows joserfc, which the extra ``auth`` brings.

Keys sign with one algorithm that is settled when they are loaded; what is verified names its own, out of a
list that knows neither ``none`` nor algorithms with a shared secret.

Specification: RFC 7515 (JWS), RFC 7517 (JWK), RFC 7519 (JWT), RFC 7638 (thumbprints), RFC 7523 (assertions).
"""

from __future__ import annotations

import json
import warnings
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, cast

import attrs

from ..errors import LocalProtocolError
from .clients import TokenRequest

if TYPE_CHECKING:
    from joserfc.jwk import Key

MAX_TOKEN: Final = 32 * 1024
"""Characters of a signed token that are looked at. It comes in a head, which is bounded as well."""

MAX_KEYS: Final = 64
"""Keys of a set that are kept. Providers publish two to four. Past it: the others are left out."""

ASYMMETRIC: Final = (
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
    "PS256",
    "PS384",
    "PS512",
    "RS256",
    "RS384",
    "RS512",
)
"""Algorithms whose keys can be published."""

ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

_KEY_TYPES: Final = {"ES": "EC", "Ed": "OKP", "PS": "RSA", "RS": "RSA"}
_HINT: Final = "signed tokens need joserfc: install sansmcp[auth]"


def url_safe(data: bytes) -> str:
    """Base64 for addresses, without padding."""
    return urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def check_algorithms(names: Iterable[str]) -> tuple[str, ...]:
    """`names`, if all of them have keys that can be published. Raises LocalProtocolError for others."""
    found = (names,) if isinstance(names, str) else tuple(names)
    wrong = [name for name in found if name not in ASYMMETRIC]
    if wrong or not found:
        raise LocalProtocolError(f"{wrong or 'no algorithm'}: choose of {', '.join(ASYMMETRIC)}")
    return found


# keys that sign ----------------------------------------------------------------------------------


class SigningKey:
    """A private key and the algorithm it signs with.

    `source` is a PEM text, or a JWK as an object. `key_id` goes into what is signed as ``kid``; that of the
    JWK unless given. Raises LocalProtocolError for what is no private key for the algorithm, and when
    joserfc is not there.
    """

    def __init__(
        self, source: str | bytes | Mapping[str, Any], algorithm: str = "ES256", *, key_id: str | None = None
    ) -> None:
        (self.algorithm,) = check_algorithms(algorithm)
        self._key = _load(source, algorithm)
        if not self._key.is_private:
            raise LocalProtocolError(f"a private key is needed to sign with {algorithm}, not a public one")
        self.key_id: Final = key_id if key_id is not None else self._key.get("kid")
        self.sign({}, {})  # whether they suit each other

    def __repr__(self) -> str:
        return f"<SigningKey {self.algorithm}>"

    @classmethod
    def generate(cls, entropy: Callable[[int], bytes]) -> SigningKey:
        """A new key for ES256, out of `entropy`, which gives random bytes."""
        try:
            from cryptography.hazmat.primitives.asymmetric import ec
            from joserfc.jwk import ECKey
        except ImportError as error:
            raise LocalProtocolError(_HINT) from error
        # Eight bytes more than the order has: then no scalar is likelier than another.
        order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
        scalar = int.from_bytes(entropy(40), "big") % (order - 1) + 1
        key = ECKey.import_key(ec.derive_private_key(scalar, ec.SECP256R1()))
        return cls({**key.as_dict(private=True)}, "ES256")

    @property
    def public_jwk(self) -> dict[str, Any]:
        """The public half, a JSON object without further members."""
        found = self._key.as_dict(private=False)
        return {name: value for name, value in found.items() if name in ("kty", "crv", "x", "y", "n", "e")}

    @property
    def thumbprint(self) -> str:
        """Names the key."""
        return self._key.thumbprint()

    def sign(self, header: Mapping[str, Any], claims: Mapping[str, Any]) -> str:
        """Sign a JSON object. Raises LocalProtocolError for what is none."""
        from joserfc.errors import JoseError
        from joserfc.jws import serialize_compact

        try:
            payload = json.dumps(claims, separators=(",", ":"), allow_nan=False).encode("ascii")
            whole = {"alg": self.algorithm, **({} if self.key_id is None else {"kid": self.key_id}), **header}
            with _quiet(self.algorithm):
                return serialize_compact(
                    whole, payload, self._key, algorithms=[self.algorithm], registry=_any()
                )
        except (JoseError, TypeError, ValueError) as error:
            text = f"cannot be signed with {self.algorithm}: {type(error).__name__}"
            raise LocalProtocolError(text) from error


def _load(source: str | bytes | Mapping[str, Any], algorithm: str) -> Key:
    try:
        from joserfc.errors import JoseError
        from joserfc.jwk import import_key
    except ImportError as error:
        raise LocalProtocolError(_HINT) from error
    data: Any = dict(source) if isinstance(source, Mapping) else source
    try:
        load: Any = import_key  # overloaded by the names of types
        return cast("Key", load(data, _KEY_TYPES[algorithm[:2]]))
    except (JoseError, TypeError, ValueError, KeyError):
        # What it says about a key may show some of it.
        raise LocalProtocolError(f"there is no key for {algorithm} in what was given (PEM or JWK)") from None


# what is verified --------------------------------------------------------------------------------


@attrs.frozen(repr=False)
class Signed:
    """A signed token whose signature was not looked at yet."""

    header: Mapping[str, Any]
    claims: Mapping[str, Any]
    text: str

    @property
    def algorithm(self) -> str:
        """What it says it is signed with."""
        return str(self.header["alg"])

    @property
    def kind(self) -> str:
        """Its ``typ`` in lower case, without ``application/``; empty for none."""
        kind = self.header.get("typ")
        return kind.lower().removeprefix("application/") if isinstance(kind, str) else ""

    def is_signed_by(self, key: Key) -> bool:
        """Whether `key` signed it."""
        from joserfc.errors import JoseError
        from joserfc.jws import deserialize_compact

        algorithm = self.algorithm
        try:
            with _quiet(algorithm):
                deserialize_compact(self.text, key, algorithms=[algorithm], registry=_any())
        except (JoseError, TypeError, ValueError, KeyError):
            return False
        return True


def read_signed(text: str, algorithms: Sequence[str]) -> Signed | None:
    """Take a token apart; None for what is none, or is not signed with one of `algorithms`. Never raises."""
    parts = text.split(".") if len(text) <= MAX_TOKEN else ()
    if len(parts) != 3:
        return None
    header, claims = _object(parts[0]), _object(parts[1])
    if header is None or claims is None or header.get("alg") not in algorithms:
        return None
    if "crit" in header or "b64" in header:
        return None  # nothing that has to be understood is understood here
    return Signed(header, claims, text)


def _object(part: str) -> dict[str, Any] | None:
    try:
        value = json.loads(urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_key(jwk: object, algorithm: str) -> Key | None:
    """A public key out of a JWK; None for what is none that `algorithm` could be verified with."""
    if not isinstance(jwk, dict) or jwk.get("kty") != _KEY_TYPES[algorithm[:2]] or "d" in jwk:
        return None
    if jwk.get("use", "sig") != "sig" or jwk.get("alg", algorithm) != algorithm:
        return None
    try:
        return _load(jwk, algorithm)
    except LocalProtocolError:
        return None


def number(value: object) -> float | None:
    """A time out of a token; None for what is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if abs(value) < 1e15 else None


def _any() -> Any:
    """Lets through header members that joserfc does not know."""
    from joserfc.jws import JWSRegistry

    return JWSRegistry(algorithms=list(ASYMMETRIC), strict_check_header=False)


@contextmanager
def _quiet(algorithm: str) -> Iterator[None]:
    """EdDSA got another name; its old one is everywhere still, and joserfc warns of each use."""
    if algorithm != "EdDSA":
        yield
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


# clients -----------------------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class PrivateKeyJwt:
    """A client that shows who it is by a signed assertion: a `ClientAuthentication`."""

    key: SigningKey
    lifetime: float = 300.0
    """Seconds for which an assertion is good."""
    audience: str | None = None
    """Whom it is for; None: the authorization server's issuer."""
    method: str = "private_key_jwt"

    def apply(self, request: TokenRequest) -> TokenRequest:
        """Add the assertion, a new one for each request.

        Specification: RFC 7523, sections 2.2 and 3; OpenID Connect Core 1.0, section 9.
        """
        name, at = request.client.client_id, int(request.unix)
        claims = {
            "iss": name,
            "sub": name,
            "aud": self.audience or request.server.issuer,
            "iat": at,
            "exp": at + int(self.lifetime),
            "jti": url_safe(request.entropy(16)),
        }
        return request.with_parameters(
            client_id=name,
            client_assertion_type=ASSERTION,
            client_assertion=self.key.sign({"typ": "JWT"}, claims),
        )


__all__ = [
    "ASYMMETRIC",
    "PrivateKeyJwt",
    "Signed",
    "SigningKey",
    "check_algorithms",
    "number",
    "read_key",
    "read_signed",
    "url_safe",
]
