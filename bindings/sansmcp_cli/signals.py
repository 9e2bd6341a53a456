"""What a signal to this process means."""

from __future__ import annotations

import asyncio
import signal
from contextlib import suppress


def end_on_sigterm() -> None:
    """Let SIGTERM cancel this task, so that it leaves through the front door."""
    task = asyncio.current_task()
    assert task is not None
    with suppress(NotImplementedError, ValueError, RuntimeError):  # not on Windows, not in a thread
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
