"""Resources: listing, reading, subscribing (legacy).

Specification: 2026-07-28, server/resources; 2025-11-25, server/resources (subscriptions).
"""

from __future__ import annotations

from ..revisions import LATEST_LEGACY, Revision
from .base import JsonObject, WireObject, wire, wire_type
from .content import Annotations, ResourceContents
from .icons import Icon
from .results import (
    CacheablePage,
    CacheableResult,
    InputResponseRequestParams,
    NotificationParams,
    RequestParams,
)


@wire_type
class Resource(WireObject):
    """Something a server lets be read."""

    uri: str
    name: str
    """For programs; shown to people when there is no title."""
    title: str | None = wire(default=None, since=Revision.V2025_06_18)
    description: str | None = None
    """What it is, for a model."""
    mime_type: str | None = None
    size: int | None = None
    """Bytes of the raw contents, before any encoding."""
    annotations: Annotations | None = None
    icons: list[Icon] | None = wire(default=None, since=Revision.V2025_11_25)
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type
class ResourceTemplate(WireObject):
    """A pattern of URIs that a server lets be read."""

    uri_template: str
    """An RFC 6570 template."""
    name: str
    """For programs; shown to people when there is no title."""
    title: str | None = wire(default=None, since=Revision.V2025_06_18)
    description: str | None = None
    """What it is for, for a model."""
    mime_type: str | None = None
    """The type of every resource of the pattern, if they all have the same."""
    annotations: Annotations | None = None
    icons: list[Icon] | None = wire(default=None, since=Revision.V2025_11_25)
    meta: JsonObject | None = wire(
        "_meta", default=None, kw_only=True, since=Revision.V2025_06_18, secret=True
    )


@wire_type
class ListResourcesResult(CacheablePage):
    """One page of a server's resources."""

    resources: list[Resource]


@wire_type
class ListResourceTemplatesResult(CacheablePage):
    """One page of a server's resource templates."""

    resource_templates: list[ResourceTemplate]


@wire_type
class ReadResourceRequestParams(InputResponseRequestParams):
    """Params of ``resources/read``."""

    uri: str


@wire_type
class ReadResourceResult(CacheableResult):
    """The contents of a resource, or of the resources inside it."""

    contents: list[ResourceContents]


@wire_type(since=Revision.V2025_11_25)
class ResourceRequestParams(RequestParams):
    """Params of the methods that are about one resource."""

    uri: str


@wire_type(until=LATEST_LEGACY)
class SubscribeRequestParams(ResourceRequestParams):
    """Params of ``resources/subscribe``."""


@wire_type(until=LATEST_LEGACY)
class UnsubscribeRequestParams(ResourceRequestParams):
    """Params of ``resources/unsubscribe``."""


@wire_type
class ResourceUpdatedNotificationParams(NotificationParams):
    """Params of ``notifications/resources/updated``."""

    uri: str
    """The resource that changed; it may lie inside the one that was subscribed to."""
