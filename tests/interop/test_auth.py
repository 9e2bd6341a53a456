"""Our client, a real authorization server, and our server that takes its tokens."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import attrs
import httpx
import pytest

from sansmcp import App, Context, Event, ResourceServer
from sansmcp.auth.dpop import DpopCheck, ProofKey
from sansmcp.auth.jose import PrivateKeyJwt, SigningKey
from sansmcp.auth.machine_grants import ClientCredentials
from sansmcp.auth.oauth import OAuth
from sansmcp.auth.registration import Registration
from sansmcp.auth.tokens import MemoryTokenStore
from sansmcp.errors import AuthorizationFailed, AuthorizationProblem
from sansmcp.events import AuthorizationGranted
from sansmcp_asyncio import HttpServing, connect, jwt_verifier
from tests.peers.registry import HERE, VENVS, environment

from .authorization_server import KEEPER, MACHINE, AuthorizationServer, Browser, authorization_server
from .support import needs

pytestmark = pytest.mark.interop
LIMIT = 60.0
PYTHON_V2 = next(install for install in VENVS if install.name == "mcp-2.3.0")


def make_app() -> App:
    app = App("protected", "1.0")

    @app.tool()
    def whoami(ctx: Context) -> str:
        assert ctx.principal is not None
        return f"{ctx.principal.subject} {' '.join(sorted(ctx.principal.scopes))}"

    @app.tool()
    def write(ctx: Context) -> str:
        return "written"

    return app


@asynccontextmanager
async def serving(server: AuthorizationServer, **options: Any) -> AsyncIterator[HttpServing]:
    """Our server, which takes the tokens of `server`."""
    auth = ResourceServer(
        resource=server.resource,
        authorization_servers=[server.issuer],
        verifier=jwt_verifier(server.issuer, server.keys_url),
        scopes="read",
        scopes_for={("tools/call", "write"): "write"},
        **options,
    )
    async with asyncio.timeout(LIMIT), HttpServing(make_app(), port=server.port, auth=auth) as running:
        assert running.url == server.resource
        yield running


class Talk:
    """Connects a client with `oauth`, and calls tools."""

    def __init__(self, server: AuthorizationServer, oauth: OAuth, browser: Browser | None = None) -> None:
        self.server, self.oauth = server, oauth
        self.browser = browser or Browser()
        self.events: list[Event] = []

    async def call(self, *names: str) -> list[str]:
        """What the tools answer, called one after another by one client."""
        return [text async for text in self.answers(*names)]

    async def answers(self, *names: str) -> AsyncIterator[str]:
        opening = connect(
            self.server.resource, auth=self.oauth, open_url=self.browser.open, on_event=self.events.append
        )
        async with opening as client:
            for name in names:
                content: Any = (await client.call_tool(name)).content[0]
                yield content.text

    @property
    def granted(self) -> list[AuthorizationGranted]:
        return [event for event in self.events if isinstance(event, AuthorizationGranted)]

    def asked(self, at: int = -1) -> dict[str, str]:
        """What the user was asked, as parameters."""
        query = parse_qs(urlsplit(self.browser.opened[at]).query)
        return {name: values[0] for name, values in query.items()}


# users -------------------------------------------------------------------------------------------


@pytest.mark.req("T2", "T3", "T4", "T8")
def test_a_user_logs_in(tmp_path: Path) -> None:
    async def main() -> None:
        async with authorization_server(tmp_path) as server, serving(server):
            store = MemoryTokenStore()
            talk = Talk(server, OAuth(store=store))
            assert await talk.call("whoami", "whoami") == ["ann read", "ann read"]
            asked = talk.asked()
            assert (asked["resource"], asked["scope"]) == (server.resource, "read offline_access")
            assert asked["code_challenge_method"] == "S256"
            (granted,) = talk.granted
            assert granted.issuer == server.issuer
            # another client of the same user needs no browser
            again = Talk(server, OAuth(store=store))
            assert await again.call("whoami") == ["ann read"]
            assert not again.browser.opened

    asyncio.run(main())


@pytest.mark.req("T5", "T8")
def test_more_rights_are_asked_for_when_they_are_needed(tmp_path: Path) -> None:
    async def main() -> None:
        async with authorization_server(tmp_path) as server, serving(server):
            talk = Talk(server, OAuth())
            assert await talk.call("whoami", "write", "whoami") == ["ann read", "written", "ann read write"]
            # It was registered for fewer rights: that it was told at once, and registered anew.
            first, refused, second = (talk.asked(at)["client_id"] for at in range(3))
            assert first == refused != second
            assert {"read", "write"} <= set(talk.asked()["scope"].split())

    asyncio.run(main())


@pytest.mark.req("T2")
def test_a_token_is_renewed_without_the_user(tmp_path: Path) -> None:
    async def main() -> None:
        async with authorization_server(tmp_path, ttl=3) as server, serving(server, remember=0):
            talk, answers, renewed = Talk(server, OAuth()), [], []
            async for text in talk.answers("whoami", "whoami"):
                answers.append(text)
                kept = talk.oauth.store.tokens(server.resource)
                assert kept is not None
                renewed.append(kept.refresh_token)
                if len(answers) == 1:
                    await asyncio.sleep(3.2)  # until it ends: the clock is that of the server
            assert answers == ["ann read"] * 2
            assert len(talk.browser.opened) == 1
            assert [granted.refreshed for granted in talk.granted][:2] == [False, True]
            assert renewed[0] != renewed[-1]

    asyncio.run(main())


@pytest.mark.req("T2")
def test_a_token_that_was_revoked_is_asked_for_anew(tmp_path: Path) -> None:
    async def main() -> None:
        async with authorization_server(tmp_path) as server, serving(server):
            store = MemoryTokenStore()
            talk = Talk(server, OAuth(store=store))
            await talk.call("whoami")
            kept, client = store.tokens(server.resource), store.registration(server.issuer)
            assert kept is not None
            assert kept.refresh_token is not None
            assert client is not None
            form = {"token": kept.refresh_token, "client_id": client.client_id}
            async with httpx.AsyncClient(trust_env=False) as http:
                assert (await http.post(f"{server.issuer}/token/revocation", data=form)).status_code == 200
            store.keep_tokens(server.resource, attrs.evolve(kept, expires_at=0.0, access_token="old"))
            assert await talk.call("whoami") == ["ann read"]
            assert len(talk.browser.opened) == 2

    asyncio.run(main())


@pytest.mark.req("T7")
@pytest.mark.parametrize("nonces", [False, True])
def test_tokens_are_bound_to_a_key(tmp_path: Path, nonces: bool) -> None:
    async def main() -> None:
        proofs = DpopCheck(algorithms=["ES256"], nonce_key=os.urandom(16) if nonces else None)
        async with (
            authorization_server(tmp_path, nonces=nonces) as server,
            serving(server, proofs=proofs, proofs_only=True),
        ):
            key = ProofKey.generate(os.urandom)
            talk = Talk(server, OAuth(dpop=key))
            assert await talk.call("whoami", "write") == ["ann read", "written"]
            assert talk.asked()["dpop_jkt"] == key.thumbprint
            kept = talk.oauth.store.tokens(server.resource)
            assert kept is not None
            assert kept.token_type == "dpop"
            for scheme in ("Bearer", "DPoP"):  # whoever steals it
                headers = {"authorization": f"{scheme} {kept.access_token}"}
                async with httpx.AsyncClient(trust_env=False) as http:
                    stolen = await http.post(server.resource, json={}, headers=headers)
                assert stolen.status_code == 401
            assert proofs.stats()["proofs"] > 2

    asyncio.run(main())


# machines ----------------------------------------------------------------------------------------


@pytest.mark.req("T6", "T8")
@pytest.mark.parametrize("way", ["key", "secret"])
def test_a_machine_acts_for_itself(tmp_path: Path, way: str) -> None:
    async def main() -> None:
        key = SigningKey.generate(os.urandom)
        jwks = {"keys": [{**key.public_jwk, "use": "sig"}]}
        async with authorization_server(tmp_path, jwks=jwks) as server, serving(server):
            if way == "key":
                client = Registration(client_id=MACHINE, issuer=server.issuer)
                more: dict[str, Any] = {"authentication": PrivateKeyJwt(key=key)}
            else:
                name, secret = KEEPER
                client = Registration(client_id=name, client_secret=secret, issuer=server.issuer)
                more = {}
            oauth = OAuth(client=client, grant=ClientCredentials(), **more)
            talk = Talk(server, oauth)
            answers = await talk.call("whoami", "write")
            assert answers == [f"{client.client_id} read", "written"]
            assert not talk.browser.opened

    asyncio.run(main())


@pytest.mark.req("T6")
def test_a_machine_with_another_key_is_told(tmp_path: Path) -> None:
    async def main() -> None:
        known, other = (SigningKey.generate(os.urandom) for _ in range(2))
        async with (
            authorization_server(tmp_path, jwks={"keys": [known.public_jwk]}) as server,
            serving(server),
        ):
            oauth = OAuth(
                client=Registration(client_id=MACHINE, issuer=server.issuer),
                grant=ClientCredentials(),
                authentication=PrivateKeyJwt(key=other),
            )
            with pytest.raises(AuthorizationFailed) as caught:
                await Talk(server, oauth).call("whoami")
            assert caught.value.problem is AuthorizationProblem.TOKEN_REFUSED
            assert caught.value.code == "invalid_client"

    asyncio.run(main())


# secrets -----------------------------------------------------------------------------------------


@pytest.mark.req("T2", "T8")
def test_no_secret_is_shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async with authorization_server(tmp_path) as server, serving(server) as running:
            talk = Talk(server, OAuth())
            await talk.call("whoami", "write")
            kept = talk.oauth.store.tokens(server.resource)
            assert kept is not None
            secrets = [kept.access_token, kept.refresh_token, talk.asked()["state"]]
            secrets += [kept.access_token.split(".")[1]]
            shown = repr(talk.events) + repr(talk.oauth) + repr(kept) + repr(running.listener.stats())
            shown += "".join(str(getattr(event, "detail", "")) for event in talk.events) + caplog.text
            assert not [secret for secret in secrets if secret is not None and secret in shown]

    asyncio.run(main())


# clients of others -------------------------------------------------------------------------------


@pytest.mark.req("T8")
@pytest.mark.parametrize(("mode", "protocol"), [("auto", "2026-07-28"), ("legacy", "2025-11-25")])
def test_the_official_client_logs_in(tmp_path: Path, mode: str, protocol: str) -> None:
    needs("mcp-2.3.0-auto")
    python = PYTHON_V2.python
    script = HERE / "clients" / "mcp_v2_login.py"

    async def main() -> None:
        async with authorization_server(tmp_path) as server, serving(server):
            process = await asyncio.create_subprocess_exec(
                python,
                script,
                mode,
                server.resource,
                "whoami",
                "whoami",
                cwd=tmp_path,
                env=environment(),
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
            said, errors = await process.communicate()
            assert process.returncode == 0, errors.decode()[-3000:]
            found = json.loads(said)
            assert found["said"] == ["bob read", "bob read"]
            assert (found["logins"], found["protocol"]) == (1, protocol)

    asyncio.run(main())
