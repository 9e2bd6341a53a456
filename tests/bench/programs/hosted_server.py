"""The app of `our_http_server` under somebody else's server: ``hosted_server uvicorn|waitress``.

It prints its port, and ends with its standard input.
"""

import logging
import os
import socket
import sys
import threading
from typing import Any

import sansmcp_asgi
from tests.bench.programs.our_http_server import app

THREADS = 16
"""Of waitress: as many as there are calls in flight."""


def uvicorn(listening: socket.socket) -> None:
    """Serve the ASGI application."""
    from uvicorn import Config, Server

    config = Config(
        sansmcp_asgi.asgi_app(app), log_level="error", access_log=False, http="h11", loop="asyncio"
    )
    Server(config).run(sockets=[listening])


def waitress(listening: socket.socket) -> None:
    """Serve the WSGI application."""
    from waitress.server import create_server

    logging.getLogger("waitress").setLevel(logging.ERROR)  # it tells when requests wait for a thread
    server: Any = create_server(sansmcp_asgi.wsgi_app(app), sockets=[listening], threads=THREADS)
    server.run()


def _end_with_input() -> None:
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    # With the number of TCP: without it asyncio does not send small writes at once.
    here = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    here.bind(("127.0.0.1", 0))
    here.listen(100)
    threading.Thread(target=_end_with_input, daemon=True).start()
    print(here.getsockname()[1], flush=True)
    {"uvicorn": uvicorn, "waitress": waitress}[sys.argv[1]](here)
