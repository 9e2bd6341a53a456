"""What a protected server says of itself, and which scopes it asks for."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import LocalProtocolError
from sansmcp.auth.challenge import parse_challenges
from sansmcp.auth.principal import Principal, read_scopes
from sansmcp.auth.resource_server import ResourceServer

from .protected_support import ISSUER, RESOURCE, rules

# what it says of itself --------------------------------------------------------------------------


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("resource", "url", "paths"),
    [
        (
            "https://s.example/mcp",
            "https://s.example/.well-known/oauth-protected-resource/mcp",
            ["/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"],
        ),
        (
            "https://s.example",
            "https://s.example/.well-known/oauth-protected-resource",
            ["/.well-known/oauth-protected-resource"],
        ),
        (
            "https://s.example:8443/a/b?k=1",
            "https://s.example:8443/.well-known/oauth-protected-resource/a/b?k=1",
            ["/.well-known/oauth-protected-resource/a/b", "/.well-known/oauth-protected-resource"],
        ),
    ],
)
def test_where_the_metadata_is(resource: str, url: str, paths: list[str]) -> None:
    server = rules(resource=resource)
    assert server.metadata_url == url
    assert list(server.metadata_paths) == paths


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("options", "more"),
    [
        ({}, {}),
        ({"scopes": "a b"}, {"scopes_supported": ["a", "b"]}),
        ({"scopes": "a", "scopes_supported": ["a", "c"]}, {"scopes_supported": ["a", "c"]}),
        ({"document": {"resource_name": "Files"}}, {"resource_name": "Files"}),
    ],
)
def test_the_metadata(options: dict[str, Any], more: dict[str, Any]) -> None:
    assert json.loads(rules(**options).metadata_json()) == {
        "resource": RESOURCE,
        "authorization_servers": [ISSUER],
        "bearer_methods_supported": ["header"],
        **more,
    }


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "options",
    [
        {"resource": "s.example/mcp"},
        {"resource": "https://s.example/mcp#part"},
        {"resource": "ftp://s.example/mcp"},
        {"resource": "https://me:pass@s.example/mcp"},
        {"authorization_servers": ["https://me@as.example"]},
        {"authorization_servers": []},
        {"authorization_servers": ISSUER},
        {"authorization_servers": ["as.example"]},
        {"scopes": 'a"b'},
        {"scopes_supported": ["offline_access"]},
        {"scopes": "offline_access"},
        {"remember": -1},
        {"timeout": 0},
        {"max_waiting": 0},
        {"max_remembered": 0},
        {"proofs_only": True},
    ],
    ids=str,
)
def test_what_cannot_be_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        rules(**options)


def test_metadata_that_is_no_json_is_refused() -> None:
    with pytest.raises(LocalProtocolError, match="no JSON"):
        rules(document={"x": object()}).metadata_json()


@pytest.mark.req("T8")
def test_our_challenges_are_read_by_our_client() -> None:
    server = rules(scopes="a b")
    ((name, value),) = server.challenge(error="invalid_token", description='it "is\\ bad')
    (challenge,), odd = parse_challenges([value])
    assert (name, odd, challenge.scheme) == ("www-authenticate", False, "bearer")
    assert challenge.parameters == {
        "error": "invalid_token",
        "error_description": 'it "is\\ bad',
        "scope": "a b",
        "resource_metadata": server.metadata_url,
    }


# scopes ------------------------------------------------------------------------------------------

BY_NAME: dict[Any, Any] = {
    "tools/call": "call",
    ("tools/call", "delete"): "call write",
    ("resources/read", "file:///x"): ["secret"],
}


def by_function(message: Any) -> str:
    return "odd" if message.get("method") == "odd" else ""


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("rule", "message", "needed"),
    [
        (None, {"method": "tools/call"}, ["base"]),
        (BY_NAME, {"method": "tools/list"}, ["base"]),
        (BY_NAME, {"method": "tools/call", "params": {"name": "read"}}, ["base", "call"]),
        (BY_NAME, {"method": "tools/call", "params": {"name": "delete"}}, ["base", "call", "write"]),
        (BY_NAME, {"method": "tools/call", "params": {"name": 1}}, ["base", "call"]),
        (BY_NAME, {"method": "tools/call", "params": [1]}, ["base", "call"]),
        (BY_NAME, {"method": "resources/read", "params": {"uri": "file:///x"}}, ["base", "secret"]),
        (BY_NAME, {"method": ["tools/call"]}, ["base"]),
        (BY_NAME, {}, ["base"]),
        (by_function, {"method": "odd"}, ["base", "odd"]),
        (by_function, {}, ["base"]),
    ],
)
def test_which_scopes_a_message_needs(rule: Any, message: Any, needed: list[str]) -> None:
    assert list(rules(scopes="base", scopes_for=rule).scopes_of(message)) == needed


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("had", "needed", "missing"),
    [
        ("a b", "a b", []),
        ("a", "a b", ["b"]),
        ("", "", []),
        ("admin", "read write", []),
        ("write", "read write", []),
        ("read", "read write", ["write"]),
    ],
)
def test_a_broader_scope_has_narrower_ones_in_it(had: str, needed: str, missing: list[str]) -> None:
    server = rules(implied={"admin": "write", "write": "read", "loop": "loop"})
    assert server.missing(Principal(subject="u", scopes=had), needed.split()) == missing


@pytest.mark.parametrize(
    ("value", "scopes"), [("a  b a", ("a", "b")), (["x:y", "https://s/z"], ("x:y", "https://s/z")), ("", ())]
)
def test_scopes_are_read_from_texts_and_lists(value: Any, scopes: tuple[str, ...]) -> None:
    assert read_scopes(value) == scopes


# principals --------------------------------------------------------------------------------------


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("options", "principal", "problem"),
    [
        ({}, {"audience": RESOURCE}, None),
        ({}, {"audience": [RESOURCE, "https://other.example"]}, None),
        ({}, {"audience": RESOURCE + "/"}, "not made for this server"),
        ({}, {"audience": "https://s.example"}, "not made for this server"),
        ({}, {}, "not made for this server"),
        ({"audiences": ["api"]}, {"audience": "api"}, None),
        ({"check_audience": False}, {}, None),
        ({}, {"audience": RESOURCE, "expires_at": 1000.5}, None),
        ({}, {"audience": RESOURCE, "expires_at": 1000.0}, "expired"),
    ],
)
def test_a_token_is_for_this_server_and_lasts(options: Any, principal: Any, problem: str | None) -> None:
    found = rules(**options).problem(Principal(subject="u", **principal), 1000.0)
    assert found is None if problem is None else problem in (found or "")


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "members",
    [
        *({"subject": value} for value in (None, "", 5)),
        *({"expires_at": value} for value in ("tomorrow", True, float("nan"))),
    ],
    ids=str,
)
def test_a_principal_that_is_none(members: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        Principal(**{"subject": "u", **members})


def test_the_identity_of_a_principal() -> None:
    one = Principal(subject="u", issuer="i", scopes="a", expires_at=1.0)
    assert one.identity == Principal(subject="u", issuer="i").identity
    assert len({p.identity for p in (one, Principal(subject="u"), Principal(subject="i", issuer="u"))}) == 3


def test_a_resource_server_shows_no_secret() -> None:
    shown = repr(rules(document={"x": "hidden"})) + repr(Principal(subject="u", claims={"x": "hidden"}))
    assert "hidden" not in shown
    assert isinstance(rules(), ResourceServer)
