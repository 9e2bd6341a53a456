"""Every kind of handler, in every revision, over stdio and HTTP, for our client and for those of others.

One table says what each is answered. A client is started once for a way of carrying messages: it has
one connection for each revision that it knows, and asks everything on each.
"""

from __future__ import annotations

import asyncio
import functools
import json
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import attrs
import pytest

import sansmcp_asyncio
from sansmcp import (
    ALL_REVISIONS,
    LEGACY_REVISIONS,
    ListChanged,
    LogReceived,
    McpError,
    Pin,
    ProgressReported,
    ResourceUpdated,
    Revision,
)
from sansmcp.types import ClientCapabilities, ElicitRequestURLParams, SamplingCapability
from sansmcp.types.convert import unstructure
from sansmcp_asyncio import Client, HttpServing
from tests.peers import registry
from tests.peers.clients import kinds
from tests.peers.registry import VENVS, environment

from .kinds_server import TAKEN, URI, make_app
from .support import LIMIT, Json, needs

V1, V2, V3, V4, V5 = ALL_REVISIONS
SERVER = Path(__file__).with_name("kinds_server.py")
SCRIPTS = Path(registry.__file__).with_name("clients")
SDKS = {"mcp-1.30.0": ("kinds_v1.py", LEGACY_REVISIONS), "mcp-2.3.0": ("kinds_v2.py", ALL_REVISIONS)}

# the table ---------------------------------------------------------------------------------------


@attrs.frozen
class Kind:
    """One kind of handler: what is asked, and what comes of it from a revision on."""

    name: str
    ask: tuple[Any, ...]
    answers: Mapping[Revision, Any]

    def answer(self, revision: Revision) -> Any:
        return self.answers[max(since for since in self.answers if since <= revision)]


def always(answer: Any) -> Mapping[Revision, Any]:
    return {V1: answer}


def text(*texts: str, **more: Any) -> Json:
    return {"content": [{"type": "text", "text": each} for each in texts], **more}


def failed(message: str) -> Json:
    return text(message, isError=True)


def structured(value: Json) -> Mapping[Revision, Any]:
    """The JSON as text, and as it is from 2025-06-18 on."""
    written = json.dumps(value)
    return {V1: text(written), V3: text(written, structuredContent=value)}


