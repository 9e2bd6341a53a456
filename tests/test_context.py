"""What a handler can see and do through its context, without a loop and under virtual time."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from sansmcp import (
    App,
    Context,
    Elicit,
    ElicitUrl,
    ListRoots,
    Sample,
)
from sansmcp.context import Host
from sansmcp.types import ElicitResult

from .questions_support import FORM, KEY, Talk, text_of
from .support import ALL, LEGACY, MODERN

WITH_FORMS = [v for v in ALL if v >= "2025-06-18"]


def context_of(version: str, **options: Any) -> Context:
    """The context of a request that is open."""
    app = App("look", **options)
    found: list[Context] = []

    @app.tool()
    def look(ctx: Context) -> str:
        found.append(ctx)
        return ""

    Talk(app, version).tool("look")
    return found[0]


@pytest.mark.req("E13", "F3")
@pytest.mark.parametrize("version", ALL)
def test_several_questions_can_be_asked_if_each_can(version: str) -> None:
    ctx = context_of(version)
    assert ctx.can()
    assert ctx.can(Sample, ListRoots())
    assert ctx.can(Elicit, Sample) == (version >= "2025-06-18")
    assert ctx.can(Elicit("x", FORM), ElicitUrl("x", "https://e/")) == (version >= "2025-11-25")


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", ALL)
def test_nothing_is_known_at_first(version: str) -> None:
    ctx = context_of(version)
    assert dict(ctx.answers) == {}
    assert ctx.state is None
    assert "dialogue" not in repr(ctx)


@pytest.mark.req("E15")
def test_answers_are_known_by_their_keys_before_they_are_asked_for() -> None:
    app = App("known", state_keys=[KEY])
    seen: list[dict[str, Any]] = []

    @app.tool()
    async def asks(ctx: Context) -> str:
        seen.append(dict(ctx.answers))
        first = await ctx.elicit("a", FORM, key="first")
        second = await ctx.elicit("b", FORM)
        return f"{first.action} {second.action}"

    reply, _ = Talk(app, MODERN).converse("tools/call", {"name": "asks"})
    assert text_of(reply) == "accept accept"
    assert [sorted(known) for known in seen] == [[], ["first"], ["elicit-1", "first"]]
    assert all(isinstance(answer, ElicitResult) for known in seen for answer in known.values())


@pytest.mark.req("L1", "E15")
@pytest.mark.parametrize("version", [v for v in WITH_FORMS if v != MODERN])
@pytest.mark.parametrize(("timeout", "fails_at"), [(None, 60.0), (5.0, 5.0), (600.0, 600.0)])
def test_a_legacy_question_has_its_time(version: str, timeout: float | None, fails_at: float) -> None:
    app = App("time")

    @app.tool()
    def asks(ctx: Context) -> Generator[Any, Any, str]:
        answer = yield ctx.elicit("a", FORM, timeout=timeout)
        return str(answer.action)

    talk = Talk(app, version)
    id = talk.send("tools/call", {"name": "asks"})
    assert talk.engine.next_timeout() == fails_at
    talk.advance(fails_at - 0.001)
    assert talk.reply(id) is None
    talk.advance(0.002)
    answer = talk.reply(id)
    assert answer is not None
    assert answer["result"]["isError"] is True


@pytest.mark.req("E15", "G1", "H1")
@pytest.mark.parametrize("version", LEGACY)
def test_old_revisions_have_what_they_have(version: str) -> None:
    """Sampling and roots are as old as the protocol; forms are not."""
    app = App("old")

    @app.tool()
    async def asks(ctx: Context) -> str:
        model = await ctx.sample("x", max_tokens=1, system_prompt="y")
        roots = await ctx.list_roots()
        return f"{model.model} {len(roots.roots)}"

    reply, rounds = Talk(app, version).converse("tools/call", {"name": "asks"})
    assert text_of(reply) == "m 1"
    assert rounds[0][0][1]["systemPrompt"] == "y"


@pytest.mark.req("I2", "I3", "J1")
@pytest.mark.case("M-06")
@pytest.mark.parametrize("version", ALL)
def test_a_handler_that_asks_reports_and_logs_meanwhile(version: str) -> None:
    """In a modern request each round for itself, as its `_meta` wants it."""
    app = App("tells", logging=True, state_keys=[KEY])

    @app.tool()
    async def tells(ctx: Context) -> str:
        ctx.progress(1, 2)
        ctx.log("debug", "before")
        await ctx.list_roots()
        ctx.progress(2, 2)
        ctx.log("debug", "after")
        return "told"

    def told() -> list[Any]:
        return [
            m["params"].get("progress", m["params"].get("data"))
            for m in talk.sent
            if "method" in m and "id" not in m
        ]

    talk = Talk(app, version)
    meta: dict[str, Any] = {"progressToken": "t", "io.modelcontextprotocol/logLevel": "debug"}
    if version == MODERN:
        first = talk.tool("tells", _meta=meta)
        assert told() == [1, "before"]
        answers: dict[str, Any] = {"roots-1": {"roots": []}}
        talk.sent.clear()
        talk.tool("tells", inputResponses=answers)
        assert told() == []
        assert first["resultType"] == "input_required"
    else:
        del meta["io.modelcontextprotocol/logLevel"]
        assert talk.once("logging/setLevel", {"level": "debug"})["result"] == {}
        id = talk.send("tools/call", {"name": "tells", "_meta": meta})
        (question,) = talk.questions()
        talk.receive({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})
        assert talk.reply(id) is not None
        assert told() == [1, "before", 2, "after"]


@pytest.mark.req("E14")
def test_no_entropy_is_shown() -> None:
    assert "entropy" not in repr(Host(entropy=lambda n: b""))
