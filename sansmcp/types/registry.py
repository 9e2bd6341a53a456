"""A cattrs converter per revision, for attrs classes that are not the protocol's own.

Imported only when somebody needs it: the protocol's own objects do not go through cattrs.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import cattrs

from ..revisions import Revision
from .codegen import MISSING, StructureError, got, noun
from .convert import structure, unstructure
from .plan import Scalar, is_wire_type


@cache
def converter(revision: Revision, *, strict: bool = False) -> cattrs.Converter:
    """Return the converter for `revision`; the same one each time, so do not register on it.

    It reads and writes classes of this package as `structure` and `unstructure` do and does not
    coerce scalars, which cattrs does by itself.
    """
    made = cattrs.Converter()
    for kind, name in ((str, "str"), (int, "int"), (float, "float"), (bool, "bool")):
        made.register_structure_hook(kind, _exact(kind, name))
    made.register_structure_hook_func(_is_id, _request_id)
    made.register_structure_hook_factory(
        is_wire_type, lambda cls: lambda value, _: structure(value, cls, revision, strict=strict)
    )
    made.register_unstructure_hook_factory(
        is_wire_type, lambda cls: lambda value: unstructure(value, revision)
    )
    return made


def structure_foreign(value: Any, cls: Any, revision: Revision, strict: bool) -> Any:
    """Return the object of an attrs class that is not the protocol's.

    Raises StructureError for the first thing that does not fit.
    """
    if not isinstance(value, dict):
        raise StructureError("$", f"expected an object, got {got(value)}")
    try:
        return converter(revision, strict=strict).structure(value, cls)
    except cattrs.BaseValidationError as error:
        text, _, path = cattrs.transform_error(error, format_exception=_told)[0].rpartition(" @ ")
        inside, _, message = text.rpartition("\0")
        raise StructureError(path + inside, message) from error


def _told(error: BaseException, cls: type | None) -> str:
    match error:
        case StructureError():
            # cattrs knows the path to the protocol's object, the error the path inside it.
            return f"{error.path.removeprefix('$')}\0{error.message}"
        case KeyError():
            return MISSING
        case _:
            return "not what it should be"


def _exact(kind: type[Any], name: str) -> Callable[[Any, Any], Any]:
    accepted = (int, float) if kind is float else (kind,)
    node = Scalar((name,))

    def check(value: Any, _: Any) -> Any:
        if not isinstance(value, accepted) or (isinstance(value, bool) and kind is not bool):
            raise StructureError("$", f"expected {noun(node)}, got {got(value)}")
        return value

    return check


def _is_id(annotation: Any) -> bool:
    return bool(annotation == int | str)


def _request_id(value: Any, _: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, str)):
        raise StructureError("$", f"expected an integer or a string, got {got(value)}")
    return value
