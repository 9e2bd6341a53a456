"""What the runner makes of what the suite wrote; the suite itself is run by `make conformance`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from .run import judge
from .suite import EXPECTED, NEVER_JUDGED, REQUIRED, ROOT, Check, Group, Leg, Outcome, Role, read_outcomes

FAILED = (Check("a", "SUCCESS", ""), Check("b", "FAILURE", "it is wrong"))
WRONG = "  FAILURE ping: b: it is wrong\n"
SKIPPED = (Check("a", "SKIPPED", ""),)
SKIPS = next(iter(NEVER_JUDGED))
PASSED = (Check("a", "SUCCESS", ""), Check("b", "WARNING", "it is odd"))


@pytest.mark.req("AA8")
@pytest.mark.parametrize(
    ("checks", "expected", "good", "said"),
    [
        pytest.param(PASSED, False, True, "  WARNING ping: b: it is odd\n", id="passes with a warning"),
        pytest.param(PASSED[:1], True, False, "  ping: passes, and is expected to fail\n", id="stale"),
        pytest.param(
            FAILED, False, False, "  ping: fails  the end\n  FAILURE ping: b: it is wrong\n", id="fails"
        ),
        pytest.param(FAILED, True, True, "  1 expected to fail do\n", id="fails as expected"),
        pytest.param((), False, False, "  ping: did not run  the end\n", id="missing"),
        pytest.param(SKIPPED, False, False, "  ping: fails  the end\n", id="skipped"),
    ],
)
def test_what_differs_from_the_expected_is_said(
    checks: tuple[Check, ...], expected: bool, good: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = [Outcome("ping", Group.SCORED, checks, "the end")]
    assert judge(outcomes, frozenset({"ping"} if expected else ()), verbose=False) is good
    assert capsys.readouterr().out == said


@pytest.mark.req("AA8")
def test_every_run_of_the_ci_runs_the_suite() -> None:
    assert "\nmake conformance\n" in (ROOT / ".ci" / "run").read_text("utf-8")


@pytest.mark.req("AA8")
def test_nothing_may_fail() -> None:
    assert re.findall(r"^  - (\S+)", EXPECTED.read_text("utf-8"), re.MULTILINE) == []


@pytest.mark.req("AA8")
@pytest.mark.parametrize(
    ("checks", "good", "said"),
    [
        (SKIPPED, True, f"  {SKIPS}: skipped by the suite itself\n"),
        (PASSED[:1], True, ""),
        ((), False, f"  {SKIPS}: did not run\n"),
        ((*SKIPPED, *FAILED[1:]), False, f"  {SKIPS}: fails\n  FAILURE {SKIPS}: b: it is wrong\n"),
    ],
    ids=["skipped", "judged after all", "missing", "fails"],
)
def test_what_the_suite_never_judges_is_said_and_no_failure(
    checks: tuple[Check, ...], good: bool, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = [Outcome(SKIPS, Group.EXTENSION, checks)]
    assert judge(outcomes, frozenset(), verbose=False) is good
    assert capsys.readouterr().out == said


def test_results_are_found_by_the_names_the_suite_gives_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    leg = Leg(Role.SERVER, REQUIRED[0])
    monkeypatch.setattr("tests.conformance.suite.RESULTS", tmp_path)
    for name, error in (("server-server-initialize", None), ("auth/metadata-var1", "no\n  token")):
        folder = leg.folder / f"{name}-2026-11-30T08-51-30-629Z"
        folder.mkdir(parents=True)
        check = {"id": "a", "status": "FAILURE", "description": "what is looked at", "errorMessage": error}
        (folder / "checks.json").write_text(json.dumps([check]), "utf-8")
        if error is not None:
            (folder / "stderr.txt").write_text("Traceback:\nOSError: no\n\n", "utf-8")
    groups = {"ping": Group.SCORED, "server-initialize": Group.PENDING}
    assert read_outcomes(leg, groups, None) == [
        Outcome("ping", Group.SCORED),
        Outcome("server-initialize", Group.PENDING, (Check("a", "FAILURE", "what is looked at"),)),
        Outcome("auth/metadata-var1", Group.SCORED, (Check("a", "FAILURE", "no token"),), "OSError: no"),
    ]
    assert [outcome.scenario for outcome in read_outcomes(leg, groups, "server-initialize")] == [
        "auth/metadata-var1",
        "server-initialize",
    ]
