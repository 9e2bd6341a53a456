"""Tools for testing what is built on sansmcp: both ends in memory, under a clock of the test's own."""

from .memory import MemoryLink, link

__all__ = ["MemoryLink", "link"]
