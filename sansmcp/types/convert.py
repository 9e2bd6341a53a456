"""JSON objects to protocol objects and back, in a given revision.

Reading is strict about types, never about members: ``"5"`` is no number, true is not 1, a required
member must be there, and a member nobody knows is kept in `extra`. Unless `strict` is set, what
cannot mislead is tolerated and told:

* null where it is not legal is read as absent;
* a malformed optional member is set aside, as if absent (except in the params of requests and
  where it would change the meaning, as `isError`);
* a required member whose absence has one sensible meaning (a tool result's `content`,
  `resultType`, cache hints) is read as that;
* a union's member of an unknown kind becomes the union's `Unknown…`.

What was set aside stays in `extra`, so that writing the object again loses nothing.

Writing produces what the revision has and nothing else that we know of. For an older peer that
means less: newer fields vanish, newer blocks are replaced by text (`stand_in`), and what cannot be
expressed is a `LocalProtocolError`.

Specification: 2026-07-28, basic/index; the schema of each revision.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeVar, overload

import attr

from ..errors import LocalProtocolError
from ..revisions import Revision
from .base import JsonObject, JsonValue, WireObject
from .codegen import MisfitError, StructureError
from .plan import is_wire_type, node_for
from .projection import project
from .reader import Reader
from .writer import Writer

__all__ = ["StructureError", "project", "structure", "unstructure"]

T = TypeVar("T")


@cache
def _reader(revision: Revision, strict: bool, trace: bool) -> Reader:
    return Reader(revision, strict, trace)


@cache
def _writer(revision: Revision, refuse: bool, trace: bool) -> Writer:
    return Writer(revision, refuse, trace)


@overload
def structure(
    value: JsonValue,
    cls: type[T],
    revision: Revision,
    *,
    strict: bool = ...,
    tolerances: list[str] | None = ...,
) -> T: ...


@overload
def structure(
    value: JsonValue,
    cls: Any,
    revision: Revision,
    *,
    strict: bool = ...,
    tolerances: list[str] | None = ...,
) -> Any: ...


def structure(
    value: JsonValue,
    cls: Any,
    revision: Revision,
    *,
    strict: bool = False,
    tolerances: list[str] | None = None,
) -> Any:
    """Return the object that the JSON value `value` stands for in `revision`.

    `cls` is a class of this package, one of its unions (`ContentBlock`), or an attrs class of
    your own. `tolerances` gets one line, path first, for each thing that strict reading refuses.
    Dicts and lists inside the object are those of `value`.

    Raises StructureError, with path and reason, when the value does not fit.
    """
    read = _read_function(cls, revision, strict)
    tolerated: list[Any] = []
    try:
        made = read(value, tolerated)
    except MisfitError:
        pass
    else:
        if not tolerated or tolerances is None:
            return made
    # Once more with the path in hand: this raises, or tells what was tolerated.
    tolerated = []
    made = _read_function(cls, revision, strict, trace=True)(value, tolerated, "$")
    if tolerances is not None:
        tolerances.extend(tolerated)
    return made


def _read_function(cls: Any, revision: Revision, strict: bool, trace: bool = False) -> Any:
    reader = _reader(revision, strict, trace)
    read = reader.made.get(cls)
    if read is not None:
        return read
    if not is_wire_type(cls):
        if isinstance(cls, type) and attr.has(cls):
            from .registry import structure_foreign

            return lambda value, *_: structure_foreign(value, cls, revision, strict)
        node = node_for(cls)[0]
        read = reader.made[cls] = reader.value(node)
        return read
    if not cls.__wire__.exists_in(revision):
        raise LocalProtocolError(f"{cls.__name__} does not exist in {revision}")
    return reader.object(cls)


def unstructure(
    obj: Any, revision: Revision, *, unsupported: Literal["drop", "error"] = "drop"
) -> JsonObject:
    """Return the JSON object for a protocol object in `revision`.

    `unsupported` says what happens to fields that are set but that the revision does not have:
    they are left out, or a `LocalProtocolError` names them. An object that the revision lacks
    altogether is replaced by its stand-in, if it has one, or refused.

    Raises LocalProtocolError also for values of a wrong type and for required fields not set.
    """
    writer = _writer(revision, unsupported == "error", False)
    if not isinstance(obj, WireObject):
        if attr.has(type(obj)):
            from .registry import converter

            made: JsonObject = converter(revision).unstructure(obj)
            return made
        raise LocalProtocolError(f"{type(obj).__name__} is no protocol object")
    try:
        written: JsonObject = writer.object(type(obj))(obj)
    except MisfitError:
        tracing = _writer(revision, unsupported == "error", True)
        written = tracing.object(type(obj))(obj, type(obj).__name__)
    return written
