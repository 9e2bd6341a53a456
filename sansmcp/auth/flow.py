"""One attempt to come by a token, from the server's challenge to what the token endpoint answers.

`Flow` is what a grant works with: it finds out who gives tokens, makes this client known, and asks for the
token. Everything that is asked of others is a step; `authorization.py` takes the steps. Each request for a
token passes `Flow.request_token`.

Specification: 2026-07-28, basic/authorization; 2025-03-26, basic/authorization (fallbacks).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Final, NoReturn
from urllib.parse import quote, quote_plus

import attrs

from ..errors import AuthorizationFailed, AuthorizationProblem, NetworkFailure, NetworkProblem, PeerFault
from ..events import DeviationTolerated, Event
from ..http.answer import read_seconds
from ..http.url import Url
from ..states import AuthorizationInput
from ..wire.peek import excerpt
from .addresses import named_url
from .challenge import Challenge
from .clients import ClientAuthentication, TokenRequest, authentication_for
from .discovery import origin_of, resource_urls, server_urls
from .keeping import Keeping
from .metadata import (
    ResourceMetadata,
    ServerMetadata,
    assumed_server,
    covers,
    read_resource,
    read_server,
    resource_of,
)
from .registration import Registration, document, read_registration
from .scopes import Scopes, choose
from .showing import DPOP, NONCE, USE_NONCE, read_nonce
from .steps import AskRedirect, Fetched, Steps, fail, get, post_form, post_json
from .tokens import Tokens, end_of, read_answer

if TYPE_CHECKING:
    from .oauth import OAuth

MAX_SERVERS: Final = 4
"""Authorization servers that are asked, of those that a server names."""

_Problem = AuthorizationProblem
_SHOWN: Final = 200
_SHORTEST_SECRET: Final = 6
_SECRET: Final = frozenset({"client_secret", "client_assertion"})
"""Parameters by which a client shows who it is."""
_LATER: Final = frozenset({"server_error", "slow_down", "temporarily_unavailable", USE_NONCE})
"""Errors that say nothing of what was sent."""


@attrs.frozen(kw_only=True)
class Occasion:
    """Why a token is wanted."""

    challenge: Challenge | None = None
    """What the server said; None where nobody asked it."""
    held: Tokens | None = None
    """The token that there is, which does not do."""
    more: bool = False
    """Whether it does not do because more rights are needed."""
    quietly: bool = False
    """Whether to give up rather than ask anybody."""


class Flow:
    """What is known so far, and the steps by which more is learnt.

    A grant may use everything here that has no underscore. `resource` and `metadata` are there when it is
    called.
    """

    def __init__(
        self,
        oauth: OAuth,
        server: Url,
        occasion: Occasion,
        *,
        store: Keeping,
        entropy: Callable[[int], bytes],
        unix: Callable[[], float],
        issuer: str | None = None,
    ) -> None:
        self.oauth: Final = oauth
        self.server: Final = server
        """The server that wants to see a token."""
        self.occasion: Final = occasion
        self.store: Final = store
        """Where tokens are kept, whatever becomes of it."""
        self.entropy: Final = entropy
        self.unix: Final = unix
        """The time of day."""
        self.resource: ResourceMetadata = ResourceMetadata(resource_of(server), (), None)
        self.metadata: ServerMetadata = assumed_server(origin_of(server))
        """The authorization server's."""
        self.refreshed = False
        """Whether the token was had for an earlier one."""
        self.taken = False
        """Whether the token is one that another client was given, perhaps some time ago."""
        self.said: list[Event] = []
        """Events for the application, to be taken from here."""
        self._issuer = issuer
        """The authorization server that a client without one belongs to, as far as that is settled."""
        self._registered = False
        """Whether this client has just been made known."""
        self._nonce: str | None = None
        """What the token endpoint handed out last, to be put into proofs."""
        self._secrets: set[str] = set()
        self._misses: list[str] = []

    # the whole -----------------------------------------------------------------------------------

    def run(self) -> Steps[Tokens]:
        """Come by a token, and keep it."""
        if not self.oauth.addresses.is_safe(self.server):
            text = f"the server {self.server} is not reached by https: a token could be read on its way"
            fail(_Problem.FORBIDDEN_ADDRESS, f"{text} (AddressPolicy.plain)")
        self.resource = yield from self._find_resource()
        self.metadata = yield from self._find_server()
        tokens = yield from self._renew()
        if tokens is None:
            if self.occasion.quietly:
                fail(_Problem.TOKEN_REFUSED, "the token cannot be renewed without the user")
            tokens = yield from self.oauth.grant.obtain(self)
        self.store.keep_tokens(self.server.text, tokens)
        return tokens

    def _renew(self) -> Steps[Tokens | None]:
        """A token in the place of the one that is held, if it can be had without the user."""
        held = self.occasion.held
        if held is None or self.occasion.more or not self._suits(held):
            return None
        held = self._renewed_elsewhere(held) or held
        if held is not self.occasion.held and not held.stale(self.unix()):
            self.refreshed = self.taken = True
            return held
        client = self._client_of(held)
        if held.refresh_token is None or client is None:
            return None
        try:
            tokens = yield from self.refresh(held, client)
        except AuthorizationFailed as error:
            if error.problem is not _Problem.TOKEN_REFUSED:
                raise
            # Whoever asked at the same moment, and was first, has a token.
            other = self._renewed_elsewhere(held)
            if other is None or other.stale(self.unix()):
                if other is None and error.code:
                    self.store.keep_tokens(self.server.text, None)
                return None
            tokens, self.taken = other, True
        self.refreshed = True
        return tokens

    def _renewed_elsewhere(self, held: Tokens) -> Tokens | None:
        """What the store has in the place of `held`: then another client has renewed it, and what we hold is
        not good for anything any more."""
        kept = self.store.tokens(self.server.text)
        if kept is None or not self._suits(kept) or kept.access_token == held.access_token:
            return None
        return kept

    def _client_of(self, held: Tokens) -> Registration | None:
        """Who can renew `held`; None: nobody who we are now."""
        known, had = self.known_client(), held.client
        if had is None or (known is not None and had.client_id == known.client_id):
            return known
        return had if self.oauth.client is None and had.issuer == held.issuer else None

    def _suits(self, tokens: Tokens) -> bool:
        """Whether `tokens` are from this authorization server, for this server, and of a kind we can show."""
        if tokens.token_type == DPOP and self.oauth.dpop is None:
            return False
        return tokens.issuer == self.metadata.issuer and tokens.resource == self.resource.resource

    # who gives tokens ----------------------------------------------------------------------------

    def _find_resource(self) -> Steps[ResourceMetadata]:
        wrong = False
        broken: AuthorizationProblem | None = None
        for url in resource_urls(self.server, self._named_place()):
            answer = yield get(AuthorizationInput.ASK_RESOURCE, "the server's metadata", url)
            broken = _broken(answer) or broken
            document = self._document(url, answer)
            found = read_resource(document, url)
            if found is None:
                if document is not None:
                    self._odd(url, "it names no resource, or no authorization server")
                continue
            if covers(found.resource, self.server):
                return found
            wrong = True
            self._odd(url, "it is about another resource")
        if wrong:
            fail(
                _Problem.WRONG_RESOURCE,
                f"the metadata about {self.server} is about another server{self._tried()}: "
                "a token must not be asked for",
            )
        if broken is not None:
            retryable = broken is _Problem.UNREACHABLE
            fail(broken, f"the server's metadata cannot be read{self._tried()}", retryable=retryable)
        if not self.oauth.old_servers:
            fail(_Problem.NO_METADATA, f"the server does not say who authorizes its clients{self._tried()}")
        return ResourceMetadata(resource_of(self.server), (origin_of(self.server),), None)

    def _named_place(self) -> Url | None:
        """Where the server says that its metadata is; None where it does not say, or must not."""
        challenge, held = self.occasion.challenge, self.occasion.held
        text = None if challenge is None else challenge.parameters.get("resource_metadata")
        if text is None:
            text = held.metadata_url if challenge is None and held is not None else None
        if text is None:
            return None
        url = named_url(text)
        refusal = "it is no address"
        if url is not None:
            why = self.oauth.addresses.refusal_of_metadata(url, self.server)
            if why is None:
                return url
            refusal = why
        where = "its metadata" if url is None else str(url)
        self._misses.append(f"{where}: {refusal}")
        self._tell(PeerFault.INVALID_CHALLENGE, f"the server names {where}, which is not asked: {refusal}")
        return None

    def _find_server(self) -> Steps[ServerMetadata]:
        self._misses.clear()
        problem = _Problem.NO_METADATA
        for issuer in self._issuers():
            places = server_urls(issuer)
            why = "it is no address" if not places else self.refusal(places[0])
            if why is not None:
                problem = _Problem.FORBIDDEN_ADDRESS
                self._misses.append(f"{excerpt(issuer.encode(), _SHOWN)}: {why}")
                continue
            for url in places:
                answer = yield get(AuthorizationInput.ASK_SERVER, "the authorization server's metadata", url)
                problem = _broken(answer) or problem
                document = self._document(url, answer)
                found = read_server(document)
                if found is None:
                    if document is not None:
                        self._odd(url, "it names no issuer, or no token endpoint")
                    continue
                if self._is_of(found, issuer):
                    return found
                problem = _Problem.WRONG_ISSUER
                self._odd(url, "its issuer is not the one that was asked for")
        if self.resource.url is None and problem is _Problem.NO_METADATA:
            return assumed_server(origin_of(self.server))
        text = "nothing usable is known about the authorization server"
        fail(problem, f"{text}{self._tried()}", retryable=problem is _Problem.UNREACHABLE)

    def _is_of(self, found: ServerMetadata, issuer: str) -> bool:
        # Nobody named the issuer of an old server: whether it ends in a slash, nobody knows.
        return found.issuer == issuer or (self.resource.url is None and found.issuer == f"{issuer}/")

    def _issuers(self) -> list[str]:
        """Whom to ask, in order: first who knows this client."""
        named = self.resource.authorization_servers
        given, held = self.oauth.client, self.occasion.held
        if given is not None:
            own = given.issuer or self._issuer or named[0]  # nobody else is shown its secret
            if own not in named:
                text = "this client is known to another authorization server than the server names"
                fail(_Problem.NO_CLIENT, f"{text}: have it made known there, and give that")
            return [own]
        first = [held.issuer] if held is not None and held.issuer in named else []
        return list(dict.fromkeys([*first, *named]))[:MAX_SERVERS]

    def refusal(self, url: Url) -> str | None:
        """Why `url` must not be asked; None: it may."""
        return self.oauth.addresses.refusal(url, self.server)

    def check(self, url: Url | None, what: str) -> Url:
        """The address of an endpoint that the authorization server names, if it has one that is usable."""
        if url is None:
            fail(_Problem.UNSUPPORTED, f"the authorization server {self.metadata.issuer} has no {what}")
        why = self.refusal(url)
        if why is not None:
            fail(_Problem.FORBIDDEN_ADDRESS, f"the {what} {url} is not used: {why}")
        return url

    # who this client is --------------------------------------------------------------------------

    def known_client(self) -> Registration | None:
        """By what the authorization server knows this client already; None where it does not."""
        issuer, given = self.metadata.issuer, self.oauth.client
        if given is not None:
            return attrs.evolve(given, issuer=issuer)
        name = self.oauth.client_metadata_url
        if name is not None and self.metadata.reads_clients:
            return Registration(client_id=name, issuer=issuer)
        kept = self.store.registration(issuer)
        return kept if kept is not None and kept.issuer == issuer else None

    def client_for_browser(self) -> Steps[tuple[Registration, str]]:
        """By what the authorization server knows this client, and where the browser is to arrive."""
        known = self.known_client()
        uri = self.oauth.redirect_uri
        if uri is None:
            uri = yield AskRedirect(None if known is None else known.redirect_uri)
        if known is None or known.redirect_uri not in (None, uri):
            known = yield from self.register(uri)
        return known, uri

    def register(self, redirect_uri: str) -> Steps[Registration]:
        """Make this client known."""
        issuer = self.metadata.issuer
        if self.metadata.registration_endpoint is None:
            text = f"the authorization server {issuer} does not know this client, and lets none register"
            fail(_Problem.NO_CLIENT, f"{text}: have it registered there, and give what that brings")
        url = self.check(self.metadata.registration_endpoint, "registration endpoint")
        wanted = document(
            self.metadata,
            name=self.oauth.client_name,
            redirect_uri=redirect_uri,
            kind=self.oauth.application_type,
            scopes=self.scopes(),
            extra=dict(self.oauth.registration),
        )
        answer = yield post_json(AuthorizationInput.REGISTER, "the registration", url, wanted)
        value = self._answered(answer, "the registration")
        if not answer.ok:
            code, told = self._error(value, answer)
            hint = "have this client registered there, and give what that brings"
            if code == "invalid_redirect_uri":
                hint = f"it wants other redirect addresses of what is {wanted['application_type']}"
            text = f"the authorization server does not register this client: {told}; {hint}"
            if self.metadata.raw.get("issuer") is None:
                text += f"; {self.server} names none, so that it was taken for its own authorization server"
            fail(_Problem.NO_CLIENT, text, code=code)
        client = read_registration(value, issuer, redirect_uri)
        if client is None:
            fail(_Problem.INVALID_ANSWER, "the registration was answered without a usable client_id")
        self._registered = True
        self.store.keep_registration(issuer, client)
        return client

    @property
    def can_register_anew(self) -> bool:
        """Whether this client made itself known on an earlier occasion, and can do so again."""
        if self._registered or self.metadata.registration_endpoint is None:
            return False
        known = self.known_client()
        kept = self.store.registration(self.metadata.issuer)
        return known is not None and kept is not None and known.client_id == kept.client_id

    def forget_client(self, client: Registration | None = None) -> None:
        """The authorization server does not know this client any more: next time it registers anew.

        `client` is the one that it does not know; None: the one that is kept.
        """
        issuer = self.metadata.issuer
        kept = None if self.oauth.client is not None else self.store.registration(issuer)
        if kept is not None and (client is None or client.client_id == kept.client_id):
            self.store.keep_registration(issuer, None)

    # tokens --------------------------------------------------------------------------------------

    def scopes(self) -> Scopes:
        """What to ask for."""
        held, challenge = self.occasion.held, self.occasion.challenge
        ours = held is not None and held.issuer == self.metadata.issuer
        return choose(
            wanted=self.oauth.scopes,
            held=(*held.scopes, *held.requested) if held is not None and ours else (),
            challenged=None if challenge is None else challenge.scopes,
            listed=self.resource.scopes,
            offered=self.metadata.scopes,
            offline=self.oauth.offline,
        )

    def request_token(
        self, parameters: Iterable[tuple[str, str]], client: Registration, *, requested: Scopes = ()
    ) -> Steps[Tokens]:
        """Ask the token endpoint. Adds the resource, and what shows who the client is.

        Specification: OAuth 2.1, section 3.2; RFC 8707, section 2.2.
        """
        url, way = self.token_endpoint(client)
        key = self.oauth.dpop
        given = (*parameters, ("resource", self.resource.resource))
        again = False
        while True:
            request = self._signed(way, self.metadata, client, given)
            nonce = self._nonce
            if key is not None:
                proof = key.prove(
                    method="POST", url=url.text, unix=self.unix(), entropy=self.entropy, nonce=nonce
                )
                request = request.with_header(DPOP, proof)
            step = AuthorizationInput.ASK_TOKEN
            answer = yield post_form(step, "the token request", url, request.parameters, request.headers)
            if key is None:
                return self._read_tokens(answer, client, requested)
            self._nonce = read_nonce(answer.headers.get(NONCE)) or nonce
            if again or self._nonce == nonce or not _wants_nonce(answer):
                return self._read_tokens(answer, client, requested)
            again = True  # what it handed out before may be old: a user takes minutes

    def token_endpoint(self, client: Registration) -> tuple[Url, ClientAuthentication]:
        """Where tokens are asked for, and how `client` shows there who it is.

        To be looked at before a user is asked: what would come of that could not be used.
        """
        url = self.check(self.metadata.token_endpoint, "token endpoint")
        way = self.oauth.authentication or authentication_for(self.metadata, client)
        if way is None:
            offered = ", ".join(self.metadata.token_methods or ())
            text = f"the token endpoint takes clients only by {excerpt(offered.encode(), _SHOWN)}"
            fail(_Problem.UNSUPPORTED, f"{text}: set OAuth.authentication to one of these")
        return url, way

    def ask_elsewhere(
        self,
        url: Url,
        parameters: Iterable[tuple[str, str]],
        client: Registration,
        way: ClientAuthentication,
        *,
        provider: ServerMetadata,
    ) -> Steps[Mapping[str, object]]:
        """Ask the token endpoint of `provider`, which the user of this library named; returns its answer."""
        if not self.oauth.addresses.is_safe(url):
            text = f"the identity provider {url} is not reached by https: who the user is could be read there"
            fail(_Problem.FORBIDDEN_ADDRESS, f"{text} (AddressPolicy.plain)")
        request = self._signed(way, provider, client, tuple(parameters))
        step, what = AuthorizationInput.ASK_TOKEN, "the request to the identity provider"
        asked = post_form(step, what, url, request.parameters, request.headers)
        answer = yield attrs.evolve(asked, guarded=False)
        value = self._answered(answer, what)
        if not answer.ok:
            self._no_token(value, answer, f"the identity provider at {url}")
        if not isinstance(value, dict):
            fail(_Problem.INVALID_ANSWER, f"{what} was answered with no JSON object")
        return value

    def _signed(
        self,
        way: ClientAuthentication,
        server: ServerMetadata,
        client: Registration,
        parameters: tuple[tuple[str, str], ...],
    ) -> TokenRequest:
        """A request to a token endpoint, with what shows who the client is."""
        request = way.apply(
            TokenRequest(
                server=server,
                client=client,
                parameters=parameters,
                unix=self.unix(),
                entropy=self.entropy,
            )
        )
        # Both as they are sent and without what they begin with: somebody may repeat either.
        shown = [value for _, value in request.headers] + [v for n, v in request.parameters if n in _SECRET]
        self.hide(client.client_secret, *shown, *(value.partition(" ")[2] for value in shown))
        return request

    def refresh(self, held: Tokens, client: Registration) -> Steps[Tokens]:
        """A new token for the refresh token of `held`."""
        assert held.refresh_token is not None
        self.hide(held.refresh_token)
        parameters = [("grant_type", "refresh_token"), ("refresh_token", held.refresh_token)]
        tokens = yield from self.request_token(parameters, client, requested=held.requested)
        return attrs.evolve(
            tokens,
            scopes=tokens.scopes or held.scopes,
            refresh_token=tokens.refresh_token or held.refresh_token,
        )

    def _read_tokens(self, answer: Fetched, client: Registration, requested: Scopes) -> Tokens:
        value = self._answered(answer, "the token request")
        if not answer.ok or _is_error(value):
            if self._error(value, answer)[0] == "invalid_client":
                self.forget_client(client)
            self._no_token(value, answer, "the authorization server")
        read = read_answer(value, ("bearer",) if self.oauth.dpop is None else (DPOP,))
        if isinstance(read, str):
            fail(_Problem.INVALID_ANSWER, f"the answer of the token endpoint is none: {read}")
        return Tokens(
            access_token=read.access_token,
            token_type=read.token_type,
            issuer=self.metadata.issuer,
            resource=self.resource.resource,
            scopes=requested if read.scopes is None else read.scopes,
            requested=requested,
            expires_at=end_of(read.expires_in, self.unix()),
            refresh_token=read.refresh_token,
            metadata_url=self.resource.url,
            client=client if self.oauth.client is None else attrs.evolve(client, client_secret=None),
        )

    def _no_token(self, value: object, answer: Fetched, who: str) -> NoReturn:
        code, told = self._error(value, answer)
        text = f"{who} gives no token: {told}"
        if answer.status < 500 and answer.status not in (408, 429) and code not in _LATER:
            fail(_Problem.TOKEN_REFUSED, text, code=code)
        # For now: what is held is good later.
        wait = read_seconds(answer.headers.get("retry-after"))
        fail(_Problem.UNREACHABLE, text, code=code, retryable=True, retry_after=wait)

    # answers -------------------------------------------------------------------------------------

    def _document(self, url: Url, answer: Fetched) -> object:
        """The document at `url`; None where there is none."""
        if answer.error is not None:
            self._misses.append(f"{url}: {answer.error}")
        elif 300 <= answer.status < 400:
            self._odd(url, f"HTTP {answer.status}, to another origin, or once too often")
        elif not answer.ok:
            self._misses.append(f"{url}: HTTP {answer.status}")
        elif not answer.is_json:
            kind = excerpt(answer.content_type.encode() or b"no content type", 64)
            self._odd(url, f"{kind} instead of JSON")
        else:
            value = _decode(answer.body)
            if isinstance(value, dict):
                return value
            self._odd(url, "it is no JSON object")
        return None

    def _answered(self, answer: Fetched, what: str) -> object:
        """The body of an answer, decoded where that is possible."""
        if answer.error is not None:
            problem = _broken(answer) or _Problem.UNREACHABLE
            fail(problem, f"{what} brought no answer: {answer.error}", retryable=answer.error.retryable)
        return _decode(answer.body)

    def _error(self, value: object, answer: Fetched) -> tuple[str, str]:
        """The code of an error, and the error for people."""
        code = value.get("error") if isinstance(value, dict) else None
        if not isinstance(code, str) or not isinstance(value, dict):
            return "", f"HTTP {answer.status}"
        return self.told(code, value.get("error_description"))

    def told(self, code: str, description: object) -> tuple[str, str]:
        """An error that an authorization server names, as it is shown: bounded, and without secrets."""
        code = self._shown(code)
        if not isinstance(description, str) or not description:
            return code, code
        return code, f"{code} ({self._shown(description)})"

    def _shown(self, text: str) -> str:
        for secret in sorted(self._secrets, key=len, reverse=True):  # one may be a part of another
            text = text.replace(secret, "***")
        return excerpt(text[: 8 * _SHOWN].encode("utf-8", "replace"), _SHOWN)

    def hide(self, *secrets: str | None) -> None:
        """Never show these, should somebody repeat them."""
        for secret in secrets:
            if secret is not None and len(secret) >= _SHORTEST_SECRET:
                self._secrets.update((secret, quote_plus(secret), quote(secret, safe="")))

    def _odd(self, url: Url, why: str) -> None:
        self._misses.append(f"{url}: {why}")
        self._tell(PeerFault.UNUSABLE_METADATA, f"{url}: {why}: it is not used")

    def _tell(self, fault: PeerFault, detail: str) -> None:
        self.said.append(DeviationTolerated(fault, detail))

    def _tried(self) -> str:
        return f" ({'; '.join(self._misses[:8])})" if self._misses else ""


def _is_error(value: object) -> bool:
    """Whether it is an error, whatever its status says."""
    return isinstance(value, dict) and isinstance(value.get("error"), str) and "access_token" not in value


def _wants_nonce(answer: Fetched) -> bool:
    value = None if answer.ok else _decode(answer.body)
    return isinstance(value, dict) and value.get("error") == USE_NONCE


def _broken(answer: Fetched) -> AuthorizationProblem | None:
    """Why an answer says nothing of whether there is a document; None where it does."""
    error = answer.error
    if error is None:
        return _Problem.UNREACHABLE if answer.status >= 500 else None
    if isinstance(error, NetworkFailure) and error.problem is NetworkProblem.FORBIDDEN:
        return _Problem.FORBIDDEN_ADDRESS
    return _Problem.UNREACHABLE if error.fault is None else _Problem.INVALID_ANSWER


def _decode(body: bytes) -> object:
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None
