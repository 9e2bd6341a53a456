"""What a server asks while a command waits: answered on the terminal, by what was given, or by nobody."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from sansmcp_cli.fields import NOTHING, Field, fields_of

from .asking_server import FORM, PLACE
from .run import HERE, PYTHON, Ran, invoke
from .terminal import CTRL_C, CTRL_D, Talked, talk

pytestmark = pytest.mark.req("AA11", "E15", "F1", "F2")

ASKING = [PYTHON, str(HERE / "asking_server.py")]
terminals = pytest.mark.skipif(os.name != "posix", reason="terminals")


@pytest.fixture(params=["modern", "legacy"])
def server(request: pytest.FixtureRequest) -> list[str]:
    """The command line of a server of each era."""
    return ["--", *ASKING, str(request.param)]


# fields ------------------------------------------------------------------------------------------

TEXT = {"type": "string", "minLength": 2}
WHOLE = {"type": "integer", "minimum": 1, "maximum": 9}
COLOURS = {"type": "string", "oneOf": [{"const": "r", "title": "Red"}, {"const": "g", "title": "Green"}]}
NUMERALS = {"type": "string", "enum": ["10", "2"]}
SEVERAL = {"type": "array", "items": {"type": "string", "enum": ["ham", "egg", "leek"]}, "maxItems": 2}
TITLED = {"type": "array", "items": {"anyOf": COLOURS["oneOf"]}}


@pytest.mark.parametrize(
    ("schema", "typed", "value"),
    [
        (TEXT, " Bo ", "Bo"),
        ({"type": "string"}, '""', ""),
        ({"type": "string"}, "5", "5"),
        (WHOLE, "3", 3),
        ({"type": "number"}, "1.5", 1.5),
        ({"type": "boolean"}, "Y", True),
        ({"type": "boolean"}, "false", False),
        (COLOURS, "g", "g"),
        (COLOURS, "green", "g"),
        (COLOURS, "1", "r"),
        (PLACE, "For all", "production"),
        (NUMERALS, "2", "2"),
        (SEVERAL, "1, leek", ["ham", "leek"]),
        (SEVERAL, '["egg"]', ["egg"]),
        (SEVERAL, "[]", []),
        (TITLED, "Red,g,r", ["r", "g"]),
        ({"type": "hologram"}, '{"a": 1}', {"a": 1}),
        ({}, "text", "text"),
    ],
)
def test_what_is_typed(schema: dict[str, Any], typed: str, value: Any) -> None:
    field = Field("f", schema, required=True)
    assert field.read(typed) == value
    assert field.take(typed) == value


@pytest.mark.parametrize(
    ("schema", "typed", "why"),
    [
        (TEXT, "B", "shorter than 2 characters"),
        ({"type": "string", "format": "email"}, "nobody", "not of the format email"),
        (WHOLE, "ten", "not a number"),
        (WHOLE, "NaN", "not a number"),
        (WHOLE, "true", "not a number"),
        (WHOLE, "1.5", "not an integer"),
        (WHOLE, "10", "more than 9"),
        ({"type": "boolean"}, "maybe", "answer yes or no"),
        (COLOURS, "3", "none of the choices"),
        (NUMERALS, "1", "none of the choices"),
        (SEVERAL, "ham,egg,leek", "more than 2 choices"),
    ],
)
def test_what_is_typed_wrongly_is_told_without_quoting_it(
    schema: dict[str, Any], typed: str, why: str
) -> None:
    for read in (Field("f", schema, required=True).read, Field("f", schema, required=True).take):
        with pytest.raises(ValueError, match=why) as caught:
            read(typed)
        assert str(caught.value) == why


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "string"}, '"Bo"', "Bo"),
        ({"type": "string"}, "true", "true"),
        (WHOLE, "3", 3),
        (SEVERAL, '["ham"]', ["ham"]),
        ({"type": "boolean"}, "yes", True),
    ],
)
def test_given_answers_are_json_where_that_fits(schema: dict[str, Any], text: str, value: Any) -> None:
    assert Field("f", schema, required=True).take(text) == value


@pytest.mark.parametrize(
    ("schema", "prompt", "about"),
    [
        (TEXT, "f* (text, at least 2 characters)", []),
        ({**WHOLE, "default": 3, "title": "How many"}, "f* (whole number, 1 to 9) [3]", ["How many"]),
        ({"type": "boolean", "default": False}, "f* (yes or no) [no]", []),
        ({"type": "string", "format": "date", "description": "a\x1b[0m"}, "f* (date)", ["a\\x1b[0m"]),
        (COLOURS, "f* (one of these)", ["    1  r  Red", "    2  g  Green"]),
        (NUMERALS, "f* (one of these)", ["  10", "  2"]),
        (
            {**SEVERAL, "default": ["egg"]},
            "f* (several, with commas, at most 2 of them) [egg]",
            ["    1  ham", "    2  egg", "    3  leek"],
        ),
    ],
)
def test_how_a_field_is_asked_for(schema: dict[str, Any], prompt: str, about: list[str]) -> None:
    (field,) = fields_of({"properties": {"f": schema}, "required": ["f"]})
    assert field.prompt() == prompt
    assert field.about() == about


def test_fields_of_what_is_hardly_a_form() -> None:
    assert fields_of({}) == []
    assert fields_of({"properties": {"f": 5, "g": {}}, "required": "g"}) == [
        Field("g", {}, required=False, default=NOTHING)
    ]
    many = Field("f", {"type": "string", "enum": [f"v{n}" for n in range(500)]}, required=True)
    assert many.about()[-1] == "  … and 400 more"


# without a terminal ------------------------------------------------------------------------------


def declared(ran: Ran) -> Any:
    """What the trace shows of the client's capabilities."""
    line = next(line for line in ran.err.splitlines() if "→ request server/discover" in line)
    (_, _, text) = line.partition("#1  ")
    return json.loads(text)["params"]["_meta"]["io.modelcontextprotocol/clientCapabilities"]


