"""Write down what goes into an engine or a transport and what comes out of it, and run it again.

    engine = record(ClientEngine(info, now=0.0), log.write, made_with={"info": info})
    ...
    outcome = replay(lines, ClientEngine(info, now=0.0))
    outcome.divergence      # None: the same bytes and the same events, step by step

A log is JSON lines: how the machine was made, then every input and verb with its arguments and the time,
every pull with what it gave. It holds everything that was said, secrets too, unless they are hidden; a
step of which something was hidden cannot be run again.
"""

from __future__ import annotations

import inspect
import json
import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from importlib import import_module
from typing import Any, Final, TypeAlias, TypeVar, cast

import attrs

from .errors import LocalProtocolError, McpError, SansmcpError
from .events import Event
from .revisions import LATEST
from .session.calls import Call, IncomingRequest
from .session.rounds import Round
from .types.base import WireObject
from .types.convert import structure, unstructure
from .wire.jsoncodec import JsonValue

M = TypeVar("M")

Hide: TypeAlias = Callable[[str], str]
"""Gives back a text without its secrets; the same text if there are none."""

_FORMAT: Final = 1
_PULLS: Final = {"next_op": "op", "next_event": "event", "next_timeout": "timeout"}
_HANDLES: Final = {"$call": Call, "$request": IncomingRequest, "$round": Round}
_LEFT_OUT: Final = frozenset({"message", "parser", "verifier"})
"""Members of events that say nothing more: the bytes are beside the message, the rest is code."""

_SECRETS: Final = (
    re.compile(r'("(?:requestState|[a-z_]*(?:token|secret|password|verifier))"\s*:\s*")[^"]+'),
    re.compile(
        r"((?:^|\n)(?:authorization|proxy-authorization|cookie|set-cookie|mcp-session-id):\s*)[^\r\n]+",
        re.IGNORECASE,
    ),
    re.compile(r"([?&](?:code|state|token|access_token)=)[^&\s\"]+"),
)


def hide_secrets(text: str) -> str:
    """`text` without states of servers, tokens and session ids, where their names show them.

    What one piece of bytes begins and the next one ends is not seen.
    """
    for pattern in _SECRETS:
        text = pattern.sub(r"\1(hidden)", text)
    return text


# values ------------------------------------------------------------------------------------------


class _Values:
    """Values as JSON and back. Handles are numbered by when they are first seen."""

    def __init__(self) -> None:
        self._numbers: dict[object, int] = {}
        self._handles: dict[str, list[object]] = {kind: [] for kind in _HANDLES}

    def write(self, value: Any) -> JsonValue:
        match value:
            case Enum():
                return {"$enum": f"{type(value).__name__}.{value.name}"}
            case None | bool() | int() | float() | str():
                return value
            case bytes() | bytearray() | memoryview():
                return _write_bytes(bytes(value))
            case Call() | IncomingRequest() | Round():
                return self._handle(value)
            case BaseException():
                return _write_error(value)
            case WireObject():
                try:
                    return {"$type": type(value).__name__, "value": unstructure(value, LATEST)}
                except LocalProtocolError:
                    return {"$object": type(value).__name__}
            case Mapping():
                if any(not isinstance(key, str) or key.startswith("$") for key in value):
                    return {"$map": [[self.write(k), self.write(v)] for k, v in value.items()]}
                return {key: self.write(item) for key, item in value.items()}
            case list() | tuple():
                return [self.write(item) for item in value]
            case _ if attrs.has(type(value)):
                return {"$attrs": type(value).__name__, **self.members(value)}
            case _:
                return {"$object": type(value).__name__}

    def members(self, value: Any) -> dict[str, JsonValue]:
        """The members of an event, an op or the like."""
        return {
            field.name: self.write(getattr(value, field.name))
            for field in attrs.fields(type(value))
            if not field.name.startswith("_") and field.name not in _LEFT_OUT
        }

    def _handle(self, value: object) -> JsonValue:
        kind = next(name for name, cls in _HANDLES.items() if isinstance(value, cls))
        number = self._numbers.get(value)
        if number is None:
            known = self._handles[kind]
            known.append(value)
            number = self._numbers[value] = len(known)
        return {kind: number}

    def read(self, value: Any) -> Any:
        """The value again. Raises LocalProtocolError for what a log cannot bring back."""
        if isinstance(value, list):
            return [self.read(item) for item in value]
        if not isinstance(value, dict):
            return value
        tag = next(iter(value), "")
        if not tag.startswith("$"):
            return {key: self.read(item) for key, item in value.items()}
        inner = value[tag]
        try:
            match tag:
                case "$text":
                    return inner.encode()
                case "$base64":
                    return b64decode(inner)
                case "$map":
                    return {self.read(k): self.read(v) for k, v in inner}
                case "$enum":
                    kind, _, name = inner.partition(".")
                    return _class(kind)[name]
                case "$type":
                    return structure(value["value"], _class(inner), LATEST)
                case "$mcp":
                    return McpError(*inner)
                case "$error":
                    return _class(inner)(value["text"])
                case "$attrs":
                    given = {name: self.read(item) for name, item in value.items() if name != tag}
                    return _class(inner)(**given)
                case _ if tag in _HANDLES:
                    return self._handles[tag][inner - 1]
        except Exception as error:  # whatever classes say to members that they never had
            raise LocalProtocolError(f"not to be brought back: {tag} {inner!r:.80}") from error
        raise LocalProtocolError(f"an argument that a log cannot hold: {inner!r:.80}")


