"""Tables for the pages, made from the code: Markdown out, nothing else in.

Knows nothing of Sphinx, so that tests can ask for the same text.
"""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import attrs
from docs_era import handshake_table, probe_table, steps_table
from docs_methods import methods_table
from docs_text import attribute_docs, first_sentence, prose, summary, table

import sansmcp
from sansmcp import errors, events, limits, ops, states, stdio
from sansmcp.bridge import UNTRANSLATABLE
from sansmcp.http.legacy_session import SessionPolicy
from sansmcp.http.listener import ConnectionPolicy
from sansmcp.quirks import QUIRKS
from sansmcp.revisions import Era
from sansmcp.types.methods import Kind

PACKAGE: Final = Path(sansmcp.__file__).parent

# limits ------------------------------------------------------------------------------------------


COUNTS: Final = frozenset({"max_pending_calls", "max_waiting"})
"""Bounds that count things although their defaults look like sizes."""

SECONDS: Final = frozenset({"window", "delay"})
"""Options that are times although their defaults do not look like it."""


def shown(name: str, value: object) -> str:
    """A default as people write it."""
    if value is None or isinstance(value, bool):
        return {None: "off", True: "yes", False: "no"}[value]
    if callable(value):
        return "in memory"  # the store of sessions, which is the one that is a function
    if isinstance(value, float) or name in SECONDS:
        return f"{value:g} s"
    if isinstance(value, int) and value >= 8 * limits.KIB and value % limits.KIB == 0 and name not in COUNTS:
        unit, letters = (limits.MIB, "MiB") if value % limits.MIB == 0 else (limits.KIB, "KiB")
        return f"{value // unit} {letters}"
    return f"{value:,}".replace(",", "\u2009")


def limits_table() -> str:
    """Every member of `Limits`, with the defaults of both roles."""
    docs = attribute_docs(limits.Limits)
    rows = []
    for field in attrs.fields(limits.Limits):
        name = field.name
        client = shown(name, getattr(limits.CLIENT_LIMITS, name))
        server = shown(name, getattr(limits.SERVER_LIMITS, name))
        default = client if client == server else f"client {client}<br>server {server}"
        rows.append([f"`{field.name}`", default, docs[field.name]])
    return table(["bound", "default", "what it bounds, why, and what happens past it"], rows)


RESTART_NOTES: Final = {
    "limit": "How many times it is started again within `window`.",
    "window": "The span in which restarts are counted.",
    "delay": "How long to wait before each.",
    "legacy": "Whether a legacy server is started again too: it has lost its session.",
}


def defaults_table(cls: type[Any], notes: Mapping[str, str] | None = None) -> str:
    """Every field of a class of options, with its default."""
    docs = attribute_docs(cls)
    told = {**docs, **(notes or {})}
    rows = [[f"`{f.name}`", shown(f.name, f.default), told[f.name]] for f in attrs.fields(cls)]
    return table(["option", "default", "meaning"], rows)


# states ------------------------------------------------------------------------------------------


def table_named(name: str) -> states.Table[Any, Any]:
    return next(t for t in states.TABLES if t.name == name)


STATE_NOTES: Final[Mapping[str, Mapping[str, str]]] = {
    "client connection": {
        "IDLE": "`connect` was not called. Calls wait.",
        "PROBING": "`server/discover` was sent; it is open how the server speaks. Calls wait.",
        "INITIALIZING": "`initialize` was sent. Calls wait.",
        "READY": "The server can be used; calls leave at once.",
        "CLOSED": "Every call has ended. A new connection needs a new engine.",
    },
    "server connection": {"CLOSED": "Nothing is taken and nothing is sent any more."},
    "call": {
        "NEW": "Made, and not yet anywhere.",
        "SENT": "A request is on its way; its answer, its deadline or a cancel is awaited.",
        "SUCCEEDED": "`ResultReady` told the result.",
        "FAILED": "`RequestFailed` told the error.",
        "CANCELLED": "`RequestFailed` told a `CallCancelled`, `InputRefused` or `CallSuspended`.",
        "TIMED_OUT": "`RequestFailed` told a `CallTimeout`.",
    },
    "round": {"REFUSED": "`refuse_input` was called."},
    "subscription": {
        "OPEN": "`SubscriptionOpened` told what is granted. Changes are told.",
        "CLOSED": "`SubscriptionClosed` told why; for one that was never open, `RequestFailed`.",
    },
    "received request": {
        "OPEN": "`RequestReceived` told of it; an answer is owed.",
        "ANSWERED": "A result or an error was sent.",
        "CANCELLED": "`RequestCancelled` told of it; an answer is not sent any more.",
    },
    "dialed connection": {
        "IDLE": "Not begun yet.",
        "CONNECTING": "`Connect` or `ConnectUnix` was handed out.",
        "OPEN": "The engine speaks.",
        "GONE": "It has ended, and none will follow.",
    },
    "authorization": {
        "IDLE": "Not begun.",
        "GRANTED": "`AuthorizationGranted` told of it; what waited goes on.",
        "FAILED": "`AuthorizationRefused` told why; what waited has failed.",
    },
    "child process": {
        "IDLE": "Not started yet.",
        "SPAWNING": "`Spawn` was handed out.",
        "RUNNING": "The process is there.",
        "TERMINATING": "Second rung: its process group was asked to end.",
        "KILLING": "Third rung: its process group was killed.",
        "GONE": "It has ended, and none will follow.",
    },
}
"""For states whose name is all that the source says of them."""


