"""What the suite's scenarios call to see how the protocol itself is kept.

Names and schemas are the suite's.
"""

from __future__ import annotations

from typing import Any, Final

from sansmcp import App, Context, ErrorCode, McpError

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
