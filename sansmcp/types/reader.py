"""Makes the functions that read protocol objects out of JSON objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..revisions import Revision
from .base import JsonObject, WireObject
from .codegen import MISSING, MisfitError, Source, StructureError, got, indent, member
from .plan import FieldPlan, Node, Object, OneOf, Plan, plan_for


class Reader:
    """Makes and keeps functions ``(value, tolerated[, path]) -> object`` for one revision.

    `strict` refuses what is otherwise tolerated. Of a tolerance the fast build appends None to
    `tolerated`, the tracing one a line that tells it.
    """

    def __init__(self, revision: Revision, strict: bool, trace: bool) -> None:
        self.revision = revision
        self.strict = strict
        self.trace = trace
        self.made: dict[Any, Callable[..., Any]] = {}
        self.parameters = "value, tolerated, path" if trace else "value, tolerated"

    def object(self, cls: type[WireObject]) -> Callable[..., Any]:
        """Return the function for a class."""
        made = self.made.get(cls)
        if made is None:
            source = ReadSource(self)
            body = source.body(plan_for(cls, self.revision))
            made = self.made[cls] = source.define(self.parameters, body)
        return made

    def value(self, node: Node) -> Callable[..., Any]:
        """Return the function for a value of any shape."""
        made = self.made.get(node)
        if made is None:
            source = ReadSource(self)
            body = [*source.check(node, "value", "path", False), "return value"]
            made = self.made[node] = source.define(self.parameters, body)
        return made

    def one_of(self, node: OneOf) -> Callable[..., Any]:
        """Return the function that finds out which member of a union a value is."""
        table: dict[Any, Callable[..., Any]] = {}
        tag, unknown = node.tag, node.unknown

        def read(value: Any, *args: Any) -> Any:
            try:
                made = table[value[tag]]
            except (KeyError, TypeError):
                cls = self.member_class(node, value, args)
                if cls is None:
                    assert unknown is not None
                    return unknown(value)
                made = self.object(cls)
                if tag is not None:
                    table[value[tag]] = made
            return made(value, *args)

        return read

    def member_class(self, node: OneOf, value: Any, args: tuple[Any, ...]) -> type[WireObject] | None:
        """Return the member of a union that `value` is; None for an unknown one that is tolerated."""
        if not isinstance(value, dict):
            raise self.problem(args, f"expected an object, got {got(value)}")
        what = "no known kind"
        if node.pick is not None:
            cls = node.pick(value, self.revision)
        else:
            kind = value.get(node.tag)
            if not isinstance(kind, str):
                raise self.problem(args, f"expected a string in {node.tag!r}, got {got(kind)}")
            what = f"no known kind ({node.tag} {got(kind)})"
            cls = next((m for m in node.members if getattr(m, m.__wire__.tag or "") == kind), None)
        if cls is not None and cls in node.members and cls.__wire__.exists_in(self.revision):
            return cls
        if node.unknown is None or self.strict:
            raise self.problem(args, what)
        args[0].append(f"{args[1]}: {what}, kept as it came" if self.trace else None)
        return None

    def problem(self, args: tuple[Any, ...], text: str) -> Exception:
        """Return the error for a value that does not fit, at the path in a call's `args`."""
        return StructureError(args[1], text) if self.trace else MisfitError()


