"""Subscriptions over HTTP: a stream for each, and one server for clients of both eras."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    App,
    ChangesMissed,
    CloseReason,
    Context,
    HttpFailure,
    LimitHit,
    ListChanged,
    ListKind,
    MessageIgnored,
    PeerFault,
    Relisten,
    RequestFailed,
    RequestReceived,
    ResourceUpdated,
    ResourceWatched,
    ServerStreamEnded,
    SubscriptionClosed,
    SubscriptionInterrupted,
    SubscriptionOpened,
)
from sansmcp.http.exchange import AbortExchange
from sansmcp.types import SubscriptionFilter

from .http_client_support import LEGACY, MODERN
from .http_support import Client, Http, Reply, call
from .test_http_pair import VERSIONS, Pair

ID = "io.modelcontextprotocol/subscriptionId"
TOOLS, PROMPTS, RESOURCES = (f"notifications/{k}/list_changed" for k in ("tools", "prompts", "resources"))
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"


def demo() -> App:
    """A server whose lists change while it is served."""
    app = App("demo", "1", list_changed=True, subscribe=True)

    @app.tool()
    def add(ctx: Context, name: str) -> str:
        app.tool(name)(lambda: name)
        ctx.notify_changed(ListKind.TOOLS)
        return "added"

    @app.tool()
    def remove(ctx: Context, name: str) -> str:
        app.remove_tool(name)
        ctx.notify_changed(ListKind.TOOLS)
        return "removed"

    @app.tool()
    def touch(ctx: Context, uri: str) -> str:
        ctx.notify_updated(uri)
        return "touched"

    @app.resource("a:/")
    def a() -> str:
        return "a"

    @app.prompt()
    def p() -> str:
        return "p"

    return app


class Served(Http):
    """The demo, whose handlers run at once."""

    def __init__(self, app: App | None = None, **options: Any) -> None:
        self.app = app or demo()
        super().__init__(self.app, **options)

    def drain(self) -> None:
        super().drain()
        for event in self.said[:]:
            if isinstance(event, RequestReceived):
                self.said.remove(event)
                context = Context(event.request, self.server, lambda action: action(self.now))
                step = self.app.begin(self.server, event.request, context, now=self.now)
                if step is not None:
                    step.finish(step.function(*step.arguments, **step.keywords), now=self.now)
                super().drain()

    def listen(self, id: Any = 1, /, **filter: Any) -> Reply:
        return self.ask("subscriptions/listen", {"notifications": filter}, id=id)

    def tool(self, tool: str, /, **arguments: Any) -> Reply:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def change(self, kind: ListKind = ListKind.TOOLS) -> bool:
        told = self.server.notify_changed(kind, now=self.now)
        self.drain()
        return told


def methods(reply: Reply) -> list[Any]:
    return [m.get("method", "result") for m in reply.messages]


@pytest.mark.req("O9", "W14")
@pytest.mark.case("M-07")
def test_a_change_goes_to_each_stream_that_asked_for_it_and_to_no_other() -> None:
    http = Served()
    tools = http.listen(1, toolsListChanged=True)
    assert tools.streams
    assert tools.messages[0]["params"] == {"_meta": {ID: 1}, "notifications": {"toolsListChanged": True}}
    prompts = http.listen("1", promptsListChanged=True)
    same_id = http.listen(1, toolsListChanged=True, resourceSubscriptions=["a:/"])
    assert http.tool("add", name="new").json["result"]["content"][0]["text"] == "added"
    assert methods(tools) == methods(same_id) == [ACKNOWLEDGED, TOOLS]
    assert tools.messages[1]["params"]["_meta"] == {ID: 1}
    assert methods(prompts) == [ACKNOWLEDGED]
    assert "new" in [t["name"] for t in http.ask("tools/list").json["result"]["tools"]]
    http.tool("remove", name="new")
    http.tool("touch", uri="a:/")
    http.tool("touch", uri="b:/")
    assert methods(tools) == [ACKNOWLEDGED, TOOLS, TOOLS]
    assert methods(same_id) == [ACKNOWLEDGED, TOOLS, TOOLS, UPDATED]
    assert http.change(ListKind.PROMPTS)
    assert methods(prompts) == [ACKNOWLEDGED, PROMPTS]
    assert prompts.messages[1]["params"]["_meta"] == {ID: "1"}
    assert not http.change(ListKind.RESOURCES)


@pytest.mark.req("W14", "O8")
def test_legacy_sessions_and_modern_streams_hear_of_the_same_change() -> None:
    http = Served()
    client = Client(http)
    own = client.get()
    assert client.call("resources/subscribe", {"uri": "a:/"}).json["result"] == {}
    stream = http.listen(toolsListChanged=True, resourceSubscriptions=["a:/"])
    assert http.server.watched == {"a:/"}
    assert [e.uri for e in http.of(ResourceWatched)] == ["a:/", "a:/"], "one engine each"
    http.change()
    http.tool("touch", uri="a:/")
    assert [m["method"] for m in own.messages if "method" in m] == [TOOLS, UPDATED]
    assert methods(stream) == [ACKNOWLEDGED, TOOLS, UPDATED]
    assert client.call("resources/unsubscribe", {"uri": "a:/"}).json["result"] == {}
    http.tool("touch", uri="a:/")
    assert [m["method"] for m in own.messages if "method" in m] == [TOOLS, UPDATED]
    http.leave(stream)
    assert http.server.watched == frozenset()
    assert client.post(call("resources/subscribe", {"uri": 1}, id=9)).json["error"]["code"] == -32602


@pytest.mark.req("O9")
@pytest.mark.case("R-06")
def test_a_stream_lasts_until_its_client_leaves() -> None:
    http = Served(response_timeout=20.0, keep_alive=15.0)
    stream = http.listen(toolsListChanged=True)
    http.advance(100.0)
    assert not stream.ended
    assert stream.comments == 6
    http.change()
    http.leave(stream)
    assert not http.change()
    assert methods(stream) == [ACKNOWLEDGED, TOOLS]
    assert not any(http.server.stats()[n] for n in ("exchanges", "open_requests", "subscriptions"))


@pytest.mark.req("O9", "O10")
@pytest.mark.case("M-08")
def test_the_end_of_the_server_is_a_result_and_the_end_of_the_stream() -> None:
    http = Served()
    streams = [http.listen(id, toolsListChanged=True) for id in (1, "a")]
    http.server.close(0.0)
    http.drain()
    for stream, id in zip(streams, (1, "a"), strict=True):
        assert stream.ended
        assert methods(stream) == [ACKNOWLEDGED, "result"]
        last = stream.messages[-1]
        assert (last["id"], last["result"]["_meta"][ID]) == (id, id)


@pytest.mark.req("O10")
@pytest.mark.parametrize("graceful", [True, False])
def test_the_server_ends_one_stream(graceful: bool) -> None:
    http = Served()
    first, second = (http.listen(toolsListChanged=True) for _ in range(2))
    http.server.end_subscription(http.server.subscriptions[0], now=0.0, graceful=graceful)
    http.drain()
    assert first.ended
    assert methods(first)[1:] == ["result" if graceful else "notifications/cancelled"]
    assert not second.ended
    assert len(http.server.subscriptions) == 1


@pytest.mark.req("O9")
@pytest.mark.parametrize(
    ("app", "params", "headers", "status", "code"),
    [
        (App("x"), {"notifications": {}}, {}, 404, -32601),
        (None, {}, {}, 400, -32602),
        (None, {"notifications": {"toolsListChanged": 1}}, {}, 400, -32602),
        (None, {"notifications": {}}, {"accept": "application/json"}, 406, None),
    ],
)
def test_a_refusal_is_no_stream(
    app: App | None, params: Any, headers: dict[str, Any], status: int, code: int | None
) -> None:
    http = Served(app)
    reply = http.ask("subscriptions/listen", params, **headers)
    assert (reply.status, reply.ended) == (status, True)
    assert reply.code == code if code is not None else not reply.streams
    assert http.of(MessageIgnored)
    assert not http.server.stats()["exchanges"]


@pytest.mark.req("O9")
def test_a_client_that_takes_event_streams_only_is_served() -> None:
    http = Served()
    reply = http.ask("subscriptions/listen", {"notifications": {}}, accept="text/event-stream")
    assert reply.streams
    assert http.said[0].fault is PeerFault.WRONG_MEDIA_TYPE  # type: ignore[attr-defined]


@pytest.mark.req("O9")
def test_streams_are_bounded_as_all_exchanges_are() -> None:
    http = Served(max_exchanges=2)
    for _ in range(2):
        assert http.listen(toolsListChanged=True).streams
    assert http.listen(toolsListChanged=True).status == 503
    assert http.one(LimitHit).limit == "max_exchanges"


@pytest.mark.req("W14")
def test_a_resource_that_changes_often_is_told_once_to_a_client_that_comes_back() -> None:
    http = Served()
    client = Client(http)
    client.call("resources/subscribe", {"uri": "a:/"})
    for uri in ("a:/", "b:/", "a:/"):
        http.server.notify_updated(uri, now=0.0)
    assert [m["params"] for m in client.get().messages if m.get("method") == UPDATED] == [{"uri": "a:/"}]


# both ends --------------------------------------------------------------------------------------


class Both(Pair):
    """Our client and our server."""

    def __init__(self, version: str = MODERN, **options: Any) -> None:
        super().__init__(version, app=demo(), **options)
        self.start()

    def listen(self, **wanted: Any) -> Any:
        call = self.link.engine.listen(now=self.now, **(wanted or {"tools": True}))
        self.pump()
        return call

    def change(self) -> None:
        self.server.notify_changed(ListKind.TOOLS, now=self.now)
        self.server.notify_updated("a:/", now=self.now)
        self.pump()


@pytest.mark.req("O1", "O3", "O8", "O9")
@pytest.mark.parametrize("version", VERSIONS)
def test_both_ends_mean_the_same_in_every_revision(version: str) -> None:
    pair = Both(version)
    call = pair.listen(tools=True, resources=["a:/", "b:/"])
    assert pair.link.one(SubscriptionOpened).call is call
    assert pair.link.one(SubscriptionOpened).refused == SubscriptionFilter()
    pair.change()
    assert [(e.kind, e.call) for e in pair.link.of(ListChanged)] == [(ListKind.TOOLS, call)]
    assert [(e.uri, e.call) for e in pair.link.of(ResourceUpdated)] == [("a:/", call)]
    pair.advance(300.0)
    assert not call.done, "a quiet subscription lasts"
    pair.change()
    assert len(pair.link.of(ListChanged)) == 2
    pair.link.engine.cancel(call, now=pair.now)
    pair.pump()
    assert pair.link.one(SubscriptionClosed).reason is CloseReason.LOCAL
    assert not pair.server.watched
    assert not pair.server.subscriptions
    pair.change()
    assert len(pair.link.of(ResourceUpdated)) == 2
    assert not pair.link.of(RequestFailed)
    assert pair.link.engine.stats()["subscriptions"] == 0


@pytest.mark.req("O5", "O10")
@pytest.mark.case("M-08")
@pytest.mark.parametrize(
    ("how", "reason"),
    [("close", CloseReason.GRACEFUL), ("abrupt", CloseReason.GRACEFUL), ("cut", CloseReason.LOST)],
)
def test_how_a_stream_ends_is_how_the_subscription_does(how: str, reason: CloseReason) -> None:
    pair = Both()
    call = pair.listen()
    if how == "close":
        pair.server.close(pair.now)
    elif how == "abrupt":
        [request] = pair.server.subscriptions
        pair.server.end_subscription(request, now=pair.now, graceful=False)
    else:
        pair.cut_off()
    pair.advance(100.0)
    event = pair.link.one(SubscriptionClosed)
    assert (event.call, event.reason) == (call, reason)
    assert len(pair.posted("subscriptions/listen")) == 1, "never asked again in silence"
    if how == "cut":
        assert isinstance(event.error, HttpFailure)


@pytest.mark.req("O6")
def test_a_stream_that_breaks_is_asked_for_again() -> None:
    pair = Both()
    call = pair.listen(tools=True, relisten=Relisten(delay=1.0))
    pair.cut_off()
    assert pair.link.one(SubscriptionInterrupted).call is call
    pair.change()
    assert not pair.link.of(ListChanged)
    pair.advance(1.0)
    assert [type(e) for e in pair.link.said[-2:]] == [SubscriptionOpened, ChangesMissed]
    pair.change()
    assert pair.link.one(ListChanged).call is call
    assert len(pair.server.subscriptions) == 1


@pytest.mark.req("O2")
def test_a_stream_without_an_acknowledgment_is_closed() -> None:
    pair = Both()
    call = pair.link.engine.listen(tools=True, now=0.0)
    while pair.client.next_op() is not None:
        pass
    pair.link.now = 5.0
    pair.client.handle_timeout(5.0)
    op = pair.client.next_op()
    assert isinstance(op, AbortExchange)
    pair.pump()
    assert pair.link.one(RequestFailed).call is call


@pytest.mark.req("O8")
@pytest.mark.parametrize("way", ["not asked for", "not there"])
def test_without_a_stream_of_its_own_a_legacy_server_cannot_be_listened_to(way: str) -> None:
    pair = Both(LEGACY, http={"listen": way == "not there"})
    if way == "not there":
        pair.link.engine.pushes_ended(HttpFailure("405"), now=0.0)
    call = pair.listen()
    assert pair.link.one(RequestFailed).call is call


@pytest.mark.req("O5", "O8")
def test_a_legacy_subscription_ends_with_the_servers_own_stream() -> None:
    pair = Both(LEGACY)
    call = pair.listen(resources=["a:/"])
    session, standing = pair.server.sessions[0], pair.client._standing
    assert standing is not None
    pair.client._standing_failed(standing, HttpFailure("gone", status=403))
    pair.pump()
    event = pair.link.one(SubscriptionClosed)
    assert (event.call, event.reason) == (call, CloseReason.LOST)
    assert pair.link.one(ServerStreamEnded).error is event.error
    assert not session.engine.watched, "the server is told that nobody hears of it"
