"""All transition tables, and the tiny machine that runs them.

A table is data: ``state → input → next state``. A pair that is not in the table is an error; the
diagrams in the docs are drawn from these tables, and a test walks every state with every input.
A machine knows neither the role nor the transport it is used for.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from typing import Final, Generic, TypeVar

from .errors import LocalProtocolError


class Symbol(Enum):
    """Base of states and inputs. Members are singletons, so the identity hash is right, and unlike
    Enum's own it costs no Python call: transitions sit on the path of every message."""

    __hash__ = object.__hash__


S = TypeVar("S", bound=Symbol)
I = TypeVar("I", bound=Symbol)  # noqa: E741  (S and I: state and input)


class Table(Generic[S, I]):
    """A transition table: its name for people, the state it starts in, and the transitions."""

    __slots__ = ("initial", "name", "transitions")

    def __init__(self, name: str, initial: S, transitions: Mapping[S, Mapping[I, S]]) -> None:
        self.name: Final = name
        self.initial: Final = initial
        self.transitions: Final = transitions

    def final(self) -> frozenset[S]:
        """States that nothing leaves."""
        return frozenset(state for state, row in self.transitions.items() if not row)


class Machine(Generic[S, I]):
    """The current state of one run through a table."""

    __slots__ = ("_table", "state")

    def __init__(self, table: Table[S, I]) -> None:
        self._table = table
        self.state: S = table.initial

    @classmethod
    def standing(cls, table: Table[S, I], state: str) -> Machine[S, I]:
        """A machine that stands in the state of this name. Raises KeyError for a name of none."""
        machine = cls(table)
        machine.state = {known.name: known for known in table.transitions}[state]
        return machine

    def fire(self, trigger: I) -> S:
        """Take the transition for `trigger` and return the new state.

        Raises LocalProtocolError, with the state unchanged, when the table has none.
        """
        target = self._table.transitions[self.state].get(trigger)
        if target is None:
            raise LocalProtocolError(
                f"{self._table.name}: {trigger.name} is not possible in state {self.state.name}"
            )
        self.state = target
        return target

    def allows(self, trigger: I) -> bool:
        """Whether `trigger` has a transition from the current state."""
        return trigger in self._table.transitions[self.state]

    def allowed(self) -> tuple[I, ...]:
        """Every input that has a transition from the current state."""
        return tuple(self._table.transitions[self.state])


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


# The client's connection: era probe, handshake, use, end -----------------------------------------


class ClientState(Symbol):
    IDLE = auto()
    PROBING = auto()
    INITIALIZING = auto()
    RESTARTING = auto()
    """The peer ended while the era was open; a new one is being started for `initialize`."""
    READY = auto()
    REPROBING = auto()
    """A remembered verdict was contradicted; one new probe is under way."""
    DISCONNECTED = auto()
    """The era is known, the connection is being brought back."""
    CLOSED = auto()


class ClientInput(Symbol):
    PROBE = auto()
    INITIALIZE = auto()
    RESTART = auto()
    DECIDE = auto()
    """The era is known and the peer may be used."""
    DOUBT = auto()
    """An answer contradicts the remembered verdict."""
    LOSE = auto()
    CLOSE = auto()


CLIENT: Final = Table(
    "client connection",
    ClientState.IDLE,
    {
        ClientState.IDLE: {
            ClientInput.PROBE: ClientState.PROBING,
            ClientInput.INITIALIZE: ClientState.INITIALIZING,
            ClientInput.DECIDE: ClientState.READY,
            ClientInput.CLOSE: ClientState.CLOSED,
        },
        ClientState.PROBING: {
            ClientInput.PROBE: ClientState.PROBING,
            ClientInput.INITIALIZE: ClientState.INITIALIZING,
            ClientInput.RESTART: ClientState.RESTARTING,
            ClientInput.DECIDE: ClientState.READY,
            ClientInput.CLOSE: ClientState.CLOSED,
        },
        ClientState.INITIALIZING: {
            ClientInput.PROBE: ClientState.PROBING,
            ClientInput.INITIALIZE: ClientState.INITIALIZING,
            ClientInput.RESTART: ClientState.RESTARTING,
            ClientInput.DECIDE: ClientState.READY,
            ClientInput.CLOSE: ClientState.CLOSED,
        },
        ClientState.RESTARTING: {
            ClientInput.INITIALIZE: ClientState.INITIALIZING,
            ClientInput.CLOSE: ClientState.CLOSED,
        },
        ClientState.READY: {
            ClientInput.DOUBT: ClientState.REPROBING,
            ClientInput.RESTART: ClientState.RESTARTING,
            ClientInput.LOSE: ClientState.DISCONNECTED,
            ClientInput.CLOSE: ClientState.CLOSED,
        },
        ClientState.REPROBING: {
            ClientInput.PROBE: ClientState.REPROBING,
            ClientInput.INITIALIZE: ClientState.INITIALIZING,
            ClientInput.RESTART: ClientState.RESTARTING,
            ClientInput.DECIDE: ClientState.READY,
            ClientInput.CLOSE: ClientState.CLOSED,
        },
        ClientState.DISCONNECTED: {
            ClientInput.INITIALIZE: ClientState.INITIALIZING,
            ClientInput.DECIDE: ClientState.READY,
            ClientInput.CLOSE: ClientState.CLOSED,
        },
        ClientState.CLOSED: {},
    },
)


