"""The JSON-RPC envelope: what kind of message a decoded value is, and values to send.

Functions over plain dicts, without state and without I/O, so that they can be used apart from the
engine. `classify` never raises: what is no valid message comes back as an `InvalidMessage`, which
names the fault and, where it could be read, the id that is still to be answered or failed.

Every message keeps the decoded dict it was made from as `raw`. A message that is passed on by its
`raw` loses nothing, unknown members included.

Specification: 2026-07-28, basic (messages); 2025-03-26, basic (batching).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias, TypeGuard

import attrs

from ..errors import ErrorCode, LocalProtocolError, PeerFault
from ..records import record
from .jsoncodec import JsonObject, JsonValue

RequestId: TypeAlias = int | str
"""The id of a request. Never a bool, a float or null; ``1`` and ``"1"`` are two ids."""

NOTIFICATION_PREFIX: Final = "notifications/"
"""How the names of all notifications of the protocol begin."""


@record
class Request:
    """A call that wants an answer with the same `id`."""

    id: RequestId
    method: str
    params: JsonObject = attrs.field(repr=False)
    """The parameters; an empty dict when the message has none."""
    raw: JsonObject = attrs.field(repr=False)
    """The message as it was decoded."""


@record
class Notification:
    """A message that must not be answered.

    Whether `method` is in truth the name of a request that lost its id, is known to those who know
    the methods.
    """

    method: str
    params: JsonObject = attrs.field(repr=False)
    """The parameters; an empty dict when the message has none."""
    raw: JsonObject = attrs.field(repr=False)
    """The message as it was decoded."""


@record
class ResultResponse:
    """The answer to the request `id`."""

    id: RequestId
    result: JsonObject = attrs.field(repr=False)
    raw: JsonObject = attrs.field(repr=False)
    """The message as it was decoded."""


@record
class ErrorResponse:
    """The refusal of the request `id`, or of something unreadable when `id` is None."""

    id: RequestId | None
    code: int
    message: str
    data: JsonValue = attrs.field(repr=False)
    """Verbatim; None when the message has none (`raw` tells that from null)."""
    raw: JsonObject = attrs.field(repr=False)
    """The message as it was decoded."""
    repaired: str | None = None
    """What had to be read leniently, in words; None for a correct message."""


@record
class InvalidMessage:
    """A value that is no valid message."""

    fault: PeerFault
    detail: str
    """One line for people, which quotes nothing of the message."""
    id: RequestId | None
    """The id, if it could be read: of a request to refuse, or of a call of ours that failed."""
    like_response: bool
    """Whether it was meant as a response. Those are never answered, lest two peers answer each
    other's errors without end."""
    raw: JsonValue = attrs.field(repr=False)
    """The value as it was decoded."""

    @property
    def hint(self) -> ErrorCode | None:
        """The error to answer with, under `id` or without one; None if it must not be answered."""
        if self.like_response:
            return None
        if self.fault is PeerFault.INVALID_PARAMS:
            return ErrorCode.INVALID_PARAMS if self.id is not None else None
        return ErrorCode.INVALID_REQUEST


Message: TypeAlias = Request | Notification | ResultResponse | ErrorResponse | InvalidMessage
"""What `classify` returns."""


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()
"""No such member, where null would be one."""

_get_absent: Final[Any] = ABSENT  # as a default of dict.get, where the types would get in the way


def is_request_id(value: object) -> TypeGuard[RequestId]:
    """Whether `value` can be the id of a request: an integer, or a string that UTF-8 can hold."""
    kind = type(value)
    return kind is int or (isinstance(value, str) and _is_text(value)) or _is_int(value)


