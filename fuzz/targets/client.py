"""INVARIANT: whatever a server says and an application asks, in any order and at any time, only
LocalProtocolError leaves the client engine, each call ends exactly once, and nothing is left after
the end."""

from __future__ import annotations

import contextlib
from typing import Any

from fuzz.steps import Steps
from sansmcp import (
    Auto,
    Call,
    ClientCapabilities,
    ClientEngine,
    Implementation,
    Legacy,
    Limits,
    LocalProtocolError,
    Pin,
    Reconnect,
    RequestFailed,
    RequestReceived,
    ResultReady,
    Revision,
    SendRequest,
    SessionEnded,
    Verdict,
)

INFO = Implementation(name="fuzz", version="0")
LIMITS = Limits(max_pending_calls=16, max_remembered_ids=8, max_buffered_events=64, max_message=4096)
DISCOVER = {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
MODES: list[Auto | Legacy | Pin] = [
    Auto(),
    Legacy(),
    Pin(Revision.V2026_07_28),
    Pin(Revision.V2025_03_26),
]
NOTIFICATIONS = [
    "notifications/progress",
    "notifications/cancelled",
    "notifications/message",
    "notifications/tools/list_changed",
    "notifications/resources/updated",
    "vendor/x",
]


class Session:
    """One client, what it sent and which of its calls have ended."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.now = 0.0
        self.ids: list[Any] = [0]
        self.calls: list[Call] = []
        self.ended: dict[Call, int] = {}
        self.requests: list[Any] = []
        self.sessions_ended = 0
        self.engine = ClientEngine(
            INFO,
            now=0.0,
            limits=LIMITS,
            capabilities=ClientCapabilities(extra={"roots": {}}),
            mode=steps.choose(MODES),
            prior=steps.choose([None, Verdict.from_json({"era": "modern", "revision": "2026-07-28"})]),
            strict=steps.byte() % 4 == 3,
            check_capabilities=steps.byte() % 2 == 0,
        )

    def drain(self) -> None:
        for event in self.engine.events():
            match event:
                case SendRequest():
                    assert event.message["id"] not in self.ids[1:], "an id was used twice"
                    self.ids.append(event.message["id"])
                case ResultReady() | RequestFailed():
                    self.ended[event.call] = self.ended.get(event.call, 0) + 1
                    assert self.ended[event.call] == 1, "a call ended twice"
                    assert event.call.done
                case RequestReceived():
                    self.requests.append(event.request)
                case SessionEnded():
                    self.sessions_ended += 1
                case Reconnect():
                    self.engine.connection_restored(now=self.now)
                case _:
                    pass

    def message(self) -> Any:
        steps = self.steps
        base: dict[str, Any] = {"jsonrpc": "2.0"}
        match steps.byte() % 8:
            case 0 | 1:
                return {**base, "id": steps.choose(self.ids), "result": steps.value()}
            case 2:
                return {**base, "id": steps.choose(self.ids), "result": DISCOVER}
            case 3:
                version = steps.choose(["2025-11-25", "2025-03-26", "2024-11-05", "1999-01-01"])
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {}}
                return {**base, "id": steps.choose(self.ids), "result": result}
            case 4:
                code = steps.choose([-32601, -32602, -32022, -32021, -32700, 0])
                error = {"code": code, "message": "m", "data": {"supported": [steps.value()]}}
                return {**base, "id": steps.choose([*self.ids, None]), "error": error}
            case 5:
                token = steps.choose(self.ids)
                params = {"progressToken": token, "progress": steps.byte(), "requestId": token}
                return {
                    **base,
                    "method": steps.choose(NOTIFICATIONS),
                    "params": {**params, "x": steps.value()},
                }
            case 6:
                method = steps.choose(["ping", "roots/list", "sampling/createMessage", "no/such"])
                return {**base, "id": steps.choose(["a", 1, None]), "method": method, "params": steps.value()}
            case _:
                return steps.choose([b"{", b"[]", b"[1]", steps.take(20), steps.value()])

    def step(self) -> None:
        """One operation. A verb may refuse; an input never raises."""
        steps, engine = self.steps, self.engine
        match steps.byte() % 11:
            case 5:
                self.now += steps.byte()
                engine.handle_timeout(self.now)
            case 7 if steps.byte() % 8 == 0:
                engine.connection_lost(now=self.now, returncode=1, may_restart=steps.byte() % 2 == 0)
            case 0 | 1 | 2 | 3 | 4 | 6 | 8 as verb:
                with contextlib.suppress(LocalProtocolError):
                    self.use(verb)
            case _:
                engine.receive_message(self.message(), now=self.now)

    def use(self, verb: int) -> None:
        steps, engine = self.steps, self.engine
        match verb:
            case 0:
                engine.connect(now=self.now)
            case 1 | 2:
                ask = steps.choose([engine.list_all_tools, engine.list_tools, engine.discover])
                options = {"progress": True} if steps.byte() % 2 else {}
                self.calls.append(ask(now=self.now, **options))
            case 3:
                arguments = {"x": steps.value()}
                self.calls.append(engine.call_tool("t", arguments, now=self.now, progress=True))
            case 4 if self.calls:
                engine.cancel(steps.choose(self.calls), now=self.now)
            case 6 if self.requests:
                engine.respond(steps.choose(self.requests), {"roots": []}, now=self.now)
            case 8 if steps.byte() % 16 == 0:
                engine.close(now=self.now)
            case _:
                pass


def one_input(data: bytes) -> None:
    session = Session(Steps(data))
    for _ in range(400):
        if not session.steps.more:
            break
        session.step()
        session.drain()
        stats = session.engine.stats()
        assert stats["calls"] <= LIMITS.max_pending_calls + 1, stats
        assert stats["ended_ids"] <= LIMITS.max_remembered_ids
    session.engine.close(now=session.now)
    session.drain()
    assert session.sessions_ended == 1, "the end is told exactly once"
    assert all(session.ended.get(call) == 1 for call in session.calls), "a call never ended"
    stats = session.engine.stats()
    assert stats["calls"] == stats["deadlines"] == stats["waiting_ids"] == stats["progress_tokens"] == 0
    assert session.engine.next_timeout() is None
