"""Builds the wheel and looks at it as a stranger would: `python -m tests.wheel_check`.

The top-level names must be the packages and nothing else; every package says that it is typed; in an empty
environment every module imports, but for those that name an extra, which import once the extras are there.
"""

import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / ".build" / "wheel-check"
PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input", "-qq")

IMPORTED_AS = {"opentelemetry-api": "opentelemetry"}
"""Packages whose modules have another name."""

IMPORT_ALL = """
import importlib, pkgutil, sys

extras, packages = set(sys.argv[1].split(",")) - {""}, sys.argv[2:]
count = 0
for package in packages:
    try:
        top = importlib.import_module(package)
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] not in extras:
            raise
        continue
    assert "site-packages" in (top.__file__ or ""), top
    for module in pkgutil.walk_packages(top.__path__, package + ".", onerror=lambda name: None):
        name = module.name
        if name.endswith(".__main__"):
            continue
        try:
            importlib.import_module(name)
            count += 1
        except ModuleNotFoundError as missing:
            if (missing.name or "").partition(".")[0] not in extras:
                raise
print(f"{count} modules imported, without: {', '.join(sorted(extras)) or 'nothing'}")
"""


def fail(words: str) -> None:
    sys.exit(f"wheel-check: {words}")


def build() -> Path:
    shutil.rmtree(BUILD, ignore_errors=True)
    argv = [sys.executable, *PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", str(BUILD), str(ROOT)]
    subprocess.run(argv, check=True)
    (wheel,) = BUILD.glob("*.whl")
    return wheel


def check_contents(wheel: Path, packages: list[str]) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    top = {name.partition("/")[0] for name in names}
    unexpected = {name for name in top if not name.endswith(".dist-info")} ^ set(packages)
    if unexpected:
        fail(f"the top-level names differ from the packages in: {sorted(unexpected)}")
    for package in packages:
        if f"{package}/py.typed" not in names:
            fail(f"{package} has no py.typed")


def main() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = [
        path.rpartition("/")[2] for path in project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    ]
    extras: dict[str, list[str]] = project["project"]["optional-dependencies"]
    modules = {
        IMPORTED_AS.get(name, name.replace("-", "_"))
        for parts in extras.values()
        for name in (part.partition(">=")[0] for part in parts)
    }

    wheel = build()
    check_contents(wheel, packages)

    subprocess.run([sys.executable, "-m", "venv", str(BUILD / "venv")], check=True)
    python = str(BUILD / "venv" / "bin" / "python")
    constraints = ("-c", str(ROOT / "requirements" / "dev.txt"))
    for wanted, missing in ((str(wheel), modules), (f"{wheel}[{','.join(extras)}]", set[str]())):
        subprocess.run([python, *PIP, "install", *constraints, wanted], check=True)
        # From another folder, and isolated, so that nothing but the wheel can be what is imported.
        argv = [python, "-I", "-W", "error", "-c", IMPORT_ALL, ",".join(sorted(missing)), *packages]
        subprocess.run(argv, check=True, cwd=BUILD)
    for script in project["project"]["scripts"]:
        path = BUILD / "venv" / "bin" / script
        subprocess.run([str(path), "--help"], check=True, cwd=BUILD, stdout=subprocess.DEVNULL)
    print(f"{wheel.name}: {', '.join(packages)}")


if __name__ == "__main__":
    main()
