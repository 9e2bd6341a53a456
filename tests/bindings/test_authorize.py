"""Logging in over sockets: a browser is opened, and comes back to this computer."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
import webbrowser
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from sansmcp import LocalProtocolError
from sansmcp.auth.oauth import OAuth
from sansmcp.auth.registration import Registration
from sansmcp.auth.tokens import Tokens
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem
from sansmcp.events import AuthorizationGranted, AuthorizationUrlReady, MessageIgnored
from sansmcp_asyncio import connect
from sansmcp_asyncio._token_file import MAX_SERVERS, FileTokenStore, default_token_file

from .auth_server import auth_server, browse, fetch
from .support import run

Problem = AuthorizationProblem


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run `test` in a loop of its own."""

    @wraps(test)
    def whole(*arguments: Any, **named: Any) -> None:
        run(lambda: test(*arguments, **named))

    return whole


class Browser:
    """Goes where it is sent, and keeps the page."""

    def __init__(self) -> None:
        self.opened: list[str] = []
        self.pages: list[asyncio.Task[str]] = []

    def open(self, url: str) -> None:
        self.opened.append(url)
        self.pages.append(asyncio.get_running_loop().create_task(browse(url)))


@pytest.mark.req("T2", "T4")
@in_loop
async def test_the_whole_way_on_this_computer() -> None:
    browser = Browser()
    said: list[Any] = []
    async with auth_server() as server:
        async with connect(server.url, auth=OAuth(), open_url=browser.open, on_event=said.append) as client:
            await client.call_tool("echo", {})
            server.valid.clear()
            await asyncio.gather(*(client.call_tool("echo", {}) for _ in range(4)))
        assert len(browser.opened) == 1
        assert "You can close this window" in await browser.pages[0]
        assert server.asked.count("POST /token") == 2
    assert [e.refreshed for e in said if isinstance(e, AuthorizationGranted)] == [False, True]
    ready = next(e for e in said if isinstance(e, AuthorizationUrlReady))
    assert ready.redirect_uri.startswith("http://127.0.0.1:")
    with pytest.raises(OSError, match=r"."):
        await fetch(ready.redirect_uri)  # nobody listens any more


