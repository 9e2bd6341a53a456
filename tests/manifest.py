"""Which requirement and which case is shown by which test: ``python -m tests.manifest``.

Tests name what they show by ``@pytest.mark.req("E2")`` and ``@pytest.mark.case("S-01")``. The marks
are read from the source, so nothing has to run for it. The lists of all ids are `requirements.md`
and `cases.md` in the folder that ``SANSMCP_LISTS`` names, or in ``shared`` beside the checkout; with
them, what no test shows is printed too, and without them only what is marked.

A mark whose ids come from a table, as in ``pytest.mark.case(*row.cases)``, counts for every id that
stands in a tuple of nothing but ids, in the same file or in one of the tests' files that it imports.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import attrs

TESTS = Path(__file__).parent
FORMS = {"req": re.compile(r"[A-Z]{1,2}[1-9][0-9]*"), "case": re.compile(r"[A-Z]-[0-9]{2}")}
NAMES = {"req": "requirements", "case": "cases"}


@attrs.frozen
class Mark:
    """One id, claimed by one test (or by a whole file)."""

    kind: str
    id: str
    where: str
    """The file below `tests` and the test in it: ``test_era.py::test_pin``."""

    @property
    def valid(self) -> bool:
        """Whether the id looks like one of its kind."""
        return FORMS[self.kind].fullmatch(self.id) is not None


# marks in the tests ------------------------------------------------------------------------------


def marks(folder: Path = TESTS) -> list[Mark]:
    """Every mark in the tests below `folder`, in the order of the files."""
    found: list[Mark] = []
    for path in sorted(folder.rglob("test_*.py")):
        found += _marks_of(path, folder)
    return found


def _marks_of(path: Path, folder: Path) -> Iterator[Mark]:
    tree = ast.parse(path.read_text("utf-8"), str(path))
    file = path.relative_to(folder).as_posix()
    helpers = _helpers(tree)
    seen = set()
    for owner, call in _mark_calls(tree):
        kind = call.func.attr if isinstance(call.func, ast.Attribute) else ""
        # A helper that makes marks speaks for the tests that use it.
        owners = helpers.get(owner, [owner]) if owner else [""]
        for id_ in _ids(call, kind, tree, path, folder):
            for name in owners:
                mark = Mark(kind, id_, f"{file}::{name}" if name else file)
                if mark not in seen:
                    seen.add(mark)
                    yield mark


def _mark_calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    """Each ``….mark.req(…)`` or ``….mark.case(…)``, with the function or class that it belongs to."""

    def visit(node: ast.AST, owner: str) -> Iterator[tuple[str, ast.Call]]:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            owner = f"{owner}::{node.name}" if owner.startswith("Test") else owner or node.name
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr in FORMS
            and isinstance(node.func.value, ast.Attribute)
            and node.func.value.attr == "mark"
        ):
            yield owner, node
        for child in ast.iter_child_nodes(node):
            yield from visit(child, owner)

    yield from visit(tree, "")


def _helpers(tree: ast.Module) -> dict[str, list[str]]:
    """For each function of a file that is no test: the tests that name it."""
    functions = [n for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    tests = [f for f in functions if f.name.startswith("test")]
    uses = {t.name: {n.id for n in ast.walk(t) if isinstance(n, ast.Name)} for t in tests}
    return {
        f.name: [name for name, used in uses.items() if f.name in used] or [""]
        for f in functions
        if f not in tests
    }


def _ids(call: ast.Call, kind: str, tree: ast.Module, path: Path, folder: Path) -> Iterator[str]:
    for argument in call.args:
        if isinstance(argument, ast.Constant):
            yield str(argument.value)
        elif isinstance(argument, ast.Starred):
            yield from _tables(kind, tree, path, folder)
        else:
            yield ast.unparse(argument)  # no id: told as one of the wrong form


def _tables(kind: str, tree: ast.Module, path: Path, folder: Path) -> Iterator[str]:
    """Ids in the tables of a file and of the tests' files that it imports."""
    trees = [tree]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            base = folder if node.level == 0 else path.parents[node.level - 1]
            parts = node.module.split(".")
            if node.level == 0 and parts.pop(0) != folder.name:
                continue
            imported = base.joinpath(*parts).with_suffix(".py")
            if imported.is_file():
                trees.append(ast.parse(imported.read_text("utf-8"), str(imported)))
    for each in trees:
        for node in ast.walk(each):
            if isinstance(node, ast.Tuple) and node.elts:
                values = [n.value for n in node.elts if isinstance(n, ast.Constant)]
                texts = [v for v in values if isinstance(v, str) and FORMS[kind].fullmatch(v)]
                if len(texts) == len(node.elts):
                    yield from texts


