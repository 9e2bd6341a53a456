"""A client whose calls are Deferreds: `python twisted_client.py URL TOOL JSON`."""

import sys
from json import loads
from time import monotonic as now

from one_call import client_of
from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.endpoints import HostnameEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import react

from sansmcp import Close, Connect, HttpConnector, RequestFailed, ResultReady, Write


class Client:
    def __init__(self, url):
        self.connector = HttpConnector(client_of(url), now=now())
        self.links, self.results, self.armed = {}, {}, None
        self.input(self.connector.start)

    def call_tool(self, name, arguments):
        call = self.connector.engine.call_tool(name, arguments, now=now())
        result = self.results[call] = Deferred()
        self.input(self.connector.handle_timeout)  # harmless, and carries out what the verb made
        return result

    def input(self, method, *arguments):
        method(*arguments, now=now())
        while True:
            while (op := self.connector.next_op()) is not None:
                match op:
                    case Connect():
                        self.connect(op)
                    case Write():
                        self.links[op.conn].transport.write(op.data)
                    case Close() if op.conn in self.links:
                        self.links.pop(op.conn).transport.loseConnection()
            match self.connector.next_event():
                case None:
                    break
                case ResultReady(call=call, result=result) if call in self.results:
                    self.results.pop(call).callback(result)
                case RequestFailed(call=call, error=error) if call in self.results:
                    self.results.pop(call).errback(error)
        when = self.connector.next_timeout()
        if when is not None and when != self.armed:
            self.armed = when
            reactor.callLater(max(0, when - now()), self.input, self.connector.handle_timeout)

    def connect(self, op):
        endpoint = HostnameEndpoint(reactor, op.host, op.port)
        made = endpoint.connect(Factory.forProtocol(lambda: Link(self, op.conn)))
        made.addErrback(lambda why: self.input(self.connector.failed, op.conn, why.getErrorMessage()))


class Link(Protocol):
    def __init__(self, client, conn):
        self.client, self.conn = client, conn

    def connectionMade(self):
        self.client.links[self.conn] = self
        self.client.input(self.client.connector.opened, self.conn)

    def dataReceived(self, data):
        self.client.input(self.client.connector.receive_data, self.conn, data)

    def connectionLost(self, reason):
        self.client.links.pop(self.conn, None)
        self.client.input(self.client.connector.receive_eof, self.conn)


async def main(reactor, url, tool, arguments):
    client = Client(url)
    result = await client.call_tool(tool, loads(arguments))
    print("said", result.content[0].text)
    print("speaks", client.connector.engine.verdict.revision)


if __name__ == "__main__":
    react(main, sys.argv[1:])
