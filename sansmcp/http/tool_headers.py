"""Which arguments a server's tools want mirrored, as a client learns it from the lists it reads.

A list that passes through is looked at once. What it says holds however old it is, until the next
list begins or the server says that its list changed: how long a list may be cached is another
matter, and a call without the headers would only be refused.

Specification: 2026-07-28, basic/transports/streamable-http (custom headers, client behavior).
"""

from __future__ import annotations

from typing import Any

from ..session.listed import Listed
from .headers import Annotations, Problem, read_annotations


class ToolHeaders:
    """The annotations of the tools that have any, at most `limit` of them."""

    def __init__(self, limit: int) -> None:
        self._known: Listed[Annotations] = Listed(limit)

    def __len__(self) -> int:
        return len(self._known)

    @property
    def overflowed(self) -> bool:
        """Whether there were more than `limit`: the rest is called without these headers."""
        return self._known.overflowed

    def get(self, name: object) -> Annotations | None:
        """What the tool called `name` wants mirrored; None for nothing, or for an unknown tool."""
        return self._known.get(name)

    def forget(self) -> None:
        """The list changed: nothing that was read of it holds any more."""
        self._known.forget()

    def take(self, tools: list[Any], *, first: bool, last: bool) -> tuple[list[Any], list[tuple[str, str]]]:
        """Read one page of a list; `first` and `last` tell which page it is.

        Returns the tools that may be called over HTTP, as they are and in their order, and
        ``(name, reason)`` of each other one. What an earlier list said holds until a newer one is
        read to its end.
        """
        self._known.begin(first=first)
        kept: list[Any] = []
        excluded: list[tuple[str, str]] = []
        for tool in tools:
            name = tool.get("name") if isinstance(tool, dict) else None
            read = read_annotations(tool.get("inputSchema")) if isinstance(tool, dict) else None
            if isinstance(read, Problem):
                excluded.append((name if isinstance(name, str) else "", read.reason))
                continue
            kept.append(tool)
            if isinstance(name, str) and read is not None:
                self._known.note(name, read if len(read) else None)
        self._known.end(last=last)
        return kept, excluded
