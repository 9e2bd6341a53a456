"""What a result says of its keeping: for how long, and for whom.

Specification: 2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, Literal

from ..records import frozen
from .modern import CACHE_SCOPE, TTL

MAX_TTL: Final = 24 * 3600.0
"""Seconds that a result is kept at most, whatever its server allows."""


@frozen
class Hints:
    """What a result says of its keeping. See `read_hints`."""

    ttl: float
    """Seconds."""
    public: bool
    odd: str | None = None
    """What was wrong with them, for people; None when nothing was."""

    def joined(self, other: Hints) -> Hints:
        """The hints of two pages together: the shorter time, and public only if both are."""
        return Hints(min(self.ttl, other.ttl), self.public and other.public, self.odd or other.odd)

    def write(self, raw: dict[str, Any]) -> None:
        """Put them into a result, if it has any."""
        if TTL in raw or CACHE_SCOPE in raw:
            raw |= Keep(self.ttl, self.public).hints()


def read_hints(raw: Mapping[str, Any]) -> Hints:
    """What `raw` allows. Absent and unusable hints are the careful ones: no time, and private."""
    odd = None
    ttl, scope = raw.get(TTL), raw.get(CACHE_SCOPE)
    seconds = 0.0
    if ttl is not None:
        if isinstance(ttl, (int, float)) and not isinstance(ttl, bool) and ttl >= 0:
            seconds = min(ttl, MAX_TTL * 1000) / 1000
        else:
            odd = "ttlMs is no number of milliseconds; taken as 0"
    if scope not in (None, "public", "private"):
        odd = odd or "cacheScope is neither public nor private; taken as private"
    return Hints(seconds, scope == "public", odd)


@frozen
class Keep:
    """What a server allows clients: to keep a result for `seconds`, and with `public` for everybody.

    Without `public` only whoever was given it may be given it again. On the wire this is ``ttlMs`` and
    ``cacheScope``.
    """

    seconds: float
    public: bool = False

    @property
    def ttl_ms(self) -> int:
        """Whole milliseconds, never below 0."""
        return max(0, int(self.seconds * 1000))

    @property
    def scope(self) -> Literal["public", "private"]:
        """For whom."""
        return "public" if self.public else "private"

    def hints(self) -> dict[str, Any]:
        """The members that say so."""
        return {TTL: self.ttl_ms, CACHE_SCOPE: self.scope}


__all__ = ["MAX_TTL", "Hints", "Keep", "read_hints"]
