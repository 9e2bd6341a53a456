"""Cancellation and progress.

Specification: 2026-07-28, basic/patterns (cancellation, progress).
"""

from __future__ import annotations

from ..revisions import ALL_REVISIONS, Revision
from .base import ProgressToken, RequestId, wire, wire_type
from .results import NotificationParams


@wire_type
class CancelledNotificationParams(NotificationParams):
    """Params of ``notifications/cancelled``."""

    request_id: RequestId | None = wire(
        default=None,
        required_in=tuple(r for r in ALL_REVISIONS if r is not Revision.V2025_11_25),
        firm=True,
    )
    """The request that is given up. Only 2025-11-25 lets it be left out, for a task."""
    reason: str | None = None
    """Why, for a log or a person."""


@wire_type
class ProgressNotificationParams(NotificationParams):
    """Params of ``notifications/progress``."""

    progress_token: ProgressToken
    """The one that the request carried."""
    progress: float
    """How far; grows with every notification."""
    total: float | None = None
    """How far it is to the end, in the same unit, when that is known."""
    message: str | None = wire(default=None, since=Revision.V2025_03_26)
    """What is going on, for a person."""
