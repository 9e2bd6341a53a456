"""Roots: the places a client works on. Deprecated in 2026-07-28.

Specification: 2026-07-28, client/roots.
"""

from __future__ import annotations

from ..revisions import LATEST_LEGACY, Revision
from .base import JsonObject, WireObject, wire, wire_type


@wire_type
class Root(WireObject):
    """A place, most often a directory."""

    uri: str
    """A ``file://`` URI."""
    name: str | None = None
    """What it is shown as."""
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type
class ListRootsRequestParams(WireObject):
    """Params of ``roots/list``."""

    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)


@wire_type
class ListRootsResult(WireObject):
    """The places a client works on."""

    roots: list[Root]
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, until=LATEST_LEGACY, secret=True)
