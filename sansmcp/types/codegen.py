"""What makes the functions that turn JSON objects into protocol objects and back.

A `Reader` or `Writer` (in the files of these names) belongs to one revision and mode and makes
its functions on first use. Each comes in two builds. The fast one only knows *that* something does
not fit and raises `MisfitError`; the tracing one carries the path along and says where and what.
Callers run the fast build and repeat with the tracing one when there is something to tell, so that
naming places costs nothing while everything is in order.

The source of a function contains nothing but names from the declarations of our own classes and
literals made with `repr`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any, Final

from ..errors import SansmcpError
from ..revisions import Revision
from .base import UNSET
from .plan import AnyObject, AnyValue, Choice, ListOf, MapOf, Mixed, Node, Object, OneOf, Scalar


class MisfitError(Exception):
    """A value does not fit its declaration; a tracing build says more."""


class StructureError(SansmcpError):
    """A JSON value is not what its class asks for.

    `path` says where, as in ``$.content[0].text``; `message` says what was expected and what came,
    without the value where that could be a secret.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}")
        self.path: Final = path
        self.message: Final = message


MISSING: Final = "required, but missing"

_TYPES: Final = {"str": (str,), "int": (int,), "float": (float, int), "bool": (bool,)}
_NOUNS: Final = {"str": "a string", "int": "an integer", "float": "a number", "bool": "a boolean"}


def got(value: Any, secret: bool = False) -> str:
    """Return how to name `value` in a message: scalars themselves, the rest by kind."""
    if value is None or value is True or value is False:
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "an array"
    if isinstance(value, str):
        return "a string" if secret or len(value) > 40 else repr(value)
    if isinstance(value, (int, float)):
        return "a number" if secret or abs(value) > 1e15 else repr(value)
    return f"a {type(value).__name__}"


def member(name: str) -> str:
    """Return the path step to a member: ``.name``, or ``["a/b"]`` where a dot would not do."""
    if len(name) > 80:
        name = f"{name[:60]}…"
    return f".{name}" if name.replace("$", "_").isidentifier() else f'["{name}"]'


def noun(node: Node) -> str:
    """Return what a message calls a value that fits `node`."""
    match node:
        case Scalar(kinds):
            return " or ".join(dict.fromkeys(_NOUNS[k] for k in kinds))
        case Choice(values):
            return "one of " + ", ".join(values)
        case AnyValue():
            return "a value"
        case ListOf(item, True):
            return f"{noun(item)} or an array"
        case ListOf():
            return "an array"
        case Mixed(scalar, _):
            return f"{noun(scalar)} or an array"
        case _:
            return "an object"


def of_type(value: Any, types: tuple[type, ...]) -> bool:
    """Whether `value` is of one of `types`; a bool is no number."""
    if isinstance(value, bool):
        return bool in types
    return isinstance(value, types)


