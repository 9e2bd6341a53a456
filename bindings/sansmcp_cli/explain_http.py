"""What an HTTP exchange that brought no answer means, in one line that says what to do."""

from __future__ import annotations

import re
from typing import Any, Final

from sansmcp.errors import (
    AuthorizationFailed,
    AuthorizationRequired,
    HttpFailure,
    NetworkFailure,
    NetworkProblem,
)

from .failures import NO_CONNECTION, TIMED_OUT, CommandError
from .text import one_line

MORE_TIME: Final = "allow more with --timeout SECONDS"

_SHOWN: Final = 160
_NO_TLS: Final = ": there is no secure connection"
_REASON: Final = re.compile(r"\((?:\[[^\]]*\] )?([^()]*)(?:\([^()]*\))?\)$")
_SYSTEM: Final = re.compile(r" \(\[Errno .*\)$")
_BARE: Final = re.compile(r": \[Errno -?\d+\] ([^()]*?)(?: \(.*\))?$")
"""The system's words in an error of a socket."""
_NOBODY: Final = ": nobody listens there: is the server running, and is the address right?"
_PAGE: Final = re.compile(r"\s*<(?:!doctype|html|head|body)", re.IGNORECASE)
_TITLE: Final = re.compile(r"<title>([^<]*)", re.IGNORECASE)
_CHALLENGE: Final = re.compile(r'\b(error_description|error|scope)="([^"]{1,200})"')
_ADVICE: Final = {
    401: (
        "the server wants to know who asks, or does not know the token: "
        "see sansmcp login, --bearer-env, --header"
    ),
    403: "the server does not let whoever asks do this: give another token, or one with more rights",
    404: "nothing is there: is the path right? It is often /mcp",
    405: "the server takes no POST there: is the path right? It is often /mcp",
    407: "the proxy wants to know who asks: give user and password in the URL of --proxy",
    421: "the server does not go by this name: use another one, or let it serve this one",
    426: "is the server at WebSockets? Then its URL begins with ws:// or wss://",
    429: "the server is asked too often",
    502: "a proxy before the server cannot reach it",
    503: "the server cannot answer now",
    504: "a proxy before the server got no answer from it in time",
}
_ANY: Final = "is this the URL of an MCP server?"
_ANY_PAGE: Final = "is this the URL of an MCP server, or does a proxy or a login page stand before it?"


def from_http(error: HttpFailure, subject: str) -> CommandError:
    """`subject` is what was asked, or of whom."""
    if isinstance(error, NetworkFailure):
        return _no_network(error, subject)
    if isinstance(error, AuthorizationFailed):
        problem = {"problem": error.problem.name.lower()}
        return CommandError(
            NO_CONNECTION, "unauthorized", f"{subject}: {_told(error, subject)}", details=problem
        )
    details: dict[str, Any] = {"status": error.status}
    kind = "unauthorized" if isinstance(error, AuthorizationRequired) else "http_error"
    status, page = error.status, _PAGE.match(error.excerpt) is not None
    if status is None or (status < 400 and not page):
        told = _told(error, subject)
    else:
        said = _said(error, page)
        wait = "" if error.retry_after is None else f"; try again in {error.retry_after:g} s"
        advice = _ADVICE.get(status, _ANY_PAGE if page else _ANY)
        told = f"HTTP {status}{f', {said}' if said else ''}: {advice}{wait}"
    return CommandError(NO_CONNECTION, kind, f"{subject}: {told}", details=details)


def _told(error: HttpFailure, subject: str) -> str:
    """The error's own words, without the request that they begin with."""
    told = one_line(str(error))
    for request in (subject, "server/discover", "initialize"):
        told = told.removeprefix(f"{request}: ")
    return told


def _no_network(error: NetworkFailure, subject: str) -> CommandError:
    told, problem = _told(error, subject), error.problem
    details: dict[str, Any] = {"problem": problem.name.lower()}
    if error.status is not None:
        details["status"] = error.status
    if problem is NetworkProblem.TIMEOUT:
        return CommandError(TIMED_OUT, "timeout", f"{subject}: {told}; {MORE_TIME}", details=details)
    if problem is NetworkProblem.TLS and _NO_TLS in told:
        where, _, rest = told.partition(_NO_TLS)
        reason = match[1].strip() if (match := _REASON.search(rest)) else "it failed"
        told = f"{where}{_NO_TLS}: {reason}; {_tls_advice(reason)}"
    elif found := _BARE.search(told):
        told = told[: found.start()] + (_NOBODY if problem is NetworkProblem.REFUSED else f": {found[1]}")
    else:  # the system's own words do not get clearer
        told = _SYSTEM.sub("", told)
    return CommandError(NO_CONNECTION, "no_connection", f"{subject}: {told}", details=details)


def _tls_advice(reason: str) -> str:
    if "wrong version number" in reason or "record layer" in reason:
        return "does the server speak http instead of https?"
    return "--cacert FILE trusts whoever issued the certificate, --insecure trusts everybody"


def _said(error: HttpFailure, page: bool) -> str:
    """What the server says of it, as far as that is for people."""
    text = error.excerpt.replace("\\n", " ")
    if isinstance(error, AuthorizationRequired):
        found = dict(_CHALLENGE.findall(" ".join(error.challenges)))
        scope = f"for the scope {found['scope']}" if "scope" in found else ""
        text = " ".join(filter(None, (found.get("error_description") or found.get("error"), scope))) or text
    elif page:
        title = _TITLE.search(text)
        return f"a web page{f' ({one_line(title[1], _SHOWN)})' if title else ''} instead of MCP"
    return f"“{one_line(text, _SHOWN)}”" if text.strip() else ""
