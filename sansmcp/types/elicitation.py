"""Elicitation: a server asks the client's user.

Specification: 2026-07-28, client/elicitation.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from ..revisions import LATEST_LEGACY, Revision
from .base import Choose, JsonObject, Unknown, WireObject, wire, wire_type
from .results import NotificationParams, TaskMetadata

_06 = Revision.V2025_06_18
_11 = Revision.V2025_11_25


@wire_type(since=_06, tag="type")
class StringSchema(WireObject):
    """A field for text."""

    type: ClassVar[Literal["string"]] = "string"
    title: str | None = None
    description: str | None = None
    min_length: int | None = None
    max_length: int | None = None
    format: Literal["email", "uri", "date", "date-time"] | None = None
    default: str | None = wire(default=None, since=_11)


@wire_type(since=_06)
class NumberSchema(WireObject):
    """A field for a number."""

    type: Literal["number", "integer"]
    title: str | None = None
    description: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: float | None = wire(default=None, since=_11)


@wire_type(since=_06, tag="type")
class BooleanSchema(WireObject):
    """A field for yes or no."""

    type: ClassVar[Literal["boolean"]] = "boolean"
    title: str | None = None
    description: str | None = None
    default: bool | None = None


@wire_type(since=_06, tag="type")
class LegacyTitledEnumSchema(WireObject):
    """A choice with names shown beside the values. 2025-06-18 knows only this: EnumSchema."""

    type: ClassVar[Literal["string"]] = "string"
    enum: list[str]
    enum_names: list[str] | None = None
    """What the values are shown as, in the same order."""
    title: str | None = None
    description: str | None = None
    default: str | None = wire(default=None, since=_11)


@wire_type(since=_11)
class TitledOption(WireObject):
    """A value and what it is shown as."""

    const: str
    title: str


@wire_type(since=_11, tag="type")
class UntitledSingleSelectEnumSchema(WireObject):
    """A choice of one."""

    type: ClassVar[Literal["string"]] = "string"
    enum: list[str]
    title: str | None = None
    description: str | None = None
    default: str | None = None

    def stand_in(self, revision: Revision) -> LegacyTitledEnumSchema | None:
        if revision < _06:
            return None
        return LegacyTitledEnumSchema(self.enum, None, self.title, self.description)


@wire_type(since=_11, tag="type")
class TitledSingleSelectEnumSchema(WireObject):
    """A choice of one, with names."""

    type: ClassVar[Literal["string"]] = "string"
    one_of: list[TitledOption]
    title: str | None = None
    description: str | None = None
    default: str | None = None

    def stand_in(self, revision: Revision) -> LegacyTitledEnumSchema | None:
        if revision < _06:
            return None
        values = [option.const for option in self.one_of]
        names = [option.title for option in self.one_of]
        return LegacyTitledEnumSchema(values, names, self.title, self.description)


@wire_type(since=_11, tag="type")
class UntitledItems(WireObject):
    """The values of a choice of several."""

    type: ClassVar[Literal["string"]] = "string"
    enum: list[str]


@wire_type(since=_11)
class TitledItems(WireObject):
    """The values of a choice of several, with names."""

    any_of: list[TitledOption]


@wire_type(since=_11, tag="type")
class UntitledMultiSelectEnumSchema(WireObject):
    """A choice of several."""

    type: ClassVar[Literal["array"]] = "array"
    items: UntitledItems
    title: str | None = None
    description: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    default: list[str] | None = None


@wire_type(since=_11, tag="type")
class TitledMultiSelectEnumSchema(WireObject):
    """A choice of several, with names."""

    type: ClassVar[Literal["array"]] = "array"
    items: TitledItems
    title: str | None = None
    description: str | None = None
    min_items: int | None = None
    max_items: int | None = None
    default: list[str] | None = None


@wire_type
class UnknownSchema(Unknown):
    """A field of a kind that this library, or the revision in use, does not have."""


def _choose_schema(value: JsonObject, revision: Revision) -> type[WireObject] | None:
    match value.get("type"):
        case "string":
            if "oneOf" in value:
                return TitledSingleSelectEnumSchema
            if "enum" not in value:
                return StringSchema
            if revision < _11 or "enumNames" in value:
                return LegacyTitledEnumSchema
            return UntitledSingleSelectEnumSchema
        case "number" | "integer":
            return NumberSchema
        case "boolean":
            return BooleanSchema
        case "array":
            items = value.get("items")
            titled = isinstance(items, dict) and "anyOf" in items
            return TitledMultiSelectEnumSchema if titled else UntitledMultiSelectEnumSchema
        case _:
            return None


PrimitiveSchemaDefinition: TypeAlias = Annotated[
    StringSchema
    | NumberSchema
    | BooleanSchema
    | LegacyTitledEnumSchema
    | UntitledSingleSelectEnumSchema
    | TitledSingleSelectEnumSchema
    | UntitledMultiSelectEnumSchema
    | TitledMultiSelectEnumSchema
    | UnknownSchema,
    Choose(_choose_schema),
]
"""The schema of one field of a form."""


@wire_type(since=_06, tag="type")
class RequestedSchema(WireObject):
    """The fields of a form: an object schema without nesting."""

    type: ClassVar[Literal["object"]] = "object"
    properties: dict[str, PrimitiveSchemaDefinition]
    required: list[str] | None = None
    """The fields that must be filled in."""
    schema: str | None = wire("$schema", default=None, kw_only=True, since=_11)


@wire_type(since=_06, firm=True)
class ElicitRequestFormParams(WireObject):
    """Params of ``elicitation/create`` that ask by form."""

    message: str
    """What to tell the user."""
    requested_schema: RequestedSchema
    mode: Literal["form"] | None = wire(default="form", since=_11)
    """None: not said, which means the same."""
    task: TaskMetadata | None = wire(default=None, kw_only=True, since=_11, until=_11)
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, until=LATEST_LEGACY, secret=True)


@wire_type(since=_11, firm=True, tag="mode")
class ElicitRequestURLParams(WireObject):
    """Params of ``elicitation/create`` that send the user to a web page."""

    mode: ClassVar[Literal["url"]] = "url"
    message: str
    """Why the user should go there."""
    url: str = wire(secret=True)
    elicitation_id: str | None = wire(default=None, kw_only=True, until=LATEST_LEGACY, required_in=(_11,))
    """Names the elicitation in ``notifications/elicitation/complete``."""
    task: TaskMetadata | None = wire(default=None, kw_only=True, since=_11, until=_11)
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, until=LATEST_LEGACY, secret=True)


def _choose_mode(value: JsonObject, revision: Revision) -> type[WireObject] | None:
    mode = value.get("mode", "form")
    if mode == "form":
        return ElicitRequestFormParams
    return ElicitRequestURLParams if mode == "url" else None


ElicitRequestParams: TypeAlias = Annotated[
    ElicitRequestFormParams | ElicitRequestURLParams, Choose(_choose_mode)
]
"""Params of ``elicitation/create``. A mode that is neither is malformed."""


@wire_type(since=_06, firm=True)
class ElicitResult(WireObject):
    """What the user did."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str]] | None = wire(
        default=None,
        secret=True,
        before=(_11, "dict[str, str | int | float | bool]"),
    )
    """The form as filled in, if the action is accept."""
    meta: JsonObject | None = wire("_meta", default=None, kw_only=True, until=LATEST_LEGACY, secret=True)


@wire_type(since=_11, until=_11)
class ElicitationCompleteNotificationParams(NotificationParams):
    """Params of ``notifications/elicitation/complete``."""

    elicitation_id: str
