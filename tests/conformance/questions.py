"""What the suite's scenarios call to be asked something in return.

Names, keys and schemas are the suite's.
"""

from __future__ import annotations

from sansmcp import App


def register(app: App) -> None:
    """Put all of it into `app`."""
