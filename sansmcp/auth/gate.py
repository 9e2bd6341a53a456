"""Holds requests until it is known who makes them: the state behind a `ResourceServer`.

A request without a token is refused by its head. One with a token waits: `VerifyToken` asks whoever
drives the server to find out what the token says, and `token_verified` tells. Requests that bring the
same token wait for the same verdict, which is then kept for a while, under a digest: no token is kept.

What a request brings, and what comes of it:

==============================================  ================================================
no token, or what is none of OAuth              401, without an error: the client is told what to do
a malformed token, or more than one             400, ``invalid_request``
a token that is not valid, has ended or was     401, ``invalid_token``
made for another server
a token that is bound to a key, without proof   401, ``invalid_token``; ``invalid_dpop_proof``
a token without the scopes that are needed      403, ``insufficient_scope``
too many that wait; no verdict; a verifier or   503
a rule that raises
a stream that lasts longer than its token       the stream ends; the client may come back
==============================================  ================================================

Specification: 2026-07-28, basic/authorization (access token usage, error handling); RFC 6750.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import attrs

from ..clock import ClockPair, Deadlines
from ..errors import PeerFault
from ..events import AccessUndecided, LimitHit, VerifyToken
from ..http.exchange import ExchangeId, HttpRequest
from ..http.guard import Refusal
from ..http.responses import RETRY_AFTER, Exchange, Responses
from ..http.screen import path_of
from ..limits import MIB
from ..states import ExchangeState
from .principal import Principal
from .resource_server import ResourceServer

if TYPE_CHECKING:
    from ..wire.jsoncodec import JsonValue

MAX_HELD: Final = 64 * MIB
"""Bytes of bodies that wait for a verdict: of clients that nobody knows yet. Past it: as with
`ResourceServer.max_waiting`."""

_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_SECRET: Final = frozenset({"authorization", "dpop"})
"""Headers that nobody needs any more once it is known who asks."""

_NONCE: Final = "dpop-nonce"
_TIMEOUT: Final = "timeout"
_FAULTS: Final = {400: PeerFault.INVALID_CREDENTIALS, 401: PeerFault.UNAUTHORIZED}
"""What it tells of a client that its token was refused with a status."""


@attrs.frozen(repr=False)
class Credentials:
    """What a request shows."""

    token: str
    proof: str | None
    """None for a bearer token."""

    @property
    def digest(self) -> bytes:
        """Names the token where it must not be kept."""
        return sha256(self.token.encode("ascii")).digest()


@attrs.frozen
class _Verdict:
    principal: Principal = attrs.field(repr=False)
    until: float
    """Absolute time."""


@attrs.define(eq=False, repr=False)
class _Held:
    """A request that waits."""

    exchange: Exchange
    request: HttpRequest
    credentials: Credentials


@attrs.define(eq=False, repr=False)
class _Question:
    """A token that is being verified, and who waits for it."""

    digest: bytes
    held: dict[ExchangeId, _Held] = attrs.field(factory=dict)


class Gate:
    """Who is let into one server. What is to be sent and told goes to `responses`."""

    def __init__(self, rules: ResourceServer, responses: Responses) -> None:
        self.rules: Final = rules
        self.paths: Final = frozenset(rules.metadata_paths)
        """Where the metadata is: everybody may read it."""
        self._out: Final = responses
        self._document: Final = rules.metadata_json()
        self._verdicts: Final[dict[bytes, _Verdict]] = {}
        self._questions: Final[dict[ExchangeId, _Question]] = {}
        """By the exchange that asked first."""
        self._asked: Final[dict[bytes, ExchangeId]] = {}
        self._held: Final[dict[ExchangeId, ExchangeId]] = {}
        """For whose question each exchange waits."""
        self._bytes = 0
        """How large the bodies of those are."""
        self._late: Final[Deadlines[ExchangeId]] = Deadlines()
        self._ends: Final[Deadlines[Exchange]] = Deadlines()
        self.deadlines: Final = (self._late, self._ends)
        """For verdicts, and for the streams that end with their tokens."""
        self._clock = ClockPair(0.0, 0.0)
        """As it was told last."""

    def __contains__(self, id: Hashable) -> bool:
        return id in self._held

    def stats(self) -> dict[str, int]:
        """Sizes of all tables."""
        return {
            "held_requests": len(self._held),
            "held_bytes": self._bytes,
            "token_questions": len(self._questions),
            "token_verdicts": len(self._verdicts),
            "token_timers": len(self._late) + len(self._ends),
        }

    # requests ------------------------------------------------------------------------------------

    def refusal(self, request: HttpRequest, fields: Mapping[str, str]) -> Refusal | None:
        """Say why a request is refused by its head alone, or None. `fields` are its headers by name."""
        if path_of(request.target) in self.paths:
            return None
        found = self._credentials(fields)
        return found if isinstance(found, Refusal) else None

    def admits(self, exchange: Exchange, request: HttpRequest) -> bool:
        """Whether a request can be carried out now. If not, it was answered, or waits for a verdict."""
        if path_of(request.target) in self.paths:
            self._out.json(exchange, 200, self._document)
            return False
        found = self._credentials(exchange.fields)
        if isinstance(found, Refusal):
            self.turn_away(exchange, found)
            return False
        held, now = _Held(exchange, request, found), self._out.now
        verdict = self._verdicts.get(found.digest)
        if verdict is not None and verdict.until > now:
            return self._judge(held, verdict.principal)
        self._ask(held)
        return False

    def permits(self, exchange: Exchange, value: JsonValue) -> bool:
        """Whether who asks may send these messages. If not, the request was refused."""
        principal, rules = exchange.principal, self.rules
        if rules.scopes_for is None or principal is None:
            return True
        members = value if isinstance(value, list) else [value]
        try:
            wanted = (s for m in members if isinstance(m, dict) for s in rules.scopes_of(m))
            needed = dict.fromkeys((*rules.scopes, *wanted))
        except Exception as error:
            # The application's rule, and a message that it did not expect: no reason to end for everybody.
            self._undecided(exchange, f"scopes_for raised {type(error).__name__}")
            return False
        return self._has(exchange, principal, tuple(needed))

    def leave(self, id: ExchangeId) -> bool:
        """The client of a held request is gone. False if none is held."""
        asked = self._held.pop(id, None)
        if asked is None:
            return False
        self._bytes -= len(self._questions[asked].held.pop(id).request.body)
        return True

    # streams -------------------------------------------------------------------------------------

    def lasts(self, exchange: Exchange) -> None:
        """`exchange` is a stream that is there to last, if it was begun: no longer than its token."""
        principal, now, ends = exchange.principal, self._out.now, self._ends
        if principal is None or principal.expires_at is None or exchange.phase is not ExchangeState.STREAMING:
            return
        if len(ends) > 2 * len(self._out):
            over = [e for e in ends if e.phase is ExchangeState.ENDED]
            for ended in over:
                ends.clear(ended)
        ends.set(exchange, now + (principal.expires_at - self._clock.unix_at(now)), "token")

    def outlived(self) -> Iterator[Exchange]:
        """Each such stream that is still open and whose token has ended."""
        for exchange, _ in list(self._ends.expired(self._out.now)):
            if exchange.phase is ExchangeState.STREAMING:
                yield exchange

    # verdicts ------------------------------------------------------------------------------------

    def token_verified(
        self, id: ExchangeId, principal: Principal | None, clock: ClockPair
    ) -> list[tuple[Exchange, HttpRequest]]:
        """Take the verdict that `VerifyToken` asked for; return what can be carried out by it.

        Harmless for a question that is not open any more.
        """
        verdict: object = principal  # of the application's verifier
        if verdict is not None and not isinstance(verdict, Principal):
            told = f"the verifier gave {type(verdict).__name__}, which is neither a Principal nor None"
            self.verification_failed(id, told)
            return []
        question = self._close(id)
        if question is None:
            return []
        now, rules = self._out.now, self.rules
        unix = clock.unix_at(now)
        self._clock = clock
        self._verdicts.pop(question.digest, None)
        problem = "the token is not valid" if principal is None else rules.problem(principal, unix)
        if principal is not None and problem is None:
            until = now + rules.remember
            if principal.expires_at is not None:
                until = min(until, now + (principal.expires_at - unix))
            self._remember(question.digest, _Verdict(principal, until))
        admitted = []
        for held in question.held.values():
            if principal is None or problem is not None:
                self.turn_away(held.exchange, self._invalid(problem or "", held))
            elif self._judge(held, principal):
                admitted.append((held.exchange, held.request))
        return admitted

    def verification_failed(self, id: ExchangeId, detail: str) -> None:
        """Nobody could find out what the token says. Harmless for a question that is not open any more."""
        question = self._close(id)
        if question is None:
            return
        for held in question.held.values():
            self._undecided(held.exchange, detail)

    def handle_timeout(self) -> None:
        """Give up verdicts that do not come."""
        for id, _ in list(self._late.expired(self._out.now)):
            self.verification_failed(id, f"no verdict about a token within {self.rules.timeout:g} s")

    def close(self) -> None:
        """Answer everything that waits."""
        for id in list(self._questions):
            question = self._close(id)
            for held in [] if question is None else question.held.values():
                self._out.plain(held.exchange, 503, "the server ends")

    # how it is decided ---------------------------------------------------------------------------

    def _credentials(self, fields: Mapping[str, str]) -> Credentials | Refusal:
        rules = self.rules
        scheme, _, token = fields.get("authorization", "").partition(" ")
        bound = scheme.lower() == "dpop" and rules.proofs is not None
        if not bound and (scheme.lower() != "bearer" or rules.proofs_only):
            return Refusal(401, "a token is needed", rules.challenge())
        token = token.strip(" ")
        if _TOKEN.fullmatch(token) is None:
            text = "the token is malformed, or there is more than one"
            told = rules.challenge(error="invalid_request", description=text, bound=bound)
            return Refusal(400, text, told)
        return Credentials(token, fields.get("dpop", "") if bound else None)

    def _judge(self, held: _Held, principal: Principal) -> bool:
        """Whether a request with a valid token can be carried out. If not, it was refused."""
        exchange = held.exchange
        refusal = self._unproven(held, principal)
        if refusal is not None:
            self.turn_away(exchange, refusal)
            return False
        exchange.principal = principal
        # What a handler does not see, it cannot pass on to somebody else.
        exchange.headers = tuple((n, v) for n, v in exchange.headers if n not in _SECRET)
        for name in _SECRET:
            exchange.fields.pop(name, None)
        if self.rules.scopes_for is not None and exchange.method == "POST":
            return True  # `permits` tells all that the request needs at once
        return self._has(exchange, principal, self.rules.scopes)

    def _unproven(self, held: _Held, principal: Principal) -> Refusal | None:
        """Say why the token may be somebody else's; None: it is not, as far as can be told."""
        proof, proofs, unix = held.credentials.proof, self.rules.proofs, self._clock.unix_at(self._out.now)
        if principal.key is None:
            return None if proof is None else self._invalid("the token is bound to no key", held)
        if proof is None or proofs is None:
            return self._invalid("the token is bound to a key, and there is no proof of it", held)
        problem = proofs.check(
            proof,
            method=held.exchange.method,
            url=self.rules.resource,
            token=held.credentials.token,
            key=principal.key,
            unix=unix,
        )
        if problem is None:
            return None
        refusal, nonce = self._invalid(problem.text, held, problem.error), proofs.nonce(unix)
        if nonce is None:
            return refusal
        return attrs.evolve(refusal, headers=(*refusal.headers, (_NONCE, nonce)))

    def _has(self, exchange: Exchange, principal: Principal, needed: tuple[str, ...]) -> bool:
        rules = self.rules
        missing = rules.missing(principal, needed)
        if not missing:
            return True
        text = f"the token lacks: {' '.join(missing)}"
        headers = rules.challenge(error="insufficient_scope", description=text, scopes=needed)
        self._out.refuse(exchange, 403, PeerFault.INSUFFICIENT_SCOPE, text, headers)
        return False

    def _undecided(self, exchange: Exchange, detail: str) -> None:
        self._out.plain(exchange, 503, "it cannot be decided who may do this", RETRY_AFTER)
        self._out.events.append(AccessUndecided(f"{exchange!r}: {detail}"))

    def _invalid(self, text: str, held: _Held, error: str = "invalid_token") -> Refusal:
        bound = held.credentials.proof is not None
        return Refusal(401, text, self.rules.challenge(error=error, description=text, bound=bound))

    def turn_away(self, exchange: Exchange, refusal: Refusal) -> None:
        """Answer a request with a refusal of this gate."""
        self._out.refuse(exchange, refusal.status, _FAULTS[refusal.status], refusal.reason, refusal.headers)

    # tables --------------------------------------------------------------------------------------

    def _ask(self, held: _Held) -> None:
        exchange, digest, out = held.exchange, held.credentials.digest, self._out
        waiting = max(len(self._held), len(self._questions))  # whoever left asked nevertheless
        size = len(held.request.body)
        if waiting >= self.rules.max_waiting or self._bytes + size > MAX_HELD:
            out.plain(exchange, 503, "too many requests wait", RETRY_AFTER)
            detail = (
                f"a request was answered 503: {waiting}, with {self._bytes} bytes, wait for a verdict "
                "about their tokens"
            )
            out.events.append(LimitHit("max_waiting", detail))
            return
        first = self._asked.get(digest)
        if first is None:
            first = self._asked[digest] = exchange.id
            self._questions[first] = _Question(digest)
            self._late.set(first, out.now + self.rules.timeout, _TIMEOUT)
            out.events.append(VerifyToken(first, held.credentials.token, self.rules.verifier))
        self._questions[first].held[exchange.id] = held
        self._held[exchange.id] = first
        self._bytes += size

    def _close(self, id: ExchangeId) -> _Question | None:
        question = self._questions.pop(id, None)
        if question is not None:
            del self._asked[question.digest]
            self._late.clear(id)
            for name, held in question.held.items():
                del self._held[name]
                self._bytes -= len(held.request.body)
        return question

    def _remember(self, digest: bytes, verdict: _Verdict) -> None:
        verdicts, now = self._verdicts, self._out.now
        if verdict.until <= now:
            return
        if len(verdicts) >= self.rules.max_remembered:
            for old in [d for d, v in verdicts.items() if v.until <= now] or [next(iter(verdicts))]:
                del verdicts[old]
        verdicts[digest] = verdict


__all__ = ["Credentials", "Gate"]
