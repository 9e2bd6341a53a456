"""``bridge``: one server as another, over standard streams and HTTP, whichever era each side speaks."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    Event,
    Legacy,
    ListChanged,
    LogReceived,
    Pin,
    Revision,
)
from sansmcp.types import ElicitResult

from .run import ERAS, PYTHON, environment, run

pytestmark = pytest.mark.req("AA7", "AA11")

BRIDGE = [PYTHON, "-m", "sansmcp_cli", "bridge", "--"]


@pytest.mark.parametrize("mode", ["auto", "2025-11-25", "2024-11-05"])
@pytest.mark.parametrize("era", sorted(ERAS))
def test_a_bridge_over_standard_streams(era: str, mode: str, tmp_path: Path) -> None:
    words = ["call", "--mode", mode, "slow", "steps=2", "pause=0.01", "--", *BRIDGE, *ERAS[era]]
    shown = run(words, cwd=tmp_path)
    assert (shown.code, shown.out) == (0, "2 steps done\n")
    assert shown.err.splitlines()[-1].startswith("progress 2/2")


def test_a_bridge_over_http(tmp_path: Path) -> None:
    command: Sequence[str] = [sys.executable, *BRIDGE[1:-1], "--http", "0", "--", *ERAS["legacy"]]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stderr is not None
            url = process.stderr.readline().split(" at ")[1].split(";")[0]
            for mode in ("auto", "legacy"):
                shown = run(["call", url, "--mode", mode, "echo", "text=hé"], cwd=tmp_path)
                assert (shown.code, shown.out) == (0, "hé\n"), shown.err
        finally:
            process.kill()
            process.communicate(timeout=60)


ASKING = """
from sansmcp import App, Context
from sansmcp.events import ListKind

app = App("asking", list_changed=True, logging=True)

@app.tool()
async def who(ctx: Context) -> str:
    answer = await ctx.elicit("who?", {"type": "object", "properties": {"name": {"type": "string"}}})
    ctx.log("warning", "heard")
    app.notify_changed(ListKind.TOOLS)
    return f"{answer.action} {answer.content}"
"""


@pytest.mark.parametrize("over", ["stdio", "http"])
@pytest.mark.parametrize("client", ["modern", "legacy"])
@pytest.mark.parametrize("server", ["modern", "legacy"])
def test_questions_logs_and_changes_cross_a_bridge(
    server: str, client: str, over: str, tmp_path: Path
) -> None:
    (tmp_path / "asking.py").write_text(ASKING)
    behind = [PYTHON, "-m", "sansmcp_cli", "serve", "asking.py", "--revision", server]
    mode: Any = Pin(Revision.V2026_07_28) if client == "modern" else Legacy()

    async def use(target: Any) -> list[Event]:
        seen: list[Event] = []

        async def answer(params: object) -> ElicitResult:
            return ElicitResult(action="accept", content={"name": "ada"})

        options: dict[str, Any] = {} if over == "http" else {"cwd": tmp_path}
        async with (
            asyncio.timeout(60),
            sansmcp_asyncio.connect(
                target, mode=mode, on_elicit=answer, on_event=seen.append, **options
            ) as session,
            session.listen(tools=True) as changes,
        ):
            level: dict[str, Any] = {"log_level": "info"} if client == "modern" else {}
            result = await session.call_tool("who", **level)
            assert "accept {'name': 'ada'}" in str(result.content[0])
            assert isinstance(await anext(changes), ListChanged)
        return seen

    if over == "stdio":
        seen = asyncio.run(use([*BRIDGE, *behind]))
    else:
        command = [*BRIDGE[:-1], "--http", "0", "--", *behind]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stderr is not None
                url = process.stderr.readline().split(" at ")[1].split(";")[0]
                seen = asyncio.run(use(url))
            finally:
                process.kill()
                process.communicate(timeout=60)
    assert [event.data for event in seen if isinstance(event, LogReceived)] == ["heard"]


def test_a_bridge_without_a_server_says_why(tmp_path: Path) -> None:
    shown = run(["bridge", "--", PYTHON, "-c", "raise SystemExit(3)"], cwd=tmp_path)
    assert shown.code == 3
    assert "exit code 3" in shown.first_error
    assert run(["bridge", "--path", "/x", "--", *ERAS["modern"]], cwd=tmp_path).code == 2
