"""Cells of a notebook. Jupyter awaits at the top of a cell, and its loop goes on between them."""

# %%
import sansmcp_asyncio

client = await sansmcp_asyncio.connect("http://127.0.0.1:8000/mcp")
print("speaks", client.revision)

# %%
result = await client.call_tool("echo", {"text": "hi"})
print("said", result.content[0].text)

# %%
await client.aclose()
