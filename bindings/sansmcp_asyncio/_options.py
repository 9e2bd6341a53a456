"""What calls can be told, whatever waits for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypedDict

from sansmcp.client import Timeout
from sansmcp.events import ProgressReported
from sansmcp.session.cache import CacheMode
from sansmcp.wire.jsoncodec import JsonValue


class Options(TypedDict, total=False):
    """What every call can be told."""

    timeout: Timeout
    """Seconds of silence before the call fails; progress starts them anew. None: no such limit."""
    total_timeout: Timeout
    """Seconds for the whole call, whatever progress is reported. None: no such limit."""
    on_progress: Callable[[ProgressReported], object]
    """Called with each report of progress; without it the server is not asked for any."""
    meta: Mapping[str, JsonValue]
    """Members to add to the request's `_meta`, such as a trace context."""
    log_level: str
    """Ask for the logs of this request, from this level on (from 2026-07-28 on)."""
    cache_mode: CacheMode
    """Where a cache was given: ``"use"`` what is kept, **the default**; ``"refresh"``: ask, and keep the
    answer; ``"bypass"``: ask, and leave what is kept as it is."""
    max_age: float
    """How many seconds ago a kept result may have been received."""
    auto_rounds: bool
    """Whether the call goes on by itself once what its server asks is answered. **True** unless given;
    with False only `provide_input` makes it go on, and callbacks are not called."""


class ListOptions(Options, total=False):
    """What a call that reads a list to its end can be told."""

    max_pages: int
    """Pages to read at most; past it the call fails with PaginationError, which holds what was read."""
