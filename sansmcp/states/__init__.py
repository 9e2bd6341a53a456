"""All transition tables, and the tiny machine that runs them.

A table is data: ``state → input → next state``. A pair that is not in the table is an error; the
diagrams in the docs are drawn from these tables, and a test walks every state with every input.

The tables of HTTP and of authorization are loaded when they are first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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
from .machine import Machine, Symbol, Table

if TYPE_CHECKING:
    from .auth import AUTHORIZATION, AuthorizationInput, AuthorizationState
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
    from .tables import TABLES

_HOMES: Final = {
    "auth": "AUTHORIZATION AuthorizationInput AuthorizationState",
    "http": (
        "CLIENT_EXCHANGE EXCHANGE OLD_SSE STREAM ClientExchangeInput ClientExchangeState ExchangeInput "
        "ExchangeState OldSseInput OldSseState StreamInput StreamState"
    ),
    "tables": "TABLES",
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names.split()}

if not TYPE_CHECKING:  # a type checker would believe every name

    def __getattr__(name: str) -> Any:
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = globals()[name] = getattr(import_module(f".{module}", __name__), name)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})


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
