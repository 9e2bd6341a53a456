"""``sansmcp explain`` and ``sansmcp replay``: what messages are, and whether a log happens again."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from sansmcp.errors import LocalProtocolError, McpError
from sansmcp.replay import read_log, rebuild
from sansmcp.replay import replay as run_again
from sansmcp.revisions import ALL_REVISIONS, LATEST, LATEST_LEGACY, Era, Revision, known_revision
from sansmcp.session import modern
from sansmcp.types.convert import StructureError, structure
from sansmcp.types.methods import MethodSpec, spec_for
from sansmcp.wire import jsonrpc
from sansmcp.wire.jsoncodec import JsonError, default_codec

from . import documents
from .failures import ANSWERED_ERROR, CommandError, usage
from .text import one_line

_MAX_FILE: Final = 64 * 1024 * 1024
_SHOWN: Final = 300


def read_text(file: str) -> str:
    """What is in a file, or on standard input for ``-``. Raises CommandError when it cannot be read."""
    try:
        if file == "-":
            return sys.stdin.read(_MAX_FILE)
        path = Path(file)
        if path.stat().st_size > _MAX_FILE:
            raise usage(f"{file} is too large")
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise usage(f"cannot read {file}: there is no such file") from None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise usage(f"cannot read {file}: {reason}") from None


# explain -----------------------------------------------------------------------------------------


def explain(file: str, revision: str | None, *, as_json: bool) -> None:
    """Say what each message in `file` is. Raises CommandError when one breaks a rule."""
    given = None
    if revision is not None and (given := known_revision(revision)) is None:
        raise usage(f"--revision: known are {', '.join(r.value for r in ALL_REVISIONS)}")
    explainer = Explainer(given)
    found: list[dict[str, Any]] = []
    for where, text in _messages(read_text(file)):
        told, problems = explainer.explain(text)
        found.append({"where": where.strip().rstrip(":"), "is": told, "problems": problems})
        if not as_json:
            print(f"{where}{told}")
            for problem in problems:
                print(f"    breaks a rule: {one_line(problem, _SHOWN)}")
    if not found:
        raise usage(f"{file}: there is no message in it")
    result = {"messages": found}
    if broken := sum(1 for message in found if message["problems"]):
        what = "the message breaks" if len(found) == 1 else f"{broken} of {len(found)} messages break"
        raise CommandError(ANSWERED_ERROR, "rule_broken", f"{what} a rule", result=result)
    if as_json:
        documents.write({"ok": True, "command": "explain", "result": result})


def _messages(text: str) -> Iterator[tuple[str, str]]:
    """Each message with what to say before it."""
    lines = text.splitlines()
    first = next((line for line in lines if line.strip()), "")
    if first.startswith('{"sansmcp":"log"'):
        yield from _of_log(lines)
        return
    try:
        default_codec(max_depth=128, reject_duplicate_keys=False).loads(text)
    except JsonError:
        if sum(1 for line in lines if line.strip()) < 2:
            yield "", text
            return
        for number, line in enumerate(lines, 1):
            if line.strip():
                yield f"{number}: ", line
    else:
        yield "", text


def _of_log(lines: list[str]) -> Iterator[tuple[str, str]]:
    """The messages that a log of an engine holds: those of a transport are in pieces of bytes."""
    try:
        entries = read_log(lines)
    except LocalProtocolError as error:
        raise usage(str(error)) from None
    for number, entry in enumerate(entries[1:], 2):
        if entry.get("in") == "receive_message" and entry.get("args"):
            yield f"{number}: received ", _as_text(entry["args"][0])
        elif str(entry.get("is")).startswith("Send"):
            yield f"{number}: sent ", _as_text(entry.get("data"))


def _as_text(value: Any) -> str:
    if isinstance(value, Mapping) and isinstance(value.get("$text"), str):
        return str(value["$text"])
    if isinstance(value, str):
        return value
    return default_codec(max_depth=128, reject_duplicate_keys=False).dumps(value).decode()


class Explainer:
    """Reads the messages of one conversation in order: an answer is known by the request before it."""

    def __init__(self, revision: Revision | None = None) -> None:
        self._given = revision
        self._session: Revision | None = None
        self._asked: dict[jsonrpc.RequestId, tuple[str, Revision]] = {}
        self._codec = default_codec(max_depth=128, reject_duplicate_keys=True)

    def explain(self, text: str) -> tuple[str, list[str]]:
        """What a message is, in one line, and which rules it breaks."""
        try:
            value = self._codec.loads(text)
        except JsonError as error:
            return "no message", [str(error)]
        if isinstance(value, list):
            told = [self._one(jsonrpc.classify(member)) for member in value]
            problems = [problem for _, found in told for problem in found]
            revision = self._given or self._session
            if revision not in (None, Revision.V2025_03_26):
                problems.insert(0, f"batches exist in 2025-03-26 only, not in {revision}")
            return f"batch of {len(value)}: {'; '.join(line for line, _ in told)}", problems
        return self._one(jsonrpc.classify(value))

    def _one(self, message: jsonrpc.Message) -> tuple[str, list[str]]:
        match message:
            case jsonrpc.InvalidMessage():
                return "no JSON-RPC message", [f"{message.fault.name}: {message.detail}"]
            case jsonrpc.Request():
                return self._request(message)
            case jsonrpc.Notification():
                return self._notification(message)
            case jsonrpc.ResultResponse():
                return self._result(message)
            case jsonrpc.ErrorResponse():
                error = McpError(message.code, message.message)
                problems = [message.repaired] if message.repaired is not None else []
                about = "" if message.id is None else self._about(message.id)
                return f"error{about}: {one_line(str(error), _SHOWN)}", problems

    def _request(self, message: jsonrpc.Request) -> tuple[str, list[str]]:
        problems: list[str] = []
        revision = self._revision(message.method, message.params, problems)
        self._asked[message.id] = (message.method, revision)
        told = f"request {message.id!r} {one_line(message.method, 80)} ({revision.era}, {revision})"
        # what is wrong with its `_meta` was said
        return told, problems or self._check_params(message.method, message.params, revision)

    def _notification(self, message: jsonrpc.Notification) -> tuple[str, list[str]]:
        revision = self._given or self._session or LATEST
        told = f"notification {one_line(message.method, 80)} ({revision.era}, {revision})"
        return told, self._check_params(message.method, message.params, revision)

    def _result(self, message: jsonrpc.ResultResponse) -> tuple[str, list[str]]:
        method, revision = self._asked.get(message.id, (None, self._given or self._session or LATEST))
        problems: list[str] = []
        spec = None if method is None else spec_for(method)
        kind = message.result.get("resultType")
        if method == "initialize":
            self._session = known_revision(message.result.get("protocolVersion")) or self._session
        if revision.era is Era.MODERN and method is not None and kind is None:
            problems.append("a result has no resultType, which 2026-07-28 requires")
        if spec is not None and spec.result is not None and kind in (None, modern.COMPLETE):
            problems += _fits(message.result, spec.result, revision)
        named = "" if kind is None else f" of type {one_line(str(kind), 40)}"
        return f"result{named}{self._about(message.id)}", problems

    def _about(self, request_id: jsonrpc.RequestId) -> str:
        asked = self._asked.get(request_id)
        about = f" of {one_line(asked[0], 80)} ({asked[1].era}, {asked[1]})" if asked is not None else ""
        return f" {request_id!r}{about}"

    def _revision(self, method: str, params: Mapping[str, Any], problems: list[str]) -> Revision:
        """Under which revision a request is made."""
        if modern.is_modern(params):
            read = modern.read_request_meta(params)
            if isinstance(read, McpError):
                problems.append(read.message)
                return self._given or LATEST
            found = known_revision(read.version)
            if found is None:
                problems.append(f"the version {read.version[:64]!r} is none that is known")
            return self._given or found or LATEST
        if method == "initialize":
            found = known_revision(params.get("protocolVersion"))
            self._session = found if found is not None and found.era is Era.LEGACY else LATEST_LEGACY
            return self._given or self._session
        revision = self._given or self._session or LATEST_LEGACY
        if revision.era is Era.MODERN:
            problems.append(modern.missing_meta("_meta").message)
        return revision

    def _check_params(self, method: str, params: dict[str, Any], revision: Revision) -> list[str]:
        spec = spec_for(method)
        if spec is None:
            return [f"{method[:80]} is no method of the protocol (an extension or the peers may have one)"]
        if not _exists(spec, revision):
            return [f"{method} does not exist in {revision}"]
        return _fits(params, spec.params, revision)


def _exists(spec: MethodSpec, revision: Revision) -> bool:
    return any(spec.goes(direction, revision) for direction in spec.spans)


def _fits(raw: Any, cls: Any, revision: Revision) -> list[str]:
    problems: list[str] = []
    if cls is None:
        return problems
    try:
        structure(raw, cls, revision, tolerances=problems)
    except (StructureError, LocalProtocolError) as error:
        return [str(error)]
    return problems


# replay ------------------------------------------------------------------------------------------


def replay(file: str, *, as_json: bool) -> None:
    """Run a log again. Raises CommandError when a step goes another way."""
    lines = read_text(file).splitlines()
    try:
        outcome = run_again(lines, rebuild(lines))
    except LocalProtocolError as error:
        raise usage(one_line(str(error), _SHOWN)) from None
    divergence = outcome.divergence
    result: dict[str, Any] = {"steps": outcome.steps}
    if divergence is None:
        if as_json:
            documents.write({"ok": True, "command": "replay", "result": result})
        else:
            print(f"{outcome.steps} steps, all as they are written")
        return
    values = {"expected": str(divergence.expected), "got": str(divergence.got)}
    result.update(line=divergence.step, **values)
    if not as_json:
        for label, value in values.items():
            print(f"{label}: {one_line(value, 2 * _SHOWN)}")
    told = f"line {divergence.step}: {divergence.reason} ({outcome.steps} steps went as they are written)"
    raise CommandError(ANSWERED_ERROR, "diverged", told, result=result)
