"""Tasks, the server's side: handlers that go on when their request is answered.

A tool's call becomes a task before its handler is called, or when the handler says so. From then on what
the handler reports, asks and returns goes into the task's record, and its client looks at that.

Specification: the tasks extension (``io.modelcontextprotocol/tasks``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from math import inf
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar
from weakref import WeakKeyDictionary

import attrs

from ...errors import ErrorCode, LocalProtocolError, McpError, PeerFault
from ...events import Harmless, ListKind, RequestCancelled, ResultReady
from ...forms import check_form
from ...limits import Limits
from ...results import ToolError
from ...revisions import LATEST, Era
from ...session import modern
from ...session.calls import Call, IncomingRequest
from ...session.typing import to_wire
from ...states import RequestInput
from ...types.convert import StructureError, structure
from ...types.methods import spec_for
from ...types.tasks import TASKS_EXTENSION
from ...wire.jsoncodec import JsonValue
from ..extension import Extension, ExtensionMethod, declares, not_declared
from .client import CANCEL, GET, STATUS, TASK, TOPIC, UPDATE
from .store import MemoryTaskStore, TaskRecord, TaskStore

if TYPE_CHECKING:
    from ...app import App
    from ...context import Answers, Context, Host
    from ...invocation import Invocation

F = TypeVar("F", bound=Callable[..., Any])
Mode: TypeAlias = Literal["optional", "required", "forbidden", "handler"]

_ID_BYTES: Final = 18
"""144 bits: nobody guesses that."""


@attrs.frozen
class _Plan:
    mode: Mode
    ttl: float | None
    poll_interval: float


@attrs.define(kw_only=True, eq=False)
class ServerTasks(Extension):
    """Tasks, for ``App(extensions=[ServerTasks()])``. One object serves one app.

    `store` keeps them, `ttl` seconds from their creation (None: for ever) unless a tool says otherwise.
    `poll_interval` (seconds) is how often clients should ask. `max_tasks` may be there at once: past it a
    call becomes no task, and one that has to is refused (-32603).

    What a store has that was not finished when the server starts has failed, and says so.

    Raises LocalProtocolError for times that are not positive.
    """

    id: str = attrs.field(default=TASKS_EXTENSION, init=False)
    methods: Mapping[str, ExtensionMethod] = attrs.field(init=False, repr=False)
    notifications: frozenset[str] = attrs.field(default=frozenset({STATUS}), init=False)
    topics: frozenset[str] = attrs.field(default=frozenset({TOPIC}), init=False)
    store: TaskStore = attrs.field(factory=MemoryTaskStore)
    ttl: float | None = 3600.0
    poll_interval: float = 0.5
    max_tasks: int = 4096
    _app: App | None = attrs.field(default=None, init=False, repr=False)
    _plans: dict[Callable[..., Any], _Plan] = attrs.field(factory=dict, init=False, repr=False)
    _waiting: MutableMapping[Context, _Plan] = attrs.field(factory=WeakKeyDictionary, init=False, repr=False)
    """The plans of handlers that may call `start`."""
    _running: dict[str, _Running] = attrs.field(factory=dict, init=False, repr=False)
    _recovered: bool = attrs.field(default=False, init=False, repr=False)
    _unix: float = attrs.field(default=0.0, init=False, repr=False)
    """The last time of day that was heard."""

    def __attrs_post_init__(self) -> None:
        _check_times(self.ttl, self.poll_interval)

    @methods.default
    def _make_methods(self) -> dict[str, ExtensionMethod]:
        return {
            GET: ExtensionMethod(handler=self._get, inline=True),
            UPDATE: ExtensionMethod(handler=self._update, inline=True),
            CANCEL: ExtensionMethod(handler=self._cancel, inline=True),
        }

    def stats(self) -> dict[str, int]:
        """Sizes of all tables, by name."""
        return {"tasks": len(self.store), "running_tasks": len(self._running)}

    # verbs ---------------------------------------------------------------------------------------

    def task(
        self,
        mode: Mode = "optional",
        *,
        ttl: float | Literal["default"] | None = "default",
        poll_interval: float | None = None,
    ) -> Callable[[F], F]:
        """Let calls of a handler become tasks. To be written below ``@app.tool()``.

        ``"optional"``: where the client declares that it knows tasks; others wait for the result.
        ``"required"``: clients that do not are refused (-32021). ``"handler"``: when the handler calls
        `start`. ``"forbidden"``: never, as without this decorator. `ttl` and `poll_interval` (seconds) are
        those of the extension unless given.

        Raises LocalProtocolError for times that are not positive.
        """
        interval = self.poll_interval if poll_interval is None else poll_interval
        plan = _Plan(mode, self.ttl if ttl == "default" else ttl, interval)
        _check_times(plan.ttl, plan.poll_interval)

        def register(function: F) -> F:
            self._plans[function] = plan
            return function

        return register

    def start(self, ctx: Context) -> None:
        """In a handler: let its request become a task now, after all that had to be asked first.

        Harmless when it is one. Raises McpError (-32021) for a client that does not know tasks.
        """
        plan = self._waiting.get(ctx) or _Plan("handler", self.ttl, self.poll_interval)
        if not self._may(ctx.request):
            raise self._refusal(ctx.request)
        ctx.submit(lambda now: self._start(ctx, plan, now))

    # as an extension of an app -------------------------------------------------------------------

    def adopt(self, app: App) -> None:
        """As `Extension.adopt`. Raises LocalProtocolError for a second app."""
        if self._app is not None and self._app is not app:
            raise LocalProtocolError("these tasks are of another App already")
        self._app = app

    def begin(self, invocation: Invocation, *, now: float) -> None:
        """As `Extension.begin`."""
        plan = self._plans.get(invocation.function)
        if plan is None or plan.mode == "forbidden" or invocation.request.method != "tools/call":
            return
        ctx = invocation.context
        if plan.mode == "handler":
            self._waiting[ctx] = plan
            return
        if not self._may(ctx.request):
            if plan.mode == "required":
                raise self._refusal(ctx.request)
            return
        self._hear(ctx, now)
        if len(self.store) >= self.max_tasks and plan.mode == "optional":
            return
        self._start(ctx, plan, now)

    def grant(self, topic: str, names: Iterable[str], request: IncomingRequest) -> list[str]:
        """As `Extension.grant`: the tasks that there are and that the client may know of."""
        return [name for name in dict.fromkeys(names) if self._visible(name, request) is not None]

    def host_gone(self, host: Host) -> None:
        """As `Extension.host_gone`: the tasks whose handlers ran there have failed."""
        for running in [r for r in self._running.values() if r.host is host]:
            self._fail(running, "the server stopped while it was at work", self._unix)

    # methods -------------------------------------------------------------------------------------

    def _get(self, params: Mapping[str, Any], *, ctx: Context, now: float) -> dict[str, Any]:
        return self._find(params, ctx, now).to_detailed()

    def _update(self, params: Mapping[str, Any], *, ctx: Context, now: float) -> dict[str, Any]:
        record = self._find(params, ctx, now)
        answers = params.get(modern.INPUT_RESPONSES)
        if not isinstance(answers, dict):
            raise McpError(ErrorCode.INVALID_PARAMS, f"{UPDATE}: inputResponses must be an object")
        running = self._running.get(record.task_id)
        if running is not None:
            running.answer(answers, now)
        return {}

    def _cancel(self, params: Mapping[str, Any], *, ctx: Context, now: float) -> dict[str, Any]:
        record = self._find(params, ctx, now)
        running = self._running.get(record.task_id)
        if running is not None:
            running.end(RequestInput.CANCEL, now, status="cancelled")
            running.host.tell(RequestCancelled(running.detached, "its task was cancelled"))
        return {}

    def _find(self, params: Mapping[str, Any], ctx: Context, now: float) -> TaskRecord:
        self._hear(ctx, now)
        task_id = params.get("taskId")
        if not isinstance(task_id, str):
            raise McpError(ErrorCode.INVALID_PARAMS, f"{ctx.request.method}: taskId must be a string")
        record = self._visible(task_id, ctx.request)
        if record is None:
            raise McpError(ErrorCode.INVALID_PARAMS, "no such task: it was never there, or has expired")
        return record

    def _visible(self, task_id: str, request: IncomingRequest) -> TaskRecord | None:
        """The record of a task, if there is one that the sender of `request` may know of."""
        record = self.store.get(task_id) if task_id.isascii() else None
        return None if record is None or record.principal != self._principal(request) else record

    def _principal(self, request: IncomingRequest) -> str | None:
        return None if self._app is None else self._app.principal_of(request)

    # becoming a task -----------------------------------------------------------------------------

    def _may(self, request: IncomingRequest) -> bool:
        return request.era is Era.MODERN and declares(request.peer_capabilities, self.id)

    def _refusal(self, request: IncomingRequest) -> Exception:
        if request.era is Era.LEGACY:
            return ToolError(f"this tool works for clients only that declare the extension {self.id}")
        return not_declared(self.id)

    def _start(self, ctx: Context, plan: _Plan, now: float) -> None:
        request, host, engine = ctx.request, ctx.host, ctx.answers_to
        if isinstance(engine, _Running) or not request.open:
            return
        unix = self._hear(ctx, now)
        if host.entropy is None:
            raise LocalProtocolError(f"{request!r}: a task needs random bytes for its id, and here are none")
        if len(self.store) >= self.max_tasks:
            raise McpError(ErrorCode.INTERNAL_ERROR, "there are too many tasks", {"limit": "max_tasks"})
        record = TaskRecord(
            task_id=host.entropy(_ID_BYTES).hex(),
            principal=self._principal(request),
            status="working",
            created=unix,
            updated=unix,
            ttl=plan.ttl,
            poll_interval=plan.poll_interval,
        )
        running = _Running(self, record, attrs.evolve(request, batch=None, progress_token=None), host, engine)
        self.store.put(record)
        self._running[record.task_id] = running
        running.clock = ctx.unix_time
        ctx.move(running.detached, running, attrs.evolve(host, ask=running.ask))
        host.moved(request, running.detached)
        engine.respond(request, {**record.to_task(), modern.RESULT_TYPE: TASK}, now=now)

    # time ----------------------------------------------------------------------------------------

    def _hear(self, ctx: Context, now: float) -> float:
        """Hear the time: forget what has expired, and what is left of another life."""
        unix = self._unix = max(self._unix, ctx.unix_time(now))
        if not self._recovered:
            self._recovered = True
            for record in self.store.unfinished():
                if record.task_id not in self._running:
                    self.store.put(_failed(record, "the server was started anew while it was at work", unix))
        for task_id in self.store.expired(unix):
            running = self._running.get(task_id)
            if running is not None:
                self._fail(running, "its time is over", unix)
                running.host.tell(RequestCancelled(running.detached, "the time of its task is over"))
            self.store.delete(task_id)
        return unix

    def _fail(self, running: _Running, why: str, unix: float) -> None:
        if not running.detached.open:
            return  # that it had ended was what let it fail
        running.detached.machine.fire(RequestInput.CANCEL)
        self.settled(running, _failed(running.record, why, unix))

    def changed(self, running: _Running, record: TaskRecord) -> None:
        """A task has changed: keep that, and tell who listens."""
        running.record = record
        try:
            self.store.put(record)
        except Exception as error:
            if self._app is None:
                raise
            self._app.report_error(error)
        if self._app is not None:
            body = record.to_detailed()
            self._app.publish(lambda to, now: to.notify_topic(TOPIC, record.task_id, STATUS, body, now=now))

    def settled(self, running: _Running, record: TaskRecord) -> None:
        """A task has ended."""
        self._running.pop(record.task_id, None)
        self.changed(running, record)


def _check_times(ttl: float | None, poll_interval: float) -> None:
    if not all(0 < seconds < inf for seconds in (poll_interval, 1.0 if ttl is None else ttl)):
        raise LocalProtocolError("ttl and poll_interval of tasks are positive numbers of seconds")


def _problem(call: Call, raw: Any) -> str | None:
    """Why `raw` does not answer what was asked, None when it does."""
    spec = spec_for(call.method)
    assert spec is not None
    try:
        structure(raw, spec.result, LATEST)
    except StructureError as error:
        return str(error)
    schema = call.params.get("requestedSchema")
    if schema is None or raw["action"] != "accept":
        return None
    return "; ".join(check_form(schema, raw.get("content"))) or None


def _failed(record: TaskRecord, why: str, unix: float) -> TaskRecord:
    text = f"the task was interrupted: {why}"
    return attrs.evolve(
        record,
        status="failed",
        updated=max(unix, record.updated),
        message=text,
        asked=None,
        error={"code": int(ErrorCode.INTERNAL_ERROR), "message": text},
    )


@attrs.define(eq=False)
class _Running:
    """A handler at work on a task: takes what it says in place of an engine (`context.Answers`)."""

    tasks: ServerTasks
    record: TaskRecord
    detached: IncomingRequest
    """In place of the one that was answered; open until the task has ended."""
    host: Host
    engine: Answers
    clock: Callable[[float], float] = attrs.field(default=lambda now: now, init=False)
    _asking: dict[str, Call] = attrs.field(factory=dict, init=False, repr=False)
    """What the client is still to answer."""

    @property
    def limits(self) -> Limits:
        return self.engine.limits

    def _change(self, now: float, **changes: Any) -> TaskRecord:
        return attrs.evolve(self.record, updated=max(self.clock(now), self.record.updated), **changes)

    def end(self, how: RequestInput, now: float, **changes: Any) -> None:
        """The task has ended."""
        self.detached.machine.fire(how)
        self._asking.clear()
        self.tasks.settled(self, self._change(now, asked=None, **changes))

    # what the handler says -----------------------------------------------------------------------

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        if not self.detached.open:
            return False
        raw = to_wire(result, LATEST)
        kind = raw.setdefault(modern.RESULT_TYPE, modern.COMPLETE)
        if kind != modern.COMPLETE:
            raise LocalProtocolError(f"{self.detached!r}: a task does not end with {kind!r}")
        raw.setdefault("content", [])
        try:
            json.dumps(raw, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise LocalProtocolError(f"{self.detached!r}: its result is no JSON: {error}") from error
        self.end(RequestInput.ANSWER, now, status="completed", message=None, result=raw)
        return True

    def respond_error(self, request: IncomingRequest, error: McpError, *, now: float) -> bool:
        if not self.detached.open:
            return False
        told: dict[str, Any] = {"code": error.code, "message": error.message}
        if error.data is not None:
            told["data"] = error.data
        self.end(RequestInput.ANSWER, now, status="failed", message=error.message, error=told)
        return True

    def report_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        *,
        now: float,
    ) -> bool:
        """A task has no progress, but what it does can be said."""
        if message is None or not self.detached.open:
            return False
        self.tasks.changed(self, self._change(now, message=message))
        return True

    def log(
        self,
        level: str,
        data: JsonValue,
        *,
        now: float,
        request: IncomingRequest | None = None,
        logger: str | None = None,
    ) -> bool:
        return False  # nothing is logged for a task

    def hang_up(self, request: IncomingRequest, *, now: float) -> bool:
        return False

    def notify_changed(self, kind: ListKind, *, now: float) -> bool:
        return self.engine.notify_changed(kind, now=now)

    def notify_updated(self, uri: str, *, now: float) -> bool:
        return self.engine.notify_updated(uri, now=now)

    def notify_topic(
        self, topic: str, name: str, method: str, params: Mapping[str, Any], *, now: float
    ) -> bool:
        return self.engine.notify_topic(topic, name, method, params, now=now)

    def elicitation_complete(self, elicitation_id: str, *, now: float, related: IncomingRequest) -> bool:
        return False

    def report_ignored(
        self, request: IncomingRequest, reason: PeerFault | Harmless, detail: str, *, now: float
    ) -> None:
        self.engine.report_ignored(request, reason, detail, now=now)

    # what it asks --------------------------------------------------------------------------------

    def request(
        self,
        method: str,
        params: Mapping[str, JsonValue] | None = None,
        *,
        now: float,
        timeout: float | None = None,
        related: IncomingRequest | None = None,
    ) -> Call:
        raise LocalProtocolError(f"{method}: for the sake of a task nothing is asked but questions")

    def ask(self, key: str, method: str, params: dict[str, Any], *, now: float) -> Call:
        """Let the client know that something is asked."""
        call = Call(0, method, params, None, None, related=self.detached)
        self._asking[key] = call
        asked = {**(self.record.asked or {}), key: {"method": method, "params": params}}
        self.tasks.changed(self, self._change(now, status="input_required", asked=asked))
        return call

    def cancel(self, call: Call, *, now: float) -> None:
        self._answered([key for key, asked in self._asking.items() if asked is call], now)

    def answer(self, answers: Mapping[str, Any], now: float) -> None:
        """The client answers; what was not asked, or is answered, is ignored.

        Raises McpError, with nothing changed, for an answer that is none.
        """
        taken = [(key, self._asking[key], raw) for key, raw in answers.items() if key in self._asking]
        for key, call, raw in taken:
            problem = _problem(call, raw)
            if problem is not None:
                text = f"{UPDATE}: the answer {key[:128]!r} is not valid: {problem}"
                raise McpError(ErrorCode.INVALID_PARAMS, text)
        self._answered([key for key, _, _ in taken], now)
        for _, call, raw in taken:
            self.host.tell(ResultReady(call, raw, LATEST))

    def _answered(self, keys: list[str], now: float) -> None:
        if not keys or not self.detached.open:
            return
        for key in keys:
            del self._asking[key]
        asked = {key: asked for key, asked in (self.record.asked or {}).items() if key in self._asking}
        status = "input_required" if asked else "working"
        self.tasks.changed(self, self._change(now, status=status, asked=asked or None))
