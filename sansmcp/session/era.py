"""Which era does the server speak? The decision as data: outcome in, verdict out.

A client that speaks both eras sends `server/discover` first. `classify_probe` is total: whatever
came back, it names the next step. The engine (and the HTTP transport) only carry the step out.

Specification: 2026-07-28, basic/versioning (backward compatibility), basic/transports/stdio and
basic/transports/streamable-http (backward compatibility).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import Enum, auto
from typing import Any, Literal

import attrs

from ..errors import MODERN_ONLY_CODES, ErrorCode, LocalProtocolError
from ..records import frozen
from ..revisions import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    Era,
    Revision,
    known_revision,
)

# modes: what the application asks for ------------------------------------------------------------


@frozen
class Auto:
    """Probe, then speak the newest version in common. `revisions` narrows what is offered."""

    revisions: tuple[Revision, ...] = ALL_REVISIONS


@frozen
class Legacy:
    """Open with `initialize`; never probe."""

    revisions: tuple[Revision, ...] = LEGACY_REVISIONS
    """What is offered: the newest of them, and any of them is taken."""


@frozen
class Pin:
    """Speak exactly this revision: no probe, no fallback."""

    revision: Revision


Mode = Auto | Legacy | Pin


class TransportKind(Enum):
    """What a transport can tell about silence, cancellation and streams."""

    STREAM = "stream"
    """One channel in each direction: stdio, a socket, a WebSocket, memory."""
    HTTP = "http"
    """One exchange per request."""


@frozen
class Verdict:
    """What is known of a server's era; plain data to remember between connections."""

    era: Era
    revision: Revision

    def to_json(self) -> dict[str, str]:
        """The verdict as a JSON object."""
        return {"era": self.era.value, "revision": self.revision.value}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Verdict:
        """Read back what `to_json` gave. Raises LocalProtocolError for anything else."""
        revision = known_revision(value.get("revision"))
        if revision is None or value.get("era") != revision.era.value:
            raise LocalProtocolError(f"not a remembered verdict: {dict(value)!r}")
        return cls(revision.era, revision)


# outcomes: what came back ------------------------------------------------------------------------


class Outcome(Enum):
    """The kinds of answer that a probe or a handshake can get."""

    DISCOVERED = auto()
    """A valid DiscoverResult; `versions` holds what it lists."""
    ERROR = auto()
    """A JSON-RPC error with the request's id (over HTTP: with any status); `code` and `data`."""
    MALFORMED = auto()
    """A reply that is neither a valid result nor a valid error, or an error without an id."""
    SILENCE = auto()
    EXITED = auto()
    """The child process ended, or the connection was closed."""
    HTTP_STATUS = auto()
    """An HTTP error status without a recognised JSON-RPC error; `status`."""
    REDIRECT = auto()
    """`status`, and whether it stays at the origin."""
    NETWORK_ERROR = auto()


@frozen(kw_only=True, eq=False)
class ProbeOutcome:
    """One answer (or none) to the probe."""

    kind: Outcome
    versions: Sequence[str] = ()
    """Those that a DiscoverResult lists."""
    code: int = 0
    """Of a JSON-RPC error."""
    data: Any = None
    """The same."""
    status: int = 0
    """Of the HTTP response; 0 where there was none."""
    same_origin: bool = True
    """Whether a redirect stays at the origin."""
    detail: str = ""
    """One line for people."""


@frozen
class Evidence:
    """One entry of the trail that led to the decision."""

    step: str
    """What was tried, as in ``server/discover 2026-07-28``."""
    outcome: str
    """What came of it."""


# the next step -----------------------------------------------------------------------------------


