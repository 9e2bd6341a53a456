"""The wire forms of the modern era: everything a request means is in the request.

Only this file knows them. Client side: stamping `_meta`, reading a DiscoverResult and result types.
Server side: reading `_meta`, finishing results.

Specification: 2026-07-28, basic/index (`_meta`, result type, statelessness), server/discover.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import NoneType
from typing import TYPE_CHECKING, Any, Final

from ..errors import ErrorCode, LocalProtocolError, McpError, PeerFault, RemoteProtocolError
from ..records import frozen
from ..revisions import Era, Revision
from ..types.methods import Direction, spec_for
from ..wire.jsonrpc import RequestId
from .gates import lacking, needs_of

if TYPE_CHECKING:
    from .calls import IncomingRequest

PREFIX: Final = "io.modelcontextprotocol/"
META_VERSION: Final = PREFIX + "protocolVersion"
META_CLIENT_INFO: Final = PREFIX + "clientInfo"
META_CAPABILITIES: Final = PREFIX + "clientCapabilities"
META_LOG_LEVEL: Final = PREFIX + "logLevel"
META_SERVER_INFO: Final = PREFIX + "serverInfo"

REQUEST_KEYS: Final = (META_VERSION, META_CAPABILITIES, META_CLIENT_INFO)
"""`_meta` keys by which a request shows that it is modern."""

_REQUEST_KEYS: Final = frozenset(REQUEST_KEYS)

RESULT_TYPE: Final = "resultType"
COMPLETE: Final = "complete"
INPUT_REQUIRED: Final = "input_required"

TTL: Final = "ttlMs"
CACHE_SCOPE: Final = "cacheScope"

LOG_LEVELS: Final = (
    "debug",
    "info",
    "notice",
    "warning",
    "error",
    "critical",
    "alert",
    "emergency",
)
"""Least severe first."""


class Stamp:
    """Writes `_meta` on what a client sends: made once per connection, then only copied."""

    def __init__(
        self,
        revision: Revision | str,
        client_info: Mapping[str, Any] | None,
        capabilities: Mapping[str, Any],
    ) -> None:
        self._meta: Final[dict[str, Any]] = {
            META_VERSION: str(revision),
            META_CAPABILITIES: capabilities,
        }
        if client_info is not None:
            self._meta[META_CLIENT_INFO] = client_info

    @property
    def revision(self) -> str:
        """The version that it writes."""
        return str(self._meta[META_VERSION])

    def request(
        self,
        params: Mapping[str, Any],
        *,
        token: RequestId | None = None,
        log_level: str | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """`params` with a complete `_meta`. Raises LocalProtocolError for a reserved key."""
        stamped = self._meta.copy()
        given = params.get("_meta")
        for source in (given, meta):
            if source:
                refuse_reserved(source)
                stamped.update(source)
        if token is not None:
            stamped.setdefault("progressToken", token)
        if log_level is not None:
            stamped[META_LOG_LEVEL] = log_level
        return {**params, "_meta": stamped}

    def notification(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """`params` of a notification with `_meta`."""
        return {**params, "_meta": {**self._meta, **params.get("_meta", {})}}


def refuse_reserved(meta: Mapping[str, Any]) -> None:
    """Raise LocalProtocolError when the application sets a key that is the engine's to write."""
    for key in REQUEST_KEYS:
        if key in meta:
            raise LocalProtocolError(f"_meta key {key} is written by the engine: do not set it")


# client: reading ---------------------------------------------------------------------------------


def read_discover(raw: Mapping[str, Any]) -> tuple[list[str], list[str]] | None:
    """The versions in a DiscoverResult and what was tolerated in it; None when it is none.

    Only the list of versions decides. A malformed optional part never changes the verdict.
    """
    versions = raw.get("supportedVersions")
    if not isinstance(versions, list) or not all(isinstance(v, str) for v in versions):
        return None
    odd = []
    if not isinstance(raw.get("capabilities"), dict):
        odd.append("capabilities is no object")
    instructions = raw.get("instructions")
    if instructions is not None and not isinstance(instructions, str):
        odd.append("instructions is no string")
    meta = raw.get("_meta")
    if meta is not None and not isinstance(meta, dict):
        odd.append("_meta is no object")
    return versions, odd


def result_type(raw: Mapping[str, Any]) -> tuple[str | None, PeerFault | None]:
    """The result's type, and the fault when it is missing or no string."""
    kind = raw.get(RESULT_TYPE)
    if kind is None:
        return COMPLETE, PeerFault.MISSING_RESULT_TYPE
    if not isinstance(kind, str):
        return None, PeerFault.UNKNOWN_RESULT_TYPE
    return kind, None


