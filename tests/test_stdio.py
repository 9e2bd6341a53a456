"""The child process as ops and deadlines: spawn, restart, shutdown ladder, last words."""

from __future__ import annotations

from typing import Any

import pytest

from sansmcp import (
    NO_RESTART,
    ClientEngine,
    CloseWrite,
    Command,
    ConnectionEnded,
    ConnectTimeout,
    EraDecided,
    Kill,
    Limits,
    LocalProtocolError,
    PeerGone,
    RequestFailed,
    RestartPolicy,
    ResultReady,
    SessionEnded,
    ShutdownLadder,
    Spawn,
    SpawnFailed,
    StdioClient,
    Terminate,
    Timeouts,
    Write,
    child_environment,
)
from sansmcp.states import ProcessState

from .support import DISCOVER, ME, initialize_result
from .test_stream import Pump, line


class Child(Pump):
    """A stdio transport and the process that the test plays."""

    def __init__(self, **options: Any) -> None:
        engine_options = {k: options.pop(k) for k in ("timeouts", "mode", "prior", "limits") if k in options}
        engine = ClientEngine(ME, now=0.0, **engine_options)
        self.stdio = StdioClient(engine, Command(["server", "--x"], {"A": "b"}), now=0.0, **options)
        super().__init__(self.stdio)
        self.now = 0.0
        self.stdio.start(0.0)
        self.drain()

    @property
    def conn(self) -> int:
        return max(op.conn for op in self.ops if isinstance(op, Spawn))

    def kinds(self) -> list[str]:
        return [type(op).__name__ for op in self.ops]

    def open(self) -> Child:
        self.stdio.opened(self.conn, self.now)
        self.drain()
        return self

    def say(self, message: Any) -> Child:
        self.stdio.receive_data(self.conn, line(message), self.now)
        self.drain()
        return self

    def reply(self, result: Any) -> Child:
        request_id = self.written[-1]["id"]
        return self.say({"jsonrpc": "2.0", "id": request_id, "result": result})

    def exit(self, code: int | None = 0, tail: str = "", *, eof: bool = True) -> Child:
        if eof:
            self.stdio.receive_eof(self.conn, self.now)
        self.stdio.exited(self.conn, code, tail, self.now)
        self.drain()
        return self

    def advance(self, seconds: float) -> Child:
        end = self.now + seconds
        while (when := self.stdio.next_timeout()) is not None and when <= end:
            self.now = max(self.now, when)
            self.stdio.handle_timeout(self.now)
            self.drain()
        self.now = end
        return self

    def modern(self) -> Child:
        return self.open().reply(DISCOVER)

    def error(self) -> Any:
        ended = self.of(SessionEnded)
        assert len(ended) == 1
        return ended[0].error


@pytest.mark.req("Q4", "Q6")
def test_the_life_of_a_server() -> None:
    child = Child()
    spawn = child.ops[0]
    assert isinstance(spawn, Spawn)
    assert (list(spawn.argv), dict(spawn.env)) == (["server", "--x"], {"A": "b"})
    assert not child.written, "nothing is sent before it runs"
    child.modern()
    assert child.of(EraDecided)
    child.stdio.close(child.now)
    child.drain()
    assert child.kinds()[-1] == "CloseWrite"
    child.exit(0)
    assert child.kinds()[-1] == "Kill", "what it left behind ends too"
    assert child.stdio.finished
    assert child.error() is None
    assert not child.of(PeerGone)
    assert child.stdio.next_timeout() is None


@pytest.mark.req("Q4")
@pytest.mark.case("R-02", "R-03", "R-08")
def test_the_ladder_step_by_step() -> None:
    child = Child(ladder=ShutdownLadder(after_close=2.0, after_terminate=3.0)).modern()
    child.stdio.close(child.now)
    child.stdio.close(child.now)
    child.drain()
    start = child.kinds().index("CloseWrite")
    child.advance(1.9)
    assert child.kinds()[start:] == ["CloseWrite"]
    child.advance(0.1)
    assert child.kinds()[start:] == ["CloseWrite", "Terminate"]
    child.advance(2.9)
    assert child.kinds()[start:] == ["CloseWrite", "Terminate"]
    child.advance(0.1)
    assert child.kinds()[start:] == ["CloseWrite", "Terminate", "Kill"]
    child.advance(100)
    finished = [child.stdio.finished]
    child.exit(-9)
    finished.append(child.stdio.finished)
    assert finished == [False, True]
    assert len(child.of(SessionEnded)) == 1


@pytest.mark.req("A13", "Q7")
@pytest.mark.case("V-03")
def test_a_server_that_dies_on_the_probe_is_started_once_more() -> None:
    child = Child().open()
    assert child.written[-1]["method"] == "server/discover"
    child.exit(1, "unknown method")
    child.advance(0.0)
    assert [op.conn for op in child.ops if isinstance(op, Spawn)] == [1, 2]
    child.open()
    assert child.written[-1]["method"] == "initialize"
    child.reply(initialize_result())
    assert child.of(EraDecided)[0].era.value == "legacy"
    assert not child.of(SessionEnded)


