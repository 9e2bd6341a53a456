"""Log messages of a server.

Specification: 2026-07-28, server/utilities/logging.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ..revisions import LEGACY_REVISIONS
from .base import JsonValue, wire, wire_type
from .results import NotificationParams, RequestParams

LoggingLevel: TypeAlias = Literal[
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"
]
"""How severe a message is, the severities of syslog (RFC 5424), mildest first."""


@wire_type(until=LEGACY_REVISIONS[-1])
class SetLevelRequestParams(RequestParams):
    """Params of ``logging/setLevel``."""

    level: LoggingLevel
    """The least severe level that the client wants to get."""


@wire_type
class LoggingMessageNotificationParams(NotificationParams):
    """Params of ``notifications/message``."""

    level: LoggingLevel
    data: JsonValue = wire(secret=True)
    """What is logged: a string, or any JSON value."""
    logger: str | None = None
    """The part of the server that logs."""
