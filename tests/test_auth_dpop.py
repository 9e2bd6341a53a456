"""Tokens that are bound to a key: proofs of having it, made and taken."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc.jwk import ECKey

from sansmcp import LocalProtocolError
from sansmcp.auth.dpop import DpopCheck, ProofKey, bare_url, token_hash
from sansmcp.auth.jose import ASYMMETRIC, SigningKey, read_key, read_signed
from sansmcp.auth.showing import Showing
from sansmcp.auth.tokens import Tokens
from sansmcp.http.url import parse_url

from .http_support import LIST_HEADERS, MODERN_LIST
from .protected_support import RESOURCE, UNIX, Protected, counting, who
from .test_auth_gate import challenge_of

entropy = counting()
SIGNING = SigningKey.generate(entropy)
KEY = ProofKey(SIGNING)
OTHER = ProofKey.generate(entropy)


def proof(key: ProofKey = KEY, **options: Any) -> str:
    given = {"method": "POST", "url": RESOURCE, "unix": UNIX, "entropy": entropy, "token": "t", **options}
    return key.prove(**given)


def check(text: str, checker: DpopCheck | None = None, **options: Any) -> str | None:
    given = {"method": "POST", "url": RESOURCE, "token": "t", "key": KEY.thumbprint, "unix": UNIX, **options}
    found = (checker or DpopCheck()).check(text, **given)
    return None if found is None else found.text


# proofs ------------------------------------------------------------------------------------------


@pytest.mark.req("T7")
@pytest.mark.parametrize(("token", "nonce"), [(None, None), ("t", None), (None, "n"), ("t", "n")])
def test_what_is_in_a_proof(token: str | None, nonce: str | None) -> None:
    signed = read_signed(proof(url=f"{RESOURCE}?a=b#c", token=token, nonce=nonce), ASYMMETRIC)
    assert signed is not None
    jwk = signed.header["jwk"]
    assert (signed.header["typ"], signed.algorithm, set(jwk)) == (
        "dpop+jwt",
        "ES256",
        {"kty", "crv", "x", "y"},
    )
    public = read_key(jwk, "ES256")
    assert public is not None
    assert signed.is_signed_by(public)
    claims = dict(signed.claims)
    assert len(claims.pop("jti")) >= 16
    wanted: dict[str, Any] = {"htm": "POST", "htu": RESOURCE, "iat": int(UNIX)}
    wanted.update(
        {} if token is None else {"ath": token_hash(token)}, **({} if nonce is None else {"nonce": nonce})
    )
    assert claims == wanted


def test_the_hash_of_a_token_is_that_of_the_specification() -> None:
    token = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
    assert token_hash(token) == "fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"


@pytest.mark.parametrize(
    ("url", "bare"),
    [("https://a/b", "https://a/b"), ("https://a/b?c", "https://a/b"), ("https://a/b#?c", "https://a/b")],
)
def test_addresses_in_proofs(url: str, bare: str) -> None:
    assert bare_url(url) == bare


def signed(header: Any = None, **claims: Any) -> str:
    """A proof of the right key with something else in it; None leaves a member out."""
    good = {"jti": "j", "htm": "POST", "htu": RESOURCE, "iat": UNIX, "ath": token_hash("t"), **claims}
    head = {"typ": "dpop+jwt", "jwk": SIGNING.public_jwk, **(header or {})}
    return SIGNING.sign(*({k: v for k, v in part.items() if v is not None} for part in (head, good)))


@pytest.mark.req("T7")
@pytest.mark.parametrize(
    ("text", "options", "problem"),
    [
        (proof(), {}, None),
        (signed(), {}, None),
        (signed(htu="HTTPS://S.example:443/mcp?x=1"), {}, None),
        (signed(iat=UNIX - 89), {}, None),
        (signed(iat=UNIX + 30), {}, None),
        ("", {}, "none"),
        ("a.b.c", {}, "none"),
        (f"{proof()}, {proof()}", {}, "none"),
        (signed({"typ": "JWT"}), {}, "none"),
        (signed({"typ": None}), {}, "none"),
        (signed({"jwk": None}), {}, "another key"),
        (signed({"jwk": ECKey.generate_key("P-256").as_dict(private=True)}), {}, "another key"),
        (proof(OTHER), {}, "another key"),
        (signed()[:-8] + "AAAAAAAA", {}, "signature"),
        (proof(), {"key": OTHER.thumbprint}, "another key"),
        (proof(method="GET"), {}, "another request"),
        (proof(url=RESOURCE + "/"), {}, "another request"),
        (proof(url="https://other.example/mcp"), {}, "another request"),
        (signed(htu=None), {}, "another request"),
        (signed(htu="https://s.example:99999/mcp"), {}, "another request"),
        (proof(token="u"), {}, "another token"),
        (proof(token=None), {}, "another token"),
        (signed(iat=UNIX - 90), {}, "too old"),
        (signed(iat=UNIX + 31), {}, "too old"),
        (signed(iat=None), {}, "too old"),
        (signed(jti=None), {}, "used before"),
        (signed(jti=7), {}, "used before"),
    ],
)
def test_which_proofs_are_taken(text: str, options: Any, problem: str | None) -> None:
    found = check(text, **options)
    assert found is None if problem is None else problem in (found or "")


@pytest.mark.req("T7")
def test_a_proof_is_good_once_and_for_a_while() -> None:
    checker, text = DpopCheck(), proof()
    assert check(text, checker) is None
    assert "used before" in (check(text, checker, unix=UNIX + 89) or "")
    assert "too old" in (check(text, checker, unix=UNIX + 90) or "")
    assert check(proof(unix=UNIX + 300), checker, unix=UNIX + 300) is None
    assert checker.stats() == {"proofs": 1}


def test_the_proofs_remembered_are_bounded() -> None:
    checker = DpopCheck(max_proofs=3)
    for _ in range(9):
        assert check(proof(), checker) is None
    assert checker.stats() == {"proofs": 3}


def test_a_server_may_have_several_addresses() -> None:
    text = proof(url="http://localhost:8000/mcp")
    assert check(text, DpopCheck(urls=["http://localhost:8000/mcp"])) is None


# at the server -----------------------------------------------------------------------------------


@pytest.mark.req("T7", "T8")
@pytest.mark.parametrize(
    ("only", "bound", "scheme", "proven", "status", "error"),
    [
        (False, True, "DPoP", True, None, None),
        (True, True, "dpop", True, None, None),
        (False, True, "DPoP", False, 401, "invalid_dpop_proof"),
        (False, True, "Bearer", True, 401, "invalid_token"),
        (False, False, "DPoP", True, 401, "invalid_token"),
        (False, False, "Bearer", False, None, None),
        (True, False, "Bearer", False, 401, None),
    ],
)
def test_a_bound_token_needs_a_proof(
    only: bool, bound: bool, scheme: str, proven: bool, status: int | None, error: str | None
) -> None:
    people = {"t": who(key=KEY.thumbprint if bound else None)}
    http = Protected(people, proofs=DpopCheck(algorithms=["ES256"]), proofs_only=only)
    for _ in range(2):  # the second time the verdict is known
        headers: dict[str, Any] = {"authorization": f"{scheme} t", "dpop": proof() if proven else None}
        reply = http.post(MODERN_LIST, **LIST_HEADERS, **headers)
        assert reply.status == status
        if status is not None:
            assert error is None or f'error="{error}"' in reply.headers["www-authenticate"]
            if scheme == "DPoP":
                assert challenge_of(reply).scheme == "dpop"
            assert 'algs="ES256"' in reply.headers["www-authenticate"]
            assert not only or challenge_of(reply).scheme == "dpop"


@pytest.mark.req("T7", "T8")
def test_a_proof_is_not_taken_twice_by_a_server() -> None:
    http = Protected({"t": who(key=KEY.thumbprint)}, proofs=DpopCheck())
    text = proof()
    replies = [http.post(MODERN_LIST, **LIST_HEADERS, authorization="DPoP t", dpop=text) for _ in range(2)]
    assert [reply.status for reply in replies] == [None, 401]
    http.advance(40)
    fresh = proof(unix=UNIX + 40)
    assert http.post(MODERN_LIST, **LIST_HEADERS, authorization="DPoP t", dpop=fresh).status is None
    metadata = http.send("GET", {}, target="/.well-known/oauth-protected-resource").json
    assert metadata["dpop_bound_access_tokens_required"] is False
    assert "ES256" in metadata["dpop_signing_alg_values_supported"]


# nonces ------------------------------------------------------------------------------------------

NONCES: dict[str, Any] = {"nonce_key": b"k" * 16, "nonce_life": 100}


@pytest.mark.req("T7")
def test_a_nonce_lasts_for_a_while() -> None:
    checker, other = DpopCheck(**NONCES), DpopCheck(**{**NONCES, "nonce_key": b"o" * 16})
    nonce = checker.nonce(UNIX)
    assert nonce is not None
    assert nonce != other.nonce(UNIX)
    assert DpopCheck().nonce(UNIX) is None
    for after, good in ((0, True), (99, True), (199, True), (200, False), (-1, False)):
        unix = UNIX + after
        assert (check(proof(nonce=nonce, unix=unix), checker, unix=unix) is None) is good
    for given in (None, "", "x", other.nonce(UNIX)):
        found = checker.check(
            proof(nonce=given), method="POST", url=RESOURCE, token="t", key=KEY.thumbprint, unix=UNIX
        )
        assert found is not None
        assert found.error == "use_dpop_nonce"


def test_a_key_for_nonces_is_long_enough() -> None:
    with pytest.raises(LocalProtocolError):
        DpopCheck(nonce_key=b"short")


@pytest.mark.req("T7", "T8")
def test_a_server_hands_out_nonces_that_our_client_uses() -> None:
    http = Protected({"t": who(key=KEY.thumbprint)}, proofs=DpopCheck(**NONCES))
    showing = Showing(KEY, parse_url(RESOURCE), unix=lambda: UNIX + http.now, entropy=entropy)
    tokens = Tokens(access_token="t", token_type="dpop", issuer="i", resource=RESOURCE)

    def ask() -> int | None:
        sent = showing.nonce
        reply = http.post(MODERN_LIST, **LIST_HEADERS, **dict(showing.headers(tokens, "POST")))
        showing.take_nonce(reply.headers.items())
        if reply.status == 401:
            assert showing.is_asked_for([challenge_of(reply)], sent)
        status: int | None = reply.status
        return status

    assert [ask(), ask(), ask()] == [401, None, None]
    http.advance(150)
    assert ask() is None
    http.advance(150)
    assert [ask(), ask()] == [401, None]


def test_keys_show_nothing() -> None:
    assert repr(KEY) == "<ProofKey ES256>"
    assert repr(DpopCheck()) == "<DpopCheck, 0 proofs>"
