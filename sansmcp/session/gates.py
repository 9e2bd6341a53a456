"""What may be said to a peer: by its revision, and by what it declared.

The tables are data in `sansmcp.types.methods`; these are the questions asked of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..errors import ErrorCode, LocalProtocolError, McpError
from ..revisions import Revision
from ..types.convert import project
from ..types.methods import Direction, MethodSpec


def declared(capability: str | None, capabilities: Mapping[str, Any]) -> bool:
    """Whether the dotted `capability` (``"resources.subscribe"``) is in `capabilities`.

    An empty object declares; False and null do not. No capability needed: True.
    """
    if capability is None:
        return True
    value: Any = capabilities
    for name in capability.split("."):
        value = value.get(name) if isinstance(value, (dict, Mapping)) else None
    return value is not None and value is not False


def unknown_method(method: str) -> McpError:
    """What a request for a method is answered with that is not served."""
    return McpError(ErrorCode.METHOD_NOT_FOUND, f"no such method here: {method[:128]}")


def check_params(spec: MethodSpec, params: dict[str, Any], revision: Revision, direction: Direction) -> None:
    """Raise LocalProtocolError for a method or a field of its params that `revision` lacks."""
    if not spec.goes(direction, revision):
        raise LocalProtocolError(
            f"{spec.method.value} does not go from {direction.value} in revision {revision}"
        )
    kept = project(params, spec.params, revision)
    if kept is not params:
        lost = ", ".join(sorted(params.keys() - kept.keys())) or "a nested field"
        raise LocalProtocolError(f"{spec.method.value}: {lost} does not exist in revision {revision}")


def lacking(needs: Mapping[str, Any], capabilities: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the client capabilities `needs` that is not in `capabilities`; empty: nothing.

    A client that declares elicitation and no mode of it takes forms.
    """
    missing: dict[str, Any] = {}
    for name, inner in needs.items():
        given = capabilities.get(name)
        if given is None or given is False:
            missing[name] = inner
        elif isinstance(inner, Mapping) and inner:
            given = given if isinstance(given, Mapping) else {}
            if name == "elicitation" and "url" not in given:
                given = {"form": {}, **given}
            below = lacking(inner, given)
            if below:
                missing[name] = below
    return missing


def merged(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Two capabilities objects as one."""
    both = dict(one)
    for name, inner in other.items():
        known = both.get(name)
        both[name] = merged(known, inner) if isinstance(known, dict) and isinstance(inner, dict) else inner
    return both


def needs_of(method: str, params: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """The client capabilities that a question needs, as it stands on the wire; empty for none."""
    match method:
        case "elicitation/create":
            return {"elicitation": {"url" if params.get("mode") == "url" else "form": {}}}
        case "sampling/createMessage":
            more: dict[str, Any] = {}
            if "tools" in params or "toolChoice" in params:
                more["tools"] = {}
            context = params.get("includeContext")
            if context in ("thisServer", "allServers") and revision >= Revision.V2025_11_25:
                more["context"] = {}
            return {"sampling": more}
        case "roots/list":
            return {"roots": {}}
    return {}


def is_tool_name(name: str) -> bool:
    """Whether a tool should be called that: 1 to 128 of the characters ``A-Z a-z 0-9 . _ -``.

    Specification: 2026-07-28, server/tools (tool names); a rule since 2025-11-25.
    """
    return 1 <= len(name) <= 128 and name.isascii() and all(c.isalnum() or c in "._-" for c in name)
