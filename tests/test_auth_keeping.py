"""A store that fails, that is shared, or that has what must not be shown: what comes of the tokens."""

from __future__ import annotations

from itertools import count
from typing import Any

import attrs
import pytest

from sansmcp import CacheUse, ResponseCache, ResultReady
from sansmcp.auth.addresses import AddressPolicy
from sansmcp.auth.client import MAX_TRIES
from sansmcp.auth.keeping import MAX_OWN, Keeping
from sansmcp.auth.oauth import OAuth
from sansmcp.auth.registration import Registration
from sansmcp.auth.tokens import MemoryTokenStore, Tokens
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem
from sansmcp.events import AuthorizationGranted, RequestFailed, TokensNotKept

from .auth_support import AS, CALLBACK, MCP, Asked, Reply, World, as_json

INVALID_GRANT = as_json({"error": "invalid_grant"}, 400)
TOKENS = Tokens(access_token="t0ken-x", token_type="bearer", issuer=AS, resource=MCP)


class Failing(MemoryTokenStore):
    """Fails at `what` with `error`."""

    def __init__(self, error: Exception, *what: str) -> None:
        super().__init__()
        self.error: Exception | None = error
        self.what = what

    def _at(self, what: str) -> None:
        if self.error is not None and what in self.what:
            raise self.error

    def tokens(self, server: str) -> Tokens | None:
        self._at("tokens")
        return super().tokens(server)

    def keep_tokens(self, server: str, tokens: Tokens | None) -> None:
        self._at("keep_tokens")
        super().keep_tokens(server, tokens)

    def registration(self, issuer: str) -> Registration | None:
        self._at("registration")
        return super().registration(issuer)

    def keep_registration(self, issuer: str, registration: Registration | None) -> None:
        self._at("keep_registration")
        super().keep_registration(issuer, registration)


READ, WRITE = ("tokens", "registration"), ("keep_tokens", "keep_registration")


@pytest.mark.req("T9")
def test_what_a_store_cannot_keep_is_kept_beside_it() -> None:
    store = Failing(OSError(30, "Read-only file system"))
    keeping = Keeping(store)
    keeping.keep_tokens("s", TOKENS)
    store.what = WRITE
    newer = attrs.evolve(TOKENS, access_token="t0ken-y")
    keeping.keep_tokens("s", newer)
    keeping.keep_registration("i", Registration(client_id="c", issuer="i"))
    assert keeping.stats() == {"unkept": 2}
    assert keeping.tokens("s") == newer
    assert store.tokens("s") == TOKENS
    assert keeping.registration("i") is not None
    keeping.keep_tokens("s", None)
    assert keeping.tokens("s") is None
    assert [type(event) for event in keeping.said] == [TokensNotKept] * 3
    store.error = None
    keeping.keep_tokens("s", newer)
    store.keep_tokens("s", TOKENS)
    assert keeping.tokens("s") == TOKENS  # it is the store's again
    for number in range(2 * MAX_OWN):
        store.error = ValueError("x")
        keeping.keep_tokens(str(number), TOKENS)
    assert repr(keeping) == f"<Keeping, {MAX_OWN + 1} beside the store>"  # one is a registration


@pytest.mark.req("T9")
@pytest.mark.parametrize("what", [READ, WRITE, READ + WRITE])
@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), RuntimeError("INSERT t0ken-1")])
def test_a_store_may_raise_what_it_likes(what: tuple[str, ...], error: Exception) -> None:
    world = World(store=Failing(error, *what)).start()
    assert isinstance(world.call(), ResultReady)
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    told = world.of(TokensNotKept)
    assert told
    assert "t0ken" not in repr(told)


