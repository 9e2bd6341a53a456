"""From a target and the options to a connection: a process that is started, or a URL."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import TYPE_CHECKING, TypedDict
from urllib.parse import parse_qsl, unquote, urlsplit

from sansmcp import __version__
from sansmcp.stdio import NO_RESTART
from sansmcp.types import Implementation

from .failures import usage
from .headers import secrets_in
from .login import secrets_stored, stored
from .redact import Redactor
from .settings import Settings, check_folder
from .targets import CommandTarget, HttpTarget, StreamTarget, Target

if TYPE_CHECKING:
    from sansmcp.auth.oauth import OAuth
    from sansmcp_asyncio import EngineOptions, Opening
    from sansmcp_shared.pump import OnEvent, OnWire

    from .bridging import Bridged
    from .questions import Questions


class AuthOptions(TypedDict, total=False):
    """How tokens are come by."""

    auth: OAuth | None
    open_url: Callable[[str], object]


def secrets_of(target: Target, settings: Settings) -> dict[str, str]:
    """All that was given for this server and must not be shown."""
    if isinstance(target, CommandTarget):
        return _environment(target, settings)
    parts = urlsplit(target.url)
    headers = _headers(target, settings)
    proxy = urlsplit(settings.proxy or "")
    kept: dict[str, str] = {}
    if isinstance(target, HttpTarget) and "authorization" not in headers:
        kept = secrets_stored(target)
    return {
        **secrets_in(headers),
        **kept,
        **{f"query {name}": value for name, value in parse_qsl(parts.query)},
        "query": parts.query,
        "proxy password": proxy.password or "",
        "proxy password as it is": unquote(proxy.password or ""),
    }


def announcement(target: Target, settings: Settings, redactor: Redactor) -> str:
    """What is about to be done, for the trace."""
    if isinstance(target, CommandTarget):
        given = ", ".join(_environment(target, settings))
        return f"start: {' '.join(redactor.argv(target.argv))}{f' with {given} set' if given else ''}"
    given = ", ".join(_headers(target, settings))
    return f"reach: {target.name}{f' with the headers {given}' if given else ''}"


def opening(
    target: Target,
    settings: Settings,
    on_event: OnEvent | None,
    on_wire: OnWire | None,
    stderr: Callable[[bytes], object],
    auth: AuthOptions | None = None,
    bridged: Bridged | None = None,
    questions: Questions | None = None,
) -> Opening:
    """The connection to be. Raises CommandError for options that cannot be used.

    Tokens are those that are kept, unless `auth` says otherwise. `bridged` is for clients of others.
    `questions` answers what the server asks.
    """
    from sansmcp_asyncio import connect

    info = Implementation(name="sansmcp", version=__version__)
    options: EngineOptions = {
        "mode": settings.era_mode(),
        "timeouts": settings.timeouts(asking=questions is not None and questions.ask),
        "strict": settings.strict,
        "quirks": settings.quirks,
    }
    hears: OnEvent | None = on_event
    if bridged is not None:
        options["capabilities"] = bridged.capabilities
        hears = bridged.before(on_event)
    if questions is not None:
        options["capabilities"], options["on_elicit"] = questions.capabilities(), questions.answer
    if isinstance(target, HttpTarget):
        headers = _headers(target, settings)
        if auth is None:
            auth = {"auth": stored(target, headers)}
        return connect(
            target.url,
            info=info,
            headers=headers,
            **auth,
            ssl=_tls(settings),
            proxy=settings.proxy,
            on_event=hears,
            on_wire=on_wire,
            **options,
        )
    if isinstance(target, StreamTarget):
        url, tls = target.url, _tls(settings)
        if not target.websocket:
            return connect(url, info=info, ssl=tls, on_event=hears, on_wire=on_wire, **options)
        headers = _headers(target, settings)
        return connect(url, info=info, headers=headers, ssl=tls, on_event=hears, on_wire=on_wire, **options)
    return connect(
        list(target.argv),
        info=info,
        env=_environment(target, settings),
        inherit_env=settings.inherit_env,
        cwd=check_folder(settings.cwd, "--cwd") or check_folder(target.cwd, f"{target.name}: cwd"),
        restart=NO_RESTART,
        on_event=hears,
        on_wire=on_wire,
        stderr=stderr,
        **options,
    )


def _environment(target: CommandTarget, settings: Settings) -> dict[str, str]:
    return {**target.env, **settings.env}


def _headers(target: HttpTarget | StreamTarget, settings: Settings) -> dict[str, str]:
    return {**{name.lower(): value for name, value in target.headers.items()}, **settings.headers}


def _tls(settings: Settings) -> ssl.SSLContext | None:
    """None: as usual, with the certificates that this machine trusts."""
    if not settings.insecure and settings.cacert is None:
        return None
    context = ssl.create_default_context()
    if settings.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        try:
            context.load_verify_locations(settings.cacert)
        except OSError as error:
            reason = "" if isinstance(error, ssl.SSLError) else f": {error.strerror}"
            raise usage(f"--cacert {settings.cacert}: no certificates in PEM form{reason}") from None
    return context
