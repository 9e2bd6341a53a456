"""Drives an `HttpClient` on asyncio by whatever can carry HTTP requests: say how in `carry`."""

import asyncio
from contextlib import aclosing
from time import monotonic as now

from sansmcp.http.exchange import AbortExchange, StartExchange


class Driver:
    def __init__(self, client, on_event):
        self.client, self.on_event = client, on_event
        self.tasks, self.changed = {}, asyncio.Event()

    async def run(self):
        client = self.client
        client.start(now())
        while True:
            while (op := client.next_op()) is not None:
                match op:
                    case StartExchange(exchange=exchange):
                        self.tasks[exchange] = asyncio.create_task(self.respond(exchange, op.request))
                    case AbortExchange(exchange=exchange) if exchange in self.tasks:
                        self.tasks.pop(exchange).cancel()
            if (event := client.next_event()) is not None:
                self.on_event(event)
                continue
            if client.finished:
                return
            self.changed.clear()
            when = client.next_timeout()
            try:
                async with asyncio.timeout(None if when is None else max(0, when - now())):
                    await self.changed.wait()
            except TimeoutError:
                client.handle_timeout(now())

    async def respond(self, exchange, request):
        """Tell the client what `carry` yields: status and header fields, then pieces of the body."""
        client, begun = self.client, False
        try:
            async with aclosing(self.carry(str(client.url.join(request.target)), request)) as parts:
                async for part in parts:
                    if begun:
                        client.response_data(exchange, part, now())
                    else:
                        client.response_started(exchange, *part, now())
                    begun = True
                    self.changed.set()
            client.response_ended(exchange, now())
        except Exception as error:
            client.exchange_failed(exchange, f"{type(error).__name__}: {error}", now())
        self.tasks.pop(exchange, None)
        self.changed.set()

    def carry(self, url, request):
        """Sends the request; yields status and headers, then pieces of the body: see who derives from it."""
        raise NotImplementedError
