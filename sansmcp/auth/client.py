"""A client over HTTP that shows its server tokens, and comes by them when the server wants one.

`AuthorizedClient` stands between an `HttpClient` and whatever carries its exchanges. A response that wants
a token (401), or one with more rights (403), does not reach the client: its request waits until there is
one, and is made again. One attempt serves all that wait.

    client = AuthorizedClient(HttpClient(engine, url, now=clock()), OAuth(), now=clock(), …)
    client.start(clock())
    while (op := client.next_op()) is not None:
        match op:
            case StartExchange(exchange, request): ...       # to the server, as with `HttpClient`
            case StartFetch(exchange, url, request): ...     # to `url`, wherever that is
            case AbortExchange(exchange): ...
    while (event := client.next_event()) is not None:
        match event:
            case RedirectNeeded(): client.redirect_ready("http://127.0.0.1:8765/callback", clock())
            case AuthorizationUrlReady(url): ...             # to be opened; then redirect_received

Specification: 2026-07-28, basic/authorization; RFC 6750.
"""

from __future__ import annotations

import json
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable
from typing import Final

import attrs

from ..client import ClientEngine
from ..clock import ClockPair, Deadlines
from ..errors import AuthorizationFailed, AuthorizationProblem, HttpFailure, LocalProtocolError, PeerFault
from ..events import DeviationTolerated, Event
from ..http.client import HttpClient
from ..http.exchange import (
    AbortExchange,
    AuthorizedExchangeOp,
    ExchangeId,
    HttpRequest,
    StartExchange,
)
from ..http.url import Url
from ..states import ClientState
from .authorization import Authorization
from .challenge import Challenge, for_tokens, parse_challenges
from .flow import Occasion
from .keeping import Keeping
from .oauth import OAuth
from .scopes import union
from .showing import Showing
from .tokens import Tokens

MAX_TRIES: Final = 5
"""How often one request is made, whatever its server answers. Past it: it fails."""

MAX_DRAINED: Final = 64 * 1024
"""Bytes of a refusal that are read so that its connection can be used again. Past it: aborted."""

DRAIN_WAIT: Final = 5.0
"""Seconds for the same."""

INSUFFICIENT: Final = "insufficient_scope"

MAX_OPERATIONS: Final = 256
"""Methods, with the name or URI that they are about, for which it is known how often more rights were asked
for. Past it: the oldest is forgotten."""

_Problem = AuthorizationProblem


@attrs.define(eq=False, repr=False)
class _Request:
    """One request of the client, from when it was asked for until its response begins."""

    id: ExchangeId
    """By what the client knows it."""
    request: HttpRequest
    sent: ExchangeId | None = None
    """By what its carrier knows it; None while it waits."""
    serial: int = 0
    """Which token it was sent with; 0: none."""
    tries: int = 0
    refused: int = 0
    """How often the server wanted another token."""
    nonce: str | None = None
    """What was in the proof that it was sent with last."""


