"""States that open once: for requests whose rounds must not be repeated.

A seal says for whom and for how long a state is good, and not how often. Whoever needs that has to
remember what came back already.

Specification: 2026-07-28, basic/patterns/mrtr (server requirements: replay).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Protocol

from ..errors import LocalProtocolError
from .sealing import DEFAULT_TTL, StateSealer

_NONCE: Final = 16
_SKEW: Final = 60.0
"""Seconds that a state may be good for longer, as clocks differ."""


class UsedStates(Protocol):
    """Remembers which states came back; `UsedInMemory` is one. Servers that share keys share this too."""

    def take(self, nonce: bytes, *, until: float, unix: float) -> bool:
        """Note that the state called `nonce` is used, until the time of day `until`; it is `unix` now.

        False if it was used before, and where that cannot be told.
        """
        ...


class UsedInMemory:
    """Remembers in this process. With more than `limit` states in their time no further one opens.

    Raises LocalProtocolError for a `limit` below 1.
    """

    def __init__(self, limit: int = 65_536) -> None:
        if limit < 1:
            raise LocalProtocolError(f"limit must be at least 1, got {limit}")
        self._limit = limit
        self._until: dict[bytes, float] = {}

    def __len__(self) -> int:
        return len(self._until)

    def take(self, nonce: bytes, *, until: float, unix: float) -> bool:
        """As `UsedStates.take`."""
        if len(self._until) >= self._limit:
            self._until = {known: end for known, end in self._until.items() if end >= unix}
        if nonce in self._until or len(self._until) >= self._limit:
            return False
        self._until[nonce] = until
        return True


class SingleUse:
    """Seals as `sealer` does, and opens each state once.

    ``App(sealer=SingleUse(HmacSealer(keys), entropy))``. `entropy` gives random bytes: the application
    brings it, nothing here draws any. `ttl` is that of `sealer`. A client whose answer was lost on its way
    cannot send it again: it has to make its request anew.
    """

    def __init__(
        self,
        sealer: StateSealer,
        entropy: Callable[[int], bytes],
        *,
        used: UsedStates | None = None,
        ttl: float = DEFAULT_TTL,
    ) -> None:
        self._sealer = sealer
        self._entropy = entropy
        self._used = UsedInMemory() if used is None else used
        self._ttl = ttl

    def __repr__(self) -> str:
        return f"SingleUse({self._sealer!r})"

    def seal(self, payload: bytes, binding: bytes, *, unix: float) -> str:
        """As `StateSealer.seal`."""
        return self._sealer.seal(self._entropy(_NONCE) + payload, binding, unix=unix)

    def open(self, text: str, binding: bytes, *, unix: float) -> bytes | None:
        """As `StateSealer.open`; None also for what was opened before."""
        opened = self._sealer.open(text, binding, unix=unix)
        if opened is None or len(opened) < _NONCE:
            return None
        nonce, payload = opened[:_NONCE], opened[_NONCE:]
        fresh = self._used.take(nonce, until=unix + self._ttl + _SKEW, unix=unix)
        return payload if fresh else None


__all__ = ["SingleUse", "UsedInMemory", "UsedStates"]
