"""Subscriptions: what is asked for, what is granted, and who is told of what.

Tables and rules, for the engines of both roles: `publisher.py` tells, `listening.py` is told.

Specification: 2026-07-28, basic/patterns/subscriptions; 2025-11-25, server/resources (subscriptions).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from ..errors import (
    CallCancelled,
    ErrorCode,
    LocalProtocolError,
    McpError,
    SansmcpError,
)
from ..events import Event, ListKind
from ..records import frozen
from ..states import SUBSCRIPTION, Machine, SubscriptionInput, SubscriptionState
from ..types.subscriptions import SubscriptionFilter
from .calls import Call, IncomingRequest
from .gates import declared
from .modern import PREFIX

META_SUBSCRIPTION_ID: Final = PREFIX + "subscriptionId"
"""The `_meta` key of everything that belongs to a subscription: the id of its listen request."""

CHANGES: Final[Mapping[ListKind, str]] = MappingProxyType(
    {kind: f"notifications/{kind.value}/list_changed" for kind in ListKind}
)
"""The notification of each list's changes."""

UPDATED: Final = "notifications/resources/updated"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

_MEMBERS: Final = {
    ListKind.TOOLS: ("toolsListChanged", "tools_list_changed"),
    ListKind.PROMPTS: ("promptsListChanged", "prompts_list_changed"),
    ListKind.RESOURCES: ("resourcesListChanged", "resources_list_changed"),
}
"""How a filter names each list: on the wire, and as an attribute."""

_NEEDED: Final = (*(f"{kind.value}.listChanged" for kind in ListKind), "resources.subscribe")


def kinds_of(filter: SubscriptionFilter) -> tuple[ListKind, ...]:
    """The lists whose changes `filter` lets through."""
    return tuple(kind for kind, (_, name) in _MEMBERS.items() if getattr(filter, name))


def topics_of(filter: SubscriptionFilter) -> dict[str, list[str]]:
    """What `filter` lets through for extensions: names by the member that extensions added to it."""
    return {topic: names for topic, names in filter.extra.items() if _are_texts(names) and names}


def filter_of(
    kinds: Iterator[ListKind] | tuple[ListKind, ...],
    uris: list[str],
    topics: Mapping[str, Iterable[str]] = MappingProxyType({}),
) -> SubscriptionFilter:
    """A filter for changes of these lists, of the resources at `uris`, and of what extensions tell under
    `topics`; each is named once."""
    asked: dict[str, Any] = {_MEMBERS[kind][1]: True for kind in kinds}
    if uris:
        asked["resource_subscriptions"] = list(dict.fromkeys(uris))
    extra = {topic: list(dict.fromkeys(names)) for topic, names in topics.items()}
    return SubscriptionFilter(**asked, extra={topic: names for topic, names in extra.items() if names})


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def subscribable(capabilities: Mapping[str, Any]) -> bool:
    """Whether a server with these capabilities has anything to tell of."""
    return any(declared(name, capabilities) for name in _NEEDED)


def read_filter(params: Mapping[str, Any], topics: Collection[str] = ()) -> SubscriptionFilter | McpError:
    """What a listen request asks for, or the error (-32602) that names what is wrong with it.

    Members of extensions, except `topics`, are left out: what is not understood is not granted.
    """
    raw = params.get("notifications")
    if not isinstance(raw, dict):
        return _invalid("notifications must be an object")
    kinds = []
    for kind, (member, _) in _MEMBERS.items():
        value = raw.get(member)
        if value is not None and not isinstance(value, bool):
            return _invalid(f"notifications.{member} must be a boolean")
        if value:
            kinds.append(kind)
    uris = raw.get("resourceSubscriptions")
    if uris is None:
        uris = []
    if not _are_texts(uris):
        return _invalid("notifications.resourceSubscriptions must be an array of strings")
    told = {topic: raw[topic] for topic in topics if raw.get(topic) is not None}
    for topic, names in told.items():
        if not _are_texts(names):
            return _invalid(f"notifications.{topic} must be an array of strings")
    return filter_of(tuple(kinds), uris, told)


