"""The pages: every block of Python runs and prints what the page says; what is generated is complete."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import importlib
import inspect
import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import attrs
import pytest

import sansmcp
from sansmcp.limits import CLIENT_LIMITS, SERVER_LIMITS, Timeouts
from sansmcp.revisions import ALL_REVISIONS
from sansmcp.session.era import (
    HandshakeContext,
    Outcome,
    ProbeContext,
    Step,
    classify_handshake,
    classify_probe,
)
from sansmcp.states import TABLES, Symbol, Table
from sansmcp.types.methods import METHODS, Direction, Kind

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(
    p.relative_to(DOCS).as_posix() for p in DOCS.rglob("*.md") if p.relative_to(DOCS).parts[0] != "_build"
)

FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=ticks)[ \t]*$", re.MULTILINE | re.DOTALL
)
NOT_RUN = re.compile(r"python not-run: (?P<reason>.{10,})")


@pytest.fixture(scope="module", autouse=True)
def generators() -> Iterator[None]:
    """Make the modules of ``docs/_ext`` importable, as ``docs/conf.py`` does."""
    sys.path.insert(0, str(DOCS / "_ext"))
    yield
    sys.path.remove(str(DOCS / "_ext"))


def generator(name: str) -> Any:
    return importlib.import_module(name)


# the blocks --------------------------------------------------------------------------------------


@attrs.frozen
class Block:
    """A block of Python and, where the page says it, what it prints."""

    code: str
    line: int
    output: str | None


def blocks_of(path: Path) -> Iterator[Block]:
    """The blocks of a page that are to run, in order."""
    text = path.read_text("utf-8")
    found = list(FENCE.finditer(text))
    for number, fence in enumerate(found):
        info = fence["info"].strip()
        if info.split(" ")[0] != "python":
            continue
        if info != "python":
            assert NOT_RUN.fullmatch(info), f"{path.name}: {info!r} must be 'python not-run: REASON'"
            continue
        follows = found[number + 1] if number + 1 < len(found) else None
        output = None
        if follows is not None and follows["info"].strip() == "output":
            assert not text[fence.end() : follows.start()].strip(), f"{path.name}: text before the output"
            output = follows["body"]
        yield Block(fence["body"], text[: fence.start("body")].count("\n"), output)


def run_block(path: Path, block: Block, namespace: dict[str, Any]) -> str:
    """Run a block, which may await at its top, and return what it printed."""
    printed = io.StringIO()
    # Line numbers in a traceback are those of the page.
    code = compile(
        "\n" * block.line + block.code,
        str(path),
        "exec",
        flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        dont_inherit=True,
    )
    with contextlib.redirect_stdout(printed):
        made = eval(code, namespace)
        if inspect.iscoroutine(made):
            asyncio.run(made)
    return printed.getvalue()


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_the_page_runs_and_prints_what_it_says(
    page: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(DOCS)
    monkeypatch.syspath_prepend(str(DOCS / "examples"))
    path = DOCS / page
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(path):
        printed = run_block(path, block, namespace)
        if block.output is not None:
            assert printed == block.output, f"{page}, line {block.line}"


def test_an_output_belongs_to_a_block_that_runs() -> None:
    for page in PAGES:
        text = (DOCS / page).read_text("utf-8")
        shown = sum(fence["info"].strip() == "output" for fence in FENCE.finditer(text))
        assert shown == sum(block.output is not None for block in blocks_of(DOCS / page)), page


READER = """
import time
import sansmcp, sansmcp_asyncio
from sansmcp import *

clock = time.monotonic
raw = b'{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no such method"}}'
carried = []

def carry(*message):
    carried.append(message)
