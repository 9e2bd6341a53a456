"""The table of methods: which exist in which revision, for whom, and what they carry.

Methods of extensions are not in it; an extension registers its own.

Specification: 2026-07-28, schema reference; the schema of each revision.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, StrEnum
from functools import cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import attr

from ..revisions import LATEST_LEGACY, Revision


class Method(StrEnum):
    """Every method of the core protocol, as it stands on the wire."""

    COMPLETE = "completion/complete"
    ELICIT = "elicitation/create"
    INITIALIZE = "initialize"
    SET_LEVEL = "logging/setLevel"
    PING = "ping"
    GET_PROMPT = "prompts/get"
    LIST_PROMPTS = "prompts/list"
    LIST_RESOURCES = "resources/list"
    READ_RESOURCE = "resources/read"
    SUBSCRIBE = "resources/subscribe"
    LIST_RESOURCE_TEMPLATES = "resources/templates/list"
    UNSUBSCRIBE = "resources/unsubscribe"
    LIST_ROOTS = "roots/list"
    CREATE_MESSAGE = "sampling/createMessage"
    DISCOVER = "server/discover"
    LISTEN = "subscriptions/listen"
    CANCEL_TASK = "tasks/cancel"
    GET_TASK = "tasks/get"
    LIST_TASKS = "tasks/list"
    GET_TASK_PAYLOAD = "tasks/result"
    CALL_TOOL = "tools/call"
    LIST_TOOLS = "tools/list"

    CANCELLED = "notifications/cancelled"
    ELICITATION_COMPLETE = "notifications/elicitation/complete"
    INITIALIZED = "notifications/initialized"
    LOG_MESSAGE = "notifications/message"
    PROGRESS = "notifications/progress"
    PROMPTS_CHANGED = "notifications/prompts/list_changed"
    RESOURCES_CHANGED = "notifications/resources/list_changed"
    RESOURCE_UPDATED = "notifications/resources/updated"
    ROOTS_CHANGED = "notifications/roots/list_changed"
    ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
    TASK_STATUS = "notifications/tasks/status"
    TOOLS_CHANGED = "notifications/tools/list_changed"


class Kind(Enum):
    """Whether a method asks for an answer."""

    REQUEST = "request"
    NOTIFICATION = "notification"


class Direction(Enum):
    """Who sends a method to whom."""

    __hash__ = object.__hash__  # members are singletons, and this one costs no Python call

    CLIENT_TO_SERVER = "client to server"
    SERVER_TO_CLIENT = "server to client"
    EMBEDDED = "embedded"
    """From the server, but only inside an `input_required` result (or a task)."""


Span: TypeAlias = tuple[Revision | None, Revision | None]
"""First and last revision; None: no bound."""


@attr.s(auto_attribs=True, slots=True, frozen=True, eq=False, kw_only=True)
class MethodSpec:
    """What the protocol says about one method."""

    method: Method
    kind: Kind
    spans: Mapping[Direction, Span]
    """In which revisions it goes which way."""
    params_name: str
    """Name of the params' class in `sansmcp.types`."""
    result_name: str | None = None
    """Name of the result's class; None for notifications."""
    params_required: bool = False
    """Whether there are no params without a member that the method asks for."""
    cacheable: bool = False
    """The modern result says how long it may be kept."""
    mrtr: bool = False
    """A modern server may answer with `input_required`."""
    name_member: str | None = None
    """The member of params that names what it is about; HTTP mirrors it as a header."""
    list_member: str | None = None
    """For lists in pages: the member of the result that holds the items."""
    server_capability: str | None = None
    """What a server that takes or sends it declares, as ``resources.subscribe``."""
    server_capability_since: Revision | None = None
    """The first revision that has that capability, where the method is older."""
    client_capability: str | None = None
    """What a client that takes or sends it declares."""

    @property
    def params(self) -> type[Any]:
        """The params' class."""
        return _class(self.params_name)

    @property
    def result(self) -> type[Any] | None:
        """The result's class, None for notifications."""
        return None if self.result_name is None else _class(self.result_name)

    def goes(self, direction: Direction, revision: Revision) -> bool:
        """Whether the method may be sent in this direction in `revision`."""
        span = self.spans.get(direction)
        if span is None:
            return False
        since, until = span
        return (since is None or since <= revision) and (until is None or revision <= until)

    def asks_server(self, revision: Revision) -> str | None:
        """What the server must have declared for this method in `revision`, None for nothing."""
        since = self.server_capability_since
        return self.server_capability if since is None or since <= revision else None

    def directions(self, revision: Revision) -> frozenset[Direction]:
        """The directions that the method has in `revision`; empty when it does not exist."""
        return frozenset(d for d in self.spans if self.goes(d, revision))


