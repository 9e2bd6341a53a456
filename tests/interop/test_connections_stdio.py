"""Our client against real servers: how a connection begins, what ends a call early, how it all ends."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sansmcp_asyncio
from sansmcp import (
    LEGACY_REVISIONS,
    CallTimeout,
    Command,
    ConnectionEnded,
    Era,
    EraDecided,
    Legacy,
    McpError,
    MessageIgnored,
    PeerFault,
    PeerGone,
    Pin,
    QuirkUsed,
    Revision,
    SansmcpError,
    SessionEnded,
    ShutdownLadder,
    Timeouts,
    UnsupportedProtocolVersion,
    Verdict,
)
from tests.peers.registry import PEERS, Peer

from .known import KNOWN
from .support import (
    Talk,
    asynchronous,
    check,
    connected,
    every_peer,
    needs,
    peers_with,
    prepare,
    text_of,
    usual,
)

pytestmark = pytest.mark.interop

MODERN = Revision.V2026_07_28
PROBE, OPEN = "server/discover", "initialize"
MODERN_PEERS = [name for name, peer in PEERS.items() if peer.era == "modern"]
SILENT = "mcp-1.8.1"


def trail(talk: Talk) -> list[tuple[str, str]]:
    """The evidence for the one decision that was made."""
    (decided,) = talk.of(EraDecided)
    return [(entry.step, entry.outcome) for entry in decided.evidence]


def check_trail(talk: Talk, peer: Peer) -> None:
    """The evidence of a connection that began with a probe names each answer."""
    seen = trail(talk)
    if peer.era == "modern":
        assert seen == [(PROBE, "the server supports 2026-07-28")]
        return
    told = "no answer" if peer.probe == "silence" else f"error {peer.probe}"
    assert seen[0][0] == PROBE
    assert seen[0][1].startswith(told)
    if peer.probe == "silence":
        assert (OPEN, "the server ended with exit code 1") in seen
    assert seen[-1] == (OPEN, f"answered version {peer.legacy_revision}")


# how it begins -----------------------------------------------------------------------------------


@every_peer
@pytest.mark.req("A1", "A2", "A4", "A13", "A16", "D1")
@pytest.mark.case("V-01", "V-02", "V-03")
@asynchronous
async def test_era_is_found_out(name: str, tmp_path: Path) -> None:
    peer, known, talk = PEERS[name], KNOWN[name], Talk()
    silent = peer.probe == "silence"
    timeouts = Timeouts(probe=1.0 if silent else 20.0)
    async with connected(name, tmp_path, talk, timeouts=timeouts) as client:
        assert client.era.value == peer.era
        assert client.revision == (MODERN if peer.era == "modern" else peer.legacy_revision)
        assert client.server_info is not None
        assert client.server_info.name == known.server
        capabilities = client.server_capabilities
        for capability in ("tools", "resources", "prompts", "completions", "logging"):
            assert (getattr(capabilities, capability) is not None) is (capability in known.offers)
        check_trail(talk, peer)
        expected = {
            "modern": [PROBE],
            "legacy": [PROBE, *[OPEN] * (2 if silent else 1), "notifications/initialized"],
        }
        assert talk.methods() == expected[peer.era]
    assert not talk.faults()
    assert [event.error for event in talk.of(SessionEnded)] == [None]


@pytest.mark.parametrize("timeouts", [Timeouts(probe=0.5), Timeouts()], ids=["soon", "default"])
@pytest.mark.req("A13", "A2")
@pytest.mark.case("V-02", "V-03")
@asynchronous
async def test_server_that_dies_of_the_probe(timeouts: Timeouts, tmp_path: Path) -> None:
    """The probe's own timeout, two starts of the server, and nothing else."""
    assert timeouts.probe is not None
    talk, began = Talk(), time.monotonic()
    async with connected(SILENT, tmp_path, talk, timeouts=timeouts) as client:
        assert time.monotonic() - began >= timeouts.probe
        assert talk.methods() == [PROBE, OPEN, OPEN, "notifications/initialized"]
        check_trail(talk, PEERS[SILENT])
        await check(client, KNOWN[SILENT].good[0])


