"""What the examples of clients have in common: a client, one call of a tool, what is printed of it."""

from json import loads
from time import monotonic as now

from sansmcp import (
    ClientEngine,
    EraDecided,
    HttpClient,
    Implementation,
    RequestFailed,
    ResultReady,
    TransportKind,
)


def client_of(url, **options):
    me, http = Implementation("example", "1.0"), TransportKind.HTTP
    return HttpClient(ClientEngine(me, now=now(), transport=http, **options), url, now=now())


class OneCall:
    """`arguments` are JSON. The `client` is closed when the call has ended."""

    def __init__(self, url, tool, arguments, **options):
        self.client = client_of(url, **options)
        self.client.engine.call_tool(tool, loads(arguments), now=now())

    def on_event(self, event):
        match event:
            case EraDecided():
                print("speaks", event.revision)
            case ResultReady():
                print("said", event.result.content[0].text)
                self.client.close(now())
            case RequestFailed():
                print("failed:", event.error)
                self.client.close(now())