def _invalid(rule: str) -> McpError:
    return McpError(ErrorCode.INVALID_PARAMS, f"subscriptions/listen: {rule}")


def honored_of(asked: SubscriptionFilter, capabilities: Mapping[str, Any]) -> SubscriptionFilter:
    """The part of `asked` that a server with these capabilities tells of."""
    kinds = tuple(k for k in kinds_of(asked) if declared(f"{k.value}.listChanged", capabilities))
    uris = asked.resource_subscriptions or []
    return filter_of(kinds, uris if declared("resources.subscribe", capabilities) else [])


def refused_of(asked: SubscriptionFilter, honored: SubscriptionFilter) -> SubscriptionFilter:
    """The part of `asked` that is not in `honored`."""
    granted = set(honored.resource_subscriptions or ())
    kinds = tuple(kind for kind in kinds_of(asked) if kind not in kinds_of(honored))
    told = topics_of(honored)
    topics = {t: [n for n in names if n not in told.get(t, ())] for t, names in topics_of(asked).items()}
    return filter_of(kinds, [uri for uri in asked.resource_subscriptions or () if uri not in granted], topics)


def covers(honored: SubscriptionFilter, uri: str) -> bool:
    """Whether a server that grants `honored` may tell of `uri`, or of what lies inside it."""
    return any(uri.startswith(granted) for granted in honored.resource_subscriptions or ())


class ListenTable:
    """The open listen requests of one server engine, found by what they want to hear of."""

    def __init__(self) -> None:
        self._filters: dict[IncomingRequest, SubscriptionFilter] = {}
        self._by_kind: dict[ListKind, dict[IncomingRequest, None]] = {kind: {} for kind in ListKind}
        self._by_uri: dict[str, dict[IncomingRequest, None]] = {}
        self._by_topic: dict[tuple[str, str], dict[IncomingRequest, None]] = {}

    def __len__(self) -> int:
        return len(self._filters)

    def __iter__(self) -> Iterator[IncomingRequest]:
        return iter(list(self._filters))

    def __contains__(self, request: IncomingRequest) -> bool:
        return request in self._filters

    @property
    def uris(self) -> frozenset[str]:
        """The resources that any of them wants to hear of."""
        return frozenset(self._by_uri)

    def honored(self) -> list[tuple[IncomingRequest, SubscriptionFilter]]:
        """Each of them, and what it is told of."""
        return list(self._filters.items())

    def watches(self, uri: str) -> bool:
        """Whether any of them wants to hear of the resource at `uri`."""
        return uri in self._by_uri

    def stats(self) -> dict[str, int]:
        """Sizes of the tables."""
        return {
            "subscriptions": len(self._filters),
            "listened_uris": len(self._by_uri),
            "listened_topics": len(self._by_topic),
        }

    def open(self, request: IncomingRequest, honored: SubscriptionFilter) -> list[str]:
        """Enter a request; the URIs that nobody listened for before."""
        self._filters[request] = honored
        for kind in kinds_of(honored):
            self._by_kind[kind][request] = None
        fresh = []
        for uri in honored.resource_subscriptions or ():
            listeners = self._by_uri.get(uri)
            if listeners is None:
                fresh.append(uri)
                listeners = self._by_uri[uri] = {}
            listeners[request] = None
        for topic in _each_topic(honored):
            self._by_topic.setdefault(topic, {})[request] = None
        return fresh

    def close(self, request: IncomingRequest) -> list[str]:
        """Let go of a request; the URIs that nobody listens for any more. Harmless for others."""
        honored = self._filters.pop(request, None)
        if honored is None:
            return []
        for kind in kinds_of(honored):
            del self._by_kind[kind][request]
        gone = []
        for uri in honored.resource_subscriptions or ():
            listeners = self._by_uri[uri]
            del listeners[request]
            if not listeners:
                del self._by_uri[uri]
                gone.append(uri)
        for topic in _each_topic(honored):
            del self._by_topic[topic][request]
            if not self._by_topic[topic]:
                del self._by_topic[topic]
        return gone

    def for_kind(self, kind: ListKind) -> list[IncomingRequest]:
        """Who is told that a list changed."""
        return list(self._by_kind[kind])

    def for_uri(self, uri: str) -> list[IncomingRequest]:
        """Who is told that a resource changed."""
        return list(self._by_uri.get(uri, ()))

    def for_topic(self, topic: str, name: str) -> list[IncomingRequest]:
        """Who is told what an extension tells under a topic of something that is called `name`."""
        return list(self._by_topic.get((topic, name), ()))