def classify(value: JsonValue) -> Message:
    """Tell what kind of message `value` is. Never raises.

    A batch is no message: see `split_batch`.
    """
    if not isinstance(value, dict):
        return InvalidMessage(
            PeerFault.NOT_A_MESSAGE, f"{_kind(value)} instead of an object", None, False, value
        )
    if value.get("jsonrpc") != "2.0":
        return _invalid(PeerFault.NOT_A_MESSAGE, 'no member "jsonrpc" with the value "2.0"', value)
    method = value.get("method", _get_absent)
    if method is ABSENT:
        return _classify_response(value)
    if type(method) is not str or not method or not _is_text(method):
        return _invalid(PeerFault.INVALID_METHOD, "the method is no name", value)
    if "result" in value or "error" in value:
        # Two readers could take this for two different messages.
        return _invalid(PeerFault.NOT_A_MESSAGE, "both a request and a response", value)
    id_ = value.get("id", _get_absent)
    if id_ is not ABSENT:
        if not is_request_id(id_):
            return _invalid(PeerFault.INVALID_ID, f"{_kind(id_)} as the id of a request", value)
        if method.startswith(NOTIFICATION_PREFIX):
            return _invalid(PeerFault.NOTIFICATION_WITH_ID, "a notification has no id", value)
    params = value.get("params", _get_absent)
    if params is ABSENT:
        params = {}
    elif not isinstance(params, dict):
        return _invalid(PeerFault.INVALID_PARAMS, f"{_kind(params)} as params", value)
    if id_ is ABSENT:
        return Notification(method, params, value)
    return Request(id_, method, params, value)


def _classify_response(value: JsonObject) -> Message:
    result = value.get("result", _get_absent)
    error = value.get("error", _get_absent)
    id_ = value.get("id", _get_absent)
    if result is ABSENT and error is ABSENT:
        if id_ is ABSENT:
            return _invalid(PeerFault.NOT_A_MESSAGE, "neither a method nor an answer", value)
        return _invalid(PeerFault.INVALID_RESPONSE, "neither a result nor an error", value)
    if result is not ABSENT and error is not ABSENT:
        return _invalid(PeerFault.INVALID_RESPONSE, "both a result and an error", value)
    if error is not ABSENT and (id_ is ABSENT or id_ is None):
        return _classify_error(None, error, value)
    if id_ is ABSENT:
        return _invalid(PeerFault.INVALID_RESPONSE, "a result without an id", value)
    if not is_request_id(id_):
        return _invalid(PeerFault.INVALID_ID, f"{_kind(id_)} as the id of a response", value)
    if error is not ABSENT:
        return _classify_error(id_, error, value)
    if not isinstance(result, dict):
        return _invalid(PeerFault.INVALID_RESPONSE, f"{_kind(result)} as a result", value)
    return ResultResponse(id_, result, value)


def _classify_error(id_: RequestId | None, error: JsonValue, value: JsonObject) -> Message:
    """Read the error object; leniently where it still says which error it is."""
    if not isinstance(error, dict):
        return _invalid(PeerFault.INVALID_RESPONSE, f"{_kind(error)} as an error", value)
    code = error.get("code")
    message = error.get("message")
    repaired = None
    if not _is_int(code):
        if not (isinstance(code, float) and code.is_integer()):
            return _invalid(PeerFault.INVALID_RESPONSE, f"{_kind(code)} as an error code", value)
        code = int(code)
        repaired = "the error code was written as a fraction"
    if not isinstance(message, str):
        if message is not None:
            return _invalid(PeerFault.INVALID_RESPONSE, f"{_kind(message)} as an error message", value)
        message = ""
        repaired = "the error had no message"
    return ErrorResponse(id_, code, message, error.get("data"), value, repaired)


