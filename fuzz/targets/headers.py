"""INVARIANT: whatever headers, body and schema arrive, reading them raises nothing but HeaderValueError out
of decode_value; what is projected from a message agrees with it and can be routed; and a header that says
something else is found."""

from __future__ import annotations

import contextlib
from typing import Any

from fuzz.steps import Steps
from sansmcp import Era, LocalProtocolError
from sansmcp.http.guard import ANY, GuardPolicy, check_host_origin
from sansmcp.http.headers import (
    Annotations,
    HeaderFault,
    HeaderValueError,
    Problem,
    RouteKey,
    check_tools,
    decode_value,
    encode_value,
    project_headers,
    read_annotations,
    route_key,
    validate_projection,
)
from sansmcp.http.status import is_modern_error, status_for_error

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
METHODS = [
    "tools/call",
    "prompts/get",
    "resources/read",
    "tools/list",
    "tasks/get",
    "vendor/x",
    "notifications/x",
]
KEYWORDS = ["properties", "items", "anyOf", "$defs", "default", "x-mcp-header", "type", "a", "b"]
TYPES = ["string", "integer", "boolean", "number", "object"]
NAMES = [
    "MCP-Protocol-Version",
    "mcp-method",
    "MCP-NAME",
    "Mcp-Param-A",
    "Mcp-Param-B",
    "Host",
    "Origin",
    "x",
]
POLICIES = [GuardPolicy(), GuardPolicy(hosts=["a.example:80"], origins=["https://a.example", "null"])]
LARGEST = 2**53 - 1


def text(steps: Steps) -> str:
    raw = steps.take(steps.byte() % 24)
    return raw.decode(steps.choose(["latin-1", "utf-8", "utf-16-le"]), "replace")


def value(steps: Steps) -> str:
    """The value of a header: any text, or one in the encoded form."""
    inner = text(steps)
    return steps.choose(
        [inner, f"=?base64?{inner}?=", f" {inner}\t", "=?base64?YQ==?=", "42", "42.0", "true"]
    )


def schema(steps: Steps, depth: int = 0) -> Any:
    """A schema that is often a valid one."""
    if depth > 4 or not steps.more:
        return steps.value()
    match steps.byte() % 4:
        case 0:
            return {"type": steps.choose(TYPES), "x-mcp-header": steps.choose(["A", "B", "b", text(steps)])}
        case 1:
            names = ["a", "b", "x-mcp-header"]
            return {
                "properties": {steps.choose(names): schema(steps, depth + 1) for _ in range(steps.byte() % 4)}
            }
        case 2:
            return {steps.choose(KEYWORDS): schema(steps, depth + 1) for _ in range(steps.byte() % 3)}
        case _:
            return [schema(steps, depth + 1) for _ in range(steps.byte() % 3)]


def argument(steps: Steps, depth: int = 0) -> Any:
    if depth < 3 and steps.byte() % 3 == 0:
        return {steps.choose(["a", "b"]): argument(steps, depth + 1) for _ in range(steps.byte() % 3)}
    return steps.choose([None, True, 0, -1, 42, 42.0, 0.5, LARGEST, LARGEST + 1, 1e300, "", [], text(steps)])


def message(steps: Steps) -> dict[str, Any]:
    params = {
        **{member: text(steps) for member in ("name", "uri", "taskId")},
        "arguments": argument(steps),
        "_meta": {VERSION_KEY: steps.choose(["2026-07-28", "2025-11-25", text(steps), None])},
    }
    made: dict[str, Any] = {
        "jsonrpc": "2.0",
        "method": steps.choose([*METHODS, text(steps)]),
        "params": params,
    }
    if steps.byte() % 8:
        made["id"] = 1
    return made


def check_value(given: str) -> None:
    encoded = encode_value(given)
    assert all(" " <= c <= "~" for c in encoded), encoded
    assert decode_value(encoded) == given, encoded
    with contextlib.suppress(HeaderValueError):
        decode_value(given)


def check_schema(raw: Any) -> Annotations:
    read = read_annotations(raw)
    kept, excluded = check_tools([{"name": "t", "inputSchema": raw}, raw])
    assert len(kept) + len(excluded) == 2
    if isinstance(read, Problem):
        assert excluded
        assert read.reason.isascii()
        return Annotations()
    assert len({a.header.lower() for a in read}) == len(read)
    return read


def check_message(steps: Steps, sent: dict[str, Any], annotations: Annotations) -> None:
    try:
        headers = project_headers(sent, annotations)
    except LocalProtocolError:
        return
    fault = validate_projection(headers, sent, annotations)
    assert fault is None, fault
    if "id" in sent:
        key = route_key(headers)
        assert isinstance(key, RouteKey), key
        assert (headers[0][1], headers[1][1]) == (key.version, key.method)
    for name, said in headers:
        other = encode_value(text(steps))
        same = decode_value(other) == decode_value(said)
        if not same and not decode_value(other)[-1:].isdigit():
            changed = [(n, other if n == name else v) for n, v in headers]
            assert validate_projection(changed, sent, annotations) is not None, (changed, sent)
        assert validate_projection([*headers, (name.lower(), said)], sent, annotations) is not None


def one_input(data: bytes) -> None:
    steps = Steps(data)
    check_value(text(steps))
    annotations = check_schema(schema(steps))
    sent = message(steps)
    check_message(steps, sent, annotations)
    lines = [(steps.choose(NAMES), value(steps)) for _ in range(steps.byte() % 8)]
    for body in (sent, steps.value()):
        fault = validate_projection(lines, body, annotations)
        assert fault is None or fault.message.isascii()
    assert isinstance(route_key(lines), RouteKey | HeaderFault)
    for policy in (*POLICIES, GuardPolicy(hosts=ANY)):
        refusal = check_host_origin(lines, policy)
        assert refusal is None or refusal.status in (400, 403, 421)
    error = {"code": steps.choose([-32020, -32021, -32022, -32601]), "message": "m", "data": steps.value()}
    assert is_modern_error({"jsonrpc": "2.0", "id": 1, "error": error}) in (True, False)
    assert status_for_error(steps.byte() - 32700, steps.choose(list(Era))) in (200, 400, 404)
