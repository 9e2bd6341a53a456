"""Whatever both sides of the tasks extension send is what the extension's own schema says."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for

from sansmcp import InputRequired
from sansmcp.extensions.tasks import ServerTasks
from sansmcp.types import ElicitResult
from tests.facts.make import schema_dir
from tests.tasks_support import NAMED, pair, task_app

SCHEMA = schema_dir() / "ext-tasks.schema.json"

pytestmark = pytest.mark.skipif(not SCHEMA.is_file(), reason="the official schemas are not here")

REQUESTS = {
    "tasks/get": "GetTaskRequest",
    "tasks/update": "UpdateTaskRequest",
    "tasks/cancel": "CancelTaskRequest",
    "notifications/tasks": "TaskStatusNotification",
}
RESULTS = {
    "tools/call": "CreateTaskResult",
    "tasks/get": "GetTaskResult",
    "tasks/update": "UpdateTaskResult",
    "tasks/cancel": "CancelTaskResult",
}
ENDS = {"completed": "CompletedTask", "failed": "FailedTask", "cancelled": "CancelledTask"}


def check(name: str, value: Any) -> None:
    whole = json.loads(SCHEMA.read_text("utf-8"))
    schema = {**whole, "$ref": f"#/$defs/{name}"}
    error = best_match(validator_for(schema)(schema).iter_errors(value))
    assert error is None, f"{name}: {error.json_path}: {error.message[:300]}"


@pytest.mark.req("X3", "X5", "X7", "X8")
def test_both_sides_speak_the_extension() -> None:
    app = task_app(ServerTasks(poll_interval=0.1, ttl=60.0))
    both = pair(app)
    app.attach(lambda action: action(both.server.engine, both.now))
    engine = both.client.engine
    calls = {name: both.call(engine.call_tool, name) for name in ("asks_twice", "says", "fails", "breaks")}
    calls["adds"] = both.call(engine.call_tool, "adds", {"a": 1, "b": 2})
    handle = both.call(engine.call_tool, "asks", task="handle")
    task_id = both.end_of(handle).result.task_id
    both.call(engine.listen, topics={"taskIds": [task_id]})
    both.advance(0.5)
    both.call(engine.cancel, calls["says"])
    for number in range(2):
        asked = [e for e in both.of(InputRequired) if e.call is calls["asks_twice"]][number]
        answers = {key: NAMED if key != "b" else ElicitResult("decline") for key in asked.requests}
        both.call(engine.provide_input, asked.round, answers)
        both.advance(0.5)
    update = {"taskId": task_id, "inputResponses": {"elicit-1": {"action": "decline"}}}
    both.call(engine.request, "tasks/update", update)
    both.advance(1.0)

    methods: dict[Any, str] = {}
    seen: Counter[str] = Counter()
    for _, line in both.trace:
        for text in line.splitlines():
            message = json.loads(text)
            if "method" in message:
                if "id" in message:
                    methods[message["id"]] = message["method"]
                name = REQUESTS.get(message["method"])
                value = message
            else:
                name, value = RESULTS.get(methods[message["id"]]), message.get("result")
            if name is None or value is None or value.get("resultType") == "input_required":
                continue
            if name == "CreateTaskResult" and value["resultType"] != "task":
                continue
            check(name, value)
            seen[name] += 1
            status = value.get("status")
            if status in ENDS:
                check(ENDS[status], value)
                seen[ENDS[status]] += 1
    wanted = {*REQUESTS.values(), *RESULTS.values(), "CompletedTask", "FailedTask"}
    assert wanted <= seen.keys(), wanted - seen.keys()
