"""The options that every command has which talks to a server."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

from .headers import read_headers
from .program import command_line, keep_signature
from .settings import Settings, check_timeout, read_env
from .targets import Given, Target, find_target

Body = Callable[..., Any]

_OPTIONS = (
    click.option("--config", metavar="FILE", help="Look the server's name up in this file only."),
    click.option("--json", is_flag=True, help="Print one JSON document and nothing else on standard output."),
    click.option(
        "--timeout",
        type=float,
        metavar="SECONDS",
        help="Longest wait for the connection, and for each request.",
    ),
    click.option(
        "--mode",
        default="auto",
        metavar="MODE",
        show_default=True,
        help="auto, legacy, or one revision such as 2025-06-18.",
    ),
    click.option(
        "--env", multiple=True, metavar="NAME=VALUE", help="Set a variable for the server. Repeatable."
    ),
    click.option(
        "--inherit-env",
        is_flag=True,
        help="Give the server the whole environment, not only PATH, HOME and the like.",
    ),
    click.option("--cwd", metavar="FOLDER", help="Start the server in this folder."),
    click.option("--stderr", is_flag=True, help="Show the server's standard error as it comes."),
    click.option(
        "--header",
        multiple=True,
        metavar="HEADER",
        help="'NAME: VALUE' for every request, or @FILE with such lines. Repeatable.",
    ),
    click.option(
        "--bearer",
        metavar="TOKEN",
        help="Authorize with this token, or with the one in @FILE. Others may see what is typed here.",
    ),
    click.option("--bearer-env", metavar="VAR", help="Authorize with the token in this variable."),
    click.option("--cacert", metavar="FILE", help="Trust the certificates in this file (PEM)."),
    click.option("--insecure", is_flag=True, help="Do not check the server's certificate."),
    click.option("--proxy", metavar="URL", help="Reach the server through this HTTP proxy."),
    click.option(
        "--quirk",
        "quirks",
        multiple=True,
        metavar="NAME",
        help="Go along with this deviation of the server: see sansmcp quirks. Repeatable.",
    ),
    click.option(
        "--trace", is_flag=True, help="Show every event and message on standard error, secrets hidden."
    ),
    click.option("--strict", is_flag=True, help="Take every deviation from the protocol for an error."),
    click.option("--debug", is_flag=True, help="Show a traceback when something fails."),
)


def server_options(body: Body) -> Body:
    """Add the common options, and call `body` with ``(target, words, settings, …)`` for them."""

    @click.pass_context
    def command(ctx: click.Context, /, words: tuple[str, ...], **options: Any) -> Any:
        options.pop("debug")
        env = read_env(options.pop("env"))
        headers = read_headers(
            options.pop("header"), options.pop("bearer"), options.pop("bearer_env"), os.environ
        )
        settings = Settings(
            env=env,
            headers=headers,
            timeout=check_timeout(options.pop("timeout")),
            **{name: options.pop(name) for name in _PLAIN},
        )
        settings.era_mode()
        target, rest = find_target(words, command_line(ctx), settings.config, Given(env, headers))
        settings.check_fit(target)
        return body(target, rest, settings, **options)

    wrapped = keep_signature(command, body)
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped


_PLAIN = (
    "config", "json", "trace", "mode", "strict", "inherit_env", "cwd", "stderr",
    "cacert", "insecure", "proxy", "quirks",
)  # fmt: skip

__all__ = ["Settings", "Target", "server_options"]
