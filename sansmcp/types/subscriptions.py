"""What a modern client is to be told of.

Specification: 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from ..revisions import Revision
from .base import WireObject, wire_type

_MODERN = Revision.V2026_07_28


@wire_type(since=_MODERN)
class SubscriptionFilter(WireObject):
    """What to be told of. Extensions add members; those are in `extra`."""

    tools_list_changed: bool | None = None
    prompts_list_changed: bool | None = None
    resources_list_changed: bool | None = None
    resource_subscriptions: list[str] | None = None
    """URIs of the resources to be told of."""
