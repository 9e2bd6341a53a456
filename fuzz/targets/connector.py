"""INVARIANT: whatever servers send on however many connections, and whenever these are made, end, break
or take too long, the connector opens, writes to and closes each of its connections in that order and
closes it once, holds no more of them than its pool allows, ends every call exactly once, and after its
close leaves nothing."""

from __future__ import annotations

import re
from typing import Any

from fuzz.steps import Steps
from sansmcp import (
    ClientEngine,
    HttpClient,
    HttpConnector,
    Implementation,
    Legacy,
    NetworkProblem,
    PoolPolicy,
    RequestFailed,
    ResultReady,
    TransportKind,
)
from sansmcp.http.proxy import Proxy
from sansmcp.limits import Limits
from sansmcp.ops import Close, Connect, Op, StartTls, Write
from sansmcp.states import ClientState

PROXIES = [None, None, Proxy("http", "p.example", 3128, "Basic c2VjcmV0"), Proxy("https", "p.example", 443)]
URLS = ["http://a.example/mcp", "https://a.example/mcp"]
POLICY = PoolPolicy(max_requests=2, max_streams=2, max_waiting=3, max_idle=1)
HEADS = [
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n",
    b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nmcp-session-id: s\r\n",
    b"HTTP/1.1 202 Accepted\r\n",
    b"HTTP/1.1 404 Not Found\r\n",
    b"HTTP/1.1 407 Proxy Authentication Required\r\n",
    b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /other\r\n",
    b"HTTP/1.1 100 Continue\r\n",
    b"HTTP/1.1 200 OK\ncontent-type: application/json\n",
]
BODIES = [
    (
        b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],'
        b'"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"private"}}'
    ),
    (
        b'{"jsonrpc":"2.0","id":%d,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},'
        b'"serverInfo":{"name":"a","version":"1"}}}'
    ),
    b'{"jsonrpc":"2.0","id":%d,"result":{"resultType":"complete","content":[],"tools":[]}}',
    b'{"jsonrpc":"2.0","id":%d,"error":{"code":-32601,"message":"no"}}',
    b"data: x\n\n%d",
    b"%d",
]
_ID = re.compile(rb'"id": ?(\d+)')
FRAMES = [
    *[b"content-length: %d\r\n\r\n"] * 3,
    b"connection: close\r\ncontent-length: %d\r\n\r\n",
    b"\r\n",
]


class World:
    """A connector and the connections that it asked for."""

    def __init__(self, steps: Steps) -> None:
        self.now = 0.0
        mode = Legacy() if steps.byte() & 1 else None
        me, limits = Implementation("f", "1"), Limits(max_head=2000, max_buffered_events=50)
        self.engine = ClientEngine(me, now=0.0, transport=TransportKind.HTTP, mode=mode, limits=limits)
        client = HttpClient(self.engine, steps.choose(URLS), now=0.0)
        proxy = steps.choose(PROXIES)
        self.connector = HttpConnector(client, now=0.0, pool=POLICY, proxy=proxy)
        self.asked: set[int] = set()
        self.open: set[int] = set()
        self.closed: set[int] = set()
        self.calls: dict[Any, int] = {}
        self.ids: dict[int, int] = {}
        """Of the request that was sent last, by connection."""

    def drain(self) -> None:
        while True:
            while (op := self.connector.next_op()) is not None:
                self.carry_out(op)
            if (event := self.connector.next_event()) is None:
                break
            if isinstance(event, (ResultReady, RequestFailed)):
                self.calls[event.call] += 1
        stats = self.connector.stats()
        assert stats["connections"] == len(self.asked | self.open)
        assert stats["busy"] <= POLICY.max_requests + POLICY.max_streams
        assert stats["waiting"] <= POLICY.max_waiting + POLICY.max_requests
        assert stats["idle"] <= POLICY.max_idle

    def carry_out(self, op: Op) -> None:
        match op:
            case Connect(conn=conn):
                assert conn not in self.asked | self.open | self.closed
                self.asked.add(conn)
            case StartTls(conn=conn):
                self.open.remove(conn)
                self.asked.add(conn)
            case Write(conn=conn, data=data):
                assert data
                assert conn in self.open
                found = _ID.findall(data)
                if found:
                    self.ids[conn] = int(found[-1])
            case Close(conn=conn):
                assert conn in self.asked | self.open
                self.gone(conn)
            case _:
                raise AssertionError(op)

    def call(self, *, cancel: bool, at_once: bool) -> None:
        if self.engine.state is ClientState.CLOSED or len(self.calls) > 100:
            return
        call = self.engine.call_tool("t", {}, now=self.now)
        self.calls[call] = 0
        if not at_once:
            self.drain()
        if cancel:
            self.engine.cancel(call, now=self.now)

    def gone(self, conn: int) -> None:
        self.asked.discard(conn)
        self.open.discard(conn)
        self.closed.add(conn)


def one_input(data: bytes) -> None:
    steps = Steps(data)
    world = World(steps)
    connector = world.connector
    connector.start(0.0)
    world.drain()
    for _ in range(200):
        if not steps.more:
            break
        known = sorted(world.asked | world.open | world.closed)
        conn = known[steps.byte() % len(known)] if known else 1
        match steps.byte() % 12:
            case 0 | 1 | 2 if conn in world.asked:
                world.asked.remove(conn)
                world.open.add(conn)
                connector.opened(conn, world.now)
            case 3 if conn not in world.closed:
                world.gone(conn)
                connector.failed(conn, "reset", world.now, steps.choose(list(NetworkProblem)))
            case 4:
                connector.receive_eof(conn, world.now)
            case 5:
                world.now += steps.byte() / 8
                connector.handle_timeout(world.now)
            case 6 | 7:
                world.call(cancel=steps.byte() & 3 == 3, at_once=bool(steps.byte() & 1))
            case 8:
                connector.receive_data(conn, steps.take(steps.byte()), world.now)
            case _:
                right = world.ids.get(conn, 1)
                body = steps.choose(BODIES) % steps.choose([right, right, right, steps.byte()])
                frame = steps.choose(FRAMES)
                answer = steps.choose(HEADS) + (frame % len(body) if b"%d" in frame else frame) + body
                cut = steps.choose([0, 0, 0, 1, 2])
                connector.receive_data(conn, answer[: len(answer) - cut], world.now)
        world.drain()
    assert all(ends <= 1 for ends in world.calls.values())
    connector.close(world.now)
    world.drain()
    if steps.byte() & 1:
        connector.abort(world.now)
    for _ in range(20):
        world.drain()
        when = connector.next_timeout()
        if connector.finished or when is None:
            break
        world.now = max(world.now, when)
        connector.handle_timeout(world.now)
    assert connector.finished
    assert not world.asked | world.open
    assert not any(connector.stats().values()), connector.stats()
    assert all(ends == 1 for ends in world.calls.values())
