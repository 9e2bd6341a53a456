"""What every protocol object is made of.

One class stands for one concept in all revisions. A field that not every revision has says so in
its declaration (`since`, `until`, `required_in`); `convert` reads those declarations and writes
exactly what a revision knows. Members that no declaration knows are kept in `extra`, so that
re-encoding an object that nobody touched loses nothing.

Absent is not null. For most optional members null is not a legal value, and None stands for
*absent*; where null is legal, `UNSET` stands for absent and None for null.

Objects are plain mutable values, compared by content. The dicts and lists in an object that was
read from a message are those of the message, not copies.

Specification: 2026-07-28, basic/index (general fields, JSON Schema usage).
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Annotated, Any, ClassVar, Final, Self, TypeAlias, TypeVar, dataclass_transform, overload

import attr

from ..revisions import Revision

JsonValue: TypeAlias = Any
"""None, bool, int, float, str, or a list or dict (with str keys) of such values. Spelled `Any`,
since a recursive alias would ask the reader of a payload for a cast at every level."""

JsonObject: TypeAlias = dict[str, Any]
"""A JSON object: a dict from str to `JsonValue`."""

_T = TypeVar("_T")


class Unset(Enum):
    """The type of `UNSET`."""

    UNSET = "UNSET"

    def __repr__(self) -> str:
        return "UNSET"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET
"""Stands for an absent member where null is a legal value of that member."""

NOTHING: Final[Any] = attr.NOTHING


class Choose:
    """In a union's `Annotated`: how to tell its members apart when no tag does.

    `pick` gets the JSON object and the revision and returns the member's class, or None when the
    object is none of them.
    """

    __slots__ = ("pick",)

    def __init__(self, pick: Callable[[JsonObject, Revision], type[WireObject] | None]) -> None:
        self.pick = pick


ROOT_OBJECT: Final = "root-object"
"""In an `Annotated` JSON object: a schema whose root says `type: object`. Only strict reading
insists on it, since schemas without it are common and harmless."""

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema that is an object; kept verbatim. Default dialect: 2020-12."""

RootObjectSchema: TypeAlias = Annotated[dict[str, Any], ROOT_OBJECT]
"""A JSON Schema whose root has `type: object`; kept verbatim."""

RequestId: TypeAlias = int | str
"""The id of a request; never a bool, and 1 is not "1"."""

ProgressToken: TypeAlias = int | str
"""Ties progress notifications to the request that asked for them."""

Cursor: TypeAlias = str
"""Where a list goes on; opaque to the client."""


class TypeSpec:
    """What `wire_type` was told about a class.

    `since` and `until` are the first and last revision that has the object (None: no bound).
    `tag` names the class attribute that tells the class from the others of its unions. `firm`
    says that a malformed optional member makes the whole object malformed. `adapts_before` is the
    revision from which on no `stand_in` is needed.
    """

    __slots__ = ("adapts_before", "firm", "since", "tag", "until")

    def __init__(
        self,
        since: Revision | None,
        until: Revision | None,
        tag: str | None,
        firm: bool,
        adapts_before: Revision | None,
    ) -> None:
        self.since = since
        self.until = until
        self.tag = tag
        self.firm = firm
        self.adapts_before = adapts_before

    def exists_in(self, revision: Revision) -> bool:
        """Whether `revision` has the object."""
        return (self.since is None or self.since <= revision) and (
            self.until is None or revision <= self.until
        )


@overload
def wire(
    name: str | None = None,
    *,
    default: _T,
    kw_only: bool = False,
    since: Revision | None = None,
    until: Revision | None = None,
    required_in: tuple[Revision, ...] | None = None,
    renamed: tuple[Revision, str] | None = None,
    before: tuple[Revision, str] | None = None,
    missing: Callable[[], Any] | None = None,
    fill: Any = NOTHING,
    stamped: bool = False,
    firm: bool | None = None,
    secret: bool = False,
) -> _T: ...


@overload
def wire(
    name: str | None = None,
    *,
    factory: Callable[[], _T],
    kw_only: bool = False,
    since: Revision | None = None,
    until: Revision | None = None,
    required_in: tuple[Revision, ...] | None = None,
    renamed: tuple[Revision, str] | None = None,
    before: tuple[Revision, str] | None = None,
    missing: Callable[[], Any] | None = None,
    fill: Any = NOTHING,
    stamped: bool = False,
    firm: bool | None = None,
    secret: bool = False,
) -> _T: ...


@overload
def wire(
    name: str | None = None,
    *,
    kw_only: bool = False,
    since: Revision | None = None,
    until: Revision | None = None,
    required_in: tuple[Revision, ...] | None = None,
    renamed: tuple[Revision, str] | None = None,
    before: tuple[Revision, str] | None = None,
    missing: Callable[[], Any] | None = None,
    fill: Any = NOTHING,
    stamped: bool = False,
    firm: bool | None = None,
    secret: bool = False,
) -> Any: ...


