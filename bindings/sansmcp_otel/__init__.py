"""OpenTelemetry for sansmcp: a span for each request, on both sides, as its conventions for MCP have it.

    hook = OpenTelemetrySpans()
    app = App("server", "1", spans=hook)
    async with connect("https://example.com/mcp", spans=hook) as client: ...

The trace goes on from the client to the server in the `_meta` of the request. Needs opentelemetry-api,
which the extra ``otel`` brings; without an SDK that is set up, nothing is recorded.

Specification: 2026-07-28, basic/index (trace context in `_meta`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from opentelemetry import trace
from opentelemetry.baggage.propagation import W3CBaggagePropagator
from opentelemetry.context import Context
from opentelemetry.propagators.composite import CompositePropagator
from opentelemetry.trace import SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from sansmcp import __version__
from sansmcp.spans import Attributes

_KINDS: Final = {"client": SpanKind.CLIENT, "server": SpanKind.SERVER}

# What `_meta` carries is fixed by the protocol, whatever the process uses elsewhere.
_PROPAGATOR: Final = CompositePropagator([TraceContextTextMapPropagator(), W3CBaggagePropagator()])


class OpenTelemetrySpans:
    """A `SpanHook` whose spans go to OpenTelemetry: to `provider`, or to the global one.

    May be shared by any number of clients and servers. A request of a client is a child of what is the
    current span where its verb is called; one that a server answers is a child of the client's, where that
    told of it.
    """

    def __init__(self, provider: trace.TracerProvider | None = None) -> None:
        self._tracer = trace.get_tracer("sansmcp", __version__, provider)

    def start(
        self,
        kind: Literal["client", "server"],
        name: str,
        attributes: Attributes,
        parent: Mapping[str, str],
    ) -> OpenTelemetrySpan:
        """As `SpanHook.start`."""
        context = _PROPAGATOR.extract(parent) if parent else None
        span = self._tracer.start_span(name, context, _KINDS[kind], attributes)
        return OpenTelemetrySpan(span, context)


class OpenTelemetrySpan:
    """A `Span` around one of OpenTelemetry's."""

    def __init__(self, span: trace.Span, context: Context | None) -> None:
        self._span = span
        self._context = context

    def context(self) -> Mapping[str, str]:
        """As `Span.context`: ``traceparent``, and ``tracestate`` and ``baggage`` where there are any."""
        carried: dict[str, str] = {}
        _PROPAGATOR.inject(carried, trace.set_span_in_context(self._span, self._context))
        return carried

    def end(self, attributes: Attributes, error: BaseException | None) -> None:
        """As `Span.end`."""
        self._span.set_attributes(attributes)
        kind = attributes.get("error.type")
        if kind is not None:
            self._span.set_status(Status(StatusCode.ERROR, kind if error is None else str(error)))
        self._span.end()


__all__ = ["OpenTelemetrySpan", "OpenTelemetrySpans"]
