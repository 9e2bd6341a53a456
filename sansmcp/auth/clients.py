"""How a client shows an authorization server who it is, on requests to the token endpoint.

`none`, `client_secret_basic` and `client_secret_post` are here; others are values with the same shape.

Specification: RFC 6749, section 2.3; OpenID Connect Core 1.0, section 9; RFC 8414, section 2.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from typing import Final, Protocol
from urllib.parse import quote_plus

import attrs

from .metadata import BASIC, NONE, POST, ServerMetadata
from .registration import Registration


@attrs.frozen(kw_only=True, repr=False)
class TokenRequest:
    """A request to a token endpoint, before it is sent."""

    server: ServerMetadata
    client: Registration
    parameters: tuple[tuple[str, str], ...]
    unix: float
    """The time of day, in seconds since 1970."""
    entropy: Callable[[int], bytes]
    headers: tuple[tuple[str, str], ...] = ()

    def with_parameters(self, **parameters: str) -> TokenRequest:
        """The request with these parameters too."""
        return attrs.evolve(self, parameters=(*self.parameters, *parameters.items()))

    def with_header(self, name: str, value: str) -> TokenRequest:
        """The request with this header too."""
        return attrs.evolve(self, headers=(*self.headers, (name, value)))


class ClientAuthentication(Protocol):
    """One way to show who the client is."""

    @property
    def method(self) -> str:
        """Its name in metadata, as in ``private_key_jwt``."""
        ...

    def apply(self, request: TokenRequest) -> TokenRequest:
        """The request with what shows it."""
        ...


@attrs.frozen
class NoAuthentication:
    """A client without a secret: it only says its name."""

    method: str = NONE

    def apply(self, request: TokenRequest) -> TokenRequest:
        """Add the client's name."""
        return request.with_parameters(client_id=request.client.client_id)


@attrs.frozen
class SecretBasic:
    """Name and secret in the header ``Authorization``."""

    method: str = BASIC

    def apply(self, request: TokenRequest) -> TokenRequest:
        """Add the header."""
        client = request.client
        pair = f"{quote_plus(client.client_id)}:{quote_plus(client.client_secret or '')}"
        return request.with_header("authorization", f"Basic {b64encode(pair.encode()).decode()}")


@attrs.frozen
class SecretPost:
    """Name and secret in the body."""

    method: str = POST

    def apply(self, request: TokenRequest) -> TokenRequest:
        """Add both."""
        client = request.client
        return request.with_parameters(client_id=client.client_id, client_secret=client.client_secret or "")


_WITH_SECRET: Final[tuple[ClientAuthentication, ...]] = (SecretBasic(), SecretPost(), NoAuthentication())


def authentication_for(server: ServerMetadata, client: Registration) -> ClientAuthentication | None:
    """How `client` shows `server` who it is; None where they have no way in common."""
    if client.client_secret is None:
        return NoAuthentication()
    # What a registration says goes first; then what needs least of the server.
    ways = sorted(_WITH_SECRET, key=lambda way: way.method != client.method)
    if server.token_methods is None:
        return next((way for way in ways if way.method == client.method), _WITH_SECRET[0])
    return next((way for way in ways if way.method in server.token_methods), None)
