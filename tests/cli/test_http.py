"""Servers that are reached by their URL: in both eras, and what is said when there is none."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from .bad_http import bad_server
from .run import PYTHON, environment, invoke, listening, run, serve_http

pytestmark = pytest.mark.req("AA11")

ERAS = {
    "auto": ("modern", "2026-07-28"),
    "legacy": ("legacy", "2025-11-25"),
    "2025-03-26": ("legacy", "2025-03-26"),
}


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with serve_http(cwd=tmp_path_factory.mktemp("demo")) as (url, _):
        yield url


@pytest.fixture(scope="module")
def bad() -> Iterator[str]:
    with bad_server() as url:
        yield url


# a server that is there --------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ERAS)
def test_probe_says_how_it_speaks(mode: str, url: str) -> None:
    ran = invoke("probe", url, "--json", "--mode", mode)
    assert ran.code == 0, ran.err
    result = ran.document["result"]
    assert (result["era"], result["revision"]) == ERAS[mode]
    assert result["serverInfo"]["name"] == "sansmcp-demo"
    assert result["evidence"]


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("args", "out"),
    [
        (["call", "add", "a=2", "b=40"], '"sum": 42'),
        (["call", "slow", "steps=2", "pause=0.01"], "2 steps done\n"),
        (["tools"], "echo"),
        (["resources"], "demo://greeting"),
        (["read", "demo://greeting"], "Hello from the demo server.\n"),
        (["prompts"], "greet"),
        (["prompt", "greet", "name=Ada"], "Greet Ada in a friendly way."),
    ],
)
def test_every_command_takes_a_url(args: list[str], out: str, mode: str, url: str) -> None:
    command, *rest = args
    ran = invoke(command, url, *rest, "--mode", mode)
    assert ran.code == 0, ran.err
    assert out in ran.out


def test_an_error_of_the_server_over_http(url: str) -> None:
    ran = invoke("call", url, "nothing")
    assert ran.code == 1
    assert ran.first_error.startswith("sansmcp: tools/call 'nothing': the server answered with an error: ")


def test_a_configured_server_over_http(url: str, tmp_path: Path) -> None:
    entry = {"url": url, "type": "http", "headers": {"X-Team": "${TEAM}"}}
    (tmp_path / ".mcp.json").write_text(json.dumps({"mcpServers": {"web": entry}}), encoding="utf-8")
    ran = run(["call", "web", "echo", "text=by name", "--trace"], cwd=tmp_path, env={"TEAM": "tea-leaves"})
    assert (ran.code, ran.out) == (0, "by name\n")
    assert "reach: web with the headers x-team" in ran.err
    assert "tea-leaves" not in ran.err


# none --------------------------------------------------------------------------------------------

NO_PLACE = "nothing is there: is the path right? It is often /mcp"
RIGHTS = "the server does not let whoever asks do this: give another token, or one with more rights"
WHO = (
    "the server wants to know who asks, or does not know the token: see sansmcp login, --bearer-env, --header"
)
ANY_PAGE = "is this the URL of an MCP server, or does a proxy or a login page stand before it?"

BAD: dict[str, tuple[str, str]] = {
    "/html": ("http_error", f"HTTP 400, a web page (Bad Request) instead of MCP: {ANY_PAGE}"),
    "/login": ("http_error", f"HTTP 200, a web page (Sign in) instead of MCP: {ANY_PAGE}"),
    "/unknown": ("unauthorized", f"HTTP 401: {WHO}"),
    "/expired": ("unauthorized", f"HTTP 401, “The token expired”: {WHO}"),
    "/forbidden": (
        "unauthorized",
        f"HTTP 403, “insufficient_scope for the scope tools:read”: {RIGHTS}",
    ),
    "/nothing": ("http_error", f"HTTP 404, “404 page not found”: {NO_PLACE}"),
    "/method": (
        "http_error",
        "HTTP 405: the server takes no POST there: is the path right? It is often /mcp",
    ),
    "/busy": ("http_error", "HTTP 503, “overloaded”: the server cannot answer now; try again in 20 s"),
    "/gateway": (
        "http_error",
        "HTTP 502, a web page (502 Bad Gateway) instead of MCP: a proxy before the server cannot reach it",
    ),
    "/moved": (
        "http_error",
        "HTTP 302 points to https://elsewhere.example/mcp?…, which is at another origin",
    ),
    "/teapot": ("http_error", "HTTP 418: is this the URL of an MCP server?"),
    "/json": ("http_error", 'the body is no response to it: {"hello": "world"}'),
    "/hangup": ("no_connection", "the connection was lost: it was ended"),
}


@pytest.mark.parametrize("path", BAD)
def test_a_server_that_does_not_speak_mcp(path: str, bad: str) -> None:
    kind, told = BAD[path]
    ran = invoke("tools", bad + path)
    assert (ran.code, ran.out, ran.err) == (3, "", f"sansmcp: {bad}{path}: {told}\n")
    assert invoke("tools", bad + path, "--json").document["error"]["kind"] == kind


def test_probe_shows_what_was_tried(bad: str) -> None:
    ran = invoke("probe", f"{bad}/nothing", "--json")
    assert ran.code == 3
    assert ran.err.splitlines() == [
        f"sansmcp: {bad}/nothing: HTTP 404, “404 page not found”: {NO_PLACE}",
        "  server/discover: HTTP 404 without a modern error",
        "  initialize: HTTP 404 (text/plain)",
        "  another transport: HTTP+SSE: HTTP 404: 404 page not found",
    ]
    evidence = ran.document["error"]["evidence"]
    assert [entry["step"] for entry in evidence] == ["server/discover", "initialize", "another transport"]


def test_a_server_that_says_nothing(bad: str) -> None:
    ran = invoke("tools", f"{bad}/silence", "--timeout", "0.5")
    assert ran.code == 4
    assert ran.first_error.startswith(f"sansmcp: {bad}/silence: no connection after 0.5 s, ")
    assert ran.first_error.endswith("; allow more with --timeout SECONDS")


def test_a_server_that_forgets_who_asks(bad: str) -> None:
    ran = invoke("tools", f"{bad}/call", "--json")
    assert ran.code == 3
    assert ran.document["error"]["kind"] == "unauthorized"
    assert ran.document["error"]["status"] == 401
    assert ran.first_error == f"sansmcp: tools/list: HTTP 401, “The token expired”: {WHO}"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


def test_no_way_to_a_server(bad: str) -> None:
    place = f"127.0.0.1:{free_port()}"
    nobody = "nobody listens there: is the server running, and is the port right?"
    refused = invoke("probe", f"http://{place}/mcp")
    assert (refused.code, refused.err) == (
        3,
        f"sansmcp: http://{place}/mcp: cannot connect to {place}: {nobody}\n",
    )
    proxied = invoke("tools", f"{bad}/json", "--proxy", f"http://me:sesame@{place}")
    assert (proxied.code, proxied.err) == (
        3,
        f"sansmcp: {bad}/json: cannot connect to the proxy http://{place}: {nobody}\n",
    )
    unnamed = invoke("tools", "http://no-such-host.invalid/mcp", "--json")
    assert unnamed.code == 3
    assert unnamed.document["error"]["problem"] == "name"
    assert "no-such-host.invalid:80: the name has no address" in unnamed.first_error
    plain = invoke("tools", bad.replace("http", "https"))
    assert plain.code == 3
    assert plain.first_error.endswith("; does the server speak http instead of https?")


# serving -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_signal_ends_a_server_in_order(number: signal.Signals, code: int, tmp_path: Path) -> None:
    with serve_http(cwd=tmp_path) as (url, process):
        assert invoke("call", url, "echo", "text=hi").out == "hi\n"
        process.send_signal(number)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err.strip()) == (code, "", "sansmcp: interrupted" if code else "")


def test_what_a_server_is_told(tmp_path: Path) -> None:
    options = ["--path", "/here/it/is", "--revision", "legacy", "--allow-host", "my.example", "--strict"]
    with serve_http(*options, cwd=tmp_path) as (url, _):
        assert url.endswith("/here/it/is")
        assert invoke("probe", url, "--json").document["connection"]["era"] == "legacy"
        assert invoke("tools", url.replace("/here", "/there")).code == 3


def test_the_old_transport_is_spoken_where_it_is_asked_for(tmp_path: Path, url: str) -> None:
    with serve_http("--old-sse", cwd=tmp_path) as (new, process):
        old = new.removesuffix("mcp") + "sse"
        assert process.stderr is not None
        assert process.stderr.readline() == f"sansmcp: older clients find it at {old}\n"
        probed = invoke("probe", old, "--json")
        assert probed.code == 0, probed.err
        assert probed.document["result"]["era"] == "legacy"
        assert invoke("call", old, "echo", "text=hi").out == "hi\n"
        assert invoke("call", new, "echo", "text=hi").out == "hi\n"
    assert invoke("tools", url.removesuffix("mcp") + "sse").code == 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_server_ends_at_once_although_it_is_busy(number: signal.Signals, mode: str, tmp_path: Path) -> None:
    with serve_http(cwd=tmp_path) as (url, process):
        command = [PYTHON, "-m", "sansmcp_cli", "call", url, "slow", "steps=1000", "--mode", mode]
        with subprocess.Popen(
            command, cwd=tmp_path, env=environment(tmp_path), stderr=subprocess.PIPE, text=True
        ) as client:
            assert client.stderr is not None
            assert client.stderr.readline().startswith("progress 1/1000")
            process.send_signal(number)
            process.communicate(timeout=60)
            _, err = client.communicate(timeout=60)
    assert client.returncode in (1, 3)
    told = err.splitlines()[-1].removeprefix("sansmcp: tools/call 'slow': the ")
    assert told == "stream ended before the answer" if mode == "auto" else told.startswith("stream could not")


def test_who_is_let_in(tmp_path: Path) -> None:
    """By their Host and Origin, which a browser sets and this client sends when it is told to."""
    page, foreign = ["--header", "Origin: https://my.example"], ["--header", "Origin: https://other.example"]
    with serve_http("--allow-origin", "https://my.example", cwd=tmp_path) as (url, _):
        assert invoke("tools", url).code == 0
        assert invoke("tools", url, *page).code == 0
        refused = invoke("tools", url, *foreign)
        assert refused.code == 3
        assert "HTTP 403" in refused.first_error
    with serve_http("--allow-origin", "*", cwd=tmp_path) as (url, _):
        assert invoke("tools", url, *foreign).code == 0


def test_an_address_of_ipv6(tmp_path: Path) -> None:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 here")
    with serve_http(cwd=tmp_path, place="[::1]:0") as (url, _):
        assert url.startswith("http://[::1]:")
        assert invoke("call", url, "echo", "text=hi").out == "hi\n"


def test_whoever_listens_everywhere_has_to_say_by_which_name(tmp_path: Path) -> None:
    with serve_http(cwd=tmp_path, place="0.0.0.0:0") as (url, process):
        told = "other machines are refused until --allow-host says by which name they may call this one"
        assert process.stderr is not None
        assert process.stderr.readline() == f"sansmcp: {told}\n"
        assert invoke("tools", url).code == 0
        assert invoke("tools", url.replace("127.0.0.1", "localhost")).code == 0
        assert invoke("tools", url.replace("127.0.0.1", "127.0.0.2")).code == 3
    options = ["--allow-host", "127.0.0.2"]
    with serve_http(*options, cwd=tmp_path, place="0.0.0.0:0") as (url, _):
        assert invoke("tools", url.replace("127.0.0.1", "127.0.0.2")).code == 0


def test_a_port_that_is_in_use(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ran = run(["serve", "--http", str(port)], cwd=tmp_path)
    assert (ran.code, ran.out) == (3, "")
    told = "the port is in use; choose another one, or 0 for any that is free"
    assert ran.err == f"sansmcp: --http {port}: cannot listen: {told}\n"


def test_an_address_that_is_not_here(tmp_path: Path) -> None:
    ran = run(["serve", "--http", "no-such-host.invalid:0"], cwd=tmp_path)
    assert ran.code == 3
    assert ran.err == "sansmcp: --http no-such-host.invalid:0: cannot listen: there is no such host\n"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    if shutil.which("openssl") is None:
        pytest.skip("there is nothing to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    make = "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost", "-keyout", str(key), "-out", str(cert)]
    subprocess.run([*make.split(), *names], check=True, capture_output=True)
    return str(cert), str(key)


def test_tls(certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    with serve_http("--certfile", cert, "--keyfile", key, cwd=tmp_path) as (url, _):
        assert url.startswith("https://127.0.0.1:")
        for option in (["--cacert", cert], ["--insecure"]):
            assert invoke("call", url, "echo", "text=hi", *option).out == "hi\n"
        untrusted = invoke("tools", url)
    assert untrusted.code == 3
    assert "there is no secure connection: certificate verify failed" in untrusted.first_error
    advice = "; --cacert FILE trusts whoever issued the certificate, --insecure trusts everybody"
    assert untrusted.first_error.endswith(advice)


@pytest.mark.parametrize(("kind", "scheme"), [("websocket", "wss"), ("tcp", "tls")])
def test_tls_at_sockets(kind: str, scheme: str, certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    options = [f"--{kind}", "0", "--certfile", cert, "--keyfile", key]
    with listening("serve", *options, cwd=tmp_path) as (url, _):
        assert url.startswith(f"{scheme}://127.0.0.1:")
        assert invoke("call", url, "echo", "text=hi", "--cacert", cert).out == "hi\n"
        if kind == "tcp":
            plain = invoke("tools", url.replace("tls://", "tcp://"))
            assert (plain.code, plain.err.endswith("begins with tls://\n")) == (3, True)


def test_files_that_are_no_certificates(certificate: tuple[str, str], tmp_path: Path) -> None:
    cert, key = certificate
    text = tmp_path / "text"
    text.write_text("hello", encoding="utf-8")
    for files in ([str(text)], [cert, "--keyfile", str(text)], [cert]):
        ran = run(["serve", "--http", "0", "--certfile", *files], cwd=tmp_path)
        assert (ran.code, len(ran.err.splitlines())) == (2, 1)
        assert ": no certificate with its key in PEM form: " in ran.err
        assert ("; --keyfile says where the key is" in ran.err) is (len(files) == 1)
    locked = tmp_path / "locked.pem"
    lock = ["openssl", "rsa", "-aes128", "-passout", "pass:sesame", "-in", key, "-out", str(locked)]
    subprocess.run(lock, check=True, capture_output=True)
    ran = run(["serve", "--http", "0", "--certfile", cert, "--keyfile", str(locked)], cwd=tmp_path)
    assert (ran.code, ran.err) == (2, f"sansmcp: {locked}: the key is encrypted; give one that is not\n")
    ran = invoke("tools", "https://127.0.0.1:1", "--cacert", str(text))
    assert (ran.code, ran.err) == (2, f"sansmcp: --cacert {text}: no certificates in PEM form\n")
