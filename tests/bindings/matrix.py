"""Prints what each binding does over each transport in each era: ``python -m tests.bindings.matrix [WORD]``.

With words, only the scenarios that have one of them in their name are played. ``ok`` is played and passed,
``FAIL`` did not pass; a number stands for the reason why there is nothing to play. The exit code is 1 if
something failed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from sansmcp.revisions import Era
from sansmcp.testing.scenarios import SCENARIOS, TRANSPORTS, Scenario, Transport

from .adapters import ADAPTERS, Adapter
from .stage import MissingToolError
from .test_scenarios import play, reason

WIDTH = 6


def main(words: list[str], say: Callable[[str], object] = print) -> int:
    """Play and print; return the exit code."""
    reasons: dict[str, int] = {}
    failures: list[str] = []
    for adapter in ADAPTERS:
        _head(adapter, say)
        for scenario in SCENARIOS:
            if words and not any(word in scenario.name for word in words):
                continue
            row = [
                _cell(scenario, adapter, transport, era, reasons, failures)
                for transport in TRANSPORTS
                for era in Era
            ]
            say(f"{scenario.name:46} " + " ".join(f"{cell:>{WIDTH}}" for cell in row))
    say("")
    for text, number in reasons.items():
        say(f"{number:>2}  {text}")
    for failure in failures:
        say(f"FAIL  {failure}")
    return 1 if failures else 0


def _head(adapter: Adapter, say: Callable[[str], object]) -> None:
    say("")
    columns = [(transport, era) for transport in TRANSPORTS for era in Era]
    say(f"{adapter.name:46} " + " ".join(f"{t:>{WIDTH}}" for t, _ in columns))
    say(f"{'':46} " + " ".join(f"{str(era)[:WIDTH]:>{WIDTH}}" for _, era in columns))


def _cell(
    scenario: Scenario,
    adapter: Adapter,
    transport: Transport,
    era: Era,
    reasons: dict[str, int],
    failures: list[str],
) -> str:
    why = reason(scenario, adapter, transport, era)
    if why is None:
        try:
            play(scenario, adapter, transport, era)
        except MissingToolError as missing:
            why = str(missing)
        except Exception as error:
            failures.append(f"{scenario.name}, {adapter.name}, {transport}, {era}: {error!r}")
            return "FAIL"
    return "ok" if why is None else str(reasons.setdefault(why, len(reasons) + 1))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
