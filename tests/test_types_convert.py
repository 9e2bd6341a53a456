"""Reading the protocol's objects: what is refused, tolerated and kept."""

from __future__ import annotations

import copy
import pickle
import sys
from typing import Any

import attrs
import pytest

import sansmcp.types as t
from sansmcp.errors import LocalProtocolError
from sansmcp.revisions import ALL_REVISIONS, Revision
from sansmcp.types import UNSET, StructureError, structure, unstructure

V24, V03, V06, V11, V26 = ALL_REVISIONS

TOOL: dict[str, Any] = {"name": "t", "inputSchema": {"type": "object"}}
TEXT: dict[str, Any] = {"type": "text", "text": "x"}

LEVELS = "debug, info, notice, warning, error, critical, alert, emergency"


def result(**members: Any) -> dict[str, Any]:
    return {"content": [], "resultType": "complete", **members}


# Class, revision, JSON, and the error it must give, strictly and not.
WRONG: list[tuple[Any, Revision, Any, str]] = [
    (t.TextContent, V26, {"type": "text", "text": 5}, "$.text: expected a string, got 5"),
    (t.TextContent, V26, {"type": "text", "text": None}, "$.text: expected a string, got null"),
    (t.TextContent, V26, {"type": "text"}, "$.text: required, but missing"),
    (t.TextContent, V26, {"text": "x"}, "$.type: required, but missing"),
    (t.TextContent, V26, {"type": "image", "text": "x"}, "$.type: expected 'text', got 'image'"),
    (t.TextContent, V26, ["x"], "$: expected an object, got an array"),
    (t.TextContent, V26, None, "$: expected an object, got null"),
    (t.CallToolResult, V26, result(content={}), "$.content: expected an array, got an object"),
    (t.CallToolResult, V26, result(content=[TEXT, 5]), "$.content[1]: expected an object, got 5"),
    (
        t.CallToolResult,
        V26,
        result(content=[{"type": "text", "text": True}]),
        "$.content[0].text: expected a string, got true",
    ),
    (
        t.CallToolResult,
        V26,
        result(content=[{"type": 5}]),
        "$.content[0]: expected a string in 'type', got 5",
    ),
    (t.CallToolResult, V26, result(isError="true"), "$.isError: expected a boolean, got 'true'"),
    (t.CallToolResult, V26, result(isError=1), "$.isError: expected a boolean, got 1"),
    (t.CallToolResult, V26, result(resultType=5), "$.resultType: expected a string, got 5"),
    (t.ListToolsResult, V11, {"tools": [], "nextCursor": 5}, "$.nextCursor: expected a string, got 5"),
    (t.ListTasksResult, V11, {"tasks": [], "nextCursor": 5}, "$.nextCursor: expected a string, got 5"),
    (
        t.ListToolsResult,
        V11,
        {"tools": [TOOL, {"name": "u"}]},
        "$.tools[1].inputSchema: required, but missing",
    ),
    (t.Completion, V26, {"values": ["a", 1]}, "$.values[1]: expected a string, got 1"),
    (
        t.GetPromptRequestParams,
        V11,
        {"name": "p", "arguments": {"a": 1}},
        "$.arguments.a: expected a string, got a number",
    ),
    (
        t.GetPromptRequestParams,
        V11,
        {"name": "p", "arguments": {"a/b": []}},
        '$.arguments["a/b"]: expected a string, got an array',
    ),
    (
        t.CallToolRequestParams,
        V11,
        {"name": "t", "arguments": []},
        "$.arguments: expected an object, got an array",
    ),
    (
        t.SetLevelRequestParams,
        V11,
        {"level": "loud"},
        f"$.level: expected one of {LEVELS}, got 'loud'",
    ),
    (
        t.SetLevelRequestParams,
        V11,
        {"level": ["info"]},
        f"$.level: expected one of {LEVELS}, got an array",
    ),
    (
        t.CancelledNotificationParams,
        V26,
        {"requestId": True},
        "$.requestId: expected an integer or a string, got true",
    ),
    (
        t.CancelledNotificationParams,
        V11,
        {"requestId": 1.0},
        "$.requestId: expected an integer or a string, got 1.0",
    ),
    (
        t.CancelledNotificationParams,
        V26,
        {"requestId": None},
        "$.requestId: expected an integer or a string, got null",
    ),
    (t.CancelledNotificationParams, V26, {}, "$.requestId: required, but missing"),
    (
        t.ProgressNotificationParams,
        V26,
        {"progressToken": 1, "progress": "5"},
        "$.progress: expected a number, got '5'",
    ),
    (
        t.ProgressNotificationParams,
        V26,
        {"progressToken": False, "progress": 5},
        "$.progressToken: expected an integer or a string, got false",
    ),
    (
        t.CreateMessageRequestParams,
        V26,
        {"messages": [], "maxTokens": 5.0},
        "$.maxTokens: expected an integer, got 5.0",
    ),
    (
        t.CreateMessageRequestParams,
        V26,
        {"messages": [], "maxTokens": "5"},
        "$.maxTokens: expected an integer, got '5'",
    ),
    (t.ElicitRequestParams, V26, {"mode": "voice", "message": "m"}, "$: no known kind"),
    (
        t.ElicitResult,
        V26,
        {"action": "accept", "content": {"a": None}},
        "$.content.a: expected a string or an ",
    ),
    (
        t.ElicitResult,
        V06,
        {"action": "accept", "content": {"a": ["x"]}},
        "$.content.a: expected a string or an ",
    ),
    (
        t.InputRequiredResult,
        V26,
        {"resultType": "input_required", "requestState": 5},
        "$.requestState: expected a ",
    ),
    (
        t.InputRequiredResult,
        V26,
        {"resultType": "input_required", "inputRequests": {"k": {"method": "roots/list", "params": 5}}},
        "$.inputRequests.k.params: expected an object, got 5",
    ),
    (
        t.DiscoverResult,
        V26,
        {"resultType": "complete", "capabilities": {}},
        "$.supportedVersions: required, but ",
    ),
    (t.RequestMetaObject, V26, {}, '$["io.modelcontextprotocol/protocolVersion"]: required, but missing'),
    (dict[str, t.InputRequest], V26, {"a": 5}, "$.a: expected an object, got 5"),
    (t.ContentBlock, V26, 5, "$: expected an object, got 5"),
]