"""
"""What the readme leaves to its reader: a clock, and something to carry messages."""


def test_the_blocks_of_the_readme_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = ROOT / "README.md"
    server = re.search(
        r"```python not-run: this is server.py[^\n]*\n(.*?)```", path.read_text("utf-8"), re.DOTALL
    )
    assert server is not None
    (tmp_path / "server.py").write_text(server[1], "utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "server", raising=False)
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    namespace: dict[str, Any] = {"__name__": "readme"}
    exec(READER, namespace)
    blocks = list(blocks_of(path))
    assert blocks
    printed = [run_block(path, block, namespace) for block in blocks]
    assert printed[-2:] == ["hi\n", "hi\n"]
    del sys.modules["server"]


@pytest.mark.req("V14")
def test_skills_become_tools_as_the_page_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The recipe is a block that runs, above; here its functions meet a list in pages."""
    monkeypatch.chdir(DOCS)
    namespace: dict[str, Any] = {"__name__": "page"}
    for block in blocks_of(DOCS / "tools.md"):
        run_block(DOCS / "tools.md", block, namespace)
        if "offer_skills" in namespace:
            break
    skill, other = namespace["greeting"], namespace["Skill"]("inn/leaving", {"SKILL.md": GOODBYE})
    served = namespace["ServerSkills"](skills=[skill, other], page_size=1)
    inn = sansmcp.App("inn", "1", extensions=[served])

    async def run() -> None:
        toolset: Any = sansmcp.Toolset()
        async with namespace["connect_memory"](inn, extensions=[namespace["client_skills"]()]) as client:
            await namespace["offer_skills"](client, toolset)
            assert [entry.name for entry in toolset] == ["skill_greeting", "skill_leaving"]
            held = toolset["skill_leaving"].server
            assert await namespace["read_skill"](client, held) == GOODBYE
            with pytest.raises(sansmcp.SansmcpError, match="digest"):
                held.take(held.entry.uri, GOODBYE.replace("Good", "Bad ").encode())

    asyncio.run(run())


GOODBYE = "---\nname: leaving\ndescription: How guests leave.\n---\nGood bye.\n"


# the driver on the page about loops --------------------------------------------------------------

SERVER = "examples/byte_server.py"
LEGACY_SERVER = """
from byte_server import LineServer, app, now, serve
from sansmcp import LEGACY_REVISIONS
serve(LineServer(app.engine(now=now(), revisions=LEGACY_REVISIONS), now=now()))
"""
STUBBORN_SERVER = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("chatter", flush=True)
time.sleep(60)  # until it is killed
"""


def drive(
    argv: list[str],
    monkeypatch: pytest.MonkeyPatch,
    use: Callable[[Any, Any], object],
    **options: Any,
) -> list[sansmcp.Event]:
    """Run the example's loop on a real process; `use` gets the client and each event."""
    monkeypatch.chdir(DOCS)
    monkeypatch.syspath_prepend(str(DOCS / "examples"))
    now = time.monotonic
    run = importlib.import_module("own_loop").run
    engine = sansmcp.ClientEngine(sansmcp.Implementation("docs", "0"), now=now())
    env = {**sansmcp.child_environment({"PATH": ""}), "PYTHONPATH": str(DOCS / "examples")}
    client = sansmcp.StdioClient(engine, sansmcp.Command(argv, env), now=now(), **options)
    events: list[sansmcp.Event] = []

    def on_event(event: sansmcp.Event) -> None:
        events.append(event)
        use(client, event)

    run(client, on_event)
    assert isinstance(events[-1], sansmcp.SessionEnded)
    return events


def count_words(text: str) -> Callable[[Any, Any], None]:
    """Call the tool when the server is known, and leave when it has answered."""

    def use(client: Any, event: Any) -> None:
        now = time.monotonic()
        match event:
            case sansmcp.EraDecided():
                client.engine.call_tool("count", {"text": text}, now=now)
            case sansmcp.ResultReady() | sansmcp.RequestFailed():
                client.close(now)
            case _:
                pass

    return use


def test_the_own_loop_is_as_short_as_the_page_says() -> None:
    lines = (DOCS / "examples" / "own_loop.py").read_text("utf-8").splitlines()
    assert sum(bool(line.strip()) for line in lines) < 60


