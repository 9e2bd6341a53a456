"""By what an authorization server knows a client, and how a client makes itself known.

Specification: RFC 7591; OpenID Connect Dynamic Client Registration 1.0; 2026-07-28,
basic/authorization/client-registration.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import attrs

from ..errors import LocalProtocolError
from ..http.proxy import is_loopback
from ..http.url import parse_url
from .metadata import BASIC, NONE, POST, ServerMetadata

ApplicationType: TypeAlias = Literal["native", "web"]

MAX_CLIENT: Final = 4096
"""Characters of a client's id or secret. Past it: the registration is refused."""

_KNOWN_METHODS: Final = (NONE, BASIC, POST)


@attrs.frozen(kw_only=True, repr=False)
class Registration:
    """By what one authorization server knows this client.

    Give one to `OAuth` for a client that was made known beforehand.
    """

    client_id: str
    client_secret: str | None = None
    issuer: str | None = None
    """Who knows it by that, and nobody else is shown it. None, for one that was made known beforehand: the
    first authorization server that the server names."""
    method: str | None = None
    """How the client shows who it is, as in ``client_secret_post``; None: as the server likes it."""
    redirect_uri: str | None = None
    """Where the browser may be sent, where the registration was made for that."""

    def __repr__(self) -> str:
        kind = "public" if self.client_secret is None else "with a secret"
        return f"<Registration at {self.issuer or 'whoever is named first'}, {kind}>"


def check_redirect(uri: str) -> None:
    """Raises LocalProtocolError for an address at which no browser may arrive."""
    scheme, mark, _ = uri.partition("://")
    if not mark or "#" in uri or not uri.isascii() or not uri.isprintable():
        raise LocalProtocolError("redirect_uri must be an address without a fragment")
    if scheme == "http" and not is_loopback(parse_url(uri).host):
        raise LocalProtocolError("redirect_uri must be https, or http on this computer")


def check_metadata_url(url: str) -> None:
    """Raises LocalProtocolError for an address that cannot be a client's name."""
    parsed = parse_url(url)
    if parsed.scheme != "https" or parsed.path == "/" or "#" in url:
        raise LocalProtocolError("client_metadata_url must be https, with a path, without a fragment")


def application_type(redirect_uri: str) -> ApplicationType:
    """What kind of application has its browser sent to `redirect_uri`."""
    if not redirect_uri.startswith(("http://", "https://")):
        return "native"
    return "native" if is_loopback(parse_url(redirect_uri).host) else "web"


def document(
    server: ServerMetadata,
    *,
    name: str,
    redirect_uri: str,
    kind: ApplicationType | None,
    scopes: tuple[str, ...],
    extra: dict[str, Any],
) -> dict[str, Any]:
    """What is sent to have this client registered at `server`."""
    wanted: dict[str, Any] = {
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": _wanted_method(server),
        "application_type": kind or application_type(redirect_uri),
    }
    if scopes:
        wanted["scope"] = " ".join(scopes)
    return {**wanted, **extra}


def _wanted_method(server: ServerMetadata) -> str:
    offered = server.token_methods
    if offered is None:
        return NONE
    return next((method for method in _KNOWN_METHODS if method in offered), NONE)


def read_registration(value: object, issuer: str, redirect_uri: str) -> Registration | None:
    """What a registration was answered with; None for what is none."""
    if not isinstance(value, dict):
        return None
    client_id, secret, method = (
        value.get(name) for name in ("client_id", "client_secret", "token_endpoint_auth_method")
    )
    if not isinstance(client_id, str) or not _usable(client_id) or not (secret is None or _usable(secret)):
        return None
    return Registration(
        client_id=client_id,
        client_secret=secret or None,
        issuer=issuer,
        method=method if method in _KNOWN_METHODS else None,
        redirect_uri=redirect_uri,
    )


def _usable(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= MAX_CLIENT and value.isprintable() and value.isascii()
