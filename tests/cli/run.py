"""Runs the command as somebody at a shell does: a process of its own, in an empty home folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs
from click.testing import CliRunner

HERE = Path(__file__).resolve().parent
PYTHON = sys.executable

DEMO = [PYTHON, "-m", "sansmcp_cli.demo_app"]
RICH = [PYTHON, str(HERE / "rich_server.py")]
ERAS = {"modern": DEMO, "legacy": [*DEMO, "legacy"]}


def rough(*behaviour: str) -> list[str]:
    """The command of a server that misbehaves in a certain way: see rough_server.py."""
    return [PYTHON, str(HERE / "rough_server.py"), *behaviour]


@attrs.frozen
class Ran:
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output as the one JSON document that it has to be."""
        return json.loads(self.out)

    @property
    def first_error(self) -> str:
        """The one line that says what went wrong."""
        return self.err.splitlines()[0]


def environment(home: Path | str, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    kept = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "LANG", "TMPDIR") if name in os.environ}
    return {**kept, "HOME": str(home), "COLUMNS": "100", **(extra or {})}


def run(
    args: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    stdin: str | None = None,
    python: Sequence[str] = ("-W", "error", "-m", "sansmcp_cli"),
) -> Ran:
    """Run ``sansmcp ARGS…`` in a process of its own."""
    done = subprocess.run(
        [PYTHON, *python, *args],
        cwd=cwd,
        env=environment(cwd, env),
        input=stdin,
        stdin=subprocess.DEVNULL if stdin is None else None,
        capture_output=True,
        encoding="utf-8",
        errors="surrogateescape",
        timeout=60,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


@contextmanager
def serve_http(*args: str, cwd: Path, place: str = "0") -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``sansmcp serve --http PLACE ARGS…`` as a process of its own, and the URL that it says."""
    with listening("serve", "--http", place, *args, cwd=cwd) as found:
        yield found


@contextmanager
def listening(*args: str, cwd: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    """``sansmcp ARGS…`` as a process of its own that listens, and the URL that it says."""
    command = [PYTHON, "-W", "error", "-m", "sansmcp_cli", *args]
    with subprocess.Popen(
        command,
        cwd=cwd,
        env=environment(cwd),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stderr is not None
            found, told = None, ""
            while found is None:
                line = process.stderr.readline()
                assert line, told
                told += line
                found = re.search(r" at (\w+://\S+); Ctrl-C ends it$", line)
            yield found[1], process
        finally:
            if process.poll() is None:
                process.kill()
            process.communicate(timeout=60)


def invoke(*args: str, env: Mapping[str, str] | None = None, stdin: str | None = None) -> Ran:
    """Run ``sansmcp ARGS…`` in this process, which is faster."""
    from sansmcp_cli.cli import cli

    result = CliRunner().invoke(cli, args, env={"COLUMNS": "100", **(env or {})}, input=stdin)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Ran(result.exit_code, result.stdout, result.stderr)


def patiently(word: str, *args: str) -> tuple[Ran, int]:
    """Run it with a ``--timeout`` that is longer each time, until `word` is in its errors; and with which.

    For what a server says before it is given up, however slow the machine is.
    """
    for seconds in (1, 5, 25, 60):
        ran = invoke(args[0], "--timeout", str(seconds), *args[1:])
        if word in ran.err:
            return ran, seconds
    raise AssertionError(f"{word!r} was not told within a minute")
