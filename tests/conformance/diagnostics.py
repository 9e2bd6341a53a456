"""What the suite's scenarios call to see how the protocol itself is kept.

Names and schemas are the suite's.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from sansmcp import App, Context, ErrorCode, ListKind, McpError

REGION_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
    "required": ["region"],
}


def register(app: App) -> None:
    """Put all of it into `app`."""

    @app.tool(input_schema=REGION_SCHEMA)
    def test_x_mcp_header(region: str) -> str:
        """Has an argument that is mirrored in a header."""
        return region

    @app.tool()
    def test_missing_capability(ctx: Context) -> str:
        """Needs a client that can sample."""
        if "sampling" not in ctx.client_capabilities:
            raise McpError(
                ErrorCode.MISSING_CLIENT_CAPABILITY,
                "this tool needs a client that can sample",
                {"requiredCapabilities": {"sampling": {}}},
            )
        return "The client can sample."

    @app.tool()
    def test_logging_tool(ctx: Context) -> str:
        """Logs a line, for whoever asked for logs."""
        ctx.log("info", "A line of the log.")
        return "A line was logged."

    @app.tool()
    async def test_reconnection(ctx: Context) -> str:
        """Takes long, and lets its client come back for the result."""
        ctx.hang_up()
        await asyncio.sleep(0.2)
        return "Here is the result."

    _changes(app)


def _changes(app: App) -> None:
    """Lists that change while they are served: what is called adds one thing, or takes it away again."""
    added: set[ListKind] = set()

    def visitor() -> str:
        """Comes and goes."""
        return "Still here."

    @app.tool()
    async def test_trigger_tool_change(ctx: Context) -> str:
        """Changes the list of tools."""
        if ListKind.TOOLS in added:
            app.remove_tool("visitor")
        else:
            app.tool("visitor")(visitor)
        added.symmetric_difference_update({ListKind.TOOLS})
        ctx.notify_changed(ListKind.TOOLS)
        return "The list of tools changed."

    @app.tool()
    async def test_trigger_prompt_change(ctx: Context) -> str:
        """Changes the list of prompts."""
        if ListKind.PROMPTS in added:
            app.remove_prompt("visitor")
        else:
            app.prompt("visitor")(visitor)
        added.symmetric_difference_update({ListKind.PROMPTS})
        ctx.notify_changed(ListKind.PROMPTS)
        return "The list of prompts changed."
