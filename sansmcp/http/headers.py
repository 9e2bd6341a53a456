"""What the headers of an exchange mean: one value, two projections.

A modern envelope says in its body which version, method and name it is about, and a tool may want
some of its arguments known as well. HTTP repeats these in headers, so that whatever stands between
can route and count without reading bodies. `project_headers` reads them back from the finished
envelope and is the only place that writes them; `validate_projection` compares both sides at a
server; `route_key` reads the headers alone, for whoever has no body.

Headers are pairs of `str` in the order they came, the names in any case. Everything a peer could
have sent gets an answer here, never an exception, except from `decode_value`.

Specification: 2026-07-28, basic/transports/streamable-http (request metadata, server validation),
server/tools (x-mcp-header).
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any, Final, TypeAlias

import attrs

from ..errors import ErrorCode, LocalProtocolError, McpError, SansmcpError
from ..limits import Limits
from ..revisions import Era, Revision, known_revision
from ..session.modern import META_VERSION
from ..types.methods import Method, MethodSpec, spec_for

PROTOCOL_VERSION: Final = "MCP-Protocol-Version"
METHOD: Final = "Mcp-Method"
NAME: Final = "Mcp-Name"
PARAM_PREFIX: Final = "Mcp-Param-"

ANNOTATION: Final = "x-mcp-header"
"""The member of a property's schema that asks for the argument to be mirrored."""

LARGEST_INTEGER: Final = 2**53 - 1
"""The largest integer, and the smallest with a minus sign, that may be mirrored: beyond it, readers
that keep numbers as floats would compare something else."""

MAX_SCHEMA_NODES: Final = 100_000
"""Objects and arrays in one input schema that are searched for annotations. Far beyond any schema a
person or a generator of code would write. Past it: the tool counts as invalid."""

MAX_SCHEMA_DEPTH: Final = Limits().max_depth
"""Deepest nesting of a schema that is searched, as deep as a message may be. Past it: the tool
counts as invalid."""

HeaderLines: TypeAlias = Iterable[tuple[str, str]]
"""Names and values as they came; the names in any case."""

_PREFIX: Final = "=?base64?"
_SUFFIX: Final = "?="
_OWS: Final = " \t"
_SHOWN: Final = 64

_PLAIN: Final = re.compile(r"[ -~]*")
_FIELD: Final = re.compile(r"[\t -~]*")
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
# No exponents and no leading zeros: other readers may take those for other numbers, or for none.
_DECIMAL: Final = re.compile(r"(-?(?:0|[1-9][0-9]{0,15}))(?:\.0{1,16})?")

