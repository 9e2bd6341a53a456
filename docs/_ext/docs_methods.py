"""Methods × revisions, and what this version does with each: tried on engines, not written down."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Final

from docs_text import table

import sansmcp
from sansmcp import events
from sansmcp.revisions import ALL_REVISIONS, LATEST_LEGACY, Era, Revision
from sansmcp.session.subscriptions import ACKNOWLEDGED, META_SUBSCRIPTION_ID
from sansmcp.types import ElicitationCapability, RootsCapability
from sansmcp.types.methods import METHODS, Direction, Kind, MethodSpec

_ARROWS: Final = {
    Direction.CLIENT_TO_SERVER: "→",
    Direction.SERVER_TO_CLIENT: "←",
    Direction.EMBEDDED: "↩",
}


def method_rows(kind: Kind) -> dict[str, list[str]]:
    """For each method, a cell per revision: which way it goes there."""
    rows = {}
    for name, spec in METHODS.items():
        if spec.kind is kind:
            rows[name] = [_cell(spec, revision) for revision in ALL_REVISIONS]
    return rows


def _cell(spec: MethodSpec, revision: Revision) -> str:
    directions = spec.directions(revision)
    return " ".join(arrow for direction, arrow in _ARROWS.items() if direction in directions) or "·"


def methods_table(kind: Kind) -> str:
    """Methods × revisions, and what this version does with each."""
    verbs, served = client_verbs(), server_side()
    surfaced = surfaced_notifications()
    head = ["method", *(str(r) for r in ALL_REVISIONS)]
    rows = []
    if kind is Kind.REQUEST:
        head += ["client verb", "server"]
        for name, cells in method_rows(kind).items():
            asked = "<br>".join(f"`{verb}`" for verb in verbs.get(name, ())) or _fallback(name)
            rows.append([f"`{name}`", *cells, asked, served.get(name, "–")])
    else:
        head += ["arrives as"]
        for name, cells in method_rows(kind).items():
            rows.append([f"`{name}`", *cells, surfaced.get(name, "–")])
    return table(head, rows)


def _fallback(name: str) -> str:
    spec = METHODS[name]
    if name == "initialize":
        return "engine"
    return "`request`" if Direction.CLIENT_TO_SERVER in spec.spans else "–"


_SAMPLES: Final[Mapping[str, Any]] = {
    "name": "x",
    "uri": "x:y",
    "ref": {"type": "ref/prompt", "name": "x"},
    "argument": "a",
    "value": "v",
    "level": "info",
}


def client_verbs() -> dict[str, list[str]]:
    """Which verb of `ClientEngine` asks for which method: tried on an engine that never connects."""
    verbs: dict[str, list[str]] = {}
    for name, function in inspect.getmembers(sansmcp.ClientEngine, inspect.isfunction):
        if name.startswith("_") or name in ("request", "notify", "respond", "resume", "close"):
            continue
        if inspect.signature(function).return_annotation != "Call":
            continue
        needed = [
            p.name
            for p in inspect.signature(function).parameters.values()
            if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD and p.name != "self"
        ]
        engine = sansmcp.ClientEngine(sansmcp.Implementation("docs", "0"), now=0.0)
        options = {"tools": True} if name == "listen" else {}
        call = getattr(engine, name)(*(_SAMPLES[p] for p in needed), now=0.0, **options)
        verbs.setdefault(call.method, []).append(name)
    return verbs


def _session(revision: Revision, **capabilities: Any) -> sansmcp.ServerEngine:
    from sansmcp.types import structure

    everything = {
        name: {"listChanged": True, "subscribe": True}
        for name in ("tools", "resources", "prompts", "completions", "logging")
    }
    everything["tasks"] = {"list": {}, "cancel": {}}
    declared = structure(everything, sansmcp.ServerCapabilities, revision)
    engine = sansmcp.ServerEngine(sansmcp.Implementation("docs", "0"), now=0.0, capabilities=declared)
    if revision.era is Era.LEGACY:
        params = {
            "protocolVersion": revision.value,
            "capabilities": capabilities,
            "clientInfo": {"name": "docs", "version": "0"},
        }
        engine.receive_message({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, now=0.0)
        engine.receive_message({"jsonrpc": "2.0", "method": "notifications/initialized"}, now=0.0)
        list(engine.events())
    return engine


def _params(revision: Revision) -> dict[str, Any]:
    if revision.era is Era.LEGACY:
        return {}
    prefix = "io.modelcontextprotocol/"
    return {"_meta": {prefix + "protocolVersion": revision.value, prefix + "clientCapabilities": {}}}


def server_side() -> dict[str, str]:
    """What a server does with each request of a client: tried on an engine that declares everything."""
    slots = sansmcp.App("docs")._slots
    done: dict[str, str] = {}
    for name, spec in METHODS.items():
        if spec.kind is not Kind.REQUEST:
            continue
        if Direction.CLIENT_TO_SERVER not in spec.spans:
            done[name] = "asks"
            continue
        if name == "initialize":
            done[name] = "engine"
            continue
        verdicts = set()
        for revision in ALL_REVISIONS:
            if not spec.goes(Direction.CLIENT_TO_SERVER, revision):
                continue
            engine = _session(revision)
            params = {**_params(revision), "level": "info", "uri": "x:y", "notifications": {}}
            engine.receive_message({"jsonrpc": "2.0", "id": 1, "method": name, "params": params}, now=0.0)
            got = list(engine.events())
            if any(isinstance(event, events.RequestReceived) for event in got):
                verdicts.add("`App`" if name in slots else "raw")
            elif any(isinstance(e, events.SendResponse) and "result" in e.message for e in got):
                verdicts.add("engine")
            elif any(isinstance(event, events.SendNotification) for event in got):
                verdicts.add("engine")  # it is answered at its end
            else:
                verdicts.add("not yet")
        done[name] = ", ".join(sorted(verdicts))
    return done


_NOTED: Final[Mapping[str, dict[str, Any]]] = {
    "notifications/message": {"level": "info", "data": 1},
    "notifications/resources/updated": {"uri": "x:y"},
    "notifications/elicitation/complete": {"elicitationId": "e"},
}


def surfaced_notifications() -> dict[str, str]:
    """The event that each notification becomes at its receiver: tried on engines in use."""
    shown: dict[str, str] = {}
    for name, spec in METHODS.items():
        if spec.kind is Kind.NOTIFICATION:
            names: list[str] = []
            for direction, receive in (
                (Direction.SERVER_TO_CLIENT, _at_client),
                (Direction.CLIENT_TO_SERVER, _at_server),
            ):
                if direction in spec.spans:
                    newest = max(r for r in ALL_REVISIONS if spec.goes(direction, r))
                    if direction is Direction.SERVER_TO_CLIENT and name == "notifications/cancelled":
                        newest = LATEST_LEGACY  # a modern server sends no requests that it could cancel
                    told = receive(name, newest)
                    if told not in names:
                        names.append(told)
            shown[name] = ", ".join(names)
    return shown


def _at_client(name: str, revision: Revision) -> str:
    engine = sansmcp.ClientEngine(
        sansmcp.Implementation("docs", "0"),
        now=0.0,
        mode=sansmcp.Pin(revision),
        capabilities=sansmcp.ClientCapabilities(
            roots=RootsCapability(), elicitation=ElicitationCapability(url={})
        ),
        check_capabilities=False,
    )
    engine.connect(now=0.0)
    if revision.era is Era.LEGACY:
        result = {
            "protocolVersion": revision.value,
            "capabilities": {},
            "serverInfo": {"name": "x", "version": "0"},
        }
        engine.receive_message({"jsonrpc": "2.0", "id": 1, "result": result}, now=0.0)
        # open requests of the server's, so that there is something to cancel and to complete
        page = {"mode": "url", "elicitationId": "e", "url": "x:y", "message": "go"}
        for number, (method, asked) in enumerate((("elicitation/create", page), ("roots/list", {})), start=8):
            question = {"jsonrpc": "2.0", "id": number, "method": method, "params": asked}
            engine.receive_message(question, now=0.0)
    call = engine.call_tool("x", now=0.0, progress=True)
    params = _NOTED.get(name, {"progressToken": call.progress_token, "progress": 1, "requestId": 9})
    if revision.era is Era.MODERN:
        params = {**params, **_listening(engine, open=name != ACKNOWLEDGED)}
    list(engine.events())
    return _told(engine, {"jsonrpc": "2.0", "method": name, "params": params})


def _listening(engine: sansmcp.ClientEngine, *, open: bool) -> dict[str, Any]:
    """Params of what a server tells on a subscription to everything."""
    call = engine.listen(tools=True, prompts=True, resource_list=True, resources=["x:y"], now=0.0)
    granted = call.params["notifications"]
    params = {"_meta": {META_SUBSCRIPTION_ID: call.request_id}, "notifications": granted}
    if open:
        engine.receive_message({"jsonrpc": "2.0", "method": ACKNOWLEDGED, "params": params}, now=0.0)
    return params


def _at_server(name: str, revision: Revision) -> str:
    if name == "notifications/initialized":
        return "the engine's state"
    engine = _session(revision, roots={"listChanged": True})
    engine.receive_message(
        {"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": _params(revision)}, now=0.0
    )
    token = 1
    if revision.era is Era.LEGACY:
        token = engine.request("ping", now=0.0, progress=True).progress_token  # type: ignore[assignment]
    list(engine.events())
    params = _NOTED.get(name, {"progressToken": token, "progress": 1, "requestId": 5})
    return _told(engine, {"jsonrpc": "2.0", "method": name, "params": params})


def _told(engine: Any, message: dict[str, Any]) -> str:
    engine.receive_message(message, now=0.0)
    event = next(engine.events(), None)
    return "–" if event is None else f"`{type(event).__name__}`"
