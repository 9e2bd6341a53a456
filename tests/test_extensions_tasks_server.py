"""Tasks, the server's side: handlers that go on when their request is answered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from typing import Any

import pytest

from sansmcp import App, Context, ErrorCode, LocalProtocolError
from sansmcp.context import Host
from sansmcp.events import RequestReceived, SendNotification, SendResponse
from sansmcp.extensions.tasks import TASKS_EXTENSION, MemoryTaskStore, ServerTasks, TaskStore
from sansmcp.extensions.tasks.sqlite import SqliteTaskStore

from .support import CAPABILITIES_KEY, meta, request
from .tasks_support import OPEN, Server, asked, task_app

ACCEPTED = {"action": "accept", "content": {"name": "Bo"}}
NO_TASKS: dict[str, Any] = {"elicitation": {}}


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest) -> Iterator[TaskStore]:
    if request.param == "memory":
        yield MemoryTaskStore()
        return
    connection = sqlite3.connect(":memory:")
    yield SqliteTaskStore(connection)
    connection.close()


def served(store: TaskStore | None = None, **options: Any) -> Server:
    app_options = {k: options.pop(k) for k in ("principal",) if k in options}
    return Server(
        task_app(ServerTasks(store=MemoryTaskStore() if store is None else store, **options), **app_options)
    )


# becoming a task ---------------------------------------------------------------------------------


@pytest.mark.req("X7", "X2")
def test_a_task_is_there_before_its_answer_is(store: TaskStore) -> None:
    server = served(store, ttl=60.0, poll_interval=0.25)
    created = server.call("asks")
    assert created == {
        "resultType": "task",
        "taskId": created["taskId"],
        "status": "working",
        "createdAt": "1970-01-01T00:16:40.000Z",
        "lastUpdatedAt": "1970-01-01T00:16:40.000Z",
        "ttlMs": 60_000,
        "pollIntervalMs": 250,
    }
    assert len(created["taskId"]) == 36
    assert store.get(created["taskId"]) is not None
    got = server.get(created["taskId"])
    assert got["resultType"] == "complete"
    assert got["status"] == "input_required"


@pytest.mark.req("X7")
@pytest.mark.parametrize("tool", ["asks_twice", "adds", "fails"])
def test_the_store_has_it_when_the_answer_leaves(tool: str) -> None:
    seen: list[str] = []

    class Watched(MemoryTaskStore):
        def put(self, record: Any) -> None:
            super().put(record)
            seen.append(record.status)

    server = served(Watched())
    answered: list[int] = []
    respond = server.engine.respond

    def watched(*given: Any, **options: Any) -> bool:
        answered.append(len(seen))
        return respond(*given, **options)

    server.engine.respond = watched  # type: ignore[method-assign]
    server.call(tool, {"a": 1, "b": 2} if tool == "adds" else {})
    assert answered == [1]


@pytest.mark.req("X7", "X13")
@pytest.mark.parametrize(
    "capabilities", [{}, NO_TASKS, {"extensions": {}}, {"extensions": {TASKS_EXTENSION: None}}]
)
def test_a_client_without_tasks_gets_none(capabilities: dict[str, Any]) -> None:
    server = served()
    plain = server.call("adds", {"a": 1, "b": 2}, capabilities=capabilities)
    assert plain["content"][0]["text"] == "3"
    for method, params in (
        ("tools/call", {"name": "needs_tasks"}),
        ("tasks/get", {"taskId": "none"}),
        ("tasks/update", {"taskId": "none", "inputResponses": {}}),
        ("tasks/cancel", {"taskId": "none"}),
        ("subscriptions/listen", {"notifications": {"taskIds": ["none"]}}),
    ):
        error = server.ask(method, params, capabilities=capabilities)["error"]
        assert error["code"] == -32021
        assert error["data"] == {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    assert len(server.ignored) == 4


@pytest.mark.req("X7")
def test_legacy_clients_are_served_as_ever() -> None:
    server = served()
    init = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
    replies: dict[int, Any] = {}
    for number, (method, params) in enumerate(
        [
            ("initialize", init),
            ("tools/call", {"name": "adds", "arguments": {"a": 1, "b": 2}}),
            ("tools/call", {"name": "needs_tasks", "arguments": {}}),
            ("tasks/get", {"taskId": "none"}),
        ]
    ):
        server.engine.receive_message(request(method, params, id=number, modern=False), now=1000.0)
        for event in server.engine.events():
            if isinstance(event, SendResponse):
                replies[number] = event.message
            else:
                server.handlers.handle(event, now=1000.0)
    assert replies[1]["result"]["content"][0]["text"] == "3"
    assert replies[2]["result"]["isError"] is True
    assert TASKS_EXTENSION in replies[2]["result"]["content"][0]["text"]
    assert replies[3]["error"]["code"] == -32601
    assert "extensions" not in replies[0]["result"]["capabilities"]


@pytest.mark.req("X1", "X2")
def test_it_is_declared_and_methods_of_the_older_tasks_are_not_there() -> None:
    server = served()
    capabilities = server.result("server/discover")["capabilities"]
    assert capabilities["extensions"] == {TASKS_EXTENSION: {}}
    assert "tasks" not in capabilities
    for method in ("tasks/list", "tasks/result"):
        assert server.code(method, {"taskId": "x"}) == -32601
    assert Server(App("none")).code("tasks/get", {"taskId": "x"}) == -32601


@pytest.mark.req("X7")
def test_modes_and_their_own_times() -> None:
    server = served()
    assert server.call("plain")["content"][0]["text"] == "plain"
    created = server.call("needs_tasks")
    assert (created["resultType"], created["ttlMs"], created["pollIntervalMs"]) == ("task", None, 2000)


@pytest.mark.req("X7")
def test_a_handler_may_ask_first_and_then_become_a_task() -> None:
    server = served()
    asked_first = server.call("starts")
    assert asked_first["resultType"] == "input_required"
    assert "taskId" not in asked_first
    created = server.result(
        "tools/call", {"name": "starts", "arguments": {}, "inputResponses": {"who": ACCEPTED}}
    )
    assert (created["resultType"], created["ttlMs"], created["pollIntervalMs"]) == ("task", 7000, 3000)
    task_id = created["taskId"]
    assert set(server.get(task_id)["inputRequests"]) == {"more"}
    server.result("tasks/update", {"taskId": task_id, "inputResponses": {"more": {"action": "decline"}}})
    assert server.get(task_id)["result"]["content"][0]["text"] == "Bo decline"
    refused = server.ask(
        "tools/call",
        {"name": "starts", "arguments": {}, "inputResponses": {"who": ACCEPTED}},
        capabilities=NO_TASKS,
    )
    assert refused["error"]["code"] == -32021


# what comes of it --------------------------------------------------------------------------------


@pytest.mark.req("X7")
@pytest.mark.parametrize(
    ("tool", "status", "member"),
    [
        ("adds", "completed", {"content": [{"type": "text", "text": "3"}], "resultType": "complete"}),
        (
            "fails",
            "completed",
            {"content": [{"type": "text", "text": "no luck"}], "isError": True, "resultType": "complete"},
        ),
        ("breaks", "failed", {"code": -32603, "message": "it broke", "data": {"why": 1}}),
        ("no_json", "failed", {"code": -32603, "message": "the server failed to carry this out (error 1)"}),
    ],
)
def test_ends(store: TaskStore, tool: str, status: str, member: dict[str, Any]) -> None:
    server = served(store)
    task_id = server.begin(tool, {"a": 1, "b": 2} if tool == "adds" else {})
    got = server.get(task_id)
    assert got["status"] == status
    assert got.get("result" if status == "completed" else "error") == member
    assert ("error" in got) == (status == "failed") == ("statusMessage" in got)
    assert server.app._extensions[0].stats() == {"tasks": 1, "running_tasks": 0}  # type: ignore[attr-defined]
    assert server.result("tasks/cancel", {"taskId": task_id}) == {"resultType": "complete"}
    assert server.get(task_id) == got


@pytest.mark.req("X7")
def test_what_a_handler_says_meanwhile() -> None:
    server = served()
    got = server.get(server.begin("says"))
    assert got["statusMessage"] == "half of it"
    assert not server.told


@pytest.mark.req("X7")
def test_ids_cannot_be_guessed_and_need_entropy() -> None:
    server = served()
    assert server.begin("adds", {"a": 1, "b": 1}) != server.begin("adds", {"a": 1, "b": 1})
    alone = Server(task_app(ServerTasks()), entropy=None)
    assert alone.code("tools/call", {"name": "needs_tasks"}) == -32603


@pytest.mark.req("X7")
@pytest.mark.parametrize("params", [{}, {"taskId": 1}, {"taskId": "0" * 36}, {"taskId": ""}])
@pytest.mark.parametrize("method", ["tasks/get", "tasks/update", "tasks/cancel"])
def test_an_unknown_task(method: str, params: dict[str, Any]) -> None:
    assert served().code(method, {**params, "inputResponses": {}}) == -32602


@pytest.mark.req("X7")
def test_a_task_of_somebody_else_is_as_unknown() -> None:
    who = ["bo"]
    server = served(principal=lambda request: who[0])
    task_id = server.begin("asks")
    unknown = server.ask("tasks/get", {"taskId": "0" * 36})["error"]
    who[0] = "al"
    for method in ("tasks/get", "tasks/update", "tasks/cancel"):
        error = server.ask(method, {"taskId": task_id, "inputResponses": {}})["error"]
        assert error == unknown
    who[0] = "bo"
    assert server.get(task_id)["status"] == "input_required"


# questions ---------------------------------------------------------------------------------------


@pytest.mark.req("X5", "X7")
def test_answers_come_one_by_one(store: TaskStore) -> None:
    server = served(store)
    task_id = server.begin("asks_twice")
    got = server.get(task_id)
    assert {k: q["method"] for k, q in got["inputRequests"].items()} == dict.fromkeys(
        ("a", "b"), "elicitation/create"
    )
    update = {"taskId": task_id, "inputResponses": {"a": ACCEPTED, "other": ACCEPTED}}
    assert server.result("tasks/update", update) == {"resultType": "complete"}
    assert set(server.get(task_id)["inputRequests"]) == {"b"}
    server.result("tasks/update", update)  # once more: nothing
    assert set(server.get(task_id)["inputRequests"]) == {"b"}
    server.result("tasks/update", {"taskId": task_id, "inputResponses": {"b": {"action": "decline"}}})
    (key,) = server.get(task_id)["inputRequests"]
    assert key not in ("a", "b")
    server.result("tasks/update", {"taskId": task_id, "inputResponses": {key: {"action": "cancel"}}})
    assert server.get(task_id)["result"]["content"][0]["text"] == "accept decline cancel"
    assert server.handlers.stats() == {"waiting_handlers": 0}


@pytest.mark.req("X5")
@pytest.mark.parametrize(
    "answer", [{}, {"action": "odd"}, {"action": "accept", "content": {}}, {"action": "accept"}, 1]
)
def test_an_answer_that_is_none_changes_nothing(answer: Any) -> None:
    server = served()
    task_id = server.begin("asks")
    before = server.get(task_id)
    update = {"taskId": task_id, "inputResponses": {"elicit-1": answer}}
    error = server.ask("tasks/update", update)["error"]
    assert error["code"] == -32602
    assert "elicit-1" in error["message"]
    assert server.get(task_id) == before
    assert server.code("tasks/update", {"taskId": task_id, "inputResponses": []}) == -32602


@pytest.mark.req("X5")
def test_a_task_asks_only_what_its_client_declared() -> None:
    server = served()
    called = {"name": "samples", "arguments": {}}
    created = server.result("tools/call", called, capabilities={"extensions": {TASKS_EXTENSION: {}}})
    got = server.get(created["taskId"])
    assert got["error"]["code"] == ErrorCode.MISSING_CLIENT_CAPABILITY


# the end before the end --------------------------------------------------------------------------


@pytest.mark.req("X7")
def test_to_cancel_ends_the_handler(store: TaskStore) -> None:
    ended: list[str] = []
    tasks = ServerTasks(store=store)
    app = App("x", extensions=[tasks])

    @app.tool()
    @tasks.task()
    async def waits(ctx: Context) -> None:
        try:
            await ctx.elicit("?", {"type": "object", "properties": {}})
        finally:
            ended.append("ended")

    server = Server(app)
    task_id = server.begin("waits")
    assert server.result("tasks/cancel", {"taskId": task_id}) == {"resultType": "complete"}
    assert ended == ["ended"]
    got = server.get(task_id)
    assert got["status"] == "cancelled"
    assert not {"result", "error", "inputRequests"} & got.keys()
    server.result("tasks/update", {"taskId": task_id, "inputResponses": {"elicit-1": ACCEPTED}})
    assert server.get(task_id) == got
    assert server.handlers.stats() == {"waiting_handlers": 0}


@pytest.mark.req("X7")
def test_tasks_are_forgotten_when_their_time_is_over(store: TaskStore) -> None:
    server = served(store, ttl=10.0)
    done, waiting = server.begin("adds", {"a": 1, "b": 1}), server.begin("asks")
    server.now += 9.0
    assert server.get(done)["status"] == "completed"
    server.now += 1.0
    for task_id in (done, waiting):
        assert server.code("tasks/get", {"taskId": task_id}) == -32602
    assert len(store) == 0
    assert server.handlers.stats() == {"waiting_handlers": 0}


@pytest.mark.req("X7")
def test_there_are_not_more_tasks_than_allowed(store: TaskStore) -> None:
    server = served(store, max_tasks=1)
    server.begin("asks")
    assert server.call("adds", {"a": 1, "b": 1})["content"][0]["text"] == "2"
    error = server.ask("tools/call", {"name": "needs_tasks"})["error"]
    assert (error["code"], error["data"]) == (-32603, {"limit": "max_tasks"})


@pytest.mark.req("X7")
def test_a_task_outlives_its_server() -> None:
    connection = sqlite3.connect(":memory:")
    first = served(SqliteTaskStore(connection))
    done, waiting = first.begin("adds", {"a": 1, "b": 2}), first.begin("asks")
    second = served(SqliteTaskStore(connection))
    assert second.get(done)["result"]["content"][0]["text"] == "3"
    got = second.get(waiting)
    assert got["status"] == "failed"
    assert got["error"] == {
        "code": -32603,
        "message": "the task was interrupted: the server was started anew while it was at work",
    }
    assert got["statusMessage"] == got["error"]["message"]
    connection.close()


@pytest.mark.req("X7")
def test_what_served_it_stops() -> None:
    server = served()
    task_id = server.begin("asks")
    server.detach()
    assert server.get(task_id)["error"]["message"].endswith("the server stopped while it was at work")
    server.detach()
    server.app._extensions[0].host_gone(Host())


@pytest.mark.req("X7")
def test_tasks_of_one_app_are_not_those_of_another() -> None:
    tasks = ServerTasks()
    App("one", extensions=[tasks])
    with pytest.raises(LocalProtocolError, match="another App"):
        App("two", extensions=[tasks])
    for times in ({"ttl": 0.0}, {"poll_interval": -1.0}, {"poll_interval": 0}, {"ttl": float("inf")}):
        with pytest.raises(LocalProtocolError, match="positive"):
            ServerTasks(**times)
        with pytest.raises(LocalProtocolError, match="positive"):
            tasks.task(**times)


@pytest.mark.req("X7")
def test_no_id_of_a_task_is_shown() -> None:
    server = served()
    task_id = server.begin("asks")
    tasks = server.app._extensions[0]
    assert isinstance(tasks, ServerTasks)
    running = tasks._running[task_id]
    for thing in (running, running.record, tasks, tasks.store):
        assert task_id not in repr(thing)


# telling -----------------------------------------------------------------------------------------


@pytest.mark.req("X8")
def test_whoever_listens_is_told_all_that_could_be_asked() -> None:
    server = served()
    task_id = server.begin("asks")
    body: dict[str, Any] = {
        "notifications": {"taskIds": [task_id, "other", task_id]},
        "_meta": {**meta(), CAPABILITIES_KEY: OPEN},
    }
    listen: dict[str, Any] = {"jsonrpc": "2.0", "id": "listen", "method": "subscriptions/listen"}
    listen["params"] = body
    server.engine.receive_message(listen, now=server.now)
    (opened,) = [e.message for e in server.engine.events() if isinstance(e, SendNotification)]
    assert opened["params"]["notifications"] == {"taskIds": [task_id]}
    server.result("tasks/update", {"taskId": task_id, "inputResponses": {"elicit-1": ACCEPTED}})
    got = server.get(task_id)
    told = [m["params"] for m in server.told if m["method"] == "notifications/tasks"]
    assert [p["status"] for p in told] == ["working", "completed"]
    assert told[-1].pop("_meta") == {"io.modelcontextprotocol/subscriptionId": "listen"}
    assert told[-1] == {k: v for k, v in got.items() if k != "resultType"}
    assert server.engine.stats()["listened_topics"] == 1
    server.engine.receive_message(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": "listen"}},
        now=server.now,
    )
    assert server.engine.stats()["listened_topics"] == 0


@pytest.mark.req("X8")
def test_a_filter_that_is_none() -> None:
    server = served()
    assert server.code("subscriptions/listen", {"notifications": {"taskIds": "t"}}) == -32602
    assert server.code("subscriptions/listen", {"notifications": {"taskIds": [1]}}) == -32602
    many = {"notifications": {"taskIds": [str(n) for n in range(2000)]}}
    assert server.code("subscriptions/listen", many) == -32603


class Broken(MemoryTaskStore):
    """Does not keep what is not new."""

    def put(self, record: Any) -> None:
        if self.get(record.task_id) is not None:
            raise OSError("the disk is full")
        super().put(record)


@pytest.mark.req("X7")
def test_a_store_that_fails_is_told_and_harms_nobody_else() -> None:
    errors: list[BaseException] = []
    tasks = ServerTasks(store=Broken())
    app = App("x", extensions=[tasks], on_error=lambda error, number: errors.append(error))

    @app.tool()
    @tasks.task()
    def works() -> str:
        return "done"

    server = Server(app)
    assert server.get(server.begin("works"))["status"] == "working"
    assert [str(e) for e in errors] == ["the disk is full"]
    assert tasks.stats()["running_tasks"] == 0

    def breaks(task_id: str) -> Any:
        raise OSError("gone")

    tasks.store.get = breaks  # type: ignore[method-assign]
    assert server.code("tasks/get", {"taskId": "0"}) == -32603
    assert server.code("subscriptions/listen", {"notifications": {"taskIds": ["0"]}}) == -32603


@pytest.mark.req("X7")
def test_a_store_that_keeps_nothing_makes_no_task() -> None:
    class Full(MemoryTaskStore):
        def put(self, record: Any) -> None:
            raise OSError("the disk is full")

    server = served(Full())
    assert server.call("needs_tasks")["isError"] is True
    assert server.app._extensions[0].stats() == {"tasks": 0, "running_tasks": 0}  # type: ignore[attr-defined]


@pytest.mark.req("X7")
@pytest.mark.parametrize("task_id", ["\ud800", "\0", "é", "x" * 100_000])
def test_an_id_that_no_server_makes(store: TaskStore, task_id: str) -> None:
    server = served(store)
    assert server.code("tasks/get", {"taskId": task_id}) == -32602
    server.engine.receive_message(
        asked("subscriptions/listen", {"notifications": {"taskIds": [task_id]}}), now=server.now
    )
    (opened,) = [e.message for e in server.engine.events() if isinstance(e, SendNotification)]
    assert opened["params"]["notifications"] == {}


def test_a_record_is_plain_json() -> None:
    store = MemoryTaskStore()
    server = served(store)
    for tool in ("asks", "fails", "breaks"):
        record = store.get(server.begin(tool))
        assert record is not None
        json.dumps(record.to_detailed())
    assert len(store.unfinished()) == 1
    assert repr(store) == "<MemoryTaskStore of 3>"
    assert not [e for e in server.engine.events() if isinstance(e, RequestReceived)]