@pytest.mark.req("T9")
@pytest.mark.parametrize(
    "given",
    [
        {"access_token": "t0ken-x"},
        *(attrs.evolve(TOKENS, access_token=text) for text in ("a\r\nb: c", "ü", "", "x" * 40_000)),
    ],
    ids=["a dict", "lines", "not ASCII", "empty", "too long"],
)
def test_what_a_store_gives_that_cannot_be_sent_is_none(given: Any) -> None:
    world = World(store=MemoryTokenStore())
    world.oauth.store.keep_tokens(MCP, given)
    world.client = world.make()
    assert isinstance(world.start().call(), ResultReady)
    assert "no tokens" in str(world.of(TokensNotKept)[0].error)
    assert world.to(MCP)[0].token is None
    assert len(world.urls) == 1


@pytest.mark.req("T9")
def test_tokens_that_could_not_be_kept_are_newer_than_those_that_are() -> None:
    store = Failing(OSError(30, "Read-only file system"))
    world = World(store=store).start()
    store.what = WRITE
    for number in (2, 3):
        world.valid.clear()
        world.answer["refresh_token"] = f"r3fresh-{number}"
        assert isinstance(world.call(), ResultReady)
    shown = [asked.form.get("refresh_token") for asked in world.to(f"{AS}/token")]
    assert shown == [None, "r3fresh-1", "r3fresh-2"]
    assert len(world.urls) == 1


@pytest.mark.req("T9")
@pytest.mark.parametrize("stale", [False, True])
def test_whoever_renews_at_the_same_moment_and_loses_takes_the_token_of_who_won(stale: bool) -> None:
    store = MemoryTokenStore()
    world = World(store=store).start()
    held = store.tokens(MCP)
    assert held is not None
    other = attrs.evolve(held, access_token="t0ken-other", refresh_token="r3fresh-other")
    if stale:
        other = attrs.evolve(other, expires_at=0.0)

    def give(asked: Asked) -> Reply:
        if asked.form["grant_type"] != "refresh_token":
            return world.give(asked)
        world.valid.add("t0ken-other")
        store.keep_tokens(MCP, other)
        return INVALID_GRANT

    world.at[f"{AS}/token"] = give
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    assert len(world.urls) == (2 if stale else 1), "who asks the user"
    kept = store.tokens(MCP)
    assert kept is not None
    assert kept.access_token == ("t0ken-2" if stale else "t0ken-other")


@pytest.mark.req("T9")
@pytest.mark.case("A-03")
def test_what_another_client_was_given_may_be_void_as_well() -> None:
    store = MemoryTokenStore()
    world = World(store=store).start()
    held = store.tokens(MCP)
    assert held is not None
    store.keep_tokens(MCP, attrs.evolve(held, access_token="t0ken-other", refresh_token="r3fresh-other"))
    world.valid.clear()  # both of them
    assert isinstance(world.call(), ResultReady)
    assert [asked.form.get("refresh_token") for asked in world.to(f"{AS}/token")] == [None, "r3fresh-other"]
    assert len(world.urls) == 1


@pytest.mark.req("T9")
@pytest.mark.case("A-03")
def test_a_store_that_has_another_token_each_time_is_not_followed_without_end() -> None:
    numbers = count()

    class Changing(MemoryTokenStore):
        def tokens(self, server: str) -> Tokens | None:
            kept = super().tokens(server)
            return None if kept is None else attrs.evolve(kept, access_token=f"t0ken-n{next(numbers)}")

    world = World(store=Changing()).start()
    world.valid.clear()
    before = len(world.to(MCP))
    assert isinstance(world.call(), RequestFailed)
    assert len(world.to(MCP)) - before <= MAX_TRIES


@pytest.mark.req("T9")
@pytest.mark.case("A-07")
@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (INVALID_GRANT, False),
        (as_json({"error": "invalid_grant"}), False),  # some say so with status 200
        (as_json({"error": "invalid_client"}, 401), False),
        ((404, [("content-type", "text/html")], b"<html>"), True),
        (as_json({"error": ["invalid_grant"]}, 400), True),
        ((302, [("location", "https://portal.example/")], b""), True),
    ],
)
def test_only_a_verdict_ends_what_is_kept(answer: Reply, kept: bool) -> None:
    world = World().start()
    world.valid.clear()
    world.at[f"{AS}/token"] = answer
    world.user = lambda url: None
    world.engine.call_tool("echo", {}, now=world.now)
    world.drain()
    assert (world.oauth.store.tokens(MCP) is not None) is kept


