"""`ClientEngine`: the client's side of MCP without I/O. Verbs in, messages in, events out.

After every input or verb: drain the events, then re-arm the timer for `next_timeout()`. Early,
late and repeated timeouts are harmless.

    engine = ClientEngine(Implementation("me", "1.0"), now=clock())
    engine.connect(now=clock())
    call = engine.call_tool("echo", {"text": "hi"}, now=clock())
    for event in engine.events():
        ...

Specification: 2026-07-28, basic/index, basic/versioning, basic/patterns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from .clock import earliest
from .errors import (
    ErrorCode,
    InvalidResponse,
    LocalProtocolError,
    McpError,
    PaginationError,
    PeerFault,
    RemoteProtocolError,
)
from .events import (
    DeviationTolerated,
    LogReceived,
    NotificationReceived,
    RequestReceived,
    ResultReady,
)
from .extensions.extension import Extension
from .limits import CLIENT_LIMITS, Limits, Timeouts
from .quirks import Quirk, choose_quirks
from .revisions import Era, Revision
from .session import legacy, modern
from .session.cache import CacheMode, CacheUse
from .session.calls import BatchReply, Call, IncomingRequest
from .session.checking import Checking
from .session.era import Auto, Mode, TransportKind, Verdict
from .session.extending import Extending
from .session.gates import check_params, declared
from .session.listening import SUBSCRIBE, UNSUBSCRIBE
from .session.pagination import PageWalk
from .session.rounds import QUESTIONS
from .session.typing import to_wire
from .states import CallInput, ClientState
from .types.lifecycle import ClientCapabilities, Implementation
from .types.methods import Direction, MethodSpec, spec_for
from .wire import jsonrpc
from .wire.jsoncodec import JsonCodec, JsonError, JsonValue

if TYPE_CHECKING:
    from .types.completion import Reference
    from .validation import SchemaValidator


class _Default:
    """Marks an argument that was not given where None has a meaning of its own."""


DEFAULT: Final = _Default()
ResultParser: TypeAlias = Callable[[dict[str, Any]], Any]
"""Makes an object of a raw result whose type an extension defined."""
Timeout: TypeAlias = float | _Default | None
"""Seconds, None for no limit, or `DEFAULT` for the engine's own."""


