"""INVARIANT: of any text both codecs give the same verdict and value, only JsonError refuses it, what
was read is written and read again without loss, and every value is one kind of message."""

from __future__ import annotations

from typing import Any

from sansmcp.errors import PeerFault
from sansmcp.wire.jsoncodec import JsonCodec, JsonError, fast_codec, standard_codec
from sansmcp.wire.jsonrpc import (
    ErrorResponse,
    InvalidMessage,
    Notification,
    Request,
    ResultResponse,
    classify,
    is_request_id,
    split_batch,
)
from sansmcp.wire.peek import excerpt, sight, wants_parse_error

DEPTH = 16
CODECS: list[JsonCodec] = [standard_codec(DEPTH), fast_codec(DEPTH)]
STRICT: list[JsonCodec] = [
    standard_codec(DEPTH, reject_duplicate_keys=True),
    fast_codec(DEPTH, reject_duplicate_keys=True),
]


def read(codec: JsonCodec, data: bytes | str) -> tuple[str, Any]:
    """The kind of verdict, and the value or the error's words. Values differ if their repr does."""
    try:
        return "value", codec.loads(data)
    except JsonError as error:
        return error.fault.name, (str(error), error.position)


def agree(codecs: list[JsonCodec], data: bytes | str) -> tuple[str, Any]:
    first, second = (read(codec, data) for codec in codecs)
    assert repr(first) == repr(second), "the codecs disagree"
    return first


def one_input(data: bytes) -> None:
    verdict, value = agree(CODECS, data)
    strict_verdict, _ = agree(STRICT, data)
    assert strict_verdict in {verdict, PeerFault.DUPLICATE_KEY.name}
    wants_parse_error(data)
    assert len(excerpt(data, 64)) <= 64
    seen = sight(data, data)
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        assert verdict == PeerFault.INVALID_UTF8.name
    else:
        # As text the bytes of a surrogate, which are no UTF-8, are a surrogate, which has none.
        assert agree(CODECS, text)[0] == verdict
    if verdict != "value":
        return

    for writer in CODECS:
        line = writer.dumps(value)
        assert line.decode().splitlines() == [line.decode()]
        for reader in CODECS:
            assert repr(reader.loads(line)) == repr(value), "lost on the way"

    if seen.id is not None and strict_verdict == "value":
        assert isinstance(value, dict)
        assert repr(value["id"]) == repr(seen.id)
    if seen.like_response:
        assert isinstance(value, dict)
        assert "result" in value or "error" in value

    members = split_batch(value, True, 4)
    for member in [value] if isinstance(members, InvalidMessage) else [value, *members]:
        check(member)


def check(value: Any) -> None:
    message = classify(value)
    assert message.raw is value
    repr(message)
    if isinstance(message, InvalidMessage):
        assert message.id is None or is_request_id(message.id)
        assert message.hint is None or not message.like_response
        return
    raw = message.raw
    match message:
        case Request() | Notification():
            assert message.method == raw["method"]
            assert message.params == raw.get("params", {})
            assert ("id" in raw) == isinstance(message, Request)
        case ResultResponse():
            assert message.result is raw["result"]
            assert "error" not in raw
        case ErrorResponse():
            assert message.id == raw.get("id")
            assert "result" not in raw