@pytest.mark.parametrize("name", MODERN_PEERS)
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.req("A14", "A2")
@pytest.mark.case("V-02")
@asynchronous
async def test_modern_server_that_answers_the_probe_late(name: str, tmp_path: Path) -> None:
    """It is not there yet when the probe is given up: `initialize` follows, and its answer counts."""
    needs(name)
    talk, launch = Talk(), PEERS[name].launch(tmp_path)
    late = ["sh", "-c", 'sleep 1.2; exec "$@"', "sh", *launch.argv]
    async with sansmcp_asyncio.connect(
        Command(late, launch.env, str(launch.cwd)),
        on_event=talk.on_event,
        on_wire=talk.on_wire,
        timeouts=Timeouts(probe=1.0),
    ) as client:
        refuses = name != "npm-server-2.4.0"
        assert client.era is (Era.MODERN if refuses else Era.LEGACY)
        assert talk.methods()[:2] == [PROBE, OPEN]
        assert talk.methods().count(PROBE) == (2 if refuses else 1)
        assert trail(talk)[0][1].startswith("no answer")
        await check(client, KNOWN[name].good[0])
    assert not talk.faults()


@every_peer
@pytest.mark.req("A10")
@pytest.mark.case("V-10")
@asynchronous
async def test_remembered_verdict_saves_the_probe(name: str, tmp_path: Path) -> None:
    known, first, second = KNOWN[name], Talk(), Talk()
    prepare(name, tmp_path)
    async with connected(
        name, tmp_path, first, timeouts=Timeouts(probe=20.0 if name != SILENT else 0.5)
    ) as a:
        remembered = json.dumps(a.verdict.to_json())
    prior = Verdict.from_json(json.loads(remembered))
    async with connected(name, tmp_path, second, prior=prior) as b:
        assert b.verdict == a.verdict
        if prior.era is Era.MODERN:
            assert not second.sent
        await check(b, known.good[0])
        opening = [] if prior.era is Era.MODERN else [OPEN, "notifications/initialized"]
        assert second.methods() == [*opening, "tools/call"]
    assert not second.faults()


@every_peer
@pytest.mark.req("A9")
@asynchronous
async def test_legacy_mode_sends_no_probe(name: str, tmp_path: Path) -> None:
    peer, talk = PEERS[name], Talk()
    prepare(name, tmp_path)
    async with connected(name, tmp_path, talk, mode=Legacy()) as client:
        assert client.revision == peer.legacy_revision
        await client.ping()
        for ask in KNOWN[name].good:
            await check(client, ask)
        assert not talk.sent_with(PROBE)
        assert talk.sent[0]["params"]["protocolVersion"] == "2025-11-25"
    assert "io.modelcontextprotocol/" not in json.dumps(talk.sent)
    assert not talk.faults()


def pins() -> Iterator[tuple[str, Revision]]:
    """Each peer with each legacy revision; those on the SDK that has been tried already, with one."""
    for name in PEERS:
        for revision in LEGACY_REVISIONS:
            if name not in ("mcp-2.3.0", "fastmcp-4.2.3") or revision is Revision.V2025_06_18:
                yield name, revision


@pytest.mark.parametrize(("name", "revision"), list(pins()))
@pytest.mark.req("A9", "A12", "A18")
@pytest.mark.case("L-07")
@asynchronous
async def test_pinned_to_a_legacy_revision(name: str, revision: Revision, tmp_path: Path) -> None:
    peer, talk = PEERS[name], Talk()
    prepare(name, tmp_path)
    if revision > Revision(peer.legacy_revision):
        with pytest.raises(UnsupportedProtocolVersion) as caught:
            async with connected(name, tmp_path, talk, mode=Pin(revision)):
                pass
        assert (caught.value.requested, caught.value.answered) == (revision, peer.legacy_revision)
        assert talk.methods() == [OPEN]
        return
    async with connected(name, tmp_path, talk, mode=Pin(revision)) as client:
        assert client.revision is revision
        assert talk.sent[0]["params"]["protocolVersion"] == revision.value
        ask = KNOWN[name].good[0]
        assert ask.text in text_of(await client.call_tool(ask.tool, ask.arguments))
        assert set(peer.tools) <= {tool.name for tool in (await client.list_tools()).tools}
    assert not talk.faults()


