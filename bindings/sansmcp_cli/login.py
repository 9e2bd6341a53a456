"""Logging in at servers over HTTP, logging out, and what other commands have of it."""

from __future__ import annotations

import asyncio
import os
import sys
import webbrowser
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sansmcp.errors import AuthorizationFailed, AuthorizationProblem, LocalProtocolError

from . import documents
from .explain_http import from_http
from .failures import usage
from .settings import Settings
from .targets import HttpTarget, StreamTarget, Target
from .text import one_line

if TYPE_CHECKING:
    from sansmcp.auth.oauth import OAuth
    from sansmcp.auth.steps import Steps
    from sansmcp.auth.tokens import Tokens
    from sansmcp_asyncio import Client, FileTokenStore

VARIABLE: Final = "SANSMCP_TOKENS"
"""Names the file of tokens, in the place of the usual one."""

_OPEN: Final = "it was connected to without tokens: maybe nobody has to log in there"


def token_store(environ: Mapping[str, str] = os.environ) -> FileTokenStore:
    """The tokens of this user, and a word on stderr where they cannot be kept.

    Raises CommandError for a file that is none of this kind.
    """
    from sansmcp_asyncio import FileTokenStore

    class Telling(FileTokenStore):
        def keep_tokens(self, server: str, tokens: Tokens | None) -> None:
            try:
                super().keep_tokens(server, tokens)
            except OSError as error:
                reason = error.strerror or type(error).__name__
                print(f"sansmcp: the tokens cannot be kept in {self.path}: {reason}", file=sys.stderr)
                raise

    try:
        return Telling(environ.get(VARIABLE) or None)
    except LocalProtocolError as error:
        raise usage(str(error)) from None


def has_tokens(environ: Mapping[str, str] = os.environ) -> bool:
    """Whether anybody ever logged in: if not, the rest need not be loaded."""
    from sansmcp_shared.token_file import default_token_file

    named = environ.get(VARIABLE)
    return (Path(named) if named else default_token_file()).exists()


class _LogInFirst:
    """Asks nobody: a command that works by itself must not wait for a browser."""

    def obtain(self, flow: Any) -> Steps[Tokens]:
        """Say what to do."""
        from sansmcp.auth.steps import fail

        yield from ()
        fail(AuthorizationProblem.NOT_ASKED, f"log in first: sansmcp login {flow.server}")


def stored(target: HttpTarget, headers: Mapping[str, str]) -> OAuth | None:
    """The tokens that are kept for this server, as far as there are any and none is given by hand."""
    if "authorization" in headers or not has_tokens():
        return None
    from sansmcp.auth.oauth import OAuth
    from sansmcp.http.url import parse_url

    store = token_store()
    known = store.tokens(parse_url(target.url).text) is not None
    return OAuth(store=store, grant=_LogInFirst()) if known else None


def secrets_stored(target: HttpTarget) -> dict[str, str]:
    """What of it must not be shown."""
    if not has_tokens():
        return {}
    from sansmcp.http.url import parse_url

    tokens = token_store().tokens(parse_url(target.url).text)
    if tokens is None:
        return {}
    return {"access token": tokens.access_token, "refresh token": tokens.refresh_token or ""}


@dataclass(frozen=True, kw_only=True)
class LoginOptions:
    """What ``login`` can be told beside the usual."""

    client_id: str | None = None
    client_secret_env: str | None = None
    scopes: tuple[str, ...] = ()
    browser: bool = True

    def oauth(self, environ: Mapping[str, str] = os.environ) -> OAuth:
        """How it is gone about. Raises CommandError for what cannot be used."""
        from sansmcp.auth.oauth import OAuth
        from sansmcp.auth.registration import Registration

        secret = None
        if self.client_secret_env is not None:
            secret = environ.get(self.client_secret_env, "").strip()
            if not secret:
                raise usage(f"--client-secret-env {self.client_secret_env}: the variable is not set")
            if self.client_id is None:
                raise usage("--client-secret-env goes with --client-id")
        client = None
        if self.client_id is not None:
            client = Registration(client_id=self.client_id, client_secret=secret)
        return OAuth(store=token_store(environ), client=client, scopes=self.scopes)


def _over_http(target: Target, words: list[str], settings: Settings) -> HttpTarget:
    if words:
        raise usage(f"unexpected argument {one_line(words[0], 60)!r}")
    if isinstance(target, StreamTarget):
        instead = (
            "give --bearer-env or --header, if it takes one" if target.websocket else "nobody logs in there"
        )
        raise usage(f"{target.name}: logging in is for HTTP; {instead}")
    if not isinstance(target, HttpTarget):
        raise usage(f"{target.name} is started here: nobody logs in there; its secrets are given with --env")
    if "authorization" in {name.lower() for name in (*target.headers, *settings.headers)}:
        raise usage("a header authorization is given for this server: nobody has to log in")
    return target


def login(target: Target, words: list[str], settings: Settings, options: LoginOptions) -> None:
    """Log in at the server, and keep the tokens. Raises CommandError where either cannot be done."""
    from sansmcp.http.url import parse_url

    from .session import run

    server = _over_http(target, words, settings)
    auth = options.oauth()

    async def show(url: str) -> None:
        print(f"Log in with a browser, at this address:\n\n  {url}\n", file=sys.stderr, flush=True)
        if options.browser:
            await asyncio.get_running_loop().run_in_executor(None, webbrowser.open, url)

    async def work(client: Client) -> tuple[dict[str, Any], Tokens | None]:
        from sansmcp_asyncio import log_in

        try:
            tokens = await log_in(client)
        except AuthorizationFailed as error:  # it was connected to without any
            failure = from_http(error, server.name)
            raise failure.saying(f"{failure.message}; {_OPEN}") from error
        return documents.connection(client), tokens

    _forget(auth, server)
    connected, tokens = run(server, settings, work, auth={"auth": auth, "open_url": show})
    assert tokens is not None
    if auth.store.tokens(parse_url(server.url).text) != tokens:
        raise usage("you are logged in, but not for the next command: the tokens could not be kept")
    result = {"issuer": tokens.issuer, "scopes": list(tokens.scopes), "renewable": bool(tokens.refresh_token)}
    if settings.json:
        documents.write(documents.success("login", connected, result))
    else:
        rights = f", for {' '.join(tokens.scopes)}" if tokens.scopes else ""
        print(f"Logged in at {tokens.issuer}{rights}.")


def logout(target: Target, words: list[str], settings: Settings) -> None:
    """Forget the tokens of the server."""
    server = _over_http(target, words, settings)
    from sansmcp.auth.oauth import OAuth

    forgotten = _forget(OAuth(store=token_store()), server)
    if settings.json:
        documents.write({"ok": True, "command": "logout", "result": {"forgotten": forgotten}})
    else:
        what = "The tokens were removed" if forgotten else "There were no tokens"
        print(f"{what} for {server.name}.")


def _forget(auth: OAuth, server: HttpTarget) -> bool:
    from sansmcp.http.url import parse_url

    key = parse_url(server.url).text
    known = auth.store.tokens(key) is not None
    try:
        auth.store.keep_tokens(key, None)
    except OSError:
        raise usage("the tokens that there are could not be removed") from None
    return known
