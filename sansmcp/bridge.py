"""A server that is another server, in whichever era each side speaks.

    bridge = Bridge(client, entropy=entropy)            # a ClientEngine that has connected
    server = bridge.app().engine(now=now)               # what the bridge's own clients talk to
    bridge.serve(server, now=now)
    # every event of `server` goes to bridge.from_client, every one of `client` to bridge.from_server

Both sides are engines as everybody has them: the eras meet in their events, and there is nothing of a
wire form here. What one era has and the other lacks is in `UNTRANSLATABLE`, by name; when it happens it
is told as `NotTranslated`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

import attrs

from .app import App
from .client import ClientEngine
from .context import Answers, Context, Host
from .errors import ErrorCode, LocalProtocolError, McpError, SansmcpError, may_emit
from .events import (
    ElicitationCompleted,
    Event,
    InputRequired,
    InputWithdrawn,
    ListChanged,
    ListKind,
    LogReceived,
    NotificationReceived,
    ProgressReported,
    RequestCancelled,
    RequestFailed,
    RequestReceived,
    ResourceUnwatched,
    ResourceUpdated,
    ResourceWatched,
    ResultReady,
)
from .invocation import Invocation
from .revisions import LATEST, Era, Revision
from .session import modern
from .session.calls import Call, IncomingRequest
from .session.gates import declared
from .session.rounds import IncomingQuestion, Round
from .session.subscriptions import Relisten
from .session.typing import to_wire
from .states import ClientState
from .types.convert import structure
from .types.lifecycle import (
    ClientCapabilities,
    ElicitationCapability,
    Implementation,
    RootsCapability,
    SamplingCapability,
    ServerCapabilities,
)
from .types.methods import Direction, Method, spec_for
from .types.projection import project
from .wire.jsoncodec import JsonValue

EVERYTHING: Final = ClientCapabilities(
    elicitation=ElicitationCapability(form={}, url={}),
    sampling=SamplingCapability(tools={}, context={}),
    roots=RootsCapability(list_changed=True),
)
"""What a bridge declares to its server: whatever a client of its own may be able to answer."""

UNTRANSLATABLE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "identity": "The server sees the bridge's name and capabilities, not those of each client.",
        "undeclared": "A question that the client did not declare to answer is refused for it.",
        "unasked": "A legacy server asks while no request is open, and a modern client is served.",
        "which-call": "A legacy server on a stream does not say for which request it asks: for the oldest.",
        "which-log": "A log names no request; it goes to the oldest open one that wants such logs.",
        "log-level": "What a legacy client sets as its level takes effect with its next request.",
        "roots-changed": "A modern server is not told that the roots changed; it asks when it wants them.",
        "member": "Members of params that the server's revision lacks are left out.",
        "result": "A result that the client's revision cannot express becomes an error.",
        "error-code": "A code that the client's era lacks becomes -32603; the code is in the data.",
        "extensions": "Extensions, tasks and capabilities of other kinds are not offered.",
        "notification": "A notification that is none of the protocol's goes no further.",
        "cache": "A legacy server says nothing of caching: its results may not be kept.",
        "updates": "What lies inside a resource is told as the resource that was subscribed to.",
        "waiting": "A call of a modern client that waits for its answers lives in this bridge alone.",
    }
)
"""What one era has and the other lacks, by name, and what becomes of it."""

MAX_PARKED: Final = 256
"""Calls that wait for a modern client to come back with answers. Past it the oldest is cancelled."""
MAX_SCHEMAS: Final = 1024
"""Tools whose input schemas are remembered, to compare headers with. Past it the oldest is forgotten."""
MAX_UNTOLD: Final = 1024
"""`NotTranslated` events that nobody took. Past it the oldest is forgotten."""
TOTAL_TIMEOUT: Final = 3600.0
"""Seconds after which a call is given up. When to lose patience is the client's to say."""


@attrs.define(eq=False)
class NotTranslated(Event):
    """Something that one side said does not reach the other as it was meant."""

    name: str
    """One of `UNTRANSLATABLE`."""
    detail: str
    """One line for people."""


