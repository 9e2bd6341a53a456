"""A server's name is found in the configuration files of MCP clients, whatever their shape."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sansmcp_cli.failures import CommandError
from sansmcp_cli.targets import (
    CommandTarget,
    Given,
    HttpTarget,
    find_target,
    named_target,
    user_files,
)

from .run import DEMO, invoke, run

pytestmark = pytest.mark.req("AA11")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty home, and an empty folder to stand in."""
    place, work = tmp_path / "home", tmp_path / "work"
    place.mkdir()
    work.mkdir()
    monkeypatch.setenv("HOME", str(place))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.delenv("NOT_SET", raising=False)
    monkeypatch.chdir(work)
    return place


def write(path: Path | str, document: Any) -> Path:
    file = Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(document if isinstance(document, str) else json.dumps(document), encoding="utf-8")
    return file


def refusal(name: str, config: str | None = None) -> str:
    with pytest.raises(CommandError) as caught:
        named_target(name, config)
    assert caught.value.code == 2
    assert "\n" not in caught.value.message
    return caught.value.message


def command(name: str, config: str | None = None, given: Given | None = None) -> CommandTarget:
    target = named_target(name, config, given or Given())
    assert isinstance(target, CommandTarget)
    return target


def argv(name: str, config: str | None = None) -> tuple[str, ...]:
    return command(name, config).argv


ENTRY = {"command": "server", "args": ["--x", "1"], "env": {"A": "b", "N": 1}, "cwd": "sub"}


def test_the_common_shape() -> None:
    write(".mcp.json", {"mcpServers": {"one": ENTRY}})
    assert named_target("one", None) == CommandTarget(
        ("server", "--x", "1"), "one", {"A": "b", "N": "1"}, str(Path.cwd() / "sub")
    )