class Step(Enum):
    """What to do next."""

    SPEAK_MODERN = auto()
    PROBE_AGAIN = auto()
    """With another modern version."""
    INITIALIZE = auto()
    RESTART_AND_INITIALIZE = auto()
    """The peer is gone: start it once more and do not probe."""
    FOLLOW_REDIRECT = auto()
    AUTHORIZE = auto()
    """No evidence: obtain authorization, then probe again."""
    TRY_OLD_SSE = auto()
    """GET for an `endpoint` event: the HTTP+SSE transport of 2024-11-05."""
    SURFACE = auto()
    """Give the answer to the application unchanged; the peer is modern."""
    NO_COMMON_VERSION = auto()
    FAIL = auto()
    """A typed error; nothing was learnt."""


@frozen(eq=False)
class NextStep:
    """A step, the version it uses, and the reason in words."""

    step: Step
    revision: Revision | None
    reason: str


@frozen(kw_only=True, eq=False)
class ProbeContext:
    """What the classification may depend on besides the outcome."""

    offered: tuple[Revision, ...] = ALL_REVISIONS
    """Versions the application allows, oldest first."""
    tried: frozenset[str] = frozenset()
    """Versions that were already refused with -32022."""
    insisted: bool = False
    """Whether one of them was tried a second time, because the server lists it: that is done once."""
    transport: TransportKind = TransportKind.STREAM
    restarted: bool = False
    """Whether the peer was started anew already."""
    http_silence: Literal["legacy", "error"] = "legacy"
    """What no answer means over HTTP: an older server, or a failure."""

    def newest(self, versions: Sequence[str], era: Era) -> Revision | None:
        """The newest offered revision of `era` that `versions` names and that was not refused."""
        candidates = [r for r in self.offered if r.era is era and r in versions and r not in self.tried]
        return max(candidates, default=None)

    def initialize(self, reason: str, step: Step = Step.INITIALIZE) -> NextStep:
        """Fall back to the handshake, if a legacy revision is offered at all."""
        legacy = [r for r in self.offered if r.era is Era.LEGACY]
        if not legacy:
            return NextStep(Step.NO_COMMON_VERSION, None, f"{reason}; only modern versions allowed")
        return NextStep(step, max(legacy), reason)


def _choose(context: ProbeContext, versions: Sequence[str], modern: Step, told: str) -> NextStep:
    """The newest version in common: modern first, else legacy through `initialize`."""
    revision = context.newest(versions, Era.MODERN)
    if revision is not None:
        return NextStep(modern, revision, told)
    legacy = context.newest(versions, Era.LEGACY)
    if legacy is not None:
        return NextStep(Step.INITIALIZE, legacy, f"{told}; only legacy versions in common")
    return NextStep(Step.NO_COMMON_VERSION, None, f"{told}; nothing in common")


def supported_versions(data: Any) -> list[str] | None:
    """The list in a -32022 error's data, or None when it is missing or malformed."""
    supported = data.get("supported") if isinstance(data, Mapping) else None
    if not isinstance(supported, list) or not supported:
        return None
    return supported if all(isinstance(v, str) for v in supported) else None


def _on_error(outcome: ProbeOutcome, context: ProbeContext) -> NextStep:
    code = outcome.code
    if code in (ErrorCode.HEADER_MISMATCH, ErrorCode.MISSING_CLIENT_CAPABILITY):
        return NextStep(Step.SURFACE, None, f"error {code}: a modern server refuses the request")
    if code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
        versions = supported_versions(outcome.data)
        if versions is not None:
            told = f"error {code}: the server supports {', '.join(versions)}"
            step = _choose(context, versions, Step.PROBE_AGAIN, told)
            if step.step is Step.NO_COMMON_VERSION and not context.insisted:
                untried = attrs.evolve(context, tried=frozenset())
                step = _choose(untried, versions, Step.PROBE_AGAIN, f"{told}, and refuses it")
            return step
    return context.initialize(f"error {code}: not a modern answer")


def _on_status(outcome: ProbeOutcome, context: ProbeContext) -> NextStep:
    status = outcome.status
    if status in (401, 403):
        return NextStep(Step.AUTHORIZE, None, f"HTTP {status}: no evidence about the era")
    if status in (400, 404, 405):
        return context.initialize(f"HTTP {status} without a modern error")
    return NextStep(Step.FAIL, None, f"HTTP {status}: no evidence about the era")


