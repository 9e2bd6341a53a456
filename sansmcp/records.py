"""How the small classes are made of which there are many: leaner than by attrs, and known to it.

Making its classes would be half of what importing this package takes if attrs did it, and most of
that is for what nobody asks of them. Whoever does ask attrs (`attrs.fields`, `attrs.asdict`,
`attrs.evolve`) is answered as for any class of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from types import CellType, MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeVar, dataclass_transform, overload

import attrs

T = TypeVar("T")

_NO_NOTES: Final[Mapping[str, Any]] = MappingProxyType({})


class Field:
    """One field: its parameter of ``__init__``, or its first value where `init` is False."""

    __slots__ = ("default", "factory", "init", "kw_only", "metadata", "name", "repr")

    def __init__(
        self,
        default: Any,
        factory: Callable[[], Any] | None,
        kw_only: bool,
        init: bool,
        repr: bool,
        metadata: Mapping[str, Any],
    ) -> None:
        self.name = ""
        self.default = default
        self.factory = factory
        self.kw_only = kw_only
        self.init = init
        self.repr = repr
        self.metadata = metadata

    @property
    def optional(self) -> bool:
        """Whether it has a value when none is given."""
        return self.default is not attrs.NOTHING or self.factory is not None


@overload
def field(*, default: T, kw_only: bool = False, init: bool = True, repr: bool = True) -> T: ...


@overload
def field(*, factory: Callable[[], T], kw_only: bool = False, init: bool = True, repr: bool = True) -> T: ...


@overload
def field(*, kw_only: bool = False, repr: bool = True) -> Any: ...


def field(
    *,
    default: Any = attrs.NOTHING,
    factory: Callable[[], Any] | None = None,
    kw_only: bool = False,
    init: bool = True,
    repr: bool = True,
    metadata: Mapping[str, Any] = _NO_NOTES,
) -> Any:
    """Say more of a field, as ``attrs.field`` does."""
    return Field(default, factory, kw_only, init, repr, metadata)


@dataclass_transform(eq_default=False, field_specifiers=(field,))
def record(cls: type[T]) -> type[T]:
    """Make a class with slots whose objects are compared by identity.

    Unless it has a ``__repr__`` of its own, it shows the fields that are not marked ``repr=False``.
    """
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = _show  # type: ignore[method-assign]
    return slotted(cls)


def slotted(cls: type[Any]) -> type[Any]:
    """`cls` again, with slots, and with an ``__init__`` for the fields that it and its bases have.

    `__fields__` are these fields, in the order of the parameters; those of bases come first.
    """
    inherited: dict[str, Field] = {}
    for base in reversed(cls.__mro__[1:]):
        inherited |= {f.name: f for f in base.__dict__.get("__fields__", ())}
    namespace = {k: v for k, v in cls.__dict__.items() if k not in ("__dict__", "__weakref__")}
    own: dict[str, Field] = {}
    for name, annotation in inspect.get_annotations(cls).items():
        if "ClassVar" in str(annotation):
            continue
        given = namespace.pop(name, attrs.NOTHING)
        own[name] = given if isinstance(given, Field) else Field(given, None, False, True, True, _NO_NOTES)
        own[name].name = name
    fields = (*(f for f in inherited.values() if f.name not in own), *own.values())
    namespace |= {
        "__slots__": tuple(name for name in own if name not in inherited),
        "__fields__": fields,
        "__init__": _init_of(cls, fields),
        "__match_args__": tuple(f.name for f in fields if f.init and not f.kw_only),
        "__attrs_attrs__": _KnownToAttrs(),
    }
    kind: Any = type(cls)
    made: type[Any] = kind(cls.__name__, cls.__bases__, namespace)
    for method in namespace.values():
        # A method that uses `super()` holds on to the class that it was written in.
        for cell in getattr(method, "__closure__", None) or ():
            if isinstance(cell, CellType) and cell.cell_contents is cls:
                cell.cell_contents = made
    return made


def _init_of(cls: type[Any], fields: tuple[Field, ...]) -> Callable[..., None]:
    positional: list[str] = []
    named: list[str] = []
    lines: list[str] = []
    names: dict[str, Any] = {"NOTHING": attrs.NOTHING}
    for f in fields:
        value = parameter = f.name.lstrip("_")
        if f.factory is not None:
            names[f"make_{f.name}"] = f.factory
            parameter = f"{parameter}=NOTHING"
            value = f"make_{f.name}() if {value} is NOTHING else {value}" if f.init else f"make_{f.name}()"
        elif f.default is not attrs.NOTHING:
            names[f"default_{f.name}"] = f.default
            parameter = f"{parameter}=default_{f.name}"
            value = value if f.init else f"default_{f.name}"
        if f.init:
            (named if f.kw_only else positional).append(parameter)
        lines.append(f"self.{f.name} = {value}")
    if hasattr(cls, "__attrs_post_init__"):
        lines.append("self.__attrs_post_init__()")
    parameters = ", ".join(["self", *positional, *(["*", *named] if named else [])])
    exec(f"def __init__({parameters}):\n    " + "\n    ".join(lines or ["pass"]), names)
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    init.__module__ = cls.__module__
    return init


class _KnownToAttrs:
    """Stands for ``__attrs_attrs__``, where attrs looks for the fields of a class, until it looks."""

    def __get__(self, instance: object, cls: Any) -> Any:
        made = attrs.make_class(
            cls.__name__,
            {
                f.name: attrs.field(
                    default=f.default if f.factory is None else attrs.Factory(f.factory),
                    kw_only=f.kw_only,
                    init=f.init,
                    repr=f.repr,
                    metadata=f.metadata,
                )
                for f in cls.__fields__
            },
        )
        cls.__attrs_attrs__ = attrs.fields(made)
        return cls.__attrs_attrs__


if TYPE_CHECKING:
    from attrs import frozen
else:

    def frozen(cls: Any = None, /, *, kw_only: bool = False, eq: bool = True) -> Any:
        """Make a frozen attrs class, as ``attrs.frozen`` does: all share what shows and compares them."""

        def make(cls: type[Any]) -> type[Any]:
            shared = {"__repr__": _show, **({"__eq__": _equal, "__hash__": _hash} if eq else {})}
            for name, method in shared.items():
                if name not in cls.__dict__:
                    setattr(cls, name, method)
            return attrs.frozen(kw_only=kw_only, eq=False, repr=False)(cls)

        return make if cls is None else make(cls)


def _show(self: Any) -> str:
    cls = type(self)
    fields = cls.__dict__.get("__fields__") or cls.__attrs_attrs__
    shown = [f"{f.name}={getattr(self, f.name)!r}" for f in fields if f.repr]
    return f"{cls.__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    names = (a.name for a in self.__attrs_attrs__)
    return all(getattr(self, name) == getattr(other, name) for name in names)


def _hash(self: Any) -> int:
    return hash((self.__class__, *(getattr(self, a.name) for a in self.__attrs_attrs__)))


__all__ = ["Field", "field", "frozen", "record", "slotted"]
