"""Tasks: requests that go on when they are answered, and what comes of them.

`ClientTasks` and `ServerTasks` are the two sides; tasks in a database are in `sqlite.py`, which nothing
imports by itself.

Specification: the tasks extension (``io.modelcontextprotocol/tasks``).
"""

from __future__ import annotations

from ...types.tasks import TASKS_EXTENSION
from .client import ClientTasks, TaskReported, cancel_task, get_task, resume_task, update_task
from .server import ServerTasks
from .store import MemoryTaskStore, TaskRecord, TaskStore

__all__ = [
    "TASKS_EXTENSION",
    "ClientTasks",
    "MemoryTaskStore",
    "ServerTasks",
    "TaskRecord",
    "TaskReported",
    "TaskStore",
    "cancel_task",
    "get_task",
    "resume_task",
    "update_task",
]
