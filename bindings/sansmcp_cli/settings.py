"""What the common options say, checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from .failures import usage
from .targets import CommandTarget, HttpTarget, StreamTarget, Target
from .text import instead, one_line

if TYPE_CHECKING:
    from sansmcp.limits import Timeouts
    from sansmcp.session.era import Mode

_PROBE = 5.0


def _refuse(options: Mapping[str, object], why: str) -> None:
    for name, value in options.items():
        if value:
            raise usage(f"--{name} {why}")


def _how(target: Target) -> str:
    match target:
        case CommandTarget():
            return "started here"
        case StreamTarget():
            return "at a WebSocket" if target.websocket else "at a socket"
        case _:
            return "reached over HTTP"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The options that every command has which talks to a server."""

    config: str | None = None
    json: bool = False
    trace: bool = False
    timeout: float | None = None
    mode: str = "auto"
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    inherit_env: bool = False
    cwd: str | None = None
    stderr: bool = False
    strict: bool = False
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    cacert: str | None = None
    insecure: bool = False
    proxy: str | None = field(default=None, repr=False)
    quirks: Sequence[str] = ()

    def check_fit(self, target: Target) -> None:
        """Raise CommandError for an option that means nothing for this kind of target."""
        started = {"env": self.env, "inherit-env": self.inherit_env, "cwd": self.cwd, "stderr": self.stderr}
        tls = {"cacert": self.cacert, "insecure": self.insecure}
        remote = {"header or --bearer-env": self.headers, **tls, "proxy": self.proxy}
        self._check_quirks(target)
        if isinstance(target, CommandTarget):
            _refuse(remote, f"is for a server that is reached over HTTP; {target.name} is {_how(target)}")
            return
        _refuse(started, f"is for a server that is started here; {target.name} is {_how(target)}")
        if isinstance(target, StreamTarget):
            _refuse({"proxy": self.proxy}, f"is for HTTP; {target.name} is {_how(target)}")
            if not target.websocket:
                given = {"header or --bearer-env": self.headers}
                _refuse(given, f"is for HTTP and WebSockets; {target.name} is {_how(target)}")
        if not target.encrypted:
            _refuse(tls, f"is for https; {target.name} is not encrypted")
        if self.insecure and self.cacert is not None:
            raise usage("give either --insecure or --cacert, not both")

    def _check_quirks(self, target: Target) -> None:
        if not self.quirks:
            return
        from sansmcp.quirks import QUIRKS, NoCancel

        if self.strict:
            raise usage("give either --quirk or --strict, not both: strict tolerates nothing")
        for name in self.quirks:
            if name not in QUIRKS:
                told = instead(name, QUIRKS, "there are")
                raise usage(
                    f"--quirk {one_line(name, 80)}: no quirk has this name: {told} (see sansmcp quirks)"
                )
            if not isinstance(target, HttpTarget) and not isinstance(QUIRKS[name].rule, NoCancel):
                raise usage(f"--quirk {name} is for HTTP; {target.name} is {_how(target)}")

    def era_mode(self) -> Mode:
        """The mode for the engine. Raises CommandError for a revision that does not exist."""
        from sansmcp.revisions import ALL_REVISIONS, known_revision
        from sansmcp.session.era import Auto, Legacy, Pin

        if self.mode == "auto":
            return Auto()
        if self.mode == "legacy":
            return Legacy()
        revision = known_revision(self.mode)
        if revision is None:
            known = ", ".join(r.value for r in ALL_REVISIONS)
            raise usage(f"--mode {self.mode}: give auto, legacy or a revision ({known})")
        return Pin(revision)

    def timeouts(self, *, asking: bool) -> Timeouts:
        """The engine's deadlines: its own, or all of them within ``--timeout``.

        With `asking` a user is asked, whose time does not count.
        """
        from sansmcp.limits import Timeouts

        limit = self.timeout
        if limit is None:
            return Timeouts()
        # half of it at most, so that a server which never answers the probe can still be initialized
        total = None if asking else limit
        return Timeouts(
            probe=min(_PROBE, limit / 2),
            connect=limit,
            request=limit,
            total=total,
            ping=limit,
            progress_resets=False,
        )


def check_timeout(value: float | None) -> float | None:
    """The seconds of ``--timeout``. Raises CommandError for what is no time span."""
    if value is not None and not 0 < value < 1e9:
        raise usage("--timeout: give a number of seconds greater than 0")
    return value


def read_env(pairs: tuple[str, ...]) -> dict[str, str]:
    """``NAME=VALUE`` of each ``--env``. What is malformed is not quoted: it may be a secret."""
    env: dict[str, str] = {}
    for number, pair in enumerate(pairs, 1):
        name, found, value = pair.partition("=")
        if not found or not name:
            raise usage(f"--env: give NAME=VALUE (the value is missing in occurrence {number})")
        env[name] = value
    return env


def check_folder(path: str | None, what: str) -> str | None:
    """A folder that is there. Raises CommandError for anything else."""
    if path is not None and not Path(path).is_dir():
        raise usage(f"{what} {path}: there is no such folder")
    return path
