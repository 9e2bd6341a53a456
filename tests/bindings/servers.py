"""Servers for the tests of the bindings, run as ``python servers.py NAME``.

Those in `SPOILED` are written by hand, without any code of ours: each does one thing wrong. The
rest serve one of the apps below with ``serve_stdio``.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

VERSION = "2026-07-28"


# by hand -----------------------------------------------------------------------------------------


def send(message: dict[str, Any]) -> None:
    os.write(1, json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def say(text: str) -> None:
    os.write(2, text.encode())


def requests() -> Any:
    for line in sys.stdin.buffer:
        yield json.loads(line)


def result_of(message: dict[str, Any], era: str = "modern") -> dict[str, Any]:
    match message["method"]:
        case "server/discover":
            return {"supportedVersions": [VERSION], "capabilities": {"tools": {}}, **DONE}
        case "initialize":
            version = message["params"]["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": INFO}
        case _:
            done = DONE if era == "modern" else {}
            return {"content": [{"type": "text", "text": str(os.getpid())}], **done}


INFO = {"name": "by hand", "version": "1"}
DONE = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}


def serve_by_hand(before: Callable[[dict[str, Any]], object] | None = None) -> None:
    """Answer every request, a tool call with the process id; `before` may do something first."""
    for message in requests():
        if "id" in message:
            if before is not None:
                before(message)
            send({"id": message["id"], "result": result_of(message)})


def ignores_eof() -> None:
    serve_by_hand()
    time.sleep(60)


def ignores_term() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    ignores_eof()


def wrapper() -> None:
    """Leaves a grandchild behind that holds every pipe and ignores SIGTERM."""
    code = "import signal as s, time; s.signal(s.SIGTERM, s.SIG_IGN); print(flush=True); time.sleep(60)"
    ready = subprocess.Popen([sys.executable, "-S", "-c", code], stdout=subprocess.PIPE)
    assert ready.stdout is not None
    ready.stdout.read(1)
    say(f"grandchild {ready.pid}\n")
    serve_by_hand()


def holds_pipes() -> None:
    """Dies in a call, while a grandchild of another group holds its standard output and error."""
    code = "import time; time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-S", "-c", code], start_new_session=True)

    def die(message: dict[str, Any]) -> None:
        if message["method"] == "tools/call":
            say(f"grandchild {child.pid}\n")
            os._exit(5)

    serve_by_hand(die)


def loud() -> None:
    """200 KiB of standard error before each answer."""
    serve_by_hand(lambda message: say("x" * 200 * 1024 + "\n"))


def dies_on_probe() -> None:
    def die(message: dict[str, Any]) -> None:
        if message["method"] == "server/discover":
            say("unknown method, good bye\n")
            os._exit(1)

    for message in requests():
        if "id" in message:
            die(message)
            send({"id": message["id"], "result": result_of(message, "legacy")})


def dies_always() -> None:
    say("first words\n" + "x" * 20_000 + "\nno such module\n")
    sys.exit(2)


def dies_in_call() -> None:
    def die(message: dict[str, Any]) -> None:
        if message["method"] == "tools/call":
            say("boom\n")
            os._exit(3)

    serve_by_hand(die)


def banner() -> None:
    os.write(1, b"Starting server on port 0\n\n")
    serve_by_hand()


def deaf() -> None:
    """Never reads."""
    time.sleep(60)


def goes_deaf() -> None:
    """Answers the probe, then never reads again."""
    message = next(requests())
    send({"id": message["id"], "result": result_of(message)})
    time.sleep(60)


def lsp() -> None:
    for message in requests():
        body = json.dumps({"jsonrpc": "2.0", "id": message.get("id"), "result": {}}).encode()
        os.write(1, b"Content-Length: %d\r\n\r\n%s" % (len(body), body))


def closes_stdout() -> None:
    def close(message: dict[str, Any]) -> None:
        if message["method"] == "tools/call":
            os.close(1)
            time.sleep(60)

    serve_by_hand(close)


def closes_stdin() -> None:
    message = next(requests())
    send({"id": message["id"], "result": result_of(message)})
    os.close(0)
    time.sleep(60)


def floods() -> None:
    """Each call brings 10 000 notifications before its answer."""
    note = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}).encode() + b"\n"

    def flood(message: dict[str, Any]) -> None:
        if message["method"] == "tools/call":
            with open(1, "wb", closefd=False) as out:
                out.write(note * 10_000)

    serve_by_hand(flood)


def asks() -> None:
    """Legacy: asks for the roots before it answers a call, and answers with what it was told."""
    pending: Any = None
    for message in requests():
        match message.get("method"):
            case "tools/call":
                pending = message["id"]
                send({"id": "ask", "method": "roots/list"})
            case None:
                text = json.dumps(message.get("result", message.get("error")))
                send({"id": pending, "result": {"content": [{"type": "text", "text": text}]}})
            case "server/discover":
                send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
            case _ if "id" in message:
                send({"id": message["id"], "result": result_of(message, "legacy")})


FORM = {
    "message": "who?",
    "requestedSchema": {
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2, "default": "nobody"}},
        "required": ["name"],
    },
}
QUESTIONS: dict[str, dict[str, Any]] = {
    "form": {"method": "elicitation/create", "params": FORM},
    "model": {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 5}},
    "places": {"method": "roots/list"},
}


def asks_about() -> None:
    """Asks what a tool's name says, words of `QUESTIONS`, all at once; answers with what it was told.

    The era is in its arguments. The tool "take back" takes the legacy question "form" back.
    """
    era = sys.argv[2]
    pending: dict[str, Any] = {}
    told: dict[str, Any] = {}
    for message in requests():
        params = message.get("params", {})
        match message.get("method"):
            case "tools/call" if params["name"] == "take back":
                send({"method": "notifications/cancelled", "params": {"requestId": "form"}})
                told["form"] = "taken back"
                send({"id": message["id"], "result": {"content": []}})
            case "tools/call" if era == "legacy":
                pending = {"id": message["id"], "keys": params["name"].split()}
                told = {}
                for key in pending["keys"]:
                    send({"id": key, **QUESTIONS[key]})
            case "tools/call" if "inputResponses" not in params:
                asked = {key: QUESTIONS[key] for key in params["name"].split()}
                result = {"resultType": "input_required", "inputRequests": asked, "requestState": "st"}
                send({"id": message["id"], "result": result})
            case "tools/call":
                assert params["requestState"] == "st"
                pending = {"id": message["id"], "keys": params["name"].split()}
                told = params["inputResponses"]
            case None:
                told[message["id"]] = message.get("result", message.get("error"))
            case "server/discover" if era == "legacy":
                send({"id": message["id"], "error": {"code": -32601, "message": "no"}})
            case _ if "id" in message:
                send({"id": message["id"], "result": result_of(message, era)})
        if pending and len(told) == len(pending["keys"]):
            content = [{"type": "text", "text": json.dumps(told)}]
            send({"id": pending["id"], "result": {"resultType": "complete", "content": content}})
            pending = {}


def crashes_once() -> None:
    """Ends in its first call ever, which a file remembers; works when it is started again."""
    mark = sys.argv[2]

    def die(message: dict[str, Any]) -> None:
        if message["method"] == "tools/call" and not os.path.exists(mark):
            open(mark, "w").close()
            os._exit(7)

    serve_by_hand(die)


SPOILED: dict[str, Callable[[], None]] = {
    function.__name__: function
    for function in (
        ignores_eof,
        ignores_term,
        wrapper,
        holds_pipes,
        loud,
        dies_on_probe,
        dies_always,
        dies_in_call,
        banner,
        deaf,
        goes_deaf,
        lsp,
        closes_stdout,
        closes_stdin,
        floods,
        asks,
        asks_about,
        crashes_once,
        serve_by_hand,
    )
}


# with our own binding ----------------------------------------------------------------------------


def good(*words: str) -> None:
    import asyncio

    import sansmcp_asyncio
    from sansmcp import App, Context, ToolError

    app = App("good", "1", instructions="be good", page_size=2, logging=True)
    running: list[str] = []

    @app.tool()
    def echo(text: str) -> str:
        """Give the text back."""
        return text

    @app.tool()
    def double(number: int) -> dict[str, int]:
        return {"twice": 2 * number}

    @app.tool()
    def fail() -> str:
        raise ToolError("told you so")

    @app.tool()
    def chatter() -> str:
        """Print, and let a child read what it can and print what it likes."""
        print("printed by the handler")
        sys.stdout.write("written by the handler")
        code = "import sys; print('child read', repr(sys.stdin.read()))"
        return str(subprocess.run([sys.executable, "-S", "-c", code], check=True).returncode)

    @app.tool()
    async def steps(count: int, pause: float, ctx: Context) -> str:
        for step in range(1, count + 1):
            ctx.progress(step, count, f"step {step}")
            await asyncio.sleep(pause)
        return "done"

    @app.tool()
    def blocks(seconds: float, ctx: Context) -> str:
        ctx.progress(1, 2)
        time.sleep(seconds)
        ctx.progress(2, 2)
        return "slept"

    together = threading.Barrier(13)

    @app.tool()
    def meets() -> str:
        """Wait until thirteen calls do."""
        together.wait()
        return "met"

    @app.tool()
    async def awaits(file: str) -> str:
        while not os.path.exists(file):  # noqa: ASYNC110, ASYNC240  (a test makes it, in another process)
            await asyncio.sleep(0.01)
        return "it is there"

    @app.tool()
    async def forever(ctx: Context) -> str:
        running.append("x")
        ctx.log("info", "waiting")
        try:
            await asyncio.Event().wait()
        finally:
            running.pop()
            say("stopped\n")
        return "never"

    @app.tool()
    def count() -> str:
        """How many calls of `forever` are running."""
        return str(len(running))

    @app.tool()
    def environment(name: str) -> str:
        return os.environ.get(name, "(unset)")

    @app.tool()
    def large(size: int) -> str:
        return "x" * size

    @app.tool()
    def folder() -> str:
        return os.getcwd()

    @app.tool()
    async def late(text: str) -> str:
        await asyncio.sleep(0.3)
        return text

    @app.resource("test://{name}", mime_type="text/plain")
    def resource(name: str) -> str:
        return f"this is {name}"

    @app.prompt()
    def greet(name: str) -> str:
        return f"Please greet {name}."

    @app.completion
    def complete(ref: Any, name: str, value: str, context: Any) -> list[str]:
        return [value + "a", value + "b"]

    options: dict[str, Any] = json.loads(words[0]) if words else {}
    asyncio.run(sansmcp_asyncio.serve_stdio(app, **options))


def every(binding: str) -> None:
    """The app of `test_every_binding`, served by that binding."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.bindings.every_app import app

    match binding:
        case "trio":
            import trio

            import sansmcp_trio

            trio.run(sansmcp_trio.serve_stdio, app())
        case "threads":
            import sansmcp_threads

            sansmcp_threads.serve_stdio(app())
        case _:
            import asyncio

            import sansmcp_asyncio

            asyncio.run(sansmcp_asyncio.serve_stdio(app()))


if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    if name in SPOILED:
        SPOILED[name]()
    elif name == "every":
        every(*rest)
    else:
        good(*rest)
