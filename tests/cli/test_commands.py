"""What each command shows, to people and to programs, from servers of both eras."""

from __future__ import annotations

from pathlib import Path

import pytest

from .run import ERAS, RICH, invoke, rough, run

pytestmark = pytest.mark.req("AA11")

REVISIONS = {"modern": "2026-07-28", "legacy": "2025-11-25"}


@pytest.fixture(params=sorted(ERAS))
def era(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_probe(era: str) -> None:
    shown = invoke("probe", "--", *ERAS[era])
    assert shown.code == 0
    assert shown.err == ""
    lines = shown.out.splitlines()
    assert lines[:4] == [
        "server    sansmcp-demo 1.0 (Demo)",
        f"era       {era}",
        f"revision  {REVISIONS[era]}",
        "offers    logging, completions, prompts, resources, tools",
    ]
    assert "  Call echo or add. slow reports progress, fail always fails." in lines
    evidence = lines[lines.index("how that was found out") + 1 :]
    assert evidence[0].startswith("  server/discover: ")
    if era == "legacy":
        assert evidence[-1] == "  initialize: answered version 2025-11-25"


def test_probe_json(era: str) -> None:
    document = invoke("probe", "--json", "--", *ERAS[era]).document
    assert document["ok"] is True
    assert document["command"] == "probe"
    connection = {
        "era": era,
        "revision": REVISIONS[era],
        "serverInfo": {"name": "sansmcp-demo", "version": "1.0", "title": "Demo"},
    }
    assert document["connection"] == connection
    result = document["result"]
    assert result == {**result, **connection}
    assert set(result["capabilities"]) == {"logging", "completions", "prompts", "resources", "tools"}
    assert result["instructions"].startswith("Call echo")
    assert result["evidence"][0]["step"] == "server/discover"


def test_probe_asks_a_pinned_modern_server_whether_it_is_there() -> None:
    pinned = invoke("probe", "--json", "--mode", "2026-07-28", "--", *ERAS["modern"]).document
    assert "tools" in pinned["result"]["capabilities"]
    silent = invoke("probe", "--mode", "2026-07-28", "--timeout", "0.5", "--", *rough("silent"))
    assert silent.code == 4


def test_tools(era: str) -> None:
    shown = invoke("tools", "--", *ERAS[era])
    assert shown.code == 0
    lines = shown.out.splitlines()
    assert lines[0].split() == ["TOOL", "ARGUMENTS", "DESCRIPTION"]
    assert lines[1] == "echo   text*: string    Say the text again."
    assert lines[-1] == "* required"
    assert not any(line.endswith(" ") for line in lines)
    assert "\x1b" not in shown.out


@pytest.mark.parametrize("width", [40, 200])
def test_no_line_is_wider_than_the_window(width: int) -> None:
    for command in ("tools", "resources", "prompts", "probe"):
        shown = invoke(command, "--", *RICH, env={"COLUMNS": str(width)})
        assert shown.code == 0
        assert max(map(len, shown.out.splitlines())) <= width


def test_in_a_narrow_window_tools_stand_below_each_other() -> None:
    shown = invoke("tools", "--", *ERAS["modern"], env={"COLUMNS": "60"})
    assert shown.out.startswith("echo\n  Say the text again.\n  text*: string\n\nadd\n")


def test_tools_with_schema_shows_all_of_it() -> None:
    brief, whole = invoke("tools", "--", *RICH), invoke("tools", "--schema", "--", *RICH)
    assert "more than the table shows" not in brief.out
    assert "This is more than the table shows." in whole.out
    assert '"description": "some text"' in whole.out


def test_tools_json(era: str) -> None:
    document = invoke("tools", "--json", "--", *ERAS[era]).document
    assert [tool["name"] for tool in document["result"]["tools"]] == ["echo", "add", "slow", "fail"]
    assert document["result"]["tools"][0]["inputSchema"]["required"] == ["text"]


def test_call_prints_text_plainly(era: str) -> None:
    shown = invoke("call", "echo", "text=a = b, plainly", "--", *ERAS[era])
    assert (shown.code, shown.out, shown.err) == (0, "a = b, plainly\n", "")


def test_call_prints_structured_content_once(era: str) -> None:
    shown = invoke("call", "add", '{"a": 20, "b": 22}', "--", *ERAS[era])
    assert shown.document == {"sum": 42}


def test_call_json(era: str) -> None:
    document = invoke("call", "add", "a=20", "b=22", "--json", "--", *ERAS[era]).document
    assert document["ok"] is True
    assert document["result"]["structuredContent"] == {"sum": 42}


def test_call_shows_progress_on_standard_error(era: str) -> None:
    shown = invoke("call", "slow", "steps=2", "pause=0.01", "--", *ERAS[era])
    assert shown.out == "2 steps done\n"
    assert shown.err == "progress 1/2  step 1\nprogress 2/2  step 2\n"


def test_a_tool_that_fails(era: str) -> None:
    shown = invoke("call", "fail", "reason=today", "--", *ERAS[era])
    assert (shown.code, shown.out) == (1, "")
    assert shown.err == "sansmcp: tools/call 'fail': the tool failed: this tool fails today\n"
    document = invoke("call", "fail", "--json", "--", *ERAS[era])
    assert document.code == 1
    assert document.document["ok"] is False
    assert document.document["error"]["kind"] == "tool_error"
    assert document.document["result"]["isError"] is True


def test_a_failure_of_many_lines_stands_below_the_message() -> None:
    shown = invoke("call", "t", "--", *rough("long-failure"))
    assert shown.code == 1
    assert shown.err == "sansmcp: tools/call 't': the tool failed\n  first line\n  \\x1b[31msecond line\n"


def test_every_kind_of_block_is_shown_or_summed_up() -> None:
    shown = invoke("call", "blocks", "--", *RICH)
    assert shown.out.splitlines() == [
        "first",
        "second",
        "[image image/png, 5 bytes]",
        "[audio audio/wav, 11 bytes]",
        "[link to rich://text: A text]",
        "[resource rich://inner text/plain, 6 characters]",
        "[resource rich://blob, 5 bytes]",
    ]
    assert "[a block of type hologram]" in invoke("call", "t", "--", *rough("unknown-block")).out


def test_a_tool_that_answers_with_nothing() -> None:
    shown = invoke("call", "nothing", "--", *RICH)
    assert (shown.code, shown.out) == (0, "")
    assert shown.err == "(the tool answered with nothing)\n"


def test_arguments_from_a_file_and_from_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "arguments.json"
    file.write_text('{"text": "from a file"}', encoding="utf-8")
    assert invoke("call", "echo", "--args-file", str(file), "--", *ERAS["modern"]).out == "from a file\n"
    given = run(
        ["call", "echo", "--args-file", "-", "--", *ERAS["modern"]],
        cwd=tmp_path,
        stdin='{"text": "from a pipe"}',
    )
    assert given.out == "from a pipe\n"


def test_resources(era: str) -> None:
    shown = invoke("resources", "--", *ERAS[era])
    lines = shown.out.splitlines()
    assert lines[0].split() == ["RESOURCE", "TYPE", "DESCRIPTION"]
    assert lines[1] == "demo://greeting   text/plain   greeting: A few friendly words."
    assert lines[4].split() == ["TEMPLATE", "TYPE", "DESCRIPTION"]
    assert lines[5] == "demo://cities/{name}   text/plain   city: A city of the list."
    result = invoke("resources", "--json", "--", *ERAS[era]).document["result"]
    assert [r["uri"] for r in result["resources"]] == ["demo://greeting", "demo://dot"]
    assert [t["uriTemplate"] for t in result["resourceTemplates"]] == ["demo://cities/{name}"]


def test_a_server_that_never_heard_of_templates() -> None:
    shown = invoke("resources", "--", *rough("no-templates"))
    assert shown.code == 0
    assert shown.out.splitlines()[1:] == ["r://1      2.0 KiB   one"]


@pytest.mark.parametrize("command", ["tools", "resources", "prompts"])
def test_a_server_that_offers_nothing(command: str) -> None:
    shown = invoke(command, "--", *rough("offers-nothing"))
    assert (shown.code, shown.out) == (0, f"This server offers no {command}.\n")
    document = invoke(command, "--json", "--", *rough("offers-nothing")).document
    assert document["result"][command] == []


def test_read_text(era: str) -> None:
    assert invoke("read", "demo://cities/Oslo", "--", *ERAS[era]).out == "Oslo is number 7 of 8.\n"
    document = invoke("read", "demo://greeting", "--json", "--", *ERAS[era]).document
    assert document["result"]["contents"][0]["text"] == "Hello from the demo server.\n"


def test_read_several_parts_and_none() -> None:
    assert invoke("read", "rich://parts", "--", *RICH).out == "part one\npart two\n"
    empty = invoke("read", "r://1", "--", *rough("empty"))
    assert (empty.code, empty.out, empty.err) == (0, "", "(the resource has no contents)\n")


def test_read_bytes_into_a_pipe_and_into_a_file(tmp_path: Path) -> None:
    piped = run(["read", "rich://bytes", "--", *RICH], cwd=tmp_path)
    assert piped.out.encode("utf-8", "surrogateescape") == bytes(range(256)).replace(b"\r", b"\n")
    file = tmp_path / "out.bin"
    saved = invoke("read", "rich://bytes", "--output", str(file), "--", *RICH)
    assert (saved.code, saved.out) == (0, "")
    assert file.read_bytes() == bytes(range(256))
    text = tmp_path / "out.txt"
    invoke("read", "rich://text", "--output", str(text), "--", *RICH)
    assert text.read_bytes() == b"one\ntwo"


def test_prompts(era: str) -> None:
    lines = invoke("prompts", "--", *ERAS[era]).out.splitlines()
    assert [line.split() for line in lines[:3]] == [
        ["PROMPT", "ARGUMENTS", "DESCRIPTION"],
        ["greet", "name*", "Greet", "somebody."],
        ["tone"],
    ]
    result = invoke("prompts", "--json", "--", *ERAS[era]).document["result"]
    assert result["prompts"][0]["arguments"][0] == {"name": "name", "required": True}


def test_prompt(era: str) -> None:
    shown = invoke("prompt", "greet", "name=Ada", "--", *ERAS[era])
    assert shown.out == "user:\n  Greet Ada in a friendly way.\n"
    result = invoke("prompt", "greet", "name=Ada", "--json", "--", *ERAS[era]).document["result"]
    assert result["messages"][0]["content"]["text"] == "Greet Ada in a friendly way."
    several = invoke("prompt", "talk", "topic=tea", "--", *RICH)
    assert several.out == "user:\n  Talk of tea.\n  Please.\nassistant:\n  [image image/png, 5 bytes]\n"


def test_a_server_that_prints_to_its_standard_output_is_understood_all_the_same() -> None:
    assert invoke("call", "t", "--", *rough("chatty", "well")).out == "well\n"


# the options -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "revision"),
    [
        ("auto", "2026-07-28"),
        ("legacy", "2025-11-25"),
        ("2025-03-26", "2025-03-26"),
        ("2026-07-28", "2026-07-28"),
    ],
)
def test_mode(mode: str, revision: str) -> None:
    document = invoke("tools", "--json", "--mode", mode, "--", *ERAS["modern"]).document
    assert document["connection"]["revision"] == revision


