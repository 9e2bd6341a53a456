"""The tools of many servers in one registry, for whoever hands them to a model.

Pure: a `Toolset` knows which tools there are, under which names, and which server each belongs to. What
stands for a server is up to the user: an engine, a client of a binding, its address.

    toolset = Toolset()
    toolset.register(github, github_tools, prefix="github_")
    entry = toolset["github_search"]          # the model asks for it
    call = entry.server.call_tool(entry.server_name, arguments)

Specification: 2026-07-28, server/tools.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, TypeVar

import attrs

from .errors import LocalProtocolError
from .revisions import LATEST
from .types.base import UNSET
from .types.content import TextContent
from .types.convert import unstructure
from .types.tools import CallToolResult, Tool

S = TypeVar("S")


class ToolNameCollisionError(LocalProtocolError):
    """Two tools would have the same name. Nothing was registered."""

    def __init__(self, names: Sequence[str]) -> None:
        shown = ", ".join(map(repr, names[:5])) + (" …" if len(names) > 5 else "")
        super().__init__(f"there is a tool of that name already: {shown}; give this server a prefix")
        self.names = tuple(names)


@attrs.frozen(eq=False)
class ToolEntry(Generic[S]):
    """A tool as it is in a `Toolset`."""

    name: str
    """What it is shown and asked for as: unique in the toolset."""
    server: S
    """Whose tool it is; whatever it was registered with."""
    server_name: str
    """What its server calls it: a call goes there under this name."""
    tool: Tool
    """As the server defines it, schemas verbatim."""


class Toolset(Generic[S]):
    """Tools of any number of servers, in the order in which they were registered.

    A server is whatever stands for one: an engine, a handle, an address. It is told from others by identity.
    """

    def __init__(self) -> None:
        self._entries: dict[str, ToolEntry[S]] = {}

    def __repr__(self) -> str:
        return f"<Toolset of {len(self._entries)} tools>"

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[ToolEntry[S]]:
        return iter(tuple(self._entries.values()))

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def __getitem__(self, name: str) -> ToolEntry[S]:
        """The tool that is shown as `name`. Raises KeyError if there is none."""
        return self._entries[name]

    def register(
        self,
        server: S,
        tools: Iterable[Tool],
        *,
        prefix: str = "",
        rename: Callable[[str], str] | None = None,
    ) -> list[str]:
        """Add tools of `server`; return the names under which they are shown now.

        These are the server's own with `prefix` before them, or what `rename` makes of them. Raises
        ToolNameCollisionError, with nothing added, if a name is there already or would be there twice.
        """
        entries = self._prepare(server, tools, prefix, rename, besides=self._entries)
        self._entries.update(entries)
        return list(entries)

    def replace(
        self,
        server: S,
        tools: Iterable[Tool],
        *,
        prefix: str = "",
        rename: Callable[[str], str] | None = None,
    ) -> list[str]:
        """Put `tools` in the place of those that `server` has, after its list changed. As `register`."""
        others = {n: e for n, e in self._entries.items() if e.server is not server}
        entries = self._prepare(server, tools, prefix, rename, besides=others)
        self._entries = {**others, **entries}
        return list(entries)

    def remove(self, server: S) -> list[str]:
        """Take the tools of `server` out; return their names."""
        names = [n for n, e in self._entries.items() if e.server is server]
        for name in names:
            del self._entries[name]
        return names

    def for_model(self) -> list[ToolEntry[S]]:
        """The tools that a model may see: all but those for the user interface alone."""
        return [e for e in self._entries.values() if visible_to_model(e.tool)]

    @staticmethod
    def _prepare(
        server: S,
        tools: Iterable[Tool],
        prefix: str,
        rename: Callable[[str], str] | None,
        besides: Mapping[str, ToolEntry[S]],
    ) -> dict[str, ToolEntry[S]]:
        entries: dict[str, ToolEntry[S]] = {}
        taken: dict[str, None] = {}
        for tool in tools:
            name = prefix + tool.name if rename is None else rename(tool.name)
            if name in besides or name in entries:
                taken[name] = None
            entries[name] = ToolEntry(name, server, tool.name, tool)
        if taken:
            raise ToolNameCollisionError(list(taken))
        return entries


# what a tool answered ----------------------------------------------------------------------------


@attrs.frozen
class ToolFeedback:
    """What a tool answered, as a model reads it. That the tool failed is an answer too."""

    content: str
    is_error: bool


def tool_feedback(result: CallToolResult) -> ToolFeedback:
    """What to tell the model: `result_text`, and whether the tool says that it failed."""
    return ToolFeedback(result_text(result), bool(result.is_error))


def result_text(result: CallToolResult) -> str:
    """A result as one text: its structured content as JSON; else its texts, a line each; else its other
    content as JSON; else nothing."""
    if result.structured_content is not UNSET:
        return _json(result.structured_content)
    text = text_only(result)
    if text:
        return text
    return _json([unstructure(block, LATEST) for block in result.content]) if result.content else ""


def text_only(result: CallToolResult) -> str:
    """The texts of a result, joined by line ends; nothing of what else it holds."""
    return "\n".join(block.text for block in result.content if isinstance(block, TextContent))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


# what a tool says of itself ----------------------------------------------------------------------


def ui_resource_uri(tool: Tool) -> str | None:
    """Where the tool's user interface is, if it has one.

    In `_meta` the nested ``ui.resourceUri`` counts, then the flat ``ui/resourceUri`` of older servers.
    """
    meta = tool.meta or {}
    ui = meta.get("ui")
    nested = ui.get("resourceUri") if isinstance(ui, dict) else None
    for uri in (nested, meta.get("ui/resourceUri")):
        if isinstance(uri, str):
            return uri
    return None


def visible_to_model(tool: Tool) -> bool:
    """Whether a model may be offered the tool: not if its ``ui.visibility`` leaves the model out."""
    ui = (tool.meta or {}).get("ui")
    visibility = ui.get("visibility") if isinstance(ui, dict) else None
    return not isinstance(visibility, list) or "model" in visibility


def server_fingerprint(target: str | Sequence[str], environment: Mapping[str, str] | None = None) -> str:
    """A name for a server that stays the same: the digest of its address, or of its command.

    `environment` is what of it belongs to the server's identity. The digest (SHA-256, hexadecimal) tells
    none of it.
    """
    what: list[Any] = [target if isinstance(target, str) else list(target)]
    if environment:
        what.append(sorted(environment.items()))
    return hashlib.sha256(json.dumps(what).encode()).hexdigest()


__all__ = [
    "ToolEntry",
    "ToolFeedback",
    "ToolNameCollisionError",
    "Toolset",
    "result_text",
    "server_fingerprint",
    "text_only",
    "tool_feedback",
    "ui_resource_uri",
    "visible_to_model",
]