@pytest.mark.skipif(sys.platform == "win32", reason="the example waits for pipes with selectors")
@pytest.mark.parametrize(
    ("argv", "era"),
    [
        ([sys.executable, SERVER], "modern"),
        ([sys.executable, "-c", LEGACY_SERVER], "legacy"),
    ],
    ids=["modern", "legacy"],
)
@pytest.mark.parametrize("words", [3, 300_000], ids=["short", "more than a pipe holds"])
def test_the_own_loop_serves_a_real_process(
    argv: list[str], era: str, words: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = drive(argv, monkeypatch, count_words("word " * words))
    (decided,) = (e for e in events if isinstance(e, sansmcp.EraDecided))
    assert decided.era == era
    (ready,) = (e for e in events if isinstance(e, sansmcp.ResultReady))
    assert ready.result.content[0].text == str(words)
    assert events[-1].error is None  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.platform == "win32", reason="the example waits for pipes with selectors")
def test_the_own_loop_ends_with_a_server_that_cannot_start_or_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(client: Any, event: Any) -> None:
        pass

    missing = drive(["/nowhere/server"], monkeypatch, nothing)
    assert "cannot start" in str(missing[-1].error)  # type: ignore[attr-defined]
    dying = drive([sys.executable, "-c", "raise SystemExit(7)"], monkeypatch, nothing)
    assert dying[-1].error.returncode == 7  # type: ignore[attr-defined]


@pytest.mark.skipif(sys.platform == "win32", reason="the example waits for pipes with selectors")
def test_the_own_loop_kills_a_server_that_does_not_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(client: Any, event: Any) -> None:
        if isinstance(event, sansmcp.MessageIgnored):
            client.close(time.monotonic())

    ladder = sansmcp.ShutdownLadder(after_close=0.1, after_terminate=0.1)
    began = time.monotonic()
    drive([sys.executable, "-c", STUBBORN_SERVER], monkeypatch, leave, ladder=ladder)
    assert time.monotonic() - began < 30


# what is generated -------------------------------------------------------------------------------


def rows_of(markdown: str) -> list[list[str]]:
    """The cells of a Markdown table, without its head."""
    lines = [line for line in markdown.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines[2:]]


def page(name: str) -> str:
    return (DOCS / name).read_text("utf-8")


def test_every_generated_table_is_on_a_page() -> None:
    data = generator("docs_data")
    asked = {name for p in PAGES for name in re.findall(r"^```\{generated\} (\S+)$", page(p), re.MULTILINE)}
    assert asked == set(data.GENERATED)
    for make in data.GENERATED.values():
        assert make().strip()


@pytest.mark.req("AA6")
def test_every_state_table_is_drawn_on_the_page() -> None:
    drawn = re.findall(r"^```\{state-machine\} (.+)$", page("states.md"), re.MULTILINE)
    assert drawn == [table.name for table in TABLES]


@pytest.mark.req("AA6")
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_a_drawing_shows_exactly_the_transitions_of_its_table(table: Table[Symbol, Symbol]) -> None:
    svg = ET.fromstring(generator("docs_drawing").state_diagram(table))
    boxes = {}
    for rect in svg.iter("rect"):
        if rect.get("class") == "state":
            top = float(rect.attrib["y"])
            boxes[rect.attrib["data-state"]] = (top, top + float(rect.attrib["height"]))
    assert list(boxes) == [state.name for state in table.transitions]
    edges = sorted(boxes.values())
    assert all(above[1] < below[0] for above, below in pairwise(edges))

    shown, verticals = set(), []
    for path in svg.iter("path"):
        if path.get("class") != "line":
            continue
        source, trigger, target = (path.attrib[f"data-{key}"] for key in ("from", "input", "to"))
        shown.add((source, trigger, target))
        match = re.fullmatch(
            r"M[\d.]+,([\d.]+) H[\d.]+ Q([\d.]+),.* V[\d.]+ Q([\d.]+),([\d.]+) .*", path.attrib["d"]
        )
        assert match is not None
        start, lane, same_lane, end = map(float, match.groups())
        assert lane == same_lane
        assert boxes[source][0] < start < boxes[source][1], f"{source} {trigger}: begins beside its box"
        assert boxes[target][0] < end < boxes[target][1], f"{source} {trigger}: ends beside {target}"
        verticals.append((lane, min(start, end), max(start, end), (trigger, target)))
    assert shown == {
        (state.name, trigger.name, target.name)
        for state, row in table.transitions.items()
        for trigger, target in row.items()
    }
    for lane, low, high, which in verticals:
        for other_lane, other_low, other_high, other in verticals:
            if lane == other_lane and which != other:
                assert high < other_low or other_high < low, f"{which} and {other} run together"


