"""URI templates: filled in by whoever asks for a resource, matched by whoever has it.

Filling in knows all of RFC 6570. Matching is its reverse where that has one answer: it takes time linear
in the URI, never goes back, and never lets a part lead out of the folder that it stands in.

Specification: RFC 6570; 2026-07-28, server/resources (resource templates).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias
from urllib.parse import quote, unquote

from .errors import LocalProtocolError
from .records import frozen

TemplateValue: TypeAlias = str | int | float | Sequence[str] | Mapping[str, str] | None
"""What a variable is given: text, a list, or names and values; None: left out."""

MAX_TEMPLATE: Final = 4096
"""Characters of a template. Longer ones are refused."""

MAX_VARIABLES: Final = 64
"""Variables of a template. More are refused."""

MAX_URI: Final = 64 * 1024
"""Characters of a URI that is matched. Longer ones match nothing."""

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_NAME: Final = "(?:[A-Za-z0-9_]|%[0-9A-Fa-f]{2})+"
_VARIABLE: Final = re.compile(rf"({_NAME}(?:\.{_NAME})*)(?:(\*)|:([1-9][0-9]{{0,3}}))?")
_LITERAL: Final = re.compile(
    r"(?:[!#$&()*+,\-./0-9:;=?@A-Z\[\]_a-z~'\u00a0-\ud7ff\ue000-\U0010ffff]|%[0-9A-Fa-f]{2})*"
)

_FOREIGN: Final = re.compile("[^\x00-\x7f]+")
_RESERVED: Final = ":/?#[]@!$&'()*+,;="
_ENDS: Final = "/?#"
"""What a plain part never holds unescaped: it would belong to another part of the URI."""


@frozen
class _Operator:
    """How one kind of expression is written (RFC 6570, appendix A)."""

    first: str
    separator: str
    named: bool = False
    if_empty: str = ""
    reserved: bool = False
    """Whether reserved characters stay as they are."""


_OPERATORS: Final = {
    "": _Operator("", ","),
    "+": _Operator("", ",", reserved=True),
    "#": _Operator("#", ",", reserved=True),
    ".": _Operator(".", "."),
    "/": _Operator("/", "/"),
    ";": _Operator(";", ";", named=True),
    "?": _Operator("?", "&", named=True, if_empty="="),
    "&": _Operator("&", "&", named=True, if_empty="="),
}


@frozen
class _Variable:
    name: str
    explode: bool
    prefix: int | None
    """How many characters of the value count; None: all."""


@frozen
class _Expression:
    operator: str
    variables: tuple[_Variable, ...]


@frozen
class _Part:
    """What a match reads one variable from."""

    name: str
    reserved: bool = False
    """It may hold ``/?#``: whole paths."""
    several: str | None = None
    """It is a list, whose members this stands between."""
    relative: bool = False
    """It follows a slash, so it must not begin with one: as a path that would start anew."""


