"""Callbacks that answer what a server asks: the same ones in both eras."""

import asyncio
import json
import subprocess
import sys
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    App,
    Auto,
    CallSuspended,
    ClientCapabilities,
    Context,
    Event,
    InputRefused,
    InputRequired,
    InputWithdrawn,
    InvalidAnswer,
    InvalidResponse,
    Legacy,
    LocalProtocolError,
    McpError,
)
from sansmcp.types import (
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationCapability,
    ElicitRequestFormParams,
    ElicitResult,
    ListRootsRequestParams,
    ListRootsResult,
    Root,
    SamplingCapability,
    TextContent,
)

from .support import PATIENCE, raised, run, server, soon, text_of

pytestmark = pytest.mark.filterwarnings("ignore:on_:DeprecationWarning")

ERAS = ["legacy", "modern"]
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "hm"}, "model": "m"}
LISTED = {"roots": [{"uri": "file:///x"}]}
ACCEPTED = {"action": "accept", "content": {"name": "ada"}}


def connect(era: str, **options: Any) -> sansmcp_asyncio.Opening:
    return sansmcp_asyncio.connect(server("asks_about", era), **options)


async def asked(client: sansmcp_asyncio.Client, about: str, **options: Any) -> Any:
    return json.loads(text_of(await client.call_tool(about, **options)))


@pytest.mark.req("F1", "G1", "H1", "E6")
@pytest.mark.parametrize("era", ERAS)
def test_callbacks_get_typed_params_and_give_typed_results_or_json(era: str) -> None:
    seen: list[type] = []

    async def on_elicit(params: Any) -> ElicitResult:
        seen.append(type(params))
        await asyncio.sleep(0)
        return ElicitResult("accept", {"name": "ada"})

    def on_sample(params: CreateMessageRequestParams) -> CreateMessageResult:
        seen.append(type(params))
        return CreateMessageResult("assistant", TextContent("hm"), "m")

    async def on_roots(params: ListRootsRequestParams) -> ListRootsResult:
        seen.append(type(params))
        return ListRootsResult([Root("file:///x")])

    async def main() -> None:
        async with connect(era, on_elicit=on_elicit, on_sample=on_sample, on_roots=on_roots) as client:
            told = await asked(client, "form model places")
            assert told == {"form": ACCEPTED, "model": SAMPLED, "places": LISTED}
        async with connect(
            era,
            on_elicit=lambda _: ACCEPTED,
            on_sample=lambda _: SAMPLED,
            on_roots=lambda _: LISTED,
        ) as client:
            assert await asked(client, "form model places") == told
            assert await asked(client, "places") == {"places": LISTED}

    run(main)
    assert set(seen) == {ElicitRequestFormParams, CreateMessageRequestParams, ListRootsRequestParams}


@pytest.mark.req("E6")
@pytest.mark.parametrize("era", ERAS)
def test_the_questions_of_a_round_are_answered_at_once(era: str) -> None:
    async def main() -> None:
        together = asyncio.Barrier(2)

        async def wait(answer: Any) -> Any:
            await asyncio.wait_for(together.wait(), PATIENCE)
            return answer

        async with connect(
            era, on_elicit=lambda _: wait(ACCEPTED), on_sample=lambda _: wait(SAMPLED)
        ) as client:
            assert await asked(client, "form model") == {"form": ACCEPTED, "model": SAMPLED}

    run(main)


@pytest.mark.req("E6")
@pytest.mark.parametrize("error", [McpError(-1, "not now"), ValueError("s3cret"), InvalidAnswer])
def test_the_first_error_ends_the_round_and_the_other_callbacks(error: Any) -> None:
    stopped: list[str] = []

    async def on_sample(_: Any) -> Any:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            stopped.append("model")
            raise

    async def on_elicit(_: Any) -> Any:
        await asyncio.sleep(0.01)
        if error is InvalidAnswer:
            return {"action": "accept", "content": {}}
        raise error

    async def main() -> None:
        async with connect("modern", on_elicit=on_elicit, on_sample=on_sample) as client:
            refused = await raised(client.call_tool("form model"), InputRefused)
            cause = refused.__cause__
            assert isinstance(cause, McpError)
            if isinstance(error, McpError):
                assert cause is error
            else:
                kind = error if isinstance(error, type) else type(error)
                assert isinstance(cause.__cause__, kind)
            assert "s3cret" not in str(refused)

    run(main)
    assert stopped == ["model"]


@pytest.mark.req("G3")
def test_a_legacy_server_is_told_of_an_error_and_of_no_more_than_that() -> None:
    told: list[dict[str, Any]] = []

    def on_elicit(_: Any) -> Any:
        raise ValueError("s3cret")

    def on_sample(_: Any) -> Any:
        raise McpError(-1, "not now", {"a": 1})

    def on_roots(_: Any) -> Any:
        raise McpError(-32021, "a code that a legacy server knows nothing of")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: told.append(context))
        callbacks = {"on_elicit": on_elicit, "on_sample": on_sample, "on_roots": on_roots}
        async with connect("legacy", **callbacks) as client:
            answers = await asked(client, "form model places")
            assert answers["model"] == {"code": -1, "message": "not now", "data": {"a": 1}}
            no_answer = {"code": -32603, "message": "the client could not answer"}
            assert answers["form"] == answers["places"] == no_answer

    run(main)
    assert [type(context["exception"]) for context in told] == [ValueError, LocalProtocolError]


