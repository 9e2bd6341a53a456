"""The suite: what a revision requires, how a leg of it is run, and what it found."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

import attrs

from tests.peers.registry import CONFORMANCE_INSTALL, NODE

ROOT: Final = Path(__file__).resolve().parents[2]
RESULTS: Final = ROOT / ".build" / "conformance"
EXPECTED: Final = Path(__file__).with_name("expected-failures.yaml")
PACKAGE: Final = CONFORMANCE_INSTALL.folder / "node_modules" / "@modelcontextprotocol" / "conformance"

START_SECONDS: Final = 30.0
SCENARIO_SECONDS: Final = 60.0
LEG_SECONDS: Final = 600.0
END_SECONDS: Final = 5.0

# The suite brings a reader of YAML, which the environment of the tests does not have.
_READ_YAML: Final = """
import { parse } from 'yaml';
import { readFileSync } from 'node:fs';
const read = (path) => parse(readFileSync(path, 'utf8'));
console.log(JSON.stringify(process.argv.slice(1).map(read)));
"""

_RESULT_FOLDER: Final = re.compile(r"(?:server-)?(?P<scenario>.+)-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d-\d+Z")


class Role(StrEnum):
    """Which side sansmcp takes."""

    SERVER = "server"
    CLIENT = "client"


class Group(StrEnum):
    """How much a scenario counts, as the suite's requirements have it."""

    SCORED = "scored"
    EXTENSION = "extension"
    ADDED = "added"
    PENDING = "pending"


_GROUPS: Final = {
    "extension": Group.EXTENSION,
    "added-after-release": Group.ADDED,
    "pending": Group.PENDING,
}

REQUIRED: Final = ("2025-11-25", "2026-07-28")
"""Revisions whose scenarios the suite lists."""
OTHERS: Final = ("2025-03-26", "2025-06-18")
"""Revisions that it can speak besides, with every scenario that fits them."""


@attrs.frozen
class Leg:
    """One run of the suite: a side and a revision."""

    role: Role
    revision: str

    @property
    def folder(self) -> Path:
        """Where the results go."""
        return RESULTS / f"{self.role}-{self.revision}"

    def selection(self, scenario: str | None) -> list[str]:
        """The arguments that say which scenarios run."""
        if scenario is not None:
            # Without force, the suite leaves out what is an extension's.
            return ["--scenario", scenario, "--spec-version", self.revision, "--force"]
        if self.revision in REQUIRED:
            return ["--requirements", self.revision]
        return ["--suite", "all", "--spec-version", self.revision]


LEGS: Final = tuple(Leg(role, revision) for role in Role for revision in sorted(REQUIRED + OTHERS))


@attrs.frozen
class Check:
    """One thing that a scenario looked at."""

    id: str
    status: str
    """``SUCCESS``, ``FAILURE``, ``WARNING``, ``SKIPPED`` or ``INFO``."""
    text: str
    """What was wrong, or else what was looked at."""


@attrs.frozen
class Outcome:
    """What came of a scenario."""

    scenario: str
    group: Group
    checks: tuple[Check, ...] = ()
    words: str = ""
    """The last that our client said to its standard error."""

    @property
    def passed(self) -> bool:
        """Whether something succeeded and nothing failed; a warning is no failure, as the suite counts."""
        return bool(self.of("SUCCESS")) and not self.of("FAILURE")

    @property
    def left_out(self) -> bool:
        """Whether the suite judges nothing in it, and did not."""
        return (
            self.scenario in NEVER_JUDGED
            and bool(self.checks)
            and len(self.of("SKIPPED")) == len(self.checks)
        )

    def of(self, *statuses: str) -> list[Check]:
        """The checks that ended so."""
        return [check for check in self.checks if check.status in statuses]


@attrs.frozen
class Knowledge:
    """What is known before anything runs."""

    groups: Mapping[Leg, Mapping[str, Group]]
    """What each leg has to run. For revisions without a list: how a scenario counts where there is one."""
    expected: Mapping[Role, frozenset[str]]
    """What fails until sansmcp has it."""


def read_knowledge() -> Knowledge:
    """Read the requirements of the suite, and which failures are expected."""
    paths = [*(PACKAGE / "requirements" / f"{revision}.yaml" for revision in REQUIRED), EXPECTED]
    argv = [str(NODE), "--input-type=module", "--eval", _READ_YAML, *map(str, paths)]
    done = subprocess.run(
        argv, cwd=CONFORMANCE_INSTALL.folder, capture_output=True, check=True, timeout=START_SECONDS
    )
    *requirements, expected = json.loads(done.stdout)
    by_revision = dict(zip(REQUIRED, requirements, strict=True))
    return Knowledge(
        {leg: _groups(by_revision.get(leg.revision, requirements[0]), leg.role) for leg in LEGS},
        {role: frozenset((expected or {}).get(role.value) or ()) for role in Role},
    )


