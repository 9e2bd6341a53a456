"""Whatever clients, application and clock do: responses are whole, tables bounded, nothing is lost."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from sansmcp import IncomingRequest, ListKind, LocalProtocolError, McpError, RequestReceived
from sansmcp.http.legacy_session import SessionPolicy

from .http_support import BOTH, EVERYTHING, PROGRESS, Client, Http, Reply, call, note
from .support import LEGACY, MODERN

ACCEPT = st.sampled_from([BOTH, BOTH, BOTH, "application/json", "text/event-stream"])
WHICH = st.integers(0, 1000)
GARBAGE = st.sampled_from(
    [b"{", b"[]", b"5", b'{"jsonrpc":"2.0","id":1}', b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]']
)
POLICY = SessionPolicy(
    max_sessions=4, max_open_requests=4, max_streams=3, max_stored_events=6, idle_timeout=50.0
)


class Conversations(RuleBasedStateMachine):
    """Some modern and some legacy clients of one server, which do what they please."""

    @initialize(strict=st.booleans(), timeout=st.sampled_from([None, 20.0]))
    def start(self, strict: bool, timeout: float | None) -> None:
        self.http = Http(
            sessions=POLICY, max_exchanges=12, strict=strict, keep_alive=7.0, response_timeout=timeout
        )
        self.clients: list[Client] = []
        self.left: set[int] = set()
        self.id = 0

    # what is there to be chosen from

    def open_replies(self) -> list[Reply]:
        return [r for r in self.http.replies.values() if not r.ended and r.id not in self.left]

    def open_requests(self) -> list[IncomingRequest]:
        return [e.request for e in self.http.of(RequestReceived) if e.request.open]

    def client(self, which: int) -> Client | None:
        return self.clients[which % len(self.clients)] if self.clients else None

    # clients

    @rule(version=st.sampled_from(LEGACY))
    def open_session(self, version: str) -> None:
        try:
            self.clients.append(Client(self.http, version, capabilities=EVERYTHING))
        except AssertionError:
            last = self.http.replies[len(self.http.replies)]
            assert last.status == 503, last

    @rule(accept=ACCEPT, method=st.sampled_from(["tools/list", "tools/call", "server/discover", "no/such"]))
    def ask(self, accept: str, method: str) -> None:
        self.http.ask(method, {"name": "x", **PROGRESS}, id=self.id % 3, accept=accept)
        self.id += 1

    @rule(which=WHICH, accept=ACCEPT, method=st.sampled_from(["tools/list", "ping", "no/such"]))
    def ask_in_a_session(self, which: int, accept: str, method: str) -> None:
        client = self.client(which)
        if client is not None:
            self.id += 1
            client.call(method, PROGRESS, id=self.id if which % 5 else 0, accept=accept)

    @rule(which=WHICH, size=st.integers(0, 3))
    def ask_in_a_batch(self, which: int, size: int) -> None:
        client = self.client(which)
        if client is not None:
            self.id += 10
            client.post([call("tools/list", PROGRESS, id=self.id + n) for n in range(size)])

    @rule(which=WHICH, body=GARBAGE)
    def send_garbage(self, which: int, body: bytes) -> None:
        client = self.client(which) if which % 2 else None
        reply = self.http.post(body, **(client.headers if client else {"mcp-protocol-version": MODERN}))
        assert reply.ended

    @rule(which=WHICH, stream=st.integers(0, 6), sequence=st.integers(0, 4), resume=st.booleans())
    def listen(self, which: int, stream: int, sequence: int, resume: bool) -> None:
        client = self.client(which)
        if client is not None:
            client.get(last_event_id=f"{stream}-{sequence}" if resume else None)

    @rule(which=WHICH)
    def cancel(self, which: int) -> None:
        client, requests = self.client(which), self.open_requests()
        if client is not None and requests:
            target = requests[which % len(requests)].id
            client.post(note("notifications/cancelled", {"requestId": target}))

    @rule(which=WHICH)
    def answer_a_question(self, which: int) -> None:
        client = self.client(which)
        if client is not None:
            result: Any = {"roots": []} if which % 3 else 5
            client.post({"jsonrpc": "2.0", "id": which % 4, "result": result})

    @rule(which=WHICH)
    def leave(self, which: int) -> None:
        replies = self.open_replies()
        if replies:
            reply = replies[which % len(replies)]
            self.left.add(reply.id)
            self.http.leave(reply)

    @rule(which=WHICH)
    def end_session(self, which: int) -> None:
        client = self.client(which)
        if client is not None:
            client.delete()

    # the application

    @precondition(lambda self: self.open_requests())
    @rule(which=WHICH, how=st.sampled_from(["answer", "error", "progress", "log", "hang up", "ask"]))
    def work(self, which: int, how: str) -> None:
        requests, http = self.open_requests(), self.http
        request = requests[which % len(requests)]
        now = http.now
        match how:
            case "answer":
                assert http.answer({"tools": []}, request)
            case "error":
                assert http.server.respond_error(request, McpError(-32602, "no"), now=now)
            case "progress":
                http.progress(1 + (request.last_progress or 0), request)
            case "log":
                http.server.log("error", "x", now=now, request=request)
            case "hang up":
                http.server.hang_up(request, now=now)
            case _:
                try:
                    http.server.request("roots/list", now=now, related=request, timeout=5.0)
                except LocalProtocolError:
                    pass
        http.drain()

    @rule(which=WHICH)
    def speak_first(self, which: int) -> None:
        if which % 2:
            self.http.server.notify_changed(ListKind.TOOLS, now=self.http.now)
        elif sessions := self.http.server.sessions:
            session = sessions[which % len(sessions)]
            self.http.server.request("roots/list", now=self.http.now, session=session, timeout=5.0)
        self.http.drain()

    @rule(seconds=st.sampled_from([0.0, 1.0, 7.0, 30.0, 100.0]))
    def wait(self, seconds: float) -> None:
        self.http.advance(seconds)

    # what holds

    @invariant()
    def tables_are_what_is_open(self) -> None:
        stats = self.http.server.stats()
        assert stats["exchanges"] == len(self.open_replies()) <= 12
        assert stats["sessions"] <= 4
        assert stats["stored_events"] <= 6 * 4
        requests = self.open_requests()
        modern = [r for r in requests if self.http.server.session_of(r) is None]
        assert stats["open_requests"] == len(modern)
        for request in modern:
            origin: Any = request.origin
            assert not self.http.replies[origin.id].ended
            assert origin.id not in self.left
        working = {r.origin for r in requests} - {r.origin for r in modern}
        assert stats["working"] == len(working) <= 4 * 4
        assert stats["streams"] <= stats["working"] + 3 * 4

    def teardown(self) -> None:
        if not hasattr(self, "http"):
            return
        self.http.server.close(self.http.now)
        self.http.drain()
        assert not self.open_replies()
        assert not self.open_requests()
        left = {name: size for name, size in self.http.server.stats().items() if size}
        assert not left.keys() - {"read_schemas"}
        assert self.http.server.next_timeout() is None


def test_responses_are_whole_and_tables_bounded() -> None:
    run_state_machine_as_test(
        Conversations,
        settings=settings(
            max_examples=60,
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.req("P4")
@pytest.mark.case("H-12")
@settings(deadline=None)
@given(
    version=st.sampled_from(LEGACY),
    steps=st.lists(st.sampled_from(["say", "say", "lose", "late loss", "come back", "hang up"]), max_size=30),
)
def test_a_client_that_always_comes_back_hears_everything_once(version: str, steps: list[str]) -> None:
    """Also if its connections break while something is on its way."""
    http = Http()
    client = Client(http, version)
    connection: Reply | None = client.call("tools/list", PROGRESS, id="x")
    http.progress(1)
    heard: list[Any] = []
    last = "2-0"
    said = 1

    def hear(connection: Reply, on_its_way: int = 0) -> None:
        nonlocal last
        events = connection.events
        for event in events[: len(events) - on_its_way]:
            heard.append(event.data)
            last = event.id or last

    def come_back() -> Reply:
        return client.get(last_event_id=last)

    for step in [*steps, "say"]:
        match step:
            case "say":
                said += 1
                http.progress(said)
            case "lose" | "late loss" if connection is not None:
                hear(connection, on_its_way=int(step == "late loss"))
                if not connection.ended:
                    http.leave(connection)
                connection = None
            case "hang up":
                http.server.hang_up(http.request, now=0.0)
                http.drain()
            case "come back" if connection is None or connection.ended:
                if connection is not None:
                    hear(connection)
                connection = come_back()
            case _:
                pass
    http.answer({"tools": []})
    if connection is not None:
        hear(connection)
    if connection is None or b'"result"' not in connection.body:
        hear(come_back())
    values = [json.loads(data) for data in heard]
    assert [v["params"]["progress"] for v in values[:-1]] == list(range(1, said + 1))
    assert values[-1]["id"] == "x"