def transitions_table(machine: states.Table[Any, Any]) -> str:
    """A row per state, what each input leads to, and what the state means."""
    docs = attribute_docs(type(machine.initial))
    notes = STATE_NOTES.get(machine.name, {})
    rows = []
    for state, row in machine.transitions.items():
        label = f"**{state.name}**" if state is machine.initial else state.name
        leads = [f"{trigger.name}\u00a0→\u00a0{target.name}" for trigger, target in row.items()]
        told = docs.get(state.name) or notes.get(state.name, "")
        rows.append([label, "<br>".join(leads) or "*nothing leaves it*", told])
    return table(["state", "input → next state", "meaning"], rows)


def inputs_table(machine: states.Table[Any, Any]) -> str:
    """The inputs that have a note of their own."""
    trigger = next(t for row in machine.transitions.values() for t in row)
    rows = [[f"`{name}`", doc] for name, doc in attribute_docs(type(trigger)).items() if doc]
    return table(["input", "meaning"], rows) if rows else ""


# errors ------------------------------------------------------------------------------------------


def error_tree() -> str:
    """The classes of errors as a nested list."""
    for name in (*sansmcp.__all__, "types"):
        getattr(sansmcp, name)  # names are loaded when they are used, and a class is known from then on
    lines: list[str] = []

    def visit(cls: type[BaseException], depth: int) -> None:
        lines.append(f"{'  ' * depth}- `{cls.__name__}`: {summary(cls)}")
        for child in sorted(cls.__subclasses__(), key=_declared_at):
            if child.__module__.partition(".")[0] == "sansmcp":
                visit(child, depth + 1)

    visit(errors.SansmcpError, 0)
    return "\n".join(lines)


def _declared_at(cls: type[Any]) -> tuple[str, int]:
    return (cls.__module__, inspect.getsourcelines(cls)[1])


def codes_table() -> str:
    """The codes with a defined meaning, and to whom a server may send them."""
    docs = attribute_docs(errors.ErrorCode)
    rows = []
    for code in errors.ErrorCode:
        sent = [str(e) for e in Era if errors.may_emit(code, e)]
        to = "both" if len(sent) == len(Era) else ", ".join(sent)
        rows.append([f"`{code.value}`", f"`{code.name}`", to, docs[code.name]])
    return table(["code", "name", "is sent to", "note"], rows)


def fault_groups() -> dict[str, list[errors.PeerFault]]:
    """The members of `PeerFault` under the comments that head them in the source."""
    source = inspect.getsource(errors.PeerFault).splitlines()
    groups: dict[str, list[errors.PeerFault]] = {}
    heading = ""
    for line in source:
        stripped = line.strip()
        if stripped.startswith("# "):
            heading = stripped[2:]
        match = re.match(r"([A-Z0-9_]+) = auto\(\)", stripped)
        if match:
            groups.setdefault(heading, []).append(errors.PeerFault[match.group(1)])
    return groups


def fault_uses() -> dict[str, set[str]]:
    """For each fault, the files of the package that can tell of it."""
    uses: dict[str, set[str]] = {fault.name: set() for fault in errors.PeerFault}
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and node.value.id == "PeerFault"
                and node.attr in uses
            ):
                uses[node.attr].add(path.relative_to(PACKAGE).as_posix())
    return uses