@attrs.define(eq=False)
class _Work:
    """One request of a client, and the call that it became."""

    call: Call
    request: IncomingRequest | None
    """None while a modern client is away to find the answers."""
    rounds: list[Round] = attrs.field(factory=list)
    """What the server asked, and a modern client was not asked yet."""
    asked: dict[str, tuple[Round, str]] = attrs.field(factory=dict)
    """What a modern client was asked, by the keys that it was given."""
    end: ResultReady | RequestFailed | None = None
    """How the call ended while the client was away."""
    identity: str | None = None
    """Who is away, where the transport asks for tokens."""

    def is_of(self, request: IncomingRequest) -> bool:
        """Whether a request that names its state may be the same one, made again."""
        return self.call.method == request.method and self.identity == _identity(request)


class Bridge:
    """Passes on between clients and one server; see the module.

    `client` is connected to the server. `info` is who the bridge says it is to clients: None, as the
    server does. `entropy` gives random bytes, by which a modern client finds its call again.
    """

    def __init__(
        self,
        client: ClientEngine,
        *,
        entropy: Callable[[int], bytes],
        info: Implementation | None = None,
        total_timeout: float = TOTAL_TIMEOUT,
    ) -> None:
        self._client = client
        self._server: Answers | None = None
        self._entropy = entropy
        self._info = info
        self._total_timeout = total_timeout
        self._calls: dict[Call, _Work] = {}
        self._requests: dict[IncomingRequest, _Work] = {}
        self._questions: dict[Call, tuple[Round, str]] = {}
        """What legacy clients are asked."""
        self._parked: dict[str, _Work] = {}
        self._watched: dict[str, Call] = {}
        self._pages: dict[str, IncomingRequest] = {}
        self._schemas: dict[str, dict[str, Any]] = {}
        self._told_level: str | None = None
        self._events: deque[NotTranslated] = deque(maxlen=MAX_UNTOLD)

    # pulls ---------------------------------------------------------------------------------------

    def next_event(self) -> NotTranslated | None:
        """What did not get across, or None."""
        return self._events.popleft() if self._events else None

    def stats(self) -> dict[str, int]:
        """Sizes of all tables, by name."""
        return {
            "calls": len(self._calls),
            "requests": len(self._requests),
            "questions": len(self._questions),
            "parked": len(self._parked),
            "watched": len(self._watched),
            "pages": len(self._pages),
            "schemas": len(self._schemas),
            "events": len(self._events),
        }

    # the side of the clients ---------------------------------------------------------------------

    @property
    def info(self) -> Implementation:
        """Who the bridge says it is."""
        return self._info or self._client.server_info or Implementation("bridge", "0")

    @property
    def instructions(self) -> str | None:
        """How the server wants to be used."""
        return self._client.instructions

    @property
    def capabilities(self) -> ServerCapabilities:
        """What the bridge offers: what its server does, as far as it gets across."""
        known = self._client.server_capabilities
        return ServerCapabilities() if known is None else known.replace(extensions=None, extra={}, tasks=None)

    def input_schema(self, name: str) -> dict[str, Any] | None:
        """The input schema of the tool `name`, if a list with it passed through and did not change since."""
        return self._schemas.get(name)

    def app(self) -> BridgeApp:
        """The bridge as an `App` to be served by any binding; hand its events to `from_client`."""
        return BridgeApp(self)

    def serve(self, server: Answers, *, now: float) -> None:
        """Answer clients through `server`, and hear of changes from now on. The client has connected."""
        self._server = server
        offered = to_wire(self.capabilities, LATEST)
        kinds = {kind for kind in ListKind if declared(f"{kind.value}.listChanged", offered)}
        if kinds:
            self._client.listen(
                tools=ListKind.TOOLS in kinds,
                prompts=ListKind.PROMPTS in kinds,
                resource_list=ListKind.RESOURCES in kinds,
                relisten=Relisten(),
                now=now,
            )

    def from_client(self, event: Event, *, now: float) -> None:
        """Take an event of the side of the clients. Others than those that are passed on do no harm."""
        match event:
            case RequestReceived():
                self._take(event.request, now)
            case RequestCancelled():
                work = self._requests.pop(event.request, None)
                if work is not None:
                    self._drop(work, now)
            case ResultReady() | RequestFailed():
                self._answered(event, now)
            case ResourceWatched():
                self._watch(event.uri, now)
            case ResourceUnwatched():
                call = self._watched.pop(event.uri, None)
                if call is not None:
                    self._client.cancel(call, now=now)
            case NotificationReceived():
                self._pass_on(event, now)
            case _:
                pass

    def from_server(self, event: Event, *, now: float) -> None:
        """Take an event of the client that talks to the server."""
        match event:
            case ResultReady() | RequestFailed():
                work = self._calls.pop(event.call, None)
                if work is not None:
                    work.end = event
                    self._deliver(work, now)
            case ProgressReported():
                work = self._calls.get(event.call)
                if work is not None and work.request is not None:
                    self._to.report_progress(
                        work.request, event.progress, event.total, event.message, now=now
                    )
            case InputRequired():
                self._ask(event, now)
            case InputWithdrawn():
                self._withdraw(event.round, now)
            case LogReceived():
                self._log(event, now)
            case ListChanged():
                if event.kind is ListKind.TOOLS:
                    self._schemas.clear()
                self._to.notify_changed(event.kind, now=now)
            case ResourceUpdated():
                self._updated(event, now)
            case ElicitationCompleted():
                request = self._pages.pop(event.elicitation_id, None)
                if request is not None and request.open:
                    self._to.elicitation_complete(event.elicitation_id, now=now, related=request)
            case _:
                pass

    # requests ------------------------------------------------------------------------------------

    @property
    def _to(self) -> Answers:
        if self._server is None:
            raise LocalProtocolError("bridge: call serve() first")
        return self._server

    @property
    def _revision(self) -> Revision:
        verdict = self._client.verdict
        return LATEST if verdict is None else verdict.revision

    def _lost(self, name: str, detail: str) -> None:
        self._events.append(NotTranslated(name, detail))

    def _take(self, request: IncomingRequest, now: float) -> None:
        params = {name: value for name, value in request.params.items() if name != "_meta"}
        state = params.get(modern.REQUEST_STATE)
        work = self._parked.get(state) if isinstance(state, str) else None
        if work is not None and isinstance(state, str) and work.is_of(request):
            del self._parked[state]
            self._resume(work, request, params.get(modern.INPUT_RESPONSES), now)
            return
        if state is not None and self._revision.era is Era.LEGACY:
            told = "the call that this state stands for does not wait any more: make it anew"
            self._to.respond_error(request, McpError(ErrorCode.INVALID_PARAMS, told), now=now)
            return
        spec = spec_for(request.method)
        if spec is not None:
            kept = project(params, spec.params, self._revision)
            if kept is not params:
                self._lost("member", f"{request!r}: the server's revision lacks some of its params")
                params = kept
        try:
            call = self._client.request(
                request.method,
                params,
                now=now,
                timeout=None,
                total_timeout=self._total_timeout,
                progress=request.progress_token is not None,
                meta=_passed_on(request.meta),
                log_level=self._log_level(request, now),
            )
        except LocalProtocolError as error:
            self._to.respond_error(request, McpError(self._code_of_refusal(request), str(error)), now=now)
            return
        self._calls[call] = self._requests[request] = _Work(call, request)

    def _code_of_refusal(self, request: IncomingRequest) -> ErrorCode:
        """The code for a request that cannot be made to the server."""
        if self._client.state is ClientState.CLOSED:
            return ErrorCode.INTERNAL_ERROR
        spec = spec_for(request.method)
        goes = spec is None or spec.goes(Direction.CLIENT_TO_SERVER, self._revision)
        return ErrorCode.INVALID_PARAMS if goes else ErrorCode.METHOD_NOT_FOUND

    def _drop(self, work: _Work, now: float) -> None:
        """Nobody wants the result any more."""
        self._calls.pop(work.call, None)
        self._client.cancel(work.call, now=now)

    def _deliver(self, work: _Work, now: float) -> None:
        """Answer the client, if it is there."""
        request, end = work.request, work.end
        if request is None or end is None:
            return
        self._requests.pop(request, None)
        if isinstance(end, RequestFailed):
            self._to.respond_error(request, self._error(end.error, request), now=now)
            return
        if request.method == Method.LIST_TOOLS:
            self._note_schemas(end.raw)
        try:
            self._to.respond(request, end.raw, now=now)
        except LocalProtocolError as error:
            self._lost("result", str(error))
            self._to.respond_error(request, McpError(ErrorCode.INTERNAL_ERROR, str(error)), now=now)

    def _note_schemas(self, raw: Mapping[str, Any]) -> None:
        tools = raw.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("inputSchema"), dict):
                self._schemas[str(tool.get("name"))] = tool["inputSchema"]
                if len(self._schemas) > MAX_SCHEMAS:
                    del self._schemas[next(iter(self._schemas))]

    def _error(self, error: SansmcpError, request: IncomingRequest) -> McpError:
        if not isinstance(error, McpError):
            return McpError(ErrorCode.INTERNAL_ERROR, str(error))
        code, data = error.code, error.data
        if request.method == "resources/read":
            about_uri = isinstance(data, dict) and "uri" in data
            if code == ErrorCode.RESOURCE_NOT_FOUND and request.era is Era.MODERN:
                code = ErrorCode.INVALID_PARAMS
            elif code == ErrorCode.INVALID_PARAMS and about_uri and request.era is Era.LEGACY:
                code = ErrorCode.RESOURCE_NOT_FOUND
        if not may_emit(code, request.era):
            self._lost("error-code", f"{request!r}: {code}")
            code, data = ErrorCode.INTERNAL_ERROR, {"code": code, "data": data}
        return McpError(code, error.message, data)

    # questions -----------------------------------------------------------------------------------

    def _ask(self, event: InputRequired, now: float) -> None:
        work = self._calls.get(event.call) if event.call is not None else self._oldest()
        if work is None:
            self._ask_session(None, event.round, event.requests, now)
        elif work.request is None:
            work.rounds.append(event.round)  # it is asked when it comes back
        elif work.request.era is Era.LEGACY:
            self._ask_session(work.request, event.round, event.requests, now)
        else:
            work.rounds.append(event.round)
            self._ask_modern(work, work.request, now)

    def _oldest(self) -> _Work | None:
        """For whom a legacy server asks that does not say it."""
        may = [work for work in self._calls.values() if (s := spec_for(work.call.method)) and s.mrtr]
        # one whose client is away has its answers to wait for
        may = [work for work in may if work.request is not None] or may
        if len(may) > 1:
            self._lost("which-call", f"one of {len(may)} calls is asked for; the oldest was taken")
        return may[0] if may else None

    def _ask_session(
        self,
        request: IncomingRequest | None,
        round_: Round,
        questions: Mapping[str, IncomingQuestion],
        now: float,
    ) -> None:
        """Ask a legacy client, by requests of its session."""
        revision = Revision.V2025_11_25 if request is None else request.revision
        for key, question in questions.items():
            try:
                params = self._question(question, revision, request)
                call = self._to.request(
                    question.method, params, now=now, related=request, timeout=self._total_timeout
                )
            except LocalProtocolError as error:
                name = "unasked" if request is None else "undeclared"
                self._withdraw(round_, now)
                self._refuse(round_, name, str(error), now)
                return
            self._questions[call] = (round_, key)

    def _question(
        self, question: IncomingQuestion, revision: Revision, request: IncomingRequest | None
    ) -> dict[str, Any]:
        """The params of a question, as the revision of who is asked has them."""
        params = project(question.raw, type(question.params), revision)
        if question.raw.get("mode") == "url" and revision is Revision.V2025_11_25:
            page = params.get("elicitationId")
            if not isinstance(page, str):
                page = f"bridge-{self._entropy(8).hex()}"
                params = {**params, "elicitationId": page}
            if request is not None:
                self._pages[page] = request
                if len(self._pages) > MAX_PARKED:
                    del self._pages[next(iter(self._pages))]
        return params

    def _ask_modern(self, work: _Work, request: IncomingRequest, now: float) -> None:
        """Answer a modern client with what it is asked; it comes back with the answers."""
        asked = {
            key if len(work.rounds) == 1 else f"{number}.{key}": (round_, key)
            for number, round_ in enumerate(work.rounds, 1)
            for key in round_.questions
            if key not in round_.answers
        }
        requests = {
            name: {
                "method": round_.questions[key].method,
                "params": self._question(round_.questions[key], request.revision, request),
            }
            for name, (round_, key) in asked.items()
        }
        (first, *_) = work.rounds
        held = self._revision.era is Era.LEGACY
        state = self._entropy(16).hex() if held else first.request_state
        try:
            self._to.respond(request, modern.input_required_result(requests, state), now=now)
        except LocalProtocolError as error:
            rounds, work.rounds = work.rounds, []
            for round_ in rounds:
                self._refuse(round_, "undeclared", str(error), now)
            return
        self._requests.pop(request, None)
        work.request, work.asked, work.identity = None, asked, _identity(request)
        if not held:
            # a modern server keeps nothing of it, and so need the bridge
            self._drop(work, now)
        elif state is not None:
            self._parked[state] = work
            if len(self._parked) > MAX_PARKED:
                oldest = self._parked.pop(next(iter(self._parked)))
                self._lost("waiting", f"{oldest.call!r} was given up: too many wait for answers")
                self._drop(oldest, now)

    def _resume(self, work: _Work, request: IncomingRequest, given: Any, now: float) -> None:
        """A modern client is back with answers."""
        work.request = request
        self._requests[request] = work
        asked, work.asked = work.asked, {}
        answers = given if isinstance(given, dict) else {}
        for name, (round_, key) in asked.items():
            if name in answers:
                self._provide(round_, key, answers[name], now)
        work.rounds = [round_ for round_ in work.rounds if round_.open]
        if work.end is not None:
            self._deliver(work, now)
        elif work.rounds:
            self._ask_modern(work, request, now)

    def _answered(self, event: ResultReady | RequestFailed, now: float) -> None:
        """A legacy client has answered a question, or not."""
        round_, key = self._questions.pop(event.call, (None, ""))
        if round_ is None:
            return
        if isinstance(event, ResultReady):
            self._provide(round_, key, event.raw, now)
        else:
            error = event.error
            told = error if isinstance(error, McpError) else McpError(ErrorCode.INTERNAL_ERROR, str(error))
            self._withdraw(round_, now)
            if round_.open:
                if not may_emit(told.code, self._revision.era):
                    told = McpError(ErrorCode.INTERNAL_ERROR, told.message, {"code": told.code})
                self._client.refuse_input(round_, told, now=now)

    def _provide(self, round_: Round, key: str, answer: Any, now: float) -> None:
        if not round_.open:
            return
        spec = spec_for(round_.questions[key].method)
        try:
            if spec is not None and isinstance(answer, dict):
                answer = project(answer, spec.result, round_.revision)
            self._client.provide_input(round_, {key: answer}, now=now)
        except LocalProtocolError as error:
            self._refuse(round_, "result", str(error), now)

    def _refuse(self, round_: Round, name: str, why: str, now: float) -> None:
        self._lost(name, why)
        if round_.open:
            error = McpError(ErrorCode.INVALID_PARAMS, f"the client was not asked: {why}")
            self._client.refuse_input(round_, error, now=now)

    def _withdraw(self, round_: Round, now: float) -> None:
        """Nobody waits for answers to it any more, or there will be none."""
        for call in [call for call, (asked, _) in self._questions.items() if asked is round_]:
            del self._questions[call]
            self._to.cancel(call, now=now)
        for work in self._parked.values():
            work.rounds = [other for other in work.rounds if other is not round_]

    # everything else -----------------------------------------------------------------------------

    def _watch(self, uri: str, now: float) -> None:
        if uri not in self._watched:
            try:
                self._watched[uri] = self._client.listen(resources=(uri,), relisten=Relisten(), now=now)
            except LocalProtocolError as error:
                self._lost("updates", str(error))

    def _updated(self, event: ResourceUpdated, now: float) -> None:
        if not self._to.notify_updated(event.uri, now=now):
            for uri, call in self._watched.items():
                if call is event.call:
                    self._lost("updates", "a part of a resource changed; the whole was told")
                    self._to.notify_updated(uri, now=now)

    def _log_level(self, request: IncomingRequest, now: float) -> str | None:
        """The level that the server is to log at for `request`; a legacy one is told by itself."""
        wanted = request.log_level
        known = self._client.server_capabilities
        if wanted is None or known is None or known.logging is None:
            return None
        if self._revision.era is Era.MODERN:
            return wanted
        levels = [r.log_level for r in self._requests if r.log_level is not None]
        least = min([wanted, *levels], key=modern.LOG_LEVELS.index)
        untold = self._told_level is None and request.era is Era.LEGACY and least == "info"
        if least != self._told_level and not untold:
            self._told_level = least
            self._client.set_log_level(least, now=now)
        return None

    def _log(self, event: LogReceived, now: float) -> None:
        takers: list[IncomingRequest | None] = [*self._requests, None]
        if len(takers) > 2:
            self._lost("which-log", f"{len(takers) - 1} requests are open")
        try:
            for request in takers:
                if self._to.log(event.level, event.data, now=now, request=request, logger=event.logger):
                    return
        except LocalProtocolError as error:
            self._lost("notification", str(error))

    def _pass_on(self, event: NotificationReceived, now: float) -> None:
        try:
            self._client.notify(event.method, event.params, now=now)
        except LocalProtocolError as error:
            roots = event.method == "notifications/roots/list_changed"
            self._lost("roots-changed" if roots else "notification", str(error))