@pytest.mark.parametrize(
    ("options", "capabilities"),
    [
        ([], {}),
        (["--no-input"], {}),
        (["--answer", "where=staging"], {"elicitation": {"form": {}}}),
        (["--answer", "where=staging", "--no-input"], {"elicitation": {"form": {}}}),
    ],
)
def test_what_is_declared_is_what_can_be_answered(options: list[str], capabilities: Any) -> None:
    ran = invoke("call", "where", "--trace", *options, "--", *ASKING)
    assert declared(ran) == capabilities
    assert ran.code == (0 if capabilities else 1)


def test_given_answers(server: list[str], tmp_path: Path) -> None:
    file = tmp_path / "answers.json"
    file.write_text('{"where": "production", "name": "Bo"}', encoding="utf-8")
    for options, out in (
        (["call", "where", "--answer", "where=staging"], "accept [('where', 'staging')]\n"),
        (["call", "where", "--answers", str(file)], "accept [('where', 'production')]\n"),
        (["call", "where", "--answers", str(file), "--answer", "where=1"], "accept [('where', 'staging')]\n"),
        (
            ["call", "form", "--answer", 'name="Bo"', "--answer", "sure=no"],
            "accept [('copies', 1), ('name', 'Bo'), ('sure', False)]\n",
        ),
        (
            ["call", "twice", "--answers", str(file)],
            "accept [('where', 'production')] accept [('copies', 1), ('name', 'Bo')]\n",
        ),
        (["read", "asking://place", "--answer", "where=staging"], "accept [('where', 'staging')]\n"),
        (["prompt", "plan", "--answer", "where=staging"], "user:\n  accept [('where', 'staging')]\n"),
    ):
        ran = invoke(*options, *server)
        assert (ran.code, ran.out) == (0, out), ran.err
        assert all(line.startswith("progress") for line in ran.err.splitlines())


def test_answers_on_standard_input(server: list[str]) -> None:
    ran = invoke("call", "where", "--answers", "-", *server, stdin='{"where": "staging"}')
    assert (ran.code, ran.out) == (0, "accept [('where', 'staging')]\n")


@pytest.mark.parametrize(
    ("tool", "given", "told"),
    [
        ("where", "where=here", "“Where\\x1b[2J to?”: what is given for where is none of the choices"),
        (
            "where",
            "wher=staging",
            "there is no --answer for where; nobody asked for the answer 'wher': did you mean where?",
        ),
        ("form", "copies=10", "what is given for copies is more than 9; there is no --answer for name"),
        ("secret", "x=1", "no --answer is for one of its fields, api_key, note; nobody asked for"),
        ("sure", "x=1", "“Really?”: only a user can accept it; nobody asked for the answer 'x'"),
    ],
)
def test_a_question_that_has_no_answer_ends_the_command(
    tool: str, given: str, told: str, server: list[str]
) -> None:
    ran = invoke("call", tool, "--json", "--answer", given, *server)
    assert ran.code == 2
    assert told in ran.err.splitlines()[-1]
    error = ran.document["error"]
    assert (error["kind"], error["exitCode"]) == ("unanswered", 2)
    assert told in error["message"]
    assert error["asked"]["requestedSchema"]["type"] == "object"
    assert error["asked"]["message"]


def test_an_answer_that_nobody_asked_for_is_told(server: list[str]) -> None:
    ran = invoke("call", "where", "--answer", "where=staging", "--answer", "when=now", *server)
    assert (ran.code, ran.out) == (0, "accept [('where', 'staging')]\n")
    assert ran.err == "sansmcp: nobody asked for the answer 'when'\n"


