"""Objects of the protocol with every member set, whatever revision has it: for writing them in each."""

from __future__ import annotations

from sansmcp import ClientCapabilities, Implementation, Revision, ServerCapabilities
from sansmcp.session.rounds import Answer, IncomingQuestion
from sansmcp.types import (
    Annotations,
    AudioContent,
    BlobResourceContents,
    BooleanSchema,
    ContentBlock,
    CreateMessageRequestParams,
    CreateMessageResult,
    ElicitationCapability,
    ElicitRequestFormParams,
    ElicitResult,
    EmbeddedResource,
    GetPromptResult,
    Icon,
    ImageContent,
    LegacyTitledEnumSchema,
    ListRootsResult,
    ModelHint,
    ModelPreferences,
    NumberSchema,
    PrimitiveSchemaDefinition,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptsCapability,
    RequestedSchema,
    Resource,
    ResourceLink,
    ResourcesCapability,
    ResourceTemplate,
    Root,
    RootsCapability,
    SamplingCapability,
    SamplingMessage,
    StringSchema,
    TextContent,
    TextResourceContents,
    TitledOption,
    TitledSingleSelectEnumSchema,
    Tool,
    ToolAnnotations,
    ToolChoice,
    ToolExecution,
    ToolsCapability,
    UntitledItems,
    UntitledMultiSelectEnumSchema,
    UntitledSingleSelectEnumSchema,
)

META = {"example.org/key": [1, None, {"a": "ü"}]}
ICONS = [Icon("https://example.org/i.png", "image/png", ["48x48", "any"], "dark")]
HINTS = Annotations(["user", "assistant"], 0.5, "2026-01-02T03:04:05Z")

ME = Implementation("someone", "1.2", "Some One", "says it all", ICONS, "https://example.org")
SERVER = Implementation("server", "3.4", "The Server", "offers it all", ICONS, "https://example.org")

CLIENT_CAPABILITIES = ClientCapabilities(
    experimental={"example.org/x": {"a": 1}},
    roots=RootsCapability(list_changed=True),
    sampling=SamplingCapability(context={}, tools={}),
    elicitation=ElicitationCapability(form={}, url={}),
    extensions={"example.org/y": {}},
)
SERVER_CAPABILITIES = ServerCapabilities(
    experimental={"example.org/x": {"a": 1}},
    logging={},
    completions={},
    prompts=PromptsCapability(list_changed=True),
    resources=ResourcesCapability(list_changed=True, subscribe=True),
    tools=ToolsCapability(list_changed=True),
    extensions={"example.org/y": {}},
)

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
TOOL = Tool(
    name="everything",
    title="Everything",
    description="All of it.",
    input_schema={**SCHEMA, "$schema": "https://json-schema.org/draft/2020-12/schema"},
    output_schema=SCHEMA,
    annotations=ToolAnnotations("Everything", True, False, True, False),
    icons=ICONS,
    execution=ToolExecution("optional"),
    meta=META,
)
RESOURCE = Resource(
    "test://r", "r", "The R", "a resource", "text/plain", 12, HINTS, ICONS, meta=META
)  # fmt: skip
TEMPLATE = ResourceTemplate("test://{x}", "t", "The T", "a pattern", "text/plain", HINTS, ICONS, meta=META)
PROMPT = Prompt(
    "p", "The P", "a prompt", [PromptArgument("x", "The X", "an argument", True)], ICONS, meta=META
)  # fmt: skip

TEXT_PART = TextResourceContents("test://r", "some ü text", "text/plain", meta=META)
BLOB_PART = BlobResourceContents("test://b", "AAEC", "application/octet-stream", meta=META)
LINK = ResourceLink(
    "test://r", "r", "The R", "a resource", "text/plain", 12, HINTS, ICONS, meta=META
)  # fmt: skip
IMAGE = ImageContent("AAEC", "image/png", HINTS, meta=META)
AUDIO = AudioContent("AAEC", "audio/wav", HINTS, meta=META)
BLOCKS: list[ContentBlock] = [
    TextContent("some ü text", HINTS, meta=META),
    IMAGE,
    AUDIO,
    LINK,
    EmbeddedResource(TEXT_PART, HINTS, meta=META),
    EmbeddedResource(BLOB_PART, HINTS, meta=META),
]
FILLED = GetPromptResult([PromptMessage("user", block) for block in BLOCKS], "all kinds of blocks", meta=META)

ROOTS = ListRootsResult([Root("file:///here", "here", meta=META)], meta=META)
SAMPLING = CreateMessageRequestParams(
    messages=[
        SamplingMessage("user", TextContent("some ü text", HINTS, meta=META), meta=META),
        SamplingMessage("assistant", [TextContent("one"), TextContent("two")]),
        SamplingMessage("user", IMAGE),
        SamplingMessage("user", AUDIO),
    ],
    max_tokens=10,
    model_preferences=ModelPreferences([ModelHint("small")], 0.1, 0.2, 0.3),
    system_prompt="be short",
    include_context="none",
    temperature=0.5,
    stop_sequences=["."],
    metadata={"example.org/z": 1},
    tools=[TOOL],
    tool_choice=ToolChoice("none"),
    meta=META,
)
SAMPLED = CreateMessageResult(
    "assistant", [TextContent("one"), TextContent("two")], "small-1", "endTurn", meta=META
)  # fmt: skip
_FIELDS: dict[str, PrimitiveSchemaDefinition] = {
    "name": StringSchema("Name", "your name", 1, 50, None, "Ada"),
    "mail": StringSchema(format="email"),
    "age": NumberSchema("integer", "Age", "in years", 0, 150, 36),
    "size": NumberSchema("number", minimum=0.5),
    "sure": BooleanSchema("Sure?", "or not", True),
    "old": LegacyTitledEnumSchema(["a", "b"], ["A", "B"], "Old", "as it was", "a"),
    "one": UntitledSingleSelectEnumSchema(["a", "b"], "One", "of these", "a"),
    "named": TitledSingleSelectEnumSchema([TitledOption("a", "A")], "One", "of these", "a"),
}
# The one kind of field that cannot be said in 2025-06-18.
_MANY = UntitledMultiSelectEnumSchema(UntitledItems(["a", "b"]), "Many", "of these", 0, 2, ["a"])


def form(revision: Revision) -> ElicitRequestFormParams:
    """A form with each kind of field."""
    fields = dict(_FIELDS)
    if revision > Revision.V2025_06_18:
        fields["many"] = _MANY
    schema = RequestedSchema(fields, ["name"], schema="https://json-schema.org/draft/2020-12/schema")
    return ElicitRequestFormParams("who are you?", schema, meta=META)


def answer(question: IncomingQuestion, revision: Revision) -> Answer:
    """An answer to it, complete; a page to visit has none but that the user agreed."""
    match question.method:
        case "roots/list":
            return ROOTS
        case "sampling/createMessage":
            return SAMPLED
    if question.schema is None:
        return ElicitResult("accept", meta=META)
    content: dict[str, str | int | float | bool | list[str]] = {"name": "Ada", "age": 36, "sure": True}
    if revision > Revision.V2025_06_18:
        content["many"] = ["a"]
    return ElicitResult("accept", content, meta=META)
