"""The pages: every block of Python runs and prints what the page says; what is generated is complete."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import pytest

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if "_build" not in p.parts)

FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL
)
NOT_RUN = re.compile(r"python not-run: (?P<reason>.{10,})")


@attrs.frozen
class Block:
    """A block of Python and, where the page says it, what it prints."""

    code: str
    line: int
    output: str | None


def blocks_of(path: Path) -> Iterator[Block]:
    """The blocks of a page that are to run, in order."""
    text = path.read_text("utf-8")
    found = list(FENCE.finditer(text))
    for number, fence in enumerate(found):
        info = fence["info"].strip()
        if info.split(" ")[0] != "python":
            continue
        if info != "python":
            assert NOT_RUN.fullmatch(info), f"{path.name}: {info!r} must be 'python not-run: REASON'"
            continue
        follows = found[number + 1] if number + 1 < len(found) else None
        output = None
        if follows is not None and follows["info"].strip() == "output":
            assert not text[fence.end() : follows.start()].strip(), f"{path.name}: text before the output"
            output = follows["body"]
        yield Block(fence["body"], text[: fence.start("body")].count("\n"), output)


def run_page(path: Path, namespace: dict[str, Any]) -> int:
    """Run the blocks of a page one after the other, in one namespace. Returns how many there are."""
    count = 0
    for block in blocks_of(path):
        printed = io.StringIO()
        # Line numbers in a traceback are those of the page.
        code = compile("\n" * block.line + block.code, str(path), "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.output is not None:
            assert printed.getvalue() == block.output, f"{path.name}, line {block.line}"
        count += 1
    return count


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DOCS)
    monkeypatch.syspath_prepend(str(DOCS / "examples"))
    run_page(DOCS / page, {"__name__": "page"})
