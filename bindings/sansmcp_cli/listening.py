"""``sansmcp serve --http``: where a server listens, for whom, and why it cannot."""

from __future__ import annotations

import errno
import os
import socket
import ssl
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Unpack
from urllib.parse import urljoin

from sansmcp.app import App
from sansmcp.errors import LocalProtocolError

from .failures import NO_CONNECTION, CommandError, usage
from .signals import end_on_sigterm
from .text import one_line

if TYPE_CHECKING:
    from sansmcp.http.guard import GuardPolicy
    from sansmcp_asyncio import HttpOptions

ALL: Final = "*"
"""In the place of a name: every name."""

_OLD_STREAM: Final = "/sse"
_EVERYWHERE: Final = ("0.0.0.0", "::")


@dataclass(frozen=True, kw_only=True)
class Listening:
    """What the options say of a server over HTTP."""

    place: str
    """``PORT`` or ``HOST:PORT``."""
    path: str | None = None
    old_sse: bool = False
    certfile: str | None = None
    keyfile: str | None = None
    allow_host: Sequence[str] = ()
    allow_origin: Sequence[str] = ()

    def address(self) -> tuple[str, int]:
        """Host and port. Raises CommandError for a place that is none."""
        host, found, digits = self.place.rpartition(":")
        host = host if found else "127.0.0.1"
        bracketed = host.startswith("[") and host.endswith("]")
        bare = host[1:-1] if bracketed else host
        port = int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 6 else -1
        if not bare or (":" in bare and not bracketed) or not 0 <= port < 65536:
            place = one_line(self.place, 80)
            raise usage(f"--http {place}: give PORT, HOST:PORT or [IPV6]:PORT; port 0 is any that is free")
        return bare, port

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
            raise usage(f"{files}: no certificate with its key in PEM form: {_reason(error)}") from error
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
            raise usage(f"--http, --allow-host, --allow-origin: {one_line(str(error))}") from None


async def serve_http(app: App, listening: Listening, **options: Unpack[HttpOptions]) -> None:
    """Serve `app` until a signal ends it. Raises CommandError when it cannot listen there."""
    from sansmcp.http.old_sse_server import OldSsePaths
    from sansmcp_asyncio import HttpServing

    host, port = listening.address()
    options["path"], options["ssl"] = listening.endpoint(), listening.tls()
    options["policy"] = listening.policy()
    if listening.old_sse:
        options["old_sse"] = OldSsePaths(_OLD_STREAM)
    end_on_sigterm()
    async with AsyncExitStack() as stack:
        try:
            serving = await stack.enter_async_context(HttpServing(app, host, port, **options))
        except OSError as error:
            raise _cannot_listen(listening.place, error) from error
        _say(f"serving {app.info.name} at {serving.url}; Ctrl-C ends it")
        if listening.old_sse:
            _say(f"older clients find it at {urljoin(serving.url, _OLD_STREAM)}")
        if host in _EVERYWHERE and not listening.allow_host:
            _say("other machines are refused until --allow-host says by which name they may call this one")
        await serving.closed()


def _say(text: str) -> None:
    print(f"sansmcp: {text}", file=sys.stderr, flush=True)


def _cannot_listen(place: str, error: OSError) -> CommandError:
    match error:
        case socket.gaierror():
            told = "there is no such host"
        case OSError(errno=errno.EADDRINUSE):
            told = "the port is in use; choose another one, or 0 for any that is free"
        case OSError(errno=errno.EACCES):
            told = "this port needs more rights; choose one above 1023"
        case OSError(errno=errno.EADDRNOTAVAIL):
            told = "this machine does not have that address"
        case _:
            told = _reason(error)
    return CommandError(NO_CONNECTION, "cannot_listen", f"--http {place}: cannot listen: {told}")


def _reason(error: OSError | ValueError) -> str:
    match error:
        case ssl.SSLError(reason=str(reason)):
            return reason.lower().replace("_", " ")
        case OSError(errno=int(number)):
            return os.strerror(number)
        case _:
            return one_line(str(error), 200)
