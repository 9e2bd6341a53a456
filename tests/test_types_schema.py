"""The classes say what the official schemas say: every object, every member, both directions."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

import pytest

import sansmcp.types
from sansmcp.revisions import Revision
from sansmcp.types import METHODS, WireObject
from sansmcp.types.plan import (
    AnyObject,
    AnyValue,
    Choice,
    FieldPlan,
    ListOf,
    MapOf,
    Mixed,
    Node,
    Object,
    OneOf,
    Scalar,
    plan_for,
)
from tests.facts import make

FACTS: dict[str, Any] = json.loads(make.FACTS.read_text(encoding="utf-8"))
COLUMNS = [*make.REVISIONS, make.TASKS]
OBJECTS = {column: make.spread(FACTS["objects"], column) for column in COLUMNS}

# Objects that the schemas leave without a name, or call differently in some revision.
CLASSES = {
    "Annotated.annotations": "Annotations",
    "EmbeddedResource.annotations": "Annotations",
    "ImageContent.annotations": "Annotations",
    "Resource.annotations": "Annotations",
    "ResourceTemplate.annotations": "Annotations",
    "TextContent.annotations": "Annotations",
    "ClientCapabilities.elicitation": "ElicitationCapability",
    "ClientCapabilities.roots": "RootsCapability",
    "ClientCapabilities.sampling": "SamplingCapability",
    "ClientCapabilities.tasks": "ClientTasksCapability",
    "ClientCapabilities.tasks.requests": "ClientTaskRequestsCapability",
    "ClientCapabilities.tasks.requests.elicitation": "TaskElicitationCapability",
    "ClientCapabilities.tasks.requests.sampling": "TaskSamplingCapability",
    "ServerCapabilities.prompts": "PromptsCapability",
    "ServerCapabilities.resources": "ResourcesCapability",
    "ServerCapabilities.tools": "ToolsCapability",
    "ServerCapabilities.tasks": "ServerTasksCapability",
    "ServerCapabilities.tasks.requests": "ServerTaskRequestsCapability",
    "ServerCapabilities.tasks.requests.tools": "TaskToolsCapability",
    "CompleteRequest.params.argument": "CompletionArgument",
    "CompleteRequest.params.context": "CompletionContext",
    "CompleteRequestParams.argument": "CompletionArgument",
    "CompleteRequestParams.context": "CompletionContext",
    "CompleteResult.completion": "Completion",
    "ElicitRequest.params": "ElicitRequestFormParams",
    "ElicitRequest.params.requestedSchema": "RequestedSchema",
    "ElicitRequestFormParams.requestedSchema": "RequestedSchema",
    "EnumSchema": "LegacyTitledEnumSchema",
    "ResourceReference": "ResourceTemplateReference",
    "TitledMultiSelectEnumSchema.items": "TitledItems",
    "TitledMultiSelectEnumSchema.items.anyOf[]": "TitledOption",
    "TitledSingleSelectEnumSchema.oneOf[]": "TitledOption",
    "UntitledMultiSelectEnumSchema.items": "UntitledItems",
    "JSONRPCError.error": "Error",
    "URLElicitationRequiredError.error.data": "URLElicitationRequiredErrorData",
    "MissingRequiredClientCapabilityError.error.data": "MissingRequiredClientCapabilityErrorData",
    "UnsupportedProtocolVersionError.error.data": "UnsupportedProtocolVersionErrorData",
    "Request.params": "RequestParams",
    "JSONRPCRequest.params": "RequestParams",
    "PaginatedRequest.params": "PaginatedRequestParams",
    "Notification.params": "NotificationParams",
    "JSONRPCNotification.params": "NotificationParams",
    "UpdateTaskRequest.params": "UpdateTaskRequestParams",
    "GetTaskRequest.params": "GetTaskRequestParams",
    "CancelTaskRequest.params": "CancelTaskRequestParams",
    "TaskStatusNotification.params": "TaskStatusNotificationParams",
}

# The extension's objects that are not the core's of the same name.
TASK_CLASSES = {"CreateTaskResult": "TaskResult", "CancelTaskResult": "Result", "UpdateTaskResult": "Result"}

# Objects that no class stands for, and why.
FRAMES = "a JSON-RPC frame: the wire layer's"
AROUND_PARAMS = "only the frame around params: the method table has it"
MIX_IN = "members that other definitions repeat"
NO_CLASS = {
    "Annotated": MIX_IN,
    "BaseMetadata": MIX_IN,
    "Icons": MIX_IN,
    "ResourceContents": MIX_IN,
    "TaskAugmentedRequestParams": MIX_IN,
    "Request": FRAMES,
    "Notification": FRAMES,
    "PaginatedRequest": FRAMES,
    "WorkingTask": "DetailedTask, by status",
    "InputRequiredTask": "DetailedTask, by status",
    "CompletedTask": "DetailedTask, by status",
    "FailedTask": "DetailedTask, by status",
    "CancelledTask": "DetailedTask, by status",
    "TaskSubscriptionAcknowledgedNotifications": "the same as TaskSubscriptionNotifications",
    "Tool.inputSchema": "a JSON Schema, kept as it is",
    "Tool.outputSchema": "a JSON Schema, kept as it is",
}

# Members where we mean to differ: (object, member) → our type, and why.
DIFFERENT = {
    # Which result it is, only the request under the same key tells.
    ("CallToolRequestParams", "inputResponses"): "map<object>",
    ("GetPromptRequestParams", "inputResponses"): "map<object>",
    ("ReadResourceRequestParams", "inputResponses"): "map<object>",
    ("InputResponseRequestParams", "inputResponses"): "map<object>",
    ("UpdateTaskRequest.params", "inputResponses"): "!map<object>",
    # The schema says integer where its source says number.
    ("ElicitResult", "content", "06"): "map<boolean|number|string>",
    ("ElicitResult", "content"): "map<[string]|boolean|number|string>",
    # Other kinds of results have their own class, and their kind for the value.
    ("GetTaskResult", "resultType", "tasks"): "!string",
    ("CreateTaskResult", "resultType", "tasks"): "!string",
    ("CancelTaskResult", "resultType", "tasks"): "!string",
    ("UpdateTaskResult", "resultType", "tasks"): "!string",
}

# Classes that stand for no definition of their own.
OURS = {
    "WireObject": "the base",
    "Unknown": "what a newer peer sends",
    "UnknownContent": "what a newer peer sends",
    "UnknownResourceContents": "what a newer peer sends",
    "UnknownSchema": "what a newer peer sends",
    "UnknownInputRequest": "what a newer peer sends",
    "CacheablePage": "PaginatedResult and CacheableResult in one",
    "ListChangedCapability": "base of three",
    "ListRootsRequestParams": "compared through the method table",
}

KINDS = {"str": "string", "int": "integer", "float": "number", "bool": "boolean"}


def revision_of(column: str) -> Revision:
    return Revision(make.REVISIONS["26" if column == make.TASKS else column])


def class_for(name: str, column: str) -> type[WireObject] | None:
    """Return the class that stands for an object of the schema, None where there should be none."""
    if name in NO_CLASS or name.endswith("._meta"):
        return None
    if column == make.TASKS and name in TASK_CLASSES:
        return class_named(TASK_CLASSES[name])
    if name in CLASSES:
        return class_named(CLASSES[name])
    if name.endswith(".params"):
        method = OBJECTS[column][name.removesuffix(".params")]["method"]
        return METHODS[json.loads(method.removeprefix("!"))].params
    members = OBJECTS[column].get(name) or OBJECTS[make.NEWEST][name]
    if "jsonrpc" in members or name.startswith("JSONRPC"):
        return None
    if "method" in members and revision_of(column) < Revision.V2026_07_28:
        return None
    if name.endswith(("Error", "Error.error")) and name != "Error":
        return None
    return class_named(name)


def class_named(name: str) -> type[WireObject]:
    found: type[WireObject] = getattr(sansmcp.types, name)
    return found


def normal(text: str, column: str) -> str:
    """Return a type of the facts with our classes in the place of the schema's names."""
    parts = set()
    for part in make.split(text):
        if part.startswith("["):
            parts.add(f"[{normal(part[1:-1], column)}]")
        elif part.startswith("map<"):
            parts.add(f"map<{normal(part[4:-1], column)}>")
        elif part[0].isupper():
            cls = class_for(part, column)
            parts.add("object" if cls is None or part.endswith("MetaObject") else cls.__name__)
        else:
            parts.add(part)
    return "|".join(sorted(parts))


