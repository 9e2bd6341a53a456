"""`App`: the handlers of a server, in one registry that serves both eras.

Pure: it looks up, checks and converts; calling the handler is up to the binding. `App.begin` turns
a received request into an answer or an `Invocation`; the invocation's `finish` or `fail` turns what
the handler did into the answer.

Specification: 2026-07-28, server/tools, server/resources, server/prompts,
server/utilities/completion and pagination.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from .asks import AnyQuestion, check_askable
from .context import Answers, Context, Host
from .errors import CapabilityMissing, ErrorCode, LocalProtocolError, McpError, QuestionFailed
from .events import ListKind
from .extensions.extension import Extension, ExtensionMethod, check_distinct
from .invocation import Convert, Handler, Invocation
from .limits import SERVER_LIMITS, Limits, Timeouts
from .registered import Checks, Registered, RegisteredTool
from .results import (
    ToolError,
    complete_result,
    prompt_result,
    resource_result,
    tool_error,
)
from .revisions import ALL_REVISIONS, Era, Revision
from .schema import input_schema_of, output_schema_of
from .seals import Principal, Seals
from .server import EnvelopeCheck, ServerEngine
from .session.calls import IncomingRequest
from .session.gates import is_tool_name
from .session.hints import Keep
from .session.pagination import read_cursor, write_page
from .session.params import read_completion, text_problem
from .session.typing import to_wire
from .types.lifecycle import Implementation, ServerCapabilities
from .types.tools import Tool, ToolAnnotations
from .validation import SchemaValidator, UnusableSchemaError
from .validators import RustValidator, ValidatorUnavailableError
from .wire.jsoncodec import JsonCodec, JsonValue

if TYPE_CHECKING:
    from .session.sealing import StateSealer
    from .spans import SpanHook
    from .types.prompts import PromptArgument
    from .uritemplate import UriTemplate

F = TypeVar("F", bound=Handler)
R = TypeVar("R", bound=Registered)
Publish = Callable[[Callable[[Answers, float], object]], object]
"""Tells the clients of one server something: see `App.attach`."""

HIDDEN: Final = "the server failed to carry this out"


class _Told(ToolError):  # noqa: N818  (a kind of ToolError)
    """What may be told to any client, whatever it called."""


class App:
    """Tools, resources, prompts and methods of a server, in the order they were registered.

    `page_size` splits lists into pages (None: one page). `list_changed` says that clients are told when
    a list changes, `subscribe` that they can subscribe to resources: telling them is up to you, with
    `notify_changed` and `notify_updated`. `expose_errors` shows the text of every exception to the
    client; otherwise it sees a fixed text with a number, and `on_error` (called with the exception and
    that number) can log the rest. `ToolError` and `McpError` are always shown.

    What a handler that asks modern clients has to know of earlier rounds is sealed with the first of
    `state_keys` (each at least 32 random bytes; all of them open it) or by `sealer`: servers that
    share these go on with each other's requests. Without either, a key is drawn that only this object
    knows. `principal` says who made a request: what was sealed for one is refused from another.

    `validator` checks arguments and structured results of tools against their schemas; None checks only
    that arguments have the right names. ``"auto"`` is jsonschema-rs where it is installed, and none for
    a tool whose schema it cannot use.

    `keep` says how long clients may use a list again; None: not at all.

    `extensions` are declared, and their methods served. `spans` hears of every request that a host
    hands over.
    """

    def __init__(
        self,
        name: str,
        version: str = "0",
        *,
        title: str | None = None,
        instructions: str | None = None,
        page_size: int | None = None,
        expose_errors: bool = False,
        logging: bool = False,
        list_changed: bool = False,
        subscribe: bool = False,
        state_keys: Sequence[bytes] = (),
        sealer: StateSealer | None = None,
        principal: Principal | None = None,
        validator: SchemaValidator | Literal["auto"] | None = "auto",
        keep: Keep | None = None,
        on_error: Callable[[BaseException, int], None] | None = None,
        extensions: Sequence[Extension] = (),
        spans: SpanHook | None = None,
    ) -> None:
        if page_size is not None and page_size < 1:
            raise LocalProtocolError(f"page_size must be at least 1, got {page_size}")
        self.info = Implementation(name=name, version=version, title=title)
        self.instructions = instructions
        self._page_size = page_size
        self._expose_errors = expose_errors
        self._logging = logging
        self._list_changed = list_changed
        self._subscribe = subscribe
        self._seals = Seals(sealer, state_keys, principal)
        self._validator = validator
        self._list_hints = {} if keep is None else keep.hints()
        self._on_error = on_error
        self.spans = spans
        """Hears when requests begin and end; see `sansmcp.spans`."""
        self._failures = 0
        self._publishers: dict[Publish, None] = {}
        check_distinct(extensions)
        self._extensions = tuple(extensions)
        self._extended: dict[str, tuple[ExtensionMethod, Registered]] = {}
        self._tools: dict[str, RegisteredTool] = {}
        self._resources: dict[str, Registered] = {}
        self._templates: dict[str, tuple[UriTemplate, Registered]] = {}
        self._prompts: dict[str, Registered] = {}
        self._methods: dict[str, Registered] = {}
        self._completion: Registered | None = None
        self._slots: dict[str, Callable[[Answers, IncomingRequest, Any], Invocation | Any]] = {
            "tools/call": self._call_tool,
            "resources/read": self._read_resource,
            "prompts/get": self._get_prompt,
            "completion/complete": self._complete,
            "tools/list": self._lister("tools", self._tools),
            "resources/list": self._lister("resources", self._resources),
            "resources/templates/list": self._list_templates,
            "prompts/list": self._lister("prompts", self._prompts),
        }
        for extension in self._extensions:
            extension.adopt(self)
            for added, method in extension.methods.items():
                if method.handler is not None:
                    self._extended[added] = (method, Registered(None, method.handler))

    # registration --------------------------------------------------------------------------------

    def tool(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        input_schema: Mapping[str, JsonValue] | None = None,
        output_schema: Mapping[str, JsonValue] | None = None,
        annotations: ToolAnnotations | None = None,
        meta: Mapping[str, JsonValue] | None = None,
        requires: Sequence[AnyQuestion] = (),
    ) -> Callable[[F], F]:
        """Register a function as a tool; its arguments arrive as keywords.

        `name` defaults to the function's, `description` to its docstring, `input_schema` and
        `output_schema` to what is read from its annotations (`sansmcp.schema` says which): arguments that
        are annotated with classes arrive as objects of these. A parameter named ``ctx`` receives the
        `Context`. It may return text, a mapping or an object of a class with fields (structured
        content), a list of content blocks, or a `CallToolResult`.

        `requires` are questions, or classes of them, that it has to ask: it is not called for a client
        that did not declare that it can be asked (`Context.can`), which is told so.

        Raises LocalProtocolError for a name that is taken or not allowed, and for a schema that the
        `validator` of this app cannot use.
        """

        def register(function: F) -> F:
            tool_name = name or function.__name__
            check_tool_name(tool_name)
            schema = dict(input_schema) if input_schema is not None else input_schema_of(function)
            definition = Tool(
                name=tool_name,
                title=title,
                description=description or inspect.getdoc(function),
                input_schema=schema,
                output_schema=output_schema_of(function) if output_schema is None else dict(output_schema),
                annotations=annotations,
                meta=dict(meta) if meta is not None else None,
            )
            entry = RegisteredTool(definition, function, tuple(requires))
            if isinstance(self._validator, SchemaValidator):
                entry.compile(self._validator)
            self._add(self._tools, "tool", tool_name, entry)
            return function

        return register

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        keep: Keep | None = None,
    ) -> Callable[[F], F]:
        """Register a function as the resource at `uri`, or at every URI of a template.

        A URI with ``{name}`` parts is a template (RFC 6570): the parts arrive as keywords, decoded,
        those of a query only where they are given. The function returns str, bytes, or a list of
        resource contents. `keep` says how long clients may use these again.
        """
        from .types.resources import Resource, ResourceTemplate
        from .uritemplate import UriTemplate

        def register(function: F) -> F:
            label = name or function.__name__
            text = description or inspect.getdoc(function)
            if "{" in uri:
                template = UriTemplate(uri)
                template.check_matchable()
                entry = Registered(
                    ResourceTemplate(
                        name=label,
                        title=title,
                        description=text,
                        uri_template=uri,
                        mime_type=mime_type,
                    ),
                    function,
                    keep=keep,
                )
                if uri in self._templates:
                    raise LocalProtocolError(f"resource template {uri!r} is registered already")
                self._templates[uri] = (template, entry)
            else:
                definition = Resource(name=label, title=title, description=text, uri=uri, mime_type=mime_type)
                self._add(self._resources, "resource", uri, Registered(definition, function, keep=keep))
            return function

        return register

    def prompt(
        self,
        name: str | None = None,
        *,
        title: str | None = None,
        description: str | None = None,
        arguments: Sequence[PromptArgument] | None = None,
    ) -> Callable[[F], F]:
        """Register a function as a prompt; its arguments arrive as keywords, all of them text.

        `arguments` defaults to the function's parameters. It returns text (one user message), a
        list of `PromptMessage`, or a `GetPromptResult`.
        """
        from .types.prompts import Prompt

        def register(function: F) -> F:
            prompt_name = name or function.__name__
            definition = Prompt(
                name=prompt_name,
                title=title,
                description=description or inspect.getdoc(function),
                arguments=list(arguments) if arguments is not None else _arguments_of(function),
            )
            self._add(self._prompts, "prompt", prompt_name, Registered(definition, function))
            return function

        return register

    def completion(self, function: F) -> F:
        """Register the function that completes arguments.

        Called with ``(ref, name, value, context)``: the reference as JSON, the argument's name and
        what is typed so far, and the arguments chosen before. Returns a list of texts or a
        `CompleteResult`.
        """
        if self._completion is not None:
            raise LocalProtocolError("a completion handler is registered already")
        self._completion = Registered(None, function)
        return function

    def method(self, name: str) -> Callable[[F], F]:
        """Register a function for a method of your own; it gets the params as one mapping."""

        def register(function: F) -> F:
            self._add(self._methods, "method", name, Registered(None, function))
            return function

        return register

    def _add(
        self,
        table: dict[str, R],
        kind: str,
        key: str,
        entry: R,
    ) -> None:
        if key in table:
            raise LocalProtocolError(f"{kind} {key!r} is registered already")
        table[key] = entry

    def remove_tool(self, name: str) -> None:
        """Take a tool out of the list, also while clients are served.

        Capabilities stay as they were declared. Raises LocalProtocolError for one that is not there.
        """
        self._remove(self._tools, "tool", name)

    def remove_resource(self, uri: str) -> None:
        """Take a resource, or the template `uri`, out of its list. As `remove_tool`."""
        if uri in self._templates:
            del self._templates[uri]
        else:
            self._remove(self._resources, "resource", uri)

    def remove_prompt(self, name: str) -> None:
        """Take a prompt out of the list. As `remove_tool`."""
        self._remove(self._prompts, "prompt", name)

    @staticmethod
    def _remove(table: dict[str, R], kind: str, key: str) -> None:
        if table.pop(key, None) is None:
            raise LocalProtocolError(f"there is no {kind} {key!r}")

    # telling of changes --------------------------------------------------------------------------

    def notify_changed(self, kind: ListKind) -> None:
        """Tell every client that wants to know that a list changed, whatever serves it.

        Can be called from any thread and at any time. Nobody is told before the app is served, nor
        unless it was made with `list_changed`.
        """
        for publish in list(self._publishers):
            publish(lambda answers, now: answers.notify_changed(kind, now=now))

    def notify_updated(self, uri: str) -> None:
        """Tell every client that subscribed to the resource at `uri` that it changed.

        As `notify_changed`; the app must have been made with `subscribe`.
        """
        for publish in list(self._publishers):
            publish(lambda answers, now: answers.notify_updated(uri, now=now))

    def publish(self, action: Callable[[Answers, float], object]) -> None:
        """For extensions: tell clients something, by whatever serves the app. As `notify_changed`."""
        for publish in list(self._publishers):
            publish(action)

    def principal_of(self, request: IncomingRequest) -> str | None:
        """Who made a request, as `principal` says."""
        return self._seals.principal_of(request)

    def report_error(self, error: BaseException) -> int:
        """For extensions: let `on_error` hear of what no answer tells. The number it is known by."""
        self._failures += 1
        if self._on_error is not None:
            self._on_error(error, self._failures)
        return self._failures

    def attach(self, publish: Publish, host: Host | None = None) -> Callable[[], None]:
        """For a binding that serves the app: how its clients are told of changes. Returns how to stop.

        `publish` runs what it is given with the engine, or whatever has the engines, and the time; it
        may be called from any thread. `host` is what its contexts have.
        """
        self._publishers[publish] = None

        def detach() -> None:
            if host is not None and publish in self._publishers:
                for extension in self._extensions:
                    extension.host_gone(host)
            self._publishers.pop(publish, None)

        return detach

    # the engine it drives ------------------------------------------------------------------------

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The extensions that it was made with."""
        return self._extensions

    @property
    def capabilities(self) -> ServerCapabilities:
        """What there are handlers for."""
        return self._capabilities(changes=True)

    def _capabilities(self, *, changes: bool) -> ServerCapabilities:
        of_lists: dict[str, JsonValue] = {"listChanged": True} if self._list_changed and changes else {}
        of_resources: dict[str, JsonValue] = {"subscribe": True} if self._subscribe and changes else {}
        offered: dict[str, Any] = {}
        if self._tools:
            offered["tools"] = of_lists
        if self._resources or self._templates:
            offered["resources"] = {**of_lists, **of_resources}
        if self._prompts:
            offered["prompts"] = of_lists
        if self._completion is not None:
            offered["completions"] = {}
        if self._logging:
            offered["logging"] = {}
        from .types.convert import structure

        return structure(offered, ServerCapabilities, Revision.V2026_07_28)

    def engine(
        self,
        *,
        now: float,
        limits: Limits = SERVER_LIMITS,
        timeouts: Timeouts | None = None,
        codec: JsonCodec | None = None,
        revisions: Sequence[Revision] = ALL_REVISIONS,
        ids_per_exchange: bool = False,
        check: EnvelopeCheck | None = None,
        changes: bool = True,
        strict: bool = False,
    ) -> ServerEngine:
        """An engine for one connection, with what is registered now.

        Without `changes` it offers to tell of none, whatever the app would. The other parameters are
        those of `ServerEngine`.
        """
        return ServerEngine(
            self.info,
            now=now,
            capabilities=self._capabilities(changes=changes),
            instructions=self.instructions,
            methods=tuple(self._methods),
            extensions=self._extensions,
            revisions=revisions,
            limits=limits,
            timeouts=timeouts,
            codec=codec,
            ids_per_exchange=ids_per_exchange,
            check=check,
            strict=strict,
        )

    def input_schema(self, name: str) -> Mapping[str, JsonValue] | None:
        """The input schema of the tool `name` as it is listed; None when there is no such tool.

        For `HttpServer`, which compares headers with the arguments that the schema wants mirrored.
        """
        entry = self._tools.get(name)
        return None if entry is None else entry.definition.input_schema

    def begin(
        self, engine: Answers, request: IncomingRequest, context: Context, *, now: float
    ) -> Invocation | None:
        """Answer `request` at once (None), or say which handler is to be called for it."""
        try:
            slot = self._slots.get(request.method)
            if slot is not None:
                step = slot(engine, request, context)
            else:
                extended = self._extended.get(request.method)
                method, entry = extended or (None, self._methods[request.method])
                params = {k: v for k, v in request.params.items() if k != "_meta"}
                if method is not None and method.inline:
                    step = entry.function(params, ctx=context, now=now)
                else:
                    step = self._invoke(engine, request, context, entry, (params,), {}, _custom_result)
            if isinstance(step, Invocation):
                self._seals.resume(context, now=now)
                for extension in self._extensions:
                    extension.begin(step, now=now)
                return step
            engine.respond(request, step, now=now)
        except Exception as error:
            self._answer_failure(engine, request, error, now=now)
        return None

    def _invoke(
        self,
        engine: Answers,
        request: IncomingRequest,
        context: Context,
        entry: Registered,
        arguments: tuple[Any, ...],
        keywords: dict[str, Any],
        convert: Convert,
    ) -> Invocation:
        if entry.context:
            keywords = {**keywords, "ctx": context}
        return Invocation(entry.function, arguments, keywords, entry.is_async, context, self, convert)

    # slots: one per method -----------------------------------------------------------------------

    def _call_tool(self, engine: Answers, request: IncomingRequest, context: Context) -> Invocation | Any:
        name = _text_param(request, "name")
        entry = self._tools.get(name)
        if entry is None:
            raise McpError(ErrorCode.INVALID_PARAMS, f"no tool named {name[:128]!r}", {"name": name})
        if entry.requires:
            check_askable(entry.requires, request.revision, request.peer_capabilities)
        arguments = request.params.get("arguments")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise McpError(ErrorCode.INVALID_PARAMS, "arguments must be an object")
        keywords = entry.take(arguments, self._checks_of(entry))
        if isinstance(keywords, str):
            # The model that chose the arguments can read this and try again.
            return tool_error(f"{name}: {keywords}")
        return self._invoke(engine, request, context, entry, (), keywords, entry.result)

    def _checks_of(self, entry: RegisteredTool) -> Checks:
        if self._validator == "auto":
            try:
                self._validator = RustValidator()
            except ValidatorUnavailableError:
                self._validator = None
        try:
            return entry.compile(self._validator)
        except UnusableSchemaError:
            return entry.give_up_checks()

    def _read_resource(self, engine: Answers, request: IncomingRequest, context: Context) -> Invocation:
        uri = _text_param(request, "uri")
        entry: Registered | None = self._resources.get(uri)
        keywords: dict[str, Any] = {}
        mime_type = None if entry is None else entry.definition.mime_type
        if entry is None:
            for template, candidate in self._templates.values():
                match = template.match(uri)
                if match is not None:
                    entry, keywords = candidate, dict(match)
                    mime_type = candidate.definition.mime_type
                    break
        if entry is None:
            code = ErrorCode.INVALID_PARAMS
            if request.era is Era.LEGACY:
                code = ErrorCode.RESOURCE_NOT_FOUND
            raise McpError(code, f"no resource at {uri[:256]!r}", {"uri": uri})
        return self._invoke(
            engine,
            request,
            context,
            entry,
            (),
            keywords,
            lambda value, revision: entry.kept(resource_result(value, revision, uri, mime_type)),
        )

    def _get_prompt(self, engine: Answers, request: IncomingRequest, context: Context) -> Invocation:
        name = _text_param(request, "name")
        entry = self._prompts.get(name)
        if entry is None:
            raise _no_prompt(name)
        arguments = request.params.get("arguments")
        if arguments is None:
            arguments = {}
        if not isinstance(arguments, dict):
            raise McpError(ErrorCode.INVALID_PARAMS, "arguments must be an object")
        problem = entry.binding_problem(arguments) or text_problem(arguments)
        if problem is not None:
            raise McpError(ErrorCode.INVALID_PARAMS, f"{name}: {problem}", {"name": name})
        text = entry.definition.description
        return self._invoke(
            engine,
            request,
            context,
            entry,
            (),
            arguments,
            lambda value, revision: prompt_result(value, revision, text),
        )

    def _complete(self, engine: Answers, request: IncomingRequest, context: Context) -> Invocation:
        entry = self._completion
        if entry is None:
            raise McpError(ErrorCode.METHOD_NOT_FOUND, "nothing is completed here")
        asked = read_completion(request.params)
        ref = asked[0]
        if ref["type"] == "ref/prompt" and ref["name"] not in self._prompts:
            raise _no_prompt(ref["name"])
        return self._invoke(engine, request, context, entry, asked, {}, complete_result)

    def _lister(
        self, member: str, table: Mapping[str, Registered]
    ) -> Callable[[Answers, IncomingRequest, Any], Any]:
        def listed(engine: Answers, request: IncomingRequest, context: Context) -> Any:
            definitions = [entry.definition for entry in table.values()]
            return self._page(member, definitions, request)

        return listed

    def _list_templates(self, engine: Answers, request: IncomingRequest, context: Context) -> Any:
        definitions = [entry.definition for _, entry in self._templates.values()]
        return self._page("resourceTemplates", definitions, request)

    def _page(self, member: str, definitions: Sequence[Any], request: IncomingRequest) -> Any:
        start = read_cursor(request.params.get("cursor"), len(definitions), self._page_size)
        page, cursor = write_page(definitions, start, self._page_size)
        result: dict[str, Any] = {
            member: [to_wire(d, request.revision) for d in page],
            **self._list_hints,
        }
        if cursor is not None:
            result["nextCursor"] = cursor
        return result

    # failures ------------------------------------------------------------------------------------

    def _answer_failure(
        self, engine: Answers, request: IncomingRequest, error: BaseException, *, now: float
    ) -> None:
        if isinstance(error, QuestionFailed) or (
            isinstance(error, CapabilityMissing) and request.era is Era.LEGACY
        ):
            # The client knows what it is about, and an error code of its own would mislead it.
            error = _Told(error.args[0])
        if isinstance(error, McpError):
            try:
                engine.respond_error(request, error, now=now)
                return
            except LocalProtocolError as refused:
                error = refused
        if not request.open:
            return
        if isinstance(error, ToolError) and request.method == "tools/call":
            engine.respond(request, tool_error(str(error)), now=now)
            return
        text = f"{HIDDEN} (error {self.report_error(error)})"
        if isinstance(error, _Told):
            text = str(error)
        elif self._expose_errors or isinstance(error, ToolError):
            text = f"{type(error).__name__}: {error}"
        # A value that is no JSON, or an answer the protocol forbids, is a fault of this server.
        if request.method == "tools/call" and not isinstance(error, LocalProtocolError):
            engine.respond(request, tool_error(text), now=now)
        else:
            engine.respond_error(request, McpError(ErrorCode.INTERNAL_ERROR, text), now=now)


def check_tool_name(name: str) -> None:
    """Raise LocalProtocolError for a name that the protocol does not allow for a tool."""
    if not is_tool_name(name):
        raise LocalProtocolError(
            f"tool name {name!r}: 1 to 128 of the characters A-Z a-z 0-9 . _ - are allowed"
        )


def _no_prompt(name: str) -> McpError:
    return McpError(ErrorCode.INVALID_PARAMS, f"no prompt named {name[:128]!r}", {"name": name})


def _text_param(request: IncomingRequest, key: str) -> str:
    value = request.params.get(key)
    if not isinstance(value, str):
        raise McpError(ErrorCode.INVALID_PARAMS, f"{request.method}: {key} must be a string")
    return value


def _arguments_of(function: Handler) -> list[PromptArgument]:
    from .types.prompts import PromptArgument

    return [
        PromptArgument(name=name, required=parameter.default is parameter.empty)
        for name, parameter in inspect.signature(function).parameters.items()
        if name != "ctx" and parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    ]


def _custom_result(value: Any, revision: Revision) -> Any:
    return {} if value is None else value


__all__ = ["App", "Context", "Handler", "Invocation", "ListKind", "ToolError", "check_tool_name"]
