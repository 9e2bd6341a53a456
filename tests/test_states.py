"""Every state with every input, for every table; and nobody else sets a state."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sansmcp import LocalProtocolError
from sansmcp.states import TABLES, Machine, Symbol, Table

ROOT = Path(__file__).parent.parent
INPUTS = {
    table.name: type(next(trigger for row in table.transitions.values() for trigger in row))
    for table in TABLES
}


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_state_with_every_input(table: Table[Symbol, Symbol]) -> None:
    for state in type(table.initial):
        for trigger in INPUTS[table.name]:
            machine: Machine[Symbol, Symbol] = Machine(table)
            machine.state = state
            target = table.transitions[state].get(trigger)
            assert machine.allows(trigger) == (target is not None)
            if target is None:
                with pytest.raises(LocalProtocolError, match=f"{trigger.name}.*{state.name}"):
                    machine.fire(trigger)
                assert machine.state is state
            else:
                assert machine.fire(trigger) is target is machine.state
            assert set(machine.allowed()) == set(table.transitions[machine.state])


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_every_state_has_a_row_and_can_be_reached_and_left(table: Table[Symbol, Symbol]) -> None:
    states = set(type(table.initial))
    assert set(table.transitions) == states
    reached, front = {table.initial}, [table.initial]
    while front:
        for target in table.transitions[front.pop()].values():
            if target not in reached:
                reached.add(target)
                front.append(target)
    assert reached == states
    assert table.final()
    for state in states - table.final():
        assert table.transitions[state], f"{state} is a dead end"


def test_states_change_in_one_file_only() -> None:
    for path in (ROOT / "sansmcp").rglob("*.py"):
        if path.parent.name != "states":
            assert not re.search(r"\.state\s*=[^=]", path.read_text("utf-8")), path