@pytest.mark.req("AA6")
@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.name)
def test_a_transition_table_on_the_page_is_the_table(table: Table[Symbol, Symbol]) -> None:
    read = {}
    for state, leads, meaning in rows_of(generator("docs_data").transitions_table(table)):
        assert meaning, f"{state} has no note: give it a docstring, or one in docs_data.STATE_NOTES"
        pairs = [lead.split("\u00a0→\u00a0") for lead in leads.split("<br>") if "→" in lead]
        read[state.strip("*")] = dict(pairs)
    assert read == {
        state.name: {trigger.name: target.name for trigger, target in row.items()}
        for state, row in table.transitions.items()
    }


def as_number(text: str) -> object:
    """What a cell with a default stands for."""
    if text in ("off", "yes", "no"):
        return {"off": None, "yes": True, "no": False}[text]
    number, _, unit = text.partition(" ")
    value = float(number.replace("\u2009", ""))
    return value * {"": 1, "s": 1, "KiB": 1024, "MiB": 1024**2}[unit]


def test_the_tables_of_limits_and_deadlines_are_the_defaults() -> None:
    data = generator("docs_data")
    rows = rows_of(data.limits_table())
    assert [row[0] for row in rows] == [f"`{f.name}`" for f in attrs.fields(sansmcp.Limits)]
    for name, default, told in rows:
        assert told, name
        client, _, server = default.removeprefix("client ").partition("<br>server ")
        assert as_number(client) == getattr(CLIENT_LIMITS, name.strip("`"))
        assert as_number(server or client) == getattr(SERVER_LIMITS, name.strip("`"))
    for key, cls in (
        ("timeouts", Timeouts),
        ("ladder", sansmcp.ShutdownLadder),
        ("restart", sansmcp.RestartPolicy),
    ):
        rows = rows_of(data.GENERATED[key]())
        assert [row[0] for row in rows] == [f"`{f.name}`" for f in attrs.fields(cls)]
        for (name, default, told), field in zip(rows, attrs.fields(cls), strict=True):
            assert told, name
            assert as_number(default) == field.default, name


@pytest.mark.req("A7")
def test_the_tables_of_the_era_have_every_outcome_and_every_step() -> None:
    cases = generator("docs_era")
    probe = [(words, outcome, ProbeContext(**given)) for words, outcome, given in cases.PROBE_CASES]
    assert {outcome.kind for _, outcome, _ in probe} == set(Outcome)
    steps = {classify_probe(outcome, context).step for _, outcome, context in probe}
    for (words, outcome, context), row in zip(probe, rows_of(cases.probe_table()), strict=True):
        step = classify_probe(outcome, context)
        revision = f"`{step.revision}`" if step.revision else ""
        assert row == [words, f"`{step.step.name}`", revision, step.reason]
    for (words, outcome, given), row in zip(
        cases.HANDSHAKE_CASES, rows_of(cases.handshake_table()), strict=True
    ):
        next_step = classify_handshake(outcome, HandshakeContext(**given))
        assert row == [words, f"`{next_step.name}`"]
        steps.add(next_step)
    assert steps == set(Step)
    explained = rows_of(cases.steps_table())
    assert [row[0] for row in explained] == [f"`{step.name}`" for step in Step]
    assert all(row[1] != "–" for row in explained)


