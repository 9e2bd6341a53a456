"""A client in a browser, or in Node: Pyodide, with the `fetch` of JavaScript."""

from exchanges import Driver
from js import AbortController, Object, Uint8Array, fetch
from one_call import OneCall
from pyodide.ffi import to_js


class FetchDriver(Driver):
    async def carry(self, url, request):
        aborts = AbortController.new()
        options = {"method": request.method, "headers": dict(request.headers), "signal": aborts.signal}
        if request.body:
            options["body"] = Uint8Array.new(to_js(request.body))
        try:
            response = await fetch(url, to_js(options, dict_converter=Object.fromEntries))
            yield response.status, [tuple(field) for field in response.headers]
            if response.body is not None:
                reader = response.body.getReader()
                while not (piece := await reader.read()).done:
                    yield piece.value.to_bytes()
        finally:
            aborts.abort()  # harmless when all has come


async def main(*arguments):
    call = OneCall(*arguments)
    await FetchDriver(call.client, call.on_event).run()
