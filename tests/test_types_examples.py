"""Examples go through the classes and back without loss: the official ones, and some of our own."""

from __future__ import annotations

import json
from typing import Any

import pytest

import sansmcp.types
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.types import METHODS, project, structure, unstructure
from tests.facts import make

EXAMPLES = make.schema_dir() / "examples"
OFFICIAL = sorted(EXAMPLES.glob("*/*.json")) if EXAMPLES.is_dir() else []
NEWEST = Revision.V2026_07_28

V24, V03, V06, V11, V26 = ALL_REVISIONS
# Class, revisions, object: whatever members the class has, at least once.
OWN: list[tuple[str, tuple[Revision, ...], dict[str, Any]]] = [
    (
        "TextContent",
        ALL_REVISIONS,
        {"type": "text", "text": "", "annotations": {"audience": [], "priority": 0}},
    ),
    (
        "TextContent",
        (V06, V11, V26),
        {"type": "text", "text": "x", "_meta": {"a/b": None}, "new": [{"y": None}]},
    ),
    ("AudioContent", (V03, V06, V11, V26), {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}),
    ("EmbeddedResource", ALL_REVISIONS, {"type": "resource", "resource": {"uri": "a:b", "blob": "AA=="}}),
    ("ResourceLink", (V06, V11, V26), {"type": "resource_link", "uri": "a:b", "name": "b", "size": 2**60}),
    ("CallToolResult", (V24, V03, V06, V11), {"content": [], "isError": False, "_meta": {}}),
    (
        "CallToolResult",
        (V06, V11),
        {"content": [{"type": "text", "text": "1"}], "structuredContent": {"n": 1}},
    ),
    ("CallToolResult", (V26,), {"content": [], "structuredContent": None, "resultType": "complete"}),
    ("CallToolResult", (V26,), {"content": [], "structuredContent": [1.5, 2**70], "resultType": "complete"}),
    (
        "Tool",
        (V11,),
        {
            "name": "t",
            "title": "T",
            "description": "d",
            "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#/x"}}, "required": ["a"]},
            "outputSchema": {"type": "object", "$schema": "x"},
            "annotations": {
                "title": "t",
                "readOnlyHint": True,
                "destructiveHint": False,
                "openWorldHint": True,
            },
            "icons": [{"src": "https://example.com/i.png", "sizes": ["any"], "theme": "dark"}],
            "execution": {"taskSupport": "optional"},
            "_meta": {"x": 1},
        },
    ),
    (
        "Tool",
        (V26,),
        {"name": "t", "inputSchema": {"type": "object", "oneOf": []}, "outputSchema": {"enum": [1]}},
    ),
    ("ListToolsResult", (V24, V03, V06, V11), {"tools": [], "nextCursor": ""}),
    (
        "InitializeResult",
        (V24, V03, V06, V11),
        {
            "protocolVersion": "2025-03-26",
            "capabilities": {"tools": {}, "resources": {"subscribe": True}, "logging": {}, "future": True},
            "serverInfo": {"name": "s", "version": "1"},
            "instructions": "none",
        },
    ),
    (
        "ClientCapabilities",
        (V11,),
        {
            "roots": {"listChanged": True},
            "sampling": {"context": {}, "tools": {}},
            "elicitation": {"form": {}, "url": {}},
            "experimental": {"x": {"y": 1}},
            "tasks": {
                "list": {},
                "cancel": {},
                "requests": {"sampling": {"createMessage": {}}, "elicitation": {}},
            },
        },
    ),
    ("ServerCapabilities", (V11,), {"tasks": {"requests": {"tools": {"call": {}}}}, "completions": {}}),
    ("ElicitResult", (V06,), {"action": "accept", "content": {"a": "x", "b": 1, "c": 1.5, "d": True}}),
    ("ElicitResult", (V11, V26), {"action": "accept", "content": {"a": ["x"], "b": False}}),
    (
        "ElicitRequestFormParams",
        (V06,),
        {
            "message": "m",
            "requestedSchema": {
                "type": "object",
                "properties": {
                    "e": {"type": "string", "enum": ["a"], "enumNames": ["A"]},
                    "f": {"type": "string", "enum": ["a"]},
                    "n": {"type": "integer", "minimum": 0.5},
                    "b": {"type": "boolean", "default": False},
                },
                "required": [],
            },
        },
    ),
    (
        "ElicitRequestParams",
        (V11,),
        {"mode": "url", "message": "m", "url": "https://a.example", "elicitationId": "1"},
    ),
    ("ElicitRequestParams", (V26,), {"mode": "url", "message": "m", "url": "https://a.example"}),
    (
        "CreateMessageRequestParams",
        (V11, V26),
        {
            "messages": [
                {"role": "user", "content": {"type": "text", "text": "x"}},
                {"role": "assistant", "content": [{"type": "tool_use", "id": "1", "name": "t", "input": {}}]},
                {"role": "user", "content": [{"type": "tool_result", "toolUseId": "1", "content": []}]},
            ],
            "maxTokens": 5,
            "temperature": 0,
            "tools": [{"name": "t", "inputSchema": {"type": "object"}}],
            "toolChoice": {"mode": "none"},
            "modelPreferences": {"hints": [{"name": "x"}, {}], "costPriority": 1},
        },
    ),
    (
        "CompleteRequestParams",
        (V06, V11),
        {
            "ref": {"type": "ref/resource", "uri": "a://{b}"},
            "argument": {"name": "b", "value": ""},
            "context": {"arguments": {"c": "d"}},
            "_meta": {"progressToken": 0},
        },
    ),
    ("CancelledNotificationParams", ALL_REVISIONS, {"requestId": "1", "reason": "why"}),
    ("CancelledNotificationParams", (V11,), {}),
    (
        "ProgressNotificationParams",
        (V03, V06, V11, V26),
        {"progressToken": 1, "progress": 1, "total": 2.5, "message": ""},
    ),
    (
        "GetTaskResult",
        (V11,),
        {
            "taskId": "1",
            "status": "working",
            "createdAt": "a",
            "lastUpdatedAt": "b",
            "ttl": None,
            "pollInterval": 5,
        },
    ),
    (
        "GetTaskResult",
        (V26,),
        {
            "resultType": "complete",
            "taskId": "1",
            "status": "failed",
            "createdAt": "a",
            "lastUpdatedAt": "b",
            "ttlMs": 5,
            "error": {"code": -32603, "message": "m", "data": None},
        },
    ),
    (
        "TaskResult",
        (V26,),
        {
            "resultType": "task",
            "taskId": "1",
            "status": "working",
            "createdAt": "a",
            "lastUpdatedAt": "b",
            "ttlMs": None,
        },
    ),
    (
        "CreateTaskResult",
        (V11,),
        {
            "task": {"taskId": "1", "status": "working", "createdAt": "a", "lastUpdatedAt": "b", "ttl": 1},
        },
    ),
    (
        "InputRequiredResult",
        (V26,),
        {
            "resultType": "input_required",
            "requestState": "s",
            "inputRequests": {
                "a": {"method": "roots/list"},
                "b": {
                    "method": "elicitation/create",
                    "params": {"message": "m", "requestedSchema": {"type": "object", "properties": {}}},
                },
            },
        },
    ),
    (
        "SubscriptionFilter",
        (V26,),
        {"toolsListChanged": True, "resourceSubscriptions": ["a:b"], "taskIds": ["1"]},
    ),
]


