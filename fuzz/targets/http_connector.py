"""INVARIANT: whatever a server, or a proxy before it, sends on any connection and however connections end,
only LocalProtocolError leaves the HTTP client, each call ends exactly once, nothing is written but on open
connections, and nothing is left after the end."""

from __future__ import annotations

import contextlib
import json
import re
from typing import Any

from fuzz.steps import Steps
from sansmcp import (
    Auto,
    Call,
    ClientEngine,
    HttpClient,
    HttpConnector,
    Implementation,
    Legacy,
    Limits,
    LocalProtocolError,
    OldSseUse,
    Pin,
    PoolPolicy,
    ReconnectPolicy,
    Recovery,
    RequestFailed,
    ResultReady,
    Revision,
    SessionEnded,
    SubscriptionClosed,
    Write,
)
from sansmcp.http.proxy import parse_proxy
from sansmcp.ops import Close, Connect, StartTls
from sansmcp.session.era import TransportKind

INFO = Implementation(name="fuzz", version="0")
LIMITS = Limits(
    max_pending_calls=8, max_remembered_ids=8, max_buffered_events=64, max_message=4096, max_head=2048
)
POOL = PoolPolicy(max_requests=3, max_streams=2, max_waiting=8, max_idle=1)
MODES: list[Auto | Legacy | Pin] = [Auto(), Legacy(), Pin(Revision.V2026_07_28), Pin(Revision.V2025_11_25)]
DISCOVER = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
OPENED = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": "s"}}
STATUSES = [200, 200, 202, 204, 307, 400, 401, 404, 405, 407, 413, 500, 503]
TYPES = ["application/json", "text/event-stream", "text/html", "APPLICATION/JSON; charset=utf-8"]
FIELDS = [
    "Mcp-Session-Id: s1",
    "Location: /other",
    "Location: http://elsewhere/",
    "Retry-After: 1",
    "Connection: close",
    "Content-Encoding: gzip",
    "Keep-Alive: timeout=1",
    "WWW-Authenticate: Bearer",
]
EVENTS = [
    "",
    "id: 1\n",
    "retry: 1\n",
    ": comment\n\n",
    "event: endpoint\ndata: /post\n\n",
    "id: 2\ndata:\n\n",
]


