"""What servers and authorization servers say about themselves, and whether it can be believed.

Specification: RFC 9728 (protected resource metadata); RFC 8414 (authorization server metadata); OpenID
Connect Discovery 1.0; 2026-07-28, basic/authorization/authorization-server-discovery.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import attrs

from ..http.url import Url
from .addresses import named_url

MAX_LISTED: Final = 256
"""Members of a list in a document that are read: scopes, methods, authorization servers."""

S256: Final = "S256"
BASIC: Final = "client_secret_basic"
POST: Final = "client_secret_post"
NONE: Final = "none"


@attrs.frozen
class ResourceMetadata:
    """What a server says about who may use it."""

    resource: str
    """The server's own name for itself: what tokens are made for."""
    authorization_servers: tuple[str, ...]
    """Issuers, as they were written."""
    scopes: tuple[str, ...] | None
    """What is needed for the usual; None where it does not say."""
    url: str | None = None
    """Where it was read; None where there was none and the rest is assumed."""


def read_resource(value: object, url: Url) -> ResourceMetadata | None:
    """Read the document that was found at `url`; None where it is none of this kind."""
    if not isinstance(value, dict):
        return None
    resource, servers = value.get("resource"), _texts(value.get("authorization_servers"))
    if not isinstance(resource, str) or not servers:
        return None
    return ResourceMetadata(resource, servers, _texts(value.get("scopes_supported")), url.text)


def covers(resource: str, server: Url) -> bool:
    """Whether a token for `resource` is one for `server`.

    That is so for the server's address, and for one at the same origin whose path the server's is under.
    """
    url = named_url(resource)
    if url is None or url.origin != server.origin or "#" in resource:
        return False
    path, mark, _ = url.target.partition("?")
    if mark:
        return url.target == server.target
    path = path.rstrip("/")
    return server.path == path or server.path.startswith(f"{path}/")


def resource_of(server: Url) -> str:
    """The name of `server` where it does not say one: its address, without a slash that means nothing."""
    return server.text.removesuffix("/") if server.target == "/" else server.text


@attrs.frozen(kw_only=True)
class ServerMetadata:
    """What an authorization server can do, and where."""

    issuer: str
    """Its name, as it was written: compared as text, never as an address."""
    token_endpoint: Url
    authorization_endpoint: Url | None = None
    registration_endpoint: Url | None = None
    scopes: tuple[str, ...] = ()
    challenge_methods: tuple[str, ...] | None = None
    """For PKCE; None where it does not say."""
    token_methods: tuple[str, ...] | None = None
    """How clients may show who they are at the token endpoint; None where it does not say."""
    names_itself: bool = False
    """Whether every answer that comes through the browser has its issuer in it."""
    reads_clients: bool = False
    """Whether the address of a document is a client's name there."""
    raw: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """The document."""


def read_server(value: object) -> ServerMetadata | None:
    """Read a document about an authorization server; None where it is none.

    Members of the wrong kind are taken for missing. Whose document it is, the caller looks at.
    """
    if not isinstance(value, dict):
        return None
    issuer, token = value.get("issuer"), named_url(value.get("token_endpoint"))
    if not isinstance(issuer, str) or token is None:
        return None
    return ServerMetadata(
        issuer=issuer,
        token_endpoint=token,
        authorization_endpoint=named_url(value.get("authorization_endpoint")),
        registration_endpoint=named_url(value.get("registration_endpoint")),
        scopes=_texts(value.get("scopes_supported")) or (),
        challenge_methods=_texts(value.get("code_challenge_methods_supported")),
        token_methods=_texts(value.get("token_endpoint_auth_methods_supported")),
        names_itself=value.get("authorization_response_iss_parameter_supported") is True,
        reads_clients=value.get("client_id_metadata_document_supported") is True,
        raw=value,
    )


def assumed_server(base: str) -> ServerMetadata:
    """What is true of a server of 2025-03-26 that says nothing: it is its own authorization server.

    `base` is its origin, as an address without a path.
    """
    endpoint = {name: named_url(f"{base}/{name}") for name in ("authorize", "token", "register")}
    assert endpoint["token"] is not None
    return ServerMetadata(
        issuer=base,
        token_endpoint=endpoint["token"],
        authorization_endpoint=endpoint["authorize"],
        registration_endpoint=endpoint["register"],
        challenge_methods=(S256,),
        token_methods=(NONE, POST, BASIC),
    )


def _texts(value: object) -> tuple[str, ...] | None:
    """The texts in a list, each once; None for what is none."""
    if not isinstance(value, list):
        return None
    return tuple(dict.fromkeys(text for text in value[:MAX_LISTED] if isinstance(text, str) and text))
