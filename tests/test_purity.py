"""The core does no I/O, starts nothing, reads no clock and draws no randomness."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

CORE = Path(__file__).parent.parent / "sansmcp"
FILES = sorted(CORE.rglob("*.py"))
BANNED = frozenset(
    {
        *("asyncio", "trio", "anyio", "socket", "ssl", "select", "selectors", "threading"),
        *("subprocess", "signal", "time", "random", "secrets", "uuid"),
        *("multiprocessing", "concurrent"),
    }
)


def imported(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names.add(node.module.partition(".")[0])
    return names


@pytest.mark.req("AA1")
@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(CORE)))
def test_no_io_in_the_source(path: Path) -> None:
    tree = ast.parse(path.read_text("utf-8"))
    assert not imported(tree) & BANNED
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            assert node.attr not in ("urandom", "getrandom", "environ"), ast.unparse(node)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            assert node.func.id not in ("open", "input", "print"), ast.unparse(node)


def test_the_check_finds_what_it_looks_for() -> None:
    tree = ast.parse("import asyncio.events\nfrom time import monotonic")
    assert imported(tree) & BANNED == {"asyncio", "time"}


@pytest.mark.req("AA1")
def test_nothing_of_that_is_loaded_by_the_core() -> None:
    """Also not by what it imports, as far as it was loaded for connecting and calling a tool."""
    code = (
        "import sys; before = set(sys.modules); import sansmcp;"
        "[getattr(sansmcp, n) for n in sansmcp.__all__ if n != 'fast_codec'];"
        "new = {m.partition('.')[0] for m in set(sys.modules) - before};"
        "print(*sorted(new & {'asyncio','trio','anyio','socket','ssl','select','selectors',"
        "'subprocess','signal','secrets','multiprocessing','concurrent'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""


@pytest.mark.req("AA1")
def test_the_eras_do_not_know_each_other() -> None:
    for own, other in (("legacy", "modern"), ("modern", "legacy")):
        tree = ast.parse((CORE / "session" / f"{own}.py").read_text("utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                assert other not in (node.module or "")
                assert other not in {alias.name for alias in node.names}


@pytest.mark.req("B13")
def test_no_decision_depends_on_a_peers_name() -> None:
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Compare):
                assert "server_info" not in ast.unparse(node).replace("server_info is", "").replace(
                    "server_info =", ""
                ), path