def test_the_server_gets_what_is_set_and_little_else(tmp_path: Path) -> None:
    options = ["--json", "--env", "GIVEN=a=b", "--env", "EMPTY="]
    outer = {"SECRET_OF_MINE": "mine"}
    given = run(["call", "environment", *options, "--", *RICH], cwd=tmp_path, env=outer)
    seen = given.document["result"]["structuredContent"]
    assert seen["GIVEN"] == "a=b"
    assert seen["EMPTY"] == ""
    assert "SECRET_OF_MINE" not in seen
    inherited = run(["call", "environment", "--inherit-env", *options, "--", *RICH], cwd=tmp_path, env=outer)
    assert inherited.document["result"]["structuredContent"]["SECRET_OF_MINE"] == "mine"


def test_the_folder_the_server_runs_in(tmp_path: Path) -> None:
    assert invoke("call", "folder", "--cwd", str(tmp_path), "--", *RICH).out == f"{tmp_path}\n"


def test_the_servers_standard_error_is_shown_only_when_asked_for() -> None:
    quiet = invoke("call", "say", "text=hello", "--", *RICH)
    assert (quiet.out, quiet.err) == ("hello\n", "")
    shown = invoke("call", "say", "text=hello", "--stderr", "--", *RICH)
    assert (shown.out, shown.err) == ("hello\n", "saying hello\n")


