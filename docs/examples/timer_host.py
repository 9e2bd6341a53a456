"""A server inside a program with a timer and a main thread: `poll` it there, and tools run there too.

In Blender:  bpy.app.timers.register(lambda: host.poll() or 0.02)
In Tk:       def tick(): host.poll(); root.after(20, tick)
In a game:   host.poll(), once a frame
"""

import secrets
from contextlib import suppress
from itertools import count
from socket import SHUT_WR, create_server
from time import monotonic as now

from sansmcp import Close, CloseWrite, InlineHandlers, Write
from sansmcp.http.listener import HttpListener
from sansmcp.http.server import HttpServer


class Host:
    def __init__(self, app, port=0):
        server = HttpServer(app.engine, now=now(), entropy=secrets.token_bytes, input_schema=app.input_schema)
        self.listener = HttpListener(server, now=now())
        self.handlers = InlineHandlers(app, server, entropy=secrets.token_bytes)
        self.door = create_server(("127.0.0.1", port))
        self.door.setblocking(False)
        self.url = f"http://127.0.0.1:{self.door.getsockname()[1]}/mcp"
        self.sockets, self.unsent, self.last, self.numbers = {}, {}, {}, count(1)

    def poll(self):
        """Do what there is to do now. Never waits."""
        with suppress(BlockingIOError):
            sock, (address, _) = self.door.accept()
            sock.setblocking(False)
            conn = next(self.numbers)
            self.sockets[conn], self.unsent[conn] = sock, b""
            self.listener.accepted(conn, address, now())
        for conn in filter(self.listener.wants_data, list(self.sockets)):
            try:
                if data := self.sockets[conn].recv(65536):
                    self.listener.receive_data(conn, data, now())
                else:
                    self.listener.receive_eof(conn, now())
            except BlockingIOError:
                pass
            except OSError as error:
                self.listener.failed(conn, str(error), now())
        self.listener.handle_timeout(now())
        while self.carry_out() or (event := self.listener.next_event()) is not None:
            self.handlers.handle(event, now=now())
        for conn in list(self.sockets):
            self.flush(conn)

    def close(self):
        self.listener.close(now())
        self.poll()
        self.door.close()

    def carry_out(self):
        while (op := self.listener.next_op()) is not None:
            match op:
                case Write():
                    self.unsent[op.conn] += op.data
                case CloseWrite() | Close():
                    self.last[op.conn] = op

    def flush(self, conn):
        sock = self.sockets[conn]
        try:
            self.unsent[conn] = self.unsent[conn][sock.send(self.unsent[conn]) :]
            (self.listener.pause_writing if self.unsent[conn] else self.listener.resume_writing)(conn)
        except BlockingIOError:
            self.listener.pause_writing(conn)
        except OSError:
            self.unsent[conn] = b""  # it is told when it is read
        if not self.unsent[conn] and (op := self.last.pop(conn, None)) is not None:
            if isinstance(op, CloseWrite):
                with suppress(OSError):
                    sock.shutdown(SHUT_WR)
            else:
                sock.close()
                del self.sockets[conn], self.unsent[conn]