def asks_for_input(raw: Mapping[str, Any]) -> bool:
    """Whether a result says that something is wanted first."""
    return bool(raw.get(RESULT_TYPE) == INPUT_REQUIRED)


def is_complete(raw: Mapping[str, Any]) -> bool:
    """Whether a result is what the request was made for; it is where it does not say what it is."""
    return bool(raw.get(RESULT_TYPE, COMPLETE) == COMPLETE)


def shows_itself(raw: Mapping[str, Any]) -> bool:
    """Whether a result has a member that only this era writes."""
    meta = raw.get("_meta")
    return RESULT_TYPE in raw or (isinstance(meta, dict) and META_SERVER_INFO in meta)


# client: input that is required ------------------------------------------------------------------

INPUT_REQUESTS: Final = "inputRequests"
INPUT_RESPONSES: Final = "inputResponses"
REQUEST_STATE: Final = "requestState"
RETRY_MEMBERS: Final = (INPUT_RESPONSES, REQUEST_STATE)
"""What a request carries when it is made again, and not before."""


def read_input_required(raw: Mapping[str, Any]) -> tuple[dict[str, Any], str | None]:
    """What an InputRequiredResult asks for, by key, and the state to send back.

    A member that is null or asks for nothing is as good as absent. Raises RemoteProtocolError when
    nothing is left, or for a member of another type.

    Specification: 2026-07-28, basic/patterns/mrtr.
    """
    asked, state = raw.get(INPUT_REQUESTS), raw.get(REQUEST_STATE)
    if asked is not None and not isinstance(asked, dict):
        problem = "inputRequests is no object"
    elif state is not None and not isinstance(state, str):
        problem = "requestState is no string"
    elif not asked and state is None:
        problem = "it has neither inputRequests nor requestState"
    else:
        return asked or {}, state
    raise RemoteProtocolError(PeerFault.INVALID_INPUT_REQUIRED, f"input is required, but {problem}")


def null_members(raw: Mapping[str, Any]) -> list[str]:
    """The members of an InputRequiredResult that are null, which is not legal."""
    return [name for name in (INPUT_REQUESTS, REQUEST_STATE) if name in raw and raw[name] is None]


def read_input_request(item: object) -> tuple[str, object]:
    """Method and params of one thing that is asked for.

    Raises RemoteProtocolError when it has no method.
    """
    method = item.get("method") if isinstance(item, dict) else None
    if not isinstance(item, dict) or not isinstance(method, str):
        raise RemoteProtocolError(
            PeerFault.INVALID_INPUT_REQUIRED, "input is required, but a member of inputRequests has no method"
        )
    return method, item.get("params")


def retry_params(params: Mapping[str, Any], again: Mapping[str, Any]) -> dict[str, Any]:
    """`params` with the answers and the state of the last round, and of no other one."""
    kept = {name: value for name, value in params.items() if name not in RETRY_MEMBERS}
    return {**kept, **again}


def retry_members(answers: Mapping[str, Any], state: str | None) -> dict[str, Any]:
    """What a request carries when it is made again: what there is of answers and state."""
    again: dict[str, Any] = {}
    if answers:
        again[INPUT_RESPONSES] = dict(answers)
    if state is not None:
        again[REQUEST_STATE] = state
    return again


# server: reading a request's _meta ---------------------------------------------------------------


@frozen
class RequestMeta:
    """What a modern request says about itself and its sender."""

    version: str
    """As it stands there; may be one that is not served."""
    capabilities: Mapping[str, Any]
    client_info: Any
    log_level: str | None
    meta: Mapping[str, Any]


