"""Values of headers, schemas with annotations, and messages, and what each of them means."""

from __future__ import annotations

from typing import Any, Final

from sansmcp.http.headers import LARGEST_INTEGER, MAX_SCHEMA_DEPTH, MAX_SCHEMA_NODES, HeaderFaultKind

from ..support import meta

VERSION: Final = "MCP-Protocol-Version"
MODERN: Final = "2026-07-28"
HUGE: Final = 10**4200
Kind = HeaderFaultKind


def request(method: str, params: dict[str, Any] | None = None, version: Any = MODERN) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), "_meta": meta(version)}}


def call(arguments: Any = None, name: Any = "t") -> dict[str, Any]:
    return request("tools/call", {"name": name, "arguments": arguments})


def schema(**types: str) -> dict[str, Any]:
    """Each property mirrored as its own name in title case."""
    return {
        "type": "object",
        "properties": {n: {"type": t, "x-mcp-header": n.title()} for n, t in types.items()},
    }


ENCODED: Final = [
    ("us-west1", "us-west1"),
    ("us west  1", "us west  1"),
    ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
    ("日本語", "=?base64?5pel5pys6Kqe?="),
    (" padded ", "=?base64?IHBhZGRlZCA=?="),
    (" us-west1", "=?base64?IHVzLXdlc3Qx?="),
    ("us-west1 ", "=?base64?dXMtd2VzdDEg?="),
    ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
    ("line1\r\nline2", "=?base64?bGluZTENCmxpbmUy?="),
    ("\tindented", "=?base64?CWluZGVudGVk?="),
    ("a\tb", "=?base64?YQli?="),
    ("\0", "=?base64?AA==?="),
    ("\x7f", "=?base64?fw==?="),
    ("\x85", "=?base64?woU=?="),
    ("", ""),
    (" ", "=?base64?IA==?="),
    ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
    ("=?base64?aGk=?=", "=?base64?PT9iYXNlNjQ/YUdrPT89?="),
    ("=?base64??=", "=?base64?PT9iYXNlNjQ/Pz0=?="),
    ("=?base64?=", "=?base64?PT9iYXNlNjQ/PQ==?="),
    ("=?BASE64?aGk=?=", "=?BASE64?aGk=?="),
    ("=?base64?aGk=", "=?base64?aGk="),
    ("aGk=?=", "aGk=?="),
    ("file:///path/to/file%20name.txt", "file:///path/to/file%20name.txt"),
    ("https://example.com/resource?id=123", "https://example.com/resource?id=123"),
]
"""A plain value, and what is sent for it."""

MALFORMED: Final = [
    ("=?base64?SGVsbG8?=", "base64"),
    ("=?base64?SGVs!!!bG8=?=", "base64"),
    ("=?base64?SGVs bG8=?=", "base64"),
    ("=?base64?SGVsbG8==?=", "base64"),
    ("=?base64?SGVsbG9=?=", "base64"),  # stray bits after the last byte
    ("=?base64?-_-_?=", "base64"),  # the alphabet for addresses
    ("=?base64?====?=", "base64"),
    ("=?base64?=", "base64"),
    ("=?base64?/w==?=", "UTF-8"),
    ("=?base64?7aCA?=", "UTF-8"),  # a surrogate, as some encoders write it
    ("=?base64?wIA=?=", "UTF-8"),  # an overlong form
    ("São", "characters"),
    ("S\xc3\xa3o", "characters"),
    ("a\r\nX-Evil: 1", "characters"),
    ("a\n", "characters"),
    ("a\0", "characters"),
    ("\x7f", "characters"),
    ("\udcc3", "characters"),
]
"""What cannot be the value of a header, and a word of the reason."""

STRING: Final[dict[str, Any]] = {"type": "string", "x-mcp-header": "A"}

FOUND: Final[list[tuple[Any, list[tuple[str, str, str]]]]] = [
    (None, []),
    (True, []),
    ([], []),
    ("x-mcp-header", []),
    ({}, []),
    ({"type": "object", "properties": {"a": {"type": "string"}}}, []),
    ({"properties": {"a": STRING}}, [("A", "a", "string")]),
    (
        {
            "properties": {
                "n": {"type": "integer", "x-mcp-header": "!#$%&'*+-.^_`|~9z"},
                "b": {"type": "boolean", "x-mcp-header": "Method"},
            }
        },
        [("!#$%&'*+-.^_`|~9z", "n", "integer"), ("Method", "b", "boolean")],
    ),
    # nested, and the outer ones first
    (
        {
            "properties": {
                "o": {"properties": {"i": {"properties": {"p": STRING}}}},
                "z": {"type": "string", "x-mcp-header": "Z"},
            }
        },
        [("Z", "z", "string"), ("A", "o.i.p", "string")],
    ),
    # a property may be called anything
    ({"properties": {"x-mcp-header": {"type": "string"}}}, []),
    (
        {"properties": {"properties": {"properties": {"items": STRING}}}},
        [("A", "properties.items", "string")],
    ),
    # the same words as data
    ({"default": STRING, "const": STRING, "enum": [STRING], "examples": [STRING]}, []),
    ({"properties": {"a": {"default": {"x-mcp-header": ""}, "enum": [{"x-mcp-header": 1}]}}}, []),
    ({"$defs": {"x-mcp-header": {"type": "string"}}, "required": ["x-mcp-header"]}, []),
    ({"dependentRequired": {"x-mcp-header": ["a"]}}, []),
    # other keywords beside the chain do not break it
    ({"allOf": [{}], "$ref": "#/$defs/x", "properties": {"a": STRING}}, [("A", "a", "string")]),
]
"""An input schema, and name, path and type of each annotation in it."""


