"""How a client shows its server a token: as it is, or with a proof of the key that it is bound to.

Specification: RFC 6750, section 2.1; RFC 9449, sections 7 and 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from ..http.url import Url
from .challenge import Challenge
from .tokens import Tokens

if TYPE_CHECKING:
    from .dpop import ProofKey

DPOP: Final = "dpop"
"""A header, a scheme and a kind of token, in lower case."""

NONCE: Final = "dpop-nonce"
USE_NONCE: Final = "use_dpop_nonce"

MAX_NONCE: Final = 1024
"""Characters of a nonce that a server hands out. Past it: it is not used."""


def read_nonce(value: str | None) -> str | None:
    """What a server hands out to be put into proofs; None for what cannot be."""
    if value is None or not 0 < len(value) <= MAX_NONCE:
        return None
    return value if all("!" <= c <= "~" and c not in '"\\' for c in value) else None


class Showing:
    """What one server is shown, and the nonce that it handed out last. `key` is None without proofs."""

    def __init__(
        self, key: ProofKey | None, url: Url, *, unix: Callable[[], float], entropy: Callable[[int], bytes]
    ) -> None:
        self._key: Final = key
        self._url: Final = url
        self._unix: Final = unix
        self._entropy: Final = entropy
        self.nonce: str | None = None

    def can_show(self, tokens: Tokens) -> bool:
        """Whether the key is there that `tokens` are bound to, if they are."""
        return self._key is not None or tokens.token_type != DPOP

    def headers(self, tokens: Tokens, method: str) -> list[tuple[str, str]]:
        """What is sent with a request, made for this request alone."""
        token, key = tokens.access_token, self._key
        if key is None or tokens.token_type != DPOP:
            return [("authorization", f"Bearer {token}")]
        proof = key.prove(
            method=method,
            url=self._url.text,
            unix=self._unix(),
            entropy=self._entropy,
            token=token,
            nonce=self.nonce,
        )
        return [("authorization", f"DPoP {token}"), (DPOP, proof)]

    def take_nonce(self, headers: Iterable[tuple[str, str]]) -> None:
        """Remember the nonce that a response hands out, if it does."""
        if self._key is not None:
            for name, value in headers:
                if name.lower() == NONCE:
                    self.nonce = read_nonce(value.strip()) or self.nonce

    def is_asked_for(self, challenges: Iterable[Challenge], sent: str | None) -> bool:
        """Whether a refusal wants a nonce in the proof, and there is another one than `sent`."""
        wanted = any(c.scheme == DPOP and c.parameters.get("error") == USE_NONCE for c in challenges)
        return wanted and self.nonce is not None and self.nonce != sent
