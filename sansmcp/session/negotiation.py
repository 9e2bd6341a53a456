"""How a client comes to know its server's era: probe, handshake, a remembered verdict.

What each answer leads to is decided by `era.py`; this file carries it out. The wire forms are in
`modern.py` and `legacy.py`; what happens on the decided connection is in `connection.py`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Final, Literal

from ..clock import Deadlines
from ..errors import (
    MODERN_ONLY_CODES,
    CallTimeout,
    ConnectFailure,
    ErrorCode,
    HandshakeFailed,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    NoCommonVersion,
    PeerFault,
    RemoteProtocolError,
    SansmcpError,
    UnsupportedProtocolVersion,
)
from ..events import EraDecided, Reconnect, SessionStarted
from ..limits import Limits, Timeouts
from ..revisions import LATEST, Era, Revision, known_revision
from ..states import CLIENT, CallInput, ClientInput, ClientState, Machine
from ..types.lifecycle import ClientCapabilities, Implementation, ServerCapabilities
from ..wire.jsoncodec import JsonCodec
from ..wire.jsonrpc import RequestId
from . import legacy, modern
from .calls import Call
from .endpoint import Endpoint
from .era import (
    Auto,
    Evidence,
    HandshakeContext,
    Mode,
    NextStep,
    Outcome,
    Pin,
    ProbeContext,
    ProbeOutcome,
    Step,
    TransportKind,
    Verdict,
    classify_handshake,
    classify_probe,
    offered_by,
    supported_versions,
)
from .typing import lenient, to_wire

_CONNECT: Final = "connect"


class Negotiation(Endpoint):
    """From nothing to a decided era: the first half of a client connection."""

    def __init__(
        self,
        info: Implementation,
        *,
        now: float,
        capabilities: ClientCapabilities,
        mode: Mode,
        prior: Verdict | None,
        transport: TransportKind,
        limits: Limits,
        timeouts: Timeouts,
        codec: JsonCodec | None,
        strict: bool,
        send_client_info: bool,
        check_capabilities: bool,
        http_silence: Literal["legacy", "error"],
    ) -> None:
        super().__init__(now=now, limits=limits, timeouts=timeouts, codec=codec, strict=strict)
        self._info = info
        self._own_capabilities = capabilities
        self._mode = mode
        self._offered = offered_by(mode)
        self._transport = transport
        self._send_client_info = send_client_info
        self._check_capabilities = check_capabilities
        self._http_silence = http_silence
        for revision in {r.era: r for r in self._offered}.values():
            # What cannot be written is refused here, not in the middle of a handshake. The newest of
            # an era has all that an older one has.
            to_wire(info, revision)
            to_wire(capabilities, revision)
        self._machine = Machine(CLIENT)
        self._timers: Deadlines[str] = Deadlines()
        self._held: list[Call] = []
        self._connect_left: float | None = None
        """Seconds that were left to connect when that time was stopped."""

        if prior is not None and (prior.revision not in self._offered or not isinstance(mode, Auto)):
            prior = None
        self._prior = prior
        self._unconfirmed = False
        """Whether a remembered modern verdict still waits for the first answer."""
        self._doubted: tuple[Call, SansmcpError] | None = None
        """The answer that made us doubt the verdict, kept until the new probe has its own."""
        self._verdict: Verdict | None = None
        self._stamp_for: modern.Stamp | None = None
        self._evidence: list[Evidence] = []
        self._tried: set[str] = set()
        self._insisted = False
        """Whether a version was asked for again that the server refuses and lists."""
        self._told_versions: tuple[str, ...] = ()
        self._probed: Outcome | None = None
        self._late = False
        """Whether a probe was answered after its deadline."""
        self._reprobed = False
        self._restarted = False
        self._refusal: SansmcpError | None = None
        """Why the first way to reach the server failed, kept while another one is tried."""
        self._handshake: Call | None = None
        """The probe or `initialize` under way."""
        self._last_probe_id: RequestId | None = None
        self._server_capabilities: Mapping[str, Any] | None = None
        self._server_info: Implementation | None = None
        self._instructions: str | None = None

    # what is known -------------------------------------------------------------------------------

    @property
    def state(self) -> ClientState:
        """Where the connection stands: see the table `states.CLIENT`."""
        return self._machine.state

    @property
    def mode(self) -> Mode:
        """What the application asked for."""
        return self._mode

    @property
    def transport(self) -> TransportKind:
        """What kind of transport this engine was made for."""
        return self._transport

    @property
    def verdict(self) -> Verdict | None:
        """The era and revision spoken, or None while that is open."""
        return self._verdict

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """What was tried to find out the era, and what came of it, in order."""
        return tuple(self._evidence)

    @property
    def server_info(self) -> Implementation | None:
        """As the server says of itself: for display, never for decisions."""
        return self._server_info

    @property
    def server_capabilities(self) -> ServerCapabilities | None:
        """What the server declared; None while nothing was asked."""
        if self._server_capabilities is None:
            return None
        return lenient(self._server_capabilities, ServerCapabilities, self._revision)

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used, for a model; None where it said nothing."""
        return self._instructions

    @property
    def _revision(self) -> Revision:
        return self._verdict.revision if self._verdict is not None else LATEST

    # the start -----------------------------------------------------------------------------------

    def connect(self, *, now: float) -> None:
        """Start: probe, open with `initialize`, or nothing at all, as the mode says.

        Call once, when messages can be sent. Calls made before leave when the era is decided.
        """
        self._tick(now)
        prior = self._prior
        if self.state is not ClientState.IDLE:
            raise LocalProtocolError("connect: called already; make a new engine to connect again")
        if self.timeouts.connect is not None:
            self._timers.set(_CONNECT, self._now + self.timeouts.connect, _CONNECT)
        if isinstance(self._mode, Pin) and self._mode.revision.era is Era.MODERN:
            self._note(f"pinned to {self._mode.revision}", "nothing sent")
            self._decide_modern(self._mode.revision)
        elif prior is not None and prior.era is Era.MODERN:
            self._note(f"remembered {prior.revision}", "nothing sent")
            self._unconfirmed = True
            self._decide_modern(prior.revision)
        elif prior is not None:
            self._initialize(prior.revision, f"remembered {prior.revision}")
        elif self._offered[-1].era is Era.MODERN:
            self._probe(self._offered[-1])
        else:
            self._initialize(self._offered[-1], "no probe in this mode")

    # probe and handshake -------------------------------------------------------------------------

    def _on_stray_response(self, request_id: RequestId) -> Call | None:
        if request_id == self._last_probe_id:
            self._note("server/discover", "answered late, after its deadline: not used")
            self._late = True
        return super()._on_stray_response(request_id)

    def _note(self, step: str, outcome: str) -> None:
        # The text of a failure begins with the call that it is of.
        self._evidence.append(Evidence(step, outcome.removeprefix(f"{step}: ")))
        if len(self._evidence) > self.limits.max_evidence:
            del self._evidence[0]

    def _internal(self, method: str, params: dict[str, Any], timeout: float | None) -> Call:
        return self._calls.new(
            method, params, timeout=timeout, total_timeout=None, internal=True, cancellable=False
        )

    def _probe(self, revision: Revision, *, known_to_answer: bool = False) -> None:
        self._machine.fire(ClientInput.PROBE)
        # Of a peer that answers probes, if late, silence says nothing about its era.
        self._send_probe(revision, None if known_to_answer else self.timeouts.probe)

    def _send_probe(self, revision: Revision, timeout: float | None) -> None:
        self._insisted |= revision.value in self._tried
        self._tried.add(revision.value)
        self._stamp_for = self._new_stamp(revision)
        self._handshake = self._internal("server/discover", {}, timeout)
        self._send_call(self._handshake)
        self._last_probe_id = self._handshake.request_id

    def _initialize(self, revision: Revision, why: str = "") -> None:
        self._machine.fire(ClientInput.INITIALIZE)
        if self.timeouts.connect is not None and self._timers.reason(_CONNECT) is None:
            # The first connection has it armed; one that is brought back must end some day too.
            self._timers.set(_CONNECT, self._now + self.timeouts.connect, _CONNECT)
        if why:
            self._note(f"initialize {revision}", why)
        self._stamp_for = None
        params = legacy.initialize_params(
            revision,
            to_wire(self._info, revision),
            to_wire(self._own_capabilities, revision),
        )
        self._handshake = self._internal("initialize", params, None)
        self._asked = revision
        self._send_call(self._handshake)

    _asked = LATEST

    def _pause_connect(self) -> None:
        """Somebody is asked who this client is: that takes as long as it takes."""
        when = self._timers.when(_CONNECT)
        if when is not None:
            self._connect_left = max(when - self._now, 0.0)
            self._timers.clear(_CONNECT)

    def _resume_connect(self) -> None:
        left, self._connect_left = self._connect_left, None
        if left is not None:
            self._timers.set(_CONNECT, self._now + left, _CONNECT)

    def _new_stamp(self, revision: Revision) -> modern.Stamp:
        info = to_wire(self._info, revision) if self._send_client_info else None
        return modern.Stamp(revision, info, to_wire(self._own_capabilities, revision))

    def _probe_answered(
        self,
        outcome: ProbeOutcome,
        raw: dict[str, Any] | None = None,
        error: SansmcpError | None = None,
    ) -> None:
        self._handshake = None
        self._probed = outcome.kind
        context = ProbeContext(
            offered=self._offered,
            # A version that the list names is not refused by being asked for before: only an
            # error does that.
            tried=frozenset(self._tried) if outcome.kind is Outcome.ERROR else frozenset(),
            insisted=self._insisted,
            transport=self._transport,
            restarted=self._restarted,
            http_silence=self._http_silence,
        )
        if outcome.kind is Outcome.ERROR:
            told = modern_versions(outcome)
            if told:
                self._told_versions = told
        else:
            self._told_versions = tuple(outcome.versions)
        next_step = classify_probe(outcome, context)
        self._note("server/discover", next_step.reason)
        self._take_step(next_step, outcome, raw or {}, error)

    def _take_step(
        self, next_step: NextStep, outcome: ProbeOutcome, raw: dict[str, Any], error: SansmcpError | None
    ) -> None:
        match next_step.step:
            case Step.SPEAK_MODERN if next_step.revision is not None:
                if self._read_discovery(raw, next_step.revision):
                    self._decide_modern(next_step.revision)
            case Step.PROBE_AGAIN if next_step.revision is not None:
                self._probe(next_step.revision, known_to_answer=True)
            case Step.INITIALIZE if next_step.revision is not None:
                self._initialize(next_step.revision)
            case Step.RESTART_AND_INITIALIZE:
                self._restart(next_step.reason)
            case Step.NO_COMMON_VERSION:
                ours = [r.value for r in reversed(self._offered)]
                failure = NoCommonVersion(ours, self._told_versions)
                failure.__cause__ = error
                self._close(failure)
            case Step.SURFACE:
                self._close(error or McpError(outcome.code, outcome.detail, outcome.data))
            case _:
                self._close(error or HandshakeFailed(f"server/discover: {next_step.reason}"))

    def _restart(self, reason: str) -> None:
        self._machine.fire(ClientInput.RESTART)
        self._restarted = True
        self._emit(Reconnect(reason))

    def _handshake_failed(self, outcome: ProbeOutcome, error: SansmcpError) -> None:
        """`initialize` did not bring a session."""
        self._handshake = None
        self._note("initialize", outcome.detail)
        context = HandshakeContext(
            probed=self._probed,
            remembered=self._prior is not None and self._prior.era is Era.LEGACY,
            late=self._late,
            reprobed=self._reprobed,
            restarted=self._restarted,
            pinned=self._offered[-1].era is Era.LEGACY,
            transport=self._transport,
        )
        match classify_handshake(outcome, context):
            case Step.PROBE_AGAIN:
                self._reprobed = True
                self._prior = None
                self._tried.clear()
                answers = self._late or outcome.code in MODERN_ONLY_CODES
                self._probe(self._offered[-1], known_to_answer=answers)
            case Step.RESTART_AND_INITIALIZE:
                self._restart("the peer ended on initialize after a silent probe")
            case Step.TRY_OLD_SSE if self._verdict is None and not self._restarted:
                self._refusal = error
                self._restart("initialize was refused: trying HTTP+SSE")
            case _:
                self._close(error)

    def _read_discovery(self, raw: dict[str, Any], revision: Revision) -> bool:
        read = modern.read_discover(raw)
        odd = read[1] if read is not None else []
        capabilities = raw.get("capabilities")
        self._server_capabilities = capabilities if isinstance(capabilities, dict) else {}
        instructions = raw.get("instructions")
        self._instructions = instructions if isinstance(instructions, str) else None
        meta = raw.get("_meta")
        info = meta.get(modern.META_SERVER_INFO) if isinstance(meta, dict) else None
        self._server_info = self._read_info(info, revision, odd)
        return self._tolerate_all(PeerFault.INVALID_DISCOVER_RESULT, "DiscoverResult", odd)

    @staticmethod
    def _read_info(info: object, revision: Revision, odd: list[str]) -> Implementation | None:
        if info is None:
            return None
        typed = lenient(info, Implementation, revision)
        if typed is None:
            odd.append("serverInfo is not usable and was dropped")
        return typed

    def _tolerate_all(self, fault: PeerFault, what: str, odd: list[str]) -> bool:
        """Tell of each oddity of the server's first answer; in strict mode the first is the end."""
        for oddity in odd:
            if not self._tolerate(fault, f"{what}: {oddity}"):
                self._close(HandshakeFailed(f"{what}: {oddity}"))
                return False
        return True

    def _initialized(self, raw: dict[str, Any]) -> None:
        """`initialize` was answered with a result."""
        try:
            handshake, odd = legacy.read_initialize_result(raw)
        except RemoteProtocolError as error:
            outcome = ProbeOutcome(kind=Outcome.MALFORMED, detail=str(error))
            self._handshake_failed(outcome, HandshakeFailed(f"initialize: {error}"))
            return
        self._handshake = None
        revision = known_revision(handshake.version)
        allowed = (self._asked,) if isinstance(self._mode, Pin) else self._offered
        if revision is None or revision.era is Era.MODERN or revision not in allowed:
            self._note("initialize", f"answered version {handshake.version[:64]!r}")
            self._close(UnsupportedProtocolVersion(self._asked, handshake.version[:64]))
            return
        self._note("initialize", f"answered version {revision}")
        self._server_capabilities = handshake.capabilities
        self._server_info = self._read_info(handshake.server_info, revision, odd)
        self._instructions = handshake.instructions
        if not self._tolerate_all(PeerFault.INVALID_INITIALIZE_RESULT, "InitializeResult", odd):
            return
        self._machine.fire(ClientInput.DECIDE)
        known = self._verdict
        self._verdict = Verdict(Era.LEGACY, revision)
        self._send_notification("notifications/initialized", None)
        self._emit(SessionStarted(revision, self._server_info))
        self._decided(known)

    def _decide_modern(self, revision: Revision) -> None:
        self._machine.fire(ClientInput.DECIDE)
        known = self._verdict
        self._verdict = Verdict(Era.MODERN, revision)
        self._stamp_for = self._new_stamp(revision)
        self._decided(known)

    def _decided(self, known: Verdict | None) -> None:
        self._timers.clear(_CONNECT)
        self._connect_left = None
        if known != self._verdict and self._verdict is not None:
            self._emit(
                EraDecided(
                    self._verdict,
                    self._server_info,
                    self.server_capabilities,
                    self._instructions,
                    self.evidence,
                )
            )
        self._settle_doubt()
        self._flush()

    # a remembered verdict and its first answer ---------------------------------------------------

    def _confirm_or_doubt(self, call: Call, result: dict[str, Any] | None, error: McpError | None) -> bool:
        """Hold the first answer against the remembered verdict. True: the answer is on hold."""
        self._unconfirmed = False
        if error is None:
            if modern.shows_itself(result or {}):
                return False
            self._doubt("a result without resultType")
            return False
        if error.code in (ErrorCode.HEADER_MISMATCH, ErrorCode.MISSING_CLIENT_CAPABILITY):
            return False
        self._doubt_by(call, error, f"error {error.code}")
        return True

    def _doubt_by(self, call: Call, error: SansmcpError, why: str) -> None:
        """Ask anew who the server is; `error` is the answer to `call` if it is modern after all."""
        self._calls.requeue(call)
        self._doubted = (call, error)
        self._doubt(why)

    def _doubt(self, why: str) -> None:
        self._forget_verdict(why)
        self._machine.fire(ClientInput.DOUBT)
        self._reprobed = True
        self._tried.clear()
        self._send_probe(self._offered[-1], self.timeouts.probe)

    def _forget_verdict(self, why: str) -> None:
        self._note("first answer", f"{why} contradicts the remembered verdict")
        self._prior = self._verdict = None
        self._unconfirmed = False

    def _settle_doubt(self) -> None:
        """The new probe has decided: the answer on hold was true, or the call must go again."""
        if self._doubted is None:
            return
        call, error = self._doubted
        self._doubted = None
        version_error = isinstance(error, McpError) and error.code == ErrorCode.UNSUPPORTED_PROTOCOL_VERSION
        if call.done:
            return
        if self._verdict is not None and self._verdict.era is Era.MODERN and not version_error:
            self._fail(call, error)
        else:
            self._held.insert(0, call)

    # answers to it -------------------------------------------------------------------------------

    def _on_call_timeout(self, call: Call, error: CallTimeout) -> None:
        if call is self._handshake:
            self._calls.end(call, CallInput.TIME_OUT)
            self._probe_answered(ProbeOutcome(kind=Outcome.SILENCE))
        else:
            super()._on_call_timeout(call, error)

    def _on_result(self, call: Call, result: dict[str, Any]) -> None:
        if call is self._handshake:
            self._calls.end(call, CallInput.SUCCEED)
            if call.method == "initialize":
                self._initialized(result)
                return
            read = modern.read_discover(result)
            if read is None:
                outcome = ProbeOutcome(kind=Outcome.MALFORMED, detail="no list supportedVersions")
            else:
                outcome = ProbeOutcome(kind=Outcome.DISCOVERED, versions=read[0])
            self._probe_answered(outcome, result)
            return
        if self._unconfirmed and self._confirm_or_doubt(call, result, None):
            return
        self._on_call_result(call, result)

    def _on_error(self, call: Call, error: McpError) -> None:
        if call is self._handshake:
            self._calls.end(call, CallInput.FAIL)
            outcome = ProbeOutcome(
                kind=Outcome.ERROR,
                code=error.code,
                data=error.data,
                status=error.http_status or 0,
                detail=error.message,
            )
            if call.method == "initialize":
                self._handshake_failed(outcome, self._refused(error))
            else:
                self._probe_answered(outcome, error=error)
            return
        if self._unconfirmed and self._confirm_or_doubt(call, None, error):
            return
        self._on_call_error(call, error)

    def _on_invalid_result(self, call: Call, cause: RemoteProtocolError) -> None:
        if call is not self._handshake:
            super()._on_invalid_result(call, cause)
            return
        self._calls.end(call, CallInput.FAIL)
        outcome = ProbeOutcome(kind=Outcome.MALFORMED, detail=str(cause))
        if call.method == "initialize":
            failure = InvalidResponse(f"initialize: {cause}", cause)
            self._handshake_failed(outcome, failure)
        else:
            self._probe_answered(outcome)

    @staticmethod
    def _refused(error: McpError) -> ConnectFailure:
        failure = HandshakeFailed(f"the server refused initialize: {error}")
        failure.__cause__ = error
        return failure

    # what the decided connection does ------------------------------------------------------------

    @abstractmethod
    def _close(self, error: SansmcpError | None) -> None:
        """The end, for whatever cause. Each open call fails with it."""

    @abstractmethod
    def _flush(self) -> None:
        """Send what waited for the era."""

    @abstractmethod
    def _on_call_result(self, call: Call, result: dict[str, Any]) -> None: ...

    @abstractmethod
    def _on_call_error(self, call: Call, error: McpError) -> None: ...


def modern_versions(outcome: ProbeOutcome) -> tuple[str, ...]:
    """The versions that a -32022 error tells of."""
    if outcome.code != ErrorCode.UNSUPPORTED_PROTOCOL_VERSION:
        return ()
    return tuple(supported_versions(outcome.data) or ())
