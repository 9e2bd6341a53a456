"""The objects of the protocol, all revisions, and what turns JSON into them and back.

A name is loaded from its module when it is first used: a program that connects and calls a tool
does not pay for sampling, elicitation and tasks.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .base import (
        UNSET,
        Choose,
        Cursor,
        JsonObject,
        JsonSchema,
        JsonValue,
        ProgressToken,
        RequestId,
        RootObjectSchema,
        Unknown,
        Unset,
        WireObject,
        wire,
        wire_type,
    )
    from .completion import (
        CompleteRequestParams,
        CompleteResult,
        Completion,
        CompletionArgument,
        CompletionContext,
        PromptReference,
        Reference,
        ResourceTemplateReference,
    )
    from .content import (
        Annotations,
        AudioContent,
        BlobResourceContents,
        ContentBlock,
        EmbeddedResource,
        ImageContent,
        ResourceContents,
        ResourceLink,
        Role,
        TextContent,
        TextResourceContents,
        UnknownContent,
        UnknownResourceContents,
    )
    from .convert import StructureError, project, structure, unstructure
    from .elicitation import (
        BooleanSchema,
        ElicitationCompleteNotificationParams,
        ElicitRequestFormParams,
        ElicitRequestParams,
        ElicitRequestURLParams,
        ElicitResult,
        LegacyTitledEnumSchema,
        NumberSchema,
        PrimitiveSchemaDefinition,
        RequestedSchema,
        StringSchema,
        TitledItems,
        TitledMultiSelectEnumSchema,
        TitledOption,
        TitledSingleSelectEnumSchema,
        UnknownSchema,
        UntitledItems,
        UntitledMultiSelectEnumSchema,
        UntitledSingleSelectEnumSchema,
    )
    from .error_data import (
        Error,
        MissingRequiredClientCapabilityErrorData,
        UnsupportedProtocolVersionErrorData,
        URLElicitationRequiredErrorData,
    )
    from .handshake import InitializeRequestParams, InitializeResult
    from .icons import Icon
    from .lifecycle import (
        ClientCapabilities,
        ClientTaskRequestsCapability,
        ClientTasksCapability,
        DiscoverResult,
        ElicitationCapability,
        Implementation,
        ListChangedCapability,
        PromptsCapability,
        ResourcesCapability,
        RootsCapability,
        SamplingCapability,
        ServerCapabilities,
        ServerTaskRequestsCapability,
        ServerTasksCapability,
        TaskElicitationCapability,
        TaskSamplingCapability,
        TaskToolsCapability,
        ToolsCapability,
        declares,
    )
    from .listening import (
        SubscriptionsAcknowledgedNotificationParams,
        SubscriptionsListenRequestParams,
        SubscriptionsListenResult,
        SubscriptionsListenResultMetaObject,
    )
    from .logging import LoggingLevel, LoggingMessageNotificationParams, SetLevelRequestParams
    from .meta import NotificationMetaObject, RequestMetaObject, ResultMetaObject
    from .methods import METHODS, Direction, Kind, Method, MethodSpec, in_revision, spec_for
    from .mrtr import (
        CreateMessageRequest,
        ElicitRequest,
        InputRequest,
        InputRequiredResult,
        ListRootsRequest,
        UnknownInputRequest,
    )
    from .notifications import CancelledNotificationParams, ProgressNotificationParams
    from .prompts import (
        GetPromptRequestParams,
        GetPromptResult,
        ListPromptsResult,
        Prompt,
        PromptArgument,
        PromptMessage,
    )
    from .registry import converter
    from .resources import (
        ListResourcesResult,
        ListResourceTemplatesResult,
        ReadResourceRequestParams,
        ReadResourceResult,
        Resource,
        ResourceRequestParams,
        ResourceTemplate,
        ResourceUpdatedNotificationParams,
        SubscribeRequestParams,
        UnsubscribeRequestParams,
    )
    from .results import (
        CacheableResult,
        EmptyResult,
        InputResponseRequestParams,
        NotificationParams,
        PaginatedRequestParams,
        PaginatedResult,
        RequestParams,
        Result,
        TaskMetadata,
    )
    from .roots import ListRootsRequestParams, ListRootsResult, Root
    from .sampling import (
        CreateMessageRequestParams,
        CreateMessageResult,
        ModelHint,
        ModelPreferences,
        SamplingMessage,
        SamplingMessageContentBlock,
        ToolChoice,
        ToolResultContent,
        ToolUseContent,
    )
    from .subscriptions import (
        SubscriptionFilter,
    )
    from .tasks import (
        RELATED_TASK,
        TASKS_EXTENSION,
        CancelTaskRequestParams,
        CancelTaskResult,
        CreateTaskResult,
        DetailedTask,
        GetTaskPayloadRequestParams,
        GetTaskPayloadResult,
        GetTaskRequestParams,
        GetTaskResult,
        ListTasksResult,
        RelatedTaskMetadata,
        Task,
        TaskResult,
        TaskStatus,
        TaskStatusNotificationParams,
        TaskSubscriptionNotifications,
        UpdateTaskRequestParams,
    )
    from .tools import (
        CallToolRequestParams,
        CallToolResult,
        ListToolsResult,
        Tool,
        ToolAnnotations,
        ToolExecution,
    )

_HOME = {
    name: module
    for module, names in {
        "base": (
            "UNSET Choose Cursor JsonObject JsonSchema JsonValue ProgressToken RequestId "
            "RootObjectSchema Unknown Unset WireObject wire wire_type"
        ),
        "content": (
            "Annotations AudioContent BlobResourceContents ContentBlock EmbeddedResource "
            "ImageContent ResourceContents ResourceLink Role TextContent TextResourceContents "
            "UnknownContent UnknownResourceContents"
        ),
        "icons": "Icon",
        "results": (
            "CacheableResult EmptyResult InputResponseRequestParams NotificationParams "
            "PaginatedRequestParams PaginatedResult RequestParams "
            "Result TaskMetadata"
        ),
        "lifecycle": (
            "ClientCapabilities ClientTaskRequestsCapability ClientTasksCapability "
            "DiscoverResult ElicitationCapability Implementation ListChangedCapability "
            "PromptsCapability ResourcesCapability RootsCapability SamplingCapability ServerCapabilities "
            "ServerTaskRequestsCapability ServerTasksCapability TaskElicitationCapability "
            "TaskSamplingCapability TaskToolsCapability ToolsCapability declares"
        ),
        "tools": ("CallToolRequestParams CallToolResult ListToolsResult Tool ToolAnnotations ToolExecution"),
        "resources": (
            "ListResourceTemplatesResult ListResourcesResult ReadResourceRequestParams "
            "ReadResourceResult Resource ResourceRequestParams ResourceTemplate "
            "ResourceUpdatedNotificationParams SubscribeRequestParams UnsubscribeRequestParams"
        ),
        "prompts": (
            "GetPromptRequestParams GetPromptResult ListPromptsResult Prompt PromptArgument PromptMessage"
        ),
        "completion": (
            "CompleteRequestParams CompleteResult Completion CompletionArgument "
            "CompletionContext PromptReference Reference ResourceTemplateReference"
        ),
        "handshake": "InitializeRequestParams InitializeResult",
        "meta": "NotificationMetaObject RequestMetaObject ResultMetaObject",
        "listening": (
            "SubscriptionsAcknowledgedNotificationParams SubscriptionsListenRequestParams "
            "SubscriptionsListenResult SubscriptionsListenResultMetaObject"
        ),
        "logging": "LoggingLevel LoggingMessageNotificationParams SetLevelRequestParams",
        "notifications": "CancelledNotificationParams ProgressNotificationParams",
        "subscriptions": "SubscriptionFilter",
        "roots": "ListRootsRequestParams ListRootsResult Root",
        "sampling": (
            "CreateMessageRequestParams CreateMessageResult ModelHint ModelPreferences "
            "SamplingMessage SamplingMessageContentBlock ToolChoice ToolResultContent ToolUseContent"
        ),
        "elicitation": (
            "BooleanSchema ElicitRequestFormParams ElicitRequestParams "
            "ElicitRequestURLParams ElicitResult ElicitationCompleteNotificationParams "
            "LegacyTitledEnumSchema NumberSchema PrimitiveSchemaDefinition RequestedSchema "
            "StringSchema TitledItems TitledMultiSelectEnumSchema TitledOption "
            "TitledSingleSelectEnumSchema UnknownSchema UntitledItems "
            "UntitledMultiSelectEnumSchema UntitledSingleSelectEnumSchema"
        ),
        "mrtr": (
            "CreateMessageRequest ElicitRequest InputRequest InputRequiredResult "
            "ListRootsRequest UnknownInputRequest"
        ),
        "tasks": (
            "RELATED_TASK TASKS_EXTENSION CancelTaskRequestParams CancelTaskResult "
            "CreateTaskResult DetailedTask GetTaskPayloadRequestParams GetTaskPayloadResult "
            "GetTaskRequestParams GetTaskResult ListTasksResult RelatedTaskMetadata Task "
            "TaskResult TaskStatus TaskStatusNotificationParams "
            "TaskSubscriptionNotifications UpdateTaskRequestParams"
        ),
        "error_data": (
            "Error MissingRequiredClientCapabilityErrorData URLElicitationRequiredErrorData "
            "UnsupportedProtocolVersionErrorData"
        ),
        "methods": "METHODS Direction Kind Method MethodSpec in_revision spec_for",
        "convert": "StructureError project structure unstructure",
        "registry": "converter",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> Any:
    module = _HOME.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{module}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME})


__all__ = [  # noqa: RUF022 -- grouped
    # base
    "UNSET",
    "Choose",
    "Cursor",
    "JsonObject",
    "JsonSchema",
    "JsonValue",
    "ProgressToken",
    "RequestId",
    "RootObjectSchema",
    "Unknown",
    "Unset",
    "WireObject",
    "wire",
    "wire_type",
    # content
    "Annotations",
    "AudioContent",
    "BlobResourceContents",
    "ContentBlock",
    "EmbeddedResource",
    "ImageContent",
    "ResourceContents",
    "ResourceLink",
    "Role",
    "SamplingMessageContentBlock",
    "TextContent",
    "TextResourceContents",
    "ToolResultContent",
    "ToolUseContent",
    "UnknownContent",
    "UnknownResourceContents",
    # icons
    "Icon",
    # results
    "CacheableResult",
    "EmptyResult",
    "InputResponseRequestParams",
    "NotificationParams",
    "PaginatedRequestParams",
    "PaginatedResult",
    "RequestParams",
    "ResourceRequestParams",
    "Result",
    "TaskMetadata",
    # lifecycle
    "ClientCapabilities",
    "ClientTaskRequestsCapability",
    "ClientTasksCapability",
    "DiscoverResult",
    "ElicitationCapability",
    "Implementation",
    "InitializeRequestParams",
    "InitializeResult",
    "ListChangedCapability",
    "NotificationMetaObject",
    "PromptsCapability",
    "RequestMetaObject",
    "ResourcesCapability",
    "ResultMetaObject",
    "RootsCapability",
    "SamplingCapability",
    "ServerCapabilities",
    "ServerTaskRequestsCapability",
    "ServerTasksCapability",
    "TaskElicitationCapability",
    "TaskSamplingCapability",
    "TaskToolsCapability",
    "ToolsCapability",
    "declares",
    # tools
    "CallToolRequestParams",
    "CallToolResult",
    "ListToolsResult",
    "Tool",
    "ToolAnnotations",
    "ToolExecution",
    # resources
    "ListResourceTemplatesResult",
    "ListResourcesResult",
    "ReadResourceRequestParams",
    "ReadResourceResult",
    "Resource",
    "ResourceTemplate",
    "ResourceUpdatedNotificationParams",
    "SubscribeRequestParams",
    "UnsubscribeRequestParams",
    # prompts
    "GetPromptRequestParams",
    "GetPromptResult",
    "ListPromptsResult",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    # completion
    "CompleteRequestParams",
    "CompleteResult",
    "Completion",
    "CompletionArgument",
    "CompletionContext",
    "PromptReference",
    "Reference",
    "ResourceTemplateReference",
    # logging
    "LoggingLevel",
    "LoggingMessageNotificationParams",
    "SetLevelRequestParams",
    # notifications
    "CancelledNotificationParams",
    "ProgressNotificationParams",
    # subscriptions
    "SubscriptionFilter",
    "SubscriptionsAcknowledgedNotificationParams",
    "SubscriptionsListenRequestParams",
    "SubscriptionsListenResult",
    "SubscriptionsListenResultMetaObject",
    # roots
    "ListRootsRequestParams",
    "ListRootsResult",
    "Root",
    # sampling
    "CreateMessageRequestParams",
    "CreateMessageResult",
    "ModelHint",
    "ModelPreferences",
    "SamplingMessage",
    "ToolChoice",
    # elicitation
    "BooleanSchema",
    "ElicitRequestFormParams",
    "ElicitRequestParams",
    "ElicitRequestURLParams",
    "ElicitResult",
    "ElicitationCompleteNotificationParams",
    "LegacyTitledEnumSchema",
    "NumberSchema",
    "PrimitiveSchemaDefinition",
    "RequestedSchema",
    "StringSchema",
    "TitledItems",
    "TitledMultiSelectEnumSchema",
    "TitledOption",
    "TitledSingleSelectEnumSchema",
    "UnknownSchema",
    "UntitledItems",
    "UntitledMultiSelectEnumSchema",
    "UntitledSingleSelectEnumSchema",
    # mrtr
    "CreateMessageRequest",
    "ElicitRequest",
    "InputRequest",
    "InputRequiredResult",
    "ListRootsRequest",
    "UnknownInputRequest",
    # tasks
    "RELATED_TASK",
    "TASKS_EXTENSION",
    "CancelTaskRequestParams",
    "CancelTaskResult",
    "CreateTaskResult",
    "DetailedTask",
    "GetTaskPayloadRequestParams",
    "GetTaskPayloadResult",
    "GetTaskRequestParams",
    "GetTaskResult",
    "ListTasksResult",
    "RelatedTaskMetadata",
    "Task",
    "TaskResult",
    "TaskStatus",
    "TaskStatusNotificationParams",
    "TaskSubscriptionNotifications",
    "UpdateTaskRequestParams",
    # error_data
    "Error",
    "MissingRequiredClientCapabilityErrorData",
    "URLElicitationRequiredErrorData",
    "UnsupportedProtocolVersionErrorData",
    # methods
    "METHODS",
    "Direction",
    "Kind",
    "Method",
    "MethodSpec",
    "in_revision",
    "spec_for",
    # convert
    "StructureError",
    "project",
    "structure",
    "unstructure",
    # registry
    "converter",
]
