"""Pictures that stand for a tool, a resource, a prompt or a peer.

Specification: 2026-07-28, basic/index (icons).
"""

from __future__ import annotations

from typing import Literal

from ..revisions import Revision
from .base import WireObject, wire_type


@wire_type(since=Revision.V2025_11_25)
class Icon(WireObject):
    """One picture."""

    src: str
    """Where the picture is: an http(s) or a data URI."""
    mime_type: str | None = None
    """Its type, when the source does not say it or says it wrongly."""
    sizes: list[str] | None = None
    """Sizes it is good for, as ``48x48``, or ``any`` for one that scales."""
    theme: Literal["light", "dark"] | None = None
    """The background it is made for; absent: any."""
