"""Results that a server allows to be kept for a while, and used again without asking.

A `ResponseCache` is passive: it is given results and asked for them. It may serve many engines, of one
server or of several: results are kept by server, and private ones by whoever they were given to.

Specification: 2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import Any, Final, Literal, TypeAlias

import attrs

from ..errors import LocalProtocolError
from ..events import ListKind
from ..records import frozen, record
from ..types.methods import METHODS, Method
from . import modern
from .hints import MAX_TTL, Hints

CacheMode: TypeAlias = Literal["use", "refresh", "bypass"]
"""``"use"`` what is kept and fresh; ``"refresh"``: ask, and keep what is answered; ``"bypass"``: ask, and
leave what is kept as it is."""

CACHEABLE: Final = frozenset(name for name, spec in METHODS.items() if spec.cacheable)
"""Methods whose results may be kept at all."""

_LISTS: Final[Mapping[ListKind, frozenset[str]]] = {
    ListKind.TOOLS: frozenset({Method.LIST_TOOLS}),
    ListKind.PROMPTS: frozenset({Method.LIST_PROMPTS}),
    ListKind.RESOURCES: frozenset({Method.LIST_RESOURCES, Method.LIST_RESOURCE_TEMPLATES}),
}

_ALL: Final = "all pages"
"""In a key: the list as a whole, put together from its pages."""

_Key: TypeAlias = tuple[Hashable, str, str, str | None]
"""Server, method, what makes the request the same as another one, and whether it is the whole list."""


@frozen(eq=False)
class CacheUse:
    """How one client uses a cache: which one, for which server, on whose behalf.

    `server` tells servers apart: their address, or whatever identifies a command. `principal` is the
    authorization context: private results are given only to a client with an equal one. With
    `stale_on_error`, a result past its time is given when asking anew fails, and says that it is stale.
    """

    cache: ResponseCache
    server: Hashable
    principal: Hashable = attrs.field(default=None, repr=False)
    stale_on_error: bool = False


@frozen(eq=False)
class Ticket:
    """Taken when a request leaves; what is answered is kept only if nothing was invalidated meanwhile."""

    key: _Key
    generation: int
    asked: float
    """When the request left. Pages are as old as the first of them may be."""


@record
class _Entry:
    raw: dict[str, Any]
    received: float
    expires: float
    size: int


@frozen(eq=False)
class Hit:
    """A result that was kept."""

    raw: dict[str, Any]
    """The result. It is shared: do not change it."""
    age: float
    """Seconds since it was received."""
    stale: bool
    """Whether its time is over."""


class ResponseCache:
    """Results of any number of servers.

    At most `max_entries` results of together `max_bytes` are kept; past that the one that was used
    longest ago goes. `max_ttl` is the longest time, in seconds, that any is kept as fresh.

    Results are shared between those who ask for them: treat them as read-only.

    Raises LocalProtocolError for a cache without room, or a negative time.
    """

    def __init__(
        self, *, max_entries: int = 1024, max_bytes: int = 64 * 1024 * 1024, max_ttl: float = MAX_TTL
    ) -> None:
        if max_entries < 1 or max_bytes < 1 or max_ttl < 0:
            raise LocalProtocolError("a cache needs room: max_entries, max_bytes ≥ 1 and max_ttl ≥ 0")
        self._max_entries: Final = max_entries
        self._max_bytes: Final = max_bytes
        self._max_ttl: Final = max_ttl
        self._entries: dict[tuple[_Key, Hashable], _Entry] = {}
        """By key and by whom it is for; the one used longest ago comes first."""
        self._bytes = 0
        self._generations: dict[str, int] = {}
        """How often something of a method was invalidated, whichever server's: what is asked for while
        that happens is not kept, and there are only as many entries as methods."""

    def __repr__(self) -> str:
        return f"<ResponseCache {len(self._entries)} results, {self._bytes} bytes>"

    def stats(self) -> dict[str, int]:
        """How many results are kept, and how many bytes they have about."""
        return {"results": len(self._entries), "bytes": self._bytes}

    # keeping -------------------------------------------------------------------------------------

    def ticket(
        self, use: CacheUse, method: str, params: Mapping[str, Any], *, whole: bool, now: float
    ) -> Ticket | None:
        """Begin to ask: None for a method whose results are never kept, or params that cannot be a key.

        `whole`: the list from its first page to its last.
        """
        key = _key(use, method, params, whole)
        return None if key is None else Ticket(key, self._generations.setdefault(method, 0), now)

    def keep(self, use: CacheUse, ticket: Ticket, raw: dict[str, Any], hints: Hints, *, now: float) -> bool:
        """Keep what was answered, if its hints allow it. Whether it was kept.

        A result that asks for input is never kept, nor one that was asked for before something was
        invalidated. Whatever was kept under the same key is gone in any case.
        """
        self._drop_all(ticket.key, use.principal)
        if ticket.generation != self._generations[ticket.key[1]]:
            return False
        ttl = min(hints.ttl, self._max_ttl)
        if ttl <= 0 or not modern.is_complete(raw):
            return False
        size = _size(raw)
        if size > self._max_bytes:
            return False
        owner = None if hints.public else _Private(use.principal)
        received = now if ticket.key[3] is None else ticket.asked
        self._entries[ticket.key, owner] = _Entry(raw, received, received + ttl, size)
        self._bytes += size
        while len(self._entries) > self._max_entries or self._bytes > self._max_bytes:
            self._drop(next(iter(self._entries)))
        return True

    # using ---------------------------------------------------------------------------------------

    def find(
        self,
        use: CacheUse,
        method: str,
        params: Mapping[str, Any],
        *,
        whole: bool,
        now: float,
        max_age: float | None = None,
        stale: bool = False,
    ) -> Hit | None:
        """A kept result that answers this request, or None.

        It is fresh, and received at most `max_age` seconds ago; with `stale`, any that is still there.
        """
        key = _key(use, method, params, whole)
        if key is None:
            return None
        for owner in (None, _Private(use.principal)):
            entry = self._entries.pop((key, owner), None)
            if entry is None:
                continue
            self._entries[key, owner] = entry  # the last to go now
            age = max(now - entry.received, 0.0)
            over = now >= entry.expires
            if stale or not (over or (max_age is not None and age > max_age)):
                return Hit(entry.raw, age, over)
        return None

    # dropping ------------------------------------------------------------------------------------

    def list_changed(self, server: Hashable, kind: ListKind) -> None:
        """A list of `server` changed: nothing that was read of it is used any more."""
        for method in _LISTS[kind]:
            self._invalidate(server, method, None)

    def resource_updated(self, server: Hashable, uri: str) -> None:
        """A resource of `server` changed."""
        self._invalidate(server, Method.READ_RESOURCE, _canonical({"uri": uri}))

    def cursor_refused(self, server: Hashable, method: str) -> None:
        """A cursor is not valid any more: drop the pages of its list."""
        self._invalidate(server, method, None)

    def forget_private(self, use: CacheUse) -> None:
        """Drop what is kept of a server for one principal alone: whoever asks now may be somebody else."""
        owner = _Private(use.principal)
        for stored in [s for s in self._entries if s[0][0] == use.server and s[1] == owner]:
            self._drop(stored)
        self._new_generations()

    def forget(self, server: Hashable) -> None:
        """Drop all that is kept of `server`."""
        for stored in [s for s in self._entries if s[0][0] == server]:
            self._drop(stored)
        self._new_generations()

    def clear(self) -> None:
        """Drop everything."""
        self._entries.clear()
        self._bytes = 0
        self._new_generations()

    # inside --------------------------------------------------------------------------------------

    def _new_generations(self) -> None:
        for method in self._generations:
            self._generations[method] += 1

    def _invalidate(self, server: Hashable, method: str, params: str | None) -> None:
        self._generations[method] = self._generations.get(method, 0) + 1
        for stored in [
            s for s in self._entries if s[0][0] == server and s[0][1] == method and params in (None, s[0][2])
        ]:
            self._drop(stored)

    def _drop_all(self, key: _Key, principal: Hashable) -> None:
        for owner in (None, _Private(principal)):
            if (key, owner) in self._entries:
                self._drop((key, owner))

    def _drop(self, stored: tuple[_Key, Hashable]) -> None:
        self._bytes -= self._entries.pop(stored).size


@attrs.frozen  # part of the key of each look-up, so with a hash of its own
class _Private:
    """An owner: never equal to what marks public results."""

    principal: Hashable


def _key(use: CacheUse, method: str, params: Mapping[str, Any], whole: bool) -> _Key | None:
    # What answers a question depends on the answer, which is no part of any key.
    if method not in CACHEABLE or any(name in params for name in modern.RETRY_MEMBERS):
        return None
    canonical = _canonical(params)
    return None if canonical is None else (use.server, str(method), canonical, _ALL if whole else None)


def _canonical(params: Mapping[str, Any]) -> str | None:
    """Params as one text, equal for equal ones. `_meta` changes no result."""
    bare = {name: value for name, value in params.items() if name != "_meta"}
    try:
        return json.dumps(bare, sort_keys=True, separators=(",", ":"))
    except (TypeError, ValueError, RecursionError):
        return None


def _size(value: object) -> int:
    """About how many bytes a JSON value takes as text: what is counted against `max_bytes`."""
    total, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            total += len(item) + 2
        elif isinstance(item, dict):
            total += 2 + 4 * len(item)
            waiting += item.keys()
            waiting += item.values()
        elif isinstance(item, list):
            total += 2 + len(item)
            waiting += item
        else:
            total += 8
    return total


__all__ = ["CACHEABLE", "CacheMode", "CacheUse", "Hit", "ResponseCache", "Ticket"]
