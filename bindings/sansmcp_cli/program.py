"""What click does not do the way we want: the ``--`` of a command line, and one line per failure."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any, Final, NoReturn

import click

from .failures import CANNOT_WRITE, INTERRUPTED, NO_READER, OK, OUR_FAULT, USAGE, CommandError

_CANNOT_WRITE: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_COMMAND_LINE: Final = "sansmcp_cli.command_line"

EXIT_CODES: Final = """\b
Exit codes:
  0    it worked
  1    the tool or the server answered with an error
  2    the command was given wrongly
  3    no connection: the program is missing or died, the URL is of no MCP server, or no common version
  4    no answer in time
  130  interrupted"""


class ServerCommand(click.Command):
    """A command whose arguments may end in ``-- COMMAND…``: kept apart, exactly as given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if "--" in args:
            at = args.index("--")
            ctx.meta[_COMMAND_LINE] = args[at + 1 :]
            args = args[:at]
        return super().parse_args(ctx, args)

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        return [*super().collect_usage_pieces(ctx), "[-- COMMAND...]"]


def command_line(ctx: click.Context) -> list[str] | None:
    """What came after ``--``, or None when there was none."""
    found: list[str] | None = ctx.meta.get(_COMMAND_LINE)
    return found


class Program(click.Group):
    """The whole program: ends every failure in one line and the right exit code."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> NoReturn:
        words = list(sys.argv[1:] if args is None else args)
        own = words[: words.index("--")] if "--" in words else words
        _open_streams()
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                # what the encoding lacks is shown as an escape instead of being our end
                stream.reconfigure(errors="backslashreplace")
        extra["standalone_mode"] = False
        code: int
        try:
            code = super().main(words, *rest, **extra) or OK
            sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()  # whoever read it has enough
            code = NO_READER
        except click.exceptions.Exit as ended:
            code = ended.exit_code
        except (KeyboardInterrupt, click.Abort):
            code = self._failed(CommandError(INTERRUPTED, "interrupted", "interrupted"), own)
        except click.ClickException as error:
            code = self._failed(_from_click(error), own)
        except CommandError as failure:
            code = self._failed(failure, own)
        except Exception as error:
            if "--debug" in own:
                raise
            from .text import one_line

            if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
                _drop_output()
                told = f"the output cannot be written: {os.strerror(error.errno)}"
                code = self._failed(CommandError(CANNOT_WRITE, "cannot_write", told), own)
            else:
                told = f"a fault of this program: {type(error).__name__}: {one_line(str(error), 200)}"
                code = self._failed(CommandError(OUR_FAULT, "internal", f"{told} (--debug shows where)"), own)
        sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)  # as they were written, not by the alphabet

    def _failed(self, failure: CommandError, words: Sequence[str]) -> int:
        if "--debug" in words:
            import traceback

            traceback.print_exc()
        from .text import one_line, visible

        print(f"sansmcp: {one_line(failure.message, 1200)}", file=sys.stderr)
        for step, outcome in failure.trail:
            if len(failure.trail) > 1 or outcome.partition(" (")[0] not in failure.message:
                print(f"  {one_line(f'{step}: {outcome}', 160)}", file=sys.stderr)
        if failure.heading:
            print(f"  {failure.heading}", file=sys.stderr)
        for line in failure.notes:
            print(f"  {'  ' if failure.heading else ''}{visible(line)}", file=sys.stderr)
        if "--json" in words:
            from .documents import failed, write

            command = next((word for word in words if word in self.commands), None)
            write(failed(command, failure))
            sys.stdout.flush()
        return failure.code


def _open_streams() -> None:
    """Let there be three standard streams: what is opened next would be taken for one that is closed."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115


def _drop_output() -> None:
    """Let the rest of the output go nowhere, so that nobody tries to write it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _from_click(error: click.ClickException) -> CommandError:
    message = error.format_message().replace("\n", " ").rstrip(".")
    path = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "sansmcp"
    return CommandError(USAGE, "usage", f"{message} (see {path} --help)")


def keep_signature(wrapper: Callable[..., Any], function: Callable[..., Any]) -> Callable[..., Any]:
    """`wrapper` with the name, the help text and the options of `function`."""
    return update_wrapper(wrapper, function)
