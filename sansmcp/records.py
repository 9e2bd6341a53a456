"""How the small classes are made of which there are many: by attrs, without what costs most.

Half of what attrs generates for a class is for representing, pickling and weak references, and
generating it for each of them would be a good part of what importing this package takes.
"""

from __future__ import annotations

from typing import Any, TypeVar, dataclass_transform

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


def _show(self: Any) -> str:
    cls = type(self)
    shown = [f"{a.name}={getattr(self, a.name)!r}" for a in cls.__attrs_attrs__ if a.repr]
    return f"{cls.__qualname__}({', '.join(shown)})"


__all__ = ["record"]
