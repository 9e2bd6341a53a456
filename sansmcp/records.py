"""How the small classes are made of which there are many: by attrs, without what costs most.

Half of what attrs generates for a class is for showing, comparing, pickling and weak references, and
generating it for each of them would be a good part of what importing this package takes. Classes that
not every client and server loads are made by attrs as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

import attrs

T = TypeVar("T")


@dataclass_transform(eq_default=False, field_specifiers=(attrs.field,))
def record(cls: type[T]) -> type[T]:
    """Make a slotted attrs class whose objects are compared by identity.

    Unless it has a ``__repr__`` of its own, it shows the fields that are not marked ``repr=False``.
    """
    if "__repr__" not in cls.__dict__:
        cls.__repr__ = _show  # type: ignore[method-assign]  # before attrs makes the class
    return attrs.define(eq=False, repr=False, getstate_setstate=False, weakref_slot=False)(cls)


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
    shown = [f"{a.name}={getattr(self, a.name)!r}" for a in cls.__attrs_attrs__ if a.repr]
    return f"{cls.__qualname__}({', '.join(shown)})"


def _equal(self: Any, other: Any) -> Any:
    if other.__class__ is not self.__class__:
        return NotImplemented
    names = (a.name for a in self.__attrs_attrs__)
    return all(getattr(self, name) == getattr(other, name) for name in names)


def _hash(self: Any) -> int:
    return hash((self.__class__, *(getattr(self, a.name) for a in self.__attrs_attrs__)))


__all__ = ["frozen", "record"]
