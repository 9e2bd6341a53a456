"""The machine that takes the steps of a flow: exchanges out, responses in, and what the user brings.

After every input or verb, in this order: `next_op` until None, `next_event` until None, then re-arm the
timer for `next_timeout`. It ends once, with `tokens` or `error`.

Specification: 2026-07-28, basic/authorization; OAuth 2.1, section 7.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl, urlsplit

from ..clock import ClockPair, Deadlines
from ..errors import AuthorizationFailed, AuthorizationProblem, HttpFailure, PeerFault
from ..events import (
    AuthorizationGranted,
    AuthorizationRefused,
    AuthorizationUrlReady,
    Event,
    Harmless,
    MessageIgnored,
    RedirectNeeded,
)
from ..http.exchange import (
    AbortExchange,
    AuthorizedExchangeOp,
    ExchangeId,
    HttpRequest,
    StartFetch,
    field_map,
    media_type,
)
from ..http.url import Url
from ..states import AUTHORIZATION, AuthorizationInput, AuthorizationState, Machine
from .flow import Flow, Occasion
from .keeping import Keeping
from .registration import check_redirect
from .steps import AskRedirect, AskUser, Fetch, Fetched, Returned
from .tokens import Tokens

if TYPE_CHECKING:
    from .oauth import OAuth

FETCH_WAIT: Final = 15.0
"""Seconds for one request to be answered whole. Past it: it counts as not answered."""

REDIRECT_WAIT: Final = 10.0
"""Seconds for the application to say where the browser may arrive."""

MAX_DOCUMENT: Final = 256 * 1024
"""Largest body that is read. Documents of this kind have some KiB. Past it: it is given up."""

MAX_REDIRECTS: Final = 3
"""Followed in a row, within one origin, and only for documents."""

MAX_RETURNED: Final = 16 * 1024
"""Characters of the address that the browser arrives at. Past it: it is not looked at."""

_MAX_FIELDS: Final = 64
_FOLLOWED: Final = (301, 302, 303, 307, 308)
_KEY: Final = "step"
_Problem = AuthorizationProblem


class Authorization:
    """One attempt to come by a token for `server`.

    `occasion` says why. `new_id` names exchanges. `issuer` is the authorization server that a client made
    known beforehand belongs to, where that is settled.
    """

    def __init__(
        self,
        oauth: OAuth,
        server: Url,
        occasion: Occasion,
        *,
        store: Keeping,
        now: float,
        clock: ClockPair,
        entropy: Callable[[int], bytes],
        new_id: Callable[[], ExchangeId],
        issuer: str | None = None,
    ) -> None:
        self._now = now
        self.flow: Final = Flow(
            oauth,
            server,
            occasion,
            store=store,
            entropy=entropy,
            unix=lambda: clock.unix_at(self._now),
            issuer=issuer,
        )
        self.occasion: Final = occasion
        self.tokens: Tokens | None = None
        self.error: AuthorizationFailed | None = None
        self._oauth = oauth
        self._new_id = new_id
        self._machine = Machine(AUTHORIZATION)
        self._steps = self.flow.run()
        self._step: Fetch | AskRedirect | AskUser | None = None
        self._exchange: ExchangeId | None = None
        self._url: Url | None = None
        """Where the fetch is now: it may have been redirected."""
        self._redirects = 0
        self._head: tuple[int, dict[str, str]] | None = None
        self._body = bytearray()
        self._timers: Deadlines[str] = Deadlines()
        self._ops: deque[AuthorizedExchangeOp] = deque()
        self._events: deque[Event] = deque()
        self._advance(None)

    def __repr__(self) -> str:
        return f"<Authorization for {self.flow.server} {self.state.name.lower()}>"

    # what is known -------------------------------------------------------------------------------

    @property
    def state(self) -> AuthorizationState:
        """Where it stands: see the table `states.AUTHORIZATION`."""
        return self._machine.state

    @property
    def over(self) -> bool:
        """Whether it has ended, in `tokens` or in `error`."""
        return self.state in (AuthorizationState.GRANTED, AuthorizationState.FAILED)

    @property
    def asks_user(self) -> bool:
        """Whether it waits for somebody rather than for a server."""
        return isinstance(self._step, (AskRedirect, AskUser))

    def next_op(self) -> AuthorizedExchangeOp | None:
        """The next thing to do, or None."""
        return self._ops.popleft() if self._ops else None

    def next_event(self) -> Event | None:
        """The next event for the application, or None."""
        return self._events.popleft() if self._events else None

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        return self._timers.next()

    def has(self, exchange: ExchangeId) -> bool:
        """Whether `exchange` is the one under way."""
        return exchange == self._exchange

    # the user ------------------------------------------------------------------------------------

    def redirect_ready(self, uri: str, now: float) -> None:
        """The browser may be sent to `uri`. Harmless when nobody asked for it.

        Raises LocalProtocolError for an address at which no browser may arrive.
        """
        self._tick(now)
        if isinstance(self._step, AskRedirect):
            check_redirect(uri)
            self._advance(uri)

    def redirect_received(self, url: str, now: float) -> bool:
        """The browser has arrived at `url`, or at what is behind its last slash.

        False where that is not what is waited for: then nothing has changed, and it is told by an event.
        """
        self._tick(now)
        step = self._step
        if not isinstance(step, AskUser):
            self._events.append(MessageIgnored(Harmless.LATE_REDIRECT, "nobody waits for a browser"))
            return False
        returned = _read_returned(url)
        if returned is None or returned.one("state") != step.state:
            told = "an address at which the browser arrived does not belong to this attempt"
            self._events.append(MessageIgnored(PeerFault.FOREIGN_REDIRECT, told))
            return False
        self._advance(returned)
        return True

    def give_up(self, error: AuthorizationFailed, now: float) -> None:
        """End it with `error`. Harmless when it has ended."""
        self._tick(now)
        if not self.over:
            self._steps.close()
            self._drop_exchange(abort=True)
            self._end(error)

    # exchanges -----------------------------------------------------------------------------------

    def response_started(
        self, exchange: ExchangeId, status: int, headers: Iterable[tuple[str, str]], now: float
    ) -> None:
        """The head of a response came."""
        self._tick(now)
        if not self.has(exchange) or status < 200:
            return
        fields = {name.lower(): value for name, value in field_map(headers).items()}
        if status in _FOLLOWED and self._redirect(fields.get("location")):
            return
        self._head = status, fields

    def response_data(self, exchange: ExchangeId, data: bytes | bytearray, now: float) -> None:
        """A piece of a body came."""
        self._tick(now)
        if not self.has(exchange):
            return
        if len(self._body) + len(data) > MAX_DOCUMENT:
            text = f"the answer is larger than {MAX_DOCUMENT} bytes"
            self._failed(HttpFailure(text, fault=PeerFault.BODY_TOO_LARGE), abort=True)
        else:
            self._body += data

    def response_ended(self, exchange: ExchangeId, now: float) -> None:
        """A response is complete."""
        self._tick(now)
        if not self.has(exchange):
            return
        if self._head is None:
            self._failed(HttpFailure("it ended without a response", retryable=True))
            return
        (status, headers), body = self._head, bytes(self._body)
        kind = media_type(headers.get("content-type"))
        if headers.get("content-encoding", "identity").lower() != "identity":
            kind, body = "compressed content", b""
        self._drop_exchange()
        self._advance(Fetched(status=status, content_type=kind, headers=headers, body=body))

    def exchange_failed(self, exchange: ExchangeId, error: str | HttpFailure, now: float) -> None:
        """An exchange broke."""
        self._tick(now)
        if self.has(exchange):
            self._failed(error if isinstance(error, HttpFailure) else HttpFailure(error, retryable=True))

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        self._tick(now)
        for _, reason in list(self._timers.expired(self._now)):
            self._on_timeout(reason)

    def _on_timeout(self, reason: str) -> None:
        step = self._step
        if isinstance(step, Fetch):
            self._failed(HttpFailure(f"no answer within {FETCH_WAIT:g} s", retryable=True), abort=True)
            return
        text = "nobody said where the browser may arrive"
        if isinstance(step, AskUser):
            text = f"the browser did not come back within {self._oauth.user_timeout:g} s: try again"
            # Perhaps the authorization server has forgotten this client: that it tells only the user.
            self.flow.forget_client()
        self.give_up(AuthorizationFailed(text, _Problem.TIMEOUT), self._now)

    # inside --------------------------------------------------------------------------------------

    def _advance(self, answer: object) -> None:
        """Give the flow what it waited for, and begin what it wants next."""
        self._timers.clear(_KEY)
        self._step = None
        try:
            step = self._steps.send(answer)
        except StopIteration as done:
            self.tokens = done.value
            self._take_said()
            self._machine.fire(AuthorizationInput.GRANT)
            granted = AuthorizationGranted(done.value.issuer, done.value.scopes, self.flow.refreshed)
            self._events.append(granted)
            return
        except AuthorizationFailed as error:
            self._end(error)
            return
        self._take_said()
        self._step = step
        match step:
            case Fetch():
                self._redirects = 0
                self._machine.fire(step.step)
                self._fetch(step, step.url)
            case AskRedirect(preferred=preferred):
                self._machine.fire(AuthorizationInput.ASK_REDIRECT)
                self._timers.set(_KEY, self._now + REDIRECT_WAIT, "redirect")
                self._events.append(RedirectNeeded(preferred))
            case AskUser():
                self._machine.fire(AuthorizationInput.ASK_USER)
                self._timers.set(_KEY, self._now + self._oauth.user_timeout, "user")
                self._events.append(
                    AuthorizationUrlReady(step.url, step.redirect_uri, step.issuer, step.scopes)
                )

    def _take_said(self) -> None:
        for said in (self.flow.said, self.flow.store.said):
            self._events += said
            said.clear()

    def _end(self, error: AuthorizationFailed) -> None:
        self._timers.clear_all()
        self._step = None
        self.error = error
        self._take_said()
        self._machine.fire(AuthorizationInput.FAIL)
        self._events.append(AuthorizationRefused(error))

    def _fetch(self, step: Fetch, url: Url) -> None:
        self._exchange, self._url = self._new_id(), url
        request = HttpRequest(step.method, url.target, step.headers, step.body)
        guarded = step.guarded and not self._oauth.addresses.private
        self._ops.append(StartFetch(self._exchange, url, request, guarded))
        if self._timers.when(_KEY) is None:  # else it goes on, at another address
            self._timers.set(_KEY, self._now + FETCH_WAIT, "fetch")

    def _redirect(self, location: str | None) -> bool:
        """Follow a redirect, if it may be; the deadline stays."""
        step, url = self._step, self._url
        if not isinstance(step, Fetch) or step.method != "GET" or url is None or location is None:
            return False
        try:
            target = url.join(location)
        except ValueError:
            return False
        if target.origin != url.origin or self._redirects >= MAX_REDIRECTS:
            return False
        self._redirects += 1
        self._drop_exchange(abort=True)
        self._fetch(step, target)
        return True

    def _failed(self, error: HttpFailure, *, abort: bool = False) -> None:
        self._drop_exchange(abort=abort)
        self._advance(Fetched(error=error))

    def _drop_exchange(self, *, abort: bool = False) -> None:
        if self._exchange is not None and abort:
            self._ops.append(AbortExchange(self._exchange))
        self._exchange = self._head = None
        self._body = bytearray()

    def _tick(self, now: float) -> None:
        self._now = max(self._now, now)


def _read_returned(url: str) -> Returned | None:
    """What an address brings back in its query; None for what is no address."""
    if len(url) > MAX_RETURNED:
        return None
    try:
        query = urlsplit(url).query
        pairs = parse_qsl(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:
        return None
    found: dict[str, tuple[str, ...]] = {}
    for name, value in pairs:
        found[name] = (*found.get(name, ()), value)
    return Returned(found)