FAULT_NOTES: Final = {
    "INVALID_UTF8": "A message is not UTF-8.",
    "INVALID_JSON": "A message is no JSON: chatter, a cut line, `NaN`, a number no float can hold.",
    "JSON_TOO_DEEP": "A message is nested deeper than `max_depth`.",
    "DUPLICATE_KEY": "An object has a member twice. Only strict mode minds.",
    "MESSAGE_TOO_LARGE": "A message is larger than `max_message` and was discarded.",
    "TRUNCATED_MESSAGE": "The stream ended before the line did.",
    "BYTE_ORDER_MARK": "The stream begins with a byte order mark, which was taken off.",
    "EVENT_TOO_LARGE": "An event of an event stream is larger than allowed and was discarded.",
    "TRUNCATED_EVENT": "An event stream ended before its last event did.",
    "INVALID_ID": "An id that is neither a string nor an integer.",
    "INVALID_METHOD": "A method that is no name.",
    "INVALID_PARAMS": "Params that are no object, or that the method cannot take.",
    "NOTIFICATION_WITH_ID": "A method of a notification came with an id.",
    "REQUEST_WITHOUT_ID": "A method that wants an answer came without an id. It was not carried out.",
    "BATCH_NOT_ALLOWED": "An array of messages where the revision has none.",
    "EMPTY_BATCH": "A batch without messages.",
    "BATCH_TOO_LARGE": "A batch with more messages than `max_batch`.",
    "DUPLICATE_REQUEST_ID": "A request with the id of one that is still open. It was refused.",
    "UNKNOWN_RESPONSE_ID": "An answer to nothing that was asked.",
    "UNKNOWN_METHOD": "A method that is not served here. It was refused.",
    "MALFORMED_NOTIFICATION": "A notification without the members that give it a meaning.",
    "MISSING_META": "A modern request without a required member of `_meta`. It was refused.",
    "INVALID_META": "A modern request with an unusable member of `_meta`. It was refused.",
    "UNSUPPORTED_VERSION": "A request for a revision that is not served here. It was refused.",
    "NOT_INITIALIZED": "`notifications/initialized` came out of turn.",
    "ALREADY_INITIALIZED": "`initialize` for a session that is open, or within a batch. It was refused.",
    "INVALID_INITIALIZE_RESULT": "The answer to `initialize` is malformed in part or as a whole.",
    "INVALID_DISCOVER_RESULT": "The answer to `server/discover` is malformed in part.",
    "UNKNOWN_RESULT_TYPE": "A result of a type that nobody here knows. The call fails.",
    "INVALID_CACHE_HINT": "A `ttlMs` or `cacheScope` that is none; the result counts, and is not kept.",
    "MISSING_RESULT_TYPE": "A modern result without `resultType`; read as complete.",
    "MISSING_CONTENT": "A tool's result without `content`; read as empty.",
    "UNKNOWN_PROGRESS_TOKEN": "Progress of nothing that was asked.",
    "PROGRESS_NOT_INCREASING": "Progress that does not exceed the last.",
    "MALFORMED_CANCEL": "A cancel that names no request.",
    "CURSOR_LOOP": "A list repeats a cursor, so it would never end. The call fails.",
}
"""For faults whose name is all that the source says of them."""

HARMLESS_NOTES: Final = {
    "LATE_PROGRESS": "Progress of a call that had ended here.",
    "UNKNOWN_NOTIFICATION": "A notification that nobody here knows.",
    "AFTER_CLOSE": "It came after the engine was closed.",
}


def faults_table() -> str:
    """Every kind of fault, under the headings of the source."""
    docs, uses = attribute_docs(errors.PeerFault), fault_uses()
    parts = []
    for heading, members in fault_groups().items():
        rows = []
        for fault in members:
            told = docs[fault.name] or FAULT_NOTES.get(fault.name) or f"{_words(fault.name)}."
            if not uses[fault.name]:
                told += " *Nothing reports it yet.*"
            rows.append([f"`{fault.name}`", told])
        parts.append(f"**{heading[:1].upper()}{heading[1:]}**\n\n" + table(["fault", "meaning"], rows))
    return "\n\n".join(parts)


def _words(name: str) -> str:
    return name.replace("_", " ").capitalize()


def harmless_table() -> str:
    """Reasons to ignore a message that nobody is to blame for."""
    docs = attribute_docs(events.Harmless)
    rows = [[f"`{m.name}`", docs[m.name] or HARMLESS_NOTES.get(m.name, "")] for m in events.Harmless]
    return table(["reason", "meaning"], rows)


# events and ops ----------------------------------------------------------------------------------


def events_table(to_wire: bool) -> str:
    """The events of one kind."""
    rows = []
    for cls in vars(events).values():
        if (
            isinstance(cls, type)
            and issubclass(cls, events.Event)
            and attrs.has(cls)
            and cls.to_wire is to_wire
        ):
            fields = ", ".join(f"`{f.name}`" for f in attrs.fields(cls) if not f.name.startswith("_"))
            rows.append([f"`{cls.__name__}`", fields, summary(cls)])
    return table(["event", "fields", "meaning"], rows)