@pytest.mark.req("F3", "G2", "H1")
def test_what_there_is_a_callback_for_is_declared() -> None:
    def declared(**options: Any) -> Any:
        async def main() -> Any:
            app = sansmcp_asyncio.connect_memory(_app(), **options)
            async with app as client:
                return await client.call_tool("able")

        return json.loads(text_of(run(main)))

    assert declared() == {}
    assert declared(on_elicit=lambda _: None) == {"elicitation": {"form": {}, "url": {}}}
    every = declared(on_elicit=lambda _: None, on_sample=lambda _: None, on_roots=lambda _: None)
    assert every == {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
    given = ClientCapabilities(
        elicitation=ElicitationCapability(form={}),
        sampling=SamplingCapability(tools={}),
        extensions={"com.example/x": {}},
    )
    both = declared(capabilities=given, on_elicit=lambda _: None, on_roots=lambda _: None)
    assert both == {
        "elicitation": {"form": {}},
        "sampling": {"tools": {}},
        "roots": {},
        "extensions": {"com.example/x": {}},
    }


def _app() -> App:
    app = App("here", "1")

    @app.tool()
    def able(ctx: Context) -> str:
        return json.dumps(dict(ctx.request.peer_capabilities))

    return app


@pytest.mark.req("G3")
@pytest.mark.parametrize("era", ERAS)
def test_without_callbacks_nothing_is_declared_and_nobody_waits_for_an_answer(era: str) -> None:
    async def main() -> None:
        async with connect(era) as client:
            if era == "modern":
                await raised(client.call_tool("form"), InvalidResponse)
            else:
                assert (await asked(client, "form"))["form"]["code"] == -32601

    run(main)


@pytest.mark.req("F4")
@pytest.mark.parametrize("era", ERAS)
def test_defaults_are_filled_in_if_that_is_wanted(era: str) -> None:
    async def main() -> None:
        async with connect(era, on_elicit=lambda _: {"action": "accept"}, apply_defaults=True) as client:
            told = await asked(client, "form")
            assert told == {"form": {"action": "accept", "content": {"name": "nobody"}}}

    run(main)


def _asking_app() -> App:
    app = App("here", "1")

    @app.tool()
    async def greet(ctx: Context) -> str:
        schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
        who = await ctx.elicit("who?", schema)
        if who.action != "accept":
            return who.action
        assert who.content is not None
        said, places = await ctx.ask(
            ctx.sample(f"greet {who.content['name']}", max_tokens=9), ctx.list_roots()
        )
        assert isinstance(said.content, TextContent)
        return f"{said.content.text} from {places.roots[0].uri}"

    return app


@pytest.mark.req("E1", "F1", "G1", "H1")
@pytest.mark.parametrize("over", ["memory", "http"])
@pytest.mark.parametrize("mode", [Legacy(), Auto()], ids=ERAS)
def test_the_same_handler_and_the_same_callbacks_serve_both_eras(mode: Any, over: str) -> None:
    def on_sample(params: CreateMessageRequestParams) -> Any:
        (message,) = params.messages
        assert isinstance(message.content, TextContent)
        return {**SAMPLED, "content": {"type": "text", "text": message.content.text.upper()}}

    callbacks: dict[str, Any] = {"on_sample": on_sample, "on_roots": lambda _: LISTED}

    async def talk(opening: Any) -> str:
        async with opening as client:
            return text_of(await client.call_tool("greet"))

    async def main() -> None:
        app = _asking_app()
        for answer, told in ((ACCEPTED, "GREET ADA from file:///x"), ({"action": "decline"}, "decline")):
            options = {**callbacks, "mode": mode, "on_elicit": lambda _, answer=answer: answer}
            if over == "memory":
                assert await talk(sansmcp_asyncio.connect_memory(app, **options)) == told
            else:
                async with sansmcp_asyncio.HttpServing(app) as serving:
                    assert await talk(sansmcp_asyncio.connect(serving.url, **options)) == told

    run(main)


# without callbacks --------------------------------------------------------------------------------

ABLE = ClientCapabilities(elicitation=ElicitationCapability(), sampling=SamplingCapability())


@pytest.mark.req("E1")
@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("partly", [False, True], ids=["no callback", "another callback"])
def test_what_no_callback_answers_is_left_to_the_events(era: str, partly: bool) -> None:
    async def main() -> None:
        options: dict[str, Any] = {"on_roots": lambda _: LISTED} if partly else {}
        async with connect(era, capabilities=ABLE, **options) as client:
            call = asyncio.create_task(asked(client, "form model"))
            missing = {"form": ACCEPTED, "model": SAMPLED}
            async for event in client.events():
                if isinstance(event, InputRequired):
                    for key in event.requests:
                        assert await client.provide_input(event.round, {key: missing.pop(key)})
                    if not missing:
                        break
            assert await call == {"form": ACCEPTED, "model": SAMPLED}

            call = asyncio.create_task(asked(client, "form"))
            async for event in client.events():
                if isinstance(event, InputRequired):
                    with pytest.raises(InvalidAnswer):
                        await client.provide_input(event.round, {"form": {"action": "accept"}})
                    assert await client.refuse_input(event.round, McpError(-1, "no"))
                    with pytest.raises(LocalProtocolError):
                        await client.refuse_input(event.round, McpError(-1, "no"))
                    break
            if era == "modern":
                await raised(call, InputRefused)
            else:
                assert (await call)["form"]["code"] == -1

    run(main)


@pytest.mark.req("E9")
def test_callbacks_are_not_called_for_a_call_without_auto_rounds() -> None:
    async def main() -> None:
        async with connect("modern", on_elicit=lambda _: {"action": "cancel"}) as client:
            call = asyncio.create_task(asked(client, "form", auto_rounds=False))
            async for event in client.events():
                if isinstance(event, InputRequired):
                    assert await client.provide_input(event.round, {"form": ACCEPTED})
                    break
            assert await call == {"form": ACCEPTED}

    run(main)


# ends ---------------------------------------------------------------------------------------------


class Waits:
    """A callback that does not end by itself."""

    def __init__(self) -> None:
        self.began = self.stopped = 0

    async def __call__(self, _: Any) -> Any:
        self.began += 1
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            self.stopped += 1
            raise


@pytest.mark.parametrize("era", ERAS)
def test_a_callback_is_cancelled_with_the_connection(era: str) -> None:
    waits = Waits()

    async def main() -> None:
        async with connect(era, on_elicit=waits) as client:
            call = asyncio.create_task(client.call_tool("form"))
            await soon(lambda: waits.began, "the callback")
            client.close()
            await soon(call.done, "the end of the call")
            assert call.exception() is not None

    run(main)
    assert (waits.began, waits.stopped) == (1, 1)


def test_a_callback_is_cancelled_with_its_call() -> None:
    waits = Waits()

    async def main() -> None:
        async with connect("modern", on_elicit=waits, on_sample=waits) as client:
            call = asyncio.create_task(client.call_tool("form model"))
            await soon(lambda: waits.began == 2, "the callbacks")
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await soon(lambda: waits.stopped == 2, "their ends")

    run(main)


def test_a_callback_is_cancelled_when_a_legacy_server_takes_its_question_back() -> None:
    waits = Waits()
    events: list[Event] = []

    async def main() -> None:
        async with connect("legacy", on_elicit=waits, on_event=events.append) as client:
            call = asyncio.create_task(asked(client, "form"))
            await soon(lambda: waits.began, "the callback")
            await client.call_tool("take back")
            assert await call == {"form": "taken back"}
            await soon(lambda: waits.stopped, "its end")

    run(main)
    assert [type(e) for e in events if isinstance(e, (InputRequired, InputWithdrawn))] == [
        InputRequired,
        InputWithdrawn,
    ]


def test_a_callback_that_gives_up_refuses() -> None:
    async def on_elicit(_: Any) -> Any:
        raise asyncio.CancelledError

    async def main() -> None:
        async with connect("modern", on_elicit=on_elicit) as client:
            await raised(client.call_tool("form"), InputRefused)

    run(main)


@pytest.mark.req("E17")
def test_a_call_that_asks_goes_on_with_another_client() -> None:
    async def main() -> None:
        async with connect("modern", capabilities=ABLE) as here:
            call, kept = asyncio.create_task(here.call_tool("form model")), ""
            async for event in here.events():
                if isinstance(event, InputRequired):
                    assert event.call is not None
                    await here.provide_input(event.round, {"form": ACCEPTED})
                    kept = json.dumps(await here.suspend(event.call))
                    break
            await raised(call, CallSuspended)
        async with connect("modern", on_elicit=lambda _: ACCEPTED, on_sample=lambda _: SAMPLED) as there:
            told = json.loads(text_of(await there.resume(json.loads(kept))))
            assert told == {"form": ACCEPTED, "model": SAMPLED}

    run(main)


@pytest.mark.req("G1")
@pytest.mark.parametrize("form", ["async with connect() as client: pass", "await (await connect()).aclose()"])
def test_who_samples_is_told_once_that_it_is_deprecated(form: str) -> None:
    code = f"""
import asyncio, sansmcp_asyncio
from sansmcp import App

def connect():
    f = lambda _: {{}}
    return sansmcp_asyncio.connect_memory(App("a", "1"), on_elicit=f, on_sample=f, on_roots=f)

async def main():
    for _ in range(2):
        {form}

asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    warned = [line for line in done.stderr.splitlines() if "DeprecationWarning" in line]
    assert len(warned) == 2, done.stderr
    assert all(line.startswith("<string>:") for line in warned)
