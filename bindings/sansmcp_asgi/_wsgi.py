"""The WSGI application: each request is carried to an `HttpGateway`, handled and answered where it came in.

A request and its response are one call in one thread of the server, handler included. Nothing is left of
it afterwards, so there is nothing to lock: each call has a gateway that no other call has.

Specification: PEP 3333; 2026-07-28, basic/transports/streamable-http.
"""

from __future__ import annotations

import inspect
import logging
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias, TypedDict, Unpack

from sansmcp.app import App
from sansmcp.auth.resource_server import ResourceServer
from sansmcp.clock import ClockPair
from sansmcp.errors import LocalProtocolError
from sansmcp.events import Event, VerifyToken
from sansmcp.extensions.tasks import ServerTasks
from sansmcp.http.exchange import EndResponse, HttpRequest, SendBody, StartResponse
from sansmcp.http.gateway import DEFAULT_GATEWAY, GatewayPolicy, HttpGateway
from sansmcp.http.guard import GuardPolicy
from sansmcp.http.server import HttpServer
from sansmcp.inline import InlineHandlers
from sansmcp.limits import Limits
from sansmcp.revisions import Revision
from sansmcp.wire.jsoncodec import JsonCodec
from sansmcp_shared.token_checks import verify_in_place

from ._places import target

Environ: TypeAlias = Mapping[str, Any]
Write: TypeAlias = Callable[[bytes], object]

_log: Final = logging.getLogger("sansmcp")
_PIECE: Final = 65_536
_BY_SERVER: Final = frozenset({"connection", "transfer-encoding", "keep-alive"})
"""Header fields that are between the server and its client: no application may set them."""

_TWICE: Final = frozenset({"HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"})
"""What some servers say once more, beside the same without HTTP_."""


class StartsResponse(Protocol):
    """What a WSGI server gives an application to begin its response with."""

    def __call__(self, status: str, headers: list[tuple[str, str]], /) -> Write: ...


class WsgiOptions(TypedDict, total=False):
    """What a WSGI application can be told."""

    path: str | None
    """Where the endpoint is; None for everywhere. **/mcp** unless given."""
    limits: Limits
    """Bounds of messages, bodies and tables; `SERVER_LIMITS` unless given."""
    policy: GuardPolicy
    """Which hosts and pages are served; unless given, those of this machine only."""
    carriage: GatewayPolicy
    """How long a body may take; how much of the rest is in it is up to the WSGI server."""
    revisions: Sequence[Revision]
    """What is served, **all** unless given."""
    codec: JsonCodec | None
    """Reads and writes JSON; `default_codec` unless given."""
    legacy: bool
    """Whether older clients are served, without sessions. **True** unless given."""
    auth: ResourceServer | None
    """Whom it lets in, by their access tokens; None, the default: everybody. Its verifier is a plain
    function, called in several threads at once. If the application is mounted below a path, route
    `ResourceServer.metadata_paths` to it as well."""
    strict: bool
    """Turn tolerances into faults."""
    on_event: Callable[[Event], object] | None
    """Called with every event, in the thread of its request: in several threads at once."""


def wsgi_app(app: App, **options: Unpack[WsgiOptions]) -> WsgiApp:
    """`app` as a WSGI application, to be served or mounted.

    Raises LocalProtocolError for options that cannot be, and for an app with tasks.
    """
    return WsgiApp(app, **options)