def ops_table() -> str:
    """The closed union of ops."""
    rows = []
    for cls in ops.Op.__args__:
        fields = ", ".join(f"`{f.name}`" for f in attrs.fields(cls))
        rows.append([f"`{cls.__name__}`", fields, prose(inspect.getdoc(cls))])
    return table(["op", "fields", "what the driver does"], rows)


# inputs and pulls --------------------------------------------------------------------------------

_TRANSPORTS: Final = (sansmcp.StdioClient, sansmcp.LineClient, sansmcp.LineServer, sansmcp.HttpConnector)
_ENGINES: Final = (sansmcp.ClientEngine, sansmcp.ServerEngine)

TRANSPORT_INPUTS: Final = (
    "opened",
    "accepted",
    "failed",
    "receive_data",
    "receive_eof",
    "exited",
    "pause_writing",
    "resume_writing",
    "handle_timeout",
)
ENGINE_INPUTS: Final = (
    "connect",
    "receive_message",
    "receive_oversize",
    "receive_eof",
    "connection_lost",
    "connection_failed",
    "connection_restored",
    "exchange_closed",
    "exchange_refused",
    "exchange_failed",
    "exchange_held",
    "exchange_released",
    "handle_timeout",
)


def members_of(classes: Sequence[type[Any]], names: Sequence[str]) -> str:
    """Methods and properties of like classes: who has them, and what they say of them."""
    rows = []
    for name in names:
        having = [cls for cls in classes if hasattr(cls, name)]
        member = inspect.getattr_static(having[0], name)
        label = f"`{name}`"
        if inspect.isfunction(member):
            shown = [p for p in inspect.signature(member).parameters if p != "self"]
            label = f"`{name}({', '.join(shown)})`"
        who = "all" if len(having) == len(classes) else "<br>".join(f"`{cls.__name__}`" for cls in having)
        says: list[str] = []
        for cls in having:
            sentence = first_sentence(inspect.getdoc(getattr(cls, name)))
            if sentence not in says:
                says.append(sentence)
        rows.append([label, who, "<br>".join(says)])
    return table(["name", "of", "meaning"], rows)


def untranslatable_table() -> str:
    """What a bridge cannot get across."""
    return table(["name", "what"], [[f"`{name}`", text] for name, text in UNTRANSLATABLE.items()])


def quirks_table() -> str:
    """The quirks that have a name."""
    rows = [[f"`{q.name}`", f"`{q.rule}`", f"The server {q.why}."] for q in QUIRKS.values()]
    return table(["quirk", "rule", "what for"], rows)


GENERATED: Final[Mapping[str, Callable[[], str]]] = {
    "limits": limits_table,
    "timeouts": lambda: defaults_table(limits.Timeouts),
    "ladder": lambda: defaults_table(stdio.ShutdownLadder),
    "pool": lambda: defaults_table(sansmcp.PoolPolicy),
    "reconnect": lambda: defaults_table(sansmcp.ReconnectPolicy),
    "connections": lambda: defaults_table(ConnectionPolicy),
    "sessions": lambda: defaults_table(SessionPolicy),
    "pings": lambda: defaults_table(sansmcp.PingPolicy),
    "restart": lambda: defaults_table(stdio.RestartPolicy, RESTART_NOTES),
    "probe": probe_table,
    "handshake": handshake_table,
    "steps": steps_table,
    "error-tree": error_tree,
    "codes": codes_table,
    "faults": faults_table,
    "harmless": harmless_table,
    "wire-events": lambda: events_table(to_wire=True),
    "app-events": lambda: events_table(to_wire=False),
    "ops": ops_table,
    "requests": lambda: methods_table(Kind.REQUEST),
    "notifications": lambda: methods_table(Kind.NOTIFICATION),
    "untranslatable": untranslatable_table,
    "quirks": quirks_table,
    "transport-inputs": lambda: members_of(_TRANSPORTS, TRANSPORT_INPUTS),
    "transport-pulls": lambda: members_of(
        _TRANSPORTS, ("next_op", "next_event", "next_timeout", "wants_data", "finished")
    ),
    "engine-inputs": lambda: members_of(_ENGINES, ENGINE_INPUTS),
    "engine-pulls": lambda: members_of(
        _ENGINES, ("next_event", "events", "next_timeout", "wants_data", "stats")
    ),
}
"""Every table that a page can ask for by name."""
