"""sansmcp: the Model Context Protocol without I/O.

Messages or bytes in, events out; no socket, no task, no clock. Both roles, both eras.

The names below are the public ones, grouped by what they are for; each is loaded from its module
when it is first used. The protocol's objects are in `sansmcp.types`.
"""

# ruff: noqa: F401, PLE0605  (the imports are for type checkers; the names come from one table)

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .app import App, Invocation, ToolError
    from .client import ClientEngine
    from .clock import ClockPair, Deadlines
    from .context import Context
    from .errors import (
        CallCancelled,
        CallFailure,
        CallTimeout,
        ConnectFailure,
        ConnectionEnded,
        ConnectTimeout,
        ErrorCode,
        HandshakeFailed,
        InvalidResponse,
        LocalProtocolError,
        McpError,
        NoCommonVersion,
        PaginationError,
        PeerFault,
        RemoteProtocolError,
        SansmcpError,
        UnsupportedProtocolVersion,
    )
    from .events import (
        AbandonRequest,
        CloseConnection,
        DeviationTolerated,
        EraDecided,
        Event,
        Harmless,
        LimitHit,
        ListChanged,
        ListKind,
        LogReceived,
        MessageIgnored,
        NotificationReceived,
        PeerGone,
        ProgressReported,
        Reconnect,
        RequestCancelled,
        RequestFailed,
        RequestReceived,
        ResourceUpdated,
        ResultReady,
        SendNotification,
        SendRequest,
        SendResponse,
        SessionEnded,
        SessionStarted,
        WireEvent,
    )
    from .limits import CLIENT_LIMITS, SERVER_LIMITS, Limits, Timeouts
    from .ops import Close, CloseWrite, Kill, Op, Spawn, Terminate, Write
    from .responder import Responder
    from .revisions import (
        ALL_REVISIONS,
        LATEST,
        LATEST_LEGACY,
        LEGACY_REVISIONS,
        MODERN_REVISIONS,
        Era,
        Revision,
    )
    from .server import ServerEngine
    from .session.calls import Call, IncomingRequest
    from .session.era import (
        Auto,
        Evidence,
        Legacy,
        Outcome,
        Pin,
        ProbeContext,
        ProbeOutcome,
        Step,
        TransportKind,
        Verdict,
        classify_probe,
    )
    from .stdio import (
        NO_RESTART,
        Command,
        RestartPolicy,
        ShutdownLadder,
        StdioClient,
        child_environment,
    )
    from .stream import LineClient, LineServer
    from .types.lifecycle import ClientCapabilities, Implementation, ServerCapabilities
    from .wire.jsoncodec import default_codec, fast_codec, standard_codec

__version__: Final = "0.1.0"

_HOMES: Final = {
    "app": "App Invocation ToolError",
    "client": "ClientEngine",
    "clock": "ClockPair Deadlines",
    "context": "Context",
    "errors": (
        "CallCancelled CallFailure CallTimeout ConnectFailure ConnectTimeout ConnectionEnded "
        "ErrorCode HandshakeFailed InvalidResponse LocalProtocolError McpError NoCommonVersion "
        "PaginationError PeerFault RemoteProtocolError SansmcpError UnsupportedProtocolVersion"
    ),
    "events": (
        "AbandonRequest CloseConnection DeviationTolerated EraDecided Event Harmless LimitHit "
        "ListChanged ListKind LogReceived MessageIgnored NotificationReceived PeerGone "
        "ProgressReported Reconnect RequestCancelled RequestFailed RequestReceived ResourceUpdated "
        "ResultReady SendNotification SendRequest SendResponse SessionEnded SessionStarted WireEvent"
    ),
    "limits": "CLIENT_LIMITS Limits SERVER_LIMITS Timeouts",
    "ops": "Close CloseWrite Kill Op Spawn Terminate Write",
    "responder": "Responder",
    "revisions": ("ALL_REVISIONS Era LATEST LATEST_LEGACY LEGACY_REVISIONS MODERN_REVISIONS Revision"),
    "server": "ServerEngine",
    "session.calls": "Call IncomingRequest",
    "session.era": (
        "Auto Evidence Legacy Outcome Pin ProbeContext ProbeOutcome Step TransportKind Verdict classify_probe"
    ),
    "stdio": "Command NO_RESTART RestartPolicy ShutdownLadder StdioClient child_environment",
    "stream": "LineClient LineServer",
    "types.lifecycle": "ClientCapabilities Implementation ServerCapabilities",
    "wire.jsoncodec": "default_codec fast_codec standard_codec",
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


def __getattr__(name: str) -> Any:
    module = _HOME_OF.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
