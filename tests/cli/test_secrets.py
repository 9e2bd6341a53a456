"""Nothing that a command shows on its own account holds a secret."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sansmcp_cli.redact import Redactor, tells_of_secret

from .bad_http import bad_server
from .run import DEMO, RICH, invoke, rough, run, serve_http

pytestmark = pytest.mark.req("AA11")

SECRET = "sesame-open-42"


def test_the_trace_is_one_line_for_each_message_and_event() -> None:
    ran = invoke("call", "slow", '{"steps": 1, "pause": 0.01}', "--trace", "--", *DEMO)
    assert ran.out == "1 steps done\n"
    lines = [line for line in ran.err.splitlines() if not line.startswith("progress")]
    assert all(re.match(r" +\d+\.\d{3} [→←·] \S", line) for line in lines)
    assert all(len(line) < 500 for line in lines)
    shown = [re.sub(r"^ +[\d.]+ |  \{.*$", "", line) for line in lines]
    # a result may come in the same read as the progress before it
    assert [line for line in shown if line.startswith(("→", "←"))] == [
        "→ request server/discover #1",
        "← result #1",
        "→ request tools/call #2",
        "← notification notifications/progress",
        "← result #2",
    ]
    events = [line for line in shown if line.startswith("·")]
    assert events[0].startswith("· start: ")
    assert events[1].startswith("· EraDecided: modern, revision 2026-07-28 (server/discover: the server")
    assert events[2:] == [
        "· ProgressReported: tools/call 'slow' 1/1 step 1",
        "· ResultReady: tools/call 'slow'",
        "· SessionEnded: in order",
    ]


def test_with_json_the_trace_leaves_standard_output_alone() -> None:
    ran = invoke("tools", "--json", "--trace", "--", *DEMO)
    assert ran.document["ok"] is True
    assert "→ request tools/list" in ran.err


def test_a_message_that_is_large_is_not_shown() -> None:
    ran = invoke("call", "t", "--trace", "--", *rough("huge"))
    assert "← (a line of 2.9 MiB, not shown)" in ran.err
    assert len(ran.err) < 5000


def test_a_line_that_is_no_message_is_shown_as_such() -> None:
    ran = invoke("call", "t", "--trace", "--", *rough("chatty"))
    assert "← (no JSON) this is no protocol" in ran.err


def test_values_of_variables_are_hidden_in_trace_and_messages(tmp_path: Path) -> None:
    args = ["call", "say", f"text=it is {SECRET}!", "--trace", "--stderr", "--env", f"PLAIN={SECRET}"]
    ran = run([*args, "--", *RICH], cwd=tmp_path)
    assert SECRET in ran.out  # what was asked for is not ours to change
    assert SECRET not in ran.err
    assert "saying it is [hidden]!" in ran.err
    assert "with PLAIN set" in ran.err


def test_telling_variables_of_our_own_environment_are_hidden_too(tmp_path: Path) -> None:
    args = ["call", "say", f"text={SECRET}", "--trace", "--inherit-env"]
    ran = run([*args, "--", *RICH], cwd=tmp_path, env={"MY_API_KEY": SECRET})
    assert SECRET in ran.out
    assert SECRET not in ran.err


def test_telling_members_are_hidden_whatever_their_value() -> None:
    given = {"text": "visible words", "requestState": "state-of-affairs", "api_token": "tok-123"}
    ran = invoke("call", "say", json.dumps(given), "--trace", "--", *RICH)
    assert "visible words" in ran.err
    assert "state-of-affairs" not in ran.err
    assert "tok-123" not in ran.err
    assert ran.err.count('"progressToken":2') == 1


def test_a_servers_error_is_shown_without_its_secrets() -> None:
    for option in ("--json", "--trace"):
        ran = invoke("call", "t", option, "--", *rough("error-with-secret"))
        assert ran.code == 1
        assert "abcd1234" not in ran.out + ran.err
        assert "abcdefgh12345678" not in ran.out + ran.err
        assert "token=[hidden] expired" in ran.err


def test_last_words_are_shown_without_their_secrets() -> None:
    ran = invoke("tools", "--json", "--", *rough("die"))
    assert "hunter2hunter2" not in ran.out + ran.err
    assert "password=[hidden]" in ran.err


def test_the_command_line_of_the_server_is_shown_without_its_secrets() -> None:
    ran = invoke("tools", "--trace", "--", *DEMO, "modern", "--api-key", SECRET, f"--token={SECRET}")
    assert ran.code == 3  # the demo does not know these
    assert SECRET not in ran.out
    assert SECRET not in ran.err.partition("the server's last words")[0]
    assert "--api-key [hidden] --token=[hidden]" in ran.err


def test_an_option_that_is_given_wrongly_is_not_quoted() -> None:
    ran = invoke("tools", "--env", SECRET, "--", *DEMO)
    assert ran.code == 2
    assert SECRET not in ran.err


# over HTTP ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_http(cwd=tmp_path_factory.mktemp("demo")) as (url, _):
        yield url


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_trace_over_http_names_headers_and_hides_what_they_hold(mode: str, url: str) -> None:
    given = ["--header", f"X-Team: {SECRET}", "--bearer-env", "MY_VARIABLE", "--mode", mode, "--trace"]
    ran = invoke("call", url, "echo", f"text=it is {SECRET}!", *given, env={"MY_VARIABLE": "b" + SECRET})
    assert (ran.code, ran.out) == (0, f"it is {SECRET}!\n")
    assert SECRET not in ran.err
    assert "reach: http://127.0.0.1:" in ran.err
    assert "/mcp with the headers x-team, authorization" in ran.err
    lines = [re.sub(r"^ +[\d.]+ ", "", line) for line in ran.err.splitlines()]
    heads = [line for line in lines if line.startswith("→ POST /mcp HTTP/1.1; ")]
    assert heads
    assert all("x-team: [hidden]" in line and "authorization: [hidden]" in line for line in heads)
    if mode == "legacy":
        assert "; mcp-session-id: [hidden]" in ran.err
    assert any(line.startswith("← HTTP/1.1 200 OK; content-type: ") for line in lines)
    assert any(line.startswith("→ request tools/call #") and "it is [hidden]!" in line for line in lines)
    assert any(line.startswith("← result #") for line in lines)


def test_the_query_of_a_url_is_hidden(url: str) -> None:
    secret_url = f"{url}?key={SECRET}&x=1"
    for args in (["tools", secret_url, "--trace"], ["probe", secret_url, "--mode", "legacy", "--trace"]):
        ran = invoke(*args)
        assert ran.code == 0, ran.err
        assert SECRET not in ran.out + ran.err
        assert "POST /mcp?… HTTP/1.1" in ran.err


def test_what_a_server_says_of_a_token_is_hidden() -> None:
    """Its refusal quotes the token."""
    with bad_server() as url:
        token = ["--header", f"Authorization: Bearer {SECRET}"]
        for option in ("--json", "--trace"):
            ran = invoke("probe", f"{url}/secret", *token, option)
            assert ran.code == 3
            assert SECRET not in ran.out + ran.err
            assert "HTTP 401, “token [hidden] is not known”" in ran.err


def test_headers_of_a_file_are_hidden_too(url: str, tmp_path: Path) -> None:
    file = tmp_path / "headers"
    file.write_text(f"# for everything\n\nX-Team: {SECRET}\nX-Api-Key: 77\n", encoding="utf-8")
    ran = invoke("tools", url, "--header", f"@{file}", "--trace")
    assert ran.code == 0, ran.err
    assert SECRET not in ran.err
    assert "x-team: [hidden]; x-api-key: [hidden]" in ran.err
    file.write_text(f"X-Team: red\n{SECRET}\n", encoding="utf-8")
    ran = invoke("tools", url, "--header", f"@{file}")
    told = f"--header @{file}: line 2: give 'NAME: VALUE', or @FILE with such lines"
    assert (ran.code, ran.err) == (2, f"sansmcp: {told}\n")


def test_a_server_hides_what_clients_send(tmp_path: Path) -> None:
    with serve_http("--trace", cwd=tmp_path) as (url, process):
        given = ["--header", f"Authorization: Bearer {SECRET}", "--mode", "legacy"]
        ran = invoke("call", f"{url}?token={SECRET}", "echo", "text=hi", *given)
        assert (ran.code, ran.out) == (0, "hi\n")
        process.terminate()
        _, err = process.communicate(timeout=60)
    assert SECRET not in err
    assert "← POST /mcp?… HTTP/1.1; " in err
    assert "authorization: [hidden]" in err
    assert "mcp-session-id: [hidden]" in err
    assert "← request tools/call #" in err


# the redactor alone ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    [
        "Authorization", "authorization", "proxy-authorization", "token", "accessToken", "access_token",
        "GITHUB_TOKEN", "GITHUB_PAT", "tokens", "secret", "clientSecret", "password", "passwd", "PGPASSWORD",
        "apiKey", "api-key", "X-Api-Key", "cookie", "Set-Cookie", "requestState", "request_state",
        "Mcp-Session-Id", "sessionId", "code_verifier", "private_key", "AWS_SECRET_ACCESS_KEY", "jwt",
        "DB_PWD", "oauth", "credentials",
    ],
)  # fmt: skip
def test_names_that_tell(name: str) -> None:
    assert tells_of_secret(name)


@pytest.mark.parametrize(
    "name",
    ["progressToken", "author", "authors", "name", "key", "keys", "cursor", "uri", "path", "PWD", "monkey",
     "tokenizer", "description", "id", "state", "company", "authorization_servers"],
)  # fmt: skip
def test_names_that_do_not(name: str) -> None:
    assert not tells_of_secret(name)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ({"token": "x"}, {"token": "[hidden]"}),
        ({"token": None, "password": True, "secret": ""}, {"token": None, "password": True, "secret": ""}),
        ({"pin_token": 1234, "maxTokens": 5}, {"pin_token": "[hidden]", "maxTokens": 5}),
        ({"cookies": ["a=b"]}, {"cookies": "[hidden]"}),
        ({"token": {"type": "string"}}, {"token": {"type": "string"}}),
        ({"credentials": {"user": "u"}}, {"credentials": "[hidden]"}),
        ({"a": [{"b": {"apiKey": "x"}}]}, {"a": [{"b": {"apiKey": "[hidden]"}}]}),
        ({"v1-value-9": 1}, {"[hidden]": 1}),
        ([1.5, None, True, "is v1-value-9."], [1.5, None, True, "is [hidden]."]),
    ],
)
def test_json(value: Any, shown: Any) -> None:
    before = json.dumps(value)
    assert Redactor({"ANY": "v1-value-9"}).json(value) == shown
    assert json.dumps(value) == before


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdef.ghi-123", "Authorization: Bearer [hidden]"),
        ("Basic dXNlcjpwYXNz", "Basic [hidden]"),
        ("https://x/y?access_token=abc123&z=1", "https://x/y?access_token=[hidden]&z=1"),
        ("password=hunter2", "password=[hidden]"),
        ('{"client_secret": "abc"}', '{"client_secret": "[hidden]"}'),
        ("API key: k3y-12345", "API key: [hidden]"),
        ("key is sk-abcdefghijklmnop1234", "key is [hidden]"),
        ("ghp_abcdefghijklmnopqrst", "[hidden]"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc", "[hidden]"),
        ("token: expected a string", "token: expected a string"),
        ("the password is wrong", "the password is wrong"),
        ('"progressToken":3', '"progressToken":3'),
        ("basic usage", "basic usage"),
    ],
)
def test_text(text: str, shown: str) -> None:
    assert Redactor().text(text) == shown


def test_a_value_is_recognised_inside_json_text_too() -> None:
    value = 'quote " and ü'
    redactor = Redactor({"ANY": value})
    for text in (value, json.dumps(value), json.dumps(value, ensure_ascii=False)):
        assert redactor.text(text).strip('"') == "[hidden]"


def test_the_longer_of_two_values_goes_first_and_short_ones_are_left_alone() -> None:
    redactor = Redactor({"A": "abcd", "B": "abcdefgh", "FLAG": "on", "PIN_TOKEN": "77"}, {"PATH": "/usr/bin"})
    assert redactor.text("abcdefgh abcd on 77 /usr/bin") == "[hidden] [hidden] on [hidden] /usr/bin"


def test_hiding_takes_linear_time() -> None:
    redactor = Redactor({"ANY": "v1-value-9"})
    for text in ("token" * 100_000, "eyJ" * 200_000, "authorization: " * 50_000, "Bearer " * 100_000):
        assert len(redactor.text(text)) <= len(text) + 100_000 * 8


@pytest.mark.req("T1")
@pytest.mark.parametrize("given", ["typed", "file", "variable"])
def test_a_token_goes_along_however_it_is_given_and_is_not_shown(
    given: str, url: str, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(f"{SECRET}\n", "utf-8")
    options = {
        "typed": ["--bearer", SECRET],
        "file": ["--bearer", f"@{tmp_path / 'token'}"],
        "variable": ["--bearer-env", "MY_VARIABLE"],
    }[given]
    ran = invoke("tools", url, *options, "--trace", env={"MY_VARIABLE": SECRET})
    assert ran.code == 0
    assert SECRET not in ran.out + ran.err
    assert "/mcp with the headers authorization" in ran.err
