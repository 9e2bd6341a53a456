"""What every floor sends, and the bare codecs that do it."""

import json
from collections.abc import Callable
from typing import Any

import msgspec

from . import messages

Loads = Callable[[bytes], Any]
Dumps = Callable[[Any], bytes]


def codec(name: str) -> tuple[Loads, Dumps]:
    """The bare codec that our codec of this name stands on."""
    if name == "fast":
        return msgspec.json.Decoder().decode, msgspec.json.Encoder().encode
    encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
    return json.loads, lambda value: encode(value).encode()


def request(number: int) -> dict[str, Any]:
    """A call of the echo tool."""
    params = {"name": "echo", "arguments": {"text": messages.TEXT}, "_meta": messages.REQUEST_META}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


def headers(port: int, size: int) -> list[tuple[str, str]]:
    """Those that the protocol asks for, of a call whose body has `size` bytes."""
    return [
        ("host", f"127.0.0.1:{port}"),
        ("content-type", "application/json"),
        ("accept", "application/json, text/event-stream"),
        ("accept-encoding", "identity"),
        ("mcp-protocol-version", messages.REVISION),
        ("mcp-method", "tools/call"),
        ("mcp-name", "echo"),
        ("content-length", str(size)),
    ]
