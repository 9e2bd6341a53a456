"""`connect` to URLs through TLS and proxies, over real sockets."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sansmcp import Legacy
from sansmcp.errors import NetworkFailure, NetworkProblem
from sansmcp_asyncio import connect

from .http_support import closed_port, fails_with, listening, served, text_of
from .support import run


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    """A certificate for ``localhost``, and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("there is nothing to make a certificate with")
    folder: Path = tmp_path_factory.mktemp("tls")
    key, made = str(folder / "key.pem"), str(folder / "certificate.pem")
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=DNS:localhost"]
    argv = [*make.split(), *names, "-keyout", key, "-out", made]
    subprocess.run(argv, check=True, capture_output=True, timeout=30)
    return made, key


def contexts(certificate: tuple[str, str]) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """For the server, and for a client that trusts it."""
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(*certificate)
    return theirs, ssl.create_default_context(cafile=certificate[0])


@pytest.mark.parametrize("mode", [None, Legacy()])
def test_tls(certificate: Any, mode: Any) -> None:
    theirs, ours = contexts(certificate)

    async def main() -> None:
        async with served(ssl=theirs) as serving:
            url = f"https://localhost:{serving.port}/mcp"
            async with connect(url, ssl=ours, mode=mode) as client:
                assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
                assert len(text_of(await client.call_tool("large", {"size": 1_000_000}))) == 1_000_000

    run(main)


def test_a_certificate_that_is_not_trusted_or_of_another_name(certificate: Any) -> None:
    theirs, ours = contexts(certificate)

    async def main() -> None:
        async with served(ssl=theirs) as serving:
            for url, context in [
                (f"https://localhost:{serving.port}/mcp", None),
                (f"https://127.0.0.1:{serving.port}/mcp", ours),
            ]:
                error = await fails_with(NetworkFailure, url, ssl=context)
                assert error.problem is NetworkProblem.TLS
                assert "check the certificate" in str(error)
                assert "certificate verify failed" in str(error)
        async with served() as serving:
            error = await fails_with(NetworkFailure, f"https://127.0.0.1:{serving.port}/mcp")
            assert error.problem is NetworkProblem.TLS

    run(main)


# proxies -----------------------------------------------------------------------------------------


class ByHand:
    """A proxy for both kinds of requests."""

    def __init__(self, refuses: int | None = None) -> None:
        self.heads: list[bytes] = []
        self.refuses = refuses

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        self.heads.append(head)
        if self.refuses is not None:
            writer.write(b"HTTP/1.1 %d Reason\r\ncontent-length: 0\r\n\r\n" % self.refuses)
            return
        method, target, _ = head.split(b" ", 2)
        place = target if method == b"CONNECT" else target.split(b"/")[2]
        host, _, port = place.decode().rpartition(":")
        inner_reader, inner = await asyncio.open_connection(host, int(port))
        if method == b"CONNECT":
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            inner.write(head.replace(target, b"/" + target.split(b"/", 3)[3], 1))

        async def carry(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
            while data := await source.read(65536):
                if method != b"CONNECT" and data.startswith(b"POST http"):
                    first, _, rest = data.partition(b" HTTP/1.1")
                    data = b"POST /%b HTTP/1.1%b" % (first.split(b"/", 3)[3], rest)
                sink.write(data)
                await sink.drain()
            sink.close()

        try:
            await asyncio.gather(carry(reader, inner), carry(inner_reader, writer))
        finally:
            inner.close()


def test_a_plain_proxy() -> None:
    proxy = ByHand()

    async def main() -> None:
        async with served() as serving, listening(proxy) as port:
            through = f"http://me:s3cret@127.0.0.1:{port}"
            async with connect(serving.url, proxy=through) as client:
                assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
                assert "s3cret" not in repr(client.transport)
            assert proxy.heads[0].startswith(b"POST http://127.0.0.1:")
            assert b"proxy-authorization: Basic " in proxy.heads[0]

    run(main)


def test_a_proxy_for_tls(certificate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs, ours = contexts(certificate)
    proxy = ByHand()

    async def main() -> None:
        async with served(ssl=theirs) as serving, listening(proxy) as port:
            url = f"https://localhost:{serving.port}/mcp"
            async with connect(url, ssl=ours, proxy=f"http://127.0.0.1:{port}") as client:
                assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
            assert [head.split(b"\r\n")[0] for head in proxy.heads] == [
                b"CONNECT localhost:%d HTTP/1.1" % serving.port
            ]
            error = await fails_with(NetworkFailure, url, proxy=f"http://127.0.0.1:{port}")
            assert error.problem is NetworkProblem.TLS
            assert "through the proxy" in str(error)
            # what is on this computer is reached without the proxy of the environment
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{closed_port()}")
            async with connect(url, ssl=ours):
                pass

    run(main)


def test_a_proxy_that_speaks_tls_itself(certificate: Any) -> None:
    theirs, ours = contexts(certificate)
    proxy = ByHand()

    async def main() -> None:
        async with served(ssl=theirs) as serving, listening(proxy, theirs) as port:
            url = f"https://localhost:{serving.port}/mcp"
            async with connect(url, ssl=ours, proxy=f"https://localhost:{port}") as client:
                assert text_of(await client.call_tool("add", {"a": 1, "b": 2})) == "3"
                assert len(text_of(await client.call_tool("large", {"size": 1_000_000}))) == 1_000_000
            assert proxy.heads[0].startswith(b"CONNECT localhost:")

    run(main)


@pytest.mark.parametrize("status", [407, 502])
def test_a_proxy_that_refuses(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with listening(ByHand(refuses=status)) as port:
            monkeypatch.setenv("https_proxy", f"http://me:s3cret@127.0.0.1:{port}")
            error = await fails_with(NetworkFailure, "https://server.invalid/mcp")
            assert (error.problem, error.status) == (NetworkProblem.PROXY, status)
            assert f"the proxy http://127.0.0.1:{port} refused" in str(error)
            assert "s3cret" not in f"{error!r}"
            monkeypatch.setenv("no_proxy", ".invalid")
            error = await fails_with(NetworkFailure, "https://server.invalid/mcp")
            assert error.problem is NetworkProblem.NAME

    run(main)


def test_a_proxy_that_is_not_there() -> None:
    async def main() -> None:
        proxy = f"127.0.0.1:{closed_port()}"
        for url in ("https://server.invalid/mcp", "http://server.invalid/mcp"):
            error = await fails_with(NetworkFailure, url, proxy=proxy)
            assert error.problem is NetworkProblem.PROXY
            assert f"cannot connect to the proxy http://{proxy}" in str(error)

    run(main)
