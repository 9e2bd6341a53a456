"""Fuzz every target in `fuzz/targets` for a share of the time.

    python -m fuzz.run --seconds 60 [--target NAME]

A target is a module with its invariant as docstring and a function ``one_input(data)``, which raises
when the invariant does not hold. Each starts from the inputs committed in ``fuzz/corpus/<target>``;
what is found goes to ``fuzz/findings/<target>``. Ends with 1 if a target crashed; its line then
names the input that did it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import pkgutil
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import fuzz.targets

HERE = Path(__file__).parent
CORPUS = HERE / "corpus"
FINDINGS = HERE / "findings"


def targets() -> list[str]:
    """The names of all targets."""
    return sorted(module.name for module in pkgutil.iter_modules(fuzz.targets.__path__))


def load(name: str) -> Callable[[bytes], None]:
    """The function of a target that takes one input."""
    one_input: Callable[[bytes], None] = importlib.import_module(f"fuzz.targets.{name}").one_input
    return one_input


def corpus(name: str) -> list[Path]:
    """The committed inputs of a target."""
    return sorted(path for path in (CORPUS / name).glob("*") if path.is_file())


def fuzz_one(name: str, seconds: int) -> None:
    """Fuzz one target in this process, which libFuzzer ends."""
    atheris = importlib.import_module("atheris")
    found = FINDINGS / name
    (found / "corpus").mkdir(parents=True, exist_ok=True)
    options = [
        f"-max_total_time={seconds}",
        f"-artifact_prefix={found}/",
        "-print_final_stats=1",
        "-max_len=4096",
        "-timeout=20",
        "-rss_limit_mb=2048",
        "-verbosity=1",
    ]
    with atheris.instrument_imports(include=["sansmcp"]):
        one_input = load(name)
    committed = [str(CORPUS / name)] if corpus(name) else []
    atheris.Setup([name, *options, str(found / "corpus"), *committed], one_input)
    atheris.Fuzz()


def run(name: str, seconds: int) -> bool:
    """Fuzz one target in a process of its own and say in one line how it went."""
    command = [sys.executable, "-m", "fuzz.run", "--worker", name, "--seconds", str(seconds)]
    done = subprocess.run(
        command, cwd=HERE.parent, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False
    )
    log = done.stdout.decode("utf-8", "replace")
    runs = _last(r"stat::number_of_executed_units:\s*(\d+)", log) or _last(r"^#(\d+)", log) or "0"
    size = _last(r"corp: (\d+)/", log) or "0"
    verdict = "ok" if done.returncode == 0 else "CRASH"
    print(f"{name:<12} {int(runs) // max(seconds, 1):>8} runs/s {size:>6} corpus  {verdict}", flush=True)
    if done.returncode:
        reproducer = _last(r"Test unit written to (\S+)", log)
        print(f"  reproduce with: {reproducer or '(no input was written)'}")
        print("  " + "\n  ".join(log.splitlines()[-40:]))
    return done.returncode == 0


def _last(pattern: str, log: str) -> str | None:
    found: list[str] = re.findall(pattern, log, re.MULTILINE)
    return found[-1] if found else None


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=int, default=60, help="for all targets together (default 60)")
    parser.add_argument("--target", choices=targets(), help="only this one")
    parser.add_argument("--worker", choices=targets(), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if importlib.util.find_spec("atheris") is None:
        print("fuzzing needs atheris, which this Python does not have", file=sys.stderr)
        return 2
    if options.worker:
        fuzz_one(options.worker, options.seconds)
        return 0
    chosen = [options.target] if options.target else targets()
    share = max(1, options.seconds // len(chosen))
    results = [run(name, share) for name in chosen]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