@in_loop
async def test_visitors_who_were_not_sent_are_turned_away() -> None:
    said: list[Any] = []
    browser = Browser()

    async def open_url(url: str) -> None:
        at = next(e for e in said if isinstance(e, AuthorizationUrlReady)).redirect_uri
        for path in ("", "?code=evil&state=evil", "?"):
            status, headers, page = await fetch(f"{at}{path}")
            assert status in (400, 404)
            assert "evil" not in page
            assert headers["cache-control"] == "no-store"
        assert (await fetch(at.replace("/callback", "/else?x=1")))[0] == 404
        _, writer = await asyncio.open_connection("127.0.0.1", int(at.split(":")[2].split("/")[0]))
        writer.write(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
        writer.close()
        browser.open(url)

    options: Any = {"auth": OAuth(), "open_url": open_url, "on_event": said.append}
    async with auth_server() as server, connect(server.url, **options):
        await browser.pages[0]
    assert len([e for e in said if isinstance(e, MessageIgnored)]) == 1


@in_loop
async def test_the_application_takes_the_browser_back_by_itself() -> None:
    back: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def open_url(url: str) -> None:
        _, headers, _ = await fetch(url)
        back.set_result(headers["location"])

    async def wait(uri: str) -> str:
        assert uri == "https://app.example/cb"
        return await back

    auth = OAuth(redirect_uri="https://app.example/cb")
    options: Any = {"auth": auth, "open_url": open_url, "wait_redirect": wait}
    async with auth_server() as server, connect(server.url, **options) as client:
        await client.list_tools()


async def refused(problem: Problem, auth: OAuth | None = None, **options: Any) -> str:
    async with auth_server() as server:
        with pytest.raises(AuthorizationFailed) as caught:
            async with connect(server.url, auth=auth or OAuth(), **options):
                pass
        assert caught.value.problem is problem
        assert "POST /token" not in server.asked
    return str(caught.value)


@in_loop
async def test_what_can_be_wrong_with_whoever_asks() -> None:
    def broken(url: str) -> None:
        raise ValueError(url)

    async def elsewhere(uri: str) -> str:
        return f"{uri}?code=c&state=other"

    away = OAuth(redirect_uri="https://app.example/cb")
    told = await refused(Problem.NOT_ASKED, open_url=broken)
    assert "ValueError" in told
    assert "state" not in told
    assert "open_url" in await refused(Problem.NOT_ASKED, open_url=lambda url: False)
    assert "wait_redirect" in await refused(Problem.NOT_ASKED, away, open_url=lambda url: None)
    await refused(Problem.WRONG_STATE, away, open_url=lambda url: None, wait_redirect=elsewhere)
    await refused(Problem.TIMEOUT, OAuth(user_timeout=0.05), open_url=lambda url: None)


@in_loop
async def test_the_browser_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    loop, browser = asyncio.get_running_loop(), Browser()
    loop.set_default_executor(executor := ThreadPoolExecutor(1))

    def open_(url: str) -> bool:
        loop.call_soon_threadsafe(browser.open, url)
        return True

    monkeypatch.setattr(webbrowser, "open", open_)
    async with auth_server() as server, connect(server.url, auth=OAuth()):
        await browser.pages[0]
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    assert "no browser" in await refused(Problem.NOT_ASKED)
    executor.shutdown()


@in_loop
async def test_an_address_of_this_computer_that_was_given() -> None:
    async with auth_server() as probe:
        free = probe.base
    browser = Browser()
    auth = OAuth(redirect_uri=f"{free}/here")
    async with auth_server() as server, connect(server.url, auth=auth, open_url=browser.open):
        assert "Done" in await browser.pages[0]


@in_loop
async def test_whoever_stops_waiting_leaves_nothing_behind() -> None:
    uris: list[str] = []

    def seen(event: Any) -> None:
        if isinstance(event, AuthorizationUrlReady):
            uris.append(event.redirect_uri)

    async with auth_server() as server:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await connect(server.url, auth=OAuth(), open_url=lambda url: None, on_event=seen)
    assert len(uris) == 1
    with pytest.raises(OSError, match=r"."):
        await fetch(uris[0])


@pytest.mark.parametrize(
    "options",
    [
        {"open_url": print},
        {"wait_redirect": print},
        {"auth": OAuth(), "wait_redirect": print},
        {"auth": OAuth(), "headers": {"authorization": "Bearer x"}},
    ],
)
@in_loop
async def test_options_that_do_not_go_together(options: dict[str, Any]) -> None:
    with pytest.raises(LocalProtocolError):
        await connect("http://127.0.0.1:9/mcp", **options)


# the file ----------------------------------------------------------------------------------------

TOKENS = Tokens(
    access_token="t0ken",
    token_type="bearer",
    issuer="https://a.example",
    resource="https://s.example",
    scopes=("a", "b"),
    expires_at=5.5,
    refresh_token="r3fresh",
)
CLIENT = Registration(client_id="c", client_secret="s", issuer="https://a.example")


@pytest.mark.req("T9")
def test_a_file_keeps_tokens_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "tokens.json"
    store = FileTokenStore(path)
    assert store.tokens("s") is None
    assert not path.exists()
    store.keep_tokens("s", TOKENS)
    store.keep_registration("i", CLIENT)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert os.listdir(path.parent) == ["tokens.json"]
    again = FileTokenStore(path)
    assert (again.tokens("s"), again.registration("i")) == (TOKENS, CLIENT)
    assert again.servers() == ["s"]
    os.chmod(path, 0o644)
    assert again.tokens("s") == TOKENS
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    again.keep_tokens("s", None)
    again.keep_tokens("s", None)
    again.keep_registration("i", None)
    assert (store.tokens("s"), store.registration("i")) == (None, None)
    assert "t0ken" not in repr(store)


@pytest.mark.req("T9")
@pytest.mark.parametrize(
    "text", ["", "[", "[]", "{}", '{"tokens": [], "registrations": {}}', "\0", "[" * 100_000]
)
def test_a_file_of_another_kind_is_refused_and_later_counts_as_empty(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.json"
    store = FileTokenStore(path)
    path.write_text(text)
    with pytest.raises(LocalProtocolError, match="no file of tokens"):
        FileTokenStore(path)
    assert store.tokens("s") is None
    store.keep_tokens("s", TOKENS)
    assert FileTokenStore(path).tokens("s") == TOKENS


@pytest.mark.parametrize(
    "entry",
    [
        '{"access_token": 5}', "{}",
        '{"access_token": "t", "token_type": "b", "issuer": null, "resource": "r"}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "scopes": [1]}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "expires_at": true}',
        '{"access_token": "t", "token_type": "b", "issuer": "i", "resource": "r", "expires_at": {}}',
    ],
)  # fmt: skip
def test_an_entry_of_another_kind_counts_for_nothing(tmp_path: Path, entry: str) -> None:
    path = tmp_path / "tokens.json"
    path.write_text(f'{{"tokens": {{"s": {entry}}}, "registrations": {{}}}}')
    assert FileTokenStore(path).tokens("s") is None


def test_the_file_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sansmcp_asyncio._token_file.MAX_SERVERS", 3)
    store = FileTokenStore(tmp_path / "t")
    for number in range(5):
        store.keep_tokens(str(number), TOKENS)
    assert store.servers() == ["2", "3", "4"]
    assert MAX_SERVERS > 100


def test_what_cannot_be_written_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileTokenStore(tmp_path / "t")
    monkeypatch.setattr(os, "replace", lambda *a: (_ for _ in ()).throw(OSError(28, "full")))
    with pytest.raises(OSError, match="full"):
        store.keep_tokens("s", TOKENS)
    assert os.listdir(tmp_path) == []
    with pytest.raises(LocalProtocolError, match="cannot be read"):
        FileTokenStore(tmp_path)


def test_where_it_is_unless_somewhere_else_is_said() -> None:
    home = Path.home()
    assert default_token_file({}, "linux") == home / ".local/share/sansmcp/tokens.json"
    assert default_token_file({"XDG_DATA_HOME": "/x"}, "linux") == Path("/x/sansmcp/tokens.json")
    assert default_token_file({}, "darwin") == home / "Library/Application Support/sansmcp/tokens.json"
    assert default_token_file({"LOCALAPPDATA": "/y"}, "win32") == Path("/y/sansmcp/tokens.json")
    assert sys.platform


@pytest.mark.req("T9")
@in_loop
async def test_who_logged_in_once_need_not_again(tmp_path: Path) -> None:
    browser = Browser()
    async with auth_server() as server:
        for _ in range(2):
            auth = OAuth(store=FileTokenStore(tmp_path / "t"))
            async with connect(server.url, auth=auth, open_url=browser.open) as client:
                await client.list_tools()
                await browser.pages[0]
    assert len(browser.opened) == 1
