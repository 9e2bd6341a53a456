"""Runs the suite and compares what fails with what is expected to: see `--help`.

Exit code 0: what fails is in `expected-failures.yaml`, and all of that fails; or the suite could not be
installed, since its registry could not be reached. Exit code 1 otherwise.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Sequence
from typing import Final

from tests.peers.registry import CONFORMANCE_INSTALL, NODE_INSTALL

from .suite import (
    LEGS,
    OTHERS,
    REQUIRED,
    Group,
    Leg,
    LegError,
    Outcome,
    Role,
    read_knowledge,
    read_outcomes,
    run_leg,
)

WIDTH: Final = 160
"""Of a line about a scenario."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the command line asks for; return the exit code."""
    options = _options(argv)
    for install in (NODE_INSTALL, CONFORMANCE_INSTALL):
        if not install.done():
            unreachable = install.reason.is_file()
            print(install.reason.read_text("utf-8").strip() if unreachable else "run `make peers` first")
            return 0 if unreachable else 1
    started = time.monotonic()
    known = read_knowledge()
    legs = [
        leg for leg in LEGS if options.role in (None, leg.role) and options.revision in (None, leg.revision)
    ]
    good, ran = True, 0
    for leg in legs:
        begun = time.monotonic()
        try:
            asyncio.run(run_leg(leg, options.scenario))
        except LegError as error:
            print(f"{leg.role} {leg.revision}: {error}", flush=True)
            good = False
            continue
        outcomes = read_outcomes(leg, known.groups[leg], options.scenario)
        if not outcomes:
            continue
        ran += len(outcomes)
        print(_summary(leg, outcomes, time.monotonic() - begun), flush=True)
        good &= judge(outcomes, known.expected[leg.role], verbose=options.verbose)
    if not ran:
        print("no scenario ran")
        good = False
    print(f"{'as expected' if good else 'NOT as expected'}, in {time.monotonic() - started:.0f} s")
    return 0 if good else 1


def _options(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance", description=__doc__)
    parser.add_argument("--role", choices=[role.value for role in Role], help="only as this side")
    parser.add_argument("--revision", choices=sorted(REQUIRED + OTHERS), help="only this revision")
    parser.add_argument("--scenario", help="only this scenario, where it applies")
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="show what expected failures failed, too"
    )
    return parser.parse_args(argv)


def _summary(leg: Leg, outcomes: Sequence[Outcome], seconds: float) -> str:
    cells = [f"{leg.role:6} {leg.revision}"]
    for group in Group:
        members = [outcome for outcome in outcomes if outcome.group is group and not outcome.left_out]
        count = f"{sum(outcome.passed for outcome in members)}/{len(members)}"
        cells.append(f"{group} {count:5}")
    return f"{'  '.join(cells)}  {seconds:4.0f} s"


def judge(outcomes: Sequence[Outcome], expected: frozenset[str], *, verbose: bool) -> bool:
    """Say what is not as it should be; whether nothing is."""
    good, foreseen = True, 0
    for outcome in outcomes:
        name = outcome.scenario
        if outcome.left_out:
            _say(f"{name}: skipped by the suite itself")
            continue
        if outcome.passed and name in expected:
            _say(f"{name}: passes, and is expected to fail")
            good = False
        elif not outcome.passed and name in expected:
            foreseen += 1
            if not verbose:
                continue
        elif not outcome.passed:
            good = False
            _say(f"{name}: {'fails' if outcome.checks else 'did not run'}  {outcome.words}".rstrip())
        for check in outcome.of("FAILURE", "WARNING", *(("SKIPPED",) if verbose else ())):
            _say(f"{check.status:7} {name}: {check.id}: {check.text}")
    if foreseen:
        _say(f"{foreseen} expected to fail do")
    return good


def _say(line: str) -> None:
    print(f"  {line}" if len(line) <= WIDTH else f"  {line[: WIDTH - 1]}…")