@pytest.mark.req("B5", "D1")
@pytest.mark.parametrize(("cls", "revision", "value", "message"), WRONG)
@pytest.mark.parametrize("strict", [False, True])
def test_strictness(cls: Any, revision: Revision, value: Any, message: str, strict: bool) -> None:
    if strict and revision is V26 and isinstance(value, dict) and cls is t.DiscoverResult:
        value = {**value, "ttlMs": 0, "cacheScope": "private"}
    with pytest.raises(StructureError) as caught:
        structure(value, cls, revision, strict=strict)
    assert str(caught.value).startswith(message)
    assert f"{caught.value.path}: {caught.value.message}" == str(caught.value)


# Class, revision, JSON, what is told, and what the object says.
TOLERATED: list[tuple[Any, Revision, dict[str, Any], list[str], dict[str, Any]]] = [
    (
        t.CallToolResult,
        V11,
        {"structuredContent": {"a": 1}},
        ["$.content: missing"],
        {"content": [], "structured_content": {"a": 1}, "result_type": "complete"},
    ),
    (
        t.CallToolResult,
        V26,
        {"content": None, "resultType": "complete"},
        ["$.content: null, read as missing"],
        {"content": []},
    ),
    (t.CallToolResult, V26, {"content": []}, ["$.resultType: missing"], {"result_type": "complete"}),
    (
        t.CallToolResult,
        V11,
        {"content": [], "isError": None},
        ["$.isError: null, read as missing"],
        {"is_error": None},
    ),
    (
        t.CallToolResult,
        V11,
        {"content": [], "structuredContent": None},
        ["$.structuredContent: null, read as missing"],
        {"structured_content": UNSET},
    ),
    (
        t.CallToolResult,
        V06,
        {"content": [], "structuredContent": [1]},
        ["$.structuredContent: set aside ($.structuredContent: expected an object, got an array)"],
        {"structured_content": UNSET},
    ),
    (
        t.ListToolsResult,
        V26,
        {"tools": [], "resultType": "complete", "ttlMs": "5", "cacheScope": ""},
        [
            "$.ttlMs: set aside ($.ttlMs: expected an integer, got '5')",
            "$.cacheScope: set aside ($.cacheScope: expected one of public, private, got '')",
        ],
        {"ttl_ms": None, "cache_scope": None},
    ),
    (
        t.DiscoverResult,
        V26,
        {
            "resultType": "complete",
            "supportedVersions": [],
            "capabilities": {"futureThing": True, "tools": True},
            "ttlMs": 0,
            "cacheScope": "private",
            "instructions": 5,
        },
        [
            "$.capabilities.tools: set aside ($.capabilities.tools: expected an object, got true)",
            "$.instructions: set aside ($.instructions: expected a string, got 5)",
        ],
        {"instructions": None},
    ),
    (
        t.Tool,
        V26,
        {**TOOL, "icons": [{"src": "a"}, {"src": 5}], "title": None},
        ["$.title: null, read as missing", "$.icons: set aside ($.icons[1].src: expected a string, got 5)"],
        {"icons": None, "title": None},
    ),
    (
        t.CallToolRequestParams,
        V11,
        {"name": "t", "arguments": None},
        ["$.arguments: null, read as missing"],
        {},
    ),
    (
        t.Tool,
        V11,
        {**TOOL, "outputSchema": {"type": "array"}},
        ['$.outputSchema: set aside ($.outputSchema: expected a schema with "type": "object")'],
        {"output_schema": None},
    ),
    (t.CallToolRequestParams, V26, {"name": "t"}, ["$._meta: missing"], {"meta": None}),
    (
        t.CallToolResult,
        V26,
        result(content=[TEXT, {"type": "video", "x": 1}]),
        ["$.content[1]: no known kind (type 'video'), kept as it came"],
        {"content": [t.TextContent("x"), t.UnknownContent({"type": "video", "x": 1})]},
    ),
    (
        t.CallToolResult,
        V24,
        {"content": [{"type": "audio", "data": "", "mimeType": "a/b"}]},
        ["$.content[0]: no known kind (type 'audio'), kept as it came"],
        {"content": [t.UnknownContent({"type": "audio", "data": "", "mimeType": "a/b"})]},
    ),
    (
        t.ReadResourceResult,
        V11,
        {"contents": [{"uri": "a:b", "hologram": "x"}]},
        ["$.contents[0]: no known kind, kept as it came"],
        {"contents": [t.UnknownResourceContents({"uri": "a:b", "hologram": "x"})]},
    ),
    (
        t.InputRequiredResult,
        V26,
        {"resultType": "input_required", "inputRequests": {"a": {"method": "x/y"}}},
        ["$.inputRequests.a: no known kind (method 'x/y'), kept as it came"],
        {"input_requests": {"a": t.UnknownInputRequest({"method": "x/y"})}},
    ),
]


