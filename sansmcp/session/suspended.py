"""Calls that are put aside while the server wants something, as plain JSON.

All that a modern server needs to go on is in the request that is made again, so that may be done by
another process, on another connection.

Specification: 2026-07-28, basic/patterns/mrtr (basic workflow).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import attrs

from ..errors import LocalProtocolError
from ..types.methods import spec_for
from ..wire.jsoncodec import JsonValue
from .calls import Call
from .rounds import Round

SuspendedCall: TypeAlias = dict[str, JsonValue]
"""What ``suspend`` returns and ``resume`` takes. It holds what the server wants back and the answers
given so far: keep it as you keep a secret, and from whoever must not answer."""

_FORMAT: Final = 1
_NUMBER: Final = (int, float)
_MOST: Final = 1e15
"""Seconds, or rounds: nobody wrote more."""
_MEMBERS: Final[Mapping[str, tuple[type, ...]]] = {
    "format": (int,),
    "method": (str,),
    "params": (dict,),
    "requests": (dict,),
    "answers": (dict,),
    "rounds": (int,),
    "waits": (int,),
    "auto": (bool,),
    "progress": (bool,),
    "meta": (dict, type(None)),
    "logLevel": (str, type(None)),
    "requestState": (str, type(None)),
    "timeout": (*_NUMBER, type(None)),
    "totalTimeout": (*_NUMBER, type(None)),
    "totalLeft": (*_NUMBER, type(None)),
    "roundLeft": (*_NUMBER, type(None)),
    "roundsLeft": (*_NUMBER, type(None)),
}


def dump(call: Call, round_: Round, now: float) -> SuspendedCall:
    """`call`, which waits for the answers of `round_`. Of each deadline it holds the time left."""

    def left(when: float | None) -> float | None:
        return None if when is None else max(when - now, 0.0)

    return {
        "format": _FORMAT,
        "method": call.method,
        "params": call.params,
        "requests": {k: {"method": q.method, "params": q.raw} for k, q in round_.questions.items()},
        "answers": dict(round_.answers),
        "rounds": call.rounds,
        "waits": round_.waits,
        "auto": call.auto_rounds,
        "progress": call.wants_progress,
        "meta": None if call.meta is None else dict(call.meta),
        "logLevel": call.log_level,
        "requestState": round_.request_state,
        "timeout": call.idle_timeout,
        "totalTimeout": call.total_timeout,
        "totalLeft": left(call.total_at),
        "roundLeft": left(round_.ends_at),
        "roundsLeft": left(round_.all_end_at),
    }


@attrs.frozen(eq=False, repr=False)
class Suspension:
    """What a suspended call says, once it is known to be one."""

    raw: Mapping[str, Any]

    def end(self, name: str, now: float) -> float | None:
        """The absolute time of a deadline."""
        left: float | None = self.raw[name]
        return None if left is None else now + left


def load(value: object) -> Suspension:
    """Read what `dump` gave. Raises LocalProtocolError, which quotes nothing of it, for anything else."""
    if not isinstance(value, Mapping):
        raise LocalProtocolError("resume: not a suspended call")
    for name, types in _MEMBERS.items():
        member = value.get(name)
        wanted_bool = bool in types
        if not isinstance(member, types) or isinstance(member, bool) is not wanted_bool:
            raise LocalProtocolError(f"resume: not a suspended call: {name} is missing or of another type")
        if isinstance(member, _NUMBER) and not abs(member) <= _MOST:  # true of NaN, too
            raise LocalProtocolError(f"resume: not a suspended call: {name} is out of bounds")
    if value["format"] != _FORMAT:
        raise LocalProtocolError(f"resume: a suspended call of format {value['format']}, not {_FORMAT}")
    spec = spec_for(value["method"])
    if (
        spec is None
        or not spec.mrtr
        or value["rounds"] < 0
        or value["waits"] < 0
        or not value["answers"].keys() <= value["requests"].keys()
        or (value["totalLeft"] is not None and value["totalTimeout"] is None)
    ):
        raise LocalProtocolError("resume: not a suspended call: it contradicts itself")
    return Suspension(value)
