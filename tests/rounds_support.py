"""Questions of servers, for the tests of what a client does with them."""

from __future__ import annotations

from typing import Any

from sansmcp import (
    Call,
    ClientCapabilities,
    InputRequired,
    Round,
)
from sansmcp.types import (
    ElicitationCapability,
    RootsCapability,
    SamplingCapability,
)

from .support import LEGACY, MODERN, Driver, connected

FORMS = [v for v in LEGACY if v >= "2025-06-18"] + [MODERN]
"""Revisions that have elicitation."""
URLS = ["2025-11-25", MODERN]

EVERYTHING = ClientCapabilities(
    roots=RootsCapability(),
    sampling=SamplingCapability(tools={}),
    elicitation=ElicitationCapability(form={}, url={}),
)
PLAIN = ClientCapabilities(
    roots=RootsCapability(), sampling=SamplingCapability(), elicitation=ElicitationCapability()
)

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 2, "default": "nobody"}},
    "required": ["name"],
}
FORM = ("elicitation/create", {"message": "who?", "requestedSchema": SCHEMA})
PAGE = (
    "elicitation/create",
    {"mode": "url", "message": "go", "url": "https://example.com/s3cret", "elicitationId": "e1"},
)
SAMPLE = (
    "sampling/createMessage",
    {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 9},
)
WITH_TOOLS = (SAMPLE[0], {**SAMPLE[1], "tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
ROOTS: tuple[str, Any] = ("roots/list", {})

ACCEPTED = {"action": "accept", "content": {"name": "ada"}}
SAMPLED = {"role": "assistant", "content": {"type": "text", "text": "!"}, "model": "m"}
LISTED = {"roots": [{"uri": "file:///x"}]}


def asked(driver: Driver, version: str, question: tuple[str, Any], key: str = "k") -> Round | None:
    """The server asks: by a request of its own, or by its answer to the request sent last."""
    before = len(driver.of(InputRequired))
    method, params = question
    if version == MODERN:
        driver.reply(required({key: question}, state="s1"))
    else:
        driver.receive({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
    found = driver.of(InputRequired)[before:]
    return found[0].round if found else None


def required(questions: Any = None, state: Any = None) -> dict[str, Any]:
    """An InputRequiredResult."""
    body: dict[str, Any] = {"resultType": "input_required"}
    if questions is not None:
        body["inputRequests"] = {k: {"method": m, "params": p} for k, (m, p) in questions.items()}
    if state is not None:
        body["requestState"] = state
    return body


def provide(driver: Driver, where: Round | Call, answers: Any, **options: Any) -> bool:
    done: bool = driver.engine.provide_input(where, answers, now=driver.now, **options)
    driver.drain()
    return done


def answer_on_wire(driver: Driver, version: str, key: str = "k") -> Any:
    """What the server got as the answer to `key`."""
    if version == MODERN:
        return driver.last["params"]["inputResponses"][key]
    assert driver.last["id"] == key
    return driver.last["result"]


def able(version: str = MODERN, **options: Any) -> Driver:
    options.setdefault("capabilities", EVERYTHING)
    return connected(version, **options)


def sizes(driver: Driver) -> dict[str, int]:
    """The tables that are not empty."""
    stats = driver.engine.stats()
    return {name: size for name, size in stats.items() if size and name not in ("ended_ids", "pages")}
