"""The peers are what registry.py says of them, seen without any code of ours in between."""

import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPMessage
from pathlib import Path
from typing import Any

import pytest

from .registry import CLIENTS, HERE, HTTP_PEERS, PEERS, Launch, available

JsonObject = dict[str, Any]

ME = {"name": "test", "version": "1"}
PROBE: JsonObject = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": ME,
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
INITIALIZE: JsonObject = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": ME},
}
INITIALIZED: JsonObject = {"jsonrpc": "2.0", "method": "notifications/initialized"}
LIST_TOOLS: JsonObject = {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}


def needs(name: str) -> None:
    reason = available(name)
    if reason is not None:
        pytest.skip(reason)


@contextmanager
def started(launch: Launch) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        launch.argv,
        cwd=launch.cwd,
        env=launch.env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def send(process: subprocess.Popen[bytes], message: JsonObject) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message).encode() + b"\n")
    process.stdin.flush()


def answer(process: subprocess.Popen[bytes], request: JsonObject) -> JsonObject | None:
    """The response to a request, past any notification; None when the output ends first."""
    assert process.stdout is not None
    for line in process.stdout:
        message: JsonObject = json.loads(line)
        if message.get("id") == request["id"] and "method" not in message:
            return message
    return None


@pytest.mark.interop
@pytest.mark.parametrize("name", PEERS)
def test_probe_is_answered_as_recorded(name: str, tmp_path: Path) -> None:
    needs(name)
    peer = PEERS[name]
    with started(peer.launch(tmp_path)) as process:
        send(process, PROBE)
        if peer.probe == "silence":
            # The next message is what this kind dies of, which proves the silence without waiting for it.
            send(process, INITIALIZE)
            assert answer(process, PROBE) is None
            assert process.wait() != 0
            return
        got = answer(process, PROBE)
    assert got is not None
    if peer.probe == "result":
        assert peer.era == "modern"
        assert "2026-07-28" in got["result"]["supportedVersions"]
    else:
        assert peer.era == "legacy"
        assert got["error"]["code"] == peer.probe


@pytest.mark.interop
@pytest.mark.parametrize("name", PEERS)
def test_initialize_is_answered_as_recorded(name: str, tmp_path: Path) -> None:
    needs(name)
    peer = PEERS[name]
    with started(peer.launch(tmp_path)) as process:
        send(process, INITIALIZE)
        opened = answer(process, INITIALIZE)
        send(process, INITIALIZED)
        send(process, LIST_TOOLS)
        listed = answer(process, LIST_TOOLS)
    assert opened is not None
    assert opened["result"]["protocolVersion"] == peer.legacy_revision
    assert listed is not None
    assert set(peer.tools) <= {tool["name"] for tool in listed["result"]["tools"]}


@contextmanager
def listening(name: str, scratch: Path) -> Iterator[tuple[str, int]]:
    """Where the peer listens."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        place: tuple[str, int] = free.getsockname()
    with started(HTTP_PEERS[name].launch(place[1], scratch)) as process:
        end = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(place).close()
            except OSError:
                assert process.poll() is None
                assert time.monotonic() < end
                time.sleep(0.02)  # a process of somebody else: it is asked until it listens
            else:
                break
        yield place


def ask(place: tuple[str, int], path: str, message: JsonObject) -> tuple[HTTPMessage, JsonObject]:
    """Headers and body of the response: its JSON, or the last event of a stream; {} for anything else."""
    headers = {"content-type": "application/json", "accept": "application/json, text/event-stream"}
    if message is PROBE:
        headers |= {"mcp-protocol-version": "2026-07-28", "mcp-method": "server/discover"}
    connection = HTTPConnection(*place, timeout=30)
    connection.request("POST", path, json.dumps(message), headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    if response.status == 307 and not path.endswith("/"):
        return ask(place, path + "/", message)
    given = response.headers.get_content_type() in ("application/json", "text/event-stream")
    return response.headers, json.loads(body.rpartition("data: ")[2]) if given else {}


@pytest.mark.interop
@pytest.mark.parametrize("name", HTTP_PEERS)
def test_http_is_answered_as_recorded(name: str, tmp_path: Path) -> None:
    needs(name)
    peer = HTTP_PEERS[name]
    with listening(name, tmp_path) as place:
        if peer.old_sse:
            connection = HTTPConnection(*place, timeout=30)
            connection.request("GET", peer.path)
            assert connection.getresponse().readline().strip() == b"event: endpoint"
            connection.close()
            return
        _, probed = ask(place, peer.path, PROBE)
        headers, opened = ask(place, peer.path, INITIALIZE)
    assert ("result" in probed) == (peer.era == "modern")
    assert ("mcp-session-id" in headers) == peer.sessions
    assert opened["result"]["protocolVersion"] == PEERS[peer.peer].legacy_revision


@pytest.mark.interop
@pytest.mark.parametrize("name", CLIENTS)
def test_client_reports_what_it_got(name: str, tmp_path: Path) -> None:
    needs(name)
    server = PEERS["mcp-2.3.0"]
    launch = CLIENTS[name].launch(server.launch(tmp_path).argv, tmp_path)
    done = subprocess.run(launch.argv, cwd=launch.cwd, env=launch.env, capture_output=True, check=True)
    seen = json.loads(done.stdout)
    assert seen["echo"]["content"][0]["text"] == "hello ü 🐟"
    assert seen["add"]["structuredContent"] == {"result": 42}
    assert seen["fail"]["isError"] is True
    assert seen["resource"]["contents"][0]["text"] == "Hello from a resource"
    assert seen["prompt"]["messages"][0]["content"]["text"] == "Please greet Ada."
    assert seen["progress"] == [[1.0, 4.0], [2.0, 4.0], [3.0, 4.0], [4.0, 4.0]]


def test_locks_pin_exactly_and_name_no_address() -> None:
    for path in (HERE / "pins").glob("*.txt"):
        for line in path.read_text(encoding="utf-8").splitlines():
            assert line.startswith("#") or re.fullmatch(r"[A-Za-z0-9_.-]+==[A-Za-z0-9_.+!-]+", line), (
                path,
                line,
            )
    for path in (HERE / "npm").glob("*.json"):
        assert "://" not in path.read_text(encoding="utf-8"), path
