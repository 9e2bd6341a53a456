"""Tasks, the client's side: a call that the server goes on with by itself ends as any other.

Its server answers with a task instead of a result. Then the engine asks how the task stands, as often as
the server wants to be asked, until it has ended. What a task wants to know comes as `InputRequired`.

Specification: the tasks extension (``io.modelcontextprotocol/tasks``).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import attrs

from ...clock import Deadlines
from ...errors import (
    CallCancelled,
    CallTimeout,
    LocalProtocolError,
    McpError,
    PeerFault,
    RemoteProtocolError,
    SansmcpError,
)
from ...events import Event
from ...revisions import LATEST
from ...session import modern
from ...session.rounds import Round
from ...types.base import UNSET
from ...types.convert import StructureError, structure
from ...types.results import Result
from ...types.tasks import (
    TASKS_EXTENSION,
    DetailedTask,
    GetTaskResult,
    TaskResult,
    TaskStatusNotificationParams,
)
from ...wire.jsoncodec import JsonValue
from ..extension import ClientDoor, ClientPart, Extension, ExtensionMethod

if TYPE_CHECKING:
    from ...client import ClientEngine
    from ...session.calls import Call

GET: Final = "tasks/get"
UPDATE: Final = "tasks/update"
CANCEL: Final = "tasks/cancel"
STATUS: Final = "notifications/tasks"
TASK: Final = "task"
"""The type of the result that says that a request has become a task."""
TOPIC: Final = "taskIds"

_TASKED: Final = frozenset({"tools/call"})
"""Methods whose requests may become tasks."""
_LEAST_INTERVAL: Final = 0.05
"""Seconds: a server that wants to be asked more often is not."""
_MOST_INTERVAL: Final = 86_400_000
"""Milliseconds, a day: nobody waits longer between two looks."""
_MAX_KEYS: Final = 1024
"""Questions that one task may ask. Past it: the call fails."""
_PLAIN: Final = (None, modern.COMPLETE)  # no set: what is looked for may be any JSON value
_OUTCOME: Final = frozenset({modern.INPUT_REQUESTS, "result", "error"})
"""Members of a `DetailedTask` that the first word of a task does not have: there they mean nothing."""


def parse_task(raw: dict[str, Any]) -> TaskResult:
    """The result that says that a request has become a task. Raises StructureError for anything else."""
    return structure(raw, TaskResult, LATEST)


@attrs.define(eq=False)
class TaskReported(Event):
    """A call has become a task, or its task has changed."""

    call: Call
    task: DetailedTask = attrs.field(repr=False)
    """`task_id` is all that it takes to go on elsewhere or later: keep it as you keep a secret."""


@attrs.define(kw_only=True, eq=False)
class ClientTasks(Extension):
    """Tasks, for ``ClientEngine(extensions=[ClientTasks()])``.

    A call that has become a task is asked for every `poll_interval` seconds, unless the server says how
    often, for `timeout` seconds (None: as long as the call may take), not counting the time in which the
    application is asked something. To cancel the call cancels the task; when time is over the task goes
    on, and can be taken up again by its id. ``task="handle"`` with a call gives a `TaskResult` at once.
    """

    id: str = attrs.field(default=TASKS_EXTENSION, init=False)
    methods: Mapping[str, ExtensionMethod] = attrs.field(
        factory=lambda: {
            GET: ExtensionMethod(result=GetTaskResult),
            UPDATE: ExtensionMethod(result=Result),
            CANCEL: ExtensionMethod(result=Result),
        },
        init=False,
    )
    result_types: Mapping[str, Any] = attrs.field(factory=lambda: {TASK: parse_task}, init=False)
    notifications: frozenset[str] = attrs.field(default=frozenset({STATUS}), init=False)
    topics: frozenset[str] = attrs.field(default=frozenset({TOPIC}), init=False)
    poll_interval: float = 0.5
    timeout: float | None = 300.0

    def __attrs_post_init__(self) -> None:
        if self.poll_interval <= 0 or (self.timeout is not None and self.timeout <= 0):
            raise LocalProtocolError("poll_interval and timeout of tasks are positive numbers of seconds")

    def client_part(self, door: ClientDoor) -> ClientPart:
        """As `Extension.client_part`."""
        return TaskPolls(door, self.poll_interval, self.timeout)


@attrs.define(eq=False)
class _Polled:
    """A call that has become a task."""

    call: Call
    task_id: str = attrs.field(repr=False)
    interval: float
    said: tuple[str, str | None] | None = None
    """Status and message, as last reported."""
    seen: set[str] = attrs.field(factory=set)
    """Keys of everything that it has asked."""
    rounds: dict[Round, None] = attrs.field(factory=dict)
    answers: dict[str, Any] = attrs.field(factory=dict, repr=False)
    """Those that the server is not known to have."""
    request: Call | None = None
    """What the server was asked last and has not answered."""


class TaskPolls(ClientPart):
    """The calls of one engine that have become tasks."""

    call_options: ClassVar[Mapping[str, Collection[Any]]] = {TASK: ("poll", "handle")}

    def __init__(self, door: ClientDoor, interval: float, timeout: float | None) -> None:
        self._door = door
        self._interval = interval
        self._timeout = timeout
        self._polled: dict[Call, _Polled] = {}
        self._by_id: dict[str, _Polled] = {}
        self._polls: Deadlines[Call] = Deadlines()
        self._ends: Deadlines[Call] = Deadlines()

    def stats(self) -> dict[str, int]:
        """As `ClientPart.stats`."""
        return {"polled_tasks": len(self._polled), "poll_timers": len(self._polls) + len(self._ends)}

    # what the engine tells -----------------------------------------------------------------------

    def take_result(self, call: Call, raw: dict[str, Any]) -> bool:
        """As `ClientPart.take_result`."""
        door = self._door
        if call.method not in _TASKED:
            door.violated(call, PeerFault.UNKNOWN_RESULT_TYPE, f"{call.method} cannot become a task")
            return True
        try:
            task = parse_task(raw)
        except StructureError as error:
            door.violated(call, PeerFault.INVALID_RESULT, f"it has become a task, but {error}")
            return True
        if call.options is not None and call.options.get(TASK) == "handle":
            return False
        door.put_aside(call)
        polled = self._take_up(call, task.task_id)
        if polled is not None:
            wait = self._wait(polled, task.poll_interval_ms)
            plain = {name: member for name, member in raw.items() if name not in _OUTCOME}
            self._report(polled, structure(plain, DetailedTask, LATEST))
            self._polls.set(call, door.now + (wait if task.status == "working" else 0.0), "poll")
        return True

    def resume(self, task_id: str, *, tool: str | None = None, timeout: float | None = None) -> Call:
        """See `resume_task`."""
        if task_id in self._by_id:
            raise LocalProtocolError("resume_task: the task is asked for already")
        call = self._door.new_call("tools/call", {} if tool is None else {"name": tool}, timeout=timeout)
        polled = self._take_up(call, task_id)
        assert polled is not None
        self._poll(polled)
        return call

    def take_notification(self, method: str, params: Mapping[str, Any]) -> None:
        """As `ClientPart.take_notification`: what is told need not be asked."""
        task_id = params.get("taskId")
        polled = self._by_id.get(task_id) if isinstance(task_id, str) else None
        if polled is None:
            return
        try:
            self._on_task(polled, structure(dict(params), TaskStatusNotificationParams, LATEST), params)
        except StructureError as error:
            self._door.ignore(PeerFault.MALFORMED_NOTIFICATION, f"{method}: {error}")

    def call_ended(self, call: Call, *, cancelled: bool) -> None:
        """As `ClientPart.call_ended`."""
        polled = self._polled.pop(call, None)
        if polled is None:
            return
        self._by_id.pop(polled.task_id, None)
        self._polls.clear(call)
        self._ends.clear(call)
        if polled.request is not None:
            self._door.drop(polled.request)
        for round_ in list(polled.rounds):
            self._door.withdraw(round_, "the call has ended")
        if cancelled:
            self._ask(polled, CANCEL, {}, lambda raw: None, lambda error: None)

    def next_timeout(self) -> float | None:
        """As `ClientPart.next_timeout`."""
        a, b = self._polls.next(), self._ends.next()
        return b if a is None else a if b is None else min(a, b)

    def handle_timeout(self) -> None:
        """As `ClientPart.handle_timeout`."""
        now = self._door.now
        for call, reason in list(self._ends.expired(now)):
            text = f"{call.subject}: its task has not ended after {self._timeout:g} s; it goes on"
            self._door.fail(call, CallTimeout(text, reason=reason))
        for call, _ in list(self._polls.expired(now)):
            polled = self._polled.get(call)
            if polled is not None:
                self._poll(polled)

    # asking the server ---------------------------------------------------------------------------

    def _take_up(self, call: Call, task_id: str) -> _Polled | None:
        if task_id in self._by_id:
            self._door.violated(call, PeerFault.INVALID_RESULT, "it has become the task of another call")
            return None
        polled = _Polled(call, task_id, self._interval)
        self._polled[call] = self._by_id[task_id] = polled
        self._arm_end(polled)
        return polled

    def _arm_end(self, polled: _Polled) -> None:
        if polled.rounds or self._timeout is None:
            self._ends.clear(polled.call)
        else:
            self._ends.set(polled.call, self._door.now + self._timeout, "task_timeout")

    def _wait(self, polled: _Polled, told: int | None) -> float:
        """How long to wait before the server is asked again; it may say something else each time."""
        if told is not None and told > 0:
            polled.interval = max(min(told, _MOST_INTERVAL) / 1000, _LEAST_INTERVAL)
        return polled.interval

    def _poll(self, polled: _Polled) -> None:
        """Ask how it stands, or give the answers that the server does not have."""
        if polled.request is not None:
            return
        if polled.answers:
            params = {modern.INPUT_RESPONSES: dict(polled.answers)}
            on_result = partial(self._on_updated, polled, tuple(polled.answers))
            polled.request = self._ask(polled, UPDATE, params, on_result, partial(self._on_error, polled))
        else:
            on_task = partial(self._on_got, polled)
            polled.request = self._ask(polled, GET, {}, on_task, partial(self._on_error, polled))

    def _ask(
        self,
        polled: _Polled,
        method: str,
        params: dict[str, Any],
        on_result: Callable[[dict[str, Any]], object],
        on_error: Callable[[SansmcpError], object],
    ) -> Call | None:
        asked = {"taskId": polled.task_id, **params}
        try:
            return self._door.ask(method, asked, like=polled.call, on_result=on_result, on_error=on_error)
        except LocalProtocolError as error:
            on_error(error)
            return None

    def _on_error(self, polled: _Polled, error: SansmcpError) -> None:
        polled.request = None
        if polled.call.done:
            return
        if isinstance(error, (McpError, LocalProtocolError)):
            self._door.fail(polled.call, error)
        else:  # it was not heard: the task may be well all the same
            self._polls.set(polled.call, self._door.now + polled.interval, "poll")

    def _on_updated(self, polled: _Polled, keys: tuple[str, ...], raw: dict[str, Any]) -> None:
        polled.request = None
        for key in keys:
            polled.answers.pop(key, None)
        self._poll(polled)

    def _on_got(self, polled: _Polled, raw: dict[str, Any]) -> None:
        polled.request = None
        try:
            task = structure(raw, GetTaskResult, LATEST)
        except StructureError as error:
            self._door.violated(polled.call, PeerFault.INVALID_RESULT, f"{GET}: {error}")
            return
        if task.task_id != polled.task_id:
            self._door.violated(polled.call, PeerFault.INVALID_RESULT, f"{GET} gave another task")
            return
        self._on_task(polled, task, raw)

    # what has come of a task ---------------------------------------------------------------------

    def _on_task(self, polled: _Polled, task: DetailedTask, raw: Mapping[str, Any]) -> None:
        door, call = self._door, polled.call
        wait = self._wait(polled, task.poll_interval_ms)
        self._report(polled, task)
        match task.status:
            case "completed":
                if task.result is None or task.result.get(modern.RESULT_TYPE) not in _PLAIN:
                    door.violated(call, PeerFault.INVALID_RESULT, "its task is completed without a result")
                else:
                    door.succeed(call, task.result)
            case "failed":
                error = task.error
                if error is None:
                    door.violated(call, PeerFault.INVALID_RESULT, "its task has failed without an error")
                else:
                    data = None if error.data is UNSET else error.data
                    door.fail(call, McpError(error.code, error.message, data))
            case "cancelled":
                door.fail(call, CallCancelled(f"{call.subject}: the server cancelled its task"))
            case _:
                asks = task.status == "input_required"
                if self._on_asked(polled, raw.get(modern.INPUT_REQUESTS) or {} if asks else {}):
                    self._polls.set(call, door.now + (0.0 if polled.answers else wait), "poll")

    def _on_asked(self, polled: _Polled, asked: Mapping[str, Any]) -> bool:
        """Ask the application what is new. False: the call has failed."""
        door = self._door
        for round_ in list(polled.rounds):
            if not round_.questions.keys() & asked.keys():
                polled.rounds.pop(round_)
                door.withdraw(round_, "the server does not want to know it any more")
                self._arm_end(polled)
        fresh = {key: request for key, request in asked.items() if key not in polled.seen}
        if not fresh:
            return True
        polled.seen.update(fresh)
        try:
            if len(polled.seen) > _MAX_KEYS:
                raise RemoteProtocolError(
                    PeerFault.INVALID_INPUT_REQUIRED, f"its task asks more than {_MAX_KEYS} things"
                )
            questions = door.read_questions(fresh)
        except RemoteProtocolError as error:
            door.violated(polled.call, error.fault, str(error))
            return False
        answered: list[Round] = []

        def take(answers: Mapping[str, Any]) -> None:
            polled.rounds.pop(answered[0], None)
            self._arm_end(polled)
            polled.answers.update(answers)
            self._poll(polled)

        round_ = door.ask_application(polled.call, questions, take)
        answered.append(round_)
        polled.rounds[round_] = None
        self._arm_end(polled)
        return True

    def _report(self, polled: _Polled, task: DetailedTask) -> None:
        said = (task.status, task.status_message)
        if said != polled.said:
            polled.said = said
            self._door.emit(TaskReported(polled.call, task))


# verbs -------------------------------------------------------------------------------------------


def get_task(engine: ClientEngine, task_id: str, *, now: float, **options: Any) -> Call:
    """How a task stands; ends with a `GetTaskResult`. Options as for `ClientEngine.request`."""
    return engine.request(GET, {"taskId": task_id}, now=now, **options)


def update_task(
    engine: ClientEngine, task_id: str, answers: Mapping[str, Any], *, now: float, **options: Any
) -> Call:
    """Answer what a task wants to know, some of it or all, by the keys of `input_requests`."""
    params: dict[str, JsonValue] = {"taskId": task_id, modern.INPUT_RESPONSES: dict(answers)}
    return engine.request(UPDATE, params, now=now, **options)


def cancel_task(engine: ClientEngine, task_id: str, *, now: float, **options: Any) -> Call:
    """Tell that nobody wants a task any more. Whether and when it ends is up to the server."""
    return engine.request(CANCEL, {"taskId": task_id}, now=now, **options)


def resume_task(
    engine: ClientEngine, task_id: str, *, now: float, tool: str | None = None, timeout: float | None = None
) -> Call:
    """Take up a task, begun here or elsewhere: a call that ends as the one that has become the task.

    `tool` is the tool's name, for people. `timeout` bounds the whole (seconds). Raises LocalProtocolError
    for an engine without `ClientTasks`, and for a task that it asks for already.
    """
    part = engine.extension_part(TASKS_EXTENSION, now=now)
    if not isinstance(part, TaskPolls):
        raise LocalProtocolError("resume_task: give the engine extensions=[ClientTasks()]")
    return part.resume(task_id, tool=tool, timeout=timeout)