@cache
def _class(name: str) -> type[Any]:
    # Looked up when first asked for: the table itself must not load every object of the protocol.
    from .. import types

    made: type[Any] = getattr(types, name)
    return made


_C2S = Direction.CLIENT_TO_SERVER
_S2C = Direction.SERVER_TO_CLIENT
_06 = Revision.V2025_06_18
_11 = Revision.V2025_11_25
_26 = Revision.V2026_07_28

_ALWAYS: Final[Span] = (None, None)
_LEGACY: Final[Span] = (None, LATEST_LEGACY)
_TASKS: Final[Span] = (_11, _11)
_MODERN: Final[Span] = (_26, None)


def _request(
    method: Method, params: str, result: str, spans: Mapping[Direction, Span], **more: Any
) -> MethodSpec:
    return MethodSpec(
        method=method,
        kind=Kind.REQUEST,
        spans=spans,
        params_name=params,
        result_name=result,
        **more,
    )


def _notification(method: Method, params: str, spans: Mapping[Direction, Span], **more: Any) -> MethodSpec:
    return MethodSpec(method=method, kind=Kind.NOTIFICATION, spans=spans, params_name=params, **more)


def _embedded(since: Revision | None) -> Mapping[Direction, Span]:
    return {_S2C: (since, LATEST_LEGACY), Direction.EMBEDDED: _MODERN}


def _list(method: Method, result: str, member: str, capability: str) -> MethodSpec:
    return _request(
        method,
        "PaginatedRequestParams",
        result,
        {_C2S: _ALWAYS},
        cacheable=True,
        list_member=member,
        server_capability=capability,
    )


_BOTH_LEGACY = {_C2S: _LEGACY, _S2C: _LEGACY}
_BOTH_TASKS = {_C2S: _TASKS, _S2C: _TASKS}

