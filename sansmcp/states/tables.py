"""All tables together: for the docs and the tests, which look at every one."""

from __future__ import annotations

from typing import Final

from .auth import AUTHORIZATION
from .calls import CALL, REQUEST, ROUND, SUBSCRIPTION
from .connections import CLIENT, DIAL, PROCESS, SERVER
from .http import CLIENT_EXCHANGE, EXCHANGE, OLD_SSE, STREAM

TABLES: Final = (
    CLIENT,
    SERVER,
    CALL,
    ROUND,
    SUBSCRIPTION,
    REQUEST,
    PROCESS,
    DIAL,
    EXCHANGE,
    CLIENT_EXCHANGE,
    STREAM,
    OLD_SSE,
    AUTHORIZATION,
)
"""Every table, in the order the docs show them."""