def deep(levels: int) -> dict[str, Any]:
    """A schema with one annotation, that many properties deep."""
    node: dict[str, Any] = dict(STRING)
    for _ in range(levels):
        node = {"properties": {"p": node}}
    return node


BAD: Final[list[tuple[str, Any, str]]] = [
    ("empty", {"properties": {"a": {"type": "string", "x-mcp-header": ""}}}, "'a'.*cannot be part"),
    ("space", {"properties": {"a": {"type": "string", "x-mcp-header": "My Region"}}}, "'My Region'"),
    ("colon", {"properties": {"a": {"type": "string", "x-mcp-header": "Region:Primary"}}}, "Primary"),
    ("non-ascii", {"properties": {"a": {"type": "string", "x-mcp-header": "Région"}}}, "xe9gion"),
    ("control", {"properties": {"a": {"type": "string", "x-mcp-header": "Region\t1"}}}, "cannot be part"),
    ("line end", {"properties": {"a": {"type": "string", "x-mcp-header": "Region\n"}}}, "cannot be part"),
    ("number as name", {"properties": {"a": {"type": "string", "x-mcp-header": 5}}}, "a int"),
    ("null as name", {"properties": {"a": {"type": "string", "x-mcp-header": None}}}, "NoneType"),
    ("list as name", {"properties": {"a": {"type": "string", "x-mcp-header": ["A"]}}}, "a list"),
    ("number", {"properties": {"a": {"type": "number", "x-mcp-header": "A"}}}, "type 'number'"),
    ("object", {"properties": {"a": {"type": "object", "x-mcp-header": "A"}}}, "type 'object'"),
    ("array", {"properties": {"a": {"type": "array", "x-mcp-header": "A"}}}, "type 'array'"),
    ("null", {"properties": {"a": {"type": "null", "x-mcp-header": "A"}}}, "type 'null'"),
    ("no type", {"properties": {"a": {"enum": ["x"], "x-mcp-header": "A"}}}, "no single type"),
    ("two types", {"properties": {"a": {"type": ["string", "null"], "x-mcp-header": "A"}}}, "no single"),
    ("twice", {"properties": {"a": STRING, "b": STRING}}, "'b'.*taken"),
    (
        "twice in another case",
        {
            "properties": {
                "a": {"type": "string", "x-mcp-header": "Id"},
                "b": {"type": "string", "x-mcp-header": "ID"},
            }
        },
        "taken",
    ),
    ("root", STRING, "root"),
    ("items", {"properties": {"a": {"items": STRING}}}, "below property 'a'"),
    ("tuple", {"properties": {"a": {"prefixItems": [{}, STRING]}}}, "below property 'a'"),
    ("property of items", {"properties": {"a": {"items": {"properties": {"b": STRING}}}}}, "below"),
    ("oneOf", {"oneOf": [{"properties": {"a": STRING}}]}, "below the schema's root"),
    ("anyOf", {"properties": {"a": {"anyOf": [STRING, {"type": "null"}]}}}, "below property 'a'"),
    ("allOf", {"allOf": [{"properties": {"a": STRING}}]}, "below"),
    ("not", {"not": {"properties": {"a": STRING}}}, "below"),
    ("if", {"if": {"properties": {"a": STRING}}}, "below"),
    ("then", {"then": {"properties": {"a": STRING}}}, "below"),
    ("else", {"else": {"properties": {"a": STRING}}}, "below"),
    ("$defs", {"$defs": {"a": STRING}, "properties": {"a": {"$ref": "#/$defs/a"}}}, "below"),
    ("definitions", {"definitions": {"a": STRING}}, "below"),
    ("patternProperties", {"patternProperties": {".": STRING}}, "below"),
    ("additionalProperties", {"additionalProperties": STRING}, "below"),
    ("dependentSchemas", {"dependentSchemas": {"a": {"properties": {"b": STRING}}}}, "below"),
    ("unknown keyword", {"x-shared": {"a": {"b": STRING}}}, "below"),
    ("too deep", deep(MAX_SCHEMA_DEPTH + 1), "deeper"),
    ("too deep elsewhere", {"x": deep(MAX_SCHEMA_DEPTH)}, "deeper|below"),
    ("too large", {"enumerated": [{}] * (MAX_SCHEMA_NODES + 1)}, "more than"),
]
"""A name, an input schema with an annotation that spoils the tool, and a pattern of the reason."""