_SPECS = (
    _request(
        Method.COMPLETE,
        "CompleteRequestParams",
        "CompleteResult",
        {_C2S: _ALWAYS},
        params_required=True,
        server_capability="completions",
        server_capability_since=Revision.V2025_03_26,
    ),
    _request(
        Method.ELICIT,
        "ElicitRequestParams",
        "ElicitResult",
        _embedded(_06),
        params_required=True,
        client_capability="elicitation",
    ),
    _request(
        Method.INITIALIZE,
        "InitializeRequestParams",
        "InitializeResult",
        {_C2S: _LEGACY},
        params_required=True,
    ),
    _request(
        Method.SET_LEVEL,
        "SetLevelRequestParams",
        "EmptyResult",
        {_C2S: _LEGACY},
        params_required=True,
        server_capability="logging",
    ),
    _request(Method.PING, "RequestParams", "EmptyResult", _BOTH_LEGACY),
    _request(
        Method.GET_PROMPT,
        "GetPromptRequestParams",
        "GetPromptResult",
        {_C2S: _ALWAYS},
        params_required=True,
        mrtr=True,
        name_member="name",
        server_capability="prompts",
    ),
    _list(Method.LIST_PROMPTS, "ListPromptsResult", "prompts", "prompts"),
    _list(Method.LIST_RESOURCES, "ListResourcesResult", "resources", "resources"),
    _request(
        Method.READ_RESOURCE,
        "ReadResourceRequestParams",
        "ReadResourceResult",
        {_C2S: _ALWAYS},
        params_required=True,
        cacheable=True,
        mrtr=True,
        name_member="uri",
        server_capability="resources",
    ),
    _request(
        Method.SUBSCRIBE,
        "SubscribeRequestParams",
        "EmptyResult",
        {_C2S: _LEGACY},
        params_required=True,
        server_capability="resources.subscribe",
    ),
    _list(
        Method.LIST_RESOURCE_TEMPLATES,
        "ListResourceTemplatesResult",
        "resourceTemplates",
        "resources",
    ),
    _request(
        Method.UNSUBSCRIBE,
        "UnsubscribeRequestParams",
        "EmptyResult",
        {_C2S: _LEGACY},
        params_required=True,
        server_capability="resources.subscribe",
    ),
    _request(
        Method.LIST_ROOTS,
        "ListRootsRequestParams",
        "ListRootsResult",
        _embedded(None),
        client_capability="roots",
    ),
    _request(
        Method.CREATE_MESSAGE,
        "CreateMessageRequestParams",
        "CreateMessageResult",
        _embedded(None),
        params_required=True,
        client_capability="sampling",
    ),
    _request(Method.DISCOVER, "RequestParams", "DiscoverResult", {_C2S: _MODERN}, cacheable=True),
    _request(
        Method.LISTEN,
        "SubscriptionsListenRequestParams",
        "SubscriptionsListenResult",
        {_C2S: _MODERN},
        params_required=True,
    ),
    _request(
        Method.CANCEL_TASK,
        "CancelTaskRequestParams",
        "CancelTaskResult",
        _BOTH_TASKS,
        params_required=True,
        server_capability="tasks.cancel",
        client_capability="tasks.cancel",
    ),
    _request(
        Method.GET_TASK,
        "GetTaskRequestParams",
        "GetTaskResult",
        _BOTH_TASKS,
        params_required=True,
        server_capability="tasks",
        client_capability="tasks",
    ),
    _request(
        Method.LIST_TASKS,
        "PaginatedRequestParams",
        "ListTasksResult",
        _BOTH_TASKS,
        list_member="tasks",
        server_capability="tasks.list",
        client_capability="tasks.list",
    ),
    _request(
        Method.GET_TASK_PAYLOAD,
        "GetTaskPayloadRequestParams",
        "GetTaskPayloadResult",
        _BOTH_TASKS,
        params_required=True,
        server_capability="tasks",
        client_capability="tasks",
    ),
    _request(
        Method.CALL_TOOL,
        "CallToolRequestParams",
        "CallToolResult",
        {_C2S: _ALWAYS},
        params_required=True,
        mrtr=True,
        name_member="name",
        server_capability="tools",
    ),
    _list(Method.LIST_TOOLS, "ListToolsResult", "tools", "tools"),
    _notification(
        Method.CANCELLED,
        "CancelledNotificationParams",
        {_C2S: _ALWAYS, _S2C: _ALWAYS},
        params_required=True,
    ),
    _notification(
        Method.ELICITATION_COMPLETE,
        "ElicitationCompleteNotificationParams",
        {_S2C: _TASKS},
        params_required=True,
        client_capability="elicitation.url",
    ),
    _notification(Method.INITIALIZED, "NotificationParams", {_C2S: _LEGACY}),
    _notification(
        Method.LOG_MESSAGE,
        "LoggingMessageNotificationParams",
        {_S2C: _ALWAYS},
        params_required=True,
        server_capability="logging",
    ),
    _notification(
        Method.PROGRESS,
        "ProgressNotificationParams",
        {_C2S: _LEGACY, _S2C: _ALWAYS},
        params_required=True,
    ),
    _notification(
        Method.PROMPTS_CHANGED,
        "NotificationParams",
        {_S2C: _ALWAYS},
        server_capability="prompts.listChanged",
    ),
    _notification(
        Method.RESOURCES_CHANGED,
        "NotificationParams",
        {_S2C: _ALWAYS},
        server_capability="resources.listChanged",
    ),
    _notification(
        Method.RESOURCE_UPDATED,
        "ResourceUpdatedNotificationParams",
        {_S2C: _ALWAYS},
        params_required=True,
        server_capability="resources.subscribe",
    ),
    _notification(
        Method.ROOTS_CHANGED,
        "NotificationParams",
        {_C2S: _LEGACY},
        client_capability="roots.listChanged",
    ),
    _notification(
        Method.ACKNOWLEDGED,
        "SubscriptionsAcknowledgedNotificationParams",
        {_S2C: _MODERN},
        params_required=True,
    ),
    _notification(
        Method.TASK_STATUS,
        "TaskStatusNotificationParams",
        _BOTH_TASKS,
        params_required=True,
        server_capability="tasks",
        client_capability="tasks",
    ),
    _notification(
        Method.TOOLS_CHANGED,
        "NotificationParams",
        {_S2C: _ALWAYS},
        server_capability="tools.listChanged",
    ),
)

METHODS: Final[Mapping[str, MethodSpec]] = MappingProxyType({spec.method.value: spec for spec in _SPECS})
"""Every method of the core protocol, by its name on the wire."""


def spec_for(method: str) -> MethodSpec | None:
    """Return the table's row for `method`, or None for a method it does not have."""
    return METHODS.get(method)


def in_revision(method: str, revision: Revision, direction: Direction) -> bool:
    """Whether `revision` has `method` in this direction; False for unknown methods."""
    spec = METHODS.get(method)
    return spec is not None and spec.goes(direction, revision)
