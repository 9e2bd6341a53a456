"""Logging in and out, and the commands that use what is kept of it."""

from __future__ import annotations

import asyncio
import json
import os
import stat
import threading
import urllib.request
import webbrowser
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.bindings.auth_server import AuthServer, auth_server

from .run import DEMO, invoke, serve_http

pytestmark = pytest.mark.req("AA11", "T9")


@pytest.fixture
def server() -> Iterator[AuthServer]:
    """A server that wants tokens, in a loop and a thread of its own."""
    found: list[AuthServer] = []
    ready, loop = threading.Event(), asyncio.new_event_loop()
    stop = asyncio.Event()

    async def serve() -> None:
        async with auth_server() as server:
            found.append(server)
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    assert ready.wait(60)
    yield found[0]
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


@pytest.fixture(autouse=True)
def browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """What was opened. The browser does what it is told."""
    opened: list[str] = []

    def open_(url: str) -> bool:
        opened.append(url)
        with urllib.request.urlopen(url) as page:
            page.read()
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    monkeypatch.setenv("SANSMCP_TOKENS", str(tmp_path / "tokens.json"))
    return opened


def test_where_nothing_can_be_kept(
    server: AuthServer, browser: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*names: object) -> None:
        raise OSError(28, "No space left on device")

    assert invoke("login", server.url).code == 0
    monkeypatch.setattr(os, "replace", full)
    server.valid.clear()
    ran = invoke("tools", server.url)
    told = f"sansmcp: the tokens cannot be kept in {tmp_path / 'tokens.json'}: No space left on device\n"
    assert (ran.code, ran.err) == (0, told), "it works, and the next command may not"
    ran = invoke("logout", server.url)
    assert (ran.code, "could not be removed" in ran.err) == (2, True)
    (tmp_path / "tokens.json").unlink()
    ran = invoke("login", server.url)
    assert ran.code == 2
    assert told in ran.err
    assert "t0ken" not in ran.err
    assert "not for the next command" in ran.err


def test_in_use_and_out_again(server: AuthServer, browser: list[str], tmp_path: Path) -> None:
    ran = invoke("tools", server.url)
    assert ran.code == 3
    assert "sansmcp login" in ran.err
    assert not (tmp_path / "tokens.json").exists()
    ran = invoke("login", server.url)
    assert (ran.code, ran.out) == (0, f"Logged in at {server.base}.\n"), ran.err
    assert browser[0] in ran.err
    assert stat.S_IMODE((tmp_path / "tokens.json").stat().st_mode) == 0o600
    assert invoke("tools", server.url).code == 0
    server.valid.clear()
    assert invoke("tools", server.url).code == 0, "renewed without anybody being asked"
    assert len(browser) == 1
    ran = invoke("logout", server.url)
    assert ran.out == f"The tokens were removed for {server.url}.\n"
    ran = invoke("logout", server.url, "--json")
    assert ran.document == {"ok": True, "command": "logout", "result": {"forgotten": False}}
    assert invoke("tools", server.url).code == 3
    assert len(browser) == 1, "a command opens no browser by itself"


def test_tokens_that_are_good_for_nothing(server: AuthServer, browser: list[str], tmp_path: Path) -> None:
    assert invoke("login", server.url).code == 0
    path = tmp_path / "tokens.json"
    kept = json.loads(path.read_text())
    kept["tokens"][server.url]["refresh_token"] = None
    path.write_text(json.dumps(kept))
    server.valid.clear()
    ran = invoke("tools", server.url, "--json")
    assert ran.code == 3
    assert ran.document["error"]["kind"] == "unauthorized"
    assert ran.document["error"]["problem"] == "not_asked"
    assert f"log in first: sansmcp login {server.url}" in ran.document["error"]["message"]
    assert len(browser) == 1


def test_what_is_told_as_json(server: AuthServer) -> None:
    ran = invoke("login", server.url, "--json", "--client-id", "me", "--scope", "a", "--scope", "b")
    assert ran.code == 0, ran.err
    assert ran.document["result"] == {"issuer": server.base, "scopes": ["a", "b"], "renewable": True}
    assert "POST /registration" not in server.asked


def test_a_server_that_lets_everybody_in_gives_tokens_all_the_same(
    server: AuthServer, browser: list[str]
) -> None:
    server.open = True
    assert invoke("login", server.url).code == 0
    assert len(browser) == 1


def test_a_server_that_knows_no_tokens(tmp_path: Path) -> None:
    with serve_http(cwd=tmp_path) as (url, _):
        ran = invoke("login", url)
    assert ran.code == 3
    assert ran.first_error.endswith("; it was connected to without tokens: maybe nobody has to log in there")


def test_no_secret_is_shown(server: AuthServer) -> None:
    for words in (("login", server.url), ("tools", server.url), ("tools", server.url, "--json")):
        ran = invoke(*words, "--trace")
        assert ran.code == 0
        for secret in ("t0ken-1", "r3fresh", "c0de"):
            assert secret not in ran.out + ran.err
        server.valid.clear()
    ran = invoke("login", server.url, "--trace")
    assert "grant_type=authorization_code, code, redirect_uri=" in ran.err
    assert '"token_type":"Bearer"' in ran.err


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["login", "--", *DEMO], "nobody logs in there"),
        (["logout", "--", *DEMO], "nobody logs in there"),
        (["login", "tcp://x.example:1"], "nobody logs in there"),
        (["login", "ws://x.example"], "give --bearer-env or --header"),
        (["login", "https://x.example/mcp", "more"], "unexpected argument"),
        (["login", "https://x.example/mcp", "--header", "Authorization: Bearer x"], "nobody has to log in"),
        (["login", "https://x.example/mcp", "--client-secret-env", "NOPE"], "not set"),
        (["login", "https://x.example/mcp", "--client-secret-env", "HOME"], "goes with --client-id"),
    ],
)
def test_what_is_given_wrongly(words: list[str], text: str) -> None:
    ran = invoke(*words)
    assert ran.code == 2
    assert text in ran.err


def test_a_file_that_is_none_of_tokens(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text("[]")
    ran = invoke("tools", "http://127.0.0.1:9/mcp")
    assert ran.code == 2
    assert "no file of tokens" in ran.err
