"""Answers from a cache, where the server allowed it: the client's side of it.

Specification: 2026-07-28, server/utilities/caching.
"""

from __future__ import annotations

from typing import Any, Final

from ..errors import ErrorCode, McpError, PeerFault, SansmcpError
from ..events import DeviationTolerated, ListKind, ResultReady
from ..revisions import Era
from ..states import CallInput, CallState
from ..types.lifecycle import Implementation
from .cache import CACHEABLE, CacheUse, Hit
from .calls import Call
from .hints import read_hints
from .listening import Listening

_KINDS: Final = {f"notifications/{kind.value}/list_changed": kind for kind in ListKind}


class Caching(Listening):
    """Everything of `ClientEngine` that concerns results which may be kept.

    Only modern servers say which these are, so nothing of a legacy one is ever kept.
    """

    def __init__(self, info: Implementation, *, cache: CacheUse | None = None, **options: Any) -> None:
        super().__init__(info, **options)
        self._cache = cache

    def identity_changed(self) -> None:
        """Whoever asks from now on may be somebody else: private results are not used any more.

        `AuthorizedClient` says so when a user has logged in. Harmless without a cache.
        """
        if self._cache is not None:
            self._cache.cache.forget_private(self._cache)

    def _send_call(self, call: Call) -> None:
        if self._cache is not None and self._may_be_kept(call):
            hit = self._find(call)
            if hit is not None:
                if call.state is CallState.NEW:
                    self._encode(call.params)  # what is no JSON is refused, whatever is kept
                    self._calls.hold(call)
                self._answer(call, hit)
                return
            if call.cache_ticket is None and call.cache_mode != "bypass":
                call.cache_ticket = self._cache.cache.ticket(
                    self._cache, call.method, call.params, now=self._now, whole=call.walk is not None
                )
        if call.again is not None:
            call.cache_ticket = None  # what it is answered depends on what its server was told
        super()._send_call(call)

    def _may_be_kept(self, call: Call) -> bool:
        verdict = self._verdict
        return (
            verdict is not None
            and verdict.era is Era.MODERN
            and not call.internal
            and call.again is None
            and call.method in CACHEABLE
        )

    def _find(self, call: Call, *, stale: bool = False) -> Hit | None:
        use, walk = self._cache, call.walk
        if use is None or not (stale or call.cache_mode == "use"):
            return None
        if walk is not None and walk.pages and not stale:
            return None  # in the midst of asking
        return use.cache.find(
            use,
            call.method,
            call.params,
            whole=walk is not None,
            now=self._now,
            max_age=call.max_age,
            stale=stale,
        )

    def _answer(self, call: Call, hit: Hit) -> None:
        self._calls.end(call, CallInput.SUCCEED)
        verdict = self._verdict
        revision = None if verdict is None else verdict.revision
        self._emit(ResultReady(call, hit.raw, revision, age=hit.age, stale=hit.stale))

    def _keep(self, call: Call, raw: dict[str, Any]) -> None:
        """Note the result of a call that succeeded, before that is told."""
        verdict = self._verdict
        if verdict is None or verdict.era is Era.LEGACY or call.method not in CACHEABLE:
            return
        hints = read_hints(raw)
        if hints.odd is not None:
            detail = f"{call.subject}: {hints.odd}"
            self._emit(DeviationTolerated(PeerFault.INVALID_CACHE_HINT, detail, call))
        ticket, use = call.cache_ticket, self._cache
        if ticket is not None and use is not None:
            use.cache.keep(use, ticket, raw, hints, now=self._now)

    # what ends what is kept ----------------------------------------------------------------------

    def _tell_change(self, method: str, uri: Any, call: Call | None) -> None:
        if self._cache is not None:
            kind = _KINDS.get(method)
            if kind is None:
                self._cache.cache.resource_updated(self._cache.server, uri)
            else:
                self._cache.cache.list_changed(self._cache.server, kind)
        super()._tell_change(method, uri, call)

    def _cursor_refused(self, call: Call, error: McpError) -> None:
        """Whether it was the cursor or not: what is kept of the list is not trusted any more."""
        asked_on = "cursor" in call.params or (call.walk is not None and call.walk.cursor is not None)
        if self._cache is not None and asked_on and error.code == ErrorCode.INVALID_PARAMS:
            self._cache.cache.cursor_refused(self._cache.server, call.method)

    def _end(self, call: Call, how: CallInput, error: SansmcpError) -> None:
        use = self._cache
        asking = call.state is CallState.ASKING  # what was kept answers no question
        if use is not None and use.stale_on_error and call.cache_ticket is not None and not asking:
            hit = None if how is CallInput.CANCEL else self._find(call, stale=True)
            if hit is not None:
                self._answer(call, hit)
                return
        super()._end(call, how, error)


__all__ = ["Caching"]
