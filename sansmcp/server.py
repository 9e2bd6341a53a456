"""`ServerEngine`: the server's side of MCP without I/O. Requests come out, answers go in.

One engine serves one connection, in both eras at once: a request that carries the modern `_meta`
is served statelessly, `initialize` opens a legacy session for the connection.

After every input or verb: drain the events, then re-arm the timer for `next_timeout()`.

Specification: 2026-07-28, basic/index, basic/versioning (dual-era servers); 2025-11-25,
basic/lifecycle.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Any, Final, TypeAlias

from .errors import (
    ConnectionEnded,
    ErrorCode,
    LocalProtocolError,
    McpError,
    PeerFault,
)
from .events import (
    CloseConnection,
    Harmless,
    NotificationReceived,
    RequestReceived,
    ResultReady,
    SessionStarted,
)
from .extensions.extension import Extension, check_distinct, declares, not_declared, with_extensions
from .limits import SERVER_LIMITS, Limits, Timeouts
from .revisions import ALL_REVISIONS, LATEST, Era, Revision, known_revision
from .session import legacy, modern
from .session.calls import BatchReply, Call, IncomingRequest, token_of
from .session.endpoint import progress_params
from .session.gates import check_params, declared, lacking, needs_of, unknown_method
from .session.publisher import PerRevision, Publisher, tagged
from .session.typing import lenient, to_wire
from .states import SERVER, CallInput, Machine, ServerInput, ServerState
from .types.convert import project
from .types.lifecycle import Implementation, ServerCapabilities
from .types.methods import METHODS, Direction, Kind, spec_for
from .wire import jsonrpc
from .wire.jsoncodec import JsonCodec, JsonError, JsonValue
from .wire.jsonrpc import RequestId
from .wire.peek import wants_parse_error

EnvelopeCheck: TypeAlias = Callable[[Hashable, Mapping[str, Any]], McpError | None]
"""Called with the origin and the whole message; an error refuses it, after its `_meta` was read and
before its version is looked at."""

_SUBSCRIBING: Final = frozenset({"resources/subscribe", "resources/unsubscribe"})

_OWN_METHODS: Final = _SUBSCRIBING | {
    "initialize",
    "ping",
    "server/discover",
    "logging/setLevel",
    "subscriptions/listen",
}
"""Methods that the engine answers itself."""

_FAULTS: Final[Mapping[int, PeerFault]] = {
    ErrorCode.METHOD_NOT_FOUND: PeerFault.UNKNOWN_METHOD,
    ErrorCode.INVALID_REQUEST: PeerFault.BATCH_NOT_ALLOWED,
    ErrorCode.INVALID_PARAMS: PeerFault.INVALID_PARAMS,
    ErrorCode.MISSING_CLIENT_CAPABILITY: PeerFault.UNDECLARED_EXTENSION,
}
"""What a client did wrong whose subscription is refused; a limit of ours is not its fault."""

_BATCHED: Final = McpError(ErrorCode.INVALID_REQUEST, "subscriptions/listen must not be part of a batch")

_SESSION_STATES: Final = frozenset({ServerState.INITIALIZED, ServerState.READY})


class ServerEngine(Publisher):
    """One server connection as a state machine.

    `info` is who this server says it is. `capabilities` is what it offers; requests outside them
    are refused (-32601). `instructions` are for the client's model. `methods` adds methods of your own,
    `extensions` declares some and serves theirs: to clients only that declare them too (-32021).
    `revisions` narrows what is served. `show_server_info` stamps `serverInfo` on modern results. With
    `ids_per_exchange`, request ids are unique per `origin` only: one engine then serves many stateless
    clients. `check` may refuse a modern request for what its transport knows. `limits`, `timeouts` and
    `codec` are `SERVER_LIMITS`, `Timeouts()` and `default_codec` unless given. `strict` turns tolerances
    into faults.

    Raises LocalProtocolError for a method of the protocol among `methods`, and for two extensions of one id.
    """

    def __init__(
        self,
        info: Implementation,
        *,
        now: float,
        capabilities: ServerCapabilities | None = None,
        instructions: str | None = None,
        methods: Collection[str] = (),
        extensions: Collection[Extension] = (),
        revisions: Collection[Revision] = ALL_REVISIONS,
        limits: Limits = SERVER_LIMITS,
        timeouts: Timeouts | None = None,
        codec: JsonCodec | None = None,
        show_server_info: bool = True,
        ids_per_exchange: bool = False,
        check: EnvelopeCheck | None = None,
        strict: bool = False,
    ) -> None:
        super().__init__(now=now, limits=limits, timeouts=timeouts or Timeouts(), codec=codec, strict=strict)
        for method in methods:
            if method in METHODS:
                raise LocalProtocolError(f"{method} is a method of the protocol, not one to add")
        self._ids_per_origin = ids_per_exchange
        self._check = check
        self._info = info
        check_distinct(extensions)
        self._extended = {name: e for e in extensions for name in e.methods}
        self._topics = {topic: e for e in extensions for topic in e.topics}
        self._capabilities = capabilities or ServerCapabilities()
        if extensions:
            known = with_extensions(self._capabilities.extensions, extensions)
            self._capabilities = self._capabilities.replace(extensions=known)
        self._declared = PerRevision(self._capabilities)
        self._instructions = instructions
        self._custom = frozenset(methods)
        self._modern = tuple(sorted(r for r in revisions if r.era is Era.MODERN))
        self._legacy = tuple(sorted(r for r in revisions if r.era is Era.LEGACY))
        self._versions = [r.value for r in sorted(revisions, reverse=True)]
        self._server_info = to_wire(info, LATEST) if show_server_info else None
        self._machine = Machine(SERVER)
        self._session_revision: Revision | None = None
        self._session_info: Implementation | None = None
        self._session_capabilities: Mapping[str, Any] = {}
        self._session_log_level = "info"

    @property
    def state(self) -> ServerState:
        """Where the connection stands: see the table `states.SERVER`."""
        return self._machine.state

    @property
    def session_revision(self) -> Revision | None:
        """The revision of the legacy session, or None while there is none."""
        return self._session_revision

    @property
    def client_info(self) -> Implementation | None:
        """Who the legacy client says it is; a modern one says so on each request."""
        return self._session_info

    @property
    def wants_data(self) -> bool:
        """False while as many requests are open as the limit allows, or events pile up."""
        working = len(self._requests) - len(self._listens)
        return super().wants_data and working < self.limits.max_open_requests

    # inputs of a transport -----------------------------------------------------------------------

    def assume_session(self, revision: Revision, *, now: float) -> None:
        """Serve a legacy client whose handshake another engine had. Only its revision is known here.

        Raises LocalProtocolError for one that is not served, and if a session is open or over.
        """
        self._tick(now)
        if revision not in self._legacy or self._session_revision is not None or self._closed:
            raise LocalProtocolError(f"a session of {revision} cannot be assumed here")
        self._machine.fire(ServerInput.INITIALIZE)
        self._session_revision = revision

    def receive_eof(self, *, now: float) -> None:
        """The client sends nothing more. Answers already owed may still be given; then it ends."""
        self._tick(now)
        if self._closed or self.state is ServerState.DRAINING:
            return
        self._machine.fire(ServerInput.END_OF_INPUT)
        self._input_ended = True
        for call in self._calls:
            self._fail(call, ConnectionEnded(f"{call.subject}: the client sends nothing more"))
        self._end_listens()
        self._end_when_drained()

    def connection_lost(self, *, now: float, detail: str = "the client is gone") -> None:
        """Nothing can be sent any more: every open request is cancelled, every call fails."""
        self._tick(now)
        self._close(ConnectionEnded(detail))

    def exchange_closed(
        self, origin: Hashable, *, now: float, reason: str = "the client closed the exchange"
    ) -> None:
        """The exchange `origin` is over: its open requests are cancelled."""
        self._tick(now)
        for request in [r for r in self._requests.values() if r.origin == origin]:
            self._cancel_request(request, reason)

    # verbs: answering ----------------------------------------------------------------------------

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        """Answer a request with a result: its typed class, or the JSON object itself.

        It is written as the revision of the request has it: members that an older revision lacks
        are left out, those that the modern one requires are added.

        Returns False, with nothing sent, when the client cancelled the request meanwhile. Raises
        LocalProtocolError for a second answer, a value that is no JSON, and for questions
        (`input_required`) where the client cannot be asked them.
        """
        self._tick(now)
        if not self._still_owed(request):
            return False
        spec = spec_for(request.method)
        if not isinstance(result, dict):
            raw = to_wire(result, request.revision)
        elif spec is not None and spec.result is not None and request.revision is not LATEST:
            if modern.asks_for_input(result):  # which the projection leaves out
                modern.check_input_required(request, result)
            raw = project(result, spec.result, request.revision)
        else:
            raw = result
        self._send_answer(request, jsonrpc.result_response(request.id, self._finish(request, raw)))
        return True

    def _finish(self, request: IncomingRequest, raw: dict[str, Any]) -> dict[str, Any]:
        asks = modern.asks_for_input(raw)
        if asks:
            modern.check_input_required(request, raw)
        if request.method == "tools/call" and "content" not in raw and modern.RESULT_TYPE not in raw:
            raw = {"content": [], **raw}
        if request.era is Era.LEGACY:
            return legacy.finish_result(raw)
        if request in self._listens:
            raw = tagged(raw, request.id)
        spec = spec_for(request.method)
        return modern.finish_result(
            raw,
            cacheable=spec is not None and spec.cacheable and not asks,
            server_info=self._server_info,
        )

    def report_ignored(
        self, request: IncomingRequest, reason: PeerFault | Harmless, detail: str, *, now: float
    ) -> None:
        """Let the application see, as `MessageIgnored`, what its handler made nothing of in a request."""
        self._tick(now)
        self._ignore(reason, f"{request!r}: {detail}")

    def report_progress(
        self,
        request: IncomingRequest,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        *,
        now: float,
    ) -> bool:
        """Tell how far a request is. Only what the protocol allows leaves: True when it did.

        Nothing is sent when the client gave no token, the request is no longer open, or
        `progress` does not exceed the last value. Raises LocalProtocolError for what is no number.
        """
        self._tick(now)
        if request.progress_token is None or not request.open:
            return False
        params = progress_params(request, progress, total, message)
        if request.last_progress is not None and progress <= request.last_progress:
            return False
        self._send_notification("notifications/progress", params, request)
        request.last_progress = progress
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
        """Log to the client, if it wants this level. True when something was sent.

        Modern clients ask per request, so without `request` nothing is sent to them; a legacy
        session has one level (``"info"`` until it sets another). Raises LocalProtocolError for an
        unknown level or when the server does not declare `logging`.
        """
        self._tick(now)
        if level not in modern.LOG_LEVELS:
            raise LocalProtocolError(f"level must be one of {', '.join(modern.LOG_LEVELS)}")
        if self._capabilities.logging is None:
            raise LocalProtocolError("log: this server does not declare the capability 'logging'")
        if request is not None:
            wanted = request.log_level if request.open else None
        else:
            wanted = self._session_log_level if self._session_revision is not None else None
        if wanted is None or modern.LOG_LEVELS.index(level) < modern.LOG_LEVELS.index(wanted):
            return False
        params: dict[str, Any] = {"level": level, "data": data}
        if logger is not None:
            params["logger"] = logger
        self._send_notification("notifications/message", params, request)
        return True

    def hang_up(self, request: IncomingRequest, *, now: float) -> bool:
        """Let the client of a long request come back for the rest, where its transport can do that.

        False: an engine knows of no connection that would be one request's. `HttpServer.hang_up` does.
        """
        self._tick(now)
        return False

    # verbs: speaking first -----------------------------------------------------------------------

    def request(
        self,
        method: str,
        params: Mapping[str, JsonValue] | None = None,
        *,
        now: float,
        timeout: float | None = None,
        progress: bool = False,
        related: IncomingRequest | None = None,
    ) -> Call:
        """Ask the client of a legacy session. Ends in `ResultReady` or `RequestFailed`.

        `related` is the request of the client for whose sake it is asked: over HTTP, the question
        goes on that request's stream.

        Raises LocalProtocolError in the modern era (where a server sends no requests), for a
        method that the revision lacks, for a capability that the client did not declare, and for a
        `related` request that is not open in this session.
        """
        self._tick(now)
        revision = self._session_revision
        if self._closed or revision is None or self.state not in _SESSION_STATES:
            raise LocalProtocolError(
                f"{method}: only a legacy session can be asked; a modern server answers "
                "with what it needs instead"
            )
        if related is not None and (
            related.era is Era.MODERN or self._requests.get(related.key) is not related
        ):
            raise LocalProtocolError(f"{method}: {related!r} is not open in this session")
        spec = spec_for(method)
        if spec is not None:
            check_params(spec, dict(params or {}), revision, Direction.SERVER_TO_CLIENT)
            if not declared(spec.client_capability, self._session_capabilities):
                raise LocalProtocolError(f"{method}: the client does not declare {spec.client_capability!r}")
            missing = lacking(needs_of(method, params or {}, revision), self._session_capabilities)
            if missing:
                raise LocalProtocolError(f"{method}: the client does not declare all of {missing}")
        call = self._calls.new(
            method,
            dict(params) if params else {},
            timeout=self.timeouts.request if timeout is None else timeout,
            total_timeout=self.timeouts.total,
            wants_progress=progress,
            related=related,
        )
        self._send_call(call)
        return call

    def elicitation_complete(
        self, elicitation_id: str, *, now: float, related: IncomingRequest | None = None
    ) -> bool:
        """Tell that the user is done on a page they were sent to. True when that was sent.

        It goes on the stream of the request `related`, while that is open. Only a session of 2025-11-25
        that declares ``elicitation.url`` is told: earlier clients know no such pages, and later ones ask
        again by themselves.

        Specification: 2025-11-25, client/elicitation (completion notifications).
        """
        self._tick(now)
        spec, revision = METHODS["notifications/elicitation/complete"], self._session_revision
        if (
            revision is None
            or self.state not in _SESSION_STATES
            or not spec.goes(Direction.SERVER_TO_CLIENT, revision)
            or not declared(spec.client_capability, self._session_capabilities)
        ):
            return False
        if related is not None and not related.open:
            related = None
        self._send_notification(spec.method.value, {"elicitationId": elicitation_id}, related)
        return True

    def ping(self, *, now: float) -> Call:
        """Is the client alive? (legacy session only)"""
        return self.request("ping", now=now, timeout=self.timeouts.ping)

    def close(self, *, now: float) -> None:
        """End the conversation at once, subscriptions gracefully. Harmless when it has ended already."""
        self._tick(now)
        self._close(None)

    # sending -------------------------------------------------------------------------------------

    def _stamp(self, call: Call, params: dict[str, Any], token: RequestId | None) -> dict[str, Any]:
        return legacy.stamp_request(params, token=token, meta=call.meta)

    def _tell_cancelled(self, call: Call, reason: str | None) -> None:
        params: dict[str, Any] = {"requestId": call.request_id}
        if reason is not None:
            params["reason"] = reason
        self._send_notification("notifications/cancelled", params, call.related)

    @property
    def _told_session(self) -> Revision | None:
        return self._session_revision if self.state in _SESSION_STATES else None

    @property
    def _null_error_ids(self) -> bool:
        return self._session_revision is not None

    def _allows_batch(self, value: list[JsonValue]) -> bool:
        # Before a session is open, a batch may be an old client's; one that claims to be modern
        # is not.
        return bool(self._legacy) and (
            self._session_revision is Revision.V2025_03_26
            or (self._session_revision is None and not any(map(modern.claims, value)))
        )

    def _close(self, error: ConnectionEnded | None) -> None:
        if self._closed:
            return
        self._machine.fire(ServerInput.CLOSE)
        if error is None:
            self._end_listens()
        for call in self._calls:
            self._fail(call, ConnectionEnded(f"{call.subject}: {error or 'the server closed'}"))
        for request in list(self._requests.values()):
            request.batch = None
            self._cancel_request(request, "the connection ended")
        self._forget_session_uris()
        self._emit(CloseConnection())
        self._end_session(error)

    def _send_answer(self, request: IncomingRequest, message: dict[str, Any]) -> None:
        super()._send_answer(request, message)
        self._end_when_drained()

    def _cancel_request(self, request: IncomingRequest, reason: str | None) -> None:
        super()._cancel_request(request, reason)
        self._end_when_drained()

    def _end_when_drained(self) -> None:
        if not self._requests and self.state is ServerState.DRAINING:
            self._close(None)

    # received: requests --------------------------------------------------------------------------

    def _on_request(self, message: jsonrpc.Request, batch: BatchReply | None) -> None:
        if modern.is_modern(message.params):
            self._on_modern_request(message, batch)
        elif message.method == "initialize":
            self._on_initialize(message, batch)
        elif self._session_revision is not None:
            self._on_legacy_request(message, self._session_revision, batch)
        elif message.method == "ping" and self._legacy:
            self._answer_now(self._unopened(message), {}, batch)
        elif not (
            message.method in METHODS or message.method in self._custom or message.method in self._extended
        ):
            self._refuse(message, unknown_method(message.method), PeerFault.UNKNOWN_METHOD, batch)
        else:
            meta = message.params.get("_meta")
            key = modern.META_VERSION if isinstance(meta, dict) else "_meta"
            self._refuse(message, modern.missing_meta(key), PeerFault.MISSING_META, batch)

    def _unopened(self, message: jsonrpc.Request) -> IncomingRequest:
        return IncomingRequest(message.id, message.method, message.params, Era.LEGACY, max(self._legacy))

    def _on_modern_request(self, message: jsonrpc.Request, batch: BatchReply | None) -> None:
        read = modern.read_request_meta(message.params)
        if isinstance(read, McpError):
            missing = isinstance(read.data, dict) and "missing" in read.data
            fault = PeerFault.MISSING_META if missing else PeerFault.INVALID_META
            self._refuse(message, read, fault, batch)
            return
        # the second rung: what the transport's headers repeat must be what the body says
        mismatch = None if self._check is None else self._check(self._origin, message.raw)
        if mismatch is not None:
            self._refuse(message, mismatch, PeerFault.HEADER_MISMATCH, batch)
            return
        revision = known_revision(read.version)
        if revision is None or revision not in self._modern:
            error = modern.unsupported_version(read.version, self._versions)
            if message.method == "server/discover" and read.version in self._versions:
                # a legacy revision has no such method: an answer as from a legacy server
                error = unknown_method(message.method)
            self._refuse(message, error, PeerFault.UNSUPPORTED_VERSION, batch)
            return
        request = IncomingRequest(
            message.id,
            message.method,
            message.params,
            Era.MODERN,
            revision,
            peer_info=read.client_info,
            peer_capabilities=read.capabilities,
            meta=read.meta,
            progress_token=token_of(read.meta),
            log_level=read.log_level,
        )
        if message.method == "server/discover":
            body = modern.discover_result(self._versions, self._declared[revision], self._instructions)
            self._answer_now(request, body, batch)
        elif message.method == "subscriptions/listen":
            refusal = self._listen(request) if batch is None else _BATCHED
            if refusal is not None:
                self._refuse_subscription(message, refusal, batch)
        else:
            self._offer(request, message, batch)

    def _on_legacy_request(
        self, message: jsonrpc.Request, revision: Revision, batch: BatchReply | None
    ) -> None:
        given = message.params.get("_meta")
        meta: Mapping[str, Any] = {}
        if isinstance(given, dict):
            meta = given
        request = IncomingRequest(
            message.id,
            message.method,
            message.params,
            Era.LEGACY,
            revision,
            peer_info=self._session_info,
            peer_capabilities=self._session_capabilities,
            meta=meta,
            progress_token=token_of(meta),
            log_level=self._session_log_level,
        )
        if message.method == "ping":
            self._answer_now(request, {}, batch)
        elif message.method == "logging/setLevel" and declared("logging", self._declared[revision]):
            level = message.params.get("level")
            if level not in modern.LOG_LEVELS:
                error = McpError(
                    ErrorCode.INVALID_PARAMS,
                    f"level must be one of {', '.join(modern.LOG_LEVELS)}",
                )
                self._refuse(message, error, PeerFault.INVALID_PARAMS, batch)
                return
            self._session_log_level = str(level)
            self._answer_now(request, {}, batch)
        elif message.method in _SUBSCRIBING and declared("resources.subscribe", self._declared[revision]):
            refusal = self._subscribe(message.params, message.method == "resources/subscribe")
            if refusal is None:
                self._answer_now(request, {}, batch)
            else:
                self._refuse_subscription(message, refusal, batch)
        else:
            self._offer(request, message, batch)

    def _offer(self, request: IncomingRequest, message: jsonrpc.Request, batch: BatchReply | None) -> None:
        """Hand a request to the application, if this server serves its method to its sender."""
        extension = self._extended.get(request.method) if request.era is Era.MODERN else None
        if extension is not None:
            if extension.gated and not declares(request.peer_capabilities, extension.id):
                self._refuse(message, not_declared(extension.id), PeerFault.UNDECLARED_EXTENSION, batch)
                return
        elif request.method not in self._custom:
            spec = spec_for(request.method)
            if (
                spec is None
                or request.method in _OWN_METHODS
                or not spec.goes(Direction.CLIENT_TO_SERVER, request.revision)
                or not declared(spec.asks_server(request.revision), self._declared[request.revision])
            ):
                self._refuse(message, unknown_method(request.method), PeerFault.UNKNOWN_METHOD, batch)
                return
        self._accept(request, batch)
        self._emit(RequestReceived(request))

    def _on_initialize(self, message: jsonrpc.Request, batch: BatchReply | None) -> None:
        params = message.params
        requested = params.get("protocolVersion")
        if self._session_revision is not None or batch is not None:
            text = "initialize: the session is open already"
            if batch is not None:
                text = "initialize must not be part of a batch"
            error = McpError(ErrorCode.INVALID_REQUEST, text)
            self._refuse(message, error, PeerFault.ALREADY_INITIALIZED, batch)
            return
        if not isinstance(requested, str):
            error = McpError(ErrorCode.INVALID_PARAMS, "protocolVersion must be a string")
            self._refuse(message, error, PeerFault.INVALID_PARAMS, batch)
            return
        revision = legacy.choose_revision(requested, self._legacy)
        if revision is None:
            error = modern.unsupported_version(requested, self._versions)
            self._refuse(message, error, PeerFault.UNSUPPORTED_VERSION, batch)
            return
        capabilities, info = params.get("capabilities"), params.get("clientInfo")
        odd: list[str] = []
        if not isinstance(capabilities, dict):
            odd.append("capabilities is no object")
            capabilities = {}
        client_info = lenient(info, Implementation, revision)
        if client_info is None:
            odd.append("clientInfo is not usable")
        for oddity in odd:
            if not self._tolerate(PeerFault.INVALID_PARAMS, f"initialize: {oddity}"):
                error = McpError(ErrorCode.INVALID_PARAMS, f"initialize: {oddity}")
                self._refuse(message, error, PeerFault.INVALID_PARAMS, batch)
                return
        self._session_info = client_info
        self._session_capabilities = capabilities
        self._session_revision = revision
        self._machine.fire(ServerInput.INITIALIZE)
        request = IncomingRequest(message.id, message.method, params, Era.LEGACY, revision)
        body = legacy.initialize_result(
            revision,
            self._declared[revision],
            to_wire(self._info, revision),
            self._instructions,
        )
        self._answer_now(request, body, None)
        self._emit(SessionStarted(revision, self._session_info))

    def _answer_now(self, request: IncomingRequest, body: dict[str, Any], batch: BatchReply | None) -> None:
        self._accept(request, batch)
        self._send_answer(request, jsonrpc.result_response(request.id, self._finish(request, body)))

    def _refuse(
        self,
        message: jsonrpc.Request,
        error: McpError,
        fault: PeerFault,
        batch: BatchReply | None,
    ) -> None:
        self._send_error(message.id, error, batch)
        self._ignore(fault, f"{message.method[:128]} was refused: {error.message}")

    def _refuse_subscription(
        self, message: jsonrpc.Request, error: McpError, batch: BatchReply | None
    ) -> None:
        fault = _FAULTS.get(error.code)
        if fault is None:
            self._send_error(message.id, error, batch)
        else:
            self._refuse(message, error, fault, batch)

    # received: everything else -------------------------------------------------------------------

    def _on_unreadable(self, raw: bytes | bytearray | str, error: JsonError) -> None:
        line = raw.encode("utf-8", "replace") if isinstance(raw, str) else bytes(raw)
        if wants_parse_error(line) and not self._answered_garbage:
            # Only once in a row: two peers that answer each other's garbage would never stop.
            self._answered_garbage = True
            self._send_error(None, McpError(ErrorCode.PARSE_ERROR, f"not readable: {error}"))
        self._ignore(error.fault, f"{error}: {self._excerpt(raw)}")

    def _refuse_oversize(self, request_id: RequestId, text: str) -> None:
        self._send_error(request_id, McpError(ErrorCode.INVALID_REQUEST, f"the message is {text}"))

    def _on_invalid(self, message: jsonrpc.InvalidMessage, batch: BatchReply | None) -> None:
        if message.like_response and self._fail_invalid_response(message):
            return
        code = message.hint
        if code is not None and (message.id is not None or not self._answered_garbage):
            self._answered_garbage = message.id is None
            self._send_error(message.id, McpError(code, message.detail), batch)
        self._ignore(message.fault, message.detail)

    def _on_notification(self, message: jsonrpc.Notification) -> None:
        params = message.params
        match message.method:
            case "notifications/cancelled":
                self._take_cancelled(params)
            case "notifications/progress":
                self._take_progress(params)
            case "notifications/initialized":
                if self.state is ServerState.INITIALIZED:
                    self._machine.fire(ServerInput.CONFIRM)
                else:
                    self._ignore(PeerFault.NOT_INITIALIZED, f"{message.method} out of turn")
            case method:
                spec = spec_for(method)
                if spec is not None and spec.kind is Kind.REQUEST:
                    self._ignore(PeerFault.REQUEST_WITHOUT_ID, f"{method} without an id was not carried out")
                else:
                    self._emit(NotificationReceived(method, params))

    def _on_result(self, call: Call, result: dict[str, Any]) -> None:
        self._calls.end(call, CallInput.SUCCEED)
        self._emit(ResultReady(call, result, self._session_revision))

    def _on_error(self, call: Call, error: McpError) -> None:
        self._fail(call, error)

    def _on_unanswerable(self, message: jsonrpc.ErrorResponse) -> None:
        self._ignore(
            PeerFault.UNANSWERABLE_ERROR,
            f"error {message.code} without an id: {message.message[: self.limits.max_excerpt]}",
        )
