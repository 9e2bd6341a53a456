"""A server over HTTP that misbehaves as the path says, written without the library."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Final

_PAGE: Final = "<!DOCTYPE html><html><head><title>{}</title></head><body>Hello</body></html>"

ANSWERS: Final[dict[str, tuple[int, dict[str, str], str]]] = {
    "/html": (400, {"Content-Type": "text/html"}, _PAGE.format("Bad\nRequest")),
    "/login": (200, {"Content-Type": "text/html; charset=utf-8"}, _PAGE.format("Sign in")),
    "/unknown": (401, {"WWW-Authenticate": "Bearer"}, ""),
    "/expired": (
        401,
        {"WWW-Authenticate": 'Bearer error="invalid_token", error_description="The token expired"'},
        '{"error": "invalid_token"}',
    ),
    "/forbidden": (
        403,
        {"WWW-Authenticate": 'Bearer error="insufficient_scope", scope="tools:read"'},
        "",
    ),
    "/nothing": (404, {"Content-Type": "text/plain"}, "404 page not found\n"),
    "/method": (405, {"Allow": "GET"}, ""),
    "/busy": (503, {"Retry-After": "20", "Content-Type": "text/plain"}, "overloaded"),
    "/gateway": (502, {"Content-Type": "text/html"}, _PAGE.format("502 Bad Gateway")),
    "/moved": (302, {"Location": "https://elsewhere.example/mcp?token=sesame"}, ""),
    "/teapot": (418, {}, ""),
    "/json": (200, {"Content-Type": "application/json"}, '{"hello": "world"}'),
    "/secret": (
        401,
        {"WWW-Authenticate": 'Bearer error_description="token sesame-open-42 is not known"'},
        "",
    ),
}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.partition("?")[0]
        if path == "/silence":
            self.rfile.read(1)  # until the client is gone
            self.close_connection = True
        elif path == "/hangup":
            self.close_connection = True
        elif path == "/call":
            self._call(json.loads(body))
        elif path == "/text":
            self._no_tools(json.loads(body))
        else:
            self._answer(*ANSWERS[path])

    def do_GET(self) -> None:
        self.do_POST()

    def _call(self, request: dict[str, object]) -> None:
        """Connects, and then has forgotten who asks."""
        if request["method"] != "server/discover":
            self._answer(*ANSWERS["/expired"])
            return
        result = {
            "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}},
            "resultType": "complete",
            "ttlMs": 0,
            "cacheScope": "private",
        }
        answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
        self._answer(200, {"Content-Type": "application/json"}, answer)

    def _no_tools(self, request: dict[str, object]) -> None:
        """Sends its JSON as a text."""
        common = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if request["method"] == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, **common}
        else:
            result = {"tools": [], **common}
        answer = json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result})
        self._answer(200, {"Content-Type": "text/plain"}, answer)

    def _answer(self, status: int, headers: dict[str, str], text: str) -> None:
        body = text.encode()
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Nobody wants to know."""


@contextmanager
def bad_server() -> Iterator[str]:
    """Serve on loopback, and give the URL to append a path to."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()
