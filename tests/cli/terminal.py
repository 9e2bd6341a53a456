"""Runs the command at a terminal, and types there what somebody would."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from .run import PYTHON, environment

_OWN_TERMINAL = (
    "import fcntl, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); from sansmcp_cli.main import main; main()"
)
"""So that Ctrl-C is a signal."""

_LONGEST = 120.0
"""Seconds after which it is given up: no verdict depends on how fast it goes."""

CTRL_C = "\x03"
CTRL_D = "\x04"


@attrs.frozen
class Talked:
    """What the terminal showed, without its line feeds' carriage returns, and how the command ended."""

    code: int
    shown: str


def talk(
    args: Sequence[str],
    steps: Sequence[tuple[str, str]],
    *,
    cwd: Path,
    env: Mapping[str, str] | None = None,
    pause: float = 0.0,
) -> Talked:
    """Run ``sansmcp ARGS…``; when the first of each step is shown, `pause` later the second is typed."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [PYTHON, "-c", _OWN_TERMINAL, *args],
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=cwd,
        env=environment(cwd, {"TERM": "dumb", **(env or {})}),
        start_new_session=True,
    )
    os.close(follower)
    shown, seen = b"", 0
    left = [(wait.replace("\n", "\r\n").encode(), keys.encode()) for wait, keys in steps]
    end = time.monotonic() + _LONGEST
    try:
        while time.monotonic() < end:
            if not select.select([leader], [], [], 0.5)[0]:
                continue
            try:
                data = os.read(leader, 65536)
            except OSError:  # how Linux tells the end of a terminal
                data = b""
            if not data:
                break
            shown += data
            while left and (at := shown.find(left[0][0], seen)) >= 0:
                seen = at + len(left[0][0])
                time.sleep(pause)  # a user who thinks, in the time of real processes
                os.write(leader, left.pop(0)[1])
    finally:
        os.close(leader)
        try:
            process.wait(_LONGEST)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    text = shown.decode().replace("\r\n", "\n")
    assert not left, (left, text)
    return Talked(process.returncode, text)
