"""Access tokens that are signed: which are of somebody, and when keys are fetched."""

from __future__ import annotations

import json
from typing import Any

import pytest
from joserfc.jwk import ECKey, OctKey, RSAKey

from sansmcp import LocalProtocolError
from sansmcp.auth.jose import SigningKey
from sansmcp.auth.jwt_verifier import FetchKeys, JwtVerifier, KeysUnavailable, Rejected
from sansmcp.auth.principal import Principal
from sansmcp.clock import ClockPair

from .protected_support import ISSUER, RESOURCE, UNIX

ONE, TWO = ECKey.generate_key("P-256"), ECKey.generate_key("P-256")
RSA = RSAKey.generate_key(2048)
URL = f"{ISSUER}/jwks"
CLAIMS = {
    "iss": ISSUER,
    "sub": "ann",
    "aud": RESOURCE,
    "exp": UNIX + 60,
    "iat": UNIX,
    "client_id": "c",
    "scope": "a b",
}


def public(key: Any, kid: str | None, **more: Any) -> dict[str, Any]:
    return {**key.as_dict(private=False), **({} if kid is None else {"kid": kid}), **more}


def key_set(**keys: Any) -> dict[str, Any]:
    return {"keys": [public(key, kid) for kid, key in keys.items()]}


def token(
    key: Any = ONE,
    *,
    kid: str | None = "one",
    algorithm: str = "ES256",
    typ: str | None = "at+jwt",
    **claims: Any,
) -> str:
    header = {} if typ is None else {"typ": typ}
    given = {name: value for name, value in {**CLAIMS, **claims}.items() if value is not None}
    return SigningKey(key.as_dict(private=True), algorithm, key_id=kid).sign(header, given)


def at(seconds: float = 0.0) -> ClockPair:
    return ClockPair(seconds, UNIX + seconds)


def fixed(**options: Any) -> JwtVerifier:
    return JwtVerifier(ISSUER, **{"keys": key_set(one=ONE), **options})


# tokens ------------------------------------------------------------------------------------------


@pytest.mark.req("T8")
def test_a_token_says_who_it_is_of() -> None:
    found = fixed().verify(token(cnf={"jkt": "thumb"}, extra=1), at())
    assert isinstance(found, Principal)
    assert (found.subject, found.issuer, found.client_id) == ("ann", ISSUER, "c")
    assert found.scopes == {"a", "b"}
    assert found.audience == {RESOURCE}
    assert (found.expires_at, found.key, found.claims["extra"]) == (UNIX + 90, "thumb", 1)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("claims", "scopes", "audience", "client", "key"),
    [
        ({"scope": None, "scp": ["x", 1]}, {"x"}, {RESOURCE}, "c", None),
        ({"scope": None, "scp": "x y"}, {"x", "y"}, {RESOURCE}, "c", None),
        ({"scope": None}, set(), {RESOURCE}, "c", None),
        ({"scope": 5}, set(), {RESOURCE}, "c", None),
        ({"aud": ["u", 5, RESOURCE]}, {"a", "b"}, {"u", RESOURCE}, "c", None),
        ({"client_id": None, "azp": "z"}, {"a", "b"}, {RESOURCE}, "z", None),
        ({"client_id": 7}, {"a", "b"}, {RESOURCE}, None, None),
        ({"cnf": {"x5t#S256": "t"}}, {"a", "b"}, {RESOURCE}, "c", ""),
        ({"cnf": "odd"}, {"a", "b"}, {RESOURCE}, "c", ""),
    ],
)
def test_what_is_written_in_several_ways(
    claims: Any, scopes: Any, audience: Any, client: str | None, key: str | None
) -> None:
    found = fixed().verify(token(**claims), at())
    assert isinstance(found, Principal)
    assert (found.scopes, found.audience, found.client_id, found.key) == (scopes, audience, client, key)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("nonsense", "no token"),
        (token(TWO), "signature"),
        (token(TWO, kid="two"), "signature"),
        (token(RSA, algorithm="RS384"), "no token"),
        (token(RSA, algorithm="RS256"), "signature"),
        (token()[:-8] + "AAAAAAAA", "signature"),
        (token(typ="dpop+jwt"), "no access token"),
        (token(typ="logout+jwt"), "no access token"),
        (token(iss=ISSUER + "/"), "issuer"),
        (token(iss=None), "issuer"),
        (token(iss=[ISSUER]), "issuer"),
        (token(exp=None), "when it ends"),
        (token(exp="soon"), "when it ends"),
        (token(exp=True), "when it ends"),
        (token(exp=UNIX - 30), "expired"),
        (token(nbf=UNIX + 31), "not valid yet"),
        (token(iat=UNIX + 31), "not valid yet"),
        (token(iat="x"), "not valid yet"),
        (token(sub=None), "who"),
        (token(sub=""), "who"),
        (token(sub=5), "who"),
        (token(aud=None), "for whom"),
        (token(aud=5), "for whom"),
        (token(scope='a"b'), "scopes"),
    ],
)
def test_what_is_rejected(text: str, reason: str) -> None:
    found = fixed().verify(text, at())
    assert isinstance(found, Rejected)
    assert reason in found.reason


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "text",
    [
        token(typ=None),
        token(typ="JWT"),
        token(typ="application/AT+jwt"),
        token(kid=None),
        token(exp=UNIX - 29.9),
        token(nbf=UNIX + 30),
        token(iat=None),
    ],
)
def test_what_is_let_pass(text: str) -> None:
    assert isinstance(fixed().verify(text, at()), Principal)


def test_several_issuers_may_share_keys() -> None:
    verifier = JwtVerifier([ISSUER, "https://b.example"], keys=key_set(one=ONE))
    assert isinstance(verifier.verify(token(iss="https://b.example"), at()), Principal)


