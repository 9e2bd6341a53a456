"""Which scopes are asked for.

Specification: 2026-07-28, basic/authorization (scope selection strategy, step-up authorization flow, refresh
tokens); RFC 6749, section 3.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final, TypeAlias

Scopes: TypeAlias = tuple[str, ...]

OFFLINE: Final = "offline_access"
MAX_SCOPES: Final = 256
"""Asked for at once. They go into an address, which has a bound of its own."""

_SCOPE: Final = re.compile(r"[!#-\[\]-~]+")


def union(*parts: Iterable[str]) -> Scopes:
    """All scopes of `parts` in order, each once; what can be none is left out."""
    scopes = dict.fromkeys(scope for part in parts for scope in part if _SCOPE.fullmatch(scope))
    return tuple(scopes)[:MAX_SCOPES]


def choose(
    *,
    wanted: Scopes,
    held: Scopes,
    challenged: Scopes | None,
    listed: Scopes | None,
    offered: Scopes,
    offline: bool,
) -> Scopes:
    """What to ask an authorization server for; nothing: what it thinks fit.

    `wanted` is what the user of this library wants, `held` what was asked for before, `challenged` what the
    server's answer names and `listed` its metadata, `offered` what the authorization server has. With
    `offline`, tokens are wanted that can be renewed without the user.
    """
    needed = listed or () if challenged is None else challenged
    scopes = union(held, needed, wanted)
    if offline and scopes and OFFLINE in offered:
        # Alone it would take the place of what the authorization server gives to who names nothing.
        scopes = union(scopes, (OFFLINE,))
    return scopes
