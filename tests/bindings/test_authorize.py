"""Logging in over sockets, in every binding: a browser is opened, and comes back to this computer."""

from __future__ import annotations

import socket
import time
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sansmcp import ClientEngine, Implementation, LocalProtocolError, TransportKind
from sansmcp.auth.oauth import OAuth
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem, SansmcpError
from sansmcp.events import (
    AuthorizationGranted,
    AuthorizationRefused,
    AuthorizationUrlReady,
    MessageIgnored,
)
from sansmcp.http.client import HttpClient
from sansmcp.http.connector import HttpConnector
from sansmcp_shared.http_target import authorized

from .auth_server import Browser, auth_server_beside, get
from .http_support import closed_port
from .kits import AWAITING_KITS, KITS, AwaitingKit, Kit
from .support import PATIENCE

Problem = AuthorizationProblem


@pytest.fixture(params=KITS, ids=lambda kit: kit.name)
def kit(request: pytest.FixtureRequest) -> Kit:
    kit: Kit = request.param
    return kit


def nobody_listens(uri: str) -> None:
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(uri.split(":")[2].split("/", maxsplit=1)[0])))


def uris(said: list[Any]) -> list[str]:
    """Where the browser was to come back."""
    return [event.redirect_uri for event in said if isinstance(event, AuthorizationUrlReady)]


def login(
    url: Callable[[str], object] | None = None, auth: OAuth | None = None, **options: Any
) -> dict[str, Any]:
    return {"auth": auth or OAuth(), "open_url": url, "proxy": False, **options}


@pytest.mark.req("T2", "T4")
def test_the_whole_way_on_this_computer(kit: Kit) -> None:
    async def main() -> None:
        browser, said = Browser(), list[Any]()
        with auth_server_beside() as server:
            async with kit.connect(server.url, **login(browser.open, on_event=said.append)) as client:
                await client.call_tool("echo", {})
                server.valid.clear()
                ends = await kit.together(*(client.call_tool("echo", {}) for _ in range(4)))
                assert not [end for end in ends if isinstance(end, Exception)]
                await kit.soon(lambda: browser.pages, "the page")
            assert len(browser.opened) == 1
            assert "You can close this window" in browser.pages[0]
            assert server.asked.count("POST /token") == 2
        assert [e.refreshed for e in said if isinstance(e, AuthorizationGranted)] == [False, True]
        (uri,) = uris(said)
        assert uri.startswith("http://127.0.0.1:")
        nobody_listens(uri)

    kit.run(main)


def test_visitors_who_were_not_sent_are_turned_away(kit: Kit) -> None:
    async def main() -> None:
        said, browser, statuses = list[Any](), Browser(), list[int]()

        def others() -> None:
            uri = browser.opened[0].split("redirect_uri=")[1].split("&")[0]
            at = uri.replace("%3A", ":").replace("%2F", "/")
            port = int(at.split(":")[2].split("/")[0])
            for path in ("", "?code=evil&state=evil", "?"):
                status, headers, page = get(f"{at}{path}")
                statuses.append(status)
                assert "evil" not in page
                assert headers["cache-control"] == "no-store"
            statuses.append(get(at.replace("/callback", "/else?x=1"))[0])
            with socket.create_connection(("127.0.0.1", port)) as sock:
                sock.sendall(b"\x16\x03\x01 no HTTP at all\r\n\r\n")
                assert sock.recv(100) == b""
            with socket.create_connection(("127.0.0.1", port)) as sock:
                sock.sendall(b"GET /call")
            silent.connect(("127.0.0.1", port))

        browser.first = others
        with auth_server_beside() as server, socket.socket() as silent:
            async with kit.connect(server.url, **login(browser.open, on_event=said.append)):
                await kit.soon(lambda: browser.pages, "the page")
                silent.settimeout(PATIENCE)
                assert silent.recv(100) == b""  # turned away when it was over
        assert statuses == [404, 400, 404, 404]
        assert len([e for e in said if isinstance(e, MessageIgnored)]) == 1

    kit.run(main)


