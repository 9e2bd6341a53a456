"""Where an engine stands, what it may be given next, and what it waits for: from the tables it runs on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from .session.endpoint import Endpoint
from .states import CALL, CLIENT, REQUEST, ROUND, SERVER, SUBSCRIPTION, ClientState, Machine, ServerState
from .wire.jsoncodec import JsonValue


@attrs.frozen(kw_only=True)
class MachineDescription:
    """One run through a table."""

    table: str
    """The name of the table in `sansmcp.states`."""
    subject: str
    """What it is about, for people. No params."""
    state: str
    allowed: tuple[str, ...]
    """The inputs that have a transition from here."""


@attrs.frozen(kw_only=True)
class Description:
    """What `describe` says of an engine."""

    engine: MachineDescription
    next_timeout: float | None
    """The absolute time of its next deadline."""
    waiting_for: tuple[tuple[str, float], ...]
    """Each deadline that is armed, by name, and its absolute time; the earliest first."""
    calls: tuple[MachineDescription, ...]
    requests: tuple[MachineDescription, ...]
    rounds: tuple[MachineDescription, ...]
    subscriptions: tuple[MachineDescription, ...]
    sizes: Mapping[str, int]
    """As ``stats()``."""

    def to_json(self) -> dict[str, JsonValue]:
        """All of it as a JSON object."""
        return attrs.asdict(self)


def describe(engine: Endpoint) -> Description:
    """Tell where `engine` stands. Reads only; safe at any time between two inputs."""
    state = getattr(engine, "state", None)
    table = CLIENT if isinstance(state, ClientState) else SERVER
    assert isinstance(state, (ClientState, ServerState))
    calls = list(engine._calls)
    rounds: list[Any] = list(getattr(engine, "_rounds", ()))
    subscriptions: list[Any] = list(getattr(engine, "_subscriptions", {}).values())
    return Description(
        engine=_of(table.name, type(engine).__name__, getattr(engine, "_machine")),  # noqa: B009
        next_timeout=engine.next_timeout(),
        waiting_for=_deadlines(engine),
        calls=tuple(_of(CALL.name, f"#{c.number} {c.method}", c.machine) for c in calls),
        requests=tuple(_of(REQUEST.name, f"{r.id!r} {r.method}", r.machine) for r in engine.open_requests),
        rounds=tuple(_of(ROUND.name, f"round {r.number}", r.machine) for r in rounds),
        subscriptions=tuple(_of(SUBSCRIPTION.name, f"#{s.call.number}", s.machine) for s in subscriptions),
        sizes=engine.stats(),
    )


def _of(table: str, subject: str, machine: Machine[Any, Any]) -> MachineDescription:
    allowed = tuple(trigger.name for trigger in machine.allowed())
    return MachineDescription(table=table, subject=subject, state=machine.state.name, allowed=allowed)


def _deadlines(engine: Endpoint) -> tuple[tuple[str, float], ...]:
    pending: list[tuple[str, float]] = []
    for number, when, reason in engine._calls.deadlines.pending():
        pending.append((f"{reason} of call #{number}", when))
    for name in ("_timers", "_round_timers", "_retries"):
        timers = getattr(engine, name, None)
        if timers is not None:
            pending += [(reason, when) for _, when, reason in timers.pending()]
    return tuple(sorted(pending, key=lambda item: item[1]))