def _write_bytes(data: bytes) -> JsonValue:
    try:
        return {"$text": data.decode()}
    except UnicodeDecodeError:
        return {"$base64": b64encode(data).decode()}


def _write_error(error: BaseException) -> JsonValue:
    if type(error) is McpError:
        return {"$mcp": [error.code, error.message, error.data]}
    return {"$error": type(error).__name__, "text": str(error)}


def _class(name: str) -> Any:
    for module in ("sansmcp", "sansmcp.types", "sansmcp.errors", "sansmcp.ops"):
        found = getattr(import_module(module), name, None)
        if isinstance(found, type):
            return found
    raise KeyError(name)


def _out(values: _Values, kind: str, given: object) -> dict[str, JsonValue]:
    if given is None or not attrs.has(type(given)):
        return {"out": kind, "value": cast(JsonValue, given)}
    return {"out": kind, "is": type(given).__name__, **values.members(given)}


def describe_event(event: Event) -> dict[str, JsonValue]:
    """One event as a log has it: its class and members as plain JSON. For tests and traces."""
    return _out(_Values(), "event", event)


# recording ---------------------------------------------------------------------------------------


class _Log:
    def __init__(self, write: Callable[[str], object], hide: Hide | None) -> None:
        self.values = _Values()
        self._write = write
        self._hide = hide

    def line(self, entry: Mapping[str, JsonValue]) -> None:
        shown: JsonValue = dict(entry)
        if self._hide is not None:
            shown = _hidden(shown, self._hide)
            if shown != entry:
                shown = {**cast("dict[str, JsonValue]", shown), "hidden": True}
        self._write(json.dumps(shown, ensure_ascii=False, separators=(",", ":")) + "\n")


def _hidden(value: JsonValue, hide: Hide) -> JsonValue:
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, list):
        return [_hidden(item, hide) for item in value]
    if isinstance(value, dict):
        # a member is shown with its name, which is what tells a secret
        return {key: _hidden_member(key, item, hide) for key, item in value.items()}
    return value


def _hidden_member(key: str, value: JsonValue, hide: Hide) -> JsonValue:
    if isinstance(value, str) and not key.startswith("$"):
        named = f'"{key}":"{value}"'
        if hide(named) != named:
            return "(hidden)"
    return _hidden(value, hide)


