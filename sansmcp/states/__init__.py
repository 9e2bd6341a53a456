"""All transition tables, and the tiny machine that runs them.

A table is data: ``state → input → next state``. A pair that is not in the table is an error; the
diagrams in the docs are drawn from these tables, and a test walks every state with every input.
"""

from __future__ import annotations

from typing import Final

from .auth import AUTHORIZATION, AuthorizationInput, AuthorizationState
from .calls import (
    CALL,
    REQUEST,
    ROUND,
    SUBSCRIPTION,
    CallInput,
    CallState,
    RequestInput,
    RequestState,
    RoundInput,
    RoundState,
    SubscriptionInput,
    SubscriptionState,
)
from .connections import (
    CLIENT,
    DIAL,
    PROCESS,
    SERVER,
    ClientInput,
    ClientState,
    DialInput,
    DialState,
    ProcessInput,
    ProcessState,
    ServerInput,
    ServerState,
)
from .http import (
    CLIENT_EXCHANGE,
    EXCHANGE,
    OLD_SSE,
    STREAM,
    ClientExchangeInput,
    ClientExchangeState,
    ExchangeInput,
    ExchangeState,
    OldSseInput,
    OldSseState,
    StreamInput,
    StreamState,
)
from .machine import Machine, Symbol, Table

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

__all__ = [
    "AUTHORIZATION",
    "CALL",
    "CLIENT",
    "CLIENT_EXCHANGE",
    "DIAL",
    "EXCHANGE",
    "OLD_SSE",
    "PROCESS",
    "REQUEST",
    "ROUND",
    "SERVER",
    "STREAM",
    "SUBSCRIPTION",
    "TABLES",
    "AuthorizationInput",
    "AuthorizationState",
    "CallInput",
    "CallState",
    "ClientExchangeInput",
    "ClientExchangeState",
    "ClientInput",
    "ClientState",
    "DialInput",
    "DialState",
    "ExchangeInput",
    "ExchangeState",
    "Machine",
    "OldSseInput",
    "OldSseState",
    "ProcessInput",
    "ProcessState",
    "RequestInput",
    "RequestState",
    "RoundInput",
    "RoundState",
    "ServerInput",
    "ServerState",
    "StreamInput",
    "StreamState",
    "SubscriptionInput",
    "SubscriptionState",
    "Symbol",
    "Table",
]
