"""A client over HTTP on plain sockets and `selectors`: `python select_client.py URL TOOL JSON`."""

import sys
from os import strerror
from selectors import EVENT_READ, EVENT_WRITE, DefaultSelector
from socket import SO_ERROR, SOCK_STREAM, SOL_SOCKET, getaddrinfo, socket
from time import monotonic as now

from one_call import OneCall

from sansmcp import Close, Connect, HttpConnector, Write


def run(connector, on_event):
    sockets, unsent = {}, {}  # by connection; the second only when it is open
    connector.start(now())
    while True:
        while (op := connector.next_op()) is not None:  # 1. ops, until there is none
            match op:
                case Connect(conn=conn):
                    *kind, _, address = getaddrinfo(op.host, op.port, type=SOCK_STREAM)[0]
                    sockets[conn] = socket(*kind)
                    sockets[conn].setblocking(False)
                    sockets[conn].connect_ex(address)
                case Write(conn=conn) if conn in unsent:
                    unsent[conn] += op.data
                case Close(conn=conn) if conn in sockets:
                    sockets.pop(conn).close()
                    unsent.pop(conn, None)
        if (event := connector.next_event()) is not None:  # 2. events; verbs make new ops
            on_event(event)
            continue
        if connector.finished:
            return

        when = connector.next_timeout()  # 3. the timer
        with DefaultSelector() as selector:
            for conn, sock in sockets.items():
                writes = EVENT_WRITE if unsent.get(conn, True) else 0
                reads = EVENT_READ if conn in unsent and connector.wants_data(conn) else 0
                if writes or reads:
                    selector.register(sock, writes | reads, conn)
            ready = selector.select(None if when is None else max(0, when - now()))
        for key, happened in ready:
            conn, sock = key.data, key.fileobj
            try:
                if conn not in unsent:
                    if error := sock.getsockopt(SOL_SOCKET, SO_ERROR):
                        raise OSError(error, strerror(error))
                    unsent[conn] = b""
                    connector.opened(conn, now())
                elif happened & EVENT_WRITE:
                    unsent[conn] = unsent[conn][sock.send(unsent[conn]) :]
                elif data := sock.recv(65536):
                    connector.receive_data(conn, data, now())
                else:
                    connector.receive_eof(conn, now())
            except OSError as error:
                sockets.pop(conn).close()
                unsent.pop(conn, None)
                connector.failed(conn, str(error), now())
        connector.handle_timeout(now())


if __name__ == "__main__":
    call = OneCall(*sys.argv[1:])
    run(HttpConnector(call.client, now=now()), call.on_event)
