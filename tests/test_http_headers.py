"""What headers mean: written from the envelope alone, and compared with it at the other end."""

from __future__ import annotations

import base64
import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import ErrorCode, LocalProtocolError, Revision
from sansmcp.http.headers import (
    LARGEST_INTEGER,
    MAX_SCHEMA_DEPTH,
    Annotation,
    Annotations,
    HeaderFault,
    HeaderFaultKind,
    HeaderValueError,
    Problem,
    RouteKey,
    check_tools,
    decode_value,
    encode_value,
    legacy_headers,
    project_headers,
    read_annotations,
    route_key,
    validate_projection,
)

from .support import INFO_KEY, VERSION_KEY, meta
from .vectors.headers import (
    ACCEPTED,
    BAD,
    BIG_SCHEMA,
    CALL,
    ENCODED,
    FOUND,
    HUGE,
    LIST,
    MALFORMED,
    MIRRORED,
    MODERN,
    PROJECTED,
    REFUSED,
    SCHEMA,
    STRING,
    UNCARRIED,
    VERSION,
    call,
    deep,
    request,
    schema,
)

Kind = HeaderFaultKind


def params_of(headers: list[tuple[str, str]]) -> dict[str, str]:
    return {n.removeprefix("Mcp-Param-"): v for n, v in headers if n.startswith("Mcp-Param-")}


def fault(result: HeaderFault | RouteKey | None) -> HeaderFault:
    assert isinstance(result, HeaderFault), result
    assert result.message.isascii()
    assert len(result.message) < 400
    assert result.header in result.message or "neither" in result.message
    return result


def replaced(headers: list[tuple[str, str]], name: str, value: str) -> list[tuple[str, str]]:
    return [(n, value if n == name else v) for n, v in headers]


# values ------------------------------------------------------------------------------------------


@pytest.mark.req("C3")
@pytest.mark.case("P-01", "P-03")
@pytest.mark.parametrize(("value", "sent"), ENCODED)
def test_a_value_goes_out_plain_or_encoded_and_comes_back(value: str, sent: str) -> None:
    assert encode_value(value) == sent
    assert decode_value(sent) == value


@pytest.mark.req("C3")
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("  foo\t", "foo"),
        ("a\tb", "a\tb"),
        ("=?base64??=", ""),
        ("=?base64?SGVsbG8=?=", "Hello"),
        (" =?base64?SGVsbG8=?= ", "Hello"),
        ("SGVsbG8=", "SGVsbG8="),
        ("=?base64?SGVsbG8=", "=?base64?SGVsbG8="),
        ("=?Base64?SGVsbG8=?=", "=?Base64?SGVsbG8=?="),
    ],
)
def test_what_others_may_send(text: str, value: str) -> None:
    assert decode_value(text) == value


@pytest.mark.req("C3")
@pytest.mark.case("P-02")
@pytest.mark.parametrize(("text", "why"), MALFORMED)
def test_what_cannot_be_a_value(text: str, why: str) -> None:
    with pytest.raises(HeaderValueError, match=why):
        decode_value(text)


@pytest.mark.req("C3")
@pytest.mark.parametrize("value", ["\ud800", "a\udfffb"])
def test_a_lone_surrogate_has_no_encoding(value: str) -> None:
    with pytest.raises(LocalProtocolError, match="surrogate"):
        encode_value(value)


TEXT = st.text(st.characters(exclude_categories=["Cs"])) | st.text("=?base64 \taZ+/")


@pytest.mark.req("C3")
@given(TEXT)
def test_every_text_survives_and_every_form_is_a_legal_header(value: str) -> None:
    sent = encode_value(value)
    assert all(" " <= c <= "~" for c in sent)
    assert sent == sent.strip()
    assert decode_value(sent) == decode_value(f"\t {sent} ") == value
    assert encode_value(value) == sent


