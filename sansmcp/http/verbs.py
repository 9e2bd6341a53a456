"""The verbs of an `HttpServer` that are those of an engine: each goes to the engine that has the request.

Specification: 2026-07-28, basic/transports/streamable-http (receiving messages).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import McpError, PeerFault
from ..events import Harmless, ListKind
from ..server import ServerEngine
from ..session.calls import IncomingRequest
from ..wire.jsoncodec import JsonValue
from .legacy_session import Session
from .responses import Responses


class EngineVerbs(ABC):
    """What requests are answered through. Whoever derives from it knows the engines."""

    _modern: ServerEngine
    """The one of all modern requests."""
    _out: Responses

    @property
    @abstractmethod
    def sessions(self) -> tuple[Session, ...]:
        """The legacy sessions that are open."""

    @abstractmethod
    def _tick(self, now: float) -> Responses: ...

    @abstractmethod
    def _engine_of(self, request: IncomingRequest, now: float) -> tuple[ServerEngine, Session | None]: ...

    @abstractmethod
    def _pump(self, session: Session | None = None) -> None: ...

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        """Answer a request with a result. As `ServerEngine.respond`."""
        engine, session = self._engine_of(request, now)
        sent = engine.respond(request, result, now=self._out.now)
        self._pump(session)
        return sent

    def respond_error(self, request: IncomingRequest, error: McpError, *, now: float) -> bool:
        """Refuse a request. As `ServerEngine.respond_error`."""
        engine, session = self._engine_of(request, now)
        sent = engine.respond_error(request, error, now=self._out.now)
        self._pump(session)
        return sent

    def report_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        *,
        now: float,
    ) -> bool:
        """Tell how far a request is. As `ServerEngine.report_progress`.

        A client that takes no event streams cannot be told; that is an event (UNDELIVERABLE).
        """
        engine, session = self._engine_of(request, now)
        sent = engine.report_progress(request, progress, total, message, now=self._out.now)
        self._pump(session)
        return sent

    def report_ignored(
        self, request: IncomingRequest, reason: PeerFault | Harmless, detail: str, *, now: float
    ) -> None:
        """As `ServerEngine.report_ignored`."""
        engine, session = self._engine_of(request, now)
        engine.report_ignored(request, reason, detail, now=self._out.now)
        self._pump(session)

    def log(
        self,
        level: str,
        data: JsonValue,
        *,
        now: float,
        request: IncomingRequest | None = None,
        logger: str | None = None,
    ) -> bool:
        """Log to the client that made `request`, or to every legacy session. As `ServerEngine.log`."""
        if request is not None:
            engine, session = self._engine_of(request, now)
            sent = engine.log(level, data, now=self._out.now, request=request, logger=logger)
            self._pump(session)
            return sent
        now = self._tick(now).now
        told = self._modern.log(level, data, now=now, logger=logger)
        for session in self.sessions:
            told |= session.engine.log(level, data, now=now, logger=logger)
            self._pump(session)
        return told

    def notify_changed(self, kind: ListKind, *, now: float) -> bool:
        """Tell every client that a list changed, as `ServerEngine.notify_changed`.

        True when any was told, or will be: a legacy session whose client is not there hears of it when
        it comes back.
        """
        return self._notify(lambda engine, now: engine.notify_changed(kind, now=now), now)

    def notify_updated(self, uri: str, *, now: float) -> bool:
        """Tell every client that subscribed to a resource that it changed. As `notify_changed`."""
        return self._notify(lambda engine, now: engine.notify_updated(uri, now=now), now)

    def notify_topic(
        self, topic: str, name: str, method: str, params: Mapping[str, Any], *, now: float
    ) -> bool:
        """For extensions: as `ServerEngine.notify_topic`."""
        told = self._modern.notify_topic(topic, name, method, params, now=self._tick(now).now)
        self._pump()
        return told

    def _notify(self, tell: Callable[[ServerEngine, float], bool], now: float) -> bool:
        now = self._tick(now).now
        told = tell(self._modern, now)
        self._pump()
        for session in self.sessions:
            told |= tell(session.engine, now)
            self._pump(session)
        return told

    def elicitation_complete(self, elicitation_id: str, *, now: float, related: IncomingRequest) -> bool:
        """As `ServerEngine.elicitation_complete`, for the client that made the request `related`."""
        engine, session = self._engine_of(related, now)
        told = engine.elicitation_complete(elicitation_id, now=self._out.now, related=related)
        self._pump(session)
        return told


__all__ = ["EngineVerbs"]
