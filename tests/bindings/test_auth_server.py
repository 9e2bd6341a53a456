"""Protected servers over real sockets and under ASGI: verifiers are called, awaited and may break."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import trio

import sansmcp_asgi
import sansmcp_threads
import sansmcp_trio
from sansmcp import AccessUndecided, App, Context, Event, Legacy, Principal, ResourceServer
from sansmcp.errors import HttpFailure
from sansmcp.events import VerifyToken
from sansmcp_asyncio import HttpServing, connect

from ..protected_support import ISSUER, RESOURCE, rules, who
from . import wsgi_support
from .asgi_support import BACKENDS, Script, on_both, pieces, scope_for
from .http_support import text_of as text_of_result
from .support import PATIENCE
from .test_serve_http import text_of, tool


def make_app() -> App:
    app = App("protected", "1.0")

    @app.tool()
    def whoami(ctx: Context) -> str:
        assert ctx.principal is not None
        return ctx.principal.subject

    return app


def known(token: str) -> Principal | None:
    return who(token) if token.startswith("u-") else None


async def known_later(token: str) -> Principal | None:
    await anyio.sleep(0.01)
    return known(token)


def breaks(token: str) -> Principal | None:
    raise KeyError(token)


async def breaks_later(token: str) -> Principal | None:
    await anyio.lowlevel.checkpoint()
    raise KeyError(token)


async def waits(token: str) -> Principal | None:
    await asyncio.sleep(0.01)
    return known(token)


async def never(token: str) -> Principal | None:
    await anyio.sleep_forever()
    return None


VERIFIERS = pytest.mark.parametrize("verifier", [known, known_later])


@pytest.mark.req("T8")
@VERIFIERS
@pytest.mark.parametrize("legacy", [False, True])
def test_a_client_with_a_token_is_served(verifier: Any, legacy: bool) -> None:
    async def main() -> None:
        events: list[Event] = []
        async with (
            asyncio.timeout(20),
            HttpServing(make_app(), auth=rules(verifier=verifier), on_event=events.append) as s,
        ):
            policy: dict[str, Any] = {"mode": Legacy()} if legacy else {}
            headers = {"authorization": "Bearer u-ann"}
            async with connect(s.url, headers=headers, **policy) as client:
                for _ in range(2):
                    assert text_of_result(await client.call_tool("whoami")) == "u-ann"
        assert not [e for e in events if isinstance(e, VerifyToken)]
        assert "u-ann" not in repr(events)

    asyncio.run(main())


@pytest.mark.req("T8")
@pytest.mark.parametrize("verifier", [breaks, breaks_later])
def test_a_verifier_that_breaks_is_told_without_its_token(verifier: Any) -> None:
    async def main() -> None:
        events: list[Event] = []
        app = sansmcp_asgi.asgi_app(make_app(), auth=rules(verifier=verifier), on_event=events.append)
        script = await ask(app, "SECRET")
        assert script.status == 503
        (undecided,) = [e for e in events if isinstance(e, AccessUndecided)]
        assert "KeyError in breaks" in undecided.detail
        assert "SECRET" not in repr(events) + undecided.detail + repr(script.sent)

    asyncio.run(main())


async def ask(app: Any, token: str | None, **scope: Any) -> Script:
    body = tool("whoami", {})
    given = {} if token is None else {"h_authorization": f"Bearer {token}"}
    script = Script(*pieces(json.dumps(body).encode()))
    await app(scope_for(body, **given, **scope), script.receive, script.send)
    return script


@pytest.mark.req("T8")
@pytest.mark.parametrize("backend", BACKENDS)
@VERIFIERS
def test_asgi(backend: str, verifier: Any) -> None:
    async def main() -> None:
        app = sansmcp_asgi.asgi_app(make_app(), auth=rules(verifier=verifier))
        script = await ask(app, "u-ann")
        assert (script.status, text_of(script.json)) == (200, "u-ann")
        for token in (None, "other"):
            script = await ask(app, token)
            assert script.status == 401
            assert "oauth-protected-resource/mcp" in script.headers["www-authenticate"]
        for path in rules().metadata_paths:
            script = await ask(app, None, method="GET", path=path)
            assert (script.status, script.json["resource"]) == (200, RESOURCE)

    on_both(main, backend)


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_end_does_not_wait_for_a_verifier(backend: str) -> None:
    async def main() -> None:
        app = sansmcp_asgi.asgi_app(make_app(), auth=rules(verifier=never))
        statuses: list[int | None] = []
        with anyio.fail_after(PATIENCE):
            async with anyio.create_task_group() as group, app.lifespan():

                async def client() -> None:
                    statuses.append((await ask(app, "u-ann")).status)

                group.start_soon(client)
                while not app.gateways or not app.gateways[0].stats()["held_requests"]:  # noqa: ASYNC110
                    await anyio.sleep(0.001)
        assert statuses == [503]

    on_both(main, backend)


@pytest.mark.req("T8")
@pytest.mark.parametrize(("threads", "elsewhere"), [(16, True), (0, False)])
def test_a_plain_verifier_does_not_stop_the_loop(threads: int, elsewhere: bool) -> None:
    where: list[int] = []

    def verifier(token: str) -> Principal | None:
        where.append(threading.get_ident())
        return known(token)

    async def main() -> None:
        app = sansmcp_asgi.asgi_app(make_app(), auth=rules(verifier=verifier), threads=threads)
        assert (await ask(app, "u-ann")).status == 200
        assert (where[0] != threading.get_ident()) is elsewhere

    asyncio.run(main())


@pytest.mark.req("T8")
def test_who_has_no_token_is_told_where_to_get_one() -> None:
    async def main() -> None:
        async with asyncio.timeout(20), HttpServing(make_app(), auth=rules(verifier=known)) as serving:
            with pytest.raises(Exception) as caught:
                async with connect(serving.url):
                    pass
            assert "401" in str(caught.value)

    asyncio.run(main())


def test_options_are_typed() -> None:
    verifier: Callable[[str], Principal | None] = known
    auth = ResourceServer(resource=RESOURCE, authorization_servers=[ISSUER], verifier=verifier)
    assert HttpServing(make_app(), auth=auth).url


# other bindings ----------------------------------------------------------------------------------


@pytest.mark.req("T8")
@pytest.mark.parametrize(
    ("verifier", "token", "status"),
    [
        (known, "u-ann", 200),
        (known, "other", 401),
        (known, None, 401),
        (breaks, "u-ann", 503),
        (known_later, "u-ann", 503),
    ],
)
def test_wsgi(verifier: Any, token: str | None, status: int) -> None:
    events: list[Event] = []
    app = sansmcp_asgi.wsgi_app(make_app(), auth=rules(verifier=verifier), on_event=events.append)
    given = {} if token is None else {"h_authorization": f"Bearer {token}"}
    answered = wsgi_support.ask(app, tool("whoami", {}), **given)
    assert answered.status == status
    if status == 200:
        assert text_of(answered.json) == "u-ann"
    if status == 503:
        assert len([e for e in events if isinstance(e, AccessUndecided)]) == 1
    assert "u-ann" not in repr(events)
    place = {"REQUEST_METHOD": "GET", "PATH_INFO": rules().metadata_paths[0]}
    metadata = wsgi_support.ask(app, None, **place)
    assert metadata.json["resource"] == RESOURCE


@pytest.mark.req("T8")
def test_threads() -> None:
    with sansmcp_threads.HttpServing(make_app(), auth=rules(verifier=known)) as serving:
        for token, name in (("u-ann", "u-ann"), ("u-bob", "u-bob")):
            headers = {"authorization": f"Bearer {token}"}
            with sansmcp_threads.connect(serving.url, headers=headers) as client:
                assert text_of_result(client.call_tool("whoami")) == name
        with pytest.raises(HttpFailure, match="401"), sansmcp_threads.connect(serving.url):
            pass
    with sansmcp_threads.HttpServing(make_app(), auth=rules(verifier=waits)) as serving:
        headers = {"authorization": "Bearer u-ann"}
        with (
            pytest.raises(HttpFailure, match="503"),
            sansmcp_threads.connect(serving.url, headers=headers),
        ):
            pass


@pytest.mark.req("T8")
@VERIFIERS
def test_trio(verifier: Any) -> None:
    async def main() -> None:
        with trio.fail_after(PATIENCE):
            async with sansmcp_trio.HttpServing(make_app(), auth=rules(verifier=verifier)) as serving:
                headers = {"authorization": "Bearer u-ann"}
                async with sansmcp_trio.connect(serving.url, headers=headers) as client:
                    assert text_of_result(await client.call_tool("whoami")) == "u-ann"

    trio.run(main)