@every_peer
@pytest.mark.req("A9", "D1")
@asynchronous
async def test_pinned_to_the_modern_revision(name: str, tmp_path: Path) -> None:
    """Nothing is sent to connect. A server that does not know the revision tells it by its answers."""
    peer, known, talk = PEERS[name], KNOWN[name], Talk()
    prepare(name, tmp_path)
    async with connected(name, tmp_path, talk, mode=Pin(MODERN)) as client:
        assert not talk.sent
        if peer.era == "modern":
            await check(client, known.good[0])
            assert not talk.faults()
        elif peer.kind == "reference server":
            # These answer before `initialize` too, in the legacy form: that is understood, and told.
            ask = known.good[0]
            assert not (await client.call_tool(ask.tool, ask.arguments)).is_error
            assert set(talk.faults()) == {PeerFault.MISSING_RESULT_TYPE}
        else:
            with pytest.raises(McpError if peer.probe == -32602 else CallTimeout):
                await client.call_tool("echo", {"text": "x"}, timeout=2.0)
        assert not {PROBE, OPEN} & set(talk.methods())


# what ends a call early --------------------------------------------------------------------------


async def cancelled_call(client: sansmcp_asyncio.Client, talk: Talk, name: str) -> Any:
    """Start a call, cancel it when the server is at work on it (where that shows), return its id."""
    slow, ask = KNOWN[name].slow, KNOWN[name].good[0]
    working = asyncio.Event()
    if slow is not None:
        verb = client.call_tool(slow.tool, slow.lasting(1.0), on_progress=lambda _: working.set())
    else:
        verb = client.call_tool(ask.tool, ask.arguments)
        working.set()
    task = asyncio.create_task(verb)
    await talk.until(lambda: talk.sent_with("tools/call"))
    await working.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    return talk.sent_with("tools/call")[-1]["id"]


@every_peer
@pytest.mark.req("K1", "K3", "Q7")
@pytest.mark.case("C-01", "C-09")
@asynchronous
async def test_cancelled_call(name: str, tmp_path: Path) -> None:
    """The server is told once, and is usable afterwards, whatever it still says about that call."""
    known, talk = KNOWN[name], Talk()
    prepare(name, tmp_path)
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        cancelled = await cancelled_call(client, talk, name)
        told = talk.sent_with("notifications/cancelled")
        assert [message["params"]["requestId"] for message in told] == [cancelled]
        if known.dies_on_cancel:
            with pytest.raises(ConnectionEnded) as caught:
                await client.call_tool("slow", {"seconds": 10})
            assert caught.value.returncode == 1
            assert "Traceback" in caught.value.stderr_tail
            (gone,) = talk.of(PeerGone)
            assert (gone.returncode, gone.restarting) == (1, False)
        else:
            for ask in known.good:
                await check(client, ask)
            stats = client.engine.stats()
            assert (stats["calls"], stats["waiting_ids"], stats["progress_tokens"]) == (0, 0, 0)
    assert not talk.faults()


@peers_with("dies_on_cancel")
@pytest.mark.req("AA10")
@asynchronous
async def test_what_a_cancel_kills_lives_with_a_quirk(name: str, tmp_path: Path) -> None:
    known, talk = KNOWN[name], Talk()
    assert known.slow is not None
    async with connected(name, tmp_path, talk, quirks=["no-cancel"], **usual(name)) as client:
        with pytest.raises(CallTimeout):
            await client.call_tool(known.slow.tool, known.slow.lasting(1.0), timeout=0.2)
        for ask in known.good:
            await check(client, ask)
        assert "notifications/cancelled" not in talk.methods()
        assert [event.name for event in talk.of(QuirkUsed)] == ["no-cancel"]
    assert not talk.faults()


