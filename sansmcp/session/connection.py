"""The client's connection in use: which call may leave, and what becomes of it when the peer goes.

How the era is found out is in `negotiation.py`; verbs for applications are in `sansmcp.client`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from ..errors import (
    ConnectionEnded,
    ConnectTimeout,
    LocalProtocolError,
    McpError,
    SansmcpError,
)
from ..events import AbandonRequest, CloseConnection, PeerGone, QuirkUsed, Reconnect
from ..quirks import NO_QUIRKS, Quirks
from ..revisions import Era
from ..states import CallInput, CallState, ClientInput, ClientState
from ..wire.jsoncodec import JsonCodec
from ..wire.jsonrpc import RequestId
from . import legacy, modern
from .calls import Call
from .era import (
    Outcome,
    ProbeOutcome,
    TransportKind,
)
from .negotiation import Negotiation


class ClientConnection(Negotiation):
    """Everything of `ClientEngine` that is not a verb."""

    quirks: Quirks = NO_QUIRKS
    """The leniencies that the user chose."""

    # inputs of a transport -----------------------------------------------------------------------

    def connection_lost(
        self,
        *,
        now: float,
        returncode: int | None = None,
        stderr_tail: str = "",
        may_restart: bool = False,
        detail: str = "the server closed the connection",
        error: ConnectionEnded | None = None,
    ) -> None:
        """The peer is gone: nothing more will come or can be sent on this connection.

        While the era is open this may be evidence: then `Reconnect` asks for a new peer. After
        that, `may_restart` says whether the transport would bring the connection back. Otherwise
        the engine is closed and every open call fails: with `error`, or one made of the rest.
        """
        self._tick(now)
        if self._closed:
            return
        text = detail if returncode is None else f"the server ended with exit code {returncode}"
        if returncode is not None and returncode < 0:
            text = f"the server was ended by signal {-returncode}"
        if error is None:
            error = ConnectionEnded(text, returncode=returncode, stderr_tail=stderr_tail)
        if self.state in (ClientState.PROBING, ClientState.REPROBING, ClientState.INITIALIZING):
            self._lost_undecided(error)
            return
        wrong_memory = self._unconfirmed and self._calls_waiting()
        restart = (may_restart or wrong_memory) and self.state is ClientState.READY
        self._emit(PeerGone(returncode, stderr_tail, restart))
        self._fail_waiting(error)
        if not restart:
            self._close(error)
        elif wrong_memory:
            self._forget_verdict("the peer ended on the first message")
            self._restart("remembered as modern, the peer ended on the first message")
        else:
            self._machine.fire(ClientInput.LOSE)
            self._emit(Reconnect(text))

    def connection_failed(self, error: SansmcpError, *, now: float) -> None:
        """The transport cannot bring the connection about: the end, with `error` as its cause.

        When it was the second way that was tried, the error of the first one is kept as the cause,
        which tells more.
        """
        self._tick(now)
        if self._refusal is not None and self.state is ClientState.RESTARTING:
            self._note("another transport", str(error))
            error = self._refusal
        self._close(error)

    def connection_restored(self, *, now: float) -> None:
        """The peer that `Reconnect` asked for can be sent messages now."""
        self._tick(now)
        if self.state is ClientState.RESTARTING:
            legacy_offer = max(r for r in self._offered if r.era is Era.LEGACY)
            over = "restarted for initialize" if self._refusal is None else "over HTTP+SSE"
            self._refusal = None
            self._initialize(legacy_offer, over)
        elif self.state is ClientState.DISCONNECTED and self._verdict is not None:
            if self._verdict.era is Era.LEGACY:
                self._initialize(self._verdict.revision, "the connection is back")
            else:
                self._machine.fire(ClientInput.DECIDE)
                self._flush()
        elif not self._closed:
            raise LocalProtocolError(f"connection_restored: not awaited in state {self.state.name}")

    # inputs of a transport with an exchange per request ------------------------------------------

    @property
    def codec(self) -> JsonCodec:
        """How this engine reads and writes JSON, for a transport that has to look into a message."""
        return self._codec

    def exchange_refused(self, request_id: RequestId, error: McpError, *, now: float) -> None:
        """The exchange of the request `request_id` brought a JSON-RPC error.

        For errors that belong to the request by the exchange they came in, whatever their own id.
        Harmless when nobody waits for that request any more.
        """
        self._tick(now)
        call = self._calls.waiting(request_id)
        if call is not None:
            self._on_error(call, error)

    def exchange_failed(
        self, request_id: RequestId, error: SansmcpError, outcome: ProbeOutcome, *, now: float
    ) -> None:
        """The exchange of the request `request_id` ended without an answer.

        The call fails with `error`. `outcome` is what it tells of the server's era, for a probe, a
        handshake, and the first call under a remembered verdict. Harmless when nobody waits for
        that request any more.
        """
        self._tick(now)
        call = self._calls.waiting(request_id)
        if call is None:
            return
        if call is self._handshake:
            self._calls.end(call, CallInput.FAIL)
            if call.method == "initialize":
                self._handshake_failed(outcome, error)
            else:
                self._probe_answered(outcome, error=error)
        elif self._unconfirmed and outcome.kind is Outcome.HTTP_STATUS and outcome.status in (400, 404, 405):
            self._unconfirmed = False
            self._doubt_by(call, error, f"HTTP {outcome.status}")
        else:
            self._fail(call, error)

    def exchange_held(self, request_id: RequestId, *, now: float) -> None:
        """The request `request_id` waits on this side, for somebody to be authorized.

        Until `exchange_released`, only the total time of its call runs; that to connect stands still
        where the request is part of it. Harmless when nobody waits for that request any more.
        """
        self._tick(now)
        call = self._calls.waiting(request_id)
        if call is not None:
            self._calls.pause(call)
            if call is self._handshake:
                self._pause_connect()

    def exchange_released(self, request_id: RequestId, *, now: float) -> None:
        """The request `request_id` is on its way again. Harmless when nobody waits for it any more."""
        self._tick(now)
        call = self._calls.waiting(request_id)
        if call is not None:
            self._calls.unpause(call, self._now)
            if call is self._handshake:
                self._resume_connect()

    def session_lost(self, *, now: float) -> None:
        """The server does not know the legacy session any more: open a new one.

        Calls made meanwhile wait for it. Those that were sent go on waiting for their answers: see
        `send_again` and `exchange_failed`. Harmless when a session is being opened already.
        """
        self._tick(now)
        if self.state is ClientState.READY and self._verdict is not None:
            if self._verdict.era is not Era.LEGACY:
                raise LocalProtocolError("session_lost: a modern server has no sessions")
            self._machine.fire(ClientInput.LOSE)
            self._initialize(self._verdict.revision, "the session has expired")

    def send_again(self, call: Call, *, now: float) -> None:
        """Send what `call` waits for once more, under a new id. Its total timeout goes on.

        Without a session, it leaves when there is one. Harmless when nobody waits for it.
        """
        self._tick(now)
        if call.state is not CallState.SENT:
            return
        self._calls.requeue(call)
        if self.state is ClientState.READY:
            self._send_call(call)
        else:
            self._held.append(call)

    def handle_timeout(self, now: float) -> None:
        """Let every deadline that has passed take effect. Harmless at any time."""
        now = self._tick(now)
        for _ in self._timers.expired(now):
            tried = "; ".join(f"{e.step}: {e.outcome}" for e in self._evidence)
            limit = self.timeouts.connect or 0.0
            waiting = self._handshake.method if self._handshake is not None else "the server"
            self._close(
                ConnectTimeout(
                    f"no connection after {limit:g} s, waiting for {waiting}"
                    + (f" (tried: {tried})" if tried else "")
                )
            )
        super().handle_timeout(now)

    # the end ----------------------------------------------------------------------------------

    def _calls_waiting(self) -> bool:
        return any(call.state is CallState.SENT for call in self._calls)

    def _lost_undecided(self, error: ConnectionEnded) -> None:
        handshake, self._handshake = self._handshake, None
        if handshake is not None:
            self._calls.end(handshake, CallInput.FAIL)
        outcome = ProbeOutcome(kind=Outcome.EXITED, detail=str(error))
        if self.state is ClientState.INITIALIZING:
            self._handshake_failed(outcome, error)
            return
        if self._restarted:
            self._close(error)
            return
        self._fail_waiting(error)
        self._probe_answered(outcome)

    def _fail_waiting(self, error: ConnectionEnded) -> None:
        for call in self._calls:
            if call.state is CallState.SENT:
                self._fail(call, error.about(call.subject))

    def _close(self, error: SansmcpError | None) -> None:
        """The end, for whatever cause. Each open call fails with it."""
        if self._closed:
            return
        self._machine.fire(ClientInput.CLOSE)
        self._timers.clear_all()
        self._held.clear()
        self._handshake = self._doubted = None
        for call in self._calls:
            if error is None:
                cause: SansmcpError = ConnectionEnded(f"{call.subject}: the client was closed")
            elif isinstance(error, ConnectionEnded):
                cause = error.about(call.subject)
            else:
                cause = error
            self._fail(call, cause)
        self._emit(CloseConnection())
        self._end_session(error)

    # sending -------------------------------------------------------------------------------------

    def _submit(self, call: Call) -> Call:
        """Send a new call, or keep it until the peer may be sent it."""
        if self._closed:
            raise LocalProtocolError(f"{call.subject}: the connection has ended; make a new engine")
        if self.state is ClientState.READY:
            self._check(call)
            self._send_call(call)
        else:
            self._encode(call.params)  # a value that is no JSON is refused now, not later
            self._calls.hold(call)
            self._held.append(call)
        return call

    def _flush(self) -> None:
        """Send what waited for the era or the connection."""
        held, self._held = self._held, []
        for call in held:
            if call.done:
                continue
            try:
                self._check(call)
                self._send_call(call)
            except LocalProtocolError as error:
                self._fail(call, error)

    @abstractmethod
    def _check(self, call: Call) -> None:
        """Raise LocalProtocolError when the era or the server lacks what the call needs."""

    def _stamp(self, call: Call, params: dict[str, Any], token: RequestId | None) -> dict[str, Any]:
        if self._stamp_for is not None:
            if call.again is not None:
                params = modern.retry_params(params, call.again)
            return self._stamp_for.request(params, token=token, log_level=call.log_level, meta=call.meta)
        return legacy.stamp_request(params, token=token, meta=call.meta)

    def _notify(self, method: str, params: dict[str, Any] | None) -> None:
        if params is not None and self._stamp_for is not None:
            params = self._stamp_for.notification(params)
        self._send_notification(method, params)

    def _tell_cancelled(self, call: Call, reason: str | None) -> None:
        if call.request_id is None or not call.cancellable:
            return
        if self._transport is TransportKind.HTTP and self._stamp_for is not None:
            self._emit(AbandonRequest(call, call.request_id))
            return
        quirk = self.quirks.no_cancel()
        if quirk is not None:
            self._emit(QuirkUsed(quirk.name, f"{call.subject}: the server is not told of the cancel", call))
            return
        params: dict[str, Any] = {"requestId": call.request_id}
        if reason is not None:
            params["reason"] = reason
        self._notify("notifications/cancelled", params)
