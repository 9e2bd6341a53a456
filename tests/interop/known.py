"""What each peer answers to what the tests ask of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import ANY

import attrs

from sansmcp.types import UNSET

TEXT = "hello ü 🐟 \u2028 end"
MANY = 64


@attrs.frozen
class Ask:
    """A call of a tool, a text in its answer, and the structured content (UNSET: there is none)."""

    tool: str
    arguments: dict[str, Any]
    text: str
    structured: Any = ANY


@attrs.frozen
class Slow:
    """A tool that takes its time and reports progress in four steps."""

    tool: str
    seconds: str
    """The argument that says how long."""
    more: dict[str, Any] = attrs.field(factory=dict)
    text: str = "done"

    def lasting(self, seconds: float) -> dict[str, Any]:
        return {**self.more, self.seconds: seconds}


@attrs.frozen
class Prompt:
    name: str
    arguments: dict[str, str]
    text: str


@attrs.frozen
class Completion:
    ref: dict[str, Any]
    argument: str
    value: str
    context: dict[str, str] | None
    values: list[str]


@attrs.frozen
class Known:
    """One peer."""

    server: str
    """The name it gives itself."""
    good: tuple[Ask, ...]
    failing: Ask
    many: Callable[[int], Ask]
    offers: frozenset[str]
    """The capabilities that it declares, among those that a client asks for."""
    unknown_tool: str
    """What it says of a tool named ``nope``."""
    unknown_is_error: bool = False
    """Whether it says so with a JSON-RPC error, as the specification wants, and not in a result."""
    slow: Slow | None = None
    resources: dict[str, str] = attrs.field(factory=dict)
    """URI → the beginning of its text (or of its base64)."""
    templates: tuple[str, ...] = ()
    missing_resource: int = -32602
    """The code of the error for a resource that does not exist."""
    prompts: tuple[Prompt, ...] = ()
    completions: tuple[Completion, ...] = ()
    files: dict[str, str] = attrs.field(factory=dict)
    """What has to lie in its folder before it is started."""
    dies_on_cancel: bool = False


_ALL = frozenset({"tools", "resources", "prompts"})

_COMMON = Known(
    server="peer-mcp-v1",
    good=(
        Ask("echo", {"text": TEXT}, TEXT, {"result": TEXT}),
        Ask("add", {"a": 2, "b": 40}, "42", {"result": 42}),
    ),
    failing=Ask("fail", {}, "this tool always fails"),
    many=lambda n: Ask("echo", {"text": f"call {n} ü"}, f"call {n} ü"),
    offers=_ALL,
    unknown_tool="Unknown tool: nope",
    slow=Slow("slow", "seconds"),
    resources={"test://greeting": "Hello from a resource"},
    prompts=(Prompt("greet", {"name": "Ada"}, "Please greet Ada."),),
)
"""What the servers on an SDK have in common."""

_PLAIN = tuple(attrs.evolve(ask, structured=UNSET) for ask in _COMMON.good)
_FILES = {f"note-{n}.txt": f"note {n} ü\n" for n in range(MANY)}
_EMPTY_GRAPH: dict[str, list[Any]] = {"entities": [], "relations": []}
_ADA = {"name": "Ada", "entityType": "person", "observations": ["wrote ü"]}
_TEAM = {"type": "ref/prompt", "name": "completable-prompt"}


def _thought(n: int) -> Ask:
    arguments = {"thought": "ü", "nextThoughtNeeded": True, "thoughtNumber": n + 1, "totalThoughts": MANY}
    return Ask("sequentialthinking", arguments, f'"thoughtNumber": {n + 1},')


KNOWN = {
    "everything": Known(
        server="mcp-servers/everything",
        good=(
            Ask("echo", {"message": TEXT}, f"Echo: {TEXT}"),
            Ask("get-sum", {"a": 2, "b": 40}, "The sum of 2 and 40 is 42."),
            Ask(
                "get-structured-content",
                {"location": "New York"},
                "temperature",
                {"temperature": 33, "conditions": "Cloudy", "humidity": 82},
            ),
            Ask("get-tiny-image", {}, "The image above is the MCP logo."),
            Ask("get-resource-links", {"count": 2}, "Here are 2 resource links"),
            Ask(
                "get-resource-reference",
                {"resourceType": "Text", "resourceId": 1},
                "demo://resource/dynamic/text/1",
            ),
            Ask(
                "get-annotated-message",
                {"messageType": "success", "includeImage": True},
                "Operation completed successfully",
            ),
        ),
        failing=Ask("get-sum", {"a": "two", "b": 40}, "Input validation error"),
        many=lambda n: Ask("echo", {"message": f"call {n} ü"}, f"Echo: call {n} ü"),
        offers=_ALL | {"completions", "logging"},
        unknown_tool="Tool nope not found",
        slow=Slow("trigger-long-running-operation", "duration", {"steps": 4}, "completed"),
        resources={
            "demo://resource/static/document/architecture.md": "#",
            "demo://resource/dynamic/text/1": "Resource 1: ",
            "demo://resource/dynamic/blob/1": "UmVzb3VyY2UgMTog",
        },
        templates=(
            "demo://resource/dynamic/text/{resourceId}",
            "demo://resource/dynamic/blob/{resourceId}",
        ),
        prompts=(
            Prompt("simple-prompt", {}, "This is a simple prompt without arguments."),
            Prompt("args-prompt", {"city": "Oslo"}, "What's weather in Oslo?"),
        ),
        completions=(
            Completion(_TEAM, "department", "S", None, ["Sales", "Support"]),
            Completion(_TEAM, "name", "", {"department": "Sales"}, ["David", "Eve", "Frank"]),
            Completion(
                {"type": "ref/resource", "uri": "demo://resource/dynamic/text/{resourceId}"},
                "resourceId",
                "1",
                None,
                ["1"],
            ),
        ),
    ),
    "filesystem": Known(
        server="secure-filesystem-server",
        good=(
            Ask("read_text_file", {"path": "note-7.txt"}, "note 7 ü\n", {"content": "note 7 ü\n"}),
            Ask("write_file", {"path": "new.txt", "content": TEXT}, "Successfully wrote"),
            Ask("read_text_file", {"path": "new.txt"}, TEXT, {"content": TEXT}),
        ),
        failing=Ask("read_text_file", {"path": "/"}, "Access denied"),
        many=lambda n: Ask("read_text_file", {"path": f"note-{n}.txt"}, f"note {n} ü\n"),
        offers=frozenset({"tools"}),
        unknown_tool="Tool nope not found",
        files=_FILES,
    ),
    "memory": Known(
        server="memory-server",
        good=(
            Ask("read_graph", {}, "entities", _EMPTY_GRAPH),
            Ask("create_entities", {"entities": [_ADA]}, "wrote ü", {"entities": [_ADA]}),
            Ask("read_graph", {}, "wrote ü", {"entities": [_ADA], "relations": []}),
        ),
        failing=Ask(
            "add_observations",
            {"observations": [{"entityName": "Nobody", "contents": ["x"]}]},
            "Entity with name Nobody not found",
        ),
        many=lambda n: Ask("search_nodes", {"query": f"q{n}"}, "entities", _EMPTY_GRAPH),
        offers=frozenset({"tools", "resources"}),
        unknown_tool="Tool nope not found",
        resources={"memory://knowledge-graph": "{"},
    ),
    "sequential-thinking": Known(
        server="sequential-thinking-server",
        good=(_thought(0),),
        failing=Ask("sequentialthinking", {"thought": 1}, "Input validation error"),
        many=_thought,
        offers=frozenset({"tools"}),
        unknown_tool="Tool nope not found",
    ),
    "mcp-1.8.1": attrs.evolve(_COMMON, good=_PLAIN, missing_resource=0, dies_on_cancel=True),
    "mcp-1.30.0": attrs.evolve(_COMMON, missing_resource=0),
    "mcp-2.3.0": attrs.evolve(
        _COMMON, server="peer-mcp-v2", failing=Ask("fail", {}, "Error executing tool fail")
    ),
    "fastmcp-4.2.3": attrs.evolve(
        _COMMON,
        server="peer-fastmcp",
        offers=_ALL | {"logging"},
        unknown_tool="Unknown tool: 'nope'",
    ),
    "npm-server-2.4.0": attrs.evolve(
        _COMMON,
        server="peer-npm-v2",
        good=_PLAIN,
        unknown_tool="Tool nope not found",
        unknown_is_error=True,
    ),
}