def test_the_matrix_of_methods_is_the_table_of_methods() -> None:
    data = generator("docs_data")
    arrows = {"→": Direction.CLIENT_TO_SERVER, "←": Direction.SERVER_TO_CLIENT, "↩": Direction.EMBEDDED}
    shown = set()
    for key, kind in (("requests", Kind.REQUEST), ("notifications", Kind.NOTIFICATION)):
        for name, *cells in rows_of(data.GENERATED[key]()):
            spec = METHODS[name.strip("`")]
            shown.add(spec.method.value)
            assert spec.kind is kind
            for revision, cell in zip(ALL_REVISIONS, cells, strict=False):
                directions = {arrows[arrow] for arrow in cell.split() if arrow != "·"}
                assert directions == spec.directions(revision), (name, revision)
            assert all(cells[len(ALL_REVISIONS) :]), name
    assert shown == set(METHODS)


def test_every_fault_error_and_code_is_on_the_page() -> None:
    data = generator("docs_data")
    faults = {row[0].strip("`"): row[1] for row in rows_of_all(data.faults_table())}
    assert set(faults) == set(sansmcp.PeerFault.__members__)
    assert all(faults.values())
    assert not set(data.FAULT_NOTES) - set(faults), "notes for faults that are gone"
    codes = [row[0].strip("`") for row in rows_of(data.codes_table())]
    assert codes == [str(code.value) for code in sansmcp.ErrorCode]
    tree = data.error_tree()
    for name in sansmcp.__all__:
        thing = getattr(sansmcp, name)
        if isinstance(thing, type) and issubclass(thing, sansmcp.SansmcpError):
            assert f"- `{name}`: " in tree, name


def rows_of_all(markdown: str) -> list[list[str]]:
    """The rows of all tables in a text."""
    return [row for part in re.split(r"\n\n", markdown) for row in rows_of(part)]


def test_every_event_and_op_is_on_the_page() -> None:
    data = generator("docs_data")
    shown = {
        row[0].strip("`")
        for key in ("wire-events", "app-events", "ops")
        for row in rows_of(data.GENERATED[key]())
    }
    for name in sansmcp.__all__:
        thing = getattr(sansmcp, name)
        if isinstance(thing, type) and issubclass(thing, sansmcp.Event):
            assert name in shown or name in ("Event", "WireEvent"), name
    for op in sansmcp.Op.__args__:
        assert op.__name__ in shown


def test_every_input_is_on_the_page_about_loops() -> None:
    data = generator("docs_data")
    inputs = re.compile(
        r"(receive|handle|connection|exchange|pause|resume)_\w+|connect|opened|accepted|failed|exited"
    )
    for classes, names in (
        ((sansmcp.ClientEngine, sansmcp.ServerEngine), data.ENGINE_INPUTS),
        ((sansmcp.StdioClient, sansmcp.LineClient, sansmcp.LineServer), data.TRANSPORT_INPUTS),
    ):
        found = {name for cls in classes for name in dir(cls) if inputs.fullmatch(name)}
        assert found == set(names)


def test_every_public_name_is_in_the_reference() -> None:
    reference = "".join(page(p) for p in PAGES if p.startswith("api/"))
    documented = set(re.findall(r":: sansmcp\.(\w+)$", reference, re.MULTILINE))
    assert documented == set(sansmcp.__all__)
    for name in ("sansmcp_asyncio", "sansmcp_trio", "sansmcp_threads", "sansmcp_asgi"):
        bound = set(re.findall(rf":: {name}\.(\w+)$", reference, re.MULTILINE))
        assert bound == set(importlib.import_module(name).__all__)
