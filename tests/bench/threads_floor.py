"""The floor without a loop: pipes and sockets that block, the codec on each side, h11 over HTTP."""

import itertools
import os
import queue
import socket
import subprocess
import sys
import threading
from contextlib import AsyncExitStack, closing
from typing import Any

import h11

from .floor_calls import codec, headers, request
from .harness import Prepare, Run, calls_in_threads
from .http_support import ROOT, start_server

AT_ONCE = (1, 8)


def _start_echo(name: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.bench.programs.blocking_floor_server", name]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT)


def over_pipes(name: str, threads: int) -> Prepare:
    """A line out and a line in. Several threads take turns: one has the pipes for a whole call."""

    async def prepare(stack: AsyncExitStack) -> Run:
        child = _start_echo(name)
        stack.callback(child.communicate)
        assert child.stdin is not None
        assert child.stdout is not None
        sink, read = child.stdin.fileno(), child.stdout.readline
        loads, dumps = codec(name)
        numbers = itertools.count(1)
        turn = threading.Lock()

        def call() -> Any:
            data = dumps(request(next(numbers))) + b"\n"
            with turn:
                os.write(sink, data)
                line = read()
            return loads(line)["result"]

        return calls_in_threads(call, threads)

    return prepare


class _Caller:
    """Calls over as many connections as there are threads, each kept for the next call."""

    def __init__(self, port: int, threads: int) -> None:
        self._port = port
        self._loads, self._dumps = codec("fast")
        self._numbers = itertools.count(1)
        self._idle: queue.SimpleQueue[tuple[socket.socket, h11.Connection]] = queue.SimpleQueue()
        self.socks = [socket.create_connection(("127.0.0.1", port)) for _ in range(threads)]
        for sock in self.socks:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._idle.put((sock, h11.Connection(h11.CLIENT)))

    def call(self) -> Any:
        body = self._dumps(request(next(self._numbers)))
        sock, conn = made = self._idle.get()
        head = h11.Request(method="POST", target="/mcp", headers=headers(self._port, len(body)))
        sent = [conn.send(head), conn.send(h11.Data(body)), conn.send(h11.EndOfMessage())]
        sock.sendall(b"".join(filter(None, sent)))
        answer = []
        while type(event := conn.next_event()) is not h11.EndOfMessage:
            if event is h11.NEED_DATA:
                conn.receive_data(sock.recv(65536))
            elif type(event) is h11.Data:
                answer.append(event.data)
        conn.start_next_cycle()
        self._idle.put(made)
        return self._loads(b"".join(answer))["result"]


def over_http(threads: int) -> Prepare:
    """Calls to a server in a process of its own, which is the one of the other floors."""

    async def prepare(stack: AsyncExitStack) -> Run:
        caller = _Caller(start_server(stack, "programs.floor_http_server", "json"), threads)
        for sock in caller.socks:
            stack.enter_context(closing(sock))
        return calls_in_threads(caller.call, threads)

    return prepare


BENCHES: dict[str, Prepare] = {}
for _threads in AT_ONCE:
    for _name in ("standard", "fast"):
        BENCHES[f"blocking-stdio-{_threads}-{_name}"] = over_pipes(_name, _threads)
    BENCHES[f"blocking-http-{_threads}"] = over_http(_threads)
