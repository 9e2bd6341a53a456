"""Nothing of what is secret is shown: not by any object, event, error or operation of the whole way."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from sansmcp import RequestFailed
from sansmcp.auth.clients import TokenRequest
from sansmcp.auth.jose import PrivateKeyJwt, SigningKey
from sansmcp.auth.pkce import Pkce
from sansmcp.auth.registration import Registration
from sansmcp.auth.steps import AskUser, Fetched, Returned
from sansmcp.auth.tokens import TokenAnswer
from sansmcp.events import SessionEnded
from sansmcp.http.connector import HttpConnector
from sansmcp.http.exchange import AbortExchange, StartExchange, StartFetch

from .auth_support import AS, CALLBACK, MCP, Asked, Reply, World, as_json
from .protected_support import counting

SECRETS = (
    *("t0ken-", "r3fresh-", "s3cret-", "c0de-of-test", "state=AAAA", "verifier=AAAA"),
    *("AAAAAAAAAAAAAAAAAAAAAAAA", "Basic c2", "Basic a"),
)


class Watched(World):
    """Looks at everything that comes by."""

    def __init__(self, **options: Any) -> None:
        self.shown: list[str] = []
        super().__init__(**options)

    def execute(self, op: StartExchange | StartFetch | AbortExchange) -> None:
        self.look(op)
        super().execute(op)

    def react(self, event: Any) -> None:
        self.look(event, getattr(event, "error", None))
        super().react(event)

    def answer_to(self, asked: Asked) -> Reply:
        client = self.client
        attempt = client.attempt
        self.look(client, client.tokens, client.client, attempt, client.oauth, client.oauth.store)
        self.look(None if attempt is None else vars(attempt))
        self.look(vars(client))
        return super().answer_to(asked)

    def look(self, *things: object) -> None:
        for thing in things:
            self.shown += [repr(thing), str(thing)]
            if isinstance(thing, BaseException):
                self.shown += [
                    "".join(traceback.format_exception(thing)),
                    repr(thing.args),
                    repr(vars(thing)),
                ]


def check(world: Watched) -> None:
    for text in world.shown:
        for secret in SECRETS:
            assert secret not in text, text[:1000]


KNOWN = Registration(client_id="kn0wn", client_secret="s3cret-known")
ODD = Registration(client_id="kn0wn", client_secret="s3cret-/+ ü&=%")


@pytest.mark.req("T9", "T1")
@pytest.mark.parametrize("methods", [["client_secret_basic"], ["client_secret_post"], ["none"]])
@pytest.mark.parametrize("client", [None, KNOWN])
def test_the_whole_way(methods: list[str], client: Registration | None) -> None:
    world = Watched(client=client)
    world.server["token_endpoint_auth_methods_supported"] = methods
    world.start()
    world.call()
    world.valid.clear()
    world.answer["refresh_token"] = "r3fresh-2"
    world.call()
    world.guard = lambda asked: (
        403,
        [("www-authenticate", 'Bearer error="insufficient_scope", scope="w"')],
        b"",
    )
    world.call()
    world.look(HttpConnector(world.client, now=0.0))
    world.client.close(world.now)
    world.drain()
    assert len(world.urls) == 2
    check(world)


def echo(asked: Asked) -> Reply:
    """Repeats all that it was told."""
    told = f"{asked.headers} {asked.url} {asked.body!r}"
    return as_json({"error": "invalid_request", "error_description": told}, 400)


@pytest.mark.req("T9")
@pytest.mark.parametrize("place", ["token", "register"])
def test_somebody_who_repeats_what_he_was_told(place: str) -> None:
    world = Watched(client=KNOWN if place == "token" else None)
    world.server["token_endpoint_auth_methods_supported"] = ["client_secret_basic", "client_secret_post"]
    world.at[f"{AS}/{place}"] = echo
    world.start()
    assert "invalid_request" in str(world.one(SessionEnded).error)
    check(world)


def echo_parts(asked: Asked) -> Reply:
    """Repeats what shows who the client is, decoded, and each half of the header."""
    scheme, _, shown = asked.headers.get("authorization", "").partition(" ")
    told = f"{shown} {asked.basic if shown else ''} {asked.form} {scheme}"
    return as_json({"error": "invalid_request", "error_description": told}, 400)


@pytest.mark.req("T9")
@pytest.mark.parametrize("reply", [echo, echo_parts])
@pytest.mark.parametrize(
    "options",
    [
        {"client": ODD},
        {"client": attrs.evolve(ODD, method="client_secret_post")},
        {"client": KNOWN, "authentication": PrivateKeyJwt(key=SigningKey.generate(counting()))},
    ],
    ids=["basic", "post", "key"],
)
def test_somebody_who_repeats_how_the_client_showed_who_it_is(
    reply: Callable[[Asked], Reply], options: dict[str, Any]
) -> None:
    world = Watched(**options)
    world.server["token_endpoint_auth_methods_supported"] = ["client_secret_basic", "client_secret_post"]
    world.at[f"{AS}/token"] = reply
    world.start()
    error = world.one(SessionEnded).error
    assert "***" in str(error)
    form = world.to(f"{AS}/token")[0]
    shown = form.headers.get("authorization", "x x").partition(" ")[2]
    for secret in ("s3cret", shown, form.form.get("client_assertion", shown)):
        assert len(secret) < 2 or secret not in str(error)
    check(world)


@pytest.mark.req("T9")
def test_a_server_that_repeats_the_token() -> None:
    world = Watched()
    world.start()
    for status in (403, 404, 500, 200):
        world.guard = lambda asked, status=status: (  # type: ignore[misc]
            status, [("content-type", "text/plain")], f"you said {asked.headers}".encode()
        )  # fmt: skip
        end = world.call()
        assert isinstance(end, RequestFailed)
        assert "***" in str(end.error)
    world.valid.clear()
    world.answer["access_token"] = "t0ken-new"
    world.valid.add("t0ken-new")
    world.call()
    check(world)


@pytest.mark.req("T9")
def test_what_comes_back_from_the_browser() -> None:
    world = Watched()
    world.user = lambda url: f"{CALLBACK}?state=s3cret-state&code=c0de-of-test"
    world.start()
    world.user = lambda url: world.allow(url, code=None, error="access_denied", error_description="no")
    world.client.decline("enough", world.now)
    world.drain()
    check(world)


def test_the_objects_below() -> None:
    server: Any = None
    things = [
        KNOWN,
        Pkce.of("s3cret-verifier"),
        Returned({"code": ("c0de-of-test",)}),
        Fetched(body=b"r3fresh-1"),
        AskUser(url="https://x?state=s3cret-1", redirect_uri="x", state="s3cret-1", issuer="i", scopes=()),
        TokenRequest(
            server=server,
            client=KNOWN,
            parameters=(("code", "c0de-of-test"),),
            unix=0.0,
            entropy=lambda size: b"",
            headers=(("authorization", "Basic c2"),),
        ),
        TokenAnswer(
            access_token="t0ken-1",
            token_type="bearer",
            expires_in=None,
            refresh_token="r3fresh-1",
            scopes=None,
            raw={"access_token": "t0ken-1"},
        ),
    ]
    for thing in things:
        assert not any(secret in repr(thing) for secret in SECRETS), repr(thing)
    assert MCP in repr(World().start().client.tokens)
