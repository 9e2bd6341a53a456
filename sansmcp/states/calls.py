"""The tables of what is asked: calls, rounds, received requests, subscriptions."""

from __future__ import annotations

from enum import auto
from typing import Final

from .machine import Symbol, Table

# A call: one request of this side, from the verb to its single end -------------------------------


class CallState(Symbol):
    NEW = auto()
    QUEUED = auto()
    """Waiting for the era to be decided or for the connection to come back."""
    SENT = auto()
    ASKING = auto()
    """The server wants something first. Nothing of the call is on its way."""
    DEFERRED = auto()
    """The server goes on by itself; an extension finds out what comes of it."""
    SUCCEEDED = auto()
    FAILED = auto()
    CANCELLED = auto()
    TIMED_OUT = auto()


class CallInput(Symbol):
    QUEUE = auto()
    SEND = auto()
    """A request left; also each further round or page of the same call."""
    ASK = auto()
    """The server answered that it wants something first, or such a call is taken up again."""
    DEFER = auto()
    """The server answered that it goes on by itself, or such a call is taken up again."""
    SUCCEED = auto()
    FAIL = auto()
    CANCEL = auto()
    TIME_OUT = auto()


CALL: Final = Table(
    "call",
    CallState.NEW,
    {
        CallState.NEW: {
            CallInput.QUEUE: CallState.QUEUED,
            CallInput.SEND: CallState.SENT,
            CallInput.ASK: CallState.ASKING,
            CallInput.DEFER: CallState.DEFERRED,
        },
        CallState.QUEUED: {
            CallInput.SEND: CallState.SENT,
            CallInput.SUCCEED: CallState.SUCCEEDED,
            CallInput.FAIL: CallState.FAILED,
            CallInput.CANCEL: CallState.CANCELLED,
            CallInput.TIME_OUT: CallState.TIMED_OUT,
        },
        CallState.SENT: {
            CallInput.QUEUE: CallState.QUEUED,
            CallInput.SEND: CallState.SENT,
            CallInput.ASK: CallState.ASKING,
            CallInput.DEFER: CallState.DEFERRED,
            CallInput.SUCCEED: CallState.SUCCEEDED,
            CallInput.FAIL: CallState.FAILED,
            CallInput.CANCEL: CallState.CANCELLED,
            CallInput.TIME_OUT: CallState.TIMED_OUT,
        },
        CallState.ASKING: {
            CallInput.QUEUE: CallState.QUEUED,
            CallInput.SEND: CallState.SENT,
            CallInput.FAIL: CallState.FAILED,
            CallInput.CANCEL: CallState.CANCELLED,
            CallInput.TIME_OUT: CallState.TIMED_OUT,
        },
        CallState.DEFERRED: {
            CallInput.SUCCEED: CallState.SUCCEEDED,
            CallInput.FAIL: CallState.FAILED,
            CallInput.CANCEL: CallState.CANCELLED,
            CallInput.TIME_OUT: CallState.TIMED_OUT,
        },
        CallState.SUCCEEDED: {},
        CallState.FAILED: {},
        CallState.CANCELLED: {},
        CallState.TIMED_OUT: {},
    },
)


# A round: what a server wants to know before it goes on -------------------------------------------


class RoundState(Symbol):
    OPEN = auto()
    """Something is asked for, and not all of it is answered."""
    WAITING = auto()
    """Nothing is asked for: the call goes again after a while."""
    ANSWERED = auto()
    """Everything was answered, or the while is over."""
    REFUSED = auto()
    WITHDRAWN = auto()
    """Nobody waits for answers any more."""


class RoundInput(Symbol):
    WAIT = auto()
    ANSWER = auto()
    REFUSE = auto()
    WITHDRAW = auto()


ROUND: Final = Table(
    "round",
    RoundState.OPEN,
    {
        RoundState.OPEN: {
            RoundInput.WAIT: RoundState.WAITING,
            RoundInput.ANSWER: RoundState.ANSWERED,
            RoundInput.REFUSE: RoundState.REFUSED,
            RoundInput.WITHDRAW: RoundState.WITHDRAWN,
        },
        RoundState.WAITING: {
            RoundInput.ANSWER: RoundState.ANSWERED,
            RoundInput.WITHDRAW: RoundState.WITHDRAWN,
        },
        RoundState.ANSWERED: {},
        RoundState.REFUSED: {},
        RoundState.WITHDRAWN: {},
    },
)


# A received request: from its arrival to the one answer or its cancellation ----------------------


class RequestState(Symbol):
    OPEN = auto()
    ANSWERED = auto()
    CANCELLED = auto()


class RequestInput(Symbol):
    ANSWER = auto()
    CANCEL = auto()


REQUEST: Final = Table(
    "received request",
    RequestState.OPEN,
    {
        RequestState.OPEN: {
            RequestInput.ANSWER: RequestState.ANSWERED,
            RequestInput.CANCEL: RequestState.CANCELLED,
        },
        RequestState.ANSWERED: {},
        RequestState.CANCELLED: {},
    },
)


# A client's subscription: over however many listen requests it takes -----------------------------


class SubscriptionState(Symbol):
    ASKED = auto()
    """Not acknowledged: nothing is told on it yet."""
    OPEN = auto()
    PAUSED = auto()
    """It was lost, and will be asked for again after a while."""
    CLOSED = auto()


class SubscriptionInput(Symbol):
    ACKNOWLEDGE = auto()
    LOSE = auto()
    RETRY = auto()
    CLOSE = auto()


SUBSCRIPTION: Final = Table(
    "subscription",
    SubscriptionState.ASKED,
    {
        SubscriptionState.ASKED: {
            SubscriptionInput.ACKNOWLEDGE: SubscriptionState.OPEN,
            SubscriptionInput.LOSE: SubscriptionState.PAUSED,
            SubscriptionInput.CLOSE: SubscriptionState.CLOSED,
        },
        SubscriptionState.OPEN: {
            SubscriptionInput.LOSE: SubscriptionState.PAUSED,
            SubscriptionInput.CLOSE: SubscriptionState.CLOSED,
        },
        SubscriptionState.PAUSED: {
            SubscriptionInput.RETRY: SubscriptionState.ASKED,
            SubscriptionInput.CLOSE: SubscriptionState.CLOSED,
        },
        SubscriptionState.CLOSED: {},
    },
)


__all__ = [
    "CALL",
    "REQUEST",
    "ROUND",
    "SUBSCRIPTION",
    "CallInput",
    "CallState",
    "RequestInput",
    "RequestState",
    "RoundInput",
    "RoundState",
    "SubscriptionInput",
    "SubscriptionState",
]
