"""nginx in front of a server, as a child process with a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.peers.registry import Launch, environment

from .http_support import HOST, free_port, running

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

CONFIGURATION = """
daemon off;
master_process off;
pid {folder}/pid;
error_log {folder}/errors;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    {http}
    server {{
        listen {host}:{port};
        {server}
        location / {{
            proxy_pass http://{upstream};
            {location}
        }}
    }}
}}
"""


@asynccontextmanager
async def nginx(
    port: int,
    *,
    folder: Path,
    http: str = "",
    server: str = "",
    location: str = "",
    behind: str | None = None,
) -> AsyncIterator[str]:
    """The address of an nginx before the server at `port`.

    The others are directives for each part of its configuration, which has none but what it needs;
    with `behind` the server is a group with these directives.
    Skips the test where there is no nginx.
    """
    if NGINX is None:
        pytest.skip("nginx is not installed: `.ci/run` installs it where it may")
    upstream = f"{HOST}:{port}"
    if behind is not None:
        upstream = "group"
        http += f"upstream group {{ server {HOST}:{port}; {behind} }}"
    own = free_port()
    text = CONFIGURATION.format(
        folder=folder, http=http, host=HOST, port=own, server=server, upstream=upstream, location=location
    )
    path = folder / "nginx.conf"
    path.write_text(text, encoding="utf-8")
    launch = Launch([NGINX, "-p", str(folder), "-c", str(path)], folder, environment())
    async with running(launch, own):
        yield f"http://{HOST}:{own}"
