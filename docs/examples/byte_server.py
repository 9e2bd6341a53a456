"""A server at the byte level: an `App` on standard input and output, driven by a blocking loop."""

import os
from time import monotonic as now

from sansmcp import App, Close, InlineHandlers, LineServer, Write

app = App("words", "1.0")


@app.tool()
def count(text: str) -> int:
    """Count the words of a text."""
    return len(text.split())


def serve(transport):
    handlers = InlineHandlers(app, transport.engine)
    transport.accepted(1, now())
    while not transport.finished:
        if data := os.read(0, 65536):
            transport.receive_data(1, data, now())
        else:
            transport.receive_eof(1, now())
        drain(transport, handlers)


def drain(transport, handlers):
    """Ops, then an event. An answer makes new ops, so go round until there is nothing."""
    while True:
        while (op := transport.next_op()) is not None:
            match op:
                case Write(data=data):
                    try:
                        while data:
                            data = data[os.write(1, data) :]
                    except BrokenPipeError as error:
                        transport.failed(1, str(error), now())
                case Close():
                    os.close(1)
        event = transport.next_event()
        if event is None:
            return
        handlers.handle(event, now=now())


if __name__ == "__main__":
    serve(LineServer(app.engine(now=now()), now=now()))
