"""The command ``sansmcp``: look at MCP servers, use them, serve one. Needs the extra ``cli``."""
