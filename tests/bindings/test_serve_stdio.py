"""`serve_stdio` as a process, driven by hand over whatever a parent may have connected it to."""

import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from .support import PATIENCE, server

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def request(number: int, method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": META}}
    return json.dumps(message).encode() + b"\n"


def call(number: int, name: str, **arguments: Any) -> bytes:
    return request(number, "tools/call", name=name, arguments=arguments)


def cancel(number: int) -> bytes:
    params = {"requestId": number, "_meta": META}
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
    return json.dumps(message).encode() + b"\n"


def text_of(message: dict[str, Any]) -> str:
    text = message["result"]["content"][0]["text"]
    assert isinstance(text, str)
    return text


@contextmanager
def started(
    *,
    stdin: Any = subprocess.PIPE,
    stdout: Any = subprocess.PIPE,
    stderr: Any = subprocess.PIPE,
    **options: Any,
) -> Iterator[subprocess.Popen[bytes]]:
    argv = server("good", json.dumps(options))
    process = subprocess.Popen(argv, stdin=stdin, stdout=stdout, stderr=stderr)
    with process:
        try:
            yield process
        finally:
            process.kill()


def ask(process: subprocess.Popen[bytes], *lines: bytes) -> Callable[[], dict[str, Any]]:
    """Send lines; return what reads the next message."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"".join(lines))
    process.stdin.flush()
    output: BinaryIO = process.stdout  # type: ignore[assignment]

    def answer() -> dict[str, Any]:
        message: dict[str, Any] = json.loads(output.readline())
        return message

    return answer


# every kind of stream ----------------------------------------------------------------------------


@pytest.mark.case("S-11")
def test_pipes_and_answers_that_are_owed_at_the_end_of_input() -> None:
    with started() as process:
        out, _ = process.communicate(b"\n" + call(1, "late", text="owed") + call(2, "echo", text="now"))
        assert process.returncode == 0
    assert {m["id"]: text_of(m) for m in map(json.loads, out.splitlines())} == {1: "owed", 2: "now"}


def test_a_file_as_input_and_a_file_as_output(tmp_path: Path) -> None:
    big = "x" * 200_000
    source, sink = tmp_path / "in", tmp_path / "out"
    source.write_bytes(b"".join(call(n, "echo", text=big) for n in range(20)) + call(99, "late", text="a"))
    with (
        source.open("rb") as stdin,
        sink.open("wb") as stdout,
        started(stdin=stdin, stdout=stdout) as process,
    ):
        assert process.wait(PATIENCE) == 0
    answers = [json.loads(line) for line in sink.read_bytes().splitlines()]
    assert sorted(m["id"] for m in answers) == [*range(20), 99]
    assert {text_of(m) for m in answers} == {big, "a"}


@pytest.mark.parametrize("same", [True, False])
def test_sockets_as_input_and_output(same: bool) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs, started(stdin=theirs, stdout=theirs if same else subprocess.PIPE) as process:
        theirs.close()
        ours.sendall(call(1, "echo", text="a"))
        stream = ours.makefile("rb") if same else process.stdout
        assert stream is not None
        with stream:
            assert text_of(json.loads(stream.readline())) == "a"
            ours.sendall(call(2, "late", text="b"))
            ours.shutdown(socket.SHUT_WR)
            assert text_of(json.loads(stream.readline())) == "b"
            assert process.wait(PATIENCE) == 0


def test_a_terminal_as_input_and_output() -> None:
    ours, theirs = pty.openpty()
    with started(stdin=theirs, stdout=theirs) as process:
        os.close(theirs)
        with open(ours, "r+b", buffering=0) as terminal:
            # a terminal takes no line of any length, so this one is short
            terminal.write(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
            shown = b""
            while shown.count(b"\n") < 2:  # the echo of the terminal comes first
                shown += terminal.read(4096)
            assert json.loads(shown.splitlines()[1]) == {"jsonrpc": "2.0", "id": 1, "result": {}}
            terminal.write(b"\x04")
            assert process.wait(PATIENCE) == 0


def test_no_input_and_no_output_at_all() -> None:
    with started(stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        assert process.wait(PATIENCE) == 0


# hygiene -----------------------------------------------------------------------------------------


@pytest.mark.req("Q8")
@pytest.mark.case("R-04")
def test_only_the_protocol_uses_the_standard_streams() -> None:
    with started() as process:
        out, err = process.communicate(call(1, "chatter") + call(2, "echo", text="a"))
    assert sorted(m["id"] for m in map(json.loads, out.splitlines())) == [1, 2]
    for text in (b"printed by the handler", b"written by the handler", b"child read ''"):
        assert text in err


def test_without_a_standard_error() -> None:
    argv = ["sh", "-c", 'exec "$@" 2>&-', "sh", *server("good")]
    lines = call(1, "chatter") + call(2, "echo", text="a")
    done = subprocess.run(argv, input=lines, stdout=subprocess.PIPE, check=True)
    assert sorted(m["id"] for m in map(json.loads, done.stdout.splitlines())) == [1, 2]


def test_streams_and_their_modes_are_given_back() -> None:
    code = """
import asyncio, os, sys
import sansmcp_asyncio
from sansmcp import App
before = sys.stdout, sys.stderr


async def main():
    asyncio.get_running_loop().slow_callback_duration = 60  # a busy machine is no fault
    await sansmcp_asyncio.serve_stdio(App("x"))


asyncio.run(main())
assert (sys.stdout, sys.stderr) == before
assert os.get_blocking(0) and os.get_blocking(1)
assert sys.stdin.read() == ""
print("after")
assert not [t for t in __import__("threading").enumerate() if t.name.startswith("sansmcp")]
"""
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-W", "error", "-c", code],
        input=request(1, "server/discover"),
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    first, last = done.stdout.splitlines()
    assert json.loads(first)["id"] == 1
    assert last == b"after"


# the end -----------------------------------------------------------------------------------------


@pytest.mark.case("R-05")
def test_a_client_that_reads_no_more_is_an_orderly_end() -> None:
    for reader_first in (True, False):
        with started() as process:
            assert process.stdin is not None
            assert process.stdout is not None
            assert process.stderr is not None
            answer = ask(process, call(1, "echo", text="a"))
            assert text_of(answer()) == "a"
            if reader_first:
                process.stdout.close()
            process.stdin.write(call(2, "late", text="b") + call(3, "forever"))
            process.stdin.flush()
            process.stdout.close()
            assert process.wait(PATIENCE) == 0
            assert process.stderr.read() in (b"", b"stopped\n")


@pytest.mark.parametrize("tool", ["forever", "blocks"])
def test_an_interrupt_ends_it_at_once(tool: str) -> None:
    with started() as process:
        answer = ask(process, call(1, tool, **({"seconds": 2 * PATIENCE} if tool == "blocks" else {})))
        ask(process, call(2, "echo", text="a"))
        assert text_of(answer()) == "a"
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) != 0
        assert process.stderr is not None
        said = process.stderr.read()
        assert said.count(b"Traceback") == said.count(b"KeyboardInterrupt\n") + said.count(b"CancelledError")
        assert b"Warning" not in said


def test_owed_answers_have_a_bounded_time() -> None:
    with started(grace=0.2) as process:
        out, err = process.communicate(call(1, "forever"), timeout=PATIENCE)
        assert process.returncode == 0
    assert out == b""
    assert err == b"stopped\n"


# handlers ----------------------------------------------------------------------------------------


@pytest.mark.req("Q11")
def test_plain_handlers_block_neither_the_loop_nor_each_other() -> None:
    with started() as process:
        answer = ask(process, *[call(n, "meets") for n in range(12)], call(99, "echo", text="a"))
        assert answer()["id"] == 99
        ask(process, call(12, "meets"))
        assert sorted(answer()["id"] for _ in range(13)) == [*range(13)]


def test_the_number_of_threads_is_bounded() -> None:
    with started(threads=2) as process:
        asked = time.monotonic()
        answer = ask(process, *[call(n, "blocks", seconds=0.2) for n in range(6)])
        assert sorted(answer()["id"] for _ in range(6)) == [*range(6)]
        assert time.monotonic() - asked > 0.55


def test_without_threads_plain_handlers_run_in_order() -> None:
    with started(threads=0) as process:
        answer = ask(process, *[call(n, "blocks", seconds=0.05) for n in range(4)])
        assert [answer()["id"] for _ in range(4)] == [*range(4)]


@pytest.mark.req("K5")
@pytest.mark.case("C-01")
def test_a_cancel_ends_the_handler_and_nothing_is_answered() -> None:
    with started(threads=1) as process:
        answer = ask(process, *[call(n, "forever") for n in range(3)], call(10, "late", text="a"))
        assert answer()["id"] == 10
        # the one thread is taken, so 21 waits for it and is withdrawn before it gets it
        ask(process, cancel(0), cancel(2), call(20, "blocks", seconds=0.2), call(21, "blocks", seconds=9))
        ask(process, cancel(20), cancel(21), call(22, "late", text="a"), call(23, "count"))
        assert text_of(answer()) == "1"
        assert text_of(answer()) == "a"
        ask(process, cancel(1), call(24, "late", text="a"))
        assert answer()["id"] == 24


@pytest.mark.req("Q11")
def test_past_the_bound_of_open_requests_nothing_is_read_and_nothing_refused(tmp_path: Path) -> None:
    with started() as process:
        now = tmp_path / "now"
        answer = ask(process, *[call(n, "awaits", file=str(now)) for n in range(64)])
        lines = [call(n, "echo", text="y" * 1000) for n in range(100, 400)]
        writer = threading.Thread(target=ask, args=(process, *lines))
        writer.start()
        # What is more than a pipe takes has to wait until a request is answered.
        writer.join(0.5)
        assert writer.is_alive()
        now.touch()
        assert sorted(answer()["id"] for _ in range(364)) == [*range(64), *range(100, 400)]
        writer.join()


@pytest.mark.req("Q11")
def test_a_client_that_does_not_read_is_not_read_from() -> None:
    with started(threads=0) as process:
        answer = ask(process)
        # each request brings back as much as it carries, and 60 MB fit nowhere on the way
        lines = [call(n, "echo", text="z" * 1_000_000) for n in range(60)]
        writer = threading.Thread(target=ask, args=(process, *lines))
        writer.start()
        writer.join(1.0)
        assert writer.is_alive()
        assert resident(process.pid) < 160
        assert [answer()["id"] for _ in range(60)] == [*range(60)]
        writer.join()


@pytest.mark.req("Q11")
def test_small_requests_for_large_answers_wait_for_a_client_that_reads() -> None:
    calls = [call(n, "large", size=1_000_000) for n in range(600)]
    with ThreadPoolExecutor(1) as beside, started(threads=0) as process:
        asking = beside.submit(ask, process, *calls)
        time.sleep(1.0)
        # 64 are worked at together, and are in memory three times at most while they are written
        assert resident(process.pid) < 400
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())["id"] for _ in calls] == [*range(600)]
        asking.result()


def resident(pid: int) -> float:
    """Megabytes of memory that a process uses."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return 0.0
    found = re.search(r"VmRSS:\s+(\d+) kB", status.read_text())
    return int(found[1]) / 1024 if found else 0.0
