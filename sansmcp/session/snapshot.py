"""An engine between two messages as plain JSON, to go on with in another process.

A snapshot holds what the conversation has made of the engine; what the application made it with
(information, capabilities, mode, limits, extensions) is given again. Of each deadline it holds the
seconds left, which do not run meanwhile. A single call that waits for the user needs no snapshot: see
`suspended.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from math import isfinite, isinf
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..clock import Deadlines
from ..errors import (
    ConnectionEnded,
    HandshakeFailed,
    LocalProtocolError,
    McpError,
    RemoteProtocolError,
    SansmcpError,
)
from ..revisions import LATEST, Era, Revision
from ..states import (
    CALL,
    CLIENT,
    REQUEST,
    ROUND,
    SERVER,
    SUBSCRIPTION,
    ClientState,
    Machine,
    RequestState,
    ServerState,
    Table,
)
from ..types.convert import StructureError, structure, unstructure
from ..types.lifecycle import Implementation
from ..types.subscriptions import SubscriptionFilter
from ..wire.jsoncodec import JsonValue
from . import modern
from .calls import BatchReply, Call, CallTable, IncomingRequest, token_of
from .era import Evidence, Outcome, Verdict
from .hints import Hints
from .pagination import PageWalk
from .rounds import Round, read_question
from .subscriptions import ListenTable, Relisten, Subscription

if TYPE_CHECKING:
    from ..client import ClientEngine
    from ..server import ServerEngine

Snapshot: TypeAlias = dict[str, JsonValue]
"""What ``snapshot`` returns and ``restore`` takes. It holds what goes back to the server, params and
answers: keep it as you keep a secret, and restore none but your own."""

_FORMAT: Final = 1
_CALL: Final = (
    "number",
    "method",
    "params",
    "idle_timeout",
    "total_timeout",
    "wants_progress",
    "meta",
    "log_level",
    "internal",
    "cancellable",
    "auto_rounds",
    "rounds",
    "again",
    "asked",
    "cache_mode",
    "max_age",
    "options",
)
"""Members of a call that are plain JSON and that its constructor takes."""
_CALL_ON_WIRE: Final = ("request_id", "progress_token", "last_progress")
_WALK: Final = ("member", "max_pages", "items", "pages", "cursor", "restarted")
_SUBSCRIPTION: Final = ("opened", "attempts", "in_session", "uses", "pending", "granted")
_FLAGS: Final = ("_unconfirmed", "_insisted", "_late", "_reprobed", "_restarted", "_over", "_over_by_us")
"""Members of a client that are true or false."""
_ERRORS: Final = {kind.__name__: kind for kind in (ConnectionEnded, HandshakeFailed)}
"""Errors, besides those of a peer, that may be waiting to be told."""


def _cannot(why: str) -> LocalProtocolError:
    return LocalProtocolError(f"snapshot: {why}")


def _plain(source: object, names: Iterable[str]) -> dict[str, Any]:
    return {name: getattr(source, name) for name in names}


class _Writer:
    """What both roles have."""

    def __init__(self, engine: ClientEngine | ServerEngine, now: float) -> None:
        self.engine = engine
        self.now = now
        self.calls = list(engine._calls)
        related = [call.related for call in self.calls if call.related is not None]
        self.requests = list(dict.fromkeys([*engine._requests.values(), *related]))
        self.batches = list({id(b): b for r in self.requests if (b := r.batch) is not None}.values())

    def left(self, when: float | None) -> float | None:
        return None if when is None or isinf(when) else when - self.now

    def deadlines(self, table: Deadlines[Any], name: Mapping[Any, Any] | None = None) -> list[Any]:
        return [
            [key if name is None else name[key], when - self.now, reason]
            for key, when, reason in table.pending()
        ]

    def common(self) -> dict[str, Any]:
        table = self.engine._calls
        return {
            "format": _FORMAT,
            "state": self.engine.state.name,
            "answeredGarbage": self.engine._answered_garbage,
            "inputEnded": self.engine._input_ended,
            "calls": [self.call(call) for call in self.calls],
            "deadlines": self.deadlines(table.deadlines),
            "lastNumber": table._last_number,
            "lastId": table._last_id,
            "endedIds": list(table._ended_ids),
            "asked": table._asked,
            "sinceAnswered": self.left(table._answered_at),
            "requests": [self.request(request) for request in self.requests],
            "batches": [
                {"origin": _origin(b.origin), "owed": b.owed, "messages": list(b.messages)}
                for b in self.batches
            ],
        }

    def call(self, call: Call) -> dict[str, Any]:
        raw = _plain(call, (*_CALL, *_CALL_ON_WIRE))
        raw["state"] = call.state.name
        raw["totalLeft"] = self.left(call.total_at)
        raw["related"] = None if call.related is None else self.requests.index(call.related)
        raw["walk"] = None if call.walk is None else _write_walk(call.walk)
        return raw

    def request(self, request: IncomingRequest) -> dict[str, Any]:
        batch = next((i for i, b in enumerate(self.batches) if b is request.batch), None)
        return {
            **_plain(request, ("id", "method", "params", "log_level", "last_progress")),
            "era": request.era.value,
            "revision": request.revision.value,
            "origin": _origin(request.origin),
            "state": request.state.name,
            "batch": batch,
        }


def _origin(origin: Hashable) -> int | str | None:
    if origin is None or isinstance(origin, (int, str)):
        return origin
    raise _cannot("a request is open in an exchange of its own, which cannot be taken along")


def _write_walk(walk: PageWalk) -> dict[str, Any]:
    hints = walk.hints
    return {
        **_plain(walk, _WALK),
        "items": list(walk.items),
        "seen": sorted(walk._seen),
        "hints": None if hints is None else [hints.ttl, hints.public, hints.odd],
    }


def _write_error(error: SansmcpError | None) -> dict[str, Any] | None:
    if error is None:
        return None
    if isinstance(error, McpError):
        return {**_plain(error, ("code", "message", "data")), "status": error.http_status}
    if type(error).__name__ in _ERRORS and error.__cause__ is None:
        return {"kind": type(error).__name__, "text": str(error)}
    raise _cannot(f"an error ({type(error).__name__}) waits to be told; take it after the next message")


def _write_info(info: Implementation | None) -> Any:
    return None if info is None else unstructure(info, LATEST)


# client ------------------------------------------------------------------------------------------


def write_client(engine: ClientEngine, now: float) -> Snapshot:
    """`engine` as JSON. Raises LocalProtocolError for what cannot be put into it."""
    if engine._own or engine._takers or any(sum(p.stats().values()) for p in engine._parts.values()):
        raise _cannot("an extension has calls of its own open")
    writer = _Writer(engine, now)
    calls = writer.calls
    settled = [call.round for call in calls if call.round is not None and call.round not in engine._rounds]
    rounds = [*engine._rounds, *settled]
    index = {round_: number for number, round_ in enumerate(rounds)}
    verdict, stamp, doubted = engine._verdict, engine._stamp_for, engine._doubted
    if doubted is not None and doubted[0].done:
        doubted = None
    return {
        **writer.common(),
        "role": "client",
        "timers": writer.deadlines(engine._timers),
        "held": [call.number for call in engine._held if not call.done],
        "connectLeft": engine._connect_left,
        "prior": None if engine._prior is None else engine._prior.to_json(),
        "verdict": None if verdict is None else verdict.to_json(),
        "stamp": None if stamp is None else stamp.revision,
        "flags": [getattr(engine, name) for name in _FLAGS],
        "doubted": None if doubted is None else [doubted[0].number, _write_error(doubted[1])],
        "evidence": [[e.step, e.outcome] for e in engine._evidence],
        "tried": sorted(engine._tried),
        "toldVersions": list(engine._told_versions),
        "probed": None if engine._probed is None else engine._probed.name,
        "refusal": _write_error(engine._refusal),
        "handshake": None if engine._handshake is None else engine._handshake.number,
        "lastProbeId": engine._last_probe_id,
        "askedRevision": engine._asked.value,
        "serverCapabilities": engine._server_capabilities,
        "serverInfo": _write_info(engine._server_info),
        "instructions": engine._instructions,
        "rounds": [_write_round(writer, r, listed=r in engine._rounds) for r in rounds],
        "roundTimers": writer.deadlines(engine._round_timers, index),
        "pages": list(engine._pages),
        "subscriptions": [_write_subscription(s) for s in engine._subscriptions.values()],
        "steps": [[step.number, s.call.number] for step, s in engine._steps.items()],
        "uses": dict(engine._uses),
        "retries": [[c.number, when - now, why] for c, when, why in engine._retries.pending()],
        "unheard": _write_error(engine._unheard),
    }


def _write_round(writer: _Writer, round_: Round, *, listed: bool) -> dict[str, Any]:
    request = round_.request
    return {
        "call": None if round_.call is None else round_.call.number,
        "questions": {k: {"method": q.method, "params": q.raw} for k, q in round_.questions.items()},
        **_plain(round_, ("number", "waits", "ends_by")),
        "answers": dict(round_.answers),
        "revision": round_.revision.value,
        "request": None if request is None else writer.requests.index(request),
        "requestState": round_.request_state,
        "refusal": _write_error(round_.refusal),
        "allLeft": writer.left(round_.all_end_at),
        "left": writer.left(round_.ends_at),
        "state": round_.state.name,
        "listed": listed,
    }


def _write_subscription(subscription: Subscription) -> dict[str, Any]:
    again = subscription.relisten
    return {
        **_plain(subscription, _SUBSCRIPTION),
        "call": subscription.call.number,
        "asked": unstructure(subscription.asked, LATEST),
        "honored": unstructure(subscription.honored, LATEST),
        "ackTimeout": subscription.ack_timeout,
        "relisten": None if again is None else [again.attempts, again.delay, again.max_delay],
        "state": subscription.state.name,
    }


# server ------------------------------------------------------------------------------------------


def write_server(engine: ServerEngine, now: float) -> Snapshot:
    """`engine` as JSON. Raises LocalProtocolError for what cannot be put into it."""
    writer = _Writer(engine, now)
    revision = engine._session_revision
    return {
        **writer.common(),
        "role": "server",
        "sessionRevision": None if revision is None else revision.value,
        "sessionInfo": _write_info(engine._session_info),
        "sessionCapabilities": dict(engine._session_capabilities),
        "sessionLogLevel": engine._session_log_level,
        "sessionUris": list(engine._session_uris),
        "listens": [
            [writer.requests.index(request), unstructure(honored, LATEST)]
            for request, honored in engine._listens.honored()
        ],
    }


# back again --------------------------------------------------------------------------------------

_UNFIT: Final = (KeyError, TypeError, ValueError, AttributeError, IndexError, StructureError)


def _machine(table: Table[Any, Any], state: str) -> Machine[Any, Any]:
    return Machine.standing(table, state)


class _Reader:
    """What both roles have. Nothing of the engine is touched before all of it is read."""

    def __init__(self, engine: ClientEngine | ServerEngine, raw: Mapping[str, Any], now: float) -> None:
        self.raw = raw
        self.now = now
        session = raw.get("sessionCapabilities"), _read_info(raw.get("sessionInfo"))
        self.batches = [BatchReply(b["origin"], b["owed"], True, list(b["messages"])) for b in raw["batches"]]
        self.requests = [self.request(item, *session) for item in raw["requests"]]
        self.calls = {item["number"]: self.call(item) for item in raw["calls"]}
        table = self.table = CallTable(engine.limits, engine.timeouts)
        table._calls = self.calls
        table._by_id = {c.request_id: c for c in self.calls.values() if c.request_id is not None}
        table._by_token = {c.progress_token: c for c in self.calls.values() if c.progress_token is not None}
        table._ended_ids = dict.fromkeys(raw["endedIds"])
        table._last_number, table._last_id = raw["lastNumber"], raw["lastId"]
        table._asked = raw["asked"]
        answered_at = self.at(raw["sinceAnswered"])
        if answered_at is not None:
            table._answered_at = answered_at
        for number, left, reason in raw["deadlines"]:
            table.deadlines.set(self.calls[number].number, self.when(left), reason)

    def at(self, left: float | None) -> float | None:
        return None if left is None else self.when(left)

    def when(self, left: float) -> float:
        if not isfinite(left):
            raise ValueError("a time is a finite number")
        return self.now + left

    def one(self, number: int | None) -> Call | None:
        return None if number is None else self.calls[number]

    def call(self, raw: Mapping[str, Any]) -> Call:
        related = raw["related"]
        if not isinstance(raw["params"], dict):
            raise TypeError("params are an object")
        call = Call(
            **{name: raw[name] for name in _CALL},
            walk=None if raw["walk"] is None else _read_walk(raw["walk"]),
            related=None if related is None else self.requests[related],
        )
        for name in _CALL_ON_WIRE:
            setattr(call, name, raw[name])
        call.total_at = self.at(raw["totalLeft"])
        call.machine = _machine(CALL, raw["state"])
        return call

    def request(
        self, raw: Mapping[str, Any], session_capabilities: Any, session_info: Any
    ) -> IncomingRequest:
        era, params = Era(raw["era"]), raw["params"]
        given = params.get("_meta")
        meta = given if isinstance(given, dict) and session_capabilities is not None else {}
        is_modern = era is Era.MODERN
        request = IncomingRequest(
            raw["id"],
            raw["method"],
            params,
            era,
            Revision(raw["revision"]),
            peer_info=meta.get(modern.META_CLIENT_INFO) if is_modern else session_info,
            peer_capabilities=meta[modern.META_CAPABILITIES] if is_modern else session_capabilities or {},
            meta=meta,
            progress_token=token_of(meta),
            log_level=raw["log_level"],
            origin=raw["origin"],
            batch=None if raw["batch"] is None else self.batches[raw["batch"]],
            last_progress=raw["last_progress"],
        )
        request.machine = _machine(REQUEST, raw["state"])
        return request

    def install(self, engine: ClientEngine | ServerEngine) -> None:
        open_ = [request for request in self.requests if request.state is RequestState.OPEN]
        garbage, ended = self.raw["answeredGarbage"], self.raw["inputEnded"]
        engine._calls = self.table
        for request in open_:
            request.key = engine._key(request.id, request.origin)
        engine._requests = {request.key: request for request in open_}
        engine._answered_garbage, engine._input_ended = garbage, ended


def _read_walk(raw: Mapping[str, Any]) -> PageWalk:
    walk = PageWalk(raw["member"], raw["max_pages"])
    for name in _WALK[2:]:
        setattr(walk, name, raw[name])
    walk._seen = set(raw["seen"])
    walk.hints = None if raw["hints"] is None else Hints(*raw["hints"])
    return walk


def _read_error(raw: Mapping[str, Any] | None) -> SansmcpError | None:
    if raw is None:
        return None
    if "kind" in raw:
        return _ERRORS[raw["kind"]](raw["text"])
    return McpError(raw["code"], raw["message"], raw["data"], http_status=raw["status"])


def _read_info(raw: Any) -> Implementation | None:
    return None if raw is None else structure(raw, Implementation, LATEST)


def _check(snapshot: object, role: str) -> None:
    if not isinstance(snapshot, Mapping) or snapshot.get("role") != role:
        raise LocalProtocolError(f"restore: not a snapshot of a {role}")
    if snapshot.get("format") != _FORMAT:
        raise LocalProtocolError(f"restore: a snapshot of another format than {_FORMAT}")


def read_client(engine: ClientEngine, snapshot: Mapping[str, Any], now: float) -> None:
    """Bring a new `engine` to where the one of `snapshot` stood. Raises LocalProtocolError, with
    nothing changed, for anything else."""
    _check(snapshot, "client")
    if engine.state is not ClientState.IDLE or engine._calls._last_number:
        raise LocalProtocolError("restore: this engine was used already; make a new one")
    try:
        _read_client(engine, snapshot, now)
    except (*_UNFIT, RemoteProtocolError) as error:
        raise LocalProtocolError(
            f"restore: not a snapshot for this client ({type(error).__name__})"
        ) from None


def _read_client(engine: ClientEngine, raw: Mapping[str, Any], now: float) -> None:
    reader = _Reader(engine, raw, now)
    one = reader.one
    machine = _machine(CLIENT, raw["state"])
    timers: Deadlines[str] = Deadlines()
    for key, left, reason in raw["timers"]:
        timers.set(key, reader.when(left), reason)
    prior, verdict = (None if v is None else Verdict.from_json(v) for v in (raw["prior"], raw["verdict"]))
    if verdict is not None and verdict.revision not in engine._offered:
        raise LocalProtocolError(f"restore: {verdict.revision} is spoken, which this client does not allow")
    doubted = raw["doubted"]
    doubt = None if doubted is None else (reader.calls[doubted[0]], _read_error(doubted[1]))
    rounds = [_read_round(engine, reader, item) for item in raw["rounds"]]
    round_timers: Deadlines[Round] = Deadlines()
    for number, left, reason in raw["roundTimers"]:
        round_timers.set(rounds[number], reader.when(left), reason)
    subscriptions = {}
    for item in raw["subscriptions"]:
        subscription = _read_subscription(reader, item)
        subscriptions[subscription.call] = subscription
    steps = {reader.calls[step]: subscriptions[reader.calls[call]] for step, call in raw["steps"]}
    retries: Deadlines[Call] = Deadlines()
    for number, left, reason in raw["retries"]:
        retries.set(reader.calls[number], reader.when(left), reason)
    held = [reader.calls[number] for number in raw["held"]]
    flags = dict(zip(_FLAGS, raw["flags"], strict=True))
    read = {
        "_machine": machine,
        "_timers": timers,
        "_held": held,
        "_connect_left": raw["connectLeft"],
        "_prior": prior,
        "_verdict": verdict,
        "_stamp_for": None if raw["stamp"] is None else engine._new_stamp(Revision(raw["stamp"])),
        **flags,
        "_doubted": doubt,
        "_evidence": [Evidence(step, outcome) for step, outcome in raw["evidence"]],
        "_tried": set(raw["tried"]),
        "_told_versions": tuple(raw["toldVersions"]),
        "_probed": None if raw["probed"] is None else Outcome[raw["probed"]],
        "_refusal": _read_error(raw["refusal"]),
        "_handshake": one(raw["handshake"]),
        "_last_probe_id": raw["lastProbeId"],
        "_asked": Revision(raw["askedRevision"]),
        "_server_capabilities": raw["serverCapabilities"],
        "_server_info": _read_info(raw["serverInfo"]),
        "_instructions": raw["instructions"],
        "_rounds": {r: None for r, item in zip(rounds, raw["rounds"], strict=True) if item["listed"]},
        "_round_timers": round_timers,
        "_pages": dict.fromkeys(raw["pages"]),
        "_subscriptions": subscriptions,
        "_steps": steps,
        "_uses": Counter(raw["uses"]),
        "_retries": retries,
        "_unheard": _read_error(raw["unheard"]),
    }
    for round_ in rounds:
        if round_.call is not None and round_.request is None:
            round_.call.round = round_
    reader.install(engine)
    for name, value in read.items():
        setattr(engine, name, value)


def _read_round(engine: ClientEngine, reader: _Reader, raw: Mapping[str, Any]) -> Round:
    revision = Revision(raw["revision"])
    questions = {
        key: read_question(item["method"], item["params"], engine._own_capabilities, revision)
        for key, item in raw["questions"].items()
    }
    refusal = _read_error(raw["refusal"])
    round_ = Round(
        reader.one(raw["call"]),
        questions,
        raw["number"],
        revision,
        request=None if raw["request"] is None else reader.requests[raw["request"]],
        request_state=raw["requestState"],
        refusal=refusal if isinstance(refusal, McpError) else None,
        waits=raw["waits"],
        all_end_at=reader.at(raw["allLeft"]),
    )
    round_.answers.update(raw["answers"])
    round_.ends_at, round_.ends_by = reader.at(raw["left"]), raw["ends_by"]
    round_.machine = _machine(ROUND, raw["state"])
    return round_


def _read_relisten(raw: list[Any]) -> Relisten:
    attempts, delay, max_delay = raw
    return Relisten(attempts=attempts, delay=delay, max_delay=max_delay)


def _read_subscription(reader: _Reader, raw: Mapping[str, Any]) -> Subscription:
    subscription = Subscription(
        reader.calls[raw["call"]],
        structure(raw["asked"], SubscriptionFilter, LATEST),
        raw["ackTimeout"],
        None if raw["relisten"] is None else _read_relisten(raw["relisten"]),
        structure(raw["honored"], SubscriptionFilter, LATEST),
        **{name: raw[name] for name in _SUBSCRIPTION},
    )
    subscription.machine = _machine(SUBSCRIPTION, raw["state"])
    return subscription


def read_server(engine: ServerEngine, snapshot: Mapping[str, Any], now: float) -> None:
    """Bring a new `engine` to where the one of `snapshot` stood. Raises LocalProtocolError, with
    nothing changed, for anything else."""
    _check(snapshot, "server")
    if engine.state is not ServerState.OPEN or engine._requests or engine._calls._last_number:
        raise LocalProtocolError("restore: this engine was used already; make a new one")
    try:
        _read_server(engine, snapshot, now)
    except _UNFIT as error:
        raise LocalProtocolError(
            f"restore: not a snapshot for this server ({type(error).__name__})"
        ) from None


def _read_server(engine: ServerEngine, raw: Mapping[str, Any], now: float) -> None:
    reader = _Reader(engine, raw, now)
    revision = None if raw["sessionRevision"] is None else Revision(raw["sessionRevision"])
    if revision is not None and revision not in engine._legacy:
        raise LocalProtocolError(
            f"restore: a session of {revision} is open, which this server does not serve"
        )
    listens = ListenTable()
    for number, honored in raw["listens"]:
        listens.open(reader.requests[number], structure(honored, SubscriptionFilter, LATEST))
    read = {
        "_machine": _machine(SERVER, raw["state"]),
        "_session_revision": revision,
        "_session_info": _read_info(raw["sessionInfo"]),
        "_session_capabilities": dict(raw["sessionCapabilities"]),
        "_session_log_level": raw["sessionLogLevel"],
        "_session_uris": dict.fromkeys(raw["sessionUris"]),
        "_listens": listens,
    }
    reader.install(engine)
    for name, value in read.items():
        setattr(engine, name, value)
