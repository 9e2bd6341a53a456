"""Whatever a client shows: a protected server answers, lets nobody in, and keeps no more than its bounds."""

from __future__ import annotations

import json
from base64 import urlsafe_b64encode
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import RequestReceived
from sansmcp.auth.dpop import DpopCheck, ProofKey
from sansmcp.auth.jose import ASYMMETRIC, SigningKey, read_key, read_signed
from sansmcp.auth.jwt_verifier import JwtVerifier, Rejected
from sansmcp.auth.principal import Principal
from sansmcp.clock import ClockPair

from .http_support import LIST_HEADERS, MODERN_LIST
from .protected_support import ISSUER, RESOURCE, UNIX, Protected, counting, who

KEY = SigningKey.generate(counting())
PROOFS = ProofKey(KEY)
VERIFIER = JwtVerifier(ISSUER, keys={"keys": [KEY.public_jwk]})

values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
claims = st.dictionaries(
    st.sampled_from(
        [
            "iss",
            "sub",
            "aud",
            "exp",
            "nbf",
            "iat",
            "scope",
            "scp",
            "cnf",
            "client_id",
            "jti",
            "htm",
            "htu",
            "ath",
        ]
    ),
    values | st.just(ISSUER) | st.just(UNIX + 60) | st.just(RESOURCE),
)
headers = st.dictionaries(
    st.sampled_from(["alg", "typ", "kid", "jwk", "crit", "b64"]), values | st.sampled_from(ASYMMETRIC)
)


def encoded(value: Any) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


texts = st.text(max_size=40) | st.builds(
    lambda head, body, end: f"{encoded(head)}.{encoded(body)}.{end}",
    headers,
    claims,
    st.text("ab-_=", max_size=90),
)


@given(texts)
def test_what_is_not_signed_by_a_known_key_is_of_nobody(text: str) -> None:
    assert isinstance(VERIFIER.verify(text, ClockPair(0.0, UNIX)), Rejected)
    problem = DpopCheck().check(
        text, method="POST", url=RESOURCE, token="t", key=PROOFS.thumbprint, unix=UNIX
    )
    assert problem is not None
    read_signed(text, ASYMMETRIC)


@given(claims)
@settings(max_examples=50)
def test_a_signed_token_may_say_anything(given_claims: dict[str, Any]) -> None:
    text = KEY.sign({"typ": "at+jwt"}, given_claims)
    found = VERIFIER.verify(text, ClockPair(0.0, UNIX))
    assert isinstance(found, Rejected) or (isinstance(found, Principal) and found.issuer == ISSUER)


@given(values, st.sampled_from(ASYMMETRIC))
def test_any_key_is_one_or_none(value: Any, algorithm: str) -> None:
    found = read_key(value, algorithm)
    assert found is None
    read_key({"kty": "EC", "crv": "P-256", "x": value, "y": value}, algorithm)


shown = st.text(st.characters(max_codepoint=0xFF, exclude_characters="\r\n\0"), max_size=30)


@given(st.lists(st.tuples(st.sampled_from(["Bearer ", "DPoP ", "Basic ", "bearer", ""]), shown), max_size=6))
@settings(max_examples=60)
def test_nobody_is_let_in_by_chance(attempts: list[tuple[str, str]]) -> None:
    http = Protected({"the-token": who()}, proofs=DpopCheck(), max_remembered=2)
    for scheme, rest in attempts:
        reply = http.post(MODERN_LIST, **LIST_HEADERS, authorization=scheme + rest)
        assert reply.status in (400, 401)
        assert "www-authenticate" in reply.headers
    assert not http.of(RequestReceived)
    stats = http.server.stats()
    assert (stats["held_requests"], stats["token_questions"], stats["token_verdicts"]) == (0, 0, 0)