# The server's side of one connection -------------------------------------------------------------


class ServerState(Symbol):
    OPEN = auto()
    """Modern requests are served; a legacy client has not opened a session."""
    INITIALIZED = auto()
    """`initialize` was answered."""
    READY = auto()
    """The legacy client confirmed with `notifications/initialized`."""
    DRAINING = auto()
    """No more input; answers already owed may still leave."""
    CLOSED = auto()


class ServerInput(Symbol):
    INITIALIZE = auto()
    CONFIRM = auto()
    END_OF_INPUT = auto()
    CLOSE = auto()


SERVER: Final = Table(
    "server connection",
    ServerState.OPEN,
    {
        ServerState.OPEN: {
            ServerInput.INITIALIZE: ServerState.INITIALIZED,
            ServerInput.END_OF_INPUT: ServerState.DRAINING,
            ServerInput.CLOSE: ServerState.CLOSED,
        },
        ServerState.INITIALIZED: {
            ServerInput.CONFIRM: ServerState.READY,
            ServerInput.END_OF_INPUT: ServerState.DRAINING,
            ServerInput.CLOSE: ServerState.CLOSED,
        },
        ServerState.READY: {
            ServerInput.END_OF_INPUT: ServerState.DRAINING,
            ServerInput.CLOSE: ServerState.CLOSED,
        },
        ServerState.DRAINING: {
            ServerInput.CLOSE: ServerState.CLOSED,
        },
        ServerState.CLOSED: {},
    },
)


# A child process: spawn, use, shutdown ladder ----------------------------------------------------


class ProcessState(Symbol):
    IDLE = auto()
    SPAWNING = auto()
    RUNNING = auto()
    INPUT_CLOSED = auto()
    """First rung: the child's standard input is closed, it should leave by itself."""
    TERMINATING = auto()
    KILLING = auto()
    WAITING = auto()
    """The child is gone; a new one is started after a delay."""
    GONE = auto()


class ProcessInput(Symbol):
    SPAWN = auto()
    OPENED = auto()
    CLOSE_INPUT = auto()
    TERMINATE = auto()
    KILL = auto()
    RETRY = auto()
    EXITED = auto()


PROCESS: Final = Table(
    "child process",
    ProcessState.IDLE,
    {
        ProcessState.IDLE: {
            ProcessInput.SPAWN: ProcessState.SPAWNING,
            ProcessInput.EXITED: ProcessState.GONE,
        },
        ProcessState.SPAWNING: {
            ProcessInput.OPENED: ProcessState.RUNNING,
            ProcessInput.CLOSE_INPUT: ProcessState.INPUT_CLOSED,
            ProcessInput.RETRY: ProcessState.WAITING,
            ProcessInput.EXITED: ProcessState.GONE,
        },
        ProcessState.RUNNING: {
            ProcessInput.CLOSE_INPUT: ProcessState.INPUT_CLOSED,
            ProcessInput.RETRY: ProcessState.WAITING,
            ProcessInput.EXITED: ProcessState.GONE,
        },
        ProcessState.INPUT_CLOSED: {
            ProcessInput.TERMINATE: ProcessState.TERMINATING,
            ProcessInput.RETRY: ProcessState.WAITING,
            ProcessInput.EXITED: ProcessState.GONE,
        },
        ProcessState.TERMINATING: {
            ProcessInput.KILL: ProcessState.KILLING,
            ProcessInput.RETRY: ProcessState.WAITING,
            ProcessInput.EXITED: ProcessState.GONE,
        },
        ProcessState.KILLING: {
            ProcessInput.RETRY: ProcessState.WAITING,
            ProcessInput.EXITED: ProcessState.GONE,
        },
        ProcessState.WAITING: {
            ProcessInput.SPAWN: ProcessState.SPAWNING,
            ProcessInput.EXITED: ProcessState.GONE,
        },
        ProcessState.GONE: {},
    },
)


