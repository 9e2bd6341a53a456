"""Turns bytes into choices, so that a fuzzer's mutations become other sequences of operations."""

from __future__ import annotations

from typing import Any, TypeVar

T = TypeVar("T")


class Steps:
    """A finite source of choices; past its end every choice is the first."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    @property
    def more(self) -> bool:
        return self._at < len(self._data)

    def byte(self) -> int:
        if not self.more:
            return 0
        self._at += 1
        return self._data[self._at - 1]

    def choose(self, options: list[T]) -> T:
        return options[self.byte() % len(options)]

    def take(self, count: int) -> bytes:
        taken = self._data[self._at : self._at + count]
        self._at += len(taken)
        return taken

    def value(self, depth: int = 0) -> Any:
        """A JSON value, most often one that the protocol has a place for."""
        kind = self.byte() % 14
        if kind < 3 and depth < 3:
            keys = ["name", "uri", "cursor", "arguments", "content", "tools", "_meta", "data", "level"]
            return {self.choose(keys): self.value(depth + 1) for _ in range(self.byte() % 4)}
        if kind == 3 and depth < 3:
            return [self.value(depth + 1) for _ in range(self.byte() % 3)]
        scalars = [None, True, False, 0, 1, -1, 2**70, 0.5, "", "x", "complete", "2026-07-28", "2025-11-25"]
        return self.choose(scalars)
