"""The commands as click sees them. What they do is loaded when one of them runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from .options import answer_options, listening_options, server_options
from .program import EXIT_CODES, Program, ServerCommand

if TYPE_CHECKING:
    from .listening import Listening
    from .questions import Questions
    from .settings import Settings
    from .targets import Target

_HELP = f"""Look at MCP servers, use them, serve one.

A server is a URL, a command line after --, or the name it has in a configuration file: --config
FILE, or else ./.mcp.json, ./.vscode/mcp.json, ./.cursor/mcp.json and the usual files in your home
folder.

\b
Examples:
  sansmcp probe -- npx -y @modelcontextprotocol/server-everything
  sansmcp tools https://example.com/mcp
  sansmcp call echo message=hello -- npx -y @modelcontextprotocol/server-everything
  sansmcp serve my_server.py:app

{EXIT_CODES}
"""


def _version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        from sansmcp import __version__

        click.echo(f"sansmcp {__version__}")
        ctx.exit()


@click.group(
    "sansmcp",
    cls=Program,
    no_args_is_help=False,
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Show the version."
)
def cli() -> None: ...


def _command(words: str) -> Callable[[Callable[..., None]], click.Command]:
    """Decorate a function as a command that talks to a server; `words` describes its arguments."""

    def decorate(body: Callable[..., None]) -> click.Command:
        argument = click.argument("words", nargs=-1, metavar=words)
        return cli.command(cls=ServerCommand, epilog=EXIT_CODES)(argument(server_options(body)))

    return decorate


@_command("[SERVER]")
def probe(target: Target, words: list[str], settings: Settings) -> None:
    """Find out how a server speaks and what it offers.

    \b
    Examples:
      sansmcp probe -- uvx mcp-server-time
      sansmcp probe https://example.com/mcp --bearer-env MY_TOKEN
      sansmcp probe --json --mode legacy my-server
    """
    from . import commands

    commands.probe(target, words, settings)


@_command("[SERVER]")
@click.option("--schema", is_flag=True, help="Show each tool's whole description and its JSON schemas.")
def tools(target: Target, words: list[str], settings: Settings, schema: bool) -> None:
    """List the tools.

    \b
    Examples:
      sansmcp tools my-server
      sansmcp tools --schema -- uvx mcp-server-time
    """
    from . import commands

    commands.tools(target, words, settings, schema=schema)


@_command("[SERVER] NAME [ARGS]...")
@click.option(
    "--args-file", metavar="FILE", help="Read the arguments, a JSON object, from a file; - is standard input."
)
@answer_options
def call(
    target: Target,
    words: list[str],
    settings: Settings,
    args_file: str | None,
    questions: Questions | None,
) -> None:
    """Call a tool.

    ARGS is one JSON object, or key=value pairs that take their types from the tool's schema.
    Text goes to standard output, progress to standard error; a tool that fails exits with 1. What the
    server asks for meanwhile is asked on the terminal, unless --answer says it.

    \b
    Examples:
      sansmcp call my-server add a=1 b=2
      sansmcp call add '{"a": 1, "b": 2}' -- python server.py
      sansmcp call add --args-file - -- python server.py < arguments.json
      sansmcp call my-server deploy --answer where=staging --answer sure=yes
    """
    from . import calling

    calling.call(target, words, settings, args_file=args_file, questions=questions)


@_command("[SERVER]")
def resources(target: Target, words: list[str], settings: Settings) -> None:
    """List the resources and the resource templates.

    \b
    Example:
      sansmcp resources my-server
    """
    from . import commands

    commands.resources(target, words, settings)


@_command("[SERVER] URI")
@click.option("--output", metavar="FILE", help="Write the contents to this file.")
@answer_options
def read(
    target: Target,
    words: list[str],
    settings: Settings,
    output: str | None,
    questions: Questions | None,
) -> None:
    """Read a resource.

    Text goes to standard output, and so do bytes unless that is a terminal.

    \b
    Examples:
      sansmcp read my-server file:///notes.txt
      sansmcp read demo://logo --output logo.png -- python server.py
    """
    from . import commands

    commands.read(target, words, settings, output=output, questions=questions)


@_command("[SERVER]")
def prompts(target: Target, words: list[str], settings: Settings) -> None:
    """List the prompts.

    \b
    Example:
      sansmcp prompts my-server
    """
    from . import commands

    commands.prompts(target, words, settings)


@_command("[SERVER] NAME [KEY=VALUE]...")
@answer_options
def prompt(target: Target, words: list[str], settings: Settings, questions: Questions | None) -> None:
    """Fill in a prompt.

    \b
    Example:
      sansmcp prompt my-server greet name=Ada
    """
    from . import commands

    commands.prompt(target, words, settings, questions=questions)


@_command("[SERVER]")
@click.option("--client-id", metavar="ID", help="By what the authorization server knows this program.")
@click.option("--client-secret-env", metavar="VAR", help="The secret that goes with it is in this variable.")
@click.option("--scope", "scopes", multiple=True, metavar="SCOPE", help="Ask for this right too. Repeatable.")
@click.option("--no-browser", is_flag=True, help="Only show the address, and open no browser.")
def login(
    target: Target,
    words: list[str],
    settings: Settings,
    client_id: str | None,
    client_secret_env: str | None,
    scopes: tuple[str, ...],
    no_browser: bool,
) -> None:
    """Log in at a server that is reached over HTTP, with a browser.

    The tokens are kept in a file that only you can read, and used by all commands.

    \b
    Examples:
      sansmcp login https://example.com/mcp
      sansmcp login my-server --scope files:write
    """
    from . import login as logging_in

    options = logging_in.LoginOptions(
        client_id=client_id, client_secret_env=client_secret_env, scopes=scopes, browser=not no_browser
    )
    logging_in.login(target, words, settings, options)


@_command("[SERVER]")
def logout(target: Target, words: list[str], settings: Settings) -> None:
    """Remove the tokens of a server from this computer.

    \b
    Example:
      sansmcp logout https://example.com/mcp
    """
    from . import login as logging_in

    logging_in.logout(target, words, settings)


@cli.command(epilog=EXIT_CODES)
@click.argument("target", required=False)
@click.option(
    "--revision",
    "revisions",
    multiple=True,
    metavar="REVISION",
    help="Serve only this revision, or legacy, or modern. Repeatable.",
)
@listening_options
@click.option("--trace", is_flag=True, help="Show every event and message on standard error, secrets hidden.")
@click.option("--strict", is_flag=True, help="Take every deviation from the protocol for an error.")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def serve(
    target: str | None,
    revisions: tuple[str, ...],
    trace: bool,
    strict: bool,
    debug: bool,
    listening: Listening | None,
) -> None:
    """Serve an App on standard streams, over HTTP, at WebSockets or at a socket.

    TARGET is module:name or file.py:name; the name is `app` when it is left out. Without TARGET a
    small demo server is served.

    \b
    Examples:
      sansmcp serve my_server.py
      sansmcp serve my_server.py --http 8000
      sansmcp serve my_server.py --websocket 0.0.0.0:8000 --allow-host mcp.example.com
      sansmcp serve my_server.py --unix /run/my/socket
      sansmcp serve my_package.server:app --revision 2025-06-18
      sansmcp tools -- sansmcp serve
    """
    from .serving import serve_target

    serve_target(target, revisions, listening, trace=trace, strict=strict)


@_command("[SERVER]")
@listening_options
def bridge(target: Target, words: list[str], settings: Settings, listening: Listening | None) -> None:
    """Serve a server to clients of the other era: on standard streams or where it listens.

    Whatever the server speaks, it can be used by clients of every revision. What one era has and the
    other lacks is told on standard error with --trace.

    \b
    Examples:
      sansmcp bridge -- uvx mcp-server-time
      sansmcp bridge https://example.com/mcp
      sansmcp bridge my-server --http 8000
    """
    from .bridging import bridge as run_bridge

    run_bridge(target, words, settings, listening)


@cli.command(epilog=EXIT_CODES)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
def quirks(as_json: bool) -> None:
    """List the deviations of servers that --quirk makes a command go along with.

    Each use of one is told with --trace.

    \b
    Examples:
      sansmcp quirks
      sansmcp call https://example.com/mcp slow --quirk session-lost-400
    """
    from . import commands

    commands.quirks(as_json=as_json)


@cli.command(epilog=EXIT_CODES)
@click.argument("file", metavar="FILE")
@click.option("--revision", metavar="REVISION", help="Hold everything against this revision.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def explain(file: str, revision: str | None, as_json: bool, debug: bool) -> None:
    """Say what messages are: their kind, their era, and which rule they break.

    FILE holds one JSON-RPC message, one message a line, or a log that `sansmcp.replay` wrote; - is
    standard input. Exits with 1 when a rule is broken.

    \b
    Examples:
      sansmcp explain message.json
      sansmcp explain --revision 2025-06-18 messages.jsonl
    """
    from .explaining import explain as run_explain

    run_explain(file, revision, as_json=as_json)


@cli.command(epilog=EXIT_CODES)
@click.argument("file", metavar="FILE")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--debug", is_flag=True, help="Show a traceback when something fails.")
def replay(file: str, as_json: bool, debug: bool) -> None:
    """Run a log of an engine again, and name the first step that goes another way.

    FILE is a log that `sansmcp.replay.record` wrote; - is standard input. Exits with 1 when a step
    differs.

    \b
    Example:
      sansmcp replay conversation.jsonl
    """
    from .explaining import replay as run_replay

    run_replay(file, as_json=as_json)
