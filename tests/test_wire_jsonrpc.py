"""Every shape of a message, and of what only looks like one."""

from __future__ import annotations

import subprocess
import sys
from collections import UserDict
from collections.abc import Callable
from enum import IntEnum, StrEnum
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp.errors import ErrorCode, LocalProtocolError, PeerFault
from sansmcp.wire.jsoncodec import JsonValue, default_codec
from sansmcp.wire.jsonrpc import (
    ABSENT,
    ErrorResponse,
    InvalidMessage,
    Message,
    Notification,
    Request,
    RequestId,
    ResultResponse,
    classify,
    error_response,
    is_request_id,
    notification,
    request,
    result_response,
    split_batch,
)

V = {"jsonrpc": "2.0"}


def essence(message: Message) -> tuple[Any, ...]:
    """A message as a tuple, its raw value left out."""
    match message:
        case Request():
            return "request", message.id, message.method, message.params
        case Notification():
            return "notification", message.method, message.params
        case ResultResponse():
            return "result", message.id, message.result
        case ErrorResponse():
            return "error", message.id, message.code, message.message, message.data, message.repaired
        case InvalidMessage():
            return "invalid", message.fault, message.id, message.like_response, message.hint


VALID: list[tuple[JsonValue, tuple[Any, ...]]] = [
    ({**V, "id": 1, "method": "ping"}, ("request", 1, "ping", {})),
    ({**V, "id": 0, "method": "ping"}, ("request", 0, "ping", {})),
    ({**V, "id": "", "method": "ping", "params": {}}, ("request", "", "ping", {})),
    ({**V, "id": "1", "method": "ping"}, ("request", "1", "ping", {})),
    ({**V, "id": -7, "method": "ping"}, ("request", -7, "ping", {})),
    ({**V, "id": 2**53 + 1, "method": "ping"}, ("request", 2**53 + 1, "ping", {})),
    ({**V, "id": 10**30, "method": "ping"}, ("request", 10**30, "ping", {})),
    ({**V, "id": "é🙂", "method": "vendor/größe"}, ("request", "é🙂", "vendor/größe", {})),
    ({**V, "id": 1, "method": "x", "params": {"a": [1]}, "y": {}}, ("request", 1, "x", {"a": [1]})),
    ({**V, "id": 1, "method": "x", "params": {"a": "\ud800"}}, ("request", 1, "x", {"a": "\ud800"})),
    ({**V, "method": "notifications/initialized"}, ("notification", "notifications/initialized", {})),
    (
        {**V, "method": "window/logMessage", "params": {"type": 3}},
        ("notification", "window/logMessage", {"type": 3}),
    ),
    ({**V, "method": "tools/call", "params": {"name": "rm"}}, ("notification", "tools/call", {"name": "rm"})),
    ({**V, "id": 9, "result": {}}, ("result", 9, {})),
    ({**V, "id": "9", "result": {"content": [], "vendor": 1}}, ("result", "9", {"content": [], "vendor": 1})),
    ({**V, "id": 1, "error": {"code": -1, "message": "m"}}, ("error", 1, -1, "m", None, None)),
    (
        {**V, "id": 1, "error": {"code": 5, "message": "", "data": [1], "x": 2}},
        ("error", 1, 5, "", [1], None),
    ),
    ({**V, "id": None, "error": {"code": -32700, "message": "m"}}, ("error", None, -32700, "m", None, None)),
    ({**V, "error": {"code": -32700, "message": "m"}}, ("error", None, -32700, "m", None, None)),
]

FRACTION = "the error code was written as a fraction"
NO_TEXT = "the error had no message"

REPAIRED: list[tuple[JsonValue, tuple[Any, ...]]] = [
    (
        {**V, "id": 1, "error": {"code": -32601.0, "message": "m"}},
        ("error", 1, -32601, "m", None, FRACTION),
    ),
    ({**V, "id": 1, "error": {"code": -32601}}, ("error", 1, -32601, "", None, NO_TEXT)),
    ({**V, "id": 1, "error": {"code": -32601, "message": None}}, ("error", 1, -32601, "", None, NO_TEXT)),
]

