"""Who is measured: a bench in a worker process that stays, or a whole process from start to exit."""

import json
import math
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from ..peers.registry import environment

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent

Sample = Mapping[str, float]
"""What one turn brought, by the name of the metric."""

LEAST = 20
"""Calls that a contender has made before it is measured, however slow it is."""


class Contender(Protocol):
    def warm_up(self, seconds: float) -> None:
        """Do what is to be measured, untimed; from then on a sample takes about so many seconds."""

    def sample(self) -> Sample:
        """Take one turn."""


class Worker:
    """A process that takes orders as `harness.main` does; it stays up, so that contenders can take turns."""

    def __init__(self, *argv: str | Path) -> None:
        self._process = subprocess.Popen(
            list(map(str, argv)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
            env=environment(),
            text=True,
        )

    def ask(self, bench: str, calls: int) -> Any:
        """Run a bench once; what it returns is up to it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps({"bench": bench, "calls": calls}), file=self._process.stdin, flush=True)
        answer = self._process.stdout.readline()
        if not answer:
            raise SystemExit(f"{bench}: the process that measures it ended with {self._process.wait()}")
        return json.loads(answer)

    def close(self) -> None:
        self._process.communicate()


class Timed:
    """Seconds per call of a bench in a worker. `calls` is found by trying unless it is given."""

    def __init__(self, worker: Worker, bench: str, *, calls: int | None = None, at_once: int = 1) -> None:
        self._worker = worker
        self._bench = bench
        self._fixed = calls
        self._calls = calls or LEAST * at_once

    def warm_up(self, seconds: float) -> None:
        taken = self._worker.ask(self._bench, self._calls)
        while self._fixed is None and taken < seconds / 2:
            self._calls = math.ceil(self._calls * min(10.0, seconds / taken))
            taken = self._worker.ask(self._bench, self._calls)

    def sample(self) -> Sample:
        return {"value": self._worker.ask(self._bench, self._calls) / self._calls}


class Counted:
    """A number that is no time, such as bytes: given by a bench as it is."""

    def __init__(self, worker: Worker, bench: str, calls: int) -> None:
        self._worker = worker
        self._bench = bench
        self._calls = calls

    def warm_up(self, seconds: float) -> None:
        pass

    def sample(self) -> Sample:
        return {"value": self._worker.ask(self._bench, self._calls)}


class Fixed:
    """A number that is given: a bound to stand beside what is measured."""

    def __init__(self, value: float) -> None:
        self._value = value

    def warm_up(self, seconds: float) -> None:
        pass

    def sample(self) -> Sample:
        return {"value": self._value}


class Process:
    """A whole process, from its start to its exit.

    It prints one JSON object: `modules`, how many it had loaded; `done`, the monotonic time at which
    it had what it came for. Both are optional.
    """

    def __init__(self, python: str | Path, *arguments: str) -> None:
        self._argv: Sequence[str] = [str(python), *arguments]

    def warm_up(self, seconds: float) -> None:
        self.sample()

    def sample(self) -> Sample:
        start = time.monotonic()
        ended = subprocess.run(
            self._argv,
            cwd=HERE,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        whole = time.monotonic() - start
        told = json.loads(ended.stdout or "{}")
        done = told.pop("done", None)
        return {"value": whole, **told, **({} if done is None else {"done": done - start})}


def importing(python: str | Path, statement: str) -> Process:
    """A process that only imports."""
    told = "import sys, json; print(json.dumps({'modules': len(sys.modules)}))"
    return Process(python, "-c", f"{statement}\n{told}")
