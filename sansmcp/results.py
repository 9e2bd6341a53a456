"""From what a handler returned to the result its method prescribes.

Specification: 2026-07-28, server/tools (tool result), server/resources, server/prompts.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from typing import Any, Final

from .errors import LocalProtocolError, SansmcpError
from .revisions import Revision
from .session.typing import to_wire
from .types.base import WireObject

MAX_COMPLETIONS = 100
"""The protocol's own bound on completion values."""


_BLOCKS: Final = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource": ("resource",),
    "resource_link": ("uri", "name"),
}
"""The members without which a mapping is no content block of its type."""


class ToolError(SansmcpError):
    """Raise it in a handler: its text is shown to the client (and to the model) as it is."""


def tool_result(value: Any, revision: Revision) -> Any:
    """Text → a text block; a mapping → structured content and its JSON as text; a list of blocks,
    a `CallToolResult` or None as they are meant. Another JSON value → its JSON as text.

    Raises LocalProtocolError for what has no place in a tool result.
    """
    if isinstance(value, str):
        return {"content": [_text(value)]}
    if isinstance(value, WireObject):
        return {"content": [to_wire(value, revision)]} if _is_block(value) else value
    if value is None:
        return {"content": []}
    if isinstance(value, Mapping):
        return {"content": [_text(_as_json(value))], "structuredContent": dict(value)}
    if isinstance(value, (list, tuple)) and all(_is_block(item) for item in value):
        return {"content": [to_wire(item, revision) for item in value]}
    return {"content": [_text(_as_json(value))]}


def tool_error(text: str) -> dict[str, Any]:
    """A result that reports the tool's own failure."""
    return {"content": [_text(text)], "isError": True}


def resource_result(value: Any, revision: Revision, uri: str, mime_type: str | None) -> Any:
    """str → text contents, bytes → a blob, a list of contents or a result as they are."""
    if isinstance(value, WireObject) and not hasattr(value, "uri"):
        return value
    if isinstance(value, (list, tuple)):
        return {"contents": [to_wire(item, revision) for item in value]}
    if isinstance(value, (WireObject, Mapping)):
        return {"contents": [to_wire(value, revision)]}
    contents: dict[str, Any] = {"uri": uri}
    if mime_type is not None:
        contents["mimeType"] = mime_type
    if isinstance(value, str):
        contents["text"] = value
    elif isinstance(value, (bytes, bytearray, memoryview)):
        contents["blob"] = b64encode(value).decode("ascii")
    else:
        raise LocalProtocolError(
            f"a resource handler returns str, bytes or contents, not {type(value).__name__}"
        )
    return {"contents": [contents]}


def prompt_result(value: Any, revision: Revision, description: str | None) -> Any:
    """Text → one user message; a list of messages or a `GetPromptResult` as they are."""
    if isinstance(value, WireObject) and not hasattr(value, "role"):
        return value
    if isinstance(value, str):
        messages: list[Any] = [{"role": "user", "content": _text(value)}]
    elif isinstance(value, (list, tuple)):
        messages = [
            {"role": "user", "content": _text(item)} if isinstance(item, str) else to_wire(item, revision)
            for item in value
        ]
    elif isinstance(value, (WireObject, Mapping)):
        messages = [to_wire(value, revision)]
    else:
        raise LocalProtocolError(f"a prompt handler returns text or messages, not {type(value).__name__}")
    result: dict[str, Any] = {"messages": messages}
    if description is not None:
        result["description"] = description
    return result


def complete_result(value: Any, revision: Revision) -> Any:
    """A list of texts or a `CompleteResult`. The first 100 values are sent.

    Raises LocalProtocolError for values that are no texts.
    """
    result: dict[str, Any] = {}
    if isinstance(value, (WireObject, Mapping)):
        result = to_wire(value, revision)
        given = result.get("completion")
        completion = dict(given) if isinstance(given, Mapping) else {}
    else:
        texts = value if isinstance(value, str) else list(value or ())
        completion = {"values": texts, "total": len(texts), "hasMore": False}
    values = completion.get("values")
    if not isinstance(values, (list, tuple)) or not all(isinstance(text, str) for text in values):
        raise LocalProtocolError("a completion handler returns a list of texts or a CompleteResult")
    if len(values) > MAX_COMPLETIONS:
        completion |= {"values": values[:MAX_COMPLETIONS], "hasMore": True}
    return {**result, "completion": completion}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _is_block(value: Any) -> bool:
    """Whether it is content, and no value of the application's own that has a type as well."""
    if isinstance(value, WireObject):
        return isinstance(getattr(value, "type", None), str)
    kind = value.get("type") if isinstance(value, Mapping) else None
    members = _BLOCKS.get(kind) if isinstance(kind, str) else None
    return members is not None and all(name in value for name in members)


def _as_json(value: Any) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise LocalProtocolError(f"a handler returned a value that is no JSON: {error}") from error