class WsgiApp:
    """A WSGI application (PEP 3333). The parameters and errors are those of `wsgi_app`.

    Handlers run in the thread of their request, also several at once if the server has several: plain
    functions and generators, and coroutines that await nothing but answers of the client. Modern clients
    are asked in rounds; every process has to be given the same ``App(state_keys=…)`` for that.

    No request outlives its response. So older clients have no sessions (`sansmcp.http.stateless` says
    what that leaves), and clients are told of no changes: ``subscriptions/listen`` is answered 404,
    -32601, and the capabilities do not offer it. Progress and logs go out while the handler works, if
    the server sends what it is given by ``write``.
    """

    def __init__(
        self,
        app: App,
        *,
        carriage: GatewayPolicy = DEFAULT_GATEWAY,
        on_event: Callable[[Event], object] | None = None,
        **options: Any,
    ) -> None:
        if any(isinstance(extension, ServerTasks) for extension in app.extensions):
            raise LocalProtocolError(
                "tasks outlive the request that begins them, which nothing does under WSGI: use asgi_app"
            )
        auth: ResourceServer | None = options.get("auth")
        self._paths: list[str | None] = [options.get("path", "/mcp")]
        self._paths += () if auth is None else auth.metadata_paths
        self._make = partial(_Worker, app, carriage, on_event, options)
        self._make()  # raises for options that cannot be; what the app offers may still be registered
        self._idle: list[_Worker] = []

    def __call__(self, environ: Environ, start_response: StartsResponse) -> Iterable[bytes]:
        """Answer one request."""
        # One operation of a list is one for all threads; to ask before would be two.
        try:
            worker = self._idle.pop()
        except IndexError:
            worker = self._make()
        body = worker.serve(_request(environ, self._paths), environ, start_response)
        self._idle.append(worker)  # not one in which something broke
        return body


class _Worker:
    """Serves one request after another."""

    def __init__(
        self,
        app: App,
        carriage: GatewayPolicy,
        on_event: Callable[[Event], object] | None,
        options: Mapping[str, Any],
    ) -> None:
        now = time.monotonic()
        server = HttpServer(
            partial(app.engine, changes=False),
            now=now,
            entropy=secrets.token_bytes,
            stateless=True,
            keep_alive=None,  # while a handler works nobody is there to say anything
            input_schema=app.input_schema,
            **options,
        )
        self._gateway = HttpGateway(server, now=now, policy=carriage)
        self._handlers = InlineHandlers(
            app, server, entropy=secrets.token_bytes, clock=_clock, on_said=self._send
        )
        self._on_event = on_event
        self._last = 0
        self._response = _Response()

    def serve(
        self, request: HttpRequest, environ: Environ, start_response: StartsResponse
    ) -> Sequence[bytes]:
        """Answer a request. Raises what the server raised on reading or on sending, when all is done."""
        gateway = self._gateway
        exchange = self._last = self._last + 1
        with_body = environ["REQUEST_METHOD"] != "HEAD"
        response = self._response = _Response(start_response, with_body=with_body)
        length = _length(environ)
        if isinstance(length, HTTPStatus):
            response.start(StartResponse(exchange, length, (), 0))
            response.ended = True
            return response.whole()
        gateway.head_received(exchange, request, time.monotonic())
        try:
            if gateway.wants_body(exchange):
                self._read(exchange, environ["wsgi.input"], length)
            self._drain()
        finally:
            if not response.ended:
                gateway.closed(exchange, time.monotonic())
                self._drain()
        return response.whole()

    def _read(self, exchange: int, source: Any, length: int | None) -> None:
        gateway, left = self._gateway, length
        while gateway.wants_body(exchange):
            data = source.read(_PIECE if left is None else min(_PIECE, left)) if left != 0 else b""
            left = None if left is None else left - len(data)
            if not data and left:
                raise ConnectionError("the client left before its request was complete")
            more = left != 0 if left is not None else bool(data)
            gateway.body_received(exchange, data, more, time.monotonic())
            gateway.handle_timeout(time.monotonic())

    def _drain(self) -> None:
        """Ops, then an event. A handler makes new ops, so go round until there is nothing."""
        gateway = self._gateway
        while True:
            self._send()
            event = gateway.next_event()
            if event is None:
                return
            if isinstance(event, VerifyToken):
                self._verify(event)
                continue
            if self._on_event is not None:
                self._on_event(event)
            failed = self._handlers.handle(event, now=time.monotonic())
            if failed is not None:
                _log.error("%s", failed)

    def _verify(self, event: VerifyToken) -> None:
        """Find out who asks. Nobody is there who could await."""
        server = self._gateway.server
        found = verify_in_place(server, event, _clock())
        if found is not None:
            if inspect.iscoroutine(found):
                found.close()
            told = "the verifier wants to be awaited, for which there is no loop under WSGI"
            server.verification_failed(event.exchange, told, time.monotonic())

    def _send(self) -> None:
        gateway, response = self._gateway, self._response
        while (op := gateway.next_op()) is not None:
            match op:
                case StartResponse():
                    response.start(op)
                case SendBody():
                    response.send(op.data)
                    gateway.written(op.exchange, len(op.data), time.monotonic())
                    if response.failure is not None:
                        gateway.closed(op.exchange, time.monotonic())
                case EndResponse():
                    response.ended = True
                case _:  # an abort: the bounds that lead to it are for carriers that wait
                    pass


