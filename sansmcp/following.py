"""Lists of a server that are read, and read anew whenever the server says that they changed.

Above an engine, and pure like it: verbs of the engine in, its events past `Following.take`.

    following = Following(engine, tools=True)
    following.start(now=clock())
    for event in engine.events():
        listing = following.take(event, now=clock())
        if listing is not None:
            print(listing.method, listing.items)

Specification: 2026-07-28, basic/patterns/subscriptions (list changes).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import attrs

from .client import ClientEngine
from .errors import LocalProtocolError, SansmcpError
from .events import (
    Event,
    ListChanged,
    ListKind,
    RequestFailed,
    ResultReady,
    SubscriptionClosed,
    SubscriptionInterrupted,
    SubscriptionOpened,
)
from .session.calls import Call
from .session.subscriptions import Relisten

_LISTS: Final[dict[ListKind, tuple[tuple[str, str], ...]]] = {
    ListKind.TOOLS: (("list_all_tools", "tools"),),
    ListKind.PROMPTS: (("list_all_prompts", "prompts"),),
    ListKind.RESOURCES: (
        ("list_all_resources", "resources"),
        ("list_all_resource_templates", "resource_templates"),
    ),
}
"""The verb that reads a list, and the attribute of its result that holds it."""


@attrs.frozen(eq=False)
class Listing:
    """A list as it is now."""

    method: str
    """``tools/list`` and the like."""
    result: Any
    """The result as its class: a `ListToolsResult` and the like, all pages of it."""
    items: Sequence[Any]
    """The tools, prompts, resources or templates."""


class Following:
    """Listens to changes of some lists of a server, and reads each when it may have changed.

    Each list is read once at the start, also where the server does not tell of its changes. A change that
    is told while a list is being read has it read once more. With `relisten`, a subscription that is lost
    is asked for again, and then everything is read anew.
    """

    def __init__(
        self,
        engine: ClientEngine,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        relisten: Relisten | None = None,
    ) -> None:
        wanted = {ListKind.TOOLS: tools, ListKind.PROMPTS: prompts, ListKind.RESOURCES: resources}
        self._engine = engine
        self._kinds = tuple(kind for kind, wants in wanted.items() if wants)
        self._relisten = relisten
        self._started = False
        self._call: Call | None = None
        self._reading: dict[Call, tuple[ListKind, str, str]] = {}
        self._again: set[str] = set()
        """Verbs whose lists changed while they were being read."""
        self.open = False
        """Whether changes are told now."""
        self.closed: SubscriptionClosed | None = None
        """How the subscription ended. None before, and where it never opened."""
        self.errors: dict[str, SansmcpError] = {}
        """Why a list could not be read when that was tried last, by its method; and under
        ``subscriptions/listen`` why nothing is told."""

    def start(self, *, now: float) -> None:
        """Begin. Raises LocalProtocolError, with nothing sent, for no list at all, or twice."""
        if self._started or not self._kinds:
            raise LocalProtocolError(f"following: {'it was started before' if self._started else 'no list'}")
        self._started = True
        try:
            self._call = self._engine.listen(
                now=now,
                tools=ListKind.TOOLS in self._kinds,
                prompts=ListKind.PROMPTS in self._kinds,
                resource_list=ListKind.RESOURCES in self._kinds,
                relisten=self._relisten,
            )
        except LocalProtocolError as error:  # the server declares that it tells of no changes
            self.errors["subscriptions/listen"] = error
            self._read(self._kinds, now)

    def stop(self, *, now: float) -> None:
        """End it; what is being read is given up. Harmless at any time."""
        for call in [*self._reading, *([] if self._call is None else [self._call])]:
            self._engine.cancel(call, now=now)
        self._reading.clear()
        self._again.clear()

    def take(self, event: Event, *, now: float) -> Listing | None:
        """Give it every event of the engine. Returns a list that was read, or None."""
        match event:
            case SubscriptionOpened(call=call) if call is self._call:  # at first, or once more
                self.open = True
                self._read(self._kinds, now)
            case ListChanged(call=call, kind=kind) if call is self._call and kind in self._kinds:
                self._read((kind,), now)
            case SubscriptionInterrupted(call=call) if call is self._call:
                self.open = False
            case SubscriptionClosed(call=call) if call is self._call:
                self.open, self.closed = False, event
            case RequestFailed(call=call) if call is self._call:
                self.errors[call.method] = event.error
                self._read(self._kinds, now)
            case RequestFailed(call=call) if call in self._reading:
                self._ended(call, now)
                self.errors[call.method] = event.error
            case ResultReady(call=call) if call in self._reading:
                return self._taken(event, now)
        return None

    def _taken(self, event: ResultReady, now: float) -> Listing | None:
        member = self._reading[event.call][2]
        self._ended(event.call, now)
        method = event.call.method
        try:
            result = event.result
        except SansmcpError as error:  # a list that is none
            self.errors[method] = error
            return None
        self.errors.pop(method, None)
        return Listing(method, result, tuple(getattr(result, member)))

    def _ended(self, call: Call, now: float) -> None:
        kind, verb, _ = self._reading.pop(call)
        if verb in self._again:
            self._again.discard(verb)
            self._read((kind,), now, only=verb)

    def _read(self, kinds: Sequence[ListKind], now: float, *, only: str | None = None) -> None:
        running = {verb for _, verb, _ in self._reading.values()}
        for kind in kinds:
            for verb, member in _LISTS[kind]:
                if only not in (None, verb):
                    continue
                if verb in running:
                    self._again.add(verb)
                    continue
                try:
                    call = getattr(self._engine, verb)(now=now, cache_mode="refresh")
                except LocalProtocolError:
                    continue  # the server has no such list
                self._reading[call] = (kind, verb, member)


__all__ = ["Following", "Listing"]
