"""The grant by which a user lets a client act, where the client is known for fewer rights than it needs."""

from __future__ import annotations

import pytest

from sansmcp import LocalProtocolError, RequestFailed, ResultReady
from sansmcp.auth.registration import Registration
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem

from .auth_support import AS, World, as_json

MORE = 'Bearer error="insufficient_scope", scope="write"'


def wanting(**options: object) -> World:
    """A world with a client that has a token, and whose next request needs more rights."""
    world = World(**options)
    world.challenge += ', scope="read"'
    world.server["scopes_supported"] = ["read", "write"]
    world.start()
    clients = iter(["cl1ent-2", "cl1ent-3"])
    world.at[f"{AS}/register"] = lambda asked: as_json({**asked.json, "client_id": next(clients)}, 201)
    world.guard = lambda asked: (
        None if "write" in world.asked_user.get("scope", "") else (403, [("www-authenticate", MORE)], b"")
    )
    return world


@pytest.mark.req("T4", "T5")
def test_a_client_that_is_known_for_less_registers_anew() -> None:
    world = wanting()
    world.user = lambda url: (
        world.allow(url, code=None, error="invalid_scope") if "client_id=cl1ent&" in url else world.allow(url)
    )
    assert isinstance(world.call(), ResultReady)
    first, second = (asked.json["scope"].split() for asked in world.to(f"{AS}/register"))
    assert first == ["read"]
    assert second == ["read", "write"]
    assert world.asked_user["client_id"] == "cl1ent-2"
    assert world.to(f"{AS}/token")[-1].form["client_id"] == "cl1ent-2"
    assert len(world.urls) == 3


@pytest.mark.req("T4", "T5")
@pytest.mark.parametrize(
    ("options", "registered"),
    [
        ({}, 2),
        ({"client": Registration(client_id="mine", issuer=AS)}, 0),
    ],
    ids=["registered", "known beforehand"],
)
def test_it_does_so_once_and_only_where_it_can(options: dict[str, object], registered: int) -> None:
    world = wanting(**options)
    world.user = lambda url: world.allow(url, code=None, error="invalid_scope")
    ended = world.call()
    assert isinstance(ended, RequestFailed)
    assert isinstance(ended.error, AuthorizationFailed)
    assert (ended.error.problem, ended.error.code) == (AuthorizationProblem.DENIED, "invalid_scope")
    assert len(world.to(f"{AS}/register")) == registered
    assert len(world.urls) <= 3


@pytest.mark.req("T3")
def test_who_else_says_so_is_not_believed() -> None:
    world = wanting()
    world.user = lambda url: world.allow(url, code=None, error="invalid_scope", iss="https://evil.example")
    ended = world.call()
    assert isinstance(ended, RequestFailed)
    assert isinstance(ended.error, AuthorizationFailed)
    assert ended.error.problem is AuthorizationProblem.WRONG_ISSUER
    assert len(world.to(f"{AS}/register")) == 1


@pytest.mark.req("T2")
def test_nobody_is_asked_after_the_end() -> None:
    world = World().start()
    world.client.close(world.now)
    world.drain()
    with pytest.raises(LocalProtocolError, match="has ended"):
        world.client.authorize(world.now)
    world.drain()
    assert len(world.urls) == 1
    assert world.client.finished
