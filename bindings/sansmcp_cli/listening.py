"""``sansmcp serve --http`` and its like: where a server listens, for whom, and why it cannot."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypedDict, Unpack
from urllib.parse import urljoin

from sansmcp.app import App
from sansmcp.errors import LocalProtocolError

from .failures import NO_CONNECTION, CommandError, usage
from .signals import end_on_sigterm
from .text import one_line

if TYPE_CHECKING:
    from sansmcp.http.guard import GuardPolicy
    from sansmcp.revisions import Revision
    from sansmcp_asyncio import HttpServing, SocketServing
    from sansmcp_shared.pump import OnEvent, OnWire

    from .trace import Wire

Kind: TypeAlias = Literal["http", "websocket", "tcp", "unix"]
"""What is spoken there; each has an option of its name."""

KINDS: Final[tuple[Kind, ...]] = ("http", "websocket", "tcp", "unix")

ALL: Final = "*"
"""In the place of a name: every name."""

_SCHEMES: Final[Mapping[Kind, tuple[str, str]]] = {
    "http": ("http", "https"),
    "websocket": ("ws", "wss"),
    "tcp": ("tcp", "tls"),
}
"""Of a URL, without TLS and with it."""
_WIRES: Final[Mapping[Kind, Wire]] = {
    "http": "http",
    "websocket": "websocket",
    "tcp": "lines",
    "unix": "lines",
}
_OLD_STREAM: Final = "/sse"
_EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}
"""Addresses that stand for all of the machine's, and by which a client on it finds them."""
_THIS_MACHINE: Final = ("localhost", "127.", "::1")
_FITS: Final[Mapping[str, tuple[Kind, ...]]] = {
    "path": ("http", "websocket"),
    "old_sse": ("http",),
    "stateless": ("http",),
    "certfile": ("http", "websocket", "tcp"),
    "keyfile": ("http", "websocket", "tcp"),
    "allow_host": ("http", "websocket"),
    "allow_origin": ("http", "websocket"),
}
"""What each of the other options goes with."""
OPTIONS: Final = (*KINDS, *_FITS)
_NOT_GIVEN: Final = (None, False, ())


class Told(TypedDict, total=False):
    """What a server is told, whatever it speaks."""

    revisions: Sequence[Revision]
    strict: bool
    on_event: OnEvent | None
    on_wire: OnWire | None


@dataclass(frozen=True, kw_only=True)
class Listening:
    """What the options say of a server that listens."""

    kind: Kind
    place: str
    """``PORT`` or ``HOST:PORT``; of a unix socket the path."""
    path: str | None = None
    old_sse: bool = False
    stateless: bool = False
    certfile: str | None = None
    keyfile: str | None = None
    allow_host: Sequence[str] = ()
    allow_origin: Sequence[str] = ()

    @property
    def wire(self) -> Wire:
        """In what the messages are, for the trace."""
        return _WIRES[self.kind]

    def address(self) -> tuple[str, int]:
        """Host and port. Raises CommandError for a place that is none."""
        host, found, digits = self.place.rpartition(":")
        host = host if found else "127.0.0.1"
        bracketed = host.startswith("[") and host.endswith("]")
        bare = host[1:-1] if bracketed else host
        port = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else -1
        if not bare or (":" in bare and not bracketed) or not 0 <= port < 65536:
            where = f"--{self.kind} {one_line(self.place, 80)}".rstrip()
            raise usage(f"{where}: give PORT, HOST:PORT or [IPV6]:PORT; port 0 is any that is free")
        return bare, port

    def socket(self) -> Path:
        """Of a unix socket. Raises CommandError for a place where there can be none."""
        if not hasattr(socket, "AF_UNIX"):
            raise usage("--unix: this system has no unix sockets")
        if not self.place:
            raise usage("--unix: give the path of the socket")
        path = Path(self.place).absolute()
        if path.exists() and not path.is_socket():
            raise usage(f"--unix {self.place}: something else is there; choose another path")
        return path

    def url(self, port: int) -> str:
        """By which a client finds it, as the other commands take it."""
        if self.kind == "unix":
            return f"unix://{self.socket()}"
        host, _ = self.address()
        host = _EVERYWHERE.get(host, host)
        scheme = _SCHEMES[self.kind][self.certfile is not None]
        at = f"[{host}]" if ":" in host else host
        return f"{scheme}://{at}:{port}{'' if self.kind == 'tcp' else self.endpoint()}"

    def endpoint(self) -> str:
        """The path that is served. Raises CommandError for one that no request could have."""
        path = "/mcp" if self.path is None else self.path
        if not path.startswith("/") or not path.isascii() or any(c in path for c in " ?#"):
            raise usage(f"--path {one_line(path, 80)}: give a path such as /mcp, without a query")
        return path

    def tls(self) -> ssl.SSLContext | None:
        """With what it speaks TLS, if it does. Raises CommandError for files that cannot be used."""
        if self.certfile is None:
            if self.keyfile is not None:
                raise usage("--keyfile goes with --certfile")
            return None

        def encrypted() -> str:
            raise usage(f"{self.keyfile or self.certfile}: the key is encrypted; give one that is not")

        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        try:
            context.load_cert_chain(self.certfile, self.keyfile, encrypted)
        except (OSError, ValueError) as error:
            files = self.certfile if self.keyfile is None else f"{self.certfile}, {self.keyfile}"
            told = _reason(error)
            if isinstance(error, ssl.SSLError) and self.keyfile is None:
                told += "; --keyfile says where the key is"
            raise usage(f"{files}: no certificate with its key in PEM form: {told}") from error
        return context

    def policy(self) -> GuardPolicy:
        """Which names and pages are let in. Raises CommandError for names that are none."""
        from sansmcp.http.guard import ANY
        from sansmcp.http.listener import policy_for

        try:
            return policy_for(
                self.address()[0],
                hosts=ANY if ALL in self.allow_host else self.allow_host,
                origins=ANY if ALL in self.allow_origin else self.allow_origin,
            )
        except LocalProtocolError as error:
            raise usage(f"--{self.kind}, --allow-host, --allow-origin: {one_line(str(error))}") from None