def blocks(*, audio: bool, links: bool) -> Json:
    note = {"uri": URI, "mimeType": "text/plain", "text": "note"}
    sound = {"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}
    link = {"type": "resource_link", "name": "note", "uri": URI}
    return {
        "content": [
            {"type": "text", "text": "text ü"},
            {"type": "image", "data": "iVBORw==", "mimeType": "image/png"},
            sound if audio else {"type": "text", "text": "[audio/wav audio]"},
            link if links else {"type": "text", "text": f"note\n{URI}"},
            {"type": "resource", "resource": note},
        ]
    }


def contents(uri: str, **more: Any) -> Json:
    return {"contents": [{"uri": uri, **more}]}


def messages(*said: tuple[str, str], **more: Any) -> Json:
    made = [{"role": role, "content": {"type": "text", "text": each}} for role, each in said]
    return {"messages": made, **more}


def completed(*values: str) -> Json:
    return {"completion": {"values": [*values], "total": len(values), "hasMore": False}}


def definition(**more: Any) -> Json:
    return {"name": "mapping", "description": "Give it back.", "inputSchema": TAKEN, **more}


HINT: Json = {"annotations": {"readOnlyHint": True}}
GIVEN = "accept {'name': 'Bo'}"
NO_FORM = "the client did not declare: elicitation.form"
FORM_ASKED: Mapping[Revision, Any] = {V1: failed(NO_FORM), V3: text(GIVEN)}
TEMPLATE = "test://people/{name}{?age}"

KINDS = [
    Kind("tool-function", ("tool", "plain", {}), always(text("thread"))),
    Kind("tool-coroutine", ("tool", "coroutine", {}), always(text("loop"))),
    Kind("tool-mapping", ("tool", "mapping", {"a": 5}), structured({"a": 5, "b": [None, 0.5]})),
    Kind(
        "tool-class",
        ("tool", "record", {"place": {"city": "Rome"}}),
        structured({"city": "ROME", "height": 1.0}),
    ),
    Kind(
        "tool-blocks",
        ("tool", "blocks", {}),
        {
            V1: blocks(audio=False, links=False),
            V2: blocks(audio=True, links=False),
            V3: blocks(audio=True, links=True),
        },
    ),
    Kind(
        "tool-whole-result",
        ("tool", "whole", {}),
        {V1: text("whole"), V3: text("whole", structuredContent={"n": 1})},
    ),
    Kind("tool-nothing", ("tool", "nothing", {}), always(text())),
    Kind("tool-error", ("tool", "refuses", {}), always(failed("not on a Sunday"))),
    Kind(
        "tool-exception",
        ("tool", "breaks", {}),
        always(failed("the server failed to carry this out (error 1)")),
    ),
    Kind(
        "tool-protocol-error",
        ("tool", "errs", {}),
        always({"error": [4711, "no such thing", {"thing": "x"}]}),
    ),
    Kind(
        "tool-bad-argument",
        ("tool", "mapping", {"a": "five"}),
        always(failed('mapping: a: "five" is not of type "integer"')),
    ),
    Kind(
        "tool-unknown",
        ("tool", "nope", {}),
        always({"error": [-32602, "no tool named 'nope'", {"name": "nope"}]}),
    ),
    Kind(
        "tool-definition",
        ("definition", "mapping"),
        {
            V1: definition(),
            V2: definition(**HINT),
            V3: definition(**HINT, title="Map", outputSchema={"type": "object"}),
        },
    ),
    Kind(
        "progress",
        ("progress", "progresses"),
        {
            V1: {"told": [[0.5, 1, None], [1, 1, None]], **text("done")},
            V2: {"told": [[0.5, 1, "half"], [1, 1, None]], **text("done")},
        },
    ),
    Kind("logs", ("logs", "logs"), always({"told": [["warning", "kinds", {"left": 1}]], **text("done")})),
    Kind("changes", ("changes", "changes", URI), always({"told": [URI, "tools"]})),
    Kind("elicits-coroutine", ("tool", "awaits", {}), FORM_ASKED),
    Kind("elicits-generator", ("tool", "yields", {}), FORM_ASKED),
    Kind("elicits-function", ("tool", "returns", {}), {V1: failed(NO_FORM), V3: text(f"{GIVEN} asked")}),
    Kind(
        "elicits-page",
        ("tool", "visits", {}),
        {V1: failed("the client did not declare: elicitation.url"), V4: text("accept None")},
    ),
    Kind("samples", ("tool", "samples", {}), always(text("m: hello"))),
    Kind(
        "samples-with-tools",
        ("tool", "samples_with_tools", {}),
        {
            V1: failed("the client did not declare: sampling.tools"),
            V4: text("toolUse: look {'at': 'it'}"),
        },
    ),
    Kind("roots", ("tool", "lists_roots", {}), always(text("file:///home"))),
    Kind("two-questions", ("tool", "asks_at_once", {}), {V1: failed(NO_FORM), V3: text("accept m")}),
    Kind("resource-text", ("read", URI), always(contents(URI, mimeType="text/plain", text="text ü"))),
    Kind("resource-binary", ("read", "test://picture"), always(contents("test://picture", blob="AP8="))),
    Kind(
        "resource-template",
        ("read", "test://people/Ada%20L?age=36"),
        always(contents("test://people/Ada%20L?age=36", text="Ada L 36")),
    ),
    Kind(
        "resource-unknown",
        ("read", "test://nowhere"),
        {
            since: {"error": [code, "no resource at 'test://nowhere'", {"uri": "test://nowhere"}]}
            for since, code in ((V1, -32002), (V5, -32602))
        },
    ),
    Kind(
        "resource-asks",
        ("read", "test://asks"),
        {V1: {"error": [-32603, NO_FORM, None]}, V3: contents("test://asks", text=GIVEN)},
    ),
    Kind(
        "resource-templates",
        ("list", "resource_templates"),
        always({"resourceTemplates": [{"name": "template", "uriTemplate": TEMPLATE}]}),
    ),
    Kind(
        "prompt",
        ("prompt", "says", {"name": "Ada"}),
        always(messages(("user", "Greet Ada, be kind."), description="Ask for a greeting.")),
    ),
    Kind("prompt-messages", ("prompt", "talks", {}), always(messages(("user", "one"), ("assistant", "two")))),
    Kind(
        "prompt-bad-argument",
        ("prompt", "says", {}),
        always({"error": [-32602, "says: missing a required argument: 'name'", {"name": "says"}]}),
    ),
    Kind(
        "prompt-asks",
        ("prompt", "asks_first", {}),
        {V1: {"error": [-32603, NO_FORM, None]}, V3: messages(("user", GIVEN))},
    ),
    Kind(
        "completion-prompt",
        ("complete", "prompt", "says", "tone", "prompt", None),
        always(completed("prompt-tone-[]")),
    ),
    Kind(
        "completion-template",
        ("complete", "resource", TEMPLATE, "name", "", None),
        always(completed("resource-name-[]", "other")),
    ),
    Kind(
        "completion-context",
        ("complete", "prompt", "says", "tone", "prompt", {"name": "Ada"}),
        {V3: completed("prompt-tone-[('name', 'Ada')]")},
    ),
]
"""What has no answer in a revision is not asked there."""


# our client, in the form that the others have -----------------------------------------------------


class Adapter:
    """Our client as `kinds.py` wants it."""

    def __init__(self) -> None:
        self.logs: list[Any] = []
        self.client: Client

    def on_event(self, event: Any) -> None:
        if isinstance(event, LogReceived):
            self.logs.append([event.level, event.logger, event.data])

    async def ask(self, verb: Any, *arguments: Any, **options: Any) -> Any:
        try:
            result = await verb(*arguments, **options)
        except McpError as error:
            raise kinds.Refused(error.code, error.message, error.data) from None
        return unstructure(result, self.client.revision)

    async def call_tool(self, name: str, arguments: Json, on_progress: Any = None) -> Any:
        options: dict[str, Any] = {}
        tasks: list[asyncio.Task[None]] = []
        if on_progress is not None:

            def told(event: ProgressReported) -> None:
                progress = on_progress(event.progress, event.total, event.message)
                tasks.append(asyncio.ensure_future(progress))

            options["on_progress"] = told
        if self.client.revision is V5:
            options["log_level"] = "info"
        result = await self.ask(self.client.call_tool, name, arguments, **options)
        await asyncio.gather(*tasks)
        return result

    async def want_logs(self, level: str) -> None:
        if self.client.revision is not V5:
            await self.client.set_log_level(level)

    async def changes(self, tool: str, uri: str) -> set[str]:
        told: set[str] = set()
        async with self.client.listen(tools=True, resources=[uri]) as changes:
            await self.call_tool(tool, {})
            async for change in changes:
                assert isinstance(change, (ListChanged, ResourceUpdated))
                told.add(change.uri if isinstance(change, ResourceUpdated) else change.kind.value)
                if len(told) == 2:
                    changes.close()
        return told

    async def read(self, uri: str) -> Any:
        return await self.ask(self.client.read_resource, uri)

    async def prompt(self, name: str, arguments: dict[str, str]) -> Any:
        return await self.ask(self.client.get_prompt, name, arguments)

    async def complete(self, kind: str, named: str, argument: str, value: str, context: Any) -> Any:
        reference = {"type": f"ref/{kind}", "name" if kind == "prompt" else "uri": named}
        return await self.ask(self.client.complete, reference, argument, value, context)

    async def list(self, what: str) -> Any:
        return await self.ask(getattr(self.client, f"list_{what}"))


def elicited(params: Any) -> Json:
    page = isinstance(params, ElicitRequestURLParams)
    return {"action": "accept"} if page else {"action": "accept", "content": {"name": "Bo"}}


def sampled(params: Any) -> Json:
    if params.tools:
        use = {"type": "tool_use", "id": "1", "name": "look", "input": {"at": "it"}}
        return {"role": "assistant", "content": [use], "model": "m", "stopReason": "toolUse"}
    return {"role": "assistant", "content": {"type": "text", "text": "hello"}, "model": "m"}


@asynccontextmanager
async def connect(server: Mapping[str, Any]) -> AsyncIterator[Adapter]:
    target = server["target"]
    adapter = Adapter()
    async with sansmcp_asyncio.connect(
        target[0] if len(target) == 1 else target,
        mode=Pin(Revision(server["revision"])),
        on_event=adapter.on_event,
        on_elicit=elicited,
        on_sample=sampled,
        on_roots=lambda params: {"roots": [{"uri": "file:///home"}]},
        capabilities=ClientCapabilities(sampling=SamplingCapability(tools={})),
    ) as client:
        assert client.revision == server["revision"]
        adapter.client = client
        yield adapter


# what came of it ----------------------------------------------------------------------------------


@functools.cache
def outcomes(client: str, carrier: str) -> dict[str, Json] | Exception:
    """What the client was answered: by revision, then by kind; or why there is nothing."""

    async def run() -> dict[str, Json]:
        async with asyncio.timeout(LIMIT), AsyncExitStack() as stack:
            servers = []
            for revision in SDKS[client][1] if client in SDKS else ALL_REVISIONS:
                if carrier == "stdio":
                    target = [sys.executable, str(SERVER), revision.value]
                else:
                    serving = HttpServing(make_app(), revisions=[revision])
                    target = [(await stack.enter_async_context(serving)).url]
                asks = {kind.name: kind.ask for kind in KINDS if min(kind.answers) <= revision}
                servers.append({"revision": revision.value, "target": target, "asks": asks})
            job = {"servers": servers}
            if client not in SDKS:
                return await kinds.use_all(connect, job)
            return await through(client, job)

    try:
        return asyncio.run(run())
    except Exception as error:  # told by each test that wanted to know, and not waited for again
        return error


async def through(client: str, job: Json) -> dict[str, Json]:
    """The same, by the script of an SDK."""
    python = next(install.python for install in VENVS if install.name == client)
    process = await asyncio.create_subprocess_exec(
        str(python),
        str(SCRIPTS / SDKS[client][0]),
        json.dumps(job),
        env=environment(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()
    said: dict[str, Json] = json.loads(out)
    return said


DEFAULTS: Json = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "isError": False}
"""What one SDK adds to what it is answered, and another leaves out."""


def plain(value: Any) -> Any:
    """Without what is the same in every answer, and what an SDK adds to it."""
    if isinstance(value, list):
        return [plain(part) for part in value]
    if not isinstance(value, dict):
        return value
    kept = {key: plain(part) for key, part in value.items() if key != "_meta"}
    return {key: part for key, part in kept.items() if key not in DEFAULTS or part != DEFAULTS[key]}


CLIENTS = ["ours", *(pytest.param(name, marks=pytest.mark.interop) for name in SDKS)]


@pytest.mark.req("A17", "A18", "D3", "E12", "E15", "F1", "F2", "G1", "G2", "H1", "I1", "I2", "I3")
@pytest.mark.req("J1", "O1", "O8", "O9", "V12", "W3", "W5", "W6", "W9", "W12", "W14", "Z1", "Z2")
@pytest.mark.filterwarnings("ignore:on_:DeprecationWarning")
@pytest.mark.case("G-06", "M-04")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("carrier", ["stdio", "http"])
@pytest.mark.parametrize("client", CLIENTS)
def test_kind_means_the_same_to_every_client_in_every_revision(client: str, carrier: str, kind: Kind) -> None:
    if client in SDKS:
        needs(client if client == "mcp-1.30.0" else f"{client}-auto")
    found = outcomes(client, carrier)
    if isinstance(found, Exception):
        raise AssertionError(f"{client} over {carrier} came to nothing") from found
    revisions = SDKS[client][1] if client in SDKS else ALL_REVISIONS
    assert [*sorted(found)] == [revision.value for revision in revisions]
    expected = {each.value: kind.answer(each) for each in revisions if min(kind.answers) <= each}
    got = {revision: plain(found[revision][kind.name]) for revision in expected}
    assert got == expected