class World:
    """One client, its connections, and which of its calls have ended."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.now = 0.0
        self.asked: list[int] = []
        """Connections to be made."""
        self.open: list[int] = []
        self.known: set[int] = set()
        self.ids: list[Any] = [0]
        self.calls: list[Call] = []
        self.ended: set[Call] = set()
        self.ends = 0
        mode = steps.choose(MODES)
        engine = ClientEngine(
            INFO,
            now=0.0,
            limits=LIMITS,
            mode=mode,
            transport=TransportKind.HTTP,
            strict=steps.byte() % 4 == 3,
            check_capabilities=False,
        )
        old = OldSseUse.AUTO if steps.byte() % 4 or not isinstance(mode, Legacy) else OldSseUse.ONLY
        client = HttpClient(
            engine,
            steps.choose(["http://localhost/mcp", "https://localhost:8443/"]),
            now=0.0,
            reconnect=ReconnectPolicy(limit=2),
            recovery=steps.choose([Recovery(), Recovery(reissue=True)]),
            old_sse=old,
        )
        proxy = steps.choose([None, None, parse_proxy("http://u:p@proxy:3128")])
        self.connector = HttpConnector(client, now=0.0, pool=POOL, proxy=proxy)

    def drain(self) -> None:
        while (op := self.connector.next_op()) is not None:
            match op:
                case Connect(conn=conn):
                    assert conn not in self.known, "a connection's name was used twice"
                    self.known.add(conn)
                    self.asked.append(conn)
                case StartTls(conn=conn):
                    self.open.remove(conn)
                    self.asked.append(conn)
                case Write(conn=conn, data=data):
                    assert conn in self.open, "bytes for a connection that is not open"
                    self.ids += [json.loads(found) for found in re.findall(rb'"id":("[^"]*"|\d+)', data)]
                case Close(conn=conn):
                    (self.open if conn in self.open else self.asked).remove(conn)
        while (event := self.connector.next_event()) is not None:
            match event:
                case ResultReady(call=call) | RequestFailed(call=call) | SubscriptionClosed(call=call):
                    assert call not in self.ended, "a call ended twice"
                    self.ended.add(call)
                case SessionEnded():
                    self.ends += 1

    def message(self) -> bytes:
        steps = self.steps
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": self.ids[-1 - steps.byte() % min(3, len(self.ids))]}
        match steps.byte() % 8:
            case 0:
                answer["result"] = DISCOVER
            case 1:
                answer["result"] = OPENED
            case 2:
                code = steps.choose([-32601, -32022, -32020, -32600, 5])
                answer["error"] = {"code": code, "message": "m", "data": steps.value()}
            case 3:
                answer = {"jsonrpc": "2.0", "method": "notifications/progress", "params": steps.value()}
            case 4:
                answer |= {"method": "roots/list"}
            case 5:
                return steps.choose([b"", b"{", b"[]", b"null", steps.take(9)])
            case _:
                answer["result"] = {"resultType": "complete", "tools": [], "content": [], "x": steps.value()}
        return json.dumps(answer).encode()

    def response(self) -> bytes:
        """A response, most often one that is read to its end."""
        steps = self.steps
        kind = steps.choose(TYPES)
        body = self.message()
        if kind == TYPES[1]:
            parts = [b"%sdata: %s\n\n" % (steps.choose(EVENTS).encode(), self.message()) for _ in range(2)]
            body = b"".join([*parts, b"data: ", body, b"\n\n"])
        status = 200 if steps.byte() % 4 else steps.choose(STATUSES)
        fields = [f"Content-Type: {kind}"]
        if steps.byte() % 4 == 3:
            fields.append(steps.choose(FIELDS))
        match steps.byte() % 8:
            case 0:
                fields.append("Transfer-Encoding: chunked")
                body = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
                body += steps.choose([b"0\r\n\r\n", b"", b"zz"])
            case 1:
                pass
            case odd:
                fields.append(f"Content-Length: {len(body) + (odd == 7)}")
        return "\r\n".join([f"HTTP/1.1 {status} x", *fields, "", ""]).encode() + body

    def step(self) -> None:
        """One operation. A verb may refuse; an input never raises."""
        steps, connector = self.steps, self.connector
        match steps.byte() % 12:
            case 0:
                self.now += steps.byte() / 4
                connector.handle_timeout(self.now)
            case 1:
                with contextlib.suppress(LocalProtocolError):
                    self.use()
            case 2 | 3 | 4 if self.asked:
                conn = self.asked.pop(0)
                if steps.byte() % 8 == 7:
                    connector.failed(conn, "nobody is there", self.now)
                else:
                    self.open.append(conn)
                    connector.opened(conn, self.now)
            case _ if not self.open:
                pass
            case 5:
                connector.receive_eof(steps.choose(self.open), self.now)
            case 6 if steps.byte() % 4 == 0:
                conn = steps.choose(self.open)
                self.open.remove(conn)
                connector.failed(conn, "it broke", self.now)
            case 7:
                connector.receive_data(steps.choose(self.open), steps.take(20), self.now)
            case 8:
                conn, data, cut = steps.choose(self.open), self.response(), steps.byte()
                connector.receive_data(conn, data[:cut], self.now)
                self.drain()
                connector.receive_data(conn, data[cut:], self.now)
            case _:
                connector.receive_data(steps.choose(self.open), self.response(), self.now)

    def use(self) -> None:
        steps, engine = self.steps, self.connector.engine
        match steps.byte() % 4:
            case 0 if self.calls:
                engine.cancel(steps.choose(self.calls), now=self.now)
            case 1:
                self.calls.append(engine.list_tools(now=self.now))
            case 2:
                self.calls.append(engine.listen(tools=True, now=self.now))
            case _:
                self.calls.append(engine.call_tool("t", {"x": 1}, progress=True, now=self.now))


def one_input(data: bytes) -> None:
    world = World(Steps(data))
    connector = world.connector
    connector.start(0.0)
    world.drain()
    for _ in range(300):
        if not world.steps.more:
            break
        world.step()
        world.drain()
    connector.close(world.now)
    world.drain()
    world.now += 10.0  # the server does not take note of the end
    connector.handle_timeout(world.now)
    world.drain()
    assert connector.finished, "something is left to do"
    assert world.ends == 1, "the end is told exactly once"
    assert world.ended >= set(world.calls), "a call did not end"
    assert not world.open, world.open
    stats = connector.stats() | {"calls": connector.engine.stats()["calls"]}
    left = {name: size for name, size in stats.items() if size}
    assert not left, left
