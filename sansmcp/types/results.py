"""The parts that results and params have in common.

Specification: 2026-07-28, basic/index (requests, notifications, results, `_meta`),
server/utilities/pagination, server/utilities/caching.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..revisions import MODERN_REVISIONS, Revision
from .base import Cursor, JsonObject, WireObject, wire, wire_type

_MODERN = Revision.V2026_07_28


@wire_type
class Result(WireObject):
    """What every answer has."""

    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)
    """Anything either side wants to attach; keys have a prefix, as in ``com.example/key``."""
    result_type: str = wire(
        default="complete",
        kw_only=True,
        since=_MODERN,
        required_in=MODERN_REVISIONS,
        missing=lambda: "complete",
        fill="complete",
        firm=True,
    )
    """How to read the result: ``complete``, ``input_required``, or what an extension claims."""


EmptyResult: TypeAlias = Result
"""The answer of methods that have nothing to say."""


@wire_type(since=_MODERN)
class CacheableResult(Result):
    """A result that says how long it may be kept."""

    ttl_ms: int | None = wire(
        default=None,
        kw_only=True,
        since=_MODERN,
        required_in=MODERN_REVISIONS,
        missing=lambda: None,
        fill=0,
        firm=False,
    )
    """How many milliseconds the result stays fresh. None: not said, or unusable; as 0."""
    cache_scope: Literal["public", "private"] | None = wire(
        default=None,
        kw_only=True,
        since=_MODERN,
        required_in=MODERN_REVISIONS,
        missing=lambda: None,
        fill="private",
        firm=False,
    )
    """Who may be given it from a cache. None: not said, or unusable; as ``private``."""


@wire_type
class PaginatedResult(Result):
    """One page of a list."""

    next_cursor: Cursor | None = wire(default=None, kw_only=True, firm=True)
    """Where the list goes on; absent on the last page."""


@wire_type
class CacheablePage(CacheableResult):
    """One page of a list that may be kept."""

    next_cursor: Cursor | None = wire(default=None, kw_only=True, firm=True)
    """Where the list goes on; absent on the last page."""


@wire_type(firm=True)
class RequestParams(WireObject):
    """What the params of every request have."""

    meta: JsonObject | None = wire(
        "_meta",
        default=None,
        kw_only=True,
        required_in=MODERN_REVISIONS,
        missing=lambda: None,
        stamped=True,
        secret=True,
    )
    """`progressToken`, and what the caller attaches. To a modern peer the engine adds version,
    client and capabilities."""


@wire_type
class PaginatedRequestParams(RequestParams):
    """Params of the list methods."""

    cursor: Cursor | None = None
    """`next_cursor` of the page before; absent for the first page."""


@wire_type
class NotificationParams(WireObject):
    """What the params of every notification have."""

    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)
    """What the sender attaches; on a subscription's stream the id of the subscription."""


@wire_type(since=_MODERN)
class InputResponseRequestParams(RequestParams):
    """Params of a request that may be asked for more input and then sent again.

    Before 2026-07-28 the two members do not exist.
    """

    input_responses: dict[str, JsonObject] | None = wire(
        default=None, kw_only=True, since=_MODERN, secret=True
    )
    """Answers to the `input_requests` of the result before, under the same keys. Raw objects:
    only the request under the key tells what the answer is."""
    request_state: str | None = wire(default=None, kw_only=True, since=_MODERN, secret=True)
    """The `request_state` of the result before, unchanged."""


@wire_type(since=Revision.V2025_11_25, until=Revision.V2025_11_25)
class TaskMetadata(WireObject):
    """In a request's params: run this as a task."""

    ttl: int | None = None
    """Milliseconds, from its creation, that the task should be kept."""
