"""A client that shows tokens: who waits for one, who gets one, and what is not tried again."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from sansmcp import (
    CallTimeout,
    ClientEngine,
    ConnectTimeout,
    Legacy,
    LocalProtocolError,
    RequestFailed,
    ResultReady,
    Timeouts,
    TransportKind,
)
from sansmcp.auth.client import DRAIN_WAIT, MAX_DRAINED
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem, AuthorizationRequired
from sansmcp.events import (
    AuthorizationGranted,
    AuthorizationRefused,
    AuthorizationUrlReady,
    DeviationTolerated,
    EraDecided,
    SessionEnded,
    SessionStarted,
)
from sansmcp.http.client import HttpClient
from sansmcp.http.exchange import StartExchange

from .auth_support import AS, MCP, UNIX, Asked, Reply, World, as_json
from .http_client_support import DONE
from .support import ME, initialize_result

Problem = AuthorizationProblem
INSUFFICIENT = 'Bearer error="insufficient_scope", scope="{}"'


def needs(scope: str, *, status: int = 403) -> Reply:
    return status, [("www-authenticate", INSUFFICIENT.format(scope))], b""


def why(end: Any) -> AuthorizationFailed:
    assert isinstance(end, RequestFailed), end
    assert isinstance(end.error, AuthorizationFailed), end.error
    return end.error


def unauthorized(challenge: str = "Bearer") -> Reply:
    return 401, [("www-authenticate", challenge)], b""


# who waits ---------------------------------------------------------------------------------------


@pytest.mark.req("T2")
def test_one_login_serves_everybody_who_waits() -> None:
    world = World(engine={"prior": None}).start()
    world.valid.clear()
    world.held = True
    calls = [world.engine.call_tool("echo", {"n": n}, now=0.0) for n in range(5)]
    world.drain()
    world.held = False
    world.drain()
    ends = {e.call: e for e in world.of(ResultReady)}
    assert set(calls) <= set(ends)
    assert len(world.urls) == 2 - 1, "a second login, although the token can be renewed"
    assert [form["grant_type"] for form in (asked.form for asked in world.to(f"{AS}/token"))] == [
        "authorization_code",
        "refresh_token",
    ]
    # Each was made twice, and no more.
    bodies = [asked.body for asked in world.to(MCP)[2:]]
    assert len(bodies) == 10
    assert all(bodies.count(body) == 2 for body in bodies)


def test_what_comes_while_somebody_logs_in_waits_too() -> None:
    world = World()
    world.user = lambda url: None
    world.start()
    call = world.engine.list_tools(now=0.0)
    world.drain()
    assert len(world.to(MCP)) == 1
    world.client.redirect_received(world.allow(world.one(AuthorizationUrlReady).url), world.now)
    world.drain()
    assert [e.call for e in world.of(ResultReady)] == [call]


@pytest.mark.req("T2")
def test_no_deadline_passes_while_somebody_logs_in() -> None:
    world = World(engine={"timeouts": Timeouts(probe=5.0, connect=20.0, request=30.0)})
    world.user = lambda url: None
    world.start().advance(200.0)
    assert not world.of(SessionEnded)
    world.at[MCP] = lambda asked: (-1, [], b"")  # and then the server is silent
    world.client.redirect_received(world.allow(world.one(AuthorizationUrlReady).url), world.now)
    world.drain()
    assert len(world.to(MCP)) == 2
    world.advance(4.9)
    assert len(world.to(MCP)) == 2
    world.advance(0.2)  # the probe is not answered
    assert world.to(MCP)[-1].json["method"] == "initialize"
    world.advance(14.0)
    assert not world.of(SessionEnded)
    world.advance(1.5)
    assert isinstance(world.one(SessionEnded).error, ConnectTimeout)


def test_the_total_time_of_a_call_runs_all_the_same() -> None:
    world = World()
    world.answer.pop("refresh_token")
    world.start()
    world.valid.clear()
    world.user = lambda url: None
    call = world.engine.call_tool("echo", {}, now=world.now, timeout=2.0, total_timeout=10.0)
    world.drain().advance(9.9)
    assert not world.of(RequestFailed)
    world.advance(0.2)
    (end,) = world.of(RequestFailed)
    assert end.call is call
    assert isinstance(end.error, CallTimeout)
    assert end.error.reason == "total_timeout"
    assert world.client.attempt is None  # nobody waits any more


@pytest.mark.req("T2")
def test_nobody_is_asked_for_whom_nobody_waits() -> None:
    world = World().start()
    world.valid.clear()
    world.answer.pop("refresh_token")
    world.at[f"{AS}/token"] = as_json({"error": "invalid_grant"}, 400)
    world.user = lambda url: None
    call = world.engine.call_tool("echo", {}, now=0.0)
    world.drain()
    assert len(world.urls) == 1
    assert world.client.stats()["unauthorized"] == 1
    world.engine.cancel(call, now=0.0)
    world.drain()
    assert world.client.attempt is None
    assert world.one(AuthorizationRefused).error.problem is Problem.CANCELLED
    assert not world.client.stats()["unauthorized"]


def test_who_closes_is_not_asked() -> None:
    world = World()
    world.user = lambda url: None
    world.start()
    world.client.close(0.0)
    world.drain()
    assert world.client.finished
    assert world.one(AuthorizationRefused).error.problem is Problem.CANCELLED
    assert not any(world.client.stats().values())
    world.client.close(0.0)


# legacy servers ----------------------------------------------------------------------------------


class LegacyWorld(World):
    """A server of 2025-11-25, with a session."""

    def serve(self, asked: Asked) -> Reply:
        if asked.token not in self.valid:
            return unauthorized()
        message = asked.json if asked.body else {"method": asked.method}
        session = [("mcp-session-id", "s3ssion-1")]
        match message["method"]:
            case "initialize":
                result = as_json({"jsonrpc": "2.0", "id": message["id"], "result": initialize_result()})
                return result[0], [*result[1], *session], result[2]
            case "tools/call":
                return as_json({"jsonrpc": "2.0", "id": message["id"], "result": DONE})
            case "GET":
                return 405, [], b""
        return 202, [], b""


def test_a_handshake_is_parked_like_everything_else() -> None:
    world = LegacyWorld(engine={"mode": Legacy()}).start()
    world.one(SessionStarted)
    assert isinstance(world.call(), ResultReady)
    assert {asked.token for asked in world.to(MCP)} == {None, "t0ken-1"}
    # Every request has the token: notifications, the server's own stream, the farewell.
    world.client.close(0.0)
    world.drain()
    assert [asked.method for asked in world.to(MCP)][-1] == "DELETE"
    assert all(asked.token == "t0ken-1" for asked in world.to(MCP)[1:])
    assert world.client.finished


def test_notifications_are_parked_and_nobody_is_asked_for_a_farewell() -> None:
    world = LegacyWorld(engine={"mode": Legacy()}).start()
    world.valid.clear()
    call = world.engine.call_tool("echo", {}, now=0.0)
    world.engine.notify("notifications/roots/list_changed", None, now=0.0)
    world.drain()
    assert [e.call for e in world.of(ResultReady)] == [call]
    sent = [asked for asked in world.to(MCP) if asked.body and "roots" in asked.json["method"]]
    assert sent[-1].token == "t0ken-2"
    world.valid.clear()
    world.client.close(0.0)
    world.drain()
    assert [asked.method for asked in world.to(MCP)].count("DELETE") == 1
    assert len(world.urls) == 1


# refused tokens ----------------------------------------------------------------------------------


@pytest.mark.case("A-03")
@pytest.mark.req("T2")
def test_a_fresh_token_that_is_refused_is_the_end() -> None:
    world = World()
    world.at[MCP] = lambda asked: unauthorized()
    world.start()
    error = world.one(SessionEnded).error
    assert isinstance(error, AuthorizationFailed)
    assert error.problem is Problem.TOKEN_REJECTED
    assert error.status == 401
    assert len(world.urls) == 1
    assert len(world.to(MCP)) == 2


@pytest.mark.case("A-03")
def test_each_request_is_made_once_more_and_not_again() -> None:
    world = World().start()
    before = len(world.to(MCP))
    world.at[MCP] = lambda asked: unauthorized()
    problem = why(world.call()).problem
    assert problem is Problem.TOKEN_REJECTED
    assert len(world.to(MCP)) == before + 2
    assert why(world.call()).problem is Problem.TOKEN_REJECTED
    assert len(world.to(MCP)) == before + 3, "a token that was never taken is not renewed"
    assert len(world.urls) == 1


@pytest.mark.req("T2")
def test_a_revoked_token_is_renewed() -> None:
    world = World().start()
    world.valid.clear()
    world.answer["refresh_token"] = "r3fresh-2"
    assert isinstance(world.call(), ResultReady)
    form = world.to(f"{AS}/token")[-1].form
    assert form == {
        "grant_type": "refresh_token",
        "refresh_token": "r3fresh-1",
        "resource": MCP,
        "client_id": "cl1ent",
    }
    assert [e.refreshed for e in world.of(AuthorizationGranted)] == [False, True]
    # The next time with the new one: they are rotated.
    world.valid.clear()
    world.answer.pop("refresh_token")
    assert isinstance(world.call(), ResultReady)
    assert world.to(f"{AS}/token")[-1].form["refresh_token"] == "r3fresh-2"
    # Where none comes, the last one stays.
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    assert world.to(f"{AS}/token")[-1].form["refresh_token"] == "r3fresh-2"
    assert len(world.urls) == 1


@pytest.mark.req("T2")
def test_where_a_token_cannot_be_renewed_the_user_is_asked() -> None:
    world = World().start()
    world.valid.clear()
    given = world.give
    world.at[f"{AS}/token"] = lambda asked: (
        as_json({"error": "invalid_grant"}, 400)
        if asked.form["grant_type"] == "refresh_token"
        else given(asked)
    )
    assert isinstance(world.call(), ResultReady)
    assert len(world.urls) == 2
    world.one(EraDecided)


def test_a_client_that_was_forgotten_registers_anew() -> None:
    world = World().start()
    world.valid.clear()
    given = world.give
    world.at[f"{AS}/token"] = lambda asked: (
        as_json({"error": "invalid_client"}, 401)
        if asked.form["grant_type"] == "refresh_token"
        else given(asked)
    )
    assert isinstance(world.call(), ResultReady)
    assert len(world.to(f"{AS}/register")) == 2


def test_what_cannot_be_renewed_now_may_be_renewed_later() -> None:
    world = World().start()
    world.valid.clear()
    world.at[f"{AS}/token"] = (503, [], b"")
    assert why(world.call()).problem is Problem.UNREACHABLE
    assert len(world.urls) == 1, "nobody is asked because a server is down"
    del world.at[f"{AS}/token"]
    assert isinstance(world.call(), ResultReady)


# time --------------------------------------------------------------------------------------------


@pytest.mark.req("T2")
def test_a_token_is_renewed_before_its_end_and_once_for_all() -> None:
    world = World().start()
    world.advance(3569.0)
    world.call()
    assert len(world.to(f"{AS}/token")) == 1
    world.advance(1.0)
    before = len(world.to(MCP))
    for n in range(3):
        world.engine.call_tool("echo", {"n": n}, now=world.now)
    world.drain()
    assert len(world.to(f"{AS}/token")) == 2
    assert [asked.token for asked in world.to(MCP)[before:]] == ["t0ken-2"] * 3
    assert len(world.urls) == 1


def test_a_token_whose_end_has_come_by_our_clock_only_is_still_shown() -> None:
    """Clocks differ: whether it is over, the server says."""
    world = World()
    world.answer = {"token_type": "Bearer", "expires_in": 1}
    world.start().advance(5.0)
    assert isinstance(world.call(), ResultReady)
    assert world.to(MCP)[-1].token == "t0ken-1"
    assert len(world.urls) == 1
    world.valid.clear()
    assert isinstance(world.call(), ResultReady)
    assert len(world.urls) == 2


INVALID_GRANT = as_json({"error": "invalid_grant"}, 400)


@pytest.mark.parametrize("reply", [INVALID_GRANT, (400, [], b""), (500, [], b""), (0, [], b"")])
def test_where_it_cannot_be_renewed_beforehand_the_server_decides(reply: Reply) -> None:
    world = World().start()
    world.advance(4000.0)
    world.at[f"{AS}/token"] = reply
    ready = world.call()
    if reply is INVALID_GRANT:  # what was held is good for nothing: the user is asked, and the token refused
        assert why(ready).problem is Problem.TOKEN_REFUSED
    else:
        assert isinstance(ready, ResultReady)
        assert isinstance(world.call(), ResultReady)
        assert len(world.to(f"{AS}/token")) == 2, "tried again for each request"


# more rights -------------------------------------------------------------------------------------


def stepping(world: World, needed: dict[str, str]) -> World:
    """Tools want scopes, and tokens have those that were asked for."""
    granted: dict[str, set[str]] = {}
    give = world.give

    def token(asked: Asked) -> Reply:
        reply = give(asked)
        granted[f"t0ken-{len(world.valid)}"] = set(world.asked_user.get("scope", "").split())
        return reply

    def guard(asked: Asked) -> Reply | None:
        name = asked.json.get("params", {}).get("name")
        wanted = needed.get(name, "")
        return None if set(wanted.split()) <= granted[asked.token or ""] else needs(wanted)

    world.at[f"{AS}/token"] = token
    world.guard = guard
    return world


@pytest.mark.case("A-06")
@pytest.mark.req("T5")
def test_more_rights_are_asked_for_beside_those_that_there_are() -> None:
    world = stepping(World(), {"write": "write", "admin": "admin more"})
    world.challenge += ', scope="read"'
    world.start()
    assert isinstance(world.call("write"), ResultReady)
    assert isinstance(world.call("admin"), ResultReady)
    assert isinstance(world.call("write"), ResultReady)
    scopes = [parts.split("&scope=")[1].split("&")[0] for parts in world.urls]
    assert scopes == ["read", "read+write", "read+write+admin+more"]
    assert [asked.form["grant_type"] for asked in world.to(f"{AS}/token")] == ["authorization_code"] * 3


@pytest.mark.case("A-06")
@pytest.mark.req("T5")
def test_rights_that_were_asked_for_are_not_asked_for_again() -> None:
    world = World().start()
    world.guard = lambda asked: needs("write")
    error = why(world.call())
    assert (error.problem, error.status) == (Problem.INSUFFICIENT_SCOPE, 403)
    assert "write" in str(error)
    assert len(world.urls) == 2
    why(world.call())
    why(world.call("other"))
    assert len(world.urls) == 2


@pytest.mark.case("A-06")
@pytest.mark.req("T5")
@pytest.mark.parametrize("step_ups", [0, 1, 2])
def test_a_server_that_always_wants_more(step_ups: int) -> None:
    world = World(step_ups=step_ups).start()
    wanted = iter(f"scope-{n}" for n in range(100))
    world.guard = lambda asked: needs(next(wanted))
    assert why(world.call()).problem is Problem.INSUFFICIENT_SCOPE
    assert len(world.urls) == 1 + step_ups


def test_other_requests_go_on_while_more_rights_are_asked_for() -> None:
    world = stepping(World(), {"write": "write"}).start()
    world.user = lambda url: None
    waiting = world.engine.call_tool("write", {}, now=0.0)
    world.drain()
    assert isinstance(world.call("echo"), ResultReady)
    world.client.redirect_received(world.allow(world.of(AuthorizationUrlReady)[-1].url), world.now)
    world.drain()
    assert [e.call for e in world.of(ResultReady)][-1] is waiting


@pytest.mark.parametrize(
    "reply",
    [
        (403, [], b"no"),
        (403, [("www-authenticate", "Bearer")], b""),
        (403, [("www-authenticate", 'Bearer error="invalid_token"')], b""),
        (403, [("www-authenticate", 'Basic error="insufficient_scope", scope="a"')], b""),
        (401, [("www-authenticate", 'Basic realm="x"'), ("www-authenticate", "Negotiate")], b""),
    ],
)
def test_what_no_token_can_help_with_goes_to_the_caller(reply: Reply) -> None:
    world = World().start()
    world.guard = lambda asked: reply
    end = world.call()
    assert isinstance(end, RequestFailed)
    assert isinstance(end.error, AuthorizationRequired)
    assert end.error.status == reply[0]
    assert len(world.urls) == 1


# by hand -----------------------------------------------------------------------------------------


def test_somebody_logs_in_although_nothing_wants_it() -> None:
    world = World()
    world.valid.add(None)
    world.start()
    assert not world.urls
    world.client.authorize(world.now)
    world.drain()
    world.one(AuthorizationGranted)
    world.call()
    assert world.to(MCP)[-1].token == "t0ken-1"
    world.client.authorize(world.now)
    world.client.authorize(world.now)
    world.drain()
    assert len(world.urls) == 2


def test_whoever_stops_waiting_ends_the_attempt_but_not_for_others() -> None:
    world = World()
    world.valid.add(None)
    world.start()
    world.user = lambda url: None
    world.client.withdraw(world.now)  # nothing to end
    world.client.authorize(world.now)
    world.drain()
    world.client.withdraw(world.now)
    world.drain()
    assert world.one(AuthorizationRefused).error.problem is AuthorizationProblem.CANCELLED
    world.valid.clear()
    call = world.engine.list_tools(now=world.now)
    world.drain()
    world.client.authorize(world.now)
    world.client.withdraw(world.now)
    world.drain()
    assert world.client.attempt is not None
    assert not world.of(RequestFailed)
    world.client.redirect_received(world.allow(world.of(AuthorizationUrlReady)[-1].url), world.now)
    world.drain()
    assert [e.call for e in world.of(ResultReady)] == [call]


def test_who_logs_in_again_keeps_the_rights_there_were() -> None:
    world = World()
    world.challenge += ', scope="read"'
    world.start()
    world.client.authorize(world.now)
    world.drain()
    assert world.asked_user["scope"] == "read"
    assert [asked.form["grant_type"] for asked in world.to(f"{AS}/token")] == ["authorization_code"] * 2


def test_an_old_token_is_not_renewed_while_another_one_is_on_its_way() -> None:
    world = stepping(World(), {"write": "write"}).start()
    world.user = lambda url: None
    waiting = world.engine.call_tool("write", {}, now=0.0)
    world.drain().advance(299.0)
    world.client.handle_timeout(world.now)
    kept = world.client.tokens
    assert kept is not None
    world.client._tokens = attrs.evolve(kept, expires_at=UNIX)
    attempt = world.client.attempt
    assert isinstance(world.call("echo"), ResultReady)
    assert world.client.attempt is attempt
    world.client.redirect_received(world.allow(world.of(AuthorizationUrlReady)[-1].url), world.now)
    world.drain()
    assert [e.call for e in world.of(ResultReady)][-1] is waiting


def test_what_was_refused_while_a_renewal_came_to_nothing_has_the_user_asked() -> None:
    world = World().start()
    world.held = True
    first = world.engine.call_tool("echo", {"n": 1}, now=0.0)
    world.drain()
    ((early, asked),) = world.pending
    world.pending.clear()
    world.advance(4000.0)  # now the token is old, and the next call has it renewed
    second = world.engine.call_tool("echo", {"n": 2}, now=world.now, timeout=None, total_timeout=9e9)
    world.drain()
    world.valid.clear()
    world.reply(early, asked)
    world.at[f"{AS}/token"] = lambda asked: (
        (400, [], b"") if asked.form["grant_type"] == "refresh_token" else world.give(asked)
    )
    world.held = False
    world.drain()
    ends = {e.call for e in world.of(ResultReady)}
    assert second in ends
    assert len(world.urls) == 2
    assert first.done


def test_a_header_of_the_user_and_tokens_do_not_go_together() -> None:
    world = World()
    with pytest.raises(LocalProtocolError, match="not both"):
        world.make(headers=[("Authorization", "Bearer x")])


@pytest.mark.req("T1")
def test_a_token_goes_to_the_origin_of_the_server_and_nowhere_else() -> None:
    world = World().start()
    world.at[MCP] = (307, [("location", "https://evil.example/mcp")], b"")
    assert isinstance(world.call(), RequestFailed)
    assert all(
        asked.url == MCP for asked in world.asked if asked.token is not None and "token-" in asked.token
    )


# connections -------------------------------------------------------------------------------------


def lone() -> tuple[World, int]:
    """A client whose probe was refused, and how that exchange is called."""
    world = World()
    world.held = True
    world.start()
    ((exchange, _),) = world.pending
    world.pending.clear()
    return world, exchange


def test_a_refusal_that_does_not_end_is_given_up() -> None:
    world, exchange = lone()
    world.client.response_started(exchange, 401, [("www-authenticate", "Bearer")], 0.0)
    world.drain()
    assert world.client.stats()["refusals"] == 1
    assert not world.aborted
    world.client.response_data(exchange, b"x" * MAX_DRAINED, 0.0)
    assert not world.aborted
    world.client.response_data(exchange, b"x", 0.0)
    world.drain()
    assert world.aborted == [exchange]
    world, exchange = lone()
    world.client.response_started(exchange, 401, [("www-authenticate", "Bearer")], 0.0)
    world.drain().advance(DRAIN_WAIT)
    assert exchange in world.aborted
    assert not world.client.stats()["refusals"]


def test_informational_responses_mean_nothing() -> None:
    world, exchange = lone()
    world.client.response_started(exchange, 103, [("link", "x")], 0.0)
    world.client.response_started(exchange, 401, [("www-authenticate", 'Bearer a="')], 0.0)
    world.client.response_ended(exchange, 0.0)
    world.held = False
    world.drain()
    world.one(EraDecided)
    world.one(DeviationTolerated)


def test_what_is_told_of_exchanges_that_are_over_means_nothing() -> None:
    world = World().start()
    for exchange in range(-1, 30):
        world.client.response_started(exchange, 200, [], 0.0)
        world.client.response_data(exchange, b"x", 0.0)
        world.client.response_ended(exchange, 0.0)
        world.client.exchange_failed(exchange, "gone", 0.0)
    world.client.handle_timeout(0.0)
    assert isinstance(world.drain().call(), ResultReady)


def test_an_unchanged_client_without_a_token() -> None:
    """Where the server wants none, nothing is different."""
    plain = HttpClient(ClientEngine(ME, now=0.0, transport=TransportKind.HTTP), MCP, now=0.0)
    plain.start(0.0)
    wanted = plain.next_op()
    world = World()
    world.client.start(0.0)
    op = world.client.next_op()
    assert isinstance(op, StartExchange)
    assert isinstance(wanted, StartExchange)
    assert op.request.headers == wanted.request.headers
    assert repr(world.client) == "<AuthorizedClient https://mcp.example/mcp without a token>"
