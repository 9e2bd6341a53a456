"""A client whose HTTP is httpx's, HTTP/2 included: `python httpx_client.py URL TOOL JSON`."""

import asyncio
import sys

import httpx
from exchanges import Driver
from one_call import OneCall


class HttpxDriver(Driver):
    def __init__(self, session, client, on_event):
        super().__init__(client, on_event)
        self.session = session

    async def carry(self, url, request):
        headers = list(request.headers)
        asked = self.session.stream(request.method, url, headers=headers, content=request.body)
        async with asked as response:
            yield response.status_code, list(response.headers.items())
            async for data in response.aiter_raw():
                yield data


async def main(*arguments, **options):
    call = OneCall(*arguments)
    async with httpx.AsyncClient(timeout=httpx.Timeout(10, read=None), **options) as session:
        await HttpxDriver(session, call.client, call.on_event).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:], http2=True))