def test_the_shape_of_vs_code_with_comments_and_variables(
    monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setenv("KEY", "sesame")
    write(
        ".vscode/mcp.json",
        """{
          // one server
          "servers": {
            "one": {
              "type": "stdio",
              "command": "${workspaceFolder}/bin/server", /* built
              before */
              "args": ["http://example.com//x", "${userHome}", "${workspaceFolderBasename}", "${1:x}"],
              "env": {"TOKEN": "${env:KEY}", "B": "${NOT_SET:-fallback}", "GONE": null},
              "cwd": "${workspaceFolder}/sub",
            },
          },
        }""",
    )
    work = str(Path.cwd())
    assert named_target("one", None) == CommandTarget(
        (f"{work}/bin/server", "http://example.com//x", str(home), "work", "${1:x}"),
        "one",
        {"TOKEN": "sesame", "B": "fallback"},
        f"{work}/sub",
    )


def test_a_target_does_not_show_its_environment() -> None:
    write(".mcp.json", {"mcpServers": {"one": {"command": "x", "env": {"TOKEN": "sesame"}}}})
    assert "sesame" not in repr(named_target("one", None))


def test_an_env_file() -> None:
    write("my.env", "# comment\nA=from the file\nB = 'quoted'\n\nnothing\n")
    entry = {"command": "x", "envFile": "${workspaceFolder}/my.env", "env": {"A": "wins"}}
    write(".vscode/mcp.json", {"servers": {"one": entry}})
    assert command("one").env == {"A": "wins", "B": "quoted"}


def test_the_first_file_that_has_the_name_wins_and_the_project_comes_first(home: Path) -> None:
    write(
        home / ".cursor" / "mcp.json",
        {"mcpServers": {"one": {"command": "user"}, "two": {"command": "user"}}},
    )
    assert argv("one") == ("user",)
    write(".mcp.json", {"mcpServers": {"one": {"command": "project"}}})
    assert argv("one") == ("project",)
    assert argv("two") == ("user",)


def test_only_the_given_file_is_looked_at() -> None:
    write(".mcp.json", {"mcpServers": {"one": {"command": "x"}}})
    other = write("other.json", {"mcpServers": {"two": {"command": "y"}}})
    assert argv("two", str(other)) == ("y",)
    assert refusal("one", "other.json") == (
        "no server named 'one' in other.json; known: two; a command line goes after --"
    )


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_the_files_of_a_user(platform: str, home: Path) -> None:
    files = user_files(home, {}, platform)
    assert all(file.is_relative_to(home) for file in files)
    assert home / ".claude.json" in files


def test_a_file_that_is_broken_matters_only_when_it_might_hold_the_name() -> None:
    write(".mcp.json", '{"mcpServers": {\n  "one" {}\n}}')
    write(".vscode/mcp.json", {"servers": {"one": {"command": "x"}}})
    assert argv("one") == ("x",)
    told = "not JSON at line 2 column 9: Expecting ':' delimiter"
    assert refusal("two") == f"no server named 'two' found, and .mcp.json: {told}"
    assert refusal("one", ".mcp.json") == f".mcp.json: {told}"


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "expected a JSON object with mcpServers or servers"),
        ({"mcpServers": []}, "mcpServers must be an object"),
        ({}, "it lists no server under mcpServers or servers"),
        ({"servers": {"one": 1}}, "server 'one' must be an object"),
        ({"servers": {"one": {}}}, "server 'one' has no command"),
        (
            {"servers": {"one": {"command": "x", "args": "y"}}},
            "server 'one': args must be an array of strings",
        ),
        ({"servers": {"one": {"command": "x", "env": []}}}, None),
        ({"servers": {"one": {"command": "x", "env": ["A"]}}}, "server 'one': env must be an object"),
        ({"servers": {"one": {"command": "x", "env": {"A": {}}}}}, "server 'one': env A must be a string"),
        ({"servers": {"one": {"command": "x", "cwd": 1}}}, "server 'one': cwd must be a string"),
        ({"servers": {"one": {"type": "http"}}}, "server 'one': url must be a string"),
        (
            {"servers": {"one": {"type": "grpc", "url": "https://example.com"}}},
            "server 'one': it has a url, so its type must be http, streamable-http, sse or ws",
        ),
        (
            {"servers": {"one": {"url": "ftp://example.com"}}},
            "server 'one': url is not usable: the scheme must be http or https",
        ),
        (
            {"servers": {"one": {"url": "http://x", "headers": ["A: b"]}}},
            "server 'one': headers must be an object",
        ),
        (
            {"servers": {"one": {"url": "http://x", "headers": {"A": ["sesame"]}}}},
            "server 'one': headers A must be a string",
        ),
        (
            {"servers": {"one": {"command": "x", "args": ["${env:NOT_SET}"]}}},
            "server 'one' needs the environment variable NOT_SET, which is not set",
        ),
    ],
)
def test_an_entry_that_cannot_be_used(document: Any, message: str | None) -> None:
    write("c.json", document)
    if message is None:
        assert command("one", "c.json").env == {}
    else:
        assert refusal("one", "c.json") == f"c.json: {message}"


def test_what_an_editor_would_ask_for_can_be_given_instead() -> None:
    env = {"KEY": "${input:key}", "OTHER": "${NOT_SET}"}
    write("c.json", {"servers": {"one": {"command": "x", "env": env}}})
    assert "only an editor can prompt for; set the variable with --env" in refusal("one", "c.json")
    assert command("one", "c.json", Given({"KEY": "a", "OTHER": "b"})).env == {}


@pytest.mark.parametrize("kind", [None, "http", "streamable-http", "streamableHttp", "sse"])
def test_a_server_that_is_reached_over_http(kind: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "sesame-open-42")
    headers = {"Authorization": "Bearer ${env:TOKEN}", "X-Team": "${NOT_SET:-red}", "X-Gone": None}
    entry: dict[str, Any] = {"url": "https://example.com/${TOKEN}/mcp?key=${TOKEN}", "headers": headers}
    write(".mcp.json", {"mcpServers": {"one": entry if kind is None else {"type": kind, **entry}}})
    target = named_target("one", None)
    assert target == HttpTarget(
        "https://example.com/sesame-open-42/mcp?key=sesame-open-42",
        "one",
        {"Authorization": "Bearer sesame-open-42", "X-Team": "red"},
    )
    assert "sesame" not in repr(target)


