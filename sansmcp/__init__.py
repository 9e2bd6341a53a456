"""sansmcp: the Model Context Protocol without I/O.

Messages or bytes in, events out; no socket, no task, no clock. Both roles, both eras.

The names below are the public ones, grouped by what they are for; each is loaded from its module
when it is first used. The protocol's objects are in `sansmcp.types`.
"""

# ruff: noqa: PLE0605  (the names come from one table; the imports are for type checkers)

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:  # "X as X" is how a type checker is told that X is public
    from .app import App as App
    from .app import Invocation as Invocation
    from .app import ToolError as ToolError
    from .asks import Ask as Ask
    from .asks import NeedsInput as NeedsInput
    from .asks import PagesFirst as PagesFirst
    from .asks import Question as Question
    from .auth.addresses import AddressPolicy as AddressPolicy
    from .auth.client import AuthorizedClient as AuthorizedClient
    from .auth.clients import ClientAuthentication as ClientAuthentication
    from .auth.grants import AuthorizationCode as AuthorizationCode
    from .auth.oauth import Grant as Grant
    from .auth.oauth import OAuth as OAuth
    from .auth.principal import Principal as Principal
    from .auth.registration import Registration as Registration
    from .auth.resource_server import ResourceServer as ResourceServer
    from .auth.tokens import MemoryTokenStore as MemoryTokenStore
    from .auth.tokens import Tokens as Tokens
    from .auth.tokens import TokenStore as TokenStore
    from .client import ClientEngine as ClientEngine
    from .clock import ClockPair as ClockPair
    from .clock import Deadlines as Deadlines
    from .context import Context as Context
    from .dialing import (
        SocketClient as SocketClient,
    )
    from .dialing import (
        TcpAddress as TcpAddress,
    )
    from .dialing import (
        UnixAddress as UnixAddress,
    )
    from .errors import AuthorizationFailed as AuthorizationFailed
    from .errors import AuthorizationProblem as AuthorizationProblem
    from .errors import (
        AuthorizationRequired as AuthorizationRequired,
    )
    from .errors import (
        CallCancelled as CallCancelled,
    )
    from .errors import (
        CallFailure as CallFailure,
    )
    from .errors import (
        CallSuspended as CallSuspended,
    )
    from .errors import (
        CallTimeout as CallTimeout,
    )
    from .errors import (
        CapabilityMissing as CapabilityMissing,
    )
    from .errors import (
        CloseReason as CloseReason,
    )
    from .errors import (
        ConnectFailure as ConnectFailure,
    )
    from .errors import (
        ConnectionEnded as ConnectionEnded,
    )
    from .errors import (
        ConnectTimeout as ConnectTimeout,
    )
    from .errors import (
        ErrorCode as ErrorCode,
    )
    from .errors import (
        HandshakeFailed as HandshakeFailed,
    )
    from .errors import (
        HttpFailure as HttpFailure,
    )
    from .errors import (
        InputRefused as InputRefused,
    )
    from .errors import (
        InvalidAnswer as InvalidAnswer,
    )
    from .errors import (
        InvalidResponse as InvalidResponse,
    )
    from .errors import (
        LocalProtocolError as LocalProtocolError,
    )
    from .errors import (
        McpError as McpError,
    )
    from .errors import (
        NetworkFailure as NetworkFailure,
    )
    from .errors import (
        NetworkProblem as NetworkProblem,
    )
    from .errors import (
        NoCommonVersion as NoCommonVersion,
    )
    from .errors import (
        OutputMismatch as OutputMismatch,
    )
    from .errors import (
        PaginationError as PaginationError,
    )
    from .errors import (
        PeerFault as PeerFault,
    )
    from .errors import (
        QuestionFailed as QuestionFailed,
    )
    from .errors import (
        RedirectRefused as RedirectRefused,
    )
    from .errors import (
        RemoteProtocolError as RemoteProtocolError,
    )
    from .errors import (
        RoundsExceeded as RoundsExceeded,
    )
    from .errors import (
        SansmcpError as SansmcpError,
    )
    from .errors import (
        SessionExpired as SessionExpired,
    )
    from .errors import (
        SpawnFailed as SpawnFailed,
    )
    from .errors import (
        StreamLost as StreamLost,
    )
    from .errors import (
        SubscriptionLost as SubscriptionLost,
    )
    from .errors import (
        UnsupportedProtocolVersion as UnsupportedProtocolVersion,
    )
    from .events import (
        AbandonRequest as AbandonRequest,
    )
    from .events import (
        AccessUndecided as AccessUndecided,
    )
    from .events import AuthorizationGranted as AuthorizationGranted
    from .events import AuthorizationRefused as AuthorizationRefused
    from .events import AuthorizationUrlReady as AuthorizationUrlReady
    from .events import (
        ChangesMissed as ChangesMissed,
    )
    from .events import (
        CloseConnection as CloseConnection,
    )
    from .events import (
        DeliveryFailed as DeliveryFailed,
    )
    from .events import (
        DeviationTolerated as DeviationTolerated,
    )
    from .events import (
        ElicitationCompleted as ElicitationCompleted,
    )
    from .events import (
        EraDecided as EraDecided,
    )
    from .events import (
        Event as Event,
    )
    from .events import (
        Harmless as Harmless,
    )
    from .events import (
        InputRequired as InputRequired,
    )
    from .events import (
        InputWithdrawn as InputWithdrawn,
    )
    from .events import (
        LimitHit as LimitHit,
    )
    from .events import (
        ListChanged as ListChanged,
    )
    from .events import (
        ListKind as ListKind,
    )
    from .events import (
        LogReceived as LogReceived,
    )
    from .events import (
        MessageIgnored as MessageIgnored,
    )
    from .events import (
        NotificationReceived as NotificationReceived,
    )
    from .events import (
        PeerGone as PeerGone,
    )
    from .events import (
        ProgressReported as ProgressReported,
    )
    from .events import (
        QuirkUsed as QuirkUsed,
    )
    from .events import (
        Reconnect as Reconnect,
    )
    from .events import RedirectNeeded as RedirectNeeded
    from .events import (
        RequestCancelled as RequestCancelled,
    )
    from .events import (
        RequestFailed as RequestFailed,
    )
    from .events import (
        RequestReceived as RequestReceived,
    )
    from .events import (
        ResourceUnwatched as ResourceUnwatched,
    )
    from .events import (
        ResourceUpdated as ResourceUpdated,
    )
    from .events import (
        ResourceWatched as ResourceWatched,
    )
    from .events import (
        ResultReady as ResultReady,
    )
    from .events import (
        SendNotification as SendNotification,
    )
    from .events import (
        SendRequest as SendRequest,
    )
    from .events import (
        SendResponse as SendResponse,
    )
    from .events import (
        ServerStreamEnded as ServerStreamEnded,
    )
    from .events import (
        ServerStreamOpened as ServerStreamOpened,
    )
    from .events import (
        SessionEnded as SessionEnded,
    )
    from .events import (
        SessionStarted as SessionStarted,
    )
    from .events import (
        SubscriptionClosed as SubscriptionClosed,
    )
    from .events import (
        SubscriptionInterrupted as SubscriptionInterrupted,
    )
    from .events import (
        SubscriptionOpened as SubscriptionOpened,
    )
    from .events import TokensNotKept as TokensNotKept
    from .events import (
        ToolExcluded as ToolExcluded,
    )
    from .events import (
        VerifyToken as VerifyToken,
    )
    from .events import (
        WireEvent as WireEvent,
    )
    from .following import Following as Following
    from .following import Listing as Listing
    from .forms import apply_defaults as apply_defaults
    from .forms import check_form as check_form
    from .http.client import (
        HttpClient as HttpClient,
    )
    from .http.connector import (
        HttpConnector as HttpConnector,
    )
    from .http.old_sse import (
        OldSseUse as OldSseUse,
    )
    from .http.pool import (
        PoolPolicy as PoolPolicy,
    )
    from .http.proxy import (
        Proxy as Proxy,
    )
    from .http.proxy import (
        parse_proxy as parse_proxy,
    )
    from .http.proxy import (
        proxy_for as proxy_for,
    )
    from .http.recovery import (
        EVERY_TOOL as EVERY_TOOL,
    )
    from .http.recovery import (
        Recovery as Recovery,
    )
    from .http.resume import (
        ReconnectPolicy as ReconnectPolicy,
    )
    from .inline import InlineHandlers as InlineHandlers
    from .limits import (
        CLIENT_LIMITS as CLIENT_LIMITS,
    )
    from .limits import (
        SERVER_LIMITS as SERVER_LIMITS,
    )
    from .limits import (
        Limits as Limits,
    )
    from .limits import (
        Timeouts as Timeouts,
    )
    from .line_client import LineClient as LineClient
    from .line_server import LineServer as LineServer
    from .line_server import (
        SocketServer as SocketServer,
    )
    from .model_tools import (
        ModelTools as ModelTools,
    )
    from .model_tools import (
        anthropic_tools as anthropic_tools,
    )
    from .model_tools import (
        gemini_tools as gemini_tools,
    )
    from .model_tools import (
        openai_tools as openai_tools,
    )
    from .ops import (
        Close as Close,
    )
    from .ops import (
        CloseWrite as CloseWrite,
    )
    from .ops import (
        Connect as Connect,
    )
    from .ops import (
        ConnectUnix as ConnectUnix,
    )
    from .ops import (
        Kill as Kill,
    )
    from .ops import (
        Op as Op,
    )
    from .ops import (
        Spawn as Spawn,
    )
    from .ops import (
        StartTls as StartTls,
    )
    from .ops import (
        Terminate as Terminate,
    )
    from .ops import (
        Write as Write,
    )
    from .questions import Elicit as Elicit
    from .questions import ElicitUrl as ElicitUrl
    from .questions import ListRoots as ListRoots
    from .questions import Sample as Sample
    from .responder import Responder as Responder
    from .revisions import (
        ALL_REVISIONS as ALL_REVISIONS,
    )
    from .revisions import (
        LATEST as LATEST,
    )
    from .revisions import (
        LATEST_LEGACY as LATEST_LEGACY,
    )
    from .revisions import (
        LEGACY_REVISIONS as LEGACY_REVISIONS,
    )
    from .revisions import (
        MODERN_REVISIONS as MODERN_REVISIONS,
    )
    from .revisions import (
        Era as Era,
    )
    from .revisions import (
        Revision as Revision,
    )
    from .server import ServerEngine as ServerEngine
    from .session.cache import (
        CacheUse as CacheUse,
    )
    from .session.cache import (
        ResponseCache as ResponseCache,
    )
    from .session.calls import Call as Call
    from .session.calls import IncomingRequest as IncomingRequest
    from .session.era import (
        Auto as Auto,
    )
    from .session.era import (
        Evidence as Evidence,
    )
    from .session.era import (
        Legacy as Legacy,
    )
    from .session.era import (
        Outcome as Outcome,
    )
    from .session.era import (
        Pin as Pin,
    )
    from .session.era import (
        ProbeContext as ProbeContext,
    )
    from .session.era import (
        ProbeOutcome as ProbeOutcome,
    )
    from .session.era import (
        Step as Step,
    )
    from .session.era import (
        TransportKind as TransportKind,
    )
    from .session.era import (
        Verdict as Verdict,
    )
    from .session.era import (
        classify_probe as classify_probe,
    )
    from .session.hints import (
        Keep as Keep,
    )
    from .session.rounds import IncomingQuestion as IncomingQuestion
    from .session.rounds import Round as Round
    from .session.sealing import HmacSealer as HmacSealer
    from .session.sealing import StateSealer as StateSealer
    from .session.single_use import SingleUse as SingleUse
    from .session.single_use import UsedInMemory as UsedInMemory
    from .session.single_use import UsedStates as UsedStates
    from .session.subscriptions import ChangeBuffer as ChangeBuffer
    from .session.subscriptions import Relisten as Relisten
    from .session.suspended import SuspendedCall as SuspendedCall
    from .spans import Span as Span
    from .spans import SpanHook as SpanHook
    from .stdio import (
        NO_RESTART as NO_RESTART,
    )
    from .stdio import (
        Command as Command,
    )
    from .stdio import (
        RestartPolicy as RestartPolicy,
    )
    from .stdio import (
        ShutdownLadder as ShutdownLadder,
    )
    from .stdio import (
        StdioClient as StdioClient,
    )
    from .stdio import (
        child_environment as child_environment,
    )
    from .stream_listener import (
        StreamListener as StreamListener,
    )
    from .toolset import (
        ToolEntry as ToolEntry,
    )
    from .toolset import (
        ToolFeedback as ToolFeedback,
    )
    from .toolset import (
        ToolNameCollisionError as ToolNameCollisionError,
    )
    from .toolset import (
        Toolset as Toolset,
    )
    from .toolset import (
        result_text as result_text,
    )
    from .toolset import (
        server_fingerprint as server_fingerprint,
    )
    from .toolset import (
        text_only as text_only,
    )
    from .toolset import (
        tool_feedback as tool_feedback,
    )
    from .toolset import (
        ui_resource_uri as ui_resource_uri,
    )
    from .toolset import (
        visible_to_model as visible_to_model,
    )
    from .types.lifecycle import (
        ClientCapabilities as ClientCapabilities,
    )
    from .types.lifecycle import (
        Implementation as Implementation,
    )
    from .types.lifecycle import (
        ServerCapabilities as ServerCapabilities,
    )
    from .uritemplate import (
        UriTemplate as UriTemplate,
    )
    from .validation import (
        SchemaLimits as SchemaLimits,
    )
    from .validation import (
        SchemaValidator as SchemaValidator,
    )
    from .validation import (
        UnusableSchemaError as UnusableSchemaError,
    )
    from .validation import (
        check_schema as check_schema,
    )
    from .validators import (
        PythonValidator as PythonValidator,
    )
    from .validators import (
        RustValidator as RustValidator,
    )
    from .validators import (
        default_validator as default_validator,
    )
    from .websocket import (
        PingPolicy as PingPolicy,
    )
    from .websocket import (
        WebSocketClosed as WebSocketClosed,
    )
    from .wire.jsoncodec import (
        default_codec as default_codec,
    )
    from .wire.jsoncodec import (
        fast_codec as fast_codec,
    )
    from .wire.jsoncodec import (
        standard_codec as standard_codec,
    )
    from .wire.websocket import (
        CloseCode as CloseCode,
    )
    from .ws_client import (
        WebSocketClient as WebSocketClient,
    )
    from .ws_server import (
        WebSocketServer as WebSocketServer,
    )