def _groups(requirements: Mapping[str, Any], role: Role) -> dict[str, Group]:
    groups = dict.fromkeys(requirements[role.value], Group.SCORED)
    for entry in requirements["not_scored"]:
        if entry["leg"] == role.value:
            groups[entry["scenario"]] = _GROUPS[entry["reason"]]
    return groups


NEVER_JUDGED: Final = frozenset({"tasks-status-notifications"})
"""Scenarios in which the suite skips every check itself, whoever is tested."""


class LegError(Exception):
    """The suite could not be run to its end."""


# running it --------------------------------------------------------------------------------------


async def run_leg(leg: Leg, scenario: str | None) -> None:
    """Run one leg, or one scenario of it; its results are in its folder then.

    Raises LegError when it cannot be run, or takes too long.
    """
    shutil.rmtree(leg.folder, ignore_errors=True)
    leg.folder.mkdir(parents=True)
    argv = [str(NODE), str(PACKAGE / "dist" / "index.js"), leg.role.value]
    argv += [*leg.selection(scenario), "--output-dir", str(leg.folder)]
    argv += ["--timeout", str(round(SCENARIO_SECONDS * 1000))]
    if leg.role is Role.CLIENT:
        # The suite splits this at spaces and hands it to a shell.
        await _run(leg, [*argv, "--command", f"{_relative(sys.executable)} -m tests.conformance.client"])
    else:
        async with _server(leg) as url:
            await _run(leg, [*argv, "--url", url])
    output = leg.folder / "output.txt"
    if scenario is None and "SUMMARY ===" not in output.read_text("utf-8"):
        raise LegError(f"the suite did not come to its end; see {output}")


def _relative(path: str) -> str:
    """As seen from the checkout, whose own path may have a space in it."""
    return os.path.relpath(path, ROOT)


async def _run(leg: Leg, argv: Sequence[str]) -> None:
    with (leg.folder / "output.txt").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *argv,
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(LEG_SECONDS):
                await process.wait()
        except TimeoutError:
            raise LegError(f"it took more than {LEG_SECONDS:g} s and was ended; see {output.name}") from None
        finally:
            if process.returncode is None:
                # Its clients are of its group.
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()


@asynccontextmanager
async def _server(leg: Leg) -> AsyncIterator[str]:
    """Our server, and its URL; its standard error goes beside the results."""
    with (leg.folder / "server.txt").open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.conformance.server",
            cwd=ROOT,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            try:
                async with asyncio.timeout(START_SECONDS):
                    url = (await process.stdout.readline()).decode().strip()
                    if not url:
                        await process.wait()
            except TimeoutError:
                url = ""
            if not url:
                raise LegError(f"the server did not start; see {errors.name}")
            yield url
            process.stdin.close()
            try:
                async with asyncio.timeout(END_SECONDS):
                    await process.wait()
            except TimeoutError:
                raise LegError(f"the server did not end; see {errors.name}") from None
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


# what it found -----------------------------------------------------------------------------------


def read_outcomes(leg: Leg, groups: Mapping[str, Group], scenario: str | None) -> list[Outcome]:
    """What the leg found, in the order of its requirements; what did not run has no checks."""
    found = {name: (checks, words) for name, checks, words in _results(leg.folder)}
    required: Iterable[str] = ()
    if scenario is None and leg.revision in REQUIRED:
        required = groups
    names = dict.fromkeys((*required, *found))
    return [Outcome(name, groups.get(name, Group.SCORED), *found.get(name, ())) for name in names]


def _results(folder: Path) -> Iterable[tuple[str, tuple[Check, ...], str]]:
    for path in sorted(folder.rglob("checks.json")):
        # A scenario with a slash in its name has its results one folder deeper.
        match = _RESULT_FOLDER.fullmatch(path.parent.relative_to(folder).as_posix())
        assert match is not None, f"{path}: not a name that the suite gives"
        checks = tuple(map(_read_check, json.loads(path.read_text("utf-8"))))
        errors = path.with_name("stderr.txt")
        lines = errors.read_text("utf-8").split("\n") if errors.exists() else []
        yield match["scenario"], checks, next((line for line in reversed(lines) if line), "")


def _read_check(raw: Mapping[str, Any]) -> Check:
    text = raw.get("errorMessage") or raw.get("description") or ""
    return Check(raw["id"], raw["status"], " ".join(str(text).split()))
