"""Grants that need nobody: the client's own right, an assertion, and an identity provider."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest

from sansmcp import LocalProtocolError, RequestFailed, ResultReady
from sansmcp.auth.clients import SecretPost
from sansmcp.auth.jose import PrivateKeyJwt, SigningKey, read_signed
from sansmcp.auth.machine_grants import ClientCredentials, EnterpriseManaged, JwtBearer
from sansmcp.auth.registration import Registration
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem
from sansmcp.events import AuthorizationRefused, AuthorizationUrlReady, RedirectNeeded

from .auth_support import AS, MCP, Asked, Reply, World, as_json
from .protected_support import counting

IDP = "https://idp.example/token"
JAG = "urn:ietf:params:oauth:token-type:id-jag"
CLIENT = Registration(client_id="m:e", client_secret="s3cret/of me", issuer=AS)
PUBLIC = Registration(client_id="me", issuer=AS)


def machine(grant: Any, **options: Any) -> World:
    world = World(**{"grant": grant, "client": CLIENT, **options})
    world.answer = {"token_type": "Bearer", "expires_in": 3600}
    world.server["token_endpoint_auth_methods_supported"] = ["client_secret_basic", "none"]
    return world


def at_idp(world: World, **answer: Any) -> None:
    given = {"access_token": "id-j4g", "issued_token_type": JAG, "token_type": "N_A", **answer}
    world.at[IDP] = as_json({name: value for name, value in given.items() if value is not None})


def managed(**options: Any) -> EnterpriseManaged:
    given = {"token_endpoint": IDP, "client": Registration(client_id="at-idp"), "id_token": "1d-token"}
    return EnterpriseManaged(**{**given, **options})


def failure(world: World) -> AuthorizationFailed:
    """How the first attempt ends: nothing else is tried."""
    return world.start().one(AuthorizationRefused).error


def served(world: World) -> Asked:
    """The first call is served; returns the token request, the only one."""
    assert isinstance(world.start().call(), ResultReady)
    assert not world.of(RedirectNeeded)
    assert not world.of(AuthorizationUrlReady)
    (asked,) = world.to(f"{AS}/token")
    return asked


# client credentials ------------------------------------------------------------------------------


@pytest.mark.req("T6")
@pytest.mark.parametrize("scope", [None, "a b"])
def test_client_credentials_with_a_secret(scope: str | None) -> None:
    world = machine(ClientCredentials())
    world.challenge += "" if scope is None else f', scope="{scope}"'
    asked = served(world)
    # percent-encoded before they are joined: RFC 6749, section 2.3.1
    assert asked.basic == ("m:e", "s3cret/of me")
    assert asked.form == {
        "grant_type": "client_credentials",
        "resource": MCP,
        **({} if scope is None else {"scope": scope}),
    }


@pytest.mark.req("T6")
def test_client_credentials_with_a_key() -> None:
    key = SigningKey.generate(counting())
    world = machine(ClientCredentials(), client=PUBLIC, authentication=PrivateKeyJwt(key=key))
    form = served(world).form
    assert form["client_assertion_type"].endswith("client-assertion-type:jwt-bearer")
    signed = read_signed(form["client_assertion"], ["ES256"])
    assert signed is not None
    assert (signed.claims["iss"], signed.claims["sub"], signed.claims["aud"]) == ("me", "me", AS)


@pytest.mark.req("T6", "T7")
@pytest.mark.parametrize(("wanted", "scope"), [((), "a"), (("offline_access",), "a offline_access")])
@pytest.mark.parametrize(
    "grant", [ClientCredentials(), JwtBearer("assert10n")], ids=lambda g: type(g).__name__
)
def test_who_needs_no_user_asks_for_nothing_to_renew_with(grant: Any, wanted: Any, scope: str) -> None:
    world = machine(grant, scopes=wanted)
    world.server["scopes_supported"] = ["a", "offline_access"]
    world.challenge += ', scope="a"'
    assert served(world).form["scope"] == scope


@pytest.mark.req("T6")
def test_a_token_that_has_ended_is_asked_for_anew() -> None:
    world = machine(ClientCredentials())
    world.answer = {"token_type": "Bearer", "expires_in": 60}
    served(world)
    world.valid.clear()
    world.advance(3600)
    assert isinstance(world.call(), ResultReady)
    assert len(world.to(f"{AS}/token")) == 2


@pytest.mark.req("T6", "T5")
def test_more_rights_are_asked_for_on_the_client_s_own_behalf() -> None:
    world = machine(ClientCredentials())
    served(world)
    refused = iter([True])
    more = 'Bearer error="insufficient_scope", scope="write"'
    world.guard = lambda asked: (403, [("www-authenticate", more)], b"") if next(refused, False) else None
    assert isinstance(world.call(), ResultReady)
    assert world.to(f"{AS}/token")[-1].form["scope"] == "write"


@pytest.mark.req("T6")
@pytest.mark.parametrize(
    "grant", [ClientCredentials(), JwtBearer("assert10n"), managed()], ids=lambda g: type(g).__name__
)
def test_a_client_that_nobody_knows(grant: Any) -> None:
    world = machine(grant, client=None)
    at_idp(world)
    error = failure(world)
    assert error.problem is AuthorizationProblem.NO_CLIENT
    assert "OAuth.client" in str(error)
    assert not world.to(f"{AS}/token")


@pytest.mark.req("T6")
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (as_json({"error": "invalid_client"}, 401), AuthorizationProblem.TOKEN_REFUSED),
        (
            as_json({"error": "invalid_grant", "error_description": "s3cret/of me"}, 400),
            AuthorizationProblem.TOKEN_REFUSED,
        ),
        (as_json(["x"]), AuthorizationProblem.INVALID_ANSWER),
        ((200, [], b"<html>"), AuthorizationProblem.INVALID_ANSWER),
        ((500, [], b""), AuthorizationProblem.UNREACHABLE),
        ((0, [], b""), AuthorizationProblem.UNREACHABLE),
    ],
)
def test_a_refusal_is_told_and_not_tried_again(reply: Reply, problem: AuthorizationProblem) -> None:
    world = machine(ClientCredentials())
    world.at[f"{AS}/token"] = reply
    error = failure(world)
    assert error.problem is problem
    assert "s3cret" not in str(error) + repr(error) + repr(world.said)
    assert len(world.to(f"{AS}/token")) == 1


# assertions --------------------------------------------------------------------------------------


@pytest.mark.req("T7")
@pytest.mark.parametrize("fresh", [False, True])
def test_an_assertion_is_redeemed(fresh: bool) -> None:
    numbers = count(1)
    world = machine(
        JwtBearer((lambda: f"assert10n-{next(numbers)}") if fresh else "assert10n"), client=PUBLIC
    )
    world.challenge += ', scope="a"'
    assert served(world).form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:jwt-bearer",
        "assertion": "assert10n-1" if fresh else "assert10n",
        "client_id": "me",
        "resource": MCP,
        "scope": "a",
    }
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    assert world.to(f"{AS}/token")[-1].form.get("assertion") == ("assert10n-2" if fresh else "assert10n")


@pytest.mark.req("T7")
def test_an_assertion_that_is_not_taken_is_not_tried_again() -> None:
    world = machine(JwtBearer("assert10n"), client=PUBLIC)
    world.at[f"{AS}/token"] = as_json({"error": "invalid_grant", "error_description": "assert10n"}, 400)
    error = failure(world)
    assert (error.problem, error.code) == (AuthorizationProblem.TOKEN_REFUSED, "invalid_grant")
    assert "assert10n" not in str(error)
    assert len(world.to(f"{AS}/token")) == 1


# identity providers ------------------------------------------------------------------------------


@pytest.mark.req("T7")
def test_an_identity_provider_asserts_who_the_user_is() -> None:
    world = machine(managed())
    at_idp(world)
    world.challenge += ', scope="a"'
    asked = served(world)
    (exchange,) = world.to(IDP)
    assert exchange.form == {
        "grant_type": "urn:ietf:params:oauth:grant-type:token-exchange",
        "requested_token_type": JAG,
        "audience": AS,
        "resource": MCP,
        "subject_token": "1d-token",
        "subject_token_type": "urn:ietf:params:oauth:token-type:id_token",
        "scope": "a",
        "client_id": "at-idp",
    }
    assert "authorization" not in exchange.headers
    assert asked.basic == ("m:e", "s3cret/of me")
    assert asked.form["grant_type"] == "urn:ietf:params:oauth:grant-type:jwt-bearer"
    assert asked.form["assertion"] == "id-j4g"
    assert "1d-token" not in repr(asked.form)


@pytest.mark.req("T7")
@pytest.mark.parametrize("way", [None, SecretPost(), "key"])
def test_an_identity_provider_may_want_to_know_the_client(way: Any) -> None:
    if way == "key":
        way = PrivateKeyJwt(key=SigningKey.generate(counting()))
    client = Registration(client_id="at-idp", client_secret="1dp-secret", issuer="https://idp.example")
    world = machine(managed(client=client, authentication=way))
    at_idp(world)
    served(world)
    (exchange,) = world.to(IDP)
    if way is None:
        assert exchange.basic == ("at-idp", "1dp-secret")
    elif isinstance(way, SecretPost):
        assert exchange.form["client_secret"] == "1dp-secret"
    else:
        signed = read_signed(exchange.form["client_assertion"], ["ES256"])
        assert signed is not None
        assert signed.claims["aud"] == "https://idp.example"


@pytest.mark.req("T7")
@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (
            as_json({"error": "access_denied", "error_description": "not for 1d-token"}, 403),
            AuthorizationProblem.TOKEN_REFUSED,
        ),
        (as_json([]), AuthorizationProblem.INVALID_ANSWER),
        (as_json({}), AuthorizationProblem.INVALID_ANSWER),
        (as_json({"access_token": ["x"]}), AuthorizationProblem.INVALID_ANSWER),
        (as_json({"access_token": "t", "issued_token_type": "urn:x"}), AuthorizationProblem.INVALID_ANSWER),
        ((503, [], b""), AuthorizationProblem.UNREACHABLE),
        ((0, [], b""), AuthorizationProblem.UNREACHABLE),
    ],
)
def test_an_identity_provider_that_does_not(reply: Reply, problem: AuthorizationProblem) -> None:
    world = machine(managed())
    world.at[IDP] = reply
    error = failure(world)
    assert error.problem is problem
    assert "1d-token" not in str(error) + repr(world.said)
    assert len(world.to(IDP)) == 1
    assert not world.to(f"{AS}/token")


def gone() -> str:
    raise FileNotFoundError(2, "No such file or directory", "/run/s3cret")


def wrong() -> str:
    raise ValueError("assert10n")


def refused() -> str:
    raise LocalProtocolError("the key is not there")


@pytest.mark.req("T7")
@pytest.mark.parametrize("make", [JwtBearer, lambda given: managed(id_token=given)], ids=["jwt", "id-jag"])
@pytest.mark.parametrize(
    ("given", "why"),
    [
        (gone, "FileNotFoundError: No such file or directory"),
        (wrong, "ValueError"),
        (refused, "the key is not there"),
        (lambda: None, "it is no text"),
        (lambda: b"assert10n", "it is no text"),
        ("", "it is no text"),
    ],
)
def test_an_assertion_that_is_not_to_be_had_is_asked_for_again_the_next_time(
    make: Callable[[Any], Any], given: Any, why: str
) -> None:
    made = [given, lambda: "assert10n"]
    world = machine(make(lambda: made[0]() if callable(made[0]) else made[0]))
    at_idp(world)
    world.valid.add(None)
    world.start()
    world.valid.clear()
    end = world.call()
    assert isinstance(end, RequestFailed)
    error = end.error
    assert isinstance(error, AuthorizationFailed)
    assert error.problem is AuthorizationProblem.NOT_ASKED
    assert str(error).endswith(f"to show: {why}")
    chain = [error, error.__cause__, error.__context__]
    assert not any("s3cret" in repr(part) or "assert10n" in repr(part) for part in chain)
    del made[0]
    assert isinstance(world.call(), ResultReady)


@pytest.mark.req("T7")
@pytest.mark.parametrize(("url", "asked"), [("http://idp.example/token", False), ("http://[::1]:9/t", True)])
def test_an_identity_provider_is_told_nothing_that_could_be_read_on_its_way(url: str, asked: bool) -> None:
    world = machine(managed(token_endpoint=url))
    world.at[url] = as_json({"access_token": "id-j4g", "issued_token_type": JAG})
    world.start()
    assert len(world.to(url)) == asked
    if not asked:
        error = world.one(AuthorizationRefused).error
        assert error.problem is AuthorizationProblem.FORBIDDEN_ADDRESS


def test_an_identity_provider_has_an_address() -> None:
    with pytest.raises(LocalProtocolError):
        managed(token_endpoint="idp.example")


@pytest.mark.req("T6", "T7")
@pytest.mark.parametrize(
    ("grant", "name"),
    [(ClientCredentials(), "oauth-client-credentials"), (managed(), "enterprise-managed-authorization")],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_client_declares(grant: Any, name: str) -> None:
    world = machine(grant, engine={"extensions": [grant.extension]})
    at_idp(world)
    assert isinstance(world.start().call(), ResultReady)
    meta = world.to(MCP)[-1].json["params"]["_meta"]
    declared = meta["io.modelcontextprotocol/clientCapabilities"]["extensions"]
    assert declared == {f"io.modelcontextprotocol/{name}": {}}


# secrets -----------------------------------------------------------------------------------------

SECRETS = ("s3cret", "assert10n", "1d-token", "id-j4g", "t0ken")
GRANTS: list[Callable[[], Any]] = [ClientCredentials, lambda: JwtBearer("assert10n"), managed]


@pytest.mark.req("T6", "T7")
@pytest.mark.parametrize("make", GRANTS)
def test_no_secret_is_shown(make: Callable[[], Any]) -> None:
    world = machine(make())
    at_idp(world)
    served(world)
    shown = repr(world.said) + repr(world.oauth) + repr(world.client) + repr(world.client.stats())
    shown += "".join(str(getattr(event, "detail", "")) for event in world.said)
    assert not [secret for secret in SECRETS if secret in shown]