def test_who_cannot_be_asked_is_told_how() -> None:
    ran = invoke("call", "where", "--", *ASKING)
    hint = "it asks its user something: answer on a terminal"
    assert ran.first_error.endswith(
        f"(-32021 MISSING_CLIENT_CAPABILITY); {hint}, or with --answer FIELD=VALUE"
    )
    page = invoke("call", "page", "--answer", "x=1", "--", *ASKING)
    assert page.first_error.endswith(f"; {hint}")
    legacy = invoke("call", "where", "--", *ASKING, "legacy")
    assert legacy.first_error.endswith(f"elicitation.form; {hint}, or with --answer FIELD=VALUE")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--answer", "sesame"], "--answer: give FIELD=VALUE (the value is missing in occurrence 1)"),
        (["--answer", "a=1", "--answer", "a=2"], "--answer: a is given twice"),
        (["--answers", "/no/such"], "cannot read --answers /no/such: No such file or directory"),
        (
            ["--answers", "-", "--args-file", "-"],
            "standard input is read once: give --args-file or --answers a file",
        ),
    ],
)
def test_answers_that_are_given_wrongly(options: list[str], told: str) -> None:
    ran = invoke("call", "where", *options, "--", *ASKING)
    assert (ran.code, ran.out, ran.err) == (2, "", f"sansmcp: {told}\n")


def test_the_trace_shows_no_answer_and_no_page_of_the_user(server: list[str]) -> None:
    ran = invoke(
        "call",
        "secret",
        "--trace",
        "--answer",
        "api_key=open-sesame",
        "--answer",
        "note=my birthday",
        *server,
    )
    assert ran.out == "accept\n"
    assert '"api_key":"[hidden]","note":"[hidden]"' in ran.err
    assert "sesame" not in ran.err
    assert "birthday" not in ran.err


# on a terminal -----------------------------------------------------------------------------------


def at_terminal(server: list[str], home: Path, *steps: tuple[str, str], **options: Any) -> Talked:
    """What becomes of calling the tool that ``tool`` names, with ``args`` before it."""
    tool, args = options.pop("tool"), options.pop("args", [])
    return talk(["call", tool, *args, *server], steps, cwd=home, **options)


FILLED: list[tuple[str, str]] = [
    ("name* (text, at least 2 characters): ", "B\n"),
    ("shorter than 2 characters\n  name* (text, at least 2 characters): ", "\n"),
    ('it is required; "" is an empty text\n', "Bo\n"),
    ("copies (whole number, 1 to 9) [1]: ", "\n"),
    ("sure (yes or no): ", "y\n"),
]


@terminals
def test_a_form_is_filled_in_field_by_field(server: list[str], tmp_path: Path) -> None:
    send = "name: Bo\n  copies: 1\n  sure: yes\n  Send this? y: yes, e: edit, d: decline [y] "
    talked = at_terminal(server, tmp_path, *FILLED, (send, "\n"), tool="form")
    assert talked.code == 0
    assert "asking_server.py" in talked.shown.partition(" asks: Who are you?")[0]
    assert "  Your name\n" in talked.shown
    assert "accept [('copies', 1), ('name', 'Bo'), ('sure', True)]\n" in talked.shown


@terminals
def test_a_form_is_edited_before_it_is_sent(tmp_path: Path) -> None:
    server = ["--", *ASKING]
    edit = [("Send this?", "e\n"), ("name* ", "\n"), ("copies (whole number, 1 to 9) [1]: ", "3\n")]
    rest = [("sure (yes or no) [yes]: ", "no\n"), ("Send this?", "y\n")]
    talked = at_terminal(server, tmp_path, *FILLED, *edit, *rest, tool="form")
    assert "accept [('copies', 3), ('name', 'Bo'), ('sure', False)]\n" in talked.shown


LEAVING: Mapping[str, tuple[list[tuple[str, str]], str]] = {
    "decline": ([("one of these", CTRL_D), ("decline", "d\n")], "decline []"),
    "cancel": ([("one of these", CTRL_D), ("decline", "\n")], "cancel []"),
    "cancel at once": ([("one of these", CTRL_D), ("decline", CTRL_D)], "cancel []"),
    "back": (
        [("one of these", CTRL_D), ("decline", "b\n"), ("one of these", "2\n")],
        "accept [('where', 'production')]",
    ),
    "another": (
        [("one of these", "3\n"), ("none of the choices", "for trying\n")],
        "accept [('where', 'staging')]",
    ),
}


