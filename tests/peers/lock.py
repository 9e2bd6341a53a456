"""Renews the pins of the peers: `python -m tests.peers.lock`, then `make peers test`.

What to install stands in the first line of each file in pins/, and in the package.json of npm/, of
conformance/ and of oidc/.
"""

import json
import sys
import tempfile
from pathlib import Path

from .registry import HERE, NODE_INSTALL, NPM_INSTALLS, VENVS
from .setup import PIP, npm, run


def lock_python(path: Path) -> None:
    head = path.read_text(encoding="utf-8").splitlines()[0]
    with tempfile.TemporaryDirectory() as folder:
        run([sys.executable, "-m", "venv", folder])
        python = Path(folder) / "bin" / "python"
        run([python, *PIP, "install", *head.removeprefix("#").split()])
        frozen = run([python, *PIP, "--quiet", "--quiet", "freeze"])
    path.write_text(f"{head}\n{frozen}", encoding="utf-8")


def lock_npm(folder: Path) -> None:
    """Keep versions and hashes but no address: the lock works with whichever registry is configured."""
    npm("install", "--package-lock-only", "--omit-lockfile-registry-resolved", cwd=folder)
    path = folder / "package-lock.json"
    lock = json.loads(path.read_text(encoding="utf-8"))
    for package in lock["packages"].values():
        for noise in ("resolved", "funding"):
            package.pop(noise, None)
    # A line a package: short, and a change shows which package it is.
    packages = lock.pop("packages")
    head = json.dumps(lock, ensure_ascii=False)[1:-1]
    rows = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in packages.items())
    path.write_text(f'{{{head}, "packages": {{\n{rows}\n}}}}\n', encoding="utf-8")


def main() -> None:
    for install in (NODE_INSTALL, *VENVS):
        print(install.name, flush=True)
        lock_python(install.pin_files[0])
    for install in NPM_INSTALLS:
        print(install.name, flush=True)
        lock_npm(HERE / install.name)


if __name__ == "__main__":
    main()
