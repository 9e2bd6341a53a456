"""Who is let into a protected server, and what the others are told."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sansmcp import (
    AccessUndecided,
    App,
    Context,
    LimitHit,
    ListKind,
    LocalProtocolError,
    PeerFault,
    RequestReceived,
)
from sansmcp.auth.challenge import Challenge, parse_challenges
from sansmcp.clock import ClockPair
from sansmcp.events import VerifyToken
from sansmcp.http.exchange import HttpRequest
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.inline import InlineHandlers

from .http_support import LIST_HEADERS, MODERN_LIST, Client, Http, Reply, call, initialize, reasons
from .protected_support import ISSUER, UNIX, Protected, rules, who

METADATA = "https://s.example/.well-known/oauth-protected-resource/mcp"
ANN = {"tok-ann": who("ann", "base")}
BOTH = {**ANN, "tok-bob": who("bob", "base")}


def challenge_of(reply: Reply) -> Challenge:
    (found,), odd = parse_challenges([reply.headers["www-authenticate"]])
    assert not odd
    return found


def post(http: Http, authorization: str | None, body: Any = None, **headers: Any) -> Reply:
    return http.post(body or MODERN_LIST, **LIST_HEADERS, authorization=authorization, **headers)


# credentials -------------------------------------------------------------------------------------


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("authorization", "status", "error"),
    [
        (None, 401, None),
        ("", 401, None),
        ("Basic dTpw", 401, None),
        ("DPoP tok-ann", 401, None),
        ("tok-ann", 401, None),
        ("Bearer", 400, "invalid_request"),
        ("Bearer tok ann", 400, "invalid_request"),
        ("Bearer tok-ann, Bearer tok-bob", 400, "invalid_request"),
        ("Bearer tök", 400, "invalid_request"),
        ('Bearer "tok-ann"', 400, "invalid_request"),
        ("Bearer nobody", 401, "invalid_token"),
        ("Bearer tok-ann", None, None),
        ("bearer  tok-ann", None, None),
    ],
)
def test_credentials(authorization: str | None, status: int | None, error: str | None) -> None:
    http = Protected(ANN, scopes="base")
    reply = post(http, authorization)
    assert reply.status == status
    if status is None:
        assert http.request.principal == ANN["tok-ann"]
        return
    challenge = challenge_of(reply)
    assert challenge.scheme == "bearer"
    assert challenge.parameters["resource_metadata"] == METADATA
    assert challenge.scopes == ("base",)
    assert challenge.parameters.get("error") == error
    fault = PeerFault.INVALID_CREDENTIALS if status == 400 else PeerFault.UNAUTHORIZED
    assert reasons(http) == [fault]
    assert not http.of(RequestReceived)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("principal", "text"),
    [
        (who(expires_at=UNIX), "expired"),
        (who(expires_at=UNIX - 3600), "expired"),
        (who(audience="https://other.example/mcp"), "not made for this server"),
        (who(audience=()), "not made for this server"),
        (who(key="thumbprint"), "bound to a key"),
    ],
)
def test_a_genuine_token_may_be_refused(principal: Any, text: str) -> None:
    http = Protected({"t": principal})
    reply = post(http, "Bearer t")
    assert reply.status == 401
    assert challenge_of(reply).parameters["error"] == "invalid_token"
    assert text in challenge_of(reply).parameters["error_description"]


@pytest.mark.req("T8")
@pytest.mark.parametrize("method", ["GET", "DELETE", "POST"])
def test_every_request_needs_a_token(method: str) -> None:
    http = Protected(ANN)
    client = Client(Signed(http, "tok-ann"))  # type: ignore[arg-type]
    headers = {"accept": "text/event-stream", "content-type": "application/json", **client.headers}
    assert http.send(method, headers, call()).status == 401
    assert http.send(method, {**headers, "authorization": "Bearer x"}, call()).status == 401
    assert len(http.server.sessions) == 1


class Signed:
    """Sends every request of `http` with a token."""

    def __init__(self, http: Protected, token: str) -> None:
        self.http, self.token = http, token

    def post(self, body: Any, /, **headers: Any) -> Reply:
        return self.http.post(body, authorization=f"Bearer {self.token}", **headers)

    def send(self, method: str, headers: dict[str, Any], body: Any = b"", **more: Any) -> Reply:
        return self.http.send(method, {"authorization": f"Bearer {self.token}", **headers}, body, **more)


@pytest.mark.req("T8", "R6")
def test_who_may_ask_at_all_is_asked_first() -> None:
    http = Protected(ANN)
    assert post(http, None, origin="https://evil.example").status == 403
    assert http.send("POST", {"host": "evil.example"}).status == 421
    assert http.send("POST", {}, target="/other").status == 404


@pytest.mark.req("T8")
def test_the_metadata_is_for_everybody() -> None:
    http = Protected(ANN, scopes="base")
    for path in ("/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource"):
        reply = http.send("GET", {}, target=path)
        assert reply.status == 200
        assert reply.json == rules(scopes="base").metadata()
        assert http.send("POST", {}, target=path).status == 405
    assert http.send("GET", {}, target="/.well-known/oauth-protected-resource/other").status == 404
    assert Http().send("GET", {}, target="/.well-known/oauth-protected-resource").status == 404


@pytest.mark.req("T8")
@pytest.mark.parametrize(("authorization", "status"), [(None, 401), ("Bearer a b", 400), ("Bearer a", None)])
def test_a_head_without_a_token_is_enough(authorization: str | None, status: int | None) -> None:
    http = Protected(ANN)
    headers = [("host", "localhost"), ("content-type", "application/json")]
    if authorization is not None:
        headers.append(("authorization", authorization))
    refusal = http.server.head_received(7, HttpRequest("POST", "/mcp", headers), http.now)
    assert (None if refusal is None else refusal.status) == status
    while (event := http.server.next_event()) is not None:
        http.said.append(event)
    fault = {401: PeerFault.UNAUTHORIZED, 400: PeerFault.INVALID_CREDENTIALS}
    assert reasons(http) == ([] if status is None else [fault[status]])
    document = HttpRequest("GET", "/.well-known/oauth-protected-resource", headers[:1])
    assert http.server.head_received(8, document, http.now) is None


# verdicts ----------------------------------------------------------------------------------------


@pytest.mark.req("T8")
def test_requests_with_one_token_wait_for_one_verdict() -> None:
    http = Protected(asks=True)
    first, second = post(http, "Bearer t"), post(http, "Bearer t")
    other = post(http, "Bearer u")
    (question, another) = http.questions
    assert (question.token, another.token) == ("t", "u")
    assert first.waits
    assert second.waits
    assert not http.of(RequestReceived)
    http.verify(question, who("ann"))
    assert [e.request.principal.subject for e in http.of(RequestReceived) if e.request.principal] == [
        "ann",
        "ann",
    ]
    http.verify(another, None)
    assert other.status == 401
    http.verify(question, who("bob"))  # late: harmless
    assert len(http.of(RequestReceived)) == 2
    stats = http.server.stats()
    assert (stats["held_requests"], stats["token_questions"], stats["token_verdicts"]) == (0, 0, 1)


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("options", "expires", "seconds", "asked"),
    [
        ({}, None, 59, 1),
        ({}, None, 60, 2),
        ({}, 30, 29, 1),
        ({}, 30, 30, 2),
        ({"remember": 0}, None, 0, 2),
        ({"remember": 3600}, None, 3599, 1),
    ],
)
def test_a_verdict_holds_for_a_while(options: Any, expires: int | None, seconds: int, asked: int) -> None:
    principal = who(expires_at=None if expires is None else UNIX + expires)
    http = Protected({"t": principal}, **options)
    assert post(http, "Bearer t").status is None
    http.advance(seconds)
    reply = post(http, "Bearer t")
    assert len(http.questions) == asked
    assert reply.status == (401 if expires == seconds else None)


@pytest.mark.req("T8")
def test_the_verdicts_kept_are_bounded() -> None:
    people = {f"t{n}": who(f"u{n}") for n in range(5)}
    http = Protected(people, max_remembered=2)
    for token in people:
        post(http, f"Bearer {token}")
    assert http.server.stats()["token_verdicts"] == 2
    post(http, "Bearer t4")
    assert len(http.questions) == 5
    post(http, "Bearer t0")
    assert len(http.questions) == 6


@pytest.mark.req("T8")
def test_the_requests_that_wait_are_bounded() -> None:
    http = Protected(asks=True, max_waiting=2)
    for n in range(2):
        http.leave(post(http, f"Bearer gone{n}"))
    assert http.server.stats()["held_requests"] == 0
    reply = post(http, "Bearer t")  # those who left asked nevertheless
    assert (reply.status, reply.headers["retry-after"]) == (503, "10")
    assert http.one(LimitHit).limit == "max_waiting"
    for question in http.questions:
        http.verify(question, None)
    assert post(http, "Bearer t").waits


@pytest.mark.req("T8")
@pytest.mark.parametrize("how", ["leaves", "verdict", "server ends"])
def test_the_bodies_that_wait_are_bounded(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(json.dumps(MODERN_LIST))
    monkeypatch.setattr("sansmcp.auth.gate.MAX_HELD", 2 * size)
    http = Protected(asks=True)
    first, _ = post(http, "Bearer a"), post(http, "Bearer b")
    assert http.server.stats()["held_bytes"] == 2 * size
    assert post(http, "Bearer c").status == 503
    if how == "leaves":
        http.leave(first)
    elif how == "verdict":
        http.verify(http.questions[0], None)
    else:
        http.server.close(http.now)
        assert http.server.stats()["held_bytes"] == 0
        return
    assert http.server.stats()["held_bytes"] == size
    assert post(http, "Bearer d").waits


def test_an_exchange_that_waits_is_open() -> None:
    http = Protected(asks=True)
    request = HttpRequest("POST", "/mcp", [("host", "localhost")])
    waiting = post(http, "Bearer t")
    for begin in (http.server.head_received, http.server.request_received):
        with pytest.raises(LocalProtocolError, match="open already"):
            begin(waiting.id, request, http.now)


@pytest.mark.req("T8")
def test_a_verdict_that_does_not_come_is_given_up() -> None:
    http = Protected(asks=True, timeout=10)
    reply = post(http, "Bearer t")
    http.advance(9.5)
    assert reply.waits
    http.advance(0.5)
    assert reply.status == 503
    assert "within 10 s" in http.one(AccessUndecided).detail
    assert http.server.next_timeout() is None
    http.verify(http.questions[0], who())
    assert not http.of(RequestReceived)


@pytest.mark.req("T8")
def test_a_broken_verifier_is_no_fault_of_the_client() -> None:
    http = Protected(asks=True)
    reply = post(http, "Bearer t")
    http.server.verification_failed(http.questions[0].exchange, "the verifier raised KeyError", http.now)
    http.drain()
    assert reply.status == 503
    assert b"KeyError" not in reply.body
    assert "KeyError" in http.one(AccessUndecided).detail
    http.server.verification_failed(99, "harmless", http.now)


@pytest.mark.req("T8")
@pytest.mark.parametrize("verdict", [True, False, "ann", {"sub": "ann"}, [1]], ids=repr)
def test_a_verifier_that_gives_what_is_no_verdict_lets_nobody_in_and_nobody_wait(verdict: Any) -> None:
    http = Protected(asks=True)
    replies = [post(http, "Bearer t"), post(http, "Bearer t")]
    http.verify(http.questions[0], verdict)
    assert [reply.status for reply in replies] == [503, 503]
    told = http.of(AccessUndecided)
    assert all(type(verdict).__name__ in event.detail for event in told)
    assert not http.of(RequestReceived)


@pytest.mark.req("T8")
@pytest.mark.parametrize("how", ["leaves", "server ends"])
def test_a_request_that_waits_may_end(how: str) -> None:
    http = Protected(asks=True)
    reply = post(http, "Bearer t")
    if how == "leaves":
        http.leave(reply)
        http.verify(http.questions[0], who())
        assert reply.waits
    else:
        http.server.close(http.now)
        http.drain()
        assert reply.status == 503
    assert not http.of(RequestReceived)
    assert http.server.stats()["held_requests"] == http.server.stats()["token_questions"] == 0
    assert post(http, "Bearer t").status == (503 if how == "server ends" else None)


def test_without_auth_there_is_nothing_to_verify() -> None:
    http = Http()
    http.server.token_verified(1, who(), ClockPair(0.0, UNIX))
    http.server.verification_failed(1, "why", 0.0)
    assert "held_requests" not in http.server.stats()
    assert post(http, "Bearer whatever").waits
    assert http.request.principal is None


# scopes ------------------------------------------------------------------------------------------


@pytest.mark.req("T8", "T5")
@pytest.mark.parametrize(
    ("scopes", "name", "challenged"),
    [
        ("base", "read", None),
        ("base", "delete", "base write"),
        ("base write", "delete", None),
        ("base admin", "delete", None),
        ("write", "read", "base"),
        ("", "delete", "base write"),  # in one answer: who asks for more has to ask a user
    ],
)
def test_a_tool_may_need_more(scopes: str, name: str, challenged: str | None) -> None:
    http = Protected(
        {"t": who(scopes=scopes)},
        scopes="base",
        scopes_for={("tools/call", "delete"): "write"},
        implied={"admin": "write"},
    )
    reply = http.ask("tools/call", {"name": name, "arguments": {}}, authorization="Bearer t")
    if challenged is None:
        assert reply.status is None
        return
    challenge = challenge_of(reply)
    assert reply.status == 403
    assert challenge.parameters["error"] == "insufficient_scope"
    assert challenge.parameters["scope"] == challenged
    assert challenge.parameters["resource_metadata"] == METADATA
    assert reasons(http) == [PeerFault.INSUFFICIENT_SCOPE]


@pytest.mark.req("T8")
@pytest.mark.parametrize("body", [5, [], [5], "x"])
def test_what_every_request_needs_a_message_that_is_none_needs_too(body: Any) -> None:
    http = Protected({"t": who()}, scopes="base", scopes_for={"tools/call": "write"})
    reply = post(http, "Bearer t", body)
    assert reply.status == 403
    assert challenge_of(reply).scopes == ("base",)


@pytest.mark.req("T8")
def test_a_stream_without_a_message_needs_what_every_request_needs() -> None:
    http = Protected(
        {"t": who()}, scopes="base", scopes_for={"tools/call": "write"}, options={"sessions": SessionPolicy()}
    )
    reply = http.send("GET", {"accept": "text/event-stream", "authorization": "Bearer t"})
    assert (reply.status, challenge_of(reply).scopes) == (403, ("base",))


@pytest.mark.req("T8")
def test_a_batch_needs_what_its_messages_need() -> None:
    http = Protected({"t": who()}, scopes_for={"tools/call": "x", "prompts/get": "y"})
    client = Client(Signed(http, "t"), "2025-03-26")  # type: ignore[arg-type]
    batch = [call("tools/call", {"name": "a"}), 1, call("prompts/get", {"name": "b"}, id=2)]
    reply = client.post(batch)
    assert reply.status == 403
    assert challenge_of(reply).scopes == ("x", "y")


# streams -----------------------------------------------------------------------------------------

EXPIRING = {"t": who("ann", expires_at=UNIX + 100)}
WATCH = {"notifications": {"toolsListChanged": True}}


@pytest.mark.req("T8")
@pytest.mark.parametrize("kind", ["listen", "get", "sse"])
@pytest.mark.parametrize("noisy", [False, True])
def test_a_stream_ends_with_its_token(kind: str, noisy: bool) -> None:
    options = {"old_sse": OldSsePaths(), "sessions": SessionPolicy(confirm_timeout=1000)}
    http = Protected(EXPIRING, options=options)
    signed = {"authorization": "Bearer t"}
    if kind == "listen":
        stream = http.ask("subscriptions/listen", WATCH, **signed)
    elif kind == "get":
        client = Client(Signed(http, "t"))  # type: ignore[arg-type]
        stream = http.send("GET", {"accept": "text/event-stream", **client.headers, **signed})
    else:
        stream = http.send("GET", {"accept": "text/event-stream", **signed}, target="/sse")
    assert stream.streams
    for _ in range(9):
        http.advance(11)
        if noisy:
            http.server.notify_changed(ListKind.TOOLS, now=http.now)
            http.drain()
    assert not stream.ended
    http.advance(2)
    assert stream.ended
    assert len(http.server.sessions) == (kind == "get")
    stats = http.server.stats()
    assert (stats["exchanges"], stats["subscriptions"], stats["token_timers"]) == (0, 0, 0)


@pytest.mark.req("T8")
def test_a_call_is_not_ended_with_its_token() -> None:
    http = Protected(EXPIRING)
    reply = http.ask("tools/list", {"_meta": {"progressToken": "p"}}, authorization="Bearer t")
    http.progress(1)
    http.advance(200)
    assert not reply.ended
    assert http.answer()
    assert reply.ended


@pytest.mark.req("T8")
def test_streams_that_have_ended_are_forgotten() -> None:
    http = Protected(EXPIRING)
    for _ in range(50):
        http.leave(http.ask("subscriptions/listen", WATCH, authorization="Bearer t"))
    assert http.server.stats()["token_timers"] <= 2


# what the principal is for -----------------------------------------------------------------------


@pytest.mark.req("T8")
def test_a_handler_sees_who_asks_but_no_token() -> None:
    app, seen = App("x", "1"), []

    @app.tool()
    def whoami(ctx: Context) -> str:
        exchange: Any = ctx.request.origin
        seen.append((dict(exchange.headers), exchange.fields))
        assert ctx.principal is not None
        return ctx.principal.subject

    http = Protected(ANN, app=app)
    reply = http.ask(
        "tools/call", {"name": "whoami", "arguments": {}}, authorization="Bearer tok-ann", dpop="p"
    )
    InlineHandlers(app, http.server).handle(http.one(RequestReceived), now=http.now)
    http.drain()
    assert reply.json["result"]["content"][0]["text"] == "ann"
    for fields in seen[0]:
        assert "host" in fields
        assert not {"authorization", "dpop"} & set(fields)


@pytest.mark.req("T8", "R6")
@pytest.mark.case("H-07")
def test_a_session_is_for_who_opened_it() -> None:
    http = Protected({**BOTH, "tok-ann-2": who("ann", "base more")})
    ann = Client(Signed(http, "tok-ann"))  # type: ignore[arg-type]
    for token, status in (("tok-bob", 404), ("tok-ann-2", None), ("tok-ann", None)):
        signed = {"authorization": f"Bearer {token}"}
        reply = http.post(call(), **ann.headers, **signed)
        assert reply.status == status
        if status is None:
            http.answer()
    for method in ("GET", "DELETE"):
        headers = {"accept": "text/event-stream", **ann.headers, "authorization": "Bearer tok-bob"}
        assert http.send(method, headers).status == 404
    assert len(http.server.sessions) == 1


@pytest.mark.req("T8")
def test_a_session_of_http_sse_is_for_who_opened_it() -> None:
    http = Protected(BOTH, options={"old_sse": OldSsePaths()})
    stream = http.send(
        "GET", {"accept": "text/event-stream", "authorization": "Bearer tok-ann"}, target="/sse"
    )
    target = stream.events[0].data.decode()
    for token, status in (("tok-bob", 404), ("tok-ann", 202)):
        signed = {"authorization": f"Bearer {token}"}
        assert http.post(initialize("2024-11-05"), target=target, **signed).status == status
    assert http.post(initialize("2024-11-05"), target=target).status == 401


# secrets -----------------------------------------------------------------------------------------


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "token", ["SECRET-known", "SECRET-unknown", "SECRET bad", "SECRET-expired", "SECRET-poor"]
)
def test_no_token_is_shown(token: str) -> None:
    people = {
        "SECRET-known": who(scopes="s"),
        "SECRET-expired": who(expires_at=0.0),
        "SECRET-poor": who(),
    }
    http = Protected(people, scopes="s")
    reply = post(http, f"Bearer {token}")
    shown = [repr(http.said), repr(vars(http.server)), repr(http.server._gate and vars(http.server._gate))]
    shown += [repr(reply.headers), repr(reply.body), json.dumps(http.server.stats()), repr(rules())]
    shown += [str(getattr(e, "detail", "")) for e in http.said if not isinstance(e, VerifyToken)]
    assert "SECRET" not in " ".join(shown)


def test_a_token_that_was_verified_is_not_kept() -> None:
    http = Protected(ANN)
    post(http, "Bearer tok-ann")
    gate: Any = http.server._gate
    assert all("tok-ann" not in repr(v) for v in vars(gate).values())
    assert [type(k) for k in gate._verdicts] == [bytes]


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    "rule", [lambda m: m["params"]["name"], lambda m: 'a"b', lambda m: None, lambda m: [1]]
)
def test_a_rule_that_breaks_is_a_fault_of_the_application(rule: Any) -> None:
    http = Protected({"t": who()}, scopes_for=rule)
    reply = post(http, "Bearer t")
    assert (reply.status, reply.headers["retry-after"]) == (503, "10")
    assert "scopes_for raised" in http.one(AccessUndecided).detail
    assert post(http, None).status == 401  # and it goes on


def test_the_issuer_is_part_of_who_it_is() -> None:
    http = Protected({"a": who("ann"), "b": who("ann", issuer=ISSUER + "/2")})
    client = Client(Signed(http, "a"))  # type: ignore[arg-type]
    assert http.post(call(), **client.headers, authorization="Bearer b").status == 404
