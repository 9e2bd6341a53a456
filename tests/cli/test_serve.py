"""`sansmcp serve` finds an App and serves it; what it finds instead is told in one line."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from .run import PYTHON, invoke, listening, run

pytestmark = pytest.mark.req("AA11")

MODULE = """
from sansmcp.app import App
import neighbour

print("printed while it is imported")
other = App("other")
app = App("mine", "3")

class Box:
    inner = App("boxed")

@app.tool()
def word() -> str:
    "A word."
    print("printed while it works")
    return neighbour.WORD
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(MODULE, encoding="utf-8")
    (tmp_path / "neighbour.py").write_text("WORD = 'found'\n", encoding="utf-8")
    return tmp_path


def serving(*target: str) -> list[str]:
    return ["--", PYTHON, "-m", "sansmcp_cli", "serve", *target]


@pytest.mark.parametrize("target", ["mine.py", "mine.py:app", "./mine.py:app", "mine", "mine:app"])
def test_a_target_is_a_file_or_a_module(target: str, folder: Path) -> None:
    ran = run(["call", "word", *serving(target)], cwd=folder)
    assert (ran.code, ran.out, ran.err) == (0, "found\n", "")


def test_a_file_elsewhere_finds_its_neighbours(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    ran = run(["call", "word", *serving(f"{folder}/mine.py")], cwd=tmp_path_factory.mktemp("elsewhere"))
    assert ran.out == "found\n"


@pytest.mark.parametrize(("name", "server"), [("other", "other"), ("Box.inner", "boxed")])
def test_the_name_says_which_app(name: str, server: str, folder: Path) -> None:
    document = run(["probe", "--json", *serving(f"mine.py:{name}")], cwd=folder).document
    assert document["connection"]["serverInfo"]["name"] == server


def test_without_a_target_the_demo_is_served(folder: Path) -> None:
    document = run(["probe", "--json", *serving()], cwd=folder).document
    assert document["connection"]["serverInfo"]["name"] == "sansmcp-demo"


@pytest.mark.parametrize(
    ("options", "revision"),
    [
        (["--revision", "legacy"], "2025-11-25"),
        (["--revision", "modern"], "2026-07-28"),
        (["--revision", "2024-11-05", "--revision", "2025-03-26"], "2025-03-26"),
        (["--strict"], "2026-07-28"),
    ],
)
def test_which_revisions_are_served(options: list[str], revision: str, folder: Path) -> None:
    document = run(["probe", "--json", *serving("mine.py", *options)], cwd=folder).document
    assert document["connection"]["revision"] == revision


def test_the_trace_of_a_server(folder: Path) -> None:
    ran = run(["tools", "--stderr", *serving("mine.py", "--trace")], cwd=folder)
    assert ran.code == 0
    assert "← request tools/list" in ran.err
    assert "→ result" in ran.err


def test_a_server_without_a_client_ends_with_its_input(folder: Path) -> None:
    ran = run(["serve", "mine.py"], cwd=folder)
    assert (ran.code, ran.out) == (0, "")


def test_the_protocol_has_standard_output_for_itself(folder: Path) -> None:
    request = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    ran = run(["serve", "mine.py"], cwd=folder, stdin=json.dumps(request) + "\n")
    assert [json.loads(line)["id"] for line in ran.out.splitlines()] == [1]
    assert "printed while it is imported" in ran.err


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("mine.py:nothing", "mine.py:nothing: expected an App named 'nothing' in mine.py, but there is none"),
        ("mine.py:word", "mine.py:word: expected an App named 'word' in mine.py, but it is a function"),
        ("broken.py", "broken.py: importing it raised SyntaxError: "),
        ("raising.py", "raising.py: importing it raised ValueError: no luck (--debug shows where)"),
        ("needy.py", "needy.py: importing it raised ModuleNotFoundError: No module named 'no_such_thing'"),
        ("needy", "needy: importing it raised ModuleNotFoundError: No module named 'no_such_thing'"),
        ("no.such.module", "no.such.module: there is no such module (a file is written with .py)"),
        ("sub/none.py", "sub/none.py: there is no such file"),
    ],
)
def test_a_target_that_is_none(
    target: str, message: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "broken.py").write_text("def\n", encoding="utf-8")
    (folder / "raising.py").write_text("raise ValueError('no luck')\n", encoding="utf-8")
    (folder / "needy.py").write_text("import no_such_thing\n", encoding="utf-8")
    ran = run(["serve", target], cwd=folder)
    assert (ran.code, ran.out) == (2, "")
    line = ran.err.splitlines()[-1]
    assert line.startswith(f"sansmcp: {message}")


