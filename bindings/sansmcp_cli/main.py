"""The console script. Says what to install when the extra is missing, else hands over to click."""

from __future__ import annotations

import sys
from importlib.util import find_spec


def main() -> None:
    """Run the command ``sansmcp`` and exit with its exit code."""
    missing = [name for name in ("click", "rich") if find_spec(name) is None]
    if missing:
        print(
            f"sansmcp: the command needs {' and '.join(missing)}: pip install 'sansmcp[cli]'",
            file=sys.stderr,
        )
        raise SystemExit(2)
    from .cli import cli

    cli.main(prog_name="sansmcp")


if __name__ == "__main__":
    main()
