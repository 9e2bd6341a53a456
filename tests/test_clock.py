"""Deadlines: named, replaced, cleared, in order, bounded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sansmcp import ClockPair, Deadlines


@pytest.mark.req("L4")
def test_deadlines_fire_in_order_with_their_reasons() -> None:
    deadlines: Deadlines[str] = Deadlines()
    deadlines.set("b", 2.0, "later")
    deadlines.set("a", 1.0, "soon")
    deadlines.set("c", 9.0, "never")
    deadlines.set("c", 1.5, "moved")
    deadlines.clear("nothing")
    assert deadlines.next() == 1.0
    assert deadlines.reason("c") == "moved"
    assert (deadlines.when("c"), deadlines.when("none")) == (1.5, None)
    assert list(deadlines.expired(2.0)) == [("a", "soon"), ("c", "moved"), ("b", "later")]
    assert deadlines.next() is None
    assert list(deadlines.expired(100.0)) == []
    assert deadlines.reason("a") is None


def test_a_deadline_cleared_while_others_fire_does_not_fire() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for key in range(4):
        deadlines.set(key, float(key), "x")
    fired = []
    for key, _ in deadlines.expired(10.0):
        fired.append(key)
        deadlines.clear(key + 1)
    assert fired == [0, 2]


def test_moving_a_deadline_often_needs_no_memory() -> None:
    deadlines: Deadlines[int] = Deadlines()
    for moment in range(100_000):
        deadlines.set(moment % 3, float(moment), "x")
    assert len(deadlines) == 3
    assert len(deadlines._heap) < 200
    deadlines.clear_all()
    assert deadlines.next() is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["set", "clear", "fire", "look"]), st.integers(0, 5), st.integers(0, 20))
    )
)
def test_like_a_plain_dict(steps: list[tuple[str, int, int]]) -> None:
    deadlines: Deadlines[int] = Deadlines()
    model: dict[int, int] = {}
    for step, key, when in steps:
        match step:
            case "set":
                deadlines.set(key, float(when), "x")
                model[key] = when
            case "clear":
                deadlines.clear(key)
                model.pop(key, None)
            case "fire":
                fired = [key for key, _ in deadlines.expired(float(when))]
                assert sorted(fired) == sorted(k for k, v in model.items() if v <= when)
                assert [model[k] for k in fired] == sorted(model[k] for k in fired)
                for key in fired:
                    del model[key]
            case _:
                assert deadlines.next() == min(model.values(), default=None)
        assert sorted((k, when) for k, when, _ in deadlines.pending()) == sorted(model.items())
    assert deadlines.next() == min(model.values(), default=None)


def test_one_moment_on_both_clocks() -> None:
    assert ClockPair(now=10.0, unix=1000.0).unix_at(12.5) == 1002.5
