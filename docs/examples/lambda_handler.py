"""A server as one function, for hosts that call it with a request: events of an API Gateway (version 2.0)."""

import base64
import os
import secrets
import time
from functools import partial
from itertools import count

from sansmcp import App, ClockPair, InlineHandlers
from sansmcp.http.exchange import HttpRequest, SendBody, StartResponse
from sansmcp.http.guard import ANY, GuardPolicy
from sansmcp.http.server import HttpServer

# Every instance needs the same key: the next round of a call that asks may come to another.
KEYS = [bytes.fromhex(os.environ["STATE_KEY"])] if "STATE_KEY" in os.environ else []
app = App("greeter", "1.0", state_keys=KEYS)


@app.tool()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello, {name}!"


def now():
    return time.monotonic()


# The gateway has checked who asks and by which name; nothing is remembered from one event to the next.
server = HttpServer(
    partial(app.engine, changes=False),
    now=now(),
    entropy=secrets.token_bytes,
    policy=GuardPolicy(hosts=ANY, origins=ANY),
    path=None,
    stateless=True,
    input_schema=app.input_schema,
)
handlers = InlineHandlers(
    app, server, entropy=secrets.token_bytes, clock=lambda: ClockPair(now(), time.time())
)
numbers = count(1)


def handle(event, context=None):
    about = event["requestContext"]["http"]
    body = event.get("body") or ""
    body = base64.b64decode(body) if event.get("isBase64Encoded") else body.encode()
    headers = list(event["headers"].items())
    exchange = next(numbers)
    server.request_received(exchange, HttpRequest(about["method"], about["path"], headers, body), now())
    while (told := server.next_event()) is not None:
        handlers.handle(told, now=now())
    response = {"statusCode": 500, "headers": {}, "body": ""}
    while (op := server.next_op()) is not None:
        match op:
            case StartResponse():
                response |= {"statusCode": op.status, "headers": dict(op.headers)}
            case SendBody():
                response["body"] += op.data.decode()
    return response
