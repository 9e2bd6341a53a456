"""Ask a server each thing of a list, through any SDK: see `tests/interop/test_handler_kinds.py`.

An adapter has what an SDK calls its client; every method of it gives JSON as the SDK writes it, or
raises `Refused`. Nothing here is of one SDK.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

PATIENCE = 20.0


class Refused(Exception):  # noqa: N818  (that is an outcome like others)
    """The server answered with an error: its code, message and data are the arguments."""


async def outcome(adapter: Any, ask: Sequence[Any]) -> dict[str, Any]:
    """What comes of one thing that is asked: the result, and what was told meanwhile."""
    verb, *rest = ask
    try:
        async with asyncio.timeout(PATIENCE):
            return await VERBS[verb](adapter, *rest)
    except Refused as refused:
        return {"error": list(refused.args)}


async def _tool(adapter: Any, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = await adapter.call_tool(name, arguments)
    return result


async def _progress(adapter: Any, name: str) -> dict[str, Any]:
    told: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        told.append([progress, total, message])

    result = await adapter.call_tool(name, {}, on_progress)
    await _until(lambda: len(told) >= 2)
    return {"told": told, **result}


async def _logs(adapter: Any, name: str) -> dict[str, Any]:
    await adapter.want_logs("info")
    result = await adapter.call_tool(name, {})
    await _until(lambda: adapter.logs)
    return {"told": adapter.logs, **result}


async def _changes(adapter: Any, name: str, uri: str) -> dict[str, Any]:
    return {"told": sorted(await adapter.changes(name, uri))}


async def _until(done: Callable[[], object]) -> None:
    """What a server told before its result, an SDK may hand on after it."""
    while not done():  # noqa: ASYNC110  (what says so is a list)
        await asyncio.sleep(0.01)


async def _definition(adapter: Any, name: str) -> dict[str, Any]:
    (found,) = [tool for tool in (await adapter.list("tools"))["tools"] if tool["name"] == name]
    return dict(found)


VERBS: dict[str, Callable[..., Awaitable[dict[str, Any]]]] = {
    "tool": _tool,
    "progress": _progress,
    "logs": _logs,
    "changes": _changes,
    "read": lambda adapter, uri: adapter.read(uri),
    "prompt": lambda adapter, name, arguments: adapter.prompt(name, arguments),
    "complete": lambda adapter, *asked: adapter.complete(*asked),
    "definition": _definition,
    "list": lambda adapter, what: adapter.list(what),
}


Connect = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[Any]]
"""Connects to one server, ``{"revision": …, "target": […], "asks": {…}}``, and gives an adapter."""


async def use_all(connect: Connect, job: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Each server of the job: {revision: {kind: what came of it}}."""
    said: dict[str, dict[str, Any]] = {}

    async def use(server: Mapping[str, Any]) -> None:
        outcomes = said[server["revision"]] = {}
        async with connect(server) as adapter:
            for kind, ask in server["asks"].items():
                outcomes[kind] = await outcome(adapter, ask)

    async with asyncio.TaskGroup() as group:
        for server in job["servers"]:
            group.create_task(use(server))
    return said


def main(connect: Connect, job: str) -> None:
    print(json.dumps(asyncio.run(use_all(connect, json.loads(job)))))