_ID, _METHOD, _PARAMS = PeerFault.INVALID_ID, PeerFault.INVALID_METHOD, PeerFault.INVALID_PARAMS
_RESPONSE, _NONE = PeerFault.INVALID_RESPONSE, PeerFault.NOT_A_MESSAGE
_WITH_ID = PeerFault.NOTIFICATION_WITH_ID
_600, _602 = ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_PARAMS

INVALID: list[tuple[JsonValue, tuple[PeerFault, RequestId | None, bool, ErrorCode | None]]] = [
    # value → fault, id, like a response, what to answer
    (None, (_NONE, None, False, _600)),
    (1, (_NONE, None, False, _600)),
    ("x", (_NONE, None, False, _600)),
    ([], (_NONE, None, False, _600)),
    ({}, (_NONE, None, False, _600)),
    ({"level": "info", "msg": "ready"}, (_NONE, None, False, _600)),
    ({"id": 1, "method": "ping"}, (_NONE, 1, False, _600)),
    ({"jsonrpc": "1.0", "id": 1, "method": "ping"}, (_NONE, 1, False, _600)),
    ({"jsonrpc": 2.0, "id": True, "method": "ping"}, (_NONE, None, False, _600)),
    ({"jsonrpc": None, "id": 1, "result": {}}, (_NONE, 1, True, None)),
    ({"id": None, "error": {"code": 1, "message": ""}}, (_NONE, None, True, None)),
    ({**V}, (_NONE, None, False, _600)),
    ({**V, "params": {}}, (_NONE, None, False, _600)),
    # ids
    ({**V, "id": None, "method": "tools/list"}, (_ID, None, False, _600)),
    ({**V, "id": True, "method": "ping"}, (_ID, None, False, _600)),
    ({**V, "id": False, "method": "ping"}, (_ID, None, False, _600)),
    ({**V, "id": 1.0, "method": "ping"}, (_ID, None, False, _600)),
    ({**V, "id": 1.5, "method": "ping"}, (_ID, None, False, _600)),
    ({**V, "id": [1], "method": "ping"}, (_ID, None, False, _600)),
    ({**V, "id": {}, "method": "ping"}, (_ID, None, False, _600)),
    ({**V, "id": "a\ud800", "method": "ping"}, (_ID, None, False, _600)),
    ({**V, "id": None, "method": "notifications/x"}, (_ID, None, False, _600)),
    ({**V, "id": None, "result": {}}, (_ID, None, True, None)),
    ({**V, "id": True, "result": {}}, (_ID, None, True, None)),
    ({**V, "id": 1.0, "error": {"code": 1, "message": ""}}, (_ID, None, True, None)),
    ({**V, "id": "\udfff", "result": {}}, (_ID, None, True, None)),
    # methods
    ({**V, "id": 1, "method": ""}, (_METHOD, 1, False, _600)),
    ({**V, "id": 1, "method": None}, (_METHOD, 1, False, _600)),
    ({**V, "id": 1, "method": 1, "params": "bar"}, (_METHOD, 1, False, _600)),
    ({**V, "id": 1, "method": ["ping"]}, (_METHOD, 1, False, _600)),
    ({**V, "id": "é", "method": "\ud83dping"}, (_METHOD, "é", False, _600)),
    ({**V, "method": ""}, (_METHOD, None, False, _600)),
    # params
    ({**V, "id": 1, "method": "tools/list", "params": None}, (_PARAMS, 1, False, _602)),
    ({**V, "id": 0, "method": "tools/list", "params": [1]}, (_PARAMS, 0, False, _602)),
    ({**V, "id": "", "method": "tools/list", "params": "x"}, (_PARAMS, "", False, _602)),
    ({**V, "method": "notifications/initialized", "params": None}, (_PARAMS, None, False, None)),
    ({**V, "method": "notifications/initialized", "params": [1]}, (_PARAMS, None, False, None)),
    # notifications
    ({**V, "id": 5, "method": "notifications/initialized"}, (_WITH_ID, 5, False, _600)),
    ({**V, "id": "a", "method": "notifications/vendor", "params": None}, (_WITH_ID, "a", False, _600)),
    # responses
    ({**V, "id": 1, "result": {}, "error": {"code": 1, "message": "x"}}, (_RESPONSE, 1, True, None)),
    ({**V, "id": 1, "result": {}, "error": None}, (_RESPONSE, 1, True, None)),
    ({**V, "id": 1, "result": None, "error": None}, (_RESPONSE, 1, True, None)),
    ({**V, "id": 1}, (_RESPONSE, 1, False, _600)),
    ({**V, "id": None}, (_RESPONSE, None, False, _600)),
    ({**V, "result": {}}, (_RESPONSE, None, True, None)),
    ({**V, "id": 9, "result": []}, (_RESPONSE, 9, True, None)),
    ({**V, "id": 9, "result": None}, (_RESPONSE, 9, True, None)),
    ({**V, "id": 9, "result": "ok"}, (_RESPONSE, 9, True, None)),
    ({**V, "id": 9, "error": None}, (_RESPONSE, 9, True, None)),
    ({**V, "id": None, "error": "bad json"}, (_RESPONSE, None, True, None)),
    ({**V, "id": 9, "error": {}}, (_RESPONSE, 9, True, None)),
    ({**V, "id": 9, "error": {"code": True, "message": ""}}, (_RESPONSE, 9, True, None)),
    ({**V, "id": 9, "error": {"code": 1.5, "message": ""}}, (_RESPONSE, 9, True, None)),
    ({**V, "id": 9, "error": {"code": "-32601", "message": ""}}, (_RESPONSE, 9, True, None)),
    ({**V, "id": 9, "error": {"code": 1, "message": 5}}, (_RESPONSE, 9, True, None)),
    # two readings of one message
    ({**V, "id": 1, "method": "ping", "result": {}}, (_NONE, 1, True, None)),
    ({**V, "id": 1, "method": "ping", "error": None}, (_NONE, 1, True, None)),
]