def ours(node: Node, revision: Revision) -> str:
    """Return the type that one of our fields has, in the words of the facts."""
    match node:
        case Scalar(kinds):
            names = {KINDS[kind] for kind in kinds}
            return "|".join(sorted(names - {"integer"} if "number" in names else names))
        case Choice(values):
            return "|".join(sorted(json.dumps(value) for value in values))
        case AnyValue():
            return "any"
        case AnyObject():
            return "object"
        case ListOf(item, or_single):
            inner = ours(item, revision)
            return "|".join(sorted([*make.split(inner), f"[{inner}]"])) if or_single else f"[{inner}]"
        case MapOf(value):
            return f"map<{ours(value, revision)}>"
        case Object(cls):
            return cls.__name__ if our_members(cls, revision) else "object"
        case OneOf(members):
            return "|".join(sorted(c.__name__ for c in members if c.__wire__.exists_in(revision)))
        case Mixed(scalar, array):
            return "|".join(sorted([*make.split(ours(scalar, revision)), ours(array, revision)]))
    raise AssertionError(node)


def our_member(f: FieldPlan, revision: Revision) -> str:
    text = ours(f.node, revision)
    if f.nullable and text != "any":
        text += "|null"
    return ("!" if f.required else "") + text


def our_members(cls: type[WireObject], revision: Revision) -> dict[str, str]:
    plan = plan_for(cls, revision)
    members = {f.name: our_member(f, revision) for f in plan.known}
    if plan.tag is not None:
        members[plan.tag[0]] = "!" + json.dumps(plan.tag[1])
    return members


