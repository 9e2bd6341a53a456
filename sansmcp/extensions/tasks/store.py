"""Where tasks are kept: what a store has to do, and one in memory.

Specification: the tasks extension (task creation, task status).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final, Protocol

import attrs

from ...clock import Deadlines
from ...session import modern

ENDED: Final = frozenset({"completed", "failed", "cancelled"})
"""States that a task does not leave."""


@attrs.frozen(kw_only=True, eq=False)
class TaskRecord:
    """A task as it is kept. Plain JSON values throughout; times are seconds since 1970."""

    task_id: str = attrs.field(repr=False)
    principal: str | None = attrs.field(repr=False)
    """Who may know of it; None: whoever knows its id."""
    status: str
    created: float
    updated: float
    ttl: float | None
    """Seconds from its creation after which it is forgotten; None: never."""
    poll_interval: float | None
    """Seconds that its client should wait between two looks at it."""
    message: str | None = None
    """More about the status, for a person."""
    asked: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    """What it wants to know, by key, while that is so."""
    result: Mapping[str, Any] | None = attrs.field(default=None, repr=False)
    error: Mapping[str, Any] | None = attrs.field(default=None, repr=False)

    @property
    def ended(self) -> bool:
        """Whether it has come to its end."""
        return self.status in ENDED

    @property
    def expires(self) -> float | None:
        """When it is to be forgotten."""
        return None if self.ttl is None else self.created + self.ttl

    def to_task(self) -> dict[str, Any]:
        """What is said of it: a `Task` of the extension."""
        task: dict[str, Any] = {
            "taskId": self.task_id,
            "status": self.status,
            "createdAt": _stamp(self.created),
            "lastUpdatedAt": _stamp(self.updated),
            "ttlMs": None if self.ttl is None else max(1, round(self.ttl * 1000)),
        }
        if self.poll_interval is not None:
            task["pollIntervalMs"] = max(1, round(self.poll_interval * 1000))
        if self.message is not None:
            task["statusMessage"] = self.message
        return task

    def to_detailed(self) -> dict[str, Any]:
        """What is said of it, and what has come of it: a `DetailedTask`."""
        task = self.to_task()
        match self.status:
            case "input_required":
                task[modern.INPUT_REQUESTS] = dict(self.asked or {})
            case "completed":
                task["result"] = dict(self.result or {})
            case "failed":
                task["error"] = dict(self.error or {})
        return task


class TaskStore(Protocol):
    """Keeps tasks. Called where the engine may be touched, so it should be quick.

    What it raises fails the request for which it was called.
    """

    def put(self, record: TaskRecord) -> None:
        """Keep a record, in place of one of the same id. When it returns, `get` finds it, come what may."""
        ...

    def get(self, task_id: str) -> TaskRecord | None:
        """The record of this id, or None."""
        ...

    def delete(self, task_id: str) -> None:
        """Forget a record. Harmless when there is none."""
        ...

    def expired(self, unix: float) -> Sequence[str]:
        """The ids of the tasks that are to be forgotten at this time of day."""
        ...

    def unfinished(self) -> Sequence[TaskRecord]:
        """The tasks that have not ended."""
        ...

    def __len__(self) -> int:
        """How many there are."""
        ...


class MemoryTaskStore:
    """Keeps tasks as long as the process lives."""

    def __init__(self) -> None:
        self._records: dict[str, TaskRecord] = {}
        self._ends: Deadlines[str] = Deadlines()

    def __repr__(self) -> str:
        return f"<MemoryTaskStore of {len(self)}>"

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: TaskRecord) -> None:
        """As `TaskStore.put`."""
        self._records[record.task_id] = record
        if record.expires is None:
            self._ends.clear(record.task_id)
        else:
            self._ends.set(record.task_id, record.expires, "ttl")

    def get(self, task_id: str) -> TaskRecord | None:
        """As `TaskStore.get`."""
        return self._records.get(task_id)

    def delete(self, task_id: str) -> None:
        """As `TaskStore.delete`."""
        self._records.pop(task_id, None)
        self._ends.clear(task_id)

    def expired(self, unix: float) -> list[str]:
        """As `TaskStore.expired`."""
        return [task_id for task_id, _ in self._ends.expired(unix)]

    def unfinished(self) -> list[TaskRecord]:
        """As `TaskStore.unfinished`."""
        return [record for record in self._records.values() if not record.ended]


def _stamp(unix: float) -> str:
    return datetime.fromtimestamp(unix, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
