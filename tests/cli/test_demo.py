"""The demo runs, shows both eras, and notices when something is not as it should be."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import sansmcp_cli.demo
from sansmcp.revisions import ALL_REVISIONS, LEGACY_REVISIONS, MODERN_REVISIONS, Era, Revision
from sansmcp.session.era import Auto
from sansmcp_cli.demo_app import revisions_of

from .run import run

pytestmark = pytest.mark.req("AA11")


def test_the_demo_shows_both_eras(tmp_path: Path) -> None:
    ran = run([], cwd=tmp_path, python=["-W", "error", "-m", "sansmcp_cli.demo"])
    assert (ran.code, ran.err) == (0, "")
    for line in (
        "=== modern, the server as it is ===",
        "  · EraDecided: modern, revision 2026-07-28, because",
        "=== legacy, the server with its legacy revisions only ===",
        "  · EraDecided: legacy, revision 2025-11-25, because",
        "  → request initialize #2",
        "  → notification notifications/cancelled",
        "  · SessionEnded: in order",
        "=== modern, over HTTP ===",
        "=== legacy, over HTTP ===",
        "  → POST /mcp HTTP/1.1",
        "  ← HTTP/1.1 200 OK",
        "  · InputRequired: tools/call 'book': elicitation/create",
    ):
        assert line in ran.out.splitlines()
    summary = ran.out.split("=== summary ===\n")[1].splitlines()
    assert [line.partition(":")[0] for line in summary] == [
        "modern, the server as it is",
        "legacy, the server with its legacy revisions only",
        "modern, over HTTP",
        "legacy, over HTTP",
        "in memory",
    ]
    assert all("all as expected" in line for line in summary)


def test_the_demo_notices_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    show = asyncio.run(sansmcp_cli.demo.over_stdio("wrong on purpose", Era.LEGACY, "modern"))
    assert not show.good
    assert show.summary().startswith("wrong on purpose: 21 checks, NOT AS EXPECTED: the era is legacy")
    assert "  WRONG the era is legacy" in capsys.readouterr().out


def test_the_demo_notices_a_server_that_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    show = asyncio.run(sansmcp_cli.demo.over_stdio("dead on purpose", Era.LEGACY, "no-such-revision"))
    assert not show.good
    assert "no error, but ConnectionEnded: " in capsys.readouterr().out


def test_the_demo_notices_what_is_wrong_over_http(capsys: pytest.CaptureFixture[str]) -> None:
    show = asyncio.run(sansmcp_cli.demo.over_http("wrong on purpose", Era.LEGACY, Auto()))
    assert not show.good
    assert show.summary().startswith("wrong on purpose: 7 checks, NOT AS EXPECTED: the era is legacy")


def test_names_of_revisions() -> None:
    assert revisions_of([]) == ALL_REVISIONS
    assert revisions_of(["legacy"]) == LEGACY_REVISIONS
    assert revisions_of(["modern", "legacy"]) == ALL_REVISIONS
    assert revisions_of(["2025-06-18", "modern"]) == (Revision.V2025_06_18, *MODERN_REVISIONS)
    with pytest.raises(ValueError, match="never"):
        revisions_of(["never"])
