"""One attempt to come by a token: what is asked of whom, and every way in which it comes to nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import attrs
import pytest

from sansmcp import PeerFault, RequestFailed, ResultReady
from sansmcp.auth.addresses import AddressPolicy
from sansmcp.auth.authorization import FETCH_WAIT, MAX_DOCUMENT, REDIRECT_WAIT
from sansmcp.auth.client import AuthorizedClient
from sansmcp.auth.registration import Registration
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem
from sansmcp.events import (
    AuthorizationGranted,
    AuthorizationRefused,
    AuthorizationUrlReady,
    DeviationTolerated,
    EraDecided,
    Harmless,
    MessageIgnored,
    RedirectNeeded,
    SessionEnded,
)
from sansmcp.states import AuthorizationState

from .auth_support import AS, AS_AT, CALLBACK, JSON, MCP, NOT_FOUND, PRM_AT, Asked, Reply, World, as_json

Problem = AuthorizationProblem
ROOT_PRM = "https://mcp.example/.well-known/oauth-protected-resource"
OPENID_AT = f"{AS}/.well-known/openid-configuration"
KNOWN = Registration(client_id="kn0wn", client_secret="s3cret-kn0wn")


def failed(world: World, problem: Problem | None = None) -> AuthorizationFailed:
    """Why the connection did not come about."""
    error = world.one(SessionEnded).error
    assert isinstance(error, AuthorizationFailed), error
    told = world.of(AuthorizationRefused)[-1].error
    assert (error.problem, str(error)) == (told.problem, f"server/discover: {told}")
    if problem is not None:
        assert error.problem is problem, error
    return error


# the usual way -----------------------------------------------------------------------------------


@pytest.mark.req("T2", "T3", "T4")
def test_the_usual_way() -> None:
    world = World(client_name="me and mine").start()
    assert world.paths == [
        f"GET {PRM_AT}",
        f"GET {AS_AT}",
        f"POST {AS}/register",
        f"POST {AS}/token",
    ]
    registered = world.to(f"{AS}/register")[0].json
    assert registered["client_name"] == "me and mine"
    assert registered["redirect_uris"] == [CALLBACK]
    assert registered["application_type"] == "native"
    sent = world.asked_user
    assert sent["response_type"] == "code"
    assert sent["client_id"] == "cl1ent"
    assert sent["redirect_uri"] == CALLBACK
    assert sent["resource"] == MCP
    assert sent["code_challenge_method"] == "S256"
    assert "scope" not in sent
    form = world.to(f"{AS}/token")[0].form
    assert form["resource"] == MCP
    assert form["redirect_uri"] == CALLBACK
    assert form["client_id"] == "cl1ent"
    assert "client_secret" not in form
    first, second = world.to(MCP)
    assert (first.token, second.token) == (None, "t0ken-1")
    assert first.body == second.body
    assert world.one(AuthorizationGranted).issuer == AS
    assert isinstance(world.call(), ResultReady)
    assert world.client.tokens is not None
    assert world.client.stats()["unauthorized"] == 0
    # What is for one place alone does not go to another.
    assert all("authorization" not in asked.headers for asked in world.asked if asked.url != MCP)
    assert all(
        not name.startswith("mcp-") for asked in world.asked if asked.url != MCP for name in asked.headers
    )


Edit = Callable[[World], object]


def edit(**members: Any) -> Edit:
    """Changes the document of the authorization server."""
    return lambda world: world.server.update(members)


def at(url: str, reply: Reply) -> Edit:
    return lambda world: world.at.update({url: reply})


def no_named_place(world: World) -> None:
    world.challenge = "Bearer"


def at_its_own(world: World) -> None:
    world.challenge = 'Bearer resource_metadata="https://mcp.example/own"'
    world.at["https://mcp.example/own"] = as_json(world.resource)


FOUND: list[tuple[str, list[Edit], list[str]]] = [
    ("a challenge without parameters", [no_named_place], [PRM_AT, AS_AT]),
    ("a page instead of the document",
     [no_named_place, at(PRM_AT, (200, [("content-type", "text/html")], b"<html>")), at(ROOT_PRM, as_json({
         "resource": "https://mcp.example", "authorization_servers": [AS]}))],
     [PRM_AT, ROOT_PRM, AS_AT]),
    ("a list instead of the document",
     [at(PRM_AT, as_json([1])), at(ROOT_PRM, as_json({"resource": MCP, "authorization_servers": [AS]}))],
     [PRM_AT, ROOT_PRM, AS_AT]),
    ("an error of the server",
     [at(PRM_AT, (500, [], b"")), at(ROOT_PRM, as_json({"resource": MCP, "authorization_servers": [AS]}))],
     [PRM_AT, ROOT_PRM, AS_AT]),
    ("a document about somebody else, and one about the server",
     [at(PRM_AT, as_json({"resource": "https://evil.example/mcp", "authorization_servers": [AS]})),
      at(ROOT_PRM, as_json({"resource": MCP, "authorization_servers": [AS]}))],
     [PRM_AT, ROOT_PRM, AS_AT]),
    ("only OpenID", [lambda w: w.at.update({AS_AT: NOT_FOUND, OPENID_AT: as_json(w.server)})],
     [PRM_AT, AS_AT, OPENID_AT]),
    ("the wrong issuer in one place, the right one in another",
     [lambda w: w.at.update({
         AS_AT: as_json({**w.server, "issuer": f"{AS}/"}), OPENID_AT: as_json(w.server)})],
     [PRM_AT, AS_AT, OPENID_AT]),
    ("a second authorization server, where the first is gone",
     [lambda w: w.resource.update(authorization_servers=["https://gone.example", AS])],
     [PRM_AT, "https://gone.example/.well-known/oauth-authorization-server",
      "https://gone.example/.well-known/openid-configuration", AS_AT]),
    ("a redirect within the origin",
     [lambda w: w.at.update({
         PRM_AT: (302, [("location", "/moved")], b""),
         "https://mcp.example/moved": as_json(w.resource)})],
     [PRM_AT, "https://mcp.example/moved", AS_AT]),
    ("metadata at a place of its own",
     [at_its_own],
     ["https://mcp.example/own", AS_AT]),
    ("JSON of a kind of its own",
     [lambda w: w.at.update({PRM_AT: (200, [("content-type", "Application/Problem+JSON; x=y")],
                                      json.dumps(w.resource).encode())})],
     [PRM_AT, AS_AT]),
]  # fmt: skip


@pytest.mark.case("A-01", "A-02", "A-04")
@pytest.mark.req("T2")
@pytest.mark.parametrize(("edits", "want"), [row[1:] for row in FOUND], ids=[row[0] for row in FOUND])
def test_odd_answers_on_the_way_do_not_end_it(edits: list[Edit], want: list[str]) -> None:
    world = World()
    for change in edits:
        change(world)
    world.start()
    world.one(EraDecided)
    assert [path.removeprefix("GET ") for path in world.paths if path.startswith("GET")] == want


@pytest.mark.case("A-01")
def test_a_document_that_is_passed_over_is_told() -> None:
    world = World()
    world.at[PRM_AT] = (200, [("content-type", "text/html")], b"<html>")
    world.at[ROOT_PRM] = as_json(world.resource)
    told = world.start().one(DeviationTolerated)
    assert told.fault is PeerFault.UNUSABLE_METADATA
    assert told.detail == f"{PRM_AT}: text/html instead of JSON: it is not used"


@pytest.mark.case("A-08")
def test_a_document_that_is_elsewhere_is_told() -> None:
    world = World()
    world.at[PRM_AT] = (302, [("location", "https://other.example/document")], b"")
    world.at[ROOT_PRM] = as_json(world.resource)
    told = world.start().one(DeviationTolerated)
    assert told.detail == f"{PRM_AT}: HTTP 302, to another origin, or once too often: it is not used"


@pytest.mark.case("A-01")
@pytest.mark.parametrize("members", [{"resource": None}, {"authorization_servers": []}, {"resource": [MCP]}])
def test_a_document_that_says_nothing_is_told(members: dict[str, Any]) -> None:
    world = World()
    world.at[PRM_AT] = as_json({**world.resource, **members})
    world.at[ROOT_PRM] = as_json(world.resource)
    world.at[AS_AT] = as_json({"token_endpoint": f"{AS}/token"})
    world.at[OPENID_AT] = as_json(world.server)
    details = [event.detail for event in world.start().of(DeviationTolerated)]
    assert details == [
        f"{PRM_AT}: it names no resource, or no authorization server: it is not used",
        f"{AS_AT}: it names no issuer, or no token endpoint: it is not used",
    ]
    world.one(AuthorizationGranted)


@pytest.mark.case("A-02")
def test_an_issuer_with_a_slash_is_another_one() -> None:
    world = World()
    world.resource["authorization_servers"] = [f"{AS}/"]
    failed(world.start(), Problem.WRONG_ISSUER)
    world = World()
    world.resource["authorization_servers"] = [f"{AS}/"]
    world.server["issuer"] = f"{AS}/"
    world.start().one(EraDecided)


@pytest.mark.case("A-05")
@pytest.mark.parametrize("resource", ["https://mcp.example", MCP])
def test_the_resource_that_is_asked_for_is_the_one_that_the_server_names(resource: str) -> None:
    world = World()
    world.resource["resource"] = resource
    world.start()
    assert world.asked_user["resource"] == resource
    assert world.to(f"{AS}/token")[0].form["resource"] == resource


# servers of 2025-03-26 ---------------------------------------------------------------------------

OWN = "https://mcp.example"


def old(world: World) -> World:
    world.at[PRM_AT] = world.at[ROOT_PRM] = NOT_FOUND
    for name in ("register", "token"):
        world.at[f"{OWN}/{name}"] = lambda asked: world.answer_to(
            attrs.evolve(asked, url=asked.url.replace(OWN, AS))
        )
    return world


@pytest.mark.req("T2")
def test_an_old_server_says_nothing() -> None:
    world = old(World())
    world.server["issuer"] = OWN  # in what the browser brings back
    world.start()
    assert world.one(AuthorizationGranted).issuer == OWN
    assert world.urls[0].startswith(f"{OWN}/authorize?")
    assert world.asked_user["resource"] == MCP


@pytest.mark.parametrize("issuer", [OWN, f"{OWN}/"])
def test_an_old_server_describes_itself(issuer: str) -> None:
    world = old(World())
    world.server.update(
        issuer=issuer, authorization_endpoint=f"{OWN}/oauth/go", token_endpoint=f"{OWN}/token"
    )
    world.at[f"{OWN}/.well-known/oauth-authorization-server"] = as_json(world.server)
    world.start()
    assert world.one(AuthorizationGranted).issuer == issuer
    assert world.urls[0].startswith(f"{OWN}/oauth/go?")


def test_a_server_that_is_no_old_one_after_all_is_told_of() -> None:
    world = World(old_servers=True)
    world.challenge = "Bearer"
    world.at[PRM_AT] = NOT_FOUND
    error = failed(world.start(), Problem.NO_CLIENT)
    assert f"{MCP} names none, so that it was taken for its own authorization server" in str(error)


def test_an_old_server_is_not_taken_for_one() -> None:
    error = failed(old(World(old_servers=False)).start(), Problem.NO_METADATA)
    assert "HTTP 404" in str(error)


def test_a_server_that_fails_is_not_taken_for_an_old_one() -> None:
    world = old(World())
    world.at[ROOT_PRM] = (503, [], b"")
    assert failed(world.start(), Problem.UNREACHABLE).retryable


# bad input ---------------------------------------------------------------------------------------


def loop(world: World) -> None:
    for url in (PRM_AT, ROOT_PRM):
        world.at[url] = (302, [("location", url)], b"")


def to_elsewhere(world: World) -> None:
    world.at[AS_AT] = (302, [("location", "https://evil.example/metadata")], b"")
    world.at["https://evil.example/metadata"] = as_json(world.server)


def huge(url: str) -> Edit:
    return at(url, (200, JSON, b'{"x": "' + b"x" * 10_000_000 + b'"}'))


def resource(**members: Any) -> Edit:
    return lambda world: world.resource.update(members)


def user(**changed: str | None) -> Edit:
    def change(world: World) -> None:
        world.user = lambda url: world.allow(url, **changed)

    return change


def token(reply: Reply) -> Edit:
    return at(f"{AS}/token", reply)


def register(reply: Reply) -> Edit:
    return at(f"{AS}/register", reply)


NO_ISS = edit(authorization_response_iss_parameter_supported=False)
DOCUMENTS = ["GET"]
BEFORE_USER = ["GET", "register"]
BEFORE_TOKEN = ["GET", "register", "user"]
ALL = ["GET", "register", "user", "token"]

BAD: list[tuple[str, Problem, str, list[str], list[Edit]]] = [
    ("metadata of another server", Problem.WRONG_RESOURCE, "another server", DOCUMENTS,
     [resource(resource="https://evil.example/mcp")]),
    ("metadata that loops", Problem.WRONG_ISSUER, "is not the one", DOCUMENTS, [loop, at(
        f"{OWN}/.well-known/oauth-authorization-server",
        as_json({"issuer": AS, "token_endpoint": f"{AS}/t"}))]),
    ("metadata of 10 MB", Problem.INVALID_ANSWER, f"larger than {MAX_DOCUMENT}", DOCUMENTS,
     [huge(PRM_AT), huge(ROOT_PRM)]),
    ("metadata of the authorization server of 10 MB", Problem.INVALID_ANSWER, "larger than", DOCUMENTS,
     [huge(AS_AT)]),
    ("metadata that is elsewhere", Problem.NO_METADATA, "HTTP 302", DOCUMENTS, [to_elsewhere]),
    ("metadata that is no JSON", Problem.NO_METADATA, "no JSON object", DOCUMENTS,
     [at(AS_AT, (200, JSON, b"{"))]),
    ("metadata that is too deep", Problem.NO_METADATA, "no JSON object", DOCUMENTS,
     [at(AS_AT, (200, JSON, b'{"a":' * 20_000))]),
    ("a compressed document", Problem.NO_METADATA, "compressed content", DOCUMENTS,
     [at(AS_AT, (200, [*JSON, ("content-encoding", "gzip")], b"\x1f\x8b"))]),
    ("wrong issuer", Problem.WRONG_ISSUER, "is not the one", DOCUMENTS,
     [edit(issuer="https://other.example")]),
    ("an authorization server within the network", Problem.FORBIDDEN_ADDRESS, "private network", DOCUMENTS,
     [resource(authorization_servers=["https://10.0.0.1"])]),
    ("an authorization server on this computer", Problem.FORBIDDEN_ADDRESS, "on this computer", DOCUMENTS,
     [resource(authorization_servers=["http://localhost:1234"])]),
    ("an authorization server without TLS", Problem.FORBIDDEN_ADDRESS, "not https", DOCUMENTS,
     [resource(authorization_servers=["http://as.example"])]),
    ("an authorization server that is no address", Problem.FORBIDDEN_ADDRESS, "no address", DOCUMENTS,
     [resource(authorization_servers=["javascript:alert(1)"])]),
    ("no PKCE", Problem.UNSUPPORTED, "PKCE", DOCUMENTS, [edit(code_challenge_methods_supported=None)]),
    ("only plain PKCE", Problem.UNSUPPORTED, "PKCE", DOCUMENTS,
     [edit(code_challenge_methods_supported=["plain"])]),
    ("no authorization endpoint", Problem.UNSUPPORTED, "authorization endpoint", DOCUMENTS,
     [edit(authorization_endpoint="file:///etc/passwd")]),
    ("an authorization endpoint within the network", Problem.FORBIDDEN_ADDRESS, "private network", DOCUMENTS,
     [edit(authorization_endpoint="https://192.168.0.1/authorize")]),
    ("a token endpoint without TLS", Problem.FORBIDDEN_ADDRESS, "not https", BEFORE_USER,
     [edit(token_endpoint="http://as.example/token")]),
    ("nobody registers clients", Problem.NO_CLIENT, "have it registered", DOCUMENTS,
     [edit(registration_endpoint=None)]),
    ("registration refused", Problem.NO_CLIENT, "invalid_client_metadata (no)", BEFORE_USER,
     [register(as_json({"error": "invalid_client_metadata", "error_description": "no"}, 400))]),
    ("registration refused for its addresses", Problem.NO_CLIENT, "other redirect addresses of what is",
     BEFORE_USER, [register(as_json({"error": "invalid_redirect_uri"}, 400))]),
    ("registration answered with a page", Problem.INVALID_ANSWER, "client_id", BEFORE_USER,
     [register((200, [("content-type", "text/html")], b"<html>"))]),
    ("registration redirected", Problem.NO_CLIENT, "HTTP 307", BEFORE_USER,
     [register((307, [("location", f"{AS}/token")], b""))]),
    ("registration lost", Problem.UNREACHABLE, "it was lost", BEFORE_USER, [register((0, [], b""))]),
    ("missing iss", Problem.WRONG_ISSUER, "does not say", BEFORE_TOKEN, [user(iss=None)]),
    ("wrong iss", Problem.WRONG_ISSUER, "another authorization server", BEFORE_TOKEN,
     [user(iss="https://e.example")]),
    ("iss with a slash", Problem.WRONG_ISSUER, "another", BEFORE_TOKEN, [user(iss=f"{AS}/")]),
    ("wrong iss that was not promised", Problem.WRONG_ISSUER, "another", BEFORE_TOKEN,
     [NO_ISS, user(iss="https://e.example")]),
    ("empty iss", Problem.WRONG_ISSUER, "another", BEFORE_TOKEN, [NO_ISS, user(iss="")]),
    ("an error from somebody else", Problem.WRONG_ISSUER, "another", BEFORE_TOKEN,
     [user(iss="https://e.example", code=None, error="access_denied", error_description="call 0900")]),
    ("the user says no", Problem.DENIED, "access_denied (never)", BEFORE_TOKEN,
     [user(code=None, error="access_denied", error_description="never")]),
    ("no code", Problem.INVALID_ANSWER, "without a code", BEFORE_TOKEN, [user(code=None)]),
    ("an empty code", Problem.INVALID_ANSWER, "without a code", BEFORE_TOKEN, [user(code="")]),
    ("a token response that is a list", Problem.INVALID_ANSWER, "no JSON object", ALL,
     [token(as_json([{}]))]),
    ("a token response that is a page", Problem.INVALID_ANSWER, "no JSON object", ALL,
     [token((200, [("content-type", "text/html")], b"<html>"))]),
    ("a token response of 10 MB", Problem.INVALID_ANSWER, "larger than", ALL, [huge(f"{AS}/token")]),
    ("a token of another kind", Problem.INVALID_ANSWER, "token_type", ALL,
     [token(as_json({"access_token": "t", "token_type": "mac"}))]),
    ("a token that splits the head", Problem.INVALID_ANSWER, "cannot be sent", ALL,
     [token(as_json({"access_token": "t\r\nx: y", "token_type": "bearer"}))]),
    ("a code that is refused", Problem.TOKEN_REFUSED, "invalid_grant", ALL,
     [token(as_json({"error": "invalid_grant"}, 400))]),
    ("a token endpoint that redirects", Problem.TOKEN_REFUSED, "HTTP 302", ALL,
     [token((302, [("location", "https://evil.example")], b""))]),
    ("a token endpoint that fails", Problem.UNREACHABLE, "HTTP 500", ALL, [token((500, [], b""))]),
    ("a token endpoint that is lost", Problem.UNREACHABLE, "it was lost", ALL, [token((0, [], b""))]),
    ("an error that is no text", Problem.TOKEN_REFUSED, "HTTP 400", ALL,
     [token(as_json({"error": {}}, 400))]),
    ("a server that takes clients only by key", Problem.UNSUPPORTED, "private_key_jwt", BEFORE_USER,
     [edit(token_endpoint_auth_methods_supported=["private_key_jwt"])]),
]  # fmt: skip


@pytest.mark.case("A-01", "A-02", "A-05", "A-08", "A-09")
@pytest.mark.req("T2", "T3", "T4")
@pytest.mark.parametrize(
    ("problem", "text", "done", "edits"), [row[1:] for row in BAD], ids=[row[0] for row in BAD]
)
def test_what_ends_it(problem: Problem, text: str, done: list[str], edits: list[Edit]) -> None:
    world = World()
    for change in edits:
        change(world)
    world.start()
    error = failed(world, problem)
    assert text in str(error)
    assert "0900" not in str(error)
    went = ["GET"] if any(path.startswith("GET") for path in world.paths) else []
    went += ["register"] * len(world.to(f"{AS}/register"))
    went += ["user"] * len(world.urls)
    went += ["token"] * len(world.to(f"{AS}/token"))
    assert went == done
    assert len(world.to(MCP)) == 1, "asked again without a token"
    assert len(world.asked) < 12
    assert not any("evil" in asked.url for asked in world.asked)
    assert world.client.attempt is None
    assert not world.client.stats()["unauthorized"]
    assert world.client.finished


@pytest.mark.case("A-08")
def test_a_challenge_that_points_into_the_network_is_told_and_not_followed() -> None:
    for place in ("http://127.0.0.1:9/x", "http://169.254.169.254/x", "https://other.example/x", "nonsense"):
        world = World()
        world.challenge = f'Bearer resource_metadata="{place}"'
        world.start()
        world.one(EraDecided)  # by the well-known places
        told = world.one(DeviationTolerated)
        assert told.fault is PeerFault.INVALID_CHALLENGE
        assert not world.to(place)


@pytest.mark.req("T2")
def test_no_token_is_asked_for_that_could_be_read_on_its_way() -> None:
    world = World()
    world.client = world.make("http://mcp.example/mcp")
    world.start()
    assert "not reached by https" in str(failed(world, Problem.FORBIDDEN_ADDRESS))
    assert world.paths == []
    world = World(addresses=AddressPolicy(plain=True))
    world.client = world.make("http://mcp.example/mcp")
    world.at["http://mcp.example/.well-known/oauth-protected-resource/mcp"] = as_json(
        {"resource": "http://mcp.example/mcp", "authorization_servers": [AS]}
    )
    world.challenge = "Bearer"
    world.start().one(EraDecided)


@pytest.mark.case("A-08")
def test_who_allows_it_may_be_sent_anywhere() -> None:
    world = World(addresses=AddressPolicy(private=True, foreign_metadata=True))
    world.challenge = 'Bearer resource_metadata="https://10.0.0.1/x"'
    world.at["https://10.0.0.1/x"] = as_json(world.resource)
    world.start().one(EraDecided)
    assert world.paths[0] == "GET https://10.0.0.1/x"


# what comes back from the browser ----------------------------------------------------------------


@pytest.mark.case("A-09")
@pytest.mark.req("T3")
def test_without_iss_where_it_was_not_promised() -> None:
    world = World()
    NO_ISS(world)
    user(iss=None)(world)
    world.start().one(EraDecided)


@pytest.mark.req("T2")
@pytest.mark.parametrize(
    "url",
    [
        f"{CALLBACK}?code=evil&state=another&iss={AS}",
        f"{CALLBACK}?code=evil",
        f"{CALLBACK}?error=access_denied",
        CALLBACK,
        "",
        "nonsense",
        "http://[",
        f"{CALLBACK}?" + "&".join(f"a{n}=1" for n in range(100)),
        f"{CALLBACK}?code={'x' * 20_000}",
    ],
)
def test_a_code_for_another_state_is_told_and_changes_nothing(url: str) -> None:
    world = World()
    world.user = lambda url: None
    world.start()
    attempt = world.client.attempt
    assert attempt is not None
    assert attempt.state is AuthorizationState.USER
    assert not world.client.redirect_received(url, world.now)
    world.drain()
    assert world.one(MessageIgnored).reason is PeerFault.FOREIGN_REDIRECT
    assert "evil" not in repr(world.said)
    assert not world.to(f"{AS}/token")
    right = world.allow(world.one(AuthorizationUrlReady).url)
    assert not world.client.redirect_received(f"{right}&state=another", world.now)
    assert world.client.redirect_received(right, world.now)
    world.drain()
    world.one(EraDecided)
    assert not world.client.redirect_received(right, world.now)
    world.drain()
    assert world.of(MessageIgnored)[2:] == []  # nobody is there who could tell


def test_a_browser_that_comes_too_early() -> None:
    world = World()
    world.redirect = None
    world.start()
    assert not world.client.redirect_received(CALLBACK, world.now)
    world.drain()
    assert world.one(MessageIgnored).reason is Harmless.LATE_REDIRECT


@pytest.mark.parametrize("query", ["code=a&code=b", "code=a&iss={0}&iss={0}", "error=a&error=b"])
def test_parameters_that_are_there_twice(query: str) -> None:
    world = World()
    world.user = lambda url: f"{CALLBACK}?{query.format(AS)}&state={world.asked_user['state']}"
    original = world.user

    def back(url: str) -> str | None:
        world.urls.append(url)
        extra = "" if "iss" in query else f"&iss={AS}"
        return f"{original(url)}{extra}"

    world.user = back
    world.start()
    assert failed(world).problem in (Problem.INVALID_ANSWER, Problem.WRONG_ISSUER)
    assert not world.to(f"{AS}/token")


def test_nobody_says_where_the_browser_may_arrive() -> None:
    world = World()
    world.redirect = None
    world.start().advance(REDIRECT_WAIT)
    failed(world, Problem.TIMEOUT)


@pytest.mark.req("T2")
def test_nobody_logs_in() -> None:
    world = World(user_timeout=50.0)
    world.user = lambda url: None
    world.start().advance(49.9)
    assert not world.of(SessionEnded)
    world.advance(0.2)
    error = failed(world, Problem.TIMEOUT)
    assert "within 50 s" in str(error)
    # Perhaps it is because the authorization server does not know this client any more.
    assert world.oauth.store.registration(AS) is None


@pytest.mark.parametrize("url", [PRM_AT, AS_AT, f"{AS}/register", f"{AS}/token"])
def test_somebody_does_not_answer(url: str) -> None:
    world = World()
    world.at[url] = world.at[ROOT_PRM] = (-1, [], b"")
    world.start().advance(3 * FETCH_WAIT)
    assert failed(world, Problem.UNREACHABLE).retryable
    assert world.aborted


def test_whoever_asks_the_user_gives_up() -> None:
    world = World()
    world.user = lambda url: None
    world.start()
    world.client.decline("there is no screen", world.now)
    world.drain()
    assert "there is no screen" in str(failed(world, Problem.NOT_ASKED))
    world.client.decline("again", world.now)
    world.drain()


# who this client is ------------------------------------------------------------------------------


@pytest.mark.req("T4")
def test_a_client_that_is_known_needs_no_registration() -> None:
    world = World(client=KNOWN, client_metadata_url="https://me.example/client.json")
    world.server["token_endpoint_auth_methods_supported"] = ["client_secret_basic"]
    world.server["client_id_metadata_document_supported"] = True
    world.start()
    assert world.asked_user["client_id"] == "kn0wn"
    assert world.to(f"{AS}/token")[0].basic == ("kn0wn", "s3cret-kn0wn")
    assert not world.to(f"{AS}/register")


@pytest.mark.req("T4")
@pytest.mark.parametrize("supported", [True, False])
def test_a_document_is_the_name_where_it_can_be_read(supported: bool) -> None:
    name = "https://me.example/client.json"
    world = World(client_metadata_url=name)
    world.server["client_id_metadata_document_supported"] = supported
    world.start()
    assert (world.asked_user["client_id"] == name) is supported
    assert bool(world.to(f"{AS}/register")) is not supported
    assert (world.to(f"{AS}/token")[0].form["client_id"] == name) is supported


@pytest.mark.req("T3")
def test_a_client_that_another_authorization_server_knows() -> None:
    world = World(client=attrs.evolve(KNOWN, issuer="https://other.example")).start()
    assert "known to another authorization server" in str(failed(world, Problem.NO_CLIENT))
    assert world.paths == [f"GET {PRM_AT}"]


@pytest.mark.req("T3")
def test_the_authorization_server_that_knows_the_client_is_the_one_that_is_asked() -> None:
    world = World(client=attrs.evolve(KNOWN, issuer=AS))
    world.resource["authorization_servers"] = ["https://other.example", AS]
    assert world.start().one(AuthorizationGranted).issuer == AS
    assert not any("other" in path for path in world.paths)


@pytest.mark.req("T4")
def test_a_registration_is_used_again() -> None:
    world = World().start()
    world.oauth.store.keep_tokens(MCP, None)
    world.again().start()
    assert not world.to(f"{AS}/register")
    assert world.one(RedirectNeeded).preferred == CALLBACK
    assert world.asked_user["client_id"] == "cl1ent"
    # The browser arrives elsewhere: that address is not registered.
    world.oauth.store.keep_tokens(MCP, None)
    world.redirect = "http://127.0.0.1:9999/callback"
    world.again().start()
    assert len(world.to(f"{AS}/register")) == 1


def test_an_address_that_is_given_needs_no_question() -> None:
    world = World(redirect_uri="https://app.example/cb").start()
    assert not world.of(RedirectNeeded)
    assert world.asked_user["redirect_uri"] == "https://app.example/cb"
    assert world.to(f"{AS}/register")[0].json["application_type"] == "web"


@pytest.mark.case("A-07")
def test_the_token_endpoint_answers_201() -> None:
    world = World()
    world.at[f"{AS}/token"] = lambda asked: (201, *world.give(asked)[1:])
    world.start().one(EraDecided)


def test_an_authorization_endpoint_with_a_query() -> None:
    world = World()
    world.server["authorization_endpoint"] = f"{AS}/authorize?tenant=1"
    world.start()
    assert world.asked_user["tenant"] == "1"


# scopes ------------------------------------------------------------------------------------------


@pytest.mark.req("T5")
@pytest.mark.parametrize(
    ("challenge", "listed", "offered", "options", "want"),
    [
        (None, None, None, {}, None),
        ("a b", ["x"], None, {}, "a b"),
        (None, ["x", "y"], None, {}, "x y"),
        (None, ["x"], ["x", "offline_access"], {}, "x offline_access"),
        (None, ["x"], ["x", "offline_access"], {"offline": False}, "x"),
        (None, None, ["offline_access"], {}, None),
        (None, None, None, {"scopes": ["m"]}, "m"),
    ],
)
def test_the_scopes_of_the_first_request(
    challenge: str | None, listed: Any, offered: Any, options: Any, want: str | None
) -> None:
    world = World(**options)
    if challenge is not None:
        world.challenge += f', scope="{challenge}"'
    if listed is not None:
        world.resource["scopes_supported"] = listed
    if offered is not None:
        world.server["scopes_supported"] = offered
    world.start()
    assert world.asked_user.get("scope") == want
    assert world.asked_user.get("prompt") == ("consent" if "offline_access" in (want or "") else None)
    assert world.to(f"{AS}/register")[0].json.get("scope") == want


def test_it_is_one_object_that_fails_every_call() -> None:
    world = World(engine={"mode": None})
    world.at[AS_AT] = NOT_FOUND
    call = world.engine.list_tools(now=0.0)
    world.start()
    (end,) = world.of(RequestFailed)
    assert end.call is call
    assert isinstance(world.client, AuthorizedClient)
    asked: list[Asked] = world.to(MCP)
    assert len(asked) == 1
