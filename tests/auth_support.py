"""A server, its authorization server and a user, all in memory, above bytes: what a client meets."""

from __future__ import annotations

import json
from base64 import b64decode, urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from itertools import count
from typing import Any, TypeVar
from urllib.parse import parse_qs, parse_qsl, unquote_plus, urlencode, urlsplit

import attrs

from sansmcp import ClientEngine, ClockPair, Event, TransportKind
from sansmcp.auth.client import AuthorizedClient
from sansmcp.auth.oauth import OAuth
from sansmcp.events import AuthorizationUrlReady, RedirectNeeded, RequestFailed, ResultReady
from sansmcp.http.client import HttpClient
from sansmcp.http.exchange import AbortExchange, HttpRequest, StartExchange, StartFetch

from .http_client_support import DONE
from .support import DISCOVER, ME

E = TypeVar("E")

MCP = "https://mcp.example/mcp"
AS = "https://as.example"
PRM_AT = "https://mcp.example/.well-known/oauth-protected-resource/mcp"
AS_AT = f"{AS}/.well-known/oauth-authorization-server"
CALLBACK = "http://127.0.0.1:8765/callback"
UNIX = 1_800_000_000.0
JSON = [("content-type", "application/json")]

Reply = tuple[int, list[tuple[str, str]], bytes]
"""Status, headers and body; a status of 0: the connection breaks; of -1: nothing comes."""


def as_json(value: Any, status: int = 200, **headers: str) -> Reply:
    return status, [*JSON, *headers.items()], json.dumps(value).encode()


NOT_FOUND: Reply = (404, [("content-type", "text/html")], b"<html>no</html>")


@attrs.define(eq=False)
class Asked:
    """One request, wherever it went."""

    method: str
    url: str
    headers: dict[str, str]
    body: bytes

    @property
    def form(self) -> dict[str, str]:
        pairs = parse_qsl(self.body.decode(), keep_blank_values=True, strict_parsing=True)
        assert len(dict(pairs)) == len(pairs), "a parameter twice"
        return dict(pairs)

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def token(self) -> str | None:
        value = self.headers.get("authorization")
        return None if value is None else value.removeprefix("Bearer ")

    @property
    def basic(self) -> tuple[str, ...]:
        """Name and secret of the header."""
        pair = b64decode(self.headers["authorization"].removeprefix("Basic ")).decode()
        return tuple(map(unquote_plus, pair.split(":")))


