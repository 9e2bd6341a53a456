"""What a handler can do while it works: report progress, log, look at who asks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs

from .errors import McpError
from .events import ListKind
from .revisions import Era, Revision
from .session.calls import IncomingRequest
from .wire.jsoncodec import JsonValue

Submit = Callable[[Callable[[float], object]], object]
"""Runs a function with the present time where the engine may be touched, then sends what came."""


class Answers(Protocol):
    """Through what requests are answered: a `ServerEngine`, or a transport that holds several."""

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        """As `ServerEngine.respond`."""
        ...

    def respond_error(self, request: IncomingRequest, error: McpError, *, now: float) -> bool:
        """As `ServerEngine.respond_error`."""
        ...

    def report_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        *,
        now: float,
    ) -> bool:
        """As `ServerEngine.report_progress`."""
        ...

    def log(
        self,
        level: str,
        data: JsonValue,
        *,
        now: float,
        request: IncomingRequest | None = None,
        logger: str | None = None,
    ) -> bool:
        """As `ServerEngine.log`."""
        ...

    def hang_up(self, request: IncomingRequest, *, now: float) -> bool:
        """As `ServerEngine.hang_up`."""
        ...

    def notify_changed(self, kind: ListKind, *, now: float) -> bool:
        """As `ServerEngine.notify_changed`."""
        ...

    def notify_updated(self, uri: str, *, now: float) -> bool:
        """As `ServerEngine.notify_updated`."""
        ...


@attrs.define(eq=False)
class Context:
    """Handed to a handler that has a parameter ``ctx``.

    The methods return at once and may be called from any thread that the binding runs handlers
    in; what they send leaves in order.
    """

    request: IncomingRequest
    _engine: Answers
    _submit: Submit

    @property
    def era(self) -> Era:
        return self.request.era

    @property
    def revision(self) -> Revision:
        return self.request.revision

    @property
    def client_capabilities(self) -> Mapping[str, Any]:
        """What the client declared: on this request (modern) or for its session (legacy)."""
        return self.request.peer_capabilities

    @property
    def cancelled(self) -> bool:
        """Whether the client no longer wants an answer."""
        return not self.request.open

    def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress. Nothing is sent to a client that did not ask for it."""
        self._submit(
            lambda now: self._engine.report_progress(self.request, progress, total, message, now=now)
        )

    def log(self, level: str, data: JsonValue, *, logger: str | None = None) -> None:
        """Log to the client at `level`. Nothing is sent to a client that did not ask for it."""
        self._submit(lambda now: self._engine.log(level, data, now=now, request=self.request, logger=logger))

    def hang_up(self) -> None:
        """Give up the connection that the client waits on: it comes back for the rest by itself.

        For what takes long over HTTP. Nothing is done where a client would not come back: that is what
        2025-11-25 brought and 2026-07-28 took away again.
        """
        self._submit(lambda now: self._engine.hang_up(self.request, now=now))

    def notify_changed(self, kind: ListKind) -> None:
        """Tell every client that wants to know that a list changed, whoever asked for this.

        Over HTTP all clients of the server, otherwise the one of the connection. The server must
        declare that it tells of changes: ``App(list_changed=True)``.
        """
        self._submit(lambda now: self._engine.notify_changed(kind, now=now))

    def notify_updated(self, uri: str) -> None:
        """Tell every client that subscribed to the resource at `uri` that it changed.

        The server must declare that resources can be subscribed to: ``App(subscribe=True)``.
        """
        self._submit(lambda now: self._engine.notify_updated(uri, now=now))