class AuthorizedClient:
    """`client`, with tokens. Takes the place of the client for whoever drives it.

    `clock` is one moment on both clocks, `entropy` gives random bytes. Raises LocalProtocolError when
    the client has a header ``authorization`` of its own.
    """

    def __init__(
        self,
        client: HttpClient,
        oauth: OAuth,
        *,
        now: float,
        clock: ClockPair,
        entropy: Callable[[int], bytes],
    ) -> None:
        if client.sets_authorization:
            raise LocalProtocolError("give either a header authorization or OAuth, not both")
        self.client: Final = client
        self.engine: Final[ClientEngine] = client.engine
        """Through this one calls are made; what it says is told here."""
        self.oauth: Final = oauth
        self._server: Final = client.url
        self._clock = clock
        self._entropy = entropy
        self._now = now
        self._showing = Showing(
            oauth.dpop, client.url, unix=lambda: clock.unix_at(self._now), entropy=entropy
        )
        self._last_id = 0
        self._open: dict[ExchangeId, ExchangeId] = {}
        """The client's exchanges, by what their carrier knows them."""
        self._outer: dict[ExchangeId, ExchangeId] = {}
        """The same the other way round."""
        self._requests: dict[ExchangeId, _Request] = {}
        """Those whose response has not begun, by what the client knows them."""
        self._waiting: dict[ExchangeId, _Request] = {}
        """Those that wait for a token."""
        self._draining: dict[ExchangeId, int] = {}
        """Refusals that are read to their end, and how much of each was read."""
        self._attempt: Authorization | None = None
        self._wanted = False
        """Whether the attempt goes on although nothing waits for it."""
        self._ops: deque[AuthorizedExchangeOp] = deque()
        self._events: deque[Event] = deque()
        self._timers: Deadlines[ExchangeId] = Deadlines()
        self._store: Final = Keeping(oauth.store)
        self._tokens = self._kept()
        self._serial = 1
        """Counts the tokens that there were."""
        self._proven = self._tokens is not None
        """Whether the server took the token that there is, or may have taken it earlier."""
        self._step_ups: OrderedDict[str, int] = OrderedDict()
        """How often more rights were asked for, by what they are needed for, since that succeeded."""
        self._renewal_failed = False
        """Whether that one cannot be renewed without the user."""
        self._issuer = None if self._tokens is None else self._tokens.issuer

    def __repr__(self) -> str:
        return f"<AuthorizedClient {self.url} {'with' if self._tokens else 'without'} a token>"

    # what is known -------------------------------------------------------------------------------

    @property
    def url(self) -> Url:
        """The server's address."""
        return self.client.url

    @property
    def tokens(self) -> Tokens | None:
        """What the server is shown now; None: nothing yet."""
        return self._tokens

    @property
    def attempt(self) -> Authorization | None:
        """The attempt to come by a token that is under way, or None."""
        return self._attempt

    @property
    def wants_data(self) -> bool:
        """False while reading more would exceed a limit: then stop reading."""
        return self.client.wants_data and len(self._events) < self.engine.limits.max_buffered_events

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do: the conversation has ended, and every exchange with it."""
        return self.client.finished and not (self._attempt or self._draining or self._ops)

    def stats(self) -> dict[str, int]:
        """Sizes of all tables and queues, by name; in `buffered`, bytes."""
        inner = self.client.stats()
        return {
            **inner,
            "authorized": len(self._open),
            "unanswered": len(self._requests),
            "unauthorized": len(self._waiting),
            "refusals": len(self._draining),
            "step_ups": len(self._step_ups),
            **self._store.stats(),
            "ops": inner["ops"] + len(self._ops),
            "events": inner["events"] + len(self._events),
            "timers": inner["timers"] + len(self._timers),
        }

    # pulls ---------------------------------------------------------------------------------------

    def next_op(self) -> AuthorizedExchangeOp | None:
        """The next thing to do, or None."""
        self._pump()
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else self.client.next_event()

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        attempt = None if self._attempt is None else self._attempt.next_timeout()
        times = (self.client.next_timeout(), attempt, self._timers.next())
        return min((when for when in times if when is not None), default=None)

    # verbs ---------------------------------------------------------------------------------------

    def start(self, now: float) -> None:
        """Connect. Raises LocalProtocolError when that was done before."""
        self._tick(now)
        self.client.start(self._now)

    def close(self, now: float) -> None:
        """End the conversation, as `HttpClient.close` does. Harmless twice."""
        self._tick(now)
        self._wanted = False
        self.client.close(self._now)
        self._give_up("the connection was closed")
        self._pump()

    def authorize(self, now: float) -> None:
        """Come by a token now, whether or not the server wants one; in the place of one that there is.

        Ends in `AuthorizationGranted` or `AuthorizationRefused`. Harmless while that is under way. Raises
        LocalProtocolError after the end of the connection.
        """
        if self.engine.state is ClientState.CLOSED:
            raise LocalProtocolError("authorize: the connection has ended, and nobody is asked any more")
        self._tick(now)
        self._wanted = True
        self._step_ups.clear()
        if self._attempt is None:
            self._begin(Occasion(held=self._tokens, more=self._tokens is not None))
        self._pump()

    def withdraw(self, now: float) -> None:
        """Nobody waits any more for what `authorize` asked for: the attempt ends, unless requests wait too.

        Harmless when there is none.
        """
        self._tick(now)
        self._wanted = False
        self._pump()

    def redirect_ready(self, uri: str, now: float) -> None:
        """The browser may be sent to `uri`, as `RedirectNeeded` asks. Harmless when nobody asked.

        Raises LocalProtocolError for an address at which no browser may arrive.
        """
        self._tick(now)
        if self._attempt is not None:
            self._attempt.redirect_ready(uri, self._now)
        self._pump()

    def redirect_received(self, url: str, now: float) -> bool:
        """The browser has arrived at `url`. False where that is not what is waited for: wait on."""
        self._tick(now)
        taken = self._attempt is not None and self._attempt.redirect_received(url, self._now)
        self._pump()
        return taken

    def decline(
        self,
        reason: str,
        now: float,
        problem: AuthorizationProblem = AuthorizationProblem.NOT_ASKED,
    ) -> None:
        """The user is not asked, or says no: what waits for a token fails. Harmless when nothing waits."""
        self._tick(now)
        if self._attempt is not None:
            self._attempt.give_up(AuthorizationFailed(reason, problem), self._now)
        self._pump()

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._tick(now)
        self.client.handle_timeout(self._now)
        if self._attempt is not None:
            self._attempt.handle_timeout(self._now)
        for exchange, _ in list(self._timers.expired(self._now)):
            del self._draining[exchange]
            self._ops.append(AbortExchange(exchange))
        self._pump()

    # inputs --------------------------------------------------------------------------------------

    def response_started(
        self, exchange: ExchangeId, status: int, headers: Iterable[tuple[str, str]], now: float
    ) -> None:
        """The head of a response came. Its body follows in pieces, then its end."""
        self._tick(now)
        if self._attempt is not None and self._attempt.has(exchange):
            self._attempt.response_started(exchange, status, headers, self._now)
        elif (inner := self._open.get(exchange)) is not None:
            headers = list(headers)
            request = self._requests.get(inner)
            if request is None or status < 200 or not self._refused(request, status, headers):
                if status >= 200:
                    self._requests.pop(inner, None)
                self.client.response_started(inner, status, headers, self._now)
        self._pump()

    def response_data(self, exchange: ExchangeId, data: bytes, now: float) -> None:
        """A piece of a response's body came, however it was cut."""
        self._tick(now)
        if (inner := self._open.get(exchange)) is not None:
            self.client.response_data(inner, data, self._now)
        elif exchange in self._draining:
            self._draining[exchange] += len(data)
            if self._draining[exchange] > MAX_DRAINED:
                self._drained(exchange)
                self._ops.append(AbortExchange(exchange))
        elif self._attempt is not None:
            self._attempt.response_data(exchange, data, self._now)
        self._pump()

    def response_ended(self, exchange: ExchangeId, now: float) -> None:
        """A response is complete."""
        self._tick(now)
        if (inner := self._close(exchange)) is not None:
            self._requests.pop(inner, None)
            self.client.response_ended(inner, self._now)
        elif exchange in self._draining:
            self._drained(exchange)
        elif self._attempt is not None:
            self._attempt.response_ended(exchange, self._now)
        self._pump()

    def exchange_failed(self, exchange: ExchangeId, error: str | HttpFailure, now: float) -> None:
        """An exchange broke: the connection could not be made, or was lost before the end."""
        self._tick(now)
        if (inner := self._close(exchange)) is not None:
            self._requests.pop(inner, None)
            self.client.exchange_failed(inner, error, self._now)
        elif exchange in self._draining:
            self._drained(exchange)
        elif self._attempt is not None:
            self._attempt.exchange_failed(exchange, error, self._now)
        self._pump()

    def _drained(self, exchange: ExchangeId) -> None:
        del self._draining[exchange]
        self._timers.clear(exchange)

    # requests out --------------------------------------------------------------------------------

    def _pump(self) -> None:
        """Take what the client and the attempt want."""
        self._tick(self.engine.now)  # calls are made there, perhaps long after the last input
        while True:
            if (op := self.client.next_op()) is not None:
                match op:
                    case StartExchange(exchange=exchange, request=request):
                        self._requests[exchange] = request_ = _Request(exchange, request)
                        self._send_or_wait(request_)
                    case AbortExchange(exchange=exchange):
                        self._abort(exchange)
                continue
            attempt = self._attempt
            if attempt is None:
                return
            while (wanted := attempt.next_op()) is not None:
                self._ops.append(wanted)
            while (event := attempt.next_event()) is not None:
                self._events.append(event)
            if not attempt.over:
                if self._waiting or self._wanted:
                    return
                self._give_up("nobody waits for it any more")
                continue
            self._attempt = None
            self._ended(attempt)

    def _send_or_wait(self, request: _Request) -> None:
        """Send a request, or keep it until there is a token to send with it."""
        tokens = self._tokens
        goodbye = request.request.method == "DELETE"
        attempt = self._attempt
        if goodbye or (attempt is not None and attempt.occasion.more):
            self._send(request)  # with what there is
        elif attempt is not None:
            self._wait(request)
        elif tokens is not None and self._renewable(tokens):
            self._want(request, Occasion(held=tokens, quietly=True))
        else:
            self._send(request)

    def _renewable(self, tokens: Tokens) -> bool:
        stale = tokens.stale(self._clock.unix_at(self._now))
        return stale and tokens.refresh_token is not None and not self._renewal_failed

    def _send(self, request: _Request) -> None:
        exchange = self._new_id()
        request.sent = exchange
        request.tries += 1
        request.serial = 0
        asked = request.request
        if self._tokens is not None:
            request.serial = self._serial
            request.nonce = self._showing.nonce
            shown = self._showing.headers(self._tokens, asked.method)
            asked = attrs.evolve(asked, headers=[*asked.headers, *shown])
        self._open[exchange] = request.id
        self._outer[request.id] = exchange
        self._ops.append(StartExchange(exchange, asked))

    def _wait(self, request: _Request) -> None:
        request.sent = None
        self._waiting[request.id] = request
        self.client.exchange_held(request.id, self._now)

    def _abort(self, inner: ExchangeId) -> None:
        """The client does not want an exchange any more."""
        self._waiting.pop(inner, None)
        self._requests.pop(inner, None)
        exchange = self._outer.get(inner)
        if exchange is not None:
            self._close(exchange)
            self._ops.append(AbortExchange(exchange))

    def _close(self, exchange: ExchangeId) -> ExchangeId | None:
        """Nothing more comes of `exchange` for the client, who knows it by what is returned."""
        inner = self._open.pop(exchange, None)
        if inner is not None:
            del self._outer[inner]
        return inner

    def _new_id(self) -> ExchangeId:
        self._last_id += 1
        return self._last_id

    # refusals ------------------------------------------------------------------------------------

    def _refused(self, request: _Request, status: int, headers: list[tuple[str, str]]) -> bool:
        """Whether a response is kept from the client, since its request is made again or has failed."""
        current = request.serial == self._serial and request.serial > 0
        self._showing.take_nonce(headers)
        if status not in (401, 403):
            self._proven |= current
            if self._step_ups and status < 300:
                self._step_ups.pop(_operation(request.request), None)
            return False
        values = [value for name, value in headers if name.lower() == "www-authenticate"]
        challenges, odd = parse_challenges(values)
        if odd:
            detail = "a WWW-Authenticate header is malformed: what can be read of it is used"
            self._events.append(DeviationTolerated(PeerFault.INVALID_CHALLENGE, detail))
        challenge = for_tokens(challenges if status == 401 else _insufficient(challenges) or challenges)
        if challenges and challenge is None:
            return False  # it wants something else to be shown
        if request.request.method == "DELETE" or self.engine.state is ClientState.CLOSED:
            return False  # nobody is asked for the sake of a farewell
        if status == 401:
            shown = request.serial > 0 and request.tries < MAX_TRIES
            if shown and self._showing.is_asked_for(challenges, request.nonce):
                self._drop(request)
                self._send_or_wait(request)
                return True
            return self._unauthorized(request, challenge, current)
        self._proven |= current
        if challenge is None or challenge.parameters.get("error") != INSUFFICIENT:
            return False
        return self._insufficient(request, challenge, current)

    def _unauthorized(self, request: _Request, challenge: Challenge | None, current: bool) -> bool:
        request.refused += 1
        tokens = self._tokens
        stale = tokens is not None and tokens.stale(self._clock.unix_at(self._now))
        fresh = current and (request.refused > 1 or not (self._proven or stale))
        if fresh or request.tries >= MAX_TRIES:
            text = "the server does not take the token that was made for it just now: ask who runs it"
            self._reject(request, AuthorizationFailed(text, _Problem.TOKEN_REJECTED, status=401))
            return True
        self._drop(request)
        if current or tokens is None:
            self._want(request, Occasion(challenge=challenge, held=tokens))
        else:
            self._send_or_wait(request)  # there is another token by now
        return True

    def _insufficient(self, request: _Request, challenge: Challenge, current: bool) -> bool:
        tokens = self._tokens
        if tokens is not None and not current and request.tries < MAX_TRIES:
            self._drop(request)
            self._send_or_wait(request)
            return True
        asked = set() if tokens is None else {*tokens.requested, *tokens.scopes}
        more = set(union(challenge.scopes or ())) - asked
        wanted = _operation(request.request)
        steps = self._step_ups.get(wanted, 0)
        tried_enough = steps >= self.oauth.step_ups or request.tries >= MAX_TRIES
        if not more or tried_enough:
            named = ", ".join(union(challenge.scopes or ())[:8]) or "some that it does not name"
            why = "were asked for already" if not more else "were asked for too often"
            text = f"the server wants more rights ({named}), which {why}: allow them, or use another account"
            self._reject(request, AuthorizationFailed(text, _Problem.INSUFFICIENT_SCOPE, status=403))
            return True
        if self._attempt is None:
            self._step_ups[wanted] = steps + 1
            self._step_ups.move_to_end(wanted)
            if len(self._step_ups) > MAX_OPERATIONS:
                self._step_ups.popitem(last=False)
        self._drop(request)
        self._want(request, Occasion(challenge=challenge, held=tokens, more=True))
        return True

    def _want(self, request: _Request, occasion: Occasion) -> None:
        """Have `request` wait for a token, one for all that wait."""
        if self._attempt is None:
            self._begin(occasion)
        self._wait(request)

    def _drop(self, request: _Request) -> None:
        """Nothing in the response to `request` is wanted."""
        assert request.sent is not None
        self._close(request.sent)
        self._draining[request.sent] = 0
        self._timers.set(request.sent, self._now + DRAIN_WAIT, "drain")

    def _reject(self, request: _Request, error: AuthorizationFailed) -> None:
        self._drop(request)
        del self._requests[request.id]
        self.client.exchange_failed(request.id, error, self._now)

    # attempts ------------------------------------------------------------------------------------

    def _begin(self, occasion: Occasion) -> None:
        self._attempt = Authorization(
            self.oauth,
            self._server,
            occasion,
            store=self._store,
            now=self._now,
            clock=self._clock,
            entropy=self._entropy,
            new_id=self._new_id,
            issuer=self._issuer,
        )

    def _give_up(self, why: str) -> None:
        if self._attempt is not None:
            self._attempt.give_up(AuthorizationFailed(why, _Problem.CANCELLED), self._now)

    def _ended(self, attempt: Authorization) -> None:
        """There is a token, or there is none."""
        self._wanted = False
        waiting, self._waiting = list(self._waiting.values()), {}
        tokens, error = attempt.tokens, attempt.error
        if tokens is not None:
            self._take(tokens)
            if not attempt.flow.refreshed:
                self.engine.identity_changed()
            if attempt.flow.taken:
                self._proven = True
                for request in waiting:
                    request.refused = 0  # what the server sees now may be old as well
        elif attempt.occasion.quietly:
            # The server says what it wants to a request with what there is, or without.
            self._renewal_failed = True
            for request in waiting:
                request.refused = 0  # nothing new was shown
            self._tokens = self._kept()
        if tokens is None and error is not None and not attempt.occasion.quietly:
            for request in waiting:
                del self._requests[request.id]
                self.client.exchange_failed(request.id, error, self._now)
            return
        for request in waiting:
            self.client.exchange_released(request.id, self._now)
            self._send(request)

    def _kept(self) -> Tokens | None:
        """What the store has, if the server may be shown it."""
        tokens = self._store.tokens(self._server.text)
        self._events += self._store.said
        self._store.said.clear()
        if tokens is None or not self.oauth.addresses.is_safe(self._server):
            return None
        if not self._showing.can_show(tokens):
            return None
        self._hide(tokens)
        return tokens

    def _take(self, tokens: Tokens) -> None:
        self._tokens = tokens
        self._issuer = tokens.issuer
        self._serial += 1
        self._proven = self._renewal_failed = False
        self._hide(tokens)

    def _hide(self, tokens: Tokens) -> None:
        self.client.keep_secret(tokens.access_token, tokens.refresh_token or "")

    def _tick(self, now: float) -> None:
        self._now = max(self._now, now)


def _operation(request: HttpRequest) -> str:
    """What a request is about: its method, and the name or URI in its message, if it has one."""
    try:
        message = json.loads(request.body)
        params = message.get("params") or {}
        about = [message.get("method"), params.get("name", params.get("uri"))]
    except (ValueError, RecursionError, AttributeError):
        about = [request.method]
    return json.dumps(about)


def _insufficient(challenges: Iterable[Challenge]) -> list[Challenge]:
    """Those that want more rights."""
    return [c for c in challenges if c.parameters.get("error") == INSUFFICIENT]