@pytest.mark.req("C3")
@given(st.text(max_size=12) | st.builds("=?base64?{}?=".format, st.text("AQw/+=", max_size=9)))
def test_a_value_has_one_encoded_and_at_most_one_plain_spelling(text: str) -> None:
    try:
        value = decode_value(text)
    except HeaderValueError:
        return
    encoded = f"=?base64?{base64.b64encode(value.encode()).decode()}?="
    assert text.strip(" \t") in (value, encoded)


# what a tool wants mirrored ----------------------------------------------------------------------


@pytest.mark.req("C4")
@pytest.mark.parametrize(("input_schema", "found"), FOUND)
def test_annotations_are_found_through_properties(input_schema: Any, found: list[Any]) -> None:
    read = read_annotations(input_schema)
    assert isinstance(read, Annotations)
    assert [(a.header.removeprefix("Mcp-Param-"), ".".join(a.path), a.type) for a in read] == found
    assert len(read) == len(found)


@pytest.mark.req("C5")
@pytest.mark.parametrize(("input_schema", "why"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_one_bad_annotation_spoils_the_tool(input_schema: Any, why: str) -> None:
    read = read_annotations(input_schema)
    assert isinstance(read, Problem)
    assert re.search(why, read.reason), read.reason
    assert read.reason.isascii()
    assert len(read.reason) < 300


def test_a_deep_annotation_within_the_bound_is_read() -> None:
    (annotation,) = read_annotations(deep(MAX_SCHEMA_DEPTH))  # type: ignore[misc]
    assert annotation.path == ("p",) * MAX_SCHEMA_DEPTH


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["string", "integer"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["properties", "x-mcp-header", "type", "items", "anyOf", "$defs", "a", "b"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)


@pytest.mark.req("C5")
@given(JSON_VALUES)
def test_reading_annotations_never_raises_and_what_it_finds_is_sound(input_schema: Any) -> None:
    read = read_annotations(input_schema)
    if isinstance(read, Problem):
        return
    assert len({a.header.lower() for a in read}) == len(read)
    for annotation in read:
        node = input_schema
        for name in annotation.path:
            node = node["properties"][name]
        assert node["type"] == annotation.type
        assert "Mcp-Param-" + node["x-mcp-header"] == annotation.header


@pytest.mark.req("C5")
@pytest.mark.case("P-05")
def test_bad_tools_are_parted_from_the_good_ones_with_a_reason_each() -> None:
    def tool(name: Any, *properties: tuple[str, Any]) -> dict[str, Any]:
        return {"name": name, "inputSchema": {"type": "object", "properties": dict(properties)}}

    good = tool("A", ("region", {"type": "string", "x-mcp-header": "Region"}))
    plain = {"name": "G"}
    bad = [
        tool("B", ("x", {"type": "string", "x-mcp-header": ""})),
        tool("C", ("x", {"type": "string", "x-mcp-header": "Bad Name"})),
        tool("D", ("x", {"type": "number", "x-mcp-header": "X"})),
        tool(
            "E",
            ("x", {"type": "string", "x-mcp-header": "Id"}),
            ("y", {"type": "string", "x-mcp-header": "ID"}),
        ),
        tool("F", ("x", {"type": "array", "items": {"type": "string", "x-mcp-header": "X"}})),
        tool(7, ("x", {"type": "number", "x-mcp-header": "X"})),
    ]
    kept, excluded = check_tools([bad[0], good, *bad[1:], "no tool", plain])
    assert kept == [good, "no tool", plain]
    assert kept[0] is good
    assert [name for name, _ in excluded] == ["B", "C", "D", "E", "F", ""]
    assert all(reason for _, reason in excluded)


# writing headers ---------------------------------------------------------------------------------


@pytest.mark.req("C1", "C2")
@pytest.mark.case("P-01", "H-11")
@pytest.mark.parametrize(("message", "more"), [p[1:] for p in PROJECTED], ids=[p[0] for p in PROJECTED])
def test_headers_are_read_back_from_the_envelope(message: dict[str, Any], more: list[Any]) -> None:
    headers = project_headers(message)
    assert headers == [(VERSION, MODERN), ("Mcp-Method", message["method"]), *more]
    assert validate_projection(headers, message) is None


@pytest.mark.req("C1", "C2")
def test_notifications_carry_their_method_and_a_version_if_they_have_one() -> None:
    params = {"_meta": meta(), "requestId": 1}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    assert project_headers(message) == [(VERSION, MODERN), ("Mcp-Method", "notifications/cancelled")]
    bare = {"jsonrpc": "2.0", "method": "notifications/x"}
    assert project_headers(bare) == [("Mcp-Method", "notifications/x")]


@pytest.mark.req("C1")
def test_the_version_is_the_messages_own_whatever_it_is() -> None:
    assert project_headers(request("tools/list", version="2031-01-01"))[0] == (VERSION, "2031-01-01")


@pytest.mark.req("C4")
@pytest.mark.case("P-07")
@pytest.mark.parametrize(("arguments", "mirrored"), MIRRORED)
def test_arguments_are_mirrored(arguments: Any, mirrored: dict[str, str]) -> None:
    message = call(arguments)
    headers = project_headers(message, BIG_SCHEMA)
    assert params_of(headers) == mirrored
    assert validate_projection(headers, message, BIG_SCHEMA) is None
    read = read_annotations(BIG_SCHEMA)
    assert isinstance(read, Annotations)
    assert project_headers(message, read) == headers
    assert params_of(project_headers(message)) == {}, "no schema, no mirrored arguments"


@pytest.mark.req("C2", "C4")
def test_a_mirrored_argument_called_method_does_not_hide_the_method() -> None:
    headers = project_headers(call({"method": "m"}), schema(method="string"))
    assert dict(headers)["Mcp-Method"] == "tools/call"
    assert dict(headers)["Mcp-Param-Method"] == "m"


@pytest.mark.req("C4")
def test_only_a_call_of_the_tool_mirrors_arguments() -> None:
    message = request("prompts/get", {"name": "p", "arguments": {"a": "x"}})
    assert params_of(project_headers(message, schema(a="string"))) == {}


@pytest.mark.case("P-06")
@pytest.mark.req("C4", "C8")
def test_the_schema_decides_which_headers_there_are_and_a_new_one_mends_a_call() -> None:
    message = call({"a": "x", "b": "y"})
    old, new = schema(a="string"), schema(a="string", b="string")
    refused = fault(validate_projection(project_headers(message, old), message, new))
    assert (refused.kind, refused.header) == (Kind.MISSING, "Mcp-Param-B")
    assert validate_projection(project_headers(message, new), message, new) is None
    # a server that no longer mirrors an argument minds no header of it
    assert validate_projection(project_headers(message, new), message, old) is None


@pytest.mark.req("C1", "C3", "C4")
@pytest.mark.parametrize(("message", "why"), UNCARRIED)
def test_what_cannot_be_carried_is_refused_here(message: dict[str, Any], why: str) -> None:
    with pytest.raises(LocalProtocolError, match=why):
        project_headers(message, BIG_SCHEMA)


@pytest.mark.req("C5")
def test_an_excluded_tool_is_not_called() -> None:
    with pytest.raises(LocalProtocolError, match="number"):
        project_headers(call({}), schema(a="number"))
    with pytest.raises(LocalProtocolError, match="number"):
        validate_projection([], call({}), schema(a="number"))


@pytest.mark.req("P12")
def test_legacy_exchanges_name_their_revision_since_2025_06_18() -> None:
    assert [legacy_headers(r) for r in Revision if r < Revision.V2025_06_18] == [[], []]
    assert legacy_headers(Revision.V2025_06_18) == [(VERSION, "2025-06-18")]
    assert legacy_headers(Revision.V2025_11_25) == [(VERSION, "2025-11-25")]
    with pytest.raises(LocalProtocolError):
        legacy_headers(Revision.V2026_07_28)


# comparing ---------------------------------------------------------------------------------------

RIGHT = project_headers(CALL, SCHEMA)


@pytest.mark.req("C6", "C7")
@pytest.mark.case("P-01", "P-04")
@pytest.mark.parametrize(("name", "value"), ACCEPTED)
def test_another_spelling_of_the_same_value_agrees(name: str, value: str) -> None:
    assert validate_projection(replaced(RIGHT, name, value), CALL, SCHEMA) is None


@pytest.mark.req("C6", "C7")
@pytest.mark.case("P-02", "H-11")
@pytest.mark.parametrize(("name", "value", "kind"), REFUSED)
def test_a_missing_or_different_header_is_a_fault(
    name: str, value: str | None, kind: HeaderFaultKind
) -> None:
    headers = [h for h in RIGHT if h[0] != name] if value is None else replaced(RIGHT, name, value)
    found = fault(validate_projection(headers, CALL, SCHEMA))
    assert (found.kind, found.header) == (kind, name)
    error = found.to_error()
    assert error.code == ErrorCode.HEADER_MISMATCH
    assert error.data == {"header": name}


@pytest.mark.req("C6")
@pytest.mark.parametrize("change", [str.lower, str.upper, str.swapcase])
def test_names_of_headers_have_no_case(change: Any) -> None:
    assert validate_projection([(change(n), v) for n, v in RIGHT], CALL, SCHEMA) is None


@pytest.mark.req("C6")
def test_the_order_of_headers_and_others_between_them_do_not_matter() -> None:
    headers = [("Host", "x"), *reversed(RIGHT), ("Mcp-Param-Unknown", "ü"), ("Mcp-Session-Id", "s")]
    assert validate_projection(headers, CALL, SCHEMA) is None
    assert validate_projection(iter(headers), CALL, SCHEMA) is None


@pytest.mark.req("C9")
@pytest.mark.parametrize("name", [n for n, _ in RIGHT])
@pytest.mark.parametrize("other", ["", "same", "different"])
def test_a_second_line_of_a_header_is_a_fault_whatever_it_says(name: str, other: str) -> None:
    value = dict(RIGHT)[name] if other == "same" else other
    for headers in ([*RIGHT, (name.upper(), value)], [(name.lower(), value), *RIGHT]):
        found = fault(validate_projection(headers, CALL, SCHEMA))
        assert (found.kind, found.header) == (Kind.DUPLICATE, name)
        if "Param" not in name:
            assert fault(route_key(headers)).kind is Kind.DUPLICATE


@pytest.mark.req("C4", "C7")
@pytest.mark.case("P-07")
@pytest.mark.parametrize("arguments", [{"region": None}, {}, None, {"region": {}}, {"region": 1.5}])
def test_a_header_without_its_argument_is_a_fault(arguments: Any) -> None:
    message = call(arguments)
    headers = [*project_headers(message), ("Mcp-Param-Region", "us")]
    found = fault(validate_projection(headers, message, schema(region="string")))
    assert found.kind in (Kind.UNEXPECTED, Kind.UNMIRRORABLE)


@pytest.mark.req("C7")
@pytest.mark.parametrize("value", [[], {"a": 1}, 1.5, 2**53, -(2**53), float(2**53), HUGE, float("inf")])
def test_an_argument_that_no_header_can_carry_is_a_fault_with_or_without_one(value: Any) -> None:
    message = call({"n": value})
    headers = project_headers(message)
    for given_ in (headers, [*headers, ("Mcp-Param-N", "1")]):
        found = fault(validate_projection(given_, message, schema(n="integer")))
        assert found.kind is Kind.UNMIRRORABLE


@pytest.mark.req("C7")
def test_whole_numbers_are_one_number_however_the_body_spells_them() -> None:
    message = call({"n": 42.0})
    for text in ("42", "42.0"):
        headers = [*project_headers(message), ("Mcp-Param-N", text)]
        assert validate_projection(headers, message, schema(n="integer")) is None


@pytest.mark.req("C6")
@pytest.mark.parametrize(
    ("message", "extra", "kind"),
    [
        (LIST, ("Mcp-Name", "foo"), Kind.UNEXPECTED),
        (request("tasks/list"), ("Mcp-Name", "foo"), Kind.UNEXPECTED),
        (call(name=None), ("Mcp-Name", "foo"), Kind.UNEXPECTED),
        (call(name=5), ("Mcp-Name", "5"), Kind.UNEXPECTED),
        (request("vendor/x"), ("Mcp-Name", "foo"), None),
        (request("vendor/x"), ("Mcp-Name", "=?base64?!?="), Kind.MALFORMED),
        (call(name=None), None, None),
    ],
)
def test_a_name_that_the_body_does_not_say(
    message: Any, extra: tuple[str, str] | None, kind: HeaderFaultKind | None
) -> None:
    headers = [(VERSION, MODERN), ("Mcp-Method", message["method"]), *([extra] if extra else [])]
    found = validate_projection(headers, message)
    assert (None if found is None else fault(found).kind) is kind


@pytest.mark.req("C2", "C6")
def test_a_tasks_id_is_compared_but_not_demanded() -> None:
    message = request("tasks/get", {"taskId": "t-1"})
    headers = project_headers(message)
    assert validate_projection(headers[:-1], message) is None
    found = fault(validate_projection(replaced(headers, "Mcp-Name", "t-2"), message))
    assert found.kind is Kind.DIFFERENT
    assert validate_projection(project_headers(request("tasks/get")), request("tasks/get")) is None


@pytest.mark.req("C6")
@pytest.mark.case("H-11")
def test_a_version_that_only_one_side_has() -> None:
    message = request("tools/list")
    del message["params"]["_meta"][VERSION_KEY]
    headers = project_headers(LIST)
    assert fault(validate_projection(headers, message)).kind is Kind.UNEXPECTED
    assert fault(validate_projection(headers[1:], message)).kind is Kind.MISSING
    unsupported = request("tools/list", version="1900-01-01")
    assert validate_projection(project_headers(unsupported), unsupported) is None, "another rung's matter"


@pytest.mark.req("C6")
def test_headers_of_a_notification_are_compared_but_not_demanded() -> None:
    bare = {"jsonrpc": "2.0", "method": "notifications/x"}
    full = {**bare, "params": {"_meta": meta()}}
    for message in (bare, full):
        assert validate_projection([], message) is None
        assert validate_projection([(VERSION, MODERN)], message) is None
        assert validate_projection(project_headers(full), message) is None
        assert validate_projection([("Mcp-Name", "n")], message) is None
        found = fault(validate_projection([("Mcp-Method", "notifications/y")], message))
        assert found.kind is Kind.DIFFERENT
    assert fault(validate_projection([(VERSION, "2025-11-25")], full)).kind is Kind.DIFFERENT
    called = {k: v for k, v in CALL.items() if k != "id"}
    assert validate_projection([], called, SCHEMA) is None
    assert fault(validate_projection([("Mcp-Param-Dry", "no")], called, SCHEMA)).kind is Kind.DIFFERENT


@pytest.mark.req("C6")
@pytest.mark.parametrize(
    "body",
    [None, [], [LIST], "x", 5, {}, {"method": None}, {"method": 5, "id": 1}, {"id": 1, "result": {}}],
)
def test_a_body_that_is_no_message_agrees_with_nothing(body: Any) -> None:
    assert fault(validate_projection(project_headers(LIST), body)).kind is Kind.UNEXPECTED
    assert fault(validate_projection([], body)).kind is Kind.UNEXPECTED


@pytest.mark.req("C6")
def test_a_message_names_both_values_and_quotes_no_more_than_a_part_of_them() -> None:
    message = request("tools/call", {"name": "bär" + "x" * 10_000})
    headers = replaced(project_headers(message), "Mcp-Name", "y" * 10_000)
    text = fault(validate_projection(headers, message)).message
    assert text.startswith("Mcp-Name says 'yyy")
    assert "the body says 'b\\xe4rxxx" in text


# any message -------------------------------------------------------------------------------------

METHODS = st.sampled_from(
    ["tools/call", "prompts/get", "resources/read", "tools/list", "tasks/get", "vendor/x", "notifications/x"]
)
VALUES = (
    TEXT
    | st.none()
    | st.booleans()
    | st.integers(-LARGEST_INTEGER, LARGEST_INTEGER)
    | st.integers(-(2**50), 2**50).map(float)
)
ARGUMENTS = st.dictionaries(st.sampled_from(["region", "priority", "dry", "empty_val", "score"]), VALUES)


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    message = request(
        draw(METHODS),
        {
            "name": draw(TEXT),
            "uri": draw(TEXT),
            "taskId": draw(TEXT),
            "arguments": {**draw(ARGUMENTS), "options": draw(st.dictionaries(st.just("limit"), VALUES))},
        },
        draw(st.sampled_from([MODERN, "2031-01-01", "x y"])),
    )
    if message["method"].startswith("notifications/"):
        del message["id"]
    return message


@pytest.mark.req("C1", "C6")
@given(messages())
def test_what_is_projected_agrees_and_can_be_routed(message: dict[str, Any]) -> None:
    headers = project_headers(message, BIG_SCHEMA)
    assert validate_projection(headers, message, BIG_SCHEMA) is None
    assert validate_projection(headers, message) is None
    assert len({n.lower() for n, _ in headers}) == len(headers)
    key = route_key(headers)
    assert isinstance(key, RouteKey)
    assert key.method == message["method"]
    assert key.version == message["params"]["_meta"][VERSION_KEY]
    member = {"resources/read": "uri", "tasks/get": "taskId"}.get(key.method, "name")
    assert key.name == (message["params"][member] if len(headers) > 2 else None)


@pytest.mark.req("C1")
@given(messages())
def test_nothing_but_the_envelope_is_needed(message: dict[str, Any]) -> None:
    """The values in the headers are those of the message at the moment it is read: nothing is kept."""
    before = project_headers(message, BIG_SCHEMA)
    message["params"]["_meta"] |= {VERSION_KEY: "9999-09-09", INFO_KEY: {"name": "x"}}
    after = project_headers(message, BIG_SCHEMA)
    assert after[0] == (VERSION, "9999-09-09")
    assert after[1:] == before[1:]


@pytest.mark.req("C6", "C7", "C9")
@given(messages(), st.data())
def test_any_single_change_of_a_header_is_found(message: dict[str, Any], data: st.DataObject) -> None:
    headers = project_headers(message, BIG_SCHEMA)
    name, value = data.draw(st.sampled_from(headers))
    rest = [h for h in headers if h[0] != name]
    found = True
    match data.draw(st.sampled_from(["remove", "repeat", "extend", "cut", "encode", "other"])):
        case "remove":
            changed = rest
            demanded = name != "Mcp-Name" or not message["method"].startswith("tasks/")
            found = "id" in message and demanded
        case "repeat":
            changed = [*headers, (name, value)]
        case "extend":
            extra = data.draw(st.sampled_from(["x", "0", "=", "?=", "\x00", "é"]))
            changed = [*rest, (name, value + extra)]
        case "cut" if value:
            changed = [*rest, (name, value[:-1])]
        case "encode" if value == decode_value(value):
            encoded = f"=?base64?{base64.b64encode(value.encode()).decode()}?="
            changed = [*rest, (name, encoded)]
            found = name in (VERSION, "Mcp-Method")
        case _:
            # Digits are left out, for one number has more than one spelling.
            other = data.draw(TEXT.filter(lambda t: not t[-1:].isdigit()))
            changed = [*rest, (name, encode_value(other))]
            found = other != decode_value(value)
    result = validate_projection(changed, message, BIG_SCHEMA)
    assert (result is not None) is found, (changed, result)


SOUP = st.sampled_from(
    [*(n for n, _ in RIGHT), "mcp-method", "MCP-NAME", "Host", "", "Mcp-Param-", "Mcp-Param-Limit"]
)
TAILS = st.sampled_from(["tools/call", MODERN, "foo", "42", "true", "=?base64?Zm9v?=", "=?base64?x?="])


@pytest.mark.req("C6", "C10")
@given(st.lists(st.tuples(SOUP, TAILS | st.text(max_size=8)), max_size=8), JSON_VALUES | st.just(CALL))
def test_reading_headers_never_raises(headers: list[tuple[str, str]], body: Any) -> None:
    for found in (validate_projection(headers, body, BIG_SCHEMA), route_key(headers)):
        if isinstance(found, HeaderFault):
            assert fault(found) is found


# headers alone -----------------------------------------------------------------------------------


@pytest.mark.req("C10")
def test_a_route_is_read_from_the_headers_alone() -> None:
    key = route_key([("mcp-name", " =?base64?d2VhdGhlcl/mnbHkuqw=?= "), *RIGHT[:2], ("Host", "h")])
    assert key == RouteKey(MODERN, "tools/call", "weather_東京")
    assert isinstance(key, RouteKey)
    assert key.checked
    assert route_key(project_headers(LIST)) == RouteKey(MODERN, "tools/list", None)
    literal = "=?base64?eA==?="  # only a name has an encoding
    assert route_key([(VERSION, literal), ("Mcp-Method", literal)]) == RouteKey(literal, literal, None)


@pytest.mark.req("C10")
@pytest.mark.parametrize(
    ("version", "checked"), [(MODERN, True), ("2025-11-25", False), ("2031-01-01", False), ("x", False)]
)
def test_only_a_version_whose_servers_compare_is_to_be_trusted(version: str, checked: bool) -> None:
    key = route_key([(VERSION, version), ("Mcp-Method", "tools/list")])
    assert isinstance(key, RouteKey)
    assert key.checked is checked


@pytest.mark.req("C10")
@pytest.mark.parametrize(
    ("headers", "kind", "header"),
    [
        ([], Kind.MISSING, VERSION),
        ([(VERSION, MODERN)], Kind.MISSING, "Mcp-Method"),
        ([("Mcp-Method", "tools/list")], Kind.MISSING, VERSION),
        ([(VERSION, " "), ("Mcp-Method", "tools/list")], Kind.MISSING, VERSION),
        ([(VERSION, MODERN), ("Mcp-Method", "tools/call")], Kind.MISSING, "Mcp-Name"),
        ([(VERSION, MODERN), ("Mcp-Method", "tools/lïst")], Kind.MALFORMED, "Mcp-Method"),
        (
            [(VERSION, MODERN), ("Mcp-Method", "tools/call"), ("Mcp-Name", "=?base64?Zm9?=")],
            Kind.MALFORMED,
            "Mcp-Name",
        ),
    ],
)
def test_headers_that_no_server_would_take_have_no_route(
    headers: Any, kind: HeaderFaultKind, header: str
) -> None:
    found = fault(route_key(headers))
    assert (found.kind, found.header) == (kind, header)


def test_a_long_value_takes_linear_time() -> None:
    """Not quadratic: a hundred times as much of the worst texts is still done at once."""
    for text in ("=?base64?" * 100_000, " " * 1_000_000 + "a" + " " * 1_000_000, "a " * 500_000):
        encoded = encode_value(text)
        assert decode_value(encoded) == text
        assert len(encoded) < 3_000_000


def test_annotations_are_values() -> None:
    assert read_annotations({"properties": {"a": STRING}}) == Annotations(
        (Annotation("Mcp-Param-A", ("a",), "string"),)
    )