@pytest.mark.req("B1", "B5", "U6")
@pytest.mark.case("J-02", "J-04", "J-06", "J-08", "J-18")
@pytest.mark.parametrize(("value", "expected"), VALID + REPAIRED, ids=range(len(VALID + REPAIRED)))
def test_what_is_a_message(value: JsonValue, expected: tuple[Any, ...]) -> None:
    message = classify(value)
    assert essence(message) == expected
    assert repr(essence(message)) == repr(expected)


@pytest.mark.req("B5")
@pytest.mark.case("S-06", "J-03", "J-05", "J-06", "J-08", "J-09", "J-16")
@pytest.mark.parametrize(("value", "expected"), INVALID, ids=range(len(INVALID)))
def test_what_is_not(value: JsonValue, expected: tuple[Any, ...]) -> None:
    message = classify(value)
    assert essence(message) == ("invalid", *expected)
    assert isinstance(message, InvalidMessage)
    assert type(message.id) is type(expected[1])
    assert message.detail


@pytest.mark.req("B10")
@pytest.mark.parametrize("value", [row[0] for row in VALID + REPAIRED] + [row[0] for row in INVALID])
def test_an_untouched_message_is_written_again_without_loss(value: JsonValue) -> None:
    codec = default_codec()
    data = codec.dumps(value)
    decoded = codec.loads(data)
    message = classify(decoded)
    assert message.raw is decoded
    assert codec.dumps(message.raw) == data