def there_and_back(value: Any, cls: Any, revision: Revision) -> None:
    tolerances: list[str] = []
    typed = structure(value, cls, revision, tolerances=tolerances)
    assert tolerances == []
    assert structure(value, cls, revision, strict=True) == typed
    assert unstructure(typed, revision) == value
    assert unstructure(typed, revision, unsupported="error") == value
    assert structure(unstructure(typed, revision), cls, revision) == typed
    assert project(value, cls, revision) is value


def part_of(name: str, example: dict[str, Any]) -> tuple[Any, Any]:
    """Return the class and the part of an example that is not the frame around a message."""
    if name == "InputRequests":
        return dict[str, sansmcp.types.InputRequest], example
    if name == "InputResponses":
        return None, example
    if name.endswith("ResultResponse"):
        name, example = name.removesuffix("Response"), example["result"]
        if example["resultType"] == "input_required":
            name = "InputRequiredResult"
    elif "jsonrpc" in example and "method" in example:
        return METHODS[example["method"]].params, example.get("params")
    elif name.endswith("Error"):
        return sansmcp.types.Error, example.get("error", example)
    return getattr(sansmcp.types, name), example


# This one lacks what its own schema requires.
FLAWED = "read-resource-result-response"


@pytest.mark.req("B10")
@pytest.mark.parametrize("path", OFFICIAL, ids=[f"{p.parent.name}-{p.stem}" for p in OFFICIAL])
def test_official(path: Any) -> None:
    cls, value = part_of(path.parent.name, json.loads(path.read_text(encoding="utf-8")))
    if cls is None or value is None:
        return
    if path.stem == FLAWED:
        value = {**value, "ttlMs": 0, "cacheScope": "private"}
    if isinstance(cls, type):
        there_and_back(value, cls, NEWEST)
    else:
        typed = structure(value, cls, NEWEST, strict=True)
        if not isinstance(typed, dict):
            typed, value = {"": typed}, {"": value}
        assert {key: unstructure(item, NEWEST) for key, item in typed.items()} == value


def test_official_examples_are_here() -> None:
    if not OFFICIAL:
        pytest.skip("the official examples are not here")
    assert len(OFFICIAL) > 100


@pytest.mark.req("B10", "X9")
@pytest.mark.case("J-07", "J-18")
@pytest.mark.parametrize(
    ("name", "revision", "value"),
    [(name, revision, value) for name, revisions, value in OWN for revision in revisions],
)
def test_own(name: str, revision: Revision, value: dict[str, Any]) -> None:
    there_and_back(value, getattr(sansmcp.types, name), revision)
