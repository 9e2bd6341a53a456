"""What handlers ask their client: one handler, one meaning, in both eras."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from typing import Any

import attrs
import pytest

from sansmcp import (
    App,
    CapabilityMissing,
    Context,
    Elicit,
    ElicitUrl,
    ListRoots,
    LocalProtocolError,
    NeedsInput,
    PeerFault,
    RemoteProtocolError,
    Revision,
    Sample,
)
from sansmcp.asks import askable
from sansmcp.session.rounds import read_question
from sansmcp.types import (
    ClientCapabilities,
    ElicitationCapability,
    ImageContent,
    ModelHint,
    ModelPreferences,
    RequestedSchema,
    SamplingCapability,
    SamplingMessage,
    StringSchema,
    Tool,
    ToolChoice,
)

from .questions_support import (
    FORM,
    FORMS,
    KEY,
    SUMMARY,
    Talk,
    asking_app,
    text_of,
)
from .support import ALL, MODERN

WITH_FORMS = [v for v in ALL if v >= "2025-06-18"]
NO_FORMS = [v for v in ALL if v < "2025-06-18"]
URL_SINCE = [v for v in ALL if v >= "2025-11-25"]


# one handler, both eras -------------------------------------------------------------------------


@pytest.mark.req("E12", "E13", "E15", "F1", "G1", "H1")
@pytest.mark.case("M-01", "M-04")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("version", WITH_FORMS)
def test_a_handler_written_once_asks_in_every_revision(version: str, form: str) -> None:
    app = asking_app(state_keys=[KEY])
    talk = Talk(app, version)
    reply, rounds = talk.converse("tools/call", {"name": form})
    assert text_of(reply) == SUMMARY
    assert [[method for method, _ in asked] for asked in rounds] == [
        ["elicitation/create"],
        ["sampling/createMessage", "roots/list"],
    ]
    elicitation, roots = rounds[0][0][1], rounds[1][1][1]
    assert elicitation["message"] == "Who are you?"
    assert elicitation["requestedSchema"] == FORM
    assert ("mode" in elicitation) == (version >= "2025-11-25")
    assert roots == {}
    again = form == "returns" or version == MODERN
    assert app.runs == [form] * (3 if again else 1)  # type: ignore[attr-defined]
    assert talk.handlers.stats() == {"waiting_handlers": 0}
    assert not talk.ignored


@pytest.mark.req("E11", "F1")
@pytest.mark.parametrize("version", WITH_FORMS)
@pytest.mark.parametrize(
    ("method", "params"),
    [("prompts/get", {"name": "asks_in_a_prompt"}), ("resources/read", {"uri": "test://asks"})],
)
def test_prompts_and_resources_ask_too(version: str, method: str, params: dict[str, Any]) -> None:
    talk = Talk(asking_app(), version)
    reply, rounds = talk.converse(method, params)
    assert "accept {'name': 'Bo'}" in str(reply["result"])
    assert len(rounds) == 1


@pytest.mark.req("E16", "E12")
def test_a_round_is_no_result_to_be_kept() -> None:
    talk = Talk(asking_app(), MODERN)
    result = talk.once("resources/read", {"uri": "test://asks"})["result"]
    assert result.keys() == {"resultType", "inputRequests", "_meta"}
    assert result["resultType"] == "input_required"


@pytest.mark.req("F1")
@pytest.mark.parametrize("action", ["decline", "cancel"])
@pytest.mark.parametrize("version", WITH_FORMS)
def test_the_user_may_say_no(version: str, action: str) -> None:
    talk = Talk(asking_app(), version)
    reply, _ = talk.converse("prompts/get", {"name": "asks_in_a_prompt"}, lambda m, p: {"action": action})
    assert reply["result"]["messages"][0]["content"]["text"] == f"{action} None"


@pytest.mark.req("E15")
def test_keys_are_given_by_kind_and_order_or_by_hand() -> None:
    app = App("keys")

    @app.tool()
    async def many(ctx: Context) -> str:
        await ctx.ask(
            ctx.elicit("a", FORM),
            Elicit("b", FORM),
            Elicit("c", FORM, key="mine"),
            ctx.elicit_url("d", "https://example.com/"),
            Sample("e", max_tokens=1),
            ListRoots(),
        )
        return "done"

    result = Talk(app, MODERN).tool("many")
    assert list(result["inputRequests"]) == ["elicit-1", "elicit-2", "mine", "url-1", "sample-1", "roots-1"]


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", WITH_FORMS)
def test_a_key_means_one_question(version: str) -> None:
    app = App("twice")
    errors: list[Exception] = []

    @app.tool()
    async def twice(ctx: Context) -> str:
        await ctx.elicit("a", FORM, key="k")
        try:
            await ctx.elicit("b", FORM, key="k")
        except LocalProtocolError as error:
            errors.append(error)
        return "done"

    reply, _ = Talk(app, version).converse("tools/call", {"name": "twice"})
    assert text_of(reply) == "done"
    assert "'k' was asked before" in str(errors[0])


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", WITH_FORMS)
def test_nothing_asked_is_answered_at_once(version: str) -> None:
    app = App("none")

    @app.tool()
    async def none(ctx: Context) -> str:
        return f"{await ctx.ask()}"

    @app.tool()
    def one(ctx: Context) -> Generator[Any, Any, str]:
        (root,) = yield [ListRoots()]
        return str(len(root.roots))

    talk = Talk(app, version)
    assert text_of(talk.converse("tools/call", {"name": "none"})[0]) == "()"
    assert text_of(talk.converse("tools/call", {"name": "one"})[0]) == "1"


@attrs.define
class Booking:
    name: str


@pytest.mark.req("E15")
@pytest.mark.parametrize("version", WITH_FORMS)
def test_a_handler_that_asks_may_return_a_class(version: str) -> None:
    """The schema of its result is that of the class, however it asks."""
    app = App("classes", state_keys=[KEY])

    @app.tool()
    def yields(ctx: Context) -> Generator[Any, Any, Booking]:
        answer = yield ctx.elicit("x", FORM)
        return Booking(answer.content["name"])

    @app.tool()
    def returns(ctx: Context) -> Booking | NeedsInput:
        if "k" not in ctx.answers:
            return NeedsInput({"k": Elicit("x", FORM)})
        return Booking(ctx.answers["k"].content["name"])

    talk = Talk(app, version)
    listed = talk.once("tools/list")["result"]["tools"]
    for tool in listed:
        assert tool["outputSchema"]["properties"] == {"name": {"type": "string"}}
        reply, _ = talk.converse("tools/call", {"name": tool["name"]})
        assert reply["result"]["structuredContent"] == {"name": "Bo"}


# what a question says -----------------------------------------------------------------------------


@pytest.mark.req("G2")
@pytest.mark.parametrize("version", ALL)
def test_sampling_says_what_its_revision_knows(version: str) -> None:
    question = Sample(
        [
            "hi",
            {"role": "assistant", "content": {"type": "text", "text": "yes?"}},
            SamplingMessage(role="user", content=ImageContent(data="AA==", mime_type="image/png")),
        ],
        max_tokens=7,
        system_prompt="be kind",
        temperature=0.5,
        stop_sequences=("x",),
        model_preferences=ModelPreferences(hints=[ModelHint(name="sonnet")], cost_priority=0.1),
        include_context="none",
        metadata={"a": 1},
        tools=[Tool(name="t", input_schema={"type": "object"})],
        tool_choice=ToolChoice(mode="auto"),
    )
    params = question.params(Revision(version))
    assert params["messages"] == [
        {"role": "user", "content": {"type": "text", "text": "hi"}},
        {"role": "assistant", "content": {"type": "text", "text": "yes?"}},
        {"role": "user", "content": {"type": "image", "data": "AA==", "mimeType": "image/png"}},
    ]
    assert params["maxTokens"] == 7
    assert params["stopSequences"] == ["x"]
    assert params["modelPreferences"] == {"hints": [{"name": "sonnet"}], "costPriority": 0.1}
    assert ("tools" in params) == (version >= "2025-11-25")
    assert question.needs(Revision(version)) == {"sampling": {"tools": {}}}


@pytest.mark.req("G2")
def test_a_message_that_is_none_is_refused_here() -> None:
    with pytest.raises(LocalProtocolError, match="sample"):
        Sample([{"role": "nobody", "content": "x"}], max_tokens=1).params(Revision(MODERN))


@pytest.mark.req("F2")
@pytest.mark.parametrize(
    ("url", "good"),
    [
        ("https://example.com/a?b=c#d", True),
        ("http://é.example/", True),
        ("", False),
        ("example.com", False),
        ("/a", False),
        ("//example.com", False),
        (" https://example.com", False),
        ("https://example.com/a b", False),
        ("https://example.com/\0", False),
    ],
)
def test_a_page_is_at_a_whole_url(url: str, good: bool) -> None:
    revision = Revision(MODERN)
    able = ClientCapabilities(elicitation=ElicitationCapability(url={}))
    raw = {"mode": "url", "message": "m", "url": url}
    if good:
        assert ElicitUrl("m", url).params(revision)["url"] == url
        read_question(ElicitUrl.method, raw, able, revision)
        return
    with pytest.raises(LocalProtocolError, match="whole URL"):
        ElicitUrl("m", url).params(revision)
    with pytest.raises(RemoteProtocolError, match="whole URL") as raised:
        read_question(ElicitUrl.method, raw, able, revision)
    assert raised.value.fault is PeerFault.INVALID_QUESTION


def use(*names: str) -> dict[str, Any]:
    blocks = [{"type": "tool_use", "id": name, "name": "t", "input": {}} for name in names]
    return {"role": "assistant", "content": blocks if len(blocks) > 1 else blocks[0]}


def used(*names: str, **more: Any) -> dict[str, Any]:
    blocks = [{"type": "tool_result", "toolUseId": name, "content": []} for name in names]
    return {"role": "user", "content": [*blocks, *([more] if more else [])]}


@pytest.mark.req("G2")
@pytest.mark.parametrize(
    ("messages", "problem"),
    [
        (["a", use("1"), used("1")], None),
        (["a", use("1", "2"), used("2", "1"), use("3"), used("3"), "b"], None),
        ([used("1")], None),
        (["a", use("1", "2"), used("1")], "missing"),
        (["a", use("1"), "b"], "missing"),
        (["a", use("1"), use("1"), used("1")], "missing"),
        (["a", use("1")], "missing"),
        (["a", use("1"), used("1", type="text", text="b")], "mixed"),
    ],
)
def test_every_use_of_a_tool_has_its_result_before_the_conversation_goes_on(
    messages: list[Any], problem: str | None
) -> None:
    question = Sample(messages, max_tokens=1)
    if problem is not None:
        with pytest.raises(LocalProtocolError, match=problem):
            question.params(Revision(MODERN))
        return
    params = question.params(Revision(MODERN))
    assert len(params["messages"]) == len(messages)
    capabilities = ClientCapabilities(sampling=SamplingCapability())
    read_question(question.method, params, capabilities, Revision(MODERN))


@pytest.mark.req("F3")
@pytest.mark.parametrize("version", WITH_FORMS)
def test_a_form_may_be_typed(version: str) -> None:
    schema = RequestedSchema({"name": StringSchema(default="Bo")}, required=["name"])
    asked = Elicit("x", schema).params(Revision(version))["requestedSchema"]
    default = {"default": "Bo"} if version >= "2025-11-25" else {}
    assert asked == {
        "type": "object",
        "properties": {"name": {"type": "string", **default}},
        "required": ["name"],
    }


@pytest.mark.req("F1", "F2")
def test_what_is_asked_is_not_in_the_repr() -> None:
    for question in (
        Elicit("m", {"secret": 1}),
        ElicitUrl("m", "https://example.com/secret"),
        Sample("secret", max_tokens=1, system_prompt="secret", metadata={"secret": 1}),
        NeedsInput(state="secret"),
    ):
        assert "secret" not in repr(question)


@pytest.mark.req("G1", "H1")
def test_a_handler_that_asks_for_what_is_deprecated_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sansmcp.questions._warned", set())
    app = App("old", state_keys=[KEY])

    @app.tool()
    def both(ctx: Context) -> str:
        ctx.sample("greet", max_tokens=9)
        ctx.list_roots()
        ctx.elicit("who?", FORM)
        return "done"

    for version in ALL:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            Talk(app, version).converse("tools/call", {"name": "both"})
        methods = [str(each.message).split()[0] for each in told]
        assert methods == (["sampling/createMessage", "roots/list"] if version == ALL[0] else [])
        assert all(each.category is DeprecationWarning and each.filename == __file__ for each in told)


# capabilities -------------------------------------------------------------------------------------

FORM_Q, URL_Q, ROOTS_Q = Elicit("m", FORM), ElicitUrl("m", "https://e/"), ListRoots()
SAMPLE_Q = Sample("m", max_tokens=1)
TOOLS_Q = Sample("m", max_tokens=1, tool_choice=ToolChoice(mode="none"))
CONTEXT_Q = Sample("m", max_tokens=1, include_context="thisServer")


@pytest.mark.req("E13", "F3", "G2")
@pytest.mark.case("M-09")
@pytest.mark.parametrize(
    ("question", "declared", "since"),
    [
        (FORM_Q, {"elicitation": {}}, "2025-06-18"),
        (FORM_Q, {"elicitation": {"form": {}}}, "2025-06-18"),
        (FORM_Q, {"elicitation": {"form": {}, "url": {}}}, "2025-06-18"),
        (FORM_Q, {"elicitation": {"url": {}}}, None),
        (FORM_Q, {"elicitation": False}, None),
        (FORM_Q, {}, None),
        (URL_Q, {"elicitation": {"url": {}}}, "2025-11-25"),
        (URL_Q, {"elicitation": {}}, None),
        (URL_Q, {"elicitation": {"form": {}}}, None),
        (SAMPLE_Q, {"sampling": {}}, "2024-11-05"),
        (SAMPLE_Q, {"sampling": None}, None),
        (TOOLS_Q, {"sampling": {}}, None),
        (TOOLS_Q, {"sampling": {"tools": {}}}, "2025-11-25"),
        (CONTEXT_Q, {"sampling": {"context": {}}}, "2024-11-05"),
        (ROOTS_Q, {"roots": {}}, "2024-11-05"),
        (ROOTS_Q, {"roots": {"listChanged": True}}, "2024-11-05"),
        (ROOTS_Q, {"sampling": {}}, None),
        (Elicit, {"elicitation": {}}, "2025-06-18"),
        (Sample, {"sampling": {}}, "2024-11-05"),
        (ElicitUrl, {"elicitation": {}}, None),
    ],
)
def test_what_can_be_asked(question: Any, declared: Any, since: str | None) -> None:
    for version in ALL:
        app = App("can", state_keys=[KEY])
        told: list[bool] = []

        @app.tool()
        async def look(ctx: Context, told: Any = told) -> str:
            told.append(ctx.can(question))
            if not isinstance(question, type):
                await ctx.ask(question)
            return "asked"

        possible = since is not None and version >= since
        reply, _ = Talk(app, version, capabilities=declared).converse("tools/call", {"name": "look"})
        assert told[0] == possible, version
        if isinstance(question, type) or possible:
            assert text_of(reply) == "asked"
        elif version == MODERN:
            assert reply["error"]["code"] == -32021
            assert reply["error"]["data"] == {
                "requiredCapabilities": askable(question, Revision(version), declared)
            }
        else:
            assert reply["result"]["isError"] is True
            assert text_of(reply).startswith("the client did not declare: ")


@pytest.mark.req("G2", "E13")
@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
def test_context_of_servers_is_asked_for_where_it_is_declared(version: str) -> None:
    missing = askable(CONTEXT_Q, Revision(version), {"sampling": {}})
    assert missing == ({"sampling": {"context": {}}} if version >= "2025-11-25" else {})


@pytest.mark.req("E13", "G3")
@pytest.mark.case("M-09")
@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize("form", FORMS)
def test_a_handler_hears_what_the_client_did_not_declare(version: str, form: str) -> None:
    """Also outside of tools; and nothing of one request is remembered for the next."""
    app = asking_app(state_keys=[KEY])
    heard: list[CapabilityMissing] = []

    @app.tool()
    async def careful(ctx: Context) -> str:
        try:
            await ctx.ask(ListRoots(), Sample("x", max_tokens=1))
        except CapabilityMissing as error:
            heard.append(error)
        return "fine"

    if version == MODERN:
        Talk(app, version).tool(form)
    talk = Talk(app, version, capabilities={})
    assert text_of(talk.converse("tools/call", {"name": "careful"})[0]) == "fine"
    assert heard[0].required == {"roots": {}, "sampling": {}}
    prompt = talk.once("prompts/get", {"name": "asks_in_a_prompt"})["error"]
    assert prompt["message"] == "the client did not declare: elicitation.form"
    assert prompt["code"] == (-32021 if version == MODERN else -32603)
    refused = talk.tool(form)
    assert refused.get("code") == -32021 or refused["isError"] is True


@pytest.mark.req("E13")
@pytest.mark.parametrize("version", ALL)
def test_a_tool_may_require_that_it_can_ask(version: str) -> None:
    app = App("requires", state_keys=[KEY])
    called: list[int] = []

    @app.tool(requires=[Sample])
    def test_missing_capability(ctx: Context) -> str:
        called.append(1)
        return "called"

    refused = Talk(app, version, capabilities={}).tool("test_missing_capability")
    assert not called
    if version == MODERN:
        assert refused["code"] == -32021
        assert refused["data"] == {"requiredCapabilities": {"sampling": {}}}
    else:
        assert refused["isError"] is True
    Talk(app, version, capabilities={"sampling": {}}).tool("test_missing_capability")
    assert called