class UriTemplate:
    """A parsed template. Raises LocalProtocolError, which says where, for one that is none."""

    def __init__(self, template: str) -> None:
        self.template: Final = template
        self._pieces: Final = tuple(_parse(template))
        self.names: Final = tuple(
            v.name for p in self._pieces if isinstance(p, _Expression) for v in p.variables
        )
        if len(self.names) > MAX_VARIABLES:
            raise LocalProtocolError(f"a template with more than {MAX_VARIABLES} variables")
        self._unmatchable: str | None = None
        self._path: tuple[str | _Part, ...] = ()
        self._query: frozenset[str] = frozenset()
        try:
            if len(set(self.names)) != len(self.names):
                raise ValueError("a name occurs twice")
            self._path, self._query = _reverse(self._pieces)
        except ValueError as error:
            self._unmatchable = str(error)

    def __repr__(self) -> str:
        return f"UriTemplate({self.template!r})"

    def check_matchable(self) -> None:
        """Raise LocalProtocolError, which says why, for a template whose match is not sure."""
        if self._unmatchable is not None:
            raise LocalProtocolError(f"template {self.template!r} cannot be matched: {self._unmatchable}")

    def expand(self, values: Mapping[str, TemplateValue]) -> str:
        """The URI for these values. What is not given is left out, as RFC 6570 has it.

        Raises LocalProtocolError for text with a lone surrogate, which no URI can hold.
        """
        try:
            pieces = [p if isinstance(p, str) else _expand(p, values) for p in self._pieces]
        except UnicodeEncodeError:
            raise LocalProtocolError(
                f"template {self.template!r}: a value holds a lone surrogate, which no URI can hold"
            ) from None
        return "".join(pieces)

    def match(self, uri: str) -> dict[str, str | list[str]] | None:
        """What the variables stand for in `uri`, percent-decoded, or None when it does not match.

        Exploded ones (``{/path*}``) are lists. A part of the path is never empty. A plain one never holds
        a slash, and none, decoded, has a segment ``.`` or ``..``, a backslash or a NUL, or begins with a
        slash after another one (but right after ``://``), so that it cannot lead out of a folder. It is
        decoded once, and may be the letter of a drive.

        Those of a query that is not there are left out; the others may be anything.

        Raises LocalProtocolError as `check_matchable` does.
        """
        self.check_matchable()
        if len(uri) > MAX_URI:
            return None
        try:
            uri = _encoded(uri)
        except UnicodeEncodeError:
            return None
        values: dict[str, str | list[str]] = {}
        if self._query:
            uri, _, query = uri.partition("?")
            if "#" in query:
                return None
            for pair in query.split("&") if query else ():
                name, _, value = pair.partition("=")
                name = unquote(name)
                if name in self._query and name not in values:
                    values[name] = unquote(value.replace("+", " "))
        return values if self._match_path(uri, values) else None

    def _match_path(self, uri: str, values: dict[str, str | list[str]]) -> bool:
        position = 0
        last = len(self._path) - 1
        for index, piece in enumerate(self._path):
            if isinstance(piece, str):
                if not uri.startswith(piece, position):
                    return False
                position += len(piece)
                continue
            end = len(uri)
            if index < last:
                following = self._path[index + 1]
                assert isinstance(following, str)
                if index + 1 == last:  # at the end, so that the part may hold the same text
                    end -= len(following)
                    if end < position:
                        return False
                else:
                    end = uri.find(following, position)
                    if end < 0:
                        return False
            value = _read(piece, uri[position:end])
            if value is None:
                return False
            values[piece.name] = value
            position = end
        return position == len(uri)


# reading a template ------------------------------------------------------------------------------


def _parse(template: str) -> Iterator[str | _Expression]:
    if len(template) > MAX_TEMPLATE:
        raise LocalProtocolError(f"a template of more than {MAX_TEMPLATE} characters")
    for index, piece in enumerate(_EXPRESSION.split(template)):
        if index % 2:
            yield _parse_expression(template, piece)
        elif not _LITERAL.fullmatch(piece):
            raise LocalProtocolError(f"template {template!r}: {piece!r} is no text for a URI")
        elif piece:
            yield _encoded(piece)


def _parse_expression(template: str, text: str) -> _Expression:
    operator = text[:1] if text[:1] in _OPERATORS else ""
    variables = []
    for item in text[len(operator) :].split(","):
        match = _VARIABLE.fullmatch(item)
        if match is None:
            raise LocalProtocolError(f"template {template!r}: {{{text}}} is no expression of RFC 6570")
        name, star, prefix = match.groups()
        variables.append(_Variable(name, star is not None, None if prefix is None else int(prefix)))
    return _Expression(operator, tuple(variables))


def _reverse(pieces: Sequence[str | _Expression]) -> tuple[tuple[str | _Part, ...], frozenset[str]]:
    """What a match looks for: texts and parts by turns, and the names of the query.

    Raises ValueError, with the reason, where a URI could be divided in more ways than one.
    """
    path: list[str | _Part] = []
    query: set[str] = set()
    for piece in pieces:
        if isinstance(piece, str):
            if query:
                raise ValueError(f"{piece!r} follows the query")
            _append_text(path, piece)
        elif piece.operator in ("?", "&"):
            if any(v.explode or v.prefix for v in piece.variables):
                raise ValueError("* or : in a query")
            if piece.operator == "&" and not query:
                raise ValueError("{&…} without {?…} before it")
            query.update(v.name for v in piece.variables)
        elif query:
            raise ValueError("something follows the query")
        else:
            _append_parts(path, piece)
    if query and any(isinstance(p, str) and "?" in p for p in path):
        raise ValueError("two queries")
    return tuple(path), frozenset(query)


