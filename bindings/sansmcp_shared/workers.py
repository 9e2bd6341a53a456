"""Threads for what may block."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Workers:
    """At most `limit` threads, started when they are needed. None of them keeps the process alive."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._jobs: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0
        self._closed = False

    def submit(self, job: Callable[[], None]) -> None:
        """Run `job` in a thread; it must not raise."""
        with self._changed:
            self._jobs.append(job)
            if self._idle >= len(self._jobs) or self._threads >= self._limit:
                self._changed.notify()
                return
            self._threads += 1
        threading.Thread(target=self._work, name="sansmcp handler", daemon=True).start()

    def withdraw(self, job: Callable[[], None]) -> bool:
        """Forget a job that no thread has taken. False when one has."""
        with self._changed:
            if job not in self._jobs:
                return False
            self._jobs.remove(job)
            return True

    def close(self) -> None:
        """Let the threads end; one that is in a handler ends with it."""
        with self._changed:
            self._closed = True
            self._jobs.clear()
            self._changed.notify_all()

    def _work(self) -> None:
        while True:
            with self._changed:
                self._idle += 1
                while not self._jobs and not self._closed:
                    self._changed.wait()
                self._idle -= 1
                if self._closed:
                    return
                job = self._jobs.popleft()
            job()
            del job
