"""INVARIANT: whatever a client says and a server application does, in any order and at any time, only
LocalProtocolError leaves the server engine, no request is answered twice or after its cancel, and
nothing that looks like a response is ever answered."""

from __future__ import annotations

import contextlib
from typing import Any

from fuzz.steps import Steps
from sansmcp import (
    Implementation,
    IncomingRequest,
    Limits,
    LocalProtocolError,
    McpError,
    RequestCancelled,
    RequestReceived,
    Revision,
    SendResponse,
    ServerCapabilities,
    ServerEngine,
    SessionEnded,
)

INFO = Implementation(name="fuzz", version="0")
LIMITS = Limits(max_open_requests=8, max_batch=4, max_buffered_events=64, max_message=4096)
CAPABILITIES = ServerCapabilities(extra={"tools": {}, "prompts": {}, "logging": {}, "completions": {}})
PREFIX = "io.modelcontextprotocol/"
METHODS = [
    "tools/list",
    "tools/call",
    "prompts/get",
    "server/discover",
    "ping",
    "logging/setLevel",
    "vendor/x",
    "no/such",
    "subscriptions/listen",
    "notifications/cancelled",
    "notifications/initialized",
]


class Session:
    """One server, what is open at it and what it answered."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.now = 0.0
        self.received: list[Any] = []
        self.cancelled: set[IncomingRequest] = set()
        self.answered: set[IncomingRequest] = set()
        self.sessions_ended = 0
        self.response_given = False
        revisions = steps.choose([list(Revision), [Revision.V2026_07_28], [Revision.V2025_03_26]])
        self.engine = ServerEngine(
            INFO, now=0.0, capabilities=CAPABILITIES, methods=["vendor/x"], limits=LIMITS, revisions=revisions
        )

    def drain(self, *, may_answer: bool = True) -> None:
        for event in self.engine.events():
            match event:
                case RequestReceived():
                    self.received.append(event.request)
                case RequestCancelled():
                    self.cancelled.add(event.request)
                case SendResponse():
                    assert may_answer, "a response was answered"
                    if event.request is not None:
                        assert event.request not in self.answered, "answered twice"
                        assert event.request not in self.cancelled, "answered after its cancel"
                        self.answered.add(event.request)
                case SessionEnded():
                    self.sessions_ended += 1
                case _:
                    pass

    def request(self) -> dict[str, Any]:
        steps = self.steps
        params: Any = steps.value()
        if steps.byte() % 2 and isinstance(params, dict):
            stamp = {
                PREFIX + "protocolVersion": steps.choose(["2026-07-28", "2025-11-25", "1900-01-01", 5]),
                PREFIX + "clientCapabilities": steps.choose([{}, {"roots": {}}, None]),
                PREFIX + "logLevel": steps.choose(["debug", "loud"]),
                "progressToken": steps.choose([0, "t", None, True]),
            }
            params = {"name": "t", "level": "info", "requestId": 1, **params, "_meta": stamp}
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": steps.choose(METHODS), "params": params}
        if steps.byte() % 8:
            message["id"] = steps.choose([0, 1, 2, "1", "", None, 1.5])
        return message

    def receive(self) -> None:
        steps = self.steps
        match steps.byte() % 8:
            case 0:
                version = steps.choose(["2025-11-25", "2025-03-26", "2026-07-28", 5])
                params = {
                    "protocolVersion": version,
                    "capabilities": {"roots": {}},
                    "clientInfo": steps.value(),
                }
                message: Any = {"jsonrpc": "2.0", "id": 9, "method": "initialize", "params": params}
            case 1:
                message = [self.request() for _ in range(steps.byte() % 6)]
            case 2:
                answer: dict[str, Any] = {"jsonrpc": "2.0", "id": steps.choose([1, 2, "1", None])}
                answer[steps.choose(["result", "error"])] = steps.value()
                self.engine.receive_message(answer, now=self.now)
                self.drain(may_answer=False)
                return
            case 3:
                message = steps.choose([b"{", b"[", b"{}", b"5", b'{"result":', steps.take(20)])
            case _:
                message = self.request()
        self.engine.receive_message(message, now=self.now)

    def step(self) -> None:
        """One operation. A verb may refuse; an input never raises."""
        steps, engine = self.steps, self.engine
        match steps.byte() % 10:
            case 0 | 1 | 2 | 3 as verb:
                with contextlib.suppress(LocalProtocolError):
                    self.use(verb)
            case 4:
                self.now += steps.byte()
                engine.handle_timeout(self.now)
            case 5 if steps.byte() % 16 == 0:
                engine.receive_eof(now=self.now)
            case _:
                self.receive()

    def use(self, verb: int) -> None:
        steps, engine = self.steps, self.engine
        if verb == 3:
            engine.request("roots/list", now=self.now)
            return
        if not self.received:
            return
        request = steps.choose(self.received)
        match verb:
            case 0:
                engine.respond(request, {"tools": [], "x": steps.value()}, now=self.now)
            case 1:
                code = steps.choose([-32602, -32000, 5])
                engine.respond_error(request, McpError(code, "m"), now=self.now)
            case _:
                engine.report_progress(request, steps.byte(), now=self.now)
                engine.log("info", steps.value(), request=request, now=self.now)


def one_input(data: bytes) -> None:
    session = Session(Steps(data))
    for _ in range(400):
        if not session.steps.more:
            break
        session.step()
        session.drain()
    session.engine.close(now=session.now)
    session.drain()
    assert session.sessions_ended == 1, "the end is told exactly once"
    stats = session.engine.stats()
    assert stats["open_requests"] == stats["calls"] == stats["deadlines"] == 0, stats
