"""Tasks: requests that are answered later.

Two wire forms share these classes where the concept is the same: the experimental tasks of
2025-11-25, and the extension ``io.modelcontextprotocol/tasks`` of 2026-07-28. Times in
milliseconds are `ttl_ms` and `poll_interval_ms` here; 2025-11-25 writes ``ttl`` and
``pollInterval``.

Specification: 2025-11-25, basic/utilities/tasks; the tasks extension.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from ..revisions import MODERN_REVISIONS, Revision
from .base import JsonObject, WireObject, wire, wire_type
from .error_data import Error
from .mrtr import InputRequest
from .results import PaginatedResult, RequestParams, Result

_11 = Revision.V2025_11_25
_MODERN = Revision.V2026_07_28

TaskStatus: TypeAlias = Literal["working", "input_required", "completed", "failed", "cancelled"]
"""The last three are final."""


@wire_type(since=_11)
class Task(WireObject):
    """Where a task stands."""

    task_id: str
    status: TaskStatus
    created_at: str
    """An ISO 8601 timestamp."""
    last_updated_at: str
    """An ISO 8601 timestamp."""
    ttl_ms: int | None = wire("ttl", renamed=(_MODERN, "ttlMs"))
    """How many milliseconds from its creation it is kept. None: for ever."""
    poll_interval_ms: int | None = wire("pollInterval", default=None, renamed=(_MODERN, "pollIntervalMs"))
    """How many milliseconds to wait between two looks at it."""
    status_message: str | None = None
    """More about the status, for a person."""


@wire_type(since=_MODERN)
class DetailedTask(Task):
    """Where a task stands, and what has come of it."""

    input_requests: dict[str, InputRequest] | None = wire(
        default=None, kw_only=True, since=_MODERN, firm=True
    )
    """What is asked for, while the status is input_required."""
    result: JsonObject | None = wire(default=None, kw_only=True, since=_MODERN, firm=True, secret=True)
    """The result of the request, once the status is completed."""
    error: Error | None = wire(default=None, kw_only=True, since=_MODERN, firm=True)
    """The error of the request, once the status is failed."""


# The results below are tasks first: a class cannot have the slots of both Task and Result.


@wire_type(since=_11)
class GetTaskResult(DetailedTask):
    """Where a task stands."""

    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)
    result_type: str = wire(
        default="complete",
        kw_only=True,
        since=_MODERN,
        required_in=MODERN_REVISIONS,
        missing=lambda: "complete",
        fill="complete",
        firm=True,
    )


@wire_type(since=_MODERN)
class TaskResult(Task):
    """The answer to a request that became a task of the extension (`CreateTaskResult` there)."""

    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)
    result_type: str = wire(
        default="task", kw_only=True, required_in=MODERN_REVISIONS, fill="task", firm=True
    )


@wire_type(since=_11, until=_11)
class CreateTaskResult(Result):
    """The answer to a request that became a task of 2025-11-25."""

    task: Task


@wire_type(since=_11, until=_11)
class CancelTaskResult(Task):
    """The task, given up. The extension answers with an `EmptyResult`."""

    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)


@wire_type(since=_11, until=_11)
class ListTasksResult(PaginatedResult):
    """One page of the tasks there are."""

    tasks: list[Task]


@wire_type(since=_11, until=_11)
class GetTaskPayloadResult(Result):
    """The result of the request that became a task; its members are in `extra`."""


@wire_type(since=_11)
class GetTaskRequestParams(RequestParams):
    """Params of ``tasks/get``."""

    task_id: str


@wire_type(since=_11)
class CancelTaskRequestParams(RequestParams):
    """Params of ``tasks/cancel``."""

    task_id: str


@wire_type(since=_11, until=_11)
class GetTaskPayloadRequestParams(RequestParams):
    """Params of ``tasks/result``."""

    task_id: str


@wire_type(since=_MODERN)
class UpdateTaskRequestParams(RequestParams):
    """Params of the extension's ``tasks/update``."""

    task_id: str
    input_responses: dict[str, JsonObject] = wire(secret=True)
    """Answers to the task's `input_requests`, under the same keys."""


@wire_type(since=_11)
class TaskStatusNotificationParams(DetailedTask):
    """Params of ``notifications/tasks/status``, or of the extension's ``notifications/tasks``."""

    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, secret=True)


@wire_type(since=_11, until=_11)
class RelatedTaskMetadata(WireObject):
    """In `_meta`, under `RELATED_TASK`: the task that the message belongs to."""

    task_id: str


RELATED_TASK: Final = "io.modelcontextprotocol/related-task"
"""The `_meta` key of `RelatedTaskMetadata`."""

TASKS_EXTENSION: Final = "io.modelcontextprotocol/tasks"
"""The id of the tasks extension."""


@wire_type(since=_MODERN)
class TaskSubscriptionNotifications(WireObject):
    """What the extension adds to a `SubscriptionFilter`."""

    task_ids: list[str] | None = None
    """The tasks to be told of."""
