"""Time and chance that belong to a test: they move when it says so, and are the same in every run."""

from __future__ import annotations

from typing import Final

from ..clock import ClockPair
from ..errors import LocalProtocolError


class VirtualClock:
    """A clock that stands still until it is moved. Call it for the time.

    `unix` is what the wall clock shows at time 0.
    """

    def __init__(self, now: float = 0.0, *, unix: float = 1_800_000_000.0) -> None:
        self.now = now
        self._unix: Final = unix

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> float:
        """Move on, and return the time. Raises LocalProtocolError for a step back."""
        if seconds < 0:
            raise LocalProtocolError("time does not go back")
        self.now += seconds
        return self.now

    def pair(self) -> ClockPair:
        """The moment on both clocks."""
        return ClockPair(now=self.now, unix=self._unix + self.now)


class Dice:
    """Numbers that look random and depend on `seed` alone. No secret is to be made of them."""

    _MASK: Final = (1 << 64) - 1

    def __init__(self, seed: int = 0) -> None:
        self._state = (seed * 0x9E3779B97F4A7C15 + 0xD1B54A32D192ED03) & self._MASK

    def roll(self, sides: int) -> int:
        """One of 0 to `sides` - 1."""
        # splitmix64
        self._state = (self._state + 0x9E3779B97F4A7C15) & self._MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & self._MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & self._MASK
        return (z ^ (z >> 31)) % sides

    def fraction(self) -> float:
        """From 0 up to 1."""
        return self.roll(1 << 32) / (1 << 32)

    def entropy(self, size: int) -> bytes:
        """For engines that want random bytes."""
        return bytes(self.roll(256) for _ in range(size))