_STANDARD: Final = (PROTOCOL_VERSION, METHOD, NAME)
_SPELLING: Final[Mapping[str, str]] = {name.lower(): name for name in _STANDARD}
_EXTENSION_NAMES: Final[Mapping[str, str]] = {
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The member of params that methods of extensions are named by, beside those of the core's table."""

# Keywords that hold instances of the schema or nothing of it at all.
_DATA: Final = frozenset({"const", "default", "enum", "example", "examples", ANNOTATION})
# Keywords that hold schemas by a name of the author's choice.
_NAMED: Final = frozenset(
    {"$defs", "definitions", "dependencies", "dependentRequired", "dependentSchemas", "patternProperties"}
)
_TYPES: Final = ("string", "integer", "boolean")


# values ------------------------------------------------------------------------------------------


class HeaderValueError(SansmcpError, ValueError):
    """The text cannot be the value of a header: characters it must not have, or a broken encoding.

    The message never quotes the text.
    """


def encode_value(value: str) -> str:
    """Return `value` as a header can carry it: itself, or ``=?base64?…?=`` around its UTF-8.

    Plain is what has only visible ASCII and inner spaces, and does not look encoded; the empty
    string stays empty. A tab would be legal inside, but not every hop leaves it alone. Raises
    LocalProtocolError for a lone surrogate, which UTF-8 cannot hold.
    """
    if _PLAIN.fullmatch(value) and value == value.strip(_OWS) and not _looks_encoded(value):
        return value
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise LocalProtocolError("a lone surrogate cannot be carried by a header") from None
    return f"{_PREFIX}{b64encode(raw).decode('ascii')}{_SUFFIX}"


def decode_value(text: str) -> str:
    """Return what the header value `text` stands for; blanks around it are not part of it.

    Raises HeaderValueError for control and non-ASCII characters, and for an encoded value whose
    base64 is not exactly what an encoder writes or whose bytes are no UTF-8.
    """
    text = _field(text)
    if not _looks_encoded(text):
        return text
    payload = text[len(_PREFIX) : -len(_SUFFIX)]
    try:
        raw = b64decode(payload, validate=True)
        # The decoder overlooks stray bits and surplus padding, so that one value would have many
        # spellings; and prefix and suffix may overlap.
        if len(text) < len(_PREFIX) + len(_SUFFIX) or b64encode(raw).decode("ascii") != payload:
            raise HeaderValueError("not canonical base64")
        return raw.decode()
    except UnicodeDecodeError:
        raise HeaderValueError("base64 of something that is no UTF-8") from None
    except HeaderValueError:
        raise
    except ValueError:
        raise HeaderValueError("not valid base64") from None


def _looks_encoded(text: str) -> bool:
    return text.startswith(_PREFIX) and text.endswith(_SUFFIX)


def _field(text: str) -> str:
    """The value of a header line without the blanks around it."""
    text = text.strip(_OWS)
    if not _FIELD.fullmatch(text):
        raise HeaderValueError("characters that a header cannot have")
    return text


# what a tool wants mirrored ----------------------------------------------------------------------


@attrs.frozen
class Annotation:
    """One argument that is mirrored."""

    header: str
    """The header's whole name, as in ``Mcp-Param-Region``."""
    path: tuple[str, ...]
    """Where the argument is: names of properties, from the outside in."""
    type: str
    """``"string"``, ``"integer"`` or ``"boolean"``, as the schema has it."""


@attrs.frozen
class Annotations:
    """Everything that one tool's input schema wants mirrored, outer properties first."""

    items: tuple[Annotation, ...] = ()

    def __iter__(self) -> Iterator[Annotation]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


@attrs.frozen
class Problem:
    """Why an input schema's annotations make its tool unusable over HTTP."""

    reason: str
    """One line for people: where in the schema, and what is wrong."""


ToolSchema: TypeAlias = Annotations | Mapping[str, Any] | None
"""A tool's input schema, raw or already read; None when it is not known."""

_Chain: TypeAlias = "tuple[str, _Chain] | None"


def read_annotations(input_schema: object) -> Annotations | Problem:
    """Find what the input schema of a tool wants mirrored. Never raises; linear in its size.

    Valid is an annotation on a property that is reached from the root through ``properties`` alone,
    whose type is exactly string, integer or boolean, and whose name is a header token that no other
    has in any case. One that is not, wherever it stands, spoils the whole tool. Members such as
    ``default`` or ``enum`` hold no schemas and are not searched; unknown ones are, for a ``$ref``
    may lead into them. What is no object has no annotations.
    """
    found: list[Annotation] = []
    names: set[str] = set()
    # Each entry: a schema, whether only `properties` led to it, through which, and how deep it is.
    queue: list[tuple[Any, bool, _Chain, int]] = [(input_schema, True, None, 0)]
    for node, reachable, chain, depth in queue:
        if depth > MAX_SCHEMA_DEPTH:
            return Problem(f"nested deeper than {MAX_SCHEMA_DEPTH}")
        if len(queue) > MAX_SCHEMA_NODES:
            return Problem(f"more than {MAX_SCHEMA_NODES} objects and arrays")
        below = depth + 1
        if isinstance(node, list):
            queue.extend((member, False, chain, below) for member in node if isinstance(member, dict | list))
            continue
        if not isinstance(node, dict):
            continue
        if ANNOTATION in node:
            read = _read_annotation(node, reachable, chain, names)
            if isinstance(read, Problem):
                return read
            found.append(read)
        for keyword, value in node.items():
            if not isinstance(value, dict | list) or keyword in _DATA:
                continue
            by_property = keyword == "properties"
            if isinstance(value, list) or not (by_property or keyword in _NAMED):
                queue.append((value, False, chain, below))
                continue
            on = reachable and by_property
            queue.extend(
                (schema, on, (name, chain) if on else chain, below)
                for name, schema in value.items()
                if isinstance(schema, dict | list)
            )
    return Annotations(tuple(found))


def _read_annotation(
    schema: Mapping[str, Any], reachable: bool, chain: _Chain, names: set[str]
) -> Annotation | Problem:
    path: list[str] = []
    while chain is not None:
        name, chain = chain
        path.append(name)
    path.reverse()
    where = f"property {_shown('.'.join(path))}" if path else "the schema's root"
    if not reachable:
        return Problem(f"{ANNOTATION} below {where}, where other keywords than properties lead")
    if not path:
        return Problem(f"{ANNOTATION} at {where}, which is no property")
    token = schema[ANNOTATION]
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        shown = _shown(token) if isinstance(token, str) else f"a {type(token).__name__}"
        return Problem(f"{where}: {ANNOTATION} is {shown}, which cannot be part of a header's name")
    kind = schema.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        shown = f"type {_shown(kind)}" if isinstance(kind, str) else "no single type"
        return Problem(f"{where}: {ANNOTATION} on {shown}; only {', '.join(_TYPES)} can be mirrored")
    if token.lower() in names:
        return Problem(f"{where}: {ANNOTATION} {_shown(token)} is taken by another property")
    names.add(token.lower())
    return Annotation(PARAM_PREFIX + token, tuple(path), kind)


def check_tools(tools: Iterable[Any]) -> tuple[list[Any], list[tuple[str, str]]]:
    """Part the raw tools of a list into those a client may use over HTTP, and the others.

    Returns the kept tools, as they are and in their order, and ``(name, reason)`` of each excluded
    one. A tool with other faults is kept: they are not for a header to judge.
    """
    kept: list[Any] = []
    excluded: list[tuple[str, str]] = []
    for tool in tools:
        schema = tool.get("inputSchema") if isinstance(tool, Mapping) else None
        read = read_annotations(schema)
        if isinstance(read, Problem):
            name = tool.get("name")
            excluded.append((name if isinstance(name, str) else "", read.reason))
        else:
            kept.append(tool)
    return kept, excluded


def _annotations(tool_schema: ToolSchema) -> Annotations:
    if isinstance(tool_schema, Annotations):
        return tool_schema
    read = read_annotations(tool_schema)
    if isinstance(read, Problem):
        raise LocalProtocolError(f"the tool is not to be used over HTTP: {read.reason}")
    return read


def _argument(params: Mapping[str, Any], path: tuple[str, ...]) -> Any:
    """The argument at `path`, None when it is null or not there."""
    value = params.get("arguments")
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value


def _mirrored(value: object) -> str | None:
    """An argument's text, None for one that no header can carry."""
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return str(value)
        case int() if abs(value) <= LARGEST_INTEGER:
            return format(int(value), "d")
        case float() if value.is_integer() and abs(value) <= LARGEST_INTEGER:
            return format(int(value), "d")
        case _:
            return None


# client: writing headers -------------------------------------------------------------------------


def project_headers(message: Mapping[str, Any], tool_schema: ToolSchema = None) -> list[tuple[str, str]]:
    """Return the headers that the finished modern envelope `message` is posted with.

    They are the version out of its `_meta`, its method, the name it is about, and, given the input
    schema of the tool it calls, the arguments that the tool wants mirrored. A notification without
    `_meta` has no version to show. `tool_schema` is best the schema as it was last listed, however
    old, read once with `read_annotations`.

    Raises LocalProtocolError for a response, for a request without a version, for a schema that
    `read_annotations` finds a problem in, and for a value that no header can carry: a method that
    is no visible ASCII, a lone surrogate, or an argument that is neither a string, a boolean nor an
    integer of at most 53 bits.
    """
    method = message.get("method")
    if not isinstance(method, str):
        raise LocalProtocolError("only requests and notifications are posted")
    params = _params(message)
    headers = []
    version = _version(params)
    if version is not None:
        headers.append((PROTOCOL_VERSION, _verbatim(version, "version")))
    elif "id" in message:
        raise LocalProtocolError(f"{_shown(method)} has no protocol version in its _meta")
    headers.append((METHOD, _verbatim(method, "method")))
    name = _name(method, params)
    if name is not None:
        headers.append((NAME, encode_value(name)))
    if method == Method.CALL_TOOL and tool_schema is not None:
        for annotation in _annotations(tool_schema):
            value = _argument(params, annotation.path)
            if value is None:
                continue
            text = _mirrored(value)
            if text is None:
                raise LocalProtocolError(
                    f"argument {_shown('.'.join(annotation.path))} goes into {annotation.header}, "
                    "which carries strings, booleans and integers of at most 53 bits"
                )
            headers.append((annotation.header, encode_value(text)))
    return headers


def legacy_headers(revision: Revision) -> list[tuple[str, str]]:
    """Return the headers by which every exchange after `initialize` names the legacy `revision`.

    None before 2025-06-18. Raises LocalProtocolError for a modern revision, whose headers are
    those of its messages.

    Specification: 2025-06-18 and 2025-11-25, basic/transports (protocol version header).
    """
    if revision.era is not Era.LEGACY:
        raise LocalProtocolError(f"the headers of {revision} are read from each message")
    return [(PROTOCOL_VERSION, revision.value)] if revision >= Revision.V2025_06_18 else []


def _params(message: Mapping[str, Any]) -> Mapping[str, Any]:
    params = message.get("params")
    # Nearly all are dicts, of which that is told without a call into Python.
    return params if isinstance(params, (dict, Mapping)) else {}


def _version(params: Mapping[str, Any]) -> str | None:
    meta = params.get("_meta")
    version = meta.get(META_VERSION) if isinstance(meta, (dict, Mapping)) else None
    return version if isinstance(version, str) else None


def _must_name(method: str) -> str | None:
    """The member of params that a method of the core must be named by."""
    spec = spec_for(method)
    return None if spec is None else spec.name_member


def _name(method: str, params: Mapping[str, Any]) -> str | None:
    """What a message is about, None when it says nothing of the kind."""
    member = _must_name(method) or _EXTENSION_NAMES.get(method)
    name = None if member is None else params.get(member)
    return name if isinstance(name, str) else None


def _verbatim(text: str, what: str) -> str:
    # These two have no encoding: what they cannot carry cannot be sent.
    if not text or not _PLAIN.fullmatch(text) or text != text.strip(_OWS):
        raise LocalProtocolError(f"{what} {_shown(text)} cannot be carried by a header")
    return text


# server: comparing headers with the body ---------------------------------------------------------


class HeaderFaultKind(Enum):
    """What is wrong with a header."""

    MISSING = auto()
    DUPLICATE = auto()
    """Two lines of it, be they equal: readers differ in which of them counts."""
    MALFORMED = auto()
    """Characters it cannot have, or a broken encoding."""
    DIFFERENT = auto()
    UNEXPECTED = auto()
    """The body has no such value."""
    UNMIRRORABLE = auto()
    """The body has a value there that no header can carry."""


@attrs.frozen
class HeaderFault:
    """A header that contradicts the body or itself: error -32020, HTTP 400."""

    kind: HeaderFaultKind
    header: str
    """Its name, in the usual spelling."""
    message: str
    """One line for people, plain ASCII. What it quotes is cut to a few dozen characters."""

    def to_error(self) -> McpError:
        """The error to answer the request with."""
        return McpError(ErrorCode.HEADER_MISMATCH, self.message, {"header": self.header})


def validate_projection(
    headers: HeaderLines, body: Any, tool_schema: ToolSchema = None
) -> HeaderFault | None:
    """Compare the `headers` of a modern exchange with its decoded `body`; None when they agree.

    A request has to have them: version and method always, the name where the core asks for one
    (a task's id is compared, but not demanded), and a ``Mcp-Param-`` header for each argument that
    the called tool's schema wants mirrored and that is neither null nor absent. A header for which
    the body has no value is a fault, and so are two lines of one header. Names and arguments are
    compared decoded, integers as numbers. For a notification, which the revision defines no headers
    for, what is there is compared. Unknown ``Mcp-Param-`` headers are ignored.

    It is the second rung of the ladder: a request without complete `_meta` (-32602) is to be
    answered before it, an unsupported version (-32022) after it.

    Never raises for what a peer sent. Raises LocalProtocolError for a `tool_schema` of one's own
    that `read_annotations` finds a problem in.
    """
    method = body.get("method") if isinstance(body, (dict, Mapping)) else None
    if not isinstance(method, str):
        kind = HeaderFaultKind.UNEXPECTED
        return HeaderFault(kind, METHOD, "the body is neither a request nor a notification")
    params, spec = _params(body), spec_for(method)
    asks = "id" in body
    called = tool_schema is not None and method == Method.CALL_TOOL
    annotations = _annotations(tool_schema) if called else ()
    given = _collect(headers, [a.header for a in annotations])
    if isinstance(given, HeaderFault):
        return given
    fault = _compare_verbatim(given, PROTOCOL_VERSION, _version(params), asks)
    fault = fault or _compare_verbatim(given, METHOD, method, asks)
    fault = fault or _compare_name(given, _name(method, params), spec, asks)
    if fault is None:
        for annotation in annotations:
            fault = _compare_argument(given, annotation, _argument(params, annotation.path), asks)
            if fault is not None:
                break
    return fault


# In these, `given` has values by the usual spelling of the header's name, and `asks` says whether the body
# is a request.


def _compare_verbatim(
    given: Mapping[str, str], header: str, body: str | None, asks: bool
) -> HeaderFault | None:
    text = given.get(header)
    if text is None:
        return _fault_missing(header, body) if asks else None
    try:
        return _compare(header, _field(text), body, asks)
    except HeaderValueError as error:
        return _fault_malformed(header, error)


def _compare_name(
    given: Mapping[str, str], body: str | None, spec: MethodSpec | None, asks: bool
) -> HeaderFault | None:
    text = given.get(NAME)
    if text is None:
        needed = asks and body is not None and spec is not None and spec.name_member is not None
        return _fault_missing(NAME, body) if needed else None
    try:
        value = decode_value(text)
    except HeaderValueError as error:
        return _fault_malformed(NAME, error)
    # A method of an extension may have a name that we know nothing of.
    return _compare(NAME, value, body, asks) if spec is not None or body is not None else None


def _compare_argument(
    given: Mapping[str, str], annotation: Annotation, body: object, asks: bool
) -> HeaderFault | None:
    header = annotation.header
    text = given.get(header)
    if body is None:
        return None if text is None else _compare(header, text, None, asks)
    wanted = _mirrored(body)
    if wanted is None:
        why = f"{header}: the body has a value there that is no string, boolean or integer of 53 bits"
        return HeaderFault(HeaderFaultKind.UNMIRRORABLE, header, why)
    if text is None:
        return _fault_missing(header, wanted) if asks else None
    try:
        value = decode_value(text)
    except HeaderValueError as error:
        return _fault_malformed(header, error)
    if not isinstance(body, bool | str):
        number = _DECIMAL.fullmatch(value)
        if number is not None and int(number[1]) == int(wanted):
            return None
    return _compare(header, value, wanted, asks)


def _compare(header: str, value: str, body: str | None, asks: bool) -> HeaderFault | None:
    if value == body:
        return None
    if body is None:
        if not asks:
            return None
        why = f"{header} says {_shown(value)}, the body has no such value"
        return HeaderFault(HeaderFaultKind.UNEXPECTED, header, why)
    why = f"{header} says {_shown(value)}, the body says {_shown(body)}"
    return HeaderFault(HeaderFaultKind.DIFFERENT, header, why)


def _fault_missing(header: str, body: str | None) -> HeaderFault:
    said = "" if body is None else f"; the body says {_shown(body)}"
    return HeaderFault(HeaderFaultKind.MISSING, header, f"{header} is missing{said}")


def _fault_malformed(header: str, error: HeaderValueError) -> HeaderFault:
    return HeaderFault(HeaderFaultKind.MALFORMED, header, f"{header} is malformed: {error}")


def _collect(headers: HeaderLines, more: Sequence[str] = ()) -> dict[str, str] | HeaderFault:
    """The values of the standard headers and of `more`, by the usual spelling, which `more` has."""
    spelling = {**_SPELLING, **{name.lower(): name for name in more}} if more else _SPELLING
    given: dict[str, str] = {}
    for name, value in headers:
        header = spelling.get(name.lower())
        if header is None:
            continue
        if header in given:
            return HeaderFault(HeaderFaultKind.DUPLICATE, header, f"{header} is there more than once")
        given[header] = value
    return given


def _shown(text: str) -> str:
    """A peer's text, quoted and cut, so that it can stand in a message."""
    return ascii(text) if len(text) <= _SHOWN else ascii(text[:_SHOWN]) + "..."


# between: headers without a body -----------------------------------------------------------------


@attrs.frozen
class RouteKey:
    """What the headers alone say a request is about."""

    version: str
    method: str
    name: str | None
    """Decoded; None where there is none."""

    @property
    def checked(self) -> bool:
        """Whether servers of this version compare the headers with the body.

        When they do not, or when the version is not known here, whoever enforces a rule by these
        headers should refuse the request rather than trust them.
        """
        revision = known_revision(self.version)
        return revision is not None and revision.era is Era.MODERN


def route_key(headers: HeaderLines) -> RouteKey | HeaderFault:
    """Read version, method and name of a modern request from its `headers`, without its body.

    Returns the fault for headers that a server would refuse whatever the body is: missing, there
    twice, or malformed. Never raises.
    """
    given = _collect(headers)
    if isinstance(given, HeaderFault):
        return given
    read: dict[str, str] = {}
    for header in _STANDARD:
        text = given.get(header)
        try:
            if text is not None:
                read[header] = decode_value(text) if header == NAME else _field(text)
        except HeaderValueError as error:
            return _fault_malformed(header, error)
    for header in (PROTOCOL_VERSION, METHOD):
        if not read.get(header):
            return _fault_missing(header, None)
    method = read[METHOD]
    if NAME not in read and _must_name(method) is not None:
        return _fault_missing(NAME, None)
    return RouteKey(read[PROTOCOL_VERSION], method, read.get(NAME))