# messages

BIG_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        **schema(region="string", priority="integer", verbose="boolean", dry="boolean")["properties"],
        "empty_val": {"type": "string", "x-mcp-header": "EmptyVal"},
        "options": {"type": "object", "properties": {"limit": {"type": "integer", "x-mcp-header": "Limit"}}},
        "score": {"type": "number"},
    },
}

PROJECTED: Final[list[tuple[str, dict[str, Any], list[tuple[str, str]]]]] = [
    ("discover", request("server/discover"), []),
    ("list", request("tools/list", {"cursor": "c"}), []),
    ("tool", request("tools/call", {"name": "get_weather"}), [("Mcp-Name", "get_weather")]),
    ("hyphens", request("tools/call", {"name": "my-hyphenated-tool"}), [("Mcp-Name", "my-hyphenated-tool")]),
    (
        "non-ascii tool",
        request("tools/call", {"name": "weather_東京"}),
        [("Mcp-Name", "=?base64?d2VhdGhlcl/mnbHkuqw=?=")],
    ),
    ("prompt", request("prompts/get", {"name": "code review"}), [("Mcp-Name", "code review")]),
    (
        "resource",
        request("resources/read", {"uri": "file:///a%20b", "name": "no"}),
        [("Mcp-Name", "file:///a%20b")],
    ),
    ("resource ü", request("resources/read", {"uri": "x://ü"}), [("Mcp-Name", "=?base64?eDovL8O8?=")]),
    ("task", request("tasks/get", {"taskId": "t-1"}), [("Mcp-Name", "t-1")]),
    ("task update", request("tasks/update", {"taskId": "t-1"}), [("Mcp-Name", "t-1")]),
    ("task cancel", request("tasks/cancel", {"taskId": "t-1"}), [("Mcp-Name", "t-1")]),
    ("vendor", request("vendor/x", {"name": "n", "uri": "u", "taskId": "t"}), []),
    ("name of no string", request("tools/call", {"name": 5}), []),
]
"""A name, a message, and its headers besides version and method."""

MIRRORED: Final[list[tuple[Any, dict[str, str]]]] = [
    ({"region": None, "dry": True, "priority": 7}, {"Dry": "true", "Priority": "7"}),
    ({"verbose": False, "dry": True}, {"Verbose": "false", "Dry": "true"}),
    ({"empty_val": ""}, {"EmptyVal": ""}),
    ({"region": " padded "}, {"Region": "=?base64?IHBhZGRlZCA=?="}),
    ({"priority": -7}, {"Priority": "-7"}),
    ({"priority": 0}, {"Priority": "0"}),
    ({"priority": -0.0}, {"Priority": "0"}),
    ({"priority": 1e2}, {"Priority": "100"}),
    ({"priority": LARGEST_INTEGER}, {"Priority": "9007199254740991"}),
    ({"priority": -LARGEST_INTEGER}, {"Priority": "-9007199254740991"}),
    # a value of another type than the schema's is mirrored as what it is
    ({"region": 5, "priority": "x", "dry": 1}, {"Region": "5", "Priority": "x", "Dry": "1"}),
    ({"options": {"limit": 3}}, {"Limit": "3"}),
    ({"options": {"limit": None}}, {}),
    ({"options": {}}, {}),
    ({"options": "text"}, {}),
    ({"options": ["limit"]}, {}),
    ({"score": 3.14, "query": "q"}, {}),
    ({}, {}),
    (None, {}),
    ([], {}),
    ("region", {}),
]
"""Arguments of a call, and what `BIG_SCHEMA` mirrors of them."""