def rows() -> Iterator[tuple[str, str]]:
    for column in COLUMNS:
        for name in OBJECTS[column]:
            yield column, name


def all_classes() -> set[type[WireObject]]:
    for name in sansmcp.types.__all__:
        getattr(sansmcp.types, name)
    found: set[type[WireObject]] = set()
    waiting: list[type[WireObject]] = [WireObject]
    while waiting:
        cls = waiting.pop()
        waiting += cls.__subclasses__()
        # attrs leaves the class it made the one with slots from; extensions have schemas of their own.
        if (
            not cls.__module__.startswith("sansmcp.extensions.")
            and getattr(sys.modules[cls.__module__], cls.__name__, None) is cls
        ):
            found.add(cls)
    return found


@pytest.mark.req("A18")
@pytest.mark.parametrize(("column", "name"), list(rows()))
def test_object(column: str, name: str) -> None:
    """Each object of the schema has a class with the same members, types and required flags."""
    cls = class_for(name, column)
    if cls is None:
        return
    revision = revision_of(column)
    assert cls.__wire__.exists_in(revision)
    expected = {}
    for member, told in OBJECTS[column][name].items():
        required = "!" if told.startswith("!") else ""
        text = required + ("object" if member == "_meta" else normal(told.removeprefix("!"), column))
        text = DIFFERENT.get((name, member), text)
        expected[member] = DIFFERENT.get((name, member, column), text)
    members = our_members(cls, revision)
    if name.endswith(".params"):
        # Inline params leave `_meta` to the frame.
        members.pop("_meta", None)
        expected.pop("_meta", None)
    assert members == expected


@pytest.mark.req("A18")
@pytest.mark.parametrize("column", list(make.REVISIONS))
def test_nothing_beyond_the_schema(column: str) -> None:
    """Each class that says it exists in a revision stands for an object of its schema."""
    revision = revision_of(column)
    columns = [column, make.TASKS] if column == "26" else [column]
    covered = {class_for(name, c) for c in columns for name in OBJECTS[c]}
    claimed = {c for c in all_classes() if c.__wire__.exists_in(revision) and c.__name__ not in OURS}
    # An object without members is a class only where another revision gives it some.
    empty = {
        "24": {"SamplingCapability"},
        "03": {"SamplingCapability"},
        "06": {"SamplingCapability", "ElicitationCapability"},
        "26": {"RootsCapability"},
    }
    assert {c.__name__ for c in claimed - covered} == empty.get(column, set())


@pytest.mark.parametrize("column", list(make.REVISIONS))
def test_names_for_unions_and_scalars(column: str) -> None:
    """What the schema only gives a name to has the same name here, or is spelled out."""
    spelled_out = {
        "ClientNotification", "ClientRequest", "ClientResult", "ServerNotification", "ServerRequest",
        "ServerResult", "JSONArray", "JSONRPCBatchRequest", "JSONRPCBatchResponse", "JSONRPCMessage",
        "JSONRPCResponse", "JSONObject", "JSONValue", "MetaObject", "ResultType", "EnumSchema",
        "MultiSelectEnumSchema", "SingleSelectEnumSchema", "InputRequests", "InputResponse",
        "InputResponses",
    }  # fmt: skip
    for name, columns in FACTS["names"].items():
        if column in columns.split() and name not in spelled_out:
            assert hasattr(sansmcp.types, name), name


def test_facts_are_those_of_the_schemas() -> None:
    if not make.schema_dir().is_dir():
        pytest.skip("the official schemas are not here")
    assert make.FACTS.read_text(encoding="utf-8") == make.dumps(make.make())
