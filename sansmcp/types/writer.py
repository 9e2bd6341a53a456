"""Makes the functions that write protocol objects as JSON objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import LocalProtocolError
from ..revisions import Revision
from .base import NOTHING, UNSET, JsonObject, Unknown, WireObject
from .codegen import MisfitError, Source, got, indent, member
from .plan import FieldPlan, Node, Object, OneOf, Plan, plan_for


class Writer:
    """Makes and keeps functions ``(object[, path]) -> JSON object`` for one revision.

    What the revision does not have is left out or replaced by its stand-in; `refuse` makes it an
    error instead.
    """

    def __init__(self, revision: Revision, refuse: bool, trace: bool) -> None:
        self.revision = revision
        self.refuse = refuse
        self.trace = trace
        self.made: dict[Any, Callable[..., Any]] = {}
        self.parameters = "value, path" if trace else "value"

    def problem(self, args: tuple[Any, ...], text: str) -> Exception:
        """Return the error for an object that cannot be written, at the path in `args`."""
        return LocalProtocolError(f"{args[0]}: {text}") if self.trace else MisfitError()

    def plain(self, plan: Plan) -> Callable[..., Any]:
        """Return a function for a class whose objects are written as they are."""
        source = WriteSource(self)
        return source.define(self.parameters, source.body(plan))

    def value(self, node: Node) -> Callable[..., Any]:
        """Return the function for a value of any shape."""
        made = self.made.get(node)
        if made is None:
            source = WriteSource(self)
            body = [*source.check(node, "value", "path", False), "return value"]
            made = self.made[node] = source.define(self.parameters, body)
        return made

    def member_of(
        self, members: tuple[type[WireObject], ...], unknown: type[Unknown] | None
    ) -> Callable[..., Any]:
        """Return the function for an object of one of some classes."""
        table: dict[type[Any], Callable[..., Any]] = {}
        allowed = members if unknown is None else (*members, unknown)

        def write(value: Any, *args: Any) -> Any:
            made = table.get(type(value))
            if made is None:
                if not isinstance(value, allowed):
                    names = " or ".join(c.__name__ for c in members)
                    raise self.problem(args, f"expected {names}, got {got(value)}")
                made = table[type(value)] = self.object(type(value))
            return made(value, *args)

        return write

    def object(self, cls: type[Any]) -> Callable[..., Any]:
        """Return the function for a class: plain, or by way of its stand-in."""
        made = self.made.get(cls)
        if made is not None:
            return made
        if issubclass(cls, Unknown):
            made = write_unknown
        else:
            plan = plan_for(cls, self.revision)
            spec = plan.spec
            if spec.adapts_before is not None and self.revision < spec.adapts_before:
                made = self.adapting(plan)
            elif not spec.exists_in(self.revision):
                made = self.refusing(plan)
            else:
                made = self.plain(plan)
        self.made[cls] = made
        return made

    def refusing(self, plan: Plan) -> Callable[..., Any]:
        """Return the function for a class that the revision lacks."""

        def write(value: WireObject, *args: Any) -> Any:
            raise self.problem(args, f"{plan.cls.__name__} does not exist in {self.revision}")

        return write

    def adapting(self, plan: Plan) -> Callable[..., Any]:
        """Return the function for a class whose objects may need a stand-in."""
        plain: list[Callable[..., Any]] = []

        def write(value: WireObject, *args: Any) -> Any:
            other = value.stand_in(self.revision)
            if other is not value and (other is None or self.refuse):
                what = f"this {type(value).__name__} cannot be expressed in {self.revision}"
                raise self.problem(args, what)
            if type(other) is plan.cls:
                if not plain:
                    plain.append(self.plain(plan))
                return plain[0](other, *args)
            return self.object(type(other))(other, *args)

        return write


class WriteSource(Source):
    """Writes the source of a writing function."""

    def __init__(self, writer: Writer) -> None:
        super().__init__(writer.revision, writer.trace, LocalProtocolError=LocalProtocolError, merge=merge)
        self.writer = writer

    def arguments(self, value: str, path: str) -> str:
        return f"{value}, {path}" if self.trace else value

    def fail(self, path: str, text: str) -> str:
        if not self.trace:
            return "raise MisfitError"
        return f"raise LocalProtocolError({path} + ': ' + {text})"

    def no_array(self, var: str) -> str:
        return f"type({var}) is not list and type({var}) is not tuple"

    def call(self, node: Node) -> str:
        match node:
            case Object(cls):
                made = self.writer.member_of((cls,), None)
            case OneOf(members, _, _, unknown):
                made = self.writer.member_of(members, unknown)
            case _:
                made = self.writer.value(node)
        return self.name_for(made, "w")

    def body(self, plan: Plan) -> list[str]:
        """Return the source of the function for a class."""
        tag = f"{plan.tag[0]!r}: {plan.tag[1]!r}" if plan.tag is not None else ""
        body = [f"out = {{{tag}}}"]
        # Required members first: people read the messages too.
        for f in sorted(plan.known, key=lambda f: not f.required):
            body += self.field(f)
        if self.writer.refuse:
            for f in plan.fields:
                if not f.exists:
                    body += self.unsupported(plan, f)
        body += ["if value.extra: merge(out, value.extra)"]
        for f in plan.known:
            if f.required and f.fill is not NOTHING:
                body.append(f"if {f.name!r} not in out: out[{f.name!r}] = {f.fill!r}")
        return [*body, "return out"]

    def field(self, f: FieldPlan) -> list[str]:
        """Return statements that write one member."""
        path = f"path + {member(f.name)!r}"
        self.insist = f.narrowed
        check = self.check(f.node, "v", path, f.secret)
        if f.nullable and check:
            check = ["if v is not None:", *indent(check)]
        put = [*check, f"out[{f.name!r}] = v"]
        lines = [f"v = value.{f.attribute}"]
        if f.required:
            absent = "UNSET" if f.nullable else "None"
            if f.fill is not NOTHING or f.stamped:
                return [*lines, f"if v is not {absent}:", *indent(put)]
            text = repr(f"{f.name} is required in {self.revision}")
            return [*lines, f"if v is {absent}: {self.fail(path, text)}", *put]
        if f.narrowed and not f.firm and check and not self.writer.refuse:
            error = "LocalProtocolError" if self.trace else "MisfitError"
            put = ["try:", *indent(put), f"except {error}: pass"]
        return [*lines, f"if v is not {self.constant(f.absent)}:", *indent(put)]

    def unsupported(self, plan: Plan, f: FieldPlan) -> list[str]:
        """Return statements that refuse a field that the revision does not have."""
        text = repr(f"{plan.cls.__name__}.{f.name} does not exist in {self.revision}")
        value = f"value.{f.attribute}"
        unset = [f"{value} is not {f.absent!r}"] if f.absent in (None, UNSET) else []
        other = [] if f.default in (None, UNSET, NOTHING) else [f"{value} != {self.constant(f.default)}"]
        test = " and ".join(unset + other)
        return [f"if {test}: {self.fail(f'path + {member(f.name)!r}', text)}"]


def write_unknown(value: Unknown, *args: Any) -> JsonObject:
    """Write an object that this library does not know: as it came."""
    return value.raw


def merge(out: JsonObject, extra: JsonObject) -> None:
    """Add to `out` what it does not have yet of `extra`."""
    for name, value in extra.items():
        out.setdefault(name, value)
