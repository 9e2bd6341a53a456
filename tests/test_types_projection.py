"""Writing the protocol's objects, and projecting them to what a revision has."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import sansmcp.types as t
from sansmcp.errors import LocalProtocolError
from sansmcp.revisions import ALL_REVISIONS, LEGACY_REVISIONS, Revision
from sansmcp.types import project, structure, unstructure
from sansmcp.types.plan import ListOf, Object, plan_for

V24, V03, V06, V11, V26 = ALL_REVISIONS

TOOL: dict[str, Any] = {"name": "t", "inputSchema": {"type": "object"}}
TEXT: dict[str, Any] = {"type": "text", "text": "x"}

# What a 2026-07-28 object looks like to each peer.
LINK = {"type": "resource_link", "uri": "a:b", "name": "b", "description": "d", "icons": [{"src": "i"}]}
AUDIO = {"type": "audio", "data": "AA==", "mimeType": "audio/wav"}
MARKED = {
    "type": "text",
    "text": "x",
    "annotations": {"priority": 1, "lastModified": "2025"},
    "_meta": {"a": 1},
}
RICH = {
    "content": [LINK, AUDIO, MARKED],
    "structuredContent": {"a": 1},
    "resultType": "complete",
    "vendor": 1,
    "_meta": {"b": 2},
}
LINK_TEXT = {"type": "text", "text": "b: d\na:b"}
OLD_MARKED = {"type": "text", "text": "x", "annotations": {"priority": 1}}
PROJECTED: list[tuple[Any, dict[str, Any], dict[Revision, dict[str, Any]]]] = [
    (
        t.CallToolResult,
        RICH,
        {
            V24: {
                "content": [LINK_TEXT, {"type": "text", "text": "[audio/wav audio]"}, OLD_MARKED],
                "vendor": 1,
                "_meta": {"b": 2},
            },
            V03: {"content": [LINK_TEXT, AUDIO, OLD_MARKED], "vendor": 1, "_meta": {"b": 2}},
            V06: {
                "content": [{k: v for k, v in LINK.items() if k != "icons"}, AUDIO, MARKED],
                "structuredContent": {"a": 1},
                "vendor": 1,
                "_meta": {"b": 2},
            },
            V11: {k: v for k, v in RICH.items() if k != "resultType"},
            V26: RICH,
        },
    ),
    (
        t.CallToolResult,
        {"content": [], "structuredContent": [1], "resultType": "complete"},
        {
            V06: {"content": []},
            V11: {"content": []},
            V26: {"content": [], "structuredContent": [1], "resultType": "complete"},
        },
    ),
    (
        t.ListToolsResult,
        {
            "tools": [
                {
                    **TOOL,
                    "title": "T",
                    "annotations": {"readOnlyHint": True},
                    "icons": [{"src": "i"}],
                    "outputSchema": {"type": "array"},
                    "_meta": {},
                }
            ],
            "resultType": "complete",
            "ttlMs": 5,
            "cacheScope": "public",
        },
        {
            V24: {"tools": [TOOL]},
            V03: {"tools": [{**TOOL, "annotations": {"readOnlyHint": True}}]},
            V06: {"tools": [{**TOOL, "title": "T", "annotations": {"readOnlyHint": True}, "_meta": {}}]},
            V11: {
                "tools": [
                    {
                        **TOOL,
                        "title": "T",
                        "annotations": {"readOnlyHint": True},
                        "_meta": {},
                        "icons": [{"src": "i"}],
                    }
                ]
            },
        },
    ),
    (
        t.ServerCapabilities,
        {"completions": {}, "tools": {"listChanged": True}, "extensions": {"a/b": {}}},
        {
            V24: {"tools": {"listChanged": True}},
            V11: {"completions": {}, "tools": {"listChanged": True}},
        },
    ),
    (
        t.Implementation,
        {"name": "n", "version": "1", "title": "N", "websiteUrl": "https://a.example"},
        {V24: {"name": "n", "version": "1"}, V06: {"name": "n", "version": "1", "title": "N"}},
    ),
    (
        t.CreateMessageRequestParams,
        {
            "messages": [
                {"role": "user", "content": [TEXT]},
                {
                    "role": "user",
                    "content": [TEXT, {"type": "tool_use", "id": "1", "name": "t", "input": {}}],
                },
                {
                    "role": "user",
                    "content": {"type": "tool_result", "toolUseId": "1", "content": [TEXT, TEXT]},
                },
                {"role": "user", "content": TEXT},
            ],
            "maxTokens": 1,
            "tools": [TOOL],
        },
        {
            V06: {
                "messages": [
                    {"role": "user", "content": TEXT},
                    {"role": "user", "content": {"type": "text", "text": "x\n[use of tool t]"}},
                    {"role": "user", "content": {"type": "text", "text": "x\nx"}},
                    {"role": "user", "content": TEXT},
                ],
                "maxTokens": 1,
            },
        },
    ),
    (
        t.ElicitRequestFormParams,
        {
            "mode": "form",
            "message": "m",
            "requestedSchema": {
                "type": "object",
                "$schema": "s",
                "properties": {
                    "a": {"type": "string", "default": "x", "minLength": 1},
                    "b": {"type": "string", "oneOf": [{"const": "1", "title": "one"}], "title": "B"},
                    "c": {"type": "string", "enum": ["1"], "default": "1"},
                },
            },
        },
        {
            V06: {
                "message": "m",
                "requestedSchema": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "minLength": 1},
                        "b": {"type": "string", "enum": ["1"], "enumNames": ["one"], "title": "B"},
                        "c": {"type": "string", "enum": ["1"]},
                    },
                },
            },
        },
    ),
]


@pytest.mark.req("A18", "D3")
@pytest.mark.parametrize(
    ("cls", "raw", "revision", "expected"),
    [(cls, raw, r, expected) for cls, raw, table in PROJECTED for r, expected in table.items()],
)
def test_projection(cls: Any, raw: dict[str, Any], revision: Revision, expected: dict[str, Any]) -> None:
    """Typed and raw objects become the same for an older peer."""
    before = copy.deepcopy(raw)
    typed = structure(raw, cls, V26, strict=True)
    assert unstructure(typed, revision) == expected
    assert project(raw, cls, revision) == expected
    assert raw == before
    assert project(expected, cls, revision) is expected


@pytest.mark.req("D3")
def test_modern_members_are_added_for_modern_peers_only() -> None:
    page = t.ListToolsResult([])
    assert unstructure(page, V26) == {
        "tools": [],
        "resultType": "complete",
        "ttlMs": 0,
        "cacheScope": "private",
    }
    for revision in LEGACY_REVISIONS:
        assert unstructure(page, revision) == {"tools": []}
        raw: dict[str, Any] = {"tools": []}
        assert project(raw, t.ListToolsResult, revision) is raw
    assert project({"tools": []}, t.ListToolsResult, V26) == unstructure(page, V26)
    page = t.ListToolsResult([], ttl_ms=7, cache_scope="public")
    assert unstructure(page, V26)["ttlMs"] == 7
    # A result of another kind has its own members.
    other = {"resultType": "input_required", "requestState": "s"}
    assert project(other, t.ReadResourceResult, V26) is other


def test_projection_leaves_alone_what_it_does_not_know() -> None:
    raw = {
        "content": [5, {"type": "video"}, {"type": ["audio"]}, {"type": "audio", "data": 5}],
        "isError": "x",
    }
    assert project(raw, t.CallToolResult, V24) is raw
    assert project({"tools": 5}, t.ListToolsResult, V24) == {"tools": 5}
    assert project({"tools": [5]}, t.ListToolsResult, V24) == {"tools": [5]}


UNSUPPORTED: list[tuple[Any, Revision, str]] = [
    (t.Tool("t", {"type": "object"}, title="T"), V24, "Tool.title: Tool.title does not exist in 2024-11-05"),
    (
        t.CallToolResult([], structured_content=None),
        V03,
        "CallToolResult.structuredContent does not exist in",
    ),
    (
        t.CallToolResult([], structured_content=[1]),
        V11,
        "CallToolResult.structuredContent: expected an object",
    ),
    (
        t.CallToolResult([t.ResourceLink("a:b", "b")]),
        V03,
        "CallToolResult.content[0]: this ResourceLink cannot",
    ),
    (
        t.CallToolRequestParams("t", request_state="s"),
        V11,
        "CallToolRequestParams.requestState does not exist in",
    ),
    (
        t.CallToolRequestParams("t", task=t.TaskMetadata()),
        V26,
        "CallToolRequestParams.task does not exist in",
    ),
    (
        t.ClientCapabilities(elicitation=t.ElicitationCapability()),
        V03,
        "ClientCapabilities.elicitation does not",
    ),
    (
        t.ProgressNotificationParams(1, 1, message="m"),
        V24,
        "ProgressNotificationParams.message does not exist in",
    ),
]


@pytest.mark.req("A18", "B12")
@pytest.mark.parametrize(("obj", "revision", "message"), UNSUPPORTED)
def test_unsupported_is_an_error_when_asked_for(obj: Any, revision: Revision, message: str) -> None:
    unstructure(obj, revision)
    with pytest.raises(LocalProtocolError) as caught:
        unstructure(obj, revision, unsupported="error")
    assert message in str(caught.value)
    assert revision in str(caught.value) or "expected" in str(caught.value)


CANNOT: list[tuple[Any, Revision, str]] = [
    (t.DiscoverResult([], t.ServerCapabilities()), V11, "DiscoverResult cannot be expressed in 2025-11-25"),
    (t.InputRequiredResult(), V11, "InputRequiredResult cannot be expressed"),
    (t.ListTasksResult([]), V26, "ListTasksResult does not exist in 2026-07-28"),
    (t.ElicitRequestURLParams("m", "https://a.example"), V06, "ElicitRequestURLParams cannot be expressed"),
    (t.ElicitRequestURLParams("m", "https://a.example"), V11, "elicitationId is required in 2025-11-25"),
    (t.CancelledNotificationParams(), V26, "requestId is required in 2026-07-28"),
    (t.ElicitResult("accept", {"a": ["x"]}), V06, "ElicitResult.content.a: expected"),
    (
        t.SamplingMessage("user", [t.TextContent("x"), t.ImageContent("", "image/png")]),
        V06,
        "SamplingMessage cannot be expressed",
    ),
    (t.TextContent(5), V26, "TextContent.text: expected a string, got 5"),  # type: ignore[arg-type]
    (t.CallToolResult([5]), V26, "CallToolResult.content[0]: expected TextContent or"),  # type: ignore[list-item]
    (t.CallToolResult(None), V26, "CallToolResult.content: content is required"),  # type: ignore[arg-type]
    (t.CallToolResult([t.TextContent(None)]), V26, "CallToolResult.content[0].text: text is"),  # type: ignore[arg-type]
    (
        t.CompleteRequestParams(TEXT, t.CompletionArgument("a", "")),  # type: ignore[arg-type]
        V26,
        "CompleteRequestParams.ref: expected",
    ),
    (t.Tool("t", []), V26, "Tool.inputSchema: expected an object, got an array"),  # type: ignore[arg-type]
    (5, V26, "int is no protocol object"),
]


@pytest.mark.req("A18")
@pytest.mark.parametrize(("obj", "revision", "message"), CANNOT)
@pytest.mark.parametrize("unsupported", ["drop", "error"])
def test_what_cannot_be_written(obj: Any, revision: Revision, message: str, unsupported: Any) -> None:
    with pytest.raises(LocalProtocolError) as caught:
        unstructure(obj, revision, unsupported=unsupported)
    assert message in str(caught.value)


def test_projecting_what_cannot_be_expressed() -> None:
    raw: dict[str, Any] = {
        "role": "user",
        "content": [TEXT, {"type": "image", "data": "", "mimeType": "image/png"}],
    }
    with pytest.raises(LocalProtocolError, match="cannot be expressed in 2025-06-18"):
        project(raw, t.SamplingMessage, V06)


def test_a_stand_in_of_a_subclass() -> None:
    """Applications may give a class methods of their own."""

    class Shouting(t.TextContent):
        __slots__ = ()

    assert unstructure(t.CallToolResult([Shouting("x")]), V11) == {"content": [TEXT]}


def test_tuples_are_arrays_when_written() -> None:
    assert unstructure(t.CallToolResult((t.TextContent("x"),)), V11) == {"content": [TEXT]}  # type: ignore[arg-type]


@pytest.mark.req("X9")
def test_both_forms_of_tasks() -> None:
    task = t.Task("1", "working", "a", "b", None, poll_interval_ms=5)
    common = {"taskId": "1", "status": "working", "createdAt": "a", "lastUpdatedAt": "b"}
    old = {**common, "ttl": None, "pollInterval": 5}
    new = {**common, "ttlMs": None, "pollIntervalMs": 5}
    assert unstructure(task, V11) == old
    assert unstructure(task, V26) == new
    assert structure(old, t.Task, V11) == structure(new, t.Task, V26) == task
    assert project(old, t.Task, V26) == new
    assert project(new, t.Task, V11) == old
    payload = {"content": [], "isError": True}
    assert unstructure(structure(payload, t.GetTaskPayloadResult, V11), V11) == payload


def test_discriminators_are_always_written() -> None:
    assert unstructure(t.TextContent("x"), V26)["type"] == "text"
    assert unstructure(t.CallToolResult([]), V26)["resultType"] == "complete"
    assert unstructure(t.InputRequiredResult(), V26)["resultType"] == "input_required"
    assert unstructure(t.TaskResult("1", "working", "a", "b", 1), V26)["resultType"] == "task"
    form = t.ElicitRequestFormParams("m", t.RequestedSchema({}))
    assert unstructure(form, V26)["mode"] == "form"
    assert "mode" not in unstructure(form, V06)
    # Whoever leaves it out finds it left out.
    raw: dict[str, Any] = {"message": "m", "requestedSchema": {"type": "object", "properties": {}}}
    assert unstructure(structure(raw, t.ElicitRequestParams, V26), V26) == raw


def test_a_projector_is_made_once() -> None:
    from sansmcp.types.projection import _projectors

    project({"name": "x"}, t.CallToolRequestParams, V26)
    made = len(_projectors(V26).made)
    for _ in range(100):
        project({"name": "x", "arguments": {}}, t.CallToolRequestParams, V26)
    assert len(_projectors(V26).made) == made


def parts_of(cls: type[t.WireObject], revision: Revision) -> set[type[t.WireObject]]:
    """The class and those that its objects are made of."""
    found, waiting = set(), [cls]
    while waiting:
        cls = waiting.pop()
        found.add(cls)
        for field in plan_for(cls, revision).known:
            node = field.node.item if isinstance(field.node, ListOf) else field.node
            if isinstance(node, Object) and node.cls not in found:
                waiting.append(node.cls)
    return found


def shape(node: Any) -> Any:
    parts = getattr(node, "__match_args__", None)
    return node if parts is None else (type(node), *(shape(getattr(node, name)) for name in parts))


@pytest.mark.parametrize("revision", LEGACY_REVISIONS)
@pytest.mark.parametrize("cls", [t.Implementation, t.ClientCapabilities])
def test_what_a_client_says_of_itself_has_the_most_members_in_the_newest_legacy_revision(
    cls: type[t.WireObject], revision: Revision
) -> None:
    newest = LEGACY_REVISIONS[-1]
    assert parts_of(cls, revision) <= parts_of(cls, newest)
    for part in parts_of(cls, revision):
        then = {f.attribute: shape(f.node) for f in plan_for(part, revision).known}
        now = {f.attribute: shape(f.node) for f in plan_for(part, newest).known}
        assert {name: now[name] for name in then} == then
