"""The marks in the tests name requirements and cases that exist, and the manifest finds them all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.manifest import FORMS, Mark, listed, lists_folder, main, marks, report, unknown

FOUND = marks()
LISTS = listed(lists_folder())

SOURCE = """
import pytest
from tests.rows import ROWS

pytestmark = pytest.mark.req("A1")

def rows():
    return [pytest.param(row, marks=[pytest.mark.case(*row.cases)]) for row in ROWS]

@pytest.mark.req("B2", "B3")
@pytest.mark.parametrize("row", rows())
def test_rows(row):
    pass

@pytest.mark.parametrize("n", [pytest.param(1, marks=pytest.mark.case("S-02")), 2])
async def test_one(n):
    pass

class TestMany:
    @pytest.mark.req(f"C{1}")
    def test_inside(self):
        pass
"""
ROWS = """
ROWS = (("first", ("S-01", "J-10"), b""), ("second", (), b"S-09"), ("third", ("x", "S-08"), b""))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of tests like this one."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_x.py").write_text(SOURCE, "utf-8")
    (tests / "rows.py").write_text(ROWS, "utf-8")
    return tests


@pytest.mark.req("AA9")
def test_marks_are_found_wherever_they_stand(folder: Path) -> None:
    assert set(marks(folder)) == {
        Mark("req", "A1", "test_x.py"),
        Mark("req", "B2", "test_x.py::test_rows"),
        Mark("req", "B3", "test_x.py::test_rows"),
        Mark("case", "S-01", "test_x.py::test_rows"),
        Mark("case", "J-10", "test_x.py::test_rows"),
        Mark("case", "S-02", "test_x.py::test_one"),
        Mark("req", "f'C{1}'", "test_x.py::TestMany::test_inside"),
    }


@pytest.mark.req("AA9")
def test_the_report_tells_what_is_shown_and_what_is_not(folder: Path, tmp_path: Path) -> None:
    rows = "| id | x |\n|---|---|\n| A1 | probe | … |\n| A2 | time | … |\n"
    (tmp_path / "requirements.md").write_text(rows, "utf-8")
    (tmp_path / "cases.md").write_text("**S-01 · a split line**\n- x\n\n**S-03 · a mark**\n", "utf-8")
    lists = listed(tmp_path)
    assert lists == {"req": {"A1": "probe", "A2": "time"}, "case": {"S-01": "a split line", "S-03": "a mark"}}
    found = marks(folder)
    text = report(found, lists)
    assert "  A1    test_x.py\n" in text
    assert "Requirements without a test: 1\n  A2    time" in text
    assert "  S-03  a mark" in text
    wrong = {mark.id for mark in unknown(found, lists)}
    assert wrong == {"B2", "B3", "J-10", "S-02", "f'C{1}'"}


@pytest.mark.req("AA9")
def test_without_lists_only_the_marks_are_told(folder: Path, tmp_path: Path) -> None:
    found = marks(folder)
    assert listed(tmp_path / "nowhere") == {}
    assert "without a test" not in report(found, {})
    assert [mark.id for mark in unknown(found, {})] == ["f'C{1}'"]


@pytest.mark.req("AA9")
def test_the_command_tells_of_these_tests(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    told = capsys.readouterr().out
    assert "test_manifest.py::test_the_command_tells_of_these_tests" in told


@pytest.mark.parametrize("kind", list(FORMS))
def test_there_are_marks(kind: str) -> None:
    assert any(mark.kind == kind for mark in FOUND)


def test_every_mark_has_the_form_of_an_id() -> None:
    assert [(mark.where, mark.id) for mark in FOUND if not mark.valid] == []


@pytest.mark.skipif(not LISTS, reason="the lists of requirements and cases are not beside the checkout")
def test_every_marked_id_is_in_the_lists() -> None:
    assert [(mark.where, mark.id) for mark in unknown(FOUND, LISTS)] == []