def test_absent_params_are_an_object_of_the_messages_own() -> None:
    first, second = classify({**V, "id": 1, "method": "x"}), classify({**V, "id": 2, "method": "x"})
    assert isinstance(first, Request)
    assert isinstance(second, Request)
    first.params["a"] = 1
    assert second.params == {}
    assert "params" not in first.raw


@pytest.mark.parametrize(
    "value",
    [
        {**V, "id": 1, "method": "x", "params": {"token": "hunter2"}},
        {**V, "method": "x", "params": {"token": "hunter2"}},
        {**V, "id": 1, "result": {"requestState": "hunter2"}},
        {**V, "id": 1, "error": {"code": 1, "message": "m", "data": "hunter2"}},
        {**V, "id": 1, "method": "x", "params": ["hunter2"]},
        {"x": "hunter2"},
    ],
)
def test_no_payload_in_a_repr(value: JsonValue) -> None:
    assert "hunter2" not in repr(classify(value))


# batches -----------------------------------------------------------------------------------------

PING: JsonValue = {**V, "id": 1, "method": "ping"}
ANSWER: JsonValue = {**V, "id": 1, "result": {}}

BATCHES: list[tuple[JsonValue, bool, PeerFault | None, bool]] = [
    # value, allowed → fault, like a response
    ([PING, PING], True, None, False),
    ([1], True, None, False),
    ([[]], True, None, False),
    ([PING] * 3, True, None, False),
    ([PING] * 4, True, PeerFault.BATCH_TOO_LARGE, False),
    ([ANSWER] * 4, True, PeerFault.BATCH_TOO_LARGE, True),
    ([], True, PeerFault.EMPTY_BATCH, False),
    ([], False, PeerFault.BATCH_NOT_ALLOWED, False),
    ([PING, PING], False, PeerFault.BATCH_NOT_ALLOWED, False),
    ([PING, ANSWER], False, PeerFault.BATCH_NOT_ALLOWED, True),
]


@pytest.mark.req("B14")
@pytest.mark.case("J-10")
@pytest.mark.parametrize(("value", "allowed", "fault", "is_response"), BATCHES, ids=range(len(BATCHES)))
def test_batches(value: JsonValue, allowed: bool, fault: PeerFault | None, is_response: bool) -> None:
    members = split_batch(value, allowed, 3)
    if fault is None:
        assert members is value
    else:
        assert isinstance(members, InvalidMessage)
        expected = ("invalid", fault, None, is_response, None if is_response else _600)
        assert essence(members) == expected
        assert members.raw is value


@pytest.mark.parametrize("allowed", [True, False])
@pytest.mark.parametrize("value", [PING, None, 1, "x"])
def test_what_is_no_batch_stays_alone(value: JsonValue, allowed: bool) -> None:
    members = split_batch(value, allowed, 3)
    assert isinstance(members, list)
    assert len(members) == 1
    assert members[0] is value


# anything ----------------------------------------------------------------------------------------

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False)
    | st.sampled_from(["2.0", "", "ping", "notifications/x", "\ud800"])
)
anything = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["jsonrpc", "id", "method", "params", "result", "error", "code", "message", "data"]
            ),
            inner,
            max_size=6,
        )
    ),
)


@settings(deadline=None)
@given(anything)
def test_anything_is_one_kind_of_message(value: JsonValue) -> None:
    message = classify(value)
    assert message.raw is value
    if not isinstance(message, Notification):
        assert message.id is None or is_request_id(message.id)
    if isinstance(message, InvalidMessage):
        assert not (message.like_response and message.hint)
    else:
        assert isinstance(value, dict)
        assert ("method" in value) is isinstance(message, Request | Notification)


# building ----------------------------------------------------------------------------------------


class Code(IntEnum):
    X = -5


class Name(StrEnum):
    PING = "ping"


