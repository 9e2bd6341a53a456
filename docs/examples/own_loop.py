"""Drives a `StdioClient` by `selectors` and `subprocess` until its server is gone (POSIX)."""

import os
from contextlib import suppress
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from signal import SIGKILL, SIGTERM
from subprocess import PIPE, Popen
from time import monotonic as now

from sansmcp import CloseWrite, Kill, Spawn, Terminate, Write


def run(client, on_event):
    client.start(now())
    while True:
        while (op := client.next_op()) is not None:  # 1. ops, until there is none
            match op:
                case Spawn(conn=conn):
                    unsent, closing = b"", False
                    pipes = {"stdin": PIPE, "stdout": PIPE, "bufsize": 0, "process_group": 0}
                    try:
                        child = Popen(op.argv, env=op.env, cwd=op.cwd, **pipes)
                        os.set_blocking(child.stdin.fileno(), False)
                        client.opened(conn, now())
                    except OSError as error:
                        client.failed(conn, str(error), now())
                case Write():
                    unsent += op.data
                case CloseWrite():
                    closing = True
                case Terminate() | Kill():
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(child.pid, SIGKILL if isinstance(op, Kill) else SIGTERM)

        if (event := client.next_event()) is not None:  # 2. events; verbs make new ops
            on_event(event)
            continue
        if client.finished:
            return

        when = client.next_timeout()  # 3. the timer; soon enough to see the child end
        with DefaultSelector() as selector:
            if client.wants_data and not child.stdout.closed:
                selector.register(child.stdout, EVENT_READ)
            if (unsent or closing) and not child.stdin.closed:
                selector.register(child.stdin, EVENT_WRITE)
            ready = selector.select(0.1 if when is None else min(0.1, when - now()))

        for key, _ in ready:
            if key.fileobj is child.stdin:
                try:
                    unsent = unsent[child.stdin.write(unsent) :]
                except BrokenPipeError as error:
                    unsent, closing = b"", True
                    client.failed(conn, str(error), now())
                if closing and not unsent:
                    child.stdin.close()
            elif data := os.read(key.fd, 65536):
                client.receive_data(conn, data, now())
            else:
                child.stdout.close()
                client.receive_eof(conn, now())
        if (code := child.poll()) is not None:
            child.stdin.close()
            client.exited(conn, code, "", now())
        client.handle_timeout(now())
