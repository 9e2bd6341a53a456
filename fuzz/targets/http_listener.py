"""INVARIANT: whatever clients send on any number of connections and a server application answers, in any
order and at any time, only LocalProtocolError leaves the HTTP server, what it writes on a connection are
whole responses to what came there, and after its end it holds nothing."""

from __future__ import annotations

import contextlib
import json
import re
from itertools import count
from typing import Any

from fuzz.steps import Steps
from sansmcp import (
    App,
    IncomingRequest,
    Limits,
    LocalProtocolError,
    McpError,
    RequestReceived,
    Write,
)
from sansmcp.http.headers import project_headers
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.listener import ConnectionPolicy, HttpListener
from sansmcp.http.old_sse_server import OldSsePaths
from sansmcp.http.server import HttpServer
from sansmcp.ops import Close

LIMITS = Limits(max_head=2048, max_headers=30, max_body=2000, max_open_requests=8, max_buffered_events=64)
SESSIONS = SessionPolicy(max_sessions=3, max_open_requests=4, max_streams=4, max_stored_events=8)
CONNECTIONS = ConnectionPolicy(max_connections=4)
PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {"elicitation": {}}}
OPENING = {"protocolVersion": "2025-11-25", "capabilities": {"roots": {}}, "clientInfo": {"name": "c"}}
METHODS = ["tools/list", "tools/call", "ping", "server/discover", "subscriptions/listen", "no/such"]
REQUEST_LINES = ["POST /mcp", "GET /mcp", "DELETE /mcp", "GET /sse", "POST /messages", "PUT /mcp", "POST /"]
FIELDS = [
    "Content-Type: application/json",
    "Accept: application/json, text/event-stream",
    "Mcp-Method: tools/call",
    "Mcp-Name: t",
    "MCP-Protocol-Version: 2026-07-28",
    "MCP-Protocol-Version: 2025-11-25",
    "Last-Event-ID: 1-1",
    "Origin: https://evil.example",
    "Connection: close",
    "Expect: 100-continue",
    "Transfer-Encoding: chunked",
]
APP = App("fuzz", "0", list_changed=True, subscribe=True)
APP.tool(name="t")(lambda: "never called")


