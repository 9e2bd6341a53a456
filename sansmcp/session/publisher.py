"""A server that tells of changes: to a legacy session, and to modern clients that listen.

One verb reaches both: who is told, and in which form, is decided here. The rules and the table are in
`subscriptions.py`.

Specification: 2026-07-28, basic/patterns/subscriptions and cancellation; 2025-11-25, server/resources
(subscriptions).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from ..errors import ErrorCode, LocalProtocolError, McpError
from ..events import LimitHit, ListKind, ResourceUnwatched, ResourceWatched
from ..extensions.extension import Extension, declares, not_declared
from ..revisions import Revision
from ..types.lifecycle import ServerCapabilities
from ..wire import jsonrpc
from ..wire.jsoncodec import JsonValue
from ..wire.jsonrpc import RequestId
from .calls import IncomingRequest
from .endpoint import Endpoint
from .gates import declared
from .subscriptions import (
    ACKNOWLEDGED,
    CHANGES,
    META_SUBSCRIPTION_ID,
    UPDATED,
    ListenTable,
    honored_of,
    read_filter,
    subscribable,
    topics_of,
)
from .typing import to_wire

if TYPE_CHECKING:
    from ..server import ServerEngine
    from .snapshot import Snapshot


class PerRevision(dict[Revision, dict[str, Any]]):
    """Capabilities as each revision has them, written when they are asked for: a session speaks one."""

    __slots__ = ("_capabilities",)

    def __init__(self, capabilities: ServerCapabilities) -> None:
        self._capabilities = capabilities

    def __missing__(self, revision: Revision) -> dict[str, Any]:
        written = self[revision] = to_wire(self._capabilities, revision)
        return written


class Publisher(Endpoint):
    """The half of `ServerEngine` that tells of changes."""

    _declared: dict[Revision, dict[str, Any]]
    """The capabilities, as each revision has them."""
    _topics: Mapping[str, Extension]
    """The members that extensions add to filters."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._listens = ListenTable()
        self._session_uris: dict[str, None] = {}
        """What the legacy session subscribed to."""

    @property
    def subscriptions(self) -> tuple[IncomingRequest, ...]:
        """The open ``subscriptions/listen`` requests, oldest first (modern)."""
        return tuple(self._listens)

    @property
    def watched(self) -> frozenset[str]:
        """URIs of the resources that anybody wants to hear of, in whichever era."""
        return self._listens.uris.union(self._session_uris)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        return {**super().stats(), **self._listens.stats(), "subscribed_uris": len(self._session_uris)}

    # verbs ---------------------------------------------------------------------------------------

    def notify_changed(self, kind: ListKind, *, now: float) -> bool:
        """Tell everybody who may be told that a list changed. True when something was sent.

        A legacy session is told when the capability `listChanged` is declared, a modern client on
        each of its subscriptions that asked for this list.
        """
        self._tick(now)
        sent = False
        revision = self._told_session
        if revision is not None and declared(f"{kind.value}.listChanged", self._declared[revision]):
            self._send_notification(CHANGES[kind], None)
            sent = True
        for request in self._listens.for_kind(kind):
            self._publish(request, CHANGES[kind], {})
            sent = True
        return sent

    def notify_updated(self, uri: str, *, now: float) -> bool:
        """Tell everybody who subscribed to the resource at `uri` that it changed. True when sent."""
        self._tick(now)
        sent = False
        if uri in self._session_uris and self._told_session is not None:
            self._send_notification(UPDATED, {"uri": uri})
            sent = True
        for request in self._listens.for_uri(uri):
            self._publish(request, UPDATED, {"uri": uri})
            sent = True
        return sent

    def notify_topic(
        self, topic: str, name: str, method: str, params: Mapping[str, Any], *, now: float
    ) -> bool:
        """For extensions: send a notification to every modern client that listens to `name` under `topic`.

        True when something was sent.
        """
        self._tick(now)
        told = self._listens.for_topic(topic, name)
        for request in told:
            self._publish(request, method, dict(params))
        return bool(told)

    def end_subscription(
        self, request: IncomingRequest, *, now: float, graceful: bool = True, reason: str | None = None
    ) -> None:
        """End one of `subscriptions` (modern). Harmless when it has ended already.

        Gracefully with the result of the request; otherwise with ``notifications/cancelled``, which
        tells its client that changes may be missed from now on, and can say why.

        Raises LocalProtocolError for a request that was never a subscription of this engine.
        """
        self._tick(now)
        if request in self._listens:
            if graceful:
                self._end_listen(request)
            else:
                params: dict[str, Any] = {"requestId": request.id}
                if reason is not None:
                    params["reason"] = reason
                self._publish(request, "notifications/cancelled", params)
                self._cancel_request(request, reason)
        elif request.open or request.method != "subscriptions/listen":
            raise LocalProtocolError(f"{request!r} is no subscription of this engine")

    # for the engine ------------------------------------------------------------------------------

    def _write_snapshot(self, now: float) -> Snapshot:
        from .snapshot import write_server

        return write_server(cast("ServerEngine", self), now)

    def _read_snapshot(self, snapshot: Mapping[str, JsonValue], now: float) -> None:
        from .snapshot import read_server

        read_server(cast("ServerEngine", self), snapshot, now)

    @property
    @abstractmethod
    def _told_session(self) -> Revision | None:
        """The revision of the legacy session, if there is one that can be told of changes."""

    @abstractmethod
    def _finish(self, request: IncomingRequest, raw: dict[str, Any]) -> dict[str, Any]:
        """A result as the era of the request has it."""

    def _listen(self, request: IncomingRequest) -> McpError | None:
        """Open a subscription (modern), or say why not."""
        capabilities = self._declared[request.revision]
        if not (subscribable(capabilities) or self._topics):
            return McpError(ErrorCode.METHOD_NOT_FOUND, "this server tells of no changes")
        asked = read_filter(request.params, self._topics)
        if isinstance(asked, McpError):
            return asked
        topics = topics_of(asked)
        for topic in topics:
            extension = self._topics[topic].id
            if not declares(request.peer_capabilities, extension):
                return not_declared(extension)
        if len(self._listens) >= self.limits.max_subscriptions:
            return self._too_many("max_subscriptions", len(self._listens))
        honored = honored_of(asked, capabilities)
        uris = honored.resource_subscriptions or ()
        wanted = len(uris) + sum(map(len, topics.values()))
        if wanted > self.limits.max_subscribed_uris:
            return self._too_many("max_subscribed_uris", wanted)
        for topic, names in topics.items():
            try:
                granted = self._topics[topic].grant(topic, names, request)
            except Exception:
                # What an extension finds out about them may fail; the client must not end the server by it.
                return McpError(ErrorCode.INTERNAL_ERROR, f"subscriptions/listen: {topic} cannot be told")
            if granted:
                honored.extra[topic] = granted
        self._accept(request, None)
        fresh = self._listens.open(request, honored)
        self._publish(request, ACKNOWLEDGED, {"notifications": to_wire(honored, request.revision)})
        for uri in fresh:
            if uri not in self._session_uris:
                self._emit(ResourceWatched(uri))
        return None

    def _subscribe(self, params: Mapping[str, Any], wanted: bool) -> McpError | None:
        """``resources/subscribe`` and ``resources/unsubscribe`` of the legacy session."""
        uri = params.get("uri")
        if not isinstance(uri, str):
            return McpError(ErrorCode.INVALID_PARAMS, "uri must be a string")
        known = uri in self._session_uris
        if wanted and not known:
            if len(self._session_uris) >= self.limits.max_subscribed_uris:
                return self._too_many("max_subscribed_uris", len(self._session_uris))
            self._session_uris[uri] = None
            if not self._listens.watches(uri):
                self._emit(ResourceWatched(uri))
        elif known and not wanted:
            del self._session_uris[uri]
            self._unwatched([uri])
        return None

    def _too_many(self, limit: str, count: int) -> McpError:
        self._emit(LimitHit(limit, f"a subscription was refused: {count} of {getattr(self.limits, limit)}"))
        return McpError(ErrorCode.INTERNAL_ERROR, "too many subscriptions", {"limit": limit})

    def _send_answer(self, request: IncomingRequest, message: dict[str, Any]) -> None:
        super()._send_answer(request, message)
        if request in self._listens:
            self._unwatched(self._listens.close(request))

    def _tell_request_cancelled(self, request: IncomingRequest, reason: str | None) -> None:
        if request in self._listens:
            # The application never got the request, so it is not told that it is gone either.
            self._unwatched(self._listens.close(request))
        else:
            super()._tell_request_cancelled(request, reason)

    def _publish(self, request: IncomingRequest, method: str, params: dict[str, Any]) -> None:
        self._send_notification(method, tagged(params, request.id), request)

    def _end_listen(self, request: IncomingRequest) -> None:
        self._send_answer(request, jsonrpc.result_response(request.id, self._finish(request, {})))

    def _end_listens(self) -> None:
        """End every subscription gracefully."""
        for request in self._listens:
            self._end_listen(request)

    def _forget_session_uris(self) -> None:
        uris = list(self._session_uris)
        self._session_uris.clear()
        self._unwatched(uris)

    def _unwatched(self, uris: list[str]) -> None:
        for uri in uris:
            if uri not in self._session_uris and not self._listens.watches(uri):
                self._emit(ResourceUnwatched(uri))


def tagged(body: Mapping[str, Any], subscription_id: RequestId) -> dict[str, Any]:
    """The params of a notification, or a result, with the id of the subscription that it belongs to."""
    given = body.get("_meta")
    meta = given if isinstance(given, Mapping) else {}
    return {**body, "_meta": {**meta, META_SUBSCRIPTION_ID: subscription_id}}
