"""The public names: one list, all of them there, all of them documented."""

from __future__ import annotations

import ast
from enum import Enum
from pathlib import Path

import pytest

import sansmcp

SOURCE = ast.parse(Path(sansmcp.__file__).read_text("utf-8"))


def names_for_type_checkers() -> set[str]:
    block = next(n for n in SOURCE.body if isinstance(n, ast.If))
    return {a.name for n in block.body if isinstance(n, ast.ImportFrom) for a in n.names}


def test_every_public_name_exists_and_type_checkers_see_the_same_ones() -> None:
    assert set(sansmcp.__all__) == names_for_type_checkers()
    for name in sansmcp.__all__:
        assert getattr(sansmcp, name) is not None
    assert set(sansmcp.__all__) <= set(dir(sansmcp))


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        getattr(sansmcp, "no" + "pe")


@pytest.mark.parametrize("name", sansmcp.__all__)
def test_every_public_thing_says_what_it_is(name: str) -> None:
    thing = getattr(sansmcp, name)
    if isinstance(thing, type) or callable(thing):
        assert (thing.__doc__ or "").strip(), name
        if isinstance(thing, type) and not issubclass(thing, Enum):
            for attribute, value in vars(thing).items():
                if callable(value) and not attribute.startswith("_"):
                    assert (value.__doc__ or "").strip(), f"{name}.{attribute}"
