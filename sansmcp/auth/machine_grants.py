"""Grants that need nobody: a client acts for itself, or for somebody whose identity it can assert.

Give one to `OAuth` as ``grant``; the client must be known to the authorization server beforehand
(``OAuth.client``).

Specification: 2026-07-28, extensions/auth (client credentials, enterprise-managed authorization); RFC 6749,
section 4.4; RFC 7523, section 2.1; RFC 8693.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final, TypeAlias

import attrs

from ..errors import AuthorizationProblem, SansmcpError
from ..http.url import Url, parse_url
from .clients import ClientAuthentication, NoAuthentication, SecretBasic
from .metadata import ServerMetadata
from .registration import Registration
from .scopes import OFFLINE, Scopes
from .steps import Steps, fail
from .tokens import Tokens

if TYPE_CHECKING:
    from ..extensions.extension import Extension
    from .flow import Flow

Assertion: TypeAlias = str | Callable[[], str]
"""A signed token of somebody else, or a function that fetches it anew, for ones that do not last. The
function must not take long; if it raises, no token is asked for, and it is called again the next time."""

CLIENT_CREDENTIALS: Final = "client_credentials"
JWT_BEARER: Final = "urn:ietf:params:oauth:grant-type:jwt-bearer"
TOKEN_EXCHANGE: Final = "urn:ietf:params:oauth:grant-type:token-exchange"
ID_TOKEN: Final = "urn:ietf:params:oauth:token-type:id_token"
SAML2: Final = "urn:ietf:params:oauth:token-type:saml2"
ID_JAG: Final = "urn:ietf:params:oauth:token-type:id-jag"

CREDENTIALS_EXTENSION: Final = "io.modelcontextprotocol/oauth-client-credentials"
ENTERPRISE_EXTENSION: Final = "io.modelcontextprotocol/enterprise-managed-authorization"

_Problem = AuthorizationProblem


def _declared(id: str) -> Extension:
    from ..extensions.extension import Extension

    return Extension(id=id)


def _known(flow: Flow) -> Registration:
    client = flow.known_client()
    if client is None:
        text = f"the authorization server {flow.metadata.issuer} does not know this client"
        fail(
            _Problem.NO_CLIENT, f"{text}: have it made known there, and give what that brings (OAuth.client)"
        )
    return client


def _scopes(flow: Flow) -> Scopes:
    # Nobody has to be asked again: a token that can be renewed would be one more to keep.
    return tuple(s for s in flow.scopes() if s != OFFLINE or s in flow.oauth.scopes)


def _scope(flow: Flow) -> list[tuple[str, str]]:
    scopes = _scopes(flow)
    return [("scope", " ".join(scopes))] if scopes else []


def _read(assertion: Assertion, what: str) -> str:
    given: object = None
    why = "it is no text"
    try:
        given = assertion if isinstance(assertion, str) else assertion()
    except SansmcpError as error:
        why = str(error)
    except Exception as error:
        # What it says may quote what it read.
        why = type(error).__name__ + (f": {error.strerror}" if isinstance(error, OSError) else "")
    if not isinstance(given, str) or not given:
        fail(_Problem.NOT_ASKED, f"there is no {what} to show: {why}", retryable=True)
    return given


@attrs.frozen
class ClientCredentials:
    """The client acts for itself: that it is who it says is enough."""

    @property
    def extension(self) -> Extension:
        """What a client that does this declares: give it as one of its ``extensions``."""
        return _declared(CREDENTIALS_EXTENSION)

    def obtain(self, flow: Flow) -> Steps[Tokens]:
        """Ask for a token."""
        client = _known(flow)
        parameters = [("grant_type", CLIENT_CREDENTIALS), *_scope(flow)]
        return (yield from flow.request_token(parameters, client, requested=_scopes(flow)))


@attrs.frozen
class JwtBearer:
    """The client has a token of its platform, or of its user, that the authorization server trusts.

    That of a workload identity is commonly in a file that is renewed: then give a function that reads it.
    """

    assertion: Assertion = attrs.field(repr=False)

    def obtain(self, flow: Flow) -> Steps[Tokens]:
        """Ask for a token in exchange for it."""
        return (yield from _redeem(flow, _read(self.assertion, "assertion")))


def _redeem(flow: Flow, assertion: str) -> Steps[Tokens]:
    client = _known(flow)
    flow.hide(assertion)
    parameters = [("grant_type", JWT_BEARER), ("assertion", assertion), *_scope(flow)]
    return (yield from flow.request_token(parameters, client, requested=_scopes(flow)))


@attrs.frozen(kw_only=True)
class EnterpriseManaged:
    """The identity provider of an organisation decides who may use which server.

    There the user has logged in, which brought `id_token`. It is asked to assert the user's identity to the
    authorization server, and that assertion is redeemed there. `token_endpoint` and `client` are those of
    the identity provider; `authentication` is how the client shows it who it is, by its secret unless given.
    Raises LocalProtocolError for what is no address.
    """

    token_endpoint: Url = attrs.field(converter=parse_url)
    client: Registration
    id_token: Assertion = attrs.field(repr=False)
    """What says who the user is: an ID token, or another kind if `token_type` says so."""
    token_type: str = ID_TOKEN
    authentication: ClientAuthentication | None = None

    @property
    def extension(self) -> Extension:
        """What a client that does this declares: give it as one of its ``extensions``."""
        return _declared(ENTERPRISE_EXTENSION)

    def obtain(self, flow: Flow) -> Steps[Tokens]:
        """Have the identity asserted, and redeem the assertion."""
        subject = _read(self.id_token, "ID token")
        flow.hide(subject)
        parameters = (
            ("grant_type", TOKEN_EXCHANGE),
            ("requested_token_type", ID_JAG),
            ("audience", flow.metadata.issuer),
            ("resource", flow.resource.resource),
            ("subject_token", subject),
            ("subject_token_type", self.token_type),
            *_scope(flow),
        )
        answer = yield from flow.ask_elsewhere(
            self.token_endpoint,
            parameters,
            self.client,
            self.authentication or _usual(self.client),
            provider=ServerMetadata(issuer=self._issuer, token_endpoint=self.token_endpoint),
        )
        return (yield from _redeem(flow, self._assertion(answer)))

    @property
    def _issuer(self) -> str:
        return self.client.issuer or self.token_endpoint.text

    @staticmethod
    def _assertion(answer: Mapping[str, object]) -> str:
        assertion, kind = answer.get("access_token"), answer.get("issued_token_type")
        if not isinstance(assertion, str) or not assertion or kind not in (None, ID_JAG):
            fail(
                _Problem.INVALID_ANSWER,
                "the identity provider's answer has no assertion of an identity in it",
            )
        return assertion


def _usual(client: Registration) -> ClientAuthentication:
    return NoAuthentication() if client.client_secret is None else SecretBasic()


__all__ = ["ID_TOKEN", "SAML2", "Assertion", "ClientCredentials", "EnterpriseManaged", "JwtBearer"]