class _Response:
    """What is sent: at once if it is a stream, in one piece if it is not."""

    def __init__(self, start_response: StartsResponse | None = None, *, with_body: bool = True) -> None:
        self._begin = start_response
        self._with_body = with_body
        """False where HTTP has none; some servers would send it nevertheless."""
        self._write: Write | None = None
        self._parts: list[bytes] = []
        self.ended = False
        self.failure: Exception | None = None
        """What the server raised when it was to send something: commonly the client left."""

    def start(self, op: StartResponse) -> None:
        headers = [(name, value) for name, value in op.headers if name not in _BY_SERVER]
        if op.length is not None:
            headers.append(("content-length", str(op.length)))
        if op.length == 0 and op.status != HTTPStatus.NO_CONTENT:
            headers.append(("content-type", "text/plain"))  # some checkers want to know, also of nothing
        assert self._begin is not None
        status = HTTPStatus(op.status)
        try:
            write = self._begin(f"{status.value} {status.phrase}", headers)
        except Exception as error:
            self.failure = error
        else:
            self._write = write if op.length is None else None

    def send(self, data: bytes) -> None:
        if not self._with_body:
            return
        if self._write is None:
            self._parts.append(data)
        elif self.failure is None:
            try:
                self._write(data)
            except Exception as error:
                self.failure = error

    def whole(self) -> Sequence[bytes]:
        """What was not sent yet. Raises what the server raised before."""
        if self.failure is not None:
            raise self.failure
        if not self.ended:
            raise RuntimeError("a request was not answered")
        return self._parts


def _clock() -> ClockPair:
    return ClockPair(time.monotonic(), time.time())


def _length(environ: Environ) -> int | HTTPStatus | None:
    """How long the body is; None if the server tells its end; the status if that cannot be known."""
    given = environ.get("CONTENT_LENGTH") or ""
    coded = "HTTP_TRANSFER_ENCODING" in environ
    if given:
        plain = given.isascii() and given.isdecimal() and len(given) < 19
        return int(given) if plain and not coded else HTTPStatus.BAD_REQUEST
    if environ.get("wsgi.input_terminated"):
        return None
    return HTTPStatus.LENGTH_REQUIRED if coded else 0


def _request(environ: Environ, paths: Sequence[str | None]) -> HttpRequest:
    """The head of a request."""
    place = _text(environ.get("PATH_INFO", ""))
    root = _text(environ.get("SCRIPT_NAME", ""))
    place = target(place, root, environ.get("QUERY_STRING", ""), paths)
    version = environ.get("SERVER_PROTOCOL", "HTTP/1.1").partition("/")[2]
    return HttpRequest(environ["REQUEST_METHOD"], place, list(_headers(environ)), http_version=version)


def _headers(environ: Environ) -> Iterator[tuple[str, str]]:
    for name, value in environ.items():
        if name in _TWICE:
            continue
        if name.startswith("HTTP_"):
            yield name[5:].lower().replace("_", "-"), value
        elif name in ("CONTENT_TYPE", "CONTENT_LENGTH") and value:
            yield name.lower().replace("_", "-"), value


def _text(value: str) -> str:
    """What PEP 3333 has as bytes that look like text."""
    return value.encode("latin-1").decode("utf-8", "replace")