def test_too_many_visitors_are_the_end_of_the_visits(kit: Kit) -> None:
    async def main() -> None:
        browser, refused = Browser(goes=False), list[int]()

        def others() -> None:
            at = browser.opened[0].split("127.0.0.1%3A")[1].split("%2F")[0]
            for number in range(40):
                try:
                    get(f"http://127.0.0.1:{at}/")
                except (OSError, EOFError):
                    refused.append(number)
                    break

        async def open_url(url: str) -> bool:
            browser.open(url)
            await kit.soon(lambda: refused, "the end of the visits")
            return False  # which is the end of the attempt

        browser.first = others
        with auth_server_beside() as server, pytest.raises(AuthorizationFailed):
            async with kit.connect(server.url, **login(kit.callback(open_url))):
                pass
        assert len(refused) == 1
        assert 30 <= refused[0] <= 33
        assert not browser.pages

    kit.run(main)


def test_the_application_takes_the_browser_back_by_itself(kit: Kit) -> None:
    async def main() -> None:
        back: list[str] = []

        def open_url(url: str) -> None:
            browser.opened.append(url)

        async def wait(uri: str) -> str:
            assert uri == "https://app.example/cb"
            await kit.sleep(0.05)
            back.append(browser.opened[0])
            given = dict(pair.split("=") for pair in back[0].split("?")[1].split("&"))
            return f"{uri}?code=c0de&state={given['state']}&iss={server.base}"

        browser = Browser()
        auth = OAuth(redirect_uri="https://app.example/cb")
        with auth_server_beside() as server:
            options = login(open_url, auth, wait_redirect=kit.callback(wait))
            async with kit.connect(server.url, **options) as client:
                await client.list_tools()
        assert back

    kit.run(main)


async def problem(kit: Kit, kind: Problem, auth: OAuth | None = None, **options: Any) -> str:
    """What is told when it fails in that way."""
    with auth_server_beside() as server:
        with pytest.raises(AuthorizationFailed) as caught:
            async with kit.connect(server.url, auth=auth or OAuth(), proxy=False, **options):
                pass
        assert caught.value.problem is kind
        assert "POST /token" not in server.asked
    notes = getattr(caught.value, "__notes__", [])
    assert not [n for n in notes if n.count("server/discover: ") > 1 or n == str(caught.value)], "told twice"
    return str(caught.value)


def test_what_can_be_wrong_with_whoever_asks(kit: Kit) -> None:
    def broken(url: str) -> None:
        raise ValueError(url)

    async def elsewhere(uri: str) -> str:
        return f"{uri}?code=c&state=other"

    async def denied(uri: str) -> str:
        state = seen[-1].split("state=")[1].split("&")[0]
        return f"{uri}?error=access_denied&state={state}"

    seen: list[str] = []
    away = OAuth(redirect_uri="https://app.example/cb")
    taken = socket.create_server(("127.0.0.1", 0))
    here = OAuth(redirect_uri=f"http://127.0.0.1:{taken.getsockname()[1]}/cb")

    async def main() -> None:
        told = await problem(kit, Problem.NOT_ASKED, open_url=broken)
        assert "ValueError" in told
        assert "state" not in told
        assert "open_url" in await problem(kit, Problem.NOT_ASKED, open_url=lambda url: False)
        assert "wait_redirect" in await problem(kit, Problem.NOT_ASKED, away, open_url=lambda url: None)
        assert "OSError" in await problem(kit, Problem.NOT_ASKED, here, open_url=lambda url: None)
        options: dict[str, Any] = {"open_url": seen.append}
        await problem(kit, Problem.WRONG_STATE, away, wait_redirect=kit.callback(elsewhere), **options)
        await problem(kit, Problem.DENIED, away, wait_redirect=kit.callback(denied), **options)
        await problem(kit, Problem.TIMEOUT, OAuth(user_timeout=0.05), **options)

    with taken:
        kit.run(main)


