"""Lists in pages: reading one to its end, and serving one without remembering anything.

Specification: 2026-07-28, server/utilities/pagination.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

import attrs

from ..errors import ErrorCode, McpError, PaginationError
from .hints import Hints, read_hints


@attrs.define(eq=False)
class PageWalk:
    """The pages read so far by one list-all call."""

    member: str
    """The result member that holds the items (`tools`, `resources`, …)."""
    max_pages: int
    items: list[Any] = attrs.field(factory=list)
    pages: int = 0
    cursor: str | None = None
    """The cursor of the page that is asked for; None for the first one."""
    restarted: bool = False
    hints: Hints | None = None
    """What the pages before allow of their keeping; None before the second one."""
    _seen: set[str] = attrs.field(factory=set)

    def params(self, base: dict[str, Any]) -> dict[str, Any]:
        """The params that ask for the next page. Only absence of a cursor means the first one."""
        return base if self.cursor is None else {**base, "cursor": self.cursor}

    def take(self, raw: dict[str, Any]) -> dict[str, Any] | None:
        """Add a page. Return the combined result after the last one, None when another is needed.

        Raises PaginationError when the list cannot be read to its end: the server repeats a
        cursor, the page limit is reached, or a page has no list.
        """
        page = raw.get(self.member)
        if not isinstance(page, list):
            raise PaginationError(f"page {self.pages + 1} has no list {self.member!r}", self.items)
        cursor = raw.get("nextCursor")
        if cursor is not None and not isinstance(cursor, str):
            raise PaginationError(
                f"page {self.pages + 1} has a cursor that is no string", [*self.items, *page]
            )
        if cursor is not None and (cursor in self._seen or cursor == self.cursor):
            raise PaginationError(
                f"the server repeats a cursor after {self.pages + 1} pages; "
                f"{len(self.items)} items were read before",
                self.items,
                looped=True,
            )
        self.pages += 1
        self.items.extend(page)
        if cursor is None:
            combined = {**raw, self.member: self.items}
            combined.pop("nextCursor", None)
            if self.hints is not None:
                # Together the pages may be kept as long, and for as many, as the least of them.
                self.hints.joined(read_hints(raw)).write(combined)
            return combined
        if self.pages >= self.max_pages:
            raise PaginationError(
                f"the list goes on after {self.pages} pages (limit max_pages); "
                f"{len(self.items)} items were read",
                self.items,
            )
        self._seen.add(cursor)
        self.cursor = cursor
        hints = read_hints(raw)
        self.hints = hints if self.hints is None else self.hints.joined(hints)
        return None

    def restart_after(self, error: McpError) -> bool:
        """Whether `error` means that the cursor expired and the walk may start over, once."""
        if self.cursor is None or self.restarted or error.code != ErrorCode.INVALID_PARAMS:
            return False
        self.items.clear()
        self._seen.clear()
        self.pages, self.cursor, self.restarted, self.hints = 0, None, True, None
        return True


# server ------------------------------------------------------------------------------------------

T = TypeVar("T")
_CURSOR: Final = "from:"


def read_cursor(cursor: object, length: int, page_size: int | None) -> int:
    """Where the page that `cursor` asks for starts: 0 without one.

    Raises McpError (-32602) for a cursor that `write_page` never gave for such a list.
    """
    if cursor is None:
        return 0
    if isinstance(cursor, str) and cursor.startswith(_CURSOR) and page_size is not None:
        digits = cursor[len(_CURSOR) :]
        if digits.isascii() and digits.isdecimal() and len(digits) < 10:
            start = int(digits)
            if 0 < start < length and start % page_size == 0:
                return start
    raise McpError(ErrorCode.INVALID_PARAMS, "this cursor is not valid (any more)")


def write_page(items: Sequence[T], start: int, page_size: int | None) -> tuple[Sequence[T], str | None]:
    """The page at `start`, and the cursor of the next one or None after the last."""
    if page_size is None:
        return items, None
    end = start + page_size
    return items[start:end], f"{_CURSOR}{end}" if end < len(items) else None
