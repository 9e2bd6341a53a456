"""Signed tokens: keys that sign, what is verified, and how clients show who they are by them."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, OKPKey, RSAKey

from sansmcp import LocalProtocolError
from sansmcp.auth.clients import TokenRequest
from sansmcp.auth.jose import (
    ASYMMETRIC,
    PrivateKeyJwt,
    SigningKey,
    check_algorithms,
    number,
    read_key,
    read_signed,
)
from sansmcp.auth.metadata import ServerMetadata
from sansmcp.auth.registration import Registration
from sansmcp.http.url import parse_url

from .protected_support import ISSUER, UNIX, counting

EC = ECKey.generate_key("P-256")
P384 = ECKey.generate_key("P-384")
ED = OKPKey.generate_key("Ed25519")
RSA = RSAKey.generate_key(2048)
KEYS: dict[str, Any] = {"ES256": EC, "ES384": P384, "Ed25519": ED, "EdDSA": ED, "PS256": RSA, "RS256": RSA}


@pytest.mark.req("T6")
@pytest.mark.parametrize("form", ["pem", "pem bytes", "jwk"])
@pytest.mark.parametrize("algorithm", KEYS)
def test_what_a_key_signs_is_verified_by_its_public_half(algorithm: str, form: str) -> None:
    key = KEYS[algorithm]
    pem = key.as_pem(private=True)
    source = {"pem": pem.decode(), "pem bytes": pem, "jwk": key.as_dict(private=True)}[form]
    signing = SigningKey(source, algorithm, key_id="k1")
    signed = read_signed(signing.sign({"typ": "JWT"}, {"a": 1}), ASYMMETRIC)
    assert signed is not None
    assert signed.claims == {"a": 1}
    assert signed.header == {"alg": algorithm, "kid": "k1", "typ": "JWT"}
    public = read_key(signing.public_jwk, algorithm)
    assert public is not None
    assert signed.is_signed_by(public)
    assert signing.thumbprint == public.thumbprint()
    assert "d" not in signing.public_jwk
    other = read_key(SigningKey.generate(counting()).public_jwk, "ES256")
    assert other is not None
    assert not signed.is_signed_by(other)


@pytest.mark.req("T6")
@pytest.mark.parametrize(
    ("source", "algorithm"),
    [
        ("nonsense SECRET", "ES256"),
        (RSA.as_pem(private=True), "ES256"),
        (EC.as_pem(private=True), "RS256"),
        (P384.as_pem(private=True), "ES256"),
        (EC.as_pem(private=False), "ES256"),
        (EC.as_dict(private=False), "ES256"),
        ({"kty": "EC"}, "ES256"),
        ({}, "ES256"),
        (EC.as_dict(private=True), "HS256"),
        (EC.as_dict(private=True), "none"),
        (OctKey.generate_key(256).as_dict(private=True), "ES256"),
    ],
)
def test_what_is_no_key_for_an_algorithm(source: Any, algorithm: str) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        SigningKey(source, algorithm)
    assert "SECRET" not in str(caught.value)


def test_keys_show_nothing() -> None:
    key = SigningKey.generate(counting())
    assert repr(key) == "<SigningKey ES256>"
    assert "client" not in repr(PrivateKeyJwt(key=key)).replace("PrivateKeyJwt", "")
    assert SigningKey.generate(counting()).thumbprint == key.thumbprint  # of entropy alone


def test_what_is_no_json_is_not_signed() -> None:
    with pytest.raises(LocalProtocolError):
        SigningKey.generate(counting()).sign({}, {"a": object()})


def encoded(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value)
    return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()


GOOD = encoded({"alg": "ES256"})


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "..",
        "a.b.c",
        f"{GOOD}.{encoded({})}",
        f"{GOOD}.{encoded({})}.s.s",
        f"{GOOD}.{encoded([])}.s",
        f"{GOOD}.{encoded('{')}.s",
        f"{encoded({'alg': 'none'})}.{encoded({})}.",
        f"{encoded({'alg': 'HS256'})}.{encoded({})}.s",
        f"{encoded({'alg': ['ES256']})}.{encoded({})}.s",
        f"{encoded({})}.{encoded({})}.s",
        f"{encoded({'alg': 'ES256', 'crit': ['b64']})}.{encoded({})}.s",
        f"{encoded({'alg': 'ES256', 'b64': False})}.{encoded({})}.s",
        f"{GOOD}.{encoded({'a': 'x' * 40_000})}.s",
        f"{encoded('[' * 20_000)}.{encoded({})}.s",
        "\udc80.\udc80.\udc80",
        f"{GOOD}.é.s",
    ],
    ids=lambda text: ascii(text[:24]),
)
def test_what_is_no_signed_token(text: str) -> None:
    assert read_signed(text, ASYMMETRIC) is None


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "jwk",
    [
        None,
        "key",
        {},
        {"kty": "oct", "k": "AAAA"},
        EC.as_dict(private=True),
        {**EC.as_dict(private=False), "use": "enc"},
        {**EC.as_dict(private=False), "alg": "ES384"},
        {**EC.as_dict(private=False), "x": 1},
        {**EC.as_dict(private=False), "crv": "P-999"},
        {"kty": "EC", "crv": "P-256"},
        RSA.as_dict(private=False),
    ],
    ids=["none", "text", "empty", "secret", "private", "other use", "other alg", "x", "curve", "half", "rsa"],
)
def test_what_is_no_public_key(jwk: Any) -> None:
    assert read_key(jwk, "ES256") is None


@pytest.mark.parametrize("names", ["HS256", ["ES256", "none"], [], ["RSA-OAEP"]])
def test_algorithms_without_a_public_half_are_refused(names: Any) -> None:
    with pytest.raises(LocalProtocolError):
        check_algorithms(names)


@pytest.mark.parametrize(
    ("value", "found"),
    [(1, 1.0), (1.5, 1.5), (True, None), ("1", None), (None, None), (1e300, None), (10**400, None)],
)
def test_times_in_tokens(value: Any, found: float | None) -> None:
    assert number(value) == found


@pytest.mark.req("T6")
@pytest.mark.parametrize("audience", [None, "https://as.example/token"])
def test_a_client_shows_who_it_is_by_an_assertion(audience: str | None) -> None:
    token_endpoint = parse_url(f"{ISSUER}/token")
    request = TokenRequest(
        server=ServerMetadata(issuer=ISSUER, token_endpoint=token_endpoint),
        client=Registration(client_id="me"),
        parameters=(("grant_type", "client_credentials"),),
        unix=UNIX + 0.7,
        entropy=counting(),
    )
    way = PrivateKeyJwt(key=SigningKey(EC.as_dict(private=True), key_id="k"), audience=audience)
    first, second = dict(way.apply(request).parameters), dict(way.apply(request).parameters)
    assert first["client_id"] == "me"
    assert first["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
    signed, again = (read_signed(r["client_assertion"], ["ES256"]) for r in (first, second))
    assert signed is not None
    assert again is not None
    assert signed.is_signed_by(EC)
    claims = dict(signed.claims)
    assert claims.pop("jti") != again.claims["jti"]
    assert claims == {
        "iss": "me",
        "sub": "me",
        "aud": audience or ISSUER,
        "iat": int(UNIX),
        "exp": int(UNIX) + 300,
    }
