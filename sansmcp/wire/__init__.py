"""Between bytes and JSON values: framing, the JSON codec, the JSON-RPC envelope. Knows no MCP method."""
