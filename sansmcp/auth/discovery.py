"""Where a server and its authorization server say how one is authorized: addresses, in their order.

Pure functions of addresses. What is at one of them is asked for by the flow, which goes on to the next
where there is no document.

Specification: RFC 9728, section 3; RFC 8414, sections 3 and 5; 2026-07-28,
basic/authorization/authorization-server-discovery; 2025-03-26, basic/authorization (metadata discovery,
fallbacks).
"""

from __future__ import annotations

from typing import Final

from ..http.url import Url
from .addresses import named_url

RESOURCE: Final = "/.well-known/oauth-protected-resource"
SERVER: Final = "/.well-known/oauth-authorization-server"
OPENID: Final = "/.well-known/openid-configuration"


def origin_of(url: Url) -> str:
    """The origin of `url` as an address without a path."""
    return f"{url.scheme}://{url.authority}"


def resource_urls(server: Url, named: Url | None = None) -> list[Url]:
    """Where the metadata about `server` may be. `named` is what its challenge says."""
    base, path = origin_of(server), server.path.rstrip("/")
    urls = [named, named_url(f"{base}{RESOURCE}{path}"), named_url(f"{base}{RESOURCE}")]
    return list(dict.fromkeys(url for url in urls if url is not None))


def server_urls(issuer: str) -> list[Url]:
    """Where the metadata of the authorization server `issuer` may be; none for an unusable name."""
    url = named_url(issuer)
    if url is None or "?" in issuer or "#" in issuer:
        return []
    base, path = origin_of(url), url.path.rstrip("/")
    places = [f"{base}{SERVER}{path}", f"{base}{OPENID}{path}", f"{base}{path}{OPENID}"]
    return list(dict.fromkeys(found for place in places if (found := named_url(place)) is not None))
