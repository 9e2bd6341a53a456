"""Params of requests that a server looks at before a handler gets them.

Specification: 2026-07-28, server/prompts, server/utilities/completion.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..errors import ErrorCode, McpError

_REFERENCES: Final = {"ref/prompt": "name", "ref/resource": "uri"}
"""What can be completed: the types of references, and the member that says which one."""


def read_completion(params: Mapping[str, Any]) -> tuple[dict[str, Any], str, str, dict[str, str]]:
    """Reference, name and value of the argument, and the arguments chosen before.

    Raises McpError (-32602), which says what is wrong with them.
    """
    ref, argument, context = params.get("ref"), params.get("argument"), params.get("context")
    if not isinstance(ref, dict) or not isinstance(argument, dict):
        raise _invalid("ref and argument must be objects")
    kind = ref.get("type")
    member = _REFERENCES.get(kind) if isinstance(kind, str) else None
    if member is None or not isinstance(ref.get(member), str):
        raise _invalid("ref must be a ref/prompt with a name, or a ref/resource with a uri")
    name, value = argument.get("name"), argument.get("value")
    if not isinstance(name, str) or not isinstance(value, str):
        raise _invalid("argument must have a name and a value")
    if context is not None and not isinstance(context, dict):
        raise _invalid("context must be an object")
    chosen = (context or {}).get("arguments")
    if chosen is None:
        chosen = {}
    if not isinstance(chosen, dict) or text_problem(chosen):
        raise _invalid("context.arguments must be an object of strings")
    return ref, name, value, chosen


def text_problem(arguments: Mapping[str, Any]) -> str | None:
    """Which of these arguments is no text, in words; None if all are."""
    for name, value in arguments.items():
        if not isinstance(value, str):
            return f"{name[:128]!r} must be a string"
    return None


def _invalid(rule: str) -> McpError:
    return McpError(ErrorCode.INVALID_PARAMS, rule)


__all__ = ["read_completion", "text_problem"]