def test_a_hint_names_the_apps_that_are_there(folder: Path) -> None:
    assert run(["serve", "mine.py:nope"], cwd=folder).err.splitlines()[-1].endswith("; it has other, app")


def test_help_is_there_without_a_server() -> None:
    assert "TARGET is module:name or file.py:name" in invoke("serve", "--help").out


# where it listens --------------------------------------------------------------------------------

PLACES = {
    "http": (["--http", "0"], "http://127.0.0.1:"),
    "stateless": (["--http", "0", "--stateless"], "http://127.0.0.1:"),
    "websocket": (["--websocket", "0", "--path", "/ws"], "ws://127.0.0.1:"),
    "tcp": (["--tcp", "127.0.0.1:0"], "tcp://127.0.0.1:"),
    "unix": (["--unix", "socket"], "unix:///"),
}


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("command", ["serve", "bridge"])
@pytest.mark.parametrize("place", PLACES)
def test_where_it_listens(place: str, command: str, folder: Path) -> None:
    options, url_begins = PLACES[place]
    served = ["mine.py"] if command == "serve" else ["--", PYTHON, "-m", "sansmcp_cli", "serve", "mine.py"]
    number, code = (signal.SIGINT, 130) if command == "serve" else (signal.SIGTERM, 0)
    with listening(command, *options, *served, cwd=folder) as (url, process):
        assert url.startswith(url_begins)
        for mode in ("auto", "legacy"):
            ran = invoke("call", url, "word", "--mode", mode)
            assert (ran.code, ran.out) == (0, "found\n"), ran.err
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in err
    assert not (folder / "socket").exists()


def test_older_clients_have_a_session_unless_there_is_none(folder: Path) -> None:
    for options, has in ((["--http", "0"], True), (["--http", "0", "--stateless"], False)):
        with listening("serve", *options, "mine.py", cwd=folder) as (url, _):
            ran = invoke("tools", url, "--mode", "legacy", "--trace")
        assert ("mcp-session-id" in ran.err) is has


def test_whoever_listens_for_everybody_is_told(folder: Path) -> None:
    with listening("serve", "--tcp", "0.0.0.0:0", "mine.py", cwd=folder) as (_, process):
        assert process.stderr is not None
        told = "whoever reaches this port is served: nothing is asked for there"
        assert process.stderr.readline() == f"sansmcp: {told}\n"


def test_the_trace_of_a_server_of_websockets_is_of_all_its_clients(folder: Path) -> None:
    with listening("serve", "--websocket", "0", "mine.py", "--trace", cwd=folder) as (url, process):
        for _ in range(2):
            assert invoke("call", url, "word").code == 0
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    for line in (
        "← GET /mcp HTTP/1.1",
        "→ HTTP/1.1 101",
        "← request tools/call #2",
        "→ result #2",
        "← closed",
    ):
        assert err.count(line) == 2, line


@pytest.mark.parametrize(
    ("place", "told"),
    [
        ("no/such/folder", "cannot listen: there is no such folder"),
        ("mine.py", "something else is there; choose another path"),
        ("x" * 200, "cannot listen: AF_UNIX path too long"),
    ],
)
def test_where_no_unix_socket_can_be(place: str, told: str, folder: Path) -> None:
    ran = run(["serve", "--unix", place, "mine.py"], cwd=folder)
    assert ran.code in (2, 3)
    assert ran.err == f"printed while it is imported\nsansmcp: --unix {place}: {told}\n"