def wire(
    name: str | None = None,
    *,
    default: Any = NOTHING,
    factory: Callable[[], Any] | None = None,
    kw_only: bool = False,
    **told: Any,
) -> Any:
    """Declare a field of a protocol object.

    name: the member's name in JSON; by default the attribute's name in camelCase.
    default, factory, kw_only: as in attrs. A field without default is required on the wire in
        every revision that has it, a field with one in none; `required_in` says otherwise.
    since, until: first and last revision that has the member.
    required_in: the revisions in which the member is required.
    renamed: (revision, name): from that revision on the member has that other name.
    before: (revision, annotation): before that revision the member had that narrower type.
    missing: makes the value for a required member that is missing; reading strictly refuses it.
    fill: value written where the member is required and the attribute is None.
    stamped: the envelope layer adds and checks the member, so writing without it is no fault.
    firm: whether a malformed value makes the object malformed. Otherwise the value stays in
        `extra` and the attribute is as if the member were absent. Default: what the class says.
    secret: keep the value out of `repr` and of errors.
    """
    metadata = {key: value for key, value in told.items() if value is not None}
    if name is not None:
        metadata["name"] = name
    return attr.ib(default=default, factory=factory, kw_only=kw_only, metadata=metadata)


@overload
def wire_type(cls: type[_T], /) -> type[_T]: ...


@overload
def wire_type(
    *,
    since: Revision | None = None,
    until: Revision | None = None,
    tag: str | None = None,
    firm: bool | None = None,
    adapts_before: Revision | None = None,
) -> Callable[[type[_T]], type[_T]]: ...


@dataclass_transform(field_specifiers=(wire,), eq_default=False)
def wire_type(
    cls: type[Any] | None = None,
    /,
    *,
    since: Revision | None = None,
    until: Revision | None = None,
    tag: str | None = None,
    firm: bool | None = None,
    adapts_before: Revision | None = None,
) -> Any:
    """Make a class a protocol object: an attrs class with slots.

    since, until: first and last revision that has the object.
    tag: the class attribute whose constant value goes on the wire and tells the class from the
        other members of its unions.
    firm: a malformed optional member makes the object malformed; inherited.
    adapts_before: from this revision on the object is written as it is, before it through its
        `stand_in` method. Default: `since`.
    """

    def make(cls: type[Any]) -> type[Any]:
        inherited: TypeSpec | None = getattr(cls, "__wire__", None)
        # Equality and repr come from WireObject: generating them for each class would be most of
        # the time that importing this package takes.
        made = attr.s(
            cls,
            slots=True,
            auto_attribs=True,
            eq=False,
            order=False,
            repr=False,
            weakref_slot=False,
            getstate_setstate=False,
        )
        made.__wire__ = TypeSpec(
            since,
            until,
            tag,
            firm if firm is not None else inherited is not None and inherited.firm,
            adapts_before or since,
        )
        return made

    return make if cls is None else make(cls)


@wire_type
class WireObject:
    """Base of every protocol object."""

    __wire__: ClassVar[TypeSpec]
    __attrs_attrs__: ClassVar[tuple[Any, ...]]

    extra: dict[str, JsonValue] = wire(factory=dict, kw_only=True, secret=True)
    """Members that are not known in the revision the object was read in, and malformed members
    that were tolerated, as they came. Written back unless a field has the same name."""

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some attributes changed."""
        return attr.evolve(self, **changes)  # type: ignore[misc]

    def stand_in(self, revision: Revision) -> WireObject | None:
        """Return the nearest object that an older `revision` can express, or None.

        Called only for revisions before the one that introduced this object.
        """
        return None

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, a.name) == getattr(other, a.name) for a in self.__attrs_attrs__)

    # Compared by content, and mutable.
    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = []
        for a in self.__attrs_attrs__:
            if a.metadata.get("secret"):
                continue
            value = getattr(self, a.name)
            if a.default is NOTHING or value != a.default:
                shown.append(f"{a.name}={_brief(value)}")
        return f"{type(self).__name__}({', '.join(shown)})"


@wire_type
class Unknown(WireObject):
    """A member of a union that this library does not know: what a newer peer may send."""

    raw: JsonObject = wire(factory=dict, secret=True)
    """The object as it came, and what is written back."""


def camel_case(name: str) -> str:
    """Return the wire name of the attribute `name`: ``mime_type`` → ``mimeType``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def snake_case(name: str) -> str:
    """Return the attribute for the wire name `name`: ``mimeType`` → ``mime_type``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _brief(value: object) -> str:
    if isinstance(value, str) and len(value) > 80:
        return f"{value[:60]!r}… ({len(value)} characters)"
    if isinstance(value, list) and len(value) > 8:
        return f"[{', '.join(map(repr, value[:3]))}, … ({len(value)} items)]"
    return repr(value)