@terminals
@pytest.mark.parametrize("name", LEAVING)
def test_who_does_not_answer_declines_or_cancels(name: str, server: list[str], tmp_path: Path) -> None:
    steps, out = LEAVING[name]
    talked = at_terminal(server, tmp_path, *steps, tool="where")
    assert talked.code == 0
    assert talked.shown.endswith(f"{out}\n")
    assert "\x1b" not in talked.shown


@terminals
def test_two_questions_come_one_after_the_other_and_what_is_given_is_not_asked(tmp_path: Path) -> None:
    steps = [("First?", ""), ("one of these): ", "1\n"), ("Second?", ""), ("sure (yes or no): ", "n\n")]
    args = ["--answer", "name=Bo", "--answer", "copies=2"]
    talked = at_terminal(["--", *ASKING], tmp_path, *steps, tool="twice", args=args)
    assert (
        "accept [('where', 'staging')] accept [('copies', 2), ('name', 'Bo'), ('sure', False)]"
        in talked.shown
    )


@terminals
def test_nothing_to_fill_in_still_needs_a_yes(server: list[str], tmp_path: Path) -> None:
    assert (
        "accept []" in at_terminal(server, tmp_path, ("Accept?", "\n"), ("Accept?", "y\n"), tool="sure").shown
    )
    assert "decline []" in at_terminal(server, tmp_path, ("Accept?", "d\n"), tool="sure").shown


BROWSER = {"BROWSER": "echo opened %s"}
URL = "https://example.com/log?in=now"


@terminals
@pytest.mark.parametrize(
    ("keys", "opened", "out"), [("y", True, "accept"), ("m", False, "accept"), ("d", False, "decline")]
)
def test_a_page_is_opened_only_after_a_yes(
    keys: str, opened: bool, out: str, server: list[str], tmp_path: Path
) -> None:
    steps = [("Open it?", "\n"), ("Open it?", f"{keys}\n")]
    done = [("Press Enter when you are done there", "\n")] if out == "accept" else []
    talked = at_terminal(server, tmp_path, *steps, *done, tool="page", env=BROWSER)
    assert f"a page: Log in there\n  {URL}\n  at the host example.com\n  Open it?" in talked.shown
    assert (f"opened {URL}\n" in talked.shown) is opened
    assert talked.shown.endswith(f"{out}\n")
    assert talked.code == 0


@terminals
@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("javascript:alert(1)", "declined: the URL is not usable: the scheme must be http or https"),
        ("https://bank.example@evil.example/", "declined: the URL is not usable: no user and password"),
        ("https://bänk.example/", "declined: the URL is not usable: too long, or with characters"),
    ],
)
def test_an_address_that_deceives_is_declined(url: str, told: str, tmp_path: Path) -> None:
    args = [json.dumps({"url": url})]
    talked = talk(["call", "page", *args, "--", *ASKING], [], cwd=tmp_path, env=BROWSER)
    assert f"  {url}\n  {told}" in talked.shown
    assert "opened" not in talked.shown
    assert talked.shown.endswith("decline\n")


@terminals
def test_a_name_in_other_letters_is_pointed_at(tmp_path: Path) -> None:
    args = ["call", "page", '{"url": "https://xn--bnk-qla.example/"}', "--", *ASKING]
    talked = talk(args, [("Open it?", "d\n")], cwd=tmp_path)
    assert "at the host xn--bnk-qla.example, which is not written in plain letters\n" in talked.shown


@terminals
def test_whoever_wants_no_questions_is_asked_none(tmp_path: Path) -> None:
    talked = talk(["call", "where", "--no-input", "--", *ASKING], [], cwd=tmp_path)
    assert talked.code == 1
    assert "did not declare: elicitation.form" in talked.shown


@terminals
def test_interrupting_a_question_ends_the_command(server: list[str], tmp_path: Path) -> None:
    talked = at_terminal(server, tmp_path, ("one of these", CTRL_C), tool="where")
    assert talked.code == 130
    assert talked.shown.splitlines()[-1] == "sansmcp: interrupted"
    assert "Traceback" not in talked.shown


@terminals
def test_the_time_of_the_user_is_not_that_of_the_server(server: list[str], tmp_path: Path) -> None:
    step = ("one of these", "1\n")
    for seconds in (2, 10, 60):
        with suppress(AssertionError):  # a slow machine is given up before it asks
            args = ["--timeout", str(seconds)]
            talked = at_terminal(server, tmp_path, step, tool="where", args=args, pause=seconds + 0.5)
            break
    else:
        pytest.fail("nothing was asked within a minute")
    assert (talked.code, talked.shown.splitlines()[-1]) == (0, "accept [('where', 'staging')]")


def test_the_server_asks_for_what_the_tests_say() -> None:
    assert [field.name for field in fields_of(FORM)] == ["name", "copies", "sure"]
