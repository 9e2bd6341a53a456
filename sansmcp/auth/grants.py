"""The grant by which a user lets this client act: a browser is opened, a code comes back.

Specification: OAuth 2.1, section 4.1; RFC 9207; RFC 8707; 2026-07-28, basic/authorization.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlencode

import attrs

from ..errors import AuthorizationProblem
from ..http.url import Url
from .metadata import S256
from .pkce import Pkce, url_safe
from .registration import Registration
from .scopes import OFFLINE
from .steps import AskUser, Returned, Steps, fail
from .tokens import Tokens

if TYPE_CHECKING:
    from .flow import Flow

_Problem = AuthorizationProblem


@attrs.frozen
class AuthorizationCode:
    """The user logs in with a browser, and allows it."""

    def obtain(self, flow: Flow) -> Steps[Tokens]:
        """Have the user asked, and redeem the code."""
        server = flow.metadata
        endpoint = flow.check(server.authorization_endpoint, "authorization endpoint")
        if S256 not in (server.challenge_methods or ()):
            text = f"the authorization server {server.issuer} does not say that it supports PKCE with S256"
            fail(_Problem.UNSUPPORTED, f"{text}: without it a code could be stolen")
        client, redirect_uri = yield from flow.client_for_browser()
        pkce, returned = yield from self._ask(flow, endpoint, client, redirect_uri)
        self._check_issuer(flow, returned)
        if returned.one("error") == "invalid_scope" and flow.can_register_anew:
            # Perhaps it is known there for fewer rights than are asked for now.
            client = yield from flow.register(redirect_uri)
            pkce, returned = yield from self._ask(flow, endpoint, client, redirect_uri)
            self._check_issuer(flow, returned)
        code = self._code(flow, returned)
        flow.hide(code, pkce.verifier)
        parameters = [
            ("grant_type", "authorization_code"),
            ("code", code),
            ("redirect_uri", redirect_uri),
            ("code_verifier", pkce.verifier),
        ]
        return (yield from flow.request_token(parameters, client, requested=flow.scopes()))

    def _ask(
        self, flow: Flow, endpoint: Url, client: Registration, redirect_uri: str
    ) -> Steps[tuple[Pkce, Returned]]:
        """Have the user asked; returns what the browser brought back."""
        flow.token_endpoint(client)
        pkce, state = Pkce.new(flow.entropy), url_safe(flow.entropy(24))
        flow.hide(state)
        scopes = flow.scopes()
        query = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect_uri,
            "code_challenge": pkce.challenge,
            "code_challenge_method": pkce.method,
            "state": state,
            "resource": flow.resource.resource,
        }
        if flow.oauth.dpop is not None:
            query["dpop_jkt"] = flow.oauth.dpop.thumbprint  # whoever steals the code cannot use it, either
        if scopes:
            query["scope"] = " ".join(scopes)
        if OFFLINE in scopes:
            query["prompt"] = "consent"  # without it OpenID providers leave the scope out
        joint = "&" if "?" in endpoint.target else "?"
        returned = yield AskUser(
            url=f"{endpoint.text}{joint}{urlencode(query)}",
            redirect_uri=redirect_uri,
            state=state,
            issuer=flow.metadata.issuer,
            scopes=scopes,
        )
        assert isinstance(returned, Returned)
        return pkce, returned

    @staticmethod
    def _check_issuer(flow: Flow, returned: Returned) -> None:
        """Whether what the browser brought is from whom it has to be."""
        server = flow.metadata
        issuers = returned.parameters.get("iss", ())
        # Before anything else: nothing of another server's answer is used, nor shown.
        if issuers and issuers != (server.issuer,):
            text = f"the browser came back from another authorization server than {server.issuer}"
            fail(_Problem.WRONG_ISSUER, f"{text}: nothing was sent to either; try again")
        if server.names_itself and not issuers:
            text = f"the answer does not say that it is from {server.issuer}, which says that it always does"
            fail(_Problem.WRONG_ISSUER, f"{text}: nothing was sent; try again")

    @staticmethod
    def _code(flow: Flow, returned: Returned) -> str:
        """The code that the browser brought."""
        error = returned.one("error")
        if error is not None:
            shown, told = flow.told(error, returned.one("error_description"))
            fail(_Problem.DENIED, f"the authorization server says no: {told}", code=shown)
        code = returned.one("code")
        if not code:
            fail(_Problem.INVALID_ANSWER, "the browser came back without a code, and without an error")
        return code
