# mypy: ignore-errors
"""The echo server on the official SDK; its answer is the same on the wire as ours."""

from mcp.server.mcpserver import MCPServer

server = MCPServer("bench", version="1", log_level="WARNING")


@server.tool(structured_output=False)
async def echo(text: str) -> str:
    """Give the text back."""
    return text


if __name__ == "__main__":
    server.run("stdio")