@pytest.mark.req("T2")
@pytest.mark.parametrize(
    "answer",
    [
        as_json({"error": "slow_down"}, 400, **{"retry-after": "7"}),
        as_json({"error": "temporarily_unavailable"}, 400, **{"retry-after": "7"}),
        (429, [("retry-after", "7")], b""),
        (503, [("retry-after", "7")], b"<html>"),
        (408, [("retry-after", "7")], b""),
    ],
)
def test_whoever_cannot_now_is_asked_later(answer: Reply) -> None:
    world = World().start()
    world.valid.clear()
    world.at[f"{AS}/token"] = answer
    end = world.call()
    assert isinstance(end, RequestFailed)
    assert isinstance(end.error, AuthorizationFailed)
    told = (end.error.problem, end.error.retryable, end.error.retry_after)
    assert told == (AuthorizationProblem.UNREACHABLE, True, 7.0)
    del world.at[f"{AS}/token"]
    assert isinstance(world.call(), ResultReady)
    assert [granted.refreshed for granted in world.of(AuthorizationGranted)] == [False, True]


@pytest.mark.req("T1", "T9")
@pytest.mark.parametrize(
    ("url", "tokens", "options", "shown"),
    [
        (MCP, TOKENS, {}, True),
        (MCP, attrs.evolve(TOKENS, token_type="dpop"), {}, False),
        ("http://mcp.example/mcp", TOKENS, {}, False),
        ("http://mcp.example/mcp", TOKENS, {"addresses": AddressPolicy(plain=True)}, True),
        ("http://127.0.0.1:9/mcp", TOKENS, {}, True),
    ],
)
def test_what_is_kept_is_shown_only_where_it_may_be(
    url: str, tokens: Tokens, options: dict[str, Any], shown: bool
) -> None:
    world = World(store=MemoryTokenStore(), **options)
    world.oauth.store.keep_tokens(url, tokens)
    world.client = world.make(url)
    world.start()
    first = next(asked for asked in world.asked if asked.method == "POST")
    assert (first.token == "t0ken-x") is shown


@pytest.mark.req("T7", "T9")
def test_a_bound_token_without_its_key_is_replaced_by_another() -> None:
    world = World(store=MemoryTokenStore(), redirect_uri=CALLBACK)
    bound = attrs.evolve(TOKENS, token_type="dpop", refresh_token="r3fresh-bound")
    world.oauth.store.keep_tokens(MCP, bound)
    world.client = world.make()
    assert isinstance(world.start().call(), ResultReady)
    assert [asked.form["grant_type"] for asked in world.to(f"{AS}/token")] == ["authorization_code"]


# who can renew -----------------------------------------------------------------------------------


def registering(world: World) -> World:
    """Each registration is another client, and whoever has a token renews it as itself."""
    numbers = count(1)
    owners: dict[str, str] = {}

    def give(asked: Asked) -> Reply:
        form = asked.form
        known = form.get("refresh_token")
        if known is not None and owners.get(known) != form["client_id"]:
            return INVALID_GRANT
        world.answer["refresh_token"] = f"r3fresh-{len(owners)}"
        owners[world.answer["refresh_token"]] = form["client_id"]
        return world.give(asked)

    world.at[f"{AS}/register"] = lambda asked: as_json({"client_id": f"cl1ent-{next(numbers)}"}, 201)
    world.at[f"{AS}/token"] = give
    return world


@pytest.mark.req("T3", "T4", "T9")
@pytest.mark.parametrize("also", [{}, {"client_metadata_url": "https://me.example/client.json"}])
def test_a_token_is_renewed_by_whom_it_was_given_to(also: dict[str, Any]) -> None:
    store = MemoryTokenStore()
    world = registering(World(store=store)).start()
    # Meanwhile another port was free only, or another server was logged in at.
    world.oauth.store.keep_registration(AS, Registration(client_id="cl1ent-9", issuer=AS))
    world.oauth = OAuth(store=store, **also)
    world.server["client_id_metadata_document_supported"] = True
    world.valid.clear()
    assert isinstance(world.again().start().call(), ResultReady)
    assert len(world.urls) == 1
    assert [asked.form["client_id"] for asked in world.to(f"{AS}/token")] == ["cl1ent-1"]