@pytest.mark.req("A13", "Q6", "Q7")
def test_a_server_that_dies_twice_is_an_error_with_its_last_words() -> None:
    child = Child()
    call = child.stdio.engine.call_tool("t", now=0.0)
    child.open().exit(1, "first")
    child.advance(0.0)
    child.open().exit(3, "Traceback: no such module")
    error = child.error()
    assert isinstance(error, ConnectionEnded)
    assert (error.returncode, error.stderr_tail) == (3, "Traceback: no such module")
    failed = child.of(RequestFailed)
    assert [e.call for e in failed] == [call]
    assert failed[0].error.returncode == 3
    assert child.stdio.finished


@pytest.mark.req("A13")
def test_a_silent_server_that_dies_on_initialize_is_started_once_more() -> None:
    child = Child(timeouts=Timeouts(probe=5.0)).open().advance(5.0)
    assert child.written[-1]["method"] == "initialize"
    child.exit(1)
    child.advance(0.0)
    assert child.now == 5.0, "no delay is added"
    child.open()
    assert child.written[-1]["method"] == "initialize"
    child.reply(initialize_result("2024-11-05"))
    assert child.of(EraDecided)


@pytest.mark.parametrize("phase", ["before", "after"])
def test_a_server_that_cannot_be_started_says_why(phase: str) -> None:
    child = Child()
    call = child.stdio.engine.call_tool("t", now=0.0)
    if phase == "after":
        child.open().exit(1)
        child.advance(0.0)
    child.stdio.failed(child.conn, "No such file or directory", 0.0)
    child.drain()
    error = child.error()
    assert isinstance(error, SpawnFailed)
    assert "cannot start server: No such file or directory" in str(error)
    assert [e.call for e in child.of(RequestFailed)] == [call]
    assert child.stdio.finished


@pytest.mark.req("Q9")
def test_a_crashed_modern_server_is_started_again_within_the_policy() -> None:
    child = Child(restart=RestartPolicy(limit=2, window=60.0, delay=0.5)).modern()
    for number in range(2):
        call = child.stdio.engine.call_tool("t", now=child.now)
        child.drain()
        child.exit(1, "boom")
        assert child.of(PeerGone)[-1].restarting
        assert child.of(RequestFailed)[-1].call is call
        waiting = child.stdio.engine.call_tool("u", now=child.now)
        child.drain()
        assert child.stdio.state is ProcessState.WAITING
        child.advance(0.5).open()
        assert child.written[-1]["params"]["name"] == "u"
        child.reply({"resultType": "complete", "content": []})
        assert child.of(ResultReady)[-1].call is waiting
        assert child.conn == number + 2
    child.exit(1, "boom")
    assert not child.of(PeerGone)[-1].restarting
    assert isinstance(child.error(), ConnectionEnded)
    assert len(child.of(EraDecided)) == 1, "the verdict is kept"


@pytest.mark.req("Q9")
def test_restarts_count_within_their_window() -> None:
    child = Child(restart=RestartPolicy(limit=1, window=60.0)).modern()
    child.exit(1).advance(0.5).open()
    child.advance(61.0)
    child.exit(1)
    assert child.of(PeerGone)[-1].restarting