class _Recorder:
    """Stands in for a machine: what takes `now` is an input, what is drained is an output."""

    def __init__(self, machine: object, log: _Log, on: str) -> None:
        self._machine = machine
        self._log = log
        self._on = on

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._machine, name)
        if name == "engine":
            return _Recorder(found, self._log, "engine")
        if name == "events":
            return self._events
        if name in _PULLS:
            return lambda: self._pull(name)
        if not callable(found) or not _takes_time(found):
            return found
        return lambda *args, **options: self._call(name, found, args, options)

    def _call(self, name: str, method: Callable[..., Any], args: Any, options: Any) -> Any:
        values = self._log.values
        entry: dict[str, JsonValue] = {"in": name}
        if self._on:
            entry["on"] = self._on
        entry["args"] = [values.write(value) for value in args]
        entry["options"] = {key: values.write(value) for key, value in options.items()}
        try:
            result = method(*args, **options)
        except SansmcpError as error:
            self._log.line({**entry, "raised": _write_error(error)})
            raise
        self._log.line({**entry, "result": values.write(result)})
        return result

    def _pull(self, name: str) -> Any:
        given = getattr(self._machine, name)()
        entry = _out(self._log.values, _PULLS[name], given)
        self._log.line({**entry, "on": self._on} if self._on else entry)
        return given

    def _events(self) -> Iterator[Event]:
        while (event := self._pull("next_event")) is not None:
            yield event