def _each_topic(honored: SubscriptionFilter) -> list[tuple[str, str]]:
    return [(topic, name) for topic, names in topics_of(honored).items() for name in names]


@frozen(kw_only=True)
class Relisten:
    """When a client asks again for a subscription that was lost. What happened meanwhile is not told.

    After `delay` seconds, which double with each attempt up to `max_delay`. After `attempts` in a row
    that came to nothing it is closed as lost. A server that refuses ends it at once.
    """

    attempts: int = 5
    delay: float = 1.0
    max_delay: float = 60.0

    def __attrs_post_init__(self) -> None:
        if self.attempts < 1 or self.delay < 0 or self.max_delay < 0:
            raise LocalProtocolError(f"{self!r}: at least one attempt, and no negative delays")

    def wait(self, attempt: int) -> float:
        """How long (seconds) to wait before the attempt of this number, counted from 1."""
        return min(self.max_delay, self.delay * 2.0 ** min(attempt - 1, 64))


@attrs.define(eq=False)
class Subscription:
    """A client's subscription and how it stands."""

    call: Call
    asked: SubscriptionFilter
    ack_timeout: float
    relisten: Relisten | None
    honored: SubscriptionFilter = attrs.field(factory=SubscriptionFilter)
    """What is granted, as long as it is open."""
    opened: bool = False
    """Whether it was ever acknowledged."""
    attempts: int = 0
    """How often in a row it was asked for again since it was lost."""
    in_session: bool = False
    """Legacy: whether the session has it, or is being asked for it."""
    uses: list[str] = attrs.field(factory=list)
    """Legacy: the resources that were subscribed to for it."""
    pending: int = 0
    """Legacy: how many of these requests are not answered."""
    granted: list[str] = attrs.field(factory=list)
    """Legacy: the resources whose request was answered with a result."""
    machine: Machine[SubscriptionState, SubscriptionInput] = attrs.field(
        factory=lambda: Machine(SUBSCRIPTION), init=False
    )

    @property
    def state(self) -> SubscriptionState:
        """Where it stands: see the table `states.SUBSCRIPTION`."""
        return self.machine.state

    @property
    def open(self) -> bool:
        """Whether it is acknowledged and not closed."""
        return self.machine.state is SubscriptionState.OPEN

    def wait_after(self, error: SansmcpError) -> float | None:
        """How long to wait before it is asked for again since it ended by `error`; None: it is closed."""
        final = isinstance(error, (McpError, LocalProtocolError, CallCancelled))
        if self.relisten is None or not self.opened or final or self.attempts >= self.relisten.attempts:
            return None
        return self.relisten.wait(self.attempts + 1)


class ChangeBuffer:
    """What a subscription told and nobody has read: bounded, and nothing in it twice.

    That something changed is not news before the last time was read. For bindings; an event loop that
    takes events as they come needs none.
    """

    def __init__(self, size: int = 64) -> None:
        if size < 1:
            raise LocalProtocolError(f"a buffer of {size} changes cannot hold any")
        self._size = size
        self._waiting: dict[Hashable, Event] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(self, event: Event) -> bool:
        """Keep an event. False when there is no room: then the subscription lags, and is to be ended."""
        key = (type(event), getattr(event, "kind", None), getattr(event, "uri", None))
        if key not in self._waiting and len(self._waiting) >= self._size:
            return False
        self._waiting.setdefault(key, event)
        return True

    def take(self) -> Event | None:
        """The oldest event, or None."""
        if not self._waiting:
            return None
        return self._waiting.pop(next(iter(self._waiting)))