__version__: Final = "0.1.0"

_HOMES: Final = {
    "auth.tokens": "Tokens TokenStore MemoryTokenStore",
    "auth.registration": "Registration",
    "auth.oauth": "OAuth Grant",
    "auth.grants": "AuthorizationCode",
    "auth.clients": "ClientAuthentication",
    "auth.client": "AuthorizedClient",
    "auth.addresses": "AddressPolicy",
    "app": "App Invocation ToolError",
    "asks": "Ask NeedsInput PagesFirst Question",
    "auth.principal": "Principal",
    "auth.resource_server": "ResourceServer",
    "client": "ClientEngine",
    "clock": "ClockPair Deadlines",
    "context": "Context",
    "errors": (
        "AuthorizationFailed AuthorizationProblem AuthorizationRequired CallCancelled CallFailure "
        "CallSuspended CallTimeout "
        "CapabilityMissing CloseReason ConnectFailure ConnectTimeout ConnectionEnded ErrorCode "
        "HandshakeFailed HttpFailure InputRefused InvalidAnswer InvalidResponse "
        "LocalProtocolError McpError NetworkFailure NetworkProblem NoCommonVersion "
        "OutputMismatch PaginationError PeerFault QuestionFailed RedirectRefused RemoteProtocolError "
        "RoundsExceeded SansmcpError SessionExpired SpawnFailed StreamLost SubscriptionLost "
        "UnsupportedProtocolVersion"
    ),
    "events": (
        "AbandonRequest AccessUndecided AuthorizationGranted AuthorizationRefused AuthorizationUrlReady "
        "ChangesMissed CloseConnection DeliveryFailed DeviationTolerated RedirectNeeded TokensNotKept "
        "ElicitationCompleted EraDecided Event Harmless InputRequired InputWithdrawn LimitHit "
        "ListChanged ListKind LogReceived "
        "MessageIgnored NotificationReceived PeerGone ProgressReported QuirkUsed Reconnect RequestCancelled "
        "RequestFailed RequestReceived ResourceUnwatched ResourceUpdated ResourceWatched ResultReady "
        "SendNotification SendRequest SendResponse ServerStreamEnded ServerStreamOpened SessionEnded "
        "SessionStarted SubscriptionClosed SubscriptionInterrupted SubscriptionOpened ToolExcluded "
        "VerifyToken WireEvent"
    ),
    "following": "Following Listing",
    "forms": "apply_defaults check_form",
    "http.client": "HttpClient",
    "http.connector": "HttpConnector",
    "http.old_sse": "OldSseUse",
    "http.pool": "PoolPolicy",
    "http.proxy": "Proxy parse_proxy proxy_for",
    "http.recovery": "EVERY_TOOL Recovery",
    "http.resume": "ReconnectPolicy",
    "inline": "InlineHandlers",
    "limits": "CLIENT_LIMITS Limits SERVER_LIMITS Timeouts",
    "ops": "Close CloseWrite Connect ConnectUnix Kill Op Spawn StartTls Terminate Write",
    "questions": "Elicit ElicitUrl ListRoots Sample",
    "responder": "Responder",
    "revisions": ("ALL_REVISIONS Era LATEST LATEST_LEGACY LEGACY_REVISIONS MODERN_REVISIONS Revision"),
    "server": "ServerEngine",
    "session.calls": "Call IncomingRequest",
    "session.era": (
        "Auto Evidence Legacy Outcome Pin ProbeContext ProbeOutcome Step TransportKind Verdict classify_probe"
    ),
    "session.sealing": "HmacSealer StateSealer",
    "session.single_use": "SingleUse UsedInMemory UsedStates",
    "session.rounds": "IncomingQuestion Round",
    "session.subscriptions": "ChangeBuffer Relisten",
    "session.suspended": "SuspendedCall",
    "spans": "Span SpanHook",
    "stdio": "Command NO_RESTART RestartPolicy ShutdownLadder StdioClient child_environment",
    "line_client": "LineClient",
    "line_server": "LineServer SocketServer",
    "dialing": "SocketClient TcpAddress UnixAddress",
    "stream_listener": "StreamListener",
    "websocket": "PingPolicy WebSocketClosed",
    "wire.websocket": "CloseCode",
    "ws_client": "WebSocketClient",
    "ws_server": "WebSocketServer",
    "types.lifecycle": "ClientCapabilities Implementation ServerCapabilities",
    "wire.jsoncodec": "default_codec fast_codec standard_codec",
    "model_tools": "ModelTools anthropic_tools gemini_tools openai_tools",
    "session.cache": "CacheUse ResponseCache",
    "session.hints": "Keep",
    "toolset": (
        "ToolEntry ToolFeedback ToolNameCollisionError Toolset result_text "
        "server_fingerprint text_only tool_feedback ui_resource_uri visible_to_model"
    ),
    "uritemplate": "UriTemplate",
    "validation": "SchemaLimits SchemaValidator UnusableSchemaError check_schema",
    "validators": "PythonValidator RustValidator default_validator",
}
_HOME_OF: Final = {name: module for module, names in _HOMES.items() for name in names.split()}

__all__ = sorted(_HOME_OF)


if not TYPE_CHECKING:  # a type checker would believe every name

    def __getattr__(name: str) -> Any:
        module = _HOME_OF.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(import_module(f".{module}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME_OF})
