"""Tools in the shapes in which the APIs of models take them. None of their libraries is needed.

    offered = anthropic_tools(toolset)
    ...(tools=offered.definitions)                  # whatever calls the model
    entry = offered.entry(block.name)               # what the model asks for

Input schemas are passed on as they are. Names that an API would refuse are made to fit, and tools that are
there for a user interface alone are not offered.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

import attrs

from .toolset import ToolEntry, Toolset

S = TypeVar("S")
Definition: TypeAlias = dict[str, Any]
"""What an API takes as one element of its list of tools: a JSON object."""

_DIGEST: Final = 8
"""Hexadecimal digits that tell names apart which would be equal once they fit."""


@attrs.frozen(eq=False)
class ModelTools(Generic[S]):
    """Tools as one kind of API takes them, and the way back from the names that it is told."""

    definitions: list[Definition]
    """One for each tool, in the order of the toolset."""
    _entries: Mapping[str, ToolEntry[S]] = attrs.field(repr=False)

    def entry(self, name: str) -> ToolEntry[S]:
        """The tool that the model means by `name`. Raises KeyError for one that it was not offered."""
        return self._entries[name]


def anthropic_tools(toolset: Toolset[S]) -> ModelTools[S]:
    """For Anthropic's Messages API: its parameter ``tools``."""

    def define(name: str, description: str, schema: Definition) -> Definition:
        return {"name": name, "description": description, "input_schema": schema}

    return _offer(toolset, _fitting("[^A-Za-z0-9_-]", 64), define)


def openai_tools(toolset: Toolset[S], api: Literal["responses", "chat"] = "responses") -> ModelTools[S]:
    """For OpenAI: the parameter ``tools`` of the Responses API, or of Chat Completions."""

    def define(name: str, description: str, schema: Definition) -> Definition:
        function = {"name": name, "description": description, "parameters": schema}
        return {"type": "function", **function} if api == "responses" else _wrapped(function)

    return _offer(toolset, _fitting("[^A-Za-z0-9_-]", 64), define)


def gemini_tools(toolset: Toolset[S]) -> ModelTools[S]:
    """For Gemini: the function declarations of one element of its parameter ``tools``."""

    def define(name: str, description: str, schema: Definition) -> Definition:
        return {"name": name, "description": description, "parametersJsonSchema": schema}

    return _offer(toolset, _fitting("[^A-Za-z0-9_.:-]", 64, first="[A-Za-z_]"), define)


def _wrapped(function: Definition) -> Definition:
    return {"type": "function", "function": function}


def _offer(
    toolset: Toolset[S],
    fit: Callable[[str], str],
    define: Callable[[str, str, Definition], Definition],
) -> ModelTools[S]:
    definitions: list[Definition] = []
    entries: dict[str, ToolEntry[S]] = {}
    offered = toolset.for_model()
    # Who needs no other name keeps his, wherever in the order he comes.
    kept = {entry.name for entry in offered if fit(entry.name) == entry.name}
    for entry in offered:
        name = entry.name
        if name not in kept:
            name = fit(name)
            # What tells them apart can be foreseen, so another server may have a tool of that name too.
            turn = 0
            while name in kept or name in entries:
                name = _told_apart(name, f"{entry.name}{' ' * turn}")
                turn += 1
        entries[name] = entry
        definitions.append(define(name, entry.tool.description or "", entry.tool.input_schema))
    return ModelTools(definitions, entries)


def _fitting(strange: str, longest: int, first: str = "") -> Callable[[str], str]:
    """Makes names fit that an API would refuse: for characters it does not know, too long ones."""
    pattern = re.compile(strange)

    def fit(name: str) -> str:
        fitted = pattern.sub("_", name) or "_"
        if first and not re.match(first, fitted):
            fitted = "_" + fitted
        return fitted if len(fitted) <= longest else _told_apart(fitted[:longest], name)

    return fit


def _told_apart(fitted: str, name: str) -> str:
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST]
    return f"{fitted[: 64 - _DIGEST - 1]}_{digest}"


__all__ = ["ModelTools", "anthropic_tools", "gemini_tools", "openai_tools"]
