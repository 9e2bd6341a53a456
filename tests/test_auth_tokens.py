"""What is small in the flow: tokens, scopes, proofs, registrations, and how clients show who they are."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from sansmcp import LocalProtocolError
from sansmcp.auth.clients import TokenRequest, authentication_for
from sansmcp.auth.metadata import ServerMetadata, assumed_server
from sansmcp.auth.oauth import OAuth
from sansmcp.auth.pkce import Pkce
from sansmcp.auth.registration import (
    Registration,
    application_type,
    check_metadata_url,
    check_redirect,
    document,
    read_registration,
)
from sansmcp.auth.scopes import choose, union
from sansmcp.auth.tokens import MAX_TOKEN, MemoryTokenStore, TokenAnswer, Tokens, end_of, read_answer

GOOD = {"access_token": "t", "token_type": "bearer"}
SERVER = assumed_server("https://a.example")


# answers -----------------------------------------------------------------------------------------


@pytest.mark.case("A-07")
@pytest.mark.req("T2")
@pytest.mark.parametrize(
    ("value", "why"),
    [
        (None, "no JSON object"),
        ([GOOD], "no JSON object"),
        ("t", "no JSON object"),
        ({}, "no access_token"),
        ({**GOOD, "access_token": ""}, "no access_token"),
        ({**GOOD, "access_token": 5}, "no access_token"),
        ({**GOOD, "access_token": "a b"}, "cannot be sent"),
        ({**GOOD, "access_token": "a\r\nx-evil: 1"}, "cannot be sent"),
        ({**GOOD, "access_token": "ä"}, "cannot be sent"),
        ({**GOOD, "access_token": "x" * (MAX_TOKEN + 1)}, "cannot be sent"),
        ({"access_token": "t"}, "token_type"),
        ({**GOOD, "token_type": "mac"}, "token_type"),
        ({**GOOD, "token_type": "DPoP"}, "token_type"),
        ({**GOOD, "token_type": None}, "token_type"),
    ],
)
def test_what_is_no_token(value: Any, why: str) -> None:
    told = read_answer(value)
    assert isinstance(told, str)
    assert why in told


@pytest.mark.case("A-07")
@pytest.mark.parametrize(
    ("more", "want"),
    [
        ({}, {}),
        ({"token_type": "Bearer"}, {}),
        ({"expires_in": 60}, {"expires_in": 60.0}),
        ({"expires_in": "60"}, {"expires_in": 60.0}),
        ({"expires_in": 1e99}, {"expires_in": 10 * 365 * 86_400.0}),
        ({"expires_in": 0}, {}),
        ({"expires_in": -5}, {}),
        ({"expires_in": True}, {}),
        ({"expires_in": float("nan")}, {}),
        ({"expires_in": "soon"}, {}),
        ({"refresh_token": "r"}, {"refresh_token": "r"}),
        ({"refresh_token": 5}, {}),
        ({"refresh_token": "r r"}, {}),
        ({"scope": "b a a"}, {"scopes": ("b", "a")}),
        ({"scope": ["a"]}, {}),
    ],
)
def test_what_is_a_token(more: dict[str, Any], want: dict[str, Any]) -> None:
    found = read_answer({**GOOD, **more})
    assert isinstance(found, TokenAnswer)
    usual = {"access_token": "t", "token_type": "bearer", "expires_in": None, "refresh_token": None}
    got = attrs.asdict(found)
    del got["raw"]
    assert got == {**usual, "scopes": None, **want}


@pytest.mark.parametrize(
    ("expires_in", "used"), [(3600, 3570), (300, 270), (100, 90), (1, 0.9), (None, None)]
)
def test_a_token_is_used_until_shortly_before_its_end(expires_in: float | None, used: float | None) -> None:
    assert end_of(expires_in, 1000.0) == (None if used is None else pytest.approx(1000.0 + used))


def test_when_a_token_is_stale() -> None:
    tokens = Tokens(access_token="t", token_type="bearer", issuer="i", resource="r", expires_at=10.0)
    assert [tokens.stale(unix) for unix in (9.9, 10.0, 11.0)] == [False, True, True]
    assert not attrs.evolve(tokens, expires_at=None).stale(1e12)


@pytest.mark.req("T9")
def test_tokens_do_not_show_what_is_behind_an_address() -> None:
    tokens = Tokens(access_token="t", token_type="bearer", issuer="i", resource="https://s.example/m?key=k3y")
    assert "https://s.example/m?…" in repr(tokens)
    assert "k3y" not in repr(tokens)


def test_a_store_keeps_and_forgets() -> None:
    store = MemoryTokenStore()
    tokens = Tokens(access_token="t", token_type="bearer", issuer="i", resource="r")
    client = Registration(client_id="c", issuer="i")
    store.keep_tokens("s", tokens)
    store.keep_registration("i", client)
    assert (store.tokens("s"), store.tokens("x")) == (tokens, None)
    assert (store.registration("i"), store.registration("x")) == (client, None)
    store.keep_tokens("s", None)
    store.keep_tokens("s", None)
    store.keep_registration("i", None)
    assert (store.tokens("s"), store.registration("i")) == (None, None)


# scopes ------------------------------------------------------------------------------------------


@pytest.mark.case("A-06")
@pytest.mark.req("T5")
@pytest.mark.parametrize(
    ("given", "want"),
    [
        ({}, ""),
        ({"challenged": ("a", "b")}, "a b"),
        ({"challenged": ("a",), "listed": ("x", "y")}, "a"),
        ({"challenged": (), "listed": ("x", "y")}, ""),
        ({"listed": ("x", "y")}, "x y"),
        ({"held": ("r",), "challenged": ("w", "r")}, "r w"),
        ({"wanted": ("m",), "listed": ("x",)}, "x m"),
        ({"challenged": ('a"b', "c d", "", "ok", "é")}, "ok"),
        ({"listed": ("x",), "offered": ("offline_access",)}, "x offline_access"),
        ({"listed": ("x",), "offered": ("offline_access",), "offline": False}, "x"),
        ({"listed": ("x",), "offered": ("x",)}, "x"),
        ({"offered": ("offline_access",)}, ""),
    ],
)
def test_which_scopes_are_asked_for(given: dict[str, Any], want: str) -> None:
    usual = {"wanted": (), "held": (), "challenged": None, "listed": None, "offered": (), "offline": True}
    assert " ".join(choose(**{**usual, **given})) == want


def test_not_more_scopes_than_an_address_holds() -> None:
    assert len(union(map(str, range(1000)))) == 256


# PKCE --------------------------------------------------------------------------------------------


@pytest.mark.req("T2")
def test_the_example_of_the_specification() -> None:
    pkce = Pkce.of("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")  # RFC 7636, appendix B
    assert (pkce.challenge, pkce.method) == ("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "S256")
    assert 43 <= len(Pkce.new(lambda size: b"\xff" * size).verifier) <= 128


# registrations -----------------------------------------------------------------------------------


@pytest.mark.req("T4")
@pytest.mark.parametrize(
    ("redirect_uri", "kind"),
    [
        ("http://127.0.0.1:1/cb", "native"),
        ("http://localhost/cb", "native"),
        ("http://[::1]:5/cb", "native"),
        ("https://localhost/cb", "native"),
        ("com.example.app://cb", "native"),
        ("https://app.example/cb", "web"),
    ],
)
def test_what_kind_of_application_it_is(redirect_uri: str, kind: str) -> None:
    check_redirect(redirect_uri)
    assert application_type(redirect_uri) == kind
    assert made(redirect_uri)["application_type"] == kind


def made(redirect_uri: str = "http://127.0.0.1:1/cb", methods: Any = None, **options: Any) -> dict[str, Any]:
    server = attrs.evolve(SERVER, token_methods=methods)
    usual: dict[str, Any] = {"name": "n", "kind": None, "scopes": (), "extra": {}}
    return document(server, redirect_uri=redirect_uri, **{**usual, **options})


def test_the_document_of_a_registration() -> None:
    assert made() == {
        "client_name": "n",
        "redirect_uris": ["http://127.0.0.1:1/cb"],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    }
    assert made(scopes=("a", "b"))["scope"] == "a b"
    assert made(kind="web")["application_type"] == "web"
    assert made(extra={"client_uri": "https://x", "client_name": "m"})["client_name"] == "m"


@pytest.mark.parametrize(
    ("methods", "want"),
    [
        (("none",), "none"),
        (("client_secret_post",), "client_secret_post"),
        (("client_secret_post", "client_secret_basic"), "client_secret_basic"),
        (("private_key_jwt",), "none"),
        ((), "none"),
    ],
)
def test_the_method_that_a_registration_asks_for(methods: Any, want: str) -> None:
    assert made(methods=methods)["token_endpoint_auth_method"] == want


@pytest.mark.parametrize(
    "value",
    [None, [], {}, {"client_id": ""}, {"client_id": 5}, {"client_id": "a\nb"}, {"client_id": "x" * 5000},
     {"client_id": "c", "client_secret": 5}, {"client_id": "c", "client_secret": "é"}],
)  # fmt: skip
def test_what_is_no_registration(value: Any) -> None:
    assert read_registration(value, "i", "u") is None


def test_a_registration() -> None:
    answer = {"client_id": "c", "client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}
    assert read_registration(answer, "i", "u") == Registration(
        client_id="c", client_secret="s", issuer="i", method="client_secret_post", redirect_uri="u"
    )
    assert read_registration({"client_id": "c", "token_endpoint_auth_method": "x"}, "i", "u") == Registration(
        client_id="c", issuer="i", redirect_uri="u"
    )


@pytest.mark.parametrize("uri", ["http://app.example/cb", "https://app.example/cb#x", "cb", "", "http://é/"])
def test_where_no_browser_may_arrive(uri: str) -> None:
    with pytest.raises(LocalProtocolError):
        check_redirect(uri)
    with pytest.raises(LocalProtocolError):
        OAuth(redirect_uri=uri)


@pytest.mark.parametrize(
    "url", ["http://app.example/c.json", "https://app.example", "https://app.example/c#x", "c"]
)
def test_what_is_no_name_of_a_client(url: str) -> None:
    with pytest.raises(LocalProtocolError):
        check_metadata_url(url)
    with pytest.raises(LocalProtocolError):
        OAuth(client_metadata_url=url)


@pytest.mark.parametrize("options", [{"scopes": "a b"}, {"user_timeout": 0}, {"step_ups": -1}])
def test_other_options_that_cannot_be_used(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        OAuth(**options)


# who the client is -------------------------------------------------------------------------------


def shown(client: Registration, *methods: str) -> tuple[dict[str, str], dict[str, str]] | None:
    server: ServerMetadata = attrs.evolve(SERVER, token_methods=methods or None)
    way = authentication_for(server, client)
    if way is None:
        return None
    request = way.apply(
        TokenRequest(server=server, client=client, parameters=(), unix=0.0, entropy=lambda size: b"")
    )
    return dict(request.parameters), dict(request.headers)


PUBLIC = Registration(client_id="c")
SECRET = Registration(client_id="c:é", client_secret="s +")
BASIC = {"authorization": "Basic YyUzQSVDMyVBOTpzKyUyQg=="}
POST = {"client_id": "c:é", "client_secret": "s +"}
P, B, N = "client_secret_post", "client_secret_basic", "none"


@pytest.mark.case("A-07")
@pytest.mark.req("T2")
@pytest.mark.parametrize(
    ("client", "methods", "want"),
    [
        (PUBLIC, (), ({"client_id": "c"}, {})),
        (PUBLIC, (B,), ({"client_id": "c"}, {})),
        (SECRET, (), ({}, BASIC)),
        (SECRET, (B, P), ({}, BASIC)),
        (SECRET, (P,), (POST, {})),
        (SECRET, (N,), ({"client_id": "c:é"}, {})),
        (SECRET, ("private_key_jwt",), None),
        (attrs.evolve(SECRET, method=P), (), (POST, {})),
        (attrs.evolve(SECRET, method=P), (B, P), (POST, {})),
        (attrs.evolve(SECRET, method=P), (B,), ({}, BASIC)),
        (attrs.evolve(SECRET, method="x"), (), ({}, BASIC)),
    ],
)
def test_how_a_client_shows_who_it_is(client: Registration, methods: tuple[str, ...], want: Any) -> None:
    assert shown(client, *methods) == want
