"""A client that listens: subscriptions of either era, as one kind of call with one kind of events.

A modern server is asked with one request, whose answer is the end. A legacy server tells a session of
its lists unasked; what is subscribed to there is each resource. Who is told of what is in
`subscriptions.py`.

Specification: 2026-07-28, basic/patterns/subscriptions and cancellation; 2025-11-25, server/resources
(subscriptions).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final

from ..clock import Deadlines
from ..errors import (
    CallCancelled,
    CallTimeout,
    CloseReason,
    ConnectionEnded,
    InvalidResponse,
    LocalProtocolError,
    PeerFault,
    RemoteProtocolError,
    SansmcpError,
)
from ..events import (
    ChangesMissed,
    Harmless,
    ListChanged,
    ListKind,
    ResourceUpdated,
    SubscriptionClosed,
    SubscriptionInterrupted,
    SubscriptionOpened,
)
from ..revisions import LATEST, Era
from ..states import CallInput, CallState, ClientState, SubscriptionInput
from ..types.lifecycle import Implementation
from ..types.subscriptions import SubscriptionFilter
from ..wire import jsonrpc
from . import modern
from .calls import Call
from .connection import ClientConnection
from .era import Verdict
from .gates import declared
from .subscriptions import (
    ACKNOWLEDGED,
    CHANGES,
    META_SUBSCRIPTION_ID,
    UPDATED,
    Relisten,
    Subscription,
    covers,
    filter_of,
    honored_of,
    kinds_of,
    read_filter,
    refused_of,
    subscribable,
    topics_of,
)
from .typing import to_wire

LISTEN: Final = "subscriptions/listen"
SUBSCRIBE: Final = "resources/subscribe"
UNSUBSCRIBE: Final = "resources/unsubscribe"

_KINDS: Final = {method: kind for kind, method in CHANGES.items()}


class Listening(ClientConnection):
    """Everything of `ClientEngine` that concerns changes on the server."""

    def __init__(self, info: Implementation, **options: Any) -> None:
        super().__init__(info, **options)
        self._subscriptions: dict[Call, Subscription] = {}
        self._steps: dict[Call, Subscription] = {}
        """Legacy: the requests by which a subscription comes about."""
        self._uses: Counter[str] = Counter()
        """Legacy: how many subscriptions each resource has."""
        self._retries: Deadlines[Call] = Deadlines()
        self._unheard: SansmcpError | None = None
        """Legacy: why the server cannot tell of anything."""
        self._over = False
        self._over_by_us = False

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name."""
        return {
            **super().stats(),
            "subscriptions": len(self._subscriptions),
            "subscription_steps": len(self._steps),
            "subscribed_uris": len(self._uses),
            "relisten_timers": len(self._retries),
        }

    # verbs ---------------------------------------------------------------------------------------

    def listen(
        self,
        *,
        now: float,
        tools: bool = False,
        prompts: bool = False,
        resource_list: bool = False,
        resources: Iterable[str] = (),
        topics: Mapping[str, Iterable[str]] = MappingProxyType({}),
        ack_timeout: float | None = None,
        relisten: Relisten | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Call:
        """Be told of changes: of the lists of tools, prompts and resources, and of single resources.

        `resources` are URIs. `topics` are what extensions tell of: names by the member of the filter, as
        ``{"taskIds": [task_id]}``; that comes as `NotificationReceived`.

        The call opens with `SubscriptionOpened`, which says what is granted; what changes is told by
        `ListChanged` and `ResourceUpdated` with this call, and the end by one `SubscriptionClosed`. If it
        does not open it ends in `RequestFailed`: a modern server has `ack_timeout` seconds (None:
        `timeouts.ack`). `cancel` ends it. With `relisten` it is asked for again when it is lost, which is
        told. Over HTTP, a legacy server needs a stream of its own.

        Raises LocalProtocolError, with nothing sent, if nothing is asked for, for more than the limits
        allow, and for a server that tells of no changes.
        """
        now = self._tick(now)
        wanted = {ListKind.TOOLS: tools, ListKind.PROMPTS: prompts, ListKind.RESOURCES: resource_list}
        asked = filter_of(tuple(kind for kind, wants in wanted.items() if wants), list(resources), topics)
        if asked == SubscriptionFilter():
            raise LocalProtocolError(f"{LISTEN}: say what to listen to")
        for limit, count in (
            ("max_subscriptions", len(self._subscriptions) + 1),
            (
                "max_subscribed_uris",
                len(asked.resource_subscriptions or ()) + sum(map(len, topics_of(asked).values())),
            ),
        ):
            if count > getattr(self.limits, limit):
                raise LocalProtocolError(f"{LISTEN}: {count} are more than the limit {limit} allows")
        timeout = self.timeouts.ack if ack_timeout is None else ack_timeout
        params = {"notifications": to_wire(asked, LATEST)}
        call = self._calls.new(LISTEN, params, timeout=timeout, total_timeout=None, meta=meta)
        self._subscriptions[call] = Subscription(call, asked, timeout, relisten)
        try:
            return self._submit(call)
        except LocalProtocolError:
            del self._subscriptions[call]
            raise

    def end_lagging(self, call: Call, *, now: float) -> None:
        """End a subscription whose changes are not read as fast as they come: it closes as lagged.

        Harmless when it has ended. `ChangeBuffer` tells when it is time.
        """
        self._tick(now)
        subscription = self._subscriptions.get(call)
        if subscription is not None:
            self._tell_cancelled(call, "changes are not read as fast as they come")
            self._leave(subscription, tell=True)
            self._close_subscription(subscription, CallInput.CANCEL, CloseReason.LAGGED, None)

    # inputs --------------------------------------------------------------------------------------

    def pushes_ended(self, error: SansmcpError, *, now: float) -> None:
        """A legacy server can send nothing by itself any more: over HTTP its own stream is gone.

        Until the next session. Harmless for a modern server.
        """
        self._tick(now)
        if self._verdict is None or self._verdict.era is Era.MODERN:
            return
        self._unheard = error
        for subscription in self._in_session():
            self._leave(subscription, tell=True)
            self._close_subscription(subscription, CallInput.FAIL, CloseReason.LOST, error)

    def session_lost(self, *, now: float) -> None:
        super().session_lost(now=now)
        self._lose_session(ConnectionEnded("the session has expired"))

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        now = self._tick(now)
        for call, _ in self._retries.expired(now):
            self._ask_again(self._subscriptions[call])
        super().handle_timeout(now)

    # asking --------------------------------------------------------------------------------------

    def _check_listen(self, call: Call) -> bool:
        """Whether `call` is a subscription, which may be sent then. Raises as `_check`."""
        subscription = self._subscriptions.get(call)
        if subscription is None:
            return False
        known = self._server_capabilities
        tells = (
            known is None
            or subscribable(known)
            or (topics_of(subscription.asked) and known.get("extensions"))
        )
        if self._check_capabilities and not tells:
            raise LocalProtocolError(
                f"{LISTEN}: the server declares that it tells of no changes "
                "(check_capabilities=False asks all the same)"
            )
        return True

    def _send_call(self, call: Call) -> None:
        subscription = self._subscriptions.get(call)
        if subscription is None or self._verdict is None or self._verdict.era is Era.MODERN:
            super()._send_call(call)
            return
        self._encode(call.params)
        if call.state is CallState.NEW:
            self._calls.hold(call)
        if self._unheard is not None:
            self._end(call, CallInput.FAIL, self._unheard)
            return
        subscription.in_session = True
        if declared("resources.subscribe", self._server_capabilities or {}):
            subscription.uses = subscription.asked.resource_subscriptions or []
            for uri in subscription.uses:
                self._uses[uri] += 1
                step = self._step(SUBSCRIBE, uri)
                self._steps[step] = subscription
                subscription.pending += 1
        if not subscription.pending:
            self._open_legacy(subscription)

    def _step(self, method: str, uri: str) -> Call:
        timeout = self.timeouts.request or self.timeouts.ping
        step = self._calls.new(method, {"uri": uri}, timeout=timeout, total_timeout=None, internal=True)
        super()._send_call(step)
        return step

    def _step_over(self, step: Call, *, granted: bool) -> None:
        subscription = self._steps.pop(step, None)
        if subscription is None:
            return  # nobody waits for it any more, or it was to unsubscribe
        subscription.pending -= 1
        if granted:
            subscription.granted.append(step.params["uri"])
        if not subscription.pending:
            self._open_legacy(subscription)

    def _open_legacy(self, subscription: Subscription) -> None:
        kinds = honored_of(subscription.asked, self._server_capabilities or {})
        self._open(subscription, filter_of(kinds_of(kinds), subscription.granted))

    def _open(self, subscription: Subscription, honored: SubscriptionFilter) -> None:
        again = subscription.opened
        subscription.machine.fire(SubscriptionInput.ACKNOWLEDGE)
        subscription.honored = honored
        subscription.opened = True
        subscription.attempts = 0
        call = subscription.call
        self._emit(SubscriptionOpened(call, honored, refused_of(subscription.asked, honored)))
        if again:
            self._emit(ChangesMissed(call))

    def _ask_again(self, subscription: Subscription) -> None:
        subscription.machine.fire(SubscriptionInput.RETRY)
        call = subscription.call
        call.idle_timeout = subscription.ack_timeout
        if self.state is not ClientState.READY:
            self._held.append(call)
            return
        try:
            self._check_listen(call)
            self._send_call(call)
        except LocalProtocolError as error:
            self._fail(call, error)

    # being told ----------------------------------------------------------------------------------

    def _take_change(self, message: jsonrpc.Notification) -> bool:
        """Whether a notification is about a change or a subscription; then it was dealt with."""
        method, params = message.method, message.params
        in_modern = self._verdict is not None and self._verdict.era is Era.MODERN
        if method in _KINDS or method == UPDATED:
            uri = params.get("uri")
            if method == UPDATED and not isinstance(uri, str):
                self._ignore(PeerFault.MALFORMED_NOTIFICATION, "an update without uri")
            elif in_modern:
                self._on_modern_change(method, params, uri)
            else:
                self._on_legacy_change(method, uri)
        elif method == ACKNOWLEDGED and in_modern:
            self._on_acknowledged(params)
        elif method == "notifications/cancelled" and in_modern:
            return self._on_torn_down(params)
        else:
            return False
        return True

    def _on_legacy_change(self, method: str, uri: Any) -> None:
        told = [s.call for s in self._in_session() if s.open and _wants(s.honored, method, uri)]
        for call in told:
            self._tell_change(method, uri, call)
        if not told:
            self._tell_change(method, uri, None)

    def _on_modern_change(self, method: str, params: Mapping[str, Any], uri: Any) -> None:
        meta = params.get("_meta")
        if not isinstance(meta, dict) or META_SUBSCRIPTION_ID not in meta:
            if self._tolerate(PeerFault.UNKNOWN_SUBSCRIPTION, f"{method} names no subscription"):
                self._tell_change(method, uri, None)
            else:
                self._ignore(PeerFault.UNKNOWN_SUBSCRIPTION, f"{method} names no subscription")
            return
        subscription = self._find_subscription(meta[META_SUBSCRIPTION_ID], method)
        if subscription is None:
            return
        if not subscription.open:
            detail = f"{method} came before the acknowledgment"
            self._ignore(PeerFault.NOT_ACKNOWLEDGED, detail)
            if self.strict:
                self._violated(subscription, PeerFault.NOT_ACKNOWLEDGED, detail)
        elif not _wants(subscription.honored, method, uri):
            self._ignore(PeerFault.NOT_SUBSCRIBED, f"{method} is not what the server granted to tell")
        else:
            self._tell_change(method, uri, subscription.call)

    def _told_on_subscription(self, method: str, params: Mapping[str, Any]) -> bool:
        """Whether what an extension tells came on an open subscription; anything else is told, or ignored."""
        meta = params.get("_meta")
        if not isinstance(meta, dict) or META_SUBSCRIPTION_ID not in meta:
            detail = f"{method} names no subscription"
            if self._tolerate(PeerFault.UNKNOWN_SUBSCRIPTION, detail):
                return True
            self._ignore(PeerFault.UNKNOWN_SUBSCRIPTION, detail)
            return False
        subscription = self._find_subscription(meta[META_SUBSCRIPTION_ID], method)
        if subscription is not None and not subscription.open:
            self._ignore(PeerFault.NOT_ACKNOWLEDGED, f"{method} came before the acknowledgment")
        return subscription is not None and subscription.open

    def _tell_change(self, method: str, uri: Any, call: Call | None) -> None:
        kind = _KINDS.get(method)
        self._emit(ResourceUpdated(uri, call) if kind is None else ListChanged(kind, call))

    def _find_subscription(self, given: Any, method: str) -> Subscription | None:
        """The subscription of exactly this id (type included); anything else is ignored and told."""
        if isinstance(given, bool) or not isinstance(given, (int, str)):
            self._ignore(PeerFault.MALFORMED_NOTIFICATION, f"{method}: its subscription id is none")
            return None
        call = self._calls.waiting(given)
        subscription = None if call is None else self._subscriptions.get(call)
        if subscription is not None:
            return subscription
        name = repr(given)[: self.limits.max_excerpt]
        if self._calls.recently_ended(given):
            self._ignore(Harmless.LATE_CHANGE, f"{method} came after its subscription {name} ended")
        else:
            self._ignore(PeerFault.UNKNOWN_SUBSCRIPTION, f"{method}: nobody has a subscription {name}")
        return None

    def _on_acknowledged(self, params: Mapping[str, Any]) -> None:
        meta = params.get("_meta")
        given = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        subscription = self._find_subscription(given, ACKNOWLEDGED)
        if subscription is None:
            return
        if subscription.open:
            self._ignore(PeerFault.ALREADY_ACKNOWLEDGED, f"subscription {given!r} is open already")
            return
        honored = read_filter(params, topics_of(subscription.asked))
        if not isinstance(honored, SubscriptionFilter):
            self._violated(subscription, PeerFault.MALFORMED_NOTIFICATION, f"{ACKNOWLEDGED}: {honored}")
            return
        surplus = refused_of(honored, subscription.asked)
        if surplus != SubscriptionFilter():
            detail = f"{LISTEN}: the server grants what was not asked for"
            if not self._tolerate(PeerFault.NOT_SUBSCRIBED, detail, subscription.call):
                self._violated(subscription, PeerFault.NOT_SUBSCRIBED, detail)
                return
            honored = refused_of(honored, surplus)
        # Only a modern server acknowledges.
        self._unconfirmed = False
        self._calls.lasts(subscription.call)
        self._open(subscription, honored)

    # ends ----------------------------------------------------------------------------------------

    def _on_torn_down(self, params: Mapping[str, Any]) -> bool:
        """``notifications/cancelled`` of a modern server: the end of a subscription."""
        given = params.get("requestId")
        if isinstance(given, bool) or not isinstance(given, (int, str)):
            return False
        call = self._calls.waiting(given)
        subscription = None if call is None else self._subscriptions.get(call)
        if subscription is None:
            return False
        reason = params.get("reason")
        said = f": {reason[: self.limits.max_excerpt]}" if isinstance(reason, str) else ""
        error = CallCancelled(f"{LISTEN}: the server cancelled it{said}")
        self._close_subscription(subscription, CallInput.FAIL, CloseReason.GRACEFUL, error)
        return True

    def _on_result(self, call: Call, result: dict[str, Any]) -> None:
        subscription = self._subscriptions.get(call)
        if subscription is not None:
            self._on_listen_result(subscription, result)
        elif call.internal and call.method in (SUBSCRIBE, UNSUBSCRIBE):
            self._calls.end(call, CallInput.SUCCEED)
            self._step_over(call, granted=True)
        else:
            super()._on_result(call, result)

    def _on_listen_result(self, subscription: Subscription, result: dict[str, Any]) -> None:
        call = subscription.call
        if not subscription.open:
            detail = "its result came before the acknowledgment"
            self._fail(call, _violation(call, PeerFault.NOT_ACKNOWLEDGED, detail))
            return
        meta = result.get("_meta")
        given = meta.get(META_SUBSCRIPTION_ID) if isinstance(meta, dict) else None
        kind, fault = modern.result_type(result)
        detail = f"{call.subject}: its result has no resultType"
        if type(given) is not type(call.request_id) or given != call.request_id:
            fault = PeerFault.UNKNOWN_SUBSCRIPTION
            detail = f"{call.subject}: its result does not name the subscription that it ends"
        elif kind != modern.COMPLETE:
            fault = PeerFault.UNKNOWN_RESULT_TYPE
            detail = f"{call.subject}: its result is of type {str(result.get('resultType'))[:64]!r}"
        if fault is not None and not self._tolerate(fault, detail, call):
            self._fail(call, _violation(call, fault, detail))
            return
        self._close_subscription(subscription, CallInput.SUCCEED, CloseReason.GRACEFUL, None)

    def _violated(self, subscription: Subscription, fault: PeerFault, detail: str) -> None:
        """The server broke the rules of this subscription: nothing that it tells there counts."""
        call = subscription.call
        self._tell_cancelled(call, detail)
        self._fail(call, _violation(call, fault, detail))

    def _on_call_timeout(self, call: Call, error: CallTimeout) -> None:
        subscription = self._subscriptions.get(call)
        if subscription is not None:
            text = f"{call.subject}: not acknowledged within {subscription.ack_timeout:g} s"
            error = CallTimeout(text, reason="ack_timeout")
        super()._on_call_timeout(call, error)

    def _end(self, call: Call, how: CallInput, error: SansmcpError) -> None:
        subscription = self._subscriptions.get(call)
        if subscription is None:
            super()._end(call, how, error)
            self._step_over(call, granted=False)
            return
        local = how is CallInput.CANCEL or self._over_by_us
        self._leave(subscription, tell=local and not self._over)
        wait = None if local or self._over else subscription.wait_after(error)
        if wait is None:
            reason = CloseReason.LOCAL if local else CloseReason.LOST
            self._close_subscription(subscription, how, reason, error)
            return
        subscription.machine.fire(SubscriptionInput.LOSE)
        subscription.attempts += 1
        if call.state is CallState.SENT:
            self._calls.requeue(call)
        self._retries.set(call, self._now + wait, "relisten")
        self._emit(SubscriptionInterrupted(call, error, subscription.attempts, self._now + wait))

    def _close_subscription(
        self, subscription: Subscription, how: CallInput, reason: CloseReason, error: SansmcpError | None
    ) -> None:
        """The one end of a subscription; of one that never opened, the end of its call."""
        call = subscription.call
        del self._subscriptions[call]
        self._retries.clear(call)
        subscription.machine.fire(SubscriptionInput.CLOSE)
        if subscription.opened:
            self._calls.end(call, how)
            self._emit(SubscriptionClosed(call, reason, None if reason is CloseReason.LOCAL else error))
        else:
            super()._end(call, how, error or CallCancelled(f"{call.subject}: cancelled"))

    # the legacy session --------------------------------------------------------------------------

    def _in_session(self) -> list[Subscription]:
        """The subscriptions that the legacy session has, or is being asked for."""
        return [s for s in self._subscriptions.values() if s.in_session]

    def _leave(self, subscription: Subscription, *, tell: bool) -> None:
        """Let go of what a subscription has in the legacy session; `tell` the server, if it is there."""
        if not subscription.in_session:
            return
        subscription.in_session = False
        if subscription.pending:
            self._steps = {step: s for step, s in self._steps.items() if s is not subscription}
        for uri in subscription.uses:
            self._uses[uri] -= 1
            if not self._uses[uri]:
                del self._uses[uri]
                if tell:
                    self._step(UNSUBSCRIBE, uri)
        subscription.pending = 0
        subscription.uses = []
        subscription.granted = []

    def _lose_session(self, error: ConnectionEnded) -> None:
        for subscription in self._in_session():
            self._fail(subscription.call, error.about(subscription.call.subject))

    def _fail_waiting(self, error: ConnectionEnded) -> None:
        self._lose_session(error)
        super()._fail_waiting(error)

    def _decided(self, known: Verdict | None) -> None:
        self._unheard = None
        super()._decided(known)

    def _close(self, error: SansmcpError | None) -> None:
        if not self._closed:
            self._over, self._over_by_us = True, error is None
        super()._close(error)


def _violation(call: Call, fault: PeerFault, detail: str) -> InvalidResponse:
    return InvalidResponse(f"{call.subject}: {detail}", RemoteProtocolError(fault, detail))


def _wants(honored: SubscriptionFilter, method: str, uri: Any) -> bool:
    kind = _KINDS.get(method)
    return covers(honored, uri) if kind is None else kind in kinds_of(honored)
