"""A hook for tracing: it hears when a request begins and ends, and gives what goes along with it.

Nothing here knows a tracer. Names and attributes are those of OpenTelemetry's conventions for MCP, so an
adapter for it is a few lines. Servers are given a hook by ``App(spans=…)``, clients of the bindings by
``connect(…, spans=…)``.

Specification: 2026-07-28, basic/index (trace context in `_meta`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, Protocol, TypeAlias

from .context import Answers
from .errors import McpError, SansmcpError
from .session.calls import IncomingRequest
from .types.tools import CallToolResult

Attributes: TypeAlias = "Mapping[str, str]"
"""What is known of a request: ``mcp.method.name`` and the like."""

TOOL_ERROR: Final = "tool_error"
"""The ``error.type`` of a tool that says itself that it failed."""


class Span(Protocol):
    """One request, from its begin to its end. None of its methods may raise."""

    def context(self) -> Mapping[str, str]:
        """Members for the `_meta` of a request that leaves: ``traceparent`` and the like."""
        ...

    def end(self, attributes: Attributes, error: BaseException | None) -> None:
        """The request has ended; `error` is what it failed with. Called once."""
        ...


class SpanHook(Protocol):
    """Makes spans. It is called in the loop or thread that drives the connection, and must not raise."""

    def start(
        self,
        kind: Literal["client", "server"],
        name: str,
        attributes: Attributes,
        parent: Mapping[str, str],
    ) -> Span:
        """A request begins: one that this side makes, or one that it answers.

        `parent` is the trace context that the request of a client came with; it is empty where there was
        none, and for requests of one's own.
        """
        ...


_TARGETS: Final = {
    "tools/call": ("name", "gen_ai.tool.name"),
    "prompts/get": ("name", "gen_ai.prompt.name"),
    "resources/read": ("uri", "mcp.resource.uri"),
}
"""The param that says what a request is about, and the attribute that tells it."""

_VERBS: Final = {
    "call_tool": "tools/call",
    "get_prompt": "prompts/get",
    "read_resource": "resources/read",
    "complete": "completion/complete",
    "discover": "server/discover",
    "list_tools": "tools/list",
    "list_all_tools": "tools/list",
    "list_prompts": "prompts/list",
    "list_all_prompts": "prompts/list",
    "list_resources": "resources/list",
    "list_all_resources": "resources/list",
    "list_resource_templates": "resources/templates/list",
    "list_all_resource_templates": "resources/templates/list",
}


def described(method: str, target: object = None) -> tuple[str, dict[str, str]]:
    """The name of the span of a request, and its attributes."""
    attributes = {"mcp.method.name": method}
    if method == "tools/call":
        attributes["gen_ai.operation.name"] = "execute_tool"
    known = _TARGETS.get(method)
    if known is None or not isinstance(target, str):
        return method, attributes
    attributes[known[1]] = target
    # URIs are too many for names.
    return (method if known[0] == "uri" else f"{method} {target}"), attributes


def start_client_span(
    hook: SpanHook, verb: str, arguments: Sequence[Any], options: dict[str, Any]
) -> Span | None:
    """The span of a call that a verb of `ClientEngine` is to make; its context goes into ``meta``.

    None for a verb that asks for nothing, or lasts.
    """
    method = arguments[0] if verb == "request" and arguments else _VERBS.get(verb)
    if not isinstance(method, str):
        return None
    target = arguments[0] if arguments else None
    if verb == "request":
        params = arguments[1] if len(arguments) > 1 else None
        target = params.get(_TARGETS.get(method, ("", ""))[0]) if isinstance(params, Mapping) else None
    span = hook.start("client", *described(method, target), {})
    carried = span.context()
    if carried:
        options["meta"] = {**carried, **(options.get("meta") or {})}
    return span


def end_attributes(result: Any, error: BaseException | None) -> dict[str, str]:
    """What is told of the end of a request: how it failed, if it did."""
    if isinstance(error, McpError):
        return {"error.type": str(error.code), "rpc.response.status_code": str(error.code)}
    if error is not None:
        return {"error.type": type(error).__name__}
    failed = result.is_error if isinstance(result, CallToolResult) else None
    if isinstance(result, Mapping):
        failed = result.get("isError")
    return {"error.type": TOOL_ERROR} if failed is True else {}


class SpannedAnswers:
    """Through what requests are answered, with a span for each: as `Answers`, for whoever calls handlers.

    There are never more spans than open requests.
    """

    def __init__(self, answers: Answers, hook: SpanHook) -> None:
        self._answers = answers
        self._hook = hook
        self._open: dict[IncomingRequest, Span] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._answers, name)

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, request: IncomingRequest) -> None:
        """A request is to be answered."""
        target = request.params.get(_TARGETS.get(request.method, ("", ""))[0])
        name, attributes = described(request.method, target)
        attributes["mcp.protocol.version"] = request.revision.value
        attributes["jsonrpc.request.id"] = str(request.id)
        self._open[request] = self._hook.start("server", name, attributes, request.trace_context)

    def drop(self, request: IncomingRequest) -> None:
        """Nobody wants an answer any more. Harmless when it was given."""
        self._end(request, {"error.type": "cancelled"}, None)

    def respond(self, request: IncomingRequest, result: Any, *, now: float) -> bool:
        """As `Answers.respond`."""
        sent = self._answers.respond(request, result, now=now)
        self._end(request, end_attributes(result, None), None)
        return sent

    def respond_error(self, request: IncomingRequest, error: McpError, *, now: float) -> bool:
        """As `Answers.respond_error`."""
        sent = self._answers.respond_error(request, error, now=now)
        self._end(request, end_attributes(None, error), error)
        return sent

    def _end(self, request: IncomingRequest, attributes: Attributes, error: SansmcpError | None) -> None:
        span = self._open.pop(request, None)
        if span is not None:
            span.end(attributes, error)


__all__ = [
    "TOOL_ERROR",
    "Attributes",
    "Span",
    "SpanHook",
    "SpannedAnswers",
    "described",
    "end_attributes",
    "start_client_span",
]
