"""Clients of every kind beside each other on one HTTP server: none hears of another, none fills it up."""

from __future__ import annotations

import json
import re
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import ErrorCode, LimitHit, Limits, McpError, RequestCancelled, RequestReceived, SessionEnded
from sansmcp.errors import may_emit
from sansmcp.http.headers import project_headers
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.http.status import status_for_error
from sansmcp.revisions import Era

from .http_support import INITIALIZED, PROGRESS, Client, Http, call, initialize
from .support import meta
from .test_http_listener import Wire, head, open_session, post
from .test_http_old_sse_server import OldClient

KINDS = ["modern", "session", "old"]


def asking(owner: str, id: Any, *, modern: bool, **fields: str) -> bytes:
    """A request that says whose it is."""
    params: dict[str, Any] = {"name": "echo", "arguments": {"owner": owner}}
    if modern:
        params["_meta"] = meta()
    message = call("tools/call", params, id=id)
    if modern:
        fields |= {name.lower().replace("-", "_"): value for name, value in project_headers(message)}
    return post(message, **fields)


class Peer:
    """A client on a connection of its own, one with a stream on a second one."""

    def __init__(self, wire: Wire, kind: str, number: int) -> None:
        self.kind = kind
        self.owner = f"{kind}-{number}"
        self.conn, self.stream = 2 * number + 1, 2 * number + 2
        self.used = 0
        self._fields: dict[str, str] = {}
        self._target = "/mcp"
        wire.connect(self.conn)
        if kind == "session":
            self._fields = open_session(wire, self.conn)
            wire.send(post(INITIALIZED, **self._fields), self.conn)
        elif kind == "old":
            wire.connect(self.stream)
            begin = head("GET", {"accept": "text/event-stream"}).replace(b"/mcp", b"/sse", 1)
            seen = wire.send(begin, self.stream)
            found = re.search(rb"data: (/messages\S+)", seen.data)
            assert found is not None
            self._target = found[1].decode()
            wire.send(self.to(post(initialize("2024-11-05")) + post(INITIALIZED)), self.conn)
        self.quiet = len(self.data(wire))

    def to(self, requests: bytes) -> bytes:
        return requests.replace(b"POST /mcp ", f"POST {self._target} ".encode())

    def ask(self) -> bytes:
        self.used += 1
        return self.to(asking(self.owner, self.used, modern=self.kind == "modern", **self._fields))

    def data(self, wire: Wire) -> bytes:
        return wire.seen[self.stream if self.kind == "old" else self.conn].data

    def answers(self, wire: Wire) -> list[tuple[Any, str]]:
        """Ids and owners of all it heard."""
        found = re.findall(rb'\{"jsonrpc".*\}', self.data(wire)[self.quiet :])
        messages = [json.loads(message) for message in found]
        return [(m["id"], m["result"]["content"][0]["text"]) for m in messages if "id" in m]


def answer(wire: Wire, request: Any) -> None:
    content = [{"type": "text", "text": request.params["arguments"]["owner"]}]
    wire.listener.server.respond(request, {"content": content}, now=wire.now)
    wire.drain()


@pytest.mark.req("W11", "P8", "R11")
@pytest.mark.case("J-11", "M-06")
@settings(deadline=None, max_examples=60)
@given(st.lists(st.sampled_from(KINDS), min_size=2, max_size=4), st.integers(0, 2**32))
def test_equal_ids_in_interleaved_bytes_do_not_meet(kinds: list[str], seed: int) -> None:
    """Whatever order bytes and answers come in, each client hears its own, once and in full."""
    wire = Wire(answers=False, old_sse=OldSsePaths())
    chance = Random(seed)
    peers = [Peer(wire, kind, number) for number, kind in enumerate(kinds)]
    coming = {peer.conn: bytearray(b"".join(peer.ask() for _ in range(3))) for peer in peers}
    done: set[int] = set()
    for _ in range(10_000):
        waiting = [
            e.request for e in wire.of(RequestReceived) if e.request.open and id(e.request) not in done
        ]
        sending = [conn for conn, rest in coming.items() if rest]
        if not (waiting or sending):
            break
        if sending and (not waiting or chance.random() < 0.7):
            conn = chance.choice(sending)
            size = chance.randint(1, 700)
            piece, coming[conn] = bytes(coming[conn][:size]), coming[conn][size:]
            wire.send(piece, conn)
        else:
            request = chance.choice(waiting)
            done.add(id(request))
            answer(wire, request)
    for peer in peers:
        heard = peer.answers(wire)
        assert {owner for _, owner in heard} == {peer.owner}
        assert sorted(id for id, _ in heard) == [1, 2, 3]
    for conn in wire.seen:
        wire.fail(conn)
    wire.advance(10_000)
    stats = wire.listener.stats()
    assert {name: size for name, size in stats.items() if size and name != "read_schemas"} == {}