@pytest.mark.req("Q9")
@pytest.mark.parametrize(("allowed", "restarting"), [(True, True), (False, False)])
def test_a_legacy_server_is_restarted_only_when_that_is_asked_for(allowed: bool, restarting: bool) -> None:
    child = Child(restart=RestartPolicy(legacy=allowed)).open()
    child.say({"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "no"}})
    child.reply(initialize_result())
    child.exit(1)
    assert child.of(PeerGone)[-1].restarting is restarting
    if restarting:
        child.advance(0.5).open()
        assert child.written[-1]["method"] == "initialize"


def test_no_restart_means_none() -> None:
    child = Child(restart=NO_RESTART).modern().exit(1)
    assert not child.of(PeerGone)[-1].restarting
    assert child.stdio.finished


def test_closing_while_a_restart_is_due_ends_it() -> None:
    child = Child().modern().exit(1)
    child.stdio.close(child.now)
    child.drain()
    assert child.stdio.finished
    child.advance(10)
    assert child.conn == 1


def test_closing_before_it_runs_ends_it_by_the_ladder() -> None:
    child = Child()
    child.stdio.close(0.0)
    child.drain()
    assert isinstance(child.ops[-1], CloseWrite)
    child.open()
    assert not child.written
    child.exit(0)
    assert child.stdio.finished


def test_output_that_comes_after_the_exit_is_still_read() -> None:
    child = Child().modern()
    call = child.stdio.engine.call_tool("t", now=0.0)
    child.drain()
    request_id = call.request_id
    child.stdio.exited(child.conn, 0, "", child.now)
    child.drain()
    child.say({"jsonrpc": "2.0", "id": request_id, "result": {"resultType": "complete", "content": []}})
    assert child.of(ResultReady)[0].call is call
    child.stdio.receive_eof(child.conn, child.now)
    child.drain()
    assert child.of(PeerGone)


@pytest.mark.parametrize("eof", [True, False])
def test_answers_past_a_limit_count_though_the_child_ended(eof: bool) -> None:
    child = Child(limits=Limits(max_buffered_events=2), restart=NO_RESTART).modern()
    calls = [child.stdio.engine.call_tool("t", now=0.0) for _ in range(9)]
    child.drain()
    body = {"resultType": "complete", "content": []}
    answers = [line({"jsonrpc": "2.0", "id": call.request_id, "result": body}) for call in calls]
    child.stdio.receive_data(child.conn, b"".join(answers), child.now)
    child.exit(0, eof=eof).advance(1)
    assert [event.call for event in child.of(ResultReady)] == calls


@pytest.mark.case("R-02")
def test_a_grandchild_that_holds_the_pipe_open_does_not_hold_us() -> None:
    child = Child(restart=NO_RESTART).modern()
    call = child.stdio.engine.call_tool("t", now=0.0)
    child.drain()
    child.exit(1, eof=False)
    done = [call.done]
    child.advance(0.5)
    done.append(call.done)
    assert done == [False, True]
    assert child.stdio.finished
    assert child.kinds()[-1] == "Kill"


def test_a_server_that_closes_its_output_but_stays_is_ended() -> None:
    child = Child(restart=NO_RESTART).modern()
    call = child.stdio.engine.call_tool("t", now=0.0)
    child.drain()
    child.stdio.receive_eof(child.conn, child.now)
    child.drain()
    child.advance(4.0)
    assert child.kinds()[-3:] == ["CloseWrite", "Terminate", "Kill"]
    child.stdio.exited(child.conn, -9, "", child.now)
    child.drain()
    assert call.done
    assert child.stdio.finished


@pytest.mark.case("R-05")
def test_a_broken_pipe_waits_for_the_exit_that_explains_it() -> None:
    child = Child(restart=NO_RESTART).modern()
    child.stdio.failed(child.conn, "EPIPE", child.now)
    child.drain()
    assert not child.of(SessionEnded)
    child.exit(2, "killed by somebody")
    assert child.error().returncode == 2


@pytest.mark.case("R-07")
def test_a_failed_handshake_reaps_the_child() -> None:
    child = Child(timeouts=Timeouts(probe=1.0, connect=3.0)).open().advance(3.0)
    assert isinstance(child.error(), ConnectTimeout)
    assert child.kinds()[-1] == "CloseWrite"
    child.advance(4.0)
    assert child.kinds()[-2:] == ["Terminate", "Kill"]
    child.exit(-9)
    assert child.stdio.finished
    assert [type(op) for op in child.ops].count(Terminate) == 1
    assert any(isinstance(op, Kill) for op in child.ops)


def test_inputs_of_an_earlier_process_are_ignored() -> None:
    child = Child().modern().exit(1).advance(0.5).open()
    count = len(child.ops)
    child.stdio.receive_data(1, b"late\n", child.now)
    child.stdio.receive_eof(1, child.now)
    child.stdio.exited(1, 0, "", child.now)
    child.stdio.failed(1, "x", child.now)
    child.stdio.opened(1, child.now)
    child.drain()
    assert len(child.ops) == count
    assert child.stdio.state is ProcessState.RUNNING


def test_nothing_is_written_to_a_process_that_is_leaving() -> None:
    child = Child().modern()
    child.stdio.close(child.now)
    child.drain()
    count = len([op for op in child.ops if isinstance(op, Write)])
    child.say({"jsonrpc": "2.0", "id": 5, "method": "ping"})
    assert len([op for op in child.ops if isinstance(op, Write)]) == count


@pytest.mark.req("Q5")
def test_the_environment_is_an_allow_list() -> None:
    environ = {
        "PATH": "/bin",
        "HOME": "/home/x",
        "LC_ALL": "C",
        "SystemRoot": "C:\\",
        "AWS_SECRET_ACCESS_KEY": "s3cret",
        "GITHUB_TOKEN": "s3cret",
        "TERM": "() { evil; }",
    }
    chosen = child_environment(environ, {"MY": "own"})
    assert chosen == {"PATH": "/bin", "HOME": "/home/x", "LC_ALL": "C", "SystemRoot": "C:\\", "MY": "own"}
    assert child_environment(environ, inherit=True)["GITHUB_TOKEN"] == "s3cret"
    shown = repr([Command(["x"], {"K": "s3cret"}), Spawn(1, ["x"], {"K": "s3cret"}, None)])
    assert "s3cret" not in shown


@pytest.mark.parametrize("argv", [[], [""]])
def test_a_command_needs_a_program(argv: list[str]) -> None:
    with pytest.raises(LocalProtocolError):
        Command(argv)
