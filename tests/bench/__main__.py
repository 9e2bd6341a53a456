"""python -m tests.bench [--quick] [--only TEXT] [--json FILE]: measure, and print a table."""

import argparse
import json
import os
import platform
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ..peers.registry import NODE, NODE_MODULES, VENVS, available
from .contenders import Sample, Worker
from .lines import SCALE, Field, Group, Line, groups

SDK = "mcp-2.3.0"
COLUMNS = (52, 10, 10, 10, 36, 18, 13)
HEAD = ("line", "peer", "floor", "ours", "ratio", "target", "")

Row = dict[str, Any]


def main() -> None:
    options = _options()
    rounds, seconds = (3, 0.05) if options.quick else (9, 0.15)
    rows: list[Row] = []
    with ExitStack() as stack:
        field, missing = _field(stack)
        about = _about(field)
        print("; ".join(f"{name} {value}" for name, value in about.items()))
        print(
            f"medians of {rounds} rounds, in each of which every contender has one turn; values are per call"
        )
        if missing is not None:
            print(f"the official SDK is not measured: {missing}")
        print()
        _print(HEAD)
        for group in groups(field):
            if any(options.only in line.name for line in group.lines):
                for row in _measure(group, 1 if group.once else rounds, seconds):
                    rows.append(row)
                    _print(_cells(row))
    if options.json is not None:
        text = json.dumps({"about": about, "rounds": rounds, "lines": rows}, indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description="See tests/bench/README.md.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--only", default="", metavar="TEXT", help="only lines with this text in their name")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep every number in a file")
    return parser.parse_args()


def _field(stack: ExitStack) -> tuple[Field, str | None]:
    """Start the processes that measure; say why the SDK's is missing, if it is."""
    try:
        missing = available(SDK)
    except LookupError as error:
        missing = str(error)
    peer_python = None
    if missing is None:
        peer_python = next(install.python for install in VENVS if install.name == SDK)

    def worker(*argv: str | Path) -> Worker:
        started = Worker(*argv)
        stack.callback(started.close)
        return started

    def module(python: Path, name: str) -> Worker:
        return worker(python, "-m", f"tests.bench.{name}")

    python = Path(sys.executable)
    peer = None if peer_python is None else module(peer_python, "peers.sdk")
    typescript = None
    if NODE.exists() and NODE_MODULES.exists():
        script = Path(__file__).parent / "peers" / "ts_http.mjs"
        typescript = worker(NODE, script, "work", NODE_MODULES.parent)
    ours, floor, trio = (module(python, name) for name in ("ours", "floor", "trio_ours"))
    field = Field(ours, floor, trio, peer, typescript, python, peer_python)
    return field, missing


def _about(field: Field) -> dict[str, str]:
    about = {
        "Python": f"{platform.python_version()} ({platform.python_implementation()})",
        "CPUs": str(os.cpu_count()),
        "load": f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown",
        "system": f"{platform.system()} {platform.machine()}",
        "codec standard": "json",
        "codec fast": f"msgspec {version('msgspec')}",
    }
    if field.peer is not None:
        about["peer"] = f"{SDK} on Python {field.peer.ask('about', 1)['python']}"
    return about


def _measure(group: Group, rounds: int, seconds: float) -> Iterator[Row]:
    contenders = group.contenders
    samples: dict[str, list[Sample]] = {name: [] for name in contenders}
    for contender in contenders.values():
        contender.warm_up(seconds)
    for _ in range(rounds):
        for name, contender in contenders.items():
            samples[name].append(contender.sample())
    for line in group.lines:
        kept = {name: [s[line.metric] for s in taken if line.metric in s] for name, taken in samples.items()}
        yield _row(line, {name: values for name, values in kept.items() if values})


def _row(line: Line, samples: Mapping[str, Sequence[float]]) -> Row:
    medians = {name: statistics.median(values) for name, values in samples.items()}
    row: Row = {"name": line.name, "unit": line.unit, "samples": samples, "medians": medians}
    values = medians
    if "ours" not in medians:
        values = {"floor": min(medians.values()), "ours": max(medians.values())}
    row.update({name: values.get(name) for name in ("peer", "floor", "ours")})
    ratios = {}
    if "peer" in values:
        ratios["peer/ours"] = values["peer"] / values["ours"]
    if "floor" in values:
        ratios["ours/floor"] = values["ours"] / values["floor"]
    row["ratios"] = ratios
    target = line.target
    row["target"] = None if target is None else str(target)
    row["met"] = None if target is None or target.kind not in ratios else target.met(ratios[target.kind])
    return row


def _cells(row: Row) -> list[str]:
    def value(name: str) -> str:
        number = row[name]
        if number is None:
            return "–"
        number *= SCALE[row["unit"]]
        unit = "" if row["unit"] == "modules" else f" {row['unit']}"
        return (f"{number:.3g}" if number < 100 else f"{number:.0f}") + unit

    unknown = "" if row["target"] is None else "not measured"
    verdict = {None: unknown, True: "ok", False: "target missed"}[row["met"]]
    ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in row["ratios"].items())
    return [row["name"], value("peer"), value("floor"), value("ours"), ratios, row["target"] or "–", verdict]


def _print(cells: Sequence[str]) -> None:
    aligned = [
        cell.rjust(width) if 1 <= column <= 3 else cell.ljust(width)
        for column, (cell, width) in enumerate(zip(cells, COLUMNS, strict=True))
    ]
    print(" | ".join(aligned).rstrip(), flush=True)


if __name__ == "__main__":
    main()
