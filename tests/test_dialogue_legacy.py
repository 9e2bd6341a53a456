"""How a legacy client is asked: by calls, which end in every way that calls can."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

from sansmcp import (
    App,
    CallTimeout,
    ConnectionEnded,
    Context,
    Elicit,
    InvalidResponse,
    Limits,
    ListRoots,
    McpError,
    NeedsInput,
    QuestionFailed,
)
from sansmcp.events import Harmless
from sansmcp.types import ElicitResult

from .questions_support import (
    ACCEPTED,
    FORM,
    FORMS,
    KEY,
    ROOTS,
    Talk,
    asking_app,
    text_of,
)
from .test_dialogue import LEGACY_FORMS, WITH_FORMS

# legacy: calls that end otherwise -----------------------------------------------------------------


@pytest.mark.req("E15", "G3")
@pytest.mark.parametrize("version", LEGACY_FORMS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("how", "cause", "text"),
    [
        ("error", McpError, "user is busy (-1)"),
        ("silence", CallTimeout, "no answer for 60 s"),
        ("nonsense", InvalidResponse, "is not valid"),
        ("misfit", InvalidResponse, "name: missing"),
    ],
)
def test_a_question_that_is_not_answered_fails_in_the_handler(
    version: str, form: str, how: str, cause: type[Exception], text: str
) -> None:
    """Uncaught, it fails the tool, in words: no code of one question becomes that of another request."""
    talk = Talk(asking_app(), version)
    id = talk.send("tools/call", {"name": form})
    (question,) = talk.questions()
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": question["id"]}
    match how:
        case "error":
            talk.receive({**reply, "error": {"code": -1, "message": "user is busy"}})
        case "nonsense":
            talk.receive({**reply, "result": {"action": 5}})
        case "misfit":
            talk.receive({**reply, "result": {"action": "accept", "content": {}}})
        case _:
            talk.advance(61.0)
            assert talk.sent[0]["method"] == "notifications/cancelled"
    answer = talk.reply(id)
    assert answer is not None
    assert answer["result"]["isError"] is True
    assert text in text_of(answer)
    assert talk.handlers.stats() == {"waiting_handlers": 0}


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", LEGACY_FORMS)
@pytest.mark.parametrize("form", ["awaits", "yields"])
def test_a_handler_can_go_on_without_an_answer(version: str, form: str) -> None:
    app = App("goes on")
    seen: list[QuestionFailed] = []

    @app.tool()
    async def awaits(ctx: Context) -> str:
        try:
            await ctx.ask(ListRoots(), Elicit("x", FORM, timeout=5.0))
        except QuestionFailed as failed:
            seen.append(failed)
        return (await ctx.elicit("y", FORM)).action

    @app.tool()
    def yields(ctx: Context) -> Generator[Any, Any, str]:
        try:
            yield [ListRoots(), Elicit("x", FORM, timeout=5.0)]
        except QuestionFailed as failed:
            seen.append(failed)
        answer = yield ctx.elicit("y", FORM)
        return str(answer.action)

    talk = Talk(app, version)
    id = talk.send("tools/call", {"name": form})
    roots, form_asked = talk.questions()
    talk.advance(5.5)
    assert isinstance(seen[0].error, CallTimeout)
    # the other question of the round is taken back, and its late answer means nothing
    assert [m["params"]["requestId"] for m in talk.sent if m.get("method") == "notifications/cancelled"] == [
        form_asked["id"],
        roots["id"],
    ]
    talk.receive({"jsonrpc": "2.0", "id": roots["id"], "result": ROOTS})
    assert Harmless.LATE_RESPONSE in talk.ignored
    (again,) = talk.questions()
    talk.receive({"jsonrpc": "2.0", "id": again["id"], "result": ACCEPTED})
    answer = talk.reply(id)
    assert answer is not None
    assert text_of(answer) == "accept"


@pytest.mark.req("K5", "E15")
@pytest.mark.parametrize("version", LEGACY_FORMS)
@pytest.mark.parametrize("form", FORMS)
def test_a_cancelled_request_takes_its_questions_back(version: str, form: str) -> None:
    app = asking_app()
    talk = Talk(app, version)
    id = talk.send("tools/call", {"name": form})
    (question,) = talk.questions()
    talk.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
    assert talk.sent == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": question["id"]},
        }
    ]
    talk.receive({"jsonrpc": "2.0", "id": question["id"], "result": ACCEPTED})
    assert talk.reply(id) is None
    assert talk.handlers.stats() == {"waiting_handlers": 0}
    assert talk.engine.stats()["calls"] == talk.engine.stats()["open_requests"] == 0
    assert app.runs == [form]  # type: ignore[attr-defined]


@pytest.mark.req("E15")
@pytest.mark.parametrize("form", ["awaits", "yields"])
def test_the_end_of_the_connection_ends_the_handler(form: str) -> None:
    talk = Talk(asking_app(), "2025-11-25")
    talk.send("tools/call", {"name": form})
    talk.engine.connection_lost(now=0.0)
    talk.drain()
    assert talk.handlers.stats() == {"waiting_handlers": 0}


@pytest.mark.req("E15")
def test_no_more_input_fails_the_question_and_the_tool_is_still_answered() -> None:
    app = App("eof")
    seen: list[QuestionFailed] = []

    @app.tool()
    async def asks(ctx: Context) -> str:
        try:
            await ctx.elicit("x", FORM)
        except QuestionFailed as failed:
            seen.append(failed)
        return "without"

    talk = Talk(app, "2025-11-25")
    id = talk.send("tools/call", {"name": "asks"})
    talk.engine.receive_eof(now=0.0)
    talk.drain()
    answer = talk.reply(id)
    assert answer is not None
    assert text_of(answer) == "without"
    assert isinstance(seen[0].error, ConnectionEnded)


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", LEGACY_FORMS)
def test_a_handler_is_called_again_a_bounded_number_of_times(version: str) -> None:
    app = App("never enough")
    runs: list[int] = []

    @app.tool()
    def more(ctx: Context) -> NeedsInput:
        runs.append(1)
        return NeedsInput({"k": Elicit("more", FORM)}, state=len(runs))

    reply, rounds = Talk(app, version).converse("tools/call", {"name": "more"})
    assert len(rounds) == 9
    assert len(runs) == 10
    assert reply["error"]["code"] == -32603
    runs.clear()
    reply, _ = Talk(app, version, limits=Limits(max_rounds=2)).converse("tools/call", {"name": "more"})
    assert len(runs) == 2


@pytest.mark.req("E15", "F1")
@pytest.mark.parametrize("version", WITH_FORMS)
def test_what_is_asked_again_under_its_key_is_answered_anew(version: str) -> None:
    app = App("again", state_keys=[KEY])

    @app.tool()
    def insists(ctx: Context) -> Any:
        answer = ctx.answers.get("age")
        if isinstance(answer, ElicitResult) and answer.content == {"name": "last"}:
            return "done"
        return NeedsInput({"age": Elicit("which?", FORM)}, state=0)

    names = iter(["first", "second", "last"])
    reply, rounds = Talk(app, version).converse(
        "tools/call", {"name": "insists"}, lambda m, p: {"action": "accept", "content": {"name": next(names)}}
    )
    assert text_of(reply) == "done"
    assert len(rounds) == 3
