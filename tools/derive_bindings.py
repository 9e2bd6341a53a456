"""Writes the blocking verbs from the awaiting ones: ``python tools/derive_blocking.py [--check]``.

With ``--check`` nothing is written; it fails when the file is not what the source derives, or when a
rule below has nothing left to do.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "bindings" / "sansmcp_asyncio" / "_verbs.py"
TARGET = ROOT / "bindings" / "sansmcp_threads" / "_verbs.py"

HEAD = '''"""What an application can ask of a server, blocking.

Written by ``tools/derive_blocking.py`` from the verbs of `sansmcp_asyncio`: change those.
"""
'''

RULES: tuple[tuple[str, str], ...] = (
    (r'\A""".*?"""\n', HEAD),
    (r"\basync def\b", "def"),
    (r"\bawait ", ""),
    (r"  # noqa: ASYNC109  \([^)]*\)", ""),
    (r"^from \._options import", "from sansmcp_asyncio._options import"),
)


def derived(source: str) -> str:
    """The blocking text of an awaiting one. Raises ValueError when a rule finds nothing."""
    for pattern, replacement in RULES:
        text = replacement.replace("\\", r"\\")
        source, count = re.subn(pattern, text, source, flags=re.MULTILINE | re.DOTALL)
        if not count:
            raise ValueError(f"nothing matches {pattern!r}: the rule is not needed any more")
    for left in re.findall(r"\b(?:async|await|asyncio)\b", source.removeprefix(HEAD)):
        raise ValueError(f"{left!r} is left")
    ruff = [sys.executable, "-m", "ruff"]
    for words in (["check", "--fix-only", "--quiet", "--select", "I"], ["format", "--quiet"]):
        argv = [*ruff, *words, "--stdin-filename", str(TARGET), "-"]
        source = subprocess.run(argv, input=source, capture_output=True, check=True, text=True).stdout
    return source


def main() -> int:
    text = derived(SOURCE.read_text(encoding="utf-8"))
    if "--check" not in sys.argv[1:]:
        TARGET.write_text(text, encoding="utf-8")
        return 0
    if TARGET.exists() and TARGET.read_text(encoding="utf-8") == text:
        return 0
    print(f"{TARGET.relative_to(ROOT)} is not what its source derives: run python tools/derive_blocking.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
