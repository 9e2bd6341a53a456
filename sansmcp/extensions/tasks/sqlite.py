"""Tasks in a SQLite database: they outlive the process.

Nothing imports this module but whoever wants it: it is the one place of the package that does I/O, and
only through the connection that it is given.
"""

from __future__ import annotations

import json
import sqlite3
from typing import Any, Final

import attrs

from .store import ENDED, TaskRecord

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS sansmcp_tasks (
    id TEXT PRIMARY KEY, status TEXT NOT NULL, expires REAL, record TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS sansmcp_tasks_expires ON sansmcp_tasks (expires);
CREATE INDEX IF NOT EXISTS sansmcp_tasks_status ON sansmcp_tasks (status);
"""


class SqliteTaskStore:
    """Keeps tasks in the database of `connection`, in a table of its own.

    One server process at a time: what another one has not finished counts as interrupted. The
    connection must be usable in every thread that drives the server (with `sansmcp_threads` there are
    several, one at a time: ``check_same_thread=False``), and is yours to close.
    """

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        connection.executescript(_SCHEMA)

    def __len__(self) -> int:
        count: int = self._connection.execute("SELECT count(*) FROM sansmcp_tasks").fetchone()[0]
        return count

    def put(self, record: TaskRecord) -> None:
        """As `TaskStore.put`: committed when it returns."""
        text = json.dumps(attrs.asdict(record, recurse=False), separators=(",", ":"))
        with self._connection:
            self._connection.execute(
                "INSERT OR REPLACE INTO sansmcp_tasks VALUES (?, ?, ?, ?)",
                (record.task_id, record.status, record.expires, text),
            )

    def get(self, task_id: str) -> TaskRecord | None:
        """As `TaskStore.get`."""
        row = self._connection.execute("SELECT record FROM sansmcp_tasks WHERE id = ?", (task_id,)).fetchone()
        return None if row is None else _read(row[0])

    def delete(self, task_id: str) -> None:
        """As `TaskStore.delete`."""
        with self._connection:
            self._connection.execute("DELETE FROM sansmcp_tasks WHERE id = ?", (task_id,))

    def expired(self, unix: float) -> list[str]:
        """As `TaskStore.expired`."""
        rows = self._connection.execute("SELECT id FROM sansmcp_tasks WHERE expires <= ?", (unix,))
        return [row[0] for row in rows]

    def unfinished(self) -> list[TaskRecord]:
        """As `TaskStore.unfinished`."""
        marks = ", ".join("?" * len(ENDED))
        query = f"SELECT record FROM sansmcp_tasks WHERE status NOT IN ({marks})"
        return [_read(row[0]) for row in self._connection.execute(query, sorted(ENDED))]


def _read(text: str) -> TaskRecord:
    members: dict[str, Any] = json.loads(text)
    return TaskRecord(**members)