@peers_with("slow")
@pytest.mark.req("L1", "L4", "K1")
@pytest.mark.case("C-03")
@asynchronous
async def test_call_that_takes_too_long(name: str, tmp_path: Path) -> None:
    known, talk = KNOWN[name], Talk()
    assert known.slow is not None
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        with pytest.raises(CallTimeout) as caught:
            await client.call_tool(known.slow.tool, known.slow.lasting(1.0), timeout=0.2)
        assert caught.value.reason == "timeout"
        asked, told = talk.sent[-2:]
        assert (asked["method"], told["method"]) == ("tools/call", "notifications/cancelled")
        assert told["params"]["requestId"] == asked["id"]
        if not known.dies_on_cancel:
            await check(client, known.good[0])
    assert not talk.faults()


@peers_with("slow")
@pytest.mark.req("L2", "J2")
@pytest.mark.case("C-08")
@asynchronous
async def test_progress_does_not_cross_the_total_timeout(name: str, tmp_path: Path) -> None:
    known, talk = KNOWN[name], Talk()
    assert known.slow is not None
    told: list[float] = []
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        await client.call_tool(known.slow.tool, known.slow.lasting(0.01))  # the first call is the slowest
        with pytest.raises(CallTimeout) as caught:
            await client.call_tool(
                known.slow.tool,
                known.slow.lasting(6.0),
                timeout=60.0,
                total_timeout=3.0,
                on_progress=lambda event: told.append(event.progress),
            )
        assert caught.value.reason == "total_timeout"
        assert told
        assert max(told) < 4
        assert talk.methods()[-1] == "notifications/cancelled"
    assert not talk.faults()


# how it ends -------------------------------------------------------------------------------------

# Two shells around the server: the inner one notes the process and becomes it, the outer one notes how
# it ended. If a signal were needed, both would die of it, and no exit code would be noted.
WATCHED = 'echo $$ > pids; sh -c \'echo $$ >> pids; exec "$@"\' sh "$@"; echo $? > code'


@every_peer
@pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")
@pytest.mark.req("Q4")
@pytest.mark.case("R-03")
@asynchronous
async def test_orderly_end(name: str, tmp_path: Path) -> None:
    needs(name)
    talk, launch = Talk(), PEERS[name].launch(tmp_path)
    command = Command(["sh", "-c", WATCHED, "sh", *launch.argv], launch.env, str(launch.cwd))
    async with sansmcp_asyncio.connect(
        command,
        on_event=talk.on_event,
        on_wire=talk.on_wire,
        ladder=ShutdownLadder(after_close=60.0),
        **usual(name),
    ) as client:
        await client.list_tools()
        processes = [int(pid) for pid in (tmp_path / "pids").read_text().split()]
        assert len(processes) == 2
        for process in processes:
            os.kill(process, 0)
    assert (tmp_path / "code").read_text() == "0\n"
    for process in processes:
        with pytest.raises(ProcessLookupError):  # a zombie would still be found
            os.kill(process, 0)
    assert [event.error for event in talk.of(SessionEnded)] == [None]
    assert not talk.of(PeerGone)
    with pytest.raises(SansmcpError):
        await client.list_tools()


@pytest.mark.parametrize("name", ["everything", "mcp-2.3.0"])
@pytest.mark.req("Q7")
@asynchronous
async def test_end_while_calls_are_open(name: str, tmp_path: Path) -> None:
    """Each open call fails once, and nothing waits for the server's answer."""
    slow, talk = KNOWN[name].slow, Talk()
    assert slow is not None
    async with connected(name, tmp_path, talk, **usual(name)) as client:
        tasks = [asyncio.create_task(client.call_tool(slow.tool, slow.lasting(1.0))) for _ in range(8)]
        await talk.until(lambda: len(talk.sent_with("tools/call")) == 8)
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, ConnectionEnded) for result in results), results
    late = [e.reason for e in talk.of(MessageIgnored)]
    assert not any(isinstance(reason, PeerFault) for reason in late)