def is_modern(params: Mapping[str, Any]) -> bool:
    """Whether the request claims to be modern: it carries one of the `_meta` keys of the era."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and not _REQUEST_KEYS.isdisjoint(meta)


def claims(value: object) -> bool:
    """Whether a decoded message claims to be modern."""
    params = value.get("params") if isinstance(value, dict) else None
    return isinstance(params, dict) and is_modern(params)


def read_request_meta(params: Mapping[str, Any]) -> RequestMeta | McpError:
    """The first rung of the ladder: a complete and well-formed `_meta`, or the error (-32602)."""
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return missing_meta("_meta")
    version = meta.get(META_VERSION)
    if version is None:
        return missing_meta(META_VERSION)
    capabilities = meta.get(META_CAPABILITIES)
    if capabilities is None:
        return missing_meta(META_CAPABILITIES)
    if not isinstance(version, str):
        return invalid_meta(META_VERSION, "must be a string")
    if not isinstance(capabilities, dict):
        return invalid_meta(META_CAPABILITIES, "must be an object")
    info = meta.get(META_CLIENT_INFO)
    if info is not None and not isinstance(info, dict):
        return invalid_meta(META_CLIENT_INFO, "must be an object")
    level = meta.get(META_LOG_LEVEL)
    if level is not None and level not in LOG_LEVELS:
        return invalid_meta(META_LOG_LEVEL, f"must be one of {', '.join(LOG_LEVELS)}")
    return RequestMeta(version, capabilities, info, level, meta)


def missing_meta(key: str) -> McpError:
    """The error for a request without a required `_meta` member."""
    where = key if key == "_meta" else f"_meta member {key}"
    return McpError(
        ErrorCode.INVALID_PARAMS,
        f"{where} is missing: every request of 2026-07-28 carries it "
        "(earlier revisions open with initialize)",
        {"missing": key},
    )


def invalid_meta(key: str, rule: str) -> McpError:
    """The error for a `_meta` member with an unusable value."""
    return McpError(ErrorCode.INVALID_PARAMS, f"_meta member {key} {rule}", {"invalid": key})


def unsupported_version(requested: str, supported: Sequence[str]) -> McpError:
    """The error for a version that is not served; it names those that are."""
    return McpError(
        ErrorCode.UNSUPPORTED_PROTOCOL_VERSION,
        f"protocol version {requested[:64]!r} is not supported",
        {"supported": list(supported), "requested": requested},
    )


def missing_capability(required: Mapping[str, Any]) -> McpError:
    """The error for a request whose sender did not declare what its processing needs."""
    return McpError(
        ErrorCode.MISSING_CLIENT_CAPABILITY,
        f"the client did not declare: {', '.join(required)}",
        {"requiredCapabilities": dict(required)},
    )


# server: writing results -------------------------------------------------------------------------


def finish_result(
    raw: Mapping[str, Any],
    *,
    cacheable: bool,
    server_info: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """A result as this era requires it: result type, cache hints, who answered."""
    finished = dict(raw)
    finished.setdefault(RESULT_TYPE, COMPLETE)
    if cacheable:
        finished.setdefault(TTL, 0)
        finished.setdefault(CACHE_SCOPE, "private")
    if server_info is not None:
        given = finished.get("_meta")
        meta = dict(given) if isinstance(given, Mapping) else {}
        meta.setdefault(META_SERVER_INFO, server_info)
        finished["_meta"] = meta
    return finished


def check_input_required(request: IncomingRequest, raw: Mapping[str, Any]) -> None:
    """Raise LocalProtocolError for an `input_required` result that this request may not be given."""
    spec = spec_for(request.method)
    if request.era is Era.LEGACY or spec is None or not spec.mrtr:
        raise LocalProtocolError(f"{request!r}: it cannot be answered with input_required")
    questions, state = raw.get(INPUT_REQUESTS), raw.get(REQUEST_STATE)
    if questions is None and state is None:
        raise LocalProtocolError(f"{request!r}: input_required has neither inputRequests nor requestState")
    if not isinstance(state, (str, NoneType)) or not isinstance(questions, (dict, NoneType)):
        raise LocalProtocolError(f"{request!r}: inputRequests is an object, and requestState a text")
    for key, question in (questions or {}).items():
        method = question.get("method") if isinstance(question, dict) else None
        asked = spec_for(method) if isinstance(method, str) else None
        if asked is None or not asked.goes(Direction.EMBEDDED, request.revision):
            raise LocalProtocolError(f"{request!r}: inputRequests[{key!r}] is no question that there is")
        missing = lacking(
            needs_of(asked.method, question.get("params") or {}, request.revision), request.peer_capabilities
        )
        if missing:
            raise LocalProtocolError(
                f"{request!r}: inputRequests[{key!r}] needs what the client does not declare: "
                f"{', '.join(missing)}"
            )


def input_required_result(requests: Mapping[str, Any], state: str | None) -> dict[str, Any]:
    """The body of an InputRequiredResult: what is asked, and what its client is to bring back."""
    result: dict[str, Any] = {RESULT_TYPE: INPUT_REQUIRED}
    if requests:
        result[INPUT_REQUESTS] = dict(requests)
    if state is not None:
        result[REQUEST_STATE] = state
    return result


def discover_result(
    versions: Sequence[str], capabilities: Mapping[str, Any], instructions: str | None
) -> dict[str, Any]:
    """The body of a DiscoverResult."""
    result: dict[str, Any] = {
        "supportedVersions": list(versions),
        "capabilities": dict(capabilities),
    }
    if instructions is not None:
        result["instructions"] = instructions
    return result
