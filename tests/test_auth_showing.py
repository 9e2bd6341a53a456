"""How a server is shown a token: as it is, or with proofs of its key; nonces that servers hand out."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from sansmcp import RequestFailed, ResultReady
from sansmcp.auth.challenge import Challenge
from sansmcp.auth.dpop import DpopCheck, ProofKey
from sansmcp.auth.jose import ASYMMETRIC, PrivateKeyJwt, Signed, SigningKey, read_signed
from sansmcp.auth.registration import Registration
from sansmcp.auth.showing import Showing, read_nonce
from sansmcp.errors import AuthorizationProblem
from sansmcp.events import AuthorizationRefused
from sansmcp.http.url import parse_url

from .auth_support import AS, MCP, UNIX, Asked, Reply, World, as_json
from .protected_support import counting

KEY = ProofKey.generate(counting())
USE_NONCE = 'DPoP error="use_dpop_nonce", error_description="x"'


class Bound(World):
    """A world whose tokens are bound to a key: every proof is looked at."""

    def __init__(self, **options: Any) -> None:
        super().__init__(dpop=KEY, **options)
        self.answer = {"token_type": "DPoP", "expires_in": 3600, "refresh_token": "r3fresh-1"}
        self.checker = DpopCheck()
        self.nonces: dict[str, str] = {}
        """What each place wants in proofs."""

    def answer_to(self, asked: Asked) -> Reply:
        place = asked.url
        shown = "authorization" in asked.headers or place == f"{AS}/token"
        if place not in (MCP, f"{AS}/token") or not shown:
            return super().answer_to(asked)
        proof = proof_of(asked)
        nonce = self.nonces.get(place)
        if nonce is not None and proof.claims.get("nonce") != nonce:
            told = [("dpop-nonce", nonce), ("www-authenticate", USE_NONCE)]
            return (
                (401, told, b"")
                if place == MCP
                else as_json({"error": "use_dpop_nonce"}, 400, **{"DPoP-Nonce": nonce})
            )
        if place == MCP:
            scheme, _, token = asked.headers["authorization"].partition(" ")
            assert scheme == "DPoP"
            problem = self.checker.check(
                asked.headers["dpop"],
                method=asked.method,
                url=MCP,
                token=token,
                key=KEY.thumbprint,
                unix=UNIX + self.now,
            )
            assert problem is None, problem.text
            asked.headers["authorization"] = f"Bearer {token}"  # as the rest of the world reads it
        return super().answer_to(asked)


def proof_of(asked: Asked) -> Signed:
    proof = read_signed(asked.headers["dpop"], ASYMMETRIC)
    assert proof is not None
    return proof


@pytest.mark.req("T7")
def test_every_request_has_a_proof_of_its_own() -> None:
    world = Bound()
    assert isinstance(world.start().call(), ResultReady)
    (asked,) = world.to(f"{AS}/token")
    claims = proof_of(asked).claims
    assert (claims["htm"], claims["htu"], claims["iat"]) == ("POST", f"{AS}/token", int(UNIX))
    assert "ath" not in claims
    assert world.asked_user["dpop_jkt"] == KEY.thumbprint
    shown = [proof_of(a).claims["jti"] for a in world.asked if "dpop" in a.headers]
    assert len(shown) == len(set(shown)) >= 3


@pytest.mark.req("T7")
def test_a_token_is_renewed_with_a_proof() -> None:
    world = Bound()
    world.start()
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    asked = world.to(f"{AS}/token")[-1]
    assert asked.form["grant_type"] == "refresh_token"
    assert proof_of(asked).header["jwk"] == proof_of(world.to(f"{AS}/token")[0]).header["jwk"]


@pytest.mark.req("T7")
@pytest.mark.parametrize("places", [[MCP], [f"{AS}/token"], [MCP, f"{AS}/token"]])
def test_nonces_are_used_as_they_are_handed_out(places: list[str]) -> None:
    world = Bound()
    world.nonces = {place: f"nonce-of-{place[8:10]}" for place in places}
    assert isinstance(world.start().call(), ResultReady)
    for place in (MCP, f"{AS}/token"):
        sent = [proof_of(a).claims.get("nonce") for a in world.to(place) if "dpop" in a.headers]
        wanted = world.nonces.get(place)
        assert sent[0] is None
        assert set(sent[1:]) <= {wanted}
    before = len(world.to(MCP))
    assert isinstance(world.call(), ResultReady)
    assert len(world.to(MCP)) == before + 1  # it goes on with the one it has


@pytest.mark.req("T7")
def test_a_nonce_is_exchanged_on_the_way() -> None:
    world = Bound()
    world.start()
    for number in range(3):
        world.nonces[MCP] = f"n-{number}"
        assert isinstance(world.call(), ResultReady)
    assert len(world.to(f"{AS}/token")) == 1


@pytest.mark.req("T7")
def test_a_nonce_that_became_old_while_the_user_logged_in_is_exchanged() -> None:
    world = Bound()
    world.nonces[f"{AS}/token"] = "n-0"
    world.start()
    world.valid.clear()
    refused: list[str] = []

    def give(asked: Asked) -> Reply:
        if asked.form["grant_type"] != "refresh_token":
            return world.give(asked)
        refused.append(asked.form["refresh_token"])
        world.nonces[f"{AS}/token"] = "n-1"  # it lasts no longer than that
        return as_json({"error": "invalid_grant"}, 400, **{"dpop-nonce": "n-0"})

    world.at[f"{AS}/token"] = give
    assert isinstance(world.call(), ResultReady)
    assert refused == ["r3fresh-1"]
    sent = [proof_of(asked).claims.get("nonce") for asked in world.to(f"{AS}/token")]
    assert sent[-2:] == ["n-0", "n-1"]


@pytest.mark.req("T7")
@pytest.mark.parametrize("place", [MCP, f"{AS}/token"])
def test_nonces_without_end_are_not_followed(place: str) -> None:
    world = Bound()
    numbers = count()

    def refuse(asked: Asked) -> Reply:
        headers = {"dpop-nonce": f"n-{next(numbers)}"}
        if place == MCP:
            return (
                401,
                [
                    ("www-authenticate", USE_NONCE if "dpop" in asked.headers else world.challenge),
                    *headers.items(),
                ],
                b"",
            )
        return as_json({"error": "use_dpop_nonce"}, 400, **headers)

    world.answer_to = lambda asked: refuse(asked) if asked.url == place else Bound.answer_to(world, asked)  # type: ignore[method-assign]
    world.start()
    if place != MCP:
        assert world.one(AuthorizationRefused).error.retryable, "it says nothing of what was sent"
    assert len(world.to(place)) <= 8
    assert world.client.finished or not world.client.engine.stats()["calls"]


@pytest.mark.req("T7")
def test_an_assertion_is_not_sent_twice_for_a_nonce() -> None:
    key = SigningKey.generate(counting())
    client = Registration(client_id="me", issuer=AS)
    world = Bound(client=client, authentication=PrivateKeyJwt(key=key))
    world.nonces[f"{AS}/token"] = "n"
    world.start()
    first, second = (a.form["client_assertion"] for a in world.to(f"{AS}/token"))
    assert first != second


@pytest.mark.req("T7")
def test_a_token_that_is_not_bound_is_not_used() -> None:
    world = Bound()
    world.answer["token_type"] = "Bearer"
    world.start()
    assert world.one(AuthorizationRefused).error.problem is AuthorizationProblem.INVALID_ANSWER
    assert not [a for a in world.to(MCP) if "authorization" in a.headers]


def test_without_a_key_no_bound_token_is_used() -> None:
    world = World()
    world.answer["token_type"] = "DPoP"
    world.start()
    assert world.one(AuthorizationRefused).error.problem is AuthorizationProblem.INVALID_ANSWER


@pytest.mark.req("T5")
@pytest.mark.case("A-04")
@pytest.mark.parametrize(
    "before", ['DPoP algs="ES256", ', 'Bearer realm="x", ', 'DPoP error="x", scope="y", ']
)
def test_more_rights_are_wanted_in_any_of_several_challenges(before: str) -> None:
    world = World().start()
    more = f'{before}Bearer error="insufficient_scope", scope="write"'
    world.guard = lambda asked: (403, [("www-authenticate", more)], b"") if len(world.urls) == 1 else None
    assert isinstance(world.call(), ResultReady)
    assert world.asked_user["scope"] == "write"


@pytest.mark.req("T5")
@pytest.mark.case("A-06")
def test_rights_that_can_be_none_are_not_asked_for() -> None:
    world = World().start()
    world.guard = lambda asked: (
        403,
        [("www-authenticate", 'Bearer error="insufficient_scope", scope="é"')],
        b"",
    )
    assert isinstance(world.call(), RequestFailed)
    assert len(world.urls) == 1


@pytest.mark.parametrize(
    ("value", "nonce"),
    [("n0nce", "n0nce"), (None, None), ("", None), ("a b", None), ('a"b', None), ("x" * 1025, None)],
)
def test_what_can_be_a_nonce(value: str | None, nonce: str | None) -> None:
    assert read_nonce(value) == nonce


@pytest.mark.parametrize(
    ("scheme", "error", "sent", "wanted"),
    [
        ("dpop", "use_dpop_nonce", None, True),
        ("dpop", "use_dpop_nonce", "n", False),
        ("dpop", "invalid_token", None, False),
        ("bearer", "use_dpop_nonce", None, False),
    ],
)
def test_when_another_proof_is_wanted(scheme: str, error: str, sent: str | None, wanted: bool) -> None:
    showing = Showing(KEY, parse_url(MCP), unix=lambda: UNIX, entropy=counting())
    assert not showing.is_asked_for([Challenge("dpop", {"error": "use_dpop_nonce"})], None)
    showing.take_nonce([("DPoP-Nonce", " n "), ("other", "x")])
    assert showing.is_asked_for([Challenge("basic"), Challenge(scheme, {"error": error})], sent) is wanted
    showing.take_nonce([("dpop-nonce", "a b")])
    assert showing.nonce == "n"
