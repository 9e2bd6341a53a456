"""Every scenario, on every binding, over every transport, in both eras; or the reason why not."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp.revisions import Era
from sansmcp.testing.scenarios import SCENARIOS, TRANSPORTS, Pause, Scenario, Scene, Script, Transport

from .adapters import ADAPTERS, Adapter
from .stage import MissingToolError, Stage
from .support import children, descriptors, until

pytestmark = pytest.mark.matrix


def cells() -> list[tuple[Scenario, Adapter, Transport, Era]]:
    """What is to be played."""
    return [
        (scenario, adapter, transport, era)
        for scenario in SCENARIOS
        for adapter in ADAPTERS
        for transport in TRANSPORTS
        for era in Era
        if reason(scenario, adapter, transport, era) is None
    ]


def reason(scenario: Scenario, adapter: Adapter, transport: Transport, era: Era) -> str | None:
    """Why there is nothing to play; None if there is."""
    return scenario.not_for(transport, era) or adapter.not_for(scenario.name, transport)


def play(scenario: Scenario, adapter: Adapter, transport: Transport, era: Era) -> None:
    """Raises ScenarioFailed, or whatever went wrong."""
    scene = Scene(transport, era)
    with Stage(scene) as stage:
        adapter.play(scenario.script(scene), stage)


def _id(value: Any) -> str:
    return str(getattr(value, "name", value)).lower().replace(" ", "-")


def _idle() -> Script:
    yield Pause(0.0)


@pytest.fixture(scope="module", autouse=True)
def first_use() -> None:
    """What a loop opens once for the whole process stays open, and is not ours."""
    for adapter in ADAPTERS:
        if adapter.not_for("", "memory") is None:
            adapter.play(_idle(), Stage(Scene("memory", Era.MODERN)))


@pytest.mark.req("S1", "S2", "Q10", "AA2")
@pytest.mark.parametrize(("scenario", "adapter", "transport", "era"), cells(), ids=_id)
def test_scenario(scenario: Scenario, adapter: Adapter, transport: Transport, era: Era) -> None:
    before = descriptors()
    try:
        play(scenario, adapter, transport, era)
    except MissingToolError as missing:
        pytest.skip(str(missing))
    until(lambda: descriptors() <= before, f"descriptors: {before} before, {descriptors()} after")
    assert not children()


def test_every_cell_is_played_or_has_a_reason() -> None:
    for scenario in SCENARIOS:
        assert any(scenario.not_for(transport, era) is None for transport in TRANSPORTS for era in Era)
        for adapter in ADAPTERS:
            for transport in TRANSPORTS:
                for era in Era:
                    why = reason(scenario, adapter, transport, era)
                    assert why is None or len(why) > 10, (scenario.name, adapter.name, transport, era)