class World:
    """One server, its connections, and who waits for an answer."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.now = 0.0
        self.open: list[int] = []
        self.written: dict[int, bytearray] = {}
        self.requests: list[IncomingRequest] = []
        self.sessions = ["none", ""]
        self.numbers = count(1)
        ids = count(1)
        old = steps.choose([None, OldSsePaths()])
        server = HttpServer(
            APP.engine,
            now=0.0,
            entropy=lambda size: next(ids).to_bytes(size, "big"),
            limits=LIMITS,
            sessions=SESSIONS,
            old_sse=old,
            response_timeout=steps.choose([None, 30.0]),
            max_exchanges=8,
            strict=steps.byte() % 4 == 3,
        )
        self.listener = HttpListener(server, now=0.0, policy=CONNECTIONS)

    def drain(self) -> None:
        while (op := self.listener.next_op()) is not None:
            match op:
                case Write(conn=conn, data=data):
                    assert conn in self.written, "bytes for a connection that is closed"
                    self.written[conn] += data
                    self.sessions += re.findall(r"mcp-session-id: (\S+)", data.decode("latin-1"))[:1]
                case Close(conn=conn):
                    written = self.written.pop(conn)
                    assert not written or written.startswith(b"HTTP/1.1 "), "no response"
                    if conn in self.open:
                        self.open.remove(conn)
        while (event := self.listener.next_event()) is not None:
            if isinstance(event, RequestReceived):
                self.requests.append(event.request)

    def message(self) -> Any:
        steps = self.steps
        match steps.byte() % 8:
            case 0:
                return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": OPENING}
            case 1:
                return {"jsonrpc": "2.0", "method": "notifications/initialized"}
            case 2:
                return {"jsonrpc": "2.0", "id": steps.choose([1, "x"]), "result": steps.value()}
            case 3:
                return steps.value()
            case _:
                params: Any = {"name": "t", "arguments": {}, "notifications": {"toolsListChanged": True}}
                if steps.byte() % 2:
                    params["_meta"] = META
                if steps.byte() % 4 == 3:
                    params["requestState"] = params["arguments"] = steps.value()
                number = steps.choose([1, 2, "1", None])
                return {"jsonrpc": "2.0", "id": number, "method": steps.choose(METHODS), "params": params}

    def request(self) -> bytes:
        """A request, most often one that is allowed."""
        steps = self.steps
        line = REQUEST_LINES[0] if steps.byte() % 4 else steps.choose(REQUEST_LINES)
        fields = ["Host: elsewhere" if steps.byte() % 16 == 15 else "Host: localhost", *FIELDS[:2]]
        body = b""
        if not line.startswith("GET"):
            message = self.message()
            body = json.dumps(message).encode()
            params = message.get("params") if isinstance(message, dict) else None
            if isinstance(params, dict) and "_meta" in params and steps.byte() % 8 != 7:
                fields += [f"{name}: {value}" for name, value in project_headers(message)]
            elif steps.byte() % 4:
                fields.append("Mcp-Session-Id: " + self.sessions[-1 - steps.byte() % 2])
        if steps.byte() % 4 == 3:
            fields.append(steps.choose(FIELDS))
        fields.append(f"Content-Length: {len(body) + (steps.byte() % 16 == 15)}")
        return "\r\n".join([line + " HTTP/1.1", *fields, "", ""]).encode("latin-1") + body

    def step(self) -> None:
        """One operation. A verb may refuse; an input never raises."""
        steps, listener = self.steps, self.listener
        match steps.byte() % 12:
            case 0:
                conn = next(self.numbers)
                self.written[conn] = bytearray()
                self.open.append(conn)
                listener.accepted(conn, "", self.now)
            case 1:
                self.now += steps.byte()
                listener.handle_timeout(self.now)
            case 2 | 3 if self.requests:
                with contextlib.suppress(LocalProtocolError):
                    self.answer(steps.choose(self.requests))
            case _ if not self.open:
                pass
            case 4:
                listener.receive_eof(steps.choose(self.open), self.now)
            case 5:
                conn = steps.choose(self.open)
                listener.failed(conn, "it broke", self.now)
            case 6:
                steps.choose([listener.pause_writing, listener.resume_writing])(steps.choose(self.open))
            case 7:
                listener.receive_data(steps.choose(self.open), steps.take(20), self.now)
            case 8:
                conn, data, cut = steps.choose(self.open), self.request(), steps.byte()
                listener.receive_data(conn, data[:cut], self.now)
                self.drain()
                listener.receive_data(conn, data[cut:], self.now)
            case _:
                listener.receive_data(steps.choose(self.open), self.request(), self.now)

    def answer(self, request: IncomingRequest) -> None:
        steps, server = self.steps, self.listener.server
        match steps.byte() % 4:
            case 0:
                server.respond_error(request, McpError(steps.choose([-32602, -32000, 5]), "m"), now=self.now)
            case 1:
                server.report_progress(request, steps.byte(), now=self.now)
            case 2:
                server.hang_up(request, now=self.now)
            case _:
                server.respond(request, {"content": [], "tools": [], "x": steps.value()}, now=self.now)


def one_input(data: bytes) -> None:
    world = World(Steps(data))
    listener = world.listener
    for _ in range(300):
        if not world.steps.more:
            break
        world.step()
        world.drain()
        stats = listener.stats()
        assert stats["connections"] <= CONNECTIONS.max_connections, stats
        assert stats["sessions"] <= SESSIONS.max_sessions, stats
    listener.close(world.now)
    world.drain()
    for _ in range(4):  # who still sends may take an answer; who does not read is waited for
        world.now += 400
        listener.handle_timeout(world.now)
        world.drain()
    assert listener.finished, "something is left to do"
    stats = listener.stats()
    left = {name: size for name, size in stats.items() if size and name != "read_schemas"}
    assert not left, left
