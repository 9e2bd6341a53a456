"""How questions go and answers come, or do not: the rounds of a modern request, the calls of a legacy one."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sansmcp import (
    App,
    Context,
    Elicit,
    ElicitUrl,
    ListRoots,
    LocalProtocolError,
    MessageIgnored,
    NeedsInput,
    PagesFirst,
    PeerFault,
    Responder,
)
from sansmcp.asks import as_ask
from sansmcp.events import Harmless

from .questions_support import (
    ACCEPTED,
    EVERYTHING,
    FORM,
    FORMS,
    KEY,
    ROOTS,
    SAMPLED,
    SUMMARY,
    Talk,
    asking_app,
    text_of,
)
from .support import ALL, LEGACY, MODERN, ask, meta, opened, request, serving

WITH_FORMS = [v for v in ALL if v >= "2025-06-18"]
LEGACY_FORMS = [v for v in WITH_FORMS if v != MODERN]
NAMES = {"awaits": "elicit-1", "yields": "elicit-1", "returns": "who"}


# modern: answers that come with a request ---------------------------------------------------------


@pytest.mark.req("E12")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"wrong_key": ACCEPTED}, Harmless.UNASKED_ANSWER),
        ({"KEY": 12345}, PeerFault.INVALID_ANSWER),
        ({"KEY": None}, PeerFault.INVALID_ANSWER),
        ({"KEY": {"action": "maybe"}}, PeerFault.INVALID_ANSWER),
        ({"KEY": {"action": "accept", "content": "x"}}, PeerFault.INVALID_ANSWER),
        ({}, None),
        (None, None),
    ],
)
def test_what_is_missing_or_no_answer_is_asked_again(form: str, given: Any, reason: Any) -> None:
    """And told; ``null`` instead of answers is none."""
    talk = Talk(asking_app(state_keys=[KEY]), MODERN)
    answers = None if given is None else {k.replace("KEY", NAMES[form]): v for k, v in given.items()}
    again = talk.tool(form, inputResponses=answers)
    assert list(again["inputRequests"]) == [NAMES[form]]
    if form == "returns" and reason is Harmless.UNASKED_ANSWER:
        reason = None  # whoever reads all answers has asked for them
    assert talk.ignored == ([] if reason is None else [reason])


@pytest.mark.req("E12")
@pytest.mark.parametrize("form", ["awaits", "yields"])
@pytest.mark.parametrize("content", [None, {}, {"name": 5}])
def test_a_form_that_is_not_filled_in_as_asked_is_asked_again(form: str, content: Any) -> None:
    talk = Talk(asking_app(), MODERN)
    again = talk.tool(form, inputResponses={"elicit-1": {"action": "accept", "content": content}})
    assert list(again["inputRequests"]) == ["elicit-1"]
    assert talk.ignored == [PeerFault.INVALID_ANSWER]


@pytest.mark.req("E12")
@pytest.mark.parametrize("form", ["awaits", "yields"])
def test_an_answer_to_another_kind_of_question_is_none(form: str) -> None:
    talk = Talk(asking_app(), MODERN)
    for wrong in (SAMPLED, ROOTS):
        assert "inputRequests" in talk.tool(form, inputResponses={"elicit-1": wrong})


@pytest.mark.req("E12")
@pytest.mark.parametrize("given", [[], "x", 5, True])
def test_answers_that_are_no_object_are_refused(given: Any) -> None:
    app = asking_app()
    refused = Talk(app, MODERN).tool("awaits", inputResponses=given)
    assert refused["code"] == -32602
    assert not app.runs  # type: ignore[attr-defined]


@pytest.mark.req("E12")
@pytest.mark.parametrize("form", FORMS)
def test_a_client_may_answer_in_parts(form: str) -> None:
    """What it answered is not asked again, whichever came first."""
    talk = Talk(asking_app(state_keys=[KEY]), MODERN)
    first = talk.tool(form)
    given = dict.fromkeys(first["inputRequests"], ACCEPTED)
    second = talk.tool(form, inputResponses=given, **_state(first))
    model, roots = second["inputRequests"]
    assert (second["inputRequests"][model]["method"], second["inputRequests"][roots]["method"]) == (
        "sampling/createMessage",
        "roots/list",
    )
    third = talk.tool(form, inputResponses={roots: ROOTS}, **_state(second))
    if form == "returns":  # it asks for what it wants, and it wants both
        assert list(third["inputRequests"]) == [model, roots]
        third = talk.tool(form, inputResponses={roots: ROOTS, model: SAMPLED}, **_state(third))
    else:
        assert list(third["inputRequests"]) == [model]
        third = talk.tool(form, inputResponses={model: SAMPLED}, **_state(third))
    assert third["content"][0]["text"] == SUMMARY
    assert not talk.ignored


def _state(result: Mapping[str, Any]) -> dict[str, Any]:
    return {"requestState": result["requestState"]} if "requestState" in result else {}


@pytest.mark.req("E12", "E15")
@pytest.mark.parametrize("form", ["awaits", "yields"])
def test_a_first_round_needs_no_state(form: str) -> None:
    """And keys beside the one that was asked do no harm."""
    talk = Talk(asking_app(), MODERN)
    first = talk.tool(form)
    assert "requestState" not in first
    given = {"elicit-1": ACCEPTED, "extra": 1, "more": {"action": "accept"}}
    second = talk.tool(form, inputResponses=given, foo="bar")
    assert list(second["inputRequests"]) == ["sample-1", "roots-1"]
    assert talk.ignored == [Harmless.UNASKED_ANSWER]


@pytest.mark.req("E12")
@pytest.mark.parametrize("form", ["awaits", "returns"])
def test_any_number_of_answers_is_told_once(form: str) -> None:
    talk = Talk(asking_app(state_keys=[KEY]), MODERN)
    talk.tool(form, inputResponses={f"{n}" * 100: n for n in range(10_000)})
    (ignored,) = [e for e in talk.events if isinstance(e, MessageIgnored)]
    assert len(ignored.detail) < 1000


@pytest.mark.req("E12")
def test_earlier_answers_stand() -> None:
    """Whoever answers anew what is known already is not heard."""
    talk = Talk(asking_app(), MODERN)
    second = talk.tool("awaits", inputResponses={"elicit-1": ACCEPTED})
    other = {"action": "accept", "content": {"name": "Eve"}}
    given = {"elicit-1": other, "sample-1": SAMPLED, "roots-1": ROOTS}
    last = talk.tool("awaits", inputResponses=given, **_state(second))
    assert last["content"][0]["text"] == SUMMARY
    assert talk.ignored == [Harmless.UNASKED_ANSWER]


@pytest.mark.req("E12", "E14")
def test_earlier_answers_stand_in_every_form() -> None:
    talk = Talk(asking_app(state_keys=[KEY]), MODERN)
    first = talk.tool("returns")
    second = talk.tool("returns", inputResponses={"who": ACCEPTED}, **_state(first))
    other = {"action": "accept", "content": {"name": "Eve"}}
    given = {"who": other, "what": SAMPLED, "where": ROOTS}
    last = talk.tool("returns", inputResponses=given, **_state(second))
    assert last["content"][0]["text"] == SUMMARY
    assert talk.ignored == [Harmless.UNASKED_ANSWER]


GARBAGE = [None, 5, {}, {"action": "x"}, {"action": "accept", "content": {}}, SAMPLED, ROOTS, ACCEPTED]


@pytest.mark.req("E12", "E14", "E15")
@settings(deadline=None, max_examples=60)
@given(st.sampled_from(FORMS), st.data())
def test_however_a_client_answers_it_comes_to_the_same_end(form: str, data: st.DataObject) -> None:
    """In parts, with what was not asked, with garbage, having lost the answers so far: then with all."""
    answers = {"elicitation/create": ACCEPTED, "sampling/createMessage": SAMPLED, "roots/list": ROOTS}
    talk = Talk(asking_app(state_keys=[KEY]), MODERN)
    result = talk.tool(form)
    for number in range(12):
        asked = result.get("inputRequests")
        if asked is None:
            break
        right = {key: answers[question["method"]] for key, question in asked.items()}
        given = right
        if number < 6:
            kept = data.draw(st.sets(st.sampled_from(sorted(asked))))
            given = {key: right[key] for key in kept}
            keys = st.sampled_from(["x", *asked])
            given |= data.draw(st.dictionaries(keys, st.sampled_from(GARBAGE), max_size=2))
        loses = number < 6 and form != "returns" and data.draw(st.booleans())
        state = {} if loses else _state(result)
        result = talk.tool(form, inputResponses=given, **state)
        assert result["resultType"] in ("input_required", "complete")
    assert "isError" not in result
    if form != "returns":  # which trusts the user to fill in its forms
        assert result["content"][0]["text"] == SUMMARY


@pytest.mark.req("E12")
@pytest.mark.case("M-02")
def test_a_state_alone_lets_the_client_come_again() -> None:
    app = App("poll", state_keys=[KEY])

    @app.tool()
    def poll(ctx: Context) -> Any:
        count = ctx.state if isinstance(ctx.state, int) else 0
        return NeedsInput(state=count + 1) if count < 3 else f"after {count}"

    for version in ALL:
        reply, rounds = Talk(app, version).converse("tools/call", {"name": "poll"})
        assert text_of(reply) == "after 3"
        assert rounds == ([[]] * 3 if version == MODERN else [])


@pytest.mark.req("E12")
@pytest.mark.case("M-03")
def test_neither_a_question_nor_a_state_is_no_round() -> None:
    with pytest.raises(LocalProtocolError, match="neither"):
        NeedsInput()
    with pytest.raises(LocalProtocolError, match="page"):
        PagesFirst()


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", WITH_FORMS)
def test_a_state_of_the_application_goes_from_run_to_run(version: str) -> None:
    app = App("state", state_keys=[KEY])
    seen: list[Any] = []

    @app.tool()
    async def counts(ctx: Context) -> str:
        seen.append(ctx.state)
        count = ctx.state if isinstance(ctx.state, int) else 0
        ctx.state = count + 1
        await ctx.elicit("a", FORM)
        await ctx.elicit("b", FORM)
        return str(ctx.state)

    reply, _ = Talk(app, version).converse("tools/call", {"name": "counts"})
    assert text_of(reply) == ("3" if version == MODERN else "1")


# where it is not possible -------------------------------------------------------------------------


@pytest.mark.req("E11")
def test_a_modern_client_is_asked_for_three_methods_only() -> None:
    errors: list[BaseException] = []
    app = App("elsewhere", on_error=lambda error, number: errors.append(error))

    @app.method("vendor/ask")
    async def own(params: Any, ctx: Context) -> Any:
        return {"name": (await ctx.elicit("x", FORM)).action}

    @app.completion
    def complete(ref: Any, name: str, value: str, known: Any, ctx: Context) -> Any:
        return NeedsInput({"k": Elicit("x", FORM)})

    app.prompt("p")(lambda a: a)
    complete_params = {
        "ref": {"type": "ref/prompt", "name": "p"},
        "argument": {"name": "a", "value": ""},
    }
    talk = Talk(app, MODERN)
    for method, params in (("vendor/ask", {}), ("completion/complete", complete_params)):
        assert talk.once(method, params)["error"]["code"] == -32603
    assert ["resources/read only" in str(error) for error in errors] == [True, True]
    reply, _ = Talk(app, "2025-11-25").converse("vendor/ask", {})
    assert reply["result"] == {"name": "accept"}


@pytest.mark.req("E11", "E12", "E13")
@pytest.mark.parametrize(
    ("method", "result", "why"),
    [
        ("tools/list", {"requestState": "s"}, "cannot be answered"),
        ("tools/call", {}, "neither"),
        ("tools/call", {"requestState": 5}, "a text"),
        ("tools/call", {"inputRequests": []}, "an object"),
        ("tools/call", {"inputRequests": {"k": {"method": "tools/call"}}}, "no question"),
        ("tools/call", {"inputRequests": {"k": 5}}, "no question"),
        ("tools/call", {"inputRequests": {"k": {"method": "sampling/createMessage"}}}, "sampling"),
        (
            "tools/call",
            {"inputRequests": {"k": {"method": "elicitation/create", "params": {"mode": "url"}}}},
            "elicitation",
        ),
    ],
)
def test_an_engine_lets_no_wrong_round_out(method: str, result: Any, why: str) -> None:
    driver = serving(MODERN)
    meta: dict[str, Any] = {"io.modelcontextprotocol/clientCapabilities": {"elicitation": {}}}
    received = ask(driver, MODERN, method, {"name": "t", "_meta": meta})
    with pytest.raises(LocalProtocolError, match=why):
        driver.engine.respond(received, {"resultType": "input_required", **result}, now=0.0)
    assert not driver.sent
    form = {"k": {"method": "elicitation/create", "params": {"message": "m", "requestedSchema": FORM}}}
    if method == "tools/call":
        driver.engine.respond(received, {"resultType": "input_required", "inputRequests": form}, now=0.0)
        assert received.state.name == "ANSWERED"


@pytest.mark.req("E12")
@pytest.mark.case("M-04")
@pytest.mark.parametrize("version", LEGACY)
def test_a_legacy_client_gets_no_round(version: str) -> None:
    driver = serving(version)
    received = ask(driver, version, "tools/call", {"name": "t"})
    with pytest.raises(LocalProtocolError, match="cannot be answered"):
        driver.engine.respond(received, {"resultType": "input_required", "requestState": "s"}, now=0.0)


@pytest.mark.req("E15")
def test_without_somebody_who_carries_questions_a_legacy_client_cannot_be_asked() -> None:
    app = asking_app()
    driver = opened("2025-11-25", capabilities=("tools",), client_capabilities=EVERYTHING)
    request = ask(driver, "2025-11-25", "tools/call", {"name": "yields"})
    context = Context(request, driver.engine, lambda action: action(0.0))
    invocation = app.begin(driver.engine, request, context, now=0.0)
    assert invocation is not None
    turn = invocation.take(invocation.advance(), now=0.0)
    assert turn is not None
    with pytest.raises(LocalProtocolError, match="carries no questions"):
        turn.outcome()


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", WITH_FORMS)
@pytest.mark.parametrize(
    "what", ["a question", "asked", "a generator", "many generators", "nonsense", "an async generator"]
)
def test_what_no_handler_should_do_is_told_to_its_author(version: str, what: str) -> None:
    errors: list[BaseException] = []
    app = App("wrong", on_error=lambda error, number: errors.append(error))

    @app.tool()
    def wrong(ctx: Context) -> Any:
        async def stream() -> Any:
            yield 1

        return {
            "a question": Elicit("x", FORM),
            "asked": ctx.elicit("x", FORM),
            "a generator": (n for n in (1, 2)),
            "many generators": (n for n in ([1], 2)),
            "nonsense": (n for n in ({"x": 1},)),
            "an async generator": stream(),
        }[what]

    talk = Talk(app, version)
    reply = talk.once("tools/call", {"name": "wrong"})
    assert reply["error"]["code"] == -32603
    assert isinstance(errors[0], LocalProtocolError)
    assert not talk.questions()


@pytest.mark.req("E15")
def test_a_list_of_lists_is_not_asked() -> None:
    with pytest.raises(LocalProtocolError):
        as_ask([[ListRoots()], [ListRoots()]])


# how a handler ends at a question -----------------------------------------------------------------


@pytest.mark.req("E15")
@pytest.mark.parametrize("kind", ["awaits", "yields"])
def test_the_end_of_a_round_is_no_exception_that_a_handler_can_swallow(kind: str) -> None:
    """Its ``finally`` blocks run, its ``except Exception`` blocks do not."""
    app = App("ends")
    seen: list[str] = []

    @app.tool()
    async def awaits(ctx: Context) -> str:
        try:
            return (await ctx.elicit("x", FORM)).action
        except Exception:
            seen.append("caught")
            return "swallowed"
        finally:
            seen.append("closed")

    @app.tool()
    def yields(ctx: Context) -> Generator[Any, Any, str]:
        try:
            answer = yield ctx.elicit("x", FORM)
            return str(answer.action)
        except Exception:
            seen.append("caught")
            return "swallowed"
        finally:
            seen.append("closed")

    talk = Talk(app, MODERN)
    first = talk.tool(kind)
    assert first["resultType"] == "input_required"
    assert seen == ["closed"]


@pytest.mark.req("E15")
def test_a_handler_that_will_not_end_is_not_heard() -> None:
    app = App("stubborn")

    @app.tool()
    def stubborn(ctx: Context) -> Generator[Any, Any, str]:
        while True:
            try:
                yield ctx.elicit("x", FORM)
            except GeneratorExit:
                yield ctx.elicit("y", FORM)

    assert list(Talk(app, MODERN).tool("stubborn")["inputRequests"]) == ["elicit-1"]


# pages --------------------------------------------------------------------------------------------


@pytest.mark.req("F2", "F6")
@pytest.mark.parametrize("version", [v for v in ALL if v >= "2025-11-25"])
def test_a_page_is_named_only_where_names_are_known(version: str) -> None:
    app = App("pages")

    @app.tool()
    async def visit(ctx: Context) -> str:
        answers = await ctx.ask(
            ctx.elicit_url("go", "https://example.com/a"),
            ElicitUrl("go", "https://example.com/b", "mine"),
        )
        ctx.elicitation_complete("mine")
        return " ".join(f"{a.action}:{a.content}" for a in answers)

    talk = Talk(app, version)
    reply, rounds = talk.converse("tools/call", {"name": "visit"}, lambda m, p: {"action": "accept"})
    assert text_of(reply) == "accept:None accept:None"
    first, second = (params for _, params in rounds[0])
    assert (first["mode"], first["url"]) == ("url", "https://example.com/a")
    done = [m["params"] for m in talk.sent if m.get("method") == "notifications/elicitation/complete"]
    if version == MODERN:
        assert "elicitationId" not in first
        assert not done
    else:
        assert first["elicitationId"] == "01" * 16
        assert second["elicitationId"] == "mine"
        assert done == [{"elicitationId": "mine"}]


@pytest.mark.req("F7")
@pytest.mark.parametrize("version", ALL)
def test_pages_that_have_to_be_visited_first(version: str) -> None:
    app = App("first", state_keys=[KEY])
    visited: list[int] = []

    @app.tool()
    def needs(ctx: Context) -> str:
        if not visited:
            raise PagesFirst(ElicitUrl("Sign in", "https://example.com/in", "e1"))
        return "in"

    talk = Talk(app, version)
    reply = talk.once("tools/call", {"name": "needs"})
    if version == MODERN:
        (question,) = reply["result"]["inputRequests"].values()
        assert question["params"] == {"mode": "url", "message": "Sign in", "url": "https://example.com/in"}
    elif version == "2025-11-25":
        assert reply["error"]["code"] == -32042
        assert reply["error"]["data"] == {
            "elicitations": [
                {
                    "mode": "url",
                    "message": "Sign in",
                    "url": "https://example.com/in",
                    "elicitationId": "e1",
                }
            ]
        }
    else:
        assert reply["result"]["isError"] is True
    visited.append(1)
    again = {"inputResponses": {"url-1": {"action": "accept"}}} if version == MODERN else {}
    assert talk.tool("needs", **again)["content"][0]["text"] == "in"
    visited.clear()
    refused = Talk(app, version, capabilities={"elicitation": {}}).tool("needs")
    assert refused.get("code") == -32021 if version == MODERN else refused["isError"] is True


# a responder --------------------------------------------------------------------------------------


@pytest.mark.req("W1", "E15")
@pytest.mark.parametrize("form", FORMS)
def test_a_responder_hands_out_questions_and_takes_answers(form: str) -> None:
    responder = Responder(asking_app())
    info = {"name": "c", "version": "1"}
    opening = {"protocolVersion": "2025-11-25", "capabilities": EVERYTHING, "clientInfo": info}
    responder.handle(request("initialize", opening, modern=False))
    responder.handle({"jsonrpc": "2.0", "method": "notifications/initialized"})
    reply = responder.handle(request("tools/call", {"name": form}, id=2, modern=False))
    while reply is None:
        question = responder.questions.pop(0)
        answers = {"elicitation/create": ACCEPTED, "sampling/createMessage": SAMPLED, "roots/list": ROOTS}
        result = answers[question["method"]]
        reply = responder.handle({"jsonrpc": "2.0", "id": question["id"], "result": result})
    assert isinstance(reply, dict)
    assert reply["id"] == 2
    assert text_of(reply) == SUMMARY


@pytest.mark.req("E14")
def test_a_responder_without_a_key_cannot_remember() -> None:
    params = {
        "name": "awaits",
        "inputResponses": {"elicit-1": ACCEPTED},
        "_meta": {**meta(), "io.modelcontextprotocol/clientCapabilities": EVERYTHING},
    }
    errors: list[BaseException] = []
    reply = Responder(asking_app(on_error=lambda e, n: errors.append(e))).handle(
        request("tools/call", params)
    )
    assert isinstance(reply, dict)
    assert reply["error"]["code"] == -32603
    assert "state_keys" in str(errors[0])
    reply = Responder(asking_app(), entropy=lambda n: b"\x02" * n).handle(request("tools/call", params))
    assert isinstance(reply, dict)
    assert reply["result"]["requestState"]