@pytest.mark.req("B10", "D1")
@pytest.mark.case("G-03", "G-04", "V-07")
@pytest.mark.parametrize(("cls", "revision", "value", "told", "says"), TOLERATED)
def test_tolerances(
    cls: Any, revision: Revision, value: dict[str, Any], told: list[str], says: dict[str, Any]
) -> None:
    """Each is told when asked for, refused when strict, and written back as it came."""
    before = copy.deepcopy(value)
    tolerances: list[str] = []
    typed = structure(value, cls, revision, tolerances=tolerances)
    assert tolerances == told
    assert structure(value, cls, revision) == typed
    for attribute, expected in says.items():
        assert getattr(typed, attribute) == expected
    assert value == before
    with pytest.raises(StructureError):
        structure(value, cls, revision, strict=True)
    written = unstructure(typed, revision)
    if value.get("content", UNSET) is None:
        # Repaired: nothing but an array may go out.
        value = {**value, "content": []}
    assert {name: written[name] for name in value} == value


@pytest.mark.req("B10")
@pytest.mark.case("J-15", "J-18")
def test_unknown_members_are_kept() -> None:
    block: dict[str, Any] = {"type": "text", "x": {"y": [{"z": None}]}, "text": "ok", "w": [1, [2]]}
    raw: dict[str, Any] = {"content": [block], "vendorField": {"a": 1}}
    typed = structure(raw, t.CallToolResult, V11)
    assert typed.extra == {"vendorField": {"a": 1}}
    (text,) = typed.content
    assert isinstance(text, t.TextContent)
    assert text.text == "ok"
    assert text.extra == {"x": {"y": [{"z": None}]}, "w": [1, [2]]}
    assert unstructure(typed, V11) == raw
    assert unstructure(typed, V24) == raw