@pytest.mark.req("T3", "T9")
def test_a_client_that_was_made_known_beforehand_renews_nothing_of_another() -> None:
    store = MemoryTokenStore()
    world = registering(World(store=store)).start()
    world.oauth = OAuth(store=store, client=Registration(client_id="g1ven", client_secret="s3cret-g1ven"))
    world.server["token_endpoint_auth_methods_supported"] = ["client_secret_post"]
    world.valid.clear()
    assert isinstance(world.again().start().call(), ResultReady)
    assert [asked.form["grant_type"] for asked in world.to(f"{AS}/token")] == ["authorization_code"]
    kept = store.tokens(MCP)
    assert kept is not None
    assert kept.client == Registration(client_id="g1ven", issuer=AS), "its secret is not kept here"
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    assert world.to(f"{AS}/token")[-1].form["client_secret"] == "s3cret-g1ven"


@pytest.mark.req("T4", "T9")
def test_a_client_that_is_not_known_any_more_takes_no_other_with_it() -> None:
    store = MemoryTokenStore()
    world = registering(World(store=store)).start()
    newer = Registration(client_id="cl1ent-9", issuer=AS, redirect_uri=CALLBACK)
    store.keep_registration(AS, newer)
    give = world.at[f"{AS}/token"]
    assert callable(give)
    world.at[f"{AS}/token"] = lambda asked: (
        as_json({"error": "invalid_client"}, 401) if asked.form["client_id"] == "cl1ent-1" else give(asked)
    )
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    assert store.registration(AS) == newer
    assert world.to(f"{AS}/token")[-1].form["client_id"] == "cl1ent-9"


# whoever asks ------------------------------------------------------------------------------------


@pytest.mark.req("T2", "T9")
@pytest.mark.parametrize("scope", ["private", "public"])
@pytest.mark.parametrize("again", [False, True])
def test_what_is_private_is_not_for_whoever_logs_in_later(scope: str, again: bool) -> None:
    cache = ResponseCache()
    world = World(engine={"cache": CacheUse(cache, MCP)})
    world.valid.add(None)
    listed = {"resultType": "complete", "tools": [], "ttlMs": 60_000, "cacheScope": scope}
    world.guard = lambda asked: (
        as_json({"jsonrpc": "2.0", "id": asked.json["id"], "result": listed})
        if asked.json["method"] == "tools/list"
        else None
    )
    world.start()

    def listings() -> int:
        world.engine.list_tools(now=world.now)
        world.drain()
        return len([asked for asked in world.to(MCP) if asked.json["method"] == "tools/list"])

    assert [listings(), listings()] == [1, 1]
    if again:
        world.client.authorize(world.now)
        world.drain()
        listings()
    before = listings()
    world.client.authorize(world.now)
    world.drain()
    assert listings() - before == (scope == "private")
    assert isinstance(world.call(), ResultReady)
    world.valid.clear()  # renewed without anybody: it is the same one who asks
    assert isinstance(world.call(), ResultReady)
    assert [event.refreshed for event in world.of(AuthorizationGranted)][-1]
    assert listings() - before == (scope == "private")


@pytest.mark.req("T3")
@pytest.mark.case("A-01")
def test_a_client_of_the_first_authorization_server_is_shown_to_no_second() -> None:
    client = Registration(client_id="g1ven", client_secret="s3cret-g1ven")
    world = World(client=client)
    world.resource["authorization_servers"] = ["https://first.example", AS]
    world.start()
    assert not world.urls
    assert world.paths[1:] == [
        "GET https://first.example/.well-known/oauth-authorization-server",
        "GET https://first.example/.well-known/openid-configuration",
    ]