# the lists ---------------------------------------------------------------------------------------


def lists_folder() -> Path:
    """Where the lists of ids are looked for; it need not exist."""
    named = os.environ.get("SANSMCP_LISTS")
    return Path(named) if named else TESTS.parent.parent / "shared"


def listed(folder: Path) -> dict[str, dict[str, str]]:
    """The ids of each kind that the lists in `folder` have, with what they are about."""
    found: dict[str, dict[str, str]] = {}
    requirements, cases = folder / "requirements.md", folder / "cases.md"
    if requirements.is_file():
        rows = re.findall(r"^\|\s*([A-Z]{1,2}[1-9][0-9]*)\s*\|([^|]*)\|", _text(requirements), re.MULTILINE)
        found["req"] = {id_: about.strip() for id_, about in rows}
    if cases.is_file():
        rows = re.findall(r"^\*\*([A-Z]-[0-9]{2})\s*·\s*(.*?)\*\*\s*$", _text(cases), re.MULTILINE)
        found["case"] = dict(rows)
    return found


def _text(path: Path) -> str:
    return path.read_text("utf-8")


def unknown(found: list[Mark], lists: Mapping[str, Mapping[str, str]]) -> list[Mark]:
    """Marks with an id of the wrong form, or one that the list of its kind does not have."""
    return [mark for mark in found if not mark.valid or mark.id not in lists.get(mark.kind, {mark.id: ""})]


# the command -------------------------------------------------------------------------------------


def _order(id_: str) -> tuple[int, str, int]:
    letters, number = re.match(r"([A-Z]*)-?([0-9]*)", id_).groups()  # type: ignore[union-attr]
    return len(letters), letters, int(number or 0)


def report(found: list[Mark], lists: Mapping[str, Mapping[str, str]]) -> str:
    """What is shown by which test, and what by none."""
    lines: list[str] = []
    for kind, name in NAMES.items():
        shown: dict[str, list[str]] = {}
        for mark in found:
            if mark.kind == kind:
                shown.setdefault(mark.id, []).append(mark.where)
        known = lists.get(kind)
        lines.append(f"{name.capitalize()}: {len(shown)} shown" + (f" of {len(known)}" if known else ""))
        lines += [f"  {id_:6}{', '.join(shown[id_])}" for id_ in sorted(shown, key=_order)]
        if known:
            without = [id_ for id_ in known if id_ not in shown]
            lines.append(f"{name.capitalize()} without a test: {len(without)}")
            lines += [f"  {id_:6}{known[id_]}" for id_ in without]
        lines.append("")
    wrong = unknown(found, lists)
    if wrong:
        lines.append(f"Marks that name nothing: {len(wrong)}")
        lines += [f"  {mark.id!r} in {mark.where}" for mark in wrong]
    return "\n".join(lines).rstrip()


def main(arguments: list[str] | None = None) -> int:
    told = (__doc__ or "").partition(":")[0]
    parser = argparse.ArgumentParser(prog="python -m tests.manifest", description=told)
    parser.add_argument("--lists", type=Path, help="the folder with requirements.md and cases.md")
    options = parser.parse_args(arguments)
    found, lists = marks(), listed(options.lists or lists_folder())
    print(report(found, lists))
    return 1 if unknown(found, lists) else 0


if __name__ == "__main__":
    sys.exit(main())
