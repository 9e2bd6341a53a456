"""INVARIANT: whatever a server makes of what a client has (rounds, tasks, subscriptions, what may be kept,
schemas of results), only errors of this library leave the engine, each call ends exactly once, and nothing
is left after the end."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Callable
from typing import Any, Final

from fuzz.steps import Steps
from sansmcp import (
    CacheUse,
    Call,
    ClientCapabilities,
    ClientEngine,
    Implementation,
    InputRequired,
    InvalidAnswer,
    LocalProtocolError,
    Pin,
    Relisten,
    RemoteProtocolError,
    RequestFailed,
    ResponseCache,
    ResultReady,
    Revision,
    RustValidator,
    SendRequest,
    SubscriptionClosed,
)
from sansmcp.extensions.skills import SKILLS_EXTENSION, client_skills, list_skills
from sansmcp.extensions.tasks import TASKS_EXTENSION, ClientTasks, get_task
from sansmcp.types import ElicitationCapability, RootsCapability, SamplingCapability

Json = dict[str, Any]

INFO: Final = Implementation(name="fuzz", version="0")
ABLE: Final = ClientCapabilities(
    elicitation=ElicitationCapability(form={}, url={}), sampling=SamplingCapability(), roots=RootsCapability()
)
KEPT: Final[Json] = {"resultType": "complete", "ttlMs": 1000, "cacheScope": "private"}
DECLARED: Final[Json] = {
    **{kind: {"listChanged": True, "subscribe": True} for kind in ("tools", "resources", "prompts")},
    "extensions": {TASKS_EXTENSION: {}, SKILLS_EXTENSION: {}},
}
SERVER: Final = {"name": "s", "version": "1"}
FORM: Final[Json] = {
    "message": "m",
    "requestedSchema": {"type": "object", "properties": {"a": {"type": "integer", "minimum": 10**400}}},
}
SAMPLE: Final[Json] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?"}}],
    "maxTokens": 9,
}
QUESTIONS: Final[Json] = {
    "f": {"method": "elicitation/create", "params": FORM},
    "s": {"method": "sampling/createMessage", "params": SAMPLE},
    "r": {"method": "roots/list"},
}
ANSWERS: Final[list[Json]] = [
    {"action": "decline"},
    {"action": "accept", "content": {"a": 1}},
    {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"},
    {"roots": []},
]
TASK: Final[Json] = {
    "taskId": "t",
    "status": "working",
    "createdAt": "x",
    "lastUpdatedAt": "y",
    "ttlMs": 5,
    "pollIntervalMs": 10,
}
TOOL: Final[Json] = {
    "name": "t",
    "inputSchema": {"type": "object"},
    "outputSchema": {"type": "object", "properties": {"a": {"$ref": "#"}}},
}
RESULTS: Final[dict[str, Json]] = {
    "server/discover": {
        **KEPT,
        "supportedVersions": ["2026-07-28"],
        "capabilities": DECLARED,
        "serverInfo": SERVER,
    },
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": DECLARED, "serverInfo": SERVER},
    "tools/list": {**KEPT, "tools": [TOOL], "nextCursor": "c"},
    "tools/call": {"resultType": "complete", "content": [], "structuredContent": {"a": {"a": 1}}},
    "resources/read": {**KEPT, "contents": [{"uri": "a://b", "text": "x"}]},
    "skills/list": {**KEPT, "skills": []},
    "tasks/get": {
        **TASK,
        "resultType": "complete",
        "status": "completed",
        "result": {"content": [], "resultType": "complete"},
    },
}
INSTEAD: Final[list[Json]] = [
    {"resultType": "input_required", "inputRequests": QUESTIONS, "requestState": "s"},
    {"resultType": "input_required", "requestState": "s"},
    {**TASK, "resultType": "task", "inputRequests": {}, "result": {}, "error": {}},
    {**TASK, "resultType": "complete", "status": "input_required", "inputRequests": QUESTIONS},
]
NOTIFICATIONS: Final[list[tuple[str, Json]]] = [
    ("notifications/progress", {"progressToken": 0, "progress": 1, "total": 2}),
    ("notifications/tools/list_changed", {"_meta": {"io.modelcontextprotocol/subscriptionId": 0}}),
    ("notifications/resources/updated", {"uri": "a://b"}),
    (
        "notifications/subscriptions/acknowledged",
        {"notifications": {"toolsListChanged": True}, "_meta": {"io.modelcontextprotocol/subscriptionId": 0}},
    ),
    ("notifications/cancelled", {"requestId": 0}),
    ("notifications/tasks", TASK),
    ("notifications/elicitation/complete", {"elicitationId": "i"}),
]
ODD: Final[list[Any]] = [
    None,
    True,
    0,
    -1,
    1.5,
    10**400,
    "",
    "\ud800",
    [],
    {},
    {"a": 5},
    [1],
    "input_required",
]


def changed(steps: Steps, value: Any, name: Any) -> Any:
    """`value` with other things in some of its places, and `name` for each 0."""
    if steps.byte() % 16 == 15:
        return steps.choose(ODD)
    if isinstance(value, dict):
        return {key: changed(steps, member, name) for key, member in value.items() if steps.byte() % 32 != 31}
    if isinstance(value, list):
        return [changed(steps, item, name) for item in value]
    return name if value == 0 and type(value) is int else copy.deepcopy(value)


class Session:
    """One client, what it asked its server, and which of its calls have ended."""

    def __init__(self, steps: Steps) -> None:
        self.steps = steps
        self.now = 0.0
        self.asked: list[Json] = []
        self.calls: list[Call] = []
        self.ended: dict[Call, int] = {}
        use = CacheUse(ResponseCache(), "s", stale_on_error=steps.byte() % 2 == 1)
        self.engine = ClientEngine(
            INFO,
            now=0.0,
            capabilities=ABLE,
            extensions=[ClientTasks(), client_skills()],
            cache=use,
            validator=RustValidator(),
            mode=Pin(steps.choose([Revision.V2026_07_28, Revision.V2025_11_25])),
            strict=steps.byte() % 4 == 3,
        )
        self.engine.connect(now=0.0)
        engine = self.engine
        self.verbs: list[Callable[[], Call]] = [
            lambda: engine.call_tool("t", now=self.now, progress=True),
            lambda: engine.call_tool("t", now=self.now, auto_rounds=False),
            lambda: engine.list_tools(now=self.now),
            lambda: engine.list_all_tools(now=self.now),
            lambda: engine.read_resource("a://b", now=self.now),
            lambda: engine.listen(now=self.now, tools=True, resources=["a://b"], relisten=Relisten()),
            lambda: list_skills(engine, now=self.now),
            lambda: get_task(engine, "t", now=self.now),
        ]

    def drain(self) -> None:
        for event in self.engine.events():
            match event:
                case SendRequest():
                    self.asked.append(event.message)
                case ResultReady() | RequestFailed() | SubscriptionClosed():
                    self.ended[event.call] = self.ended.get(event.call, 0) + 1
                    if isinstance(event, ResultReady):
                        with contextlib.suppress(RemoteProtocolError):
                            _ = event.result
                case InputRequired():
                    answers = {key: self.steps.choose(ANSWERS) for key in event.requests}
                    with contextlib.suppress(LocalProtocolError, InvalidAnswer):
                        self.engine.provide_input(event.round, answers, now=self.now)
            repr(event)

    def answer(self) -> Json:
        steps = self.steps
        message = self.asked.pop(steps.byte() % len(self.asked))
        base = {"jsonrpc": "2.0", "id": message["id"]}
        if steps.byte() % 8 == 7:
            code = steps.choose([-32602, -32601, -32042, -32021, 1])
            pages = [{"mode": "url", "message": "m", "url": "https://a", "elicitationId": "i"}]
            error = {"code": code, "message": "no", "data": {"elicitations": pages}}
            return {**base, "error": changed(steps, error, message["id"])}
        result = RESULTS.get(message["method"], {"resultType": "complete"})
        if message["method"] not in ("server/discover", "initialize") and steps.byte() % 3 == 2:
            result = steps.choose(INSTEAD)
        return {**base, "result": changed(steps, result, message["id"])}

    def step(self) -> None:
        steps, engine = self.steps, self.engine
        match steps.byte() % 8:
            case 0 | 1:
                with contextlib.suppress(LocalProtocolError):
                    self.calls.append(steps.choose(self.verbs)())
            case 2 | 3 | 4 if self.asked:
                engine.receive_message(self.answer(), now=self.now)
            case 5:
                method, params = steps.choose(NOTIFICATIONS)
                name = self.asked[-1]["id"] if self.asked else 1
                message = {"jsonrpc": "2.0", "method": method, "params": changed(steps, params, name)}
                engine.receive_message(message, now=self.now)
            case 6:
                question = QUESTIONS[steps.choose([*QUESTIONS])]
                asked = {"method": question["method"], "params": changed(steps, question.get("params"), 0)}
                message = {"jsonrpc": "2.0", "id": steps.byte(), **asked}
                engine.receive_message(message, now=self.now)
            case _:
                if self.calls and steps.byte() % 4 == 3:
                    engine.cancel(steps.choose(self.calls), now=self.now)
                self.now += steps.byte()
                engine.handle_timeout(self.now)


def one_input(data: bytes) -> None:
    session = Session(Steps(data))
    session.drain()
    for _ in range(200):
        if not session.steps.more:
            break
        session.step()
        session.drain()
    session.engine.close(now=session.now)
    session.drain()
    assert all(session.ended.get(call) == 1 for call in session.calls), "a call did not end once"
    left = {name: size for name, size in session.engine.stats().items() if size}
    assert not left.keys() - {"ended_ids", "output_schemas", "pages"}, left
