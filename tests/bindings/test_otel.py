"""Traces through OpenTelemetry: one for a call, on both sides of it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from sansmcp import App, Context, McpError, text_only
from sansmcp_asyncio import HttpServing, connect, connect_memory
from sansmcp_otel import OpenTelemetrySpans


class Traced:
    """A provider that keeps its spans, and a hook on it."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.hook = OpenTelemetrySpans(self.provider)

    def app(self) -> App:
        app = App("server", "1", spans=self.hook)

        @app.tool()
        def echo(text: str, ctx: Context) -> str:
            return ctx.request.trace_context.get("traceparent", "")

        @app.tool()
        def fail() -> str:
            raise ValueError("no")

        return app

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        return self.exporter.get_finished_spans()

    def pair(self, name: str) -> tuple[ReadableSpan, ReadableSpan]:
        """The server's and the client's span of this name."""
        server, client = sorted(
            (s for s in self.spans if s.name == name), key=lambda s: s.kind is not SpanKind.SERVER
        )
        return server, client


@pytest.mark.req("Y1", "Y2")
@pytest.mark.parametrize("carrier", ["memory", "http"])
def test_a_call_is_one_trace_from_the_client_to_the_server(carrier: str) -> None:
    traced = Traced()

    async def run() -> str:
        tracer = traced.provider.get_tracer("test")
        if carrier == "memory":
            async with connect_memory(traced.app(), spans=traced.hook) as client:
                with tracer.start_as_current_span("outside"):
                    return text_only(await client.call_tool("echo", {"text": "hi"}))
        async with HttpServing(traced.app()) as serving, connect(serving.url, spans=traced.hook) as client:
            with tracer.start_as_current_span("outside"):
                return text_only(await client.call_tool("echo", {"text": "hi"}))

    told = asyncio.run(run())
    server, client = traced.pair("tools/call echo")
    outside = next(s for s in traced.spans if s.name == "outside")
    assert server.parent is not None
    assert client.parent is not None
    assert server.context is not None
    assert client.context is not None
    assert outside.context is not None
    assert server.parent.span_id == client.context.span_id
    assert client.parent.span_id == outside.context.span_id
    assert server.context.trace_id == client.context.trace_id == outside.context.trace_id
    assert f"{client.context.span_id:016x}" in told
    assert (server.kind, client.kind) == (SpanKind.SERVER, SpanKind.CLIENT)
    assert server.attributes is not None
    assert server.attributes["mcp.method.name"] == "tools/call"
    assert server.attributes["gen_ai.tool.name"] == "echo"
    assert server.attributes["mcp.protocol.version"] == "2026-07-28"
    assert server.status.status_code is client.status.status_code is StatusCode.UNSET


@pytest.mark.req("Y2")
def test_how_a_request_failed_is_in_its_spans() -> None:
    traced = Traced()

    async def run() -> None:
        async with connect_memory(traced.app(), spans=traced.hook) as client:
            assert (await client.call_tool("fail")).is_error
            with pytest.raises(McpError):
                await client.call_tool("nothing")

    asyncio.run(run())
    for name, kind in [("tools/call fail", "tool_error"), ("tools/call nothing", "-32602")]:
        for span in traced.pair(name):
            assert span.attributes is not None
            assert span.attributes["error.type"] == kind
            assert span.status.status_code is StatusCode.ERROR


def test_without_an_sdk_nothing_is_recorded_and_nothing_breaks() -> None:
    async def run() -> None:
        hook = OpenTelemetrySpans()
        app = App("server", "1", spans=hook)
        app.tool("echo")(lambda text: text)
        async with connect_memory(app, spans=hook) as client:
            await client.call_tool("echo", {"text": "hi"})

    asyncio.run(run())
