"""Events and messages as one line each, for people."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any, Final

from sansmcp import events as e
from sansmcp.errors import SansmcpError
from sansmcp.events import Event

from .redact import Redactor
from .text import one_line, shorten, size

MAX_PARSED: Final = 1024 * 1024
"""Messages up to this size are looked into, and so can be shown without their secrets."""


_FORM: Final = re.compile(rb"[a-z_]+=[!-~]*(?:&[a-z_]+=[!-~]*)+")
_SHOWN_FIELDS: Final = frozenset({"grant_type", "scope", "resource", "redirect_uri"})


def tell_event(event: Event) -> str:
    """The event on one line; may hold a peer's text, so hide secrets in it before it is shown."""
    match event:
        case e.EraDecided():
            why = "; ".join(f"{item.step}: {item.outcome}" for item in event.evidence)
            return f"EraDecided: {event.era.value}, revision {event.revision} ({why})"
        case e.SessionStarted():
            return f"SessionStarted: revision {event.revision}"
        case e.SessionEnded(error=None):
            return "SessionEnded: in order"
        case e.SessionEnded(error=error):
            return f"SessionEnded: {_error(error)}"
        case e.ResultReady():
            return f"ResultReady: {event.call.subject}{' (isError)' if event.is_error else ''}"
        case e.RequestFailed():
            return f"RequestFailed: {event.call.subject}: {_error(event.error)}"
        case e.ProgressReported():
            total = "" if event.total is None else f"/{event.total:g}"
            message = f" {event.message}" if event.message else ""
            return f"ProgressReported: {event.call.subject} {event.progress:g}{total}{message}"
        case e.LogReceived():
            logger = f" {event.logger}" if event.logger else ""
            data = event.data if isinstance(event.data, str) else json.dumps(event.data)
            return f"LogReceived: {event.level}{logger}: {data}"
        case e.MessageIgnored() | e.DeviationTolerated():
            reason = event.reason if isinstance(event, e.MessageIgnored) else event.fault
            return f"{type(event).__name__}: {reason.name}: {event.detail}"
        case e.QuirkUsed():
            return f"QuirkUsed: {event.name}: {event.detail}"
        case e.LimitHit():
            return f"LimitHit: {event.limit}: {event.detail}"
        case e.ListChanged():
            return f"ListChanged: {event.kind.value}"
        case e.ResourceUpdated():
            return f"ResourceUpdated: {event.uri}"
        case e.NotificationReceived():
            return f"NotificationReceived: {event.method}"
        case e.RequestReceived() | e.RequestCancelled():
            return f"{type(event).__name__}: {event.request.method}"
        case e.InputRequired():
            about = "" if event.call is None else f"{event.call.subject}: "
            return f"InputRequired: {about}{', '.join(q.method for q in event.requests.values())}"
        case e.InputWithdrawn() | e.ToolExcluded():
            name = f"{event.name}: " if isinstance(event, e.ToolExcluded) else ""
            return f"{type(event).__name__}: {name}{event.reason}"
        case e.SubscriptionInterrupted() | e.DeliveryFailed() | e.ServerStreamEnded():
            return f"{type(event).__name__}: {_error(event.error)}"
        case e.AuthorizationGranted():
            how = "renewed" if event.refreshed else "granted"
            return (
                f"AuthorizationGranted: {how} by {event.issuer} for {' '.join(event.scopes) or 'the usual'}"
            )
        case e.AuthorizationRefused():
            return f"AuthorizationRefused: {_error(event.error)}"
        case e.PeerGone():
            code = "" if event.returncode is None else f": exit code {event.returncode}"
            return f"PeerGone{code}{', restarting' if event.restarting else ''}"
        case _:
            return type(event).__name__


def _error(error: SansmcpError | None) -> str:
    return f"{type(error).__name__}: {error}"


def tell_message(line: bytes, redactor: Redactor, limit: int) -> str:
    """A message on the wire on one line, without secrets: what it is, then the beginning of it."""
    if len(line) > MAX_PARSED:
        return f"(a line of {size(len(line))}, not shown)"
    if _FORM.fullmatch(line) is not None:
        return f"form  {one_line(_form(line.decode()), limit)}"
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        text = line.decode("utf-8", "backslashreplace")
        return f"(no JSON) {one_line(redactor.text(text), limit)}"
    try:
        shown = json.dumps(redactor.json(value), ensure_ascii=False, separators=(",", ":"))
    except RecursionError:
        return f"(nested too deeply, {size(len(line))}, not shown)"
    told = f"{message_kind(value)}  {one_line(shown, limit)}"
    return told if len(shown) <= limit else f"{told} ({size(len(line))})"


def _form(text: str) -> str:
    """What is asked of an authorization server: of nearly all of it, the value is a secret."""
    pairs = (pair.partition("=") for pair in text.split("&"))
    return ", ".join(f"{name}={value}" if name in _SHOWN_FIELDS else name for name, _, value in pairs)


def message_kind(message: Any) -> str:
    """What a message is: ``request tools/call #3``, ``result #3``, ``error #3``…"""
    if isinstance(message, list):
        return f"batch of {len(message)}"
    if not isinstance(message, dict):
        return "no message"
    number = f" #{shorten(str(message['id']), 40)}" if "id" in message else ""
    method = message.get("method")
    if isinstance(method, str):
        return f"{'request' if number else 'notification'} {one_line(method, 80)}{number}"
    kind = "error" if "error" in message else "result" if "result" in message else "no message"
    return kind + number


class LineSplitter:
    """Cuts what arrives in pieces into lines, keeping at most `MAX_PARSED` bytes of each."""

    def __init__(self, tell: Callable[[bytes, int], None]) -> None:
        self._tell = tell
        self._kept = bytearray()
        self._size = 0

    def feed(self, data: bytes) -> None:
        """Tell of every line that is complete now: its bytes as far as kept, and its whole size."""
        *complete, rest = data.split(b"\n")
        for piece in complete:
            self._keep(piece)
            self.flush()
        self._keep(rest)

    def flush(self) -> None:
        """Tell of what is there, complete or not."""
        if self._size:
            self._tell(bytes(self._kept), self._size)
        self._kept.clear()
        self._size = 0

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        self._kept += piece[: MAX_PARSED + 1 - len(self._kept)]
