"""Whatever goes wrong is one clear line and the right exit code, never a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sansmcp.quirks import QUIRKS

from .run import DEMO, PYTHON, environment, invoke, patiently, rough, run

pytestmark = pytest.mark.req("AA11")

SERVER = ["--", *DEMO]
URL = "http://127.0.0.1:1/mcp"
SECONDS = "--timeout: give a number of seconds greater than 0"
PLACES = "give PORT, HOST:PORT or [IPV6]:PORT; port 0 is any that is free"
HOSTS = "a name (as xn-- if it is not ASCII), maybe a port"
LIKE_GREETING = "(-32602 INVALID_PARAMS); did you mean demo://greeting?"
REFUSED = "the server answered with an error"
REVISIONS = "2024-11-05, 2025-03-26, 2025-06-18, 2025-11-25, 2026-07-28"

USAGE: dict[str, tuple[list[str], str]] = {
    "nothing": ([], "Missing command (see sansmcp --help)"),
    "no server": (
        ["tools"],
        "which server? Give its URL, its command after --, or its name in a config file",
    ),
    "no command after --": (["tools", "--"], "the server's command is missing after --"),
    "unknown command": (["bogus"], "No such command 'bogus' (see sansmcp --help)"),
    "unknown option": (["tools", "--bogus", *SERVER], "No such option '--bogus' (see sansmcp tools --help)"),
    "too many words": (
        ["tools", "extra", *SERVER],
        "unexpected argument 'extra': a server's own command goes after --",
    ),
    "a URL as a command": (
        ["tools", "--", "http://example.com"],
        "a URL is given without --, as the first word",
    ),
    "a URL and a config": (
        ["tools", URL, "--config", "x.json"],
        "give either a URL or --config FILE with a name, not both",
    ),
    "a URL with a password": (
        ["tools", "http://me:sesame@example.com/mcp"],
        "the URL is not usable: no user and password in an address: use the authorization header",
    ),
    "a URL without a host": (
        ["tools", "http:///mcp"],
        "the URL is not usable: no host, or an impossible one",
    ),
    "a variable for a URL": (
        ["tools", URL, "--env", "A=1"],
        f"--env is for a server that is started here; {URL} is reached over HTTP",
    ),
    "a folder for a URL": (
        ["tools", URL, "--cwd", "."],
        f"--cwd is for a server that is started here; {URL} is reached over HTTP",
    ),
    "a header for a command": (
        ["tools", "--header", "A: sesame", *SERVER],
        f"--header or --bearer-env is for a server that is reached over HTTP; {PYTHON} is started here",
    ),
    "a proxy for a command": (
        ["tools", "--proxy", "http://me:sesame@x", *SERVER],
        f"--proxy is for a server that is reached over HTTP; {PYTHON} is started here",
    ),
    "TLS without TLS": (
        ["tools", URL, "--insecure"],
        f"--insecure is for https; {URL} is not encrypted",
    ),
    "insecure and cacert": (
        ["tools", "https://127.0.0.1:1/", "--insecure", "--cacert", "x"],
        "give either --insecure or --cacert, not both",
    ),
    "no such cacert": (
        ["tools", "https://127.0.0.1:1/", "--cacert", "/no/such"],
        "--cacert /no/such: no certificates in PEM form: No such file or directory",
    ),
    "a header without a value": (
        ["tools", URL, "--header", "A: sesame", "--header", "sesame"],
        "--header: occurrence 2: give 'NAME: VALUE', or @FILE with such lines",
    ),
    "a header that is no name": (
        ["tools", URL, "--header", "Bearer sesame:1"],
        "--header: occurrence 1: give 'NAME: VALUE', or @FILE with such lines",
    ),
    "a header whose variable is not set": (
        ["tools", URL, "--header", "Authorization: Bearer "],
        "--header: occurrence 1: authorization has no value; is the variable in it set?",
    ),
    "a header twice": (
        ["tools", URL, "--header", "A: 1", "--header", "a: 2"],
        "--header: occurrence 2: a is given twice",
    ),
    "a header of the transport": (
        ["tools", URL, "--header", "Mcp-Session-Id: sesame"],
        f"{URL}: the header mcp-session-id is written by the transport: do not set it",
    ),
    "no such header file": (
        ["tools", URL, "--header", "@/no/such"],
        "cannot read --header @/no/such: No such file or directory",
    ),
    "no bearer variable": (
        ["tools", URL, "--bearer-env", "NO_SUCH_VARIABLE"],
        "--bearer-env NO_SUCH_VARIABLE: the variable is not set",
    ),
    "bearer twice": (
        ["tools", URL, "--bearer-env", "HOME", "--header", "Authorization: Bearer sesame"],
        "give either --bearer, --bearer-env or a header authorization, not two of them",
    ),
    "bearer and variable": (
        ["tools", URL, "--bearer-env", "HOME", "--bearer", "sesame"],
        "give either --bearer, --bearer-env or a header authorization, not two of them",
    ),
    "bearer empty": (
        ["tools", URL, "--bearer", ""],
        "--bearer: there is no token; is the variable in it set?",
    ),
    "bearer with blanks": (
        ["tools", URL, "--bearer", "Bearer sesame"],
        "--bearer: a token has no blanks in it",
    ),
    "no such bearer file": (
        ["tools", URL, "--bearer", "@/no/such"],
        "cannot read --bearer @/no/such: No such file or directory",
    ),
    "timeout zero": (
        ["tools", "--timeout", "0", *SERVER],
        "--timeout: give a number of seconds greater than 0",
    ),
    "timeout nan": (
        ["tools", "--timeout", "nan", *SERVER],
        "--timeout: give a number of seconds greater than 0",
    ),
    "timeout word": (
        ["tools", "--timeout", "soon", *SERVER],
        "Invalid value for '--timeout': 'soon' is not a valid float (see sansmcp tools --help)",
    ),
    "mode": (
        ["tools", "--mode", "2020-01-01", *SERVER],
        f"--mode 2020-01-01: give auto, legacy or a revision ({REVISIONS})",
    ),
    "env without value": (
        ["tools", "--env", "A=1", "--env", "sesame", *SERVER],
        "--env: give NAME=VALUE (the value is missing in occurrence 2)",
    ),
    "no such folder": (["tools", "--cwd", "/no/such", *SERVER], "--cwd /no/such: there is no such folder"),
    "no such config": (
        ["tools", "x", "--config", "/no/such.json"],
        "cannot read /no/such.json: there is no such file",
    ),
    "config and command": (
        ["tools", "--config", "x.json", *SERVER],
        "give either a command after -- or --config FILE with a name, not both",
    ),
    "no tool": (["call", *SERVER], "which tool? Give its name before its arguments"),
    "bad JSON": (
        ["call", "echo", '{"text": }', *SERVER],
        "arguments: not JSON at line 1 column 10: Expecting value",
    ),
    "bad JSON, second line": (
        ["call", "echo", '{"text":\n "a" "b"}', *SERVER],
        "arguments: not JSON at line 2 column 6: Expecting ',' delimiter",
    ),
    "NaN": (["call", "echo", '{"text": NaN}', *SERVER], "arguments: NaN is no JSON value"),
    "no object": (
        ["call", "echo", "[1]", *SERVER],
        "arguments: expected a JSON object, got an array",
    ),
    "JSON and pairs": (
        ["call", "echo", "{}", "a=1", *SERVER],
        "arguments: one JSON object or key=value pairs, not both (quote the JSON for your shell)",
    ),
    "no pair": (
        ["call", "echo", "hello", *SERVER],
        "arguments: expected key=value or one JSON object, got 'hello'",
    ),
    "pair twice": (
        ["call", "echo", "a=1", "a=2", *SERVER],
        "arguments: a is given twice; a list is written as JSON, a='[1, 2]'",
    ),
    "file and pairs": (
        ["call", "echo", "a=1", "--args-file", "x", *SERVER],
        "give arguments either on the command line or with --args-file, not both",
    ),
    "no such file": (
        ["call", "echo", "--args-file", "/no/such", *SERVER],
        "cannot read --args-file /no/such: No such file or directory",
    ),
    "wrong type": (
        ["call", "add", "a=x", "b=1", *SERVER],
        "add: argument 'a': expected an integer, got 'x'",
    ),
    "unknown argument": (
        ["call", "echo", "txt=1", *SERVER],
        "echo: there is no argument 'txt'; it takes text",
    ),
    "no URI": (["read", *SERVER], "which resource? Give its URI"),
    "no folder for the output": (
        ["read", "demo://dot", "--output", "/no/such/x", *SERVER],
        "--output /no/such/x: there is no such folder",
    ),
    "no prompt": (["prompt", *SERVER], "which prompt? Give its name before its arguments"),
    "no such app file": (["serve", "no_such.py"], "no_such.py: there is no such file"),
    "no such app module": (
        ["serve", "no_such_module"],
        "no_such_module: there is no such module (a file is written with .py)",
    ),
    "no app in the module": (
        ["serve", "json:x"],
        "json:x: expected an App named 'x' in json, but there is none",
    ),
    "a path without http": (["serve", "--path", "/x"], "--path goes with --http or --websocket"),
    "a name without http": (["serve", "--allow-host", "x"], "--allow-host goes with --http or --websocket"),
    "a path without an endpoint": (
        ["serve", "--tcp", "0", "--path", "/x"],
        "--path goes with --http or --websocket",
    ),
    "no sessions without HTTP": (["serve", "--stateless"], "--stateless goes with --http"),
    "no sessions at WebSockets": (
        ["serve", "--websocket", "0", "--stateless"],
        "--stateless goes with --http",
    ),
    "TLS at a unix socket": (
        ["serve", "--unix", "x", "--certfile", "x"],
        "--certfile goes with --http, --websocket or --tcp",
    ),
    "two places": (
        ["serve", "--http", "0", "--websocket", "0"],
        "give only one of --http, --websocket",
    ),
    "no place at all": (["serve", "--tcp", ""], f"--tcp: {PLACES}"),
    "HTTP+SSE without sessions": (
        ["serve", "--http", "0", "--stateless", "--old-sse"],
        "give either --old-sse or --stateless: HTTP+SSE needs sessions",
    ),
    "HTTP+SSE for nobody": (
        ["serve", "--http", "0", "--old-sse", "--revision", "modern"],
        "--old-sse: HTTP+SSE has no modern revision: none is served that speaks it",
    ),
    "a folder for a socket": (
        ["serve", "--unix", "/"],
        "--unix /: something else is there; choose another path",
    ),
    "no path for a socket": (["serve", "--unix", ""], "--unix: give the path of the socket"),
    "a certificate without a name": (
        ["serve", "--certfile", ""],
        "--certfile goes with --http, --websocket or --tcp",
    ),
    "a quirk that nobody knows": (
        ["tools", URL, "--quirk", "x"],
        f"--quirk x: no quirk has this name: there are {', '.join(QUIRKS)} (see sansmcp quirks)",
    ),
    "a quirk with a slip": (
        ["tools", URL, "--quirk", "json-as-txt"],
        "--quirk json-as-txt: no quirk has this name: did you mean json-as-text? (see sansmcp quirks)",
    ),
    "a quirk of HTTP": (
        ["tools", "--quirk", "json-as-text", *SERVER],
        f"--quirk json-as-text is for HTTP; {PYTHON} is started here",
    ),
    "a quirk and strict": (
        ["tools", URL, "--quirk", "no-cancel", "--strict"],
        "give either --quirk or --strict, not both: strict tolerates nothing",
    ),
    "no port": (["serve", "--http", "localhost"], f"--http localhost: {PLACES}"),
    "an impossible port": (["serve", "--http", "65536"], f"--http 65536: {PLACES}"),
    "an address without brackets": (["serve", "--http", "::1:80"], f"--http ::1:80: {PLACES}"),
    "no host": (["serve", "--http", ":80"], f"--http :80: {PLACES}"),
    "no path": (
        ["serve", "--http", "0", "--path", "mcp"],
        "--path mcp: give a path such as /mcp, without a query",
    ),
    "a key without a certificate": (
        ["serve", "--http", "0", "--keyfile", "x"],
        "--keyfile goes with --certfile",
    ),
    "no certificate": (
        ["serve", "--http", "0", "--certfile", "/no/such"],
        "/no/such: no certificate with its key in PEM form: No such file or directory",
    ),
    "a name that is none": (
        ["serve", "--http", "0", "--allow-host", "a b"],
        f"--http, --allow-host, --allow-origin: 'a b' is no host: {HOSTS}",
    ),
    "revision": (
        ["serve", "--revision", "new"],
        f"--revision: give legacy, modern or a revision ({REVISIONS})",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_a_command_that_is_given_wrongly(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    args, message = USAGE[name]
    ran = invoke(*args, env={"HOME": str(tmp_path)})
    assert (ran.code, ran.out, ran.err) == (2, "", f"sansmcp: {message}\n")


ANSWERS: dict[str, tuple[list[str], str]] = {
    "unknown tool": (
        ["call", "nothing", *SERVER],
        f"tools/call 'nothing': {REFUSED}: no tool named 'nothing' (-32602 INVALID_PARAMS)",
    ),
    "unknown tool with pairs": (
        ["call", "nothing", "a=1", *SERVER],
        "tools/call 'nothing': the server has no such tool; it has echo, add, slow, fail",
    ),
    "a slip in a tool": (
        ["call", "ech", *SERVER],
        f"tools/call 'ech': {REFUSED}: no tool named 'ech' (-32602 INVALID_PARAMS); did you mean echo?",
    ),
    "a slip in a tool with pairs": (
        ["call", "ech", "a=1", *SERVER],
        "tools/call 'ech': the server has no such tool; did you mean echo?",
    ),
    "a slip in a resource": (
        ["read", "demo://greting", *SERVER],
        f"resources/read 'demo://greting': {REFUSED}: no resource at 'demo://greting' {LIKE_GREETING}",
    ),
    "a slip in a prompt": (
        ["prompt", "gret", *SERVER],
        f"prompts/get 'gret': {REFUSED}: no prompt named 'gret' (-32602 INVALID_PARAMS); did you mean greet?",
    ),
    "unknown resource": (
        ["read", "demo://x", *SERVER],
        f"resources/read 'demo://x': {REFUSED}: no resource at 'demo://x' (-32602 INVALID_PARAMS)",
    ),
    "unknown prompt": (
        ["prompt", "x", *SERVER],
        "prompts/get 'x': the server answered with an error: no prompt named 'x' (-32602 INVALID_PARAMS)",
    ),
    "no tools": (
        ["call", "t", "--", *rough("offers-nothing")],
        "tools/call 't': the server offers no tools (it does not declare the capability)",
    ),
    "invalid blob": (
        ["read", "r://1", "--", *rough("bad-blob")],
        "resources/read 'r://1': the server's answer cannot be used: its blob is not base64",
    ),
}


def test_a_result_that_is_none() -> None:
    ran = invoke("call", "t", "--", *rough("bad-result"))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == (
        "sansmcp: tools/call 't': the server's answer cannot be used: the result of tools/call is not"
        " valid: $.content: expected an array, got 'not a list'\n"
    )


@pytest.mark.parametrize("name", ANSWERS)
def test_a_server_that_answers_with_an_error(name: str) -> None:
    args, message = ANSWERS[name]
    ran = invoke(*args)
    assert (ran.code, ran.out, ran.err) == (1, "", f"sansmcp: {message}\n")


def test_several_parts_do_not_fit_into_one_file(tmp_path: Path) -> None:
    from .run import RICH

    ran = invoke("read", "rich://parts", "--output", str(tmp_path / "x"), "--", *RICH)
    assert ran.code == 2
    assert (
        ran.err == "sansmcp: resources/read 'rich://parts': it has 2 parts, --output takes one; use --json\n"
    )


# no connection -----------------------------------------------------------------------------------


def test_a_program_that_does_not_exist() -> None:
    ran = invoke("tools", "--", "no-such-program")
    assert ran.code == 3
    assert ran.err == (
        "sansmcp: cannot start no-such-program: there is no such program; is it installed, and on PATH?\n"
    )


def test_a_program_that_may_not_run(tmp_path: Path) -> None:
    file = tmp_path / "server"
    file.write_text("", encoding="utf-8")
    ran = invoke("tools", "--", str(file))
    assert ran.code == 3
    assert ran.first_error.startswith(f"sansmcp: cannot start {file}: ")
    assert "ermission" in ran.err


def test_a_server_that_dies_at_once_shows_its_last_words_once() -> None:
    ran = invoke("tools", "--", *rough("die"))
    assert ran.code == 3
    ended = "the server ended with exit code 3 before it was connected; is it an MCP server on stdio?"
    assert ran.err.splitlines() == [
        f"sansmcp: {PYTHON}: {ended}",
        "  the server's last words:",
        "    reading settings",
        "    FATAL: no database, password=[hidden]",
    ]


def test_a_server_that_dies_in_a_call() -> None:
    ran = invoke("call", "t", "--", *rough("die-on-call"))
    assert ran.code == 3
    assert ran.err.splitlines() == [
        "sansmcp: tools/call 't': the server ended with exit code 7",
        "  the server's last words:",
        "    working",
        "    out of memory",
    ]


def test_last_words_that_were_shown_are_not_repeated() -> None:
    ran = invoke("call", "t", "--stderr", "--", *rough("die-on-call"))
    assert ran.err == "working\nout of memory\nsansmcp: tools/call 't': the server ended with exit code 7\n"


def test_no_version_in_common() -> None:
    old = invoke("tools", "--", *rough("old-version"))
    assert old.code == 3
    assert old.err == (
        f"sansmcp: {PYTHON}: asked for protocol version 2025-11-25, the server answered '1999-01-01',"
        " which this client does not accept\n"
    )
    pinned = invoke("tools", "--json", "--mode", "2025-03-26", "--", *DEMO, "modern")
    assert pinned.code == 3
    assert pinned.document["error"]["kind"] == "no_common_version"
    assert pinned.first_error.endswith("; --mode auto tries every revision")


@pytest.mark.parametrize(
    ("program", "code", "told"),
    [
        ("print('hello')", 3, "is it an MCP server on stdio? It wrote what is no message: Expecting value"),
        (
            "import time; print('hello', flush=True); time.sleep(99)  # until it is killed",
            4,
            "allow more with --timeout SECONDS; it wrote what is no message: Expecting value",
        ),
    ],
)
def test_what_a_program_wrote_that_is_no_server_is_shown(program: str, code: int, told: str) -> None:
    ran, _ = patiently("hello", "tools", "--", PYTHON, "-c", program)
    assert ran.code == code
    assert told in ran.first_error
    assert ran.first_error.endswith("'hello'")


@pytest.mark.parametrize("url", ["tcp://127.0.0.1:1", "ws://127.0.0.1:1/mcp", "unix:///no/such/socket"])
def test_nobody_listens(url: str) -> None:
    ran = invoke("tools", url)
    where = "/no/such/socket" if url.startswith("unix") else "127.0.0.1:1"
    told = "nobody listens there: is the server running, and is the address right?"
    assert (ran.code, ran.err) == (3, f"sansmcp: {url}: cannot connect to {where}: {told}\n")


@pytest.mark.parametrize(
    "url", ["htp://example.com/mcp", "https//example.com", "http:example.com", "localhost:8000/mcp", "x.y:1"]
)
def test_a_slip_in_a_url(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ran = invoke("tools", url, env={"HOME": str(tmp_path)})
    assert ran.code == 2
    assert ran.first_error.endswith(
        "; a URL begins with http://, https://, ws://, wss://, tcp://, tls:// or unix:/"
    )


def test_a_slip_in_the_name_of_a_server(tmp_path: Path) -> None:
    file = tmp_path / "mcp.json"
    file.write_text('{"mcpServers": {"weather": {"command": "x"}, "time": {"command": "x"}}}')
    ran = invoke("tools", "wether", "--config", str(file))
    assert ran.code == 2
    assert ran.err == f"sansmcp: no server named 'wether' in {file}; did you mean weather?\n"


# no answer ---------------------------------------------------------------------------------------


def test_a_server_that_never_answers() -> None:
    ran, seconds = patiently("I never answer", "tools", "--", *rough("silent"))
    assert ran.code == 4
    first, *rest = ran.err.splitlines()
    assert first.startswith(f"sansmcp: {PYTHON}: no connection after {seconds} s, waiting for initialize")
    assert first.endswith("; allow more with --timeout SECONDS")
    assert rest == ["  the server's last words:", "    I never answer"]


def test_a_call_that_takes_too_long() -> None:
    ran, seconds = patiently("thinking", "call", "t", "--", *rough("hang-on-call"))
    assert ran.code == 4
    assert ran.err.splitlines() == [
        f"sansmcp: tools/call 't': not finished after {seconds} s; allow more with --timeout SECONDS",
        "  the server's last words:",
        "    thinking",
    ]


# as JSON -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("args", "code", "kind"),
    [
        (["tools", "--json"], 2, "usage"),
        (["tools", "--json", "--bogus", *SERVER], 2, "usage"),
        (["tools", "--json", "--", "no-such-program"], 3, "cannot_start"),
        (["call", "nothing", "--json", *SERVER], 1, "server_error"),
        (["call", "nothing", "a=1", "--json", *SERVER], 1, "unknown_name"),
        (["call", "t", "--json", "--", *rough("offers-nothing")], 1, "not_offered"),
        (["call", "t", "--json", "--", *rough("bad-result")], 1, "invalid_answer"),
        (["tools", "--json", "--timeout", "0.3", "--", *rough("silent")], 4, "timeout"),
    ],
)
def test_a_failure_as_json(args: list[str], code: int, kind: str, tmp_path: Path) -> None:
    ran = invoke(*args, env={"HOME": str(tmp_path)})
    assert ran.code == code
    document = ran.document
    assert document["ok"] is False
    assert document["command"] == args[0]
    assert document["error"]["kind"] == kind
    assert document["error"]["exitCode"] == code
    assert f"sansmcp: {document['error']['message']}" in ran.err.splitlines()


def test_what_failed_as_json_has_its_details() -> None:
    died = invoke("call", "t", "--json", "--", *rough("die-on-call")).document["error"]
    assert died["returncode"] == 7
    assert died["serverStderr"] == ["working", "out of memory"]
    refused = invoke("call", "t", "--json", "--", *rough("error-with-secret")).document["error"]
    assert refused["code"] == -32000
    assert refused["data"] == {"authorization": "[hidden]", "why": "expired"}


# from outside ------------------------------------------------------------------------------------


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize(
    ("number", "code", "told"),
    [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")],
)
def test_a_signal_ends_the_command_and_its_server(
    number: signal.Signals, code: int, told: str, tmp_path: Path
) -> None:
    command = [PYTHON, "-m", "sansmcp_cli", "call", "slow", "steps=1000", "--", *DEMO]
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("progress 1/1000")
        process.send_signal(number)
        # the end of these pipes is also the end of the server, which inherited nothing else of ours
        _, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert err.splitlines()[-1] == f"sansmcp: {told}"
    assert "Traceback" not in err


@pytest.mark.skipif(os.name != "posix", reason="pipes")
def test_whoever_reads_the_output_may_have_enough_of_it(tmp_path: Path) -> None:
    script = f'"{PYTHON}" -m sansmcp_cli call t -- {" ".join(rough("huge"))} | head -c 10'
    done = subprocess.run(
        ["/bin/sh", "-c", script],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("x" * 10, "")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="full disks")
@pytest.mark.parametrize("options", ["", "--json"])
def test_output_that_cannot_be_written(options: str, tmp_path: Path) -> None:
    done = shell(f"tools {options} -- {' '.join(DEMO)} >/dev/full", tmp_path)
    assert (done.returncode, done.stderr) == (
        74,
        "sansmcp: the output cannot be written: No space left on device\n",
    )


@pytest.mark.skipif(os.name != "posix", reason="shells")
@pytest.mark.parametrize(
    ("words", "code"),
    [
        (f"tools -- {' '.join(DEMO)} >&-", 0),
        (f"tools -- {' '.join(DEMO)} <&-", 0),
        ("serve <&-", 0),
        ("nothing 2>&-", 2),
        ("serve <&- >&- 2>&-", 0),
    ],
)
def test_streams_may_be_closed(words: str, code: int, tmp_path: Path) -> None:
    done = shell(words, tmp_path)
    assert (done.returncode, "fault" in done.stderr) == (code, False)


def shell(words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """``sansmcp WORDS`` as a shell runs it."""
    return subprocess.run(
        ["/bin/sh", "-c", f'"{PYTHON}" -m sansmcp_cli {words}'],
        cwd=cwd,
        env=environment(cwd),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_fault_of_our_own_is_told_as_one(monkeypatch: pytest.MonkeyPatch) -> None:
    import sansmcp_cli.commands

    def broken(*args: object, **options: object) -> None:
        raise KeyError("oops")

    monkeypatch.setattr(sansmcp_cli.commands, "tools", broken)
    ran = invoke("tools", *SERVER)
    assert ran.code == 70
    assert ran.err == "sansmcp: a fault of this program: KeyError: 'oops' (--debug shows where)\n"
    with pytest.raises(KeyError):
        invoke("tools", "--debug", *SERVER)


def test_debug_shows_where_a_failure_comes_from(tmp_path: Path) -> None:
    ran = run(["call", "nothing", "--debug", "--", *DEMO], cwd=tmp_path)
    assert ran.code == 1
    assert "Traceback" in ran.err
    assert ran.err.splitlines()[-1].startswith("sansmcp: tools/call 'nothing': ")


def test_no_traceback_without_debug(tmp_path: Path) -> None:
    ran = run(["call", "nothing", "--", *DEMO], cwd=tmp_path)
    assert ran.code == 1
    assert len(ran.err.splitlines()) == 1
    assert sys.executable not in ran.out