def test_strict_takes_a_deviation_for_an_error() -> None:
    assert invoke("call", "t", "--", *rough("chatty", "well")).code == 0
    assert invoke("tools", "--strict", "--", *ERAS["modern"]).code == 0


# help --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", ["probe", "tools", "call", "resources", "read", "prompts", "prompt", "serve", "quirks"]
)
def test_help_has_an_example_and_the_exit_codes(command: str) -> None:
    shown = invoke(command, "--help")
    assert shown.code == 0
    assert f"  sansmcp {command}" in shown.out
    assert "Exit codes:" in shown.out
    if command not in ("serve", "quirks"):
        assert "[-- COMMAND...]" in shown.out.splitlines()[0]


def test_help_and_version_without_a_command(tmp_path: Path) -> None:
    bare = run(["--help"], cwd=tmp_path)
    assert bare.code == 0
    assert "Examples:" in bare.out
    version = run(["--version"], cwd=tmp_path)
    assert version.code == 0
    assert version.out.startswith("sansmcp 0.")


def test_help_loads_neither_the_engine_nor_rich(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from sansmcp_cli.cli import cli\n"
        "try: cli.main(['tools', '--help'])\n"
        "except SystemExit: pass\n"
        "heavy = {'rich', 'asyncio', 'sansmcp', 'attrs', 'sansmcp_asyncio'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    assert run([], cwd=tmp_path, python=["-c", code]).code == 0


@pytest.mark.parametrize("missing", ["click", "rich"])
def test_without_the_extra_one_line_says_what_to_install(missing: str, tmp_path: Path) -> None:
    code = (
        "import importlib.util, sys\n"
        "real = importlib.util.find_spec\n"
        f"importlib.util.find_spec = lambda name, *rest: None if name == {missing!r} else real(name, *rest)\n"
        "from sansmcp_cli.main import main\n"
        "main()\n"
    )
    ran = run([], cwd=tmp_path, python=["-c", code])
    assert ran.code == 2
    assert ran.err == f"sansmcp: the command needs {missing}: pip install 'sansmcp[cli]'\n"
