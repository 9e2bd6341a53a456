"""The small classes behave as those that attrs makes whole."""

from __future__ import annotations

import copy
import pickle

import attrs
import pytest

from sansmcp.records import frozen, record


@frozen
class Ours:
    a: int
    b: str = attrs.field(default="x", repr=False)
    _c: tuple[int, ...] = ()


@attrs.frozen
class Whole:
    a: int
    b: str = attrs.field(default="x", repr=False)
    _c: tuple[int, ...] = ()


@frozen(kw_only=True, eq=False)
class Named:
    a: int = 1

    def __repr__(self) -> str:
        return "its own"


@record
class Plain:
    a: int
    b: str = attrs.field(default="x", repr=False)


class Derived(Ours):
    pass


@pytest.mark.parametrize("one", [(1,), (1, "y"), (2,), (1, "x", (3,))])
@pytest.mark.parametrize("other", [(1,), (1, "y"), (2,), (1, "x", (3,))])
def test_frozen_ones_are_shown_and_compared_as_by_attrs(
    one: tuple[int, str, tuple[int, ...]], other: tuple[int, str, tuple[int, ...]]
) -> None:
    assert repr(Ours(*one)) == repr(Whole(*one)).replace("Whole", "Ours")
    assert (Ours(*one) == Ours(*other)) is (Whole(*one) == Whole(*other))
    assert (Ours(*one) != Ours(*other)) is (Whole(*one) != Whole(*other))
    assert (hash(Ours(*one)) == hash(Ours(*other))) is (Whole(*one) == Whole(*other))


def test_frozen_ones_cannot_be_changed_and_can_be_copied() -> None:
    ours = Ours(1, "y", (2,))
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        ours.a = 2  # type: ignore[misc]  # that it cannot be is what is tried
    assert ours == copy.deepcopy(ours) == pickle.loads(pickle.dumps(ours)) == attrs.evolve(ours)
    assert ours.__eq__(1) is NotImplemented
    assert Derived(1) != Ours(1)


def test_a_hash_needs_hashable_fields() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours([]))  # type: ignore[arg-type]  # no list belongs there


def test_identity_and_a_repr_of_its_own() -> None:
    assert Named() != Named()
    assert len({Named(), Named()}) == 2
    assert repr(Named()) == "its own"
    assert repr(Plain(1)) == "Plain(a=1)"
    assert Plain(1) != Plain(1)