def test_a_token_without_a_key_id_is_tried_with_each_key() -> None:
    verifier = fixed(keys={"keys": [public(RSA, "r"), public(TWO, "t"), public(ONE, None)]})
    assert isinstance(verifier.verify(token(kid=None), at()), Principal)
    assert isinstance(verifier.verify(token(kid="x"), at()), Rejected)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "options",
    [
        {"keys": None},
        {"keys_url": URL},
        {"keys": {}},
        {"keys": {"keys": 5}},
        {"keys": {"keys": [OctKey.generate_key(256).as_dict(private=True)]}},
        {"keys": {"keys": [ONE.as_dict(private=True)]}},
        {"keys": None, "keys_url": "http://as.example/jwks"},
        {"keys": None, "keys_url": "as.example/jwks"},
        {"algorithms": ["HS256"]},
        {"algorithms": []},
        {"issuer": []},
    ],
    ids=range(11),
)
def test_what_cannot_be_is_refused(options: Any) -> None:
    given = {"issuer": ISSUER, "keys": key_set(one=ONE), **options}
    with pytest.raises(LocalProtocolError):
        JwtVerifier(given.pop("issuer"), **given)


# keys --------------------------------------------------------------------------------------------


def fetching(**options: Any) -> JwtVerifier:
    return JwtVerifier(ISSUER, keys_url=URL, **options)


def receive(verifier: JwtVerifier, keys: Any, seconds: float = 0.0) -> bool:
    return verifier.keys_received(json.dumps(keys).encode(), at(seconds))


@pytest.mark.req("T8")
def test_keys_are_fetched_when_there_are_none() -> None:
    verifier = fetching()
    assert verifier.verify(token(), at()) == FetchKeys(URL)
    assert receive(verifier, key_set(one=ONE))
    assert isinstance(verifier.verify(token(), at()), Principal)
    assert isinstance(verifier.verify(token(), at(50)), Principal)


@pytest.mark.req("T8")
def test_a_new_key_is_noticed_but_not_looked_for_all_the_time() -> None:
    verifier = fetching()
    verifier.verify(token(), at())
    receive(verifier, key_set(one=ONE))
    new = token(TWO, kid="two")
    assert isinstance(verifier.verify(new, at(59.9)), Rejected)
    assert verifier.verify(new, at(60)) == FetchKeys(URL)
    receive(verifier, key_set(one=ONE, two=TWO), 60)
    assert isinstance(verifier.verify(new, at(60)), Principal)
    for n in range(100):  # names of keys that there are not
        assert isinstance(verifier.verify(token(TWO, kid=f"x{n}"), at(119.9)), Rejected)


@pytest.mark.req("T8")
def test_a_new_key_without_a_name_is_noticed_as_well() -> None:
    verifier = fetching()
    verifier.verify(token(kid=None), at())
    receive(verifier, {"keys": [public(ONE, None)]})
    new = token(TWO, kid=None)
    assert isinstance(verifier.verify(new, at(59.9)), Rejected)
    assert verifier.verify(new, at(60)) == FetchKeys(URL)
    receive(verifier, {"keys": [public(TWO, None)]}, 60)
    assert isinstance(verifier.verify(new, at(60)), Principal)
    assert isinstance(verifier.verify(token(kid=None), at(60)), Rejected)


@pytest.mark.req("T8")
def test_a_key_that_was_taken_back_is_not_good_for_ever() -> None:
    verifier = fetching(keep=1000)
    verifier.verify(token(), at())
    receive(verifier, key_set(one=ONE))
    text = token(exp=UNIX + 9000)
    assert isinstance(verifier.verify(text, at(999)), Principal)
    assert verifier.verify(text, at(1000)) == FetchKeys(URL)
    receive(verifier, key_set(two=TWO), 1000)
    assert isinstance(verifier.verify(text, at(1000)), Rejected)


@pytest.mark.req("T8")
def test_old_keys_are_better_than_none() -> None:
    verifier = fetching(keep=1000)
    verifier.verify(token(), at())
    receive(verifier, key_set(one=ONE))
    text = token(exp=UNIX + 9000)
    assert verifier.verify(text, at(1000)) == FetchKeys(URL)
    verifier.keys_failed(at(1001))
    assert isinstance(verifier.verify(text, at(1001)), Principal)
    assert verifier.verify(text, at(1061)) == FetchKeys(URL)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"<html>",
        b"[]",
        b"{}",
        b'{"keys": []}',
        b'{"keys": {}}',
        b'{"keys": [1]}',
        b"[" * 9999,
        b" " * 300_000,
    ],
    ids=lambda data: repr(data[:16]),
)
def test_without_keys_nobody_can_tell(data: bytes) -> None:
    verifier = fetching()
    assert verifier.verify(token(), at()) == FetchKeys(URL)
    assert not verifier.keys_received(data, at())
    verifier.keys_failed(at())
    with pytest.raises(KeysUnavailable):
        verifier.verify(token(), at(1))
    assert verifier.verify(token(), at(60)) == FetchKeys(URL)


def test_the_keys_kept_are_bounded() -> None:
    verifier = fetching()
    assert receive(verifier, {"keys": [public(ONE, str(n)) for n in range(1000)]})
    for n in range(1000):
        verifier.verify(token(kid=str(n)), at())
    assert verifier.stats() == {"keys": 64, "loaded_keys": 64}


def test_it_shows_no_token() -> None:
    verifier = fetching()
    text = token()
    shown = repr(verifier) + repr(verifier.verify(text, at()))
    receive(verifier, key_set(one=ONE))
    shown += (
        repr(verifier.verify(text, at())) + repr(verifier.verify(text + "x", at())) + repr(vars(verifier))
    )
    assert text.split(".")[1] not in shown