def test_the_browser_of_the_system(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = Browser()

    def open_(url: str) -> bool:
        browser.open(url)
        return True

    async def main() -> None:
        monkeypatch.setattr(webbrowser, "open", open_)
        with auth_server_beside() as server:
            async with kit.connect(server.url, auth=OAuth(), proxy=False):
                await kit.soon(lambda: browser.pages, "the page")
        monkeypatch.setattr(webbrowser, "open", lambda url: False)
        assert "no browser" in await problem(kit, Problem.NOT_ASKED)

    kit.run(main)


@pytest.mark.req("T6", "T7")
def test_what_is_signed_has_the_time_of_day_in_it_also_after_a_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ClientEngine(Implementation("me", "1"), now=0.0, transport=TransportKind.HTTP)
    client = authorized(HttpClient(engine, "https://s.example/mcp", now=0.0), OAuth(), 0.0)
    monkeypatch.setattr(time, "time", lambda: 2e9)  # the monotonic clock stood still meanwhile
    client.authorize(1.0)
    assert client.attempt is not None
    assert client.attempt.flow.unix() == 2e9


def test_an_address_of_this_computer_that_was_given(kit: Kit) -> None:
    async def main() -> None:
        browser = Browser()
        auth = OAuth(redirect_uri=f"http://127.0.0.1:{closed_port()}/here")
        with auth_server_beside() as server:
            async with kit.connect(server.url, **login(browser.open, auth)):
                await kit.soon(lambda: browser.pages, "the page")
        assert "Done" in browser.pages[0]

    kit.run(main)


def test_whoever_was_denied_is_shown_the_page_all_the_same(kit: Kit) -> None:
    async def main() -> None:
        browser, pages = Browser(goes=False), list[tuple[int, str]]()

        def others() -> None:
            asked = browser.opened[0]
            port = asked.split("127.0.0.1%3A")[1].split("%2F")[0]
            state = asked.split("state=")[1].split("&")[0]
            uri = f"http://127.0.0.1:{port}/callback?error=access_denied&state={state}"
            status, _, page = get(uri)
            pages.append((status, page))

        browser.first = others
        with auth_server_beside() as server:
            with pytest.raises(AuthorizationFailed) as caught:
                async with kit.connect(server.url, **login(browser.open)):
                    pass
            assert caught.value.problem is Problem.DENIED
            await kit.soon(lambda: pages, "the page")
        assert pages[0][0] == 200

    kit.run(main)


@pytest.mark.parametrize("how", ["close", "break"])
def test_a_connection_that_ends_meanwhile_leaves_nothing_behind(kit: Kit, how: str) -> None:
    async def main() -> None:
        said: list[Any] = []
        with auth_server_beside() as server:
            server.open = True
            async with kit.connect(server.url, **login(lambda url: None, on_event=said.append)) as client:
                await client.call_tool("echo", {})
                server.open = False

                async def ends() -> None:
                    await kit.soon(lambda: uris(said), "the question")
                    if how == "close":
                        await (client.close() if kit.name == "threads" else client.aclose())
                    else:
                        kit.break_(client)

                ended, _ = await kit.together(client.call_tool("echo", {}), ends())
                assert isinstance(ended, SansmcpError)
                nobody_listens(uris(said)[0])
                with pytest.raises(SansmcpError):
                    await kit.log_in(client)

    kit.run(main)


@pytest.mark.parametrize("kit", AWAITING_KITS, ids=lambda kit: kit.name)
def test_whoever_stops_waiting_leaves_nothing_behind(kit: AwaitingKit) -> None:
    async def main() -> None:
        said: list[Any] = []
        with auth_server_beside() as server:
            options = login(lambda url: None, on_event=said.append)
            async with kit.until_cancelled(kit.connects, server.url, **options) as cancel:
                await kit.soon(lambda: uris(said), "the question")
                cancel()
        nobody_listens(uris(said)[0])

    kit.run(main)


@pytest.mark.parametrize("kit", AWAITING_KITS, ids=lambda kit: kit.name)
def test_a_login_that_is_cancelled_ends_its_attempt(kit: AwaitingKit) -> None:
    async def main() -> None:
        said: list[Any] = []
        with auth_server_beside() as server:
            server.open = True
            options = login(lambda url: None, on_event=said.append)
            async with kit.connect(server.url, **options) as client:
                async with kit.until_cancelled(kit.log_in, client) as cancel:
                    async with kit.until_cancelled(kit.log_in, client) as cancel_other:
                        await kit.soon(lambda: uris(said), "the question")
                        cancel_other()
                    assert not [e for e in said if isinstance(e, AuthorizationRefused)]
                    cancel()
                (refused,) = [e for e in said if isinstance(e, AuthorizationRefused)]
                assert refused.error.problem is Problem.CANCELLED
                await client.call_tool("echo", {})
        nobody_listens(uris(said)[0])

    kit.run(main)


def test_to_log_in_although_nothing_wants_it(kit: Kit) -> None:
    async def main() -> None:
        browser = Browser()
        with auth_server_beside() as server:
            server.open = True
            async with kit.connect(server.url, **login(browser.open)) as client:
                assert not browser.opened
                first, second = await kit.together(kit.log_in(client), kit.log_in(client))
                assert first.access_token == second.access_token == "t0ken-1"
                assert (await kit.log_in(client)).access_token == "t0ken-1"
                await kit.soon(lambda: browser.pages, "the page")
            async with kit.connect(server.url, **login(lambda url: False)) as client:
                with pytest.raises(AuthorizationFailed):
                    await kit.log_in(client)
            async with kit.connect(server.url, proxy=False) as client:
                with pytest.raises(LocalProtocolError, match="without auth"):
                    await kit.log_in(client)
        assert len(browser.opened) == 1

    kit.run(main)


@pytest.mark.parametrize(
    "options",
    [
        {"open_url": print},
        {"wait_redirect": print},
        {"auth": OAuth(), "wait_redirect": print},
        {"auth": OAuth(), "headers": {"authorization": "Bearer x"}},
    ],
)
def test_options_that_do_not_go_together(kit: Kit, options: dict[str, Any]) -> None:
    async def main() -> None:
        with pytest.raises(LocalProtocolError):
            async with kit.connect("http://127.0.0.1:9/mcp", **options):
                pass

    kit.run(main)


@pytest.mark.req("T9")
def test_who_logged_in_once_need_not_again(kit: Kit, tmp_path: Path) -> None:
    async def main() -> None:
        browser = Browser()
        with auth_server_beside() as server:
            for _ in range(2):
                auth = OAuth(store=kit.binding.FileTokenStore(tmp_path / "t"))
                async with kit.connect(server.url, **login(browser.open, auth)) as client:
                    await client.list_tools()
                    await kit.soon(lambda: browser.pages, "the page")
        assert len(browser.opened) == 1

    kit.run(main)


def test_the_core_is_told_where_a_connection_led(kit: Kit, monkeypatch: pytest.MonkeyPatch) -> None:
    """`AddressPolicy` judges by it what it could not by the name."""
    peers: set[str | None] = set()
    opened = HttpConnector.opened

    def told(self: HttpConnector, conn: int, now: float, peer: str | None = None) -> None:
        peers.add(peer)
        opened(self, conn, now, peer)

    async def main() -> None:
        browser = Browser()
        with auth_server_beside() as server:
            async with kit.connect(server.url, **login(browser.open)):
                await kit.soon(lambda: browser.pages, "the page")
        assert peers == {"127.0.0.1"}

    monkeypatch.setattr(HttpConnector, "opened", told)
    kit.run(main)
