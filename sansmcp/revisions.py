"""Protocol revisions and the two eras they fall into.

A *revision* is the dated protocol version that peers exchange. *Legacy* revisions open with an
``initialize`` handshake; *modern* ones carry version and capabilities on every request.

Specification: 2026-07-28, basic/versioning (terminology).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class Era(StrEnum):
    """Which of the two families of revisions a peer speaks."""

    LEGACY = "legacy"
    MODERN = "modern"


class Revision(StrEnum):
    """A protocol revision this library implements; comparable by age (``<`` is older)."""

    V2024_11_05 = "2024-11-05"
    V2025_03_26 = "2025-03-26"
    V2025_06_18 = "2025-06-18"
    V2025_11_25 = "2025-11-25"
    V2026_07_28 = "2026-07-28"

    # ISO dates order as text, so the comparisons of ``str`` are already the right ones.

    @property
    def era(self) -> Era:
        """The era of this revision."""
        return Era.MODERN if self is Revision.V2026_07_28 else Era.LEGACY


ALL_REVISIONS: Final = tuple(Revision)
"""Every implemented revision, oldest first."""

LEGACY_REVISIONS: Final = tuple(r for r in Revision if r.era is Era.LEGACY)
"""Revisions with an ``initialize`` handshake, oldest first."""

MODERN_REVISIONS: Final = tuple(r for r in Revision if r.era is Era.MODERN)
"""Stateless revisions, oldest first."""

LATEST_LEGACY: Final = LEGACY_REVISIONS[-1]
LATEST: Final = MODERN_REVISIONS[-1]

_BY_VALUE: Final = {r.value: r for r in Revision}


def known_revision(version: object) -> Revision | None:
    """Return the implemented revision that `version` names, or None for anything else."""
    return _BY_VALUE.get(version) if isinstance(version, str) else None
