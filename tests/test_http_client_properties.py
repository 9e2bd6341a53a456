"""Whatever a server, the network, the application and the clock do: each call ends once, no table
grows, nothing raises, and at the end nothing is left."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from sansmcp import (
    Call,
    Legacy,
    LocalProtocolError,
    RequestFailed,
    RequestReceived,
    ResultReady,
    SessionEnded,
)
from sansmcp.http.client import HttpClient
from sansmcp.http.old_sse import OldSseUse
from sansmcp.http.recovery import EVERY_TOOL, Recovery
from sansmcp.limits import Limits

from .http_client_support import JSON, SSE, Asked, Link, event, note, response
from .support import DISCOVER, initialize_result

WHICH = st.integers(0, 1000)
STATUS = st.sampled_from([200, 200, 200, 202, 204, 301, 307, 308, 400, 401, 403, 404, 405, 429, 500])
KIND = st.sampled_from([JSON, JSON, SSE, SSE, "text/html", None])
SESSION = st.sampled_from([None, "one", "two", "bad id"])
BODY = st.sampled_from([b"", b"{", b"[]", b"<html>", b'"x"', b"data: {}\n\n", b"id: 7\ndata:\n\n", b":\n\n"])
SCHEMA = {"properties": {"text": {"type": "string", "x-mcp-header": "Text"}}}


def fitting(asked: Asked, which: int) -> Any:
    """A result that suits a request."""
    match asked.rpc:
        case "server/discover":
            return DISCOVER
        case "initialize":
            return initialize_result(["2025-11-25", "2025-03-26", "2024-11-05"][which % 3])
        case "tools/list":
            more = {"nextCursor": str(which)} if which % 4 == 0 else {}
            return {"resultType": "complete", "tools": [{"name": "echo", "inputSchema": SCHEMA}], **more}
        case _:
            return {"resultType": "complete", "content": []}


class Conversation(RuleBasedStateMachine):
    """One client, and a server that does what it pleases."""

    @initialize(
        legacy=st.booleans(),
        strict=st.booleans(),
        reissue=st.booleans(),
        old=st.sampled_from(OldSseUse),
        fast=st.booleans(),
    )
    def start(self, legacy: bool, strict: bool, reissue: bool, old: OldSseUse, fast: bool) -> None:
        if old is OldSseUse.ONLY and not legacy:
            old = OldSseUse.AUTO
        self.calls: list[Call] = []
        self.link = Link(
            mode=Legacy() if legacy else None,
            strict=strict,
            limits=Limits(max_event=2000, max_body=4000, max_mirrored_tools=1),
            http={"old_sse": old, "recovery": Recovery(tools=EVERY_TOOL, reissue=reissue)},
        ).start()
        if fast:
            self.answer_well(0, session="one", stream=False, error=0)
            self.answer_well(0, session="one", stream=False, error=0)

    # what is there to be chosen from

    def open(self) -> list[Asked]:
        return [a for a in self.link.asked if not a.over and not a.aborted]

    def pick(self, which: int) -> Asked | None:
        found = self.open()
        return found[which % len(found)] if found else None

    # the server

    @rule(which=WHICH, session=SESSION, stream=st.booleans(), error=st.sampled_from([0, 0, 0, -1, -32020]))
    def answer_well(self, which: int, session: str | None, stream: bool, error: int) -> None:
        asked = self.pick(which)
        if asked is None:
            return
        given = [] if session is None else [("mcp-session-id", session)]
        if asked.method != "POST":
            self.link.stream(asked, headers=given, end=False)
        elif "id" not in asked.message:
            self.link.answer(asked, 202)
        elif error:
            self.link.reply(to=asked, error=error, status=[200, 400, 404][which % 3])
        elif stream:
            self.link.stream(asked, response(asked, fitting(asked, which)), headers=given)
        else:
            self.link.reply(fitting(asked, which), asked, headers=given)

    @rule(
        which=WHICH, status=STATUS, kind=KIND, body=BODY, where=st.sampled_from(["/x", "https://e.example/"])
    )
    def answer_badly(self, which: int, status: int, kind: str | None, body: bytes, where: str) -> None:
        asked = self.pick(which)
        if asked is not None:
            self.link.answer(asked, status, body, kind, [("location", where)])

    @rule(which=WHICH, status=STATUS, kind=KIND)
    def begin(self, which: int, status: int, kind: str | None) -> None:
        asked = self.pick(which)
        if asked is not None:
            self.link.head(asked, status, *([] if kind is None else [("content-type", kind)]))

    @rule(which=WHICH, body=BODY)
    def go_on(self, which: int, body: bytes) -> None:
        asked = self.pick(which)
        if asked is not None:
            self.link.data(asked, body)

    @rule(
        which=WHICH, to=WHICH, what=st.sampled_from(["answer", "large", "changed", "ask", "endpoint", "end"])
    )
    def say(self, which: int, to: int, what: str) -> None:
        """Something on a stream, in case it is one."""
        asked = self.pick(which)
        requests = [a for a in self.link.asked if a.method == "POST" and "id" in a.message]
        if asked is None:
            return
        match what:
            case "answer" if requests:
                other = requests[to % len(requests)]
                data = event(response(other, fitting(other, to)), id=str(to))
            case "large":
                data = event(note("notifications/message", level="info", data="x" * 3000))
            case "changed":
                data = event(note("notifications/tools/list_changed"))
            case "ask":
                data = event({"jsonrpc": "2.0", "id": to, "method": "ping"})
            case "endpoint":
                data = b"event: endpoint\ndata: /messages\n\n"
            case _:
                data = b"data: {"
        self.link.data(asked, data)

    @rule(which=WHICH, broken=st.booleans())
    def finish(self, which: int, broken: bool) -> None:
        asked = self.pick(which)
        if asked is not None:
            if broken:
                self.link.fail(asked)
            else:
                self.link.end(asked)

    # the application, and time

    @rule(method=st.sampled_from(["tools/call", "tools/list", "resources/list", "vendor/x"]))
    def ask(self, method: str) -> None:
        params: Any = {"name": "echo", "arguments": {"text": "x"}} if method == "tools/call" else None
        try:
            call = self.link.engine.request(method, params, now=self.link.now, progress=True)
        except LocalProtocolError:
            return
        self.calls.append(call)
        self.link.drain()

    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        if self.calls:
            self.link.engine.cancel(self.calls[which % len(self.calls)], now=self.link.now)
            self.link.drain()

    @rule()
    def notify(self) -> None:
        try:
            self.link.engine.notify("notifications/custom", {"x": 1}, now=self.link.now)
        except LocalProtocolError:
            return
        self.link.drain()

    @rule()
    def respond(self) -> None:
        for received in self.link.of(RequestReceived):
            if received.request.open:
                self.link.engine.respond(received.request, {}, now=self.link.now)
        self.link.drain()

    @rule(seconds=st.sampled_from([0.0, 0.5, 1.0, 5.0, 31.0, 61.0]))
    def wait(self, seconds: float) -> None:
        self.link.advance(seconds)

    # what must hold

    @invariant()
    def holds(self) -> None:
        if not hasattr(self, "link"):
            return
        client: HttpClient = self.link.client
        stats = client.stats()
        ends = [e.call for e in self.link.of(ResultReady)] + [e.call for e in self.link.of(RequestFailed)]
        assert len(ends) == len(set(ends)), "a call ended twice"
        assert set(ends) == {call for call in self.calls if call.done}
        assert len(self.link.of(SessionEnded)) <= 1
        assert stats["exchanges"] == len(self.open())
        assert stats["ops"] == stats["events"] == 0
        alive = len([c for c in self.calls if not c.done]) + 1  # and one list of our own
        assert stats["awaited_calls"] <= alive
        assert stats["repeated_calls"] <= alive
        assert stats["mismatched_calls"] <= alive
        assert stats["paused_streams"] <= alive + 1
        assert stats["mirrored_tools"] <= 1
        assert stats["buffered"] <= 6000 * (len(self.open()) + 1)
        json.dumps(stats)

    def teardown(self) -> None:
        if not hasattr(self, "link"):
            return
        self.link.close()
        self.link.advance(5.0)
        assert self.link.finished()
        assert not self.open()
        assert all(call.done for call in self.calls)
        self.link.one(SessionEnded)
        left = {k: v for k, v in self.link.client.stats().items() if v and k != "mirrored_tools"}
        assert not left, left
        assert self.link.client.next_timeout() is None


def test_every_conversation_ends_well() -> None:
    run_state_machine_as_test(
        Conversation,
        settings=settings(
            max_examples=150,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
