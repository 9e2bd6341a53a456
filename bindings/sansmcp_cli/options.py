"""The options that several commands have: of a server, of where to listen, of what is answered."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import click

from .failures import usage
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

    return _with(_OPTIONS, command, body)


_PLAIN = (
    "config", "json", "trace", "mode", "strict", "inherit_env", "cwd", "stderr",
    "cacert", "insecure", "proxy", "quirks",
)  # fmt: skip

_LISTENING = (
    click.option("--http", metavar="[HOST:]PORT", help="Serve over HTTP there; port 0 is any that is free."),
    click.option("--websocket", metavar="[HOST:]PORT", help="Serve WebSockets there."),
    click.option("--tcp", metavar="[HOST:]PORT", help="Serve a port with a line per message."),
    click.option("--unix", metavar="PATH", help="Serve a unix socket with a line per message."),
    click.option(
        "--path", metavar="PATH", help="Where the endpoint is, of HTTP and WebSockets.  [default: /mcp]"
    ),
    click.option("--stateless", is_flag=True, help="Over HTTP: serve older clients without sessions, too."),
    click.option("--old-sse", is_flag=True, help="Speak HTTP+SSE as well, at /sse, for clients of 2024."),
    click.option("--certfile", metavar="FILE", help="Speak TLS with this certificate (PEM)."),
    click.option(
        "--keyfile", metavar="FILE", help="The certificate's key, where it is in a file of its own."
    ),
    click.option(
        "--allow-host",
        multiple=True,
        metavar="NAME[:PORT]",
        help="A name by which clients call this server, beside localhost and HOST; * is any. Repeatable.",
    ),
    click.option(
        "--allow-origin",
        multiple=True,
        metavar="ORIGIN",
        help="Pages that may use it, as https://example.com; * is any. Repeatable.",
    ),
)
"""Where to listen, and for whom."""


def listening_options(body: Body) -> Body:
    """Add the options of where to listen, and call `body` with the `listening` that they say."""

    def command(*words: Any, **options: Any) -> Any:
        from .listening import OPTIONS, listening_of

        given = {name: options.pop(name) for name in OPTIONS}
        return body(*words, listening=listening_of(given), **options)

    return _with(_LISTENING, command, body)


_ANSWERS = (
    click.option(
        "--answer",
        "answer",
        multiple=True,
        metavar="FIELD=VALUE",
        help="Answer a field of what the server asks for, with JSON or text. Repeatable.",
    ),
    click.option(
        "--answers", metavar="FILE", help="Answers by their fields, a JSON object; - is standard input."
    ),
    click.option("--no-input", is_flag=True, help="Ask nobody: a server gets only what --answer gives."),
)
"""What a server gets to hear that asks for something first."""


def answer_options(body: Body) -> Body:
    """Add the options of what is answered, and call `body` with the `questions` that they leave."""

    def command(target: Target, words: list[str], settings: Settings, **options: Any) -> Any:
        from .questions import questions_of, read_answers

        pairs, file, no_input = (options.pop(name) for name in ("answer", "answers", "no_input"))
        if file == "-" and options.get("args_file") == "-":
            raise usage("standard input is read once: give --args-file or --answers a file")
        questions = questions_of(read_answers(pairs, file), target, no_input=no_input)
        return body(target, words, settings, questions=questions, **options)

    return _with(_ANSWERS, command, body)


def _with(options: Sequence[Callable[[Body], Body]], command: Body, body: Body) -> Body:
    """`command` in the place of `body`, and with these options beside its own."""
    wrapped = keep_signature(command, body)
    for option in reversed(options):
        wrapped = option(wrapped)
    return wrapped


__all__ = ["Settings", "Target", "answer_options", "listening_options", "server_options"]