class ReadSource(Source):
    """Writes the source of a reading function."""

    def __init__(self, reader: Reader) -> None:
        super().__init__(reader.revision, reader.trace, StructureError=StructureError, rest=rest)
        self.reader = reader
        self.insist = reader.strict

    def arguments(self, value: str, path: str) -> str:
        return f"{value}, tolerated, {path}" if self.trace else f"{value}, tolerated"

    def fail(self, path: str, text: str) -> str:
        return f"raise StructureError({path}, {text})" if self.trace else "raise MisfitError"

    def tolerate(self, path: str, text: str) -> str:
        """Return the statement that notes a tolerance; arguments are source of expressions."""
        return f"tolerated.append({f'{path} + {text}' if self.trace else 'None'})"

    def call(self, node: Node) -> str:
        if isinstance(node, Object):
            return self.late(node.cls)
        made = self.reader.one_of(node) if isinstance(node, OneOf) else self.reader.value(node)
        return self.name_for(made, "r")

    def late(self, cls: type[WireObject]) -> str:
        """Return a name for the function of `cls`, which is made when it is first called."""

        def first(*args: Any) -> Any:
            made = self.ns[name] = self.reader.object(cls)
            return made(*args)

        name = self.name_for(self.reader.made.get(cls, first), "r")
        return name

    def body(self, plan: Plan) -> list[str]:
        """Return the source of the function for a class."""
        cls = self.name_for(plan.cls, "cls")
        not_object = self.fail("path", "'expected an object, got ' + got(value)")
        needed = [f for f in plan.known if f.required and (self.reader.strict or f.missing is None)]
        others = [f for f in plan.known if f not in needed]
        body = [f"if type(value) is not dict and not isinstance(value, dict): {not_object}"]
        body += self.required(plan, needed)
        body += [f"new = {cls}.__new__({cls})"]
        body += [f"new.{f.attribute} = v{i}" for i, f in enumerate(needed)]
        body += [f"new.{f.attribute} = {self.constant(f.absent)}" for f in plan.fields if not f.exists]
        count = len(needed) + (plan.tag is not None)
        if others and not any(f.required for f in others):
            absent = [f"new.{f.attribute} = {self.constant(f.absent)}" for f in others]
            body += [
                f"if len(value) == {count}:",
                *indent([*absent, "new.extra = {}", "return new"]),
            ]
        body += [f"n = {count}", "kept = None"]
        for f in others:
            body += self.optional(f)
        names = {f.name for f in plan.known} | ({plan.tag[0]} if plan.tag else set())
        known = self.name_for(frozenset(names), "K")
        body += [
            "if n == len(value): new.extra = {} if kept is None else kept",
            f"else: new.extra = rest(value, {known}, kept)",
            "return new",
        ]
        return body

    def required(self, plan: Plan, needed: list[FieldPlan]) -> list[str]:
        """Return statements that put the members that must be there into v0, v1…"""
        get = [f"v{i} = value[{f.name!r}]" for i, f in enumerate(needed)]
        if plan.tag is not None:
            get.append(f"kind = value[{plan.tag[0]!r}]")
        if not get:
            return []
        lines = ["try:", *indent(get), "except KeyError as error:"]
        where = "path + member(error.args[0])"
        lines += indent([self.fail(where, repr(MISSING)) + " from None"])
        if plan.tag is not None:
            name, constant = plan.tag
            text = f"{f'expected {constant!r}, got '!r} + got(kind)"
            lines.append(f"if kind != {constant!r}: {self.fail(f'path + {member(name)!r}', text)}")
        for i, f in enumerate(needed):
            check = self.check(f.node, f"v{i}", f"path + {member(f.name)!r}", f.secret)
            if f.nullable and check:
                check = [f"if v{i} is not None:", *indent(check)]
            lines += check
        return lines

    def optional(self, f: FieldPlan) -> list[str]:
        """Return statements that set an attribute whose member may be absent."""
        path = f"path + {member(f.name)!r}"
        default = self.constant(f.absent)
        if f.required and f.missing is not None:
            # Tolerated here; strict reading has the member among the needed ones.
            default = f"{self.name_for(f.missing, 'M')}()"
        # What only a later revision allows is set aside, so that it is not written as this one's.
        self.insist = self.reader.strict or f.narrowed
        check = self.check(f.node, "v", path, f.secret)
        self.insist = self.reader.strict
        if f.nullable and check:
            check = ["if v is not None:", *indent(check)]
        lines = [f"v = raw = value[{f.name!r}]", "n += 1"]
        take = [*check, f"new.{f.attribute} = v"]
        if not check or self.reader.strict:
            lines += take
        else:
            error = "StructureError" if self.trace else "MisfitError"
            mark = ["mark = len(tolerated)"] if self.trace else []
            undo = ["del tolerated[mark:]"] if self.trace else []
            told = "(': null, read as missing' if raw is None else f': set aside ({error})')"
            lines += [
                *mark,
                "try:",
                *indent(take),
                f"except {error} as error:",
                *indent(
                    [
                        *(["if raw is not None: raise"] if f.firm else []),
                        *undo,
                        "if kept is None: kept = {}",
                        f"kept[{f.name!r}] = raw",
                        f"new.{f.attribute} = {default}",
                        self.tolerate(path, told),
                    ]
                ),
            ]
        otherwise = [f"new.{f.attribute} = {default}"]
        if f.required:
            otherwise.append(self.tolerate(path, repr(": missing")))
        return [f"if {f.name!r} in value:", *indent(lines), "else:", *indent(otherwise)]


def rest(value: JsonObject, known: frozenset[str], kept: JsonObject | None) -> JsonObject:
    """Return the members of `value` that are not `known`, and those that were set aside."""
    extra = {name: v for name, v in value.items() if name not in known}
    if kept is not None:
        extra.update(kept)
    return extra
