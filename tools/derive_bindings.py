"""Writes what other bindings have from the text for asyncio: ``python tools/derive_bindings.py [--check]``.

With ``--check`` nothing is written; it fails when a file is not what its source derives, or when a rule
has nothing left to do.
"""

import re
import subprocess
import sys
from pathlib import Path

BINDINGS = Path(__file__).resolve().parents[1] / "bindings"
SOURCE = BINDINGS / "sansmcp_asyncio"

Rules = tuple[tuple[str, str], ...]

WRITTEN = "Written by ``tools/derive_bindings.py`` from the same of `sansmcp_asyncio`: change that."
DOCSTRING = (r'\A"""(.*?)(?:\n\n.*?)?"""\n', f'"""\\1\n\n{WRITTEN}\n"""\n')
"""Keep the first paragraph."""

BLOCKING: Rules = ((r"\basync def\b", "def"), (r"\bawait ", ""))
SHARED: Rules = ((r"^from \.(_http|_options|_streams) import", r"from sansmcp_asyncio.\1 import"),)

DERIVED: tuple[tuple[str, str, Rules], ...] = (
    (
        "_verbs.py",
        "sansmcp_threads",
        (
            (r"  # noqa: ASYNC109  \([^)]*\)", ""),
            *BLOCKING,
            *SHARED,
        ),
    ),
    ("_serve.py", "sansmcp_threads", ((r"\buntil cancelled\b", "until Ctrl-C"), *BLOCKING, *SHARED)),
    ("_serve.py", "sansmcp_trio", SHARED),
)
"""Which file, for which binding, and by what rules."""


def derived(name: str, binding: str, rules: Rules) -> str:
    """The text of a file of `binding`. Raises ValueError when a rule finds nothing."""
    text = re.sub(*DOCSTRING, (SOURCE / name).read_text(encoding="utf-8"), flags=re.DOTALL)
    for pattern, replacement in rules:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if not count:
            raise ValueError(f"{name} for {binding}: nothing matches {pattern!r}; is the rule still needed?")
    left = re.search(r"\basyncio\b" if binding == "sansmcp_trio" else r"\b(?:async|await|asyncio)\b", text)
    if left is not None:
        raise ValueError(f"{name} for {binding}: {left[0]!r} is left")
    ruff = [sys.executable, "-m", "ruff"]
    for words in (["check", "--fix-only", "--quiet", "--select", "I"], ["format", "--quiet"]):
        argv = [*ruff, *words, "--stdin-filename", str(BINDINGS / binding / name), "-"]
        text = subprocess.run(argv, input=text, capture_output=True, check=True, text=True).stdout
    return text


def main() -> int:
    differ = 0
    for name, binding, rules in DERIVED:
        target, text = BINDINGS / binding / name, derived(name, binding, rules)
        if "--check" not in sys.argv[1:]:
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            differ = 1
            print(f"{binding}/{name} is not what its source derives: run python tools/derive_bindings.py")
    return differ


if __name__ == "__main__":
    sys.exit(main())
