"""HTTP: what its headers and status codes mean, and its exchanges. Knows MCP's messages, opens no socket."""
