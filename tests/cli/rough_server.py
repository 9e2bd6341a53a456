"""A legacy server written by hand that misbehaves as its first argument says, without the library."""

import json
import sys
import time
from typing import Any

Message = dict[str, Any]

BEHAVIOUR, *REST = sys.argv[1:]


def answer(request: Message, result: Any = None, error: Any = None) -> None:
    body = {"error": error} if error is not None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], **body}), flush=True)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def call(request: Message) -> None:
    match BEHAVIOUR:
        case "die-on-call":
            say("working")
            say("out of memory")
            sys.exit(7)
        case "hang-on-call":
            say("thinking")
            time.sleep(600)  # until it is killed
        case "bad-result":
            answer(request, {"content": "not a list"})
        case "error-with-secret":
            data = {"authorization": "Bearer abcdefgh12345678", "why": "expired"}
            answer(request, error={"code": -32000, "message": "token=abcd1234 expired", "data": data})
        case "escapes":
            answer(request, {"content": [{"type": "text", "text": "\x1b]0;gotcha\x07red \x1b[31mtext"}]})
        case "long-failure":
            text = "first line\n\x1b[31msecond line"
            answer(request, {"content": [{"type": "text", "text": text}], "isError": True})
        case "huge":
            answer(request, {"content": [{"type": "text", "text": "x" * 3_000_000}]})
        case "surrogate":
            answer(request, {"content": [{"type": "text", "text": "half \ud83d of it"}]})
        case "unknown-block":
            answer(request, {"content": [{"type": "hologram", "depth": 3}]})
        case _:
            answer(request, {"content": [{"type": "text", "text": " ".join(REST)}]})


def offered() -> Message:
    if BEHAVIOUR == "offers-nothing":
        return {}
    if BEHAVIOUR == "no-templates":
        return {"resources": {}}
    return {"tools": {}, "resources": {}}


TOOL = {
    "name": "t",
    "description": "Does it.\x1b[2J\n\nMuch more.",
    "inputSchema": {"type": "object", "properties": {"a\x1b[1m": {"type": "string"}}},
}


def main() -> None:
    if BEHAVIOUR == "die":
        say("reading settings")
        say("FATAL: no database, password=hunter2hunter2")
        sys.exit(3)
    if BEHAVIOUR == "chatty":
        print("this is no protocol", flush=True)
    if BEHAVIOUR == "silent":
        say("I never answer")
    for line in sys.stdin:
        if BEHAVIOUR == "silent":
            continue
        request = json.loads(line)
        match request.get("method"):
            case "initialize":
                version = "1999-01-01" if BEHAVIOUR == "old-version" else "2025-06-18"
                info = {"name": "rough", "version": "0"}
                answer(request, {"protocolVersion": version, "capabilities": offered(), "serverInfo": info})
            case "tools/list":
                answer(request, {"tools": [TOOL]})
            case "tools/call":
                call(request)
            case "resources/list":
                answer(request, {"resources": [{"uri": "r://1", "name": "one", "size": 2048}]})
            case "resources/read":
                blob = {"uri": "r://1", "blob": "%%%"}
                answer(request, {"contents": [blob] if BEHAVIOUR == "bad-blob" else []})
            case method if "id" in request:
                answer(request, error={"code": -32601, "message": f"no {method}"})


main()
