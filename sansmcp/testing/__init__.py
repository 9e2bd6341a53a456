"""Tools for testing what is built on sansmcp: both ends in memory, under a clock of the test's own.

`link` and `MemoryLink` connect one client and one server; `Network` any transports, with delays, cuts and
the like. `scenarios` is the list of what every binding has to do.
"""

from .clock import Dice, VirtualClock
from .memory import MemoryLink, link
from .network import Link, Network

__all__ = ["Dice", "Link", "MemoryLink", "Network", "VirtualClock", "link"]
