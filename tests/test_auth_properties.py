"""Whatever anybody answers, in whatever order: every call ends once, and nothing goes on for ever."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import Call, RequestFailed, ResultReady
from sansmcp.errors import AuthorizationFailed

from .auth_support import AS, AS_AT, JSON, MCP, NOT_FOUND, PRM_AT, Asked, Reply, World, as_json

CHALLENGES = (
    "Bearer",
    "DPoP",
    "Basic realm=x",
    f'Bearer resource_metadata="{PRM_AT}", scope="a b"',
    'Bearer error="insufficient_scope", scope="w"',
    'Bearer error="insufficient_scope", scope="x y z"',
    'Bearer error="invalid_token"',
    'Bearer a="',
    "",
)
REPLIES: list[Reply] = [
    NOT_FOUND,
    (0, [], b""),
    (-1, [], b""),
    (500, [], b""),
    (302, [("location", "/elsewhere")], b""),
    (200, JSON, b""),
    (200, JSON, b"[]"),
    (200, JSON, b"{}"),
    as_json({"error": "invalid_grant"}, 400),
    as_json({"error": "invalid_client"}, 401),
    as_json({"access_token": "t0ken-x", "token_type": "bearer", "expires_in": 1}),
    as_json({"resource": MCP, "authorization_servers": [AS, f"{AS}/other"]}),
    *((status, [("www-authenticate", challenge)], b"") for status in (401, 403) for challenge in CHALLENGES),
]
PLACES = (MCP, PRM_AT, AS_AT, f"{AS}/register", f"{AS}/token")

replies = st.sampled_from([None, None, None, *REPLIES])
steps = st.one_of(
    st.tuples(st.just("answer"), st.integers(0, 5), replies),
    st.tuples(st.just("wait"), st.sampled_from([0.1, 3.0, 20.0, 400.0])),
    st.tuples(st.just("call")),
    st.tuples(st.just("cancel"), st.integers(0, 5)),
    st.tuples(st.just("back"), st.sampled_from(["right", "wrong", "denied", "iss"])),
    st.tuples(st.just("revoke")),
    st.tuples(st.just("authorize")),
    st.tuples(st.just("decline")),
)


class Wild(World):
    """Nothing is answered by itself."""

    def __init__(self, connected: bool) -> None:
        super().__init__(user_timeout=300.0)
        self.calls: list[Call] = []
        self.answer["expires_in"] = 60
        self.held = not connected
        if not connected:
            self.user = lambda url: None
        self.start()
        self.held, self.user = True, lambda url: None

    def take(self, step: tuple[Any, ...]) -> None:
        match step:
            case "answer", number, reply if self.pending:
                exchange, asked = self.pending.pop(number % len(self.pending))
                self.answer_with(exchange, asked, reply)
            case "wait", seconds:
                self.advance(seconds)
            case ["call"] if not self.client.client.engine.state.name == "CLOSED":
                self.calls.append(self.engine.call_tool("echo", {}, now=self.now))
            case "cancel", number if number < len(self.calls):
                self.engine.cancel(self.calls[number], now=self.now)
            case "back", how:
                self.come_back(how)
            case ["revoke"]:
                self.valid.clear()
            case ["authorize"]:
                self.client.authorize(self.now)
            case ["decline"]:
                self.client.decline("no", self.now)
        self.drain()

    def answer_with(self, exchange: int, asked: Asked, reply: Reply | None) -> None:
        if reply is not None:
            self.at[asked.url] = reply
        try:
            self.reply(exchange, asked)
        finally:
            self.at.pop(asked.url, None)

    def come_back(self, how: str) -> None:
        from sansmcp.events import AuthorizationUrlReady

        ready = self.of(AuthorizationUrlReady)
        if ready:
            changed: dict[str, str | None] = {
                "right": {},
                "wrong": {"state": "x"},
                "denied": {"code": None, "error": "access_denied"},
                "iss": {"iss": "https://evil.example"},
            }[how]  # type: ignore[assignment]
            self.client.redirect_received(self.allow(ready[-1].url, **changed), self.now)


@settings(max_examples=300, deadline=None)
@given(st.booleans(), st.lists(steps, max_size=60))
def test_every_call_ends_once_whatever_is_answered(connected: bool, script: list[tuple[Any, ...]]) -> None:
    world = Wild(connected)
    for step in script:
        world.take(step)
    before = len(world.asked)
    world.held = False
    world.advance(2000.0)
    world.client.close(world.now)
    world.drain().advance(60.0)
    ends = [e.call for e in world.said if isinstance(e, (ResultReady, RequestFailed))]
    assert len(ends) == len(set(ends)) == len(world.calls)
    assert len(world.asked) < before + 100 + 20 * len(world.calls)
    assert world.client.finished
    assert not any(world.client.stats().values()), world.client.stats()
    shown = [a for a in world.asked if a.token is not None and "token-" in (a.token or "")]
    assert all(asked.url == MCP for asked in shown)
    for event in world.said:
        if isinstance(event, RequestFailed) and isinstance(event.error, AuthorizationFailed):
            json.dumps(str(event.error))