def _takes_time(method: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(method).parameters
    except (TypeError, ValueError):
        return False
    return "now" in parameters or "conn" in parameters


def record(
    machine: M,
    write: Callable[[str], object],
    *,
    made_with: Mapping[str, Any] | None = None,
    hide: Hide | None = None,
) -> M:
    """Something to be used in place of `machine`, an engine or a transport, that writes all of it down.

    `write` gets one line at a time. `made_with` is what the machine was made with, for `rebuild`: of a
    transport, what its engine was made with. With `hide`, as `hide_secrets`, every text goes through it
    before it is written. Verbs are used on what is returned, or on its `engine`.
    """
    log = _Log(write, hide)
    engine = getattr(machine, "engine", machine)
    log.line(
        {
            "sansmcp": "log",
            "format": _FORMAT,
            "machine": type(machine).__name__,
            "engine": type(engine).__name__,
            "now": getattr(engine, "now", 0.0),
            "made_with": log.values.write(dict(made_with or {})),
        }
    )
    return cast(M, _Recorder(machine, log, ""))


# and again ---------------------------------------------------------------------------------------


@attrs.frozen
class Divergence:
    """The first step that did not go as it is written."""

    step: int
    """The number of its line, counted from 1."""
    reason: str
    """One line for people."""
    expected: JsonValue = attrs.field(repr=False)
    got: JsonValue = attrs.field(repr=False)


@attrs.frozen
class Replayed:
    """What came of a log that was run again."""

    steps: int
    """How many lines went as they are written."""
    divergence: Divergence | None
    """None: all of them."""


def read_log(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The lines of a log, the head first. Raises LocalProtocolError when it is none."""
    entries = []
    for number, line in enumerate(lines, 1):
        try:
            entry = json.loads(line) if line.strip() else None
        except ValueError:
            raise LocalProtocolError(f"not a log: line {number} is no JSON") from None
        if not isinstance(entry, dict):
            raise LocalProtocolError(f"not a log: line {number} is no JSON object")
        entries.append(entry)
    if not entries or entries[0].get("sansmcp") != "log":
        raise LocalProtocolError("not a log: it does not begin with how the machine was made")
    if entries[0].get("format") != _FORMAT:
        raise LocalProtocolError(f"a log of another format than {_FORMAT}")
    return entries


def rebuild(lines: Iterable[str]) -> Any:
    """A new machine like that of a log, as far as the log says how it was made.

    Raises LocalProtocolError for a transport that needs more than an engine, and where something cannot
    be brought back.
    """
    head = read_log(lines)[0]
    now = head.get("now")
    options = _Values().read(head.get("made_with"))
    if isinstance(now, bool) or not isinstance(now, int | float) or not isinstance(options, dict):
        raise LocalProtocolError("the log does not say how its machine was made, or when")
    known = {name: _class(name) for name in ("ClientEngine", "ServerEngine", "LineClient", "LineServer")}
    engine_class, machine_class = (known.get(str(head.get(part))) for part in ("engine", "machine"))
    if engine_class is None or machine_class is None:
        raise LocalProtocolError(f"how to make a {head.get('machine')} anew is not in the log: use replay()")
    try:
        engine = engine_class(now=now, **options)
    except Exception as error:  # it may have been given anything
        raise LocalProtocolError(
            f"the log does not say what its engine was made with (made_with): {type(error).__name__}"
        ) from error
    return engine if machine_class is engine_class else machine_class(engine, now=now)


def replay(lines: Iterable[str], machine: object) -> Replayed:
    """Run a log again on `machine`, which was made as the one that was recorded and not used since.

    It stops at the first step that goes another way, or of which something was hidden. Raises
    LocalProtocolError when `lines` are no log.
    """
    entries = read_log(lines)
    values = _Values()
    for number, entry in enumerate(entries[1:], 2):
        told = {key: value for key, value in entry.items() if key != "hidden"}
        if entry.get("hidden") and "in" in entry:
            reason = f"{entry['in']}: something of it was hidden, so it cannot be run again"
            return Replayed(number - 2, Divergence(number, reason, told, None))
        try:
            got = _again(values, machine, told)
        except LocalProtocolError as error:
            return Replayed(number - 2, Divergence(number, str(error), told, None))
        except Exception as error:  # of the machine: it was given what no application gives, or has a fault
            what = told.get("in") or f"the next {told.get('out')}"
            reason = f"{what}: {type(error).__name__}: {error}"
            return Replayed(number - 2, Divergence(number, reason, told, None))
        same = got.get("is") == told.get("is") if entry.get("hidden") else got == told
        if not same:
            reason = _difference(told, got)
            return Replayed(number - 2, Divergence(number, reason, told, got))
    return Replayed(len(entries) - 1, None)


def _again(values: _Values, machine: object, told: dict[str, Any]) -> dict[str, JsonValue]:
    on = told.get("on")
    if on not in (None, "engine"):
        raise LocalProtocolError(f"there is no {on!r:.80} here")
    target = getattr(machine, on) if on else machine
    if "out" in told:
        pull = next((name for name, kind in _PULLS.items() if kind == told["out"]), "")
        got = _out(values, told["out"], getattr(target, pull)() if pull else None)
        return {**got, "on": on} if on else got
    name = told.get("in")
    method = getattr(target, name, None) if isinstance(name, str) and not name.startswith("_") else None
    if not callable(method) or not _takes_time(method):
        raise LocalProtocolError(f"there is no input or verb {name!r:.80} here")
    args, options = values.read(told.get("args")), values.read(told.get("options"))
    if not isinstance(args, list) or not isinstance(options, dict):
        raise LocalProtocolError(f"{name}: the log does not say what it was given")
    kept = {key: value for key, value in told.items() if key not in ("result", "raised")}
    try:
        result = method(*args, **options)
    except SansmcpError as error:
        return {**kept, "raised": _write_error(error)}
    return {**kept, "result": values.write(result)}


def _difference(told: Mapping[str, Any], got: Mapping[str, Any]) -> str:
    what = told.get("in") or told.get("is") or f"the next {told.get('out')}"
    if "in" not in told and told.get("is") != got.get("is"):
        return f"expected {told.get('is') or 'nothing'}, got {got.get('is') or 'nothing'}"
    members = [key for key in {**told, **got} if told.get(key) != got.get(key)]
    return f"{what}: another {', '.join(members)}"