def _identity(request: IncomingRequest) -> str | None:
    return None if request.principal is None else request.principal.identity


def _passed_on(meta: Mapping[str, Any]) -> dict[str, Any] | None:
    """What of a request's `_meta` is not of its era, and so goes along."""
    return {k: v for k, v in meta.items() if k != "progressToken" and not k.startswith(modern.PREFIX)} or None


class BridgeApp(App):
    """A bridge as what a binding serves. Its requests are answered by the bridge, and not by handlers."""

    submit: Callable[[Callable[[Answers, float], object]], object] | None = None
    """Runs something with what answers the clients, once the app is served."""

    def __init__(self, bridge: Bridge) -> None:
        super().__init__(bridge.info.name, instructions=bridge.instructions)
        self.info = bridge.info
        self._bridge = bridge

    def attach(
        self, publish: Callable[[Callable[[Answers, float], object]], object], host: Host | None = None
    ) -> Callable[[], None]:
        self.submit = publish
        return super().attach(publish, host)

    def input_schema(self, name: str) -> Mapping[str, JsonValue] | None:
        return self._bridge.input_schema(name)

    def _capabilities(self, *, changes: bool) -> ServerCapabilities:
        offered = self._bridge.capabilities
        return offered if changes else _without_changes(offered)

    def begin(
        self, engine: Answers, request: IncomingRequest, context: Context, *, now: float
    ) -> Invocation | None:
        return None


def _without_changes(offered: ServerCapabilities) -> ServerCapabilities:
    raw = to_wire(offered, LATEST)
    for kind in ListKind:
        if isinstance(raw.get(kind.value), dict):
            told = ("listChanged", "subscribe")
            raw[kind.value] = {k: v for k, v in raw[kind.value].items() if k not in told}
    return structure(raw, ServerCapabilities, LATEST)