BUILT: list[tuple[dict[str, Any], str]] = [
    (request(1, "ping"), '{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}'),
    (request("a", Name.PING, {"x": 1}), '{"jsonrpc":"2.0","id":"a","method":"ping","params":{"x":1}}'),
    (request(0, "x", UserDict(a=1)), '{"jsonrpc":"2.0","id":0,"method":"x","params":{"a":1}}'),
    (notification("notifications/x"), '{"jsonrpc":"2.0","method":"notifications/x"}'),
    (notification("window/log", {}), '{"jsonrpc":"2.0","method":"window/log","params":{}}'),
    (result_response("", {"a": 1}), '{"jsonrpc":"2.0","id":"","result":{"a":1}}'),
    (error_response(1, -32601, "no"), '{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}'),
    (
        error_response(1, Code.X, "no", data=None),
        '{"jsonrpc":"2.0","id":1,"error":{"code":-5,"message":"no","data":null}}',
    ),
    (error_response(None, 1, "no"), '{"jsonrpc":"2.0","error":{"code":1,"message":"no"}}'),
    (
        error_response(None, 1, "no", {"a": 1}, null_id=True),
        '{"jsonrpc":"2.0","id":null,"error":{"code":1,"message":"no","data":{"a":1}}}',
    ),
    (error_response(0, 1, "no", null_id=True), '{"jsonrpc":"2.0","id":0,"error":{"code":1,"message":"no"}}'),
]


@pytest.mark.case("J-08")
@pytest.mark.parametrize(("message", "text"), BUILT, ids=range(len(BUILT)))
def test_what_is_built_has_a_fixed_form_and_is_a_message(message: dict[str, Any], text: str) -> None:
    codec = default_codec()
    assert codec.dumps(message) == text.encode()
    assert not isinstance(classify(codec.loads(text)), InvalidMessage)


def lie(value: object) -> Any:
    """`value`, of which the type checker would not approve."""
    return value


MISUSE: list[tuple[str, Callable[[], object]]] = [
    ("an id is", lambda: request(lie(True), "ping")),
    ("an id is", lambda: request(lie(None), "ping")),
    ("an id is", lambda: request(lie(1.0), "ping")),
    ("an id is", lambda: request("\ud800", "ping")),
    ("a method is", lambda: request(1, "")),
    ("a method is", lambda: request(1, lie(1))),
    ("a method is", lambda: request(1, "a\udfff")),
    ("name of a notification", lambda: request(1, "notifications/initialized")),
    ("params are", lambda: request(1, "ping", lie([1]))),
    ("params are", lambda: request(1, "ping", lie("x"))),
    ("a method is", lambda: notification("")),
    ("params are", lambda: notification("notifications/x", lie([]))),
    ("an id is", lambda: result_response(lie(None), {})),
    ("a result is", lambda: result_response(1, lie([]))),
    ("a result is", lambda: result_response(1, lie(None))),
    ("an id is", lambda: error_response(lie(False), 1, "x")),
    ("an error code is", lambda: error_response(1, lie(True), "x")),
    ("an error code is", lambda: error_response(1, lie(1.0), "x")),
    ("an error code is", lambda: error_response(1, lie("1"), "x")),
    ("an error message is", lambda: error_response(1, 1, lie(None))),
]


@pytest.mark.parametrize(("problem", "build"), MISUSE, ids=range(len(MISUSE)))
def test_misuse_is_told_at_once(problem: str, build: Callable[[], object]) -> None:
    with pytest.raises(LocalProtocolError, match=problem):
        build()


def test_absent_has_a_name() -> None:
    assert repr(ABSENT) == "ABSENT"


@pytest.mark.req("B1")
def test_the_envelope_needs_no_engine() -> None:
    code = "import sys, sansmcp.wire.jsonrpc; print(*(m for m in sys.modules if m.startswith('sansmcp.')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    allowed = {
        "wire",
        "wire.jsonrpc",
        "wire.jsoncodec",
        "wire.depth",
        "errors",
        "limits",
        "records",
        "revisions",
    }
    assert {name.removeprefix("sansmcp.") for name in done.stdout.split()} <= allowed
