"""Every input that the fuzzer ever learned from, or once broke something with, still holds."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

from fuzz.run import CORPUS, corpus, load, targets

INPUTS = [(name, path) for name in targets() for path in corpus(name)]


@pytest.mark.parametrize(("name", "path"), INPUTS, ids=[f"{name}-{path.name}" for name, path in INPUTS])
def test_the_invariant_holds(name: str, path: Path) -> None:
    load(name)(path.read_bytes())


@pytest.mark.req("AA4")
@pytest.mark.parametrize("name", targets())
def test_a_target_states_its_invariant_and_takes_anything(name: str) -> None:
    module = importlib.import_module(f"fuzz.targets.{name}")
    assert (module.__doc__ or "").startswith("INVARIANT: ")
    for data in (b"", b"\x00", b"\xff" * 64, bytes(range(256))):
        module.one_input(data)


def test_no_corpus_is_without_its_target() -> None:
    assert {path.name for path in CORPUS.iterdir() if path.is_dir()} <= set(targets())
