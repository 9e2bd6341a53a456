"""What a protected server says of itself and whom it lets in: a resource server of OAuth.

`ResourceServer` is what an application decides: where it is, whose tokens it takes, which rights a
request needs. It judges a `Principal`, not a token: what a token says is found out by the `verifier`
that whoever drives the server calls (`auth.gate` holds requests meanwhile).

Specification: 2026-07-28, basic/authorization; RFC 9728 (protected resource metadata); RFC 6750,
section 3 (the challenge); RFC 9449, section 7 (proofs).
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Protocol, TypeAlias
from urllib.parse import urlsplit

import attrs

from ..errors import LocalProtocolError
from ..http.exchange import Headers
from .principal import Principal, read_scopes

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"

Scopes: TypeAlias = str | Iterable[str]
"""A list of scopes, or a text with blanks between them."""

Verifier: TypeAlias = Callable[[str], "Principal | Awaitable[Principal | None] | None"]
"""Finds out what an access token says; None for one that is not valid. Whatever it raises is a fault of
the server, and its request is answered 503."""

ScopeKey: TypeAlias = str | tuple[str, str]
"""A method, or a method and the name or URI that it is about."""

ScopeRule: TypeAlias = Mapping[ScopeKey, Scopes] | Callable[[Mapping[str, Any]], Scopes]
"""Which scopes a message needs: by its method and what it is about, or told by a function of it."""

_OFFLINE: Final = "offline_access"


@attrs.frozen
class ProofProblem:
    """Why a proof is not taken."""

    text: str
    """For people, in one line that quotes nothing of the proof."""
    error: str = "invalid_dpop_proof"


class ProofCheck(Protocol):
    """Decides whether a request proves that its client has the key that its token is bound to."""

    @property
    def algorithms(self) -> Sequence[str]:
        """The signature algorithms that are taken."""
        ...

    def check(
        self, proof: str, *, method: str, url: str, token: str, key: str, unix: float
    ) -> ProofProblem | None:
        """Say what is wrong with `proof`; None: nothing.

        `key` is the thumbprint that the token is bound to, `unix` the time of day.
        """
        ...

    def nonce(self, unix: float) -> str | None:
        """What is to be handed out with a refusal, for the next proof; None: nothing."""
        ...


def _servers(urls: Sequence[str]) -> tuple[str, ...]:
    if isinstance(urls, str):
        raise LocalProtocolError(f"a list of authorization servers is needed, not the text {urls!r}")
    return tuple(urls)


def _closure(given: Mapping[str, Scopes]) -> dict[str, frozenset[str]]:
    """What each scope implies, also by way of others."""
    direct = {scope: read_scopes(narrower) for scope, narrower in given.items()}
    closed = {}
    for scope in direct:
        found, open_ = {scope}, [scope]
        while open_:
            new = [s for s in direct.get(open_.pop(), ()) if s not in found]
            found.update(new)
            open_ += new
        closed[scope] = frozenset(found)
    return closed


@attrs.frozen(kw_only=True)
class ResourceServer:
    """How a server is protected. Give it to `HttpServer`, or to a binding, as ``auth``.

    Raises LocalProtocolError for what are no URLs or scopes, without an authorization server, for times
    and counts that are not positive, and for the scope ``offline_access``, which is no right at a
    resource.
    """

    resource: str
    """The URL of the endpoint as clients know it: ``https://mcp.example.com/mcp``."""
    authorization_servers: tuple[str, ...] = attrs.field(converter=_servers)
    """Issuers whose tokens are taken."""
    verifier: Verifier = attrs.field(repr=False)
    scopes: tuple[str, ...] = attrs.field(default=(), converter=read_scopes)
    """What every request needs. Clients without a token are told to ask for these."""
    scopes_for: ScopeRule | None = attrs.field(default=None, repr=False)
    """What a message needs besides."""
    scopes_supported: tuple[str, ...] = attrs.field(default=(), converter=read_scopes)
    """What the metadata lists, `scopes` unless given: who is told nothing else asks for all of it."""
    implied: Mapping[str, frozenset[str]] = attrs.field(factory=dict, converter=_closure)
    """Narrower scopes that a broader one has in it."""
    check_audience: bool = True
    """Whether a token must have been made for this resource. Only to be turned off where the verifier
    makes sure of that otherwise."""
    audiences: frozenset[str] = attrs.field(default=(), converter=frozenset)
    """Other names of this resource in tokens; `resource` itself always is one."""
    proofs: ProofCheck | None = None
    """Takes tokens that are bound to a key, with the scheme ``DPoP``."""
    proofs_only: bool = False
    """Whether no others are taken."""
    document: Mapping[str, Any] = attrs.field(factory=dict, repr=False)
    """Further members of the metadata, as ``resource_name``."""
    remember: float = 60.0
    """Seconds for which a verdict holds, at most until the token ends: that long one that was revoked is
    still taken. 0: each request is verified."""
    max_remembered: int = 1024
    """Verdicts that are kept. Past it: the oldest is forgotten, and its token verified again."""
    max_waiting: int = 1024
    """Requests that wait for a verdict. Past it: 503, and it is told."""
    timeout: float = 30.0
    """Seconds for a verdict. Past it: 503, and it is told."""

    def __attrs_post_init__(self) -> None:
        for url in (self.resource, *self.authorization_servers):
            parts = urlsplit(url)
            if "@" in parts.netloc:
                raise LocalProtocolError("no user and password in the URL of a resource or of an issuer")
            if parts.scheme not in ("http", "https") or not parts.hostname or "#" in url:
                raise LocalProtocolError(
                    f"{url!r} is no URL of a resource or of an issuer: http(s), no fragment"
                )
        if not self.authorization_servers:
            raise LocalProtocolError("a protected server names at least one authorization server")
        if _OFFLINE in (*self.scopes, *self.scopes_supported):
            raise LocalProtocolError(f"{_OFFLINE} is between a client and its authorization server")
        if self.proofs_only and self.proofs is None:
            raise LocalProtocolError("proofs_only without proofs: nobody could be let in")
        if self.remember < 0 or self.timeout <= 0 or self.max_remembered < 1 or self.max_waiting < 1:
            raise LocalProtocolError("the bounds of a ResourceServer are positive")

    # what it says of itself ----------------------------------------------------------------------

    @property
    def metadata_url(self) -> str:
        """Where the metadata is, as clients know it."""
        parts = urlsplit(self.resource)
        query = f"?{parts.query}" if parts.query else ""
        return f"{parts.scheme}://{parts.netloc}{self.metadata_paths[0]}{query}"

    @property
    def metadata_paths(self) -> tuple[str, ...]:
        """Paths at which the metadata is served, the exact one first."""
        path = urlsplit(self.resource).path
        return (WELL_KNOWN,) if path in ("", "/") else (WELL_KNOWN + path, WELL_KNOWN)

    def metadata(self) -> dict[str, Any]:
        """The metadata document, a JSON object."""
        listed = self.scopes_supported or self.scopes
        found: dict[str, Any] = {
            "resource": self.resource,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
        }
        if listed:
            found["scopes_supported"] = list(listed)
        if self.proofs is not None:
            found["dpop_signing_alg_values_supported"] = list(self.proofs.algorithms)
            found["dpop_bound_access_tokens_required"] = self.proofs_only
        return {**found, **self.document}

    def metadata_json(self) -> bytes:
        """The same encoded. Raises LocalProtocolError for what is no JSON."""
        try:
            return json.dumps(self.metadata(), allow_nan=False).encode("ascii")
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"the metadata of {self.resource} is no JSON: {error}") from error

    def challenge(
        self,
        *,
        error: str | None = None,
        description: str | None = None,
        scopes: Iterable[str] | None = None,
        bound: bool = False,
    ) -> Headers:
        """The header that tells how to be let in.

        `scopes` are those of every request unless given. With `bound` it is for who showed a bound token.
        """
        wanted = self.scopes if scopes is None else read_scopes(scopes)
        parameters = {
            "error": error,
            "error_description": description,
            "scope": " ".join(wanted) or None,
            "resource_metadata": self.metadata_url,
        }
        told = ", ".join(
            f"{name}={_quoted(value)}" for name, value in parameters.items() if value is not None
        )
        if self.proofs is None:
            return (("www-authenticate", f"Bearer {told}"),)
        algorithms = f"algs={_quoted(' '.join(self.proofs.algorithms))}"
        if self.proofs_only or bound:
            return (("www-authenticate", f"DPoP {told}, {algorithms}"),)
        return (("www-authenticate", f"Bearer {told}, DPoP {algorithms}"),)

    # whom it lets in -----------------------------------------------------------------------------

    def problem(self, principal: Principal, unix: float) -> str | None:
        """Why `principal` is nobody to be let in at the time of day `unix`; None if there is no reason."""
        if principal.expires_at is not None and principal.expires_at <= unix:
            return "the token has expired"
        if self.check_audience and not principal.audience & {self.resource, *self.audiences}:
            return "the token was not made for this server"
        return None

    def scopes_of(self, message: Mapping[str, Any]) -> tuple[str, ...]:
        """Everything that a message needs, `scopes` among it. Takes any JSON object.

        Raises LocalProtocolError when `scopes_for` gives what are no scopes.
        """
        rule = self.scopes_for
        if rule is None:
            return self.scopes
        if callable(rule):
            return read_scopes((*self.scopes, *read_scopes(rule(message))))
        method, params = message.get("method"), message.get("params")
        if not isinstance(method, str):
            return self.scopes
        needed = [*self.scopes, *read_scopes(rule.get(method, ()))]
        if isinstance(params, Mapping):
            subject = params.get("name", params.get("uri"))
            if isinstance(subject, str):
                needed += read_scopes(rule.get((method, subject), ()))
        return tuple(dict.fromkeys(needed))

    def missing(self, principal: Principal, needed: Iterable[str]) -> list[str]:
        """Those of the scopes `needed` that `principal` does not have, neither as such nor implied."""
        had = set(principal.scopes)
        for scope in principal.scopes:
            had |= self.implied.get(scope, frozenset())
        return [scope for scope in needed if scope not in had]


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


__all__ = [
    "WELL_KNOWN",
    "ProofCheck",
    "ProofProblem",
    "ResourceServer",
    "ScopeKey",
    "ScopeRule",
    "Scopes",
    "Verifier",
]