def listening_of(given: Mapping[str, Any]) -> Listening | None:
    """Where to listen; None: on standard streams. Raises CommandError for options that do not go together."""
    kinds = [kind for kind in KINDS if given[kind] is not None]
    if len(kinds) > 1:
        raise usage(f"give only one of {', '.join(f'--{kind}' for kind in kinds)}")
    rest = {name: given[name] for name in _FITS}
    for name, fits in _FITS.items():
        if rest[name] not in _NOT_GIVEN and not set(kinds) & set(fits):
            *some, last = (f"--{kind}" for kind in fits)
            known = f"{', '.join(some)} or {last}" if some else last
            raise usage(f"--{name.replace('_', '-')} goes with {known}")
    if rest["old_sse"] and rest["stateless"]:
        raise usage("give either --old-sse or --stateless: HTTP+SSE needs sessions")
    return Listening(kind=kinds[0], place=given[kinds[0]], **rest) if kinds else None


async def serve_at(app: App, listening: Listening, **told: Unpack[Told]) -> None:
    """Serve `app` until a signal ends it. Raises CommandError when it cannot listen there."""
    end_on_sigterm()
    async with AsyncExitStack() as stack:
        try:
            made = _serving(app, listening, told)
            await stack.enter_async_context(made)
        except LocalProtocolError as error:
            option = "--old-sse" if listening.old_sse else f"--{listening.kind} {listening.place}"
            raise usage(f"{option}: {one_line(str(error))}") from None
        except OSError as error:
            raise _cannot_listen(listening, error) from error
        url = listening.url(made.port)
        _say(f"serving {app.info.name} at {url}; Ctrl-C ends it")
        if listening.old_sse:
            _say(f"older clients find it at {urljoin(url, _OLD_STREAM)}")
        _warn(listening)
        await made.closed()


def _serving(app: App, listening: Listening, told: Told) -> HttpServing | SocketServing:
    """The server to be. Raises CommandError and LocalProtocolError for options that cannot be."""
    import sansmcp_asyncio as binding

    if listening.kind == "unix":
        return binding.unix_serving(app, listening.socket(), **told)
    host, port = listening.address()
    tls = listening.tls()
    if listening.kind == "tcp":
        return binding.tcp_serving(app, host, port, ssl=tls, **told)
    path, policy = listening.endpoint(), listening.policy()
    if listening.kind == "websocket":
        return binding.websocket_serving(app, host, port, ssl=tls, path=path, policy=policy, **told)
    from sansmcp.http.old_sse_server import OldSsePaths

    return binding.HttpServing(
        app,
        host,
        port,
        ssl=tls,
        path=path,
        policy=policy,
        old_sse=OldSsePaths(_OLD_STREAM) if listening.old_sse else None,
        stateless=listening.stateless,
        **told,
    )


def _warn(listening: Listening) -> None:
    """Say who can call it, where that may surprise."""
    if listening.kind == "unix":
        return
    host, _ = listening.address()
    if listening.kind == "tcp":
        if not host.startswith(_THIS_MACHINE):
            _say("whoever reaches this port is served: nothing is asked for there")
    elif host in _EVERYWHERE and not listening.allow_host:
        _say("other machines are refused until --allow-host says by which name they may call this one")


def _say(text: str) -> None:
    print(f"sansmcp: {text}", file=sys.stderr, flush=True)


def _cannot_listen(listening: Listening, error: OSError) -> CommandError:
    match error:
        case socket.gaierror():
            told = "there is no such host"
        case OSError(errno=errno.EADDRINUSE):
            told = "the port is in use; choose another one, or 0 for any that is free"
        case OSError(errno=errno.EACCES) if listening.kind != "unix":
            told = "this port needs more rights; choose one above 1023"
        case OSError(errno=errno.EADDRNOTAVAIL):
            told = "this machine does not have that address"
        case OSError(errno=errno.ENOENT):
            told = "there is no such folder"
        case _:
            told = _reason(error)
    where = f"--{listening.kind} {listening.place}"
    return CommandError(NO_CONNECTION, "cannot_listen", f"{where}: cannot listen: {told}")


def _reason(error: OSError | ValueError) -> str:
    match error:
        case ssl.SSLError(reason=str(reason)):
            return reason.lower().replace("_", " ")
        case ssl.SSLError():
            return "it is something else"
        case OSError(errno=int(number)):
            return os.strerror(number)
        case _:
            return one_line(str(error), 200)
