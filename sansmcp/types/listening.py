"""How the stream of changes that a modern client opens begins and ends.

Specification: 2026-07-28, basic/patterns/subscriptions.
"""

from __future__ import annotations

from ..revisions import MODERN_REVISIONS, Revision
from .base import JsonObject, RequestId, WireObject, wire, wire_type
from .lifecycle import Implementation
from .results import NotificationParams, RequestParams, Result
from .subscriptions import SubscriptionFilter

_MODERN = Revision.V2026_07_28


@wire_type(since=_MODERN)
class SubscriptionsListenRequestParams(RequestParams):
    """Params of ``subscriptions/listen``."""

    notifications: SubscriptionFilter
    """What the client wants."""


@wire_type(since=_MODERN)
class SubscriptionsAcknowledgedNotificationParams(NotificationParams):
    """Params of ``notifications/subscriptions/acknowledged``, the first on the stream."""

    notifications: SubscriptionFilter
    """What the server will tell of."""


@wire_type(since=_MODERN)
class SubscriptionsListenResultMetaObject(WireObject):
    """The `_meta` of the result that ends a subscription."""

    subscription_id: RequestId = wire("io.modelcontextprotocol/subscriptionId")
    """The id of the ``subscriptions/listen`` request."""
    server_info: Implementation | None = wire("io.modelcontextprotocol/serverInfo", default=None)


@wire_type(since=_MODERN)
class SubscriptionsListenResult(Result):
    """The orderly end of a subscription."""

    meta: JsonObject | None = wire(
        "_meta",
        default=None,
        kw_only=True,
        required_in=MODERN_REVISIONS,
        missing=lambda: None,
        stamped=True,
        secret=True,
    )
    """A `SubscriptionsListenResultMetaObject`; the engine adds what it must have."""
