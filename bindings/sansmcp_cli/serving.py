"""``sansmcp serve``: find an `App` in a module or a file, and serve it on standard streams or elsewhere."""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout, suppress
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from sansmcp.app import App

from .demo_app import revisions_of
from .failures import usage
from .text import one_line

if TYPE_CHECKING:
    from .listening import Listening


def serve_target(
    target: str | None, revisions: Sequence[str], listening: Listening | None, *, trace: bool, strict: bool
) -> None:
    """Serve `target`, or the demo: on standard streams until the client is gone, else until a signal."""
    from sansmcp.revisions import ALL_REVISIONS

    try:
        chosen = revisions_of(revisions)
    except ValueError:
        known = ", ".join(r.value for r in ALL_REVISIONS)
        raise usage(f"--revision: give legacy, modern or a revision ({known})") from None
    app = load_app(target)
    import sansmcp_asyncio

    on_event = on_wire = None
    if trace:
        from .redact import Redactor
        from .trace import Trace

        tracing = Trace(
            Redactor(None, os.environ), wire="lines" if listening is None else listening.wire, many=True
        )
        on_event, on_wire = tracing.on_event, tracing.on_wire
    if listening is not None:
        from .listening import serve_at

        with suppress(asyncio.CancelledError):  # SIGTERM is how a server is ended in order
            asyncio.run(
                serve_at(app, listening, revisions=chosen, strict=strict, on_event=on_event, on_wire=on_wire)
            )
        return
    if sys.stdin.isatty():
        print(
            f"sansmcp: serving {app.info.name} on standard input and output, which is for an MCP client; "
            "Ctrl-C ends it",
            file=sys.stderr,
        )
    asyncio.run(
        sansmcp_asyncio.serve_stdio(app, revisions=chosen, strict=strict, on_event=on_event, on_wire=on_wire)
    )


def load_app(target: str | None) -> App:
    """The `App` that ``module:name`` or ``file.py:name`` stands for; None: the demo.

    Raises CommandError (usage) when there is none.
    """
    if target is None:
        from .demo_app import app

        return app
    place, separator, name = target.rpartition(":")
    if not separator or _is_path(name):  # a drive letter has a colon too
        place, name = target, "app"
    with redirect_stdout(sys.stderr):  # standard output belongs to the protocol
        module = _load_file(Path(place)) if _is_path(place) else _load_module(place)
    found: object = module
    for step in name.split("."):
        found = getattr(found, step, None)
    if isinstance(found, App):
        return found
    apps = [key for key, value in vars(module).items() if isinstance(value, App)]
    hint = f"; it has {', '.join(apps)}" if apps else ""
    what = "there is none" if found is None else f"it is a {type(found).__name__}"
    raise usage(f"{target}: expected an App named {name!r} in {place}, but {what}{hint}")


def _is_path(place: str) -> bool:
    return place.endswith(".py") or "/" in place or os.sep in place


def _load_file(path: Path) -> ModuleType:
    if not path.is_file():
        raise usage(f"{path}: there is no such file")
    # as when Python runs the file itself: it may import its neighbours
    sys.path.insert(0, str(path.absolute().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise usage(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _broken(str(path), error) from error
    return module


def _load_module(name: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise usage(f"{name}: there is no such module (a file is written with .py)") from None
        raise _broken(name, error) from error
    except Exception as error:
        raise _broken(name, error) from error


def _broken(place: str, error: Exception) -> Exception:
    told = one_line(str(error), 300)
    return usage(f"{place}: importing it raised {type(error).__name__}: {told} (--debug shows where)")