@pytest.mark.req("B10")
def test_a_member_of_another_revision_is_unknown() -> None:
    """What a revision does not have means nothing in it, but goes through."""
    raw = {**TOOL, "title": "T", "annotations": {"readOnlyHint": True}}
    tool = structure(raw, t.Tool, V24)
    assert (tool.title, tool.annotations) == (None, None)
    assert unstructure(tool, V24) == raw


@pytest.mark.req("B10")
def test_fields_win_over_extra() -> None:
    tolerated = structure({**TOOL, "title": None}, t.Tool, V26)
    tolerated.title = "T"
    assert unstructure(tolerated, V26)["title"] == "T"


@pytest.mark.case("J-07")
def test_big_integers_stay_exact() -> None:
    raw: dict[str, Any] = {"name": "t", "arguments": {"addr": 18446744073709551615}}
    assert unstructure(structure(raw, t.CallToolRequestParams, V11), V11) == raw
    raw = {"content": [{"type": "resource_link", "uri": "a:b", "name": "b", "size": 2**80}]}
    typed = structure(raw, t.CallToolResult, V11)
    assert unstructure(typed, V11)["content"][0]["size"] == 2**80


def test_null_where_it_is_legal() -> None:
    raw: dict[str, Any] = {"content": [], "structuredContent": None, "resultType": "complete"}
    typed = structure(raw, t.CallToolResult, V26, strict=True)
    assert typed.structured_content is None
    assert "structuredContent" in unstructure(typed, V26)
    assert "structuredContent" not in unstructure(t.CallToolResult([]), V26)
    assert not UNSET
    assert repr(UNSET) == "UNSET"


def test_reading_what_a_revision_lacks() -> None:
    with pytest.raises(LocalProtocolError, match="DiscoverResult does not exist in 2025-11-25"):
        structure({}, t.DiscoverResult, V11)


def test_strict_schemas() -> None:
    """Only strict reading insists on `type: object` in an input schema."""
    raw = {"name": "t", "inputSchema": {}}
    assert unstructure(structure(raw, t.Tool, V26), V26) == raw
    with pytest.raises(StructureError, match='expected a schema with "type": "object"'):
        structure(raw, t.Tool, V26, strict=True)


def test_elicited_number_may_have_a_fraction() -> None:
    """The schema file says integer where the specification's source says number."""
    raw = {"action": "accept", "content": {"a": 1.5}}
    assert unstructure(structure(raw, t.ElicitResult, V26, strict=True), V26) == raw


@pytest.mark.case("V-07")
def test_broken_server_info_does_not_break_the_rest() -> None:
    meta = {"io.modelcontextprotocol/serverInfo": "acme"}
    tolerances: list[str] = []
    assert structure(meta, t.ResultMetaObject, V26, tolerances=tolerances).server_info is None
    assert tolerances
    raw = {
        "resultType": "complete",
        "supportedVersions": ["2026-07-28"],
        "capabilities": {"futureThing": True},
        "ttlMs": 0,
        "cacheScope": "private",
        "_meta": meta,
    }
    assert unstructure(structure(raw, t.DiscoverResult, V26, strict=True), V26) == raw


SECRET = "s3cr3t"


def test_no_secret_in_repr_or_error() -> None:
    for obj in (
        t.CallToolRequestParams(
            "t", {"key": SECRET}, request_state=SECRET, input_responses={"a": {"x": SECRET}}
        ),
        t.InputRequiredResult(request_state=SECRET),
        t.ElicitResult("accept", {"password": SECRET}),
        t.ElicitRequestURLParams("m", f"https://a.example/?k={SECRET}"),
        t.Tool("t", {"type": "object"}, meta={"token": SECRET}, extra={"token": SECRET}),
        t.UnknownContent({"type": "video", "token": SECRET}),
        t.CompleteRequestParams(t.PromptReference("p"), t.CompletionArgument("a", SECRET)),
        t.GetPromptRequestParams("p", {"a": SECRET}),
        t.CallToolResult([], structured_content={"a": SECRET}),
    ):
        assert SECRET not in repr(obj)
    for cls, raw in (
        (t.InputRequiredResult, {"resultType": "input_required", "requestState": [SECRET]}),
        (t.ElicitResult, {"action": "accept", "content": SECRET}),
        (t.CallToolRequestParams, {"name": "t", "_meta": SECRET}),
        (t.CallToolRequestParams, {"name": "t", "arguments": SECRET}),
    ):
        with pytest.raises(StructureError) as caught:
            structure(raw, cls, V26)
        assert SECRET not in str(caught.value)


