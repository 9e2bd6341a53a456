"""See it at work: one server, both eras, as real child processes over stdio, over HTTP, and in memory;
one script through asyncio, trio and threads before that.

    python -m sansmcp_cli.demo

Prints what is sent and received and what the engine makes of it, checks all of it, and exits with
1 when something is not as it should be. Needs nothing but the package itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Literal

import sansmcp_asyncio
from sansmcp.app import App
from sansmcp.context import Context
from sansmcp.errors import McpError
from sansmcp.events import EraDecided, Event, PeerGone, ProgressReported, SessionEnded
from sansmcp.revisions import Era
from sansmcp.session.era import Auto, Legacy, Mode
from sansmcp.stdio import ShutdownLadder
from sansmcp.types import UNSET, Implementation, TextContent
from sansmcp.types.elicitation import ElicitRequestFormParams, ElicitRequestURLParams, ElicitResult
from sansmcp.wire.jsoncodec import JsonValue
from sansmcp_asyncio import HttpServing

from .demo_app import app
from .demo_bindings import same_everywhere
from .http_trace import HttpSplitter
from .narrate import LineSplitter, message_kind, tell_event
from .text import one_line

ME = Implementation(name="sansmcp-demo-client", version="1.0")
LIMIT = 60.0
"""Seconds after which something hangs."""
PATIENT = ShutdownLadder(after_close=15.0)
"""On a machine that is busy a child may need longer to leave than it is usually given."""


class Show:
    """Prints what happens in one part of the demo, and holds it against what should happen."""

    def __init__(self, title: str, *, http: bool = False) -> None:
        self.events: list[Event] = []
        self.sent: list[dict[str, Any]] = []
        self.received: list[dict[str, Any]] = []
        self._title = title
        self._wrong: list[str] = []
        self._checks = 0
        self._started = time.monotonic()
        self._lines = {
            "sent": self._splitter("→", self.sent, http),
            "received": self._splitter("←", self.received, http),
        }
        print(f"\n=== {title} ===")

    def _splitter(self, mark: str, kept: list[dict[str, Any]], http: bool) -> LineSplitter | HttpSplitter:
        def message(line: bytes, size: int) -> None:
            self._message(mark, kept, line)

        def head(text: str) -> None:
            print(f"  {mark} {text.partition('; ')[0]}")

        return HttpSplitter(head, message) if http else LineSplitter(message)

    def step(self, text: str) -> None:
        print(f"\n{text}")

    def on_wire(self, direction: Literal["sent", "received"], data: bytes) -> None:
        self._lines[direction].feed(data)

    def on_event(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, EraDecided):
            print(f"  · EraDecided: {event.era.value}, revision {event.revision}, because")
            for entry in event.evidence:
                print(f"      {entry.step}: {entry.outcome}")
        else:
            print(f"  · {one_line(tell_event(event), 160)}")

    def _message(self, mark: str, kept: list[dict[str, Any]], line: bytes) -> None:
        message = json.loads(line)
        kept.append(message)
        params = message.get("params", {})
        about = params.get("name") or params.get("uri") or ""
        if "progress" in params:
            about = f"{params['progress']:g} of {params.get('total', 0):g}"
        print(f"  {mark} {message_kind(message)}{f'  {about}' if about else ''}")

    def expect(self, what: str, found: object) -> None:
        """Note that `what` should be true, and is when `found` is."""
        self._checks += 1
        if not found:
            self._wrong.append(what)
        print(f"  {'ok ' if found else 'WRONG'} {what}")

    def summary(self) -> str:
        """One line: how it went."""
        took = time.monotonic() - self._started
        how = f"NOT AS EXPECTED: {'; '.join(self._wrong)}" if self._wrong else "all as expected"
        return (
            f"{self._title}: {self._checks} checks, {how}"
            f" ({len(self.sent)} messages sent, {len(self.received)} received, {took:.1f} s)"
        )

    @property
    def good(self) -> bool:
        return self._checks > 0 and not self._wrong

    @contextmanager
    def guarded(self) -> Iterator[None]:
        """Whatever is raised inside is a thing that should not have happened."""
        try:
            yield
        except Exception as error:
            self.expect(f"no error, but {type(error).__name__}: {one_line(str(error), 200)}", False)


async def over_stdio(title: str, era: Era, *revisions: str) -> Show:
    """The tour, with the demo server as a child process."""
    show = Show(title)
    command = [sys.executable, "-m", "sansmcp_cli.demo_app", *revisions]
    show.step(f"connect to: python -m sansmcp_cli.demo_app {' '.join(revisions)}".rstrip())
    with show.guarded():
        async with (
            asyncio.timeout(LIMIT),
            sansmcp_asyncio.connect(
                command,
                info=ME,
                # the child has to find the package where this process found it
                env={name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ},
                ladder=PATIENT,
                on_event=show.on_event,
                on_wire=show.on_wire,
            ) as client,
        ):
            show.expect(f"the era is {era.value}", client.era is era)
            await tour(client, show)
            show.step("close: the child's input ends, so it leaves by itself")
            closing = time.monotonic()
        show.expect("the session ended in order", _ended_in_order(show.events))
        show.expect("nobody had to be made to leave", time.monotonic() - closing < PATIENT.after_close)
    return show


async def in_memory() -> Show:
    """The same client and the same server without a process between them."""
    show = Show("in memory")
    with show.guarded():
        async with (
            asyncio.timeout(LIMIT),
            sansmcp_asyncio.connect_memory(
                app, info=ME, on_event=show.on_event, on_wire=show.on_wire
            ) as client,
        ):
            await first_call(client, show)
        show.expect("the session ended in order", _ended_in_order(show.events))
    return show


async def over_http(title: str, era: Era, mode: Mode) -> Show:
    """The same server on a socket of this machine, and one that asks back."""
    show = Show(title, http=True)
    with show.guarded():
        async with asyncio.timeout(LIMIT), HttpServing(app) as serving, HttpServing(asking) as asking_back:
            show.step(f"connect to {serving.url}")
            async with _reach(serving, mode, show) as client:
                show.expect(f"the era is {era.value}", client.era is era)
                await first_call(client, show)
                await progress(client, show)
            show.step(f"connect to {asking_back.url}, where a server asks back")
            async with _reach(asking_back, mode, show) as client:
                await asked(client, show)
        show.expect("both sessions ended in order", _ended_in_order(show.events, 2))
    return show


def _reach(serving: HttpServing, mode: Mode, show: Show) -> sansmcp_asyncio.Opening:
    return sansmcp_asyncio.connect(
        serving.url,
        info=ME,
        mode=mode,
        on_elicit=user,
        on_event=show.on_event,
        on_wire=show.on_wire,
    )


def _ended_in_order(events: list[Event], sessions: int = 1) -> bool:
    ends = [event for event in events if isinstance(event, SessionEnded)]
    gone = any(isinstance(event, PeerGone) for event in events)
    return len(ends) == sessions and all(end.error is None for end in ends) and not gone


async def tour(client: sansmcp_asyncio.Client, show: Show) -> None:
    """What one does with a server."""
    info = client.server_info
    show.expect("the server says who it is", info is not None and info.name == app.info.name)
    await first_call(client, show)
    await progress(client, show)
    await failing(client, show)
    await reading(client, show)
    await prompting(client, show)
    await cancelled(client, show)


async def first_call(client: sansmcp_asyncio.Client, show: Show) -> None:
    show.step("list the tools, and call one")
    tools = (await client.list_tools()).tools
    show.expect("tools: echo, add, slow, fail", [t.name for t in tools] == ["echo", "add", "slow", "fail"])
    result = await client.call_tool("echo", {"text": "hello"})
    show.expect("echo says hello", _text(result) == "hello")
    summed = (await client.call_tool("add", {"a": 2, "b": 40})).structured_content
    show.expect("add answers with structured content: 42", summed is not UNSET and summed == {"sum": 42})


async def progress(client: sansmcp_asyncio.Client, show: Show) -> None:
    show.step("a call that reports progress")
    seen: list[float] = []
    result = await client.call_tool(
        "slow", {"steps": 3, "pause": 0.05}, on_progress=lambda event: seen.append(event.progress)
    )
    show.expect("three reports, then the answer", seen == [1, 2, 3] and _text(result) == "3 steps done")


async def failing(client: sansmcp_asyncio.Client, show: Show) -> None:
    show.step("a tool that fails has answered; a tool that does not exist is an error")
    result = await client.call_tool("fail", {})
    show.expect("isError, with a text for the model", result.is_error and "fails" in _text(result))
    error = await _error_of(client.call_tool("nothing", {}))
    show.expect("error -32602 for an unknown tool", error is not None and error.code == -32602)


async def reading(client: sansmcp_asyncio.Client, show: Show) -> None:
    show.step("resources: a list, a template, their contents, a completion")
    uris = [resource.uri for resource in (await client.list_resources()).resources]
    show.expect("two resources", uris == ["demo://greeting", "demo://dot"])
    templates = (await client.list_resource_templates()).resource_templates
    show.expect("one template", [t.uri_template for t in templates] == ["demo://cities/{name}"])
    contents = (await client.read_resource("demo://greeting")).contents
    show.expect("the greeting is text", "Hello" in getattr(contents[0], "text", ""))
    contents = (await client.read_resource("demo://cities/Oslo")).contents
    show.expect("a URI of the template is read", "Oslo" in getattr(contents[0], "text", ""))
    error = await _error_of(client.read_resource("demo://nothing"))
    # The eras have different codes for it.
    code = -32602 if client.era is Era.MODERN else -32002
    show.expect(f"error {code} for an unknown resource", error is not None and error.code == code)
    ref = {"type": "ref/resource", "uri": "demo://cities/{name}"}
    found = (await client.complete(ref, "name", "be")).completion.values
    show.expect("be… may be Berlin or Bern", found == ["Berlin", "Bern"])


async def prompting(client: sansmcp_asyncio.Client, show: Show) -> None:
    show.step("a prompt")
    names = [prompt.name for prompt in (await client.list_prompts()).prompts]
    show.expect("one prompt", names == ["greet"])
    content = (await client.get_prompt("greet", {"name": "Ada"})).messages[0].content
    text = content.text if isinstance(content, TextContent) else ""
    show.expect("it is filled in", text == "Greet Ada in a friendly way.")


async def cancelled(client: sansmcp_asyncio.Client, show: Show) -> None:
    show.step("cancel a call while it runs")
    running = asyncio.Event()

    def on_progress(event: ProgressReported) -> None:
        running.set()

    call = asyncio.create_task(
        client.call_tool("slow", {"steps": 500, "pause": 0.05}, on_progress=on_progress)
    )
    await running.wait()
    call.cancel()
    with suppress(asyncio.CancelledError):
        await call
    methods = [message.get("method") for message in show.sent]
    show.expect("the server was told", "notifications/cancelled" in methods)
    show.expect("the caller sees that it was cancelled", call.cancelled())
    result = await client.call_tool("echo", {"text": "still here"})
    show.expect("the connection goes on", _text(result) == "still here")


asking = App("sansmcp-demo-asking", "1.0")
GUESTS: dict[str, JsonValue] = {
    "type": "object",
    "properties": {"guests": {"type": "integer"}},
    "required": ["guests"],
}


@asking.tool()
async def book(ctx: Context) -> str:
    """Book a table, for as many guests as the user says."""
    answer = await ctx.elicit("For how many guests?", GUESTS)
    if answer.action != "accept" or not answer.content:
        return "no table, then"
    return f"a table for {answer.content['guests']}"


def user(question: ElicitRequestFormParams | ElicitRequestURLParams) -> ElicitResult:
    """Answers in the place of somebody at a screen."""
    print(f"  · the user is asked: {question.message}")
    return ElicitResult("accept", {"guests": 4})


async def asked(client: sansmcp_asyncio.Client, show: Show) -> None:
    show.step("a tool that asks the user; its handler does not know the era, nor does the one who answers")
    result = await client.call_tool("book", {})
    show.expect("the answer arrived: a table for 4", _text(result) == "a table for 4")


def _text(result: Any) -> str:
    return " ".join(block.text for block in result.content if isinstance(block, TextContent))


async def _error_of(awaitable: Any) -> McpError | None:
    try:
        await awaitable
    except McpError as error:
        return error
    return None


async def run() -> bool:
    """All parts, one after the other. Whether everything was as it should be."""
    print("sansmcp demo:  → sent   ← received   · what the engine says")
    parts: list[Callable[[], Any]] = [
        lambda: over_stdio("modern, the server as it is", Era.MODERN),
        lambda: over_stdio("legacy, the server with its legacy revisions only", Era.LEGACY, "legacy"),
        lambda: over_http("modern, over HTTP", Era.MODERN, Auto()),
        lambda: over_http("legacy, over HTTP", Era.LEGACY, Legacy()),
        in_memory,
    ]
    shows = [await part() for part in parts]
    print("\n=== summary ===")
    for show in shows:
        print(show.summary())
    return all(show.good for show in shows)


def main() -> None:
    """Run the demo; exit with 1 when something is not as it should be."""
    good = same_everywhere()
    raise SystemExit(0 if asyncio.run(run()) and good else 1)


if __name__ == "__main__":
    main()
