"""The tiny machine that runs a transition table. It knows neither the role nor the transport it is used
for."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Final, Generic, TypeVar

from ..errors import LocalProtocolError


class Symbol(Enum):
    """Base of states and inputs. Members are singletons, so the identity hash is right, and unlike
    Enum's own it costs no Python call: transitions sit on the path of every message."""

    __hash__ = object.__hash__


S = TypeVar("S", bound=Symbol)
I = TypeVar("I", bound=Symbol)  # noqa: E741  (S and I: state and input)


class Table(Generic[S, I]):
    """A transition table: its name for people, the state it starts in, and the transitions."""

    __slots__ = ("initial", "name", "transitions")

    def __init__(self, name: str, initial: S, transitions: Mapping[S, Mapping[I, S]]) -> None:
        self.name: Final = name
        self.initial: Final = initial
        self.transitions: Final = transitions

    def final(self) -> frozenset[S]:
        """States that nothing leaves."""
        return frozenset(state for state, row in self.transitions.items() if not row)


class Machine(Generic[S, I]):
    """The current state of one run through a table."""

    __slots__ = ("_table", "state")

    def __init__(self, table: Table[S, I]) -> None:
        self._table = table
        self.state: S = table.initial

    @classmethod
    def standing(cls, table: Table[S, I], state: str) -> Machine[S, I]:
        """A machine that stands in the state of this name. Raises KeyError for a name of none."""
        machine = cls(table)
        machine.state = {known.name: known for known in table.transitions}[state]
        return machine

    def fire(self, trigger: I) -> S:
        """Take the transition for `trigger` and return the new state.

        Raises LocalProtocolError, with the state unchanged, when the table has none.
        """
        target = self._table.transitions[self.state].get(trigger)
        if target is None:
            raise LocalProtocolError(
                f"{self._table.name}: {trigger.name} is not possible in state {self.state.name}"
            )
        self.state = target
        return target

    def allows(self, trigger: I) -> bool:
        """Whether `trigger` has a transition from the current state."""
        return trigger in self._table.transitions[self.state]

    def allowed(self) -> tuple[I, ...]:
        """Every input that has a transition from the current state."""
        return tuple(self._table.transitions[self.state])


__all__ = ["I", "Machine", "S", "Symbol", "Table"]