class World:
    """Everything beside the client. What is at an address can be replaced by `at[url]`."""

    def __init__(self, **options: Any) -> None:
        self.now = 0.0
        self.asked: list[Asked] = []
        self.said: list[Event] = []
        self.at: dict[str, Reply | Callable[[Asked], Reply]] = {}
        self.resource: dict[str, Any] = {"resource": MCP, "authorization_servers": [AS]}
        self.server: dict[str, Any] = {
            "issuer": AS,
            "authorization_endpoint": f"{AS}/authorize",
            "token_endpoint": f"{AS}/token",
            "registration_endpoint": f"{AS}/register",
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
            "authorization_response_iss_parameter_supported": True,
        }
        self.challenge = f'Bearer resource_metadata="{PRM_AT}"'
        self.valid: set[str | None] = set()
        """Tokens that the server takes; None: it takes whoever shows none."""
        """Tokens that the server takes; those it gives out are added."""
        self.answer: dict[str, Any] = {
            "token_type": "Bearer",
            "expires_in": 3600,
            "refresh_token": "r3fresh-1",
        }
        """Members of what the token endpoint answers."""
        self.user: Callable[[str], str | None] = self.allow
        self.redirect: str | None = CALLBACK
        """What `RedirectNeeded` is answered with."""
        self.guard: Callable[[Asked], Reply | None] = lambda asked: None
        """Refuses what has a valid token."""
        self.tokens = (f"t0ken-{number}" for number in count(1))
        self.pending: list[tuple[int, Asked]] = []
        self.held = False
        """Whether requests wait for `answer_all`."""
        self.aborted: list[int] = []
        self.urls: list[str] = []
        """What the user opened."""
        self.entropy = count(1)
        engine = options.pop("engine", {})
        self.engine = ClientEngine(ME, now=0.0, transport=TransportKind.HTTP, **engine)
        self.oauth = OAuth(**options)
        self.client = self.make()

    def make(self, url: str = MCP, **http: Any) -> AuthorizedClient:
        """A client of this world."""
        return AuthorizedClient(
            HttpClient(self.engine, url, now=self.now, **http),
            self.oauth,
            now=self.now,
            clock=ClockPair(0.0, UNIX),
            entropy=lambda size: next(self.entropy).to_bytes(size, "big"),
        )

    def again(self) -> World:
        """Another client with the same options, and the same store."""
        self.engine = ClientEngine(ME, now=self.now, transport=TransportKind.HTTP)
        self.client = self.make()
        self.said.clear()
        self.asked.clear()
        return self

    # the driver ----------------------------------------------------------------------------------

    def start(self) -> World:
        self.client.start(self.now)
        return self.drain()

    def drain(self) -> World:
        """Carry everything out, answer it, and do what the user does."""
        while True:
            if (op := self.client.next_op()) is not None:
                self.execute(op)
            elif self.pending and not self.held:
                self.reply(*self.pending.pop(0))
            elif (event := self.client.next_event()) is not None:
                self.said.append(event)
                self.react(event)
            else:
                return self

    def execute(self, op: StartExchange | StartFetch | AbortExchange) -> None:
        match op:
            case StartExchange(exchange, request):
                self.ask(exchange, MCP.removesuffix("/mcp") + request.target, request)
            case StartFetch(exchange, url, request):
                assert url.target == request.target
                self.ask(exchange, url.text, request)
            case AbortExchange(exchange):
                self.aborted.append(exchange)
                self.pending = [entry for entry in self.pending if entry[0] != exchange]

    def ask(self, exchange: int, url: str, request: HttpRequest) -> None:
        headers = dict(request.headers)
        assert len(headers) == len(request.headers), "a field twice"
        asked = Asked(request.method, url, headers, request.body)
        self.asked.append(asked)
        self.pending.append((exchange, asked))

    def reply(self, exchange: int, asked: Asked) -> None:
        status, headers, body = self.answer_to(asked)
        if status < 0:
            return
        if status == 0:
            self.client.exchange_failed(exchange, "it was lost", self.now)
            return
        self.client.response_started(exchange, status, headers, self.now)
        for at in range(0, len(body), 50_000):
            self.client.response_data(exchange, body[at : at + 50_000], self.now)
        self.client.response_ended(exchange, self.now)

    def react(self, event: Event) -> None:
        match event:
            case RedirectNeeded() if self.redirect is not None:
                self.client.redirect_ready(self.redirect, self.now)
            case AuthorizationUrlReady(url=url):
                back = self.user(url)
                if back is not None:
                    self.client.redirect_received(back, self.now)

    def advance(self, seconds: float) -> World:
        """Let time pass, deadline by deadline."""
        end = self.now + seconds
        for _ in range(1000):
            when = self.client.next_timeout()
            if when is None or when > end:
                break
            self.now = max(self.now, when)
            self.client.handle_timeout(self.now)
            self.drain()
        else:
            raise AssertionError("the timer does not move on")
        self.now = end
        return self.drain()

    # the others ----------------------------------------------------------------------------------

    def answer_to(self, asked: Asked) -> Reply:
        replaced = self.at.get(asked.url.partition("?")[0])
        if callable(replaced):
            return replaced(asked)
        if replaced is not None:
            return replaced
        match asked.url:
            case str() if asked.url == MCP:
                return self.serve(asked)
            case str() if asked.url == PRM_AT:
                return as_json(self.resource)
            case str() if asked.url == AS_AT:
                return as_json(self.server)
            case str() if asked.url == f"{AS}/register":
                return as_json(
                    {**asked.json, "client_id": "cl1ent", "client_secret": "s3cret-of-client"}, 201
                )
            case str() if asked.url == f"{AS}/token":
                return self.give(asked)
        return NOT_FOUND

    def serve(self, asked: Asked) -> Reply:
        if asked.token not in self.valid:
            return 401, [("www-authenticate", self.challenge)], b""
        refused = self.guard(asked)
        if refused is not None:
            return refused
        message = asked.json
        result = DISCOVER if message["method"] == "server/discover" else DONE
        return as_json({"jsonrpc": "2.0", "id": message["id"], "result": result})

    def give(self, asked: Asked) -> Reply:
        """Give a token."""
        form = asked.form
        if form["grant_type"] == "authorization_code":
            assert form["code"] == "c0de-of-test"
            digest = sha256(form["code_verifier"].encode()).digest()
            assert urlsafe_b64encode(digest).rstrip(b"=").decode() == self.asked_user["code_challenge"]
        token = next(self.tokens)
        self.valid.add(token)
        return as_json({"access_token": token, **self.answer})

    def allow(self, url: str, **changed: str | None) -> str:
        """What a user does who allows it: where the browser arrives."""
        self.urls.append(url)
        sent = self.asked_user
        back = {"code": "c0de-of-test", "state": sent["state"], "iss": self.server["issuer"], **changed}
        return f"{sent['redirect_uri']}?{urlencode({k: v for k, v in back.items() if v is not None})}"

    # what is looked at ---------------------------------------------------------------------------

    @property
    def asked_user(self) -> dict[str, str]:
        """The parameters of the address that the user opened last."""
        return {name: values[0] for name, values in parse_qs(urlsplit(self.urls[-1]).query).items()}

    def to(self, url: str) -> list[Asked]:
        return [asked for asked in self.asked if asked.url == url]

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.said if isinstance(event, kind)]

    def one(self, kind: type[E]) -> E:
        found = self.of(kind)
        assert len(found) == 1, self.said
        return found[0]

    def call(self, name: str = "echo", **options: Any) -> ResultReady | RequestFailed:
        """Call a tool, and say how that ends."""
        call = self.engine.call_tool(name, {}, now=self.now, **options)
        self.drain()
        ends = [e for e in self.said if isinstance(e, (ResultReady, RequestFailed)) and e.call is call]
        assert len(ends) == 1, self.said
        return ends[0]

    @property
    def paths(self) -> list[str]:
        """What was asked, in order, without what the server itself was asked."""
        return [f"{a.method} {a.url}" for a in self.asked if a.url != MCP]