def _append_parts(path: list[str | _Part], piece: _Expression) -> None:
    operator = _OPERATORS[piece.operator]
    if operator.named:
        raise ValueError("{;…}")
    for index, variable in enumerate(piece.variables):
        if variable.prefix is not None:
            raise ValueError(f"{variable.name} is cut by a ':'")
        _append_text(path, operator.separator if index else operator.first)
        if path and isinstance(path[-1], _Part):
            raise ValueError(f"nothing separates {path[-1].name} and {variable.name}")
        several = operator.separator if variable.explode else None
        before = path[-1] if path else ""
        relative = isinstance(before, str) and before.endswith("/") and not before.endswith("://")
        path.append(_Part(variable.name, operator.reserved, several, relative))


def _append_text(path: list[str | _Part], text: str) -> None:
    if not text:
        return
    if path and isinstance(path[-1], str):
        path[-1] += text
    else:
        path.append(text)


# matching ----------------------------------------------------------------------------------------


def _read(part: _Part, text: str) -> str | list[str] | None:
    """The value that `text` stands for; None if the part cannot hold it."""
    if part.several is not None:
        values = [unquote(item) for item in text.split(part.several)]
        return values if all(map(_is_segment, values)) else None
    if not part.reserved:
        value = unquote(text)
        return value if _is_segment(value) and not any(c in text for c in _ENDS) else None
    value = unquote(text)
    if part.relative and value.startswith("/"):
        return None
    return value if value and _stays_inside(value) else None


def _is_segment(value: str) -> bool:
    return value not in ("", ".", "..") and not any(c in value for c in "/\\\0")


def _stays_inside(value: str) -> bool:
    return not any(c in value for c in "\\\0") and not any(s in (".", "..") for s in value.split("/"))


# filling in --------------------------------------------------------------------------------------


def _encoded(text: str) -> str:
    """`text` with what is not ASCII percent-encoded: one way to write it."""
    return text if text.isascii() else _FOREIGN.sub(lambda match: quote(match[0], safe=""), text)


def _expand(expression: _Expression, values: Mapping[str, TemplateValue]) -> str:
    operator = _OPERATORS[expression.operator]
    written: list[str] = []
    for variable in expression.variables:
        value = values.get(variable.name)
        if value is None:
            continue
        if isinstance(value, Mapping):
            _write_pairs(written, operator, variable, value)
        elif isinstance(value, str) or not isinstance(value, Sequence):
            text = str(value)
            if variable.prefix is not None:
                text = text[: variable.prefix]
            written.append(_named(operator, variable.name, _escape(operator, text)))
        else:
            _write_list(written, operator, variable, value)
    return operator.first + operator.separator.join(written) if written else ""


def _write_list(written: list[str], operator: _Operator, variable: _Variable, values: Sequence[str]) -> None:
    items = [_escape(operator, str(item)) for item in values]
    if variable.explode:
        written += [_named(operator, variable.name, item) for item in items]
    elif items:
        written.append(_named(operator, variable.name, ",".join(items)))


def _write_pairs(
    written: list[str], operator: _Operator, variable: _Variable, values: Mapping[str, str]
) -> None:
    pairs = [(_escape(operator, str(k)), _escape(operator, str(v))) for k, v in values.items()]
    if variable.explode:
        written += [k if operator.named and not v and not operator.if_empty else f"{k}={v}" for k, v in pairs]
    elif pairs:
        written.append(_named(operator, variable.name, ",".join(f"{k},{v}" for k, v in pairs)))


def _named(operator: _Operator, name: str, value: str) -> str:
    if not operator.named:
        return value
    return f"{name}={value}" if value else name + operator.if_empty


def _escape(operator: _Operator, text: str) -> str:
    if not operator.reserved:
        return quote(text, safe="")
    # What is escaped already stays as it is.
    pieces = re.split(r"(%[0-9A-Fa-f]{2})", text)
    return "".join(p if i % 2 else quote(p, safe=_RESERVED) for i, p in enumerate(pieces))


__all__ = ["TemplateValue", "UriTemplate"]
