"""Writes what bindings have from the text of others: ``python tools/derive_bindings.py [--check]``.

With ``--check`` nothing is written; it fails when a file is not what its source derives, or when a rule
has nothing left to do.
"""

import re
import subprocess
import sys
from pathlib import Path

BINDINGS = Path(__file__).resolve().parents[1] / "bindings"

Rules = tuple[tuple[str, str], ...]

WRITTEN = "Written by ``tools/derive_bindings.py`` from `{}`: change that."
DOCSTRING = r'\A"""(.*?)(?:\n\n.*?)?"""\n'
"""The first paragraph is kept."""

BLOCKING: Rules = ((r"\basync def\b", "def"), (r"\bawait ", ""))

DERIVED: tuple[tuple[str, str, Rules], ...] = (
    (
        "sansmcp_shared/verbs.py",
        "sansmcp_threads/_verbs.py",
        (
            (r"  # noqa: ASYNC109  \([^)]*\)", ""),
            (r"^from \.(\w+) import", r"from sansmcp_shared.\1 import"),
            *BLOCKING,
        ),
    ),
    (
        "sansmcp_asyncio/_serve.py",
        "sansmcp_threads/_serve.py",
        ((r"\buntil cancelled\b", "until Ctrl-C"), *BLOCKING),
    ),
    ("sansmcp_asyncio/_serve.py", "sansmcp_trio/_serve.py", ()),
)
"""Which file, as which, and by what rules."""


def derived(source: str, target: str, rules: Rules) -> str:
    """The text of `target`. Raises ValueError when a rule finds nothing."""
    written = WRITTEN.format(source.removesuffix(".py").replace("/", "."))
    text = (BINDINGS / source).read_text(encoding="utf-8")
    text = re.sub(DOCSTRING, f'"""\\1\n\n{written}\n"""\n', text, flags=re.DOTALL)
    for pattern, replacement in rules:
        text, count = re.subn(pattern, replacement, text, flags=re.MULTILINE)
        if not count:
            raise ValueError(f"{target}: nothing matches {pattern!r}; is the rule still needed?")
    left = re.search(r"\basyncio\b" if rules == () else r"\b(?:async|await|asyncio)\b", text)
    if left is not None:
        raise ValueError(f"{target}: {left[0]!r} is left")
    ruff = [sys.executable, "-m", "ruff"]
    for words in (["check", "--fix-only", "--quiet", "--select", "I"], ["format", "--quiet"]):
        argv = [*ruff, *words, "--stdin-filename", str(BINDINGS / target), "-"]
        text = subprocess.run(argv, input=text, capture_output=True, check=True, text=True).stdout
    return text


def main() -> int:
    differ = 0
    for source, name, rules in DERIVED:
        target, text = BINDINGS / name, derived(source, name, rules)
        if "--check" not in sys.argv[1:]:
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            differ = 1
            print(f"{name} is not what its source derives: run python tools/derive_bindings.py")
    return differ


if __name__ == "__main__":
    sys.exit(main())