# A connection that a client makes, lasting as long as its conversation --------------------------


class DialState(Symbol):
    IDLE = auto()
    CONNECTING = auto()
    UPGRADING = auto()
    """The connection is there; both ends agree on how to use it."""
    OPEN = auto()
    CLOSING = auto()
    """This side said that it ends; the end of the other is awaited."""
    WAITING = auto()
    """The connection is gone; a new one is made after a delay."""
    GONE = auto()


class DialInput(Symbol):
    DIAL = auto()
    UPGRADE = auto()
    OPEN = auto()
    CLOSE = auto()
    RETRY = auto()
    END = auto()


DIAL: Final = Table(
    "dialed connection",
    DialState.IDLE,
    {
        DialState.IDLE: {DialInput.DIAL: DialState.CONNECTING, DialInput.END: DialState.GONE},
        DialState.CONNECTING: {
            DialInput.UPGRADE: DialState.UPGRADING,
            DialInput.OPEN: DialState.OPEN,
            DialInput.RETRY: DialState.WAITING,
            DialInput.END: DialState.GONE,
        },
        DialState.UPGRADING: {
            DialInput.OPEN: DialState.OPEN,
            DialInput.RETRY: DialState.WAITING,
            DialInput.END: DialState.GONE,
        },
        DialState.OPEN: {
            DialInput.CLOSE: DialState.CLOSING,
            DialInput.RETRY: DialState.WAITING,
            DialInput.END: DialState.GONE,
        },
        DialState.CLOSING: {DialInput.END: DialState.GONE},
        DialState.WAITING: {DialInput.DIAL: DialState.CONNECTING, DialInput.END: DialState.GONE},
        DialState.GONE: {},
    },
)


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


# Authorization: one attempt to come by a token -----------------------------------------------------


class AuthorizationState(Symbol):
    IDLE = auto()
    RESOURCE = auto()
    """The server is asked by whom one is authorized."""
    SERVER = auto()
    """The authorization server is asked what it can do."""
    REDIRECT = auto()
    """The application is asked where the browser is to arrive."""
    REGISTERING = auto()
    """This client makes itself known."""
    USER = auto()
    """The user logs in."""
    TOKEN = auto()
    """The token is asked for."""
    GRANTED = auto()
    FAILED = auto()


class AuthorizationInput(Symbol):
    ASK_RESOURCE = auto()
    ASK_SERVER = auto()
    ASK_REDIRECT = auto()
    REGISTER = auto()
    ASK_USER = auto()
    ASK_TOKEN = auto()
    GRANT = auto()
    FAIL = auto()


AUTHORIZATION: Final = Table(
    "authorization",
    AuthorizationState.IDLE,
    {
        AuthorizationState.IDLE: {
            AuthorizationInput.ASK_RESOURCE: AuthorizationState.RESOURCE,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.RESOURCE: {
            AuthorizationInput.ASK_RESOURCE: AuthorizationState.RESOURCE,
            AuthorizationInput.ASK_SERVER: AuthorizationState.SERVER,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.SERVER: {
            AuthorizationInput.ASK_SERVER: AuthorizationState.SERVER,
            AuthorizationInput.ASK_REDIRECT: AuthorizationState.REDIRECT,
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            AuthorizationInput.GRANT: AuthorizationState.GRANTED,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.REDIRECT: {
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.REGISTERING: {
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.USER: {
            # This client is known for fewer rights than are asked for.
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.TOKEN: {
            AuthorizationInput.ASK_TOKEN: AuthorizationState.TOKEN,
            # A token could not be renewed: then the user is asked.
            AuthorizationInput.ASK_REDIRECT: AuthorizationState.REDIRECT,
            AuthorizationInput.REGISTER: AuthorizationState.REGISTERING,
            AuthorizationInput.ASK_USER: AuthorizationState.USER,
            AuthorizationInput.GRANT: AuthorizationState.GRANTED,
            AuthorizationInput.FAIL: AuthorizationState.FAILED,
        },
        AuthorizationState.GRANTED: {},
        AuthorizationState.FAILED: {},
    },
)


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