UNCARRIED: Final[list[tuple[dict[str, Any], str]]] = [
    ({"jsonrpc": "2.0", "id": 1, "result": {}}, "only requests"),
    ({"jsonrpc": "2.0", "id": 1, "method": 5}, "only requests"),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, "no protocol version"),
    ({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": []}, "no protocol version"),
    ({"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"_meta": []}}, "no protocol version"),
    (request("tools/list", version=5), "no protocol version"),
    (request("tools/list", version=""), "version ''"),
    (request("tools/list", version="2026\r\nX: 1"), "version"),
    (request("vendor/ü"), "method"),
    (request(" vendor"), "method"),
    (request("vendor\n"), "method"),
    (request("v\ta"), "method"),
    (call({}, name="\ud800"), "surrogate"),
    (call({"region": "\udfff"}), "surrogate"),
    (call({"region": ["us"]}), "argument 'region'"),
    (call({"region": {}}), "argument 'region'"),
    (call({"priority": 3.5}), "argument 'priority'"),
    (call({"priority": LARGEST_INTEGER + 1}), "53 bits"),
    (call({"priority": -HUGE}), "53 bits"),
    (call({"priority": float(2**53)}), "53 bits"),
    (call({"options": {"limit": []}}), "'options.limit'"),
]
"""Messages that no headers can be made for, and a word of the reason."""

LIST = request("tools/list")
CALL = request("tools/call", {"name": "foo", "arguments": {"region": "Hello", "priority": 42, "dry": True}})
SCHEMA = schema(region="string", priority="integer", dry="boolean")

ACCEPTED: Final = [
    ("Mcp-Name", "  foo "),
    ("Mcp-Name", "\tfoo\t"),
    ("Mcp-Method", " tools/call  "),
    (VERSION, f" {MODERN}"),
    ("Mcp-Name", "=?base64?Zm9v?="),
    ("Mcp-Param-Region", "=?base64?SGVsbG8=?="),
    ("Mcp-Param-Region", " Hello "),
    ("Mcp-Param-Priority", "42.0"),
    ("Mcp-Param-Priority", "42.000"),
    ("Mcp-Param-Priority", "=?base64?NDI=?="),
    ("Mcp-Param-Dry", "=?base64?dHJ1ZQ==?="),
]
"""Headers of `CALL` and another spelling of each that says the same."""

REFUSED: Final[list[tuple[str, str | None, HeaderFaultKind]]] = [
    (VERSION, None, Kind.MISSING),
    ("Mcp-Method", None, Kind.MISSING),
    ("Mcp-Name", None, Kind.MISSING),
    ("Mcp-Param-Region", None, Kind.MISSING),
    ("Mcp-Param-Priority", None, Kind.MISSING),
    ("Mcp-Param-Dry", None, Kind.MISSING),
    (VERSION, "2025-11-25", Kind.DIFFERENT),
    (VERSION, "", Kind.DIFFERENT),
    (VERSION, f"{MODERN}, {MODERN}", Kind.DIFFERENT),
    (VERSION, "=?base64?MjAyNi0wNy0yOA==?=", Kind.DIFFERENT),
    ("Mcp-Method", "prompts/get", Kind.DIFFERENT),
    ("Mcp-Method", "TOOLS/CALL", Kind.DIFFERENT),
    ("Mcp-Method", "=?base64?dG9vbHMvY2FsbA==?=", Kind.DIFFERENT),
    ("Mcp-Method", "", Kind.DIFFERENT),
    ("Mcp-Method", "tools/cäll", Kind.MALFORMED),
    ("Mcp-Name", "bar", Kind.DIFFERENT),
    ("Mcp-Name", "Foo", Kind.DIFFERENT),
    ("Mcp-Name", "", Kind.DIFFERENT),
    ("Mcp-Name", "foo, foo", Kind.DIFFERENT),
    ("Mcp-Name", "=?base64?Zm9?=", Kind.MALFORMED),
    ("Mcp-Name", "=?BASE64?Zm9v?=", Kind.DIFFERENT),
    ("Mcp-Name", "foo\nbar", Kind.MALFORMED),
    ("Mcp-Param-Region", "hello", Kind.DIFFERENT),
    ("Mcp-Param-Region", "=?base64?SGVsbG8?=", Kind.MALFORMED),
    ("Mcp-Param-Region", "=?base64?SGVs!!!bG8=?=", Kind.MALFORMED),
    ("Mcp-Param-Region", "H\xe9llo", Kind.MALFORMED),
    ("Mcp-Param-Priority", "43", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "42.5", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "042", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "+42", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "4.2e1", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "0x2a", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "42.", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "=?base64?2aTZog==?=", Kind.DIFFERENT),  # 42 in Arabic digits
    ("Mcp-Param-Priority", "42." + "0" * 16 + "1", Kind.DIFFERENT),
    ("Mcp-Param-Priority", "9" * 5000, Kind.DIFFERENT),
    ("Mcp-Param-Priority", "", Kind.DIFFERENT),
    ("Mcp-Param-Dry", "True", Kind.DIFFERENT),
    ("Mcp-Param-Dry", "1", Kind.DIFFERENT),
    ("Mcp-Param-Dry", "false", Kind.DIFFERENT),
]
"""Headers of `CALL`, what each is replaced by (None: by nothing), and what that is."""
