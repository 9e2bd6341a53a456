"""What an application remembers of a modern request from one round to the next.

It remembers nothing itself: the client carries it, sealed (`sansmcp.session.sealing`).

Specification: 2026-07-28, basic/patterns/mrtr (server requirements, error handling).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from .context import Context
from .errors import ErrorCode, LocalProtocolError, McpError, PeerFault
from .revisions import Era
from .session.calls import IncomingRequest
from .session.modern import INPUT_RESPONSES as _ANSWERS
from .session.modern import REQUEST_STATE as _STATE
from .types.methods import spec_for
from .wire.jsoncodec import JsonValue

if TYPE_CHECKING:
    from .session.sealing import StateSealer

Principal = Callable[[IncomingRequest], str | None]
"""Says who makes a request; None for nobody in particular."""


class Seals:
    """The sealer of an application, and what is bound into each seal."""

    def __init__(
        self, sealer: StateSealer | None, keys: Sequence[bytes], principal: Principal | None
    ) -> None:
        if sealer is not None and keys:
            raise LocalProtocolError("state_keys are for the sealer that there is without `sealer`")
        if keys:
            from .session.sealing import HmacSealer

            sealer = HmacSealer(keys)
        self._sealer = sealer
        self._drawn: dict[str, StateSealer] = {}
        self._principal = principal

    def resume(self, context: Context, *, now: float) -> None:
        """Let the dialogue go on where the round before ended, if the request comes from one.

        Raises McpError for a state that is not genuine, and for answers that are none.
        """
        request = context.request
        params = request.params
        if request.era is Era.LEGACY or (_STATE not in params and _ANSWERS not in params):
            return
        spec = spec_for(request.method)
        if spec is None or not spec.mrtr:
            return
        given = params.get(_ANSWERS)
        if given is None:
            given = {}
        elif not isinstance(given, dict):
            raise McpError(ErrorCode.INVALID_PARAMS, f"{_ANSWERS} must be an object")
        memory = self._open(context, params[_STATE], now) if _STATE in params else None
        context.dialogue.resume(memory, given)

    def seal(self, context: Context, *, now: float) -> str | None:
        """The state for the next round; None when there is nothing to remember.

        Raises LocalProtocolError for what is no JSON or too large, and when there is no key.
        """
        memory = context.dialogue.memory
        if memory is None:
            return None
        try:
            payload = json.dumps(memory, separators=(",", ":"), allow_nan=False).encode("ascii")
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"{context.request!r}: its state is no JSON: {error}") from error
        sealer = self._choose(context)
        text = sealer.seal(payload, self._binding(context), unix=context.unix_time(now))
        bound = context.limits.max_request_state
        if len(text) > bound:
            raise LocalProtocolError(
                f"{context.request!r}: a state of {len(text)} characters (limit max_request_state: {bound})"
            )
        return text

    def _open(self, context: Context, text: JsonValue, now: float) -> JsonValue:
        payload: bytes | None = None
        if isinstance(text, str) and len(text) <= context.limits.max_request_state:
            sealer = self._choose(context)
            payload = sealer.open(text, self._binding(context), unix=context.unix_time(now))
        if payload is None:
            context.remark(PeerFault.INVALID_STATE, "its state was not made for it, or has expired", now=now)
            # Always the same words: what is wrong with a forged state is for nobody to know.
            raise McpError(ErrorCode.INVALID_PARAMS, f"invalid {_STATE}")
        memory: JsonValue = json.loads(payload)
        return memory

    def _choose(self, context: Context) -> StateSealer:
        if self._sealer is None:
            from .session.sealing import MIN_KEY, HmacSealer

            entropy = context.entropy
            if entropy is None:
                raise LocalProtocolError(
                    f"{context.request!r}: its state cannot be sealed; give the App state_keys"
                )
            # Hosts with threads may come here at once: the first key is everybody's.
            self._sealer = self._drawn.setdefault("key", HmacSealer([entropy(MIN_KEY)]))
        return self._sealer

    def principal_of(self, request: IncomingRequest) -> str | None:
        """Who made a request: as the application says, else as its access token does."""
        if self._principal is not None:
            return self._principal(request)
        return None if request.principal is None else request.principal.identity

    def _binding(self, context: Context) -> bytes:
        from .session.sealing import bind

        request = context.request
        return bind(request.method, request.params, self.principal_of(request))