def test_a_header_that_an_editor_would_ask_for_can_be_given_instead() -> None:
    headers = {"Authorization": "Bearer ${input:token}", "X-Team": "red"}
    write("c.json", {"servers": {"one": {"url": "http://x/mcp", "headers": headers}}})
    told = "only an editor can prompt for; give the header with --header, or the URL for the name"
    assert refusal("one", "c.json").endswith(told)
    target = named_target("one", "c.json", Given(headers={"authorization"}))
    assert target == HttpTarget("http://x/mcp", "one", {"X-Team": "red"})


def test_a_url_is_a_target_and_shown_without_its_query() -> None:
    target = HttpTarget("https://Example.com/mcp?key=1", "https://example.com/mcp?…")
    assert find_target(["https://Example.com/mcp?key=1", "a=1"], None, None) == (target, ["a=1"])


def test_files_that_cannot_be_read() -> None:
    Path("c.json").write_bytes(b"\xff\xfe\x00")
    assert refusal("one", "c.json") == "cannot read c.json: it is not UTF-8"
    assert refusal("one", str(Path.cwd())) == f"cannot read {Path.cwd()}: Is a directory"
    assert refusal("one", "none.json") == "cannot read none.json: there is no such file"


def test_names_that_are_known_are_told() -> None:
    write(".mcp.json", {"mcpServers": {"one": {"command": "x"}, "two": {"command": "y"}}})
    with pytest.raises(CommandError) as caught:
        find_target([], None, None)
    assert caught.value.message == (
        "which server? Give its URL, its command after --, or its name in a config file (one, two)"
    )


def test_words_belong_to_the_command_when_there_is_a_command_line() -> None:
    write(".mcp.json", {"mcpServers": {"one": {"command": "x"}}})
    assert find_target(["a", "b"], ["x", "--", "y"], None) == (
        CommandTarget(("x", "--", "y"), "x"),
        ["a", "b"],
    )
    assert find_target(["one", "b"], None, None) == (CommandTarget(("x",), "one"), ["b"])


def test_a_configured_server_is_started_and_its_file_not_touched(home: Path) -> None:
    env = {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}
    entry = {"command": DEMO[0], "args": [*DEMO[1:], "legacy"], "env": {"GREETING": "sesame-seed", **env}}
    file = write(".mcp.json", {"mcpServers": {"demo": entry}})
    before = (file.read_bytes(), file.stat().st_mtime_ns)
    ran = invoke("call", "demo", "echo", "text=by name")
    assert (ran.code, ran.out) == (0, "by name\n")
    traced = run(["tools", "demo", "--trace"], cwd=Path.cwd())
    assert traced.code == 0
    assert "sesame-seed" not in traced.err
    assert (file.read_bytes(), file.stat().st_mtime_ns) == before


def test_a_server_that_does_not_start_is_called_by_its_name() -> None:
    write(".mcp.json", {"mcpServers": {"demo": {"command": "no-such-program"}}})
    ran = invoke("tools", "demo")
    assert ran.code == 3
    assert ran.err == (
        "sansmcp: demo: cannot start no-such-program: there is no such program;"
        " is it installed, and on PATH?\n"
    )
    write(".mcp.json", {"mcpServers": {"demo": {"command": "x", "cwd": "nowhere"}}})
    ran = invoke("tools", "demo")
    assert (ran.code, ran.err) == (2, f"sansmcp: demo: cwd {Path.cwd()}/nowhere: there is no such folder\n")
