"""Tokens that a client keeps: used again, renewed by whoever comes first, shown to nobody else."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from sansmcp import (
    RequestFailed,
    ResultReady,
)
from sansmcp.auth.registration import Registration
from sansmcp.auth.tokens import MemoryTokenStore, Tokens
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem
from sansmcp.events import (
    EraDecided,
    TokensNotKept,
)

from .auth_support import AS, AS_AT, MCP, PRM_AT, UNIX, World, as_json

Problem = AuthorizationProblem


def why(end: Any) -> AuthorizationFailed:
    assert isinstance(end, RequestFailed), end
    assert isinstance(end.error, AuthorizationFailed), end.error
    return end.error


@pytest.mark.req("T9", "T3")
def test_tokens_are_used_again() -> None:
    store = MemoryTokenStore()
    World(store=store).start()
    kept = store.tokens(MCP)
    assert kept is not None
    assert (kept.issuer, kept.resource, kept.metadata_url) == (AS, MCP, PRM_AT)
    assert kept.expires_at == UNIX + 3600 - 30
    second = World(store=store)
    second.valid.add("t0ken-1")
    second.start()
    second.one(EraDecided)
    assert [asked.token for asked in second.to(MCP)] == ["t0ken-1"]
    assert second.paths == []


@pytest.mark.req("T9")
def test_a_stored_token_that_is_old_is_renewed_before_anything_is_asked() -> None:
    store = MemoryTokenStore()
    World(store=store).start()
    second = World(store=store)
    second.now = 5000.0
    second.client = second.make()
    second.start()
    second.one(EraDecided)
    assert second.paths == [f"GET {PRM_AT}", f"GET {AS_AT}", f"POST {AS}/token"]
    assert len(second.to(MCP)) == 1


@pytest.mark.req("T9")
def test_what_another_client_has_renewed_is_not_renewed_again() -> None:
    store = MemoryTokenStore()
    first = World(store=store).start()
    kept = store.tokens(MCP)
    assert kept is not None
    store.keep_tokens(MCP, attrs.evolve(kept, access_token="t0ken-9", refresh_token="r3fresh-9"))
    first.valid = {"t0ken-9"}
    assert isinstance(first.call(), ResultReady)
    assert len(first.to(f"{AS}/token")) == 1
    assert first.to(MCP)[-1].token == "t0ken-9"


@pytest.mark.req("T3")
def test_another_authorization_server_is_shown_nothing_of_the_first_one() -> None:
    world = World().start()
    other = "https://other.example"
    world.valid.clear()
    world.resource["authorization_servers"] = [other]
    server = {name: str(value).replace(AS, other) if isinstance(value, str) else value
              for name, value in world.server.items()}  # fmt: skip
    world.at[f"{other}/.well-known/oauth-authorization-server"] = as_json(server)
    world.at[f"{other}/register"] = as_json({"client_id": "cl1ent-2"}, 201)
    world.at[f"{other}/token"] = world.give
    world.server["issuer"] = other
    assert isinstance(world.call(), ResultReady)
    assert len(world.urls) == 2
    assert world.asked_user["client_id"] == "cl1ent-2"
    to_other = [asked for asked in world.asked if asked.url.startswith(other)]
    for secret in ("r3fresh-1", "t0ken-1", '"cl1ent"', "=cl1ent&", "s3cret-of-client"):
        assert not any(secret in f"{a.headers} {a.url} {a.body!r}" for a in to_other)
    assert world.client.tokens is not None
    assert world.client.tokens.issuer == other


@pytest.mark.req("T3")
def test_a_known_client_belongs_to_the_first_authorization_server() -> None:
    world = World(client=Registration(client_id="kn0wn")).start()
    world.valid.clear()
    world.resource["authorization_servers"] = ["https://other.example"]
    error = why(world.call())
    assert error.problem is Problem.NO_CLIENT
    assert not any("other" in asked.url for asked in world.asked)


class FullStore(MemoryTokenStore):
    """Keeps nothing."""

    def keep_tokens(self, server: str, tokens: Tokens | None) -> None:
        raise OSError(28, "No space left on device")

    def keep_registration(self, issuer: str, registration: Registration | None) -> None:
        raise OSError(28, "No space left on device")


@pytest.mark.req("T9")
def test_a_store_that_is_full_is_told_and_does_not_matter() -> None:
    world = World(store=FullStore()).start()
    assert len(world.of(TokensNotKept)) == 2
    assert isinstance(world.call(), ResultReady)
