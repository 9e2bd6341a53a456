"""A server on standard input and output, in both eras: `python server.py`."""

import asyncio

import sansmcp_asyncio
from sansmcp import App

app = App("greeter", "1.0", instructions="Ask it to greet somebody.")


@app.tool()
def greet(name: str, loud: bool = False) -> str:
    """Greet somebody."""
    text = f"Hello, {name}!"
    return text.upper() if loud else text


@app.resource("greetings://{language}")
async def greeting(language: str) -> str:
    """How to greet in a language."""
    return {"de": "Guten Tag", "fr": "Bonjour"}.get(language, "Hello")


if __name__ == "__main__":
    asyncio.run(sansmcp_asyncio.serve_stdio(app))