def classify_probe(outcome: ProbeOutcome, context: ProbeContext) -> NextStep:
    """Name the step that follows `outcome` of the probe. Total: never raises."""
    match outcome.kind:
        case Outcome.DISCOVERED:
            told = f"the server supports {', '.join(outcome.versions) or 'no version'}"
            return _choose(context, outcome.versions, Step.SPEAK_MODERN, told)
        case Outcome.ERROR:
            return _on_error(outcome, context)
        case Outcome.MALFORMED:
            return context.initialize(f"unusable answer: {outcome.detail}")
        case Outcome.SILENCE:
            if context.transport is TransportKind.HTTP and context.http_silence == "error":
                return NextStep(Step.FAIL, None, "no answer over HTTP")
            return context.initialize("no answer to the probe")
        case Outcome.EXITED:
            if context.restarted:
                return NextStep(Step.FAIL, None, "the peer ended a second time")
            return context.initialize("the peer ended on the probe", Step.RESTART_AND_INITIALIZE)
        case Outcome.HTTP_STATUS:
            return _on_status(outcome, context)
        case Outcome.REDIRECT:
            if outcome.status in (307, 308) and outcome.same_origin:
                return NextStep(Step.FOLLOW_REDIRECT, None, f"HTTP {outcome.status}")
            return NextStep(Step.FAIL, None, f"HTTP {outcome.status} to elsewhere")
        case Outcome.NETWORK_ERROR:
            return NextStep(Step.FAIL, None, outcome.detail or "network error")


@frozen(kw_only=True, eq=False)
class HandshakeContext:
    """What led to the `initialize` whose answer is classified."""

    probed: Outcome | None = None
    """The outcome of the probe before it, or None when there was none (pinned, remembered)."""
    remembered: bool = False
    """Whether a remembered verdict led straight here."""
    late: bool = False
    """Whether the probe was answered after its deadline: the peer is slow, and may be modern."""
    reprobed: bool = False
    restarted: bool = False
    pinned: bool = False
    transport: TransportKind = TransportKind.STREAM


def classify_handshake(outcome: ProbeOutcome, context: HandshakeContext) -> Step:
    """Name the step that follows a *failed* `initialize`. Total: never raises.

    PROBE_AGAIN is the one re-probe that a late modern server or a wrong memory deserves.
    """
    may_reprobe = not context.reprobed and not context.pinned
    slow = context.probed is Outcome.SILENCE
    match outcome.kind:
        case Outcome.ERROR:
            modern = context.late or outcome.code in MODERN_ONLY_CODES
            if may_reprobe and (context.remembered or (slow and modern)):
                return Step.PROBE_AGAIN
            if outcome.status in (400, 404, 405) and outcome.code not in MODERN_ONLY_CODES:
                return Step.TRY_OLD_SSE
        case Outcome.EXITED:
            if context.probed is Outcome.SILENCE and not context.restarted:
                return Step.RESTART_AND_INITIALIZE
        case Outcome.HTTP_STATUS:
            if outcome.status in (400, 404, 405):
                return Step.PROBE_AGAIN if may_reprobe and slow and context.late else Step.TRY_OLD_SSE
            if outcome.status in (401, 403):
                return Step.AUTHORIZE
        case _:
            pass
    return Step.FAIL


def offered_by(mode: Mode) -> tuple[Revision, ...]:
    """The revisions that `mode` allows, oldest first. Raises LocalProtocolError for none."""
    if isinstance(mode, Pin):
        return (mode.revision,)
    legacy_only = isinstance(mode, Legacy)
    allowed = tuple(sorted({r for r in mode.revisions if r.era is Era.LEGACY or not legacy_only}))
    if not allowed:
        raise LocalProtocolError(f"{mode!r} allows no revision")
    return allowed
