"""One HTTP request and its response, above HTTP/1.1 bytes: the vocabulary of the HTTP transports.

A client transport asks for exchanges and is told what comes of them; a server transport is told of
requests and says what to respond. Whatever can carry HTTP can drive either: `wire.http1`, an ASGI
server, HTTP/2, a browser's ``fetch``.

Specification: RFC 9110; 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import attrs

from .url import Url

ExchangeId: TypeAlias = int
"""Names one exchange; chosen by whoever begins it, never used twice on one transport."""

Headers: TypeAlias = Sequence[tuple[str, str]]
"""Header fields in order; names are lower-case."""

JSON: Final = "application/json"
EVENT_STREAM: Final = "text/event-stream"

_BLANKS: Final = " \t"
_ZERO: Final = re.compile(r"0(?:\.0{0,3})?")


@attrs.define(eq=False, repr=False)
class HttpRequest:
    """A request with its whole body."""

    method: str
    target: str
    """Path and query, as in the request line."""
    headers: Headers
    body: bytes = b""
    http_version: str = "1.1"
    repeatable: bool = False
    """Of a client: whether it may be sent again when nobody knows whether it was carried out. GET and
    DELETE may in any case."""
    _fields: dict[str, str] | None = None

    @property
    def fields(self) -> dict[str, str]:
        """Its headers by name, as `field_map` reads them."""
        if self._fields is None:
            self._fields = field_map(self.headers)
        return self._fields

    def __repr__(self) -> str:
        return f"HttpRequest({self.method} {self.target.partition('?')[0]})"


# what a client transport asks for ----------------------------------------------------------------


@attrs.define(eq=False)
class StartExchange:
    """Send a request; report its response as it comes, head, pieces of the body, end."""

    exchange: ExchangeId
    request: HttpRequest


@attrs.define(eq=False)
class StartFetch:
    """Send a request to `url`, which may be anywhere; report its response as that of `StartExchange`.

    Its headers are for that place alone, and it goes there without those of others.
    """

    exchange: ExchangeId
    url: Url
    request: HttpRequest
    guarded: bool = True
    """Whether a server named it: then it must not lead further inside than the server itself is."""


@attrs.define(eq=False)
class AbortExchange:
    """Nobody wants this exchange any more: close its stream. Nothing more is reported of it."""

    exchange: ExchangeId


# what a server transport asks for ----------------------------------------------------------------


@attrs.define(eq=False)
class StartResponse:
    """Send the response's head now, whether or not a body follows soon."""

    exchange: ExchangeId
    status: int
    headers: Headers = attrs.field(repr=False)
    """Without those that frame the body: they are the carrier's."""
    length: int | None = None
    """Bytes of the body; None for an event stream, which is written as it comes."""


@attrs.define(eq=False, repr=False)
class SendBody:
    """Send a piece of the body at once."""

    exchange: ExchangeId
    data: bytes

    def __repr__(self) -> str:
        return f"SendBody({self.exchange}, {len(self.data)} bytes)"


@attrs.define(eq=False)
class EndResponse:
    """The response is complete."""

    exchange: ExchangeId


ClientExchangeOp: TypeAlias = StartExchange | AbortExchange
AuthorizedExchangeOp: TypeAlias = StartExchange | StartFetch | AbortExchange
ServerExchangeOp: TypeAlias = StartResponse | SendBody | EndResponse


# header fields -----------------------------------------------------------------------------------


def header(headers: Iterable[tuple[str, str]], name: str) -> str | None:
    """Return the value of the field `name` (lower-case), without the blanks around it.

    Fields that came more than once are one list, as RFC 9110 has it: a value that must be single is
    then none that anybody would send. None when there is no such field.
    """
    values = [value.strip(_BLANKS) for key, value in headers if key == name]
    return ", ".join(values) if values else None


def field_map(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return all fields by name; each value is what `header` returns."""
    fields: dict[str, str] = {}
    for name, value in headers:
        value = value.strip(_BLANKS)
        fields[name] = f"{fields[name]}, {value}" if name in fields else value
    return fields


def media_type(value: str | None) -> str:
    """Return type and subtype of a Content-Type in lower case, without parameters; "" for none."""
    return "" if value is None else value.partition(";")[0].strip().lower()


def accepts(value: str | None, wanted: str) -> bool:
    """Whether an Accept header allows the media type `wanted`; without one, everything is allowed.

    The most exact range that covers it decides, and ``q=0`` excludes. A malformed part counts for
    nothing.
    """
    if value is None:
        return True
    exactness: Mapping[str, int] = {wanted: 2, wanted.partition("/")[0] + "/*": 1, "*/*": 0}
    best, allowed = -1, False
    for part in value.split(","):
        name, *parameters = part.split(";")
        rank = exactness.get(name.strip().lower(), -1)
        if rank > best:
            best, allowed = rank, not any(map(_excludes, parameters))
    return allowed


def _excludes(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name.strip().lower() == "q" and _ZERO.fullmatch(value.strip()) is not None