def test_repr_is_short_and_says_what_is_set() -> None:
    assert repr(t.TextContent("x")) == "TextContent(text='x')"
    assert repr(t.Implementation("n", "1", title="N")) == "Implementation(name='n', version='1', title='N')"
    assert len(repr(t.ImageContent("A" * 10_000, "image/png"))) < 200
    assert len(repr(t.ListToolsResult([t.Tool("t", {})] * 1000))) < 400
    assert repr(t.UnknownContent({"type": "video"})) == "UnknownContent(type='video')"
    assert repr(t.UnknownInputRequest({"method": "a/b"})) == "UnknownInputRequest(method='a/b')"


def test_objects_are_plain_values() -> None:
    tool = t.Tool("t", {"type": "object"}, annotations=t.ToolAnnotations(title="T"))
    assert tool == t.Tool("t", {"type": "object"}, annotations=t.ToolAnnotations(title="T"))
    assert tool != t.Tool("u", {"type": "object"})
    assert tool != "t"
    assert copy.deepcopy(tool) == tool
    assert pickle.loads(pickle.dumps(tool)) == tool
    assert tool.replace(name="u").name == "u"
    assert tool.name == "t"
    with pytest.raises(TypeError, match="unhashable"):
        hash(tool)
    with pytest.raises(AttributeError):
        tool.nmae = "x"  # type: ignore[attr-defined]
    match t.TextContent("x"):
        case t.TextContent(text):
            assert text == "x"


def test_every_class_has_slots() -> None:
    for name in t.__all__:
        found = getattr(t, name)
        if isinstance(found, type) and issubclass(found, t.WireObject):
            assert not hasattr(found.__new__(found), "__dict__"), name


def test_public_names_are_there_and_listed() -> None:
    assert sorted(set(t.__all__)) == sorted(t.__all__)
    assert set(t.__all__) == set(t._HOME)
    for name in t.__all__:
        assert name in dir(t)
        assert getattr(t, name) is getattr(sys.modules[f"sansmcp.types.{t._HOME[name]}"], name)
    with pytest.raises(AttributeError, match="NoSuchThing"):
        t.NoSuchThing  # noqa: B018


@attrs.define
class Weather:
    """A class of an application, with one of ours inside."""

    degrees: float
    icon: t.Icon
    notes: list[t.TextContent] = attrs.field(factory=list)
    id: int | str = 0


def test_classes_of_others() -> None:
    raw = {"degrees": 5, "icon": {"src": "i", "x": 1}, "notes": [TEXT], "id": "a"}
    weather = structure(raw, Weather, V26)
    assert weather.icon == t.Icon("i", extra={"x": 1})
    assert unstructure(weather, V26) == raw
    for wrong, message in (
        ({**raw, "degrees": "5"}, "$.degrees: expected a number, got '5'"),
        ({**raw, "degrees": True}, "$.degrees: expected a number, got true"),
        ({**raw, "id": True}, "$.id: expected an integer or a string, got true"),
        ({**raw, "icon": {}}, "$.icon.src: required, but missing"),
        ({**raw, "notes": [{"type": "text", "text": 1}]}, "$.notes[0].text: expected a string, got 1"),
        ({"degrees": 1}, "$.icon: required, but missing"),
        (5, "$: expected an object, got 5"),
    ):
        with pytest.raises(StructureError) as caught:
            structure(wrong, Weather, V26)
        assert str(caught.value) == message


def test_the_cattrs_converter() -> None:
    made = t.converter(V11)
    assert made is t.converter(V11)
    assert made.structure(TEXT, t.TextContent) == t.TextContent("x")
    assert made.unstructure(t.Tool("t", {"type": "object"}, title="T")) == {**TOOL, "title": "T"}
    assert t.converter(V24).unstructure(t.Tool("t", {"type": "object"}, title="T")) == TOOL
