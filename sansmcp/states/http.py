"""The tables of HTTP: exchanges of both sides, streams, the transport of 2024-11-05."""

from __future__ import annotations

from enum import auto
from typing import Final

from .machine import Symbol, Table

# An HTTP exchange, as its server sees it ----------------------------------------------------------


class ExchangeState(Symbol):
    WAITING = auto()
    """Nothing was sent."""
    STREAMING = auto()
    """An event stream was begun."""
    ENDED = auto()
    """The response is complete, or the client is gone."""


class ExchangeInput(Symbol):
    STREAM = auto()
    END = auto()


EXCHANGE: Final = Table(
    "HTTP exchange",
    ExchangeState.WAITING,
    {
        ExchangeState.WAITING: {
            ExchangeInput.STREAM: ExchangeState.STREAMING,
            ExchangeInput.END: ExchangeState.ENDED,
        },
        ExchangeState.STREAMING: {
            ExchangeInput.END: ExchangeState.ENDED,
        },
        ExchangeState.ENDED: {},
    },
)


# An exchange of a client over HTTP: one request and its response ----------------------------------


class ClientExchangeState(Symbol):
    WAITING = auto()
    """The request is out."""
    COLLECTING = auto()
    """The body means nothing before its end."""
    STREAMING = auto()
    """Each event is taken as it comes."""
    DRAINING = auto()
    """Nothing in it is wanted any more. It is read to its end, so that the connection stays usable."""
    OVER = auto()
    """It ended, broke or was aborted; what is still reported of it has no effect."""


class ClientExchangeInput(Symbol):
    COLLECT = auto()
    STREAM = auto()
    DRAIN = auto()
    END = auto()
    """The response ended, or the exchange broke or was aborted."""


CLIENT_EXCHANGE: Final = Table(
    "client exchange",
    ClientExchangeState.WAITING,
    {
        ClientExchangeState.WAITING: {
            ClientExchangeInput.COLLECT: ClientExchangeState.COLLECTING,
            ClientExchangeInput.STREAM: ClientExchangeState.STREAMING,
            ClientExchangeInput.DRAIN: ClientExchangeState.DRAINING,
            ClientExchangeInput.END: ClientExchangeState.OVER,
        },
        ClientExchangeState.COLLECTING: {
            ClientExchangeInput.DRAIN: ClientExchangeState.DRAINING,
            ClientExchangeInput.END: ClientExchangeState.OVER,
        },
        ClientExchangeState.STREAMING: {
            ClientExchangeInput.DRAIN: ClientExchangeState.DRAINING,
            ClientExchangeInput.END: ClientExchangeState.OVER,
        },
        ClientExchangeState.DRAINING: {
            ClientExchangeInput.END: ClientExchangeState.OVER,
        },
        ClientExchangeState.OVER: {},
    },
)


# An event stream, over however many exchanges it takes -------------------------------------------


class StreamState(Symbol):
    OPENING = auto()
    """It was asked for."""
    OPEN = auto()
    """Its events are taken."""
    PAUSED = auto()
    """It broke, and will be asked for again after a while."""
    OVER = auto()
    """Nothing more is wanted of it, or it did not come back."""


class StreamInput(Symbol):
    OPEN = auto()
    LOSE = auto()
    RETRY = auto()
    END = auto()


STREAM: Final = Table(
    "event stream",
    StreamState.OPENING,
    {
        StreamState.OPENING: {
            StreamInput.OPEN: StreamState.OPEN,
            StreamInput.LOSE: StreamState.PAUSED,
            StreamInput.END: StreamState.OVER,
        },
        StreamState.OPEN: {
            StreamInput.LOSE: StreamState.PAUSED,
            StreamInput.END: StreamState.OVER,
        },
        StreamState.PAUSED: {
            StreamInput.RETRY: StreamState.OPENING,
            StreamInput.END: StreamState.OVER,
        },
        StreamState.OVER: {},
    },
)


# The HTTP+SSE transport of 2024-11-05 -----------------------------------------------------------


class OldSseState(Symbol):
    IDLE = auto()
    """Not in use: messages go to the server's one address."""
    OPENING = auto()
    """The stream was asked for."""
    UNNAMED = auto()
    """The stream is open; the server has not said where messages go to."""
    READY = auto()
    """Messages go to the address that the server named."""
    OVER = auto()
    """The stream ended, and the connection with it."""


class OldSseInput(Symbol):
    ASK = auto()
    OPEN = auto()
    NAME = auto()
    """The `endpoint` event."""
    END = auto()


OLD_SSE: Final = Table(
    "HTTP+SSE",
    OldSseState.IDLE,
    {
        OldSseState.IDLE: {
            OldSseInput.ASK: OldSseState.OPENING,
        },
        OldSseState.OPENING: {
            OldSseInput.OPEN: OldSseState.UNNAMED,
            OldSseInput.END: OldSseState.OVER,
        },
        OldSseState.UNNAMED: {
            OldSseInput.NAME: OldSseState.READY,
            OldSseInput.END: OldSseState.OVER,
        },
        OldSseState.READY: {
            OldSseInput.END: OldSseState.OVER,
        },
        OldSseState.OVER: {},
    },
)


__all__ = [
    "CLIENT_EXCHANGE",
    "EXCHANGE",
    "OLD_SSE",
    "STREAM",
    "ClientExchangeInput",
    "ClientExchangeState",
    "ExchangeInput",
    "ExchangeState",
    "OldSseInput",
    "OldSseState",
    "StreamInput",
    "StreamState",
]
