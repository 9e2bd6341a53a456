"""The small classes behave as those that attrs makes whole."""

from __future__ import annotations

import copy
import inspect
import pickle
from typing import Any, ClassVar

import attrs
import pytest

from sansmcp.records import field, frozen, record


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
    kind: ClassVar[str] = "plain"
    a: int
    b: str = field(default="x", repr=False)
    c: list[int] = field(factory=list)
    d: int = field(default=4, kw_only=True)
    _e: int = field(default=5, init=False)


@record
class More(Plain):
    a: int = 0
    f: int = field(default=6)

    def __attrs_post_init__(self) -> None:
        self.f += 1

    def whose(self) -> type:
        return __class__  # type: ignore[name-defined, no-any-return]


@attrs.define(eq=False)
class OfAttrs:
    a: int
    b: str = attrs.field(default="x", repr=False)
    c: list[int] = attrs.field(factory=list)
    d: int = attrs.field(default=4, kw_only=True)
    _e: int = attrs.field(default=5, init=False)


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
        ours.a = 2  # type: ignore[misc]
    assert ours == copy.deepcopy(ours) == pickle.loads(pickle.dumps(ours)) == attrs.evolve(ours)
    assert ours.__eq__(1) is NotImplemented
    assert Derived(1) != Ours(1)


def test_a_hash_needs_hashable_fields() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(Ours([]))  # type: ignore[arg-type]


def test_identity_and_a_repr_of_its_own() -> None:
    assert Named() != Named()
    assert len({Named(), Named()}) == 2
    assert repr(Named()) == "its own"
    assert repr(Plain(1)) == "Plain(a=1, c=[], d=4, _e=5)"
    assert Plain(1) != Plain(1)


def test_a_record_is_made_as_by_attrs() -> None:
    ours, theirs = inspect.signature(Plain), inspect.signature(OfAttrs)
    assert [(p.name, p.kind) for p in ours.parameters.values()] == [
        (p.name, p.kind) for p in theirs.parameters.values()
    ]
    assert Plain.__match_args__ == OfAttrs.__match_args__
    assert Plain.__slots__ == ("a", "b", "c", "d", "_e")  # type: ignore[attr-defined]
    one, other = Plain(1), Plain(1)
    assert one.c is not other.c
    assert Plain(1, "y", [2], d=3).c == [2]
    assert not hasattr(one, "__dict__")
    for wrong in ((), (1, "y", [2], 3)):
        with pytest.raises(TypeError, match=r"Plain\.__init__\(\)"):
            Plain(*wrong)
    assert copy.copy(Plain(1, "y")).b == "y"
    assert Plain.kind == "plain"


def test_a_record_of_a_record_has_the_fields_of_both() -> None:
    assert More.__match_args__ == ("b", "c", "a", "f")
    assert More.__slots__ == ("f",)  # type: ignore[attr-defined]
    assert repr(More()) == "More(c=[], d=4, _e=5, a=0, f=7)"
    assert More().whose() is More


def test_attrs_knows_a_record() -> None:
    plain: Any = Plain
    told = [(a.name, a.default, a.init, a.repr, a.kw_only) for a in attrs.fields(plain)]
    assert told == [(a.name, a.default, a.init, a.repr, a.kw_only) for a in attrs.fields(OfAttrs)]
    assert attrs.asdict(plain(1)) == {"a": 1, "b": "x", "c": [], "d": 4, "_e": 5}
    assert attrs.evolve(plain(1), b="y").b == "y"

    @attrs.define
    class Theirs(More):
        g: int = 7

    assert Theirs(g=8).g == 8
    assert [a.name for a in attrs.fields(Theirs)][-2:] == ["f", "g"]
