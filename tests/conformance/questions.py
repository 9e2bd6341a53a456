"""What the suite's scenarios call to be asked something in return.

Names, keys, texts and schemas are the suite's. Each handler serves both eras.
"""

from __future__ import annotations

from typing import Any, Final

from sansmcp import App, Context, Elicit, ListRoots, Sample
from sansmcp.types import CreateMessageResult, ElicitResult, ListRootsResult, TextContent

OPTIONS: Final = ["option1", "option2", "option3"]
TITLED_OPTIONS: Final = [
    {"const": f"value{number}", "title": f"{word} Option"}
    for number, word in enumerate(("First", "Second", "Third"), 1)
]
TITLED_CHOICES: Final = [
    {"const": f"value{number}", "title": f"{word} Choice"}
    for number, word in enumerate(("First", "Second", "Third"), 1)
]


def form(*required: str, **properties: dict[str, Any]) -> dict[str, Any]:
    """The schema of a form."""
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    return {**schema, "required": list(required)} if required else schema


USER: Final = form(
    "username",
    "email",
    username={"type": "string", "description": "User's response"},
    email={"type": "string", "description": "User's email address"},
)
DEFAULTS: Final = form(
    name={"type": "string", "default": "John Doe"},
    age={"type": "integer", "default": 30},
    score={"type": "number", "default": 95.5},
    status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    verified={"type": "boolean", "default": True},
)
ENUMS: Final = form(
    untitledSingle={"type": "string", "enum": OPTIONS},
    titledSingle={"type": "string", "oneOf": TITLED_OPTIONS},
    legacyEnum={
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    untitledMulti={"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    titledMulti={"type": "array", "items": {"anyOf": TITLED_CHOICES}},
)
NAME: Final = form("name", name={"type": "string"})
COLOR: Final = form("color", color={"type": "string"})
OK: Final = form("ok", ok={"type": "boolean"})
CONTEXT: Final = form("context", context={"type": "string"})

CAPITAL: Final = "What is the capital of France?"


def register(app: App) -> None:
    """Put all of it into `app`."""
    _one_answer(app)
    _rounds(app)


def _filled_in(result: ElicitResult, field: str) -> Any:
    """What a form was filled in with, if it was."""
    return (result.content or {}).get(field)


def _said(result: CreateMessageResult) -> str:
    """The text that a model gave."""
    blocks = result.content if isinstance(result.content, list) else [result.content]
    return " ".join(block.text for block in blocks if isinstance(block, TextContent))


def _places(result: ListRootsResult) -> str:
    return ", ".join(root.uri for root in result.roots)


def _one_answer(app: App) -> None:
    """Tools that ask one thing."""

    @app.tool()
    async def test_sampling(ctx: Context, prompt: str) -> str:
        """Asks the client's model."""
        return f"LLM response: {_said(await ctx.sample(prompt, max_tokens=100))}"

    @app.tool()
    async def test_elicitation(ctx: Context, message: str) -> str:
        """Asks the user."""
        result = await ctx.elicit(message, USER)
        return f"User response: action={result.action}, content={result.content}"

    @app.tool()
    async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
        """Asks the user, and proposes answers."""
        result = await ctx.elicit("Please check what is filled in", DEFAULTS)
        return f"Elicitation completed: action={result.action}, content={result.content}"

    @app.tool()
    async def test_elicitation_sep1330_enums(ctx: Context) -> str:
        """Asks the user to choose, in five ways."""
        result = await ctx.elicit("Please choose", ENUMS)
        return f"Elicitation completed: action={result.action}, content={result.content}"

    @app.tool()
    async def test_streaming_elicitation(ctx: Context) -> str:
        """Asks the user, as far as the era has streams on one."""
        return f"The user said {(await ctx.elicit('Please confirm', OK)).action}."

    @app.tool()
    async def test_input_required_result_elicitation(ctx: Context) -> str:
        """Asks the user for a name."""
        result = await ctx.elicit("What is your name?", NAME, key="user_name")
        return f"Hello, {_filled_in(result, 'name')}!"

    @app.tool()
    async def test_input_required_result_sampling(ctx: Context) -> str:
        """Asks the client's model for a capital."""
        return f"It says: {_said(await ctx.sample(CAPITAL, max_tokens=100, key='capital_question'))}"

    @app.tool()
    async def test_input_required_result_list_roots(ctx: Context) -> str:
        """Asks where the client works."""
        return f"The client works on {_places(await ctx.list_roots(key='client_roots'))}."

    @app.prompt()
    async def test_input_required_result_prompt(ctx: Context) -> str:
        """A prompt that asks the user for a context."""
        asked = "What context should the prompt use?"
        result = await ctx.elicit(asked, CONTEXT, key="user_context")
        return f"Answer in this context: {_filled_in(result, 'context')}"


def _rounds(app: App) -> None:
    """Tools that ask more, and keep a state meanwhile."""

    @app.tool()
    async def test_input_required_result_request_state(ctx: Context) -> str:
        """Keeps a state while the user confirms."""
        ctx.state = ctx.state or "asked"
        result = await ctx.elicit("Please confirm", OK, key="confirm")
        return f"state-ok: {ctx.state}, {result.action}"

    @app.tool()
    async def test_input_required_result_tampered_state(ctx: Context) -> str:
        """Keeps a state that nobody else can make."""
        ctx.state = ctx.state or "asked"
        result = await ctx.elicit("Please confirm", OK, key="confirm")
        return f"The state came back whole: {ctx.state}, {result.action}"

    @app.tool()
    async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
        """Asks the user, the client's model and the client at once."""
        ctx.state = ctx.state or "asked"
        name, greeting, roots = await ctx.ask(
            Elicit("What is your name?", NAME, key="user_name"),
            Sample("Generate a greeting", max_tokens=50, key="greeting"),
            ListRoots(key="client_roots"),
        )
        return f"{_said(greeting)} {_filled_in(name, 'name')} works on {_places(roots)}."

    @app.tool()
    async def test_input_required_result_multi_round(ctx: Context) -> str:
        """Asks the user twice."""
        ctx.state = ctx.state or "asked"
        name = await ctx.elicit("Step 1: What is your name?", NAME, key="step1")
        color = await ctx.elicit("Step 2: What is your favorite color?", COLOR, key="step2")
        return f"{_filled_in(name, 'name')} likes {_filled_in(color, 'color')}."

    @app.tool()
    async def test_input_required_result_capabilities(ctx: Context) -> str:
        """Asks whatever the client can be asked."""
        possible = (
            Elicit("What is your name?", NAME, key="user_name"),
            Sample(CAPITAL, max_tokens=100, key="capital_question"),
            ListRoots(key="client_roots"),
        )
        answers = await ctx.ask(*(question for question in possible if ctx.can(question)))
        return f"{len(answers)} questions were answered."