def split_batch(value: JsonValue, allowed: bool, max_batch: int) -> list[JsonValue] | InvalidMessage:
    """Return the members of a batch, or the value alone if it is none.

    `allowed` says whether the revision has batches (2025-03-26 alone). A batch where there are
    none, an empty one, and one of more than `max_batch` members is one InvalidMessage as a whole.
    Members may be of any kind; each is to be classified.
    """
    if not isinstance(value, list):
        return [value]
    if not allowed:
        fault, detail = PeerFault.BATCH_NOT_ALLOWED, "this revision has no batches"
    elif not value:
        fault, detail = PeerFault.EMPTY_BATCH, "an empty batch"
    elif len(value) > max_batch:
        fault, detail = PeerFault.BATCH_TOO_LARGE, f"a batch of more than {max_batch} messages"
    else:
        return value
    like_response = any(isinstance(member, dict) and _like_response(member) for member in value)
    return InvalidMessage(fault, detail, None, like_response, value)


def request(id: RequestId, method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a request. Without `params` it carries an empty object, which no receiver minds.

    Raises LocalProtocolError for an id that is no int or str, and for the name of a notification.
    """
    _check_id(id)
    _check_method(method)
    if method.startswith(NOTIFICATION_PREFIX):
        raise LocalProtocolError(f"{method!r} is the name of a notification, not of a request")
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": _params(params)}


def notification(method: str, params: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a notification; without `params` it has no such member.

    Raises LocalProtocolError for a method that is no name.
    """
    _check_method(method)
    if params is None:
        return {"jsonrpc": "2.0", "method": method}
    return {"jsonrpc": "2.0", "method": method, "params": _params(params)}


def result_response(id: RequestId, result: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to request `id`. Raises LocalProtocolError for a result that is no object."""
    _check_id(id)
    if not isinstance(result, (dict, Mapping)):
        raise LocalProtocolError(f"a result is an object, not {type(result).__name__}")
    return {"jsonrpc": "2.0", "id": id, "result": result}


def error_response(
    id: RequestId | None, code: int, message: str, data: object = ABSENT, *, null_id: bool = False
) -> dict[str, Any]:
    """Return the refusal of request `id`, or of an unreadable one when `id` is None.

    Without an id the message has no such member, or null with `null_id` (for legacy peers). `data`
    is any JSON value; ABSENT, the default, leaves the member out. Raises LocalProtocolError for a
    code that is no int and a message that is no str.
    """
    if not _is_int(code):
        raise LocalProtocolError(f"an error code is an int, not {type(code).__name__}")
    if not isinstance(message, str):
        raise LocalProtocolError(f"an error message is a str, not {type(message).__name__}")
    envelope: dict[str, Any] = {"jsonrpc": "2.0"}
    if id is not None:
        _check_id(id)
        envelope["id"] = id
    elif null_id:
        envelope["id"] = None
    error: dict[str, Any] = {"code": int(code), "message": message}
    if data is not ABSENT:
        error["data"] = data
    envelope["error"] = error
    return envelope


def _invalid(fault: PeerFault, detail: str, value: JsonObject) -> InvalidMessage:
    id_ = value.get("id")
    return InvalidMessage(fault, detail, id_ if is_request_id(id_) else None, _like_response(value), value)


def _like_response(value: JsonObject) -> bool:
    return "result" in value or "error" in value


def _is_int(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_text(value: str) -> bool:
    """Whether UTF-8 can hold `value`: a lone surrogate cannot be told apart once it was logged."""
    if value.isascii():
        return True
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _kind(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int():
            return "an integer"
        case float():
            return "a fraction"
        case str():
            return "a string"
        case list():
            return "an array"
        case dict():
            return "an object"
        case _:
            return "nothing" if value is ABSENT else type(value).__name__


def _check_id(id_: object) -> None:
    if not is_request_id(id_):
        raise LocalProtocolError(f"an id is an int or a str without surrogates, not {_kind(id_)}")


def _check_method(method: object) -> None:
    if not isinstance(method, str) or not method or not _is_text(method):
        raise LocalProtocolError("a method is a name: a str, not empty, without surrogates")


def _params(params: Mapping[str, Any] | None) -> Mapping[str, Any]:
    if params is None:
        return {}
    if not isinstance(params, (dict, Mapping)):
        raise LocalProtocolError(f"params are an object, not {type(params).__name__}")
    return params
