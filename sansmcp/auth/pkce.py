"""Proof Key for Code Exchange: who redeems a code is who asked for it.

Specification: RFC 7636; OAuth 2.1, section 7.5.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256

import attrs

from .metadata import S256


def url_safe(data: bytes) -> str:
    """Bytes as text that an address can hold as it is."""
    return urlsafe_b64encode(data).rstrip(b"=").decode()


@attrs.frozen(repr=False)
class Pkce:
    """A secret, and what is told of it beforehand."""

    verifier: str
    challenge: str
    method: str = S256

    @classmethod
    def new(cls, entropy: Callable[[int], bytes]) -> Pkce:
        """A new one of 256 bits."""
        return cls.of(url_safe(entropy(32)))

    @classmethod
    def of(cls, verifier: str) -> Pkce:
        """The one with this secret."""
        return cls(verifier, url_safe(sha256(verifier.encode()).digest()))
