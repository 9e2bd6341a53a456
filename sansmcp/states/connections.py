"""The tables of connections that last as long as a conversation, and of the processes behind them."""

from __future__ import annotations

from enum import auto
from typing import Final

from .machine import Symbol, Table

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


__all__ = [
    "CLIENT",
    "DIAL",
    "PROCESS",
    "SERVER",
    "ClientInput",
    "ClientState",
    "DialInput",
    "DialState",
    "ProcessInput",
    "ProcessState",
    "ServerInput",
    "ServerState",
]
