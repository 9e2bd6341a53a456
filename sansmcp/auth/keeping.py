"""The store of one client, whatever becomes of it: what it cannot keep is kept here.

A `TokenStore` is the application's. That it fails is told, and is no reason to give up: what was come by is
good nevertheless, and what the store has instead is older.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Final, TypeVar

from ..events import TokensNotKept
from .registration import Registration
from .tokens import Tokens, TokenStore, is_sendable

MAX_OWN: Final = 16
"""Tokens, and registrations, that a store could not keep. Past it: the oldest are forgotten."""

T = TypeVar("T")
_Own = OrderedDict[str, T | None]
"""What the store could not keep; None: what it could not forget."""


class Keeping:
    """`store`, but that it never raises. What there is to say of it is in `said`."""

    def __init__(self, store: TokenStore) -> None:
        self._store: Final = store
        self._tokens: Final[_Own[Tokens]] = OrderedDict()
        self._registrations: Final[_Own[Registration]] = OrderedDict()
        self.said: Final[list[TokensNotKept]] = []
        """To be taken from here."""

    def __repr__(self) -> str:
        return f"<Keeping, {self.stats()['unkept']} beside the store>"

    def stats(self) -> dict[str, int]:
        """How much there is that the store could not keep, or not forget."""
        return {"unkept": len(self._tokens) + len(self._registrations)}

    def tokens(self, server: str) -> Tokens | None:
        """As `TokenStore.tokens`; None too for what cannot be shown to anybody."""
        tokens = self._find(self._tokens, server, self._store.tokens)
        given: object = tokens  # by the application
        if given is None or (isinstance(given, Tokens) and is_sendable(given.access_token)):
            return tokens
        self.said.append(TokensNotKept(OSError("the store gave what are no tokens")))
        return None

    def keep_tokens(self, server: str, tokens: Tokens | None) -> None:
        """As `TokenStore.keep_tokens`."""
        self._keep(self._tokens, server, tokens, self._store.keep_tokens)

    def registration(self, issuer: str) -> Registration | None:
        """As `TokenStore.registration`."""
        return self._find(self._registrations, issuer, self._store.registration)

    def keep_registration(self, issuer: str, registration: Registration | None) -> None:
        """As `TokenStore.keep_registration`."""
        self._keep(self._registrations, issuer, registration, self._store.keep_registration)

    def _find(self, own: _Own[T], key: str, find: Callable[[str], T | None]) -> T | None:
        if key in own:
            return own[key]
        try:
            return find(key)
        except Exception as error:
            self._tell(error)
            return None

    def _keep(self, own: _Own[T], key: str, value: T | None, keep: Callable[[str, T | None], None]) -> None:
        try:
            keep(key, value)
        except Exception as error:
            self._tell(error)
            own[key] = value
            own.move_to_end(key)
            if len(own) > MAX_OWN:
                own.popitem(last=False)
        else:
            own.pop(key, None)

    def _tell(self, error: Exception) -> None:
        if not isinstance(error, OSError):
            # What it says may quote what was to be kept.
            error = OSError(f"the store raised {type(error).__name__}")
        self.said.append(TokensNotKept(error))


__all__ = ["MAX_OWN", "Keeping"]