class Source(ABC):
    """Writes the source of one function, and has the names that stand in it.

    One for each function: readers and writers are shared, and threads may use them at once.
    """

    def __init__(self, revision: Revision, trace: bool, **names: Any) -> None:
        self.revision = revision
        self.trace = trace
        self.insist = False
        self.ns: dict[str, Any] = {
            "MisfitError": MisfitError,
            "UNSET": UNSET,
            "got": got,
            "member": member,
            "of_type": of_type,
            **names,
        }

    def name_for(self, value: Any, hint: str) -> str:
        """Return a name that stands for `value` in generated source."""
        name = f"{hint}_{len(self.ns)}"
        self.ns[name] = value
        return name

    def define(self, parameters: str, body: Iterable[str]) -> Callable[..., Any]:
        """Return the function with this source."""
        local: dict[str, Any] = {}
        exec("\n".join([f"def made({parameters}):", *indent(body)]), self.ns, local)
        made: Callable[..., Any] = local["made"]
        return made

    @abstractmethod
    def fail(self, path: str, text: str) -> str:
        """Return the statement that says that something does not fit.

        `path` and `text` are source of expressions.
        """

    @abstractmethod
    def call(self, node: Node) -> str:
        """Return the name of the function that converts a value that `node` describes."""

    def constant(self, value: Any) -> str:
        """Return the source of an attribute's value that no member gives."""
        if value is None or value is UNSET or isinstance(value, (str, int)):
            return repr(value)
        return self.name_for(value, "D")

    @abstractmethod
    def arguments(self, value: str, path: str) -> str:
        """Return the arguments of a call to a converting function, as source."""

    def expected(self, node: Node, path: str, var: str, secret: bool) -> str:
        """Return the statement that says that `var` is not what `node` describes."""
        return self.fail(path, f"{('expected ' + noun(node) + ', got ')!r} + got({var}, {secret})")

    def check(self, node: Node, var: str, path: str, secret: bool, depth: int = 0) -> list[str]:
        """Return statements that check the value in `var` and leave it converted there."""
        wrong = self.expected(node, path, var, secret)
        match node:
            case AnyValue():
                return []
            case Scalar(("str",)):
                return [f"if type({var}) is not str and not isinstance({var}, str): {wrong}"]
            case Scalar(("bool",)):
                return [f"if {var} is not True and {var} is not False: {wrong}"]
            case Scalar(kinds):
                types = tuple(dict.fromkeys(t for k in kinds for t in _TYPES[k]))
                same = " and ".join(f"type({var}) is not {t.__name__}" for t in types)
                accept = self.name_for(types, "T")
                return [f"if {same} and not of_type({var}, {accept}): {wrong}"]
            case Choice(values):
                allowed = self.name_for(frozenset(values), "C")
                return [f"if not isinstance({var}, str) or {var} not in {allowed}: {wrong}"]
            case AnyObject(root):
                lines = [f"if type({var}) is not dict and not isinstance({var}, dict): {wrong}"]
                return lines + (self.check_root(var, path) if root else [])
            case ListOf(item, or_single):
                lines = self.check_items(item, var, path, secret, depth)
                if not or_single:
                    return [f"if {self.no_array(var)}: {wrong}", *lines]
                single = self.check(item, var, path, secret, depth)
                return [f"if {self.no_array(var)}:", *indent(single), "else:", *indent(lines)]
            case MapOf(value):
                lines = [f"if type({var}) is not dict and not isinstance({var}, dict): {wrong}"]
                return lines + self.check_values(value, var, path, secret, depth)
            case Mixed(scalar, array):
                plain = self.check(scalar, var, path, secret, depth)
                lines = self.check_items(array.item, var, path, secret, depth)
                return [f"if {self.no_array(var)}:", *indent(plain), "else:", *indent(lines)]
            case _:
                return [f"{var} = {self.call(node)}({self.arguments(var, path)})"]

    def no_array(self, var: str) -> str:
        """Return the test that `var` holds no array, as source."""
        return f"type({var}) is not list"

    def check_root(self, var: str, path: str) -> list[str]:
        """Return statements that insist on a schema's `type: object`, where that is called for."""
        if not self.insist:
            return []
        wrong = self.fail(path, repr('expected a schema with "type": "object"'))
        return [f"if {var}.get('type') != 'object': {wrong}"]

    def check_items(self, item: Node, var: str, path: str, secret: bool, depth: int) -> list[str]:
        """Return statements that check and convert the items of the array in `var`."""
        i, k = f"i{depth}", f"k{depth}"
        step = f"{path} + f'[{{{k}}}]'"
        over = f"{k}, {i} in enumerate({var})" if self.trace else f"{i} in {var}"
        if converts(item):
            return [f"{var} = [{self.call(item)}({self.arguments(i, step)}) for {over}]"]
        lines = self.check(item, i, step, secret, depth + 1)
        return [f"for {over}:", *indent(lines)] if lines else []

    def check_values(self, value: Node, var: str, path: str, secret: bool, depth: int) -> list[str]:
        """Return statements that check and convert the values of the object in `var`."""
        i, k = f"i{depth}", f"k{depth}"
        step = f"{path} + member({k})"
        if converts(value):
            made = f"{self.call(value)}({self.arguments(i, step)})"
            return [f"{var} = {{{k}: {made} for {k}, {i} in {var}.items()}}"]
        lines = self.check(value, i, step, secret, depth + 1)
        return [f"for {k}, {i} in {var}.items():", *indent(lines)] if lines else []


def converts(node: Node) -> bool:
    """Whether converting a value of this shape makes a new one."""
    match node:
        case Object() | OneOf():
            return True
        case ListOf(item):
            return converts(item)
        case MapOf(value):
            return converts(value)
        case _:
            return False


def indent(lines: Iterable[str]) -> list[str]:
    """Return `lines` one level deeper; `pass` for none."""
    return [f"    {line}" for line in lines] or ["    pass"]
