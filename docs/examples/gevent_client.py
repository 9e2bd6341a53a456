"""A client whose calls wait in greenlets: `python gevent_client.py URL TOOL JSON`."""

import sys
from json import loads
from time import monotonic as now

import gevent
from gevent import socket
from gevent.event import AsyncResult
from gevent.queue import Queue
from one_call import client_of

from sansmcp import Close, Connect, HttpConnector, RequestFailed, ResultReady, Write


class Client:
    """For any number of greenlets. They switch only where they wait, so nothing needs a lock."""

    def __init__(self, url):
        self.connector = HttpConnector(client_of(url), now=now())
        self.unsent, self.results, self.armed = {}, {}, None
        self.input(self.connector.start)

    def call_tool(self, name, arguments):
        call = self.connector.engine.call_tool(name, arguments, now=now())
        result = self.results[call] = AsyncResult()
        self.input(self.connector.handle_timeout)  # harmless, and carries out what the verb made
        return result.get()

    def input(self, method, *arguments):
        method(*arguments, now=now())
        while True:
            while (op := self.connector.next_op()) is not None:
                match op:
                    case Connect():
                        self.unsent[op.conn] = Queue()
                        gevent.spawn(self.talk, op)
                    case Write():
                        self.unsent[op.conn].put(op.data)
                    case Close():
                        self.unsent[op.conn].put(None)
            match self.connector.next_event():
                case None:
                    break
                case ResultReady(call=call, result=result) if call in self.results:
                    self.results.pop(call).set(result)
                case RequestFailed(call=call, error=error) if call in self.results:
                    self.results.pop(call).set_exception(error)
        when = self.connector.next_timeout()
        if when is not None and when != self.armed:
            self.armed = when
            gevent.spawn_later(max(0, when - now()), self.input, self.connector.handle_timeout)

    def talk(self, op):
        unsent, connector = self.unsent[op.conn], self.connector
        try:
            with socket.create_connection((op.host, op.port)) as sock:
                gevent.spawn(self.send, sock, unsent)
                self.input(connector.opened, op.conn)
                while data := sock.recv(65536):
                    self.input(connector.receive_data, op.conn, data)
            self.input(connector.receive_eof, op.conn)
        except OSError as error:
            self.input(connector.failed, op.conn, str(error))
        del self.unsent[op.conn]

    def send(self, sock, unsent):
        while (data := unsent.get()) is not None:
            sock.sendall(data)
        sock.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    client = Client(sys.argv[1])
    print("said", client.call_tool(sys.argv[2], loads(sys.argv[3])).content[0].text)
    print("speaks", client.connector.engine.verdict.revision)
