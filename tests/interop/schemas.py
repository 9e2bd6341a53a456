"""The official schemas as judges: a message is what its revision prescribes, and names nothing more.

They are looked for where tests/facts/make.py looks for them.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from jsonschema.exceptions import best_match
from jsonschema.validators import validator_for

from sansmcp import Era, Revision
from tests.facts.make import schema_dir

Json = dict[str, Any]

# What comes of a request. Custom methods are not in it.
RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "server/discover": "DiscoverResult",
    "logging/setLevel": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "subscriptions/listen": "SubscriptionsListenResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "roots/list": "ListRootsResult",
    "sampling/createMessage": "CreateMessageResult",
    "elicitation/create": "ElicitResult",
}

# Errors that have a definition of their own: of the `error` member, or of the whole message.
ERRORS = {
    -32700: "ParseError",
    -32600: "InvalidRequestError",
    -32601: "MethodNotFoundError",
    -32602: "InvalidParamsError",
    -32603: "InternalError",
    -32020: "HeaderMismatchError",
    -32021: "MissingRequiredClientCapabilityError",
    -32022: "UnsupportedProtocolVersionError",
    -32042: "URLElicitationRequiredError",
}

UNIONS = frozenset({"ClientRequest", "ServerRequest", "ClientNotification", "ServerNotification"})

# Objects that hold whatever somebody wants to put there: they are not searched for strangers.
OPEN_MEMBERS = frozenset({"_meta", "inputSchema", "outputSchema", "experimental", "error"})
OPEN_NAMES = frozenset({"Request", "Notification", "Result", "PaginatedRequest", "PaginatedResult", "Error"})


class Judge:
    """The schema of one revision."""

    def __init__(self, revision: Revision) -> None:
        self.revision = revision
        path = schema_dir() / f"{revision}.schema.json"
        self._whole: Json = json.loads(path.read_text(encoding="utf-8"))
        self._key = "$defs" if "$defs" in self._whole else "definitions"
        self.definitions: Json = self._whole[self._key]
        self._closed = {
            name: schema if name in OPEN_NAMES or name.endswith("MetaObject") else _closed(schema)
            for name, schema in self.definitions.items()
        }
        self._by_method: dict[str, str] = {}
        for name, schema in self.definitions.items():
            method = schema.get("properties", {}).get("method", {}).get("const")
            if method is not None and name not in UNIONS:
                self._by_method[method] = name

    def message(self, message: Json, method: str | None) -> None:
        """Judge what somebody sent; `method` is that of the request which a response answers."""
        if "method" in message:
            kind = "JSONRPCRequest" if "id" in message else "JSONRPCNotification"
            self.value(kind, message)
            if (name := self._by_method.get(message["method"])) is not None:
                self.value(name, self._framed(name, message))
        elif "result" in message:
            self.value(self._one_of("JSONRPCResultResponse", "JSONRPCResponse"), message)
            if method in RESULTS:
                self.value(RESULTS[method], message["result"])
        else:
            self._error(message)

    def union(self, name: str) -> set[str]:
        """The methods of a union such as ``ClientRequest``; none where the revision has no such union."""
        union = self.definitions.get(name, {"anyOf": []})
        if "anyOf" not in union:  # a union of one is written out
            return {union["properties"]["method"]["const"]}
        names = {member["$ref"].rpartition("/")[2] for member in union["anyOf"]}
        return {method for method, definition in self._by_method.items() if definition in names}

    def value(self, name: str, value: Any) -> None:
        """Raise AssertionError unless `value` is what the definition `name` says, and only that."""
        for closed in (False, True):
            error = best_match(self._validator(name, closed).iter_errors(value))
            if error is not None:
                how = "names what the revision lacks" if closed else "is not valid"
                raise AssertionError(
                    f"{name} ({self.revision}) {how}: {error.json_path}: {error.message[:500]}"
                )

    def _error(self, message: Json) -> None:
        if message.get("id", 0) is None:
            # JSON-RPC wants null where the id could not be read. The legacy schemas have no word for
            # that, and the modern revision leaves the id out.
            assert self.revision.era is Era.LEGACY
            message = {**message, "id": 0}
        self.value(self._one_of("JSONRPCErrorResponse", "JSONRPCError"), message)
        name = ERRORS.get(message["error"]["code"])
        if name in self.definitions:
            whole = "error" in self.definitions[name]["properties"]
            self.value(name, message if whole else message["error"])

    def _one_of(self, *names: str) -> str:
        return next(name for name in names if name in self.definitions)

    def _framed(self, name: str, message: Json) -> Json:
        """The message without the frame that older definitions leave out."""
        members = self.definitions[name]["properties"]
        return {k: v for k, v in message.items() if k in members or k not in ("jsonrpc", "id")}

    @cache  # noqa: B019  (a judge lives as long as the tests)
    def _validator(self, name: str, closed: bool) -> Any:
        definitions = self._closed if closed else self.definitions
        schema = {
            "$schema": self._whole["$schema"],
            "$ref": f"#/{self._key}/{name}",
            self._key: definitions,
        }
        return validator_for(schema)(schema)


@cache
def judge(revision: Revision) -> Judge:
    return Judge(revision)


def _closed(schema: Any, member: str = "") -> Any:
    """The schema with every object in it closed to members that it does not name."""
    if not isinstance(schema, dict) or "allOf" in schema:
        return schema
    closed = dict(schema)
    for key, value in schema.items():
        match key:
            case "properties":
                closed[key] = {n: s if n in OPEN_MEMBERS else _closed(s, n) for n, s in value.items()}
            case "anyOf" | "oneOf":
                closed[key] = [_closed(part, member) for part in value]
            case "items" | "additionalProperties":
                closed[key] = _closed(value)
            case _:
                pass
    if "properties" in schema and "additionalProperties" not in schema:
        closed["additionalProperties"] = False
        if member == "params":  # older definitions leave it to the frame
            closed["properties"] = {"_meta": {}, **closed["properties"]}
    return closed