class ClientEngine(Extending, Checking):
    """One client connection as a state machine.

    `info` is who this client says it is. `capabilities` is what it can be asked for. `mode` is
    `Auto()` (probe, then the newest version in common), `Legacy()` or `Pin(revision)`. `prior` is
    a verdict remembered from an earlier connection to the same server: then nothing is probed, and
    the first answer that contradicts it drops it. `transport` is what carries the messages; over HTTP
    `http_silence` says what no answer to the probe means, ``"legacy"`` (an older server) or ``"error"``.
    `limits`, `timeouts` and `codec` are `CLIENT_LIMITS`, `Timeouts()` and `default_codec` unless given.
    Without `send_client_info` a modern server is not told `info`. Without `check_capabilities` a
    server is asked for what it does not declare, too. `strict` turns tolerances into faults. With `cache`,
    results are kept as long as the server allows, and used again. With `validator`, structured results of
    tools are checked against the output schemas they were listed with; what does not fit is told, and
    with `strict` fails the call. `extensions` are declared, and do what they do. `quirks` are leniencies of
    `sansmcp.quirks`, or names of such; each use is told by `QuirkUsed`.

    Raises LocalProtocolError for a mode that allows no revision, for quirks that are unknown or together with
    `strict`, and for what no peer could be told.
    """

    def __init__(
        self,
        info: Implementation,
        *,
        now: float,
        capabilities: ClientCapabilities | None = None,
        mode: Mode | None = None,
        prior: Verdict | None = None,
        transport: TransportKind = TransportKind.STREAM,
        limits: Limits = CLIENT_LIMITS,
        timeouts: Timeouts | None = None,
        codec: JsonCodec | None = None,
        strict: bool = False,
        send_client_info: bool = True,
        check_capabilities: bool = True,
        http_silence: Literal["legacy", "error"] = "legacy",
        cache: CacheUse | None = None,
        validator: SchemaValidator | None = None,
        extensions: Sequence[Extension] = (),
        quirks: Iterable[Quirk | str] = (),
    ) -> None:
        self.quirks = choose_quirks(quirks, strict=strict)
        super().__init__(
            info,
            now=now,
            capabilities=capabilities or ClientCapabilities(),
            mode=mode or Auto(),
            prior=prior,
            transport=transport,
            limits=limits,
            timeouts=timeouts or Timeouts(),
            codec=codec,
            strict=strict,
            send_client_info=send_client_info,
            check_capabilities=check_capabilities,
            http_silence=http_silence,
            cache=cache,
            validator=validator,
            extensions=extensions,
        )
        self._result_types: dict[str | None, ResultParser | None] = {modern.COMPLETE: None}
        for extension in extensions:
            for tag, parser in extension.result_types.items():
                self.register_result_type(tag, parser, extension=extension.id)

    def next_timeout(self) -> float | None:
        """The absolute time at which `handle_timeout` wants to be called, or None."""
        when = earliest(self._calls.deadlines, self._timers, self._round_timers, self._retries)
        for part in self._parts.values():
            at = part.next_timeout()
            if at is not None and (when is None or at < when):
                when = at
        return when

    # verbs: any request --------------------------------------------------------------------------

    def request(
        self,
        method: str,
        params: Mapping[str, JsonValue] | None = None,
        *,
        now: float,
        timeout: Timeout = DEFAULT,
        total_timeout: Timeout = DEFAULT,
        progress: bool = False,
        meta: Mapping[str, JsonValue] | None = None,
        log_level: str | None = None,
        auto_rounds: bool = True,
        cache_mode: CacheMode = "use",
        max_age: float | None = None,
        **extended: Any,
    ) -> Call:
        """Ask for any method, also one that only you and the server know. Returns its handle.

        `timeout` bounds the silence, `total_timeout` the whole call (seconds). `progress` asks the
        server to report progress. `meta` adds members to `_meta`. `log_level` asks for the logs of
        this request (modern). With ``auto_rounds=False``, a server that wants something first is sent
        nothing but what `provide_input` is given, then. `cache_mode` and `max_age` (seconds) say what an
        answer from the cache may be. Extensions have options of their own. The call ends in `ResultReady`
        or `RequestFailed`, once.

        Raises LocalProtocolError, with nothing sent, for a method or field that the revision
        spoken lacks, a capability the server did not declare, or a value that is no JSON.
        """
        self._tick(now)
        if log_level is not None and log_level not in modern.LOG_LEVELS:
            raise LocalProtocolError(f"log_level must be one of {', '.join(modern.LOG_LEVELS)}")
        return self._submit(
            self._calls.new(
                method,
                dict(params) if params else {},
                timeout=self._or(timeout, self.timeouts.request),
                total_timeout=self._or(total_timeout, self.timeouts.total),
                wants_progress=progress,
                meta=meta,
                log_level=log_level,
                auto_rounds=auto_rounds,
                cache_mode=cache_mode,
                max_age=max_age,
                options=self._check_options(extended),
            )
        )

    def notify(self, method: str, params: Mapping[str, JsonValue] | None = None, *, now: float) -> None:
        """Send a notification. Raises LocalProtocolError for one that the era lacks."""
        self._tick(now)
        if self.state is not ClientState.READY or self._verdict is None:
            raise LocalProtocolError(f"{method}: not connected (state {self.state.name})")
        spec = spec_for(method)
        if spec is not None:
            check_params(spec, dict(params or {}), self._verdict.revision, Direction.CLIENT_TO_SERVER)
        self._notify(method, dict(params) if params else None)

    @staticmethod
    def _or(value: Timeout, default: float | None) -> float | None:
        return default if isinstance(value, _Default) else value

    # verbs: the protocol's methods ---------------------------------------------------------------

    def call_tool(
        self,
        name: str,
        arguments: Mapping[str, JsonValue] | None = None,
        *,
        now: float,
        **options: Any,
    ) -> Call:
        """Run a tool; ends with a `CallToolResult`. Options as for `request`."""
        params: dict[str, JsonValue] = {"name": name}
        if arguments is not None:
            params["arguments"] = dict(arguments)
        return self.request("tools/call", params, now=now, **options)

    def list_tools(self, cursor: str | None = None, *, now: float, **options: Any) -> Call:
        """One page of the tools; ends with a `ListToolsResult`. See `list_all_tools`."""
        return self._page("tools/list", cursor, now, options)

    def list_resources(self, cursor: str | None = None, *, now: float, **options: Any) -> Call:
        """One page of the resources; ends with a `ListResourcesResult`."""
        return self._page("resources/list", cursor, now, options)

    def list_resource_templates(self, cursor: str | None = None, *, now: float, **options: Any) -> Call:
        """One page of the resource templates; ends with a `ListResourceTemplatesResult`."""
        return self._page("resources/templates/list", cursor, now, options)

    def list_prompts(self, cursor: str | None = None, *, now: float, **options: Any) -> Call:
        """One page of the prompts; ends with a `ListPromptsResult`."""
        return self._page("prompts/list", cursor, now, options)

    def list_all_tools(self, *, now: float, **options: Any) -> Call:
        """All tools, read page by page; ends with one `ListToolsResult` without a cursor."""
        return self._walk("tools/list", now, options)

    def list_all_resources(self, *, now: float, **options: Any) -> Call:
        """All resources, read page by page."""
        return self._walk("resources/list", now, options)

    def list_all_resource_templates(self, *, now: float, **options: Any) -> Call:
        """All resource templates, read page by page."""
        return self._walk("resources/templates/list", now, options)

    def list_all_prompts(self, *, now: float, **options: Any) -> Call:
        """All prompts, read page by page."""
        return self._walk("prompts/list", now, options)

    def read_resource(self, uri: str, *, now: float, **options: Any) -> Call:
        """Read a resource; ends with a `ReadResourceResult`."""
        return self.request("resources/read", {"uri": uri}, now=now, **options)

    def get_prompt(
        self,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        now: float,
        **options: Any,
    ) -> Call:
        """Fill in a prompt; ends with a `GetPromptResult`."""
        params: dict[str, JsonValue] = {"name": name}
        if arguments is not None:
            params["arguments"] = dict(arguments)
        return self.request("prompts/get", params, now=now, **options)

    def complete(
        self,
        ref: Reference | Mapping[str, JsonValue],
        argument: str,
        value: str,
        *,
        now: float,
        context: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Call:
        """Completions for a prompt's or template's argument; ends with a `CompleteResult`.

        `ref` is a `PromptReference` or `ResourceTemplateReference`, or one as JSON; `context` holds the
        arguments chosen before (from 2025-06-18 on).
        """
        params: dict[str, JsonValue] = {
            "ref": to_wire(ref, self._revision),
            "argument": {"name": argument, "value": value},
        }
        if context is not None:
            params["context"] = {"arguments": dict(context)}
        return self.request("completion/complete", params, now=now, **options)

    def discover(self, *, now: float, **options: Any) -> Call:
        """Ask for versions and capabilities again (modern); ends with a `DiscoverResult`."""
        return self.request("server/discover", None, now=now, **options)

    def ping(self, *, now: float, timeout: Timeout = DEFAULT) -> Call:
        """Is the peer alive? (legacy) Ends with an empty result within `timeouts.ping`."""
        return self.request("ping", None, now=now, timeout=self._or(timeout, self.timeouts.ping))

    def set_log_level(self, level: str, *, now: float, **options: Any) -> Call:
        """Set the least severe level the server logs (legacy; modern: `log_level` per request)."""
        if level not in modern.LOG_LEVELS:
            raise LocalProtocolError(f"level must be one of {', '.join(modern.LOG_LEVELS)}")
        return self.request("logging/setLevel", {"level": level}, now=now, **options)

    def subscribe_resource(self, uri: str, *, now: float, **options: Any) -> Call:
        """Subscribe the session to a resource (legacy): changes are told by `ResourceUpdated`.

        `listen` does the same in both eras; when it ends, the session is no longer subscribed.
        """
        return self.request(SUBSCRIBE, {"uri": uri}, now=now, **options)

    def unsubscribe_resource(self, uri: str, *, now: float, **options: Any) -> Call:
        """Undo `subscribe_resource` (legacy)."""
        return self.request(UNSUBSCRIBE, {"uri": uri}, now=now, **options)

    def roots_changed(self, *, now: float) -> None:
        """Tell the server that the roots changed (legacy; a LocalProtocolError in modern)."""
        self.notify("notifications/roots/list_changed", now=now)

    def _page(self, method: str, cursor: str | None, now: float, options: dict[str, Any]) -> Call:
        # An empty cursor is a cursor like any other.
        params: dict[str, JsonValue] | None = None if cursor is None else {"cursor": cursor}
        return self.request(method, params, now=now, **options)

    def _walk(self, method: str, now: float, options: dict[str, Any]) -> Call:
        self._tick(now)
        spec = spec_for(method)
        assert spec is not None
        assert spec.list_member is not None
        timeout = options.pop("timeout", DEFAULT)
        total_timeout = options.pop("total_timeout", DEFAULT)
        max_pages = options.pop("max_pages", self.limits.max_pages)
        call = self._calls.new(
            method,
            {},
            timeout=self._or(timeout, self.timeouts.request),
            total_timeout=self._or(total_timeout, self.timeouts.total),
            wants_progress=options.pop("progress", False),
            walk=PageWalk(spec.list_member, max_pages),
            **options,
        )
        return self._submit(call)

    def register_result_type(self, tag: str, parser: ResultParser, *, extension: str) -> None:
        """Accept results of the type `tag` (modern), which an extension defines.

        `parser` makes what `ResultReady.result` gives of the raw result. A result of a type that
        nobody registered is invalid and fails its call. Raises LocalProtocolError for a tag of the
        protocol's own or one that is taken, and for an `extension` that this client does not
        declare: no server may send its results then.

        Specification: 2026-07-28, basic/index (result type).
        """
        if tag in self._result_types or tag == modern.INPUT_REQUIRED:
            raise LocalProtocolError(f"result type {tag!r} is taken")
        if extension not in (self._own_capabilities.extensions or {}):
            raise LocalProtocolError(
                f"result type {tag!r}: declare the extension {extension!r} in the capabilities first"
            )
        self._result_types[tag] = parser

    # verbs: answering and ending -----------------------------------------------------------------

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        """Answer a request of the server (legacy) with a result, an object or its typed class.

        Returns False, with nothing sent, when the server cancelled the request meanwhile. Raises
        LocalProtocolError for a second answer or a value that is no JSON.
        """
        self._tick(now)
        if not self._still_owed(request):
            return False
        raw = to_wire(result, request.revision)
        self._send_answer(request, jsonrpc.result_response(request.id, raw))
        return True

    def close(self, *, now: float) -> None:
        """End the conversation. Open calls fail; harmless when it has ended already.

        The server is told that nobody waits for them, so that it need not finish its work first.
        """
        self._tick(now)
        if not self._closed:
            for call in self._calls:
                self._tell_cancelled(call, "the client is closing")
        self._close(None)

    # what may be asked ---------------------------------------------------------------------------

    def _check(self, call: Call) -> None:
        verdict = self._verdict
        spec = spec_for(call.method)
        if verdict is None or self._check_extension(call) or spec is None or self._check_listen(call):
            return
        check_params(spec, call.params, verdict.revision, Direction.CLIENT_TO_SERVER)
        if call.log_level is not None and verdict.era is Era.LEGACY:
            raise LocalProtocolError(
                f"{call.subject}: log_level per request exists only from 2026-07-28 on; use set_log_level"
            )
        if call.again is not None and verdict.era is Era.LEGACY:
            raise LocalProtocolError(
                f"{call.subject}: input was required by a modern server, and the server is legacy now"
            )
        needed = spec.asks_server(verdict.revision)
        if (
            self._check_capabilities
            and self._server_capabilities is not None
            and not declared(needed, self._server_capabilities)
        ):
            raise LocalProtocolError(
                f"{call.subject}: the server does not declare the capability {needed!r} "
                "(check_capabilities=False asks all the same)"
            )

    # received: answers ---------------------------------------------------------------------------

    def _on_call_result(self, call: Call, result: dict[str, Any]) -> None:
        if self._own and self._own_result(call, result):
            return
        round_before = call.round
        if round_before is not None:
            self._round_over(call)
        verdict = self._verdict
        if verdict is not None and verdict.era is Era.MODERN:
            kind, fault = modern.result_type(result)
            if fault is PeerFault.MISSING_RESULT_TYPE and not self._tolerate(
                fault, f"{call.subject}: the result has no resultType", call
            ):
                kind = None
            if kind == modern.INPUT_REQUIRED:
                self._on_input_required(call, result, round_before)
                return
            if kind not in self._result_types:
                cause = RemoteProtocolError(
                    fault or PeerFault.UNKNOWN_RESULT_TYPE,
                    f"a result of type {str(result.get('resultType'))[:64]!r}, which is not known",
                )
                self._fail(call, InvalidResponse(f"{call.subject}: {cause}", cause))
                return
            parser = self._result_types[kind]
            if self._tags and self._taken(call, kind, result):
                return
            if parser is not None:
                self._succeed(call, result, parser)
                return
        if call.method == "tools/list":
            self._see_tools(call, result)
        if call.walk is not None:
            try:
                combined = call.walk.take(result)
            except PaginationError as error:
                if error.looped:
                    detail = f"{call.subject}: {error}"
                    self._emit(DeviationTolerated(PeerFault.CURSOR_LOOP, detail, call))
                self._fail(call, error)
                return
            if combined is None:
                self._send_call(call)
                return
            result = combined
        if call.method == "tools/call" and "content" not in result:
            detail = f"{call.subject}: the result has no content; taken as empty"
            if not self._tolerate(PeerFault.MISSING_CONTENT, detail, call):
                cause = RemoteProtocolError(PeerFault.MISSING_CONTENT, "the result has no content")
                self._fail(call, InvalidResponse(f"{call.subject}: {cause}", cause))
                return
        self._succeed(call, result, self._parser_of(call) if self._methods else None)

    def _succeed(self, call: Call, result: dict[str, Any], parser: ResultParser | None) -> None:
        if parser is None:
            self._keep(call, result)
            failure = None if self._validator is None else self._output_failure(call, result)
            if failure is not None:
                self._fail(call, failure)
                return
        self._calls.end(call, CallInput.SUCCEED)
        if self._parts:
            self._tell_end(call, cancelled=False)
        verdict = self._verdict
        self._emit(ResultReady(call, result, None if verdict is None else verdict.revision, parser))

    def _on_call_error(self, call: Call, error: McpError) -> None:
        if call in self._own:
            self._fail(call, error)
            return
        self._cursor_refused(call, error)
        if call.walk is not None and call.walk.restart_after(error):
            self._send_call(call)
            return
        if not self._must_visit_pages(call, error):
            self._fail(call, error)

    def _on_unanswerable(self, message: jsonrpc.ErrorResponse) -> None:
        handshake = self._handshake
        told = f"error {message.code} without an id: {message.message[: self.limits.max_excerpt]}"
        if handshake is not None and handshake.method == "server/discover":
            cause = RemoteProtocolError(PeerFault.UNANSWERABLE_ERROR, told)
            self._on_invalid_result(handshake, cause)
        else:
            self._ignore(PeerFault.UNANSWERABLE_ERROR, told)

    # received: everything else -------------------------------------------------------------------

    def _allows_batch(self, value: list[JsonValue]) -> bool:
        verdict = self._verdict
        if verdict is None:
            return self.state is ClientState.INITIALIZING
        return verdict.era is Era.LEGACY and legacy.batches_allowed(verdict.revision)

    def _on_unreadable(self, raw: bytes | bytearray | str, error: JsonError) -> None:
        # A client never answers what it cannot read: the peer might answer that again.
        self._ignore(error.fault, f"{error}: {self._excerpt(raw)}")

    def _on_invalid(self, message: jsonrpc.InvalidMessage, batch: BatchReply | None) -> None:
        if not self._fail_invalid_response(message):
            self._ignore(message.fault, message.detail)

    def _on_request(self, message: jsonrpc.Request, batch: BatchReply | None) -> None:
        verdict = self._verdict
        if verdict is not None and verdict.era is Era.MODERN:
            self._ignore(
                PeerFault.UNEXPECTED_REQUEST,
                f"{message.method}: a modern server sends no requests",
            )
            return
        request = IncomingRequest(
            message.id,
            message.method,
            message.params,
            Era.LEGACY,
            self._asked if verdict is None else verdict.revision,
        )
        self._accept(request, batch)
        if message.method == "ping":
            self._send_answer(request, jsonrpc.result_response(message.id, {}))
            return
        spec = spec_for(message.method)
        if spec is None or not self._can_be_asked(spec):
            error = McpError(
                ErrorCode.METHOD_NOT_FOUND, f"this client does not answer {message.method[:128]}"
            )
            self._send_answer(request, self._error_message(message.id, error))
            self._ignore(PeerFault.UNEXPECTED_REQUEST, f"{message.method[:128]} was refused: not declared")
            return
        if message.method in QUESTIONS:
            self._on_question(request)
        else:
            self._emit(RequestReceived(request))

    def _can_be_asked(self, spec: MethodSpec) -> bool:
        own = to_wire(self._own_capabilities, self._revision)
        return spec.client_capability is not None and declared(spec.client_capability, own)

    def _on_notification(self, message: jsonrpc.Notification) -> None:
        params = message.params
        if message.method == "notifications/progress":
            self._take_progress(params)
            return
        if self._take_change(message):
            return
        match message.method:
            case "notifications/message":
                level, logger = params.get("level"), params.get("logger")
                if level not in modern.LOG_LEVELS or "data" not in params:
                    self._ignore(PeerFault.MALFORMED_NOTIFICATION, "a log message without level or data")
                    return
                name = logger if isinstance(logger, str) else None
                self._emit(LogReceived(str(level), name, params["data"]))
            case "notifications/elicitation/complete" if self._revision is Revision.V2025_11_25:
                self._on_page_done(params)
            case "notifications/cancelled":
                self._take_cancelled(params)
            case method:
                if not self._on_topic(method) or self._told_on_subscription(method, params):
                    self._tell_parts(message)
                    self._emit(NotificationReceived(method, params))
