"""Text that a server chose is harmless for a terminal, and bounded."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from sansmcp_cli.narrate import MAX_PARSED, LineSplitter, message_kind, tell_message
from sansmcp_cli.redact import Redactor
from sansmcp_cli.text import first_paragraph, one_line, size, visible

from .run import DEMO, PYTHON, environment, invoke, rough

pytestmark = pytest.mark.req("AA11")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\tb\nc\r\nd", "a\tb\nc\nd"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("back\x08\x08space\x00\x7f\x9b", "back\\x08\\x08space\\x00\\x7f\\x9b"),
        ("right\u202eto left", "right\\u202eto left"),
        ("half \ud83d", "half \\ud83d"),
        ("ünï 🎉", "ünï 🎉"),
    ],
)
def test_control_characters_become_visible(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_lines_and_paragraphs_are_bounded() -> None:
    assert one_line("a \n\t b") == "a b"
    assert len(one_line("x" * 10_000_000, 50)) == 50
    assert first_paragraph("One\ntwo.\n \nThree") == "One two."
    assert first_paragraph("word " * 100, 23) == "word word word word…"
    assert first_paragraph("x" * 100, 23) == "x" * 22 + "…"


@pytest.mark.parametrize(
    ("count", "shown"),
    [
        (0, "0 bytes"),
        (1, "1 byte"),
        (1023, "1023 bytes"),
        (1536, "1.5 KiB"),
        (3 << 20, "3.0 MiB"),
        (5 << 40, "5120.0 GiB"),
    ],
)
def test_sizes(count: int, shown: str) -> None:
    assert size(count) == shown


def test_messages_have_a_kind() -> None:
    assert message_kind({"id": 1, "method": "a/b"}) == "request a/b #1"
    assert message_kind({"method": "a/b"}) == "notification a/b"
    assert message_kind({"id": "x", "result": {}}) == "result #x"
    assert message_kind({"id": None, "error": {}}) == "error #None"
    assert message_kind([1, 2]) == "batch of 2"
    assert message_kind("?") == message_kind({}) == "no message"


@pytest.mark.parametrize("line", [b"[" * 100_000, b'{"a":' * 50_000, b"9" * 5000, b"\xff\xfe", b""])
def test_every_line_can_be_told(line: bytes) -> None:
    told = tell_message(line, Redactor(), 100)
    assert len(told) < 200
    assert "\n" not in told


def test_lines_are_put_together_from_pieces_and_cut_when_too_long() -> None:
    told: list[tuple[bytes, int]] = []
    splitter = LineSplitter(lambda line, whole: told.append((line[:8], whole)))
    for piece in (b"on", b"e\ntwo\n\nth", b"ree"):
        splitter.feed(piece)
    assert told == [(b"one", 3), (b"two", 3)]
    splitter.flush()
    splitter.flush()
    assert told[2:] == [(b"three", 5)]
    for _ in range(MAX_PARSED // 1000 + 50):
        splitter.feed(b"x" * 1000)
    splitter.feed(b"\n")
    assert told[3] == (b"xxxxxxxx", 1000 * (MAX_PARSED // 1000 + 50))


def test_a_servers_escapes_never_reach_a_table() -> None:
    for command in ("tools", "probe", "resources"):
        assert "\x1b" not in invoke(command, "--", *rough("any"), env={"FORCE_COLOR": ""}).out
    assert "Does it.\\x1b[2J" in invoke("tools", "--", *rough("any")).out


# on a terminal -----------------------------------------------------------------------------------


def on_a_terminal(args: Sequence[str], home: Path, **env: str) -> str:
    """What ``sansmcp ARGS…`` writes to a terminal."""
    import pty

    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [PYTHON, "-m", "sansmcp_cli", *args],
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
        cwd=home,
        env=environment(home, {"TERM": "xterm-256color", **env}),
    )
    os.close(follower)
    shown = b""
    with os.fdopen(leader, "rb", 0) as terminal:
        try:
            while data := terminal.read(65536):
                shown += data
        except OSError:
            pass  # how Linux tells the end of a terminal
    assert process.wait(30) == 0
    return shown.decode("utf-8")


@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_on_a_terminal_escapes_are_shown_and_in_a_pipe_they_stay(tmp_path: Path) -> None:
    args = ["call", "t", "--", *rough("escapes")]
    assert on_a_terminal(args, tmp_path) == "\\x1b]0;gotcha\\x07red \\x1b[31mtext\r\n"
    assert invoke(*args).out == "\x1b]0;gotcha\x07red \x1b[31mtext\n"


@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_on_a_terminal_there_is_colour_unless_it_is_not_wanted(tmp_path: Path) -> None:
    assert "\x1b[1m" in on_a_terminal(["probe", "--", *DEMO], tmp_path)
    plain = on_a_terminal(["probe", "--", *DEMO], tmp_path, NO_COLOR="1", TERM="dumb")
    assert "\x1b" not in plain


@pytest.mark.skipif(os.name != "posix", reason="terminals")
def test_on_a_terminal_progress_is_one_line_that_goes_away(tmp_path: Path) -> None:
    shown = on_a_terminal(["call", "slow", "steps=2", "pause=0.01", "--", *DEMO], tmp_path)
    assert shown == ("\r\x1b[2Kprogress 1/2  step 1\r\x1b[2Kprogress 2/2  step 2\r\x1b[2K2 steps done\r\n")
