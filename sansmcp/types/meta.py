"""What the `_meta` of modern messages has of the protocol's own.

Specification: 2026-07-28, basic/index (`_meta`).
"""

from __future__ import annotations

from ..revisions import Revision
from .base import ProgressToken, RequestId, WireObject, wire, wire_type
from .lifecycle import ClientCapabilities, Implementation
from .logging import LoggingLevel

_MODERN = Revision.V2026_07_28


@wire_type(since=_MODERN, firm=True)
class RequestMetaObject(WireObject):
    """The `_meta` of a modern client request."""

    protocol_version: str = wire("io.modelcontextprotocol/protocolVersion")
    client_capabilities: ClientCapabilities = wire("io.modelcontextprotocol/clientCapabilities")
    client_info: Implementation | None = wire("io.modelcontextprotocol/clientInfo", default=None, firm=False)
    log_level: LoggingLevel | None = wire("io.modelcontextprotocol/logLevel", default=None)
    """The least severe level of which the client wants log messages during this request."""
    progress_token: ProgressToken | None = None


@wire_type(since=_MODERN)
class ResultMetaObject(WireObject):
    """The `_meta` of a modern result."""

    server_info: Implementation | None = wire("io.modelcontextprotocol/serverInfo", default=None)


@wire_type(since=_MODERN)
class NotificationMetaObject(WireObject):
    """The `_meta` of a modern notification."""

    subscription_id: RequestId | None = wire("io.modelcontextprotocol/subscriptionId", default=None)
    """The subscription on whose stream it came: the id of its ``subscriptions/listen``."""