@pytest.mark.req("P8", "P10", "R7")
def test_what_clients_fill_is_bounded_by_what_they_may() -> None:
    """Many clients that take all they can get: every table that grows has its bound."""
    limits = Limits(max_body=2000, max_head=2000)
    policy = SessionPolicy(max_sessions=6, max_open_requests=3, max_stored_events=10, max_stored_bytes=5000)
    wire = Wire(
        answers=False,
        limits=limits,
        sessions=policy,
        max_exchanges=7,
        old_sse=OldSsePaths(),
        connections={"max_connections": 20},
    )
    for conn in range(1, 31):
        seen = wire.connect(conn)
        if seen.closed:
            continue
        match conn % 4:
            case 0:
                wire.send(post(initialize()), conn)
            case 1:
                begin = head("GET", {"accept": "text/event-stream"}).replace(b"/mcp", b"/sse", 1)
                wire.send(begin, conn)
            case 2:
                wire.send(asking("x", 1, modern=True), conn)
            case _:
                wire.send(head(length=2000) + b"x" * 1999, conn)
    stats = wire.listener.stats()
    assert stats["connections"] == 20
    assert stats["sessions"] == 6
    assert stats["exchanges"] == 7
    assert stats["buffered"] <= 20 * (limits.max_body or 0)
    for _ in range(1000):
        wire.listener.server.log("error", "x" * 100, now=wire.now)
        wire.drain()
    stats = wire.listener.stats()
    assert stats["stored_events"] <= 10 * stats["sessions"]
    assert stats["stored_bytes"] <= 5000 * stats["sessions"]
    told = {e.limit for e in wire.of(LimitHit)}
    assert told == {"max_connections", "max_sessions", "max_exchanges", "max_stored_events"}


@pytest.mark.req("P8")
@pytest.mark.parametrize("how", ["bytes", "time"])
def test_a_client_of_the_old_transport_that_does_not_read_loses_its_session(how: str) -> None:
    wire = Wire(answers=False, limits=Limits(max_outgoing=1000), old_sse=OldSsePaths())
    peer, other = Peer(wire, "old", 0), Peer(wire, "old", 1)
    wire.send(peer.ask(), peer.conn)
    wire.send(other.ask(), other.conn)
    wire.listener.pause_writing(peer.stream)
    for _ in range(30 if how == "bytes" else 0):
        wire.listener.server.log("error", "x" * 100, now=wire.now)
        wire.drain()
    if how == "time":
        wire.advance(301.0)
    assert wire.seen[peer.stream].closed
    assert [e.limit for e in wire.of(LimitHit)] == ["max_outgoing" if how == "bytes" else "stall_timeout"]
    ended = [e for e in wire.of(SessionEnded) if e.session is not None]
    assert len(ended) == len(wire.of(RequestCancelled)) == 1
    assert wire.listener.stats()["sessions"] == 1
    answer(wire, wire.request)
    assert other.answers(wire) == [(1, other.owner)]


# statuses --------------------------------------------------------------------------------------------


@pytest.mark.req("R4", "U2")
@pytest.mark.parametrize(
    ("kind", "code"),
    [
        (kind, int(code))
        for kind in KINDS
        for code in (*ErrorCode, -32000, -32042, -1, 7)
        if may_emit(code, Era.MODERN if kind == "modern" else Era.LEGACY)
    ],
)
@pytest.mark.parametrize("committed", [False, True])
def test_each_code_of_a_handler_has_its_status(kind: str, code: int, committed: bool) -> None:
    era = Era.MODERN if kind == "modern" else Era.LEGACY
    http = Http(old_sse=OldSsePaths())
    client: Any = None
    if kind == "modern":
        reply = http.ask("tools/list", PROGRESS, id=9)
    else:
        client = Client(http) if kind == "session" else OldClient(http)
        reply = client.call("tools/list", PROGRESS, id=9)
    if committed:
        http.progress(1)
    http.server.respond_error(http.request, McpError(code, "no", {"why": 1}), now=http.now)
    http.drain()
    wanted = {"jsonrpc": "2.0", "id": 9, "error": {"code": code, "message": "no", "data": {"why": 1}}}
    if kind == "old":
        assert (reply.status, client.last) == (202, wanted)
    else:
        assert reply.status == (200 if committed else status_for_error(code, era))
        assert reply.messages[-1] == wanted
        assert reply.ended
